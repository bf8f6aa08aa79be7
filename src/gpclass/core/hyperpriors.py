"""Priors on hyperparameters, on their natural scale and on that of theta, their logarithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.core.registry import stored

EDGE = 1e-6  # distance in theta kept from the ends of a hyperprior's support
DEVIATION = 1.5  # of the logarithm of a hyperparameter that nothing else is known of


@stored
@dataclass(init=False, eq=False)
class Hyperprior:
    """Independent priors on hyperparameters, on their natural scale.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Its free hyperparameters give names and positions in theta.
    priors : mapping of name to frozen scipy.stats distribution
        A name is a hyperparameter's (``"k2__length_scale"``) or its last part (``"length_scale"``,
        then every hyperparameter so called); an anisotropic one has the prior on each element.

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

    def __init__(self, kernel: Any, priors: Mapping[str, Any]) -> None:
        owners = [h.name for h in kernel.hyperparameters if not h.fixed for _ in range(h.n_elements)]
        if not isinstance(priors, Mapping):
            raise ValueError(f"hyperprior is {priors!r}, expected a mapping of names to distributions.")
        self.terms = {}
        # Whole names after last parts, so that the more exact of two wins.
        for name, prior in sorted(priors.items(), key=lambda item: item[0] in owners):
            places = [i for i, owner in enumerate(owners) if name in (owner, owner.rsplit("__", 1)[-1])]
            if not places:
                raise ValueError(
                    f"hyperprior names {name!r}, which is not a free hyperparameter of {kernel}: "
                    f"expected one of {sorted(set(owners))}."
                )
            if not all(callable(getattr(prior, part, None)) for part in ("logpdf", "support")) or not hasattr(
                prior, "args"
            ):
                raise ValueError(
                    f"hyperprior[{name!r}] is {prior!r}, expected a frozen continuous distribution "
                    "of scipy.stats such as scipy.stats.lognorm(1.0)."
                )
            self.terms.update((i, prior) for i in places)

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
