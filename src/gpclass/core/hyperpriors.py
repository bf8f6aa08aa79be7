"""Priors on hyperparameters, on the natural scale and on the logarithmic scale of theta."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.checks import check_numbers
from gpclass.core.protocols import Array
from gpclass.core.registry import stored

# Scales of shrinkage to choose from: one length scale for all columns to one for each.
SCALES = (0.0, 0.15, 0.3, 0.6, 1.2)
WIDE = 3.0  # standard deviation of the logarithm in a vague prior: a factor of 20
EDGE = 1e-6  # distance in theta kept from the ends of a hyperprior's support
STEP = 1e-4  # step of theta in differences of a log density; balances truncation and rounding errors
DEVIATION = 1.5  # standard deviation of the logarithm of a hyperparameter without a prior


@stored
@dataclass(frozen=True, slots=True)
class Shrinkage:
    """A prior that shrinks the length scales of the columns towards each other.

    The logarithms of the d length scales of a kernel, relative to those that the kernel was given with, are normal
    about a common value, which is free, with the standard deviation ``scale``:

        log l_j = log l_j0 + a + e_j,      e_j ~ N(0, scale²).

    Parameters
    ----------
    scale : float or None
        Standard deviation of the logarithms. None chooses it among `SCALES` by the evidence with the length
        scales integrated out, so that a more flexible model is penalised.

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
class LogNormal:
    """A log-normal prior on some hyperparameters: their logarithms are normal.

    theta_j = centre_j + a + e_j with a ~ N(0, common²) and e_j ~ N(0, scale²). An infinite ``common`` leaves the common
    value free. With a ``scale`` of zero the elements are tied. ``open`` is True if the scale is still to be chosen.
    """

    places: NDArray[np.intp]
    centre: Array
    common: float
    scale: float = 0.0
    open: bool = False

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the log density up to a constant, and its slope."""
        away = theta[self.places] - self.centre
        mean = away.mean()
        slope = np.full(len(away), -mean / (self.scale**2 + len(away) * self.common**2))
        if self.scale > 0.0:
            slope -= (away - mean) / self.scale**2
        return 0.5 * float(slope @ away), slope

    def root(self) -> Array:
        """Return R, where R Rᵀ is the covariance: one column for tied elements, a wide one for a free common value."""
        d, common = len(self.places), min(self.common, WIDE)
        if self.scale == 0.0:
            return np.full((d, 1), common)
        together = np.sqrt(self.scale**2 + d * common**2)
        return self.scale * np.eye(d) + (together - self.scale) / d


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Hyperprior:
    """Priors on hyperparameters: independent ones on their natural scale, and log-normal ones.

    ``terms`` are distributions of scipy.stats by position in theta. The density is that of theta itself if
    ``of_theta``, and that of exp(theta) otherwise.
    """

    terms: dict[int, Any]
    groups: tuple[LogNormal, ...] = ()
    of_theta: bool = False

    @classmethod
    def on(cls, kernel: Any, priors: Mapping[str, Any] | Shrinkage, *, wide: bool = False) -> Hyperprior:
        """Return the priors on the hyperparameters of a kernel.

        Parameters
        ----------
        kernel : scikit-learn kernel
            Its free hyperparameters give names and positions in theta.
        priors : Shrinkage, or mapping of name to frozen scipy.stats distribution or Shrinkage
            A name is a hyperparameter's (``"k2__length_scale"``) or its last part (``"length_scale"``,
            which means all of that name); a vector has the distribution on each element. A
            `Shrinkage` alone means ``{"length_scale": ...}``.
        wide : bool
            Whether every other hyperparameter is log-normal about its value in the kernel, a factor of 20 either way
            being one standard deviation, and so is the common value of length scales that are shrunk.

        Examples
        --------
        >>> from scipy import stats
        >>> from gpclass.kernels import RBF
        >>> prior = Hyperprior.on(1.0 * RBF(2.0), {"length_scale": stats.gamma(2.0)})
        >>> value, gradient = prior((1.0 * RBF(2.0)).theta)
        >>> round(value, 4), gradient.round(4)
        (-1.3069, array([ 0., -1.]))
        """
        owners = [h.name for h in kernel.hyperparameters if not h.fixed for _ in range(h.n_elements)]
        if not isinstance(priors, Mapping):
            priors = {"length_scale": priors}
        terms: dict[int, Any] = {}
        groups: dict[str, LogNormal] = {}
        # Full names come after last parts, so that they take precedence.
        for name, prior in sorted(priors.items(), key=lambda item: item[0] in owners):
            places = [i for i, owner in enumerate(owners) if name in (owner, owner.rsplit("__", 1)[-1])]
            if not places:
                raise ValueError(
                    f"hyperprior names {name!r}, which is not a free hyperparameter of {kernel}: "
                    f"expected one of {sorted(set(owners))}."
                )
            if isinstance(prior, Shrinkage):
                groups.update(_groups(kernel, owners, places, prior, WIDE if wide else np.inf))
                continue
            if not all(hasattr(prior, part) for part in ("logpdf", "support", "args")):
                raise ValueError(
                    f"hyperprior[{name!r}] is {prior!r}, expected a frozen continuous distribution "
                    "of scipy.stats, such as scipy.stats.lognorm(1.0), or Shrinkage()."
                )
            terms.update((i, prior) for i in places)
        known = tuple(groups.values())
        return cls(terms, known + (_alone(kernel.theta, terms, known, WIDE) if wide else ()))

    @property
    def open(self) -> bool:
        """Whether a scale of shrinkage is to be chosen."""
        return any(group.open for group in self.groups)

    def with_scale(self, scale: float) -> Hyperprior:
        """Return the prior with this scale of shrinkage wherever it is to be chosen."""
        groups = tuple(replace(group, scale=scale) if group.open else group for group in self.groups)
        return replace(self, groups=groups)

    def root(self, n_dims: int, *, tied: bool = False) -> Array:
        """Return R of shape (n_dims, r), where R Rᵀ is the covariance of theta; it is wide without a log-normal prior.

        Elements that are tied, all of each group if requested, move together, so that r is less than n_dims.
        """
        blocks, known = [], np.zeros(n_dims, dtype=bool)
        for group in self.groups:
            known[group.places] = True
            own = (replace(group, scale=0.0) if tied else group).root()
            block = np.zeros((n_dims, own.shape[1]))
            block[group.places] = own
            blocks.append(block)
        return np.column_stack([*blocks, WIDE * np.eye(n_dims)[:, ~known]])

    def centre(self, theta: Array) -> Array:
        """Return the mean of theta; theta itself for elements without a log-normal prior."""
        out = theta.copy()
        for group in self.groups:
            out[group.places] = group.centre
        return out

    def tied(self, theta: Array) -> Array:
        """Return the nearest theta at which tied elements have the same differences as their centres."""
        centre, R = self.centre(theta), self.root(len(theta))
        return centre + R @ np.linalg.lstsq(R, theta - centre)[0]

    def first(self, n_dims: int) -> Hyperprior:
        """Return the priors on the first elements of theta."""
        terms = {i: prior for i, prior in self.terms.items() if i < n_dims}
        return Hyperprior(terms, tuple(group for group in self.groups if (group.places < n_dims).all()))

    def check_stored(self) -> None:
        """Raise unless the terms are distributions."""
        if not all(callable(getattr(prior, "logpdf", None)) for prior in self.terms.values()):
            raise ValueError("The terms of a hyperprior are not distributions.")

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return log p(exp(theta)), or log p(theta), and its gradient with respect to theta.

        Log-normal priors contribute their log density up to a constant.
        """
        value, gradient = 0.0, np.zeros(len(theta))
        for i, prior in self.terms.items():
            value += float(prior.logpdf(np.exp(theta[i]))) + self.of_theta * float(theta[i])
            gradient[i] += _slope(prior, theta[i]) + self.of_theta
        for group in self.groups:
            more, slope = group(theta)
            value += more
            gradient[group.places] += slope
        return value, gradient

    def narrow(self, bounds: Array) -> Array:
        """Return the bounds on theta, narrowed to where the density of the prior is positive."""
        inside = bounds.copy()
        for i, prior in self.terms.items():
            low, high = _log_support(prior)
            inside[i] = max(bounds[i, 0], low + EDGE), min(bounds[i, 1], high - EDGE)
            if not inside[i, 0] <= inside[i, 1]:
                raise ValueError(
                    f"A hyperprior on {np.exp(low):.4g} to {np.exp(high):.4g} does not overlap with the bounds "
                    f"{np.exp(bounds[i])} of its hyperparameter: change one of the two."
                )
        return inside


NO_PRIOR = Hyperprior({})


def density_of_theta(kernel: Any, prior: Hyperprior) -> Hyperprior:
    """Return the density of theta itself, for sampling the hyperparameters.

    A prior on the natural scale has the density p(exp(theta)) exp(theta) here. A hyperparameter without one, and the
    common value of length scales that are shrunk, is log-normal about the value that the kernel was given, a factor of
    exp(1.5) = 4.5 either way being one standard deviation: the kernel as given is a guess of its scale.

    Examples
    --------
    >>> from gpclass.kernels import RBF
    >>> prior = density_of_theta(1.0 * RBF(2.0), NO_PRIOR)
    >>> value, gradient = prior((3.0 * RBF(4.0)).theta)
    >>> gradient.round(4)
    array([-0.4883, -0.3081])
    """
    groups = tuple(replace(group, common=min(group.common, DEVIATION)) for group in prior.groups)
    others = _alone(kernel.theta, prior.terms, groups, DEVIATION)
    return Hyperprior(prior.terms, groups + others, of_theta=True)


def _alone(theta: Array, terms: Any, groups: Sequence[LogNormal], deviation: float) -> tuple[LogNormal, ...]:
    """Return log-normal priors for the elements of theta that have no other prior."""
    known = {*terms, *(int(i) for group in groups for i in group.places)}
    free = [np.array([i]) for i in range(len(theta)) if i not in known]
    return tuple(LogNormal(i, theta[i].copy(), deviation) for i in free)


def _groups(
    kernel: Any, owners: list[str], places: list[int], prior: Shrinkage, common: float
) -> Iterator[tuple[str, LogNormal]]:
    """Yield name and prior of each hyperparameter with several elements; raise if there is none."""
    for owner in dict.fromkeys(owners[i] for i in places):
        own = np.array([i for i in places if owners[i] == owner])
        if len(own) > 1:
            scale = SCALES[0] if prior.scale is None else prior.scale
            yield owner, LogNormal(own, kernel.theta[own].copy(), common, scale, prior.scale is None)
    if len({owners[i] for i in places}) == len(places):
        raise ValueError(
            f"{prior!r} is for length scales of several columns, but each hyperparameter of {kernel} has one value: "
            "give one length scale per column, RBF(np.ones(n_columns))."
        )


def _log_support(prior: Any) -> tuple[float, float]:
    low, high = (float(end) for end in prior.support())
    return (np.log(low) if low > 0 else -np.inf), (np.log(high) if high > 0 else -np.inf)


def _slope(prior: Any, theta: float) -> float:
    """Return d log p(exp(theta)) / d theta, by a finite difference inside the support."""
    low, high = _log_support(prior)
    ends = np.clip([theta - STEP, theta + STEP], low + 0.5 * EDGE, high - 0.5 * EDGE)
    below, above = prior.logpdf(np.exp(ends))
    return float((above - below) / (ends[1] - ends[0]))
