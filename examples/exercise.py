"""The classic exercise: class 0 for 25 < x < 60, class 1 elsewhere on 0..99, learned from 20 points.

The kernel is exp(-0.005 (x - z)²), its hyperparameters are fixed, and the posterior of the latent function is
approximated (Laplace, EP, VI) and sampled: by Metropolis steps on blocks of latent values, proposed from
their conditional prior, and by Hamiltonian Monte Carlo. Prints two tables and writes the figure
docs/images/exercise.png.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.special import logit
from scipy.stats import norm

from gpclass import GaussianProcessClassifier
from gpclass.datasets import Split, interval
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit
from gpclass.mcmc import HMC, MCMC, BlockMetropolis, Chains, sample
from gpclass.posteriors.target import make_target

FIGURE = Path(__file__).parents[1] / "docs" / "images" / "exercise.png"
METHODS = {
    "Laplace": "laplace",
    "EP": "ep",
    "VI": "vi",
    "Metropolis": MCMC(BlockMetropolis(), thin=5),
    "HMC": MCMC(HMC()),
}
# Told apart by every kind of colour vision.
COLOURS = dict(zip(METHODS, ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7"), strict=True))
BLOCKS = {"1": ("#56B4E9", "v"), "4": ("#0072B2", "s"), "adapted": ("#E69F00", "o"), "20": ("0.25", "D")}
WATCHED = 33.0  # the training input whose latent value is traced
GREY, REGION = "0.45", "0.93"
GRID = np.arange(100.0)[:, None]


# ------------------------------------------------------------------------------- the models


def fit(split: Split) -> dict[str, Any]:
    """Return a classifier for each method, all at the hyperparameters of the exercise."""
    return {
        name: GaussianProcessClassifier(
            RBF(10.0), inference=method, likelihood="logit", optimizer=None, random_state=0
        ).fit(split.X, split.y)
        for name, method in METHODS.items()
    }


def vary_blocks(split: Split, n_draws: int = 1000) -> dict[str, Chains]:
    """Return chains of block Metropolis with blocks of fixed sizes, and of the size that warming up finds."""
    target = make_target(Logit(), RBF(10.0)(split.X), np.where(split.y == 1, 1.0, -1.0))
    samplers = {
        size: BlockMetropolis() if size == "adapted" else BlockMetropolis(int(size), adapt_size=False)
        for size in BLOCKS
    }
    return {size: sample(target, sampler, n_draws=n_draws, rng=0) for size, sampler in samplers.items()}


# ------------------------------------------------------------------------------- the tables


def log_loss(clf: Any, split: Split) -> float:
    log_proba = clf.predict_log_proba(split.X_test)
    return -float(log_proba[np.arange(len(split.y_test)), split.y_test].mean())


def verdict(chains: Chains) -> str:
    """Return what a sampler accepted, and what its draws are worth."""
    numbers = chains.diagnostics()
    rates = chains.accept.mean(axis=1) if chains.accept_points is None else chains.accept_points
    return (
        f"{chains.accept.mean():8.2f}  {f'{rates.min():.2f} to {rates.max():.2f}':>14}"
        f"  {numbers.ess_bulk.min():8.0f} of {chains.f.shape[0] * chains.f.shape[1]}"
        f"  {numbers.rhat.max():6.3f}"
    )


def table(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> str:
    judged = f"{'accepted':>8}  {'from, to':>14}  {'least ESS':>16}  {'R-hat':>6}"
    lines = [f"{'method':<10}  log loss  log evidence  {judged}"]
    for name, clf in fitted.items():
        evidence = clf.log_marginal_likelihood_value_
        shown = f"{'–':>12}" if evidence is None else f"{evidence:12.3f}"
        chains = verdict(clf.chains_) if hasattr(clf, "chains_") else ""
        lines.append(f"{name:<10}  {log_loss(clf, split):8.4f}  {shown}  {chains}".rstrip())
    lines += ["", f"{'block size':<10}  {judged}"]
    lines += [f"{size:<10}  {verdict(chains)}" for size, chains in blocks.items()]
    return "\n".join(lines)


# ------------------------------------------------------------------------------- the figure


def picture(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains], path: Path) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    style = {"font.size": 8.5, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7}
    with plt.rc_context(style):
        figure = plt.figure(figsize=(11.6, 7.0), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.05, h_pad=0.06)
        upper, lower = figure.subfigures(2, 1, height_ratios=[2.0, 1.15])
        axes = upper.subplots(2, len(fitted), sharex=True, sharey="row")
        for column, (name, clf) in zip(axes.T, fitted.items(), strict=True):
            draw(column, split, clf, COLOURS[name])
            column[0].set_title(name, loc="left", fontsize=10, fontweight="bold")
            column[0].set_title(f"log loss {log_loss(clf, split):.3f}", loc="right", fontsize=8)
        axes[0, 0].set_ylabel("latent function $f(x)$")
        axes[1, 0].set_ylabel(r"probability $p(y = 1 \mid x)$")
        axes[1, 0].set(yticks=[0.0, 0.5, 1.0], ylim=(-0.07, 1.07), xlim=(-1, 100))
        left, middle, right = lower.subfigures(1, 3, width_ratios=[1.15, 1.35, 1.0])
        draw_rates(left.subplots(), split, blocks)
        watched = int(np.argmin(np.abs(split.X[:, 0] - WATCHED)))
        traces = {
            "blocks of 4": (blocks["4"], BLOCKS["4"][0]),
            "blocks adapted": (blocks["adapted"], BLOCKS["adapted"][0]),
            "HMC": (fitted["HMC"].chains_, COLOURS["HMC"]),
        }
        draw_traces(middle.subplots(len(traces), 1, sharex=True, sharey=True), traces, watched)
        draw_density(right.subplots(), fitted, split.X[watched])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=125)
        plt.close(figure)


def draw(column: Any, split: Split, clf: Any, colour: str) -> None:
    """Draw mean and 95 % band of the latent function, and of the probability below."""
    top, bottom = column
    low, high = clf.predict_interval(GRID, level=0.95)
    parts = (
        (top, clf.predict_latent(GRID), (logit(low), logit(high)), 0.0),  # quantiles go through the link
        (bottom, clf.predict_proba(GRID)[:, 1], (low, high), 0.5),
    )
    for axis, middle, band, level in parts:
        axis.axvspan(25.5, 59.5, color=REGION, linewidth=0, zorder=0)
        axis.axhline(level, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        axis.fill_between(GRID[:, 0], *band, color=colour, alpha=0.22, linewidth=0, zorder=2)
        for end in band:
            axis.plot(GRID[:, 0], end, color=colour, alpha=0.6, linewidth=0.6, zorder=2)
        axis.plot(GRID[:, 0], middle, color=colour, linewidth=1.8, zorder=3)
    for label, face in ((0, "white"), (1, "black")):
        x = split.X[split.y == label, 0]
        dots = {"s": 13, "color": face, "edgecolor": "black", "linewidth": 0.8, "zorder": 4}
        bottom.scatter(x, np.full(len(x), label), **dots)
    bottom.set_xlabel("$x$")


def draw_rates(axis: Any, split: Split, blocks: dict[str, Chains]) -> None:
    for size, chains in blocks.items():
        colour, marker = BLOCKS[size]
        look = {"color": colour, "marker": marker, "markersize": 3.5, "linewidth": 0.8}
        axis.plot(split.X[:, 0], chains.accept_points, label=size, **look)
    axis.axvspan(25.5, 59.5, color=REGION, linewidth=0, zorder=0)
    axis.set(xlabel="$x$ of the training points", ylabel="acceptance rate", ylim=(-0.03, 1.05))
    axis.set_title("Block Metropolis", loc="left", fontsize=10, fontweight="bold")
    axis.legend(title="block size", frameon=False, fontsize=7.5, title_fontsize=7.5, ncols=4, loc=(0.0, 0.56))


def draw_traces(axes: Any, traces: dict[str, tuple[Chains, str]], watched: int) -> None:
    for axis, (name, (chains, colour)) in zip(axes, traces.items(), strict=True):
        axis.plot(chains.f[0, :500, watched], color=colour, linewidth=0.7)
        ess = chains.diagnostics().ess_bulk[watched]
        worth = f"{name}: {ess:.0f} effective of {chains.n_chains * chains.n_draws} draws"
        axis.text(1.0, 1.0, worth, ha="right", va="bottom", transform=axis.transAxes, fontsize=7.5)
    axes[0].set_title(f"Trace of $f({WATCHED:.0f})$", loc="left", fontsize=10, fontweight="bold")
    axes[-1].set(xlabel="draw", xlim=(0, 500))


def draw_density(axis: Any, fitted: dict[str, Any], x: Any) -> None:
    """Draw what each method knows of one latent value."""
    f = np.linspace(-4.0, 2.5, 300)
    chains = fitted["HMC"].chains_
    draws = chains.flat()[:, fitted["HMC"].base_estimator_.problem.X[:, 0] == x[0]].ravel()
    axis.hist(draws, bins=40, density=True, color=COLOURS["HMC"], alpha=0.35, label="HMC")
    for name, line in (("Laplace", "-"), ("EP", "--"), ("VI", "-.")):
        mean, std = fitted[name].predict_latent(x[None], return_std=True)
        axis.plot(f, norm.pdf(f, mean, std), color=COLOURS[name], linestyle=line, linewidth=1.4, label=name)
    axis.set(xlabel=f"$f({x[0]:.0f})$", ylabel="density", xlim=(f[0], f[-1]))
    axis.set_title(f"Posterior of $f({x[0]:.0f})$", loc="left", fontsize=10, fontweight="bold")
    axis.legend(frameon=False, fontsize=7.5)


def main(path: Path = FIGURE) -> None:
    split = interval()
    fitted, blocks = fit(split), vary_blocks(split)
    print(table(split, fitted, blocks))
    picture(split, fitted, blocks, path)
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main()
