"""Files to download hold what is on the page."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from explore_states import line, plane
from sklearn.exceptions import ConvergenceWarning

from gpclass.explore import files
from gpclass.explore.fit import fit
from gpclass.explore.state import (
    set_kernel,
)
from gpclass.kernels import kernel_names


def test_a_csv_file_is_read_back_exactly():
    state = line()
    rows = [each.split(",") for each in files.to_csv(state).splitlines()]
    assert rows[0] == ["x", "class"]
    np.testing.assert_array_equal([float(x) for x, _ in rows[1:]], state.points.X[:, 0])


@pytest.mark.parametrize("name", kernel_names())
@pytest.mark.parametrize("operator", ["alone", "times"])
def test_the_code_has_every_kernel_in_full_precision(name, operator):
    state = set_kernel(plane(), first=name, operator=operator, second="matern52")
    run(state)


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("method", ["laplace", "ep", "vi", "dirichlet", "mcmc"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.slow
def test_the_code_has_every_method(method, n_classes):
    if method == "mcmc":
        pytest.importorskip("arviz_stats")
    run(replace(plane(n_classes, 6), method=method, cost=2.5, integration="map"))


def run(state):
    """Run the code of a state as it is, but for the drawing, and compare the probabilities."""
    variables: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few draws, as on the page
        exec(compile(files.python_code(state).partition("# Draw")[0], "explore.py", "exec"), variables)
    fitted, X = fit(state), state.points.X + 0.1
    np.testing.assert_allclose(variables["clf"].predict_proba(X), fitted.clf.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(variables["clf"].predict(X), fitted.clf.predict(X))


def test_the_model_file_predicts_the_same(tmp_path):
    pytest.importorskip("safetensors")
    from gpclass import load

    state = plane(3)
    (tmp_path / "model.gpc").write_bytes(files.file_of(state, "gpc"))
    clf, X = load(tmp_path / "model.gpc"), state.points.X
    np.testing.assert_allclose(clf.predict_proba(X), fit(state).clf.predict_proba(X), rtol=1e-10)


def test_pictures_are_files_of_their_kind():
    pytest.importorskip("matplotlib")
    assert files.file_of(line(), "png").startswith(b"\x89PNG")
    assert b"<svg" in files.file_of(plane(), "svg")[:1000]
