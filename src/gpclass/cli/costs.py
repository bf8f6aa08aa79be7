"""The costs of decisions, read from JSON or CSV."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from gpclass.cli.errors import InputError, access, named
from gpclass.cli.tables import read_table
from gpclass.decision import check_cost

EXAMPLE = "[[0, 1], [5, 0]]"


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """A matrix with one row per true class and one column per decision, and the names of the decisions."""

    matrix: Any
    actions: list[str]


def read_costs(given: str, classes: list[str]) -> Costs:
    """Return the costs in a file, or in the text itself if it is JSON.

    JSON is a list of rows, with true classes as rows and decisions as columns in the order of the classes, or
    an object of objects by name. CSV has the decisions in its header and true classes in its first column.
    Decisions need not be classes.
    """
    if given.lstrip().startswith(("[", "{")):
        document = _parse(given, "--cost")
    elif given.lower().endswith(".json"):
        with access(given, "read"), open(given, "rb") as file:
            document = _parse(file.read(), given)
    elif os.path.exists(given):
        frame = read_table(given).frame
        document = frame.set_index(frame.columns[0]).to_dict("index")
    else:
        raise InputError(f"--cost {given} is not a file, and not JSON such as {EXAMPLE}.")
    if isinstance(document, dict):
        return _by_name(document, classes)
    matrix = _check(document, len(classes))
    if matrix.shape[1] != len(classes):
        raise InputError(
            f"--cost has {matrix.shape[1]} columns and the model {len(classes)} classes: decisions that are "
            'not classes need names, as in {"ill": {"treat": 1, "wait": 9}, ...}.'
        )
    return Costs(matrix, classes)


def _parse(text: str | bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON ({error}), expected for example {EXAMPLE}.") from None


def _check(rows: Any, n_classes: int) -> Any:
    try:
        return check_cost(rows, n_classes)
    except ValueError as error:
        raise InputError(f"--cost: {error}") from None


def _by_name(document: dict[Any, Any], classes: list[str]) -> Costs:
    if set(document) != set(classes):
        raise InputError(
            f"--cost names the classes {named(document)}, and those of the model are {named(classes)}."
        )
    rows = [document[label] for label in classes]
    if not all(isinstance(row, dict) and set(row) == set(rows[0]) and row for row in rows):
        raise InputError("--cost has to name the same decisions for every class, each with its cost.")
    # Decisions that are the classes are put in their order, so that ties are broken as without costs.
    actions = classes if set(rows[0]) == set(classes) else list(rows[0])
    return Costs(_check([[row[action] for action in actions] for row in rows], len(classes)), list(actions))
