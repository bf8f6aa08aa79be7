"""What the page starts with: built-in problems, a table, an empty canvas, or a draw from the prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpclass.core.protocols import Array
from gpclass.datasets import problems
from gpclass.explore.state import Points, State, make_points
from gpclass.kernels import matrix
from gpclass.parameters import LIKELIHOODS
from gpclass.posteriors.process import symmetric_root
from gpclass.sampling import inversion_discrete

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


@dataclass(frozen=True, slots=True, eq=False)
class Oracle:
    """Knows the label of any place: that of the nearest of these points."""

    X: Array
    codes: NDArray[np.intp]

    def __call__(self, x: Array) -> int:
        """Return the class of the place x."""
        scale = np.ptp(self.X, axis=0)
        apart = (self.X - x) / np.where(scale > 0.0, scale, 1.0)
        return int(self.codes[int((apart**2).sum(axis=1).argmin())])


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A state to start with, what it is in words, and an oracle where the labels are known."""

    name: str
    state: State
    words: str
    oracle: Oracle | None = None


def start_names() -> list[str]:
    """Return the names of everything to start with except a table and draws from the prior."""
    return [*problems(), *EMPTY]


def start(name: str, *, base: State | None = None, seed: int = 0) -> Start:
    """Return a problem to start with; a draw from the prior has the kernel and the likelihood of ``base``.

    Examples
    --------
    >>> start("interval").state.points.X.shape, start("empty plane").state.points.X.shape
    ((20, 1), (0, 2))
    """
    if name == DRAWN:
        return draw(start("interval").state if base is None else base, seed)
    if name in EMPTY:
        d = EMPTY[name]
        points = make_points(np.empty((0, d)), [], view=[[0.0, 10.0]] * d)
        return Start(name, State(points), WORDS[name])
    if name not in problems():
        raise ValueError(f"There is no problem {name!r}: choose one of {', '.join(start_names())}.")
    split = problems()[name]()
    points = make_points(split.X, split.y, labels=tuple(map(str, np.unique(split.y_test))))
    if name == "interval":  # the kernel of the exercise, with a variance at which the methods differ
        points = replace(points, view=np.array([[-3.0, 102.0]]))
        state = State(points, theta=(float(np.log(30.0)), float(np.log(10.0))))
    else:
        state = _of_variance_ten(points)
    return Start(name, state, WORDS.get(name, name), Oracle(split.X_test, split.y_test))


def from_table(X: Any, y: Any, names: tuple[str, ...], words: str, *, pool: Any = None) -> Start:
    """Return a table of one or two columns to start with; ``pool`` has further rows and labels for the oracle."""
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    points = make_points(X, codes, labels=tuple(map(str, labels)), names=tuple(names))
    rows, known = (points.X, codes) if pool is None else (pool[0], np.searchsorted(labels, pool[1]))
    return Start("your table", _of_variance_ten(points), words, Oracle(rows, known))


def _of_variance_ten(points: Points) -> State:
    state = State(points)
    return replace(state, theta=(float(np.log(10.0)), *state.theta[1:]))


def draw(base: State, seed: int) -> Start:
    """Return points labelled by latent functions that are drawn from the prior."""
    rng, points = np.random.default_rng(seed), base.points
    n, shown = SIZES[points.n_columns]
    X = rng.uniform(points.view[:, 0], points.view[:, 1], size=(n, points.n_columns))
    codes = _labels(base, X, rng)
    drawn = replace(points, X=X[:shown], codes=codes[:shown])
    words = f"Draw {seed} from the prior: labels of functions that this kernel and this likelihood expect."
    return Start(DRAWN, replace(base, points=drawn, selected=None), words, Oracle(X, codes))


def _labels(state: State, X: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    root = symmetric_root(matrix(state.kernel, X))
    likelihood = LIKELIHOODS[state.likelihood]()
    if state.n_classes > 2:
        likelihood = likelihood.several() or LIKELIHOODS["softmax"]()
    functions = likelihood.n_latents(state.n_classes)
    f = root @ rng.standard_normal((len(X), functions))
    p = np.exp(likelihood.log_classes(f if functions > 1 else f[:, 0]))
    return np.asarray(inversion_discrete(p, rng=rng)[:, 0], dtype=np.intp)
