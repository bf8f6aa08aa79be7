"""``gpclass explore``: a page in the browser, of a built-in problem or of a table."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpclass.cli import output
from gpclass.cli.data import read_problem
from gpclass.cli.files import InputError
from gpclass.explore import MOST_CLASSES, State, from_table, serve, start
from gpclass.tables import Encoder

ROWS = 200  # number of rows shown of a longer table


def run(given: Mapping[str, Any]) -> None:
    """Serve the page until it is interrupted; ``given`` are the options by name."""
    import bokeh  # noqa: F401  (a missing package is reported before a table is read)

    begun = start(given["problem"]) if given["data"] is None else read_start(given)
    if given["data"] is not None:
        output.remark(begun.words)

    def announce(address: str) -> None:
        if given["as_json"]:
            output.show_json({"address": address})
        else:
            output.line(f"gpclass explore is at {address} (interrupt with Ctrl+C).")
        sys.stdout.flush()  # before a long computation

    serve(begun, port=given["port"], browser=not given["no_browser"], announce=announce)


def read_start(given: Mapping[str, Any]) -> State:
    """Return the initial state of the page for a table: one or two of its columns, or two principal components."""
    problem = read_problem(given)
    classes = np.unique(problem.y)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"{given['data']} has {len(classes)} classes in column {given['target']!r}, and the page draws "
            f"{MOST_CLASSES} at most: leave some of them out."
        )
    encoder, y = Encoder(problem.categorical), problem.y
    rows = encoder.fit_transform(problem.frame)
    if rows.shape[1] <= 2:
        names = encoder.get_feature_names_out()
        words = f"{given['data']}: {' and '.join(names)}."
    else:
        rows, names, words = _components(given["data"], rows)
    chosen = _some(y, given["seed"])
    if len(chosen) < len(y):
        words += f" {len(chosen)} of {len(y)} rows are shown, drawn at random."
    return from_table(rows[chosen], y[chosen], tuple(names), words)


def _components(path: str, X: Any) -> tuple[Any, list[str], str]:
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    X = StandardScaler().fit_transform(X)
    pca = PCA(2).fit(X)
    shares = pca.explained_variance_ratio_
    words = (
        f"{path}: the first two principal components of its {X.shape[1]} columns, which explain "
        f"{shares.sum():.0%} of their variance. Choose one or two columns with --columns."
    )
    return pca.transform(X), [f"component {i + 1} ({share:.0%})" for i, share in enumerate(shares)], words


def _some(y: Any, seed: int) -> Any:
    """Return the positions of at most `ROWS` rows, with some of every class."""
    if len(y) <= ROWS:
        return np.arange(len(y))
    rng = np.random.default_rng(seed)
    firsts = [rng.choice(np.flatnonzero(y == label)) for label in np.unique(y)]
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), firsts))[: ROWS - len(firsts)]
    return np.sort(np.concatenate([firsts, others]))
