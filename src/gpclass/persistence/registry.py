"""The records that make up a fitted model. A new one is one line here."""

from __future__ import annotations

from typing import Any

from gpclass.core.hyperpriors import Hyperprior, LogScalePrior
from gpclass.core.protocols import Info, Sites
from gpclass.inference import EP, VI, Laplace
from gpclass.learning.joint import JointModel, JointPriorMaker
from gpclass.learning.joint_sampled import JointSampledModel
from gpclass.learning.maximise import History, Learned, Problem
from gpclass.learning.model import LatentModel
from gpclass.learning.multiclass import OneVsOne, OneVsRest
from gpclass.learning.sampled import SampledModel
from gpclass.likelihoods import Gaussian, Logit, MultiProbit, Probit, Softmax
from gpclass.mcmc import HMC, MCMC, BlockMetropolis, Chains, EllipticalSlice, JointWhitened, PseudoMarginal
from gpclass.persistence.schema import Registry
from gpclass.posteriors.classes import JointPosterior
from gpclass.posteriors.gaussian import Posterior
from gpclass.posteriors.mixture import Component, MixturePosterior
from gpclass.priors import DensePrior
from gpclass.priors.basis import Basis
from gpclass.sampling import Rejection
from gpclass.sparse.engine import Fit, Q
from gpclass.sparse.model import (
    IndependentPosterior,
    InducingJointModel,
    InducingModel,
    InducingPriorMaker,
    Report,
)
from gpclass.sparse.settings import Inducing


def _bare(cls: Any) -> Any:
    """Return a function that makes an object out of its attributes, and asks its constructor nothing."""

    def build(**attributes: Any) -> Any:
        out = cls.__new__(cls)
        vars(out).update(attributes)
        return out

    return build


REGISTRY = Registry(classes={"DensePrior": DensePrior})
record = REGISTRY.record

# ------------------------------------------------------------- likelihoods, methods, samplers

record(Logit, "likelihood")
record(Probit, "likelihood")
record(Softmax, "likelihood")
record(MultiProbit, "likelihood")
record(Gaussian, "likelihood", noise="number")
record(Laplace, "approximation", tol="number", max_iter="count")
record(EP, "approximation", power="number", tol="number", max_iter="count")
record(VI, "approximation", evidence="text", tol="number", max_iter="count")
record(HMC, "sampler", whiten="approximation|none", step_size="number", accept="number")
record(EllipticalSlice, "sampler", whiten="approximation|none")
record(BlockMetropolis, "sampler", block_size="count", adapt_size="bool", jitter="number")
record(PseudoMarginal, "hyper_sampler", whiten="approximation", n_importance="count", n_refine="count")
record(JointWhitened, "hyper_sampler", whiten="approximation|none", n_latent_steps="count", jitter="number")
record(
    MCMC,
    "sampling",
    sampler="sampler",
    n_chains="count",
    n_draws="count",
    n_warmup="count",
    thin="count",
    learn_by="approximation",
    hyper_sampler="hyper_sampler",
    n_thetas="count",
    annealing="count|none",
)
record(Rejection, "sampling", n_draws="count", max_proposals="count", learn_by="approximation")

# ------------------------------------------------------------------------- hyperparameters

record(Hyperprior, build=_bare(Hyperprior), terms="terms")
record(
    LogScalePrior,
    build=_bare(LogScalePrior),
    hyperprior="Hyperprior|none",
    centre="float[p]",
    given="flag[p]",
)
record(History, theta="float[k,p]|float[k]", evidence="real[k]", gradient_norm="real[k]")
record(
    Learned,
    theta="float[p]",
    objective="number",
    sites="Sites|none",
    history="History",
    message="text",
    interrupted="bool",
    inverse_hessian="float[p,p]|none",
)

# ------------------------------------------------------------------------------- posteriors

record(Sites, nu="float[n]|float[n,c]", tau="float[n]|float[n,c]", spread="float[n]|float[n,c]|none")
record(Info, converged="bool", n_iter="count", residual="real|number")
record(
    Posterior,
    "posterior",
    kernel="kernel",
    inputs="inputs[n]",
    alpha="float[n]",
    root="lower[n,n]",
    beta="float[n]|none",
)
record(
    JointPosterior,
    kernels="list(kernel)",
    inputs="inputs[n]",
    alpha="float[n,c]",
    factors="float[c,n,n]",
    root="lower[n,n]|none",
    holds=lambda r: len(r.kernels) in (1, r.n_classes),
)
record(
    Component,
    kernel="kernel",
    f="float[s,n]",
    weight="float[s]",
    jitter="number",
    holds=lambda r: bool((r.weight >= 0.0).all() and r.jitter >= 0.0),
)
record(
    MixturePosterior,
    inputs="inputs[n]",
    components="list(Component)",
    holds=lambda r: (
        len(r.components) > 0
        and all(c.f.shape[1] == len(r.inputs) for c in r.components)
        and abs(float(r.weight.sum()) - 1.0) < 1e-6
    ),
)
record(
    Chains,
    f="float[c,s,n]|float[c,s,n,k]",
    log_likelihood="float[c,s]",
    accept="float[c,s]",
    accept_points="float[n]|none",
    evaluations="numeric[c]",
    sampler="sampler|hyper_sampler",
    n_warmup="count",
    thin="count",
    jitter="number",
    seconds="number",
    interrupted="bool",
    theta="float[c,s,p]|none",
    note="text",
)

# ----------------------------------------------------------------------------------- models

record(JointPriorMaker, n_classes="count", labels="index[n]|none")
record(
    Problem,
    X="inputs[n]",
    y="float[m]|float[m,c]",
    weight="float[m]|none",
    kernel="kernel",
    likelihood="likelihood",
    inference="approximation|sampling",
    hyperprior="Hyperprior|LogScalePrior|none",
    make_prior="class:DensePrior|JointPriorMaker|InducingPriorMaker",
)
record(
    LatentModel,
    "model",
    problem="Problem",
    posterior="posterior",
    sites="Sites",
    evidence="number|none",
    info="Info",
    learned="Learned|none",
    loo="float[n,2]",
    kernel="kernel",
    holds=lambda r: r.problem.y.shape == (len(r.loo),),
)
record(
    SampledModel,
    "model",
    problem="Problem",
    posterior="MixturePosterior",
    chains="Chains|none",
    draws="float[s,n]",
    evidence="number|none",
    info="Info",
    learned="Learned|none",
    kernel="kernel",
    sites="Sites|none",
    holds=lambda r: r.problem.y.shape == (r.draws.shape[1],) and len(r.draws) > 0,
)
record(
    JointModel,
    problem="Problem",
    likelihood="likelihood",
    posterior="JointPosterior",
    sites="Sites",
    on_latents="Sites",
    tied="bool",
    labels="float[m,c]",
    evidence="number|none",
    info="Info",
    learned="Learned|none",
    loo="float[n,c]",
    kernel="kernel",
)
record(
    JointSampledModel,
    problem="Problem",
    likelihood="likelihood",
    posterior="MixturePosterior",
    n_classes="count",
    labels="float[n,c]",
    chains="Chains|none",
    draws="float[s,n,c]",
    evidence="number|none",
    info="Info",
    learned="Learned|none",
    kernel="kernel",
    sites="none",
    holds=lambda r: (
        len(r.posterior.components) == 1
        and r.n_classes == r.labels.shape[1] >= 2
        and r.posterior.n_draws % r.n_classes == 0 < r.posterior.n_draws
        and len(r.draws) > 0
    ),
)
# ---------------------------------------------------------------------------- inducing inputs

record(Basis, kernel="kernel", Z="float[m,d]", L="lower[m,m]", T="lower[m,m]", jitter="number")
record(Q, mean="float[m,c]", P="float[c,m,m]")
record(
    Fit,
    basis="Basis",
    q="Q",
    next_q="Q",
    bound="number",
    gap="number",
    passes="count",
    gradient="float[p]|none",
    inputs="float[m,d]|none",
    left="number",
)
record(
    Report,
    n_rows="count",
    n_inducing="count",
    passes="count",
    seconds="number",
    left="number",
    jitter="number",
)
record(
    Inducing,
    n="count|text",
    inputs="float[m,d]|none",
    choose="text",
    tol="number",
    move="bool",
    dtype="text",
    rows="list(count)",
    max_refine="count",
    gain="number",
    checkpoint="text|none",
)
record(IndependentPosterior, processes="list(posterior)")
record(InducingPriorMaker, Z="float[m,d]")
record(
    InducingModel,
    "model",
    problem="Problem",
    posterior="posterior",
    sites="Sites",
    evidence="number|none",
    info="Info",
    learned="Learned|none",
    loo="float[n,2]",
    kernel="kernel",
    fit="Fit",
    report="Report",
    data="none",
)
record(
    InducingJointModel,
    problem="Problem",
    likelihood="likelihood",
    posterior="IndependentPosterior",
    sites="Sites",
    on_latents="Sites",
    tied="bool",
    labels="float[m,c]",
    evidence="number|none",
    info="Info",
    learned="Learned|none",
    loo="float[n,c]",
    kernel="kernel",
    fit="Fit",
    report="Report",
    data="none",
)

record(OneVsRest, models="list(model)")
record(OneVsOne, models="list(model)", pairs="list(list(count))")
