"""``gpclass predict``: probabilities, credible intervals and decisions for the rows of a table."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpclass.cli import output
from gpclass.cli.errors import InputError, access, named
from gpclass.cli.modelfile import Model, read_model
from gpclass.cli.outputs import check_outputs
from gpclass.cli.tables import Table, read_table, to_text, write_frame
from gpclass.decision import bayes_decision, check_cost

BLOCK = 1000  # rows predicted at a time
UNDECIDED = "undecided"
EXAMPLE = "[[0, 1], [5, 0]]"  # of costs


def run(given: Mapping[str, Any]) -> None:
    """Predict and write the predictions; ``given`` are the options by name."""
    import pandas as pd

    path = given["output"]
    check_outputs(given, table=path)
    model = read_model(given["model"])
    costs, decisions = None, [str(label) for label in model.clf.classes_]
    if given["cost"]:
        costs, decisions = read_costs(given["cost"], decisions)
    decided = bool(given["cost"]) or given["reject"] is not None
    level = None if given["no_intervals"] else given["level"]
    if level is not None and model.clf.n_classes_ > 2 and model.clf.multi_class == "one_vs_one":
        output.warn("a model of pairs of classes has no credible intervals; they are left out.")
        level = None
    check_kept(given["keep"], model.clf.classes_, intervals=level is not None, decided=decided)
    table = read_table(given["data"], given["separator"])
    columns: dict[str, Any] = {name: table[name].to_numpy() for name in given["keep"]}
    X = inputs_of(model, table, known=given["keep"])
    found = predictions(model.clf, X, level)
    columns["prediction"] = found.pop("prediction")
    if decided:
        P = np.column_stack([found[f"p_{label}"] for label in model.clf.classes_])
        chosen = bayes_decision(P, costs, reject=given["reject"])
        columns["decision"] = [UNDECIDED if i < 0 else decisions[i] for i in chosen]
    frame = pd.DataFrame(columns | found)
    if path is None:
        sys.stdout.write(to_text(frame, as_json=given["as_json"]))
        return
    write_frame(frame, path)
    if given["as_json"]:
        output.show_json({"predictions": path, "rows": len(frame), "columns": list(frame)})
    else:
        output.remark(f"Wrote {len(frame)} predictions to {path}.")


def check_kept(keep: tuple[str, ...], classes: Any, *, intervals: bool, decided: bool) -> None:
    """Raise if columns to keep have names that columns of the result have."""
    taken = {"prediction", *(f"p_{label}" for label in classes), *(("decision",) if decided else ())}
    if intervals:  # with two classes that of the second one
        shown = classes[-1:] if len(classes) == 2 else classes
        taken |= {f"{end}_{label}" for end in ("low", "high") for label in shown}
    if both := [name for name in keep if name in taken]:
        raise InputError(
            f"--keep names {named(both)}, and the result has a column of that name: rename it in DATA, or do "
            "not keep it."
        )


def inputs_of(model: Model, table: Table, known: tuple[str, ...]) -> Any:
    """Return the rows of a table as inputs of the model; warn about columns that it does not use."""
    expected = [column.name for column in model.encoder.columns_]
    if model.by_position:
        if len(table.frame.columns) != len(expected):
            raise InputError(
                f"{table.path} has {len(table.frame.columns)} columns and the model, which has no column "
                f"names, {len(expected)}: leave out the others."
            )
        table = Table(table.path, table.frame.set_axis(expected, axis=1))
    X = model.encoder.transform(table)
    if extra := [name for name in table.frame if name not in (model.target, *expected, *known)]:
        words = "column {} of {} is" if len(extra) == 1 else "columns {} of {} are"
        output.warn(f"the {words.format(named(extra), table.path)} not used by the model.")
    return X


def predictions(clf: Any, X: Any, level: float | None) -> dict[str, Any]:
    """Return the columns of the result by name."""
    found: dict[str, list[Any]] = {"prediction": [], "p": [], "low": [], "high": []}
    blocks = [X[start : start + BLOCK] for start in range(0, len(X), BLOCK)]
    with output.progress("predicting", len(blocks)) as step:
        for block in blocks:
            found["prediction"].append(clf.predict(block))
            found["p"].append(clf.predict_proba(block))
            ends = () if level is None else clf.predict_interval(block, level=level)
            for name, end in zip(("low", "high"), ends, strict=False):
                found[name].append(end.reshape(len(block), -1))
            step()
    whole = {name: np.concatenate(arrays) for name, arrays in found.items() if arrays}
    out = {"prediction": whole.pop("prediction")}
    for name, values in whole.items():
        # With two classes the interval of the second one determines that of the first.
        shown = clf.classes_[-values.shape[1] :]
        out |= {f"{name}_{label}": values[:, i] for i, label in enumerate(shown)}
    return out


def read_costs(given: str, classes: list[str]) -> tuple[Any, list[str]]:
    """Return the costs, with a row per true class and a column per decision, and the names of the decisions.

    They are in a file, or in the text itself if it is JSON. JSON is a list of rows in the order of the classes, or
    an object of objects by name. CSV has the decisions in its header and true classes in its first column.
    Decisions need not be classes.
    """
    document = _read(given)
    rows, actions = document, classes
    if isinstance(document, dict):
        if set(document) != set(classes):
            raise InputError(
                f"--cost names the classes {named(document)}, and those of the model are {named(classes)}."
            )
        found = [document[label] for label in classes]
        if not all(isinstance(row, dict) and set(row) == set(found[0]) and row for row in found):
            raise InputError("--cost has to name the same decisions for every class, each with its cost.")
        # Decisions that are the classes are put in their order, so that ties are broken as without costs.
        actions = classes if set(found[0]) == set(classes) else list(found[0])
        rows = [[row[action] for action in actions] for row in found]
    try:
        matrix = check_cost(rows, len(classes))
    except ValueError as error:
        raise InputError(f"--cost: {error}") from None
    if matrix.shape[1] != len(actions):
        raise InputError(
            f"--cost has {matrix.shape[1]} columns and the model {len(classes)} classes: decisions that are "
            'not classes need names, as in {"ill": {"treat": 1, "wait": 9}, ...}.'
        )
    return matrix, actions


def _read(given: str) -> Any:
    text: str | bytes = given
    where = "--cost"
    if not given.lstrip().startswith(("[", "{")):
        if not given.lower().endswith(".json"):
            if not os.path.exists(given):
                raise InputError(f"--cost {given} is not a file, and not JSON such as {EXAMPLE}.")
            frame = read_table(given).frame
            return frame.set_index(frame.columns[0]).to_dict("index")
        where = given
        with access(given, "read"), open(given, "rb") as file:
            text = file.read()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON ({error}), expected for example {EXAMPLE}.") from None
