"""Rows in files: types, folders, and the errors when they are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from moments import labelled_rows, write_files

from gpclass.data.sources import ParquetSource


def read(source):
    """Return all blocks as they enter a pass."""
    return [source.reader()(block) for block in source.blocks()]


class TestFiles:
    def test_columns_of_any_numbers_become_double_precision(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = {"a": np.arange(3, dtype=np.float32), "b": np.arange(3, dtype=np.int16), "y": [0, 1, 0]}
        columns |= {"c": [True, False, True], "d": [1 << 40, 1, 2]}
        parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        (block,) = read(ParquetSource(tmp_path / "t.parquet", target="y"))
        np.testing.assert_array_equal(block.X, [[0, 0, 1, 2.0**40], [1, 1, 0, 1], [2, 2, 1, 2]])
        assert block.X.dtype == float
        chosen = ParquetSource(tmp_path / "t.parquet", target="y", columns=["b", "a"])
        assert chosen.names == ["b", "a"]

    def test_labels_and_numbers_of_all_types(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from decimal import Decimal

        from pyarrow import parquet

        x = pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3.00")])
        for i, (labels, classes) in enumerate(
            [
                (pa.array(["u", "v", "u"]).dictionary_encode(), ["u", "v"]),
                (pa.array([True, False, True]), [False, True]),
                (pa.array([7, 9, 7], type=pa.int8()), [7, 9]),
                (pa.array(["u", "v", "u"], type=pa.large_string()), ["u", "v"]),
            ]
        ):
            parquet.write_table(pa.table({"x": x, "y": labels}), tmp_path / f"{i}.parquet")
            source = ParquetSource(tmp_path / f"{i}.parquet", target="y")
            assert source.classes().tolist() == classes
            (block,) = read(source)
            assert block.X.tolist() == [[1.5], [2.25], [3.0]]
            assert block.y.tolist() == labels.to_pylist()

    def test_folders_have_hidden_files_and_folders(self, tmp_path):
        X, y, w = labelled_rows(30)
        for folder in ("a", "_hidden", ".hidden"):
            (tmp_path / folder).mkdir()
            write_files(tmp_path / folder, X, y, w, [])
        write_files(tmp_path, X, y, w, [12])
        assert ParquetSource(tmp_path, target="label").n_rows == 60
        (tmp_path / "notes.txt").write_text("no rows")
        with pytest.raises(ValueError, match=r"notes.txt cannot be read as Parquet"):
            ParquetSource(tmp_path, target="label")

    def test_of_files(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        X, y, w = labelled_rows(1000)
        write_files(tmp_path, X, y, w, [400], group=100)
        with pytest.raises(ValueError, match="has no column 'lable': its columns are 'x0'"):
            ParquetSource(tmp_path, target="lable")
        with pytest.raises(ValueError, match=r"Column 'label' of .*part-000.parquet has type .*string"):
            ParquetSource(tmp_path, target="x0", weight="label")
        X[615, 1] = np.nan
        write_files(tmp_path, X, y, w, [400], group=100)
        source = ParquetSource(tmp_path, target="label", weight="w", rows=64)
        with pytest.raises(ValueError, match=r"NaN in row 215 of .*part-001.parquet, column 'x1'"):
            read(source)
        labels = pa.array([None if i == 5 else "a" for i in range(9)])
        parquet.write_table(pa.table({"x": np.zeros(9), "y": labels}), tmp_path / "gap.parquet")
        with pytest.raises(ValueError, match=r"label of row 5 of .*gap.parquet is missing"):
            ParquetSource(tmp_path / "gap.parquet", target="y").classes()
        with pytest.raises(FileNotFoundError, match="no file or folder"):
            ParquetSource(tmp_path / "nothing.parquet", target="y")
        (tmp_path / "empty").mkdir()
        with pytest.raises(ValueError, match=r"The 0 file\(s\) of .*empty have no rows"):
            ParquetSource(tmp_path / "empty", target="y")
        (tmp_path / "bad.parquet").write_bytes(b"not a table")
        with pytest.raises(ValueError, match=r"bad.parquet cannot be read as Parquet, .*magic bytes"):
            ParquetSource(tmp_path / "bad.parquet", target="y")
        (tmp_path / "table.csv").write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match=r"table.csv cannot be read as Parquet.*; give a table"):
            ParquetSource(tmp_path / "table.csv", target="y")
