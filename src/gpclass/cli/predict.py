"""``gpclass predict``: a model file and a table to probabilities, intervals and decisions."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from typing import Any

import numpy as np

from gpclass.cli import output
from gpclass.cli.costs import Costs, read_costs
from gpclass.cli.errors import InputError, named
from gpclass.cli.modelfile import Model, read_model
from gpclass.cli.tables import Table, read_table
from gpclass.core.protocols import Array
from gpclass.decision import bayes_decision

BLOCK = 1000  # rows predicted together
UNDECIDED = "undecided"


def run(
    model_path: str,
    data: str,
    *,
    path: str | None,
    level: float,
    intervals: bool,
    cost: str | None,
    reject: float | None,
    keep: tuple[str, ...],
    separator: str | None,
    as_json: bool,
) -> None:
    """Predict, and write the predictions."""
    model = read_model(model_path)
    costs = None if cost is None else read_costs(cost, [str(label) for label in model.clf.classes_])
    table = read_table(data, separator)
    columns: dict[str, Any] = {name: list(table[name].texts) for name in keep}
    columns |= predictions(model, table, level if intervals else None, costs, reject, keep)
    if path is None:
        sys.stdout.write(_json(columns) if as_json else _csv(columns))
        return
    try:
        _write(path, columns)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    if as_json:
        output.show_json({"predictions": path, "rows": table.n_rows, "columns": list(columns)})
    else:
        output.remark(f"{table.n_rows} predictions are in {path}.")


def inputs_of(model: Model, table: Table, known: tuple[str, ...] = ()) -> Array:
    """Return the rows of a table as inputs of the model; name columns that it has no use for."""
    encoding = model.encoding
    if model.by_position:
        if len(table.columns) != len(encoding.rules):
            raise InputError(
                f"{table.path} has {len(table.columns)} columns and the model, which knows no names, "
                f"{len(encoding.rules)}: leave out the others."
            )
        renamed = zip(encoding.rules, table.columns.values(), strict=True)
        table = Table(table.path, {rule.name: column for rule, column in renamed})
    X = encoding.apply(table)
    extra = [name for name in encoding.extra(table) if name not in known]
    if extra:
        words = "column {} of {} is" if len(extra) == 1 else "columns {} of {} are"
        output.warn(f"the {words.format(named(extra), table.path)} not used by the model.")
    return X


def predictions(
    model: Model,
    table: Table,
    level: float | None,
    costs: Costs | None = None,
    reject: float | None = None,
    known: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the columns of the result by name."""
    X, clf = inputs_of(model, table, known), model.clf
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
    shown = clf.classes_ if clf.n_classes_ > 2 else clf.classes_[1:]
    for ends, name in ((low, "low"), (high, "high")):
        if ends:
            bound = np.concatenate(ends)
            out |= {f"{name}_{label}": bound[:, i] for i, label in enumerate(shown)}
    return out


# --------------------------------------------------------------------------------- writing


def _cell(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value


def _csv(columns: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def _json(columns: dict[str, Any]) -> str:
    rows = zip(*(output.plain(list(column)) for column in columns.values()), strict=True)
    return (
        json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1, ensure_ascii=False)
        + "\n"
    )


def _write(path: str, columns: dict[str, Any]) -> None:
    lower = path.lower()
    if lower.endswith((".parquet", ".feather", ".arrow")):
        _write_arrow(path, columns)
        return
    text = _json(columns) if lower.removesuffix(".gz").endswith(".json") else _csv(columns)
    raw = text.encode("utf-8")
    with open(path, "wb") as file:
        file.write(gzip.compress(raw) if lower.endswith(".gz") else raw)


def _write_arrow(path: str, columns: dict[str, Any]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import feather, parquet
    except ImportError:
        raise InputError(
            f'{path} needs pyarrow to be written: pip install "gpclass[tables]", or give CSV.'
        ) from None
    table = pa.table({name: pa.array(list(column)) for name, column in columns.items()})
    if path.lower().endswith(".parquet"):
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)
