"""Laplace, EP, VI and MCMC with both likelihoods, at learned hyperparameters, on the interval problem.

MCMC takes the hyperparameters that EP has learned, so that beside EP it shows what EP's Gaussian misses.
Prints a table and writes the figure docs/images/demo.png.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.stats import lognorm

from gpclass.comparison import Comparison, ComparisonRow, compare
from gpclass.datasets import Split, interval
from gpclass.kernels import RBF, ConstantKernel
from gpclass.mcmc import MCMC

FIGURE = Path(__file__).parents[1] / "docs" / "images" / "demo.png"
METHODS = {"Laplace": "laplace", "EP": "ep", "VI": "vi", "MCMC": MCMC(n_draws=2000)}
# Told apart by every kind of colour vision.
COLOURS = {"Laplace": "#0072B2", "EP": "#D55E00", "VI": "#009E73", "MCMC": "#CC79A7"}
GREY, REGION = "0.45", "0.93"
GRID = np.linspace(-5.0, 104.0, 250)[:, None]


def run(split: Split) -> Comparison:
    # A smooth function that is large enough separates the classes without error, so that the evidence has
    # little to say against ever larger ones. The prior on the signal variance does.
    return compare(
        split.X,
        split.y,
        methods={
            f"{name}, {likelihood}": (method, likelihood)
            for likelihood in ("logit", "probit")
            for name, method in METHODS.items()
        },
        kernel=ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3)),
        hyperprior={"constant_value": lognorm(1.0, scale=10.0)},
        X_test=split.X_test,
        y_test=split.y_test,
        random_state=0,
    )


def picture(split: Split, comparison: Comparison) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    likelihood = comparison.best("log_loss").likelihood
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            2, 4, figsize=(11.6, 4.9), sharex=True, sharey="row", layout="constrained"
        )
        for column, name in zip(axes.T, METHODS, strict=True):
            row = comparison[f"{name}, {likelihood}"]
            draw(column, split, row, COLOURS[name])
            column[0].set_title(name, loc="left", fontsize=10, fontweight="bold")
            column[0].set_title(numbers(row), loc="right", fontsize=7.5)
        axes[0, 0].set_ylabel(r"latent function $f(x)$")
        axes[1, 0].set_ylabel(r"class probability $p(y = 1 \mid x)$")
        axes[1, 0].set_yticks([0.0, 0.5, 1.0])
        axes[1, 0].set_ylim(-0.07, 1.07)
        axes[1, 0].set_xlim(GRID[0, 0], GRID[-1, 0])
        figure.legend(handles=key(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
        figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
        FIGURE.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(FIGURE, dpi=170)
        plt.close(figure)


def numbers(row: ComparisonRow) -> str:
    # Draws have no evidence of their own: that of importance sampling stands in.
    evidence = row.corrected_evidence if row.evidence is None else row.evidence
    return f"log evidence {evidence:.2f}, log loss {row.log_loss:.3f}".replace("-", "−")


def key() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    dot = {"linestyle": "", "marker": "o", "markersize": 4, "markeredgecolor": "black"}
    return [
        Line2D([], [], color="0.3", linewidth=1.8, label="mean"),
        Patch(facecolor="0.75", edgecolor="0.5", linewidth=0.6, label="95 % credible band"),
        Line2D([], [], markerfacecolor="black", label="training row of class 1", **dot),
        Line2D([], [], markerfacecolor="white", label="training row of class 0", **dot),
        Patch(facecolor=REGION, label="where class 0 is true"),
    ]


def draw(column: Any, split: Split, row: ComparisonRow, colour: str) -> None:
    top, bottom = column
    clf, x = row.estimator, GRID[:, 0]
    mean = clf.predict_latent(GRID)
    bands = {top: latent_band(clf), bottom: clf.predict_interval(GRID, level=0.95)}
    for axis, middle, level in ((top, mean, 0.0), (bottom, clf.predict_proba(GRID)[:, 1], 0.5)):
        axis.axvspan(25.5, 59.5, color=REGION, linewidth=0, zorder=0)
        axis.axhline(level, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
        axis.fill_between(x, *bands[axis], color=colour, alpha=0.22, linewidth=0, zorder=2)
        for end in bands[axis]:
            axis.plot(x, end, color=colour, alpha=0.6, linewidth=0.6, zorder=2)
        axis.plot(x, middle, color=colour, linewidth=1.8, zorder=3)
    for label, face in ((0, "white"), (1, "black")):
        chosen = split.X[split.y == label, 0]
        bottom.scatter(
            chosen, np.full(len(chosen), label), s=14, color=face, edgecolor="black", linewidth=0.8, zorder=4
        )
    bottom.set_xlabel("$x$")


def latent_band(clf: Any) -> Any:
    if hasattr(clf, "chains_"):  # skewed: quantiles of draws, which are the same functions for every x
        return np.quantile(clf.sample_latent(GRID, 10_000, random_state=0), [0.025, 0.975], axis=1)
    mean, std = clf.predict_latent(GRID, return_std=True)
    return mean - 1.96 * std, mean + 1.96 * std


def main() -> None:
    split = interval()
    comparison = run(split)
    print(comparison)
    picture(split, comparison)
    print(f"\nfigure: {FIGURE}")


if __name__ == "__main__":
    main()
