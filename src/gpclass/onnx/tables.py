"""The code of a table as ONNX operators: the columns as they are become the matrix that the kernel takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpclass.onnx.graph import Graph, OnnxExportError, Value, join
from gpclass.tables.records import HALF, Column

OUTPUTS = ("label", "probabilities")


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
            f"A column is called {taken[0]!r}, as an output of the graph is: rename it and fit again."
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
        equal = [
            gaps if each is None else graph.apply("Equal", x, np.float64(each)) for each in column.levels
        ]
        parts = [there.where(np.float64(HALF), zero) for there in equal]
    return join(parts)
