"""The cumulative probit likelihood of ordered classes, with one latent value per data point.

Class c is observed if f + e, e ~ N(0, 1), is between the thresholds b_c and b_{c+1}. With x ~ N(0, 1) between
l = b_c - f and u = b_{c+1} - f, its cumulants give all derivatives of log p = log(Phi(u) - Phi(l)):

    (log p)' = E[x],   (log p)'' = Var[x] - 1,   (log p)''' = E[(x - E[x])³].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from gpclass.core.checks import check_option
from gpclass.core.protocols import Array, Tilted
from gpclass.likelihoods.base import BinaryLikelihood
from gpclass.likelihoods.quadrature import blocks, flatten, quiet

_BOUNDS = (0.01, 30.0)  # of a width, in standard deviations of the noise
_DEVIATION = 5.0**0.5  # of f + e at the first widths, which make classes equally probable
_REACH = 8.5  # the density at the end of the range, relative to its maximum, is at most exp(-_REACH² / 2)
_FARTHEST = 1e100  # means beyond this are clipped, so that their squares do not overflow
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(44)
_POWERS = np.vander(1.0 + _NODES, 4, increasing=True).T


class OrderWarning(UserWarning):
    """Warning that ordered classes with text labels were sorted, because no order was given."""


@dataclass(frozen=True, slots=True)
class Ordinal(BinaryLikelihood):
    """Cumulative probit likelihood for ordered classes, p(class c | f) = Phi(b_{c+1} - f) - Phi(b_c - f).

    The thresholds are b_0 = -∞, b_C = ∞ and C - 1 values between them, centred at zero because the bias of the kernel
    moves f. Their distances are learned with the kernel. Two classes are the probit.

    Parameters
    ----------
    order : sequence of labels or None, default=None
        The classes from lowest to highest. None is the order of an ordered categorical type of pandas, or the sorted
        order of other labels.
    widths : sequence of floats or None, default=None
        Distances of the thresholds to start from, one for each class between the first and the last.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Ordinal
    >>> grades = Ordinal(["poor", "fair", "good"], widths=[2.0])
    >>> np.exp(grades.log_classes(np.array([0.0, 2.0]))).round(3)  # columns in sorted order
    array([[0.683, 0.159, 0.159],
           [0.157, 0.841, 0.001]])
    """

    order: Any = None
    widths: Any = None

    log_concave = True
    mackay = BinaryLikelihood.log_predict  # MacKay's approximation is exact for the probit
    median, probit_scale = 0.0, 1.0

    def __post_init__(self) -> None:
        for name in ("order", "widths"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else tuple(given))
        fine = all(0.0 < width < np.inf for width in self.widths or ())
        check_option("widths", self.widths, fine, "positive numbers")

    def several(self, classes: Any, order: Any = None) -> Self:
        """Return the likelihood of these classes, sorted; ``order`` is used if the likelihood has none."""
        names = np.asarray(classes).tolist()
        order, n = self.order or order, len(names)
        order = tuple(name for name in order or names if name in names)
        if missing := set(names).difference(order):
            raise ValueError(f"The order {list(order)} lacks the label {missing.pop()!r}: give all classes.")
        first = np.diff(_DEVIATION * ndtri(np.arange(1, n) / n))
        widths = first.tolist() if self.widths is None else self.widths
        if len(widths) != n - 2:
            raise ValueError(f"widths has {len(widths)} numbers for {n} classes, expected {n - 2}.")
        return replace(self, order=order if n > 2 else names, widths=widths)

    def caution(self, known: Any) -> str:
        """Return a sentence if the classes are texts in sorted order, because their order is not known; else ''."""
        if known or len(self.order) < 3 or not isinstance(self.order[0], str):
            return ""
        return (
            f"The classes are texts in sorted order, {' < '.join(map(repr, self.order))}: give "
            "likelihood=Ordinal(order=[...]) or labels of an ordered categorical type."
        )

    @property
    def labels(self) -> tuple[float, ...]:
        """Return y = 2 c - 1 for each class in sorted order, where c is its position in the order."""
        order = self.order or range(len(self.widths or ()) + 2)
        return tuple(2.0 * order.index(name) - 1.0 for name in sorted(order))

    @property
    def thresholds(self) -> Array:
        """Return b_1 to b_{C-1}."""
        b = np.cumsum([0.0, *(self.widths or ())])
        return np.asarray(b - 0.5 * b[-1])

    @property
    def level(self) -> int:  # type: ignore[override]
        """Return the level of quadrature nodes, which are farther apart at large thresholds."""
        return 1 + round(np.log2(np.hypot(1.0, self.thresholds[-1] / 8.0)))

    @property
    def theta(self) -> Array:  # noqa: D102
        return np.log(self.widths or np.zeros(0))

    @property
    def bounds(self) -> Array:  # noqa: D102
        return np.log([_BOUNDS] * len(self.theta)).reshape(-1, 2)

    def with_theta(self, theta: Array) -> Self:  # noqa: D102
        return replace(self, widths=np.exp(theta).tolist()) if len(theta) else self

    def log_prob(self, y: Array, f: Array) -> Array:  # noqa: D102
        return self._cumulants(y, f, 0.0)[0]

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:  # noqa: D102
        value, mean, var, _ = self._cumulants(y, f, 0.0)
        return value, mean, var - 1.0

    def third(self, y: Array, f: Array, var: Array) -> Array:  # noqa: D102
        return np.asarray(var * self._cumulants(y, f, 0.0)[3])

    def tilted(self, y: Array, mean: Array, var: Array, power: Array | float = 1.0) -> Tilted:  # noqa: D102
        if np.any(np.asarray(power) != 1.0):
            return BinaryLikelihood.tilted(self, y, mean, var, power)
        log_mass, x, left, _ = self._cumulants(y, mean, var)  # f + e is normal, with the variance 1 + var
        q = 1.0 / (1.0 + np.asarray(var))
        return Tilted(log_mass, np.sqrt(q) * x, q * (1.0 - left), (1.0 + var * left) * q)

    def _cumulants(self, y: Array, mean: Array, var: Array | float) -> tuple[Array, ...]:
        """Return log p of the class at N(mean, var), and the first three cumulants of the standardised x."""
        shape, (y, mean, var) = flatten(y, mean, var)
        mean = np.clip(mean, -_FARTHEST, _FARTHEST)
        b, c = np.array([-np.inf, *self.thresholds, np.inf]), np.rint(0.5 * (y + 1.0)).astype(int)
        s, out = np.sqrt(1.0 + var), np.empty((4, y.size))
        with quiet():
            for i in blocks(y.size, _NODES.size):
                ends = (b[c[i]] - mean[i]) / s[i], (b[c[i] + 1] - mean[i]) / s[i]
                out[:, i] = truncated(*ends, np.diff(b)[c[i]] / s[i])
        return tuple(row.reshape(shape) for row in out)


def truncated(lower: Array, upper: Array, width: Array) -> Array:
    """Return log P(lower < x < upper) for x ~ N(0, 1) and the first three cumulants of such x, shape (4, n).

    Gauss-Legendre quadrature over the part of the interval that matters is accurate also in narrow intervals and far
    tails, where closed forms cancel.
    """
    sign = np.where(lower + upper < 0.0, -1.0, 1.0)
    low = np.where(sign < 0.0, -upper, lower)  # now the interval is about zero or to the right of it
    start = np.maximum(low, -_REACH)
    peak = np.maximum(start, 0.0)
    reach = peak - start + _REACH**2 / (peak + np.hypot(peak, _REACH))
    half = 0.5 * np.minimum(width - (start - low), reach)
    # At x = start + half t the density, relative to that at the peak, is exp of a quadratic function of t.
    quadratic = np.stack([-0.5 * np.minimum(start, 0.0) ** 2, -half * start, -0.5 * half * half], axis=1)
    E = quadratic @ _POWERS[:3]
    mass, *moments = (np.exp(E, out=E) @ (_WEIGHTS * _POWERS).T).T
    first, second, third = moments / mass
    log_mass = np.log(half * mass) - 0.5 * (peak * peak + np.log(2.0 * np.pi))
    var = half**2 * np.maximum(second - first * first, 0.0)
    third = half**3 * (third + first * (2.0 * first * first - 3.0 * second))
    return np.stack([np.minimum(log_mass, 0.0), sign * (start + half * first), var, sign * third])
