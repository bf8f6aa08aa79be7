"""A fitted model: a posterior over latent functions, and a likelihood. All predictions follow from these two.

The warnings of a fit say what did not converge, and whether the model is better than class frequencies alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from gpclass.core.checks import check_numbers
from gpclass.core.frequencies import class_counts, frequency_evidence, no_better
from gpclass.core.protocols import AnySites, Array, Info, Inputs, Likelihood, Objective
from gpclass.core.registry import stored
from gpclass.learning import prediction
from gpclass.learning.maximise import Learned
from gpclass.learning.problem import Problem, SiteObjective
from gpclass.posteriors.process import Process, moments

if TYPE_CHECKING:  # imported late, because most fits do not use them
    from gpclass.mcmc.chains import Chains
    from gpclass.sparse.engine import InducingReport
    from gpclass.sparse.loo import LeaveOut, LeftOut


FEW = 30.0  # with fewer rows the evidence cannot distinguish a relation from chance
CHANCE_NATS = 2.0  # gain that learned hyperparameters often have on labels without any relation to the inputs


class DoubtfulFitWarning(UserWarning):
    """Warning about a fit whose probabilities or intervals are of little use; the message explains why."""


@stored
@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """Latent functions fitted to data, with all results of the fit.

    Missing results are None: sites and leave-one-out probabilities with sampling, chains and draws with an
    approximation, the inducing report and ``objective`` with all rows kept. ``kernel`` is a copy that a user may change
    without affecting predictions.
    """

    likelihood: Likelihood
    posterior: Process
    kernel: Kernel
    evidence: float | None
    info: Info
    problem: Problem
    learned: Learned | None = None
    sites: AnySites | None = None
    latent_sites: AnySites | None = None
    loo: Array | None = None
    # draws of f at the data, with equal weights
    draws: Array | None = None
    chains: Chains | None = None
    inducing: InducingReport | None = None
    objective: Objective | None = field(default=None, metadata={"stored": False})

    def check_stored(self) -> None:
        """Raise unless labels, leave-one-out probabilities and draws have matching shapes."""
        n_latents = self.n_latents
        if self.likelihood.n_latents(3) > 1 and n_latents is None:
            raise ValueError("The likelihood of the model needs a latent function for each class.")
        if self.loo is not None and self.loo.shape[1] != self.n_classes:
            raise ValueError("The leave-one-out probabilities do not match the number of classes.")
        if self.draws is not None and (not len(self.draws) or self.draws.shape[1] != len(self.problem.y)):
            raise ValueError("The number of labels differs from the number of latent values in the draws.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.n_latents or len(self.likelihood.labels)

    @property
    def models(self) -> Sequence[FittedModel]:
        """A tuple of this model alone; a combination has several models."""
        return (self,)

    @property
    def n_latents(self) -> int | None:
        """Number of latent functions; None if there is a single one."""
        return self.posterior.latent_shape[0] if self.posterior.latent_shape else None

    @property
    def decides_by_mean(self) -> bool:
        """Whether the sign of the latent mean is the Bayes decision: one Gaussian, and a symmetric link."""
        gaussian = self.n_latents is None and sum(map(len, self.posterior.weights)) == 1
        return gaussian and self.likelihood.symmetric

    def log_proba(self, X: Inputs, route: str, rng: np.random.Generator) -> Array:
        """Return log class probabilities, shape (n, n_classes)."""
        if route == "map":
            return self.likelihood.log_classes(self.posterior.mean(X))
        out, noise = np.empty((len(X), self.n_classes)), prediction.normals(self.posterior, rng)
        for rows, parts in self.posterior.blocks(X):
            out[rows] = prediction.log_proba(self.likelihood, parts, route, noise)
        return out

    def latent(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and variance of f at each row, each (n,) or (n, C)."""
        mean, cov = self.posterior.latent(X)
        return mean, cov if self.n_latents is None else np.einsum("icc->ic", cov).copy()

    def difference(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and variance, each (n,), of the latent function of two classes: f, or f_1 - f_0."""
        mean, var = np.empty((2, len(X)))
        for rows, parts in self.posterior.blocks(X):
            mean[rows], var[rows] = moments(prediction.one_function(parts))
        return mean, var

    def covariance(self, X: Inputs) -> tuple[Array, Array]:
        """Return mean and full covariance of f over the rows; with several functions (n, C, C) at each row."""
        return self.posterior.covariance(X) if self.n_latents is None else self.posterior.latent(X)

    def marginals(self, X: Inputs, n_samples: int, rng: np.random.Generator) -> Array:
        """Return draws of f at each row separately, (n, n_samples); all rows use the same random numbers."""
        weight = np.concatenate(self.posterior.weights)
        chosen = rng.choice(len(weight), size=n_samples, p=weight / weight.sum()) if len(weight) > 1 else [0]
        z, out = rng.standard_normal(n_samples), np.empty((len(X), n_samples))
        for rows, parts in self.posterior.blocks(X):
            means, stds = prediction.joined(parts)
            out[rows] = means[:, chosen] + stds[:, chosen] * z
        return out

    def interval(self, X: Inputs, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return credible intervals: exact for the second of two classes; by Monte Carlo, (n, C), for more classes."""
        check_numbers("(0, 1)", level=level)
        if self.n_classes == 2:
            low, high = np.empty((2, len(X)))
            for rows, parts in self.posterior.blocks(X):
                low[rows], high[rows] = prediction.link_interval(self.likelihood, parts, level)
            return low, high
        low, high = np.empty((2, len(X), self.n_classes))
        noise, tails = prediction.normals(self.posterior, rng), [0.5 - 0.5 * level, 0.5 + 0.5 * level]
        if len(noise) == 1 and len(self.posterior.weights[0]) == 1:  # antithetic pairs
            half = noise[0][: len(noise[0]) // 4]
            noise = [np.concatenate([half, -half])]
        for rows, parts in self.posterior.blocks(X):
            for i in range(rows.stop - rows.start):
                one = [replace(part, mean=part.mean[i : i + 1], cov=part.cov[i : i + 1]) for part in parts]
                p = np.exp(self.likelihood.log_classes(prediction.class_draws(one, noise)[0]))
                low[rows.start + i], high[rows.start + i] = np.quantile(p, tails, axis=0)
        return low, high

    # ------------------------------------------------------------------ evidence and training rows

    @property
    def class_counts(self) -> Array:
        """Total weight of the training rows of each class."""
        problem = self.problem
        if self.inducing is not None:
            return self.inducing.counts
        return class_counts(problem.y, problem.weight, self.likelihood.labels)

    def evidence_at(self, theta: Array, eval_gradient: bool) -> tuple[float, Array | None]:
        """Return the log evidence at other hyperparameters, and its gradient if requested."""
        objective = self.objective
        if objective is None and self.inducing is not None:
            raise ValueError(
                "The evidence at other hyperparameters needs the training rows, which this model does not keep: "
                "fit it again."
            )
        if objective is None and self.draws is not None:
            raise ValueError(f"{self.problem.inference!r} has no evidence at other hyperparameters.")
        if objective is None:
            objective = SiteObjective(self.problem)
        end = objective.evaluate(theta, self.sites, gradient=eval_gradient)
        if not end.info.converged:
            warnings.warn(unconverged(objective.description, end.info), ConvergenceWarning, stacklevel=4)
        return end.evidence, end.gradient

    @property
    def interrupted(self) -> bool:
        """Whether learning or sampling was interrupted."""
        return any(end is not None and end.interrupted for end in (self.learned, self.chains))

    def loo_log_proba(self) -> Array | None:
        """Return the leave-one-out log class probabilities of all data points; None if unknown.

        With inducing inputs it takes a pass over the rows, which must be available (``sparse.loo``).
        Sampled draws have weights 1 / p(y_i|f_i), smoothed as in PSIS-LOO (Vehtari, Gelman & Gabry 2017); of a
        data point that represents several copies, one is left out.
        """
        if self.inducing is not None:
            found = self._left_out(keep=True)
            none = np.empty((0, self.n_classes))
            return None if found is None else np.concatenate([none, *found.log_proba])
        if self.draws is None or self.problem.likelihood is None:
            return self.loo
        from gpclass.sampling import pareto_smooth

        problem, f = self.problem, self.draws
        y = problem.y
        log_p = np.asarray(problem.likelihood.log_prob(y, f))
        counts = problem.counts
        log_p = log_p * (np.minimum(counts, 1.0) if f.ndim == 2 else 1.0 / np.maximum(counts, 1.0))
        out = np.empty((len(y), self.n_classes))
        for i in range(len(y)):
            smoothed, _ = pareto_smooth(-log_p[:, i])
            L = self.likelihood.log_classes(f[:, i]) + smoothed[:, None]
            out[i] = logsumexp(L, axis=0) - logsumexp(smoothed)
        return out

    def loo_log_score(self) -> float | None:
        """Return the mean leave-one-out log probability of the labels with inducing inputs; None if unknown."""
        found = self._left_out(keep=False)
        return None if found is None else found.score / max(found.n_rows, 1)

    def _left_out(self, *, keep: bool) -> LeftOut | None:
        """Pass over the rows, and keep the probabilities of each row or add up their scores."""
        objective: Any = self.objective
        if self.inducing is None or objective is None:
            return None
        return objective.engine.data.total(replace(left_out(self), keep=keep))


def left_out(model: Any) -> LeaveOut:
    """Return the pass that computes leave-one-out probabilities of a model with inducing inputs."""
    from gpclass.priors.inducing import make_basis
    from gpclass.sparse.loo import leave_out

    report, offset = model.inducing, getattr(model.posterior, "offset", None)
    basis = make_basis(model.problem.kernel, report.Z, report.jitter)
    return leave_out(model.objective.engine, basis, model.likelihood, report.q, offset)


def unconverged(description: str, info: Info) -> str:
    """Return the warning for a method that reached its maximum number of iterations."""
    return (
        f"{description} did not converge in {info.n_iter} iterations (residual {info.residual:.3g}): "
        "raise its max_iter (max_iter_predict of the classifier)."
    )


# -------------------------------------------------------------------------- warnings of a fit


def complaints(models: Sequence[FittedModel], given: Any) -> Iterator[tuple[str, type[Warning]]]:
    """Yield the text and the category of every warning about a fit.

    ``given`` is the kernel as the user gave it; bounds are reported if it is an object, not a name or None.
    """
    failed, bounds = list[str](), list[str]()
    for model in models:
        if model.learned is not None and model.learned.message:
            failed.append(model.learned.message)
        if not model.info.converged:
            failed.append(unconverged(repr(model.problem.inference), model.info))
        if (chains := model.chains) is not None:
            kept = f"Sampling was interrupted: the first {chains.n_draws} draws of each chain are kept."
            failed += [kept] * chains.interrupted
            failed.extend(filter(None, [chains.complaint()]))
    if not isinstance(given, str | None):
        sampled = [model.chains is not None and model.chains.theta is not None for model in models]
        learned = [model for model, drawn in zip(models, sampled, strict=True) if model.learned and not drawn]
        bounds = [sentence for model in learned for sentence in bound_messages(model.kernel)]
    for sentence in failed + bounds:
        yield sentence, ConvergenceWarning
    if not failed and (reason := doubt(models)):
        remedy = "try other columns, kernel='matern12' or further starts (n_restarts_optimizer)"
        if any("length_scale" in sentence for sentence in bounds):
            remedy = "widen the bounds of the length scales, standardise the columns, or use kernel='rbf'"
        yield f"The fit {reason}; {remedy}.", DoubtfulFitWarning


def doubt(models: Sequence[FittedModel]) -> str:
    """Return why a fit with learned hyperparameters is no better than class frequencies; '' if it is better.

    Several two-class models are judged by their mean evidence. With inducing inputs the evidence is a bound, which may
    be far too low, so that the leave-one-out score is compared as well.
    """
    counts = [model.class_counts for model in models]
    evidences: list[Any] = [
        model.evidence for model in models if model.learned and model.problem.is_of_labels
    ]
    if None in evidences or len(evidences) < len(models) or np.sum(counts) < FEW * len(models):
        return ""
    baseline = float(np.mean([frequency_evidence(each) for each in counts]))
    objection = no_better(float(np.mean(evidences)), baseline, margin=CHANCE_NATS)
    scores = [model.loo_log_score() for model in models] if objection and models[0].inducing else [None]
    if None in scores:
        return objection
    score = np.mean([score * each.sum() for score, each in zip(scores, counts, strict=True)])
    return no_better(float(score), baseline, "leave-one-out log score", CHANCE_NATS)


def bound_messages(kernel: Any) -> Iterator[str]:
    """Yield a sentence, in scikit-learn's words, for each hyperparameter whose optimum is at a bound."""
    position, bounds, theta = 0, kernel.bounds, kernel.theta  # slow for nested kernels: read once
    for hyper in (h for h in kernel.hyperparameters if not h.fixed):
        for dimension in range(hyper.n_elements):
            close = np.isclose(bounds[position], theta[position])
            position += 1
            if close.any():
                side, change = ("lower", "Decreasing") if close[0] else ("upper", "Increasing")
                yield (
                    f"The optimal value found for dimension {dimension} of parameter {hyper.name} is "
                    f"close to the specified {side} bound {hyper.bounds[dimension][int(not close[0])]}. "
                    f"{change} the bound and calling fit again may find a better value."
                )
