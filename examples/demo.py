"""Scikit-learn's Gaussian process beside four methods of gpclass, on the interval problem.

Laplace, EP, VI and MCMC learn the hyperparameters with both likelihoods. MCMC uses those that EP has learned, so the
difference between them is the error of EP's Gaussian approximation. Prints a table with its findings, and writes a
figure: build/demo.png, or the path given as an argument.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.stats import lognorm

from gpclass.comparison import Comparison, ComparisonRow, compare
from gpclass.datasets import Split, interval
from gpclass.kernels import RBF, ConstantKernel
from gpclass.mcmc import MCMC
from gpclass.plotting.style import scatter_classes, style

FIGURE = Path(__file__).parents[1] / "build" / "demo.png"
METHODS = {"Laplace": "laplace", "EP": "ep", "VI": "vi", "MCMC": MCMC(n_draws=2000)}
THEIRS = "scikit-learn"
REGION = "0.93"


def run(split: Split) -> Comparison:
    # The classes can be separated without error, so the evidence alone hardly bounds the signal variance from
    # above: a prior does.
    ours = {
        f"{name}/{likelihood}": (method, likelihood)
        for likelihood in ("probit", "logit")
        for name, method in METHODS.items()
    }
    return compare(
        split.X,
        split.y,
        methods={THEIRS: "sklearn-gp", **ours},
        kernel=ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3)),
        hyperprior={"constant_value": lognorm(1.0, scale=10.0)},
        X_test=split.X_test,
        y_test=split.y_test,
        random_state=0,
    )


def picture(split: Split, comparison: Comparison, path: Path) -> None:
    """Draw the probabilities of each method; two columns of panels can be read on a phone."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    likelihood = next(label for label in comparison.tied() if "/" in label).split("/")[1]
    shown = {THEIRS: comparison[THEIRS]} | {name: comparison[f"{name}/{likelihood}"] for name in METHODS}
    with plt.rc_context({"font.size": 10, "axes.linewidth": 0.7}):
        size = {"figsize": (7.2, 7.6), "sharex": True, "sharey": True, "layout": "constrained"}
        figure, axes = plt.subplots(3, 2, **size)
        for i, (axis, (name, row)) in enumerate(zip(axes.flat, shown.items(), strict=False)):
            draw(axis, split, row, "0.25" if name == THEIRS else style(i - 1)[0])
            axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
            axis.set_title(f"log loss {row.log_loss:.2f}", loc="right", fontsize=10)
        legend(axes[2, 1], axes[0, 1])
        for axis in axes[:, 0]:
            axis.set_ylabel("p(class 1)")
        for axis in (axes[1, 1], axes[2, 0]):
            axis.set_xlabel("$x$")
            axis.tick_params(labelbottom=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=170)
        plt.close(figure)


def legend(axis: Any, drawn: Any) -> None:
    """Explain the panels in the place of a sixth one."""
    from matplotlib.patches import Patch

    axis.set_axis_off()
    handles, labels = drawn.get_legend_handles_labels()
    names = {"0": "training row of class 0", "1": "training row of class 1"}
    handles, labels = (
        [*handles, Patch(facecolor=REGION)],
        [*(names.get(k, k) for k in labels), "class 0 is true"],
    )
    axis.legend(handles=handles, labels=labels, loc="center", frameon=False)


def draw(axis: Any, split: Split, row: ComparisonRow, colour: str) -> None:
    """Draw the probability of class 1, with its credible band where the method has one."""
    grid = np.linspace(-5.0, 104.0, 300)[:, None]
    if hasattr(row.estimator, "predict_interval"):
        low, high = row.estimator.predict_interval(grid)
        axis.fill_between(
            grid[:, 0], low, high, color=colour, alpha=0.2, linewidth=0, label="95 % credible band"
        )
    axis.plot(
        grid[:, 0], row.estimator.predict_proba(grid)[:, 1], color=colour, linewidth=2.0, label="probability"
    )
    scatter_classes(axis, np.column_stack([split.X[:, 0], split.y]), split.y, (0, 1), s=18, clip_on=False)
    axis.axvspan(25.5, 59.5, color=REGION, linewidth=0, zorder=0)
    axis.set(ylim=(-0.06, 1.06), yticks=[0.0, 0.5, 1.0], xlim=(-5.0, 104.0))
    axis.spines[["top", "right"]].set_visible(False)


def main(path: Path = FIGURE) -> None:
    split = interval()
    comparison = run(split)
    print(comparison)
    picture(split, comparison, path)
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
