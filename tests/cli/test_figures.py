"""Figures of models: their kinds, their units, and what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
from cli_runner import one_sentence, run, write


def test_pictures(folder, tmp_path):
    pytest.importorskip("matplotlib")
    one = tmp_path / "one.gpc"
    run("fit", folder / "moons.csv.gz", "-t", "y", "--columns", "a", "--inference", "laplace", "-o", one)
    for model in (one, folder / "moons.gpc"):
        figure = tmp_path / f"{model.stem}.png"
        run("plot", model, "-o", figure)
        assert figure.read_bytes().startswith(b"\x89PNG")
    assert "2 columns" in one_sentence(run("plot", folder / "mixed.gpc", code=1))
    assert "2 columns" in one_sentence(run("plot", folder / "mixed.gpc", "--kind", "contour", code=1))
    assert "chains" in one_sentence(run("plot", one, "--kind", "trace", code=1))
    assert ".txt" in one_sentence(run("plot", one, "-o", tmp_path / "a.txt", code=1))


def test_units_of_pictures_are_those_of_the_table(tmp_path):
    pytest.importorskip("matplotlib")
    from gpclass.cli.figures import model_display
    from gpclass.cli.modelfile import read_model

    x = np.linspace(1000.0, 2000.0, 30)
    table = write(tmp_path / "t.csv", ["metres", "y"], zip(x, x > 1500, strict=True))
    run("fit", table, "-t", "y", "-o", tmp_path / "m.gpc", "--inference", "laplace")
    figure = model_display(read_model(str(tmp_path / "m.gpc")), "auto").figure_
    low, high = figure.axes[1].get_xlim()
    assert (low, high) == pytest.approx((900.0, 2100.0))
    assert figure.axes[1].get_xlabel() == "metres"
