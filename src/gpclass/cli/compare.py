"""``gpclass compare``: the inference methods side by side, as a table, a figure and a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpclass.cli import output
from gpclass.cli.choices import problems, settings_of
from gpclass.cli.data import folds, held_out, read_problem
from gpclass.cli.errors import InputError, check_directory
from gpclass.comparison import BASELINES, LEGEND, compare
from gpclass.mcmc import MCMC

METHODS = ("laplace", "ep", "vi", "mcmc")
DRAWS = 2000  # of MCMC, on the built-in problems
STYLES = dict(zip(LEGEND, ("bold green", "bold red"), strict=True))  # of the marks in the table
OPTIONAL = ("predict_seconds", "brier", "ece", "khat", "corrected_evidence", "fit_seconds")  # hidden first


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """The rows that are compared on, their names in figures, and further arguments of `gpclass.compare`."""

    title: str
    X: Any
    y: Any
    names: tuple[str, ...]
    options: dict[str, Any]


def run(given: Mapping[str, Any]) -> None:
    """Compare, show the table, and write figure and report; ``given`` are the options by name."""
    built_in, figure, html = given["data"] is None, given["output"], given["html"]
    if figure is not None or html is not None:  # what cannot be written is found before anything is computed
        from gpclass.cli.figures import check_path

        check_path("report.png" if figure is None else figure)
        check_directory(html or "")
    arena = _built_in(given) if built_in else _from_data(given)
    result = compare(
        arena.X,
        arena.y,
        methods=_methods(given, built_in=built_in),
        random_state=given["seed"],
        n_jobs=given["jobs"],
        verbose=int(bool(given["verbose"]) or sys.stderr.isatty()),
        **arena.options,
    )
    if given["as_json"]:
        output.show_json(to_json(result, arena.title))
    else:
        show(result)
    if figure is not None or html is not None:
        _write_files(result, arena, figure, html)
    if len(result.rows) < result.n_methods:
        raise KeyboardInterrupt


def _write_files(result: Any, arena: Arena, figure: str | None, html: str | None) -> None:
    from gpclass.cli.figures import comparison_figure, save_figure
    from gpclass.cli.report import write_report

    drawn = comparison_figure(result, arena.X, arena.y, arena.names)
    if figure is not None:
        save_figure(drawn, figure)
        output.remark(f"Wrote the figure to {figure}.")
    if html is not None:
        write_report(html, result, arena.title, drawn)
        output.remark(f"Wrote the report to {html}.")


def _methods(given: Mapping[str, Any], *, built_in: bool) -> dict[str, Any]:
    # MCMC takes many times as long as the others, so that a table has it only if it is named.
    named = given["method"] or (METHODS if built_in else METHODS[:-1])
    names = [name for name in named if name not in BASELINES]
    others = BASELINES if given["baselines"] else [name for name in named if name in BASELINES]
    likelihoods = given["likelihood"] or (("probit", "logit") if built_in else ("probit",))
    record = {"mcmc": MCMC(n_draws=DRAWS)} if built_in else {}
    chosen: dict[str, Any] = {
        f"{name}/{likelihood}" if len(likelihoods) > 1 else name: (record.get(name, name), likelihood)
        for likelihood in likelihoods
        for name in names
    }
    return chosen | {name: name for name in others}


def _built_in(given: Mapping[str, Any]) -> Arena:
    name, kernel = given["problem"], given["kernel"]
    if given["cv"] is not None or given["test_fraction"] is not None:
        raise InputError("The built-in problems have test rows: --cv and --test-fraction need DATA.")
    split = problems()[name]()
    d = split.X.shape[1]
    options = settings_of(name) if kernel is None else {"kernel": kernel}
    names = ("$x$",) if d == 1 else tuple(f"$x_{i + 1}$" for i in range(d))
    options |= {"X_test": split.X_test, "y_test": split.y_test}
    return Arena(f"The {name} problem", split.X, split.y, names, options)


def _from_data(given: Mapping[str, Any]) -> Arena:
    problem, rows = read_problem(given), None
    if given["test_fraction"] is not None:
        rows, test = held_out(problem.y, given["test_fraction"], given["seed"])
    encoding, X, y = problem.encode(rows)
    options: dict[str, Any] = {"kernel": given["kernel"]}
    if rows is None:
        options["cv"] = folds(y, given["cv"] or 5, given["seed"])
    else:
        options |= {"X_test": problem.inputs(encoding, test), "y_test": problem.y[test]}
    names = tuple(f"{name}, standardised" if name in problem.features else name for name in encoding.outputs)
    return Arena(f"{given['target']} in {given['data']}", X, y, names, options)


def show(result: Any) -> None:
    """Write the table: with colours on a terminal, otherwise as the comparison prints itself."""
    if not sys.stdout.isatty():
        output.line(str(result))
        return
    cells, marks = _cells(result)
    hidden = output.fit_width(cells, OPTIONAL)
    output.line(f"{result.title}\n")
    headings = [name.replace("_", " ") for name in cells]
    output.show_table(headings, list(zip(*cells.values(), strict=True)), right=True)
    for mark in dict.fromkeys(marks.values()):
        output.line(f"{mark} {LEGEND[mark]}")
    if hidden:
        output.line(f"A wider terminal also shows {', '.join(hidden).replace('_', ' ')}.")
    output.line()
    output.paragraph(" ".join(result.findings))
    kernels = [(row.label, row.kernel_text or "–", row.note) for row in result.rows]
    output.show_table(("method", "kernel", "note"), kernels)


def _cells(result: Any) -> tuple[dict[str, list[Any]], dict[tuple[str, str], str]]:
    """Return the columns of the table, with standard errors after their value, and the marks of the cells."""
    from rich.text import Text

    frame, marks = result.to_frame(), result.marks()
    cells: dict[str, list[Any]] = {"method": [Text(label) for label in frame.index]}
    for name in frame.select_dtypes("number"):
        texts = ["" if value != value else f"{value:.4g}" for value in frame[name]]
        if name.endswith("_error"):  # of the column before it
            for cell, text in zip(list(cells.values())[-1], texts, strict=True):
                cell.append(text and f" ± {text}")
            continue
        found = [marks.get((label, name), "") for label in frame.index]
        cells[name] = [
            Text(text or "–", style=STYLES.get(mark, "")) for text, mark in zip(texts, found, strict=True)
        ]
    for (label, name), mark in marks.items():  # after the standard errors
        cells[name][frame.index.get_loc(label)].append(mark)
    for name in {name for _, name in marks}:
        for i, cell in enumerate(cells[name]):
            cell.append("" if (frame.index[i], name) in marks else " ")
    return cells, marks


def to_json(result: Any, title: str) -> dict[str, Any]:
    """Return a comparison as plain data."""
    return {
        "problem": title,
        "title": result.title,
        "classes": result.classes,
        "training_rows": result.n_train,
        "scored_rows": len(result.index),
        "findings": list(result.findings),
        "tied": {metric: list(result.tied(metric)) for metric in ("log_loss", "error", "brier")},
        "methods": json.loads(result.to_frame().reset_index().to_json(orient="records", double_precision=15)),
    }
