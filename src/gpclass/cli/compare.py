"""``gpclass compare``: the inference methods side by side, as a table and a figure."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from gpclass.cli import options, output
from gpclass.cli.files import check_output

EXAMPLES = (
    "compare data.csv --target species",
    "compare data.csv --target species --baselines",
    "compare data.csv --target ill -m vi -m mcmc -m gradient-boosting",
    "compare --problem moons -o figure.png",
)


@options.command(*EXAMPLES)
@options.data_or_problem
@options.figure
@options.part("--method", "-m", "methods", multiple=True, show_default="laplace, ep, vi; without DATA also mcmc",
              text="Method to compare, such as vi or gradient-boosting; repeat it for several")  # fmt: skip
@click.option("--baselines", is_flag=True, help="Also compare the three classifiers of scikit-learn.")
@click.option("--cv", default=5, metavar="K", help="Number of cross-validation folds.")
@options.model
@options.table
@options.running
@options.common
def compare(
    data: str | None,
    target: str,
    problem: str,
    path: str | None,
    methods: list[str],
    baselines: bool,
    cv: int,
    table: dict[str, Any],
    as_json: bool,
    **shared: Any,
) -> None:
    """Compare methods on a table, and say which to use.

    Every method is fitted to the same rows, learns its own hyperparameters, and predicts rows that it has not seen, by
    cross-validation. The result is a table of scores and a few sentences: which methods predict best, which agree, and
    which approximations cannot be trusted. Without DATA a built-in problem with test rows of its own is used.
    """
    from gpclass import comparison
    from gpclass.cli.tables import read_problem
    from gpclass.datasets import problems

    if path is not None:
        check_output(path, "figure", [data])
    if data is None:
        X, y, X_test, y_test = problems()[problem]()
        shared |= {"X_test": X_test, "y_test": y_test}
        methods = methods or list(comparison.METHODS)
    else:
        X, y = read_problem(data, target, **table)
        shared |= {"cv": cv, "categorical_features": table["categorical"]}
        methods = methods or list(comparison.METHODS[:-1])  # MCMC is much slower than the others
    methods = [*methods, *(comparison.BASELINES if baselines else ())]
    result = comparison.compare(X, y, methods=methods, random_state=table["seed"], **shared)
    if as_json:
        output.show_json(_to_json(result))
    else:
        click.echo(result.to_text(output.width_of(sys.stdout) or output.WIDTH))
    if path is not None:
        from gpclass.cli.show import save_display
        from gpclass.plotting import ComparisonDisplay

        save_display(ComparisonDisplay(result).plot(), path)
    if len(result.rows) < result.n_methods:
        raise KeyboardInterrupt


def _to_json(result: Any) -> dict[str, Any]:
    return {
        "title": result.title,
        "classes": result.classes,
        "training_rows": result.n_train,
        "scored_rows": len(result.index),
        "findings": list(result.findings),
        "tied": {"log_loss": list(result.tied())},
        "methods": json.loads(result.to_frame().reset_index().to_json(orient="records", double_precision=15)),
    }
