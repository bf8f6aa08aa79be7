"""Laplace, EP, VI and MCMC with both likelihoods, at learned hyperparameters, on the interval problem.

MCMC uses the hyperparameters that EP has learned, so the difference between them is the error of EP's
Gaussian approximation. Prints a table and writes a figure: build/demo.png, or the path given as an argument.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from scipy.stats import lognorm

from gpclass.comparison import Comparison, ComparisonRow, compare
from gpclass.datasets import Split, interval
from gpclass.kernels import RBF, ConstantKernel
from gpclass.mcmc import MCMC
from gpclass.plotting import LatentDisplay
from gpclass.plotting.style import style

FIGURE = Path(__file__).parents[1] / "build" / "demo.png"
METHODS = {"Laplace": "laplace", "EP": "ep", "VI": "vi", "MCMC": MCMC(n_draws=2000)}
REGION = "0.93"


def run(split: Split) -> Comparison:
    # The classes can be separated without error, so the evidence alone hardly bounds the signal variance from
    # above: a prior does.
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


def picture(split: Split, comparison: Comparison, path: Path) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    likelihood = comparison.best("log_loss").likelihood
    with plt.rc_context({"font.size": 9, "axes.linewidth": 0.7}):
        size = {"figsize": (11.6, 4.9), "sharex": True, "sharey": "row", "layout": "constrained"}
        figure, axes = plt.subplots(2, 4, **size)
        for i, (column, name) in enumerate(zip(axes.T, METHODS, strict=True)):
            row = comparison[f"{name}, {likelihood}"]
            draw(column, split, row, style(i)[0])
            column[0].set_title(name, loc="left", fontsize=10, fontweight="bold")
            column[0].set_title(numbers(row), loc="right", fontsize=7.5)
        for axis in axes[:, 1:].ravel():
            axis.set_ylabel("")
        handles, labels = axes[1, 0].get_legend_handles_labels()
        labels = [f"training row of class {label}" if label in ("0", "1") else label for label in labels]
        handles, labels = [*handles, Patch(facecolor=REGION)], [*labels, "where class 0 is true"]
        place = {"loc": "outside lower center", "ncols": 5, "frameon": False, "fontsize": 8}
        figure.legend(handles=handles, labels=labels, **place)
        figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=170)
        plt.close(figure)


def numbers(row: ComparisonRow) -> str:
    # MCMC has no evidence of its own: that of importance sampling is shown instead.
    evidence = row.corrected_evidence if row.evidence is None else row.evidence
    return f"log evidence {evidence:.2f}, log loss {row.log_loss:.3f}".replace("-", "−")


def draw(column: Any, split: Split, row: ComparisonRow, colour: str) -> None:
    options = {"eps": 0.05, "legend": False, "color": colour}
    LatentDisplay.from_estimator(row.estimator, split.X, split.y, ax=column, **options)
    for axis in column:
        axis.axvspan(25.5, 59.5, color=REGION, linewidth=0, zorder=0)


def main(path: Path = FIGURE) -> None:
    split = interval()
    comparison = run(split)
    print(comparison)
    picture(split, comparison, path)
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
