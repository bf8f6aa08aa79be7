"""Model files of the command line: the classifier, the encoding of its columns, and how it was fitted.

This is the only module of the command line that knows how model files are written and read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpclass.cli.encoding import TableEncoder
from gpclass.cli.files import InputError, access
from gpclass.persistence import load_with_extra, save


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted classifier, the encoder of its columns, the column of labels, and a record of how it was fitted."""

    clf: Any
    encoder: TableEncoder
    target: str
    about: Mapping[str, Any] = field(default_factory=dict)
    by_position: bool = False  # True if it was fitted in Python to columns without names

    @property
    def encoding(self) -> dict[str, Any]:
        """The target and the columns as plain data."""
        return {"target": self.target, "columns": self.encoder.to_json()}


def write_model(model: Model, path: str) -> None:
    """Write a model to one file, completely or not at all."""
    with access(path, "written"):
        save(model.clf, path, extra={"encoding": model.encoding, "about": dict(model.about)})


def read_model(path: str) -> Model:
    """Return the model in a file. A model that was saved in Python takes columns of numbers as they are."""
    with access(path, "read"):
        clf, extra = load_with_extra(path)
    if extra is not None:
        encoding, about = extra.get("encoding"), extra.get("about")
        encoding = encoding if isinstance(encoding, dict) else {}
        encoder = TableEncoder.from_json(encoding.get("columns"))
        if len(encoder.get_feature_names_out()) != clf.n_features_in_:
            raise InputError(f"{path} describes columns that its model does not have: fit the model again.")
        return Model(clf, encoder, str(encoding.get("target")), about if isinstance(about, dict) else {})
    if getattr(clf, "n_features_in_", None) is None:
        raise InputError(f"{path} contains a model of structured inputs, not of a table: use it in Python.")
    names = getattr(clf, "feature_names_in_", None)
    known = [f"x{i + 1}" for i in range(clf.n_features_in_)] if names is None else list(names)
    numbers = [{"name": str(name), "kind": "number", "categories": ()} for name in known]
    return Model(clf, TableEncoder.from_json(numbers), "", by_position=names is None)
