"""``gpclass compare``: the inference methods side by side, as a table and a figure."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from scipy.stats import lognorm

from gpclass.cli import output
from gpclass.cli.data import held_out, read_problem
from gpclass.cli.files import InputError, check_output
from gpclass.comparison import BASELINES, METHODS, METRICS, compare
from gpclass.datasets import problems
from gpclass.kernels import RBF, ConstantKernel
from gpclass.mcmc import MCMC
from gpclass.parameters import INFERENCES

DRAWS = 2000  # MCMC draws for the built-in problems
BRIEF = ("evidence", "khat", "log_loss", "error", "fit_seconds")  # columns that fit on a narrow terminal


def run(given: Mapping[str, Any]) -> None:
    """Compare, show the table, and write the figure; ``given`` are the options by name."""
    built_in, figure = given["data"] is None, given["output"]
    if figure is not None:
        from gpclass.cli.figures import check_ending

        check_ending(figure)
        check_output(given, "figure", figure)
    title, X, y, options = _built_in(given) if built_in else _from_data(given)
    result = compare(
        X,
        y,
        methods=_methods(given, built_in=built_in),
        random_state=given["seed"],
        n_jobs=given["jobs"],
        verbose=int(bool(given["verbose"]) or sys.stderr.isatty()),
        **options,
    )
    if given["as_json"]:
        output.show_json(to_json(result, title))
    else:
        show(result)
    if figure is not None:
        from gpclass.cli.figures import save_display
        from gpclass.plotting import ComparisonDisplay

        save_display(ComparisonDisplay(result).plot(), figure)
        output.remark(f"Wrote the figure to {figure}.")


def compared() -> list[str]:
    """Return the names of the methods that can be compared: our own, and classifiers of scikit-learn."""
    return [*INFERENCES, *BASELINES]


def _methods(given: Mapping[str, Any], *, built_in: bool) -> dict[str, Any]:
    # MCMC is much slower than the others, so for a table of the user it runs only if requested.
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


def _built_in(given: Mapping[str, Any]) -> tuple[str, Any, Any, dict[str, Any]]:
    """Return a title, the rows and further arguments of `compare`."""
    name, kernel = given["problem"], given["kernel"]
    if given["cv"] is not None or given["test_fraction"] is not None:
        raise InputError("The built-in problems have test rows: --cv and --test-fraction need DATA.")
    split = problems()[name]()
    options: dict[str, Any] = {"kernel": kernel, "X_test": split.X_test, "y_test": split.y_test}
    if kernel is None and name == "interval":
        # The classes are separable, so the evidence hardly bounds the signal variance.
        options["kernel"] = ConstantKernel(1.0, (1e-3, 1e6)) * RBF(10.0, (1e-1, 1e3))
        options["hyperprior"] = {"constant_value": lognorm(1.0, scale=10.0)}
    return f"The {name} problem", split.X, split.y, options


def _from_data(given: Mapping[str, Any]) -> tuple[str, Any, Any, dict[str, Any]]:
    """Return a title, the rows and further arguments of `compare`."""
    problem = read_problem(given)
    X, y = problem.frame, problem.y
    options: dict[str, Any] = {"kernel": given["kernel"], "categorical_features": problem.categorical}
    if given["test_fraction"] is None:
        options["cv"] = given["cv"] or 5
    else:
        rows, test = held_out(y, given["test_fraction"], given["seed"])
        options |= {"X_test": X.iloc[test], "y_test": y[test]}
        X, y = X.iloc[rows], y[rows]
    return f"{given['target']} in {given['data']}", X, y, options


def show(result: Any) -> None:
    """Write the comparison as text; on a narrow terminal some columns of the table are left out."""
    text = str(result)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if width is None or max(map(len, text.splitlines())) <= width:
        output.line(text)
        return
    output.paragraph(f"{result.title}\n")
    headings = ["method", *(METRICS[name][0] for name in BRIEF)]
    rows = [[row.label, *(row.text(name) for name in BRIEF)] for row in result.rows]
    output.show_table(headings, rows, right=True)
    output.paragraph("A wider terminal shows more columns.\n\n" + " ".join(result.findings) + "\n")
    kernels = [(row.label, row.kernel_text or "–", row.note) for row in result.rows]
    output.show_table(("method", "kernel", "note"), kernels)


def to_json(result: Any, title: str) -> dict[str, Any]:
    """Return a comparison as plain data."""
    return {
        "problem": title,
        "title": result.title,
        "classes": result.classes,
        "training_rows": result.n_train,
        "scored_rows": len(result.index),
        "findings": list(result.findings),
        "tied": {"log_loss": list(result.tied())},
        "methods": json.loads(result.to_frame().reset_index().to_json(orient="records", double_precision=15)),
    }
