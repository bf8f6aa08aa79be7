"""The table of a comparison: as text, as a data frame and as a picture."""

from __future__ import annotations

import builtins
import re

import pandas as pd
import pytest
from problems import two_moons_like
from sklearn.linear_model import LogisticRegression

from gpclass.comparison import compare
from gpclass.inference import EP
from gpclass.kernels import RBF
from gpclass.plotting import ComparisonDisplay

X, Y = two_moons_like(60)
QUICK = {"kernel": 4.0 * RBF(1.5), "learn": False, "n_samples": 0, "random_state": 0}


@pytest.fixture(scope="module")
def result():
    methods = {"<GP>": "laplace", "hasty": EP(max_iter=1), "line": LogisticRegression()}
    return compare(X, Y, methods=methods, cv=3, **QUICK)


def test_best(result):
    for metric, pick in (("log_loss", min), ("error", min), ("evidence", max)):
        values = [getattr(row, metric) for row in result.rows if getattr(row, metric) is not None]
        assert getattr(result.best(metric), metric) == pick(values)
    with pytest.raises(ValueError, match="No method has a value of khat"):
        result.best("khat")
    with pytest.raises(ValueError, match="metric='loss' is not possible"):
        result.best("loss")
    with pytest.raises(KeyError, match="No method is called 'ep'"):
        result["ep"]


def test_text_is_aligned_and_says_all(result):
    lines = str(result).splitlines()
    table = lines[2:6]
    cells = ["log evidence", *(f"{row.evidence:.3f}" for row in result.rows[:2]), "–"]
    ends = [line.index(cell) + len(cell) for line, cell in zip(table, cells, strict=True)]
    assert len(set(ends)) == 1, "numbers end below their headings"
    assert re.match(r"line +– +– +– +0\.\d{4} ± 0\.\d{4} ", table[3]), "no evidence is a dash, not zero"
    assert "<GP>   2**2 * RBF(length_scale=1.5)" in lines
    assert any(line.startswith("hasty  EP(") for line in lines), "its note"
    assert max(map(len, lines)) <= 110
    assert repr(result) == str(result)


def test_a_blank_line_ends_a_table_without_marks():
    lines = str(compare(X, Y, methods="laplace", cv=None, **QUICK)).splitlines()
    assert lines[4:] == ["", "laplace  2**2 * RBF(length_scale=1.5)"]


def test_frame(result):
    frame = result.to_frame()
    assert list(frame.index) == ["<GP>", "hasty", "line"]
    assert frame.loc["line", "evidence"] is pd.NA
    assert frame["log_loss"].tolist() == [row.log_loss for row in result.rows]
    assert "did not converge" in frame.loc["hasty", "note"]


def test_picture(result):
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    axes = ComparisonDisplay(result).plot().axes_
    assert len(axes) == 3
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == ["<GP>", "hasty", "line"]
    dots = [container[0].get_xdata()[0] for container in axes[0].containers]
    assert dots == [row.log_loss for row in result.rows]
    evidences = sorted(float(line.get_xdata()[0]) for line in axes[1].lines)
    assert evidences == sorted(row.evidence for row in result.rows[:2])
    _, own = plt.subplots(1, 3)
    assert ComparisonDisplay(result).plot(own).axes_ is own
    plt.close("all")


@pytest.mark.parametrize("tqdm", [True, False])
def test_progress(capsys, monkeypatch, tqdm):
    real = builtins.__import__

    def without_tqdm(name, *args, **kwargs):
        if name.startswith("tqdm") and not tqdm:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    compare(X, Y, methods="laplace", cv=2, verbose=1, **QUICK)
    err = capsys.readouterr().err
    assert "comparing" in err
    assert "fold 2 of 2" in err
    compare(X, Y, methods="laplace", cv=2, **QUICK)
    assert capsys.readouterr().err == ""
