"""All options of the command line, each declared once."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def parameters() -> dict[str, Any]:
    """Return every argument and option by a key; commands list the keys that they have."""
    import click

    arguments = {name: click.Argument([name]) for name in ("model", "data")}
    arguments["data?"] = click.Argument(["data"], required=False)
    return arguments | _about_data() | _about_models() | _about_results()


def _option(flags: str, text: str, **extra: Any) -> Any:
    import click

    return click.Option(flags.split(), help=text, **extra)


def _about_data() -> dict[str, Any]:
    from click import FloatRange, IntRange

    def columns(flag: str, text: str) -> Any:
        return _option(flag, text, multiple=True, metavar="COL[,COL...]", callback=_split)

    label = "Column of DATA with the labels."
    fill = "Fill in missing values (median or most frequent value) instead of refusing them."
    sample = "Use a random sample of N rows, stratified by class."
    between = "Character between the values of a CSV file: ';', '|' or tab.  [default: ,]"
    hold_out = "Hold out this fraction of the rows and score on them."
    share = FloatRange(0.0, 1.0, min_open=True, max_open=True)
    return {
        "target": _option("--target -t", label, metavar="COL", required=True),
        "target?": _option("--target -t", label, metavar="COL"),
        "columns": columns("--columns", "Columns to use.  [default: all but the target]"),
        "drop": columns("--drop", "Columns to leave out."),
        "categorical": columns("--categorical", "Columns of numbers that are to be treated as categories."),
        "keep": columns("--keep", "Columns of DATA to copy to the result."),
        "impute": _option("--impute", fill, is_flag=True),
        "rows": _option("--rows", sample, type=IntRange(2), metavar="N"),
        "separator": _option("--separator", between, metavar="CHAR", callback=_one_character),
        "cv": _option("--cv", "Score by K-fold cross-validation.", type=IntRange(2), metavar="K"),
        "test_fraction": _option("--test-fraction", hold_out, type=share, metavar="FRACTION"),
    }


def _about_models() -> dict[str, Any]:
    from click import Choice, IntRange

    method, likelihood = one_of("gpclass.parameters:INFERENCES"), one_of("gpclass.parameters:LIKELIHOODS")
    kernel, problem = one_of("gpclass.cli.choices:kernels"), one_of("gpclass.cli.choices:problems")
    strategy, hyper = one_of("gpclass.parameters:MULTI_CLASS"), Choice(["learn", "sample"])
    built_in = "Built-in problem to use without DATA: interval, moons, circles, ..."
    methods = "Inference method; may be repeated.  [default: laplace, ep, vi, and mcmc for two classes]"
    likelihoods = "Likelihood; may be repeated.  [default: probit; without DATA also logit]"
    kernels = "Kernel: matern52, linear, rbf-shared, ...  [default: rbf]"
    several = "Strategy for three classes or more: one_vs_rest, ...  [default: joint]"
    learn = "Maximise the evidence over the hyperparameters, or sample them.  [default: learn]"
    restarts = "Extra optimiser restarts from random points."
    weigh = "Weight the classes as if they were equally frequent."
    processes = "Number of processes for restarts and for two-class problems."
    return {
        "problem": _option("--problem", built_in, default="interval", show_default=True, **problem),
        "method": _option("--method -m", methods, multiple=True, **method),
        "likelihood*": _option("--likelihood -l", likelihoods, multiple=True, **likelihood),
        "inference": _option("--inference", "Method: laplace, ep, mcmc, ...  [default: vi]", **method),
        "likelihood": _option("--likelihood", "logit, softmax, ...  [default: probit]", **likelihood),
        "kernel": _option("--kernel", kernels, **kernel),
        "multi_class": _option("--multi-class", several, **strategy),
        "hyperparameters": _option("--hyperparameters", learn, type=hyper),
        "restarts": _option("--restarts", restarts, type=IntRange(0), metavar="N"),
        "balanced": _option("--balanced", weigh, is_flag=True),
        "jobs": _option("--jobs", processes, type=int, metavar="N"),
    }


def _about_results() -> dict[str, Any]:
    from click import Choice, FloatRange, IntRange

    def file(text: str, **extra: Any) -> Any:
        return _option("--output -o", text, metavar="FILE", **extra)

    kinds = Choice(["auto", "latent", "contour", "relevance", "trace"])
    level, seed = FloatRange(0.0, 1.0, min_open=True, max_open=True), IntRange(0, 2**31 - 1)
    traceback: dict[str, Any] = {"expose_value": False, "is_eager": True, "callback": _debug}
    shown: dict[str, Any] = {"show_default": True}
    report = "Write a report with table and figure, as one HTML file."
    same = "Seed of the random numbers; the same seed gives the same result."
    credible = "Level of the credible intervals."
    top = "Show only the N most relevant columns."
    return {
        "model file": file("Model file to write.", default="model.gpc", **shown),
        "table file": file("CSV (.gz), .json, .parquet or .feather file.  [default: standard output]"),
        "figure": file("Figure to write: .png, .pdf, .svg or .jpg."),
        "html": _option("--html", report, metavar="FILE"),
        "level": _option("--level", credible, type=level, default=0.95, **shown),
        "no_intervals": _option("--no-intervals", "Leave out the intervals, which is faster.", is_flag=True),
        "cost": _option("--cost", "Cost of each decision for each true class.", metavar="JSON|FILE"),
        "reject": _option("--reject", "Cost of leaving a row undecided.", type=float, metavar="COST"),
        "draws": _option("--draws", "Number of posterior draws.", type=IntRange(10), default=2000, **shown),
        "kind": _option("--kind", "Kind of figure.", type=kinds, default="auto", **shown),
        "top": _option("--top", top, type=IntRange(1), metavar="N"),
        "seed": _option("--seed", same, type=seed, default=0, metavar="N", **shown),
        "verbose": _option("--verbose -v", "Show progress even if not on a terminal.", count=True),
        "json": _option("--json as_json", "Write the result as JSON.", is_flag=True),
        "debug": _option("--debug", "Show the traceback of an error.", is_flag=True, **traceback),
    }


# ---------------------------------------------------------------------------- what they accept


def one_of(known: str) -> dict[str, Any]:
    """Return settings of an option that takes a name; ``known`` is "module:mapping", imported when used."""

    def check(context: Any, parameter: Any, given: Any) -> Any:
        import click

        for value in given if isinstance(given, tuple) else () if given is None else (given,):
            module, _, attribute = known.partition(":")
            names = getattr(import_module(module), attribute)
            names = list(names() if callable(names) else names)
            if value not in names:
                raise click.BadParameter(f"{value!r} is not one of {', '.join(map(repr, names))}.")
        return given

    return {"metavar": "NAME", "callback": check}


def _split(context: Any, parameter: Any, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _one_character(context: Any, parameter: Any, value: str | None) -> str | None:
    import click

    value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if value is not None and (len(value) != 1 or value in '"\r\n'):
        raise click.BadParameter("expected one character, such as ';' or tab.")
    return value


def _debug(context: Any, parameter: Any, value: bool) -> None:
    if value:
        context.obj["debug"] = True
