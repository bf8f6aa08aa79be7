"""The variational bound with inducing inputs as a function of theta: one evaluation is a few passes over the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpclass.core.optimisers import TOL_NATS, Tol
from gpclass.core.protocols import DIFFERENCE, Array, Evaluation, Info, Likelihood
from gpclass.priors.basis import make_basis
from gpclass.sparse.engine import Engine, Fit, Q

MAX_PASSES = 50  # maximum number of passes at one theta; five or six are usual


@dataclass(slots=True, eq=False)
class PassObjective:
    """The bound at the inducing inputs Z; at every theta q is iterated to convergence, starting from the last one."""

    engine: Engine
    kernel: Any
    Z: Array
    jitter: float  # jitter relative to the prior variance
    tol: Tol = TOL_NATS  # gain of another pass, in nats, at which q has converged
    max_passes: int = MAX_PASSES
    start: Q | Fit | None = None  # q, or a fit elsewhere, which provides sites

    @property
    def description(self) -> str:
        """Name of the method, for messages."""
        return "Inference with inducing inputs"

    def evaluate(self, theta: Array, warm: Fit | None = None, *, gradient: bool = True) -> Evaluation:
        """Return the bound at theta, starting from the fit ``warm``."""
        fit = self.fit_at(theta, self.start if warm is None else warm, gradient=gradient)
        # q may be a few nats below its optimum while theta changes; the strategy checks the last fit.
        slope = fit.gradient
        if slope is not None and len(fit.others):
            slope = np.concatenate([slope, (fit.others[0::2] - fit.others[1::2]) / (2.0 * DIFFERENCE)])
        return Evaluation(fit.bound, slope, fit, Info(True, fit.passes, fit.gap))

    def fit_at(self, theta: Array, start: Q | Fit | None, *, gradient: bool) -> Fit:
        """Return q at theta, after passes over the rows until its bound has converged."""
        kernel, likelihood, others = self._model(theta, gradient)
        return replace(self.engine, likelihood=likelihood).converge(
            make_basis(kernel, self.Z, self.jitter),
            start,
            tol=self.tol() if callable(self.tol) else self.tol,
            max_passes=self.max_passes,
            gradient=gradient,
            others=others,
        )

    def _model(self, theta: Array, gradient: bool) -> tuple[Any, Likelihood, tuple[Likelihood, ...]]:
        """Return kernel and likelihood at theta, and the likelihoods nearby that a gradient needs."""
        split = self.kernel.n_dims
        likelihood: Any = self.engine.likelihood
        kernel, rest = self.kernel.clone_with_theta(theta[:split]), theta[split:]
        if not len(rest):
            return kernel, likelihood, ()
        likelihood = likelihood.with_theta(rest)
        steps = DIFFERENCE * np.eye(len(rest)) if gradient else ()
        others = tuple(likelihood.with_theta(rest + sign * e) for e in steps for sign in (1.0, -1.0))
        return kernel, likelihood, others
