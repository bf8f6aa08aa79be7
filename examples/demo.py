"""Both likelihoods, at the textbook's hyperparameters and at learned ones, on the interval problem.

Prints a table and writes the figure docs/images/demo.png.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.metrics import log_loss

from gpclass import GaussianProcessClassifier
from gpclass.datasets import Split, interval
from gpclass.kernels import RBF, ConstantKernel

FIGURE = Path(__file__).parents[1] / "docs" / "images" / "demo.png"


def models() -> dict[str, GaussianProcessClassifier]:
    given = ConstantKernel(1.0) * RBF(10.0)
    learned = ConstantKernel(1.0, (1e-2, 1e3)) * RBF(10.0, (1.0, 1e2))
    return {
        f"Laplace, {likelihood}, {how}": GaussianProcessClassifier(
            kernel, likelihood=likelihood, optimizer=optimizer
        )
        for how, kernel, optimizer in (("given", given, None), ("learned", learned, "fmin_l_bfgs_b"))
        for likelihood in ("logit", "probit")
    }


def table(split: Split) -> dict[str, GaussianProcessClassifier]:
    fitted = {}
    print(f"{'model':26} {'log evidence':>12} {'log loss':>9} {'error':>6} {'seconds':>8}  kernel")
    for name, clf in models().items():
        start = time.perf_counter()
        fitted[name] = clf.fit(split.X, split.y)
        seconds = time.perf_counter() - start
        loss = log_loss(split.y_test, clf.predict_proba(split.X_test))
        error = 1.0 - clf.score(split.X_test, split.y_test)
        print(
            f"{name:26} {clf.log_marginal_likelihood_value_:12.4f} {loss:9.4f} {error:6.2f} {seconds:8.4f}  "
            f"{clf.kernel_}"
        )
    return fitted


def picture(split: Split, fitted: dict[str, GaussianProcessClassifier]) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 5.2), sharex=True, sharey="row", layout="constrained")
    grid = np.linspace(-5.0, 104.0, 400)[:, None]
    for column, how in enumerate(("given", "learned")):
        top, bottom = axes[:, column]
        for likelihood, colour, style in (("logit", "#0072B2", "-"), ("probit", "#D55E00", "--")):
            clf = fitted[f"Laplace, {likelihood}, {how}"]
            mean, std = clf.predict_latent(grid, return_std=True)
            low, high = clf.predict_interval(grid, level=0.95)
            for axis, middle, ends in (
                (top, mean, (mean - 1.96 * std, mean + 1.96 * std)),
                (bottom, clf.predict_proba(grid)[:, 1], (low, high)),
            ):
                axis.fill_between(grid[:, 0], *ends, color=colour, alpha=0.15, linewidth=0)
                axis.plot(grid[:, 0], middle, color=colour, linestyle=style, label=likelihood)
        bottom.plot(split.X[:, 0], split.y, "k|", markersize=9)
        bottom.axvspan(25, 60, color="0.5", alpha=0.12, linewidth=0)
        bottom.axhline(0.5, color="0.5", linewidth=0.8)
        top.set_title(f"hyperparameters {how}")
        bottom.set_xlabel("x")
    axes[0, 0].set_ylabel("latent f, 95 % band")
    axes[1, 0].set_ylabel("p(class 1), 95 % band")
    axes[0, 0].legend(frameon=False)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=150)
    print(f"figure: {FIGURE}")


def main() -> None:
    split = interval()
    picture(split, table(split))


if __name__ == "__main__":
    main()
