"""The evidence of a few data points, by integration over f.

**Probit.** Phi(y f) is the probability that a standard normal number is below y f, so the evidence is
P(u <= 0) for u ~ N(0, I + diag(y) K diag(y)): an orthant probability.

**Any likelihood.** With K = A Aᵀ, A = L of a Cholesky factorisation with pivoting, f = L z and z standard
normal. The trapezoidal rule in z errs by about exp(-2π a / h) for an integrand that is analytic in a strip of
half-width a about the real line; a sigmoid of L_ij z_j has its nearest pole at |Im z_j| = π / |L_ij|, and
pivoting makes the L_jj the largest of their columns. Hence steps h_j ∝ 1 / L_jj. The last coordinate
enters the last f only, so its integral is a function of one number and comes from a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import lapack

from gpclass.core.linalg import pivoted_root
from gpclass.core.protocols import Array
from gpclass.likelihoods import Probit

MOST_ORTHANT, MOST_NODES = 10, 4e7
REACH = 8.0  # standard deviations beyond which the mass of a Gaussian is negligible
GAUSSIAN = 3.0  # scale below which the Gaussian, not the sigmoid, determines the step


def exact_evidence(likelihood: Any, K: Array, y: Array, weight: Array | None = None) -> float:
    """Return log ∫ N(f | 0, K) Π p(y_i|f_i)^weight_i df, for very few data.

    Parameters
    ----------
    likelihood : Likelihood
        With one latent value per data point. For `Probit` with integer weights, up to ten data (copies
        counted); otherwise as many as a grid allows: four if the variances are in the hundreds.
    K : array of shape (n, n)
        Prior covariance.
    y : array of shape (n,)
        Labels -1 and +1.
    weight : array of shape (n,), optional
        Weight k counts a data point as k copies.

    Returns
    -------
    float
        With an error of 1e-5 or less, usually far less.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.likelihoods import Logit, Probit
    >>> K, y = np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([1.0, 1.0])
    >>> closed_form = np.log(0.25 + np.arcsin(2.0 / 5.0) / (2.0 * np.pi))
    >>> bool(abs(exact_evidence(Probit(), K, y) - closed_form) < 1e-7)
    True
    >>> round(exact_evidence(Logit(), K, y), 6)
    -1.215435
    """
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    copies = np.rint(w).astype(int)
    if isinstance(likelihood, Probit) and (copies == w).all():
        if copies.sum() <= MOST_ORTHANT:
            return _orthant(np.repeat(np.repeat(K, copies, axis=0), copies, axis=1), np.repeat(y, copies))
        if len(y) > 4:
            raise ValueError(
                f"An exact evidence of {copies.sum()} data was asked for, but beyond {MOST_ORTHANT} the "
                "integral is out of reach: use importance_evidence."
            )
    return quadrature(likelihood, K, y, w)


def _orthant(K: Array, y: Array) -> float:
    from scipy.stats import multivariate_normal

    cov = np.eye(len(y)) + y[:, None] * K * y
    if len(y) < 2:
        return -float(np.log(2.0)) * len(y)
    accuracy = {"maxpts": 500_000 * len(y), "abseps": 1e-12, "releps": 1e-6}
    normal = type(multivariate_normal)(seed=0)  # a frozen one takes no accuracy before SciPy 1.13
    return float(np.log(normal.cdf(np.zeros(len(y)), np.zeros(len(y)), cov, **accuracy)))


def quadrature(likelihood: Any, K: Array, y: Array, weight: Array) -> float:
    """Return the log evidence by the trapezoidal rule, with shorter and shorter steps until convergence."""
    order, L = _factor(K)
    y, weight = y[order], weight[order]
    last: float | None = None
    for decay in (6.0, 9.0, 13.5, 20.0, 30.0, 45.0):
        value = _on_grid(likelihood, L, y, weight, decay)
        # The error is exp(-decay): what was 1e-4 before is 1e-6 now.
        if last is not None and abs(value - last) < 1e-4:
            return value
        last = value
    raise ValueError("The integral over f does not converge: the likelihood is too rough for a grid.")


def _factor(K: Array) -> tuple[Any, Array]:
    """Return an order of the data and L, lower trapezoidal, with K[order][:, order] = L Lᵀ."""
    pivoted_root(K)  # raises if K is not a covariance
    L, pivots, rank, _ = lapack.dpstrf(K, lower=1)
    return pivots - 1, np.tril(L)[:, :rank]


def _on_grid(likelihood: Any, L: Array, y: Array, weight: Array, decay: float) -> float:
    n, rank = L.shape
    nodes = [_nodes(scale, decay) for scale in np.abs(L).max(axis=0)]
    table = rank == n and n > 1
    inner = nodes[: rank - 1] if table else nodes
    n_nodes = np.prod([float(len(z)) for z in inner])
    if n_nodes > MOST_NODES:
        raise ValueError(
            f"An exact evidence of {n} data with a variance of {L[0, 0] ** 2:.3g} needs a grid of "
            f"{n_nodes:.2g} points, more than the {MOST_NODES:.2g} allowed: use importance_evidence."
        )
    last = _last_factor(likelihood, L, y, weight, nodes[-1]) if table else None

    def log_likelihood(f: Array) -> Array:
        """Return Σ over data of weight log p for each row of f, the coordinates in ``inner`` given."""
        m = n - 1 if table else n
        value: Array = np.asarray(likelihood.log_prob(y[:m], f[:, :m])) @ weight[:m]
        return value + last(f[:, -1]) if last is not None else value

    if not inner:
        return float(log_likelihood(np.zeros((1, n)))[0])
    # One slab of the grid for each node of the first coordinate.
    grid = np.zeros((1, n))
    log_mass = np.zeros(1)
    for j, z in enumerate(inner[1:], start=1):
        grid = (grid[:, None, :] + z[:, None] * L[:, j]).reshape(-1, n)
        log_mass = (log_mass[:, None] + _log_masses(z)).ravel()
    total = -np.inf
    for z, mass in zip(inner[0], _log_masses(inner[0]), strict=True):
        total = np.logaddexp(total, mass + _log_sum(log_likelihood(grid + z * L[:, 0]) + log_mass))
    return float(total)


def _last_factor(likelihood: Any, L: Array, y: Array, weight: Array, z: Array) -> CubicSpline:
    """Return log E[p^weight] of the last data point as a function of its mean given the other coordinates."""
    reach = REACH * float(np.abs(L[-1, :-1]).sum()) + 1.0
    means = np.linspace(-reach, reach, int(np.clip(reach * 40.0, 200, 40_000)))
    values = np.empty(len(means))
    for start in range(0, len(means), 2000):
        rows = slice(start, start + 2000)
        f = means[rows, None] + L[-1, -1] * z
        l = weight[-1] * np.asarray(likelihood.log_prob(np.full(f.shape, y[-1]), f)) + _log_masses(z)
        values[rows] = _log_sum(l)
    return CubicSpline(means, values)


def _nodes(scale: float, decay: float) -> Array:
    step = 2.0 * np.pi**2 / (decay * max(scale, GAUSSIAN))
    half = int(np.ceil(REACH / step))
    return step * np.arange(-half, half + 1)


def _log_masses(z: Array) -> Array:
    return np.asarray(np.log(z[1] - z[0]) - 0.5 * np.log(2.0 * np.pi) - 0.5 * z * z)


def _log_sum(values: Array) -> Array:
    """Return log Σ exp along the last axis; much faster than scipy.special.logsumexp."""
    top = values.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(values - top).sum(axis=-1)))
