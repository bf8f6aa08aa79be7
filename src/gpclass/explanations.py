"""The methods of the classifier that explain its predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.core.checks import check_integers, check_numbers, check_option
from gpclass.core.protocols import Array
from gpclass.effects import rows
from gpclass.effects.columns import Table, in_units
from gpclass.effects.effect import Effect, latent, probability
from gpclass.effects.importance import Importance, note_on_lengths, permutation_costs, variance_shares
from gpclass.effects.rows import DoubtfulLabel, Influences
from gpclass.validation import Encode

RESOLUTION = {1: 20, 2: 10}  # default number of points along each of so many columns


def grid(known: Any, frequency: Array, resolution: int, percentiles: tuple[float, float]) -> Any:
    """Return all levels of a category; or all numbers if they are few, else evenly spaced ones."""
    if len(frequency):
        return known
    distinct = np.unique(known)
    if len(distinct) <= resolution:
        return distinct
    fine = len(percentiles) == 2 and 0.0 <= percentiles[0] < percentiles[1] <= 1.0
    check_option("percentiles", percentiles, fine, "two increasing numbers from 0 to 1")
    from scipy.stats.mstats import mquantiles

    low, high = mquantiles(known, percentiles)
    return np.linspace(low, high, resolution)


class Explanations:
    """Methods of a classifier that explain its predictions."""

    classes_: Any
    n_classes_: int
    _warn_of_narrow_intervals: Any

    def effect(
        self,
        X: Any,
        features: Any,
        kind: str = "probability",
        level: float = 0.95,
        *,
        centred: bool = False,
        sample_weight: Any = None,
        grid_resolution: int | None = None,
        percentiles: tuple[float, float] = (0.05, 0.95),
        max_rows: int = 100,
        n_draws: int = 500,
    ) -> Effect:
        """Return the effect of one or two columns: their partial dependence, with its credible band.

        It is the average over the rows of X when the columns are set to each value of a grid. The band is that
        of this average, exact for the latent function, and from draws for the probability.

        Parameters
        ----------
        X : table or array with the columns of the training rows
            Rows to average over, such as the training rows.
        features : str, int, or a pair of them
            Columns of the table, by name or position.
        kind : {"probability", "latent"}, default="probability"
            Average of the class probabilities, or of the latent functions.
        level : float, default=0.95
            Probability that the interval at a point of the grid contains the average.
        centred : bool, default=False
            Whether to subtract the mean over the grid, so that the band is that of the shape alone.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.
        grid_resolution : int, default=None
            Number of points along a number, or all distinct values if they are not more. None is 20, or 10 for each of
            two columns.
        percentiles : pair of float, default=(0.05, 0.95)
            Range of the grid, as in `sklearn.inspection.partial_dependence`.
        max_rows : int, default=100
            Larger tables are replaced by this many random rows.
        n_draws : int, default=500
            Number of draws for the band of the probability.

        Returns
        -------
        gpclass.effects.Effect
            A record with the arrays ``grid``, ``mean``, ``low`` and ``high``.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from gpclass import GaussianProcessClassifier
        >>> from gpclass.kernels import RBF
        >>> X, y = make_moons(60, noise=0.2, random_state=0)
        >>> clf = GaussianProcessClassifier(4.0 * RBF(0.7), optimizer=None, random_state=0).fit(X, y)
        >>> effect = clf.effect(X, "x1", grid_resolution=3)
        >>> for x, p, low, high in zip(effect.grid, effect.mean, effect.low, effect.high):
        ...     print(f"x1 = {x:.1f}: p = {p:.1f}, 95 % interval {low:.1f} to {high:.1f}")
        x1 = -0.7: p = 0.9, 95 % interval 0.7 to 1.0
        x1 = 0.2: p = 0.5, 95 % interval 0.3 to 0.7
        x1 = 1.1: p = 0.2, 95 % interval 0.0 to 0.4
        """
        check_option("kind", kind, kind in ("probability", "latent"), "'probability' or 'latent'")
        check_numbers("(0, 1)", level=level)
        check_integers(2, grid_resolution=2 if grid_resolution is None else grid_resolution, n_draws=n_draws)
        features = list(features) if isinstance(features, tuple | list) else [features]
        check_option("features", features, len(features) in (1, 2), "a column or a pair of columns")
        table = Table.read(self, X, sample_weight, max_rows)
        self._warn_of_narrow_intervals()
        chosen = [table.find(feature) for feature in features]
        values = [
            grid(*table.values(j), grid_resolution or RESOLUTION[len(chosen)], percentiles) for j in chosen
        ]
        copies = table.copies(chosen, values)
        H = np.eye(len(copies)) - float(centred) / len(copies)
        if kind == "latent":
            mean, cov, low, high, each = latent(self, copies, H, level)
        else:
            mean, cov, low, high, each = probability(self, copies, H, level, n_draws)
        std = np.sqrt(np.einsum("kgg->kg", cov))
        one, shape = len(mean) == 1, tuple(map(len, values))
        curves = [A[0].reshape(shape) if one else A.T.reshape(*shape, -1) for A in (mean, low, high, std)]
        individual = np.moveaxis(each, 2, 0).swapaxes(1, 2).reshape(-1, *shape, len(each))
        units = [in_units(table.records[j], each) for j, each in zip(chosen, values, strict=True)]
        return Effect(
            features=tuple(table.records[j].name for j in chosen),
            grid=units[0] if len(units) == 1 else tuple(units),
            **dict(zip(("mean", "low", "high", "std"), curves, strict=True)),
            cov=cov[0] if one else cov,
            individual=individual[..., 0] if one else individual,
            kind=kind,
            level=level,
            classes=self.classes_[-len(mean) :],
            data=tuple(table.columns[j].array for j in chosen),
        )

    def importance(
        self,
        X: Any,
        y: Any = None,
        *,
        level: float = 0.95,
        max_rows: int = 200,
        n_draws: int = 200,
        n_repeats: int = 5,
    ) -> Importance:
        """Return the importance of columns and pairs: shares of the variance of f, and what permuting a column costs.

        The ``first`` share is the variance of the effect of the column, ``total`` the mean variance of f as only this
        column varies, both divided by the variance of f. The columns are permuted independently for this, so that the
        shares are Sobol indices. The difference is due to interactions: all pairs of the six columns where it is
        largest are ranked by the variance of their joint effect that is not the sum of two effects.

        Parameters
        ----------
        X : table or array
            Rows, preferably rows that the model was not fitted to.
        y : array-like of shape (n,), default=None
            Their labels; without them there are no costs.
        level : float, default=0.95
            Credible level of the intervals of the shares.
        max_rows : int, default=200
            Larger tables are replaced by this many random rows.
        n_draws, n_repeats : int, default=200, 5
            Number of draws of f for the shares, and of permutations for the costs.

        Returns
        -------
        gpclass.effects.Importance
            A table, with the largest total share first.

        Examples
        --------
        >>> import numpy as np
        >>> from gpclass import GaussianProcessClassifier
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> y = X[:, 1] > X[:, 0] ** 2
        >>> GaussianProcessClassifier("rbf", random_state=0).fit(X, y).importance(X, y).features
        ('x0', 'x1', 'x2')
        """
        check_numbers("(0, 1)", level=level)
        check_integers(1, n_draws=n_draws, n_repeats=n_repeats)
        table, cost = Table.read(self, X, None, max_rows), None
        self._warn_of_narrow_intervals()
        tails = [0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level]
        if y is not None:
            codes, n = Encode(self.classes_).codes(np.asarray(y)), len(table.columns[0].array)
            if len(codes) != n:
                raise ValueError(f"y has {len(codes)} labels, expected {n}: one for each row.")
            cost = permutation_costs(self, table, codes[table.index], n_repeats)
        draws, pairs, both = variance_shares(self, table, n_draws)
        shares, mixed = (np.moveaxis(np.quantile(each, tails, axis=0), 0, -1) for each in (draws, both))
        order, ranked = (np.argsort(-each, kind="stable") for each in (shares[:, 1, 0], mixed[:, 0]))
        names = [record.name for record in table.records]
        return Importance(
            features=tuple(names[j] for j in order),
            first=shares[order, 0],
            total=shares[order, 1],
            cost=None if cost is None else cost[order],
            pairs=tuple((names[pairs[i][0]], names[pairs[i][1]]) for i in ranked),
            interaction=mixed[ranked],
            level=level,
            note=note_on_lengths(self, table, shares[:, 1, 0]),
        )

    def influences(self, X: Any, n: int = 10) -> list[Influences]:
        """Return the training rows that determine the latent mean at each row of X.

        The mean is a sum over the training rows, Σ_i alpha_i k(x, x_i), and a share is one of its terms.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n : int, default=10
            Number of training rows to return for each row of X.

        Returns
        -------
        list of gpclass.effects.Influences
            One for each row of X.

        Examples
        --------
        >>> import numpy as np
        >>> from gpclass import GaussianProcessClassifier
        >>> X = np.arange(10.0)[:, None]
        >>> clf = GaussianProcessClassifier("rbf").fit(X, X[:, 0] > 4)
        >>> near = clf.influences([[4.1]], n=2)[0]
        >>> near.rows, near.labels, near.supports
        (array([4, 5]), array([False,  True]), np.True_)
        """
        return rows.influences(self, X, n)

    def doubtful_labels(self, n: int | None = 10) -> list[DoubtfulLabel]:
        """Return the training rows whose labels are the least probable from the other rows, the least probable first.

        Such a label may be wrong, or the row may be an exception that deserves a second look.

        Parameters
        ----------
        n : int or None, default=10
            Number of rows; None returns all of them.

        Returns
        -------
        list of gpclass.effects.DoubtfulLabel
            Rows are positions in the X that was fitted, without rows of weight zero.

        Examples
        --------
        >>> import numpy as np
        >>> from gpclass import GaussianProcessClassifier
        >>> X = np.arange(20.0)[:, None]
        >>> y = (X[:, 0] > 9) ^ (X[:, 0] == 15)  # one wrong label
        >>> doubt = GaussianProcessClassifier("rbf").fit(X, y).doubtful_labels(1)[0]
        >>> doubt.row, doubt.label, doubt.likely
        (15, np.False_, np.True_)
        """
        return rows.doubtful_labels(self, n)
