"""A graph of ONNX operators, written as NumPy formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

# Old enough for every runtime in use, new enough for all operators used.
OPSETS, IR_VERSION = {"": 17, "ai.onnx.ml": 3}, 8
# Elementwise functions supported in double precision; the first three letters are the name of the operator.
SHORT = "absolute add divide exp log maximum minimum multiply negative power sin subtract"
# Gemm, because runtimes fuse MatMul and a following factor into an operator that has single precision only.
OPERATORS = {name: name[:3].title() for name in SHORT.split()} | {
    "less": "Less",
    "matmul": "Gemm",
    "sqrt": "Sqrt",
}


class OnnxExportError(ValueError):
    """A classifier that cannot be written as an ONNX graph."""


@dataclass(slots=True, eq=False)
class Graph:
    """Operators in their order of execution, and the constants that they use."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    _known: dict[Any, Value] = field(default_factory=dict)

    def constant(self, array: Any) -> Value:
        """Return an array as a value; equal arrays are stored once."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes() if array.dtype != object else tuple(array))
        if key not in self._known:
            name = f"constant {len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, name))
            self._known[key] = Value(self, name)
        return self._known[key]

    def apply(self, operator: str, *inputs: Any, output: str = "", **attributes: Any) -> Value:
        """Return the result of an operator; numbers and arrays among its inputs become constants."""
        from onnx import helper

        names = [(i if isinstance(i, Value) else self.constant(i)).name for i in inputs]
        output = output or f"value {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return Value(self, output)


@dataclass(frozen=True, slots=True, eq=False)
class Value(NDArrayOperatorsMixin):
    """A result in a graph: operators and NumPy's elementwise functions of it give further results."""

    graph: Graph
    name: str

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Value:
        """Return a NumPy function of values as a value; ``out`` is ignored because values do not change."""
        if ufunc is np.log1p:
            return np.log(inputs[0] + 1.0)
        if ufunc is np.square:
            return inputs[0] * inputs[0]
        if method != "__call__" or ufunc.__name__ not in OPERATORS:
            raise OnnxExportError(
                f"The kernel cannot be exported to ONNX: there is no operator for the function {ufunc.__name__}."
            )
        numbers = (np.float64(i) if isinstance(i, float | int) else i for i in inputs)
        return self.graph.apply(OPERATORS[ufunc.__name__], *numbers)

    def __getitem__(self, columns: Any) -> Value:
        return self.graph.apply("Gather", self, np.asarray(columns, dtype=np.int64), axis=1)

    def where(self, yes: Any, no: Any) -> Value:
        """Return ``yes`` where this is true, else ``no``."""
        return self.graph.apply("Where", self, yes, no)

    def sum(self) -> Value:
        """Return the sums over the columns, as a column."""
        return self.graph.apply("ReduceSum", self, np.array([1]), keepdims=1)


def join(columns: Sequence[Value]) -> Value:
    """Return columns side by side."""
    return columns[0].graph.apply("Concat", *columns, axis=1)
