"""Model files of the command line: the classifier, the encoding of its columns, and how it was fitted.

This is the only module of the command line that knows how model files are written and read.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpclass.cli.encoding import Encoding, Rule
from gpclass.cli.errors import InputError, access
from gpclass.persistence import load, save
from gpclass.persistence.container import parse_json, read, write

EXTRA = "cli"


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted classifier, the encoding of its columns, and a record of how it was fitted."""

    clf: Any
    encoding: Encoding
    about: Mapping[str, Any] = field(default_factory=dict)
    by_position: bool = False  # it was fitted in Python to columns without names


def write_model(model: Model, path: str) -> None:
    """Write a model to one file, completely or not at all."""
    with access(path, "written"):
        _save(model.clf, path, {"encoding": model.encoding.to_json(), "about": dict(model.about)})


def read_model(path: str) -> Model:
    """Return the model in a file. A model that was saved in Python takes columns of numbers as they are."""
    with access(path, "read"):
        clf, extra = _load(path)
    if extra is not None:
        parts = extra if isinstance(extra, dict) else {}
        encoding, about = Encoding.from_json(parts.get("encoding")), parts.get("about")
        if len(encoding.outputs) != clf.n_features_in_:
            raise InputError(f"{path} describes other columns than its model has: fit the model again.")
        return Model(clf, encoding, about if isinstance(about, dict) else {})
    if getattr(clf, "n_features_in_", None) is None:
        raise InputError(f"{path} holds a model of structured inputs, not of a table: use it in Python.")
    names = getattr(clf, "feature_names_in_", None)
    known = [f"x{i + 1}" for i in range(clf.n_features_in_)] if names is None else list(names)
    return Model(clf, Encoding("", tuple(Rule(name, "number") for name in known)), {}, names is None)


def _save(clf: Any, path: str, extra: dict[str, Any]) -> None:
    text = json.dumps(extra, separators=(",", ":"), allow_nan=False)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path) or ".", prefix=".gpclass-") as place:
        part = os.path.join(place, "model")
        save(clf, part)
        strings, tensors = read(part)
        write(path, {"model": strings["model"], EXTRA: text}, [tensors[str(i)] for i in range(len(tensors))])


def _load(path: str) -> tuple[Any, Any]:
    clf = load(path)
    text = read(path)[0].get(EXTRA)
    return clf, None if text is None else parse_json(text)


def training_rows(clf: Any) -> tuple[Any, Any]:
    """Return the inputs that a model was fitted to, and their labels, or None for pairs of classes."""
    problems = [model.problem for model in clf.base_estimator_.models]
    _, home, truth = clf._home
    pairs = clf.n_classes_ > 2 and clf.multi_class == "one_vs_one"
    if pairs or home is None or truth.ndim > 1:  # soft labels, which tables do not have
        return np.concatenate([np.asarray(problem.X) for problem in problems]), None
    X, copies = np.asarray(problems[0].X), np.bincount(home)
    # Copies of a row are one row, except in the multinomial probit, which has one after another.
    first = np.arange(len(copies)) if len(X) == len(copies) else np.cumsum(copies) - copies
    return X[first[home]], clf.classes_[truth]
