"""The classic exercise: class 0 for 25 < x < 60, class 1 elsewhere on 0..99, learned from 20 points.

The kernel is exp(-0.005 (x - z)²), its hyperparameters are fixed, and the posterior of the latent function is
approximated (Laplace, EP, VI) and sampled: by Metropolis steps on blocks of latent values, proposed from
their conditional prior, and by Hamiltonian Monte Carlo. Prints two tables and writes two figures,
build/exercise.png (or the path given as an argument) and build/exercise_sampling.png beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.stats import norm

from gpclass import GaussianProcessClassifier
from gpclass.datasets import Split, interval
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit
from gpclass.mcmc import HMC, MCMC, BlockMetropolis, Chains, sample
from gpclass.plotting import LatentDisplay
from gpclass.posteriors.target import make_target

FIGURE = Path(__file__).parents[1] / "build" / "exercise.png"
METHODS = {
    "Laplace": "laplace",
    "EP": "ep",
    "VI": "vi",
    "Metropolis": MCMC(BlockMetropolis(), thin=5),
    "HMC": MCMC(HMC()),
}
COLOURS = dict(zip(METHODS, ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7"), strict=True))
BLOCKS = {"1": ("#56B4E9", "v"), "4": ("#0072B2", "s"), "adapted": ("#E69F00", "o"), "20": ("0.25", "D")}
WATCHED = 33.0  # the training input whose latent value is traced
REGION = "0.93"


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
    """Return the acceptance rates of a sampler, the effective number of its draws, and R-hat."""
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


# ------------------------------------------------------------------------------- the figures


STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7}


def pictures(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains], path: Path) -> list[Path]:
    """Write two figures, what the methods predict and how the samplers move, and return their paths."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    paths = [path, path.with_stem(f"{path.stem}_sampling")]
    path.parent.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        for make, where in zip((draw_methods, draw_samplers), paths, strict=True):
            figure = make(split, fitted, blocks)
            figure.savefig(where, dpi=140)
            plt.close(figure)
    return paths


def draw_methods(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> Any:
    import matplotlib.pyplot as plt

    size = {"figsize": (11.0, 4.6), "sharex": True, "sharey": "row", "layout": "constrained"}
    figure, axes = plt.subplots(2, len(fitted), **size)
    for column, (name, clf) in zip(axes.T, fitted.items(), strict=True):
        draw(column, split, clf, COLOURS[name])
        column[0].set_title(name, loc="left", fontsize=10, fontweight="bold")
        column[0].set_title(f"log loss {log_loss(clf, split):.3f}", loc="right", fontsize=8)
    for axis in axes[:, 1:].ravel():
        axis.set_ylabel("")
    return figure


def draw_samplers(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> Any:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(8.4, 6.4), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1.0, 1.15])
    left, right = upper.subplots(1, 2, width_ratios=[1.3, 1.0])
    watched = int(np.argmin(np.abs(split.X[:, 0] - WATCHED)))
    draw_rates(left, split, blocks)
    draw_density(right, fitted, split.X, watched)
    traces = {
        "blocks of 4": (blocks["4"], BLOCKS["4"][0]),
        "blocks adapted": (blocks["adapted"], BLOCKS["adapted"][0]),
        "HMC": (fitted["HMC"].chains_, COLOURS["HMC"]),
    }
    draw_traces(lower.subplots(len(traces), 1, sharex=True, sharey=True), traces, watched)
    return figure


def draw(column: Any, split: Split, clf: Any, colour: str) -> None:
    """Draw mean and 95 % band of the latent function, and of the probability below."""
    options = {"eps": 0.02, "legend": False, "color": colour}
    LatentDisplay.from_estimator(clf, split.X, split.y, ax=column, **options)
    for axis in column:
        axis.axvspan(25.5, 59.5, color=REGION, linewidth=0, zorder=0)


def draw_rates(axis: Any, split: Split, blocks: dict[str, Chains]) -> None:
    for size, chains in blocks.items():
        colour, marker = BLOCKS[size]
        look = {"color": colour, "marker": marker, "markersize": 3.5, "linewidth": 0.8}
        axis.plot(split.X[:, 0], chains.accept_points, label=size, **look)
    axis.axvspan(25.5, 59.5, color=REGION, linewidth=0, zorder=0)
    axis.set(xlabel="$x$ of the training points", ylabel="acceptance rate", ylim=(-0.03, 1.05))
    axis.set_title("Block Metropolis", loc="left", fontsize=10, fontweight="bold")
    axis.legend(title="block size", frameon=False, fontsize=7.5, title_fontsize=7.5, ncols=2, loc=(0.0, 0.53))


def draw_traces(axes: Any, traces: dict[str, tuple[Chains, str]], watched: int) -> None:
    for axis, (name, (chains, colour)) in zip(axes, traces.items(), strict=True):
        axis.plot(chains.f[0, :500, watched], color=colour, linewidth=0.7)
        ess = chains.diagnostics().ess_bulk[watched]
        worth = f"{name}: {ess:.0f} effective of {chains.n_chains * chains.n_draws} draws"
        axis.text(1.0, 1.0, worth, ha="right", va="bottom", transform=axis.transAxes, fontsize=7.5)
    axes[0].set_title(f"Trace of $f({WATCHED:.0f})$", loc="left", fontsize=10, fontweight="bold")
    axes[-1].set(xlabel="draw", xlim=(0, 500))


def draw_density(axis: Any, fitted: dict[str, Any], X: Any, watched: int) -> None:
    """Draw the posterior of one latent value by each method."""
    x, f = X[watched], np.linspace(-4.0, 2.5, 300)
    draws = fitted["HMC"].chains_.flat()[:, watched]
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
    paths = pictures(split, fitted, blocks, path)
    print("\nfigures: " + ", ".join(map(str, paths)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
