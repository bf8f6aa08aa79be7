"""Held-out log loss over processor time: inducing inputs here, GPyTorch's stochastic variational GP, and two others.

    python benchmarks/curves.py ours magic [--settings '{"n": 500}'] [--out folder]
    python benchmarks/curves.py gpytorch magic --seconds 120 [--out folder]      (in an environment with GPyTorch)
    python benchmarks/curves.py boosting magic        python benchmarks/curves.py logistic magic
    python benchmarks/curves.py table folder          python benchmarks/curves.py plot folder picture.png

A problem is the name of a table in the folder ``--data`` (one random fifth held out, standardised), a table with its
classes made two (``letter:2``: the first half of them against the second), or one of three synthetic problems of
100,000 rows and ten columns: ``unit`` and ``two`` (uniform in a cube of that side) and ``normal``. Their labels are
logistic, of a random function of amplitude 2.5 from Fourier features of an RBF kernel of unit length scale.

Everything runs on one thread. Times are of the processor, without the time to compute the log loss. `make bench-peers`
makes the environment of GPyTorch (torch on the CPU) and runs all of this.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

COLUMNS, AMPLITUDE, FEATURES, TEST = 10, 2.5, 2000, 10_000
SYNTHETIC = ("unit", "two", "normal")
LOOKS = {
    "ours": ("gpclass", "C3"),
    "gpytorch": ("GPyTorch", "C1"),
    "boosting": ("boosting", "C0"),
    "logistic": ("logistic", "C2"),
}
DATA = Path(__file__).parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Split:
    """Training and test rows; ``best`` is the log loss of the true probabilities, where they are known."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    best: float | None = None

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


def read(folder: Path, name: str, seed: int = 0) -> Split:
    """Return a table with one random fifth held out, standardised by the other rows."""
    name, _, halves = name.partition(":")
    table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1].astype(int)
    if halves:
        y = (y > y.max() // 2).astype(int)
    order = np.random.default_rng(seed).permutation(len(X))
    test, train = np.split(order, [len(X) // 5])
    X = X[:, X[train].std(axis=0) > 0.0]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    return Split(X[train], y[train], X[test], y[test])


def draw(kind: str, n: int, seed: int = 0) -> Split:
    """Return rows of a synthetic problem."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(COLUMNS, FEATURES)), rng.uniform(0.0, 2.0 * np.pi, FEATURES)
    w = rng.normal(size=FEATURES)

    def inputs(n: int) -> np.ndarray:
        side = {"unit": 1.0, "two": 2.0}.get(kind)
        return rng.normal(size=(n, COLUMNS)) if side is None else rng.uniform(0.0, side, (n, COLUMNS))

    def f(X: np.ndarray) -> np.ndarray:
        parts = [np.cos(X[i : i + 20_000] @ W + b) @ w for i in range(0, len(X), 20_000)]
        return AMPLITUDE * np.sqrt(2.0 / FEATURES) * np.concatenate(parts)

    X, X_test = inputs(n), inputs(TEST)
    p, p_test = (1.0 / (1.0 + np.exp(-f(x))) for x in (X, X_test))
    y, y_test = (rng.uniform(size=len(q)) < q for q in (p, p_test))
    best = -np.mean(np.where(y_test, np.log(p_test), np.log1p(-p_test)))
    return Split(X, y.astype(int), X_test, y_test.astype(int), float(best))


def log_loss(log_p: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -log p of the observed classes, no probability being taken as less than 1e-15."""
    return float(-np.maximum(log_p[np.arange(len(y)), y], np.log(1e-15)).mean())


@dataclass
class Clock:
    """Processor time since the start without that of computing the log loss, and the curve so far."""

    split: Split
    start: float = field(default_factory=time.process_time)
    curve: list[tuple[float, float]] = field(default_factory=list)

    def now(self) -> float:
        return time.process_time() - self.start

    def test(self, log_proba: Callable[[np.ndarray], np.ndarray]) -> None:
        before = time.process_time()
        loss = log_loss(log_proba(self.split.X_test), self.split.y_test)
        self.curve.append((before - self.start, loss))
        print(f"{self.curve[-1][0]:8.2f} s   log loss {loss:.5f}", flush=True)
        self.start += time.process_time() - before


# ------------------------------------------------------------------------------------------ this library


def ours(split: Split, args: argparse.Namespace) -> dict[str, Any]:
    """Fit as a user would, with a test after every better fit on all rows."""
    from gpclass import GaussianProcessClassifier
    from gpclass.kernels import RBF
    from gpclass.learning import passes
    from gpclass.sparse import Inducing

    settings = json.loads(args.settings)
    kernels = {"default": None, "ard": 1.0 * RBF(np.ones(split.X.shape[1])), "rbf": 1.0 * RBF(1.0)}
    options: dict[str, Any] = {} if args.likelihood is None else {"likelihood": args.likelihood}
    if args.inference is not None:
        options["inference"] = args.inference
    inducing: Any = None if settings is None else Inducing(**settings) if settings else "auto"
    model = GaussianProcessClassifier(
        kernels[args.kernel], inducing=inducing, random_state=args.seed, verbose=args.verbose, **options
    )
    clock = Clock(split)

    class Watched(passes.Run):
        def keep(self, level: Any, fit: Any) -> None:
            super().keep(level, fit)
            posterior = passes.inducing_process(fit.basis, fit.q, fit.offset, single=False)
            if split.n_classes == 2 and hasattr(posterior, "latent"):
                clock.test(lambda X: level.problem.likelihood.log_predict(*posterior.latent(X)))

    with mock.patch.object(passes, "Run", Watched):
        model.fit(split.X, split.y)
    clock.test(model.predict_log_proba)
    fitted = model.base_estimator_
    report = getattr(fitted, "inducing", None)
    out: dict[str, Any] = {"evidence": model.log_marginal_likelihood_value_, "kernel": str(model.kernel_)}
    if report is not None:
        out |= {"inducing": report.n_inducing, "passes": report.passes, "residual": report.residual}
    print(out, flush=True)
    start = time.process_time()
    model.predict_proba(split.X[:100_000])
    rate = min(len(split.X), 100_000) / (time.process_time() - start)
    return {"curve": clock.curve, "rows_per_second": rate, **out}


# ------------------------------------------------------------------------------------------------ others


def boosting(split: Split, args: argparse.Namespace) -> dict[str, Any]:
    """Fit scikit-learn's gradient boosting as it comes."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return _sklearn(HistGradientBoostingClassifier(random_state=args.seed), split)


def logistic(split: Split, args: argparse.Namespace) -> dict[str, Any]:
    """Fit logistic regression as it comes."""
    from sklearn.linear_model import LogisticRegression

    return _sklearn(LogisticRegression(max_iter=1000), split)


def _sklearn(model: Any, split: Split) -> dict[str, Any]:
    clock = Clock(split)
    model.fit(split.X, split.y)
    clock.test(lambda X: np.log(np.maximum(model.predict_proba(X), 1e-15)))
    return {"curve": clock.curve}


def gpytorch(split: Split, args: argparse.Namespace) -> dict[str, Any]:
    """Fit a stochastic variational GP with Adam, and test it now and then."""
    import gpytorch as gp
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    C = split.n_classes
    several = torch.Size([C]) if C > 2 else torch.Size([])
    inputs = torch.tensor(split.X, dtype=torch.float32)
    labels = torch.tensor(split.y, dtype=torch.float32 if C == 2 else torch.long)

    class Model(gp.models.ApproximateGP):
        def __init__(self, Z: Any) -> None:
            q = gp.variational.CholeskyVariationalDistribution(Z.size(-2), batch_shape=several)
            strategy = gp.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True)
            if C > 2:
                strategy = gp.variational.IndependentMultitaskVariationalStrategy(strategy, num_tasks=C)
            super().__init__(strategy)
            self.mean_module = gp.means.ZeroMean(batch_shape=several)
            kernel = gp.kernels.RBFKernel(ard_num_dims=inputs.shape[1], batch_shape=several)
            self.covar_module = gp.kernels.ScaleKernel(kernel, batch_shape=several)
            kernel.lengthscale = 1.0 if args.unit else inputs.shape[1] ** 0.5
            self.covar_module.outputscale = 1.0

        def forward(self, x: Any) -> Any:
            return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Logistic(gp.likelihoods._OneDimensionalLikelihood):
        def forward(self, f: Any) -> Any:
            return torch.distributions.Bernoulli(logits=f)

    Z = inputs[: args.inducing].clone()
    model = Model(Z if C == 2 else Z.repeat(C, 1, 1))
    likelihood: Any = Logistic() if C == 2 else gp.likelihoods.SoftmaxLikelihood(C, C, mixing_weights=False)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    bound = gp.mlls.VariationalELBO(likelihood, model, len(labels))

    def log_proba(x: np.ndarray) -> np.ndarray:
        model.eval()
        with torch.no_grad():
            q = [model(torch.tensor(x[i : i + 2000], dtype=torch.float32)) for i in range(0, len(x), 2000)]
            moments = [(each.mean.numpy(), each.variance.numpy()) for each in q]
        model.train()
        mean, var = (np.concatenate(each).astype(float) for each in zip(*moments, strict=True))
        return _averaged(mean, np.maximum(var, 0.0))

    clock, due = Clock(split), 2.0
    while clock.now() < args.seconds:
        order = torch.randperm(len(labels))
        for i in range(0, max(len(labels) - 1023, 1), 1024):
            rows = order[i : i + 1024]
            optimiser.zero_grad()
            (-bound(model(inputs[rows]), labels[rows])).backward()
            optimiser.step()
            if clock.now() > due:
                clock.test(log_proba)
                due = clock.now() * 1.1
            if clock.now() > args.seconds:
                break
    clock.test(log_proba)
    start = time.process_time()
    log_proba(split.X[:100_000])
    return {
        "curve": clock.curve,
        "rows_per_second": min(len(labels), 100_000) / (time.process_time() - start),
    }


def _averaged(mean: np.ndarray, var: np.ndarray) -> np.ndarray:
    """Return the log of averaged logistic or softmax probabilities."""
    if mean.ndim == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        p = (1.0 / (1.0 + np.exp(-(mean[:, None] + np.sqrt(var)[:, None] * nodes)))) @ (
            weights / weights.sum()
        )
        return np.log(np.maximum(np.stack([1.0 - p, p], axis=1), 1e-15))
    z = np.random.default_rng(0).normal(size=(200, mean.shape[1]))
    total = np.zeros(mean.shape)
    for each in np.concatenate([z, -z]):
        f = mean + np.sqrt(var) * each
        p = np.exp(f - f.max(axis=1, keepdims=True))
        total += p / p.sum(axis=1, keepdims=True)
    return np.log(total / (2 * len(z)))


# ----------------------------------------------------------------------------------------------- results


METHODS = {"ours": ours, "gpytorch": gpytorch, "boosting": boosting, "logistic": logistic}


def run(args: argparse.Namespace) -> None:
    name = args.where[0]
    split = draw(name, args.n) if name in SYNTHETIC else read(args.data, name, args.split)
    found = METHODS[args.what](split, args)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        label = args.label or args.what
        found |= {"problem": name, "label": label, "best": split.best, "rows": len(split.X)}
        path = args.out / f"{name.replace(':', '-')}-{label}.json"
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def results(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what was written to a folder, by problem and by label."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        each = json.loads(path.read_text("utf-8"))
        found.setdefault(each["problem"], {})[each["label"]] = each
    return found


def table(folder: Path) -> None:
    """Print the last log loss of every method, and when ours was as low as GPyTorch's last one."""
    for problem, methods in results(folder).items():
        for label, each in methods.items():
            seconds, loss = each["curve"][-1]
            print(f"{problem:14} {label:10} {loss:.4f} after {seconds:.0f} s")
        if {"ours", "gpytorch"} <= set(methods):
            goal = methods["gpytorch"]["curve"][-1][1]
            when = next((t for t, loss in methods["ours"]["curve"] if loss <= goal), None)
            print(f"{problem:14} as low as GPyTorch " + ("never" if when is None else f"after {when:.1f} s"))


def plot(folder: Path, picture: Path) -> None:
    """Draw the curves of every problem."""
    import matplotlib.pyplot as plt

    found = results(folder)
    figure, axes = plt.subplots(
        1, len(found), figsize=(3.2 * len(found), 3.2), squeeze=False, layout="constrained"
    )
    for ax, (problem, methods) in zip(axes[0], found.items(), strict=True):
        for label, each in methods.items():
            t, loss = np.array(each["curve"]).T
            name, colour = LOOKS[label]
            best, marker = np.minimum.accumulate(loss), "o" if len(t) == 1 else None
            ax.plot(t, best, label=name, color=colour, marker=marker)
        low = min(loss for each in methods.values() for _, loss in each["curve"])
        ax.set(xscale="log", title=problem, xlabel="processor seconds", ylim=(low - 0.005, low + 0.08))
    axes[0, 0].set_ylabel("held-out log loss")
    axes[0, 0].legend(fontsize="small")
    figure.savefig(picture, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=[*METHODS, "table", "plot"])
    parser.add_argument("where", nargs="+")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--n", type=int, default=100_000, help="rows of a synthetic problem")
    parser.add_argument("--split", type=int, default=0, help="seed of the rows held out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0, help="of GPyTorch")
    parser.add_argument("--inducing", type=int, default=500, help="of GPyTorch")
    parser.add_argument("--unit", action="store_true", help="GPyTorch starts with unit length scales")
    parser.add_argument("--kernel", choices=["default", "ard", "rbf"], default="default")
    parser.add_argument("--likelihood")
    parser.add_argument("--inference")
    parser.add_argument("--settings", default="{}", help="of Inducing, as JSON; null: no inducing inputs")
    parser.add_argument("--verbose", type=int, default=0)
    parser.add_argument("--label", help="name of the curve")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.what == "table":
        table(Path(args.where[0]))
    elif args.what == "plot":
        plot(Path(args.where[0]), Path(args.where[1]))
    else:
        run(args)


if __name__ == "__main__":
    main()
