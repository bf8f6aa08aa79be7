"""Passes on Dask's workers give what one block gives, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from moments import (
    NAMES,
    OPEN,
    STARTED,
    DeadlyJob,
    GatedJob,
    GreedyJob,
    MomentsJob,
    SlowJob,
    assert_same,
    labelled_rows,
    moments,
    write_files,
)

from gpclass.data.distributed import files_on_dask, on_dask
from gpclass.data.rows import Rows, grouped
from gpclass.data.sources import BlockSource, ParquetSource, as_source, is_dask
from gpclass.validation import Encode

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("pyarrow")

N = 6000
TWO = Encode(np.array(["no", "perhaps"]), (-1.0, 1.0))


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("rows"), *labelled_rows(N), [10, 2700], group=300)


def collections(kind):
    """Return X, y and weights in partitions of different sizes and kinds."""
    X, y, w = labelled_rows(N)
    if kind == "array":
        chunks = ((1000, 500, 4500), (2, 1))
        return da.from_array(X, chunks=chunks), da.from_array(y, chunks=700), da.from_array(w, chunks=900)
    if kind == "unknown sizes":
        keep = da.from_array(np.ones(N, dtype=bool), chunks=1500)
        return tuple(da.from_array(a, chunks=(1500, *a.shape[1:]))[keep] for a in (X, y, w))
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["chunks", *NAMES[1:]]).assign(label=y, w=w)
    return dd.from_pandas(frame, npartitions=7), "label", "w"


def source_of(kind, folder, client, rows):
    if kind == "files":
        return files_on_dask(ParquetSource(folder, target="label", weight="w"), client, rows)
    given = collections("array") if kind == "persisted" else collections(kind)
    given = client.persist(given) if kind == "persisted" else given
    return on_dask(*given, client=client, rows=rows)


class TestPasses:
    @pytest.mark.parametrize("kind", ["array", "unknown sizes", "files", "frame"])
    def test_give_what_one_block_gives(self, client, folder, kind):
        rows = labelled_rows(N)
        source = source_of(kind, folder, client, 1200)
        assert (source.n_rows, source.n_columns) == rows[0].shape
        assert source.classes().tolist() == ["no", "perhaps"]
        assert len(source.parts) > 1
        assert sum(len(block) for block in source.blocks()) == N
        data = source.data(TWO)
        total = data.total(MomentsJob())
        assert_same(total, moments(*rows))
        assert_same(data.total(MomentsJob()), total, rtol=0.0)
        here = BlockSource([rows]).data(TWO).sample(100, np.random.default_rng(0))
        there = data.sample(100, np.random.default_rng(0))
        assert np.array_equal(here.X, there.X)
        assert here.y.tolist() == there.y.tolist()
        assert np.array_equal(here.weight, there.weight)

    def test_the_engine_converges_where_it_does_here(self, client, folder):
        from gpclass.kernels import RBF
        from gpclass.likelihoods import Probit
        from gpclass.priors.inducing import make_basis
        from gpclass.sparse.engine import Engine

        X, y, w = labelled_rows(N)
        basis = make_basis(3.0 * RBF([1.0, 2.0, 3.0]), X[:20])
        sources = BlockSource([(X, y, w)], rows=N), source_of("files", folder, client, 1000)
        fits = [
            Engine(source.data(TWO), Probit(), dtype=np.float64).converge(basis, tol=1e-1, gradient=True)
            for source in sources
        ]
        assert fits[0].bound == pytest.approx(fits[1].bound, rel=1e-10)
        np.testing.assert_allclose(fits[0].gradient, fits[1].gradient, rtol=1e-8)

    def test_three_classes_without_a_client(self):
        X, y, w = labelled_rows(N, classes=3)
        source = as_source(
            da.from_array(X, chunks=(2500, 3)), da.from_array(y, chunks=2500), da.from_array(w, chunks=2500)
        )
        P = (y[:, None] == np.array(["no", "perhaps", "yes"])) * w[:, None]
        total = source.data(Encode(source.classes())).total(MomentsJob())
        assert_same(total, MomentsJob()(Rows(X, P)))

    def test_groups_hold_neighbours_and_enough_rows(self):
        assert grouped([5, 5, 5, 20, 1, 1], 10) == [[0, 1], [2, 3], [4, 5]]
        assert grouped([25, 5, 5, 5], 10) == [[0], [1], [2, 3]]
        groups = grouped([1000] * 5000, None)
        assert len(groups) == 50
        assert [i for few in groups for i in few] == list(range(5000))
        assert len(grouped([10**6] * 10**4, None)) <= 512


class Pass(threading.Thread):
    """A pass in the background, which does not keep the interpreter alive."""

    def __init__(self, data, job):
        super().__init__(daemon=True)
        self.data, self.job, self.error = data, job, None
        self.start()

    def run(self):
        try:
            self.result = self.data.total(self.job)
        except BaseException as error:
            self.error = error

    def end(self):
        self.join(600)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


class TestWorkersThatComeAndGo:
    """Every worker is at a block, and waits, while the cluster changes."""

    @pytest.fixture
    def gate(self):
        STARTED.clear()
        OPEN.clear()
        yield STARTED
        OPEN.set()

    def test_a_worker_that_joins_changes_nothing(self, client, folder, gate):
        data = source_of("files", folder, client, 900).data(TWO)
        calm = data.total(MomentsJob())
        work = Pass(data, GatedJob())
        assert gate.wait(30)
        client.cluster.scale(3)
        client.wait_for_workers(3, timeout=30)
        OPEN.set()
        assert_same(work.end(), calm, rtol=1e-13)

    @pytest.mark.parametrize("kind", ["files", "persisted"])
    def test_a_worker_that_leaves_without_notice_changes_nothing(self, folder, gate, kind):
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            data = source_of(kind, folder, client, 900).data(TWO)
            calm = data.total(MomentsJob())
            work = Pass(data, GatedJob())
            assert gate.wait(30)
            worker = cluster.workers[0]
            client.sync(worker.close, executor_wait=False, nanny=False)
            OPEN.set()
            assert_same(work.end(), calm, rtol=1e-13)


@contextmanager
def processes(**scheduler):
    """Yield the client of two workers that are processes of their own, with settings of the scheduler."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    settings = {f"distributed.scheduler.{name}": value for name, value in scheduler.items()}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(**options, memory_limit="1GB") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kill_in_mid_pass(client, *, everyone=False):
    """Kill a worker that is at a pass, or all workers, with a signal that cannot be caught; return their pids."""
    deadline, busy = time.monotonic() + 300, []
    while not busy:
        assert time.monotonic() < deadline, "no worker began a pass"
        time.sleep(0.02)
        tasks = client.processing().items()
        busy = [worker for worker, keys in tasks if any(str(key).startswith("add_rows") for key in keys)]
    pids = client.run(os.getpid, workers=None if everyone else busy[:1]).values()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return set(pids)


@pytest.mark.slow
class TestWorkersThatAreKilled:
    """Workers are processes that are killed. No test needs their nannies to start new ones in time."""

    @pytest.mark.parametrize("kind", ["files", "persisted"])
    def test_one(self, folder, kind):
        with processes() as client:
            data = source_of(kind, folder, client, 900).data(TWO)
            calm = data.total(MomentsJob())
            work = Pass(data, SlowJob())
            dead = kill_in_mid_pass(client)
            assert_same(work.end(), calm, rtol=1e-13)
            assert dead.isdisjoint(client.run(os.getpid).values())
        assert_same(calm, moments(*labelled_rows(N)))

    def test_all_at_once(self, folder):
        with processes() as client:
            data = source_of("files", folder, client, 900).data(TWO)
            calm = data.total(MomentsJob())
            work = Pass(data, SlowJob())
            kill_in_mid_pass(client, everyone=True)
            client.cluster.scale(4)
            assert_same(work.end(), calm, rtol=1e-13)

    def test_one_out_of_memory(self, folder, tmp_path):
        with processes() as client:
            data = source_of("files", folder, client, 2000).data(TWO)
            calm = data.total(MomentsJob())
            before = set(client.run(os.getpid).values())
            assert_same(data.total(GreedyJob(flag=str(tmp_path / "tried"))), calm, rtol=1e-13)
            assert set(client.run(os.getpid).values()) != before  # its nanny has ended one

    def test_all_by_one_task(self, folder):
        # Each attempt costs one worker: a nanny does not restart one that dies while it is being started.
        with processes(**{"allowed-failures": 0}) as client:
            data = source_of("files", folder, client, 10**5).data(TWO)
            with pytest.raises(distributed.KilledWorker, match="add_rows"):
                data.total(DeadlyJob())

    def test_all_and_no_nanny_restarts_them(self, folder, monkeypatch):
        async def fails(self):
            raise OSError("no process can be started")

        with processes(**{"no-workers-timeout": "3s"}) as client:
            data = source_of("files", folder, client, 900).data(TWO)
            monkeypatch.setattr(distributed.Nanny, "instantiate", fails)
            work = Pass(data, SlowJob())
            kill_in_mid_pass(client, everyone=True)
            with pytest.raises(Exception, match="without any running workers"):
                work.end()


class TestClients:
    @pytest.fixture
    def scheduler_only(self):
        """A cluster in this process that has a scheduler and no workers."""
        options = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            yield client

    def test_wait_for_workers(self, scheduler_only, folder):
        data = source_of("files", folder, scheduler_only, 900).data(TWO)
        work = Pass(data, MomentsJob())
        time.sleep(0.3)
        assert work.is_alive()
        scheduler_only.cluster.scale(1)
        assert_same(work.end(), moments(*labelled_rows(N)))

    def test_that_are_given_compute_and_not_the_current_one(self, client, scheduler_only, folder):
        with distributed.Client(client.cluster, set_as_default=False) as other:
            data = source_of("files", folder, other, 900).data(TWO)
            assert distributed.default_client() is not other
            assert_same(data.total(MomentsJob()), moments(*labelled_rows(N)))


class TestErrors:
    def test_name_the_place(self, client):
        X, y, _ = labelled_rows(N)
        X[4321, 1] = np.nan
        given = da.from_array(X, chunks=(2000, 3)), da.from_array(y, chunks=2000)
        with pytest.raises(ValueError, match="NaN in row 321 of partition 2, column 1"):
            on_dask(*given, client=client).classes()

    def test_unknown_labels(self, client, folder):
        source = files_on_dask(ParquetSource(folder, target="label", columns=NAMES), client, rows=1000)
        with pytest.raises(
            ValueError, match="label 'perhaps' is not among the classes, which are 'no', 'yes'"
        ):
            source.data(Encode(np.array(["no", "yes"]))).total(MomentsJob())

    def test_what_does_not_fit_together(self):
        X, y, _ = labelled_rows(N)
        given = da.from_array(X, chunks=(2000, 3))
        with pytest.raises(ValueError, match="y is a ndarray but X is a Dask collection"):
            on_dask(given, y)
        with pytest.raises(ValueError, match=r"X of shape \(2000, 3\) and y of shape \(1999,\)"):
            on_dask(given, da.from_array(y[:-1], chunks=2000)).classes()
        with pytest.raises(ValueError, match="have 3, 6, 3 partitions, expected the same"):
            on_dask(given, da.from_array(y[:-1], chunks=1000))
        with pytest.raises(ValueError, match="X has no column 'label'"):
            on_dask(given, "label")

    def test_collections_that_are_not_tables(self):
        bag = pytest.importorskip("dask.bag").from_sequence([1, 2])
        with pytest.raises(ValueError, match="X is a Bag of Dask, expected a Dask array or dataframe"):
            on_dask(bag, bag)


def test_dask_is_not_imported_to_find_out(monkeypatch):
    assert is_dask(da.ones(3))
    assert not is_dask(np.ones(3))
    monkeypatch.delitem(sys.modules, "dask")
    assert not is_dask([1])
    assert "dask" not in sys.modules


FIRST = """
import dask, sys
import dask.array as da
import numpy as np
from gpclass.data.distributed import on_dask

X, y = da.from_array(np.eye(40), chunks=(20, 40)), da.from_array(np.arange(40) % 2, chunks=20)
assert "distributed" not in sys.modules
assert on_dask(X, y).classes().tolist() == [0, 1]
assert on_dask(X, y).classes().tolist() == [0, 1]
assert dask.config.get("distributed.comm.timeouts.connect")
"""


def test_the_first_import_of_distributed_keeps_its_settings():
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run(
        [sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
