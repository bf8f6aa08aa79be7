"""Leave-one-out with inducing inputs: against all rows kept, and against fits without the row."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import many_rows, three_classes
from regressions import Regressions

from gpclass import GaussianProcessClassifier, load
from gpclass.data.rows import Rows
from gpclass.inference import VI, Dirichlet
from gpclass.inference.dirichlet import Targets
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit, Softmax
from gpclass.priors.inducing import make_basis, process
from gpclass.sparse import Inducing
from gpclass.sparse.collapsed import Collapsed
from gpclass.sparse.engine import Engine
from gpclass.sparse.loo import leave_out

KERNEL = 4.0 * RBF([1.0, 1.5])
X, CODES = three_classes(40)
SOME = Inducing(inputs=X[:9].copy(), dtype="float64")


def fitted(y, inducing, X=X, weight=None, **options):
    options = {"kernel": KERNEL, "optimizer": None, "random_state": 0} | options
    return GaussianProcessClassifier(inducing=inducing, **options).fit(X, y, weight)


def every(X=X):
    return Inducing(inputs=X.copy(), dtype="float64")


def moments(step, labels, X=X):
    """Return means and variances, (n, C), of all rows, each from the others."""
    return step.moments(Rows(X, labels), step.latent.at(X))


CASES = {
    "vi": ({"inference": VI(tol=1e-9)}, CODES == 1, 5e-4),
    "vi logit": ({"inference": VI(tol=1e-9), "likelihood": "logit"}, CODES == 1, 5e-4),
    "vi softmax": ({"inference": VI(tol=1e-9), "likelihood": "softmax"}, CODES, 1e-4),
    "ep": ({"inference": "ep"}, CODES == 1, 1e-5),
    "laplace": ({"inference": "laplace"}, CODES == 1, 1e-5),
    "dirichlet": ({"inference": Dirichlet(0.01)}, CODES, 1e-5),
    "dirichlet of two": ({"inference": Dirichlet(0.01)}, CODES == 1, 1e-5),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_inputs_inducing_are_all_rows_kept(name, weighted):
    options, y, atol = CASES[name]
    weight = np.arange(40) % 3 + 0.5 if weighted else None
    exact = fitted(y, None, weight=weight, **options)
    found = fitted(y, every(), weight=weight, **options)
    assert_allclose(found.loo_proba_, exact.loo_proba_, atol=atol)
    assert_allclose(found.loo_log_score_, exact.loo_log_score_, atol=10.0 * atol)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_dirichlet_is_the_regression_of_the_other_rows(n_classes):
    y = CODES % n_classes
    found = fitted(y, every(), inference=Dirichlet(0.01), integration="map")
    exact = Regressions(X, np.eye(n_classes)[y], 0.01, KERNEL)
    model = found.base_estimator_
    basis = make_basis(KERNEL, model.inducing.Z, model.inducing.jitter)
    step = leave_out(
        model.objective.engine, basis, model.likelihood, model.inducing.q, model.posterior.offset
    )
    mean, var = moments(step, np.eye(n_classes)[y])
    for i in (0, 7, 33):
        keep = np.delete(np.arange(40), i)
        right = exact.predict(X[i : i + 1], keep)
        assert_allclose(mean[i], right[0][0], atol=1e-5)
        assert_allclose(var[i], right[1][0], atol=1e-5)


def test_dirichlet_with_few_inducing_inputs_is_the_fit_without_the_row():
    labels = np.eye(3)[CODES] * (np.arange(40) % 2 + 1.0)[:, None]
    basis = make_basis(KERNEL, X[:9].copy(), 1e-9)
    engine = Collapsed(Rows(X, labels), Targets.at(0.01), 3, np.float64)
    whole = engine.converge(basis)
    step = leave_out(engine, basis, Softmax(), whole.q, whole.offset)
    mean, var = moments(step, labels)
    for i in (0, 7, 20):  # of row 7 one of two copies goes
        less = labels.copy()
        less[i] -= np.eye(3)[CODES[i]]
        without = Collapsed(Rows(X, less), Targets.at(0.01), 3, np.float64, offset=whole.offset)
        q = without.converge(basis)
        right = process(basis, q.q.P, q.q.mean, q.offset).latent(X[i : i + 1])
        assert_allclose(mean[i], right[0][0], atol=1e-8)
        assert_allclose(np.diag(var[i]), right[1][0], atol=1e-8)


@pytest.mark.parametrize(
    "options", [{"inference": VI(tol=1e-9)}, {"inference": "ep"}, {"inference": "laplace"}], ids=str
)
def test_the_others_sites_change_little_when_a_row_goes(options):
    # The fit without the row has other sites: leave-one-out is close to it, and far from the row kept.
    X, y = many_rows(60)
    settings = Inducing(inputs=X[:12].copy(), dtype="float64")
    clf = fitted(y, settings, X, **options)
    rows = np.arange(0, 60, 6)
    right = []
    for i in rows:
        keep = np.delete(np.arange(60), i)
        right.append(fitted(y[keep], settings, X[keep], **options).predict_proba(X[i : i + 1])[0, 1])
    error = np.abs(clf.loo_proba_[rows, 1] - right)
    kept = np.abs(clf.predict_proba(X[rows])[:, 1] - right)
    assert error.max() < 0.02
    assert error.mean() < 0.2 * kept.mean()


@pytest.mark.parametrize("inference", ["vi", Dirichlet(0.01)], ids=str)
def test_rows_anywhere_give_one_answer(inference, tmp_path):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    whole = fitted(CODES == 1, SOME, inference=inference)
    pd.DataFrame(X, columns=["u", "v"]).assign(label=CODES == 1).to_parquet(tmp_path / "rows.parquet")
    parts = fitted(
        None, SOME, X=lambda: [(X[:7], CODES[:7] == 1), (X[7:], CODES[7:] == 1)], inference=inference
    )
    files = GaussianProcessClassifier(
        KERNEL, inference=inference, inducing=SOME, optimizer=None, random_state=0
    ).fit(tmp_path / "rows.parquet", "label")
    for clf in (parts, files):
        assert_allclose(clf.loo_proba_, whole.loo_proba_, atol=1e-8)
        assert_allclose(clf.loo_log_score_, whole.loo_log_score_, atol=1e-8)
        p = clf.loo_proba_[np.arange(40), (CODES == 1).astype(int)]
        assert_allclose(clf.loo_log_score_, np.log(p).mean())


def test_dask():
    pytest.importorskip("distributed", reason="needs Dask")
    import dask.array as da

    whole = fitted(CODES, SOME, inference=Dirichlet(0.01))
    dask = fitted(
        da.from_array(CODES, chunks=7), SOME, X=da.from_array(X, chunks=7), inference=Dirichlet(0.01)
    )
    assert_allclose(dask.loo_proba_, whole.loo_proba_, atol=1e-8)
    assert_allclose(dask.loo_log_score_, whole.loo_log_score_, atol=1e-8)


def test_rows_of_no_weight_are_left_out():
    weight = np.where(np.arange(40) < 5, 0.0, 1.0)
    clf = GaussianProcessClassifier(KERNEL, inducing=SOME, optimizer=None)
    blocks = clf.fit(lambda: [(X, CODES == 1, weight)])
    assert blocks.loo_proba_.shape == (35, 2)
    p = blocks.loo_proba_[np.arange(35), (CODES[5:] == 1).astype(int)]
    assert_allclose(blocks.loo_log_score_, np.log(p).mean())


def test_not_quite_converged_sites_stay_in_bounds():
    X, y = many_rows(300)
    basis = make_basis(400.0 * RBF(0.3), X[:40].copy(), 1e-9)
    engine = Engine(Rows(X, 2.0 * y - 1.0), Logit(), dtype=np.float64)
    fit = engine.converge(basis, max_passes=1)
    step = leave_out(engine, basis, Logit(), fit.q, None)
    mean, var = moments(step, 2.0 * y - 1.0, X)
    assert np.isfinite(mean).all()
    assert (var > 0.0).all()
    assert (var <= 400.0 + 1e-6).all()


def test_single_precision_and_what_is_not_kept(tmp_path):
    X, y = many_rows(1000)
    clf = GaussianProcessClassifier(KERNEL, inducing=60, optimizer=None, random_state=0).fit(X, y)
    exact = GaussianProcessClassifier(KERNEL, inducing=None, optimizer=None).fit(X, y)
    assert_allclose(clf.loo_proba_, exact.loo_proba_, atol=5e-3)
    clf.save(tmp_path / "model")
    assert not hasattr(load(tmp_path / "model"), "loo_proba_")
    stream = GaussianProcessClassifier(KERNEL, inducing=20, optimizer=None).partial_fit(X[:500], y[:500])
    with pytest.raises(AttributeError, match="training rows"):
        _ = stream.loo_log_score_
