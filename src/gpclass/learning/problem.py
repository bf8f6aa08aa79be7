"""A problem is everything that is fixed while theta varies: the data, the model and the method.

The likelihood decides how the data are laid out for inference: one latent value per row; one per row and class
(softmax); or the margins of the observed class over the others (multinomial probit), a two-class problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.frequencies import class_counts
from gpclass.core.hyperpriors import NO_PRIOR, Hyperprior
from gpclass.core.objective import DIFFERENCE, Evaluation
from gpclass.core.protocols import (
    Adjoint,
    AnySites,
    Array,
    Index,
    Inference,
    Inputs,
    Likelihood,
    Result,
)
from gpclass.core.registry import stored
from gpclass.inference import EP, VI, Dirichlet
from gpclass.inference.dirichlet import DEFAULT
from gpclass.kernels import CompoundKernel, move
from gpclass.likelihoods import MultiProbit, Probit, Softmax
from gpclass.priors import DensePrior, InducingPrior, MarginPrior
from gpclass.priors.base import Prior, no_evidence
from gpclass.validation import some_of_each, take

SITES_SHARE = 0.1  # accuracy of sites, relative to the error that changes the evidence by the tolerance
# The caller rejects points at which numbers overflow, so no warning is needed.
BEYOND: dict[str, Any] = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}


@stored
@dataclass(frozen=True, slots=True, eq=False)
class OneFunction:
    """One latent function; with inducing inputs Z the prior is FITC's."""

    Z: Array | None = None

    elementwise = True  # whether each latent value has its own site
    n_functions = 1

    def counts(self, y: Array, weight: Array | None) -> Array:
        """Return the weight of each data point."""
        return np.ones(len(y)) if weight is None else weight

    def classes(self, y: Array) -> Index:
        """Return a number for the class of each data point."""
        return (y > 0.0).astype(int)

    def take(self, y: Array, rows: Index) -> tuple[OneFunction, Array]:
        """Return what belongs to some of the data points."""
        return self, y[rows]

    def class_counts(self, y: Array, weight: Array | None) -> Array:
        """Return the total weight of each class."""
        return class_counts(y, weight)

    def __call__(self, kernel: Any, X: Inputs, *, last: bool = False) -> Prior:
        """Return the prior of this kernel at the data."""
        return DensePrior(kernel, X) if self.Z is None else InducingPrior(kernel, np.asarray(X), self.Z)


@stored
@dataclass(frozen=True, slots=True, eq=False)
class FunctionPerClass:
    """One latent function per class; with ``labels`` the margins of those classes over the others.

    ``shared`` is for sites with one factorisation for all classes, see `DensePrior`.
    """

    n_classes: int
    labels: Index | None = None
    shared: bool = False

    @property
    def elementwise(self) -> bool:
        """Whether each latent value has its own site."""
        return self.labels is not None

    @property
    def n_functions(self) -> int:
        """Number of latent functions."""
        return self.n_classes

    def counts(self, y: Array, weight: Array | None) -> Array:
        """Return the weight of each data point."""
        out: Array = y.sum(axis=1) if self.labels is None else np.ones(len(self.labels))
        return out

    def classes(self, y: Array) -> Index:
        """Return a number for the class of each data point."""
        return np.argmax(y, axis=1) if self.labels is None else self.labels

    def take(self, y: Array, rows: Index) -> tuple[FunctionPerClass, Array]:
        """Return what belongs to some of the data points."""
        if self.labels is None:
            return self, y[rows]
        return FunctionPerClass(self.n_classes, self.labels[rows]), np.ones(len(rows) * (self.n_classes - 1))

    def class_counts(self, y: Array, weight: Array | None) -> Array:
        """Return the total weight of each class."""
        if self.labels is None:
            return class_counts(y)
        return np.bincount(self.labels, minlength=self.n_classes).astype(float)

    def __call__(self, kernel: Any, X: Inputs, *, last: bool = False) -> Prior:
        """Return the prior of this kernel, or of one kernel per class, at the data."""
        kernels = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
        if len(kernels) not in (1, self.n_classes):
            raise ValueError(
                f"The CompoundKernel has {len(kernels)} kernels for {self.n_classes} classes: give one for "
                "each class, or one kernel for all."
            )
        if self.labels is not None:
            return MarginPrior(kernels, X, self.n_classes, self.labels)
        return DensePrior(kernels, X, self.n_classes, shared=self.shared, single=last)


# ------------------------------------------------------------------------------- problems


@stored
@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Data, kernel, likelihood and method.

    ``y`` has -1 and +1, or label weights of shape (n, C). ``predictive`` is the likelihood of predictions if it
    differs from the one of inference, and ``first`` the position of the first copy of each data point if
    data points are repeated.
    """

    X: Inputs = field(metadata={"shape": "n,..."})
    y: Array
    weight: Array | None
    kernel: Kernel
    likelihood: Likelihood
    inference: Inference
    hyperprior: Hyperprior = NO_PRIOR
    make_prior: OneFunction | FunctionPerClass = OneFunction()
    predictive: Likelihood | None = None
    first: Index | None = None

    @property
    def theta(self) -> Array:
        """Log hyperparameters of the kernel and of the likelihood."""
        return np.concatenate([self.kernel.theta, self.likelihood.theta])

    @property
    def bounds(self) -> Array:
        """Bounds on theta."""
        return np.concatenate([self.kernel.bounds.reshape(-1, 2), self.likelihood.bounds])

    @property
    def support(self) -> Array:
        """Bounds on theta within which the density of the hyperprior is positive."""
        return self.hyperprior.narrow(self.bounds)

    def at(self, theta: Array) -> Problem:
        """Return the problem with other hyperparameters; theta may omit those of the likelihood, which then stay."""
        split = self.kernel.n_dims if len(self.likelihood.theta) else len(theta)
        likelihood = self.likelihood.with_theta(theta[split:]) if len(theta) > split else self.likelihood
        return replace(self, kernel=move(self.kernel, theta[:split]), likelihood=likelihood)

    def prior(self, *, last: bool = False) -> Prior:
        """Return the prior with its own buffers; with ``last`` for a posterior that needs no gradient."""
        return self.make_prior(self.kernel, self.X, last=last)

    def infer(self, prior: Prior, init: AnySites | None) -> Result:
        """Run the method on a prior of this problem."""
        with np.errstate(**BEYOND):
            result = self.inference(prior, self.likelihood, self.y, weight=self.weight, init=init)
        if not np.isfinite(result.evidence):
            raise no_evidence(self.inference, self.kernel, float(prior.variances().max()))
        return result

    def like(self, other: Problem) -> Problem:
        """Return the problem with the kernel and the hyperprior of another, and the parameters of its likelihood."""
        likelihood = (
            self.likelihood.with_theta(other.likelihood.theta)
            if len(self.likelihood.theta)
            else self.likelihood
        )
        return replace(self, kernel=other.kernel, likelihood=likelihood, hyperprior=other.hyperprior)

    def with_tol(self, tol: float) -> Problem:
        """Return the problem with inference as accurate as a search to ``tol`` nats needs.

        The evidence is second order in the error of the sites: an error e of each of n sites, in units of its posterior
        deviation, changes it by about n e² / 2 nats.
        """
        method: Any = self.inference
        if not isinstance(method, EP | VI):
            return self
        needed = SITES_SHARE * float(np.sqrt(2.0 * tol / max(self.n_latent, 1)))
        return replace(self, inference=replace(method, tol=max(method.tol, needed)))

    def guide(self) -> Problem:
        """Return the guide: a faster problem with nearly the same optimum, used to find hyperparameters first.

        It is Dirichlet classification for several classes, and the problem itself otherwise.
        """
        layout = self.make_prior
        if isinstance(layout, OneFunction) or isinstance(self.inference, Dirichlet):
            return self
        labels = self.y if layout.labels is None else np.eye(layout.n_classes)[layout.labels]
        return dirichlet_problem(self.kernel, self.X, labels, hyperprior=self.hyperprior)

    @property
    def is_of_labels(self) -> bool:
        """Whether the evidence is that of the labels, and not that of targets made from them."""
        return bool(getattr(self.inference, "comparable", True))

    # --------------------------------------------------------------- a level of the ladder

    options: ClassVar[dict[str, Any]] = {}

    def needed(self) -> None:
        """Return None: the number of rows determines the gain that a step needs."""

    def objective(self, tol: Any) -> SiteObjective:
        """Return the evidence, for a search that ends at ``tol`` nats."""
        return SiteObjective(self.with_tol(tol))

    def begun(self, before: Problem, learned: Any) -> tuple[Array, Array | None, AnySites | None]:
        """Return theta, inverse Hessian and sites to start from, after learning on another number of rows."""
        inverse = learned.inverse_hessian
        if inverse is not None:  # the curvature grows in proportion to the rows
            inverse = inverse * (before.n_rows / self.n_rows)
        return learned.theta, inverse, learned.warm if before.n_rows == self.n_rows else None

    def judged(self, state: Any) -> Any:
        """Return the state: without inducing inputs no step is reverted."""
        return state

    @property
    def n_rows(self) -> int:
        """Number of data points."""
        return len(self.X)

    @property
    def n_latent(self) -> int:
        """Number of latent values: one for each data point and latent function."""
        return self.n_rows * self.make_prior.n_functions

    def some(self, n: int) -> Problem:
        """Return the problem on n random rows, with some of each class; itself if it has at most n rows."""
        if n >= self.n_rows:
            return self
        rows = some_of_each(self.make_prior.classes(self.y), n, np.random.default_rng(0))
        make_prior, y = self.make_prior.take(self.y, rows)
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, X=take(self.X, rows), y=y, weight=weight, make_prior=make_prior, first=None)

    @property
    def copies(self) -> Array:
        """Number of copies that each data point represents: its weight, but at least one."""
        return np.maximum(self.make_prior.counts(self.y, self.weight), 1.0)


@dataclass(slots=True, eq=False)
class SiteObjective:
    """The evidence of a problem by Gaussian sites; the buffers of the prior are kept between evaluations."""

    problem: Problem
    _prior: Prior | None = None

    @property
    def description(self) -> str:
        """The method and its settings."""
        return repr(self.problem.inference)

    def evaluate(self, theta: Array, warm: AnySites | None = None, *, gradient: bool = True) -> Evaluation:
        """Return the evidence at theta; ``warm`` are the sites to start from."""
        with np.errstate(**BEYOND):
            return self._evaluated(theta, warm, gradient)

    def _evaluated(self, theta: Array, warm: AnySites | None, gradient: bool) -> Evaluation:
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

    def gradient_at_sites(self, theta: Array, sites: AnySites) -> Array:
        """Return the gradient of the evidence at theta for fixed sites: one factorisation, no iterations.

        It is that of a Gaussian regression, ½(alpha alphaᵀ - R) pulled back, and zero for parameters of the likelihood.
        """
        with np.errstate(**BEYOND):
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
        """Return the gradient by central differences of the evidence, if EP has no exact one.

        This is the case if the likelihood is not log-concave: negative site precisions are set to zero.
        """
        steps = DIFFERENCE * np.eye(len(theta))
        ends = [
            [self.evaluate(theta + sign * e, sites, gradient=False).evidence for sign in (1.0, -1.0)]
            for e in steps
        ]
        return np.array([(up - down) / (2.0 * DIFFERENCE) for up, down in ends])


# --------------------------------------------------------------------- several classes


def pose_classes(problem: Problem, labels: Array) -> Problem:
    """Return the problem in the form that inference uses, for label weights of shape (n, C).

    With the multinomial probit a data point of weight k appears k times, because copies have independent noise.
    """
    n_classes = labels.shape[1]
    likelihood: Any = problem.likelihood
    if not isinstance(likelihood, MultiProbit):
        layout = FunctionPerClass(n_classes, shared=_one_factorisation(problem, labels))
        return replace(problem, y=labels, weight=None, make_prior=layout)
    rows, codes = np.nonzero(labels)
    counts = labels[rows, codes]
    if (counts != np.round(counts)).any():
        raise ValueError(
            "The multinomial probit needs whole numbers as weights and does not support soft labels: use "
            "likelihood='softmax' for others."
        )
    again = np.repeat(np.arange(len(rows)), counts.astype(int))
    rows, codes = rows[again], codes[again]
    repeated = not np.array_equal(rows, np.arange(len(labels)))
    return replace(
        problem,
        X=take(problem.X, rows) if repeated else problem.X,
        y=np.ones(len(rows) * (n_classes - 1)),
        weight=None,
        likelihood=Probit(),
        make_prior=FunctionPerClass(n_classes, codes),
        predictive=likelihood,
        first=np.searchsorted(rows, np.arange(len(labels))) if repeated else None,
    )


def _one_factorisation(problem: Problem, labels: Array) -> bool:
    """Return whether the sites of a row have one precision in all classes but its own, and all classes one kernel."""
    hard = bool((np.count_nonzero(labels, axis=1) == 1).all())
    one_kernel = not isinstance(problem.kernel, CompoundKernel)
    return isinstance(problem.inference, Dirichlet) and one_kernel and hard


def dirichlet_problem(
    kernel: Any,
    X: Inputs,
    labels: Array,
    *,
    eps: float = DEFAULT,
    hyperprior: Hyperprior = NO_PRIOR,
) -> Problem:
    """Return the problem of Dirichlet classification for label weights of shape (n, C).

    One evaluation of its `SiteObjective` is cheap for any number of classes, and its optimum is near those of
    the other methods: it serves as a guide to kernels and hyperparameters. Its evidence is that of transformed targets,
    so it is not comparable with that of another method or another ``eps``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> X, labels = np.array([[0.0], [1.0], [3.0]]), np.eye(3)
    >>> objective = SiteObjective(dirichlet_problem(4.0 * RBF(1.0), X, labels))
    >>> end = objective.evaluate(objective.problem.theta)
    >>> round(end.evidence, 2), end.gradient.round(2)
    (-27.64, array([ 2.35, -2.55]))
    """
    problem = Problem(X, labels, None, kernel, Softmax(), Dirichlet(eps), hyperprior)
    return pose_classes(problem, labels)
