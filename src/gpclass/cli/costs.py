"""What wrong decisions cost, from JSON or CSV."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from gpclass.cli.errors import InputError, named
from gpclass.cli.tables import read_table
from gpclass.core.protocols import Array
from gpclass.decision import check_cost


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """A matrix with a row for each class and a column for each action, and the names of these."""

    matrix: Array
    actions: list[str]


def read_costs(given: str, classes: list[str]) -> Costs:
    """Return the costs in a file, or in the text itself if that is JSON.

    JSON is a list of rows, true classes down and decisions across, both in the order of the classes; or an
    object of objects by their names. CSV has the names of the decisions in its header and those of the true
    classes in its first column. Decisions need not be classes.
    """
    if given.lstrip().startswith(("[", "{")):
        document = _parse(given, "--cost")
    elif given.lower().endswith(".json"):
        document = _parse(_content(given), given)
    elif os.path.exists(given):
        document = _from_csv(given)
    else:
        raise InputError(f"--cost {given} is no file, and no JSON such as [[0, 1], [5, 0]].")
    if isinstance(document, dict):
        return _by_name(document, classes)
    try:
        matrix = check_cost(document, len(classes))
    except ValueError as error:
        raise InputError(f"--cost: {error}") from None
    if matrix.shape[1] != len(classes):
        raise InputError(
            f"--cost has {matrix.shape[1]} columns and the model {len(classes)} classes: decisions that are "
            'not classes need names, as in {"ill": {"treat": 1, "wait": 9}, ...}.'
        )
    return Costs(matrix, classes)


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is no JSON ({error}), expected such as [[0, 1], [5, 0]].") from None


def _from_csv(path: str) -> dict[str, dict[str, Any]]:
    table = read_table(path)
    first, *actions = table.columns
    rows = [str(text) for text in table[first].texts]
    return {row: {action: table[action].texts[i] for action in actions} for i, row in enumerate(rows)}


def _by_name(document: dict[str, Any], classes: list[str]) -> Costs:
    if set(document) != set(classes):
        raise InputError(
            f"--cost names the classes {named(document)}, and those of the model are {named(classes)}."
        )
    rows = [document[label] for label in classes]
    if not all(isinstance(row, dict) and set(row) == set(rows[0]) and row for row in rows):
        raise InputError("--cost has to name the same decisions for every class, each with its cost.")
    # Decisions that are the classes stand in their order, so that ties go as they do without costs.
    actions = classes if set(rows[0]) == set(classes) else list(rows[0])
    try:
        return Costs(
            check_cost([[row[action] for action in actions] for row in rows], len(classes)), list(actions)
        )
    except ValueError as error:
        raise InputError(f"--cost: {error}") from None
