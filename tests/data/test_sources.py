"""Rows from anywhere: blocks, samples, files, and the errors when they are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from moments import MomentsJob, assert_same, labelled_rows, moments, write_files

from gpclass.data.sources import BlockSource, ParquetSource, as_source
from gpclass.validation import Encode


@pytest.fixture
def sources(tmp_path):
    """Return the same weighted rows by five ways."""
    X, y, w = labelled_rows()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    cuts = [10, 700, 701, 2000]
    options = {"target": "label", "weight": "w", "rows": 333}
    for kind in ("parquet", "feather"):
        (tmp_path / kind).mkdir()
        write_files(tmp_path / kind, X, y, w, cuts, kind=kind)
    return {
        "arrays": BlockSource([(X, y, w)], rows=333),
        "mapped": BlockSource([(mapped, y, w)], rows=333),
        "blocks": BlockSource([tuple(np.split(a, cuts)[i] for a in (X, y, w)) for i in range(5)], rows=333),
        "parquet": ParquetSource(tmp_path / "parquet", **options),
        "feather": ParquetSource([tmp_path / "feather"], **options),
    }


def as_given(source):
    """Return the rows of a source, with labels as they are."""
    return source.data(lambda y, weight: (y, weight))


def read(source):
    """Return all blocks as they enter a pass."""
    return [source.reader()(block) for block in source.blocks()]


class TestSources:
    def test_all_give_the_same_rows_in_the_same_blocks_twice(self, sources):
        X, y, w = labelled_rows()
        for name, source in sources.items():
            assert (source.n_rows, source.n_columns) == X.shape, name
            assert source.classes().tolist() == ["no", "perhaps"], name
            for _ in range(2):
                blocks = read(source)
                assert max(len(block) for block in blocks) == 333, name
                assert np.array_equal(np.concatenate([b.X for b in blocks]), X), name
                assert np.concatenate([b.y for b in blocks]).tolist() == y.tolist(), name
                assert np.array_equal(np.concatenate([b.weight for b in blocks]), w), name

    def test_samples_are_rows_and_the_same_from_all(self, sources):
        X, y, _ = labelled_rows()
        rows = {tuple(x): label for x, label in zip(X.tolist(), y, strict=True)}
        first = None
        for source in sources.values():
            block = as_given(source).sample(500, np.random.default_rng(3))
            assert len({tuple(x) for x in block.X.tolist()}) == 500  # without replacement
            assert [rows[tuple(x)] for x in block.X.tolist()] == list(block.y)
            first = block if first is None else first
            assert np.array_equal(block.X, first.X)
            assert np.array_equal(block.weight, first.weight)
        assert len(as_given(sources["parquet"]).sample(9999, np.random.default_rng(0))) == len(X)

    def test_every_row_is_as_likely_at_every_place_of_a_sample(self):
        n, size, draws = 20, 5, 1500
        source = as_given(BlockSource([(np.arange(n)[:, None], np.arange(n))], rows=7))
        rng = np.random.default_rng(0)
        counts = np.zeros((size, n))
        for _ in range(draws):
            counts[np.arange(size), source.sample(size, rng).X[:, 0].astype(int)] += 1
        # Each count is binomial with 1/n; 100 of them stay within five standard deviations.
        deviation = np.sqrt(draws / n * (1.0 - 1.0 / n))
        assert np.abs(counts - draws / n).max() < 5.0 * deviation

    def test_blocks_of_arrays_are_views(self):
        X, y, _ = labelled_rows()
        assert all(np.shares_memory(b.X, X) for b in read(BlockSource([(X, y)], rows=100)))
        assert all(b.X.dtype == np.float32 for b in read(BlockSource([(X.astype(np.float32), y)])))
        assert read(BlockSource([(np.asfortranarray(X), y)]))[0].X.flags.c_contiguous
        assert read(BlockSource([(np.eye(3, dtype=int), [0, 1, 1])]))[0].X.dtype == float


class TestOneEntry:
    def test_paths_functions_and_sources(self, tmp_path):
        X, y, w = labelled_rows(50)
        write_files(tmp_path, X, y, w, [])
        for source in (
            as_source(tmp_path, "label", "w"),
            as_source(lambda: [(X, y, w)]),
            as_source(BlockSource([(X, y, w)])),
        ):
            total = source.data(Encode(source.classes(), (-1.0, 1.0))).total(MomentsJob())
            assert_same(total, moments(X, y, w))
        assert as_source(X, y) is None

    def test_refuses_what_it_would_ignore(self):
        X, y, _ = labelled_rows(10)
        with pytest.raises(ValueError, match=r"X is the path 'a.parquet': give .*, found a ndarray\.$"):
            as_source("a.parquet", y)
        with pytest.raises(ValueError, match="X is a BlockSource, which already contains labels and weights"):
            as_source(BlockSource([(X, y)]), y)
        with pytest.raises(
            ValueError, match="client is only for Dask collections and files, but X is a ndarray"
        ):
            as_source(X, y, client=object())
        with pytest.raises(ValueError, match="BlockSource is read in this process: omit client"):
            as_source(lambda: [(X, y)], client=object())


class TestErrors:
    def test_of_arrays(self):
        X, y, w = labelled_rows(10)
        with pytest.raises(
            ValueError, match=r"X of shape \(10, 3\) and y of shape \(9,\), expected one for each row"
        ):
            BlockSource([(X, y[:9])]).classes()
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
            BlockSource([(X[:, 0], y)]).classes()
        w[7] = -1.0
        with pytest.raises(ValueError, match=r"weight of row 7 is -1.0"):
            BlockSource([(X, y, w)], rows=4).classes()
        X[8, 2] = np.inf
        with pytest.raises(ValueError, match=r"infinity \(inf\) in row 8, column 2"):
            BlockSource([(X, y)], rows=3).classes()
        with pytest.raises(ValueError, match="label of row 1 is missing"):
            BlockSource([(np.eye(2), np.array(["a", None], dtype=object))]).classes()
        with pytest.raises(ValueError, match="more than 10000 distinct values"):
            BlockSource([(np.zeros((20000, 1)), np.arange(20000))]).classes()

    def test_of_blocks(self):
        X, y, _ = labelled_rows(10)
        with pytest.raises(ValueError, match="come from a generator, which can be read only once"):
            BlockSource((X, y) for _ in range(2))
        spent = ((X, y) for _ in range(2))
        source = BlockSource(lambda: spent)
        assert source.n_rows == 20
        with pytest.raises(ValueError, match="first pass over the blocks gave 20 rows and this one 0"):
            list(source.blocks())
        with pytest.raises(ValueError, match="block at row 10 has 2 columns, and the first block has 3"):
            BlockSource([(X, y), (X[:, :2], y)])
        with pytest.raises(ValueError, match="NaN in row 12, column 1"):
            BlockSource([(X, y), (np.where(np.arange(30).reshape(10, 3) == 7, np.nan, X), y)]).classes()
        with pytest.raises(ValueError, match="is a ndarray, expected"):
            BlockSource([X])
        with pytest.raises(ValueError, match="no rows"):
            BlockSource([])


def test_memory_stays_flat(tmp_path):
    """A pass over 40 MB of rows holds a few blocks of 260 KB at a time."""
    import tracemalloc

    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (500_000, 10))
    X[:] = np.arange(10.0)
    y = np.zeros(len(X), dtype=np.int8)
    slices = [slice(start, start + 3_000) for start in range(0, len(X), 3_000)]
    again = BlockSource(lambda: ((X[rows].copy(), y[rows]) for rows in slices), rows=2_000)
    tracemalloc.start()
    n = sum(len(block) for block in again.blocks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 500_000
    assert peak < 4e6
