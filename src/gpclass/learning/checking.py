"""How accurate the posterior of a fitted model is: by importance sampling, or by how well chains agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.linalg import mirrored
from gpclass.core.protocols import AnySites, CoupledSites, Index, Sites
from gpclass.evidence import ApproximationCheck, check_model
from gpclass.evidence.check import check_chains, check_draws, check_target
from gpclass.evidence.importance import check_size
from gpclass.inference import EP, Laplace
from gpclass.kernels import matrix
from gpclass.learning.joint import JointModel, joint_problem
from gpclass.learning.joint_sampled import JointSampledModel
from gpclass.learning.sampled import SampledModel, problem_result
from gpclass.likelihoods import MultiProbit
from gpclass.posteriors.target import Target, make_target


def check(model: Any, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Check the posterior of a fitted latent function, or of those of all classes."""
    if hasattr(model, "report"):
        raise ValueError(
            "A model fitted in passes keeps no rows to check the approximation with: fit some thousand of "
            "them with inducing=None and check that."
        )
    if isinstance(model, JointModel):
        return _check_joint(model, n_samples, rng)
    if isinstance(model, JointSampledModel):
        return _check_joint_draws(model, n_samples, rng)
    if not isinstance(model, SampledModel):
        return check_model(model, n_samples, rng)
    if model.chains is not None and model.chains.theta is not None:
        p = np.exp(model.problem.likelihood.log_classes(model.chains.f)[..., 1])
        return check_chains(model.chains, p)
    return _check_draws(model, n_samples, rng)


def _check_joint(model: JointModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    check_size(model.labels.shape)
    Ks = [matrix(kernel, model.problem.X) for kernel in model.posterior.kernels]
    sites = _typed(model.on_latents, model.tied)
    target = make_target(model.likelihood, Ks[0] if len(Ks) == 1 else Ks, model.labels, sites)
    return check_target(target, model.evidence, type(model.problem.inference).__name__, n_samples, rng)


def _typed(sites: Sites, tied: bool) -> AnySites:
    return CoupledSites(sites.nu, sites.tau) if tied else sites


def _check_joint_draws(
    model: JointSampledModel, n_samples: int, rng: np.random.Generator
) -> ApproximationCheck:
    """Compare draws with importance sampling from EP, or from Laplace's approximation of softmax."""
    check_size(model.labels.shape)
    target, first = _joint_target(model)
    name = type(model.problem.inference).__name__
    return check_draws(target, model.draws, model.chains, model.evidence, name, n_samples, rng, points=first)


def _joint_target(model: JointSampledModel) -> tuple[Target, Index]:
    """Return an approximation of the same posterior, and where it has each data point (a copy of it)."""
    labels, first = model.labels, np.arange(len(model.labels))
    by = EP() if isinstance(model.likelihood, MultiProbit) else Laplace()
    problem = joint_problem(replace(model.problem, inference=by), labels)
    prior: Any = problem.prior(problem.kernel.theta)
    sites = prior.latent_sites(problem.infer(prior, None).sites)
    if isinstance(model.likelihood, MultiProbit):
        first = np.cumsum(np.r_[0, labels.sum(axis=1)[:-1].astype(int)])
        labels = np.eye(labels.shape[1])[prior.labels]
    Ks = [mirrored(K) for K in prior.Ks]
    K: Any = Ks[0] if len(Ks) == 1 else Ks
    return make_target(model.likelihood, K, labels, _typed(sites, True)), first


def _check_draws(model: SampledModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Compare draws with importance sampling from EP."""
    problem = model.problem
    prior = problem.prior(problem.kernel.theta)
    sites = model.sites if model.sites is not None else problem_result(problem, EP(), prior, None).sites
    K = mirrored(prior.K)  # type: ignore[attr-defined]
    target = make_target(problem.likelihood, K, problem.y, sites, problem.weight)
    name = type(problem.inference).__name__
    return check_draws(target, model.draws, model.chains, model.evidence, name, n_samples, rng)
