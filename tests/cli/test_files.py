"""What commands write: complete or not at all, never over an input, and with an ending of its kind."""

from __future__ import annotations

import os
import shutil

import pytest
from cli_runner import one_sentence, run

pytest.importorskip("resource", reason="This system has no limits of files.")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from children import in_child, small_files

import gpclass.persistence
import gpclass.plotting  # noqa: F401  (imported before the forks)
from gpclass.cli import main, tables  # noqa: F401

LAPLACE = ("--inference", "laplace", "--kernel", "rbf-shared")
COMPARE = ("compare", "-m", "laplace")


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """A folder with a table and a model of it, which the commands start in."""
    for name in ("moons.csv.gz", "moons.gpc", "mixed.csv", "mixed.gpc"):
        shutil.copy(folder / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRITERS = {
    "model": ("fit", "moons.csv.gz", "-t", "y", *LAPLACE, "-o", "x.gpc"),
    "csv": ("predict", "mixed.gpc", "mixed.csv", "-o", "x.csv"),
    "csv.gz": ("predict", "mixed.gpc", "mixed.csv", "-o", "x.csv.gz"),
    "json": ("predict", "mixed.gpc", "mixed.csv", "-o", "x.json"),
    "parquet": ("predict", "mixed.gpc", "mixed.csv", "-o", "x.parquet"),
    **{f"{end}": ("plot", "moons.gpc", "-o", f"x.{end}") for end in ("png", "svg")},
    "figure": (*COMPARE, "-o", "x.png"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_keeps_the_old_file(here, kind):
    path = here / WRITERS[kind][-1]
    run(*WRITERS[kind])
    old, names = path.read_bytes(), sorted(os.listdir(here))
    assert len(old) > 1000

    def work():
        small_files(1000)
        main(list(WRITERS[kind]))

    ended = in_child(work)
    assert ended.code == 1
    assert ended.stderr == f"gpclass: error: {path.name} cannot be written: File too large.\n"
    assert path.read_bytes() == old
    assert sorted(os.listdir(here)) == names


def test_standard_output_on_a_full_disk(here):
    full = os.open("/dev/full", os.O_WRONLY)
    ended = in_child(lambda: main(["info", "mixed.gpc"]), stdout=full)
    os.close(full)
    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr == "gpclass: error: The output cannot be used: No space left on device.\n"


def test_predictions_can_go_to_a_stream(here):
    wanted = run("predict", "mixed.gpc", "mixed.csv").stdout
    arguments = ["predict", "mixed.gpc", "mixed.csv", "-o", "/dev/stdout"]
    assert in_child(lambda: main(arguments)).stdout == wanted


INPUTS = {
    "fit": (("fit", "moons.csv.gz", "-t", "y", *LAPLACE), "moons.csv.gz"),
    "predict, table": (("predict", "mixed.gpc", "mixed.csv"), "mixed.csv"),
    "predict, model": (("predict", "mixed.gpc", "mixed.csv"), "mixed.gpc"),
    "predict, costs": (("predict", "mixed.gpc", "mixed.csv", "--cost", "cost.csv"), "cost.csv"),
    "plot": (("plot", "model.png"), "model.png"),
    "compare": (("compare", "table.png", "-t", "ill", "-m", "laplace"), "table.png"),
}


class TestRefusals:
    @pytest.mark.parametrize("case", INPUTS)
    @pytest.mark.parametrize("link", [None, os.symlink, os.link])
    def test_an_input_is_never_an_output(self, here, case, link):
        arguments, name = INPUTS[case]
        shutil.copy("mixed.gpc", "model.png")
        shutil.copy("mixed.csv", "table.png")
        (here / "cost.csv").write_text("true,no,yes\nno,0,1\nyes,5,0\n")
        output, old = name, (here / name).read_bytes()
        if link is not None:
            output = "link.png" if name.endswith(".png") else "link"
            link(here / name, here / output)
        names = sorted(os.listdir(here))
        words = one_sentence(run(*arguments, "-o", output, code=1))
        assert f"{output} is also an input" in words
        assert (here / name).read_bytes() == old
        assert sorted(os.listdir(here)) == names

    def test_the_figure_beside_a_model_is_not_the_model(self, here):
        os.rename("mixed.gpc", "mixed.png")
        assert "mixed.png is also an input" in one_sentence(run("plot", "mixed.png", code=1))

    @pytest.mark.parametrize(
        ("writer", "name", "words"),
        [
            ("model", "x.csv", "x.csv is not the name of a model file, expected one that ends in .gpc"),
            (
                "csv",
                "x.gpc",
                "x.gpc is not the name of a table file, expected one that ends in .csv, .csv.gz, .json",
            ),
            ("csv", "x.csv.zip", "x.csv.zip is not the name of a table file"),
            ("csv", "x", "x is not the name of a table file"),
        ],
    )
    def test_an_ending_of_another_kind_is_refused(self, here, writer, name, words):
        path, arguments = here / name, (*WRITERS[writer][:-1], name)
        assert words in one_sentence(run(*arguments, code=1))
        assert not path.exists()
        path.write_bytes(b"old")
        assert words in one_sentence(run(*arguments, code=1))
        assert path.read_bytes() == b"old"

    @pytest.mark.parametrize("writer", WRITERS)
    def test_an_empty_file_and_one_of_the_same_ending_are_replaced(self, here, writer):
        path = here / WRITERS[writer][-1]
        path.touch()
        run(*WRITERS[writer])
        first = path.read_bytes()
        assert first
        run(*WRITERS[writer])
        assert len(path.read_bytes()) == pytest.approx(len(first), rel=0.1)

    def test_a_directory_and_a_missing_one(self, here):
        (here / "folder").mkdir()
        for output, words in (("folder", "it is a directory"), ("none/x", "there is no directory none")):
            arguments = ("predict", "mixed.gpc", "mixed.csv", "-o", output)
            assert words in one_sentence(run(*arguments, code=1))
