"""Which rows to label: rows chosen by their scores against rows chosen at random.

Ten rows of a pool are labelled at first; every further label goes to the row with the best score, and the
kernel is learned again after every fifth label. Prints the log loss on test rows, averaged over eight runs,
and writes a figure: build/active_learning.png, or the path given as an argument.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.stats import lognorm
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gpclass import GaussianProcessClassifier, active
from gpclass.kernels import RBF
from gpclass.plotting.style import bare, style

FIGURE = Path(__file__).parents[1] / "build" / "active_learning.png"
N_START, N_LABELS, EVERY = 10, 60, 5
Chooser = Callable[[Any, np.ndarray, np.random.Generator], int]


def problem(seed: int) -> tuple[np.ndarray, ...]:
    """Return a pool and test rows, with their labels."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)


def best(score: str) -> Chooser:
    return lambda clf, pool, rng: int(active.query(clf, pool, score=score)[0])


CHOICES: dict[str, Chooser] = {
    "random": lambda clf, pool, rng: int(rng.integers(len(pool))),
    "entropy": best("entropy"),
    "BALD": best("bald"),
}


def classifier(kernel: Any, learn: bool) -> Any:
    if not learn:
        return GaussianProcessClassifier(kernel, optimizer=None)
    # Few labels hardly determine the scale of f: priors keep it from diverging.
    priors = {"constant_value": lognorm(1.0, scale=10.0), "length_scale": lognorm(0.5, scale=6.0)}
    return GaussianProcessClassifier(kernel, hyperprior=priors)


def run(choose: Chooser, seed: int, n_labels: int = N_LABELS) -> np.ndarray:
    """Return the log loss on the test rows after each label."""
    pool, test, y, y_test = problem(seed)
    rng = np.random.default_rng(seed)
    labelled = [*rng.permutation(np.flatnonzero(y == 0))[: N_START // 2]]
    labelled += [*rng.permutation(np.flatnonzero(y == 1))[: N_START // 2]]
    kernel, losses = 10.0 * RBF(6.0), []
    while True:
        learn = (len(labelled) - N_START) % EVERY == 0
        clf = classifier(kernel, learn).fit(pool[labelled], y[labelled])
        kernel = clf.kernel_
        losses.append(-clf.predict_log_proba(test)[np.arange(len(test)), y_test].mean())
        if len(labelled) == n_labels:
            return np.array(losses)
        left = np.setdiff1d(np.arange(len(pool)), labelled)
        labelled.append(left[choose(clf, pool[left], rng)])


def table(curves: dict[str, np.ndarray]) -> None:
    counts = [10, 20, 30, 40, 60]
    print(f"{'log loss after labels':22}" + "".join(f"{n:>16}" for n in counts))
    for name, losses in curves.items():
        at = losses[:, [n - N_START for n in counts if n - N_START < losses.shape[1]]]
        error = at.std(axis=0, ddof=1) / np.sqrt(len(at))
        print(
            f"{name:22}" + "".join(f"{m:9.3f} ± {e:.3f}" for m, e in zip(at.mean(axis=0), error, strict=True))
        )


def picture(curves: dict[str, np.ndarray], path: Path) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
    for i, (name, losses) in enumerate(curves.items()):
        colour, marker, line = style(i)
        x = np.arange(N_START, N_START + losses.shape[1])
        mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(len(losses))
        axis.fill_between(x, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
        options = {"color": colour, "marker": marker, "linestyle": line, "markevery": (i, 6)}
        axis.plot(x, mean, label=name, markersize=5, **options)
    axis.set(xlabel="labels", ylabel="log loss on test rows", yscale="log")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if str(value)[-1] in "2468" else "")
    bare(axis)
    axis.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(path: Path = FIGURE, n_runs: int = 8) -> None:
    warnings.filterwarnings("ignore", message="The optimal value found")
    curves = {name: np.array([run(choose, s) for s in range(n_runs)]) for name, choose in CHOICES.items()}
    table(curves)
    picture(curves, path)
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
