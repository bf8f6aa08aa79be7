"""The relevance of columns: the inverse of their length scales (automatic relevance determination)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array
from gpclass.plotting import style
from gpclass.plotting.base import Display, feature_names, hyperparameter_names, kernels_of, short_names

NEAR = 1e-3  # distance of the logarithm of a length scale from its bound that counts as zero


@dataclass(eq=False, repr=False)
class RelevanceDisplay(Display):
    """One over the length scale of every column: how fast f varies along it, the most relevant column at the top.

    Parameters
    ----------
    relevance : ndarray of shape (n_kernels, n_features)
        The inverse length scales; zero for columns that a kernel does not use.
    names : sequence of str
        Names of the columns.
    labels : sequence of str
        Names of the kernels, if there are several.
    low, high : ndarray of shape (n_kernels, n_features) or None
        Credible intervals, if length scales were sampled.
    scaled : bool
        Whether length scales are in units of the standard deviation of their columns.
    at_bound : ndarray of bool of shape (n_kernels, n_features), or False
        Which length scales are at a bound of the search; they are drawn as open markers.

    Attributes
    ----------
    order_ : ndarray of shape (n_shown,)
        The columns, the most relevant one first.

    Examples
    --------
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

    relevance: Array
    _: KW_ONLY
    names: Any
    labels: Any = ("",)
    low: Array | None = None
    high: Array | None = None
    scaled: bool = False
    at_bound: Any = False

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, level: float = 0.9, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the length scales of the fitted kernel, which needs one for each column.

        Parameters
        ----------
        estimator : GaussianProcessClassifier
            The fitted classifier.
        X : array-like or data frame of shape (n, n_features), default=None
            If given, length scales are measured in standard deviations of its columns.
        level : float, default=0.9
            Probability of the credible intervals, which are drawn where hyperparameters were sampled.
        ax, **options
            See `gpclass.plotting`.

        Returns
        -------
        RelevanceDisplay
        """
        check_numbers("(0, 1)", level=level)
        possible = [
            (_all_parts(estimator, len(names)), names, scale) for names, scale in _columns_of(estimator, X)
        ]
        parts, names, scale = next((found for found in possible if found[0]), possible[-1])
        n = len(names)
        if not parts:
            raise ValueError(
                f"The kernel {estimator.kernel_} has no length scale for each column: give a vector, for "
                f"example RBF(numpy.ones({n}))."
            )
        labels, values, draws, at_bound = zip(*parts, strict=True)
        low, high = None, None
        if all(draw is not None for draw in draws):
            tails = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
            low, high = np.quantile(draws, tails, axis=1) * scale
        display = cls(
            np.array(values) * scale,
            names=names,
            labels=labels,
            low=low,
            high=high,
            scaled=X is not None,
            at_bound=np.array(at_bound),
        )
        return display.plot(ax=ax, **options)

    def _draw(self, ax: Any, *, n_top: int | None = None) -> None:
        self.order_ = np.argsort(-self.relevance.max(axis=0), kind="stable")[:n_top]
        n, kernels = len(self.order_), len(self.relevance)
        (axis,) = self._panels(ax, (1, 1), (5.2, 0.9 + 0.3 * n * max(1.0, 0.6 * kernels)))
        height, at_bound = 0.7 / kernels, np.broadcast_to(self.at_bound, self.relevance.shape)
        for k, values in enumerate(self.relevance[:, self.order_]):
            colour, marker, line = style.style(k)
            y = np.arange(n) - 0.35 + height * (k + 0.5)
            axis.hlines(y, 0.0, values, color=colour, linewidth=2.2, linestyle=line)
            label = self.labels[k] if kernels > 1 else None
            axis.plot(values, y, marker, color=colour, markersize=6, label=label, linestyle="")
            bound = at_bound[k, self.order_]
            if bound.any():
                label = "at a bound" if k == int(np.argmax(at_bound.any(axis=1))) else None
                hollow = {"color": colour, "markerfacecolor": "white", "markersize": 8, "linestyle": ""}
                axis.plot(values[bound], y[bound], marker, label=label, zorder=3, clip_on=False, **hollow)
            if self.low is not None and self.high is not None:
                ends = self.low[k, self.order_], self.high[k, self.order_]
                style.intervals(axis, y, *ends, "black", along="x")
        label = "standard deviation / length scale" if self.scaled else "1 / length scale"
        style.named_rows(axis, [self.names[i] for i in self.order_], label)
        axis.set_xlim(0.0, None)
        if kernels > 1 or at_bound.any():
            axis.legend(loc="lower right", frameon=False)


def _columns_of(estimator: Any, X: Any) -> Iterator[tuple[list[str], Array]]:
    """Yield names and standard deviations of what may have a length scale each: columns of a table, or its code."""
    coded = getattr(estimator, "encoder_", None)
    if coded is None:
        n = estimator.n_features_in_
        yield (
            feature_names(estimator, X, n),
            np.ones(n) if X is None else np.asarray(X, dtype=float).std(axis=0),
        )
        return
    n, groups = len(coded.groups_), coded.groups_
    var = np.ones(n) if X is None else np.asarray(coded.code(X)).var(axis=0)
    in_groups = np.ones(groups[-1] + 1) if X is None else np.bincount(groups, var)
    yield list(coded.group_names_), np.sqrt(in_groups)
    yield list(coded.get_feature_names_out()), np.sqrt(var)


def _all_parts(estimator: Any, n: int) -> list[tuple[str, Array, Any, Any]]:
    return [part for kernel in _kernels(estimator) for part in _parts(*kernel, n)]


def _kernels(estimator: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield a label, a kernel of the classifier, and its draws of theta if it was sampled."""
    kernels, chains = kernels_of(estimator), getattr(estimator, "chains_", None)
    labels = [str(i) for i in range(len(kernels))] if len(kernels) > 1 else [""]
    if len(kernels) == len(estimator.classes_) and estimator.multi_class != "one_vs_one":
        labels = [str(label) for label in estimator.classes_]
    for i, (label, kernel) in enumerate(zip(labels, kernels, strict=True)):
        theta = getattr(chains[i] if isinstance(chains, list) else chains, "theta", None)
        yield label, kernel, None if theta is None else theta.reshape(-1, theta.shape[2])


def _parts(label: str, kernel: Any, sampled: Array | None, n: int) -> Iterator[tuple[str, Array, Any, Any]]:
    """Yield a label, the relevance of each column, draws of it and whether it is at a bound, for each length scale."""
    params, names = kernel.get_params(), hyperparameter_names(kernel)
    found = [name for name in params if name.split("__")[-1] == "length_scale"]
    for name, short in zip(found, short_names(found), strict=True):
        columns = _columns(kernel, params, name, n)
        scales = np.atleast_1d(np.asarray(params[name], dtype=float))
        if len(scales) != len(columns):
            continue  # one scale for several columns does not rank them
        values, at_bound, draws = np.zeros(n), np.zeros(n, dtype=bool), None
        values[columns] = 1.0 / scales
        places = [i for i, one in enumerate(names) if one == name or one.startswith(name + "[")]
        if places:  # otherwise it is fixed
            theta, (low, high) = kernel.theta[places], kernel.bounds[places].T
            at_bound[columns] = (theta - low < NEAR) | (high - theta < NEAR)
            if sampled is not None:
                draws = np.zeros((len(sampled), n))
                draws[:, columns] = np.exp(-sampled[:, places])
        yield f"{label} {short if len(found) > 1 else ''}".strip(), values, draws, at_bound


def _columns(kernel: Any, params: dict[str, Any], name: str, n: int) -> Any:
    """Return the columns that a part of a kernel uses, given every `Columns` around it."""
    path, columns = name.split("__"), np.arange(n)
    for part in [kernel, *(params["__".join(path[:i])] for i in range(1, len(path)))]:
        columns = np.atleast_1d(columns[getattr(part, "columns", slice(None))])
    return columns
