"""Markov chains: traces, rank plots and autocorrelations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from gpclass.core.checks import optional
from gpclass.core.protocols import Array
from gpclass.mcmc.chains import diagnose
from gpclass.plotting import style
from gpclass.plotting.base import Display, hyperparameter_names, kernels_of, short_names

BINS = 20  # of the ranks
MOST_LAGS = 60  # maximum lag of the autocorrelation


@dataclass(eq=False, repr=False)
class TraceDisplay(Display):
    """Traces, rank plots and autocorrelations of sampled quantities, with the acceptance rate of each chain.

    Chains that have mixed look alike: traces overlap, the rank histograms of all chains are flat (Vehtari et
    al. 2021), and autocorrelations vanish soon.

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
    ranks : dict of str to ndarray of shape (chains, 20)
        Number of draws of a chain in each bin of the ranks among all draws.
    autocorrelation : dict of str to ndarray of shape (chains, n_lags)
        At lags 0, 1, ..., 60, or as many as there are draws.
    diagnostics : dict of str to gpclass.mcmc.chains.Diagnostics
    axes_ : ndarray of axes
        Three for each quantity.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.datasets import interval
    >>> from gpclass.kernels import RBF
    >>> from gpclass.plotting import TraceDisplay
    >>> X, y, _, _ = interval()
    >>> clf = GaussianProcessClassifier(9.0 * RBF(15.0), inference="mcmc", optimizer=None, random_state=0)
    >>> display = TraceDisplay.from_estimator(clf.fit(X, y), rows=[3])
    >>> list(display.values), display.ranks["f[3]"].shape
    (['log likelihood', 'f[3]'], (4, 20))
    """

    values: dict[str, Array]
    accept: Array
    _: KW_ONLY
    positive: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        stats = optional("arviz_stats.base", "A display of chains", "mcmc").array_stats
        edges = np.linspace(0.5, self.accept.size + 0.5, BINS + 1)
        self.ranks, self.autocorrelation, self.diagnostics = {}, {}, {}
        for name, values in self.values.items():
            ranks = stats.compute_ranks(values, axis=None)
            self.ranks[name] = np.stack([np.histogram(chain, edges)[0] for chain in ranks])
            self.autocorrelation[name] = stats.autocorr(values, axis=1)[:, : MOST_LAGS + 1]
            self.diagnostics[name] = diagnose(values)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, rows: Sequence[int] | None = None, model: int = 0, ax: Any = None
    ) -> Self:
        """Draw the chains of a classifier whose latent function or hyperparameters were sampled.

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
            Three for each quantity.

        Returns
        -------
        TraceDisplay
        """
        chains = estimator.chains_
        chains = chains[model] if isinstance(chains, list) else chains
        values: dict[str, Array] = {}
        if chains.theta is not None:
            names = short_names(hyperparameter_names(kernels_of(estimator)[model]))
            values = {name: np.exp(chains.theta[:, :, i]) for i, name in enumerate(names)}
        positive = set(values)
        values["log likelihood"] = chains.log_likelihood
        f = chains.f if chains.f.ndim == 3 else chains.f[:, :, :, 0]
        rows = [int(np.argmax(diagnose(f).rhat))] if rows is None else rows
        values |= {f"f[{i}]": f[:, :, i] for i in rows}
        return cls(values, chains.accept, positive=positive).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        n = len(self.values)
        self._panels(ax, (n, 3), (9.6, 1.75 * n + 0.5), width_ratios=(1.7, 1.0, 1.0))
        colours, _, lines = zip(*style.STYLES, strict=True)
        for axis in self.axes_:
            style.bare(axis)
            axis.set_prop_cycle(color=colours, linestyle=lines)
        for i, name in enumerate(self.values):
            trace, ranks, lags = self.axes_[3 * i : 3 * i + 3]
            self._trace(trace, name)
            self._ranks(ranks, name)
            self._autocorrelation(lags, name)
            for axis, label in ((trace, "draw"), (ranks, "rank among all draws"), (lags, "lag")):
                axis.set_xlabel(label if i == n - 1 else "")
        for axis, title in zip(self.axes_[1:3], ("ranks", "autocorrelation"), strict=True):
            axis.set_title(title, fontsize=9)
        labels = [f"chain {i + 1}: {rate:.2f} accepted" for i, rate in enumerate(self.accept.mean(axis=1))]
        self.axes_[2].legend(self.axes_[2].lines[1:], labels, loc="upper right", fontsize=7, frameon=False)

    def _trace(self, axis: Any, name: str) -> None:
        axis.plot(self.values[name].T, linestyle="-", linewidth=0.4, alpha=0.8)
        if name in self.positive:
            axis.set_yscale("log")
        found = self.diagnostics[name]
        numbers = f"$\\hat R$ = {float(found.rhat):.3f}, effective draws {float(found.ess_bulk):.0f}"
        axis.set_title(name, loc="left", fontsize=9, fontweight="bold")
        axis.set_title(numbers, loc="right", fontsize=8)
        axis.margins(x=0.0)

    def _ranks(self, axis: Any, name: str) -> None:
        edges = np.linspace(0, self.accept.size, BINS + 1)
        style.reference(axis, self.accept.shape[1] / BINS)
        for chain, counts in enumerate(self.ranks[name]):
            colour, _, line = style.style(chain)
            axis.stairs(counts, edges, baseline=None, color=colour, linewidth=1.1, linestyle=line)
        axis.set_ylim(0.0, None)
        axis.margins(x=0.0)
        axis.locator_params(axis="x", nbins=3)

    def _autocorrelation(self, axis: Any, name: str) -> None:
        axis.axhline(0.0, color=style.GREY, linewidth=0.8)
        lags = self.autocorrelation[name].T
        axis.plot(lags, linewidth=1.1)
        axis.set(xlim=(0, len(lags) - 1), ylim=(min(-0.2, axis.get_ylim()[0]), 1.05))
