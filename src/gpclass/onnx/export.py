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
from gpclass.likelihoods import Logit, MultiProbit, Probit, Softmax
from gpclass.onnx.functions import logistic, normal
from gpclass.onnx.graph import IR_VERSION, OPSETS, Graph, OnnxExportError, Value, join
from gpclass.onnx.kernels import covariances
from gpclass.onnx.tables import read_columns
from gpclass.posteriors import GaussianProcess

LARGEST = 1_900_000_000  # largest size in bytes; a graph in one file has at most 2 GB


def to_onnx(estimator: Any, path: str | os.PathLike[str] | None = None) -> bytes:
    """Return a fitted classifier as an ONNX graph, in double precision and with standard operators only.

    The input is ``X``, rows of float64. In tables without text NaN is a missing value, truth values are 0 and 1, and
    dates and durations are days. A table with text has an input of shape (n, 1) for each column that is not constant,
    with the name of the column; missing text is the empty string. The outputs are ``label`` and ``probabilities``,
    which agree with `predict` and `predict_proba` to 1e-9, or to seven digits if the classifier predicts in single
    precision. If classes tie, both choose the last one in ``classes_``.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted by an approximation, with one model of all classes. Three or more classes need
        ``integration="mackay"`` or ``"map"``. The kernel may have stationary and linear kernels, constants, sums,
        products and ``Columns``.
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

    graph, describe = Graph(), helper.make_tensor_value_info
    X, inputs = Value(graph, "X"), [describe("X", TensorProto.DOUBLE, ["n", estimator.n_features_in_])]
    if estimator.encoder_ is not None:
        X, inputs = read_columns(graph, estimator.encoder_)
    P = graph.apply("Identity", _probabilities(estimator, X), output="probabilities")
    classes = estimator.classes_
    if classes.dtype.kind in "UO":
        classes, kind = np.array([str(c) for c in classes], dtype=object), TensorProto.STRING
    else:
        classes = classes if classes.dtype.kind in "fb" else classes.astype(np.int64)
        kind = helper.np_dtype_to_tensor_dtype(classes.dtype)
    graph.apply("Gather", classes, _decision(estimator, P), output="label", axis=0)
    if sum(len(constant.raw_data) for constant in graph.constants) > LARGEST:
        raise OnnxExportError(
            "An ONNX graph can hold at most 2 GB, and the model is larger: fit it to fewer rows."
        )
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "gpclass",
            inputs,
            [
                describe("label", kind, ["n"]),
                describe("probabilities", TensorProto.DOUBLE, ["n", len(classes)]),
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid(name, OPSETS[name]) for name in {n.domain for n in graph.nodes}],
        ir_version=IR_VERSION,
        producer_name="gpclass",
    )
    checker.check_model(model)
    out: bytes = model.SerializeToString()
    if path is not None:
        with replacing(path) as file:
            file.write(out)
    return out


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
    """Return the class probabilities, one column for each class."""
    model, route = estimator.base_estimator_, estimator.integration
    if len(model.models) > 1:
        raise OnnxExportError(
            f"multi_class={estimator.multi_class!r} has no ONNX form: fit with multi_class='joint'."
        )
    if route == "monte_carlo":
        raise OnnxExportError("integration='monte_carlo' has no ONNX form: use 'exact', 'mackay' or 'map'.")
    kind = type(model.likelihood)
    if kind not in (Logit, Probit, MultiProbit, Softmax):
        raise OnnxExportError(
            f"The likelihood {model.likelihood!r} has no ONNX form: use 'probit' or 'logit' for two classes, "
            "'multiprobit' or 'softmax' for more."
        )
    if route == "exact" and model.n_classes > 2:
        raise OnnxExportError(
            f"The exact probabilities of {model.n_classes} classes in one model have no ONNX form: export after "
            "set_params(integration='mackay')."
        )
    mean, cov = _moments(model.posterior, X, variances=route != "map")
    if route == "exact":
        return _second_class(kind, mean, cov)
    if route == "mackay":
        rate = 1.0 / model.likelihood.probit_scale**2
        mean = [m / np.sqrt(cov[c, c] * rate + 1.0) for c, m in enumerate(mean)]
    if len(mean) == 1:
        p: Value = normal(mean[0]) if kind is Probit else 1.0 / (np.exp(-mean[0]) + 1.0)
        return join([1.0 - p, p])
    return _at_values(kind, mean)


def _moments(q: Any, X: Value, variances: bool) -> tuple[list[Value], dict[tuple[int, int], Value]]:
    """Return means and, if requested, covariances of the latent values f_c, as columns.

    With the row k_c of covariances with the inputs, the factors F_c and the root T of the posterior,

        mean_c(x) = offset_c + k_c alpha_c
        cov_cd(x) = [c = d] (k_c(x, x) - |k_c Tᵀ|² - |k_c F_cᵀ|²)                       if they are independent
        cov_cd(x) = [c = d] (k_c(x, x) - (k_c F_cᵀ)·(k_c T)) + (k_c F_cᵀ)·(k_d F_dᵀ)    if they are coupled
    """
    if not isinstance(q, GaussianProcess):
        raise OnnxExportError(
            f"A model that was sampled ({type(q).__name__}) is an average over many draws, which "
            "has no ONNX form: fit with inference='vi', 'ep' or 'laplace' and hyperparameters='learn'."
        )
    alpha, width = q.alpha.reshape(len(q.alpha), -1), q.inputs.shape[1] if np.ndim(q.inputs) == 2 else 0
    functions = range(alpha.shape[1])
    own = [c % len(q.kernels) for c in functions]  # index of the kernel of each function
    Ks = [covariances(kernel, X, width, q.inputs) for kernel in q.kernels]
    offset = np.zeros(len(functions)) if q.offset is None else q.offset
    mean = [Ks[own[c]] @ alpha[:, c : c + 1] + float(offset[c]) for c in functions]
    cov: dict[tuple[int, int], Any] = {}
    if not variances:
        return mean, cov
    priors = [covariances(kernel, X, width) for kernel in q.kernels]
    root = None if q.root is None else np.tril(q.root).astype(float)
    if root is not None and not q.coupled:
        whitened = [K @ root.T for K in Ks]
        priors = [prior - (T * T).sum() for prior, T in zip(priors, whitened, strict=True)]
    # A class without rows has a factor without rows.
    Y = [Ks[own[c]] @ F.T.astype(float) if len(F) else Ks[own[c]] * 0.0 for c, F in enumerate(q.factors)]
    for c in functions:
        for d in range(c + 1):
            cov[c, d] = cov[d, c] = (Y[c] * Y[d]).sum() if q.coupled else priors[own[c]] * 0.0
        reduced = priors[own[c]]
        if q.factors:
            reduced = reduced - (Y[c] * (Ks[own[c]] @ root if q.coupled else Y[c])).sum()
        cov[c, c] = cov[c, c] + np.maximum(reduced, 0.0)
    return mean, cov


def _second_class(kind: type, mean: list[Value], cov: dict[tuple[int, int], Value]) -> Value:
    """Return the exact probabilities of two classes.

    Two latent functions are replaced by their difference, with twice the noise variance in the probit.
    """
    f, var, noise = mean[0], cov[0, 0], 1.0  # ``noise`` is the variance of the probit
    if len(mean) == 2:
        f, noise = mean[1] - mean[0], 2.0
        var = np.maximum(cov[0, 0] + cov[1, 1] - cov[0, 1] * 2.0, 0.0)
    p: Value = logistic(f, var) if kind in (Logit, Softmax) else normal(f / np.sqrt(var + noise))
    return join([1.0 - p, p])


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
    P = join(columns)
    return P / P.sum()
