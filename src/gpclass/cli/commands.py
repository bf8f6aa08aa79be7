"""The commands: what --help says, which options they have, and the function that does the work.

In a help text a line with a backspace keeps the lines of the next paragraph as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from gpclass.cli.options import parameters

SCORING = ("cv", "test_fraction")
READING = ("separator", "decimal", "thousands", "encoding", "sheet")
TABLE = ("columns", "drop", "categorical", "rows", *READING)

GPCLASS = """
Classify the rows of a table with Gaussian processes. Probabilities come with credible intervals.

\b
gpclass compare data.csv --target y      find out which method suits the data
gpclass fit data.csv --target y          fit a model and save it to model.gpc
gpclass predict model.gpc new.csv        predict new rows
gpclass check model.gpc                  can the approximation be trusted?
gpclass compare                          try it on a small built-in problem
gpclass explore                          place points in a page in the browser

DATA is a CSV, JSON, Excel (.xlsx), Parquet or Feather file, possibly compressed (.gz, .zip); - is CSV from standard
input. Columns may have numbers, text, truth values, dates and gaps. An output file appears when it is complete. It
replaces an existing file with an ending of its kind, any other file only with --force, and never an input.
Every command has its own --help with examples. Exit codes: 0 success, 1 bad input, 2 wrong usage, 130 interrupted.
"""

COMPARE = """
Compare methods on a table, and say which to use.

Every method is fitted to the same rows, learns its own hyperparameters, and predicts rows that it has not seen. The
result is a table of scores and a few sentences: which methods predict best, which agree, and which approximations
cannot be trusted. Rows of DATA are predicted by five-fold cross-validation, unless --cv or --test-fraction is given.
Without DATA a built-in problem with test rows of its own is used.

\b
Examples:
  gpclass compare data.csv --target species
  gpclass compare data.csv --target species --baselines
  gpclass compare data.csv --target ill -m vi -m mcmc -m gradient-boosting
  gpclass compare data.parquet -t y --test-fraction 0.3 -l probit -l logit
  gpclass compare --problem moons -o figure.png
"""

FIT = """
Fit a model to a table and save it.

Text and truth values are categories. Missing values need no preparation. The model file contains the coding of the
columns, so that predict, and gpclass.load in Python, accept tables as they are.

Nothing is scored unless you ask for it. With --cv the saved model is fitted to all rows, and the scores come from
further models that are fitted to parts of them. With --test-fraction some rows are held out, and the saved model is
not fitted to them. To see all names that --inference, --likelihood or --kernel accepts, give it an unknown one, as in
--kernel list.

\b
Examples:
  gpclass fit data.csv --target species
  gpclass fit data.csv.gz --target y --cv 5 -o model.gpc
  gpclass fit data.csv -t ill --inference ep --test-fraction 0.2
  gpclass fit data.parquet -t y --drop name,id --categorical ward
  gpclass fit data.csv -t y --separator ';' --decimal , --encoding latin-1
"""

PREDICT = """
Predict class probabilities for the rows of a table.

The result has one row for each row of DATA: the most probable class, the probability of every class (p_...), and the
credible interval of that probability (low_..., high_...), which is wide where there are few training rows. The columns
of DATA may be in any order.

With --cost the result also has the decision that is cheapest on average. Costs are JSON, in a file or on the command
line: one row per true class and one column per decision, in the order of the classes or by name. They may also be a CSV
file with the decisions in its header and the true classes in its first column. With --reject a row can also be left
undecided, at the cost given.

\b
Examples:
  gpclass predict model.gpc new.csv
  gpclass predict model.gpc new.csv -o out.csv --keep id --level 0.9
  gpclass predict model.gpc new.csv --cost '[[0, 1], [5, 0]]' --reject 0.5
  gpclass predict model.gpc new.csv --cost costs.csv
"""

CHECK = """
Check whether the approximation in a model can be trusted.

Draws from the approximate posterior are weighted so that they follow the exact one (importance sampling). This corrects
the evidence and shows how far the probabilities of the training rows are off. The last line is the verdict.

\b
Examples:
  gpclass check model.gpc
  gpclass check model.gpc --draws 10000 --json
"""

PLOT = """
Draw a figure of a model.

A model of one column is drawn as the latent function and the probability below it, a model of two columns as contours
over the plane. --kind trace shows the chains of MCMC, for any number of columns.
Unless --output is given, the figure is saved beside the model, with the ending .png.

\b
Examples:
  gpclass plot model.gpc
  gpclass plot model.gpc -o figure.pdf --kind trace
"""

INFO = """
Show what a model file contains: data, classes, kernel, evidence, scores and the columns.

\b
Examples:
  gpclass info model.gpc
  gpclass info model.gpc --json
"""

EXPLORE = """
Open a page in the browser to place and drag points.

The page shows the result of each method: probabilities, uncertainty, the evidence and the error of
the approximation. It starts with a built-in problem, or with one or two columns of DATA; for a table with
more columns it shows the first two principal components. The server listens on this machine only and stops
with Ctrl+C. It needs Bokeh: pip install "gpclass[explore]".

\b
Examples:
  gpclass explore
  gpclass explore --problem moons --port 5010 --no-browser
  gpclass explore data.csv --target species --columns width,length
"""


FILES = ("data?", "target?", "problem", "figure", "force")
MODEL = ("inference", "likelihood", "kernel", "multi_class", "hyperparameters", "restarts", "balanced")
RESULT = ("table file", "force", "level", "no_intervals", "cost", "reject", "keep")
PAGE = ("problem", "port", "no_browser")
RUNNING = (*SCORING, *TABLE, "seed", "jobs", "verbose")
# The help text, the keys of the options, and "module:function", which is imported when the command runs.
COMMANDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "compare": (COMPARE, (*FILES, "method", "baselines", "likelihood*", "kernel", *RUNNING), "compare:run"),
    "fit": (FIT, ("data", "target", "model file", "force", *MODEL, *RUNNING), "fit:run"),
    "predict": (PREDICT, ("model", "data", *RESULT, *READING), "predict:run"),
    "check": (CHECK, ("model", "draws", "seed"), "show:check"),
    "plot": (PLOT, ("model", "figure", "force", "kind"), "figures:plot"),
    "info": (INFO, ("model",), "show:info"),
    "explore": (EXPLORE, ("data?", "target?", *PAGE, *TABLE, "seed"), "explore:run"),
}


def make_commands() -> dict[str, Any]:
    """Return the commands by name."""
    import click

    known = parameters()

    def make(name: str, text: str, keys: tuple[str, ...], work: str) -> Any:
        def run(**given: Any) -> None:
            check_usage(given)
            module, _, function = work.partition(":")
            getattr(import_module(f"gpclass.cli.{module}"), function)(given)

        options = [known[key] for key in (*keys, "json", "debug")]
        return click.Command(name, params=options, help=text, callback=run)

    return {name: make(name, *command) for name, command in COMMANDS.items()}


def check_usage(given: Mapping[str, Any]) -> None:
    """Raise an error for options that cannot be combined."""
    import click

    if given.get("cv") is not None and given.get("test_fraction") is not None:
        raise click.UsageError("--cv and --test-fraction are two ways to score: give one of them.")
    if "target" in given and given["data"] is None and given["target"] is not None:
        raise click.UsageError("--target needs DATA, the file that has this column.")
    if "target" in given and given["data"] is not None and given["target"] is None:
        raise click.UsageError("Missing option '--target': which column of DATA has the labels?")
