"""``gpclass check``, ``info`` and ``plot``: whether a model can be trusted, what its file contains, and figures."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from gpclass.cli import options, output
from gpclass.cli.files import InputError, check_output, read_model, write
from gpclass.cli.output import show_pairs
from gpclass.core import text


@options.command("check model.gpc", "check model.gpc --draws 10000 --json")
@click.argument("model")
@click.option(
    "--draws", type=click.IntRange(10), default=2000, metavar="N",
    help="Number of draws from the approximate posterior.",
)  # fmt: skip
@options.seed
@options.common
def check(model: str, draws: int, seed: int, as_json: bool) -> None:
    """Check whether the approximation in a model can be trusted.

    Draws from the approximate posterior are weighted so that they follow the exact one (importance sampling). This
    corrects the evidence and shows how far the probabilities of the training rows are off, and a verdict follows.
    Training rows whose labels are improbable given the other rows are listed, up to ten, counted from 0 among the rows
    that were used.
    """
    clf, _ = read_model(model)
    found = clf.check_approximation(n_samples=draws, random_state=seed)
    doubts = [] if getattr(clf, "loo_proba_", None) is None else clf.doubtful_labels()
    doubts = [doubt for doubt in doubts if doubt.label != doubt.likely]
    parts = found if isinstance(found, list) else [found]
    if as_json:
        known = [asdict(part) for part in parts]
        doubtful = {"doubtful_labels": [asdict(doubt) for doubt in doubts]}
        output.show_json(known if isinstance(found, list) else known[0] | doubtful)
        return
    texts = [f"model {i}\n{part}" if len(parts) > 1 else str(part) for i, part in enumerate(parts, 1)]
    click.echo(output.wrapped("\n\n".join(texts), sys.stdout))
    lines = [(f"row {d.row}", f"{d.label} {d.proba:.3f}, {d.likely} {d.likely_proba:.3f}") for d in doubts]
    show_pairs("labels that are improbable given the other rows, and the most probable class", lines)


@options.command("info model.gpc", "info model.gpc --json")
@click.argument("model")
@options.common
def info(model: str, as_json: bool) -> None:
    """Show what a model file contains: scores, data, settings, columns."""
    clf, about = read_model(model)
    known = describe(model, clf, about)
    if as_json:
        output.show_json(known)
        return
    show_facts(known)
    named = clf.encoder_ is not None or hasattr(clf, "feature_names_in_")
    show_pairs("columns", [_column(each) for each in known["columns"] if named])
    models = [
        (f"{each['value']:.2f}", f"{each['model']}, {each['n_rows']} rows{', chosen' * each['chosen']}")
        for each in sorted(known["compared_models"], key=lambda each: (-each["n_rows"], -each["value"]))
    ]
    show_pairs("integrated evidence of the compared models", models)


def _column(column: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of a column, and its kind with the levels of a category or the median of a number."""
    kind = column["kind"] if column["positions"] else "constant, not used"
    median = column["fill"] if kind == "number" else None
    more = f": {_text(column['levels'])}" if kind == "category" else ""
    return column["name"], f"{kind}{more}" if median is None else f"{kind}, median {median:g}"


def scores_of(clf: Any, y: Any) -> dict[str, float]:
    """Return the leave-one-out scores of a fit to rows with these labels, if there are any, and that of frequencies."""
    import numpy as np

    truth = np.searchsorted(clf.classes_, y)
    shares, p = np.bincount(truth) / len(y), getattr(clf, "loo_proba_", None)
    chance = {"log_loss_of_class_frequencies": float(-shares @ np.log(shares))}
    if p is None:
        return chance
    loss = -np.log(np.maximum(p[np.arange(len(y)), truth], np.finfo(float).tiny)).mean()
    error = (p.argmax(axis=1) != truth).mean()
    return {"leave_one_out_log_loss": float(loss), **chance, "leave_one_out_error": float(error)}


def describe(path: str, clf: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return all information about a model as plain data: scores first, then what it was fitted to, then settings."""
    from gpclass.effects import columns

    evidence = clf.log_marginal_likelihood_value_
    loo = None if "leave_one_out_log_loss" in about else getattr(clf, "loo_log_score_", None)
    compared = clf.compared_ if isinstance(clf.compared_, list) else [clf.compared_]
    return {
        "leave_one_out_log_loss": None if loo is None else -float(loo),
        "log_loss_of_class_frequencies": None,
        "leave_one_out_error": None,
        "log_evidence": None if evidence is None else float(evidence),
        **about,
        "classes": clf.classes_.tolist(),
        "model": path,
        "kilobytes": round(os.path.getsize(path) / 1e3),
        "inference": repr(clf.inference_),
        "likelihood": repr(getattr(clf.base_estimator_, "likelihood", clf.likelihood)),
        "multi_class": clf.multi_class if clf.n_classes_ > 2 else None,
        "columns": [asdict(column) for column in columns.records_of(clf)],
        "compared_models": [asdict(each) for part in compared for each in part],
        "kernel": " | ".join(map(str, getattr(clf.kernel_, "kernels", [clf.kernel_]))),
    }


def show_facts(known: Mapping[str, Any]) -> None:
    """Write the information from `describe`, one line per item; missing values are left out."""
    counts: dict[str, Any] = {name: len(known[name]) or None for name in ("columns", "compared_models")}
    facts = {**known, **counts, "kernel": text.shortened(known["kernel"])}
    names = {name: name.replace("leave_one_out", "leave-one-out").replace("_", " ") for name in facts}
    show_pairs("", [(names[name], _text(value)) for name, value in facts.items() if value is not None])


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join("missing" if each is None else str(each) for each in value)
    return f"{value:.4f}" if isinstance(value, float) else str(value)


# ------------------------------------------------------------------------------------- figures


@options.command("plot model.gpc", "plot model.gpc -o figure.pdf")
@click.argument("model")
@options.figure
@options.common
def plot(model: str, path: str | None, as_json: bool) -> None:
    """Draw a figure of a model.

    A model of one column is drawn as the latent function and the probability below it, and a model of two columns as
    contours over the plane. Unless --output is given, the figure is saved beside the model, with the ending .png.
    """
    path = path or f"{os.path.splitext(model)[0]}.png"
    check_output(path, "figure", [model])
    save_display(display_of(read_model(model)[0]), path)
    if as_json:
        output.show_json({"figure": path})


def save_display(display: Any, path: str) -> None:
    """Write the figure of a display in the format that the ending of the path names."""
    image = io.BytesIO()  # written to memory first, because Pillow reports no error when the disk is full
    display.figure_.savefig(image, format=os.path.splitext(path)[1][1:].lower(), dpi=160)
    write(path, image.getvalue(), "the figure")


def display_of(clf: Any) -> Any:
    """Return a display of a model: its predictions over one or two columns."""
    from gpclass import plotting
    from gpclass.core import checks

    checks.optional("matplotlib", "A picture", "plot").use("Agg")
    # The model uses the columns of the table directly if all are numbers without missing values.
    n, coded = clf.n_features_in_, clf.encoder_
    if n > 2 or not (coded is None or (coded.numeric_.all() and len(coded.numeric_) == n)):
        raise InputError(
            f"The model has {n} columns, expected one or two numerical columns without missing values: fit a "
            "model to such --columns."
        )
    model = clf.base_estimator_.models[0]
    # Inducing inputs cover the training rows, which such a model does not keep.
    X, y = clf.training_rows() if model.inducing is None else (model.problem.X, None)
    if clf.n_features_in_ == 1:
        return plotting.LatentDisplay.from_estimator(clf, X, y)
    pairs = clf.n_classes_ > 2 and clf.multi_class == "one_vs_one"  # no latent function per class
    return plotting.PredictiveContourDisplay.from_estimator(clf, X, y, latent_std=not pairs)
