"""Rows from anywhere: blocks, samples, passes over them, and what is said when they are wrong."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpclass.data.blocks import Block, recut
from gpclass.data.local import Ahead, Encode, LocalData, in_turn
from gpclass.data.sources import ArraySource, BlockSource, ParquetSource
from gpclass.kernels import RBF
from gpclass.likelihoods import Probit, Softmax
from gpclass.priors.basis import make_basis
from gpclass.sparse.engine import Engine, factor, prior_q
from gpclass.sparse.sums import add_up


def problem(n=3000, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)
    y = np.array(["no", "perhaps", "yes"])[np.digitize(f, [0.0] if classes == 2 else [-0.5, 0.5])]
    return X, y, rng.uniform(0.5, 2.0, size=n)


def step_of(X, likelihood, n_latents, seed=1):
    """Return a step with a q that is not the prior, in double precision, with the gradient."""
    rng = np.random.default_rng(seed)
    basis = make_basis(3.0 * RBF([1.0, 2.0, 3.0]), X[:40])
    q = prior_q(40, n_latents)
    A = rng.normal(size=(n_latents, 40, 40))
    q = type(q)(rng.normal(size=q.mean.shape), q.P + A @ A.transpose(0, 2, 1))
    return Engine(None, likelihood, n_latents, dtype=np.float64)._step(basis, q, factor(q), True, True)


def assert_same_sums(a, b, rtol=1e-9):
    for name in ("value", "left", "curvature", "linear", "slope", "theta", "inputs"):
        x, y = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(), err_msg=name)


def write(folder, X, y, weight, cuts, group=500, kind="parquet"):
    """Write rows as several files; return the folder."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    for i, rows in enumerate(np.split(np.arange(len(X)), cuts)):
        columns = {f"x{j}": X[rows, j] for j in range(X.shape[1])}
        table = pa.table({**columns, "label": y[rows], "w": weight[rows]})
        if kind == "parquet":
            parquet.write_table(table, folder / f"part-{i:03}.parquet", row_group_size=group)
        else:
            feather.write_feather(table, folder / f"part-{i:03}.feather", chunksize=group)
    return folder


@pytest.fixture
def sources(tmp_path):
    """Return the same weighted rows by five ways."""
    X, y, w = problem()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    cuts = [10, 700, 701, 2000]
    options = {"target": "label", "weight": "w", "rows": 333}
    for kind in ("parquet", "feather"):
        (tmp_path / kind).mkdir()
        write(tmp_path / kind, X, y, w, cuts, kind=kind)
    return {
        "arrays": ArraySource(X, y, w, rows=333),
        "mapped": ArraySource(mapped, y, w, rows=333),
        "blocks": BlockSource([tuple(np.split(a, cuts)[i] for a in (X, y, w)) for i in range(5)], rows=333),
        "parquet": ParquetSource(tmp_path / "parquet", **options),
        "feather": ParquetSource([tmp_path / "feather"], **options),
    }


class TestSources:
    def test_all_give_the_same_rows_in_the_same_blocks_twice(self, sources):
        X, y, w = problem()
        for name, source in sources.items():
            assert (source.n_rows, source.n_columns) == X.shape, name
            assert source.classes().tolist() == ["no", "perhaps"], name
            for _ in range(2):
                blocks = list(source.blocks())
                assert [len(block) for block in blocks] == [333] * 9 + [3], name
                assert np.array_equal(np.concatenate([b.X for b in blocks]), X), name
                assert np.concatenate([b.y for b in blocks]).tolist() == y.tolist(), name
                assert np.array_equal(np.concatenate([b.weight for b in blocks]), w), name

    def test_samples_are_rows_and_the_same_from_all(self, sources):
        X, y, _ = problem()
        rows = {tuple(x): label for x, label in zip(X.tolist(), y, strict=True)}
        first = None
        for source in sources.values():
            block = source.sample(500, np.random.default_rng(3))
            assert len({tuple(x) for x in block.X.tolist()}) == 500  # without replacement
            assert [rows[tuple(x)] for x in block.X.tolist()] == list(block.y)
            first = block if first is None else first
            assert np.array_equal(block.X, first.X)
            assert np.array_equal(block.weight, first.weight)
        assert len(sources["parquet"].sample(9999, np.random.default_rng(0))) == len(X)

    def test_every_row_is_as_likely_at_every_place_of_a_sample(self):
        n, size, draws = 20, 5, 4000
        source = BlockSource([(np.arange(n)[:, None], np.arange(n))], rows=7)
        rng = np.random.default_rng(0)
        counts = np.zeros((size, n))
        for _ in range(draws):
            counts[np.arange(size), source.sample(size, rng).X[:, 0].astype(int)] += 1
        # Each count is binomial with 1/n; 100 of them stay within five standard deviations.
        deviation = np.sqrt(draws / n * (1.0 - 1.0 / n))
        assert np.abs(counts - draws / n).max() < 5.0 * deviation

    def test_blocks_of_arrays_are_views(self):
        X, y, _ = problem()
        assert all(np.shares_memory(b.X, X) for b in ArraySource(X, y, rows=100).blocks())
        assert all(b.X.dtype == np.float32 for b in ArraySource(X.astype(np.float32), y).blocks())
        fortran = next(ArraySource(np.asfortranarray(X), y).blocks())
        assert fortran.X.flags.c_contiguous
        assert next(ArraySource(np.eye(3, dtype=int), [0, 1, 1]).blocks()).X.dtype == float

    @given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 25))
    @settings(max_examples=60, deadline=None)
    def test_recut_keeps_all_rows_in_order(self, sizes, rows):
        ends = np.cumsum([0, *sizes])
        given = [Block(np.arange(a, b, dtype=float)[:, None], np.arange(a, b)) for a, b in pairwise(ends)]
        cut = list(recut(given, rows))
        assert [i for block in cut for i in block.y] == list(range(ends[-1]))
        assert all(len(block) == rows for block in cut[:-1])
        assert all(0 < len(block) <= rows for block in cut)

    def test_precision_of_files_follows_their_columns(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        narrow = {"a": np.arange(3, dtype=np.float32), "b": np.arange(3, dtype=np.int16), "y": [0, 1, 0]}
        parquet.write_table(pa.table({**narrow, "c": [True, False, True]}), tmp_path / "narrow.parquet")
        block = next(ParquetSource(tmp_path / "narrow.parquet", target="y").blocks())
        assert block.X.dtype == np.float32
        np.testing.assert_array_equal(block.X, [[0, 0, 1], [1, 1, 0], [2, 2, 1]])
        parquet.write_table(pa.table({**narrow, "c": [1 << 40, 1, 2]}), tmp_path / "wide.parquet")
        block = next(ParquetSource(tmp_path / "wide.parquet", target="y").blocks())
        assert block.X.dtype == float
        assert block.X[0, 2] == 2.0**40
        chosen = ParquetSource(tmp_path / "wide.parquet", target="y", columns=["b", "a"])
        assert chosen.names == ["b", "a"]


class TestPasses:
    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_all_give_the_sums_of_one_block(self, sources, n_jobs):
        X, y, w = problem()
        step = step_of(X, Probit(), 1)
        truth = add_up(step, X, np.where(y == "no", -1.0, 1.0), w)
        for source in sources.values():
            data = LocalData(source, Encode(source.classes()), n_jobs)
            assert data.n_rows == 3000
            assert_same_sums(data.total(step), truth)

    def test_three_classes(self):
        X, y, w = problem(classes=3)
        step = step_of(X, Softmax(), 3)
        P = (y[:, None] == np.array(["no", "perhaps", "yes"])) * w[:, None]
        source = ArraySource(X, y, w, rows=700)
        encode = Encode(source.classes())
        assert encode.n_latents == 3
        assert_same_sums(LocalData(source, encode).total(step), add_up(step, X, P, None))

    def test_a_weight_of_two_is_two_copies(self):
        X, y, _ = problem(400)
        step = step_of(X, Probit(), 1)
        encode = Encode(np.unique(y))
        heavy = LocalData(ArraySource(X, y, np.full(400, 2.0)), encode).total(step)
        twice = LocalData(BlockSource([(X, y), (X, y)], rows=150), encode).total(step)
        np.testing.assert_allclose(heavy.curvature, twice.curvature, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(heavy.theta, twice.theta, rtol=1e-8)
        assert heavy.n == twice.n == 800.0

    def test_the_engine_settles_where_it_does_in_memory(self, sources):
        X, y, w = problem()
        basis = make_basis(3.0 * RBF([1.0, 2.0, 3.0]), X[:40])
        encode = Encode(np.array(["no", "perhaps"]))
        fits = [
            Engine(LocalData(source, encode), Probit(), dtype=np.float64).settle(basis, gradient=True)
            for source in (ArraySource(X, y, w), sources["parquet"])
        ]
        assert fits[0].bound == pytest.approx(fits[1].bound, rel=1e-10)
        np.testing.assert_allclose(fits[0].gradient, fits[1].gradient, rtol=1e-7)

    def test_samples_come_encoded(self, sources):
        data = LocalData(sources["parquet"], Encode(np.array(["no", "perhaps"])))
        X, y, w = data.sample(50, np.random.default_rng(0))
        assert X.shape == (50, 3)
        assert set(y) == {-1.0, 1.0}
        assert w is not None


class TestEncode:
    def test_unknown_labels_are_named(self):
        encode = Encode(np.array([1, 2]))
        with pytest.raises(ValueError, match="label 3 is not among the classes, which are 1, 2"):
            encode(np.array([1, 3]), None)
        with pytest.raises(ValueError, match="label 'two' is not among the classes"):
            encode(np.array(["two"]), None)
        with pytest.raises(ValueError, match="label None is not among"):
            encode(np.array([None, 1], dtype=object), None)

    def test_texts_of_all_kinds(self):
        y = np.array(["b", "a", "b"])
        for classes in (np.array(["a", "b"]), np.array(["a", "b"], dtype=object)):
            for labels in (y, y.astype(object), y.astype("U20")):
                assert Encode(classes)(labels, None)[0].tolist() == [1.0, -1.0, 1.0]


class TestReadingAhead:
    def test_next_is_read_while_one_is_in_use(self):
        def slow():
            for i in range(6):
                time.sleep(0.05)
                yield i

        start = time.perf_counter()
        with Ahead(slow()) as items:
            for _ in items:
                time.sleep(0.05)
        assert time.perf_counter() - start < 0.55  # 0.6 s one after the other, 0.35 s side by side

    def test_no_more_than_two_are_held(self):
        made = []
        with Ahead(made.append(i) or i for i in range(100)) as items:
            next(items)
            time.sleep(0.3)
            assert len(made) <= 3

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_errors_come_through_and_the_thread_ends(self, error):
        def items():
            yield 1
            raise error("broken")

        before = threading.active_count()
        with pytest.raises(error, match="broken"), Ahead(items()) as ahead:
            list(ahead)
        assert threading.active_count() == before

    def test_thread_ends_when_the_user_stops(self):
        closed = []

        def items():
            try:
                yield from range(1000)
            finally:
                closed.append(True)

        before = threading.active_count()
        with Ahead(items()) as ahead:
            next(ahead)
        assert threading.active_count() == before
        assert closed == [True]

    def test_results_in_turn(self):
        work = lambda i: time.sleep(0.01 * (i % 3)) or i * i  # noqa: E731
        assert list(in_turn(work, range(20), 3)) == [i * i for i in range(20)]


class TestErrors:
    def test_of_arrays(self):
        X, y, w = problem(10)
        with pytest.raises(ValueError, match="y has 9 rows and X has 10"):
            ArraySource(X, y[:9])
        with pytest.raises(ValueError, match="X has shape"):
            ArraySource(X[:, 0], y)
        w[7] = -1.0
        with pytest.raises(ValueError, match=r"weight of row 7 is -1.0"):
            list(ArraySource(X, y, w, rows=4).blocks())
        X[8, 2] = np.inf
        with pytest.raises(ValueError, match=r"infinity \(inf\) in row 8, column 'c'"):
            list(ArraySource(X, y, names=["a", "b", "c"], rows=3).blocks())
        with pytest.raises(ValueError, match="label of row 1 is missing"):
            list(ArraySource(np.eye(2), np.array(["a", None], dtype=object)).blocks())
        with pytest.raises(ValueError, match="more than 10000 distinct values"):
            ArraySource(np.zeros((20000, 1)), np.arange(20000)).classes()

    def test_of_blocks(self):
        X, y, _ = problem(10)
        with pytest.raises(ValueError, match="come from a generator, which can be passed over once only"):
            BlockSource((X, y) for _ in range(2))
        spent = ((X, y) for _ in range(2))
        source = BlockSource(lambda: spent)
        assert source.n_rows == 20
        with pytest.raises(ValueError, match="first pass over the blocks gave 20 rows and this one 0"):
            list(source.blocks())
        with pytest.raises(ValueError, match="block at row 10 has 2 columns, and the first 3"):
            BlockSource([(X, y), (X[:, :2], y)]).n_rows  # noqa: B018
        with pytest.raises(ValueError, match="NaN in row 12, column 1"):
            BlockSource([(X, y), (np.where(np.arange(30).reshape(10, 3) == 7, np.nan, X), y)]).n_rows  # noqa: B018
        with pytest.raises(ValueError, match="is a ndarray, expected"):
            BlockSource([X]).n_rows  # noqa: B018
        with pytest.raises(ValueError, match="no rows"):
            BlockSource([]).n_rows  # noqa: B018

    def test_of_files(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        X, y, w = problem(1000)
        write(tmp_path, X, y, w, [400], group=100)
        with pytest.raises(ValueError, match="has no columns 'lable', expected one; it has 'x0'"):
            ParquetSource(tmp_path, target="lable")
        with pytest.raises(ValueError, match=r"Column 'label' of .*part-000.parquet has type .*string"):
            ParquetSource(tmp_path, target="x0")
        X[615, 1] = np.nan
        write(tmp_path, X, y, w, [400], group=100)
        source = ParquetSource(tmp_path, target="label", weight="w", rows=64)
        with pytest.raises(ValueError, match=r"NaN in row 215 of .*part-001.parquet, column 'x1'"):
            list(source.blocks())
        labels = pa.array([None if i == 5 else "a" for i in range(9)])
        parquet.write_table(pa.table({"x": np.zeros(9), "y": labels}), tmp_path / "gap.parquet")
        with pytest.raises(ValueError, match=r"label of row 5 of .*gap.parquet is missing"):
            ParquetSource(tmp_path / "gap.parquet", target="y").classes()
        with pytest.raises(FileNotFoundError, match="no file or folder"):
            ParquetSource(tmp_path / "nothing.parquet", target="y")
        (tmp_path / "empty").mkdir()
        with pytest.raises(FileNotFoundError, match="has no Parquet or Arrow files"):
            ParquetSource(tmp_path / "empty", target="y")
        (tmp_path / "bad.parquet").write_bytes(b"not a table")
        with pytest.raises(ValueError, match=r"bad.parquet cannot be read as a Parquet file"):
            ParquetSource(tmp_path / "bad.parquet", target="y")
        (tmp_path / "table.csv").write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match=r"table.csv does not end in"):
            ParquetSource(tmp_path / "table.csv", target="y")


def test_memory_stays_flat(tmp_path):
    """A pass over 40 MB of rows holds a few blocks of 260 KB at a time."""
    import tracemalloc

    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (500_000, 10))
    X[:] = np.arange(10.0)
    source = ArraySource(X, np.zeros(len(X), dtype=np.int8), rows=3_000)
    again = BlockSource(lambda: ((b.X.copy(), b.y) for b in source.blocks()), rows=2_000)
    tracemalloc.start()
    n = sum(len(block) for block in again.blocks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 500_000
    assert peak < 4e6
