"""Passes on Dask's workers give what one block gives, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

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

from gpclass.data.distributed import on_dask
from gpclass.data.scheduling import grouped
from gpclass.data.sources import ArraySource, ParquetSource, as_source, is_dask
from gpclass.labels import Encode

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytest.importorskip("pyarrow")

N = 6000
TWO = Encode(np.array(["no", "perhaps"]))


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def cluster_of_processes():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, memory_limit="1GB") as cluster,
        distributed.Client(cluster) as client,
    ):
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
        return ParquetSource(folder, target="label", weight="w").on_dask(client, rows)
    return on_dask(*collections(kind), client=client, rows=rows)


class TestPasses:
    @pytest.mark.parametrize("kind", ["array", "unknown sizes", "files", "frame"])
    def test_give_what_one_block_gives(self, client, folder, kind):
        rows = labelled_rows(N)
        source = source_of(kind, folder, client, 1200)
        assert (source.n_rows, source.n_columns) == rows[0].shape
        assert source.classes().tolist() == ["no", "perhaps"]
        assert len(source.groups) > 1
        data = source.data(TWO)
        total = data.total(MomentsJob())
        assert_same(total, moments(*rows))
        assert_same(data.total(MomentsJob()), total, rtol=0.0)
        here = ArraySource(*rows).sample(100, np.random.default_rng(0))
        there = source.sample(100, np.random.default_rng(0))
        assert np.array_equal(here.X, there.X)
        assert here.y.tolist() == there.y.tolist()
        assert np.array_equal(here.weight, there.weight)

    def test_the_engine_converges_where_it_does_here(self, client, folder):
        from gpclass.kernels import RBF
        from gpclass.likelihoods import Probit
        from gpclass.priors.basis import make_basis
        from gpclass.sparse.engine import Engine

        X, y, w = labelled_rows(N)
        basis = make_basis(3.0 * RBF([1.0, 2.0, 3.0]), X[:20])
        sources = ArraySource(X, y, w, rows=N), source_of("files", folder, client, 1000)
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
        total = source.data(Encode(source.classes())).total(MomentsJob(3))
        assert_same(total, MomentsJob(3)(X, P, None))

    def test_groups_hold_neighbours_and_enough_rows(self):
        assert grouped([5, 5, 5, 20, 1, 1], 10) == [[0, 1], [2, 3], [4, 5]]
        groups = grouped([1000] * 5000, None)
        assert len(groups) == 50
        assert [i for few in groups for i in few] == list(range(5000))
        assert len(grouped([10**6] * 10**4, None)) <= 512


class Pass(threading.Thread):
    """A pass in the background."""

    def __init__(self, data, job):
        super().__init__()
        self.data, self.job = data, job
        self.start()

    def run(self):
        self.result = self.data.total(self.job)

    def end(self):
        self.join(600)
        assert not self.is_alive()
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
        assert_same(work.end(), calm, rtol=0.0)

    @pytest.mark.parametrize("kind", ["files", "persisted"])
    def test_a_worker_that_leaves_without_notice_changes_nothing(self, folder, gate, kind):
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            if kind == "files":
                source = source_of("files", folder, client, 900)
            else:
                source = on_dask(*client.persist(collections("array")), client=client, rows=900)
            data = source.data(TWO)
            calm = data.total(MomentsJob())
            work = Pass(data, GatedJob())
            assert gate.wait(30)
            worker = cluster.workers[0]
            client.sync(worker.close, executor_wait=False, nanny=False)
            OPEN.set()
            assert_same(work.end(), calm, rtol=0.0)


@pytest.mark.slow
class TestWorkersThatAreKilled:
    """Workers are processes that are killed by signals which they cannot catch."""

    @pytest.fixture
    def processes(self, cluster_of_processes):
        cluster_of_processes.wait_for_workers(2, timeout=300)  # those killed by the last test are back
        return cluster_of_processes

    def killed_in_mid_pass(self, client, data):
        work = Pass(data, SlowJob())
        deadline, busy = time.monotonic() + 300, []
        while time.monotonic() < deadline and not busy:
            time.sleep(0.02)
            tasks = client.processing().items()
            busy = [worker for worker, keys in tasks if any("gpclass-sums" in str(key) for key in keys)]
        pid = client.run(os.getpid, workers=busy[:1])[busy[0]]
        os.kill(pid, signal.SIGKILL)
        total = work.end()
        assert pid not in client.run(os.getpid).values()
        return total

    @pytest.mark.parametrize("kind", ["files", "persisted"])
    def test_one(self, processes, folder, kind):
        if kind == "files":
            source = source_of("files", folder, processes, 900)
        else:
            source = on_dask(*processes.persist(collections("array")), client=processes, rows=900)
        data = source.data(TWO)
        calm = data.total(MomentsJob())
        assert_same(self.killed_in_mid_pass(processes, data), calm, rtol=0.0)
        assert_same(calm, moments(*labelled_rows(N)))

    def test_all_at_once(self, processes, folder):
        data = source_of("files", folder, processes, 900).data(TWO)
        calm = data.total(MomentsJob())
        work = Pass(data, SlowJob(seconds=1.0))
        time.sleep(1.5)
        for pid in processes.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        assert_same(work.end(), calm, rtol=0.0)

    def test_one_out_of_memory(self, processes, folder, tmp_path):
        data = source_of("files", folder, processes, 2000).data(TWO)
        calm = data.total(MomentsJob())
        before = set(processes.run(os.getpid).values())
        assert_same(data.total(GreedyJob(flag=str(tmp_path / "tried"))), calm, rtol=0.0)
        assert set(processes.run(os.getpid).values()) != before  # its nanny has ended one

    def test_all_by_one_task(self, processes, folder):
        data = source_of("files", folder, processes, 10**5).data(TWO)
        with pytest.raises(RuntimeError, match=r"failed 2 times because workers .*KilledWorker"):
            data.total(DeadlyJob())


class TestErrors:
    def test_name_the_place(self, client):
        X, y, _ = labelled_rows(N)
        X[4321, 1] = np.nan
        given = da.from_array(X, chunks=(2000, 3)), da.from_array(y, chunks=2000)
        with pytest.raises(ValueError, match="NaN in row 321 of partition 2, column 1"):
            on_dask(*given, client=client)

    def test_unknown_labels(self, client, folder):
        source = ParquetSource(folder, target="label", columns=NAMES).on_dask(client, rows=1000)
        with pytest.raises(
            ValueError, match="label 'perhaps' is not among the classes, which are 'no', 'yes'"
        ):
            source.data(Encode(np.array(["no", "yes"]))).total(MomentsJob())

    def test_what_does_not_fit_together(self):
        X, y, _ = labelled_rows(N)
        given = da.from_array(X, chunks=(2000, 3))
        with pytest.raises(ValueError, match="y is a ndarray and X a Dask collection"):
            on_dask(given, y)
        with pytest.raises(ValueError, match="X has 6000 rows, and y or the weights 5999"):
            on_dask(given, da.from_array(y[:-1], chunks=2000))
        with pytest.raises(ValueError, match="X has no column 'label'"):
            on_dask(given, "label")

    def test_columns_that_are_not_numbers(self):
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"], "y": [0, 1]}), npartitions=1)
        with pytest.raises(ValueError, match="Column 'b' of X has type"):
            on_dask(frame, "y")

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
