"""What a fitted classifier shows of itself in a notebook."""

from __future__ import annotations

import pytest
from problems import two_moons_like
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF

X, Y = two_moons_like(60)


def test_kernel_evidence_and_end_are_shown():
    clf = GaussianProcessClassifier(4.0 * RBF(1.0), inference="laplace")
    before = clf._repr_html_()
    assert "log evidence" not in before
    clf.fit(X, Y)
    shown = clf._repr_html_()
    assert str(clf.kernel_) in shown
    assert f"{clf.log_marginal_likelihood_value_:.4f}" in shown
    assert f"learned in {len(clf.history_)} evaluations. Converged." in shown
    bundle = clf._repr_mimebundle_()
    assert bundle["text/plain"] == repr(clf)
    assert str(clf.kernel_) in bundle["text/html"]
    with config_context(display="text"):
        assert set(clf._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(clf, "_repr_html_")


def test_a_fit_that_fell_short_says_so():
    clf = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None, max_iter_predict=1)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, Y)
    assert "did not converge in 1 iterations" in clf._repr_html_()
    assert "Hyperparameters as given." in clf._repr_html_()


def test_inducing_inputs_and_several_models():
    few = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None, inducing=10).fit(X, Y)
    assert "60, with 10 inducing inputs" in few._repr_html_()
    y = Y.astype(int) + (X[:, 0] > 0.5)
    rest = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None, multi_class="one_vs_rest").fit(X, y)
    assert "kernel 3" in rest._repr_html_()
