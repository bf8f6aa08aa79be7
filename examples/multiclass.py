"""Three classes in the plane: regions of the joint model, and where its probabilities are uncertain.

Three noisy arms of a spiral, learned jointly with the multinomial probit. Prints evidence and scores of the
joint model beside those of one class against the rest, and writes docs/images/multiclass.png.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF

FIGURE = Path(__file__).parents[1] / "docs" / "images" / "multiclass.png"
# Told apart by every kind of colour vision.
COLOURS, MARKERS = ("#0072B2", "#D55E00", "#009E73"), ("o", "s", "^")
LIMIT = 2.6


def spiral(n: int = 150, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three arms that wind about the origin, and the arm of each."""
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


def draw(clf: Any, X: np.ndarray, y: np.ndarray, path: Path = FIGURE) -> None:
    """Draw the class probabilities as mixed colours, and the width of their widest interval."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgb

    side = np.linspace(-LIMIT, LIMIT, 121)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    p = clf.predict_proba(grid)
    coarse = np.stack(np.meshgrid(side[::4], side[::4]), axis=-1)
    low, high = clf.predict_interval(coarse.reshape(-1, 2), level=0.9)
    width = (high - low).max(axis=1).reshape(coarse.shape[:2])
    shape = (len(side), len(side))
    colours = np.array([to_rgb(colour) for colour in COLOURS])
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.6), layout="constrained")
    box = {"extent": (-LIMIT, LIMIT) * 2, "origin": "lower", "interpolation": "bilinear"}
    mixed, entropy = p @ colours, -(p * np.log(p)).sum(axis=1, keepdims=True) / np.log(3.0)
    left.imshow((mixed + 0.8 * entropy * (1.0 - mixed)).reshape(*shape, 3), **box)
    for c in range(3):
        margin = p[:, c] - np.delete(p, c, axis=1).max(axis=1)
        left.contour(side, side, margin.reshape(shape), levels=[0.0], colors="0.2", linewidths=1.0)
    shown = right.imshow(width, cmap="cividis", vmin=0.0, vmax=1.0, **box)
    figure.colorbar(shown, ax=right, label="width of the widest 90 % interval", shrink=0.9)
    for axes, title in (
        (left, "class probabilities; paler is less certain"),
        (right, "what is not known of them"),
    ):
        for c, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
            axes.scatter(
                *X[y == c].T,
                c=colour,
                marker=marker,
                s=28,
                edgecolors="white",
                linewidths=0.8,
                label=f"class {c}",
            )
        axes.set(title=title, xlabel="$x_1$", ylabel="$x_2$", xlim=(-LIMIT, LIMIT), ylim=(-LIMIT, LIMIT))
    left.legend(loc="lower right", framealpha=0.9)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    rows = spiral()
    models = fit(*rows)
    report(models, spiral(3000, seed=1))
    draw(models["joint"], *rows)
