"""``gpclass explain``: one page on what a model learned, what its predictions depend on, and what it does not know."""

from __future__ import annotations

import os
from typing import Any

import click
import numpy as np

from gpclass.cli import options, output
from gpclass.cli.files import InputError, access, check_output, named, read_model
from gpclass.cli.show import describe

SAMPLE = 300  # rows of longer tables on which importance and effects are computed


@click.command(epilog=options.examples("explain model.gpc data.csv", "explain model.gpc data.csv -o page.md"))
@click.argument("model")
@click.argument("data")
@click.option(
    "--output", "-o", "path", metavar="FILE", help="Page to write: .html or .md.  [default: beside the model]"
)
@click.option(
    "--target", "-t", metavar="COL", help="Column of DATA with the labels.  [default: as in the fit]"
)
@options.reading
@options.seed
@options.common
def explain(
    model: str, data: str, path: str | None, target: str | None, seed: int, as_json: bool, **reading: Any
) -> None:
    """Explain a model on the rows of a table, in one page that needs no other file.

    It says what was fitted and why, how good the predictions for DATA are if it has labels, which columns and pairs of
    columns matter, how the probabilities depend on them, which labels are doubtful, and for which rows the model knows
    little. Numbers have intervals of 95 %. A page in Markdown has tables in place of figures.
    """
    from gpclass.cli.page import page
    from gpclass.cli.sections import SECTIONS
    from gpclass.core import files

    path = path or f"{os.path.splitext(model)[0]}.html"
    check_output(path, "page", [model, data])
    clf, about = read_model(model)
    X, codes = _read_rows(clf, data, target, about.get("target"), reading)
    known = describe(model, clf, about) | {"explained on": data}
    subject, how = _subject(clf, known, X, codes, seed)
    values = {"name": os.path.basename(model), "how": how}
    for section in SECTIONS:
        values |= section(subject)
    text = page(values, html=not path.lower().endswith(".md"))
    with access(path, "written"), files.replacing(path) as file:
        file.write(text.encode("utf-8"))
    output.remark(f"Wrote the page to {path}.")
    if as_json:
        output.show_json({"page": path})


def _read_rows(clf: Any, data: str, given: str | None, known: str | None, reading: Any) -> tuple[Any, Any]:
    """Return the input columns of a table, and the positions of its labels among the classes if it has them."""
    from gpclass.cli.tables import check_columns, read_table

    target = given or known or ""
    table = read_table(data, [target], **reading)
    names = list(getattr(clf, "feature_names_in_", table.columns.drop(target, errors="ignore")))
    check_columns(data, table, [*names, *[target] * (given is not None)])
    if target not in table:
        return table[names], None
    classes = [str(label) for label in clf.classes_]
    labels = table[target].astype(str).str.strip()
    if unknown := sorted(set(labels) - set(classes)):
        raise InputError(
            f"The column {target!r} of {data} has {named(unknown)}, expected the classes {named(classes)}: correct "
            "such rows, or leave them out."
        )
    return table[names], np.array([classes.index(label) for label in labels])


def _subject(clf: Any, known: Any, X: Any, codes: Any, seed: int) -> tuple[Any, str]:
    """Return everything that the sections of the page need, and where the probabilities of the rows come from."""
    from gpclass.cli.sections import LEVEL, Subject

    rows = X if hasattr(clf, "feature_names_in_") else X.to_numpy()
    coded = np.asarray(rows, dtype=float) if clf.encoder_ is None else clf.encoder_.transform(rows)
    P, how = _probabilities(clf, rows, coded, codes)
    few = np.sort(np.random.default_rng(seed).permutation(len(X))[:SAMPLE])
    some = rows[few] if rows is not X else X.iloc[few]
    importance = clf.importance(some, None if codes is None else clf.classes_[codes[few]], level=LEVEL)
    if rows is not X:  # a model of an array has names of its own
        X = X.set_axis(sorted(importance.features, key=lambda name: int(name[1:])), axis=1)
    return Subject(clf, known, X, rows, some, coded, codes, P, importance), how


def _probabilities(clf: Any, X: Any, coded: Any, codes: Any) -> tuple[Any, str]:
    """Return class probabilities of the rows, of training rows from all others, and a sentence that says so."""
    try:
        rows, labels = clf.training_rows()
    except ValueError:
        how = "The model does not keep its training rows: if some are among these rows, the scores are too good."
        return clf.predict_proba(X), how
    same = codes is not None and labels is not None and np.array_equal(rows, coded)
    if same and np.array_equal(labels, clf.classes_[codes]):
        how = "These are the training rows: each is predicted from all others (leave-one-out)."
        return clf.loo_proba_, how
    seen = {row.tobytes() for row in np.asarray(rows, dtype=float)}
    n = sum(row.tobytes() in seen for row in np.asarray(coded, dtype=float))
    found = f"{n} of these {len(X)} rows are training rows, so that the scores are too good."
    return clf.predict_proba(X), found if n else f"None of these {len(X)} rows was used in the fit."
