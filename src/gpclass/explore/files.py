"""Files to download: the points, the fitted model, a picture, and Python code that reproduces the page."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpclass import kernels, mcmc, sampling
from gpclass.explore.fit import fit, settings
from gpclass.explore.state import State

KINDS = {  # the label of the button, the name of the file, and its type
    "csv": ("Points (CSV)", "points.csv", "text/csv"),
    "py": ("Python code", "explore.py", "text/x-python"),
    "gpc": ("Model", "model.gpc", "application/octet-stream"),
    "png": ("Picture (PNG)", "picture.png", "image/png"),
    "svg": ("Picture (SVG)", "picture.svg", "image/svg+xml"),
}
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


def file_of(state: State, kind: str) -> bytes:
    """Return the content of a file of that kind.

    Examples
    --------
    >>> from gpclass.explore.state import make_points
    >>> file_of(State(make_points([[0.0], [10.0]], [0, 1])), "csv").splitlines()
    [b'x,class', b'0.0,0', b'10.0,1']
    """
    if kind == "csv":
        return to_csv(state).encode()
    clf = fit(state).clf  # also for the code, so that none is made that would fail
    if kind == "py":
        return python_code(state).encode()
    if kind != "gpc":
        return _drawn(state, clf, kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.gpc")
        clf.save(path)
        return path.read_bytes()


def to_csv(state: State) -> str:
    """Return the points as a table with a header, in full precision."""
    file, points = io.StringIO(), state.points
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*points.names, "class"])
    writer.writerows(
        [*x, points.labels[code]] for x, code in zip(points.X.tolist(), points.codes, strict=True)
    )
    return file.getvalue()


def _drawn(state: State, clf: Any, form: str) -> bytes:
    """Return a picture of the model, drawn with the displays of the library, without a window."""
    from matplotlib.figure import Figure

    from gpclass.plotting import LatentDisplay, PredictiveContourDisplay

    points, line = state.points, state.points.n_columns == 1
    figure = Figure(figsize=(6.4, 6.4) if line else (6.4, 5.0), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True) if line else figure.subplots()
    display = LatentDisplay if line else PredictiveContourDisplay
    display.from_estimator(clf, points.X, points.codes, ax=panels)
    image = io.BytesIO()
    figure.savefig(image, format=form, dpi=160)
    return image.getvalue()


def python_code(state: State) -> str:
    """Return a program that fits the model of a state to its points, prints probabilities and draws them."""
    points = state.points
    given = {name: value for name, value in settings(state).items() if value is not None}
    arguments = [f"    {name}={_expression(value)}," for name, value in given.items()]
    arguments.append("    optimizer=None,")
    named = ", ".join(f"{i}: {name}" for i, name in enumerate(points.labels))
    plain = all(name == str(i) for i, name in enumerate(points.labels))
    return PROGRAM.format(
        imports="\n".join(_imports("".join(arguments))),
        X=_rows(points.X.tolist(), 4),
        y=_rows(points.codes.tolist(), 20),
        labels="" if plain else f"# The classes are {named}.\n",
        arguments="\n".join(arguments),
        display="LatentDisplay" if points.n_columns == 1 else "PredictiveContourDisplay",
    )


def _rows(values: list[Any], width: int) -> str:
    """Return a list as code, with ``width`` elements on each line."""
    lines = [", ".join(map(repr, values[i : i + width])) for i in range(0, len(values), width)]
    return "[\n    " + ",\n    ".join(lines) + ",\n]"


def _imports(code: str) -> list[str]:
    """Return the imports of the classes that the code calls, one line for each module."""
    called = sorted(set(re.findall(r"\b([A-Z]\w*)\(", code)))
    homes = {
        home.__name__: [name for name in called if name in home.__all__] for home in (kernels, mcmc, sampling)
    }
    return [f"from {home} import {', '.join(names)}" for home, names in homes.items() if names]


def _expression(value: Any) -> str:
    """Return code for a number, a name, an array, a kernel or a settings record, in full precision."""
    if isinstance(value, kernels.Sum | kernels.Product):
        operator = "+" if isinstance(value, kernels.Sum) else "*"
        return f"({_expression(value.k1)} {operator} {_expression(value.k2)})"
    if isinstance(value, kernels.Kernel):  # bounds matter to learning alone
        given = {k: v for k, v in value.get_params(deep=False).items() if not k.endswith("_bounds")}
        return _call(value, given)
    if is_dataclass(value):
        changed = [each.name for each in fields(value) if getattr(value, each.name) != each.default]
        return _call(value, {name: getattr(value, name) for name in changed})
    return repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)


def _call(value: Any, arguments: dict[str, Any]) -> str:
    return f"{type(value).__name__}({', '.join(f'{k}={_expression(v)}' for k, v in arguments.items())})"
