"""``gpclass predict``: probabilities, credible intervals and decisions for the rows of a table."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpclass.cli import output
from gpclass.cli.costs import Costs, read_costs
from gpclass.cli.errors import InputError, check_directory, named
from gpclass.cli.modelfile import Model, read_model
from gpclass.cli.tables import Table, read_table, to_text, write_frame
from gpclass.decision import bayes_decision

BLOCK = 1000  # rows predicted at a time
UNDECIDED = "undecided"


def run(given: Mapping[str, Any]) -> None:
    """Predict and write the predictions; ``given`` are the options by name."""
    import pandas as pd

    path = given["output"]
    if path is not None:
        check_directory(path)
    model = read_model(given["model"])
    costs = read_costs(given["cost"], [str(label) for label in model.clf.classes_]) if given["cost"] else None
    table = read_table(given["data"], given["separator"])
    columns: dict[str, Any] = {name: table[name].to_numpy() for name in given["keep"]}
    X = inputs_of(model, table, known=given["keep"])
    columns |= predictions(
        model.clf, X, None if given["no_intervals"] else given["level"], costs, given["reject"]
    )
    frame = pd.DataFrame(columns)
    if path is None:
        sys.stdout.write(to_text(frame, as_json=given["as_json"]))
        return
    write_frame(frame, path)
    if given["as_json"]:
        output.show_json({"predictions": path, "rows": len(frame), "columns": list(columns)})
    else:
        output.remark(f"Wrote {len(frame)} predictions to {path}.")


def inputs_of(model: Model, table: Table, known: tuple[str, ...]) -> Any:
    """Return the rows of a table as inputs of the model; warn about columns that it does not use."""
    encoding = model.encoding
    expected = [rule.name for rule in encoding.rules]
    if model.by_position:
        if len(table.frame.columns) != len(expected):
            raise InputError(
                f"{table.path} has {len(table.frame.columns)} columns and the model, which has no column "
                f"names, {len(expected)}: leave out the others."
            )
        table = Table(table.path, table.frame.set_axis(expected, axis=1))
    X = encoding.apply(table)
    if extra := [name for name in table.frame if name not in (encoding.target, *expected, *known)]:
        words = "column {} of {} is" if len(extra) == 1 else "columns {} of {} are"
        output.warn(f"the {words.format(named(extra), table.path)} not used by the model.")
    return X


def predictions(
    clf: Any, X: Any, level: float | None, costs: Costs | None = None, reject: float | None = None
) -> dict[str, Any]:
    """Return the columns of the result by name."""
    if level is not None and clf.n_classes_ > 2 and clf.multi_class == "one_vs_one":
        output.warn("a model of pairs of classes has no credible intervals; they are left out.")
        level = None
    labels, proba, low, high = [], [], [], []
    blocks = [X[start : start + BLOCK] for start in range(0, len(X), BLOCK)]
    with output.progress("predicting", len(blocks)) as step:
        for block in blocks:
            labels.append(clf.predict(block))
            proba.append(clf.predict_proba(block))
            if level is not None:
                ends = clf.predict_interval(block, level=level)
                low.append(ends[0].reshape(len(block), -1))
                high.append(ends[1].reshape(len(block), -1))
            step()
    P = np.concatenate(proba)
    out: dict[str, Any] = {"prediction": np.concatenate(labels)}
    if costs is not None or reject is not None:
        chosen = bayes_decision(P, None if costs is None else costs.matrix, reject=reject)
        actions = [str(label) for label in clf.classes_] if costs is None else costs.actions
        out["decision"] = [UNDECIDED if i < 0 else actions[i] for i in chosen]
    out |= {f"p_{label}": P[:, i] for i, label in enumerate(clf.classes_)}
    # With two classes the interval of the second one determines that of the first.
    shown = clf.classes_ if clf.n_classes_ > 2 else clf.classes_[1:]
    for name, ends in (("low", low), ("high", high)):
        if ends:
            bound = np.concatenate(ends)
            out |= {f"{name}_{label}": bound[:, i] for i, label in enumerate(shown)}
    return out
