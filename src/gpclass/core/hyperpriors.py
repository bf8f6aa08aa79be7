"""Priors on hyperparameters, on their natural scale and on that of theta, their logarithms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array
from gpclass.core.registry import stored

SCALES = (0.1, 0.3, 0.6, 1.2, 2.4)  # of shrinkage, to choose from: from one length scale for all to one each
EDGE = 1e-6  # distance in theta kept from the ends of a hyperprior's support
DEVIATION = 1.5  # of the logarithm of a hyperparameter that nothing else is known of


@stored
@dataclass(frozen=True, slots=True)
class Shrinkage:
    """A prior that shrinks the length scales of the columns towards each other.

    The logarithms of the d length scales of a kernel, relative to those that the kernel was given with, are normal
    about a common value, which is free, with the standard deviation ``scale``:

        log l_j = log l_j0 + a + e_j,      e_j ~ N(0, scale²).

    With a small scale the columns keep the ratios that they were given with, and there is one length scale to learn;
    with a large one every column has its own. In between, a column differs from the others as far as the data ask for.

    Parameters
    ----------
    scale : float or None
        Standard deviation of the logarithms. None chooses it among `SCALES` by the evidence with the length
        scales integrated out, so that a model with more freedom has to pay for it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.core.hyperpriors import Shrinkage
    >>> from gpclass.kernels import RBF
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = X[:150, :5], y[:150]
    >>> kernel = 1.0 * RBF(2.0 * X.std(axis=0), (1e-3, 1e5))
    >>> alike = GaussianProcessClassifier(kernel, hyperprior=Shrinkage(0.1)).fit(X, y)
    >>> ratio = alike.kernel_.k2.length_scale / X.std(axis=0)
    >>> bool(ratio.max() / ratio.min() < 1.5)
    True
    """

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            check_numbers("(0, inf)", scale=self.scale)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The elements of theta that a `Shrinkage` ties together.

    ``given`` says whether its scale is the user's; if it is not, ``n_rows`` is the number of rows that it is for, zero
    as long as it has not been chosen.
    """

    places: NDArray[np.intp] = field(metadata={"shape": "g"})
    centre: Array = field(metadata={"shape": "g"})
    scale: float
    given: bool = True
    n_rows: int = 0

    def for_rows(self, n_rows: int) -> Group:
        """Return the group for more rows, if its scale was chosen on fewer."""
        if not 0 < self.n_rows < n_rows:
            return self
        scale = self.scale * (n_rows / self.n_rows) ** 0.5
        return replace(self, scale=min(scale, max(SCALES[-1], self.scale)), n_rows=n_rows)

    def deviations(self, theta: Array) -> Array:
        """Return e: what the elements differ from their common value."""
        away = theta[self.places] - self.centre
        out: Array = away - away.mean()
        return out

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the log density of the deviations up to a constant, and its slope."""
        e = self.deviations(theta) / self.scale
        return -0.5 * float(e @ e), -e / self.scale


@stored
@dataclass(init=False, eq=False)
class Hyperprior:
    """Priors on hyperparameters: independent ones on their natural scale, and `Shrinkage` of length scales.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its free hyperparameters give names and positions in theta.
    priors : Shrinkage, or mapping of name to frozen scipy.stats distribution or Shrinkage
        A name is a hyperparameter's (``"k2__length_scale"``) or its last part (``"length_scale"``,
        which means all of that name); a vector has the distribution on each element. A
        `Shrinkage` alone stands for ``{"length_scale": ...}``.

    Examples
    --------
    >>> from scipy import stats
    >>> from gpclass.kernels import RBF
    >>> prior = Hyperprior(1.0 * RBF(2.0), {"length_scale": stats.gamma(2.0)})
    >>> value, gradient = prior((1.0 * RBF(2.0)).theta)
    >>> round(value, 4), gradient.round(4)
    (-1.3069, array([ 0., -1.]))
    """

    terms: dict[int, Any]
    groups: tuple[Group, ...] = ()

    def __init__(self, kernel: Any, priors: Mapping[str, Any] | Shrinkage) -> None:
        owners = [h.name for h in kernel.hyperparameters if not h.fixed for _ in range(h.n_elements)]
        if isinstance(priors, Shrinkage):
            priors = {"length_scale": priors}
        if not isinstance(priors, Mapping):
            raise ValueError(
                f"hyperprior is {priors!r}, expected a mapping of names to distributions, or Shrinkage()."
            )
        self.terms = {}
        groups: dict[str, Group] = {}
        # Whole names after last parts, so that the more exact of two wins.
        for name, prior in sorted(priors.items(), key=lambda item: item[0] in owners):
            places = [i for i, owner in enumerate(owners) if name in (owner, owner.rsplit("__", 1)[-1])]
            if not places:
                raise ValueError(
                    f"hyperprior names {name!r}, which is not a free hyperparameter of {kernel}: "
                    f"expected one of {sorted(set(owners))}."
                )
            if isinstance(prior, Shrinkage):
                groups.update(_groups(kernel, owners, places, prior))
                continue
            if not all(callable(getattr(prior, part, None)) for part in ("logpdf", "support")) or not hasattr(
                prior, "args"
            ):
                raise ValueError(
                    f"hyperprior[{name!r}] is {prior!r}, expected a frozen continuous distribution "
                    "of scipy.stats such as scipy.stats.lognorm(1.0)."
                )
            self.terms.update((i, prior) for i in places)
        self.groups = tuple(groups.values())

    @property
    def open(self) -> bool:
        """Whether a scale of shrinkage is to be chosen."""
        return any(not (group.given or group.n_rows) for group in self.groups)

    def closed(self, n_rows: int) -> Hyperprior:
        """Return the prior with the scales of shrinkage that it has now as those chosen on so many rows."""
        return self._with(
            groups=tuple(group if group.given else replace(group, n_rows=n_rows) for group in self.groups)
        )

    def for_rows(self, n_rows: int) -> Hyperprior:
        """Return the prior for more rows than its scales of shrinkage were chosen on: they grow with the root of those.

        What the rows say about a length scale is uncertain by 1 / sqrt(n), and a wider prior costs no more for it. On
        1,000 rows the scale with the largest evidence was one to four times that on 300 of them.
        """
        return self._with(groups=tuple(group.for_rows(n_rows) for group in self.groups))

    def with_scale(self, scale: float) -> Hyperprior:
        """Return the prior with this scale of shrinkage wherever it is to be chosen."""
        return self._with(
            groups=tuple(group if group.given else replace(group, scale=scale) for group in self.groups)
        )

    def first(self, n_dims: int) -> Hyperprior:
        """Return the priors on the first elements of theta."""
        terms = {i: prior for i, prior in self.terms.items() if i < n_dims}
        return self._with(terms, tuple(group for group in self.groups if (group.places < n_dims).all()))

    def _with(self, terms: dict[int, Any] | None = None, groups: tuple[Group, ...] = ()) -> Hyperprior:
        out = object.__new__(Hyperprior)
        out.terms, out.groups = self.terms if terms is None else terms, groups
        return out

    def check_stored(self) -> None:
        """Raise unless the terms are distributions."""
        if not all(callable(getattr(prior, "logpdf", None)) for prior in self.terms.values()):
            raise ValueError("The terms of a hyperprior are not distributions.")

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return log p(exp(theta)) and its gradient with respect to theta."""
        value, gradient = 0.0, np.zeros(len(theta))
        for i, prior in self.terms.items():
            value += float(prior.logpdf(np.exp(theta[i])))
            gradient[i] += _slope(prior, theta[i])
        for group in self.groups:
            more, slope = group(theta)
            value += more
            gradient[group.places] += slope
        return value, gradient

    def narrow(self, bounds: Array) -> Array:
        """Return the part of the bounds on theta where the density is positive."""
        inside = bounds.copy()
        for i, prior in self.terms.items():
            low, high = _log_support(prior)
            inside[i] = max(bounds[i, 0], low + EDGE), min(bounds[i, 1], high - EDGE)
            if not inside[i, 0] <= inside[i, 1]:
                raise ValueError(
                    f"A hyperprior on {np.exp(low):.4g} to {np.exp(high):.4g} leaves nothing of the bounds "
                    f"{np.exp(bounds[i])} of its hyperparameter: change one of the two."
                )
        return inside


@stored
@dataclass(init=False, eq=False)
class LogScalePrior:
    """The density of theta itself, to sample hyperparameters by.

    A prior on the natural scale has the density p(exp(theta)) exp(theta) here. A hyperparameter without one
    is log-normal about the value that the kernel was given, a factor of exp(1.5) = 4.5 either way
    being one standard deviation: the kernel as given is a guess of its scale.

    Examples
    --------
    >>> from gpclass.kernels import RBF
    >>> prior = LogScalePrior(1.0 * RBF(2.0), None)
    >>> value, gradient = prior((3.0 * RBF(4.0)).theta)
    >>> gradient.round(4)
    array([-0.4883, -0.3081])
    """

    hyperprior: Hyperprior | None
    centre: Array = field(metadata={"shape": "p"})
    given: NDArray[np.bool_] = field(metadata={"shape": "p"})

    def __init__(self, kernel: Any, hyperprior: Hyperprior | None) -> None:
        self.hyperprior, self.centre = hyperprior, kernel.theta.copy()
        given = set() if hyperprior is None else set(hyperprior.terms)
        self.given = np.array([i in given for i in range(len(self.centre))], dtype=bool)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return log p(theta) and its gradient."""
        away = np.where(self.given, 0.0, (theta - self.centre) / DEVIATION)
        value = float(theta[self.given].sum() - 0.5 * away @ away)
        value -= float((~self.given).sum()) * float(np.log(DEVIATION * np.sqrt(2.0 * np.pi)))
        gradient = np.where(self.given, 1.0, -away / DEVIATION)
        if self.hyperprior is not None:
            more, slope = self.hyperprior(theta)
            value, gradient = value + more, gradient + slope
        return value, gradient

    def narrow(self, bounds: Array) -> Array:
        """Return the part of the bounds on theta where the density is positive."""
        return bounds if self.hyperprior is None else self.hyperprior.narrow(bounds)


def _groups(
    kernel: Any, owners: list[str], places: list[int], prior: Shrinkage
) -> Iterator[tuple[str, Group]]:
    """Yield a group for each hyperparameter at these places, by its name; raise if it has one element only."""
    for owner in dict.fromkeys(owners[i] for i in places):
        own = np.array([i for i in places if owners[i] == owner])
        if len(own) > 1:
            scale = SCALES[0] if prior.scale is None else prior.scale
            yield owner, Group(own, kernel.theta[own].copy(), scale, prior.scale is not None)
    if len({owners[i] for i in places}) == len(places):
        raise ValueError(
            f"{prior!r} is for length scales of several columns, but each hyperparameter of {kernel} has one value: "
            "give one length scale per column, RBF(np.ones(n_columns))."
        )


def _log_support(prior: Any) -> tuple[float, float]:
    low, high = (float(end) for end in prior.support())
    return (np.log(low) if low > 0 else -np.inf), (np.log(high) if high > 0 else -np.inf)


def _slope(prior: Any, theta: float) -> float:
    """Return d log p(exp(theta)) / d theta by a central difference of sixth order, inside the support."""
    low, high = _log_support(prior)
    h = max(EDGE / 4, min(1e-3, (theta - low) / 4, (high - theta) / 4))
    offsets = h * np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    stencil = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * h)
    return float(stencil @ prior.logpdf(np.exp(theta + offsets)))
