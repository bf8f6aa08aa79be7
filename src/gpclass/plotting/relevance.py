"""Which columns matter: the inverse of their length scales (automatic relevance determination)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from gpclass.core.protocols import Array
from gpclass.kernels import Columns
from gpclass.learning.prediction import check_level
from gpclass.plotting import style


class RelevanceDisplay:
    """One over the length scale of every column: how fast f varies along it.

    Parameters
    ----------
    relevance : ndarray of shape (n_kernels, n_features)
        Zero for columns that a kernel does not see.
    names : sequence of str
        Of the columns.
    labels : sequence of str
        Of the kernels, where there are several.
    low, high : ndarray of shape (n_kernels, n_features) or None
        Credible interval, where length scales were sampled.
    scaled : bool
        Whether length scales were taken in standard deviations of their columns.

    Attributes
    ----------
    order_ : ndarray of shape (n_shown,)
        The columns from the most relevant one.
    figure_, ax_

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.kernels import RBF
    >>> from gpclass.plotting import RelevanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> clf = GaussianProcessClassifier(9.0 * RBF([1.0, 1.0, 1.0], (0.1, 100.0)), optimizer=None)
    >>> clf = clf.fit(X, X[:, 1] > 0)
    >>> RelevanceDisplay.from_estimator(clf).relevance
    array([[1., 1., 1.]])
    """

    def __init__(
        self,
        relevance: Array,
        *,
        names: Any,
        labels: Any = ("",),
        low: Array | None = None,
        high: Array | None = None,
        scaled: bool = False,
    ) -> None:
        self.relevance, self.names, self.labels = relevance, names, labels
        self.low, self.high, self.scaled = low, high, scaled

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, level: float = 0.9, ax: Any = None, **options: Any
    ) -> Self:
        """Read the length scales of the fitted kernel, and draw them.

        Parameters
        ----------
        estimator : GaussianProcessClassifier
            Fitted, with a kernel that has a length scale for each column.
        X : array-like of shape (n, n_features), default=None
            Rows by whose standard deviation a column is measured, if their units differ.
        level : float, default=0.9
            Of the credible interval, where hyperparameters were sampled.
        ax : axes, default=None
        **options
            For `plot`.

        Returns
        -------
        RelevanceDisplay
        """
        check_level(level)
        n = estimator.n_features_in_
        scale = np.ones(n) if X is None else np.asarray(X, dtype=float).std(axis=0)
        parts = [
            part for label, kernel, chains in _models(estimator) for part in _parts(kernel, n, label, chains)
        ]
        if not parts:
            raise ValueError(
                f"The kernel {estimator.kernel_} has no length scale for each column: give a vector, for "
                f"example RBF(numpy.ones({n}))."
            )
        labels, values, draws = zip(*parts, strict=True)
        low, high = None, None
        if all(draw is not None for draw in draws):
            tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
            low, high = np.array([np.quantile(draw, tails, axis=0) for draw in draws]).swapaxes(0, 1) * scale
        names = style.feature_names(estimator, X, n)
        display = cls(
            np.array(values) * scale, names=names, labels=labels, low=low, high=high, scaled=X is not None
        )
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None, *, n_top: int | None = None) -> Self:
        """Draw the columns from the most relevant one down.

        Parameters
        ----------
        ax : axes, default=None
        n_top : int, default=None
            How many columns at most.
        """
        self.order_ = np.argsort(-self.relevance.max(axis=0), kind="stable")[:n_top]
        n, kernels = len(self.order_), len(self.relevance)
        self.figure_, axes = style.panels(ax, 1, 1, (5.2, 0.9 + 0.3 * n * max(1.0, 0.6 * kernels)))
        axis = self.ax_ = axes[0]
        height = 0.7 / kernels
        for k, values in enumerate(self.relevance):
            colour, marker, line = style.style(k)
            y = np.arange(n) - 0.35 + height * (k + 0.5)
            shown = values[self.order_]
            axis.hlines(y, 0.0, shown, color=colour, linewidth=2.2, linestyle=line)
            axis.plot(shown, y, marker, color=colour, markersize=6, label=self.labels[k], linestyle="")
            if self.low is not None and self.high is not None:
                axis.hlines(
                    y, self.low[k, self.order_], self.high[k, self.order_], color="black", linewidth=0.9
                )
                for end in (self.low, self.high):
                    axis.plot(end[k, self.order_], y, "|", color="black", markersize=6)
        axis.set_yticks(range(n), [self.names[i] for i in self.order_])
        axis.set_ylim(n - 0.5, -0.5)
        axis.set_xlim(0.0, None)
        axis.set_xlabel("standard deviation / length scale" if self.scaled else "1 / length scale")
        axis.grid(axis="x", color="0.9", linewidth=0.8)
        axis.set_axisbelow(True)
        style.bare(axis)
        if kernels > 1:
            axis.legend(loc="lower right", frameon=False)
        return self


Part = tuple[str, Array, Array | None]  # label, relevance of each column, draws of that


def _models(estimator: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield a label, a kernel and its chains for each latent function that has a kernel of its own."""
    for i, model in enumerate(models := estimator.base_estimator_.models):
        inner = getattr(model.kernel, "kernels", None)
        chains = getattr(model, "chains", None)
        if inner is None:
            yield (str(i) if len(models) > 1 else ""), model.kernel, chains
        else:
            yield from ((str(label), k, None) for label, k in zip(estimator.classes_, inner, strict=True))


def _parts(kernel: Any, n: int, label: str, chains: Any) -> Iterator[Part]:
    """Yield the relevance that each part of a kernel gives to each column."""
    params = kernel.get_params()
    found = [name for name in params if name.split("__")[-1] == "length_scale"]
    names = style.hyperparameter_names(kernel)
    for name in found:
        path = name.split("__")
        above = [kernel, *(params["__".join(path[:i])] for i in range(1, len(path)))]
        columns = np.arange(n)
        for part in above:
            if isinstance(part, Columns):
                columns = np.atleast_1d(columns[part.columns])
        scales = np.atleast_1d(np.asarray(params[name], dtype=float))
        if len(scales) != len(columns):
            continue  # one scale for several columns says nothing of each
        values = np.zeros(n)
        values[columns] = 1.0 / scales
        places = [i for i, one in enumerate(names) if one == name or one.startswith(name + "[")]
        draws = None
        if chains is not None and chains.theta is not None and len(places) == len(columns):
            draws = np.zeros((chains.theta[:, :, 0].size, n))
            draws[:, columns] = np.exp(-chains.theta.reshape(-1, chains.theta.shape[2])[:, places])
        where = "" if len(found) == 1 else style.short_names(found)[found.index(name)]
        yield " ".join(filter(None, (label, where))), values, draws
