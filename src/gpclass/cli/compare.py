"""``gpclass compare``: the inference methods side by side, as a table, a figure and a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.stats import lognorm

from gpclass.cli import output
from gpclass.cli.data import folds, held_out, read_problem
from gpclass.cli.errors import InputError
from gpclass.cli.outputs import check_outputs
from gpclass.comparison import BASELINES, LEGEND, METHODS, METRICS, compare
from gpclass.datasets import problems
from gpclass.kernels import RBF, ConstantKernel
from gpclass.mcmc import MCMC
from gpclass.parameters import INFERENCES

DRAWS = 2000  # of MCMC, on the built-in problems
STYLES = dict(zip(LEGEND, ("bold green", "bold red"), strict=True))  # of the marks in the table
OPTIONAL = ("predict s", "Brier", "ECE", "k-hat", "corrected", "fit s")  # columns, in the order of hiding


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
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
        from gpclass.cli.figures import check_ending

        check_ending("report.png" if figure is None else figure)
        check_outputs(given, figure=figure, report=html)
    setup = _built_in(given) if built_in else _from_data(given)
    result = compare(
        setup.X,
        setup.y,
        methods=_methods(given, built_in=built_in),
        random_state=given["seed"],
        n_jobs=given["jobs"],
        verbose=int(bool(given["verbose"]) or sys.stderr.isatty()),
        **setup.options,
    )
    if given["as_json"]:
        output.show_json(to_json(result, setup.title))
    else:
        show(result)
    if figure is not None or html is not None:
        _write_files(result, setup, figure, html)
    if len(result.rows) < result.n_methods:
        raise KeyboardInterrupt


def _write_files(result: Any, setup: Setup, figure: str | None, html: str | None) -> None:
    from gpclass.cli.figures import comparison_figure, save_figure
    from gpclass.cli.report import write_report

    drawn = comparison_figure(result, setup.X, setup.y, setup.names)
    if figure is not None:
        save_figure(drawn, figure)
        output.remark(f"Wrote the figure to {figure}.")
    if html is not None:
        write_report(html, result, setup.title, drawn)
        output.remark(f"Wrote the report to {html}.")


def compared() -> list[str]:
    """Return the names of the methods that can be compared: our own, and classifiers of scikit-learn."""
    return [*INFERENCES, *BASELINES]


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


def _built_in(given: Mapping[str, Any]) -> Setup:
    name, kernel = given["problem"], given["kernel"]
    if given["cv"] is not None or given["test_fraction"] is not None:
        raise InputError("The built-in problems have test rows: --cv and --test-fraction need DATA.")
    split = problems()[name]()
    d = split.X.shape[1]
    options: dict[str, Any] = {"kernel": kernel}
    if kernel is None and name == "interval":
        # The classes can be separated without error, so that the evidence hardly limits the signal variance.
        options["kernel"] = ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3))
        options["hyperprior"] = {"constant_value": lognorm(1.0, scale=10.0)}
    names = ("$x$",) if d == 1 else tuple(f"$x_{i + 1}$" for i in range(d))
    options |= {"X_test": split.X_test, "y_test": split.y_test}
    return Setup(f"The {name} problem", split.X, split.y, names, options)


def _from_data(given: Mapping[str, Any]) -> Setup:
    problem, rows = read_problem(given), None
    if given["test_fraction"] is not None:
        rows, test = held_out(problem.y, given["test_fraction"], given["seed"])
    encoder, X, y = problem.encode(rows)
    options: dict[str, Any] = {"kernel": given["kernel"]}
    if rows is None:
        options["cv"] = folds(y, given["cv"] or 5, given["seed"])
    else:
        options |= {"X_test": problem.inputs(encoder, test), "y_test": problem.y[test]}
    features = encoder.get_feature_names_out()
    names = tuple(f"{name}, standardised" if name in problem.table.frame else name for name in features)
    return Setup(f"{given['target']} in {given['data']}", X, y, names, options)


def show(result: Any) -> None:
    """Write the table: with colours on a terminal, otherwise as the comparison prints itself."""
    if not sys.stdout.isatty():
        output.line(str(result))
        return
    cells = _cells(result)
    hidden = output.fit_width(cells, OPTIONAL)
    output.paragraph(f"{result.title}\n")
    output.show_table(list(cells), list(zip(*cells.values(), strict=True)), right=True)
    for mark in dict.fromkeys(result.marks().values()):
        output.paragraph(f"{mark} {LEGEND[mark]}")
    if hidden:
        output.paragraph(f"A wider terminal also shows {', '.join(hidden)}.")
    output.paragraph("\n" + " ".join(result.findings) + "\n" * bool(result.findings))
    kernels = [(row.label, row.kernel_text or "–", row.note) for row in result.rows]
    output.show_table(("method", "kernel", "note"), kernels)


def _cells(result: Any) -> dict[str, list[Any]]:
    """Return the columns of the table by their headings; a cell with a mark has the colour of the mark."""
    from rich.text import Text

    marks = result.marks()
    cells: dict[str, list[Any]] = {"method": [Text(row.label) for row in result.rows]}
    for name, about in METRICS.items():
        found = [marks.get((row.label, name), "") for row in result.rows]
        cells[about["heading"]] = [
            Text(row.text(name) + (mark or " " * any(found)), style=STYLES.get(mark, ""))
            for row, mark in zip(result.rows, found, strict=True)
        ]
    return cells


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
