"""A model file with what the command line knows besides: how columns are encoded, and what was held out."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any

from gpclass.cli.encoding import Encoding, Rule
from gpclass.cli.errors import InputError
from gpclass.persistence import ModelFileError, load, save
from gpclass.persistence.container import parse_json, read, write

EXTRA = "cli"  # the name of what is kept beside the model


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted classifier, the encoding of its columns, and what is to be remembered of how it was made."""

    clf: Any
    encoding: Encoding
    about: dict[str, Any] = field(default_factory=dict)
    by_position: bool = False  # it was fitted in Python to columns without names


def write_model(model: Model, path: str) -> None:
    """Write a model to one file, at once or not at all."""
    extra = {"encoding": model.encoding.to_json(), "about": model.about}
    directory = os.path.dirname(path) or "."
    try:
        with tempfile.TemporaryDirectory(dir=directory, prefix=".gpclass-") as place:
            part = os.path.join(place, "model")
            save(model.clf, part)
            _put_extra(part, path, extra)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def read_model(path: str) -> Model:
    """Return the model in a file; the columns of one that was saved in Python are taken as numbers."""
    try:
        clf, extra = load(path), _get_extra(path)
    except ModelFileError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if extra is not None:
        about = extra.get("about") if isinstance(extra, dict) else None
        encoding = Encoding.from_json(
            extra["encoding"] if isinstance(extra, dict) and "encoding" in extra else None
        )
        if len(encoding.outputs) != clf.n_features_in_:
            raise InputError(f"{path} describes other columns than its model has: fit the model again.")
        return Model(clf, encoding, about if isinstance(about, dict) else {})
    if not hasattr(clf, "n_features_in_"):
        raise InputError(f"{path} holds a model of structured inputs, which no table has: use it in Python.")
    names = getattr(clf, "feature_names_in_", None)
    known = [f"x{i + 1}" for i in range(clf.n_features_in_)] if names is None else list(names)
    return Model(clf, Encoding("", tuple(Rule(name, "number") for name in known)), {}, names is None)


# ------------------------------------------------------------------- what is kept beside the model


def _put_extra(source: str, path: str, document: dict[str, Any]) -> None:
    strings, tensors = read(source)
    kept = {"model": strings["model"], EXTRA: json.dumps(document, separators=(",", ":"), allow_nan=False)}
    write(path, kept, [tensors[str(i)] for i in range(len(tensors))])


def _get_extra(path: str) -> Any:
    text = read(path)[0].get(EXTRA)
    return None if text is None else parse_json(text)
