"""The table of supported combinations of options; dispatch, error messages and a page of the docs follow from it.

A fit is one `Case`: method, likelihood, number of classes, where the rows are, what happens to the hyperparameters.
`RULES` lists the cases that are not possible, each with its reason; every other case has a strategy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpclass.core.protocols import AnySites, Array
from gpclass.data.rows import Data, Rows
from gpclass.inference.dirichlet import DEFAULT
from gpclass.learning.combine import Combined, fit_combined
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import FIRST_ROWS, State, learn, rungs
from gpclass.learning.maximise import CLEARLY, Learned, Plan, is_clear
from gpclass.learning.problem import LEAST, Problem, left_out, pose_classes, with_eps
from gpclass.sparse.settings import Inducing
from gpclass.sparse.settings import choose as choose_inputs

SAMPLING = ("mcmc", "rejection")
METHODS = ("laplace", "ep", "vi", "dirichlet", *SAMPLING)  # any other method is "custom"
SEVERAL = ("softmax", "multiprobit")  # likelihoods with a latent function for each class

COMPARED = 1500  # number of latent values when methods are compared: VI takes a second or two
ROUGH_NATS = 0.1  # accuracy of the evidence while methods are compared

Model = FittedModel | Combined


@dataclass(frozen=True, slots=True)
class Case:
    """One combination of options; its fields are the columns of the table."""

    method: str  # name of the method
    likelihood: str  # "two classes" for every likelihood with one latent function, else its name
    rows: str = "all"  # "all" in memory, "inducing" inputs, or in "passes" over a source
    hyperparameters: str = "learn"  # "learn" | "sample" | "fixed"
    kernel: str = "one"  # "one" | "per class"
    inputs: str = "vectors"  # "vectors" | "structured"
    combine: str = "joint"  # "joint" | "one_vs_rest" | "one_vs_one"

    @property
    def strategy(self) -> str:
        """The name of the fitting strategy."""
        if self.hyperparameters == "sample":
            return "sampling f and theta"
        if self.method in SAMPLING:
            return "sampling f"
        if self.rows == "passes" or (self.rows == "inducing" and self.method in ("vi", "dirichlet")):
            return "passes over the rows"
        return "sites with inducing inputs" if self.rows == "inducing" else "sites"


# Why a case is not possible, and the options of all such cases.
RULES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Dirichlet classification has the softmax likelihood, for two classes as well: leave likelihood at its "
    "default, or give likelihood='softmax'": {
        "method": ("dirichlet",),
        "likelihood": ("two classes", "multiprobit"),
    },
    "Dirichlet classification has its own targets for all classes together: use multi_class='joint'": {
        "method": ("dirichlet",),
        "combine": ("one_vs_rest", "one_vs_one"),
    },
    "Dirichlet classification learns its hyperparameters or keeps them: use hyperparameters='learn'": {
        "method": ("dirichlet",),
        "hyperparameters": ("sample",),
    },
    "EP of three classes or more in one model needs likelihood='multiprobit' (or 'probit'): softmax has no "
    "closed tilted moments": {"method": ("ep",), "likelihood": ("softmax",)},
    "Sampled hyperparameters need inference='mcmc' or an approximation, not rejection": {
        "method": ("rejection",),
        "hyperparameters": ("sample",),
    },
    "Hyperparameters are sampled for two classes at a time: use multi_class='one_vs_rest'": {
        "hyperparameters": ("sample",),
        "likelihood": SEVERAL,
    },
    "Sampling needs one kernel for all classes, not a CompoundKernel": {
        "method": SAMPLING,
        "kernel": ("per class",),
    },
    "Sampling f needs all rows in memory: use an approximation, or inducing=None": {
        "method": SAMPLING,
        "rows": ("inducing", "passes"),
    },
    "Sampling the hyperparameters needs all rows in memory: use hyperparameters='learn', or inducing=None": {
        "hyperparameters": ("sample",),
        "rows": ("inducing", "passes"),
    },
    "Passes over rows that are not in memory need inference='vi' or 'dirichlet'": {
        "method": ("laplace", "ep", "custom"),
        "rows": ("passes",),
    },
    "Inducing inputs for three classes or more in one model need inference='vi' or 'dirichlet': use one, or "
    "multi_class='one_vs_rest'": {
        "method": ("laplace", "ep", "custom"),
        "rows": ("inducing",),
        "likelihood": SEVERAL,
    },
    "The multinomial probit has no form with inducing inputs: use likelihood='softmax' (or 'logit'), or "
    "multi_class='one_vs_rest'": {"likelihood": ("multiprobit",), "rows": ("inducing", "passes")},
    "Inducing inputs need one kernel for all classes: give one kernel, or use inducing=None": {
        "kernel": ("per class",),
        "rows": ("inducing", "passes"),
    },
    "Inducing inputs need rows of numbers: use inducing=None for structured inputs": {
        "inputs": ("structured",),
        "rows": ("inducing", "passes"),
    },
    "Rows that are not in memory are fitted in one model: use multi_class='joint'": {
        "combine": ("one_vs_rest", "one_vs_one"),
        "rows": ("passes",),
    },
    "A likelihood with a latent function for each class needs multi_class='joint'": {
        "combine": ("one_vs_rest", "one_vs_one"),
        "likelihood": SEVERAL,
    },
}


def refusal(case: Case) -> str | None:
    """Return why a case is not possible, or None if it is possible.

    Examples
    --------
    >>> refusal(Case("ep", "softmax"))[:35]
    'EP of three classes or more in one '
    >>> refusal(Case("vi", "softmax", rows="passes")) is None
    True
    """
    refused = (why for why, when in RULES.items() if all(getattr(case, name) in when[name] for name in when))
    return next(refused, None)


# --------------------------------------------------------------------------------- dispatch


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A case with the data and settings that a strategy needs to fit it; several models have classes as y."""

    case: Case
    problem: Problem
    plan: Plan
    n_classes: int
    seed: int
    settings: Inducing | None = None
    data: Data | None = None  # the rows of a source; None if the problem has them
    init: AnySites | None = None
    first: State | None = None  # state from which learning starts, if known

    def like(self, model: FittedModel) -> Task:
        """Return the task with the kernel of a fitted model as its start, so that no kernel is chosen."""
        problem, known = self.problem.like(model.problem), model.problem.inference
        same = type(known) is type(problem.inference)
        problem = replace(problem, inference=known) if same else problem
        plan = replace(self.plan, choose=False, enabled=self.plan.enabled and not model.interrupted)
        learned = model.learned or Learned(model.problem.theta, -np.inf)
        # The curvature is specific to the method, and the sites are specific to the rows.
        learned = replace(learned, warm=model.sites) if same else replace(learned, inverse_hessian=None)
        return replace(self, problem=problem, plan=plan, first=State(model.problem, learned))

    def few(self) -> Task:
        """Return the task on the rows on which methods are compared: all of a few hundred, else few enough for VI."""
        few = self.problem.some(min(FIRST_ROWS, COMPARED // self.n_classes))
        return self if len(self.problem.X) <= FIRST_ROWS else replace(self, problem=few)

    def unlearned(self) -> Task:
        """Return the task with fixed hyperparameters and low accuracy of inference."""
        plan = replace(self.plan, enabled=False)
        return replace(self, problem=self.problem.with_tol(ROUGH_NATS), plan=plan)


def fit(task: Task) -> Model:
    """Return the model that the strategy of the case fits; modules that most fits do not need are imported here."""
    if task.case.combine != "joint":
        return fit_combined(fit, task)
    case, problem, plan, seed = task.case, task.problem, task.plan, task.seed
    several, settings = case.likelihood in SEVERAL, task.settings or Inducing()
    if case.strategy == "passes over the rows":
        from gpclass.learning.passes import fit_in_passes

        rows = Rows(problem.X, problem.y, problem.weight) if task.data is None else task.data
        return fit_in_passes(problem, rows, task.n_classes if several else 1, plan, settings, seed=seed)
    if case.strategy == "sites with inducing inputs":
        return fit_by_sites(problem, plan, settings, seed=seed)
    if case.strategy.startswith("sampling"):
        from gpclass.learning.draws import fit_by_sampling, fit_by_sampling_theta

        sample = fit_by_sampling_theta if case.hyperparameters == "sample" else fit_by_sampling
        return sample(problem, plan, seed=seed)
    problem = pose_classes(problem)
    init = task.init if task.init is not None and task.init.nu.shape == problem.latent_shape else None
    return fit_by_sites(problem, plan, init=init, seed=seed, first=task.first)


def fit_by_sites(
    problem: Problem,
    plan: Plan,
    settings: Inducing | None = None,
    *,
    init: AnySites | None = None,
    seed: Any = None,
    first: State | None = None,
) -> FittedModel:
    """Return a model fitted by Gaussian sites, which are inferred at the best hyperparameters.

    Learning starts from ``first`` if it is given. With ``settings`` the prior has inducing inputs (FITC):
    hyperparameters are learned on some rows without them first, then on all rows with them. ``rows`` of Dirichlet
    classification bounds the rows that are learned from.
    """
    some, ladder = problem.some(getattr(problem.inference, "rows", None) or len(problem.X)), None
    with_inputs = partial(_with_inputs, settings, problem.X, np.random.default_rng(seed))
    if settings is not None:
        ladder = rungs(problem, most=settings.rows[0])
        ladder.append(lambda state: state.onto(with_inputs(problem.like(state.problem))))
        if plan.optimizer is not None or not plan.enabled or settings.rows[0] >= len(problem.X):
            problem = some = with_inputs(problem)
            ladder = None
    found, learned = learn(some, plan, np.random.default_rng(seed), ladder=ladder, first=first)
    problem = with_eps(problem.like(found), DEFAULT)  # sets eps if an interruption left it open
    if settings is not None and problem.Z is None:  # not chosen because of an interruption
        problem = with_inputs(problem)
    if learned is not None:
        init = learned.warm if len(some.X) == len(problem.X) else None
        learned = replace(learned, warm=None)
    try:
        return replace(_inferred(problem, init), learned=learned)
    except KeyboardInterrupt:  # of the last inference, which is run again
        if learned is None:
            raise
        return replace(_inferred(problem, init), learned=learned.stopped())


def _with_inputs(settings: Any, X: Any, rng: np.random.Generator, problem: Problem) -> Problem:
    """Return a problem with inducing inputs that are chosen for its kernel."""
    X = np.asarray(X)[rng.permutation(len(X))]
    return replace(problem, Z=choose_inputs(settings, problem.kernel, X, settings.most(), rng))


def _inferred(problem: Problem, init: AnySites | None) -> FittedModel:
    """Return the model at the hyperparameters of the problem."""
    prior = problem.prior()
    result = problem.infer(prior, init)
    loo = problem.likelihood.log_predict(*left_out(problem, result))
    posterior: Any = prior.posterior(result.conditioned)
    return FittedModel(
        likelihood=problem.likelihood,
        posterior=posterior if result.offset is None else replace(posterior, offset=result.offset),
        kernel=problem.kernel.clone_with_theta(problem.kernel.theta),
        evidence=result.evidence,
        info=result.info,
        problem=problem,
        sites=result.sites,
        latent_sites=prior.latent_sites(result.sites),
        loo=loo if problem.first is None else loo[problem.first],
    )


def fit_best(tasks: Sequence[Task]) -> Model:
    """Return the model of one method, or of the one of two with the better leave-one-out score on some rows.

    Of two methods, slow and fast, the fast one is fitted first and the slow one starts from its result. It learns its
    hyperparameters only if it is not clearly worse on `Task.few`. If these are not all rows it must be clearly better.
    """
    if len(tasks) == 1:
        return fit(tasks[0])
    slow, fast = tasks
    few = slow.few()
    first: Any = fit(fast)
    if first.interrupted:
        return first
    task = few.like(first)
    task.plan.announce(f"trying {task.case.method}")

    def gains(one: FittedModel, other: FittedModel) -> Array:
        one_loo, other_loo = (np.maximum(np.asarray(model.loo), LEAST) for model in (one, other))
        return np.asarray((task.problem.y * (one_loo - other_loo)).sum(axis=1))

    try:
        rival: Any = first if few is slow else fit(fast.few().like(first).unlearned())
        second: Any = fit(task.unlearned())
        if is_clear(gains(second, rival), -CLEARLY):
            known = replace(second.problem, inference=task.problem.inference)  # restores the tolerance
            learned = replace(first.learned, inverse_hessian=None)
            second = fit(few.like(replace(second, problem=known, learned=learned)))
        gain = gains(second, rival)
        better = is_clear(gain, 0.0 if few is slow else CLEARLY)
        task.plan.announce(
            f"leave-one-out score of {task.case.method} per row: {gain.mean():+.4f}, "
            f"{task.case.method if better else first.problem.inference.name} is kept"
        )
        if better:
            return second if few is slow else fit(slow.like(second))
        if not second.interrupted:
            return first
    except KeyboardInterrupt:
        pass
    message = f"Learning was interrupted while {task.case.method} was being fitted: the other method is used."
    learned = first.learned or Learned(first.problem.theta, -np.inf)
    return replace(first, learned=replace(learned, message=message, interrupted=True))
