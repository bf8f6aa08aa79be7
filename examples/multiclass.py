"""Three classes in the plane: the regions of the joint model, and the uncertainty of its probabilities.

Three noisy arms of a spiral, learned jointly with the multinomial probit. Prints evidence and scores of the
joint model beside those of one class against the rest, and writes a figure: build/multiclass.png, or the path
given as an argument.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.plotting import PredictiveContourDisplay
from gpclass.plotting.style import SEQUENTIAL, scatter_classes

FIGURE = Path(__file__).parents[1] / "build" / "multiclass.png"


def spiral(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three arms that wind around the origin, and the arm of each."""
    rng = np.random.default_rng(seed)
    arm, radius = np.arange(n) % 3, rng.uniform(0.2, 2.1, size=n)
    angle = 1.2 * radius + 2.0 * np.pi * arm / 3.0
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X + 0.4 * rng.normal(size=X.shape), arm


def fit(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return the fitted classifiers: joint, and one class against the rest."""
    return {
        way: GaussianProcessClassifier(4.0 * RBF(1.0), multi_class=way).fit(X, y)
        for way in ("joint", "one_vs_rest")
    }


def report(fitted: dict[str, Any], test: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = test
    print(f"{'':12}  log evidence  log loss  error   (on {len(y)} new rows)")
    for way, clf in fitted.items():
        loss = -clf.predict_log_proba(X)[np.arange(len(y)), y].mean()
        evidence = f"{clf.log_marginal_likelihood_value_:12.2f}" if way == "joint" else f"{'–':>12}"
        print(f"{way:12}  {evidence}  {loss:8.3f}  {1.0 - clf.score(X, y):5.3f}")
    print(fitted["joint"].check_approximation(1000, random_state=0))


def draw(clf: Any, X: np.ndarray, y: np.ndarray, path: Path) -> None:
    """Draw the class probabilities, and the width of the widest of their credible intervals."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.6), layout="constrained")
    display = PredictiveContourDisplay.from_estimator(clf, X, y, ax=left, grid_resolution=101)
    x0, x1 = display.x0[::4], display.x1[::4]
    low, high = clf.predict_interval(np.stack(np.meshgrid(x0, x1), axis=-1).reshape(-1, 2), level=0.9)
    width = (high - low).max(axis=1).reshape(len(x1), len(x0))
    shown = right.contourf(x0, x1, width, levels=np.linspace(0.0, 1.0, 21), cmap=SEQUENTIAL)
    label = "width of the widest 90 % interval"
    figure.colorbar(shown, ax=right, label=label, ticks=np.linspace(0.0, 1.0, 6))
    scatter_classes(right, X, y, clf.classes_)
    right.set(xlabel="$x_1$", xlim=left.get_xlim(), ylim=left.get_ylim())
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(path: Path = FIGURE) -> None:
    rows = spiral()
    models = fit(*rows)
    report(models, spiral(3000, seed=1))
    draw(models["joint"], *rows, path)
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
