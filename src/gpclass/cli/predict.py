"""``gpclass predict``: probabilities, credible intervals and decisions for the rows of a table."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from gpclass.cli import output
from gpclass.cli.data import check_columns
from gpclass.cli.files import InputError, access, check_output, named
from gpclass.cli.modelfile import Model, read_model
from gpclass.cli.tables import read_table, to_text, write_frame
from gpclass.decision import bayes_decision, check_cost
from gpclass.tables import TableWarning

BLOCK = 1000  # rows predicted at a time
UNDECIDED = "undecided"
EXAMPLE = "[[0, 1], [5, 0]]"  # example of costs


def run(given: Mapping[str, Any]) -> None:
    """Predict and write the predictions; ``given`` are the options by name."""
    import pandas as pd

    path = given["output"]
    if path is not None:
        check_output(given, "table", path)
    model = read_model(given["model"])
    costs, decisions = None, [str(label) for label in model.clf.classes_]
    if given["cost"]:
        costs, decisions = read_costs(given["cost"], decisions)
    level = None if given["no_intervals"] else given["level"]
    if level is not None and model.clf.n_classes_ > 2 and model.clf.multi_class == "one_vs_one":
        output.warn("a model of pairs of classes has no credible intervals; they are left out.")
        level = None
    names = model.names or []
    table = read_table(given["data"], given, text=[name for name in given["keep"] if name not in names])
    check_columns(given["data"], table, given["keep"])
    kept = table[list(given["keep"])].apply(lambda column: column.astype(str).where(column.notna()))
    X = inputs_of(model, table, given["data"])

    def result(rows: Any) -> Any:
        frame = predictions(model.clf, rows, level)
        if given["cost"] or given["reject"] is not None:
            P = frame[[f"p_{label}" for label in model.clf.classes_]].to_numpy()
            chosen = bayes_decision(P, costs, reject=given["reject"])
            frame.insert(1, "decision", [UNDECIDED if i < 0 else decisions[i] for i in chosen])
        return frame

    if both := list(kept.columns.intersection(result(X[:1]).columns)):
        raise InputError(
            f"--keep names {named(both)}, and the result has a column of that name: rename it in DATA, or do "
            "not keep it."
        )
    _warn_of_others(model, table, given)
    blocks = output.track([X[start : start + BLOCK] for start in range(0, len(X), BLOCK)], "predicting")
    found = pd.concat([result(block) for block in blocks], ignore_index=True)
    _write(pd.concat([kept, found], axis=1), path, given["as_json"])


def _write(frame: Any, path: str | None, as_json: bool) -> None:
    if path is None:
        sys.stdout.write(to_text(frame, as_json=as_json))
        return
    write_frame(frame, path)
    if as_json:
        output.show_json({"predictions": path, "rows": len(frame), "columns": list(frame)})
    else:
        output.remark(f"Wrote {len(frame)} predictions to {path}.")


def inputs_of(model: Model, table: Any, path: str) -> Any:
    """Return the rows of a table as inputs of the model; one warning counts values that training did not have."""
    n = model.clf.n_features_in_
    if model.names is not None:
        check_columns(path, table, model.names)
        X = table[model.names]
    elif len(table.columns) == n:
        X = table.to_numpy()
    else:
        raise InputError(
            f"{path} has {len(table.columns)} columns, and the model, which has no column names, has {n}: leave out "
            "the others."
        )
    if model.clf.encoder_ is not None:
        model.clf.encoder_.transform(X)
        warnings.simplefilter("ignore", TableWarning)  # in the blocks of these rows
    return X


def _warn_of_others(model: Model, table: Any, given: Mapping[str, Any]) -> None:
    """Warn about columns that are neither used by the model nor kept."""
    known = {model.target, *given["keep"], *(model.names or table)}
    if others := [name for name in table if name not in known]:
        words = "column {} of {} is" if len(others) == 1 else "columns {} of {} are"
        output.warn(f"the {words.format(named(others), given['data'])} not used by the model.")


def predictions(clf: Any, X: Any, level: float | None) -> Any:
    """Return a frame of the most probable class, all class probabilities, and the bounds of their intervals."""
    import pandas as pd

    parts = {"p": clf.predict_proba(X)}
    if level is not None:
        low, high = clf.predict_interval(X, level=level)
        parts |= {"low": low.reshape(len(X), -1), "high": high.reshape(len(X), -1)}
    columns = {"prediction": clf.predict(X)}
    for name, values in parts.items():
        # With two classes the interval of the second one determines that of the first.
        shown = clf.classes_[-values.shape[1] :]
        columns |= {f"{name}_{label}": values[:, i] for i, label in enumerate(shown)}
    return pd.DataFrame(columns)


def read_costs(given: str, classes: list[str]) -> tuple[Any, list[str]]:
    """Return the costs, with a row per true class and a column per decision, and the names of the decisions.

    They are in a file, or in the text itself if it is JSON. JSON is a list of rows in the order of the classes, or
    an object of objects by name. CSV has the decisions in its header and true classes in its first column.
    Decisions need not be classes.
    """
    frame = _read(given, classes)
    if set(frame.index) != set(classes):
        raise InputError(
            f"--cost names the classes {named(frame.index)}, expected those of the model: {named(classes)}."
        )
    if frame.isna().any(axis=None):
        raise InputError("--cost must name the same decisions for every class, each with its cost.")
    # Decisions that are the classes are put in their order, so that ties are broken as without costs.
    actions = classes if set(frame) == set(classes) else list(frame)
    try:
        return check_cost(frame.loc[classes, actions].to_numpy(), len(classes)), actions
    except ValueError as error:
        raise InputError(f"--cost: {error}") from None


def _read(given: str, classes: list[str]) -> Any:
    import pandas as pd

    text: str | bytes = given
    if given.lower().endswith(".json"):
        with access(given, "read"), open(given, "rb") as file:
            text = file.read()
    elif not given.lstrip().startswith(("[", "{")):
        if not os.path.exists(given):
            raise InputError(f"--cost {given} is not a file, and not JSON such as {EXAMPLE}.")
        frame = read_table(given)
        return frame.set_index(frame.columns[0]).rename(index=str)
    try:
        document = json.loads(text)
        if isinstance(document, dict):
            return pd.DataFrame.from_dict(document, orient="index")
        return pd.DataFrame(check_cost(document, len(classes)), index=classes, columns=classes)
    except (AttributeError, ValueError, RecursionError) as error:
        raise InputError(f"--cost cannot be read ({error}), expected JSON such as {EXAMPLE}.") from None
