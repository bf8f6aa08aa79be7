"""``gpclass predict``: probabilities, credible intervals and decisions for the rows of a table."""

from __future__ import annotations

import gzip
import json
from typing import Any

import click

from gpclass.cli import options, output
from gpclass.cli.files import InputError, access, check_output, named, read_model

EXAMPLES = (
    "predict model.gpc new.csv",
    "predict model.gpc new.csv -o out.csv --keep id --level 0.9",
    "predict model.gpc new.csv --cost '[[0, 1], [5, 0]]' --reject 0.5",
    "predict model.gpc new.csv --cost costs.csv",
)


@options.command(*EXAMPLES)
@click.argument("model")
@click.argument("data")
@click.option(
    "--output", "-o", "path", metavar="FILE", help="File to write: .csv, .csv.gz, .json or .parquet."
)
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, metavar="P",
              help="Probability that a credible interval covers.")  # fmt: skip
@click.option("--no-intervals", is_flag=True, help="Do not compute credible intervals, which saves time.")
@click.option("--cost", metavar="JSON|FILE", help="Cost of each decision, for each true class.")
@click.option(
    "--reject", type=click.FloatRange(0), metavar="COST",
    help='Cost of not deciding; rows whose best decision costs more are "undecided".',
)  # fmt: skip
@options.columns("--keep", "Columns of DATA to copy to the result.")
@options.reading
@options.common
def predict(
    model: str,
    data: str,
    path: str | None,
    level: float,
    no_intervals: bool,
    cost: str | None,
    reject: float | None,
    keep: list[str],
    as_json: bool,
    **reading: Any,
) -> None:
    """Predict class probabilities for the rows of a table.

    The result has one row for each row of DATA: the most probable class, the probability of every class (p_...), and
    the credible interval of that probability (low_..., high_...), which is wide where there are few training rows. The
    columns of DATA may be in any order.

    With --cost the result also has the decision that is cheapest on average. Costs are JSON with one row per true class
    and one column per predicted class, in the order of the classes, or a CSV file with the decisions in its header and
    the true classes in its first column. With --reject a row can also be left undecided, at the cost given.
    """
    import pandas as pd

    from gpclass.cli.tables import check_columns, read_table
    from gpclass.decision import bayes_decision

    if path is not None:
        check_output(path, "table", [model, data, cost])
    clf, _ = read_model(model)
    costs, decisions = _read_costs(cost, [str(label) for label in clf.classes_])
    names = [str(name) for name in getattr(clf, "feature_names_in_", ())]
    table = read_table(data, [name for name in keep if name not in names], **reading)
    check_columns(data, table, [*keep, *names])
    kept = table[keep].apply(lambda column: column.astype(str).where(column.notna()))
    found = predictions(clf, table[names] if names else table.to_numpy(), None if no_intervals else level)
    if cost or reject is not None:
        P = found[[f"p_{label}" for label in clf.classes_]].to_numpy()
        chosen = bayes_decision(P, costs, reject=reject)
        found.insert(1, "decision", ["undecided" if i < 0 else decisions[i] for i in chosen])
    if both := list(kept.columns.intersection(found.columns)):
        raise InputError(
            f"--keep names {named(both)}, but the result already has such a column: rename it in DATA, or do not "
            "keep it."
        )
    _write(pd.concat([kept, found], axis=1), path, as_json)


def predictions(clf: Any, X: Any, level: float | None) -> Any:
    """Return a frame of the most probable class, all class probabilities, and the bounds of their intervals."""
    import pandas as pd

    parts = {"p": clf.predict_proba(X)}
    if level is not None:
        low, high = clf.predict_interval(X, level=level)
        parts |= {"low": low.reshape(len(X), -1), "high": high.reshape(len(X), -1)}
    columns = {"prediction": clf.predict(X)}
    for name, values in parts.items():
        # With two classes the interval of the second class determines the interval of the first.
        shown = clf.classes_[-values.shape[1] :]
        columns |= {f"{name}_{label}": values[:, i] for i, label in enumerate(shown)}
    return pd.DataFrame(columns)


def _write(frame: Any, path: str | None, as_json: bool) -> None:
    """Write a frame: CSV with six digits, JSON or Parquet with all of them."""
    from gpclass.core import files

    kind = "" if path is None else path.lower().removesuffix(".gz")
    if kind.endswith(".json") or (as_json and path is None):
        text = frame.to_json(orient="records", indent=1, double_precision=15, force_ascii=False) + "\n"
    else:
        text = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    if path is None:
        click.echo(text, nl=False)
        return
    with access(path, "written"), files.replacing(path) as file:
        if kind.endswith(".parquet"):
            frame.to_parquet(file)
        else:
            raw = text.encode("utf-8")
            file.write(gzip.compress(raw) if path.lower().endswith(".gz") else raw)
    output.remark(f"Wrote {len(frame)} predictions to {path}.")


def _read_costs(given: str | None, classes: list[str]) -> tuple[Any, list[str]]:
    """Return the costs, with a row per true class and a column per decision, and the names of the decisions.

    JSON is a list of rows in the order of the classes. In a file the decisions need not be classes.
    """
    from gpclass.cli.tables import read_table
    from gpclass.decision import check_cost

    if given is None:
        return None, classes
    if given.lstrip().startswith("["):
        try:
            return check_cost(json.loads(given), len(classes), len(classes)), classes
        except json.JSONDecodeError as error:
            raise InputError(f"--cost is not JSON such as [[0, 1], [5, 0]]: {error}.") from None
    frame = read_table(given)
    frame = frame.set_index(frame.columns[0]).rename(index=str)
    if set(frame.index) != set(classes) or frame.isna().any(axis=None):
        raise InputError(
            f"--cost names the classes {named(frame.index)}, expected those of the model, {named(classes)}, with the "
            "same decisions for each."
        )
    # Decisions that are the classes are put in their order, so that ties are broken as without costs.
    actions = classes if set(frame) == set(classes) else list(frame)
    return check_cost(frame.loc[classes, actions].to_numpy(), len(classes)), actions
