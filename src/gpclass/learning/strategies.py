"""The table of supported combinations of options; dispatch, error messages and a page of the docs follow from it.

A fit is one `Case`: method, likelihood, number of classes, where the rows are, what happens to the hyperparameters.
`RULES` lists the cases that are not possible, each with its reason; every other case has a strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np

from gpclass.core.protocols import AnySites, Array
from gpclass.data.rows import Data, Rows
from gpclass.learning.combine import Combined, fit_combined
from gpclass.learning.fitted import FittedModel
from gpclass.learning.ladder import State
from gpclass.learning.maximise import CLEARLY, Learned, Plan, is_clear
from gpclass.learning.problem import Problem, pose_classes
from gpclass.learning.sites import fit_by_sites
from gpclass.sparse.settings import Inducing

SAMPLING = ("mcmc", "rejection")
METHODS = ("laplace", "ep", "vi", "dirichlet", *SAMPLING)  # any other method is "custom"
SEVERAL = ("softmax", "multiprobit")  # likelihoods with a latent function for each class

COMPARED = 1500  # number of latent values when methods are compared: VI takes a second or two
MOST_CLASSES = 12  # up to this number of classes, joint VI is fast enough to be tried
ROUGH_NATS = 0.1  # accuracy of the evidence while methods are compared
LEAST = -700.0  # lower bound on log probabilities

T = TypeVar("T")
Pose = Callable[[T], "Task"]  # makes the task of one method for some rows
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


@dataclass(frozen=True, slots=True)
class Rule:
    """Cases that are not possible, given by their options, with the reason."""

    why: str
    when: Mapping[str, tuple[str, ...]]

    def applies(self, case: Case) -> bool:
        """Return whether the rule refuses a case."""
        return all(getattr(case, option) in values for option, values in self.when.items())


RULES = (
    Rule(
        "Dirichlet classification has the softmax likelihood, for two classes as well: leave likelihood at its "
        "default, or give likelihood='softmax'",
        {"method": ("dirichlet",), "likelihood": ("two classes", "multiprobit")},
    ),
    Rule(
        "Dirichlet classification has its own targets for all classes together: use multi_class='joint'",
        {"method": ("dirichlet",), "combine": ("one_vs_rest", "one_vs_one")},
    ),
    Rule(
        "Dirichlet classification learns its hyperparameters or keeps them: use hyperparameters='learn'",
        {"method": ("dirichlet",), "hyperparameters": ("sample",)},
    ),
    Rule(
        "EP of three classes or more in one model needs likelihood='multiprobit' (or 'probit'): softmax has no "
        "closed tilted moments",
        {"method": ("ep",), "likelihood": ("softmax",)},
    ),
    Rule(
        "Sampled hyperparameters need inference='mcmc' or an approximation, not rejection",
        {"method": ("rejection",), "hyperparameters": ("sample",)},
    ),
    Rule(
        "Hyperparameters are sampled for two classes at a time: use multi_class='one_vs_rest'",
        {"hyperparameters": ("sample",), "likelihood": SEVERAL},
    ),
    Rule(
        "Sampling needs one kernel for all classes, not a CompoundKernel",
        {"method": SAMPLING, "kernel": ("per class",)},
    ),
    Rule(
        "Sampling f needs all rows in memory: use an approximation, or inducing=None",
        {"method": SAMPLING, "rows": ("inducing", "passes")},
    ),
    Rule(
        "Sampling the hyperparameters needs all rows in memory: use hyperparameters='learn', or inducing=None",
        {"hyperparameters": ("sample",), "rows": ("inducing", "passes")},
    ),
    Rule(
        "Passes over rows that are not in memory need inference='vi' or 'dirichlet'",
        {"method": ("laplace", "ep", "custom"), "rows": ("passes",)},
    ),
    Rule(
        "Inducing inputs for three classes or more in one model need inference='vi' or 'dirichlet': use one, or "
        "multi_class='one_vs_rest'",
        {"method": ("laplace", "ep", "custom"), "rows": ("inducing",), "likelihood": SEVERAL},
    ),
    Rule(
        "The multinomial probit has no form with inducing inputs: use likelihood='softmax' (or 'logit'), or "
        "multi_class='one_vs_rest'",
        {"likelihood": ("multiprobit",), "rows": ("inducing", "passes")},
    ),
    Rule(
        "Inducing inputs need one kernel for all classes: give one kernel, or use inducing=None",
        {"kernel": ("per class",), "rows": ("inducing", "passes")},
    ),
    Rule(
        "Inducing inputs need rows of numbers: use inducing=None for structured inputs",
        {"inputs": ("structured",), "rows": ("inducing", "passes")},
    ),
    Rule(
        "Rows that are not in memory are fitted in one model: use multi_class='joint'",
        {"combine": ("one_vs_rest", "one_vs_one"), "rows": ("passes",)},
    ),
    Rule(
        "A likelihood with a latent function for each class needs multi_class='joint'",
        {"combine": ("one_vs_rest", "one_vs_one"), "likelihood": SEVERAL},
    ),
)


def refusal(case: Case) -> str | None:
    """Return why a case is not possible, or None if it is possible.

    Examples
    --------
    >>> refusal(Case("ep", "softmax"))[:35]
    'EP of three classes or more in one '
    >>> refusal(Case("vi", "softmax", rows="passes")) is None
    True
    """
    return next((rule.why for rule in RULES if rule.applies(case)), None)


def table() -> list[dict[str, str]]:
    """Return every combination of method, likelihood, rows and hyperparameters with its strategy or refusal."""
    methods, likelihoods = ("laplace", "ep", "vi", "dirichlet", *SAMPLING), ("two classes", *SEVERAL)
    out = []
    for options in product(methods, likelihoods, ("all", "inducing", "passes"), ("learn", "sample")):
        case = Case(*options)
        why = refusal(case)
        names = ("method", "likelihood", "rows", "hyperparameters")
        found = {"strategy": "" if why else case.strategy, "why": why or ""}
        out.append(dict(zip(names, options, strict=True)) | found)
    return out


# --------------------------------------------------------------------------------- dispatch


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A case with the data and settings that a strategy needs to fit it."""

    case: Case
    problem: Problem
    plan: Plan
    n_classes: int
    labels: Array  # classes by position, (n,), or label weights, (n, C); empty for rows in passes
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

    def unlearned(self) -> Task:
        """Return the task with fixed hyperparameters and low accuracy of inference."""
        return replace(
            self, problem=self.problem.with_tol(ROUGH_NATS), plan=replace(self.plan, enabled=False)
        )


def fit(task: Task) -> Model:
    """Return a fitted model, or a combination of two-class models."""
    if task.problem.kernel.n_dims == 0:
        task = replace(task, case=replace(task.case, hyperparameters="fixed"))  # no hyperparameter to sample
    return fit_one(task) if task.case.combine == "joint" else fit_combined(fit_one, task)


def fit_one(task: Task) -> FittedModel:
    """Return a model fitted with the strategy of the case; modules that most fits do not need are imported here."""
    case, problem, plan, seed = task.case, task.problem, task.plan, task.seed
    several, settings = case.likelihood in SEVERAL, task.settings or Inducing()
    if case.strategy == "passes over the rows":
        from gpclass.learning.passes import fit_in_passes

        labels, weight = (task.labels, None) if several else (problem.y, problem.weight)
        rows = Rows(problem.X, labels, weight) if task.data is None else task.data
        return fit_in_passes(problem, rows, task.n_classes if several else 1, plan, settings, seed=seed)
    if case.strategy == "sites with inducing inputs":
        return fit_by_sites(problem, plan, settings, seed=seed)
    if case.strategy.startswith("sampling"):
        from gpclass.learning.draws import fit_by_sampling, fit_by_sampling_theta

        if several:
            problem = replace(problem, y=task.labels, weight=None)
        sample = fit_by_sampling_theta if case.hyperparameters == "sample" else fit_by_sampling
        return sample(problem, plan, seed=seed)
    problem = pose_classes(problem, task.labels) if several else problem
    init = task.init if task.init is not None and task.init.nu.shape == problem.latent_shape else None
    return fit_by_sites(problem, plan, init=init, seed=seed, first=task.first)


def fit_best(pose: Sequence[Pose[T]], *, rows: T, few: T) -> Model:
    """Return the model of one method, or of the one of two with the better leave-one-out score on some rows.

    Of two methods, slow and fast, the fast one is fitted first and the slow one starts from its result. It learns
    its hyperparameters only if it is not clearly worse there. On a subset of the rows it must be clearly better.
    """
    if len(pose) == 1:
        return fit(pose[0](rows))
    slow, fast = pose
    first: Any = fit(fast(rows))
    if first.interrupted:
        return first
    task = slow(few).like(first)
    task.plan.announce(f"trying {task.case.method}")

    def gains(one: FittedModel, other: FittedModel) -> Array:
        one_loo, other_loo = (np.maximum(np.asarray(model.loo), LEAST) for model in (one, other))
        return np.asarray((task.labels * (one_loo - other_loo)).sum(axis=1))

    try:
        rival: Any = first if few is rows else fit(fast(few).like(first).unlearned())
        second: Any = fit(task.unlearned())
        if is_clear(gains(second, rival), -CLEARLY):
            known = replace(second.problem, inference=task.problem.inference)  # restores the tolerance
            learned = replace(first.learned, inverse_hessian=None)
            second = fit(slow(few).like(replace(second, problem=known, learned=learned)))
        gain = gains(second, rival)
        better = is_clear(gain, 0.0 if few is rows else CLEARLY)
        task.plan.announce(
            f"leave-one-out score of {task.case.method} per row: {gain.mean():+.4f}, "
            f"{task.case.method if better else first.problem.inference.name} is kept"
        )
        if better and few is not rows:
            second = fit(slow(rows).like(second))
    except KeyboardInterrupt:
        return _kept(first, task)
    if better:
        return second
    return _kept(first, task) if second.interrupted else first


def _kept(model: FittedModel, task: Task) -> FittedModel:
    """Return the model of the fast method after the slow one was interrupted."""
    message = f"Learning was interrupted while {task.case.method} was tried: the other method is kept."
    learned = model.learned or Learned(model.problem.theta, -np.inf)
    return replace(model, learned=replace(learned, message=message, interrupted=True))
