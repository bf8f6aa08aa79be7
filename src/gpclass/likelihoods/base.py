"""The base classes of likelihoods, which derive all that inference and prediction need from log p(y|f)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import brentq

from gpclass.core.protocols import Array, CoupledSites, Expected, Sites, Tilted
from gpclass.core.registry import Likelihood, parts
from gpclass.likelihoods import quadrature
from gpclass.likelihoods.quadrature import flatten, quiet

_HALVINGS = 24  # number of bisections of the interval from -1 to 1


class LikelihoodBase(Likelihood):
    """Base class of all likelihoods: their free parameters (none by default) are learned with those of the kernel."""

    __slots__ = ()
    kind = "likelihood"
    symmetric = False

    @property
    def labels(self) -> tuple[float, ...] | None:
        """Return the label y of each class, or None if labels are rows of weights, one per class."""
        return None

    def caution(self, known: Any) -> str:
        """Return what to warn of when the order of the classes is ``known`` or None; '' for nothing."""
        return ""

    @property
    def theta(self) -> Array:
        """Return the logarithms of the free parameters."""
        return np.zeros(0)

    @property
    def bounds(self) -> Array:
        """Return the bounds of theta, shape (number of parameters, 2)."""
        return np.zeros((0, 2))

    def with_theta(self, theta: Array) -> Self:
        """Return the likelihood with other values of the free parameters."""
        if np.size(theta):
            raise ValueError(f"{type(self).__name__} has no free parameters, but theta has {np.size(theta)}.")
        return self


class BinaryLikelihood(LikelihoodBase):
    """p(y|f) with one latent value per data point, for labels y = -1 / +1 or the values of ``labels``.

    A subclass needs only `log_prob`; it registers itself under its name. The link p(y=+1|f) need not be
    symmetric, nor log p(y|f) concave. It should vary on a scale of about one and near f = 0. All else is done by
    quadrature, usually to an accuracy of 1e-9; overrides with closed forms are faster. Arguments are broadcast.

    Attributes
    ----------
    symmetric : bool
        Whether p(y|f) depends on y f alone, so that the sign of f determines the more probable class.
    log_concave : bool
        Whether log p(y|f) is concave in f for each label.
    level : int
        The distance of quadrature nodes is at most 2**-level near f = 0. Singularities of log p(y|f) that are at least
        3.5 times as far from the real axis do not affect the accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods.base import BinaryLikelihood
    >>> class Cauchit(BinaryLikelihood):
    ...     name = "_cauchit"
    ...
    ...     def log_prob(self, y, f):
    ...         return np.log(np.arctan2(1.0, -y * f) / np.pi)
    >>> np.exp(Cauchit().log_predict(np.array([0.0, 1.0]), np.array([2.0, 0.0]))).round(9)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """

    __slots__ = ()
    kind = "likelihood"
    log_concave = False
    exact_ascent = True
    level = 3
    counterpart: ClassVar[str | None] = None  # name of the likelihood that extends it to several classes

    @property
    def labels(self) -> tuple[float, ...]:
        """Return the label y of each class; a likelihood may have more than two."""
        return (-1.0, 1.0)

    @abstractmethod
    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f), elementwise."""

    def n_latents(self, n_classes: int) -> int:
        """Return the number of latent values per data point."""
        return 1

    def several(self, classes: Any, order: Any = None) -> LikelihoodBase | None:
        """Return the likelihood of these classes in one model: this one for two; None if there is none.

        ``order`` has the classes from lowest to highest, if the data say it.
        """
        if len(classes) == 2:
            return self
        return None if self.counterpart is None else parts("likelihood")[self.counterpart]()

    # ---------------------------------------------------------------- values and derivatives

    def log_classes(self, f: Array) -> Array:
        """Return log p(class|f), one column for each of the labels."""
        f = np.asarray(f, dtype=np.float64)
        return np.stack([self.log_prob(np.full_like(f, y), f) for y in self.labels], axis=-1)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, l' and l'' of l(f) = log p(y|f)."""
        with quiet():
            value, first, second, _ = quadrature.differences(self, y, f)
        return value, first, second

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return var · l'''(f)."""
        with quiet():
            return np.asarray(np.asarray(var, dtype=np.float64) * quadrature.differences(self, y, f)[3])

    def local_sites(self, mean: Array, slope: Array, curvature: Array) -> Sites:
        """Return the sites that have this slope and curvature at the mean; tau is zero where l is not concave."""
        tau = np.maximum(-curvature, 0.0)
        return Sites(nu=slope + tau * mean, tau=tau)

    def ascent_sites(self, y: Array, residual: Array, slope: Array, curvature: Array) -> Sites:
        """Return the sites of a Newton step of E[l] in the means."""
        return Sites(nu=residual, tau=np.maximum(-curvature, 0.0))

    # ----------------------------------------------------------------------- averages

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l], E[l'], E[l''] under N(f | mean, var)."""
        out = self._by_label(quadrature.expected, 3, y, mean, var)
        return Expected(out[0], out[1], np.minimum(out[2], 0.0) if self.log_concave else out[2])

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of N(f | mean, var) p(y|f)^power, power from 0 to 2."""
        log_mass, slope, curvature, shrink = self._by_label(quadrature.tilted, 4, y, mean, var, power)
        if self.log_concave:
            curvature, shrink = np.maximum(curvature, 0.0), np.minimum(shrink, 1.0)
        return Tilted(log_mass, slope, curvature, shrink)

    def _by_label(self, rule: Callable[..., Array], n_results: int, *args: Array | float) -> Array:
        """Return the results of a rule for any labels; the second result is a derivative with respect to the mean."""
        shape, (y, mean, *others) = flatten(*args)
        out = np.empty((n_results, y.size))
        with quiet():
            if self.symmetric:
                out[:] = rule(self, 1.0, y * mean, *others)
                out[1] *= y
            for label in () if self.symmetric else np.unique(y).tolist():
                i = np.flatnonzero(y == label)
                out[:, i] = rule(self, label, mean[i], *(a[i] for a in others))
        return out.reshape(n_results, *shape)

    def log_predict(self, mean: Array, var: Array) -> Array:
        """Return log of p(class|f) averaged over N(f | mean, var), one column for each of the labels."""
        mean, var = np.asarray(mean)[..., None], np.asarray(var)[..., None]
        with quiet():
            if not self.symmetric:
                return normalised(self.tilted(np.array(self.labels), mean, var).log_mass)
            # Averaging the less probable class alone takes half the time.
            rare = self.tilted(np.array(-1.0), np.abs(mean), var).log_mass
            rare = np.where(mean == 0.0, np.log(0.5), np.minimum(rare, np.log(0.5)))
            both = np.concatenate([rare, np.log1p(-np.exp(rare))], axis=-1)
        return np.where(mean > 0.0, both, both[..., ::-1])

    # ----------------------------------------------------------------------- the link

    def link(self, f: Array) -> Array:
        """Return p(y=+1|f)."""
        with quiet():
            return np.asarray(np.exp(self.log_classes(f)[..., 1]))

    @property
    def median(self) -> float:
        """Return the f at which both classes are equally probable."""
        return _median_and_scale(self)[0]

    @property
    def probit_scale(self) -> float:
        """Return the scale s for which Phi((f - median) / s) has the slope of the link at the median."""
        return _median_and_scale(self)[1]

    def mackay(self, mean: Array, var: Array) -> Array:
        """Return log class probabilities by MacKay's (1992) approximation of `log_predict`.

        The link is evaluated at median + (mean - median) / √(1 + var / probit_scale²), which is exact for the probit.
        """
        centre = self.median
        with quiet():
            ratio = np.sqrt(1.0 + np.asarray(var) / self.probit_scale**2)
            return self.log_classes(centre + (np.asarray(mean) - centre) / ratio)


def normalised(L: Array) -> Array:
    """Return normalised log probabilities from log masses (..., C), accurate also near zero."""
    rest = [np.logaddexp.reduce(np.delete(L, c, axis=-1), axis=-1) for c in range(L.shape[-1])]
    return np.asarray(-np.logaddexp(0.0, np.stack(rest, axis=-1) - L))


@lru_cache(maxsize=32)
def _median_and_scale(likelihood: BinaryLikelihood) -> tuple[float, float]:
    def excess(f: float) -> float:
        return float(likelihood.link(np.array(f))) - 0.5

    has_one = not likelihood.symmetric and excess(-1e3) < 0.0 < excess(1e3)
    median = brentq(excess, -1e3, 1e3) if has_one else 0.0
    value, slope, _ = likelihood.derivatives(np.array(1.0), np.array(median))
    return median, float(1.0 / (np.sqrt(2.0 * np.pi) * max(float(np.exp(value) * slope), 1e-10)))


class ClassLikelihood(LikelihoodBase):
    """p(y|f) for two classes or more with one latent value per class; only their differences matter.

    Labels are rows y of non-negative weights, one per class: one-hot rows for known labels, other rows for
    soft labels. A row counts as Σ_c y_c log p(c|f). The sites of its Hessian are coupled over the classes.
    """

    __slots__ = ()
    kind = "likelihood"
    exact_ascent = False
    probit_scale: ClassVar[
        float
    ]  # of the noise in MacKay's approximation, as `BinaryLikelihood.probit_scale`

    @abstractmethod
    def log_classes(self, f: Array) -> Array:
        """Return log p(class|f), shape (..., n, C)."""

    @abstractmethod
    def log_predict(self, mean: Array, cov: Array) -> Array:
        """Return log of p(class|f) averaged over N(f | mean, cov), shape (n, C)."""

    def link(self, f: Array) -> Array:
        """Return the probability of the second of two classes, for f the difference of their latent values."""
        f = np.asarray(f, dtype=np.float64)
        return np.asarray(np.exp(self.log_classes(np.stack([np.zeros_like(f), f], axis=-1))[..., 1]))

    def mackay(self, mean: Array, var: Array) -> Array:
        """Return log class probabilities by MacKay's approximation, applied to each latent value."""
        return self.log_classes(mean / np.sqrt(1.0 + var / self.probit_scale**2))

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return Σ_c y_c log p(c|f), shape (..., n)."""
        return np.asarray((np.asarray(y, dtype=np.float64) * self.log_classes(f)).sum(axis=-1))

    def n_latents(self, n_classes: int) -> int:
        """Return the number of latent values per data point."""
        return n_classes

    def several(self, classes: Any, order: Any = None) -> Self:
        """Return the likelihood of these classes in one model: this one."""
        return self

    @abstractmethod
    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return l, its gradient and the vector a of its Hessian -(diag(a) - a aᵀ / Σ a), empty if unknown."""

    def third(self, y: Array, f: Array, var: Array) -> Array:
        """Return Σ_ab cov_ab ∂³l / ∂f_a ∂f_b ∂f_c, shape (..., n, C), if the likelihood has it."""
        raise self._lacks("third derivatives")

    def expected(self, y: Array, mean: Array, var: Array) -> Expected:
        """Return E[l] and its derivatives in the mean under independent Gaussians, if the likelihood has them."""
        raise self._lacks("expectations")

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:
        """Return mass and moments of the tilted distribution, if the likelihood has them."""
        raise self._lacks("tilted moments")

    def _lacks(self, what: str) -> ValueError:
        return ValueError(f"{type(self).__name__} has no {what}: use another method or likelihood.")

    def local_sites(self, mean: Array, slope: Array, curvature: Array) -> CoupledSites:
        """Return the sites that have this slope at the mean; ``curvature`` is the vector a."""
        sites = CoupledSites(nu=slope, a=curvature)
        return CoupledSites(nu=slope + sites.times(mean), a=curvature)

    def ascent_sites(self, y: Array, residual: Array, slope: Array, curvature: Array) -> CoupledSites:
        """Return the sites of an ascent step of E[l] in the means, with the exact diagonal of its second derivatives.

        With three classes all second derivatives are exact. E[p] is not a good ``a``: where variances are large,
        E[p (1 - p)] is far smaller than E[p] (1 - E[p]), and steps would be too short by the same factor.
        """
        least = 1e-14 * y.sum(axis=1, keepdims=True)
        return CoupledSites(nu=residual, a=_coupled(np.maximum(-curvature, least)))


def _coupled(tau: Array) -> Array:
    """Return the vectors a for which diag(a) - a aᵀ / Σ a has the diagonal tau, shape (n, C).

    With a = s x, Σ x = 1, the equations are s x (1 - x) = tau. The largest, m, gives s = 4 m / (1 - z²) with
    z = 2 x - 1 for that class. The others have x = (1 - √(1 - u)) / 2, u = tau (1 - z²) / m. They add up to 1 - x of
    the largest at the root of a function that grows with z, found by bisection.
    """
    largest = np.arange(tau.shape[1]) == tau.argmax(axis=1)[:, None]
    m = tau.max(axis=1, keepdims=True)
    ratio = np.where(largest, 0.0, tau / m)
    z, step = np.zeros_like(m), 0.5
    for _ in range(_HALVINGS):
        sums = (ratio / (1.0 + np.sqrt(1.0 - ratio * (1.0 - z * z)))).sum(axis=1, keepdims=True)
        z = np.where((1.0 + z) * sums < 1.0, z + step, z - step)
        step *= 0.5
    others = 2.0 * tau / (1.0 + np.sqrt(1.0 - ratio * (1.0 - z * z)))
    return np.asarray(np.where(largest, 2.0 * m / (1.0 - z), others))
