"""``gpclass fit``: fit a model to a table and save it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import click
from click import option

from gpclass import __version__
from gpclass.cli import options, output
from gpclass.cli.files import access, check_output
from gpclass.cli.show import describe, show_facts

EXAMPLES = (
    "fit data.csv --target species",
    "fit data.csv -t ill --inference ep -o ill.gpc",
    "fit data.parquet -t y --drop name,id --categorical ward",
    "fit data.csv -t y --separator ';' --decimal , --encoding latin-1",
)


@click.command(epilog=options.examples(*EXAMPLES))
@click.argument("data")
@option("--target", "-t", metavar="COL", required=True, help="Column of DATA with the labels.")
@option("--output", "-o", "path", metavar="FILE", default="model.gpc", help="Model file to write.")
@option("--inference", metavar="NAME", default="auto", help="Method: auto, laplace, ep, vi, dirichlet, ...")
@options.model
@option("--multi-class", metavar="NAME", default="joint",
        help="Three classes or more: joint, one_vs_rest or one_vs_one.")  # fmt: skip
@option("--hyperparameters", metavar="NAME", default="learn",
        help="Learn hyperparameters, or average over samples (sample).")  # fmt: skip
@option("--restarts", "n_restarts_optimizer", type=click.IntRange(0), metavar="N", default=0,
        help="Number of additional optimiser runs from random starting points.")  # fmt: skip
@option("--balanced", "class_weight", flag_value="balanced",
        help="Weight the classes as if they were equally frequent.")  # fmt: skip
@options.table
@options.running
@options.common
def fit(data: str, target: str, path: str, table: dict[str, Any], as_json: bool, **model: Any) -> None:
    """Fit a model to a table and save it.

    Text and truth values are categories. Missing values need no preparation. The model file contains the coding of the
    columns, so that predict, and gpclass.load in Python, accept tables as they are. To see all names that --inference,
    --likelihood or --kernel accepts, give it an unknown one, as in --kernel list.
    """
    from gpclass.cli.tables import read_problem
    from gpclass.estimator import GaussianProcessClassifier
    from gpclass.persistence import save

    check_output(path, "model", [data])
    X, y = read_problem(data, target, **table)
    model |= {"categorical_features": table["categorical"], "random_state": table["seed"]}
    start = time.perf_counter()
    clf = GaussianProcessClassifier(**model).fit(X, y)
    about = {
        "data": data,
        "target": target,
        "training_rows": len(y),
        "gpclass": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "fit_seconds": round(time.perf_counter() - start, 3),
    }
    if any(part.interrupted for part in clf.base_estimator_.models):  # its best result so far is not saved
        raise KeyboardInterrupt
    with access(path, "written"):
        save(clf, path, extra=about)
    (output.show_json if as_json else show_facts)(describe(path, clf, about))
