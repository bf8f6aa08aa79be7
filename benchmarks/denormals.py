"""One pass over rows at short length scales, with denormal numbers dropped and left in, beside its bare products.

    python benchmarks/denormals.py            20,000 rows, 500 inducing inputs, one thread, seconds of processor

The share of denormal numbers depends on the length scale. What they cost depends on the processor: Intel's take ten to
a hundred times as long for products with them, recent ones of AMD hardly longer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.linalg import blas
from threadpoolctl import threadpool_limits

from gpclass.core import linalg
from gpclass.data.rows import Rows
from gpclass.kernels import RBF, stationary
from gpclass.likelihoods import Probit
from gpclass.priors.inducing import make_basis
from gpclass.sparse.engine import Engine, Q, inverted

COLUMNS = 10


@contextmanager
def left_in() -> Iterator[None]:
    """Leave denormal numbers where they arise, in all modules."""
    users = [m for name, m in sys.modules.items() if name.startswith("gpclass") and hasattr(m, "drop_tiny")]
    original, last = linalg.drop_tiny, stationary.LAST_EXPONENT
    for module in users:
        module.drop_tiny = lambda A, scale=None: A
    stationary.LAST_EXPONENT = -np.inf
    try:
        yield
    finally:
        stationary.LAST_EXPONENT = last
        for module in users:
            module.drop_tiny = original


def seconds(run: Callable[[], Any], repeat: int = 3) -> float:
    """Return the least processor seconds of a few runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def make_step(X: np.ndarray, M: int, length_scale: float, gradient: bool) -> Any:
    """Return the job of a pass at a q that is not the prior."""
    rng = np.random.default_rng(1)
    basis = make_basis(4.0 * RBF(np.full(COLUMNS, length_scale)), X[:M].copy())
    A = rng.normal(size=(1, M, M)) / np.sqrt(M)
    q = Q(rng.normal(size=(M, 1)), np.eye(M) + A @ A.transpose(0, 2, 1))
    return Engine(None, Probit()).step(basis, q, inverted(q.P), gradient=gradient)  # type: ignore[arg-type]


def bare(n: int, M: int, gradient: bool, rows: int = 2048) -> float:
    """Return the seconds of the products of a pass alone: two triangular, one symmetric, one more for the gradient."""
    rng = np.random.default_rng(0)
    T, A = (np.asfortranarray(rng.normal(size=(M, k)).astype(np.float32)) for k in (M, rows))

    def products() -> None:
        for _ in range(2):
            blas.strmm(1.0, T, A, side=0, lower=0, trans_a=1)
        blas.ssyrk(1.0, A, lower=0)
        if gradient:
            blas.sgemm(1.0, T, A)

    return seconds(products, 8) * n / rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--inducing", type=int, default=500)
    parser.add_argument("--length-scales", type=float, nargs="*", default=[4.0, 1.0, 0.5, 0.25])
    options = parser.parse_args()
    n, M, rng = options.rows, options.inducing, np.random.default_rng(0)
    X, y = rng.normal(size=(n, COLUMNS)), np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    print(f"N={n}, M={M}, {COLUMNS} columns; seconds of a pass, and times its bare products")
    with threadpool_limits(1):
        for gradient in (False, True):
            for length_scale in options.length_scales:
                with left_in():
                    step = make_step(X, M, length_scale, gradient)
                    without = seconds(lambda step=step: step(Rows(X, y)))
                step = make_step(X, M, length_scale, gradient)
                found, alone = seconds(lambda step=step: step(Rows(X, y))), bare(n, M, gradient)
                print(
                    f"  length scale {length_scale:g}{', gradient' if gradient else ''}: dropped {found:.3f} "
                    f"({found / alone:.2f}), left in {without:.3f} ({without / alone:.2f}), "
                    f"ratio {without / found:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
