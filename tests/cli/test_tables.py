"""Tables in files of every kind are the same table, and broken ones are refused in one sentence."""

from __future__ import annotations

import os
import sys
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest
from cli_runner import column, one_sentence, rows_of, run

import gpclass
from gpclass.cli.tables import read_table

N = 60
rng = np.random.default_rng(0)
MESSY = pd.DataFrame(
    {
        "größe": np.where(rng.random(N) < 0.2, np.nan, rng.normal(1.5, 0.4, N).round(3)),
        "count": rng.integers(0, 9, N),
        "town": rng.choice(["Köln", "Ulm", "Bonn", None], N),
        "member": rng.random(N) < 0.5,
        "since": pd.date_range("2020-01-01", periods=N),
        "seen": pd.date_range("2020-01-01", periods=N, freq="7h", tz="Europe/Berlin"),
    }
)
MESSY["y"] = np.where(MESSY["count"] + 3 * (MESSY["town"] == "Ulm") > 4, "ja", "nein")
WRITERS = {
    "t.csv": lambda path: MESSY.to_csv(path, index=False),
    "t.csv.gz": lambda path: MESSY.to_csv(path, index=False),
    "t.zip": lambda path: MESSY.to_csv(path, index=False),
    "t.tsv": lambda path: MESSY.to_csv(path, index=False, sep="\t"),
    "semicolons.csv": lambda path: german(MESSY).to_csv(path, index=False, sep=";", decimal=","),
    "bom.csv": lambda path: MESSY.to_csv(path, index=False, encoding="utf-8-sig"),
    "latin.csv": lambda path: MESSY.to_csv(path, index=False, encoding="latin-1"),
    "t.jsonl": lambda path: MESSY.to_json(path, orient="records", lines=True, date_format="iso"),
    "t.json": lambda path: MESSY.to_json(path, orient="records", date_format="iso"),
    "t.xlsx": lambda path: without_zone(MESSY).to_excel(path, index=False, sheet_name="data"),
    "t.parquet": lambda path: MESSY.to_parquet(path),
    "t.feather": lambda path: MESSY.to_feather(path),
}
OPTIONS = {
    "semicolons.csv": ("--decimal", ","),
    "latin.csv": ("--encoding", "latin-1"),
    "t.xlsx": ("--sheet", "data"),
}


def german(frame):
    return frame.assign(since=frame["since"].dt.strftime("%d.%m.%Y"))


def without_zone(frame):
    return frame.assign(seen=frame["seen"].dt.tz_convert("UTC").dt.tz_localize(None))


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A folder with a table, a model of it and its predictions."""
    place = tmp_path_factory.mktemp("messy")
    WRITERS["t.csv"](place / "t.csv")
    run("fit", place / "t.csv", "-t", "y", "--kernel", "rbf", "--inference", "laplace", "-o", place / "m.gpc")
    return place


@pytest.mark.parametrize("name", WRITERS)
def test_all_files_are_the_same_table(name, messy, tmp_path):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    WRITERS[name](tmp_path / name)
    wanted = run("predict", messy / "m.gpc", messy / "t.csv", "--keep", "count").stdout
    options = OPTIONS.get(name, ())
    assert run("predict", messy / "m.gpc", tmp_path / name, "--keep", "count", *options).stdout == wanted
    frame = read_table(str(tmp_path / name), **{options[0][2:]: options[1]} if options else {})
    assert [column.kind for column in gpclass.load(messy / "m.gpc").encoder_.columns_] == [
        column.kind for column in gpclass.tables.Encoder().fit(frame.drop(columns="y")).columns_
    ]


def test_standard_input(messy):
    wanted = run("predict", messy / "m.gpc", messy / "t.csv").stdout
    from subprocess import run as start

    words = [sys.executable, "-m", "gpclass", "predict", str(messy / "m.gpc"), "-"]
    done = start(words, input=(messy / "t.csv").read_bytes(), capture_output=True)
    assert done.stdout.decode() == wanted


def test_python_and_the_command_line_have_the_same_model(messy):
    clf = gpclass.load(messy / "m.gpc")
    X = MESSY.drop(columns="y")
    rows = rows_of(run("predict", messy / "m.gpc", messy / "t.csv").stdout)
    np.testing.assert_allclose(column(rows, "p_nein"), clf.predict_proba(X)[:, 1], rtol=1e-5)
    fitted = gpclass.GaussianProcessClassifier("rbf", inference="laplace", random_state=0).fit(X, MESSY["y"])
    np.testing.assert_allclose(fitted.predict_proba(X), clf.predict_proba(X), rtol=1e-6)


def test_what_training_did_not_have_is_counted(messy, tmp_path):
    new = pd.concat([MESSY] * 40, ignore_index=True)  # three blocks of rows
    new.loc[[0, 2000], "town"] = "Rom"
    new.loc[5, "count"] = np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", messy / "m.gpc", tmp_path / "new.csv", "--no-intervals")
    assert len(rows_of(result.stdout)) == 2400
    assert result.stderr.count("training rows did not have: 1 in column 'count', 2 in column 'town'.") == 1


def test_an_identifier_is_named(tmp_path):
    MESSY.assign(id=np.arange(N)).to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "-t", "y", "--inference", "laplace", "-o", tmp_path / "m.gpc")
    assert "Column 'id' of the table numbers the rows and is likely to be an identifier" in result.stderr


BROKEN = {
    "empty": ("", "cannot be read as a table (No columns to parse from file)"),
    "header": ("a,b,y\n", "no rows"),
    "one class": ("a,y\n1,0\n2,0\n", "has 1 different label in 2 rows"),
    "infinite": ("a,y\n1,0\n-inf,1\n", "infinity (inf) in row 1, column 'a'"),
    "text": (
        "a,b,y\n1,2,0\n2,3,1\n3,4,0\n4,5,1\n5,12x,1\n6,6,1\n",
        "'b' has texts among its numbers, such as '12x'",
    ),
    "twice": ("a,a,y\n1,2,0\n", "has 'a' in its first row, expected a header with a different name"),
    "no target": ("a,b\n1,2\n", "no column 'y'"),
    "no label": ("a,y\n1,\n2,\n", "has 0 different labels in 0 rows of column 'y'"),
    "no inputs": ("y\n0\n1\n", "besides the target"),
    "short": ("a,y\n1,0\n2\n", "has 1 different label in"),
    "long": (
        "a,y\n1,0\n2,1,3\n",
        "(Expected 2 fields in line 3, saw 3): check its ending, lines above the header",
    ),
    "all long": (
        "a,y\n1,0,3\n2,1,3\n",
        "(Length of header or names does not match length of data",
    ),
    "no header": ("1,2\n3,4\n", "has '1', '2' in its first row"),
    "no name": ("a,,y\n1,2,0\n", "has '' in its first row"),
    "quotes": ('a,y\n"1,0\n2,1\n', "quotes"),
    "measurement": ("a,y\n1,0.5\n2,0.7\n3,0.1\n", "measurement"),
    "names": ("a,y\n" + "".join(f"n{i},{i % 2}\n" for i in range(50)), "--drop a"),
    "commas": (
        "a;y\n" + "".join(f"{i},5;{i % 2}\n" for i in range(50)),
        "such as '0,5': give the options that read them, such as --decimal",
    ),
    "percent": (
        "a,y\n" + "".join(f"{i}%,{i % 2}\n" for i in range(50)),
        "or --strip '%' for 5 %",
    ),
    "constant": ("a,b,y\n1,,0\n1,,1\n", "All columns of the table are constant"),
    "latin": (
        b"caf\xe9,y\n1,0\n",
        "can't decode byte 0xe9 in position 3: invalid continuation byte): check",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tables(name, tmp_path):
    content, words = BROKEN[name]
    table = tmp_path / "t.csv"
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = one_sentence(run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", code=1))
    assert words in found
    assert not (tmp_path / "m.gpc").exists()


@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "feather", "xlsx", "jsonl", "zip"])
def test_garbage_of_other_kinds(ending, tmp_path):
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    table = tmp_path / f"t.{ending}"
    table.write_bytes(np.random.default_rng(0).bytes(500))
    one_sentence(run("fit", table, "-t", "y", code=1))
    table.unlink()
    assert "No such file" in one_sentence(run("fit", table, "-t", "y", code=1))


def test_an_encoding_and_a_sheet_that_do_not_exist(messy, tmp_path):
    arguments = ("predict", messy / "m.gpc")
    done = run(*arguments, messy / "t.csv", "--encoding", "klingon", code=1)
    assert "unknown encoding: klingon" in one_sentence(done)
    MESSY.to_csv(tmp_path / "wide.csv", index=False, encoding="utf-16")
    assert "--encoding, such as latin-1 or utf-16" in one_sentence(
        run(*arguments, tmp_path / "wide.csv", code=1)
    )
    assert read_table(str(tmp_path / "wide.csv"), encoding="utf-16")["count"].equals(MESSY["count"])
    pytest.importorskip("openpyxl")
    WRITERS["t.xlsx"](tmp_path / "t.xlsx")
    done = run(*arguments, tmp_path / "t.xlsx", "--sheet", "other", code=1)
    assert "no sheet 'other': its sheets are 'data'" in one_sentence(done)


def test_decimal_commas_of_new_rows_are_refused_with_the_option(messy, tmp_path):
    german(MESSY).to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    said = one_sentence(run("predict", messy / "m.gpc", tmp_path / "t.csv", code=1))
    assert "'größe' has texts where the training rows have numbers, such as '" in said
    assert "or give the options that read it, such as --decimal ','" in said


@pytest.mark.parametrize("name", [None, "id"])
def test_the_index_of_a_frame_is_no_input(tmp_path, name):
    from gpclass.data.sources import ParquetSource

    frame = MESSY[["count", "member", "y"]].sample(frac=0.8, random_state=0)
    frame.index.name = name
    frame.to_parquet(tmp_path / "t.parquet")
    assert ParquetSource(tmp_path / "t.parquet", target="y").names == ["count", "member"]
    assert list(read_table(str(tmp_path / "t.parquet"))) == list(frame)


def test_tables_that_do_not_go_with_the_model(messy, tmp_path):
    MESSY[["count", "town"]].to_csv(tmp_path / "t.csv", index=False)
    words = one_sentence(run("predict", messy / "m.gpc", tmp_path / "t.csv", code=1))
    assert "has no columns 'größe', 'member', 'since', 'seen'" in words
    MESSY.assign(count="many").to_csv(tmp_path / "t.csv", index=False)
    words = one_sentence(run("predict", messy / "m.gpc", tmp_path / "t.csv", code=1))
    assert "The column 'count' has texts where the training rows have numbers, such as 'many'" in words


def test_columns_may_be_in_any_order_and_more_than_needed(messy, tmp_path):
    MESSY[MESSY.columns[::-1]].assign(other=1).to_csv(tmp_path / "t.csv", index=False)
    result = run("predict", messy / "m.gpc", tmp_path / "t.csv")
    assert result.stdout == run("predict", messy / "m.gpc", messy / "t.csv").stdout


@pytest.mark.parametrize("dates", [["2026-02-30", "2026-01-31"], ["30.2.2026", "31.1.2026"]])
def test_dates_that_do_not_exist_are_not_missing_values(dates, tmp_path):
    pd.DataFrame({"day": dates * 3, "y": ["a", "b"] * 3}).to_csv(tmp_path / "t.csv", index=False)
    said = one_sentence(run("fit", tmp_path / "t.csv", "-t", "y", code=1))
    assert "The column 'day'" in said
    assert "write them as 2026-01-31" in said


def test_files_and_options_that_are_refused(messy, tmp_path):
    (tmp_path / "t.ods").write_bytes(b"PK\xd0")
    assert "check its ending" in one_sentence(run("fit", tmp_path / "t.ods", "-t", "y", code=1))
    assert "--decimal" in run("fit", messy / "t.csv", "-t", "y", "--decimal", "abc", code=2).stderr
    said = one_sentence(run("fit", messy / "t.csv", "-t", "y", "--thousands", ".", code=1))
    assert "--decimal and --thousands are both '.'" in said
    MESSY.assign(tags=[[1, 2]] * N).to_json(
        tmp_path / "t.jsonl", orient="records", lines=True, date_format="iso"
    )
    said = one_sentence(run("fit", tmp_path / "t.jsonl", "-t", "y", "-o", tmp_path / "m.gpc", code=1))
    assert "The column 'tags' contains values of the type list" in said
    assert "--drop tags" in said
    pytest.importorskip("openpyxl")
    MESSY[["count", "y"]].to_excel(tmp_path / "t.xlsx", index=False, startrow=2)
    assert "has '', '' in its first row" in one_sentence(run("fit", tmp_path / "t.xlsx", "-t", "y", code=1))


def test_months_and_times_are_dates_and_durations(tmp_path):
    path = str(tmp_path / "t.csv")
    lines = ["month,start,lap,y", "2021-03,14:30,0:01:30.5,a", ",,,b", "2021-12,09:05:30,12:00,a"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    frame = read_table(path, ["y"])
    assert frame["month"].dt.month.tolist()[::2] == [3, 12]
    assert frame["start"].dt.total_seconds().tolist()[::2] == [52200.0, 32730.0]
    assert frame["lap"].dt.total_seconds().tolist()[::2] == [90.5, 43200.0]
    assert frame[["month", "start", "lap"]].isna().all(axis=1).tolist() == [False, True, False]


NOTATIONS = {
    "german": ("1.234,5", {"decimal": ",", "thousands": "."}, 1234.5),
    "english": ("1,234.5", {"thousands": ","}, 1234.5),
    "swiss": ("1'234", {"thousands": "'"}, 1234.0),
    "spaces": ("1 234", {"thousands": " "}, 1234.0),
    "percent": ("12.5 %", {"strip": "%"}, 12.5),
    "money": ("€ 1.234,50", {"decimal": ",", "thousands": ".", "strip": "€"}, 1234.5),
    "minus": ("−1.5", {}, -1.5),
    "comma": ("137,5", {"decimal": ","}, 137.5),
}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx"])
@pytest.mark.parametrize("name", NOTATIONS)
def test_numbers_in_other_notations_are_read_with_the_option_that_is_named(name, kind, tmp_path):
    text, options, value = NOTATIONS[name]
    frame = pd.DataFrame(
        {"a": [text, None, text], "day": ["01.02.2019"] * 3, "code": ["007"] * 3, "y": list("aba")}
    )
    path = str(tmp_path / f"t.{kind}")
    if kind == "csv":
        frame.to_csv(path, index=False, sep=";")
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    found = read_table(path, ["y"], **options)
    assert found["a"].tolist()[::2] == [value, value]
    assert found["a"].isna().tolist() == [False, True, False]
    assert found["day"].dt.month.tolist() == [2, 2, 2], "a date is not a number with two marks for thousands"
    if options and kind == "csv":
        said = one_sentence(run("fit", path, "-t", "y", code=1))
        assert f"has numbers as text, such as {text!r}" in said
        assert all(f"--{option} '" in said for option in options)


def test_other_texts_and_numbers_for_missing_values(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n1,unknown,u\n-999,2.5,v\n3,4.5,u\n")
    frame = read_table(str(tmp_path / "t.csv"), ["y"], missing=["unknown", "-999"])
    assert frame["a"].tolist()[::2] == [1, 3]
    assert frame["b"].tolist()[1:] == [2.5, 4.5]
    assert frame.isna().sum().tolist() == [1, 1, 0]
    frame.fillna({"a": -999}).to_parquet(tmp_path / "t.parquet")
    assert read_table(str(tmp_path / "t.parquet"), missing=["-999"])["a"].isna().tolist() == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_first_column_without_a_name_that_numbers_the_rows_is_left_out(ending, tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "y": ["u", "v"]}, index=[7, 3])
    path = str(tmp_path / f"t.{ending}")
    (frame.to_csv if ending == "csv" else frame.to_excel)(path)
    assert list(read_table(path)) == ["a", "y"]
    (tmp_path / "other.csv").write_text(",a,y\n1.5,1,u\n2.5,2,v\n")
    with pytest.raises(ValueError, match="has '' in its first row"):
        read_table(str(tmp_path / "other.csv"))


def test_rows_without_a_label_are_counted(tmp_path):
    labels = MESSY["y"].where(np.arange(N) > 2)
    MESSY[["count"]].assign(y=labels).to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "-t", "y", "--kernel", "rbf", "-o", tmp_path / "m.gpc")
    assert f"no label in 3 of {N} rows, column 'y': these rows are left out" in result.stderr
    assert f"training rows                  {N - 3}" in result.stdout


def test_files_that_can_be_read_once_and_lines_of_json(messy, tmp_path):
    wanted = read_table(str(messy / "t.csv"))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[(messy / "t.csv").read_bytes()])
    writer.start()
    assert read_table(str(tmp_path / "pipe")).equals(wanted)
    writer.join()
    WRITERS["t.jsonl"](tmp_path / "lines.json")
    assert len(read_table(str(tmp_path / "lines.json"))) == N
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as packed:
        packed.writestr("a.csv", "x\n1")
        packed.writestr("b.csv", "x\n1")
    assert "Multiple files found in ZIP file" in one_sentence(
        run("fit", tmp_path / "two.zip", "-t", "y", code=1)
    )
    (tmp_path / "t.csv").write_bytes(b"\x7fELF\xd0\0\0a,b")
    assert "cannot be read as a table" in one_sentence(run("fit", tmp_path / "t.csv", "-t", "y", code=1))
