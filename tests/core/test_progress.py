"""The progress line: what it says, and how it is written to files and terminals."""

from __future__ import annotations

import sys

from gpclass.core import progress


def test_nothing_is_written_unless_requested(capsys):
    with progress.reporter(0, "fitting") as report:
        assert report is None
    with progress.reporter(1, "fitting"):
        pass
    assert capsys.readouterr() == ("", "")


def test_stage_evidence_and_steps(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PAUSES", (0.0, 0.0))
    with progress.reporter(1, "fitting 9 rows") as report:
        report("learning on 3 rows")
        report(-2.0)
        report(-1.5)
    with progress.reporter(1, "comparing", 4) as report:
        report("ep")
        report("vi")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fitting 9 rows, 0 s: learning on 3 rows"
    assert lines[2] == "fitting 9 rows, 0 s: learning on 3 rows, log evidence -1.5000, 2 evaluations"
    assert lines[-1] == "comparing, step 2 of 4, 0 s: vi"


def test_a_file_gets_few_lines_and_always_the_last_one(capsys):
    with progress.reporter(1, "comparing", 1000) as report:
        for i in range(1000):
            report(f"row {i}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < 20
    assert lines[-1].endswith("row 999")


def test_on_a_terminal_each_line_replaces_the_one_before(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    with progress.reporter(1, "fitting 9 rows") as report:
        report("a long name of a stage that does not fit into forty columns")
        report("short")
    written = capsys.readouterr().err
    first, second, last = written.removesuffix("\n").split("\r")
    assert first.startswith("fitting 9 rows, 0 s: a long name")
    assert len(first) == len(second) == len(last) == 37
    assert last.rstrip() == second.rstrip() == "fitting 9 rows, 0 s: short"
    assert written.endswith("\n")
