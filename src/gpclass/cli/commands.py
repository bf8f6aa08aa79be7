"""Each command: its help, its options, and the function that does the work."""

from __future__ import annotations

from typing import Any

from gpclass.cli import options as shared
from gpclass.cli import texts
from gpclass.cli.build import INFERENCES, KERNELS, LIKELIHOODS, MULTI_CLASS, ModelOptions
from gpclass.cli.data import DataOptions


def compare() -> Any:
    """Return the command of that name."""
    import click

    from gpclass.cli import compare as work
    from gpclass.cli.figure import check_directory, check_path
    from gpclass.cli.problems import problems

    @click.command("compare", help=texts.COMPARE, short_help="Methods side by side: table, figure, report.")
    @click.argument("data", required=False)
    @click.option("--target", "-t", metavar="COL", help="The column with the labels; goes with DATA.")
    @click.option(
        "--problem",
        type=click.Choice(list(problems())),
        default="interval",
        show_default=True,
        help="The problem to compare on where there is no DATA.",
    )
    @click.option("--output", "-o", metavar="FILE", help="Write a figure: .png, .pdf, .svg or .jpg.")
    @click.option("--html", metavar="FILE", help="Write a report with table and figure, in one HTML file.")
    @click.option(
        "--method",
        "-m",
        multiple=True,
        type=click.Choice(list(INFERENCES)),
        help="Give it once for each. [default: laplace, ep, vi, and mcmc if there are two classes]",
    )
    @click.option(
        "--likelihood",
        "-l",
        multiple=True,
        type=click.Choice(list(LIKELIHOODS)),
        help="Give it once for each.  [default: probit; logit too without DATA]",
    )
    @click.option(
        "--kernel", type=click.Choice(list(KERNELS)), help="The covariance function.  [default: rbf]"
    )
    @shared.held_out
    @shared.table
    @shared.seed
    @click.option("--jobs", type=int, metavar="N", help="Processes for restarts and two-class problems.")
    @click.option(
        "--verbose", "-v", count=True, help="Show progress even where standard error is no terminal."
    )
    @shared.common
    def command(**given: Any) -> None:
        shared.check_target(given["data"], given["target"])
        shared.check_held_out(given["cv"], given["test_fraction"])
        check_path(given["output"])
        if given["html"] is not None:
            check_directory(given["html"])
            check_path("report.png")
        work.run(
            None if given["data"] is None else shared.pick(DataOptions, given),
            shared.pick(work.CompareOptions, given),
            figure=given["output"],
            html=given["html"],
            as_json=given["as_json"],
        )

    return command


def fit() -> Any:
    """Return the command of that name."""
    import click

    from gpclass.cli import fit as work
    from gpclass.cli.figure import check_directory

    def choice(name: str, known: Any, default: str, text: str) -> shared.Decorator:
        return click.option(
            name, type=click.Choice(list(known)), default=default, show_default=True, help=text
        )

    @click.command("fit", help=texts.FIT, short_help="A table to a model file.")
    @click.argument("data")
    @click.option("--target", "-t", required=True, metavar="COL", help="The column with the labels.")
    @click.option(
        "--output", "-o", default="model.gpc", show_default=True, metavar="FILE", help="Where the model goes."
    )
    @choice("--inference", INFERENCES, "vi", "How the posterior is found.")
    @choice("--likelihood", LIKELIHOODS, "probit", "From latent values to labels.")
    @choice("--kernel", KERNELS, "rbf", "The covariance function.")
    @choice("--multi-class", MULTI_CLASS, "joint", "Three classes or more.")
    @choice("--hyperparameters", ("learn", "sample"), "learn", "By the evidence, or sampled.")
    @click.option(
        "--restarts", type=click.IntRange(0), default=0, metavar="N", help="Of learning, elsewhere."
    )
    @click.option("--balanced", is_flag=True, help="Weigh the classes as if they were equally frequent.")
    @shared.held_out
    @shared.table
    @shared.seed
    @click.option("--jobs", type=int, metavar="N", help="Processes for restarts and two-class problems.")
    @click.option("--verbose", "-v", count=True, help="Show the evidence while it is maximised.")
    @shared.common
    def command(**given: Any) -> None:
        shared.check_held_out(given["cv"], given["test_fraction"])
        check_directory(given["output"])
        work.run(
            shared.pick(DataOptions, given),
            shared.pick(ModelOptions, given),
            path=given["output"],
            test_fraction=given["test_fraction"],
            cv=given["cv"],
            as_json=given["as_json"],
        )

    return command


def predict() -> Any:
    """Return the command of that name."""
    import click

    from gpclass.cli import predict as work
    from gpclass.cli.figure import check_directory

    @click.command(
        "predict", help=texts.PREDICT, short_help="Probabilities, intervals and decisions for new rows."
    )
    @click.argument("model")
    @click.argument("data")
    @click.option(
        "--output",
        "-o",
        metavar="FILE",
        help="CSV (.gz), .json, .parquet or .feather; standard output if not given.",
    )
    @click.option(
        "--level",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="Of the credible intervals.",
    )
    @click.option("--no-intervals", is_flag=True, help="Leave the intervals out, which is quicker.")
    @click.option("--cost", metavar="JSON|FILE", help="What each decision costs for each true class.")
    @click.option("--reject", type=float, metavar="COST", help="What it costs to leave a row undecided.")
    @click.option(
        "--keep",
        multiple=True,
        metavar="COL[,COL...]",
        callback=shared.split,
        help="Columns to copy to the result.",
    )
    @shared.separator
    @shared.common
    def command(**given: Any) -> None:
        if given["output"] is not None:
            check_directory(given["output"])
        work.run(
            given["model"],
            given["data"],
            path=given["output"],
            level=given["level"],
            intervals=not given["no_intervals"],
            cost=given["cost"],
            reject=given["reject"],
            keep=given["keep"],
            separator=given["separator"],
            as_json=given["as_json"],
        )

    return command


def check() -> Any:
    """Return the command of that name."""
    import click

    from gpclass.cli import models as work

    @click.command("check", help=texts.CHECK, short_help="How wrong the approximation in a model is.")
    @click.argument("model")
    @click.option(
        "--draws", type=click.IntRange(10), default=2000, show_default=True, help="Of the posterior."
    )
    @shared.seed
    @shared.common
    def command(model: str, draws: int, seed: int, as_json: bool) -> None:
        work.check(model, draws=draws, seed=seed, as_json=as_json)

    return command


def plot() -> Any:
    """Return the command of that name."""
    import click

    from gpclass.cli import models as work

    kinds = click.Choice(["auto", "latent", "contour", "relevance", "trace"])

    @click.command("plot", help=texts.PLOT, short_help="The picture that fits a model.")
    @click.argument("model")
    @click.option("--output", "-o", metavar="FILE", help="The figure.  [default: MODEL, ending in .png]")
    @click.option("--kind", type=kinds, default="auto", show_default=True, help="Which picture.")
    @click.option(
        "--top", type=click.IntRange(1), metavar="N", help="Of relevance, the N first columns only."
    )
    @shared.common
    def command(model: str, output: str | None, kind: str, top: int | None, as_json: bool) -> None:
        work.plot(model, kind=kind, figure=output, n_top=top, as_json=as_json)

    return command


def info() -> Any:
    """Return the command of that name."""
    import click

    from gpclass.cli import models as work

    @click.command("info", help=texts.INFO, short_help="What is in a model file.")
    @click.argument("model")
    @shared.common
    def command(model: str, as_json: bool) -> None:
        work.info(model, as_json=as_json)

    return command
