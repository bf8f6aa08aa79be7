"""Markov chains: their traces and diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from gpclass.core.protocols import Array
from gpclass.mcmc.chains import diagnose
from gpclass.plotting import style
from gpclass.plotting.base import Display, hyperparameter_names, short_names


@dataclass(eq=False, repr=False)
class TraceDisplay(Display):
    """Traces of sampled quantities, with R-hat, effective sample sizes and the acceptance rate of each chain.

    The traces of chains that have mixed overlap. Rank plots, autocorrelations and others are in ArviZ, which takes
    ``clf.chains_.to_arviz()``.

    Parameters
    ----------
    values : mapping of str to ndarray of shape (chains, draws)
        The quantities.
    accept : ndarray of shape (chains, draws)
        Fraction of the proposals accepted for each draw.
    positive : set of str
        Quantities to be drawn on a logarithmic scale.

    Attributes
    ----------
    diagnostics : dict of str to gpclass.mcmc.chains.Diagnostics
    """

    values: dict[str, Array]
    accept: Array
    _: KW_ONLY
    positive: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.diagnostics = {name: diagnose(values) for name, values in self.values.items()}

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, rows: Sequence[int] | None = None, model: int = 0, ax: Any = None
    ) -> Self:
        """Draw the chains of a classifier that sampled f or hyperparameters, and return the display.

        Parameters
        ----------
        estimator : GaussianProcessClassifier
            Fitted with ``inference="mcmc"`` or ``hyperparameters="sample"``.
        rows : sequence of int, default=None
            Training rows whose latent value is drawn (that of the first class, if there are several); None
            draws the one with the largest R-hat. Copies of a row count as one.
        model : int, default=0
            Which of several two-class models.
        ax : array of axes, default=None
            One for each quantity.
        """
        chains, kernel = estimator.chains_, estimator.kernel_
        if isinstance(chains, list):
            chains, kernel = chains[model], kernel.kernels[model]
        values: dict[str, Array] = {}
        if chains.theta is not None:
            names = short_names(hyperparameter_names(kernel))
            values = {name: np.exp(chains.theta[:, :, i]) for i, name in enumerate(names)}
        positive = set(values)
        values["log likelihood"] = chains.log_likelihood
        f = chains.f if chains.f.ndim == 3 else chains.f[:, :, :, 0]
        rows = [int(np.argmax(diagnose(f).rhat))] if rows is None else rows
        values |= {f"f[{i}]": f[:, :, i] for i in rows}
        return cls(values, chains.accept, positive=positive).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        n = len(self.values)
        axes = self._panels(ax, (n, 1), (6.4, 1.75 * n + 0.5), sharex=True)
        for axis, (name, values) in zip(axes, self.values.items(), strict=True):
            for chain, rate in enumerate(self.accept.mean(axis=1)):
                label = f"chain {chain + 1}: {rate:.2f} accepted"
                axis.plot(values[chain], color=style.style(chain)[0], linewidth=0.4, label=label)
            if name in self.positive:
                axis.set_yscale("log")
            found = self.diagnostics[name]
            numbers = f"$\\hat R$ = {float(found.rhat):.3f}, effective draws {float(found.ess_bulk):.0f}"
            axis.set_title(name, loc="left", fontsize=9, fontweight="bold")
            axis.set_title(numbers, loc="right", fontsize=8)
            axis.margins(x=0.0)
            style.bare(axis)
        axes[-1].set_xlabel("draw")
        for line in axes[-1].legend(loc="upper right", fontsize=7, frameon=False).get_lines():
            line.set_linewidth(2.0)
