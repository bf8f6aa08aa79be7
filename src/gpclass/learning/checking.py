"""How accurate the posterior of a fitted model is: by importance sampling, or by how well chains agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpclass.core.linalg import mirrored
from gpclass.core.protocols import Array
from gpclass.evidence import ApproximationCheck
from gpclass.evidence.check import check_chains, check_draws, check_target
from gpclass.evidence.importance import check_size
from gpclass.inference import EP, Laplace
from gpclass.kernels import CompoundKernel
from gpclass.learning.fitted import FittedModel
from gpclass.learning.inducing_check import check_inducing
from gpclass.learning.problem import FunctionPerClass, OneFunction, Problem, pose_classes
from gpclass.posteriors.target import Target, make_target
from gpclass.priors import DensePrior


def check(model: FittedModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Check the posterior of a fitted latent function, or of those of all classes."""
    layout = model.problem.make_prior
    if model.inducing is not None or (isinstance(layout, OneFunction) and layout.Z is not None):
        return check_inducing(model, n_samples, rng)
    if not model.is_of_labels:
        raise ValueError(
            "Dirichlet classification is regression on targets made from the labels: its posterior is exact for those, "
            "and approximates none of the labels that it could be checked against. Compare its predictions instead, "
            "by loo_log_score_ or gpclass.compare, or use inference='vi'."
        )
    name = type(model.problem.inference).__name__
    if model.draws is None:
        target = make_check_target(model, model.problem, model.latent_sites)
        return check_target(target, model.evidence, name, n_samples, rng, baseline=model.baseline)
    if model.chains is not None and model.chains.theta is not None:
        return check_chains(model.chains, np.exp(model.likelihood.log_classes(model.chains.f)[..., 1]))
    # Draws are compared with importance sampling from an approximation of the same posterior.
    problem, sites = model.problem, model.sites
    if isinstance(problem.make_prior, FunctionPerClass):
        problem = pose_classes(problem, problem.y)
    if sites is None:
        problem = replace(problem, inference=EP() if problem.make_prior.elementwise else Laplace())
        prior = problem.prior()
        sites = prior.latent_sites(problem.infer(prior, None).sites)
    target = make_check_target(model, problem, sites)
    points = slice(None) if problem.first is None else problem.first
    return check_draws(
        target,
        model.draws,
        model.chains,
        model.evidence,
        name,
        n_samples,
        rng,
        points=points,
        baseline=model.baseline,
    )


def make_check_target(model: FittedModel, problem: Problem, sites: object) -> Target:
    """Return the exact posterior beside the Gaussian of the sites on the latent functions."""
    layout, kernel = problem.make_prior, problem.kernel
    if isinstance(layout, OneFunction):
        return make_target(model.likelihood, _dense(problem, kernel), problem.y, sites, problem.weight)  # type: ignore[arg-type]
    labels = problem.y if layout.labels is None else np.eye(layout.n_classes)[layout.labels]
    check_size(labels.shape)
    kernels = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    Ks = np.stack([_dense(problem, each) for each in kernels])
    return make_target(model.likelihood, Ks[0] if len(Ks) == 1 else Ks, labels, sites)  # type: ignore[arg-type]


def _dense(problem: Problem, kernel: object) -> Array:
    return mirrored(DensePrior(kernel, problem.X).K)
