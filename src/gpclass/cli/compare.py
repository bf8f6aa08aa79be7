"""``gpclass compare``: the methods side by side, as a table, a figure and a report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from gpclass.cli import output
from gpclass.cli.build import kernel_of
from gpclass.cli.data import DataOptions, folds, held_out, read_problem
from gpclass.cli.errors import InputError
from gpclass.cli.figure import comparison_figure, save_figure
from gpclass.cli.problems import problems, settings
from gpclass.cli.report import write_report
from gpclass.comparison import Comparison, compare
from gpclass.mcmc import MCMC

METHODS = ("laplace", "ep", "vi", "mcmc")
DRAWS = 2000  # of MCMC, on the problems that come along
NUMBERS = ("evidence", "corrected_evidence", "standard_error", "khat", "log_loss", "log_loss_error",
           "error", "brier", "ece", "fit_seconds", "predict_seconds")  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """What is compared on: rows, how they are scored, and names for pictures."""

    title: str
    X: Any
    y: Any
    names: tuple[str, ...]
    options: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class CompareOptions:
    """What the options of the command say, besides its data."""

    problem: str = "interval"
    method: tuple[str, ...] = ()
    likelihood: tuple[str, ...] = ()
    kernel: str | None = None
    cv: int | None = None
    test_fraction: float | None = None
    seed: int = 0
    jobs: int | None = None
    verbose: int = 0


def run(
    data: DataOptions | None, options: CompareOptions, *, figure: str | None, html: str | None, as_json: bool
) -> None:
    """Compare, show the table, and write what was asked for."""
    arena = _built_in(options) if data is None else _from_data(data, options)
    loud = bool(options.verbose) or sys.stderr.isatty()
    result = compare(
        arena.X,
        arena.y,
        methods=_methods(options, built_in=data is None, n_classes=len(set(arena.y.tolist()))),
        random_state=options.seed,
        n_jobs=options.jobs,
        verbose=int(loud),
        **arena.options,
    )
    if as_json:
        output.show_json(to_json(result, arena.title))
    else:
        show(result)
    if figure is not None or html is not None:
        drawn = comparison_figure(result, arena.X, arena.y, arena.names)
        if figure is not None:
            save_figure(drawn, figure)
            output.remark(f"The figure is in {figure}.")
        if html is not None:
            write_report(html, result, arena.title, drawn)
            output.remark(f"The report is in {html}.")
    if len(result.rows) < result.n_methods:
        raise KeyboardInterrupt


def _methods(options: CompareOptions, *, built_in: bool, n_classes: int) -> dict[str, Any]:
    names = options.method or (METHODS if built_in or n_classes == 2 else METHODS[:-1])
    likelihoods = options.likelihood or (("probit", "logit") if built_in else ("probit",))
    record = {"mcmc": MCMC(n_draws=DRAWS)} if built_in else {}
    return {
        f"{name}, {likelihood}" if len(likelihoods) > 1 else name: (record.get(name, name), likelihood)
        for likelihood in likelihoods
        for name in names
    }


def _built_in(options: CompareOptions) -> Arena:
    known = problems()
    if options.cv is not None or options.test_fraction is not None:
        raise InputError(
            "The problems that come along have rows to test on: --cv and --test-fraction need DATA."
        )
    split = known[options.problem]()
    held_out: dict[str, Any] = {"X_test": split.X_test, "y_test": split.y_test}
    d = split.X.shape[1]
    chosen = settings(options.problem) if options.kernel is None else {"kernel": kernel_of(options.kernel, d)}
    names = ("$x$",) if d == 1 else tuple(f"$x_{i + 1}$" for i in range(d))
    return Arena(f"The {options.problem} problem", split.X, split.y, names, chosen | held_out)


def _from_data(data: DataOptions, options: CompareOptions) -> Arena:
    problem = read_problem(data)
    rows = None
    if options.test_fraction is not None:
        rows, test = held_out(problem.y, options.test_fraction, options.seed)
    encoding = problem.encode(rows)
    X, y = problem.inputs(encoding, rows), problem.y if rows is None else problem.y[rows]
    chosen: dict[str, Any] = {"kernel": kernel_of(options.kernel or "rbf", X.shape[1])}
    if rows is None:
        chosen["cv"] = folds(y, 5 if options.cv is None else options.cv, options.seed)
    else:
        chosen |= {"X_test": problem.inputs(encoding, test), "y_test": problem.y[test]}
    names = tuple(f"{name}, standardised" if name in problem.features else name for name in encoding.outputs)
    return Arena(f"{data.target} in {data.data}", X, y, names, chosen)


# ------------------------------------------------------------------------------ what is shown


def show(result: Comparison) -> None:
    """Write the table: drawn on a terminal, as the comparison prints itself elsewhere."""
    if not sys.stdout.isatty():
        output.line(str(result))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    headings, rows = cells(result)
    shown = _fitting(headings, rows, console.width)
    table = Table(title=result.title, title_justify="left", title_style="", pad_edge=False, box=None)
    for i in shown:
        table.add_column(headings[i], justify="right" if i else "left", header_style="bold", no_wrap=True)
    for line in rows:
        table.add_row(*[Text(line[i][0], style="bold" if line[i][1] else "") for i in shown])
    console.print(table)
    if hidden := [heading for i, heading in enumerate(headings) if i not in shown]:
        console.print(Text(f"A wider terminal shows {', '.join(hidden)} too.", style="dim"))
    console.print()
    for row in result.rows:
        console.print(Text.assemble((row.label, "bold"), "  ", row.kernel_text or "–"))
        if row.note:
            console.print(Text(f"    {row.note}", style="yellow"))


def _fitting(headings: list[str], rows: list[list[tuple[str, bool]]], width: int) -> list[int]:
    """Return the columns that there is room for, the least telling ones given up first."""
    wide = [max(len(heading), *(len(line[i][0]) for line in rows)) + 2 for i, heading in enumerate(headings)]
    shown = list(range(len(headings)))
    for heading in ("predict s", "Brier", "ECE", "k-hat", "corrected", "fit s"):
        if sum(wide[i] for i in shown) - 2 > width:
            shown.remove(headings.index(heading))
    return shown


def cells(result: Comparison) -> tuple[list[str], list[list[tuple[str, bool]]]]:
    """Return headings, and for each method its cells and whether each is the best of its column."""
    from gpclass.comparison.table import COLUMNS, LARGER, SMALLER

    rows = []
    for row in result.rows:
        line = []
        for column in COLUMNS:
            ranked = column.metric in LARGER + SMALLER and getattr(row, column.metric) is not None
            line.append((column.text(row), ranked and result.best(column.metric) is row))
        rows.append(line)
    return [column.heading for column in COLUMNS], rows


def to_json(result: Comparison, title: str) -> dict[str, Any]:
    """Return a comparison as what JSON can hold."""
    rows = [
        {
            "method": row.label,
            "likelihood": row.likelihood,
            **{name: getattr(row, name) for name in NUMBERS},
            "kernel": row.kernel_text,
            "note": row.note,
        }
        for row in result.rows
    ]
    return {
        "problem": title,
        "title": result.title,
        "classes": result.classes,
        "training_rows": result.n_train,
        "scored_rows": len(result.index),
        "methods": rows,
    }
