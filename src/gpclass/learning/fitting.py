"""Whichever way a latent function is found: one door to all of them, and what to complain of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpclass.core.protocols import Sites
from gpclass.learning.maximise import Problem, bound_messages
from gpclass.learning.model import LatentModel, LearningPlan, fit_latent, unconverged
from gpclass.learning.sampled import SampledModel, fit_sampled
from gpclass.mcmc import MCMC
from gpclass.sampling import Rejection
from gpclass.sparse.model import fit_inducing

Model = LatentModel | SampledModel


def fit_model(problem: Problem, plan: LearningPlan, *, init: Sites | None = None, seed: Any = None) -> Model:
    """Fit one latent function: by a Gaussian approximation, or by draws."""
    to_sample = plan.sample and problem.kernel.n_dims > 0
    if to_sample or isinstance(problem.inference, MCMC | Rejection):
        return fit_sampled(problem, plan, seed=seed)
    if plan.inducing is not None:
        return fit_inducing(problem, plan, plan.inducing, seed=seed)
    return fit_latent(problem, plan, init=init, seed=seed)


def complaints(model: Any, *, at_bounds: bool) -> Iterator[str]:
    """Yield a sentence for everything in which the fit fell short; none if all is well."""
    if model.learned is not None and model.learned.message:
        yield model.learned.message
    if not model.info.converged:
        yield unconverged(model.problem, model.info)
    chains = getattr(model, "chains", None)
    if at_bounds and model.learned is not None and (chains is None or chains.theta is None):
        yield from bound_messages(model.problem.kernel)
    if chains is not None:
        if chains.interrupted:
            yield f"Sampling was interrupted: the {chains.n_draws} draws so far of each chain are kept."
        if chains.note:
            yield chains.note
        if sentence := chains.complaint():
            yield sentence
