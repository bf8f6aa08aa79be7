"""The importance of columns: shares of the variance of f, and the log loss that permuting a column costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.checks import optional
from gpclass.core.protocols import Array
from gpclass.effects.average import RANK, Draws
from gpclass.effects.columns import Table

GROUPS = 12  # number of groups of equally many values by which a number is represented


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Importance:
    """The importance of the columns, the largest total share first; prints as a table.

    Attributes
    ----------
    features : tuple of str
        Names of the columns.
    first, total : ndarray of shape (n_columns, 3)
        Share of the variance of f that a column explains alone, and with its interactions: posterior
        median, lower and upper bound of the credible interval.
    cost : ndarray of shape (n_columns, 2)
        Increase of the log loss when the column is permuted, and its standard error.
    level : float
        Credible level of the intervals.
    """

    features: tuple[str, ...]
    first: Array
    total: Array
    cost: Array
    level: float

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the names of the columns as index."""
        pd = optional("pandas", "to_frame()", "cli")
        names = [f"{share}{end}" for share in ("first", "total") for end in ("", "_low", "_high")]
        numbers = np.hstack([self.first, self.total, self.cost])
        index = pd.Index(self.features, name="feature")
        return pd.DataFrame(numbers, index=index, columns=[*names, "cost", "cost_error"])

    def __repr__(self) -> str:
        width = max(map(len, ("column", *self.features)))
        lines = [f"{'column':<{width}}  {'first order':<19} {'total':<19} cost in log loss"]
        for name, first, total, cost in zip(self.features, self.first, self.total, self.cost, strict=True):
            shares = ["{:.2f} [{:.2f}, {:.2f}]".format(*share) for share in (first, total)]
            lines.append(f"{name:<{width}}  {shares[0]:<19} {shares[1]:<19} {cost[0]:.4f} ± {cost[1]:.4f}")
        return "\n".join(lines)


def permutation_costs(estimator: Any, table: Table, truth: Any, n_repeats: int) -> Array:
    """Return the increase of the log loss when each column is permuted, and its standard error over the rows."""
    X, rng, out = table.rows, np.random.default_rng(estimator._seed), []

    def losses(X: Array) -> Array:
        noise = np.random.default_rng(estimator._seed)
        return -estimator.base_estimator_.log_proba(X, estimator.integration, noise)[np.arange(len(X)), truth]

    base, orders = losses(X), [rng.permutation(len(X)) for _ in range(n_repeats)]
    for record in table.records:
        worse = np.zeros(len(X))
        for order in orders if record.positions else ():
            permuted = X.copy()
            permuted[:, list(record.positions)] = X[order][:, list(record.positions)]
            worse += (losses(permuted) - base) / n_repeats
        out.append([worse.mean(), worse.std() / np.sqrt(len(X))])
    return np.array(out)


def variance_shares(estimator: Any, table: Table, n: int) -> Array:
    """Return draws of the first-order and total Sobol indices of all columns, (n, n_columns, 2)."""
    columns, m, seed = range(len(table.records)), len(table.rows), estimator._seed
    rng = np.random.default_rng(seed)
    rows = table.rows.copy()
    for record in table.records:  # independent columns, with the distributions that they have in the table
        rows[:, list(record.positions)] = rows[rng.permutation(m)][:, list(record.positions)]
    table = replace(table, rows=rows)
    values, frequencies = zip(*(representatives(*table.values(j)) for j in columns), strict=True)
    copies = [table.copies([j], [values[j]]) for j in columns]
    some = [each.stacked[rng.integers(len(each.stacked), size=RANK)] for each in copies]
    candidates = np.concatenate([table.rows, *some])
    draws = [Draws(model.posterior, candidates, m, n, seed) for model in estimator._latent_models()]

    def at(X: Array) -> Array:
        f = np.concatenate([each.at(X) for each in draws], axis=1)
        return f - f.mean(axis=1, keepdims=True) if f.shape[1] > 1 else f

    variance, shares = at(table.rows).var(axis=0).sum(axis=0), np.zeros((n, len(copies), 2))
    for j, (each, frequency) in enumerate(zip(copies, frequencies, strict=True)):
        if table.records[j].positions:
            f = at(each.stacked).reshape(len(each), m, -1, n)
            f -= np.einsum("gmcn,g->mcn", f, frequency)
            shares[:, j, 0] = np.einsum("gcn,g->n", f.mean(axis=1) ** 2, frequency)
            shares[:, j, 1] = np.einsum("gmcn,g->n", f**2, frequency) / m
    return shares / variance[:, None, None]


def representatives(values: Any, frequency: Array) -> tuple[Any, Array]:
    """Return values that represent a column, with their frequencies: levels, or the means of groups of equal size."""
    if len(frequency):
        return values, frequency / frequency.sum()
    groups = np.array_split(values, min(GROUPS, len(values)))
    return np.array([group.mean() for group in groups]), np.array([len(group) for group in groups]) / len(
        values
    )
