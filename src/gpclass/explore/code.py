"""The Python code that reproduces what is on the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from gpclass.comparison.methods import changed
from gpclass.explore.fit import settings
from gpclass.explore.state import State
from gpclass.kernels import Kernel, Product, Sum

WIDTH = 4  # points on a line of code
PROGRAM = '''"""Made by gpclass explore: the points and the model on the page."""

import numpy as np

from gpclass import GaussianProcessClassifier
{imports}

X = np.array({X})
y = np.array({y})
{labels}
clf = GaussianProcessClassifier(
{arguments}
)
clf.fit(X, y)
print(clf.predict_proba(X).round(5))

# Draw it, where matplotlib is installed.
import matplotlib.pyplot as plt

from gpclass.plotting import {display}

{display}.from_estimator(clf, X, y)
plt.show()
'''


def python_code(state: State) -> str:
    """Return a program that fits the model of a state to its points, prints probabilities and draws them.

    Examples
    --------
    >>> from gpclass.explore.points import make_points
    >>> code = python_code(State(make_points([[0.0], [10.0]], [0, 1])))
    >>> variables = {}
    >>> exec(code.partition("# Draw")[0], variables)
    [[0.66824 0.33176]
     [0.33176 0.66824]]
    """
    points, given = state.points, settings(state)
    arguments = [
        f"    {name}={_value(value)},"
        for name, value in given.items()
        if value is not None or name == "optimizer"
    ]
    named = ", ".join(f"{i}: {name}" for i, name in enumerate(points.labels))
    plain = all(name == str(i) for i, name in enumerate(points.labels))
    return PROGRAM.format(
        imports="\n".join(_imports(given)),
        X=_rows(points.X.tolist()),
        y=_rows([int(code) for code in points.codes]),
        labels="" if plain else f"# The classes are {named}.\n",
        arguments="\n".join(arguments),
        display="LatentDisplay" if points.n_columns == 1 else "PredictiveContourDisplay",
    )


def _rows(values: list[Any]) -> str:
    if not values:
        return "[]"
    texts = [repr(value) for value in values]
    step = WIDTH if isinstance(values[0], list) else 20
    lines = [", ".join(texts[i : i + step]) for i in range(0, len(texts), step)]
    return "[\n    " + ",\n    ".join(lines) + ",\n]"


def _imports(given: dict[str, Any]) -> list[str]:
    """Return the imports of the classes in the arguments, one line for each module."""
    found: dict[str, set[str]] = {}
    for value in given.values():
        for cls in _classes(value):
            home = "gpclass.kernels" if issubclass(cls, Kernel) else ".".join(cls.__module__.split(".")[:2])
            found.setdefault(home, set()).add(cls.__name__)
    return [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(found.items())]


def _classes(value: Any) -> Iterator[type]:
    if isinstance(value, Sum | Product):
        yield from _classes(value.k1)
        yield from _classes(value.k2)
    elif isinstance(value, Kernel):
        yield type(value)
    elif is_dataclass(value):
        yield type(value)
        for _, inner in changed(value):
            yield from _classes(inner)


def _value(value: Any) -> str:
    """Return an expression for a number, a name, an array, a kernel or a settings record, in full precision."""
    if isinstance(value, Sum):
        return f"{_value(value.k1)} + {_value(value.k2)}"
    if isinstance(value, Product):
        return " * ".join(f"({_value(k)})" if isinstance(k, Sum) else _value(k) for k in (value.k1, value.k2))
    if isinstance(value, Kernel):
        arguments = ", ".join(f"{k}={_value(v)}" for k, v in value.get_params(deep=False).items())
        return f"{type(value).__name__}({arguments})"
    if is_dataclass(value):
        arguments = ", ".join(f"{name}={_value(inner)}" for name, inner in changed(value))
        return f"{type(value).__name__}({arguments})"
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    if isinstance(value, tuple):
        return repr(tuple(float(v) if isinstance(v, np.floating) else v for v in value))
    return repr(value)
