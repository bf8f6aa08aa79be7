"""``gpclass plot``: a figure of a model, drawn by the displays of `gpclass.plotting`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

from gpclass import plotting
from gpclass.cli import output
from gpclass.cli.files import ENDINGS, InputError, access, check_output
from gpclass.cli.modelfile import Model, read_model
from gpclass.core import files


def plot(given: Mapping[str, Any]) -> None:
    """Draw a figure of the model; ``given`` are the options by name."""
    path = given["output"] or f"{os.path.splitext(given['model'])[0]}.png"
    check_ending(path)
    check_output(given, "figure", path)
    save_display(model_display(read_model(given["model"]), given["kind"]), path)
    if given["as_json"]:
        output.show_json({"figure": path})
    else:
        output.remark(f"Wrote the figure to {path}.")


def check_ending(path: str) -> None:
    """Raise unless figures can be drawn, in a format that the ending names."""
    import matplotlib as mpl

    mpl.use("Agg")
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS["figure"]:
        raise InputError(f"{path} ends in {ending!r}, expected a figure in {', '.join(ENDINGS['figure'])}.")


def save_display(display: Any, path: str) -> None:
    """Write the figure of a display in the format that the ending of the path names."""
    import matplotlib.pyplot as plt

    image = io.BytesIO()  # Pillow reports no error if the disk is full
    display.figure_.savefig(image, format=os.path.splitext(path)[1][1:].lower(), dpi=160)
    plt.close("all")
    with access(path, "written"), files.replacing(path) as file:
        file.write(image.getvalue())


def model_display(model: Model, kind: str) -> Any:
    """Return a display of a model; the kind "auto" is chosen by its columns."""
    clf, coded = model.clf, model.clf.encoder_
    pairs = clf.n_classes_ > 2 and clf.multi_class == "one_vs_one"  # no latent function of a class
    # The rows of the model are those of the table if each column is a number that is never missing.
    plain = coded is None or (coded.numeric_.all() and len(coded.numeric_) == clf.n_features_in_)
    n_columns = clf.n_features_in_ if plain else 0
    if kind == "auto":
        kind = "latent" if n_columns == 1 and not pairs else "contour"
    if kind == "trace":
        if getattr(clf, "chains_", None) is None:
            raise InputError("--kind trace is for models with Markov chains: fit with --inference mcmc.")
        return plotting.TraceDisplay.from_estimator(clf)
    needed = {"latent": 1, "contour": 2}[kind]
    if n_columns != needed:
        raise InputError(
            f"--kind {kind} is for {needed} column{'s' * (needed > 1)} of numbers without gaps, and the model has "
            f"{clf.n_features_in_} columns{'' if plain else ' of other kinds'}."
        )
    sparse = clf.base_estimator_.models[0].inducing is not None  # its inducing inputs cover the training rows
    X, y = (clf.base_estimator_.models[0].problem.X, None) if sparse else clf.training_rows()
    if kind == "latent":
        return plotting.LatentDisplay.from_estimator(clf, X, y)
    return plotting.PredictiveContourDisplay.from_estimator(clf, X, y, latent_std=not pairs)
