"""An exported classifier says what the original says, to 1e-9, in another program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from gpclass import GaussianProcessClassifier
from gpclass.kernels import (
    RBF,
    Columns,
    CompoundKernel,
    DotProduct,
    ExpSineSquared,
    Grouped,
    Linear,
    Matern,
    NeuralNetwork,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from gpclass.likelihoods import Logit, Ordinal
from gpclass.mcmc import MCMC, EllipticalSlice
from gpclass.onnx import OnnxExportError, to_onnx
from gpclass.onnx.export import logistic, normal
from gpclass.onnx.graph import IR_VERSION, OPSETS, Graph, Value
from gpclass.sparse.settings import Inducing

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def session(model: bytes):
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])


def evaluate(function, *columns):
    """Return what a function of columns gives when the runtime works it out."""
    graph, helper = Graph(), onnx.helper
    names = [f"i{k}" for k in range(len(columns))]
    out = function(*(Value(graph, name) for name in names))
    outs = out if isinstance(out, tuple) else (out,)
    kind = onnx.TensorProto.DOUBLE
    described = helper.make_graph(
        graph.nodes,
        "f",
        [helper.make_tensor_value_info(name, kind, [None, 1]) for name in names],
        [helper.make_tensor_value_info(o.name, kind, None) for o in outs],
        graph.constants,
    )
    model = helper.make_model(
        described, opset_imports=[helper.make_opsetid("", OPSETS[""])], ir_version=IR_VERSION
    )
    feed = {name: np.asarray(c, dtype=float)[:, None] for name, c in zip(names, columns, strict=True)}
    got = [a[:, 0] for a in session(model.SerializeToString()).run(None, feed)]
    return got if isinstance(out, tuple) else got[0]


# -------------------------------------------------------------------------------- functions


def test_normal_distribution_function():
    z = np.linspace(-37.0, 37.0, 2001)
    assert np.abs(evaluate(normal, z) / ndtr(z) - 1.0).max() < 1e-12


def test_average_of_the_logistic_function():
    mp = pytest.importorskip("mpmath")
    cases = [(0.0, 1.0), (-1.0, 0.01), (3.0, 0.49), (-2.0, 0.51), (5.0, 30.0), (-40.0, 9.0), (-30.0, 400.0)]
    mean, var = np.array(cases).T
    for m, v, got in zip(mean, var, evaluate(logistic, mean, var), strict=True):
        s = mp.sqrt(v)

        def integrand(f, m=m, s=s):
            return mp.npdf(f, m, s) / (1 + mp.exp(-f))

        ends = sorted({m + k * s for k in (-14, -7, -3, 0, 3, 7, 14)} | {mp.mpf(0), m + v})
        with mp.workdps(30):
            truth = float(mp.quad(integrand, ends))
        assert abs(got - truth) < 1e-11


def test_a_factor_after_a_matrix_product_keeps_double_precision():
    x = np.linspace(-3.0, 3.0, 9)
    P = np.array([[0.3, -1.7, 2.9]])
    got = evaluate(lambda x: (((x @ P) * 0.3) @ np.ones((3, 1))) * 0.7, x)
    np.testing.assert_allclose(got, 0.21 * x * P.sum(), rtol=1e-14)


# ------------------------------------------------------------------------------------ models


def data(n=40, n_classes=2, d=3):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    f = X[:, 0] + np.sin(2.0 * X[:, -1]) + 0.3 * rng.normal(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))


def assert_agrees(clf, X):
    """Fit, export, and hold the two against each other at and far from the data."""
    rng = np.random.default_rng(2)
    Z = np.concatenate([rng.normal(size=(150, X.shape[1])) * 2.0, X, 30.0 * X[:10]])
    label, proba = session(to_onnx(clf)).run(["label", "probabilities"], {"X": Z})
    truth = clf.predict_proba(Z)
    assert proba.dtype == np.float64
    assert np.abs(proba - truth).max() < 1e-9
    ordered = np.sort(truth, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-9
    assert (label == clf.predict(Z))[clear].all()
    assert clear.sum() > 100


KERNELS = [
    9.0 * RBF([1.0, 2.0, 3.0]),
    1e6 * RBF(0.5),
    2.0 * Matern([1.0, 2.0, 3.0], nu=0.5),
    2.0 * Matern(nu=1.5) + 0.5 * RBF(3.0),
    1e4 * Matern(2.0, nu=2.5) * RBF(5.0),
    Matern(nu=np.inf),
    DotProduct() + RationalQuadratic() + WhiteKernel(0.1),
    5.0 * Columns(ExpSineSquared(), [1]) * Columns(RBF(), slice(0, 3, 2)),
    Grouped(2.0 * RBF([1.0, 2.0]) + Linear([1.0, 2.0]), [0, 1, 1]),
    RBF(1e-3) + RBF(1.0),
    2.0 * Linear([1.0, 2.0, 3.0], [0.5, -1.0, 0.0]) + RBF(),
]


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel)[:30])
def test_kernels(kernel, likelihood):
    X, y = data()
    clf = GaussianProcessClassifier(kernel, likelihood=likelihood, optimizer=None, inference="laplace")
    assert_agrees(clf.fit(X, y), X)


@pytest.mark.parametrize(
    ("likelihood", "inference"), [("logit", "vi"), ("probit", "ep"), ("logit", "laplace")]
)
@pytest.mark.slow
def test_methods_with_learned_hyperparameters(likelihood, inference):
    X, y = data(24)
    assert_agrees(GaussianProcessClassifier(likelihood=likelihood, inference=inference).fit(X, y), X)


@pytest.mark.parametrize("route", ["map", "mackay"])
@pytest.mark.parametrize("likelihood", ["probit", "logit", "softmax", "multiprobit"])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.slow
def test_other_routes(route, likelihood, n_classes):
    X, y = data(40, n_classes)
    settings = {"likelihood": likelihood, "integration": route, "optimizer": None, "inference": "laplace"}
    assert_agrees(GaussianProcessClassifier(9.0 * RBF(), **settings).fit(X, y), X)


@pytest.mark.parametrize("inference", ["vi", "ep", "laplace"])
@pytest.mark.parametrize(
    "kernel",
    [1.0 * RBF(), 100.0 * RBF(3.0), CompoundKernel([1.0 * RBF(), 30.0 * Matern(), RBF(3.0)])],
    ids=["small", "large", "own"],
)
def test_three_classes_in_one_model(kernel, inference):
    X, y = data(45, 3)
    clf = GaussianProcessClassifier(kernel, inference=inference, optimizer=None, integration="mackay")
    assert_agrees(clf.fit(X, y), X)


@pytest.mark.parametrize("route", ["map", "mackay"])
def test_three_classes_with_inducing_inputs(route):
    X, y = data(60, 3)
    settings = {"likelihood": "softmax", "inference": "vi", "inducing": 12, "integration": route}
    assert_agrees(GaussianProcessClassifier(9.0 * RBF(), optimizer=None, **settings).fit(X, y), X)


@pytest.mark.parametrize("route", ["exact", "mackay", "map"])
@pytest.mark.parametrize("labels", [[2, 0, 3, 1], [1, 0]])
def test_ordered_classes(route, labels):
    """The order of the classes is not that of the columns."""
    X, y = data(40, len(labels))
    likelihood = Ordinal(labels, widths=np.linspace(0.4, 1.5, len(labels) - 2))
    settings = {"likelihood": likelihood, "inference": "ep", "integration": route}
    assert_agrees(GaussianProcessClassifier(9.0 * RBF(), optimizer=None, **settings).fit(X, y), X)


@pytest.mark.parametrize("inference", ["vi", "ep", "laplace"])
def test_two_classes_with_inducing_inputs(inference):
    X, y = data(60)
    settings = {"inference": inference, "inducing": Inducing(12, dtype="float64")}
    assert_agrees(GaussianProcessClassifier(9.0 * RBF(), optimizer=None, **settings).fit(X, y), X)


def test_two_classes_in_one_model():
    X, y = data()
    assert_agrees(GaussianProcessClassifier(9.0 * RBF(), likelihood="softmax", optimizer=None).fit(X, y), X)


@pytest.mark.parametrize(("likelihood", "inference"), [("softmax", "laplace"), ("multiprobit", "vi")])
def test_two_coupled_functions_are_refused(likelihood, inference):
    X, y = data()
    clf = GaussianProcessClassifier(9.0 * RBF(), likelihood=likelihood, inference=inference, optimizer=None)
    with pytest.raises(OnnxExportError, match="2 classes in one model"):
        to_onnx(clf.fit(X, y))


@pytest.mark.parametrize(
    "labels",
    [np.array([5, -3, 2]), np.array(["low", "mid", "höch"]), np.array([0.0, 1.0, 4.0])],
    ids=lambda labels: labels.dtype.kind,
)
def test_labels_and_costs(labels, tmp_path):
    X, y = data(45, 3)
    clf = GaussianProcessClassifier(
        1.0 * RBF(), optimizer=None, integration="mackay", cost_matrix=[[0, 1, 9], [2, 0, 1], [1, 1, 0]]
    )
    clf.fit(X, labels[y])
    model = to_onnx(clf, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == model
    label, proba = session(model).run(["label", "probabilities"], {"X": X})
    assert (label == clf.predict(X)).all()
    assert (label != clf.classes_[proba.argmax(axis=1)]).any()


def test_one_row_and_none():
    X, y = data()
    run = session(to_onnx(GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, y))).run
    assert run(None, {"X": X[:1]})[1].shape == (1, 2)
    assert run(None, {"X": X[:0]})[1].shape == (0, 2)


def test_only_standard_operators():
    X, y = data(30, 3)
    clf = GaussianProcessClassifier(1.0 * RBF(), optimizer=None, integration="mackay").fit(X, y)
    model = onnx.load_from_string(to_onnx(clf))
    assert {node.domain for node in model.graph.node} == {""}
    assert [output.name for output in model.graph.output] == ["label", "probabilities"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_no_form_is_named():
    X, y = data(20, 4)
    short = MCMC(EllipticalSlice(), n_chains=2, n_draws=5, n_warmup=2)
    for settings, word in [
        ({"likelihood": "softmax", "inference": "laplace"}, "mackay"),
        ({"kernel": PairwiseKernel(), "integration": "map", "inference": "laplace"}, "PairwiseKernel"),
        ({"inference": "laplace"}, "4 classes"),
        ({"integration": "monte_carlo", "inference": "laplace"}, "monte_carlo"),
        ({"kernel": NeuralNetwork(), "integration": "map", "inference": "laplace"}, "NeuralNetwork"),
        ({"kernel": Matern(nu=0.7), "integration": "map", "inference": "laplace"}, "kv"),
        ({"multi_class": "one_vs_rest", "inference": "laplace"}, "joint"),
        ({"multi_class": "one_vs_one", "inference": "laplace"}, "joint"),
        ({"inference": short, "random_state": 0, "integration": "map"}, "sampled"),
    ]:
        given = {"kernel": 1.0 * RBF(), "optimizer": None} | settings
        clf = GaussianProcessClassifier(**given).fit(X, y)
        with pytest.raises(OnnxExportError, match=word):
            to_onnx(clf)


def test_a_likelihood_of_ones_own_is_refused():
    class Mine(Logit):
        def log_predict(self, mean, var):
            return np.stack([log_ndtr(-mean), log_ndtr(mean)], axis=-1)

    X, y = data()
    clf = GaussianProcessClassifier(1.0 * RBF(), likelihood=Mine(), optimizer=None, inference="laplace")
    with pytest.raises(OnnxExportError, match="likelihood"):
        to_onnx(clf.fit(X, y))


# ------------------------------------------------------------------------------------- ties


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("costs", [None, "errors", "dear"])
def test_ties_go_to_the_last_class_as_in_python(likelihood, n_classes, costs):
    # Corners of a simplex: by symmetry all classes are equally probable at its centre and far away from it.
    X, y = np.eye(n_classes) * 1.7, np.array([f"c{i}" for i in range(n_classes)])
    joint = n_classes > 2
    kernel, far = 2.3 * RBF(1.1), 1e6 * np.ones((1, n_classes))
    centre = np.array([0.1, 0.3, 1 / 3, 1.7 / n_classes])[:, None] * np.ones(n_classes)
    # With the last class dear to predict, the tie is between the others: 0.7 (1 - 1/n) for each of them.
    cost = {None: None, "errors": 1.0 - np.eye(n_classes), "dear": 0.7 * (1.0 - np.eye(n_classes))}[costs]
    if costs == "dear":
        cost[:, -1] += 0.3
    clf = GaussianProcessClassifier(
        kernel,
        optimizer=None,
        likelihood=likelihood,
        cost_matrix=cost,
        integration="mackay" if joint else "exact",
        inference="vi" if joint else "laplace",
    ).fit(X, y)
    points = np.concatenate([centre, far])
    label, proba = session(to_onnx(clf)).run(["label", "probabilities"], {"X": points})
    np.testing.assert_allclose(proba, 1.0 / n_classes, atol=1e-12)
    expected = [f"c{n_classes - (2 if costs == 'dear' else 1)}"] * len(points)
    assert clf.predict(points).tolist() == expected
    assert label.tolist() == expected


def test_costs_of_very_different_size_are_not_ties():
    X = np.linspace(-3.0, 3.0, 12)[:, None]
    clf = GaussianProcessClassifier(9.0 * RBF(1.0), optimizer=None, cost_matrix=[[0.0, 1e-9], [1e9, 0.0]])
    clf.fit(X, X[:, 0] > 0.0)
    label = session(to_onnx(clf)).run(["label"], {"X": X})[0]
    p = clf.predict_proba(X)[:, 1]
    assert (label == (1e9 * p > 1e-9 * (1.0 - p))).all()
    assert (clf.predict(X) == label).all()
