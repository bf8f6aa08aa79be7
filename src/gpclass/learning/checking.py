"""How wrong the posterior of a fitted model may be: by importance sampling, or by how chains agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.core.linalg import mirrored
from gpclass.core.protocols import Array, Index
from gpclass.evidence import ApproximationCheck, EvidenceEstimate, check_model
from gpclass.evidence.check import SMALL_SHIFT, check_target
from gpclass.evidence.importance import draw
from gpclass.evidence.joint import JointTarget, check_size, make_joint_target
from gpclass.evidence.weights import summarise
from gpclass.inference import EP, Laplace
from gpclass.kernels import matrix
from gpclass.learning.joint import JointModel, joint_problem
from gpclass.learning.joint_sampled import JointSampledModel
from gpclass.learning.sampled import SampledModel, problem_result
from gpclass.likelihoods import MultiProbit
from gpclass.mcmc.chains import diagnose
from gpclass.posteriors.target import make_target


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
        return _check_chains(model)
    return _check_draws(model, n_samples, rng)


def _check_joint(model: JointModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    check_size(model.labels)
    Ks = [matrix(kernel, model.problem.X) for kernel in model.posterior.kernels]
    target = make_joint_target(model.likelihood, Ks, model.labels, model.on_latents, tied=model.tied)
    method = type(model.problem.inference).__name__
    return check_target(target, model.evidence, method, n_samples, rng)


def _check_joint_draws(
    model: JointSampledModel, n_samples: int, rng: np.random.Generator
) -> ApproximationCheck:
    """Hold draws against importance sampling: from EP, or from Laplace's approximation of softmax."""
    check_size(model.labels)
    target, first = _joint_target(model)
    drawn = draw(target, n_samples, "mixed", rng)
    estimate, w = summarise(drawn.log_weights, target.log_mass, drawn.log_q, drawn.n_student)
    p = target.classes(np.concatenate([drawn.D, -drawn.D]))
    p = p.reshape(len(p), *target.labels.shape)[:, first].reshape(len(p), -1)
    ours = np.exp(model.likelihood.log_classes(model.draws)).reshape(len(model.draws), -1)
    return _compare(model, estimate, _weighted(p, w.ravel()), _averaged(model, ours))


def _joint_target(model: JointSampledModel) -> tuple[JointTarget, Index]:
    """Return an approximation of the same posterior, and where it has each datum (a copy of it)."""
    labels, first = model.labels, np.arange(len(model.labels))
    by = EP() if isinstance(model.likelihood, MultiProbit) else Laplace()
    problem = joint_problem(replace(model.problem, inference=by), labels)
    prior: Any = problem.prior(problem.kernel.theta)
    sites = prior.latent_sites(problem.infer(prior, None).sites)
    if isinstance(model.likelihood, MultiProbit):
        first = np.cumsum(np.r_[0, labels.sum(axis=1)[:-1].astype(int)])
        labels = np.eye(labels.shape[1])[prior.labels]
    Ks = [mirrored(K) for K in prior.Ks]
    return make_joint_target(model.likelihood, Ks, labels, sites, tied=True), first


def _check_draws(model: SampledModel, n_samples: int, rng: np.random.Generator) -> ApproximationCheck:
    """Hold draws against another way to the same posterior: importance sampling from EP."""
    problem = model.problem
    prior = problem.prior(problem.kernel.theta)
    sites = model.sites if model.sites is not None else problem_result(problem, EP(), prior, None).sites
    K = mirrored(prior.K)  # type: ignore[attr-defined]
    target = make_target(problem.likelihood, K, problem.y, sites, problem.weight)
    drawn = draw(target, n_samples, "mixed", rng)
    estimate, w = summarise(drawn.log_weights, target.log_mass, drawn.log_q, drawn.n_student)
    f = np.concatenate([target.mean + drawn.D, target.mean - drawn.D])
    theirs = _weighted(_positive(model, f), w.ravel())
    return _compare(model, estimate, theirs, _averaged(model, _positive(model, model.draws)))


def _compare(
    model: SampledModel | JointSampledModel,
    estimate: EvidenceEstimate,
    theirs: tuple[Array, Array],
    ours: tuple[Array, Array],
) -> ApproximationCheck:
    """Return what two estimates of the probabilities at the data, each with its errors, say of each other."""
    shift, total = ours[0] - theirs[0], np.hypot(theirs[1], ours[1])
    worst = int(np.argmax(np.abs(shift)))
    name = type(model.problem.inference).__name__
    return ApproximationCheck(
        method=name,
        evidence=model.evidence,
        corrected=estimate.value,
        standard_error=estimate.standard_error,
        khat=estimate.khat,
        ess=estimate.ess,
        n_samples=estimate.n_samples,
        largest_shift=abs(float(shift[worst])),
        shift_error=float(total[worst]),
        mean_shift=float(np.abs(shift).mean()),
        verdict=_verdict(name, shift, total, estimate.reliable),
        shifted="p(class)" if isinstance(model, JointSampledModel) else "p(y=+1)",
    )


def _verdict(name: str, shift: Array, error: Array, reliable: bool) -> str:
    # The largest of many differences is several standard errors by chance alone.
    far = float((np.abs(shift) / np.maximum(error, 1e-12)).max())
    largest = float(np.abs(shift).max())
    if not reliable:
        return (
            f"Importance sampling cannot check {name} here, as its khat is too large: judge the draws by "
            "chains_.diagnostics()."
        )
    if far > 5.0 and largest > SMALL_SHIFT:
        return (
            f"{name} and importance sampling disagree: a probability differs by {largest:.2g}, which is "
            f"{far:.0f} standard errors; take more draws."
        )
    return (
        f"{name} is confirmed by importance sampling: no probability differs by more than {largest:.2g}, "
        "within the noise of the two."
        if far <= 5.0
        else f"{name} is confirmed by importance sampling to {largest:.2g} in every probability."
    )


def _check_chains(model: SampledModel) -> ApproximationCheck:
    """Hold the first half of the chains against the second: with theta sampled too there is no other way."""
    chains = model.chains
    assert chains is not None
    half = chains.n_draws // 2
    p = _positive(model, chains.flat()).reshape(*chains.f.shape)
    shift = p[:, :half].mean(axis=(0, 1)) - p[:, half:].mean(axis=(0, 1))
    numbers = diagnose(p)
    worst = int(np.argmax(np.abs(shift)))
    of_theta = chains.diagnostics("theta")
    mixed = of_theta.complaint(chains.n_chains)
    return ApproximationCheck(
        method="MCMC",
        evidence=None,
        corrected=None,
        standard_error=None,
        khat=None,
        ess=float(min(of_theta.ess_bulk.min(), numbers.ess_bulk.min())),
        n_samples=chains.n_chains * chains.n_draws,
        largest_shift=abs(float(shift[worst])),
        shift_error=2.0 * float(numbers.mcse[worst]),
        mean_shift=float(np.abs(shift).mean()),
        verdict=mixed
        or (
            f"The chains agree: the largest R-hat is {float(of_theta.rhat.max()):.3f}, and no probability "
            f"has a Monte Carlo error above {float(numbers.mcse.max()):.2g}."
        ),
    )


def _positive(model: SampledModel, f: Array) -> Array:
    """Return p(y=+1|f) of draws at the data."""
    out: Array = np.exp(model.problem.likelihood.log_classes(f)[..., 1])
    return out


def _weighted(p: Array, w: Array) -> tuple[Array, Array]:
    """Return weighted means of the columns and their standard errors."""
    mean = w @ p
    return mean, np.sqrt((w * w) @ (p - mean) ** 2)


def _averaged(model: SampledModel | JointSampledModel, p: Array) -> tuple[Array, Array]:
    """Return mean and standard error of probabilities, one row a draw of the model."""
    if model.chains is None:
        return p.mean(axis=0), p.std(axis=0) / np.sqrt(len(p))
    return p.mean(axis=0), diagnose(p.reshape(*model.chains.f.shape[:2], -1)).mcse
