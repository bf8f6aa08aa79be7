"""``gpclass explore``: a page in the browser, of a built-in problem or of a table."""

from __future__ import annotations

from typing import Any

import click

from gpclass.cli import options, output
from gpclass.cli.files import InputError

EXAMPLES = (
    "explore",
    "explore --problem moons --port 5010 --no-browser",
    "explore data.csv --target species --columns width,length",
)
ROWS = 200  # number of rows shown of a longer table


@options.command(*EXAMPLES)
@options.data_or_problem
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N",
    show_default="any that is free", help="Port of the server.",
)  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Do not open the page, only print its address.")
@options.table
@options.common
def explore(
    data: str, target: str, problem: str, port: int, no_browser: bool, table: dict[str, Any], as_json: bool
) -> None:
    """Open a page in the browser to place and drag points.

    The page shows the result of each method: probabilities, uncertainty, the evidence, the error of the approximation
    and the points behind a prediction. It starts with a built-in problem, or with one or two columns of DATA, numbers
    or categories; for a table with more columns it shows the first two principal components. The server listens on this
    machine only and stops with Ctrl+C. It needs Bokeh, which the extra 'explore' of gpclass has.
    """
    from gpclass.core import checks
    from gpclass.explore import serve, start

    checks.optional("bokeh", "The page", "explore")  # reported before a table is read
    begun = start(problem) if data is None else read_start(data, target, table)
    if data is not None:
        output.remark(begun.words)

    def announce(address: str) -> None:
        if as_json:
            output.show_json({"address": address})
        else:
            click.echo(f"gpclass explore is at {address} (interrupt with Ctrl+C).")

    serve(begun, port=port, browser=not no_browser, announce=announce)


def read_start(data: str, target: str, table: dict[str, Any]) -> Any:
    """Return the initial state of the page for a table: one or two of its columns, or two principal components."""
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    from gpclass.cli.tables import read_problem
    from gpclass.explore import MOST_CLASSES, from_table
    from gpclass.tables import Encoder

    frame, y = read_problem(data, target, **table)
    classes, first = np.unique(y, return_index=True)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"{data} has {len(classes)} classes in column {target!r}, but the page draws at most {MOST_CLASSES}: leave "
            "some of them out."
        )
    encoder = Encoder(table["categorical"])
    rows = encoder.fit_transform(frame)
    columns = [column for column in encoder.columns_ if column.positions]
    names = [column.name for column in columns]
    levels: tuple[tuple[str, ...], ...] = ((), ())
    words = f"{data}: {' and '.join(names)}."
    if len(columns) < 3:
        levels = tuple(tuple(map(str, column.levels)) for column in columns)
        coded = [rows[:, column.positions] for column in columns]
        rows = np.column_stack(
            [each.argmax(axis=1) if known else each[:, 0] for each, known in zip(coded, levels, strict=True)]
        )
        filled = [column.name for column in columns if column.scale is not None]
        words += f" Missing values of {' and '.join(filled)} are drawn at the median." if filled else ""
    else:
        pca = PCA(2)
        rows = pca.fit_transform(StandardScaler().fit_transform(rows))
        shares = pca.explained_variance_ratio_
        names = [f"component {i + 1} ({share:.0%})" for i, share in enumerate(shares)]
        words = (
            f"{data}: the first two principal components of its {len(columns)} columns, which explain "
            f"{shares.sum():.0%} of their variance. Choose one or two columns with --columns."
        )
    if len(y) > ROWS:  # includes a row of every class
        order = np.random.default_rng(table["seed"]).permutation(len(y))
        chosen = [*first, *np.setdiff1d(order, first, assume_unique=True)][:ROWS]
        words += f" {ROWS} of {len(y)} rows are shown, drawn at random."
        rows, y = rows[chosen], y[chosen]
    return from_table(rows, y, tuple(names), words, levels)
