"""Time and memory of one pass over 10⁵ to 10⁷ rows of Parquet, beside that of its matrix products alone.

    python benchmarks/scale_rows.py --quick        up to 2·10⁵ rows, a minute
    python benchmarks/scale_rows.py                10⁵ and 10⁶ rows, a few minutes
    python benchmarks/scale_rows.py --rows 10000000

The rows have 10 columns in single precision and a label, from random Fourier features of a smooth function.
A pass has 3 N M² operations in matrix products (5 N M² with the gradient); the speed of such products alone is
measured in the same run, between the passes, with as many threads. Every number of rows runs in its own process,
so that the peak of resident memory belongs to it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import blas
from threadpoolctl import threadpool_limits

from gpclass.data.distributed import files_on_dask
from gpclass.data.sources import ParquetSource
from gpclass.kernels import RBF
from gpclass.likelihoods import Probit
from gpclass.priors.inducing import make_basis
from gpclass.sparse.engine import Engine, Q, inverted
from gpclass.validation import Encode

COLUMNS, CHUNK = 10, 250_000


def write_rows(folder: Path, n: int, seed: int = 0) -> None:
    """Write n rows as Parquet files of a million at most, a chunk at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(COLUMNS, 100)) / 3.0, rng.uniform(0.0, 2.0 * np.pi, 100)
    a = rng.normal(size=100) * np.sqrt(2.0 / 100) * 3.0
    schema = pa.schema([*[(f"x{j}", pa.float32()) for j in range(COLUMNS)], ("label", pa.int8())])
    writer, written = None, 0
    while written < n:
        rows = min(CHUNK, n - written)
        if written % (4 * CHUNK) == 0:
            if writer is not None:
                writer.close()
            path = folder / f"part-{written // (4 * CHUNK):04}.parquet"
            writer = parquet.ParquetWriter(path, schema, use_dictionary=["label"])
        X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
        f = np.cos(X @ W + b) @ a
        label = (f + rng.normal(size=rows) > 0.0).astype(np.int8)
        arrays = [*(np.ascontiguousarray(X[:, j]) for j in range(COLUMNS)), label]
        writer.write_table(pa.table(arrays, schema=schema), row_group_size=CHUNK // 2)
        written += rows
    writer.close()


def bare_flops(M: int, rows: int = 2048) -> float:
    """Return operations per second of single-precision products of the size of a tile."""
    rng = np.random.default_rng(0)
    A = np.asfortranarray(rng.normal(size=(M, M)).astype(np.float32))
    B = np.asfortranarray(rng.normal(size=(M, rows)).astype(np.float32))
    best = np.inf
    for _ in range(12):
        start = time.perf_counter()
        blas.sgemm(1.0, A, B)
        best = min(best, time.perf_counter() - start)
    return 2.0 * rows * M * M / best


def make_step(source: ParquetSource, M: int, gradient: bool) -> Any:
    """Return the job of a pass, at a q that is not the prior."""
    rng = np.random.default_rng(1)
    X = source.reader()(next(source.blocks())).X[:M]
    basis = make_basis(4.0 * RBF(np.full(COLUMNS, 4.0)), np.asarray(X, dtype=float))
    A = rng.normal(size=(1, M, M)) / np.sqrt(M)
    q = Q(rng.normal(size=(M, 1)), np.eye(M) + A @ A.transpose(0, 2, 1))
    return Engine(None, Probit()).step(basis, q, inverted(q.P), gradient=gradient)


def measure(folder: Path, M: int, threads: int, repeat: int) -> dict[str, float]:
    """Return seconds of a pass without and with the gradient, bare flops and peak memory, in this process."""
    source = ParquetSource(folder, target="label")
    out: dict[str, float] = {"rows": source.n_rows}
    with threadpool_limits(threads):
        data = source.data(Encode(np.array([0, 1])))
        start = time.perf_counter()
        for _ in source.blocks():
            pass
        out["reading"] = time.perf_counter() - start
        for name, gradient in (("plain", False), ("gradient", True)):
            step = make_step(source, M, gradient)
            speeds, times = [bare_flops(M)], []
            for _ in range(repeat):
                start, busy = time.perf_counter(), time.process_time()
                data.total(step)
                times.append((time.perf_counter() - start, time.process_time() - busy))
                speeds.append(bare_flops(M))
            out[name], out[f"{name}_busy"] = (min(column) for column in zip(*times, strict=True))
            out[f"{name}_flops"] = max(speeds)
    out["megabytes"] = peak_memory()
    return out


def peak_memory() -> float:
    """Return the peak memory of this process in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )  # or that of its parent, if it was larger


def measure_dask(folder: Path, M: int, workers: int) -> dict[str, float]:
    """Return wall-clock and total processor seconds of a pass on this many workers of one thread each."""
    from distributed import Client, LocalCluster

    # By default workers return memory to the system after every task, which costs a quarter of the time.
    os.environ.update(MALLOC_TRIM_THRESHOLD_=str(1 << 28), MALLOC_MMAP_THRESHOLD_=str(1 << 28))
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        source = ParquetSource(folder, target="label")
        data = files_on_dask(source, client).data(Encode(np.array([0, 1])))
        step, times, busy = make_step(source, M, False), [], []
        data.total(step)  # to warm up
        for _ in range(2):
            before, start = client.run(time.process_time), time.perf_counter()
            data.total(step)
            times.append(time.perf_counter() - start)
            after = client.run(time.process_time)
            busy.append(sum(after[worker] - before[worker] for worker in after))
    return {"seconds": min(times), "processors": min(busy)}


def report(result: dict[str, float], first: dict[str, float] | None, M: int, threads: int) -> None:
    """Print a line for each kind of pass."""
    n = result["rows"]
    print(f"N={n:.0f}, M={M}, {threads} thread(s), peak memory {result['megabytes']:.0f} MB")
    print(f"  reading alone {result['reading']:.2f} s")
    for name, products in (("plain", 3), ("gradient", 5)):
        seconds, flops = result[name], result[f"{name}_flops"]
        bare = products * n * M * M / flops
        line = f"  pass, {name}: {seconds:.2f} s ({result[f'{name}_busy']:.2f} s of processor), "
        line += f"{n / seconds:.0f} rows/s; the matrix products alone at "
        line += f"{flops / 1e9:.0f} GFLOP/s take {bare:.2f} s, ratio {seconds / bare:.2f}"
        if first is not None:
            busy = (
                result[f"{name}_busy"] / first[f"{name}_busy"]
            )  # processor time: other work on the machine does not count
            line += f"; {busy * first['rows'] / n:.2f} times linear"
        print(line, flush=True)


def in_process(*arguments: str) -> dict[str, float]:
    """Return what this script measures in another process."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    out: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--inducing", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-dask", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder for the files, which are then not deleted")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    M, threads = options.inducing, options.threads
    if options.measure is not None:
        if options.workers:
            print(json.dumps(measure_dask(options.measure, M, options.workers)))
        else:
            print(json.dumps(measure(options.measure, M, threads, options.repeat)))
        return
    folder = Path(tempfile.mkdtemp(prefix="scale-rows-")) if options.keep is None else options.keep
    try:
        first = None
        for n in [20_000, 200_000] if options.quick else options.rows:
            rows = folder / str(n)
            if not rows.exists():
                rows.mkdir(parents=True)
                write_rows(rows, n)
            given = ["--measure", str(rows), "--inducing", str(M), "--threads", str(threads)]
            result = in_process(*given, "--repeat", str(options.repeat if n < 5_000_000 else 1))
            report(result, first, M, threads)
            first = result if first is None else first
            if not options.no_dask and 200_000 <= n < 5_000_000:
                one, two = (in_process(*given, "--workers", str(k)) for k in (1, 2))
                print(
                    f"  Dask: one worker {one['seconds']:.2f} s ({one['processors']:.2f} s of processor), "
                    f"two {two['seconds']:.2f} s ({two['processors']:.2f} s), "
                    f"ratio {one['seconds'] / two['seconds']:.2f}",
                    flush=True,
                )
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
