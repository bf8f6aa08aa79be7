"""A new kernel needs one file, with its profile: everything else follows."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

import gpclass
from gpclass.kernels import RBF, FormulaKernel, Profile, Stationary, WhiteKernel, diag, matrix, register
from gpclass.persistence.codec import ModelFileError
from gpclass.testing import check_kernel

MODULE = """
import numpy as np
from gpclass.kernels import Covariances, FormulaKernel, Profile, Stationary


def rational(kernel):
    return Profile(value=lambda S: 1.0 / (1.0 + S), slope=lambda S: -((1.0 + S) ** -2))


class Cauchy(FormulaKernel, formulas=Stationary(rational)):
    def __init__(self, length_scale=1.0, length_scale_bounds=(1e-5, 1e5)):
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds


def exponential(kernel, X, Z, dtype):
    S = kernel.gamma * ((X * X).sum(axis=1) if Z is None else X @ Z.T)
    return Covariances(lambda: np.exp(S, dtype=dtype), lambda G, K: np.array([(G * S * np.exp(S)).sum()]))


class ExponentialProduct(FormulaKernel, formulas=exponential):
    def __init__(self, gamma=1.0, gamma_bounds=(1e-5, 1e5)):
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds
"""


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    folder = tmp_path_factory.mktemp("added")
    (folder / "added_kernels.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("added_kernels")
    sys.path.remove(str(folder))


def data(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + np.sin(2.0 * X[:, 1]) > 0.0


def kernels(added):
    cauchy, product = added.Cauchy, added.ExponentialProduct
    return [
        cauchy(1.3),
        cauchy([0.7, 1.3, 2.0]),
        2.0 * cauchy([0.7, 1.3, 2.0], "fixed") + WhiteKernel(0.1),
        product(0.3),
        2.0 * product(0.3) * cauchy(),
    ]


@pytest.mark.parametrize("which", range(5))
def test_matrix_diagonal_and_derivatives(added, which):
    # The derivatives with respect to hyperparameters and inputs are held against central differences there.
    check_kernel(kernels(added)[which], data(9)[0])


def test_values(added):
    X, Z = data(9)[0], data(5)[0] + 0.3
    scales = np.array([0.7, 1.3, 2.0])
    squares = (((X[:, None] - Z) / scales) ** 2).sum(axis=2)
    np.testing.assert_allclose(matrix(added.Cauchy(scales), X, Z), 1.0 / (1.0 + squares), rtol=1e-12)
    np.testing.assert_array_equal(diag(added.Cauchy(scales), X), np.ones(9))
    np.testing.assert_allclose(matrix(added.ExponentialProduct(0.3), X, Z), np.exp(0.3 * X @ Z.T), rtol=1e-12)
    np.testing.assert_allclose(diag(added.ExponentialProduct(0.3), X), np.exp(0.3 * (X**2).sum(axis=1)))
    assert added.Cauchy().is_stationary()
    assert not added.ExponentialProduct().is_stationary()
    assert repr(added.Cauchy([1.0, 2.0])) == "Cauchy(length_scale=[1, 2])"


@pytest.mark.parametrize("which", range(5))
def test_own_gradient(added, which):
    kernel, X = kernels(added)[which], data(9)[0]
    _, gradient = kernel(X, eval_gradient=True)
    assert gradient.shape == (9, 9, kernel.n_dims)
    for k, unit in enumerate(np.eye(kernel.n_dims)):
        up, down = (kernel.clone_with_theta(kernel.theta + step * unit) for step in (1e-5, -1e-5))
        np.testing.assert_allclose(gradient[..., k], (up(X) - down(X)) / 2e-5, rtol=1e-6, atol=1e-8)


def test_classifier_file_and_graph(added, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, y = data()
    for kernel in (0.5 * added.ExponentialProduct(0.1), 1.0 * added.Cauchy([1.0, 1.0, 1.0])):
        clf = gpclass.GaussianProcessClassifier(kernel, inference="laplace").fit(X, y)
        assert clf.score(X, y) > 0.8
        assert clf.log_marginal_likelihood_value_ > clf.log_marginal_likelihood(kernel.theta)
        proba = clf.predict_proba(X)
        clf.save(tmp_path / "model")
        again = gpclass.load(tmp_path / "model")
        assert again.kernel_ == clf.kernel_
        np.testing.assert_allclose(again.predict_proba(X), proba, rtol=1e-12)
    run = runtime.InferenceSession(gpclass.to_onnx(clf), providers=["CPUExecutionProvider"]).run
    np.testing.assert_allclose(run(["probabilities"], {"X": X})[0], proba, atol=1e-9)


def test_scikit_learns_regressor_learns_with_it(added):
    X, y = data()
    model = GaussianProcessRegressor(1.0 * added.Cauchy(), alpha=0.1).fit(X, y.astype(float))
    start = GaussianProcessRegressor(1.0 * added.Cauchy(), alpha=0.1, optimizer=None).fit(X, y.astype(float))
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_


def test_a_kernel_that_is_not_registered_cannot_be_saved(tmp_path):
    class Halved(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return 0.5 * super().__call__(X, Y)

        def diag(self, X):
            return 0.5 * super().diag(X)

    clf = gpclass.GaussianProcessClassifier(Halved(), optimizer=None, inference="laplace").fit(*data())
    with pytest.raises(ModelFileError, match="Halved"):
        clf.save(tmp_path / "model")


def test_two_kernels_cannot_have_one_name_in_files():
    with pytest.raises(TypeError, match="rename one of them"):
        register(type("RBF", (RBF,), {}), Stationary(lambda kernel: Profile(np.exp, np.exp)))


def test_a_subclass_without_formulas_of_its_own_has_those_of_its_parent(added):
    class Renamed(added.Cauchy):
        pass

    X = data(5)[0]
    np.testing.assert_array_equal(Renamed(2.0)(X), added.Cauchy(2.0)(X))
    assert isinstance(Renamed(), FormulaKernel)
