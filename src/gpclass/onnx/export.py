"""Export of a fitted classifier to a graph: latent moments, probabilities, decision."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.core.checks import optional
from gpclass.core.files import replacing
from gpclass.decision import TIE, check_cost
from gpclass.estimator import GaussianProcessClassifier
from gpclass.learning.combine import Combined
from gpclass.learning.fitted import FittedModel
from gpclass.likelihoods import Logit, MultiProbit, Probit, Softmax
from gpclass.onnx.functions import logistic, normal
from gpclass.onnx.graph import IR_VERSION, OPSET, Graph, OnnxExportError, Value, join
from gpclass.onnx.latent import moments

LARGEST = 1_900_000_000  # bytes: a graph in one piece has at most 2 GB


def to_onnx(estimator: Any, path: str | os.PathLike[str] | None = None) -> bytes:
    """Return a fitted classifier as an ONNX graph, in double precision and with standard operators only.

    The input is ``X``, rows of float64. The outputs are ``label`` and ``probabilities``, which agree with
    `predict` and `predict_proba` to 1e-9, or to seven digits if the classifier predicts in single precision.
    If classes tie, both choose the last one in ``classes_``. The graph of a classifier that was fitted to a table with
    categories or missing values takes the coded rows, ``estimator.encoder_.transform(X)``.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted by an approximation. Three or more classes in one model need ``integration="mackay"`` or ``"map"``;
        two classes and one-vs-rest do not, and one-vs-one has no ONNX form. The kernel must be registered, and its
        value must use only functions that ONNX has.
    path : str or path, default=None
        File to which the graph is also written.

    Returns
    -------
    bytes
        The graph, for an ONNX runtime.

    Raises
    ------
    OnnxExportError
        A ValueError that says what has no ONNX form, and what to use instead.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.datasets import interval
    >>> from gpclass.onnx import to_onnx
    >>> X, y, X_test, y_test = interval()
    >>> import onnx
    >>> graph = onnx.load_from_string(to_onnx(GaussianProcessClassifier().fit(X, y))).graph
    >>> [output.name for output in graph.output]
    ['label', 'probabilities']
    """
    if not isinstance(estimator, GaussianProcessClassifier):
        raise OnnxExportError(
            f"A {type(estimator).__name__} cannot be exported, expected a GaussianProcessClassifier of gpclass: give "
            "the classifier inside it, such as pipeline[-1], and prepare the input of the graph as the pipeline does."
        )
    check_is_fitted(estimator)
    optional("onnx", "to_onnx()", "onnx")
    from onnx import TensorProto, checker, helper

    graph = Graph()
    P = _probabilities(estimator, graph.input("X"))
    P = graph.apply("Identity", P, output="probabilities")
    classes = _labels(estimator.classes_)
    best = _decision(estimator, P)
    graph.apply("Gather", classes, best, output="label", axis=0)
    kind = helper.np_dtype_to_tensor_dtype(classes.dtype) if classes.dtype != object else TensorProto.STRING
    if sum(len(constant.raw_data) for constant in graph.constants) > LARGEST:
        raise OnnxExportError(
            "An ONNX graph can hold at most 2 GB, and the model is larger: fit it to fewer rows."
        )
    coded, n_classes = estimator.encoder_, len(classes)
    n_features = estimator.n_features_in_ if coded is None else len(coded.groups_)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "gpclass",
            [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", n_features])],
            [
                helper.make_tensor_value_info("label", kind, ["n"]),
                helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n", n_classes]),
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="gpclass",
    )
    checker.check_model(model)
    out: bytes = model.SerializeToString()
    if path is not None:
        with replacing(path) as file:
            file.write(out)
    return out


def _labels(classes: Any) -> Any:
    if classes.dtype.kind in "UO":
        return np.array([str(c) for c in classes], dtype=object)
    return classes if classes.dtype.kind in "fb" else classes.astype(np.int64)


def _decision(estimator: Any, P: Value) -> Value:
    """Return the position of the class with the least expected cost, the last one of ties (`bayes_decision`)."""
    worth, size = P, P
    if estimator.cost_matrix is not None:
        cost = check_cost(estimator.cost_matrix, estimator.n_classes_, estimator.n_classes_)
        worth, size = -(P @ cost), P @ np.abs(cost)
    best = P.graph.apply("ReduceMax", worth - TIE * size, axes=[1], keepdims=1)
    beaten = (worth + TIE * size < best).where(np.float64(1.0), np.float64(0.0))
    return P.graph.apply("ArgMin", beaten, axis=1, keepdims=0, select_last_index=1)


def _probabilities(estimator: Any, X: Value) -> Value:
    base, route = estimator.base_estimator_, estimator.integration
    if route == "monte_carlo":
        raise OnnxExportError("integration='monte_carlo' has no ONNX form: use 'exact', 'mackay' or 'map'.")
    if isinstance(base, Combined) and base.pairs:
        raise OnnxExportError("multi_class='one_vs_one' has no ONNX form: use 'one_vs_rest'.")
    second = [_second_class(model, X, route) for model in base.models if model.n_classes == 2]
    if isinstance(base, Combined):
        return _shares(join(second).maximum(1e-300))
    return join([1.0 - second[0], second[0]]) if second else _joint(base, X, route)


# ------------------------------------------------------------------------------ two classes


def _second_class(model: FittedModel, X: Value, route: str) -> Value:
    """Return the probability of the second of two classes, as a column.

    Two latent functions of a model of all classes are one, their difference, with a link that is wider.
    """
    kind = type(model.likelihood)
    if kind not in (Logit, Probit, MultiProbit, Softmax):
        raise _no_form(model)
    mean, cov = moments(model, X, variances=route != "map")
    if len(mean) == 2 and route != "exact":
        return _at_values(kind, _moderate(model.likelihood, mean, cov, route))[[1]]
    noise = 1.0  # variance of a probit link
    f = mean[0]
    if len(mean) == 2:
        f, noise = mean[1] - mean[0], 2.0
        cov = {(0, 0): (cov[0, 0] + cov[1, 1] - cov[0, 1] * 2.0).maximum(0.0)}
    elif route == "mackay":
        [f] = _moderate(model.likelihood, mean, cov, route)
    if kind in (Logit, Softmax):
        return logistic(f, cov[0, 0]) if route == "exact" else 1.0 / (np.exp(-f) + 1.0)
    return normal(f / np.sqrt(cov[0, 0] + noise) if route == "exact" else f)


def _no_form(model: FittedModel) -> OnnxExportError:
    return OnnxExportError(
        f"The likelihood {model.likelihood!r} has no ONNX form: use 'probit' or 'logit' for two classes, "
        "'multiprobit' or 'softmax' for more."
    )


def _shares(P: Value) -> Value:
    out: Value = P / P.sum()
    return out


# --------------------------------------------------------------------------------- all classes


def _joint(model: FittedModel, X: Value, route: str) -> Value:
    kind = type(model.likelihood)
    if kind not in (MultiProbit, Softmax):
        raise _no_form(model)
    mean, cov = moments(model, X, variances=route != "map")
    if route == "exact":
        raise OnnxExportError(
            f"The exact probabilities of {model.n_classes} classes in one model have no ONNX form: export after "
            "set_params(integration='mackay'), or fit with multi_class='one_vs_rest'."
        )
    return _at_values(kind, _moderate(model.likelihood, mean, cov, route))


def _moderate(
    likelihood: Any, mean: list[Value], cov: dict[tuple[int, int], Value], route: str
) -> list[Value]:
    """Return the latent values at which the probabilities are computed: the means, or MacKay's moderated ones."""
    if route == "map":
        return mean
    rate = 1.0 / likelihood.probit_scale**2
    return [m / np.sqrt(cov[c, c] * rate + 1.0) for c, m in enumerate(mean)]


def _at_values(kind: type, f: list[Value]) -> Value:
    """Return the probabilities of the classes for given latent values.

    By the multinomial probit P(f_c + e_c is the largest) = ∫ phi(u) Π_k Phi(u + f_c - f_k) du, here by the
    trapezoidal rule.
    """
    if kind is Softmax:
        return f[0].graph.apply("Softmax", join(f), axis=1)
    h = 0.6 / np.sqrt(len(f))
    u = h * np.arange(-np.ceil(8.5 / h), np.ceil(8.5 / h) + 1.0)
    weight = h * np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
    columns = []
    for mine in f:
        factors = [normal(mine - other + u[None, :]) for other in f if other is not mine]
        columns.append(math.prod(factors[1:], start=factors[0]) @ weight[:, None])
    return _shares(join(columns))
