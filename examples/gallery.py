"""A picture of every display, for the documentation: writes docs/images/display_*.png."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from scipy.stats import lognorm
from sklearn.datasets import load_wine, make_moons

from gpclass import GaussianProcessClassifier, compare
from gpclass.datasets import interval
from gpclass.kernels import RBF, ConstantKernel
from gpclass.mcmc import MCMC
from gpclass.plotting import (
    ComparisonDisplay,
    EvidenceDisplay,
    LatentDisplay,
    PredictiveContourDisplay,
    TraceDisplay,
)

FOLDER = Path(__file__).parents[1] / "docs" / "images"
STYLE = {"font.size": 9, "axes.linewidth": 0.7}


def contour() -> Any:
    X, y = make_moons(120, noise=0.25, random_state=0)
    clf = GaussianProcessClassifier(1.0 * RBF(1.0), cost_matrix=[[0, 1], [4, 0]]).fit(X, y)
    return PredictiveContourDisplay.from_estimator(clf, X, y, latent_std=True, eps=0.25)


def contour_multiclass() -> Any:
    wine = load_wine(as_frame=True)
    X = wine.data[["alcohol", "flavanoids"]]
    y = wine.target_names[wine.target]
    clf = GaussianProcessClassifier(4.0 * RBF([1.0, 1.0])).fit(X, y)
    return PredictiveContourDisplay.from_estimator(clf, X, y, latent_std=True, eps=0.2)


def latent() -> Any:
    X, y, _, _ = interval()
    kernel = ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3))
    clf = GaussianProcessClassifier(kernel, hyperprior={"constant_value": lognorm(1.0, scale=10.0)})
    return LatentDisplay.from_estimator(clf.fit(X, y), X, y)


def trace() -> Any:
    X, y, _, _ = interval()
    clf = GaussianProcessClassifier(
        4.0 * RBF(15.0), inference=MCMC(n_draws=400), hyperparameters="sample", random_state=0
    )
    return TraceDisplay.from_estimator(clf.fit(X, y))


def comparison() -> Any:
    X, y = make_moons(120, noise=0.35, random_state=1)
    Z, z = make_moons(2000, noise=0.35, random_state=2)
    methods = {
        "Laplace": ("laplace", "logit"),
        "EP": "ep",
        "VI": "vi",
        "VI/logit": ("vi", "logit"),
        "MCMC": MCMC(n_draws=500),
    }
    result = compare(X, y, methods=methods, kernel=4.0 * RBF(1.0), X_test=Z, y_test=z, random_state=0)
    return ComparisonDisplay(result).plot()


def evidence() -> Any:
    X, y = make_moons(100, noise=0.3, random_state=0)
    kernel = ConstantKernel(0.3, (1e-3, 1e4)) * RBF(8.0, (1e-2, 1e2))
    clf = GaussianProcessClassifier(kernel).fit(X, y)
    return EvidenceDisplay.from_estimator(clf, limits=((0.1, 1000.0), (0.05, 12.0)), grid_resolution=25)


DISPLAYS = (contour, contour_multiclass, latent, trace, comparison, evidence)


def main(chosen: list[str]) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    for make in DISPLAYS:
        if chosen and make.__name__ not in chosen:
            continue
        with plt.rc_context(STYLE):
            path = FOLDER / f"display_{make.__name__}.png"
            make().figure_.savefig(path, dpi=130)
            plt.close("all")
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
