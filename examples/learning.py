"""How the default kernel comes about, in one picture: writes docs/images/learning.png, or the file that is named."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF

PATH = Path(__file__).parents[1] / "docs" / "images" / "learning.png"


def spirals(n: int = 1400, turns: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.5
    angle = 2.0 * np.pi * turns * np.sqrt(rng.random(n))
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * (angle * np.where(y, 1.0, -1.0))[:, None]
    return X + 0.4 * rng.normal(size=X.shape), y


def main(path: Path) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, y = spirals()
    clf = GaussianProcessClassifier(random_state=0).fit(X, y)
    few = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None).fit(X[:300], y[:300])
    lengths = 2.0 ** np.arange(-4.0, 5.0)
    looks = [few.log_marginal_likelihood([np.log(4.0), np.log(length)]) for length in lengths]
    with plt.rc_context({"font.size": 8, "axes.linewidth": 0.7}):
        figure, axes = plt.subplots(
            1, 3, figsize=(9.5, 2.8), width_ratios=(1.0, 1.5, 1.0), layout="constrained"
        )
        axes[0].semilogx(lengths, looks, "o-", color="C0", markersize=4)
        best = int(np.argmax(looks))
        axes[0].plot(lengths[best], looks[best], "o", color="C3", markersize=8)
        axes[0].set(xlabel="length scale", ylabel="log evidence, 300 rows", title="starts")
        models = clf.compared_
        for k, each in enumerate(models):
            ended = not np.isfinite(each.value)
            value = each.objective if ended else each.value
            axes[1].plot(value, -k, "<" if ended else "o", color="0.6" if ended else "C0")
        top = max(range(len(models)), key=lambda k: models[k].value)
        axes[1].plot(models[top].value, -top, "o", color="C3", markersize=8)
        axes[1].set_yticks([-k for k in range(len(models))], [each.model for each in models])
        axes[1].set(xlabel="integrated evidence, 300 rows", title="models compared")
        axes[2].plot(1 + np.arange(len(clf.history_)), clf.history_.evidence / len(X), "o-", markersize=4)
        axes[2].set(xlabel="evaluation", ylabel="log evidence per row, all rows", title="the last rung")
        figure.savefig(path, dpi=130)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PATH)
