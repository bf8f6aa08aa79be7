"""From a fitted classifier to a graph: latent moments, probabilities, decision."""

from __future__ import annotations

import os
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpclass.core.checks import optional
from gpclass.core.files import replacing
from gpclass.decision import TIE, check_cost
from gpclass.estimator import GaussianProcessClassifier
from gpclass.learning.combine import OneVsOne, OneVsRest
from gpclass.likelihoods import Logit, MultiProbit, Probit, Softmax
from gpclass.onnx.functions import bivariate, logistic_pair, normal, normal_pair
from gpclass.onnx.graph import IR_VERSION, OPSET, Graph, OnnxExportError, Value, join
from gpclass.onnx.latent import Latent, latent_of

LARGEST = 1_900_000_000  # bytes: a graph in one piece has at most 2 GB


def to_onnx(estimator: Any, path: str | os.PathLike[str] | None = None) -> bytes:
    """Return a fitted classifier as an ONNX graph, in double precision and of standard operators only.

    The input is ``X``, rows of float64. The outputs are ``label`` and ``probabilities``, which agree with
    `predict` and `predict_proba` to 1e-9, or to seven digits if the classifier predicts in single precision.
    Where classes tie, both take the last of ``classes_``.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted by an approximation: two classes; three or more one against the rest, or in pairs; three in
        one model with the multinomial probit. Other joint models can be exported with
        ``integration="mackay"`` or ``"map"``. The kernel must be registered, with a value that is written in
        functions that ONNX has.
    path : str or path, default=None
        Where to write the graph as well.

    Returns
    -------
    bytes
        The graph, to be given to a runtime.

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
    n_features, n_classes = estimator.n_features_in_, len(classes)
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
    """Return the position of the class of least expected cost, the last one if several tie (`bayes_decision`)."""
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
    if not isinstance(base, OneVsRest | OneVsOne):
        latent = latent_of(base)
        return join(_two_classes(latent, X, route)) if latent.n_functions == 1 else _joint(latent, X, route)
    pairs = [_two_classes(latent_of(model), X, route) for model in base.models]
    if isinstance(base, OneVsOne):
        return _couple(pairs, estimator.n_classes_)
    return _shares(join([pair[1] for pair in pairs]).maximum(1e-300))


# ------------------------------------------------------------------------------ two classes


def _two_classes(latent: Latent, X: Value, route: str) -> tuple[Value, Value]:
    """Return the probabilities of the two classes, as columns."""
    likelihood = latent.likelihood
    if type(likelihood) not in (Logit, Probit):
        raise OnnxExportError(
            f"The likelihood {likelihood!r} has no ONNX form for two classes: use 'probit' or 'logit'."
        )
    [mean], cov = latent.moments(X, variances=route != "map")
    if route == "mackay":
        mean = mean / np.sqrt(cov[0, 0] * (1.0 / likelihood.probit_scale**2) + 1.0)
    if isinstance(likelihood, Probit):
        return normal_pair(mean / np.sqrt(cov[0, 0] + 1.0) if route == "exact" else mean)
    if route == "exact":
        return logistic_pair(mean, cov[0, 0])
    return 1.0 / (np.exp(mean) + 1.0), 1.0 / (np.exp(-mean) + 1.0)


def _shares(P: Value) -> Value:
    out: Value = P / P.sum()
    return out


def _couple(pairs: list[tuple[Value, Value]], n_classes: int) -> Value:
    """Return the coupled probabilities: the minimum of pᵀ Q p with Σ p = 1 (`combine.couple`).

    With p = e_last + Z y, where Z does not change the sum, it is A y = -Zᵀ Q e_last with a positive definite
    A = Zᵀ Q Z, solved by A = L D Lᵀ.
    """
    r = {}
    for (i, j), (p, q) in zip(combinations(range(n_classes), 2), pairs, strict=True):
        r[i, j], r[j, i] = p.maximum(1e-12), q.maximum(1e-12)
    last, others = n_classes - 1, range(n_classes - 1)
    Q = {(i, j): -(r[j, i] * r[i, j]) for i, j in r}
    for i in range(n_classes):
        squares = [r[j, i] * r[j, i] for j in range(n_classes) if j != i]
        Q[i, i] = sum(squares[1:], start=squares[0])
    A = {(i, j): Q[i, j] - Q[i, last] - Q[last, j] + Q[last, last] for i in others for j in range(i + 1)}
    y = _solve(A, [Q[last, last] - Q[i, last] for i in others])
    return _shares(join([*y, 1.0 - sum(y[1:], start=y[0])]).maximum(1e-300))


def _solve(A: dict[tuple[int, int], Value], b: list[Value]) -> list[Value]:
    """Return A⁻¹ b for a positive definite A given by its lower triangle, entry by entry."""
    n = len(b)
    L: dict[tuple[int, int], Value] = {}
    A, x = dict(A), list(b)
    for k in range(n):
        for i in range(k + 1, n):
            L[i, k] = A[i, k] / A[k, k]
            for j in range(k + 1, i + 1):
                A[i, j] = A[i, j] - L[i, k] * A[j, k]
            x[i] = x[i] - L[i, k] * x[k]
    x = [x[k] / A[k, k] for k in range(n)]
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            x[k] = x[k] - L[i, k] * x[i]
    return x


# --------------------------------------------------------------------------------- all classes


def _joint(latent: Latent, X: Value, route: str) -> Value:
    n_classes, likelihood = latent.n_functions, latent.likelihood
    probit = type(likelihood) is MultiProbit
    if type(likelihood) not in (MultiProbit, Softmax):
        raise OnnxExportError(
            f"The likelihood {likelihood!r} has no ONNX form for {n_classes} classes: use 'multiprobit' or "
            "'softmax'."
        )
    if route == "exact" and n_classes > (3 if probit else 2):
        raise OnnxExportError(
            f"The exact probabilities of {n_classes} classes in one model with {likelihood!r} have no "
            "ONNX form: fit with multi_class='one_vs_rest', or set integration='mackay'."
        )
    mean, cov = latent.moments(X, variances=route != "map")
    if route == "exact" and n_classes == 2:
        d, v = mean[1] - mean[0], cov[0, 0] + cov[1, 1] - cov[0, 1] * 2.0
        return join(normal_pair(d / np.sqrt(v + 2.0)) if probit else logistic_pair(d, v.maximum(0.0)))
    if route == "exact":
        return _three(mean, cov)
    if route == "mackay":
        scale = 1.0 if probit else np.sqrt(8.0 / np.pi)
        mean = [m / np.sqrt(cov[c, c] * (1.0 / scale**2) + 1.0) for c, m in enumerate(mean)]
    return _multiprobit(mean) if probit else X.graph.apply("Softmax", join(mean), axis=1)


def _three(mean: list[Value], cov: dict[tuple[int, int], Value]) -> Value:
    """Return the probabilities of three classes by the multinomial probit: both differences are positive."""
    columns = []
    for c in range(3):
        a, b = (c + 1) % 3, (c + 2) % 3
        va, vb = (cov[c, c] + cov[k, k] - cov[c, k] * 2.0 + 2.0 for k in (a, b))
        both = cov[c, c] - cov[c, a] - cov[c, b] + cov[a, b] + 1.0
        h, k = (mean[c] - mean[a]) / np.sqrt(va), (mean[c] - mean[b]) / np.sqrt(vb)
        columns.append(bivariate(h, k, both, (va, vb)))
    return _shares(join(columns).maximum(0.0))


def _multiprobit(f: list[Value]) -> Value:
    """Return P(f_c + e_c is the largest) for given f.

    It is ∫ phi(u) Π_k Phi(u + f_c - f_k) du, by the trapezoidal rule.
    """
    h = 0.6 / np.sqrt(len(f))
    u = h * np.arange(-np.ceil(8.5 / h), np.ceil(8.5 / h) + 1.0)
    weight = h * np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
    columns = []
    for c, mine in enumerate(f):
        factors = [normal(mine - other + u[None, :]) for k, other in enumerate(f) if k != c]
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
        columns.append(product @ weight[:, None])
    return _shares(join(columns))
