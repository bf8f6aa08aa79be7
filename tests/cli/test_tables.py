"""CSV, Parquet and Feather files are read alike, and broken ones refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from cli_runner import column, one_sentence, rows_of, run


def test_arrow_tables_are_the_same_as_csv(folder, mixed, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table({name: pa.array(values.tolist()) for name, values in mixed.items()})
    table = table.set_column(2, "ward", table["ward"].dictionary_encode())
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        made = tmp_path / "made.gpc"
        run("fit", tmp_path / name, "-t", "ill", "-o", made)
        again = run("predict", made, tmp_path / name).stdout
        assert again == run("predict", folder / "mixed.gpc", folder / "mixed.csv").stdout
    for name in ("out.parquet", "out.feather"):
        run("predict", folder / "mixed.gpc", tmp_path / "t.parquet", "-o", tmp_path / name)
    out = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert out == feather.read_table(tmp_path / "out.feather").to_pydict()
    np.testing.assert_allclose(out["p_yes"], column(rows_of(again), "p_yes"), rtol=1e-5)


BROKEN = {
    "empty": ("", "is empty"),
    "header": ("a,b,y\n", "no rows"),
    "one class": ("a,y\n1,0\n2,0\n", "only the class '0'"),
    "missing": ("a,b,y\n1,2,0\n1,,1\n1,NaN,1\n", "row 2, column 'b' (2 rows"),
    "infinite": ("a,y\n1,0\n-inf,1\n", "'-inf' in row 2, column 'a'"),
    "text": ("a,b,y\n1,2,0\n2,3,1\n3,4,0\n4,5,1\n5,12x,1\n6,6,1\n", "'12x' in row 5, column 'b'"),
    "odd nan": ("a,y\n1,0\n2,1\n3,1\n4,1\n-nan,1\n5,0\n", "'-nan' in row 5"),
    "twice": ("a,a,y\n1,2,0\n", "more than one column called 'a'"),
    "separator": ("a;b;y\n1;2;0\n", "--separator ';'"),
    "tabs": ("a\tb\ty\n1\t2\t0\n", "--separator '\\t'"),
    "no target": ("a,b\n1,2\n", "no column 'y'"),
    "no label": ("a,y\n1,\n2,0\n", "no label in row 1"),
    "no inputs": ("y\n0\n1\n", "besides the target"),
    "short": ("a,y\n1,0\n2\n", "no label in row 2"),
    "long": ("a,y\n1,0\n2,1,3\n", "Expected 2 fields in line 3, saw 3"),
    "no header": ("1,2\n3,4\n", "starts with numbers"),
    "no name": ("a,,y\n1,2,0\n", "column 2"),
    "quotes": ('a,y\n"1,0\n2,1\n', "quotes"),
    "measurement": ("a,y\n1,0.5\n2,0.7\n3,0.1\n", "measurement"),
    "names": ("a,y\n" + "".join(f"n{i},{i % 2}\n" for i in range(50)), "--drop a"),
    "commas": ("a;y\n" + "".join(f'"{i},5";{i % 2}\n' for i in range(50)), "decimal point"),
    "empty column": ("a,b,y\n1,,0\n2,,1\n", "--drop b"),
    "binary": (b"\x00\x01\x02\xff" * 50, "binary"),
    "latin": (b"caf\xe9,y\n1,0\n", "UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tables(name, tmp_path):
    content, words = BROKEN[name]
    table = tmp_path / "t.csv"
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = ("--separator", ";") if name == "commas" else ()
    found = one_sentence(run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", *options, code=1))
    assert words in found
    assert not (tmp_path / "m.gpc").exists()


@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "feather"])
def test_garbage_of_other_kinds(ending, tmp_path):
    table = tmp_path / f"t.{ending}"
    table.write_bytes(np.random.default_rng(0).bytes(500))
    assert "damaged" in one_sentence(run("fit", table, "-t", "y", code=1))
    table.unlink()
    assert "No such file" in one_sentence(run("fit", table, "-t", "y", code=1))


def test_numbers_are_exact_and_odd_spellings_are_not_numbers():
    import pandas as pd

    from gpclass.cli.tables import numbers

    rng = np.random.default_rng(0)
    values = rng.normal(size=1000) * 10.0 ** rng.integers(-200, 200, 1000)
    np.testing.assert_array_equal(numbers(pd.Series([repr(x) for x in values.tolist()])), values)
    assert numbers(pd.Series(["1_000", "0x10", "True", "1,5", "nan", None])).isna().all()


def test_errors_name_the_row_of_the_file_in_a_sample_too(tmp_path):
    from gpclass.cli.tables import read_table

    table = tmp_path / "t.csv"
    table.write_text("a,y\n1,0\n2,1\n,1\n")
    assert read_table(str(table)).take([2])["a"].isna().idxmax() == 2


@pytest.mark.parametrize("name", [None, "id"])
def test_the_index_of_a_frame_is_no_input(tmp_path, name):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from gpclass.data.parquet import ParquetSource

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40)})
    frame["y"] = (frame["a"] > 0).astype(int)
    frame = frame.sample(frac=0.8, random_state=0)
    frame.index.name = name
    frame.to_parquet(tmp_path / "t.parquet")
    assert ParquetSource(tmp_path / "t.parquet", target="y").names == ["a", "b"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    for kind in ("parquet", "csv"):
        run("fit", tmp_path / f"t.{kind}", "-t", "y", "-o", tmp_path / f"{kind}.gpc")
    predicted = [
        run("predict", tmp_path / f"{kind}.gpc", tmp_path / "t.csv").stdout for kind in ("parquet", "csv")
    ]
    assert predicted[0] == predicted[1]


def test_loading_a_file_of_the_command_line_says_that_its_columns_are_encoded(folder):
    from gpclass.persistence import load

    with pytest.warns(UserWarning, match="written by the command line"):
        load(folder / "mixed.gpc")


def compressed_table(path, n):
    """Write a table that is small in the file and has so many rows of the same values."""
    if path.suffix == ".gz":
        import gzip

        path.write_bytes(gzip.compress(b"a,b,y\n" + b"1.5,2.5,0\n" * n))
        return
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.table({name: pa.array(np.zeros(n)) for name in ("a", "b", "y")})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="zstd", chunksize=10_000)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", "t.feather"])
def test_a_table_that_does_not_fit_in_memory_is_not_read_to_its_end(name, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import tracemalloc

    path, limit = tmp_path / name, 10_000_000
    compressed_table(path, 1_000_000)  # 10 MB as text, 24 MB as numbers
    assert path.stat().st_size < 500_000
    monkeypatch.setattr("gpclass.core.memory.available_memory", lambda: limit)
    tracemalloc.start()
    result = run("fit", path, "-t", "y", "-o", tmp_path / "m.gpc", code=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit
    assert pa.default_memory_pool().bytes_allocated() < limit
    assert "0.01 GB is available: give a file with fewer rows or columns" in one_sentence(result)
    monkeypatch.setattr("gpclass.core.memory.available_memory", lambda: None)  # it is not known
    compressed_table(path, 100)
    assert "only the class" in one_sentence(run("fit", path, "-t", "y", code=1))


@pytest.mark.parametrize("values", ["1", "12", "0.123456789", "a longer text, in many rows"])
def test_the_memory_of_a_table_is_estimated(values, tmp_path, monkeypatch):
    import tracemalloc

    from gpclass.cli.files import InputError
    from gpclass.cli.tables import read_table

    path, have = str(tmp_path / "t.csv"), [None]
    monkeypatch.setattr("gpclass.core.memory.available_memory", lambda: have[0])
    rows = [f'"{values}","{i}","{i % 7}"' for i in range(30_000)]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(rows))
    read_table(path)  # imports what it needs
    tracemalloc.start()
    read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    have[0] = 3.0 * peak
    read_table(path)
    have[0] = 0.5 * peak
    with pytest.raises(InputError, match="of memory as a table"):
        read_table(path)
