"""The textbook exercise of Gaussian-process classification, solved step by step.

Class 0 is the interval 25 < x < 60, class 1 is the rest of 0, 1, ..., 99; twenty of these points are labelled.
The kernel is exp(-0.005 (x - z)²), its hyperparameters are fixed, and p(y = 1 | f) is the logistic function of f.
The steps are those of Rasmussen & Williams (GPML), chapter 3, and of Bishop (PRML), section 6.4: draws from the
prior, Newton's method for the mode, the evidence and its gradient, probabilities at the mode and averaged, Markov
chains, the decision boundary. Steps 1 to 5 are in plain NumPy, and the library's numbers are printed beside them.

Prints every step and writes three figures: build/exercise.png (or the path given as an argument), and
exercise_steps.png and exercise_sampling.png beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from scipy.special import expit, log_expit
from scipy.stats import norm

from gpclass import GaussianProcessClassifier
from gpclass.datasets import Split, interval
from gpclass.inference import Laplace
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit
from gpclass.mcmc import HMC, MCMC, BlockMetropolis, Chains, sample
from gpclass.plotting import LatentDisplay
from gpclass.posteriors.target import make_target

FIGURE = Path(__file__).parents[1] / "build" / "exercise.png"
LENGTH_SCALE = 10.0  # exp(-0.005 (x - z)²) is exp(-(x - z)² / (2 · 10²))
METHODS = {
    "Laplace": Laplace(tol=1e-10),
    "EP": "ep",
    "VI": "vi",
    "Metropolis": MCMC(BlockMetropolis(), thin=5),
    "HMC": MCMC(HMC()),
}
COLOURS = dict(zip(METHODS, ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7"), strict=True))
BLOCKS = {"1": ("#56B4E9", "v"), "4": ("#0072B2", "s"), "adapted": ("#E69F00", "o"), "20": ("0.5", "D")}
WATCHED = 33.0  # the training input whose latent value is traced
SHOWN = (10.0, 25.0, 33.0, 45.0, 60.0, 80.0)  # inputs whose probabilities are printed
REGION = {"color": "0.5", "alpha": 0.15, "linewidth": 0, "zorder": 0}  # where the class is 0


# ------------------------------------------------------------------------------- steps 1 to 5, in NumPy


def kernel(x: Any, z: Any, length_scale: float = LENGTH_SCALE) -> Any:
    """Return the covariances of the latent values at x and at z."""
    return np.exp(-0.5 * (np.subtract.outer(x, z) / length_scale) ** 2)


def draw_prior(x: Any, n_draws: int = 4, seed: int = 3) -> Any:
    """Return draws from N(0, K + 1e-8 I), because K alone is singular to working precision."""
    root = np.linalg.cholesky(kernel(x, x) + 1e-8 * np.eye(len(x)))
    return np.random.default_rng(seed).standard_normal((n_draws, len(x))) @ root.T


class Step(NamedTuple):
    """A point f = K alpha of Newton's method, with Psi (GPML eq. 3.12 without constants) and the log evidence there."""

    f: Any
    alpha: Any
    psi: float
    evidence: float


def point(K: Any, t: Any, alpha: Any) -> Step:
    """Return the point f = K alpha; the evidence is GPML eq. 3.32 and PRML eq. 6.90."""
    f = K @ alpha
    psi = log_expit(np.where(t == 1, f, -f)).sum() - 0.5 * alpha @ f
    root = np.sqrt(expit(f) * expit(-f))  # S, the root of W
    B = np.eye(len(K)) + root[:, None] * K * root
    return Step(f, alpha, psi, psi - 0.5 * np.linalg.slogdet(B)[1])


def newton(K: Any, t: Any, tol: float = 1e-6) -> list[Step]:
    """Return the steps of Newton's method (GPML alg. 3.1, PRML eq. 6.83); labels t are 0 and 1.

    Convergence is quadratic, so that a change of 1e-6 leaves an error of about 1e-12.
    """
    steps = [point(K, t, np.zeros(len(t)))]
    while len(steps) < 2 or np.abs(steps[-1].f - steps[-2].f).max() > tol:
        f = steps[-1].f
        p = expit(f)
        W = p * (1.0 - p)
        S = np.sqrt(W)
        b = W * f + t - p
        inner = np.linalg.solve(np.eye(len(K)) + S[:, None] * K * S, S * (K @ b))
        steps.append(point(K, t, b - S * inner))
    return steps


def gradient(x: Any, t: Any) -> tuple[float, float]:
    """Return d log evidence / d log length scale at a fixed mode, and the part through the mode.

    These are GPML eqs. 5.22 to 5.24 and PRML eqs. 6.91 to 6.94.
    """
    K = kernel(x, x)
    f, alpha, *_ = newton(K, t)[-1]
    dK = K * (np.subtract.outer(x, x) / LENGTH_SCALE) ** 2
    p = expit(f)
    W = p * (1.0 - p)
    R = np.linalg.inv(K + np.diag(1.0 / W))  # fine at this size; the library factors B instead
    explicit = 0.5 * alpha @ dK @ alpha - 0.5 * (R * dK).sum()
    variance = np.diag(K - K @ R @ K)
    slope = 0.5 * variance * W * (2.0 * p - 1.0)  # d log evidence / d f, by l'''
    moved = np.linalg.solve(np.eye(len(K)) + K * W, dK @ alpha)  # d mode / d log length scale
    return explicit, slope @ moved


def predict(x: Any, t: Any, at: Any) -> tuple[Any, Any]:
    """Return mean and variance of latent values (GPML eqs. 3.21, 3.24; PRML eqs. 6.87, 6.88)."""
    K, k = kernel(x, x), kernel(x, at)
    f, alpha, *_ = newton(K, t)[-1]
    R = np.linalg.inv(K + np.diag(1.0 / (expit(f) * expit(-f))))
    return k.T @ alpha, 1.0 - np.einsum("ij,ik,kj->j", k, R, k)


def monte_carlo(x: Any, t: Any, n_blocks: int = 20) -> tuple[float, float]:
    """Return log E[p(y | f)] over 100,000 prior draws per block, and its standard error (GPML eq. 3.30)."""
    total, squares, n_draws = 0.0, 0.0, 100_000
    for seed in range(n_blocks):
        f = draw_prior(x, n_draws, seed)
        likelihood = np.exp(log_expit(np.where(t == 1, f, -f)).sum(axis=1))
        total, squares = total + likelihood.mean() / n_blocks, squares + (likelihood**2).mean() / n_blocks
    return float(np.log(total)), float(np.sqrt((squares / total**2 - 1.0) / (n_blocks * n_draws)))


def average(mean: Any, variance: Any) -> Any:
    """Return E[sigma(f)] for Gaussian f by Gauss-Hermite quadrature (GPML eq. 3.25)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(50)
    return expit(mean[:, None] + np.sqrt(variance)[:, None] * nodes) @ weights / weights.sum()


# ------------------------------------------------------------------------------- the models of the library


def fit(split: Split) -> dict[str, Any]:
    """Return a classifier for each method, all at the hyperparameters of the exercise."""
    return {
        name: GaussianProcessClassifier(
            RBF(LENGTH_SCALE), inference=method, likelihood="logit", optimizer=None, random_state=0
        ).fit(split.X, split.y)
        for name, method in METHODS.items()
    }


def vary_blocks(split: Split, n_draws: int = 1000) -> dict[str, Chains]:
    """Return chains of block Metropolis with blocks of fixed sizes, and of the size that warming up finds."""
    target = make_target(Logit(), RBF(LENGTH_SCALE)(split.X), np.where(split.y == 1, 1.0, -1.0))
    samplers = {
        size: BlockMetropolis() if size == "adapted" else BlockMetropolis(int(size), adapt_size=False)
        for size in BLOCKS
    }
    return {size: sample(target, sampler, n_draws=n_draws, rng=0) for size, sampler in samplers.items()}


# ------------------------------------------------------------------------------- what is printed


def show_prior(split: Split) -> str:
    x = split.X_test[:, 0]
    draws = draw_prior(x)
    signs = [(np.diff(np.sign(f)) != 0).sum() for f in draws]
    near = ", ".join(f"{c:.2f}" for c in kernel(0.0, [5.0, 10.0, 20.0]))
    return "\n".join(
        [
            "1. Draws from the prior, f ~ N(0, K) at x = 0, 1, ..., 99",
            f"   correlation of f(0) with f(5), f(10), f(20): {near}",
            f"   {len(draws)} draws lie between {draws.min():.2f} and {draws.max():.2f}"
            f" and cross zero {', '.join(map(str, signs))} times",
        ]
    )


def show_data(split: Split) -> str:
    def row(label: int) -> str:
        return " ".join(f"{x:.0f}" for x in split.X[split.y == label, 0])

    return f"2. The data, {len(split.y)} points\n   class 0 at x = {row(0)}\n   class 1 at x = {row(1)}"


def show_newton(split: Split, library: float) -> str:
    steps = newton(kernel(*[split.X[:, 0]] * 2), split.y)
    lines = [
        "3. Newton's method for the mode, and the evidence (GPML 3.18, 3.32; PRML 6.83, 6.90)",
        "   step         Psi  log evidence  largest change of f",
    ]
    for i, step in enumerate(steps):
        change = f"{np.abs(step.f - steps[i - 1].f).max():.1e}" if i else ""
        lines.append(f"   {i:4d}  {step.psi:10.6f}  {step.evidence:12.6f}  {change:>19}".rstrip())
    return "\n".join([*lines, f"   gpclass           {library:12.6f}"])


def show_gradient(split: Split, library: float) -> str:
    x, t, h = split.X[:, 0], split.y, 1e-4
    explicit, implicit = gradient(x, t)
    up, down = (newton(kernel(x, x, LENGTH_SCALE * np.exp(d)), t)[-1].evidence for d in (h, -h))
    return "\n".join(
        [
            "4. Gradient of the evidence by the log length scale (GPML 5.22 to 5.24, PRML 6.91 to 6.94)",
            f"   explicit {explicit:.6f} + implicit {implicit:.6f} = {explicit + implicit:.6f}",
            f"   central difference               {(up - down) / (2 * h):.6f}",
            f"   gpclass                          {library:.6f}",
        ]
    )


def show_probabilities(split: Split, laplace: Any, exact: Any) -> str:
    at = np.array(SHOWN)
    mean, variance = predict(split.X[:, 0], split.y, at)
    columns = [
        at,
        mean,
        np.sqrt(variance),
        expit(mean),
        expit(mean / np.sqrt(1.0 + np.pi * variance / 8.0)),
        average(mean, variance),
        laplace.predict_proba(at[:, None])[:, 1],
        exact.predict_proba(at[:, None])[:, 1],
    ]
    lines = [
        "5. Probability of class 1: at the mode, averaged (PRML 4.153, then exactly), by sampling",
        "    x   mean  deviation  at mode  PRML 4.153  averaged  gpclass    HMC",
    ]
    for x, m, s, *p in np.transpose(columns):
        lines.append(
            f"   {x:2.0f}  {m:5.2f}  {s:9.2f}  {p[0]:7.3f}  {p[1]:10.3f}  {p[2]:8.3f}  {p[3]:7.3f}  {p[4]:5.2f}"
        )
    return "\n".join(lines)


def show_methods(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> str:
    judged = f"{'accepted':>8}  {'from, to':>14}  {'least ESS':>16}  {'R-hat':>6}"
    mean, error = monte_carlo(split.X[:, 0], split.y)
    lines = [
        "6. Markov chains beside the other methods",
        f"   log evidence by averaging p(y | f) over prior draws (GPML 3.30): {mean:.3f} ± {error:.3f}",
        f"   {'method':<10}  log loss  log evidence  {judged}",
    ]
    for name, clf in fitted.items():
        evidence = clf.log_marginal_likelihood_value_
        shown = f"{'–':>12}" if evidence is None else f"{evidence:12.3f}"
        chains = verdict(clf.chains_) if hasattr(clf, "chains_") else ""
        lines.append(f"   {name:<10}  {log_loss(clf, split):8.4f}  {shown}  {chains}".rstrip())
    lines += ["", f"   {'block size':<10}  {judged}"]
    lines += [f"   {size:<10}  {verdict(chains)}" for size, chains in blocks.items()]
    return "\n".join(lines)


def show_boundary(fitted: dict[str, Any]) -> str:
    lines = ["7. Decision boundary, where the probability is one half (truth: 25 to 26, 59 to 60)"]
    for name, clf in fitted.items():
        ends = "  ".join(f"{x:6.2f}" for x in boundary(clf))
        lines.append(f"   {name:<10}  {ends}")
    return "\n".join(lines)


def boundary(clf: Any) -> Any:
    """Return the inputs at which the probability crosses one half, by linear interpolation on a fine grid."""
    x = np.linspace(0.0, 99.0, 991)
    p = clf.predict_proba(x[:, None])[:, 1] - 0.5
    i = np.flatnonzero(p[:-1] * p[1:] < 0.0)
    return x[i] + (x[1] - x[0]) * p[i] / (p[i] - p[i + 1])


def log_loss(clf: Any, split: Split) -> float:
    log_proba = clf.predict_log_proba(split.X_test)
    return -float(log_proba[np.arange(len(split.y_test)), split.y_test].mean())


def verdict(chains: Chains) -> str:
    """Return the acceptance rates of a sampler, the effective number of its draws, and R-hat."""
    numbers = chains.diagnostics()
    rates = chains.accept.mean(axis=1) if chains.accept_points is None else chains.accept_points
    return (
        f"{chains.accept.mean():8.2f}  {f'{rates.min():.2f} to {rates.max():.2f}':>14}"
        f"  {numbers.ess_bulk.min():8.0f} of {chains.f.shape[0] * chains.f.shape[1]}"
        f"  {numbers.rhat.max():6.3f}"
    )


def report(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> list[str]:
    """Return the text of each step."""
    laplace = fitted["Laplace"]
    evidence, slope = laplace.log_marginal_likelihood(laplace.kernel_.theta, eval_gradient=True)
    return [
        show_prior(split),
        show_data(split),
        show_newton(split, evidence),
        show_gradient(split, slope[0]),
        show_probabilities(split, laplace, fitted["HMC"]),
        show_methods(split, fitted, blocks),
        show_boundary(fitted),
    ]


# ------------------------------------------------------------------------------- the figures


STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7}
TITLE = {"loc": "left", "fontsize": 10, "fontweight": "bold"}


def pictures(
    split: Split, fitted: dict[str, Any], blocks: dict[str, Chains], path: Path, **style: Any
) -> list[Path]:
    """Write three figures (what the methods predict, the steps, how the samplers move), and return their paths."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    makers = {"": draw_methods, "_steps": draw_steps, "_sampling": draw_samplers}
    paths = [path.with_stem(f"{path.stem}{suffix}") for suffix in makers]
    path.parent.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE | style):
        for make, where in zip(makers.values(), paths, strict=True):
            figure = make(split, fitted, blocks)
            figure.savefig(where, dpi=140)
            plt.close(figure)
    return paths


def draw_steps(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> Any:
    """Draw prior draws, the latent mean after each Newton step, and probabilities at the mode and averaged."""
    import matplotlib.pyplot as plt

    x, grid = split.X[:, 0], split.X_test[:, 0]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.0, 3.0), layout="constrained")
    left.plot(grid, draw_prior(grid).T, linewidth=1.4)
    left.set(xlabel="$x$", ylabel="$f(x)$")
    left.set_title("1. Four draws from the prior", **TITLE)
    for i, step in enumerate(newton(kernel(x, x), split.y)[:3]):
        look = {"color": COLOURS["Laplace"], "alpha": (0.4, 0.7, 1.0)[i], "linestyle": (":", "--", "-")[i]}
        middle.plot(
            grid, kernel(grid, x) @ step.alpha, label=f"{i}: {step.evidence:.3f}", linewidth=1.6, **look
        )
    middle.set(xlabel="$x$", ylabel="$f(x)$")
    middle.set_title("3. Newton steps", **TITLE)
    middle.legend(
        title="step: log evidence", frameon=False, fontsize=7.5, title_fontsize=7.5, loc="upper center"
    )
    mean, variance = predict(x, split.y, grid)
    right.plot(grid, expit(mean), "--", color=COLOURS["EP"], linewidth=1.4, label="at the mode")
    right.plot(grid, average(mean, variance), color=COLOURS["Laplace"], linewidth=1.8, label="averaged")
    right.plot(x, split.y, "o", color="0.5", markersize=3.5, clip_on=False, label="labels")
    right.set(xlabel="$x$", ylabel="p(y = 1 | x)", ylim=(-0.05, 1.05))
    right.set_title("5. Probabilities", **TITLE)
    right.legend(frameon=False, fontsize=7.5, loc=(0.68, 0.3))
    for axis in (middle, right):
        axis.axvspan(25.5, 59.5, **REGION)
    return figure


def draw_methods(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> Any:
    import matplotlib.pyplot as plt

    size = {"figsize": (11.0, 4.6), "sharex": True, "sharey": "row", "layout": "constrained"}
    figure, axes = plt.subplots(2, len(fitted), **size)
    for column, (name, clf) in zip(axes.T, fitted.items(), strict=True):
        draw(column, split, clf, COLOURS[name])
        column[0].set_title(name, **TITLE)
        column[0].set_title(f"log loss {log_loss(clf, split):.3f}", loc="right", fontsize=8)
    for axis in axes[:, 1:].ravel():
        axis.set_ylabel("")
    return figure


def draw_samplers(split: Split, fitted: dict[str, Any], blocks: dict[str, Chains]) -> Any:
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(8.4, 6.4), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1.0, 1.15])
    left, right = upper.subplots(1, 2, width_ratios=[1.3, 1.0])
    watched = int(np.argmin(np.abs(split.X[:, 0] - WATCHED)))
    draw_rates(left, split, blocks)
    draw_density(right, fitted, split.X, watched)
    traces = {
        "blocks of 4": (blocks["4"], BLOCKS["4"][0]),
        "blocks adapted": (blocks["adapted"], BLOCKS["adapted"][0]),
        "HMC": (fitted["HMC"].chains_, COLOURS["HMC"]),
    }
    draw_traces(lower.subplots(len(traces), 1, sharex=True, sharey=True), traces, watched)
    return figure


def draw(column: Any, split: Split, clf: Any, colour: str) -> None:
    """Draw mean and 95 % band of the latent function, and of the probability below."""
    options = {"eps": 0.02, "legend": False, "color": colour}
    LatentDisplay.from_estimator(clf, split.X, split.y, ax=column, **options)
    for axis in column:
        axis.axvspan(25.5, 59.5, **REGION)


def draw_rates(axis: Any, split: Split, blocks: dict[str, Chains]) -> None:
    for size, chains in blocks.items():
        colour, marker = BLOCKS[size]
        look = {"color": colour, "marker": marker, "markersize": 3.5, "linewidth": 0.8}
        axis.plot(split.X[:, 0], chains.accept_points, label=size, **look)
    axis.axvspan(25.5, 59.5, **REGION)
    axis.set(xlabel="$x$ of the training points", ylabel="acceptance rate", ylim=(-0.03, 1.05))
    axis.set_title("Block Metropolis", **TITLE)
    axis.legend(
        title="block size", frameon=False, fontsize=7.5, title_fontsize=7.5, ncols=4, loc=(0.22, 0.52)
    )


def draw_traces(axes: Any, traces: dict[str, tuple[Chains, str]], watched: int) -> None:
    for axis, (name, (chains, colour)) in zip(axes, traces.items(), strict=True):
        axis.plot(chains.f[0, :500, watched], color=colour, linewidth=0.7)
        ess = chains.diagnostics().ess_bulk[watched]
        worth = f"{name}: {ess:.0f} effective of {chains.n_chains * chains.n_draws} draws"
        axis.text(1.0, 1.0, worth, ha="right", va="bottom", transform=axis.transAxes, fontsize=7.5)
    axes[0].set_title(f"Trace of $f({WATCHED:.0f})$", **TITLE)
    axes[-1].set(xlabel="draw", xlim=(0, 500))


def draw_density(axis: Any, fitted: dict[str, Any], X: Any, watched: int) -> None:
    """Draw the posterior of one latent value by each method."""
    x, f = X[watched], np.linspace(-4.0, 2.5, 300)
    draws = fitted["HMC"].chains_.flat()[:, watched]
    axis.hist(draws, bins=40, density=True, color=COLOURS["HMC"], alpha=0.35, label="HMC")
    for name, line in (("Laplace", "-"), ("EP", "--"), ("VI", "-.")):
        mean, std = fitted[name].predict_latent(x[None], return_std=True)
        axis.plot(f, norm.pdf(f, mean, std), color=COLOURS[name], linestyle=line, linewidth=1.4, label=name)
    axis.set(xlabel=f"$f({x[0]:.0f})$", ylabel="density", xlim=(f[0], f[-1]))
    axis.set_title(f"Posterior of $f({x[0]:.0f})$", **TITLE)
    axis.legend(frameon=False, fontsize=7.5)


def main(path: Path = FIGURE) -> None:
    split = interval()
    fitted, blocks = fit(split), vary_blocks(split)
    print("\n\n".join(report(split, fitted, blocks)))
    print("\nfigures: " + ", ".join(map(str, pictures(split, fitted, blocks, path))))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
