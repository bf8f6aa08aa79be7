"""All options of the command line, each declared once."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def parameters() -> dict[str, Any]:
    """Return every argument and option by a key; commands list the keys that they have."""
    import click

    arguments = {name: click.Argument([name]) for name in ("model", "data")}
    arguments["data?"] = click.Argument(["data"], required=False)
    declared = _about_data() | _about_models() | _about_results()
    options = {
        key: click.Option(flags.split(), help=text, **settings)
        for key, (flags, text, settings) in declared.items()
    }
    return arguments | options


# Each option is its flags, its help text and further settings.
# fmt: off


def _about_data() -> dict[str, tuple[str, str, dict[str, Any]]]:
    from click import FloatRange, IntRange

    label: dict[str, Any] = {"metavar": "COL"}
    columns: dict[str, Any] = {"multiple": True, "metavar": "COL[,COL...]", "callback": _split}
    share = {"type": FloatRange(0.0, 1.0, min_open=True, max_open=True), "metavar": "FRACTION"}
    return {
        "target": ("--target -t", "Column of DATA with the labels.", {**label, "required": True}),
        "target?": ("--target -t", "Column of DATA with the labels.", label),
        "columns": ("--columns", "Columns to use.  [default: all but the target]", columns),
        "drop": ("--drop", "Columns to leave out.", columns),
        "categorical": ("--categorical", "Columns of numbers that are to be treated as categories.", columns),
        "keep": ("--keep", "Columns of DATA to copy to the result.", columns),
        "impute": ("--impute", "Fill in missing values (median or most frequent value) instead of refusing them.",
                   {"is_flag": True}),
        "rows": ("--rows", "Use a random sample of N rows, stratified by class.",
                 {"type": IntRange(2), "metavar": "N"}),
        "separator": ("--separator", "Character between the values of a CSV file: ';', '|' or tab.  [default: ,]",
                      {"metavar": "CHAR", "callback": _one_character}),
        "cv": ("--cv", "Score by K-fold cross-validation.", {"type": IntRange(2), "metavar": "K"}),
        "test_fraction": ("--test-fraction", "Hold out this fraction of the rows and score on them.", share),
    }


def _about_models() -> dict[str, tuple[str, str, dict[str, Any]]]:
    from click import Choice, IntRange

    method, likelihood = one_of("gpclass.parameters:INFERENCES"), one_of("gpclass.parameters:LIKELIHOODS")
    problem = {"default": "interval", "show_default": True, **one_of("gpclass.cli.choices:problems")}
    several = {"multiple": True}
    return {
        "problem": ("--problem", "Built-in problem to use without DATA: interval, moons, circles, ...", problem),
        "method": ("--method -m", "Inference method; may be repeated.  "
                   "[default: laplace, ep, vi, and mcmc for two classes]", several | method),
        "likelihood*": ("--likelihood -l", "Likelihood; may be repeated.  [default: probit; without DATA also logit]",
                        several | likelihood),
        "inference": ("--inference", "Method: laplace, ep, mcmc, ...  [default: vi]", method),
        "likelihood": ("--likelihood", "logit, softmax, ...  [default: probit]", likelihood),
        "kernel": ("--kernel", "Kernel: matern52, linear, rbf-shared, ...  [default: rbf]",
                   one_of("gpclass.kernels:kernel_names")),
        "multi_class": ("--multi-class", "Strategy for three classes or more: one_vs_rest, ...  [default: joint]",
                        one_of("gpclass.parameters:MULTI_CLASS")),
        "hyperparameters": ("--hyperparameters", "Maximise the evidence over the hyperparameters, or sample them.  "
                            "[default: learn]", {"type": Choice(["learn", "sample"])}),
        "restarts": ("--restarts", "Extra optimiser restarts from random points.",
                     {"type": IntRange(0), "metavar": "N"}),
        "balanced": ("--balanced", "Weight the classes as if they were equally frequent.", {"is_flag": True}),
        "jobs": ("--jobs", "Number of processes for restarts and for two-class problems.",
                 {"type": int, "metavar": "N"}),
    }


def _about_results() -> dict[str, tuple[str, str, dict[str, Any]]]:
    from click import Choice, FloatRange, IntRange

    file, flag, shown = {"metavar": "FILE"}, {"is_flag": True}, {"show_default": True}
    kinds = Choice(["auto", "latent", "contour", "relevance", "trace"])
    level, seed = FloatRange(0.0, 1.0, min_open=True, max_open=True), IntRange(0, 2**31 - 1)
    return {
        "model file": ("--output -o", "Model file to write.", file | shown | {"default": "model.gpc"}),
        "table file": ("--output -o", "CSV (.gz), .json, .parquet or .feather file.  [default: standard output]", file),
        "figure": ("--output -o", "Figure to write: .png, .pdf, .svg or .jpg.", file),
        "html": ("--html", "Write a report with table and figure, as one HTML file.", file),
        "level": ("--level", "Level of the credible intervals.", {"type": level, "default": 0.95, **shown}),
        "no_intervals": ("--no-intervals", "Leave out the intervals, which is faster.", flag),
        "cost": ("--cost", "Cost of each decision for each true class.", {"metavar": "JSON|FILE"}),
        "reject": ("--reject", "Cost of leaving a row undecided.", {"type": float, "metavar": "COST"}),
        "draws": ("--draws", "Number of posterior draws.", {"type": IntRange(10), "default": 2000, **shown}),
        "kind": ("--kind", "Kind of figure.", {"type": kinds, "default": "auto", **shown}),
        "port": ("--port", "Port of the server.  [default: any that is free]",
                 {"type": IntRange(0, 65535), "default": 0, "metavar": "N"}),
        "no_browser": ("--no-browser", "Do not open the page, only say its address.", flag),
        "top": ("--top", "Show only the N most relevant columns.", {"type": IntRange(1), "metavar": "N"}),
        "seed": ("--seed", "Seed of the random numbers; the same seed gives the same result.",
                 {"type": seed, "default": 0, "metavar": "N", **shown}),
        "verbose": ("--verbose -v", "Show progress even if not on a terminal.", {"count": True}),
        "json": ("--json as_json", "Write the result as JSON.", flag),
        "debug": ("--debug", "Show the traceback of an error.",
                  flag | {"expose_value": False, "is_eager": True, "callback": _debug}),
    }


# fmt: on


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
    context.obj["debug"] = value
