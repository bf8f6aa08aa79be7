"""Model files of the command line: the classifier, the name of the target, and how the model was fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gpclass.cli.files import InputError, access
from gpclass.persistence import load_with_extra, save
from gpclass.tables import Column


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A fitted classifier, the column of labels, and a record of how it was fitted."""

    clf: Any
    target: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str] | None:
        """Names of the columns; None if the model was fitted in Python to columns without names."""
        names = getattr(self.clf, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the table and how they are coded, as plain data."""
        if self.clf.encoder_ is not None:
            return [asdict(column) for column in self.clf.encoder_.columns_]
        names = self.names or [f"x{i}" for i in range(self.clf.n_features_in_)]
        return [asdict(Column(name, "number", positions=(i,))) for i, name in enumerate(names)]


def write_model(model: Model, path: str) -> None:
    """Write a model to one file, completely or not at all."""
    with access(path, "written"):
        save(model.clf, path, extra={"target": model.target, "about": dict(model.about)})


def read_model(path: str) -> Model:
    """Return the model in a file, which may have been saved in Python."""
    with access(path, "read"):
        clf, extra = load_with_extra(path)
    if getattr(clf, "n_features_in_", None) is None:
        raise InputError(f"{path} contains a model of structured inputs, not of a table: use it in Python.")
    extra = extra if isinstance(extra, dict) else {}
    about = extra.get("about")
    return Model(clf, str(extra.get("target", "")), about if isinstance(about, dict) else {})
