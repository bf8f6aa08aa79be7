"""The learning problem, which is fixed while theta varies: the data, the model and the method.

The labels and the likelihood decide what is inferred: one latent value per row; one per row and class (softmax); or
the margins of the observed class over the others (multinomial probit), a two-class problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.hyperpriors import NO_PRIOR, Hyperprior
from gpclass.core.protocols import (
    DIFFERENCE,
    Adjoint,
    AnySites,
    Array,
    Evaluation,
    Index,
    Inference,
    Inputs,
    Likelihood,
    Result,
)
from gpclass.core.registry import stored
from gpclass.inference import EP, VI, Dirichlet
from gpclass.inference.dirichlet import DEFAULT
from gpclass.inference.variational import response
from gpclass.kernels import CompoundKernel, move
from gpclass.likelihoods import MultiProbit, Probit, Softmax
from gpclass.priors import DensePrior
from gpclass.priors.base import Prior, no_evidence
from gpclass.validation import some_of_each, take

SITES_SHARE = 0.1  # tolerance of the sites, as a fraction of the error that changes the evidence by ``tol``
# The caller rejects points at which numbers overflow, so no warning is needed.
BEYOND: dict[str, Any] = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}
LEAST = -700.0  # lower bound on log probabilities
# From pure noise to certain labels. The score changes little within a factor of three.
EPSILONS = (0.3, 0.1, 0.03, DEFAULT, 0.003, 0.001, 0.0003, 0.0001)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Data, kernel, likelihood and method.

    ``y`` has labels, -1 and +1 of two classes, for one latent function, or label weights of shape (n, C) for one per
    class. With inducing inputs ``Z`` the prior is FITC's. ``first`` is the position of the first copy of each data
    point if data points are repeated.
    """

    X: Inputs
    y: Array
    weight: Array | None
    kernel: Kernel
    likelihood: Likelihood
    inference: Inference
    hyperprior: Hyperprior = NO_PRIOR
    Z: Array | None = None
    first: Index | None = None

    @property
    def theta(self) -> Array:
        """Log hyperparameters of the kernel and of the likelihood."""
        return np.concatenate([self.kernel.theta, self.likelihood.theta])

    @property
    def bounds(self) -> Array:
        """Bounds on theta, within which the density of the hyperprior is positive."""
        bounds = np.concatenate([self.kernel.bounds.reshape(-1, 2), self.likelihood.bounds])
        return self.hyperprior.narrow(bounds)

    def at(self, theta: Array) -> Problem:
        """Return the problem with other hyperparameters; if theta omits the likelihood's, they are kept."""
        split = self.kernel.n_dims if len(self.likelihood.theta) else len(theta)
        likelihood = self.likelihood.with_theta(theta[split:]) if len(theta) > split else self.likelihood
        return replace(self, kernel=move(self.kernel, theta[:split]), likelihood=likelihood)

    @property
    def margins(self) -> bool:
        """Whether inference is on the margins of the observed class over the others."""
        return self.y.ndim == 2 and isinstance(self.likelihood, MultiProbit)

    @property
    def latent_shape(self) -> tuple[int, ...]:
        """Shape of the latent values in inference."""
        return (len(self.y) * (self.y.shape[1] - 1),) if self.margins else self.y.shape

    @property
    def counts(self) -> Array:
        """The weight of each data point."""
        if self.y.ndim == 2:
            return self.y.sum(axis=1)
        return np.ones(len(self.y)) if self.weight is None else self.weight

    @property
    def is_of_labels(self) -> bool:
        """Whether the evidence is a probability of the labels, not a density of targets made from them."""
        return bool(getattr(self.inference, "comparable", True))

    @property
    def closed(self) -> bool:
        """Whether this is Dirichlet classification, whose posterior has a closed form."""
        return isinstance(self.inference, Dirichlet)

    @property
    def kernels(self) -> list[Kernel]:
        """The kernel of each class, or the one kernel."""
        return list(self.kernel.kernels) if isinstance(self.kernel, CompoundKernel) else [self.kernel]

    def prior(self) -> Prior:
        """Return the prior with its own buffers."""
        if self.y.ndim == 1:
            if self.Z is None:
                return DensePrior(self.kernel, self.X)
            from gpclass.priors.inducing import InducingPrior

            return InducingPrior(self.kernel, np.asarray(self.X), self.Z)
        kernels, n_classes = self.kernels, self.y.shape[1]
        if len(kernels) not in (1, n_classes):
            raise ValueError(
                f"The CompoundKernel has {len(kernels)} kernels for {n_classes} classes: give one for each class, or "
                "one kernel for all."
            )
        if self.margins:
            from gpclass.priors.margins import MarginPrior

            return MarginPrior(kernels, self.X, n_classes, self.y.argmax(axis=1))
        # With hard labels the sites of a row differ in precision only in its own class.
        hard = bool((np.count_nonzero(self.y, axis=1) == 1).all())
        shared = self.closed and len(kernels) == 1 and hard
        return DensePrior(kernels, self.X, n_classes, shared=shared)

    @np.errstate(**BEYOND)
    def infer(self, prior: Prior, init: AnySites | None) -> Result:
        """Return the result of the method on a prior of this problem."""
        y, likelihood = self.y, self.likelihood
        if self.margins:
            y, likelihood = np.ones(self.latent_shape), Probit()
        result = self.inference(prior, likelihood, y, weight=self.weight, init=init)
        if not np.isfinite(result.evidence):
            raise no_evidence(self.inference, self.kernel, float(prior.variances().max()))
        return result

    def like(self, other: Problem) -> Problem:
        """Return the problem with the kernel, the hyperprior, the parameters and the choices of another."""
        likelihood, method, known = self.likelihood, self.inference, getattr(other.inference, "eps", None)
        if len(likelihood.theta):
            likelihood = likelihood.with_theta(other.likelihood.theta)
        if needs_eps(self) and known is not None:
            method = replace(method, eps=known)  # type: ignore[type-var]
        Z = self.Z if other.Z is None else other.Z
        found = replace(self, kernel=other.kernel, hyperprior=other.hyperprior, Z=Z)
        return replace(found, likelihood=likelihood, inference=method)

    def with_tol(self, tol: float) -> Problem:
        """Return the problem with inference as accurate as a search to ``tol`` nats needs.

        The evidence is second order in the error of the sites: an error e of each of n sites, in units of its posterior
        deviation, changes it by about n e² / 2 nats.
        """
        method: Any = self.inference
        if not isinstance(method, EP | VI):
            return self
        needed = SITES_SHARE * float(np.sqrt(2.0 * tol / max(1, int(np.prod(self.latent_shape)))))
        return replace(self, inference=replace(method, tol=max(method.tol, needed)))

    def guide(self) -> Problem:
        """Return the guide: a faster problem with nearly the same optimum, used to find hyperparameters first.

        It is Dirichlet classification for several classes, and the problem itself otherwise.
        """
        if self.y.ndim == 1 or self.closed:
            return self
        return replace(self, likelihood=Softmax(), inference=Dirichlet(DEFAULT))

    def some(self, n: int) -> Problem:
        """Return the problem on n random rows, with some of each class; itself if it has at most n rows."""
        if n >= len(self.X):
            return self
        classes = np.rint(self.y).astype(int) if self.y.ndim == 1 else self.y.argmax(axis=1)
        return self.take(some_of_each(classes, n, np.random.default_rng(0)))

    def take(self, rows: Index) -> Problem:
        """Return the problem on some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, X=take(self.X, rows), y=self.y[rows], weight=weight, first=None)


def needs_eps(problem: Problem) -> bool:
    """Return whether the problem is Dirichlet classification whose eps is to be chosen."""
    return getattr(problem.inference, "eps", 0.0) is None


@dataclass(slots=True, eq=False)
class SiteObjective:
    """The evidence of a problem by Gaussian sites; the buffers of the prior are kept between evaluations."""

    problem: Problem
    _prior: Prior | None = None

    @property
    def description(self) -> str:
        """The method and its settings."""
        return repr(self.problem.inference)

    @np.errstate(**BEYOND)
    def evaluate(self, theta: Array, warm: AnySites | None = None, *, gradient: bool = True) -> Evaluation:
        """Return the evidence at theta; ``warm`` are the sites to start from."""
        problem, prior = self._at(theta)
        result = problem.infer(prior, warm)
        slope = None
        if gradient and result.exact_gradient:
            slope = prior.pullback(result.adjoint())
            if len(theta) > len(slope):
                slope = np.concatenate([slope, result.likelihood_gradient()])
        elif gradient:
            slope = self._differences(theta, result.sites)
        return Evaluation(result.evidence, slope, result.sites, result.info)

    @np.errstate(**BEYOND)
    def gradient_at_sites(self, theta: Array, sites: AnySites) -> Array:
        """Return the gradient of the evidence at theta for fixed sites: one factorisation, no iterations.

        It is that of a Gaussian regression, ½(alpha alphaᵀ - R) pulled back, and zero for parameters of the likelihood.
        """
        _, prior = self._at(theta)
        q = prior.condition(sites)
        slope = prior.pullback(Adjoint(alpha=q.alpha, conditioned=q))
        return np.concatenate([slope, np.zeros(len(theta) - len(slope))])

    def _at(self, theta: Array) -> tuple[Problem, Prior]:
        problem = self.problem.at(theta)
        if self._prior is None:
            self._prior = problem.prior()
        else:
            self._prior = self._prior.at(problem.kernel.theta)
        return problem, self._prior

    def _differences(self, theta: Array, sites: AnySites) -> Array:
        """Return the gradient by central differences of the evidence, where the method has no exact one.

        This is the case at a theta where a site precision was negative, and was set to zero: see `Result`.
        """
        steps = DIFFERENCE * np.eye(len(theta))

        def value(theta: Array) -> float:
            return self.evaluate(theta, sites, gradient=False).evidence

        return np.array([value(theta + e) - value(theta - e) for e in steps]) / (2.0 * DIFFERENCE)


def pose_classes(problem: Problem) -> Problem:
    """Return the problem in the form that inference uses.

    With the multinomial probit a data point of weight k appears k times, because copies have independent noise.
    """
    if not problem.margins:
        return problem
    labels = problem.y
    rows, codes = np.nonzero(labels)
    counts = labels[rows, codes]
    if (counts != np.round(counts)).any():
        raise ValueError(
            "The multinomial probit needs whole numbers as weights and does not support soft labels: use "
            "likelihood='softmax' for others."
        )
    again = np.repeat(np.arange(len(rows)), counts.astype(int))
    rows, codes = rows[again], codes[again]
    if np.array_equal(rows, np.arange(len(labels))):
        return problem
    first = np.searchsorted(rows, np.arange(len(labels)))
    return replace(problem, X=take(problem.X, rows), y=np.eye(labels.shape[1])[codes], first=first)


# -------------------------------------------------------------- leave-one-out scores, and eps


def left_out(problem: Problem, result: Any) -> tuple[Array, Array]:
    """Return mean and (co)variance of the latent values of each data point from the other data points."""
    q = result.conditioned
    softmax = isinstance(problem.inference, VI) and problem.y.ndim == 2 and not problem.margins
    moved = [response(problem.y, q.alpha, result.sites.tau)] if softmax else []
    mean, cov = q.left_out(np.maximum(problem.counts, 1.0), *moved)
    return (mean if result.offset is None else mean + result.offset), cov


def dirichlet_scores(problem: Problem, prior: Prior, method: Inference) -> Array:
    """Return the log probability of the labels of each row, from the other rows, by Dirichlet classification."""
    mean, cov = left_out(problem, method(prior, problem.likelihood, problem.y))
    log_p = np.maximum(problem.likelihood.log_predict(mean, cov), LEAST)
    return np.asarray((problem.y * log_p).sum(axis=1))


def with_eps(problem: Problem, eps: float | None = None) -> Problem:
    """Return the problem with this or the best eps, if it is Dirichlet classification without one."""
    if not needs_eps(problem):
        return problem
    method: Any = problem.inference
    return replace(problem, inference=replace(method, eps=eps or choose_eps(problem)))


def choose_eps(problem: Problem) -> float:
    """Return the eps of `EPSILONS` with the best leave-one-out score at the problem's hyperparameters.

    The evidence cannot choose it, because the targets depend on it. The search climbs from the default, because the
    score has one maximum in practice.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.inference import Dirichlet
    >>> from gpclass.likelihoods import Softmax
    >>> from gpclass.learning.problem import Problem
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> certain, noisy = X[:, 0] > 0.5, np.arange(30) % 3 == 0
    >>> model = None, 9.0 * RBF(0.5), Softmax(), Dirichlet()
    >>> [choose_eps(Problem(X, np.eye(2)[y.astype(int)], *model)) for y in (certain, noisy)]
    [0.0001, 0.3]
    """
    prior, scores = problem.prior(), dict[int, float]()
    best = EPSILONS.index(DEFAULT)
    while True:
        near = range(max(best - 1, 0), min(best + 2, len(EPSILONS)))
        for k in near:
            if k not in scores:
                scores[k] = float(dirichlet_scores(problem, prior, Dirichlet(EPSILONS[k])).sum())
        last, best = best, max(near, key=scores.__getitem__)
        if best == last:
            return EPSILONS[best]
