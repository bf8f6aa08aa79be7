"""The importance of columns and pairs: shares of the variance of f, and the log loss that permuting a column costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from gpclass.core.checks import optional
from gpclass.core.protocols import Array
from gpclass.core.text import between
from gpclass.effects.average import RANK, Draws
from gpclass.effects.columns import Table

GROUPS = 12  # number of groups of equally many values by which a number is represented
PAIRED = 6  # number of columns, those that interact most, whose pairs are ranked
PAIR_GROUPS = 8  # the same for a pair: the product of two uniform columns loses 3 % of its variance
PAIR_ROWS = 30  # rows over which the effect of a pair is averaged, fewer for many levels
PAIR_VALUES = 20_000  # latent values per draw and pair, which bounds the memory
SHOWN = 5  # pairs in the text of the table
EQUAL = 1.5  # length scales, in deviations of their columns, within this factor are nearly equal


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
    cost : ndarray of shape (n_columns, 2) or None
        Increase of the log loss when the column is permuted, and its standard error; None without labels.
    pairs : tuple of pairs of str
        Pairs of the columns that interact most, the largest interaction first.
    interaction : ndarray of shape (n_pairs, 3)
        Share of the variance of f that a pair explains beyond the first-order shares of its columns.
    level : float
        Credible level of the intervals.
    note : str
        A sentence if length scales say nothing about the importance of the columns, else "".
    """

    features: tuple[str, ...]
    first: Array
    total: Array
    cost: Array | None
    pairs: tuple[tuple[str, str], ...]
    interaction: Array
    level: float
    note: str

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the names of the columns as index."""
        pd = optional("pandas", "to_frame()", "cli")
        names = [f"{share}{end}" for share in ("first", "total") for end in ("", "_low", "_high")]
        numbers, index = [self.first, self.total], pd.Index(self.features, name="feature")
        if self.cost is not None:
            numbers, names = [*numbers, self.cost], [*names, "cost", "cost_error"]
        return pd.DataFrame(np.hstack(numbers), index=index, columns=names)

    def texts(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return the columns of two tables as texts: of the columns, and of the first pairs."""
        first, total, both = (
            [*map(between, each)] for each in (self.first, self.total, self.interaction[:SHOWN])
        )
        columns = {"column": [*self.features], "first order": first, "total": total}
        if self.cost is not None:
            columns["cost in log loss"] = [f"{cost:.4f} ± {error:.4f}" for cost, error in self.cost]
        return columns, {"pair": [*map(" × ".join, self.pairs[:SHOWN])], "interaction": both}

    def __repr__(self) -> str:
        tables = [aligned([(name, *texts) for name, texts in each.items()]) for each in self.texts()]
        return "\n\n".join(filter(None, [tables[0], tables[1] * bool(self.pairs), self.note]))


def aligned(columns: Sequence[Sequence[str]]) -> str:
    """Return columns of texts side by side."""
    wide = [[f"{text:<{max(map(len, column))}}" for text in column] for column in columns]
    return "\n".join("  ".join(line).rstrip() for line in zip(*wide, strict=True))


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


def variance_shares(estimator: Any, table: Table, n: int) -> tuple[Array, list[tuple[int, int]], Array]:
    """Return draws of the first-order and total Sobol indices of all columns, (n, n_columns, 2), and of pairs.

    Of the columns whose indices differ most, it returns all pairs and draws (n, n_pairs) of their second-order indices.
    """
    columns, m, seed = range(len(table.records)), len(table.rows), estimator._seed
    rng = np.random.default_rng(seed)
    rows = table.rows.copy()
    for record in table.records:  # independent columns, with the distributions that they have in the table
        rows[:, list(record.positions)] = rows[rng.permutation(m)][:, list(record.positions)]
    table = replace(table, rows=rows)
    values, frequencies = zip(*(representatives(*table.values(j), GROUPS) for j in columns), strict=True)
    copies = [table.copies([j], [values[j]]) for j in columns]
    some = [each.stacked[rng.integers(len(each.stacked), size=RANK)] for each in copies]
    candidates = np.concatenate([table.rows, *some])

    def draws_at(m: int) -> Callable[[Array], Array]:
        """Return a function that evaluates the same n draws of f at copies of m rows."""
        draws = [Draws(model.posterior, candidates, m, n, seed) for model in estimator._latent_models()]

        def at(X: Array) -> Array:
            f = np.concatenate([each.at(X) for each in draws], axis=1)
            return f - f.mean(axis=1, keepdims=True) if f.shape[1] > 1 else f

        return at

    at = draws_at(m)
    variance, shares = at(table.rows).var(axis=0).sum(axis=0), np.zeros((n, len(copies), 2))
    for j, (each, frequency) in enumerate(zip(copies, frequencies, strict=True)):
        if table.records[j].positions:
            f = at(each.stacked).reshape(len(each), m, -1, n)
            f -= np.einsum("gmcn,g->mcn", f, frequency)
            shares[:, j, 0] = np.einsum("gcn,g->n", f.mean(axis=1) ** 2, frequency)
            shares[:, j, 1] = np.einsum("gmcn,g->n", f**2, frequency) / m
    mixing = np.median(shares[:, :, 1] - shares[:, :, 0], axis=0)
    chosen = [j for j in np.argsort(-mixing, kind="stable")[:PAIRED].tolist() if table.records[j].positions]
    pairs = list(combinations(sorted(chosen), 2))
    found = [interaction(draws_at, table, pair) for pair in pairs]
    both = np.stack(found, axis=1) if found else np.zeros((n, 0))
    return shares / variance[:, None, None], pairs, both / variance[:, None]


def interaction(
    draws_at: Callable[[int], Callable[[Array], Array]], table: Table, pair: Sequence[int]
) -> Array:
    """Return draws of the variance of the effect of two columns that is not the sum of two effects."""
    values, (p, q) = zip(*(representatives(*table.values(j), PAIR_GROUPS) for j in pair), strict=True)
    m = max(1, min(PAIR_ROWS, len(table.rows), PAIR_VALUES // (len(p) * len(q))))
    few = replace(table, rows=table.rows[:m], weight=np.full(m, 1.0 / m))
    f = draws_at(m)(few.copies(pair, values).stacked)
    f = f.reshape(len(p), len(q), m, *f.shape[1:]).mean(axis=2)
    f -= np.einsum("ghcn,g->hcn", f, p)
    f -= np.einsum("ghcn,h->gcn", f, q)[:, None]
    return np.einsum("ghcn,g,h->n", f**2, p, q, optimize=True)


def note_on_lengths(estimator: Any, table: Table, total: Array) -> str:
    """Return a sentence if length scales are nearly equal, by shrinkage for example, although the shares are not."""
    used = [record.positions for record in table.records if record.positions]
    deviation = np.sqrt([table.rows[:, list(positions)].var(axis=0).sum() for positions in used])
    for model in estimator._latent_models():
        for name, lengths in model.kernel.get_params().items():
            if name.endswith("length_scale") and np.shape(lengths) == (len(used),) and len(used) > 1:
                relative = lengths / np.maximum(deviation, 1e-300)
                if relative.max() < EQUAL * relative.min() and total.max() > 2.0 * EQUAL * total.min():
                    return (
                        f"The length scales are nearly equal, {relative.min():.3g} to {relative.max():.3g} deviations "
                        "of their columns, although the columns differ in importance: use the shares instead."
                    )
    return ""


def representatives(values: Any, frequency: Array, n: int) -> tuple[Any, Array]:
    """Return values that represent a column, with their frequencies: levels, or the means of groups of equal size."""
    if len(frequency):
        return values, frequency / frequency.sum()
    groups = np.array_split(values, min(n, len(values)))
    sizes = np.array([len(group) for group in groups])
    return np.array([group.mean() for group in groups]), sizes / len(values)
