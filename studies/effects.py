"""Coverage of the bands of effects, how often importance finds the active columns and pairs, and the time of effects.

    python studies/effects.py [coverage] [friedman] [time] [--functions 60] [--seeds 10]

Coverage: functions of three columns drawn from a known prior, 100 labelled rows, and 95 % bands of the average over 50
rows, beside those of long Markov chains on the same functions. 200 functions take half an hour of processor time.
Friedman: 200 rows of twenty uniform columns of which five matter, 200 further rows for the importance; the share of
the active columns among the first four and the first five.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.special import expit
from scipy.stats.mstats import mquantiles
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.inspection import permutation_importance

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, matrix
from gpclass.sparse import Inducing

KERNEL = 4.0 * RBF([0.7, 1.0, 2.0])
METHODS = ("laplace", "ep", "vi", "mcmc")


def covered(seed: int) -> dict[tuple[str, str], np.ndarray]:
    """Return, for each method and kind, at each point: is the average in the band, and the mean and deviation of it."""
    rng, G, m = np.random.default_rng(seed), 10, 50
    X = rng.normal(size=(100, 3))
    grids = [np.linspace(*mquantiles(X[:m, j], [0.05, 0.95]), G) for j in range(3)]
    copies = np.repeat(X[None, None, :m], 3 * G, axis=1).reshape(3, G, m, 3)
    for j in range(3):
        copies[j, :, :, j] = grids[j][:, None]
    values, vectors = np.linalg.eigh(matrix(KERNEL, np.concatenate([X, copies.reshape(-1, 3)])))
    f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))
    y, f = rng.random(100) < expit(f[:100]), f[100:].reshape(3, G, m)
    truth, out = {"latent": f.mean(axis=2), "probability": expit(f).mean(axis=2)}, {}
    for method in METHODS:
        options = {"likelihood": "logit", "inference": method, "optimizer": None, "random_state": seed}
        clf = GaussianProcessClassifier(KERNEL, **options).fit(X, y)
        for kind, average in truth.items():
            each = []
            for j in range(3):
                effect = clf.effect(X[:m], j, kind, grid_resolution=G)
                inside = (effect.low <= average[j]) & (average[j] <= effect.high)
                each.append([inside, effect.mean, effect.std])
            out[method, kind] = np.concatenate(each, axis=1)
    return out


def coverage(n: int) -> None:
    """Print how often bands contain the truth, and how means and deviations differ from those of Markov chains."""
    runs = [covered(seed) for seed in range(n)]
    for method, kind in runs[0]:
        inside, mean, std = np.stack([run[method, kind] for run in runs], axis=1)
        _, exact, spread = np.stack([run["mcmc", kind] for run in runs], axis=1)
        each, size = inside.mean(axis=1), (mean * exact).sum() / (exact**2).sum()
        print(
            f"{method}, {kind}: {each.mean():.3f} ± {each.std() / np.sqrt(n):.3f} covered; beside the chains, "
            f"means off by {np.sqrt(np.mean(((mean - exact) / spread) ** 2)):.2f} deviations, {size:.2f} times as "
            f"large, deviations {np.mean(std / spread):.2f} times",
            flush=True,
        )
        missed = each - np.mean([run["mcmc", kind][0] for run in runs], axis=1)
        print(
            f"    covered more often than by the chains: {missed.mean():+.3f} ± {missed.std() / np.sqrt(n):.3f}"
        )


def friedman(n: int) -> None:
    """Print how many of the first columns are active, by each method, and how often the first pair is right."""
    found: dict[str, list[tuple[float, float]]] = {}
    pairs: list[bool] = []
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(400, 20))
        f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        y = rng.random(400) < expit(f - np.median(f))
        clf = GaussianProcessClassifier(random_state=0).fit(X[:200], y[:200])
        table = clf.importance(X[200:], y[200:])
        columns = np.array([int(name[1:]) for name in table.features])
        pairs.append(set(table.pairs[0]) == {"x0", "x1"})
        orders = {"total share": columns, "cost": columns[np.argsort(-table.cost[:, 0])]}
        for model in (
            RandomForestClassifier(500, random_state=0),
            HistGradientBoostingClassifier(random_state=0),
        ):
            model.fit(X[:200], y[:200])
            result = permutation_importance(model, X[200:], y[200:], scoring="neg_log_loss", random_state=0)
            orders[type(model).__name__] = np.argsort(-result.importances_mean)
        for name, order in orders.items():
            found.setdefault(name, []).append((np.mean(order[:4] < 5), np.mean(order[:5] < 5)))
    for name, shares in found.items():
        four, five = np.mean(shares, axis=0)
        whole = np.mean(np.array(shares) == 1.0, axis=0)
        print(
            f"{name}: active of the first four {four:.2f}, five {five:.2f}; all of them in {whole} of the runs"
        )
    print(f"the first pair is the product of the sine in {np.mean(pairs):.2f} of the runs")


def times() -> None:
    """Print the processor time of the effects of ten columns."""
    for n, inducing in ((1000, None), (100_000, Inducing(500))):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 10))
        y = rng.random(n) < expit(3.0 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2])
        kernel, inference = 4.0 * RBF(np.full(10, 2.5)), "laplace" if inducing is None else "vi"
        options = {"optimizer": None, "random_state": 0, "inference": inference, "inducing": inducing}
        clf = GaussianProcessClassifier(kernel, **options).fit(X, y)
        for kind in ("latent", "probability"):
            start = time.process_time()
            for j in range(10):
                clf.effect(X, j, kind)
            print(f"{n} rows, {kind}: {time.process_time() - start:.2f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["coverage", "friedman", "time"])
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "coverage" in arguments.parts:
            coverage(arguments.functions)
        if "friedman" in arguments.parts:
            friedman(arguments.seeds)
        if "time" in arguments.parts:
            times()
