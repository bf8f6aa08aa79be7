"""Speed and memory, beside scikit-learn and beside the LAPACK calls that cannot be avoided.

    python benchmarks/run.py                       everything, at sizes that take a few minutes
    python benchmarks/run.py fit --n 2000          one part, at another size
    python benchmarks/run.py --full                the published sizes, about half an hour

Times are the best of several runs with a fixed number of BLAS threads; only their ratios are meant to be compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from threadpoolctl import threadpool_limits

from gpclass import GaussianProcessClassifier
from gpclass.inference import Laplace
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit
from gpclass.priors import DensePrior

warnings.simplefilter("ignore")
THREADS = (1, 2)
SAME = {"inference": "laplace", "likelihood": "logit"}  # as scikit-learn's


def problem(n: int, d: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels of a boundary that needs four of the columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.3 * rng.normal(size=n)
    return X, (f > 0.0).astype(int)


def seconds(work: Callable[[], object], repeat: int = 1) -> float:
    """Return the best wall-clock time of several runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def fit(n: int, repeat: int) -> None:
    X, y = problem(n)
    for name, scale in (("isotropic", 1.0), ("one length scale per column", np.ones(X.shape[1]))):
        kernel = 1.0 * RBF(scale)
        for threads in THREADS:
            with threadpool_limits(threads):
                ours, peer = GaussianProcessClassifier(kernel, **SAME), Peer(kernel)
                a = seconds(lambda ours=ours: ours.fit(X, y), repeat)
                b = seconds(lambda peer=peer: peer.fit(X, y))
            gap = ours.log_marginal_likelihood_value_ - peer.log_marginal_likelihood_value_
            print(
                f"fit, N={n}, d=10, {name}, {threads} thread(s): {a:.2f} s, scikit-learn {b:.2f} s, "
                f"ratio {b / a:.1f}; log evidence {ours.log_marginal_likelihood_value_:.4f} ({gap:+.4f}), "
                f"{len(ours.history_)} evaluations",
                flush=True,
            )


def predict(n: int, repeat: int, rows: int = 10_000) -> None:
    X, y = problem(n)
    Z = problem(rows, seed=1)[0]
    kernel = 4.0 * RBF(3.0)
    for threads in THREADS:
        with threadpool_limits(threads):
            ours = GaussianProcessClassifier(kernel, optimizer=None, **SAME).fit(X, y)
            peer = Peer(kernel, optimizer=None).fit(X, y)
            a, b = np.inf, np.inf
            for _ in range(repeat):  # alternating, so that the load of the machine affects both
                a = min(a, seconds(lambda ours=ours: ours.predict_proba(Z)))
                b = min(b, seconds(lambda peer=peer: peer.predict_proba(Z)))
        print(
            f"predict_proba, N={n}, {rows} rows, {threads} thread(s): {a:.3f} s, scikit-learn {b:.3f} s, "
            f"ratio {b / a:.1f}",
            flush=True,
        )


def gradient(n: int, repeat: int) -> None:
    """Time evidence and gradient at a theta near the previous one, beside potrf + potri of the same size."""
    X, labels = problem(n)
    y = 2.0 * labels - 1.0
    rng = np.random.default_rng(0)
    kernel = 4.0 * RBF(2.0 * np.ones(X.shape[1]))
    A = rng.normal(size=(n, n))
    A = np.asfortranarray(A @ A.T / n + np.eye(n))
    for threads in THREADS:
        with threadpool_limits(threads):
            state = _warm(kernel, X, y)
            floor, ours = np.inf, np.inf
            for _ in range(max(5, repeat)):
                C = A.copy(order="F")
                floor = min(floor, seconds(lambda C=C: _floor(C)))
                theta = kernel.theta + 0.05 * rng.normal(size=len(kernel.theta))
                ours = min(ours, seconds(lambda state=state, theta=theta: _step(state, theta, y)))
        print(
            f"warm evidence + gradient, N={n}, d=10, {threads} thread(s): {ours:.3f} s, potrf + potri "
            f"{floor:.3f} s, ratio {ours / floor:.2f}",
            flush=True,
        )


def _floor(C: np.ndarray) -> None:
    lapack.dpotrf(C, lower=1, clean=0, overwrite_a=1)
    lapack.dpotri(C, lower=1, overwrite_c=1)


def _warm(kernel: object, X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    prior = DensePrior(kernel, X)
    result = Laplace()(prior, Logit(), y)
    prior.pullback(result.adjoint())
    return {"prior": prior, "sites": result.sites}


def _step(state: dict, theta: np.ndarray, y: np.ndarray) -> None:
    prior = state["prior"].at(theta)
    result = Laplace()(prior, Logit(), y, init=state["sites"])
    prior.pullback(result.adjoint())
    state.update(prior=prior, sites=result.sites)


MEMORY = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.path.insert(0, "benchmarks")
from run import problem
from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
n = {n}
X, y = problem(n, d=20)

def peak():  # of this process only: ru_maxrss would include its parent
    return 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

before = peak()

def three_evaluations(objective, start, bounds):
    tried = [(theta, objective(theta)[0]) for theta in (start, start + 0.1, start + 0.2)]
    return min(tried, key=lambda end: end[1])

clf = GaussianProcessClassifier(1.0 * RBF(np.full(20, 4.0)), inference="laplace", optimizer=three_evaluations)
clf.fit(X, y)
print((peak() - before) / (8 * n * n))
"""


def memory(n: int, repeat: int) -> None:
    """Measure the peak memory of learning 20 length scales, in matrices of size n x n."""
    code = [sys.executable, "-c", MEMORY.format(n=n)]
    used = float(subprocess.run(code, capture_output=True, text=True, check=True).stdout)
    print(f"peak memory of learning, N={n}, d=20, one length scale per column: {used:.2f} N² doubles")


def large(n: int, repeat: int) -> None:
    X, y = problem(n)
    clf = GaussianProcessClassifier(4.0 * RBF(3.0), optimizer=None, inducing=None, **SAME)
    print(f"fit with fixed hyperparameters, N={n}: {seconds(lambda: clf.fit(X, y)):.1f} s", flush=True)
    try:
        clf.fit(*problem(200_000))
    except MemoryError as refusal:
        print(f"N=200000: {refusal}")


def methods(n: int, repeat: int) -> None:
    """Time each method, relative to our Laplace (learned) and to scikit-learn's Laplace (fixed), on one thread."""
    X, y = problem(n)
    with threadpool_limits(1):
        for likelihood in ("logit", "probit"):
            learned = {}
            for method in ("laplace", "ep", "vi"):
                options = {"inference": method, "likelihood": likelihood}
                clf = GaussianProcessClassifier(1.0 * RBF(1.0), **options)
                learned[method] = seconds(lambda clf=clf: clf.fit(X, y), repeat)
                kernel = 4.0 * RBF(3.0)
                fixed = GaussianProcessClassifier(kernel, optimizer=None, **options)
                a, b = np.inf, np.inf
                for _ in range(repeat):
                    a = min(a, seconds(lambda fixed=fixed: fixed.fit(X, y)))
                    b = min(b, seconds(lambda kernel=kernel: Peer(kernel, optimizer=None).fit(X, y)))
                print(
                    f"{method}, {likelihood}, N={n}: learned {learned[method]:.2f} s, "
                    f"{learned[method] / learned['laplace']:.2f} times Laplace; fixed {a:.3f} s, "
                    f"{a / b:.2f} times scikit-learn's Laplace",
                    flush=True,
                )


def imports(n: int, repeat: int) -> None:
    """Time the import beside that of scikit-learn's Gaussian processes; the ratio should be at most 1.2."""

    def cost(module: str) -> float:
        work = f"from {module} import GaussianProcessClassifier"
        code = f"import time; t = time.perf_counter(); {work}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)

    pairs = [(cost("gpclass"), cost("sklearn.gaussian_process")) for _ in range(max(5, repeat))]
    a, b = (min(column) for column in zip(*pairs, strict=True))
    print(
        f"import of the classifier: {a:.3f} s, of scikit-learn's {b:.3f} s, ratio {a / b:.2f} (at most 1.2)"
    )


def mcmc(n: int, repeat: int) -> None:
    from mcmc import mcmc as measure  # of this directory

    measure(n, repeat, problem)


DIGITS = """
import sys, time
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
X, y = load_digits(return_X_y=True)
X, y = StandardScaler().fit_transform(X)[:{n}], y[:{n}]

def peak():
    return 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

from {module} import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
clf = GaussianProcessClassifier(1.0 * RBF(8.0), **{options})
clf.fit(X[:200], y[:200]).predict_proba(X[:200])  # loads all libraries, with their buffers
np.linalg.svd(np.ones((9, 9, 9)) + np.eye(9))
before, start = peak(), time.perf_counter()
clf.fit(X, y)
print(time.perf_counter() - start, (peak() - before) / (8 * len(y) ** 2), clf.log_marginal_likelihood_value_)
"""


def digits(n: int, repeat: int) -> None:
    """Measure time and memory of learning ten classes, each method in its own process."""
    ways = {
        "joint Laplace, softmax": ("gpclass", {"inference": "laplace", "likelihood": "softmax"}),
        "joint VI, multinomial probit": ("gpclass", {}),
        "scikit-learn, one-vs-rest": ("sklearn.gaussian_process", {}),
    }
    for label, (module, options) in ways.items():
        code = DIGITS.format(n=n, module=module, options=options)
        run = [sys.executable, "-W", "ignore", "-c", code]
        one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        out = subprocess.run(run, capture_output=True, text=True, check=True, env=one_thread)
        spent, used, evidence = map(float, out.stdout.split())
        print(
            f"digits, N={n}, {label}: {spent:.1f} s, peak {used:.1f} N² doubles, log evidence {evidence:.2f}",
            flush=True,
        )


PARTS = {
    "imports": imports,
    "gradient": gradient,
    "predict": predict,
    "methods": methods,
    "memory": memory,
    "fit": fit,
    "mcmc": mcmc,
    "digits": digits,
    "large": large,
}
QUICK = {
    "imports": 0, "gradient": 1500, "predict": 1000, "methods": 500, "memory": 2000, "fit": 600,
    "mcmc": 1000, "digits": 400, "large": 5000,
}  # fmt: skip
FULL = {
    "imports": 0, "gradient": 3000, "predict": 2000, "methods": 1000,
    "memory": 5000, "fit": 2000, "mcmc": 1000, "digits": 1797, "large": 20_000,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="what to measure; everything by default"
    )
    parser.add_argument("--n", type=int, help="number of rows")
    parser.add_argument("--full", action="store_true", help="the published sizes, about half an hour")
    parser.add_argument("--repeat", type=int, default=3, help="number of runs, of which the best counts")
    args = parser.parse_args()
    sizes = FULL if args.full else QUICK
    for name in args.parts or PARTS:
        PARTS[name](args.n or sizes[name], args.repeat)


if __name__ == "__main__":
    main()
