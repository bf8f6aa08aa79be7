"""All options of the command line, each declared once."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def parameters() -> dict[str, Any]:
    """Return every argument and option by its key; commands list the keys that they use."""
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
        "columns": ("--columns", "Input columns.  [default: all but the target]", columns),
        "drop": ("--drop", "Columns to leave out, such as identifiers.", columns),
        "categorical": ("--categorical", "Columns to treat as categories, whatever they contain.", columns),
        "keep": ("--keep", "Columns of DATA to copy to the result.", columns),
        "rows": ("--rows", "Use a random sample of N rows, stratified by class.",
                 {"type": IntRange(2), "metavar": "N"}),
        "separator": ("--separator", "Separator of the values in a CSV file, such as ';' or tab.  [default: the most "
                      "frequent one in the header]", {"metavar": "CHAR"}),
        "decimal": ("--decimal", "Decimal mark of the numbers in a CSV file.  [default: .]", {"metavar": "CHAR"}),
        "thousands": ("--thousands", "Mark between the thousands of numbers in a CSV file.  [default: none]",
                      {"metavar": "CHAR"}),
        "encoding": ("--encoding", "Encoding of a CSV file, such as latin-1.  [default: utf-8]", {"metavar": "NAME"}),
        "sheet": ("--sheet", "Sheet of an Excel file.  [default: the first]", {"metavar": "NAME"}),
        "cv": ("--cv", "Score predictions by cross-validation with K folds.", {"type": IntRange(2), "metavar": "K"}),
        "test_fraction": ("--test-fraction", "Fraction of the rows to hold out and score on.", share),
    }


def _about_models() -> dict[str, tuple[str, str, dict[str, Any]]]:
    from click import Choice, IntRange

    method, likelihood = one_of("gpclass.parameters:method_names"), one_of("gpclass.parameters:LIKELIHOODS")
    compared = one_of("gpclass.cli.compare:compared")
    problem = {"default": "interval", "show_default": True, **one_of("gpclass.datasets:problems")}
    several = {"multiple": True}
    return {
        "problem": ("--problem", "Built-in problem to use if there is no DATA: interval, moons, circles, ...", problem),
        "method": ("--method -m", "Method to compare: laplace, ep, vi, mcmc, dirichlet, sklearn-gp, "
                   "logistic-regression or gradient-boosting. Repeat it for several.  [default: laplace, ep, vi; "
                   "without DATA also mcmc]", several | compared),
        "baselines": ("--baselines", "Also compare scikit-learn's Gaussian process, logistic regression and gradient "
                      "boosting.", {"is_flag": True}),
        "likelihood*": ("--likelihood -l", "Likelihood: probit, logit, ... Repeat it for several.  [default: probit; "
                        "without DATA also logit]", several | likelihood),
        "inference": ("--inference", "Inference method: auto, laplace, ep, vi, dirichlet, mcmc, ...  [default: auto]",
                      method),
        "likelihood": ("--likelihood", "Likelihood: probit, logit, cloglog, ...  [default: probit]", likelihood),
        "kernel": ("--kernel", "Kernel: rbf, matern32, linear, rbf-shared, ...  [default: chosen by the evidence]",
                   one_of("gpclass.kernels:kernel_names")),
        "multi_class": ("--multi-class", "How to treat three classes or more: joint, one_vs_rest or one_vs_one.  "
                        "[default: joint]", one_of("gpclass.parameters:MULTI_CLASS")),
        "hyperparameters": ("--hyperparameters", "Learn the hyperparameters by maximising the evidence, or average "
                            "over samples of them.  [default: learn]", {"type": Choice(["learn", "sample"])}),
        "restarts": ("--restarts", "Number of additional optimiser runs from random starting points.",
                     {"type": IntRange(0), "metavar": "N"}),
        "balanced": ("--balanced", "Weight the classes as if they were equally frequent.", {"is_flag": True}),
        "jobs": ("--jobs", "Number of processes, for restarts and for one_vs_rest and one_vs_one.",
                 {"type": int, "metavar": "N"}),
    }


def _about_results() -> dict[str, tuple[str, str, dict[str, Any]]]:
    from click import Choice, FloatRange, IntRange

    file, flag, shown = {"metavar": "FILE"}, {"is_flag": True}, {"show_default": True}
    kinds = Choice(["auto", "latent", "contour", "trace"])
    level, seed = FloatRange(0.0, 1.0, min_open=True, max_open=True), IntRange(0, 2**31 - 1)
    return {
        "model file": ("--output -o", "Model file to write.", file | shown | {"default": "model.gpc"}),
        "table file": ("--output -o", "CSV (.gz), .json, .parquet or .feather file.  [default: standard output]", file),
        "figure": ("--output -o", "Figure to write: .png, .pdf, .svg or .jpg.", file),
        "force": ("--force", "Replace an existing file with any ending, but never an input.", flag),
        "level": ("--level", "Probability that a credible interval covers.", {"type": level, "default": 0.95, **shown}),
        "no_intervals": ("--no-intervals", "Do not compute credible intervals, which saves time.", flag),
        "cost": ("--cost", "Cost of each decision, for each true class.", {"metavar": "JSON|FILE"}),
        "reject": ("--reject", "Cost of not deciding; rows whose best decision costs more are \"undecided\".",
                   {"type": float, "metavar": "COST"}),
        "draws": ("--draws", "Number of draws from the approximate posterior.",
                  {"type": IntRange(10), "default": 2000, **shown}),
        "kind": ("--kind", "Kind of figure.", {"type": kinds, "default": "auto", **shown}),
        "port": ("--port", "Port of the server.  [default: any that is free]",
                 {"type": IntRange(0, 65535), "default": 0, "metavar": "N"}),
        "no_browser": ("--no-browser", "Do not open the page, only print its address.", flag),
        "seed": ("--seed", "Seed of the random numbers; the same seed gives the same result.",
                 {"type": seed, "default": 0, "metavar": "N", **shown}),
        "verbose": ("--verbose -v", "Show progress even if standard error is not a terminal.", {"count": True}),
        "json": ("--json as_json", "Write the result as JSON to standard output.", flag),
        "debug": ("--debug", "Show the Python traceback of an error.",
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


def _debug(context: Any, parameter: Any, value: bool) -> None:
    context.obj["debug"] = value
