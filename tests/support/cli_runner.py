"""What the tests of the command line share: running commands in this process, and small tables."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pytest

pytest.importorskip("click")
from click.testing import CliRunner

from gpclass.cli.app import gpclass


def run(*arguments, code=0):
    """Return the outcome of a command that is to end with an exit code."""
    result = CliRunner().invoke(gpclass, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def one_sentence(result):
    """Return the error message of a command, after checking that it is one line and not a traceback."""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("gpclass: error: ")
    assert lines[0].endswith(".")
    assert "Traceback" not in result.output
    assert not result.stdout
    return lines[0]


def write(path, header, rows):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def column(rows, name):
    return np.array([float(row[name]) for row in rows])
