"""What commands write: complete or not at all, never over an input, and over another kind of file only by force."""

from __future__ import annotations

import os
import shutil

import pytest
from cli_runner import run

pytest.importorskip("resource", reason="This system has no limits of files.")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from children import in_child, small_files

from gpclass.cli import figures, main, report  # noqa: F401  (imported before the forks)

LAPLACE = ("--inference", "laplace")
COMPARE = ("compare", "-m", "laplace", "-l", "probit")


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
    "feather": ("predict", "mixed.gpc", "mixed.csv", "-o", "x.feather"),
    **{f"{end}": ("plot", "mixed.gpc", "-o", f"x.{end}") for end in ("png", "pdf", "svg", "jpg")},
    "html": (*COMPARE, "--html", "x.html"),
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
    assert ended.stderr == "gpclass: error: Standard output cannot be written: No space left on device.\n"


def test_predictions_can_go_to_a_stream(here):
    wanted = run("predict", "mixed.gpc", "mixed.csv").stdout
    arguments = ["predict", "mixed.gpc", "mixed.csv", "-o", "/dev/stdout"]
    assert in_child(lambda: main(arguments)).stdout == wanted
