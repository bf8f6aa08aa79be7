"""``gpclass explain``: one page on what a model learned, what its predictions depend on, and where it is uncertain."""

from __future__ import annotations

import os
from typing import Any

import click

from gpclass.cli import options, output
from gpclass.cli.files import access, check_output, read_model
from gpclass.cli.show import describe


@options.command("explain model.gpc data.csv", "explain model.gpc data.csv -o page.md")
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
    from gpclass.cli.sections import SECTIONS, make_subject, read_rows
    from gpclass.core import files

    path = path or f"{os.path.splitext(model)[0]}.html"
    check_output(path, "page", [model, data])
    clf, about = read_model(model)
    X, codes = read_rows(clf, data, target, about.get("target"), reading)
    known = describe(model, clf, about) | {"explained on": data}
    subject, how = make_subject(clf, known, X, codes, seed)
    values = {"name": os.path.basename(model), "how": how}
    for section in SECTIONS:
        values |= section(subject)
    text = page(values, html=not path.lower().endswith(".md"))
    with access(path, "written"), files.replacing(path) as file:
        file.write(text.encode("utf-8"))
    output.remark(f"Wrote the page to {path}.")
    if as_json:
        output.show_json({"page": path})
