"""A graph of ONNX operators, written as formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

OPSET, IR_VERSION = 17, 8  # old enough for every runtime in use, new enough for all operators used


@dataclass(slots=True, eq=False)
class Graph:
    """Operators in the order in which they are to be run, and the constants that they use."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    _known: dict[Any, Value] = field(default_factory=dict)

    def input(self, name: str) -> Value:
        """Return what comes in under a name."""
        return Value(self, name)

    def constant(self, array: Any) -> Value:
        """Return an array as a value; equal ones are stored once."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes() if array.dtype != object else tuple(array))
        if key not in self._known:
            name = f"c{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, name))
            self._known[key] = Value(self, name)
        return self._known[key]

    def apply(self, operator: str, *inputs: Any, output: str = "", **attributes: Any) -> Value:
        """Return the result of an operator; numbers and arrays among its inputs become constants."""
        from onnx import helper

        names = [(i if isinstance(i, Value) else self.constant(i)).name for i in inputs]
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return Value(self, output)


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """Something computed: it can be computed with."""

    graph: Graph
    name: str

    def _with(self, operator: str, *others: Any, **attributes: Any) -> Value:
        numbers = (np.float64(o) if isinstance(o, float | int) else o for o in others)
        return self.graph.apply(operator, self, *numbers, **attributes)

    def __add__(self, other: Any) -> Value:
        return self._with("Add", other)

    def __mul__(self, other: Any) -> Value:
        return self._with("Mul", other)

    def __sub__(self, other: Any) -> Value:
        return self._with("Sub", other)

    def __truediv__(self, other: Any) -> Value:
        return self._with("Div", other)

    def __matmul__(self, other: Any) -> Value:
        return self._with("MatMul", other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: float) -> Value:
        return -self + other

    def __rtruediv__(self, other: float) -> Value:
        return self._with("Reciprocal") * other

    def __neg__(self) -> Value:
        return self._with("Neg")

    def __lt__(self, other: Any) -> Value:
        return self._with("Less", other)

    def __pow__(self, other: float) -> Value:
        return self._with("Pow", other)

    def __getitem__(self, columns: Any) -> Value:
        return self._with("Gather", np.asarray(columns, dtype=np.int64), axis=1)

    def exp(self) -> Value:
        """Return its exponential."""
        return self._with("Exp")

    def log(self) -> Value:
        """Return its logarithm."""
        return self._with("Log")

    def sqrt(self) -> Value:
        """Return its square root."""
        return self._with("Sqrt")

    def sin(self) -> Value:
        """Return its sine."""
        return self._with("Sin")

    def abs(self) -> Value:
        """Return its absolute value."""
        return self._with("Abs")

    def maximum(self, other: Any) -> Value:
        """Return the larger of the two."""
        return self._with("Max", other)

    def minimum(self, other: Any) -> Value:
        """Return the smaller of the two."""
        return self._with("Min", other)

    def where(self, yes: Any, no: Any) -> Value:
        """Return ``yes`` where this is true, else ``no``."""
        return self._with("Where", yes, no)

    def sum(self) -> Value:
        """Return the sums over the columns, as a column."""
        return self._with("ReduceSum", np.array([1]), keepdims=1)


def join(columns: Sequence[Value]) -> Value:
    """Return columns side by side."""
    return columns[0].graph.apply("Concat", *columns, axis=1)
