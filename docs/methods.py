"""Draw the pictures of the pages about methods, each for a light and for a dark page.

Writes docs/images/method_*_light.png and method_*_dark.png, those of examples/exercise.py, and what that script prints
into docs/guide/exercise.md. Backgrounds are transparent. Arguments choose pictures by name: laplace, ep, variational,
mcmc, dirichlet, exercise.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.special import expit, log_ndtr, loggamma, ndtr
from scipy.stats import multivariate_normal, norm

from gpclass import GaussianProcessClassifier
from gpclass.datasets import interval
from gpclass.inference import EP, VI, Dirichlet, Laplace
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit, Probit
from gpclass.mcmc import HMC, BlockMetropolis, EllipticalSlice, sample
from gpclass.posteriors.target import make_target
from gpclass.priors import DensePrior

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images"
STYLE = {
    "font.size": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "savefig.transparent": True,
}
THEMES = {  # the ink of text and axes, and colours that are clear on the background of the page
    "light": ("0.15", ("#0072B2", "#D55E00", "#009E73", "#AA3377")),
    "dark": ("0.85", ("#56B4E9", "#F5A04C", "#3CC99A", "#E58CC0")),
}
ONE = np.ones(1)


def themed(name: str) -> dict[str, Any]:
    """Return the settings of a theme."""
    ink, colours = THEMES[name]
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return STYLE | dict.fromkeys(inks, ink) | {"axes.prop_cycle": mpl.cycler(color=colours)}


def panels(widths: tuple[float, ...] = (1.0, 1.0)) -> Any:
    import matplotlib.pyplot as plt

    size = {"figsize": (6.2, 2.6), "width_ratios": widths, "layout": "constrained"}
    return plt.subplots(1, len(widths), **size)


def shade(axis: Any, x: Any, density: Any, label: str) -> None:
    """Draw an exact density, as a grey area."""
    axis.fill_between(x, density, color="0.5", alpha=0.35, linewidth=0, label=label)


def one_row(method: Any, variance: float, likelihood: Any) -> tuple[float, float, float]:
    """Return mean and standard deviation of q(f) for one row of class 1, and the log evidence."""
    prior = DensePrior(variance * RBF(1.0, "fixed"), np.zeros((1, 1)))
    result = method(prior, likelihood, ONE)
    return result.conditioned.mean[0], np.sqrt(result.conditioned.var[0]), result.evidence


def laplace() -> Any:
    """Draw one latent value given one label: its exact posterior and the Gaussian at the mode."""
    figure, axes = panels()
    for axis, variance in zip(axes, (4.0, 400.0), strict=True):
        s = np.sqrt(variance)
        f = np.linspace(-2.0 * s, 3.0 * s, 2000)
        density = norm.pdf(f, 0.0, s) * expit(f)
        density /= np.trapezoid(density, f)
        mean, deviation, _ = one_row(Laplace(), variance, Logit())
        shade(axis, f, density, "exact posterior")
        axis.plot(f, norm.pdf(f, mean, deviation), linewidth=1.6, label="Laplace")
        axis.axvline(
            np.trapezoid(f * density, f), color="0.5", linewidth=0.9, linestyle="--", label="exact mean"
        )
        below = f < 0.0, norm.cdf(0.0, mean, deviation)
        text = f"P(f < 0): exact {np.trapezoid(density[below[0]], f[below[0]]):.2f}, Laplace {below[1]:.2f}"
        axis.set(title=f"prior variance {variance:.0f}\n{text}", xlabel="$f$", yticks=[])
    axes[0].set_ylabel("density")
    axes[1].legend(loc="upper right")
    return figure


def ep() -> Any:
    """Draw the tilted distribution of one row and its match, and the likelihood beside its site."""
    figure, (left, right) = panels()
    mean, variance, f = -1.0, 4.0, np.linspace(-6.0, 5.0, 800)
    z = mean / np.sqrt(1.0 + variance)
    mass, ratio = ndtr(z), np.exp(norm.logpdf(z) - log_ndtr(z))
    m = mean + variance * ratio / np.sqrt(1.0 + variance)
    v = variance - variance**2 * ratio * (z + ratio) / (1.0 + variance)
    tau, nu = 1.0 / v - 1.0 / variance, m / v - mean / variance
    tilted = norm.pdf(f, mean, np.sqrt(variance)) * ndtr(f)
    shade(left, f, tilted / mass, "cavity times likelihood")
    left.plot(f, norm.pdf(f, mean, np.sqrt(variance)), ":", linewidth=1.6, label="cavity")
    left.plot(f, norm.pdf(f, m, np.sqrt(v)), linewidth=1.6, label="Gaussian, same moments")
    left.set(xlabel="$f_i$", ylabel="density", ylim=(0.0, 0.52), yticks=[])
    left.set_title("Moments are matched ...")
    left.legend(loc="upper left")
    site = np.exp(nu * f - 0.5 * tau * f**2)
    site *= mass / np.trapezoid(norm.pdf(f, mean, np.sqrt(variance)) * site, f)
    shade(right, f, ndtr(f), r"likelihood $\Phi(f_i)$")
    right.plot(f, site, color="C1", linewidth=1.6, label="site")
    right.set(xlabel="$f_i$", ylim=(0.0, 1.75), yticks=[0.0, 0.5, 1.0])
    right.set_title("... by the site that replaces the likelihood")
    right.legend(loc="upper left")
    return figure


def variational() -> Any:
    """Draw the three Gaussians for one row, and the log evidences of the exercise over the signal variance."""
    figure, (left, right) = panels()
    f, s = np.linspace(-8.0, 22.0, 1500), 5.0
    density = norm.pdf(f, 0.0, s) * ndtr(f)
    shade(left, f, density / np.trapezoid(density, f), "exact posterior")
    lines = {"VI": (VI(), "-"), "EP": (EP(), "--"), "Laplace": (Laplace(), ":")}
    for name, (method, line) in lines.items():
        mean, deviation, _ = one_row(method, s**2, Probit())
        left.plot(f, norm.pdf(f, mean, deviation), line, linewidth=1.6, label=name)
    left.set(xlabel="$f$", ylabel="density", yticks=[], title="One row, prior variance 25")
    left.legend(loc="upper right")
    X, y = interval()[:2]
    sign, variances = np.where(y == 1, 1.0, -1.0), np.geomspace(0.3, 1000.0, 13)
    exact = []
    for variance in variances:
        C = np.eye(len(X)) + sign[:, None] * RBF(15.0)(X) * sign * variance
        normal = multivariate_normal(np.zeros(len(X)), C, maxpts=200_000, abseps=0.0, releps=1e-3, seed=0)
        exact.append(np.log(normal.cdf(np.zeros(len(X)))))
    right.plot(variances, exact, color="0.5", alpha=0.5, linewidth=5.0, label="exact")
    for name, (method, line) in lines.items():
        found = [
            method(DensePrior(variance * RBF(15.0), X), Probit(), sign).evidence for variance in variances
        ]
        right.plot(variances, found, line, linewidth=1.6, label=name)
    right.set(xscale="log", xlabel="signal variance", ylabel="log evidence", title="The exercise, probit")
    right.legend(loc="lower right")
    return figure


def mcmc() -> Any:
    """Draw the first moves of three samplers on the posterior of two neighbouring latent values."""
    import matplotlib.pyplot as plt

    X, y = np.array([[0.0], [1.0]]), np.array([1.0, -1.0])
    K = (9.0 * RBF(2.0))(X)
    target = make_target(Logit(), K, y)
    grid = np.linspace(-7.0, 7.0, 200)
    f = np.stack(np.meshgrid(grid, grid), axis=-1)
    log_density = multivariate_normal(np.zeros(2), K).logpdf(f) + np.log(expit(f * y)).sum(axis=-1)
    density = np.exp(log_density - log_density.max())
    figure, axes = plt.subplots(1, 3, figsize=(6.2, 2.5), sharey=True, layout="constrained")
    samplers = {
        "single values": BlockMetropolis(1, adapt_size=False),
        "elliptical slices": EllipticalSlice(whiten=None),
        "HMC": HMC(),
    }
    for i, (axis, (name, sampler)) in enumerate(zip(axes, samplers.items(), strict=True)):
        chains = sample(target, sampler, n_chains=1, n_draws=25, n_warmup=60, rng=5)
        levels = [0.01, 0.1, 0.3, 0.6, 0.9]
        axis.contourf(grid, grid, density, levels=[*levels, 1.01], colors="0.5", alpha=0.18)
        axis.contour(grid, grid, density, levels=levels, colors="0.5", linewidths=0.6)
        axis.plot(*chains.f[0].T, "-o", color=f"C{i}", markersize=3.0, linewidth=0.9)
        axis.set(title=name, xlabel="$f_1$", xlim=(-7.0, 7.0), ylim=(-7.0, 7.0), aspect="equal")
    axes[0].set_ylabel("$f_2$")
    return figure


def dirichlet() -> Any:
    """Draw the targets with their noise beside the log gamma variables, and the regressions of the exercise."""
    figure, (left, right) = panels((1.0, 1.2))
    eps, f = 0.1, np.linspace(-14.0, 3.0, 800)
    for i, (alpha, name) in enumerate(((1.0 + eps, "own class"), (eps, "other class"))):
        s = np.log1p(1.0 / alpha)
        shade(
            left, f, np.exp(alpha * f - np.exp(f) - loggamma(alpha)), "" if i else "log of a gamma variable"
        )
        left.plot(f, norm.pdf(f, np.log(alpha) - 0.5 * s, np.sqrt(s)), label=f"normal, {name}", linewidth=1.6)
    left.set(
        xlabel="$f$", ylabel="density", yticks=[], ylim=(0.0, 0.62), title="Targets for $\\epsilon = 0.1$"
    )
    left.legend(loc="upper left")
    X, y, grid, _ = interval()
    clf = GaussianProcessClassifier(
        4.0 * RBF(15.0), inference=Dirichlet(eps=eps), optimizer=None, random_state=0
    ).fit(X, y)
    mean, std = clf.predict_latent(grid, return_std=True)
    s = np.log1p(1.0 / (np.eye(2)[y] + eps))
    target = np.log(np.eye(2)[y] + eps) - 0.5 * s
    for c, marker in ((0, "o"), (1, "s")):
        right.fill_between(
            grid[:, 0],
            *(mean[:, c] + k * std[:, c] for k in (-1.0, 1.0)),
            color=f"C{c}",
            alpha=0.2,
            linewidth=0,
        )
        right.plot(grid[:, 0], mean[:, c], color=f"C{c}", linewidth=1.6, label=f"$f_{c}$")
        right.errorbar(
            X[:, 0] + 0.6 * c,
            target[:, c],
            np.sqrt(s[:, c]),
            fmt=marker,
            color=f"C{c}",
            markersize=3,
            linewidth=0.6,
        )
    right.set(xlabel="$x$", ylabel="latent functions and targets", title="Two regressions")
    right.legend(loc="upper right", ncols=2, borderaxespad=0.0)
    return figure


PICTURES: tuple[Callable[[], Any], ...] = (laplace, ep, variational, mcmc, dirichlet)


def exercise() -> None:
    """Draw the figures of the exercise, and write what each step prints into its page."""
    sys.path.insert(0, str(ROOT / "examples"))
    import exercise

    split = exercise.interval()
    fitted, blocks = exercise.fit(split), exercise.vary_blocks(split)
    page = ROOT / "docs" / "guide" / "exercise.md"
    text = page.read_text(encoding="utf-8")
    for step in exercise.report(split, fitted, blocks):
        text = re.sub(
            rf"```text\n{step[0]}\. .*?```",
            lambda _, step=step: f"```text\n{step}\n```",
            text,
            flags=re.DOTALL,
        )
    page.write_text(text, encoding="utf-8")
    for theme in THEMES:
        path = FOLDER / "exercise.png"
        for made in exercise.pictures(split, fitted, blocks, path, **themed(theme)):
            made.rename(made.with_stem(f"{made.stem}_{theme}"))


def main(chosen: list[str]) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    for make in PICTURES:
        for theme in THEMES if not chosen or make.__name__ in chosen else ():
            with plt.rc_context(themed(theme)):
                path = FOLDER / f"method_{make.__name__}_{theme}.png"
                make().savefig(path, dpi=180)
                plt.close("all")
    if not chosen or "exercise" in chosen:
        exercise()


if __name__ == "__main__":
    main(sys.argv[1:])
