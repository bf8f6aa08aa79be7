"""Log loss on test rows over time: inducing inputs fitted in stages, and GPyTorch's stochastic variational GPs.

    python benchmarks/svgp.py ours [--kind unit] [--out ours.json]
    path/to/other/python benchmarks/svgp.py gpytorch [--kind unit] [--seconds 180] [--out theirs.json]
    python benchmarks/svgp.py compare ours.json theirs.json

GPyTorch (torch==2.13.0 on the CPU) needs an environment of its own. Both have the same data: inputs uniform in a
cube of ten dimensions or normal, a random function of amplitude 2.5 from Fourier features of an RBF kernel of
unit length scale, logistic labels. Both start with unit length scales and variance, run on one thread, and are
timed by the processor time of the process, without the time to compute the log loss.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

D, AMPLITUDE, FEATURES, TEST = 10_000


def draw(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    """Return inputs: in the unit cube, in one of side two, or normal."""
    if kind == "normal":
        return rng.normal(size=(n, D))
    return rng.uniform(0.0, 1.0 if kind == "unit" else 2.0, size=(n, D))


def data(n: int, kind: str, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return X, y, X_test, y_test and the log loss of the true probabilities."""
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(D, FEATURES)), rng.uniform(0.0, 2.0 * np.pi, FEATURES)
    w = rng.normal(size=FEATURES)

    def f(X: np.ndarray) -> np.ndarray:
        parts = [np.cos(X[i : i + 20_000] @ W + b) @ w for i in range(0, len(X), 20_000)]
        return AMPLITUDE * np.sqrt(2.0 / FEATURES) * np.concatenate(parts)

    X, X_test = draw(rng, n, kind), draw(rng, TEST, kind)
    p, p_test = (1.0 / (1.0 + np.exp(-f(x))) for x in (X, X_test))
    y, y_test = (rng.uniform(size=len(q)) < q for q in (p, p_test))
    best = -np.mean(np.where(y_test, np.log(p_test), np.log1p(-p_test)))
    return X, y.astype(int), X_test, y_test.astype(int), best


def log_loss(mean: np.ndarray, var: np.ndarray, y: np.ndarray) -> float:
    """Return the log loss of averaged probabilities, by the same quadrature for both libraries."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    f = mean[:, None] + np.sqrt(np.maximum(var, 0.0))[:, None] * nodes
    p = (1.0 / (1.0 + np.exp(-f))) @ (weights / weights.sum())
    return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


class Clock:
    """Processor time since the start, without that of computing the log loss."""

    def __init__(self) -> None:
        self.start, self.curve = time.process_time(), []

    def now(self) -> float:
        return time.process_time() - self.start

    def test(self, latent, X: np.ndarray, y: np.ndarray) -> None:
        before = time.process_time()
        self.curve.append((self.now(), log_loss(*latent(X), y)))
        print(f"{self.curve[-1][0]:8.2f} s   log loss {self.curve[-1][1]:.5f}", flush=True)
        self.start += time.process_time() - before


def ours(args: argparse.Namespace) -> dict:

    from gpclass.data.rows import Rows
    from gpclass.inference import VI
    from gpclass.kernels import RBF
    from gpclass.learning.maximise import Plan
    from gpclass.learning.passes import Run, inducing_process
    from gpclass.learning.problem import Problem
    from gpclass.likelihoods import Logit
    from gpclass.sparse import Inducing

    X, y, X_test, y_test, best = data(args.n, args.kind)
    clock = Clock()

    def latent_of(fit):
        return inducing_process(fit.basis, fit.q, single=False).latent

    settings, rows = Inducing(**json.loads(args.settings)), Rows(X, 2.0 * y - 1.0)
    problem = Problem(X, rows.y, None, 1.0 * RBF(np.ones(D)), Logit(), VI())
    run = Run(problem, rows, 1, Plan(), settings, np.random.default_rng(0))
    run.watch = lambda fit: clock.test(latent_of(fit), X_test, y_test)
    fit, _ = run.fit()
    latent = latent_of(fit)
    start = time.process_time()
    latent(X)
    rate = len(X) / (time.process_time() - start)
    print(f"end: {clock.now():.1f} s, kernel {fit.basis.kernel}, {fit.basis.size} inducing inputs")
    return {"curve": clock.curve, "best": best, "predicted": rate, "end": clock.now()}


def gpytorch(args: argparse.Namespace) -> dict:
    import gpytorch as gp
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, y, X_test, y_test, best = data(args.n, args.kind)
    inputs, labels = (torch.tensor(a, dtype=torch.float32) for a in (X, y))

    class Model(gp.models.ApproximateGP):
        def __init__(self, Z) -> None:
            q = gp.variational.CholeskyVariationalDistribution(Z.size(0))
            super().__init__(gp.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True))
            self.mean_module = gp.means.ZeroMean()
            self.covar_module = gp.kernels.ScaleKernel(gp.kernels.RBFKernel(ard_num_dims=D))
            self.covar_module.base_kernel.lengthscale = 1.0
            self.covar_module.outputscale = 1.0

        def forward(self, x):
            return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Logistic(gp.likelihoods._OneDimensionalLikelihood):
        def forward(self, f):
            return torch.distributions.Bernoulli(logits=f)

    model, likelihood = Model(inputs[:500].clone()), Logistic()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    bound = gp.mlls.VariationalELBO(likelihood, model, len(labels))

    def latent(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model.eval()
        with torch.no_grad():
            parts = [
                model(torch.tensor(x[i : i + 2000], dtype=torch.float32)) for i in range(0, len(x), 2000)
            ]
            moments = [(q.mean.numpy().astype(float), q.variance.numpy().astype(float)) for q in parts]
        model.train()
        mean, var = zip(*moments, strict=True)
        return np.concatenate(mean), np.concatenate(var)

    clock, due = Clock(), 2.0
    while clock.now() < args.seconds:
        order = torch.randperm(len(labels))
        for i in range(0, len(labels) - 1023, 1024):
            rows = order[i : i + 1024]
            optimiser.zero_grad()
            (-bound(model(inputs[rows]), labels[rows])).backward()
            optimiser.step()
            if clock.now() > due:
                clock.test(latent, X_test, y_test)
                due = clock.now() * 1.1
            if clock.now() > args.seconds:
                break
    clock.test(latent, X_test, y_test)
    start = time.process_time()
    latent(X)
    return {
        "curve": clock.curve,
        "best": best,
        "predicted": len(X) / (time.process_time() - start),
        "end": clock.now(),
    }


def compare(mine: Path, theirs: Path) -> None:
    a, b = (json.loads(path.read_text("utf-8")) for path in (mine, theirs))
    last = b["curve"][-1]
    reached = next((t for t, loss in a["curve"] if loss <= last[1]), None)
    print(f"the true probabilities: {a['best']:.5f}")
    print(f"theirs after {last[0]:.0f} s: {last[1]:.5f}")
    print(f"ours at the end, after {a['end']:.1f} s: {a['curve'][-1][1]:.5f}")
    if reached is None:
        print("ours does not reach it")
    else:
        print(f"ours reaches it after {reached:.1f} s: {last[0] / reached:.1f} times faster")
    low = min(b["curve"], key=lambda point: point[1])
    reached = next((t for t, loss in a["curve"] if loss <= low[1]), None)
    print(f"their lowest, {low[1]:.5f} after {low[0]:.0f} s, is reached after {reached} s")
    print(
        f"rows predicted per second: {a['predicted']:,.0f} and {b['predicted']:,.0f}, "
        f"ratio {a['predicted'] / b['predicted']:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["ours", "gpytorch", "compare"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--kind", choices=["unit", "two", "normal"], default="unit")
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--settings", default="{}", help="of Inducing, as JSON")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.what == "compare":
        compare(*args.files)
        return
    found = ours(args) if args.what == "ours" else gpytorch(args)
    if args.out is not None:
        args.out.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main()
