"""Passes on Dask's workers give what one block gives, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gpclass.data.distributed import DaskData, _grouped, is_dask, lazy_predict, on_dask
from gpclass.data.local import Encode, LocalData
from gpclass.data.sources import ArraySource, ParquetSource
from gpclass.kernels import RBF
from gpclass.likelihoods import Probit, Softmax
from gpclass.priors.basis import make_basis
from gpclass.sparse.engine import Engine, Q, factor
from gpclass.sparse.sums import add_up

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pa = pytest.importorskip("pyarrow")

N = 6000
NAMES = ["x0", "x1", "x2"]


@dataclass(frozen=True)
class SlowEncode:
    """Takes its time over every block, so that a worker can be killed while it is at it."""

    inner: Encode
    seconds: float

    def __call__(self, y: Any, weight: Any) -> Any:
        time.sleep(self.seconds)
        return self.inner(y, weight)


@dataclass(frozen=True)
class GreedyEncode:
    """Takes more memory than a worker may have, once."""

    inner: Encode
    flag: str

    def __call__(self, y: Any, weight: Any) -> Any:
        try:
            open(self.flag, "x").close()
        except FileExistsError:
            return self.inner(y, weight)
        hoard = [np.ones(10**7) for _ in range(15) if time.sleep(0.05) is None]
        time.sleep(10.0)
        raise MemoryError(len(hoard))


def problem(classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=N)
    y = np.array(["no", "perhaps", "yes"])[np.digitize(f, [0.0] if classes == 2 else [-0.5, 0.5])]
    return X, y, rng.uniform(0.5, 2.0, size=N)


def step_of(X, likelihood=None, n_latents=1):
    """Return a step with a q that is not the prior, in double precision, with the gradient."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(n_latents, 30, 30))
    q = Q(rng.normal(size=(30, n_latents)), np.eye(30) + A @ A.transpose(0, 2, 1))
    engine = Engine(None, likelihood or Probit(), n_latents, dtype=np.float64)
    return engine._step(make_basis(3.0 * RBF([1.0, 2.0, 3.0]), X[:30]), q, factor(q), True, True)


def numbers(sums):
    names = ("n", "value", "left", "curvature", "linear", "slope", "theta", "inputs")
    return {name: np.asarray(getattr(sums, name)) for name in names}


def assert_close(a, b, rtol=1e-9):
    for name, value in numbers(b).items():
        got = numbers(a)[name]
        np.testing.assert_allclose(got, value, rtol=rtol, atol=rtol * np.abs(value).max(), err_msg=name)


def assert_identical(a, b):
    for name, value in numbers(b).items():
        assert np.array_equal(numbers(a)[name], value), name


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, memory_limit="1GB") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from pyarrow import parquet

    X, y, w = problem()
    folder = tmp_path_factory.mktemp("rows")
    for i, rows in enumerate(np.split(np.arange(N), [10, 2700])):
        columns = {name: X[rows, j] for j, name in enumerate(NAMES)}
        table = pa.table({**columns, "label": y[rows], "w": w[rows]})
        parquet.write_table(table, folder / f"{i}.parquet", row_group_size=300)
    return folder


def collections(kind, folder):
    """Return X, y and weights in partitions of different sizes and kinds."""
    X, y, w = problem()
    if kind == "array":
        chunks = ((1000, 500, 4500), (2, 1))
        return da.from_array(X, chunks=chunks), da.from_array(y, chunks=700), da.from_array(w, chunks=900)
    if kind == "unknown sizes":
        keep = da.from_array(np.ones(N, dtype=bool), chunks=1500)
        return tuple(da.from_array(a, chunks=(1500, *a.shape[1:]))[keep] for a in (X, y, w))
    if kind == "files":
        return ParquetSource(folder, target="label", weight="w"), None, None
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=NAMES).assign(label=y, w=w)
    return dd.from_pandas(frame, npartitions=7), "label", "w"


def truth(step):
    X, y, w = problem()
    return add_up(step, X, np.where(y == "no", -1.0, 1.0), w)


class TestPasses:
    @pytest.mark.parametrize("kind", ["array", "unknown sizes", "files", "frame"])
    def test_give_what_one_block_gives(self, client, folder, kind):
        X = problem()[0]
        source = on_dask(*collections(kind, folder), client=client, rows=1200)
        assert (source.n_rows, source.n_columns) == X.shape
        assert source.classes().tolist() == ["no", "perhaps"]
        assert len(source.groups) > 1
        data = DaskData(source, Encode(source.classes()))
        step = step_of(X)
        sums = data.total(step)
        assert_close(sums, truth(step))
        assert_identical(data.total(step), sums)
        here = ArraySource(*problem()).sample(100, np.random.default_rng(0))
        there = source.sample(100, np.random.default_rng(0))
        assert np.array_equal(here.X, there.X)
        assert here.y.tolist() == there.y.tolist()
        assert np.array_equal(here.weight, there.weight)

    def test_the_engine_settles_where_it_does_here(self, client, folder):
        X, y, w = problem()
        basis = make_basis(3.0 * RBF([1.0, 2.0, 3.0]), X[:30])
        encode = Encode(np.unique(y))
        files = on_dask(ParquetSource(folder, target="label", weight="w"), client=client, rows=1000)
        fits = [
            Engine(data, Probit(), dtype=np.float64).settle(basis, tol=1e-3, gradient=True)
            for data in (LocalData(ArraySource(X, y, w, rows=N), encode), DaskData(files, encode))
        ]
        assert fits[0].bound == pytest.approx(fits[1].bound, rel=1e-10)
        np.testing.assert_allclose(fits[0].gradient, fits[1].gradient, rtol=1e-8)

    def test_three_classes_without_a_client(self):
        X, y, w = problem(classes=3)
        chunks = {"chunks": 2500}
        source = on_dask(
            da.from_array(X, chunks=(2500, 3)), da.from_array(y, **chunks), da.from_array(w, **chunks)
        )
        data = DaskData(source, Encode(source.classes()))
        P = (y[:, None] == np.array(["no", "perhaps", "yes"])) * w[:, None]
        step = step_of(X, Softmax(), 3)
        close = numbers(add_up(step, X, P, None))
        sums = numbers(data.total(step))
        for name in ("value", "curvature", "linear", "theta", "inputs"):
            np.testing.assert_allclose(sums[name], close[name], rtol=1e-8, atol=1e-8, err_msg=name)

    def test_groups_hold_neighbours_and_enough_rows(self):
        assert _grouped([5, 5, 5, 20, 1, 1], 10) == [[0, 1], [2, 3], [4, 5]]
        groups = _grouped([1000] * 5000, None)
        assert len(groups) == 50
        assert [i for few in groups for i in few] == list(range(5000))
        assert len(_grouped([10**6] * 10**4, None)) <= 512


def killed_in_mid_pass(client, data, step):
    """Run a pass, and kill a worker that is at it with a signal that it cannot catch."""
    result = {}
    thread = threading.Thread(target=lambda: result.setdefault("sums", data.total(step)))
    thread.start()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        busy = [a for a, keys in client.processing().items() if any("gpclass-sums" in str(k) for k in keys)]
        if busy:
            break
        time.sleep(0.02)
    pid = client.run(os.getpid, workers=busy[:1])[busy[0]] if busy else None
    assert pid is not None
    assert thread.is_alive()
    os.kill(pid, signal.SIGKILL)
    thread.join(60)
    assert not thread.is_alive()
    assert pid not in client.run(os.getpid).values()
    return result["sums"]


class TestWorkersThatDie:
    """A task takes a third of a second at least, so that the worker is at one when it is killed."""

    @pytest.mark.parametrize("kind", ["files", "persisted"])
    def test_change_nothing(self, client, folder, kind):
        X, y, _ = problem()
        given = collections("files" if kind == "files" else "array", folder)
        if kind == "persisted":
            given = client.persist(given)
        source = on_dask(*given, client=client, rows=900)
        encode = Encode(np.unique(y))
        step = step_of(X)
        calm = DaskData(source, encode).total(step)
        slow = DaskData(source, SlowEncode(encode, 0.3))
        assert_identical(killed_in_mid_pass(client, slow, step), calm)
        assert_close(calm, truth(step))

    def test_workers_that_join_change_nothing(self, client, folder):
        X, y, _ = problem()
        source = on_dask(ParquetSource(folder, target="label", weight="w"), client=client, rows=900)
        encode, step = Encode(np.unique(y)), step_of(X)
        calm = DaskData(source, encode).total(step)
        result = {}
        slow = DaskData(source, SlowEncode(encode, 0.3))
        thread = threading.Thread(target=lambda: result.setdefault("sums", slow.total(step)))
        thread.start()
        client.cluster.scale(3)
        thread.join(60)
        assert_identical(result["sums"], calm)
        client.wait_for_workers(3, timeout=30)
        assert_identical(DaskData(source, encode).total(step), calm)
        client.cluster.scale(2)

    @pytest.mark.slow
    def test_all_at_once(self, client, folder):
        X, y, _ = problem()
        source = on_dask(ParquetSource(folder, target="label", weight="w"), client=client, rows=900)
        encode, step = Encode(np.unique(y)), step_of(X)
        calm = DaskData(source, encode).total(step)
        result = {}
        slow = DaskData(source, SlowEncode(encode, 1.0))
        thread = threading.Thread(target=lambda: result.setdefault("sums", slow.total(step)))
        thread.start()
        time.sleep(1.5)
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        thread.join(120)
        assert_identical(result["sums"], calm)

    @pytest.mark.slow
    def test_a_worker_out_of_memory(self, client, folder, tmp_path):
        X, y, _ = problem()
        source = on_dask(ParquetSource(folder, target="label", weight="w"), client=client, rows=2000)
        encode, step = Encode(np.unique(y)), step_of(X)
        calm = DaskData(source, encode).total(step)
        greedy = DaskData(source, GreedyEncode(encode, str(tmp_path / "tried")))
        before = set(client.run(os.getpid).values())
        assert_identical(greedy.total(step), calm)
        assert set(client.run(os.getpid).values()) != before  # its nanny has ended one


class TestErrors:
    def test_name_the_place(self, client):
        X, y, _ = problem()
        X[4321, 1] = np.nan
        given = da.from_array(X, chunks=(2000, 3)), da.from_array(y, chunks=2000)
        with pytest.raises(ValueError, match="NaN in row 321 of partition 2, column 1"):
            on_dask(*given, client=client)

    def test_unknown_labels(self, client, folder):
        source = on_dask(ParquetSource(folder, target="label", columns=NAMES), client=client, rows=1000)
        with pytest.raises(
            ValueError, match="label 'perhaps' is not among the classes, which are 'no', 'yes'"
        ):
            DaskData(source, Encode(np.array(["no", "yes"]))).total(step_of(problem()[0]))

    def test_what_does_not_fit_together(self):
        X, y, _ = problem()
        given = da.from_array(X, chunks=(2000, 3))
        with pytest.raises(ValueError, match="y is a ndarray and X a Dask collection"):
            on_dask(given, y)
        with pytest.raises(ValueError, match="X has 6000 rows, and y or the weights 5999"):
            on_dask(given, da.from_array(y[:-1], chunks=2000))
        with pytest.raises(ValueError, match="X has no column 'label'"):
            on_dask(given, "label")

    def test_columns_that_are_no_numbers(self):
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"], "y": [0, 1]}), npartitions=1)
        with pytest.raises(ValueError, match="Column 'b' of X has type"):
            on_dask(frame, "y")

    @pytest.mark.slow
    def test_a_task_that_always_kills_its_worker(self, client, folder):
        @dataclass(frozen=True)
        class Deadly:
            def __call__(self, y: Any, weight: Any) -> Any:
                os.kill(os.getpid(), signal.SIGKILL)

        source = on_dask(ParquetSource(folder, target="label", weight="w"), client=client, rows=10**5)
        with pytest.raises(RuntimeError, match=r"was lost 2 times, with its workers .*KilledWorker"):
            DaskData(source, Deadly()).total(step_of(problem()[0]))


class TestPredictions:
    def test_of_arrays(self):
        X = problem()[0]
        lazy = da.from_array(X, chunks=(2500, 2))
        classes = np.array(["no", "yes"])
        labels = lazy_predict(lambda rows: classes[(rows[:, 0] > 0).astype(int)], lazy, dtype=classes.dtype)
        assert (labels.shape, labels.dtype, labels.chunks) == ((N,), classes.dtype, ((2500, 2500, 1000),))
        assert np.array_equal(labels.compute(), np.where(X[:, 0] > 0, "yes", "no"))
        P = lazy_predict(lambda rows: np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1), lazy, classes=classes)
        assert (P.shape, P.chunks[1]) == ((N, 2), (2,))
        assert np.array_equal(P.compute(), np.stack([X[:, 0], 1 - X[:, 0]], axis=1))
        few = lazy[lazy[:, 0] > 2.0]  # sizes unknown
        assert np.array_equal(lazy_predict(lambda rows: rows[:, 1], few).compute(), X[X[:, 0] > 2.0, 1])

    def test_of_frames(self):
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        frame = pd.DataFrame(problem()[0], columns=NAMES, index=np.arange(N) + 7)
        lazy = dd.from_pandas(frame, npartitions=4)
        first = lazy_predict(lambda rows: rows["x0"], lazy)
        pd.testing.assert_series_equal(first.compute(), frame["x0"], check_names=False)
        P = lazy_predict(lambda rows: rows[["x0", "x1"]], lazy, classes=["no", "yes"])
        assert list(P.columns) == ["no", "yes"]
        assert np.array_equal(P.compute().to_numpy(), frame[["x0", "x1"]].to_numpy())
        none = lazy_predict(lambda rows: 1 / 0, lazy[lazy["x0"] > 1e9])  # is not called for no rows
        assert len(none.compute()) == 0


def test_dask_is_not_imported_to_find_out():
    code = "import sys, gpclass.data.distributed as d; assert not (d.is_dask([1]) or 'dask' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": "src"})
    assert is_dask(da.ones(3))
    assert not is_dask(np.ones(3))
