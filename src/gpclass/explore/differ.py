"""Two methods on the same points: where their probabilities differ, and how wrong each one is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array
from gpclass.estimator import GaussianProcessClassifier
from gpclass.explore.fit import Fit, settings
from gpclass.explore.pictures import Curves, Picture, grid
from gpclass.explore.state import State, title
from gpclass.explore.warned import collected
from gpclass.mcmc import MCMC

NOTABLE = 0.02  # mean difference of probabilities that is worth a sentence
CHUNK = MCMC(n_chains=4, n_draws=10, n_warmup=60, thin=5)
CHUNKS, LINES = 30, 4  # rounds of the running chains, and lines that are drawn of each


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Probabilities of one picture minus those of another, and in words where they differ most."""

    values: Array  # of the second class, or half the sum of absolute differences over three and more
    signed: bool
    words: str


def difference(state: State, one: Picture, other: Picture, names: tuple[str, str]) -> Difference:
    """Return the difference of two pictures of the same points.

    For three classes and more it is the total variation distance, half the sum of absolute differences.
    """
    _, rows = grid(state)
    p, q = second_class(one), second_class(other)
    titles, timid = [title(name) for name in names], ""
    if signed := p is not None and q is not None:
        values, timid = p - q, _timid(p, q, titles)
    else:
        values = 0.5 * np.abs(one.proba - other.proba).sum(axis=-1)
    at = int(np.abs(values).argmax())
    place = ", ".join(f"{name} = {x:.3g}" for name, x in zip(state.points.names, rows[at], strict=True))
    most = float(values.ravel()[at])
    words = f"{titles[0]} and {titles[1]} differ by at most {abs(most):.2g} in probability, at {place}."
    return Difference(values, signed, words + timid)


def second_class(shown: Picture) -> Array | None:
    """Return the probability of the second class; None where there are three or more."""
    if isinstance(shown, Curves):
        return shown.proba[:, 0] if len(shown.shown) == 1 else None
    return shown.proba[..., shown.shown[1]] if len(shown.shown) == 2 else None


def _timid(p: Array, q: Array, titles: list[str]) -> str:
    """Say so if the probability of one method stays nearer to one half, and why."""
    timid = float(np.mean(np.abs(q - 0.5) - np.abs(p - 0.5)))
    if abs(timid) < NOTABLE:
        return ""
    nearer, farther = titles if timid > 0 else titles[::-1]
    words = f" {nearer} stays nearer to one half than {farther}."
    if nearer == title("laplace"):
        words += (
            " It puts its Gaussian at the mode of f, but the posterior is skewed: "
            "most of it lies farther from zero."
        )
    return words


def verdict(fitted: Fit, method: str) -> str:
    """Check an approximation by importance sampling, and say how wrong it is, or why it cannot be checked."""
    try:
        with collected():
            check = fitted.clf.check_approximation(2000, random_state=0)
    except ValueError as error:
        return f"{title(method)}: {error}"
    if check.corrected is None:
        return f"{title(method)}: {check.verdict}"
    known = "" if check.evidence is None else f"log evidence {check.evidence:.2f}, "
    corrected = f"corrected {check.corrected:.2f} ± {check.standard_error:.2f}"
    return f"{title(method)}: {known}{corrected}. {check.verdict}"


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """Draws of the latent function so far, as lines over the grid, and the probability that they average to."""

    n_draws: int
    lines: Array  # (n_lines, n); empty on a plane
    proba: Array  # (n, n_classes)


def run_chains(state: State, chunks: int = CHUNKS) -> Iterator[Running]:
    """Yield the posterior by Markov chains, after each round of new chains.

    Every round starts new chains, so the rounds are independent and their probabilities are averaged.
    """
    _, rows = grid(state)
    total: Any = np.zeros((len(rows), state.n_classes))
    lines: list[Array] = []
    for k in range(chunks):
        clf = GaussianProcessClassifier(**{**settings(state), "inference": CHUNK, "random_state": k})
        with collected():  # of ten draws nothing can be concluded
            clf.fit(state.points.X, state.points.codes)
        total += Fit(clf, state.n_classes).proba(rows)
        if state.points.n_columns == 1 and len(clf.classes_) == 2:
            draws = clf.sample_latent(rows, LINES, random_state=k)
            if draws.ndim == 2:
                lines.extend(draws.T)
        drawn = (k + 1) * CHUNK.n_chains * CHUNK.n_draws
        yield Running(drawn, np.array(lines), total / (k + 1))
