"""A model file with what the command line knows besides: how columns are encoded, and what was held out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpclass.cli.encoding import Encoding, Rule
from gpclass.cli.errors import InputError
from gpclass.persistence import ModelFileError, load_with_extra, save


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
    try:
        save(model.clf, path, extra=extra)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def read_model(path: str) -> Model:
    """Return the model in a file; the columns of one that was saved in Python are taken as numbers."""
    try:
        clf, extra = load_with_extra(path)
    except ModelFileError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if extra is not None:
        about = extra.get("about")
        encoding = Encoding.from_json(extra.get("encoding"))
        if len(encoding.outputs) != clf.n_features_in_:
            raise InputError(f"{path} describes other columns than its model has: fit the model again.")
        return Model(clf, encoding, about if isinstance(about, dict) else {})
    if not hasattr(clf, "n_features_in_"):
        raise InputError(f"{path} holds a model of structured inputs, which no table has: use it in Python.")
    names = getattr(clf, "feature_names_in_", None)
    known = [f"x{i + 1}" for i in range(clf.n_features_in_)] if names is None else list(names)
    return Model(clf, Encoding("", tuple(Rule(name, "number") for name in known)), {}, names is None)
