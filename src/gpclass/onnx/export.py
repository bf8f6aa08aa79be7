"""Export of a fitted classifier to a graph: the code of a table, latent moments, probabilities, decision."""

from __future__ import annotations

import math
import os
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import erfcx
from scipy.stats import kstwobign
from sklearn.utils.validation import check_is_fitted

from gpclass.core.checks import optional
from gpclass.core.files import replacing
from gpclass.decision import TIE, check_cost
from gpclass.estimator import GaussianProcessClassifier
from gpclass.likelihoods import Logit, MultiProbit, Ordinal, Probit, Softmax
from gpclass.onnx.graph import IR_VERSION, OPSETS, Graph, OnnxExportError, Value, join
from gpclass.onnx.kernels import covariances
from gpclass.posteriors import GaussianProcess
from gpclass.tables.records import HALF, Column

LARGEST = 1_900_000_000  # largest size in bytes; a graph in one file has at most 2 GB
MIDDLE = 3.75  # t = (x - K) / (x + K) maps x >= 0 to [-1, 1) and makes erfcx nearly a polynomial in t
DEGREE = 34
OUTPUTS = "label", "probabilities"


def to_onnx(estimator: Any, path: str | os.PathLike[str] | None = None) -> bytes:
    """Return a fitted classifier as an ONNX graph, in double precision and with standard operators only.

    The input is ``X``, rows of float64. In tables without text NaN is a missing value, booleans are 0 and 1, and
    dates and durations are days. A table with text has an input of shape (n, 1) for each column that is not constant,
    with the name of the column; missing text is the empty string. The outputs are ``label`` and ``probabilities``,
    which agree with `predict` and `predict_proba` to 1e-9, or to seven digits if the classifier predicts in single
    precision. If classes tie, both choose the last one in ``classes_``.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted by an approximation, with one model of all classes. Three or more unordered classes, and two whose latent
        functions are coupled (multinomial probit, softmax by Laplace's method), need ``integration="mackay"`` or
        ``"map"``. The kernel may have stationary and linear kernels, constants, sums, products and ``Columns``.
    path : str or path, default=None
        File to which the graph is also written.

    Returns
    -------
    bytes
        The graph, for an ONNX runtime.

    Raises
    ------
    OnnxExportError
        A ValueError that says what cannot be exported to ONNX, and what to use instead.

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
    from onnx import TensorProto, helper

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
    outputs = [describe("label", kind, ["n"])]
    outputs.append(describe("probabilities", TensorProto.DOUBLE, ["n", len(classes)]))
    whole = helper.make_graph(graph.nodes, "gpclass", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid(name, OPSETS[name]) for name in {n.domain for n in graph.nodes}]
    versions = {"opset_imports": opsets, "ir_version": IR_VERSION}
    out: bytes = helper.make_model(whole, **versions, producer_name="gpclass").SerializeToString()
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
            f"multi_class={estimator.multi_class!r} cannot be exported to ONNX: fit with multi_class='joint'."
        )
    if route == "monte_carlo":
        raise OnnxExportError("integration='monte_carlo' cannot be exported: use 'exact', 'mackay' or 'map'.")
    kind = type(model.likelihood)
    if kind not in (Logit, Probit, MultiProbit, Softmax, Ordinal):
        raise OnnxExportError(
            f"The likelihood {model.likelihood!r} cannot be exported to ONNX: use 'probit' or 'logit' for two classes, "
            "'multiprobit', 'softmax' or 'ordinal' for more."
        )
    coupled = getattr(model.posterior, "coupled", False)
    if route == "exact" and kind is not Ordinal and (model.n_classes > 2 or coupled):
        raise OnnxExportError(
            f"The exact probabilities of {model.n_classes} classes in one model cannot be exported to ONNX: export "
            "after set_params(integration='mackay')."
        )
    mean, var = _moments(model.posterior, X, variances=route != "map")
    if kind is Ordinal:  # f + e is normal, so that all routes but "map" are exact
        scale = 1.0 if route == "map" else np.sqrt(var[0] + 1.0)
        below = [normal((mean[0] * -1.0 + float(b)) / scale) for b in model.likelihood.thresholds]
        steps = [below[0], *(q - p for p, q in pairwise(below)), 1.0 - below[-1]]
        return join([steps[round(0.5 * (y + 1.0))] for y in model.likelihood.labels])
    if route == "exact":
        # Two independent functions are replaced by their difference, and each adds a variance of one to the probit.
        f, v = (mean[0], var[0]) if len(mean) == 1 else (mean[1] - mean[0], var[0] + var[1])
        p = logistic(f, v) if kind in (Logit, Softmax) else normal(f / np.sqrt(v + float(len(mean))))
    else:
        if route == "mackay":
            rate = 1.0 / model.likelihood.probit_scale**2
            mean = [m / np.sqrt(v * rate + 1.0) for m, v in zip(mean, var, strict=True)]
        if len(mean) > 1:
            return _at_values(kind, mean)
        p = normal(mean[0]) if kind is Probit else 1.0 / (np.exp(-mean[0]) + 1.0)
    return join([1.0 - p, p])


def _moments(q: Any, X: Value, variances: bool) -> tuple[list[Value], list[Value]]:
    """Return means and, if requested, variances of the latent values f_c, as columns.

    With the row k_c of covariances with the inputs, the factors F_c and the root T of the posterior,

        mean_c(x) = offset_c + k_c alpha_c
        var_c(x) = k_c(x, x) - |k_c Tᵀ|² - |k_c F_cᵀ|²               if they are independent
        var_c(x) = k_c(x, x) - (k_c F_cᵀ)·(k_c T) + |k_c F_cᵀ|²      if they are coupled
    """
    if not isinstance(q, GaussianProcess):
        raise OnnxExportError(
            f"A model that was sampled ({type(q).__name__}) is an average over many draws, which "
            "cannot be exported to ONNX: fit with inference='vi', 'ep' or 'laplace' and hyperparameters='learn'."
        )
    alpha, width = q.alpha.reshape(len(q.alpha), -1), q.inputs.shape[1] if np.ndim(q.inputs) == 2 else 0
    offset = np.zeros(q.n_functions) if q.offset is None else q.offset
    Ks: list[Any] = [covariances(kernel, X, width, q.inputs) for kernel in q.kernels]
    own = [c % len(Ks) for c in range(q.n_functions)]  # index of the kernel of each function
    mean = [Ks[k] @ alpha[:, c : c + 1] + float(offset[c]) for c, k in enumerate(own)]
    if not variances:
        return mean, []
    priors = [covariances(kernel, X, width) for kernel in q.kernels]
    if q.root is not None:
        root = np.tril(q.root).astype(float)
        Ts = [K @ (root if q.coupled else root.T) for K in Ks]
        if not q.coupled:
            priors = [prior - (T * T).sum() for prior, T in zip(priors, Ts, strict=True)]
    var = []
    for c, k in enumerate(own):
        v, more = priors[k], 0.0
        if q.factors and len(q.factors[c]):  # a class without rows has a factor without rows
            Y = Ks[k] @ q.factors[c].T.astype(float)
            v = v - (Y * (Ts[k] if q.coupled else Y)).sum()
            more = (Y * Y).sum() if q.coupled else 0.0
        var.append(np.maximum(v, 0.0) + more)
    return mean, var


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


# ------------------------------------------------------------ the code of a table


def read_columns(graph: Graph, encoder: Any) -> tuple[Value, list[Any]]:
    """Return the rows as `Encoder.transform` codes them, and the descriptions of the inputs of the graph.

    If nothing is text, the input is X, with a column for each column of the table. Otherwise each column that is not
    constant is an input.
    """
    from onnx import TensorProto
    from onnx.helper import make_tensor_value_info as describe

    used = [(i, column) for i, column in enumerate(encoder.columns_) if column.positions]
    if not any(_is_text(column) for _, column in used):
        X = Value(graph, "X")
        inputs = [describe("X", TensorProto.DOUBLE, ["n", encoder.n_features_in_])]
        return join([_coded(column, X[[i]]) for i, column in used]), inputs
    kinds = {column.name: (TensorProto.DOUBLE, TensorProto.STRING)[_is_text(column)] for _, column in used}
    if taken := [name for name in OUTPUTS if name in kinds]:
        raise OnnxExportError(
            f"A column is called {taken[0]!r}, like an output of the graph: rename it and fit again."
        )
    inputs = [describe(name, kind, ["n", 1]) for name, kind in kinds.items()]
    return join([_coded(column, Value(graph, column.name)) for _, column in used]), inputs


def _is_text(column: Column) -> bool:
    return any(isinstance(level, str) for level in column.levels)


def _coded(column: Column, x: Value) -> Value:
    """Return the coded columns of a column (`Column.code`)."""
    zero, graph = np.float64(0.0), x.graph
    if _is_text(column):
        levels = ["" if level is None else str(level) for level in column.levels]
        hot = graph.apply("OneHotEncoder", x, domain="ai.onnx.ml", cats_strings=levels, zeros=1)
        flat = graph.apply("Squeeze", hot, np.array([1]))
        return graph.apply("Cast", flat, to=11) * HALF  # 11 is float64
    gaps = graph.apply("IsNaN", x)
    if column.is_numeric:
        parts = [gaps.where(np.float64(column.fill), x)]
        parts += [] if column.scale is None else [gaps.where(np.float64(column.scale), zero)]
    else:
        known = column.levels
        equal = [gaps if one is None else graph.apply("Equal", x, np.float64(one)) for one in known]
        parts = [there.where(np.float64(HALF), zero) for there in equal]
    return join(parts)


# ------------------------------------------------------------ functions that runtimes lack in double precision


@cache
def _erfcx_coefficients() -> Any:
    """Return Chebyshev coefficients in t of (1 + 2 x) erfcx(x), an analytic function between 1 and 2 / √pi."""
    t = np.cos(np.pi * (np.arange(2 * DEGREE) + 0.5) / (2 * DEGREE))
    x = MIDDLE * (1.0 + t) / (1.0 - t)
    return np.polynomial.chebyshev.chebfit(t, (1.0 + 2.0 * x) * erfcx(x), DEGREE)


def normal(z: Value) -> Value:
    """Return Phi(z), to a relative 1e-14 for z < 0: ½ exp(-x²) erfcx(x) at x = |z| / √2, by Clenshaw's recurrence."""
    x = np.abs(z) * np.sqrt(0.5)
    t = (x - MIDDLE) / (x + MIDDLE)
    lowest, *middle, last = _erfcx_coefficients().tolist()
    second = t * 0.0  # b_{k+2}, and b_{k+1}
    first = second + last
    for c in reversed(middle):
        first, second = t * 2.0 * first + c - second, first
    small = (t * first - second + lowest) / (x * 2.0 + 1.0) * np.exp(-(x * x)) * 0.5
    return (z < 0.0).where(small, 1.0 - small)


def logistic(mean: Value, var: Value) -> Value:
    """Return E[sigma(f)] under N(mean, var), to 1e-12.

    A logistic variable is a normal one times twice a Kolmogorov variable (Andrews & Mallows, 1974), so it is an
    average of Phi. The trapezoidal rule in the logarithm of the Kolmogorov variable converges exponentially.
    """
    scales = np.exp(np.arange(np.log(0.15), np.log(5.2), 0.12))
    weights = scales * kstwobign.pdf(scales)
    return normal(mean / np.sqrt(var + 4.0 * scales[None, :] ** 2)) @ (weights / weights.sum())[:, None]
