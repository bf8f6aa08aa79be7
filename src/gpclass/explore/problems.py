"""What the page starts with: built-in problems, a table, an empty canvas, or a draw from the prior."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpclass.datasets import problems
from gpclass.explore.state import Origin, Points, State, make_points
from gpclass.kernels import matrix
from gpclass.parameters import LIKELIHOODS
from gpclass.posteriors.process import symmetric_root
from gpclass.sampling import draw_labels

TABLE = "your table"
DRAWN = "draw from the prior"
EMPTY = {"empty line": 1, "empty plane": 2}  # and their numbers of columns
SIZES = {1: (150, 25), 2: (300, 60)}  # points of a draw from the prior, and those on the canvas, by columns
WORDS = {
    "interval": "The textbook exercise: class 0 for 25 < x < 60, and class 1 elsewhere.",
    "moons": "Two half circles with noise.",
    "circles": "A circle inside another, with noise.",
    "clouds": "Three overlapping clouds, one for each class.",
    "empty line": "An empty line: click to add points of two classes or more.",
    "empty plane": "An empty plane: click to add points of two classes or more.",
}


def start_names() -> list[str]:
    """Return the names of everything to start with except a table and draws from the prior."""
    return [*problems(), *EMPTY]


def start(name: str) -> State:
    """Return a built-in problem, or an empty canvas, to start with.

    Examples
    --------
    >>> start("interval").points.X.shape, start("empty plane").points.X.shape
    ((20, 1), (0, 2))
    """
    if name in EMPTY:
        d = EMPTY[name]
        points = make_points(np.empty((0, d)), [], view=[[0.0, 10.0]] * d)
        return State(points, origin=Origin(name, WORDS[name]))
    if name not in problems():
        raise ValueError(f"There is no problem {name!r}: choose one of {', '.join(start_names())}.")
    split = problems()[name]()
    points = make_points(split.X, split.y, labels=tuple(map(str, np.unique(split.y_test))))
    origin = Origin(name, WORDS.get(name, name), split.X_test, split.y_test)
    if name != "interval":
        return _of_variance_ten(points, origin)
    # The kernel of the exercise, with a variance at which the methods differ.
    points = replace(points, view=np.array([[-3.0, 102.0]]))
    return State(points, theta=(float(np.log(30.0)), float(np.log(10.0))), origin=origin)


def from_table(X: Any, y: Any, names: tuple[str, ...], words: str, *, pool: Any = None) -> State:
    """Return a table of one or two columns to start with; ``pool`` has further rows and labels for the oracle."""
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    points = make_points(X, codes, labels=tuple(map(str, labels)), names=tuple(names))
    rows, known = (points.X, codes) if pool is None else (pool[0], np.searchsorted(labels, pool[1]))
    return _of_variance_ten(points, Origin(TABLE, words, rows, known))


def _of_variance_ten(points: Points, origin: Origin) -> State:
    state = State(points, origin=origin)
    return replace(state, theta=(float(np.log(10.0)), *state.theta[1:]))


def draw(base: State, seed: int) -> State:
    """Return points labelled by functions drawn from the prior, with the kernel and the likelihood of ``base``."""
    rng, points = np.random.default_rng(seed), base.points
    n, shown = SIZES[points.n_columns]
    X = rng.uniform(points.view[:, 0], points.view[:, 1], size=(n, points.n_columns))
    likelihood = LIKELIHOODS[base.likelihood]()
    if base.n_classes > 2:
        likelihood = likelihood.several() or LIKELIHOODS["softmax"]()
    functions = likelihood.n_latents(base.n_classes)
    f = symmetric_root(matrix(base.kernel, X)) @ rng.standard_normal((n, functions))
    p = np.exp(likelihood.log_classes(f if functions > 1 else f[:, 0]))
    codes = np.asarray(draw_labels(p, rng=rng)[:, 0], dtype=np.intp)
    words = f"Draw {seed} from the prior: labels of functions that this kernel and this likelihood expect."
    drawn = replace(points, X=X[:shown], codes=codes[:shown])
    return replace(base, points=drawn, selected=None, origin=Origin(DRAWN, words, X, codes))
