"""Everything that the page shows for one state, computed together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpclass.core.protocols import Array
from gpclass.explore.fit import Fit, fit
from gpclass.explore.pictures import Picture, grid, picture
from gpclass.explore.state import State, title
from gpclass.priors import DensePrior

DRAWS = 400  # of the latent functions of several classes


@dataclass(frozen=True, slots=True, eq=False)
class Occam:
    """log evidence = fit - complexity.

    For the exact posterior, log p(y) = E[log p(y|f)] - KL(posterior || prior): how probable the labels are under the
    functions that remain, minus how far these are from the prior. The complexity of a Gaussian approximation q is
    KL(q || prior), which is not negative, and the fit is the rest; for the variational bound it is E[log p(y|f)] under
    q exactly. With three classes or more E[log p(y|f)] is averaged over draws instead.
    """

    evidence: float
    fit: float
    complexity: float


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Probabilities of the first method minus those of the second, and where they differ most, in words."""

    values: Array  # of the second class; with three or more classes the total variation distance
    signed: bool
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A state with its fits and pictures; None for what could not be computed, and ``error`` says why."""

    state: State
    fit: Fit | None = None
    picture: Picture | None = None
    occam: Occam | None = None
    other_fit: Fit | None = None
    other: Picture | None = None
    difference: Difference | None = None
    error: str = ""

    @property
    def fits(self) -> list[Fit]:
        """The fits of one or two methods."""
        return [each for each in (self.fit, self.other_fit) if each is not None]

    @property
    def notes(self) -> str:
        """The warnings of the fits, each once."""
        return " ".join(dict.fromkeys(note for each in self.fits for note in each.notes))

    @property
    def words(self) -> list[str]:
        """How two methods differ, in sentences; empty without a second one."""
        if self.difference is None:
            return []
        known = [
            f"{title(each.state.method)} {each.evidence:.2f}"
            for each in self.fits
            if each.evidence is not None
        ]
        return [self.difference.words, f"Log evidence: {', '.join(known)}." if known else ""]


def scene(state: State) -> Scene:
    """Compute the scene of a state; what fails is reported in its ``error``.

    Examples
    --------
    >>> from gpclass.explore.state import make_points
    >>> scene(State(make_points([[0.0], [10.0]], [0, 0]))).error
    'There are points of class 0 only: add points of two classes to see what a model believes.'
    """
    try:
        fitted = fit(state)
        shown = picture(fitted)
        first = Scene(state, fitted, shown, occam(fitted))
    except Exception as error:
        return Scene(state, error=sentence(error))
    if not state.other:
        return first
    try:
        other_fit = fit(replace(state, method=state.other))
        other = picture(other_fit)
    except Exception as error:
        return replace(first, error=f"{title(state.other)}: {sentence(error)}")
    return replace(first, other_fit=other_fit, other=other, difference=difference(state, shown, other))


def sentence(error: BaseException) -> str:
    """Return the message of an error as one sentence."""
    words = " ".join(str(error).split())
    if isinstance(error, ValueError | ImportError) and words:
        return words
    return f"{type(error).__name__}: {words or 'no message'}."


# ---------------------------------------------------------------------------------- evidence


def occam(fitted: Fit) -> Occam | None:
    """Split the log evidence of a fit into its parts; None where it has none.

    That is so for draws, for Dirichlet classification (whose evidence is that of transformed targets), and for an
    approximation of several classes so rough that the complexity would be negative.
    """
    model, evidence, points = fitted.model, fitted.evidence, fitted.state.points
    if evidence is None or not model.is_of_labels:
        return None
    if model.n_latents is None:
        # KL(q || prior) = (tr B⁻¹ - n + αᵀm + log|B|) / 2 for q = prior x Gaussian sites, with B = I + SKS.
        q = DensePrior(model.kernel, model.problem.X).condition(model.sites)
        complexity = float(0.5 * ((q.inverse_diagonal() - 1.0).sum() + q.alpha @ q.mean) + q.half_logdet)
    else:
        f = np.moveaxis(fitted.clf.sample_latent(points.X, DRAWS, random_state=0), 2, 0)  # [draws, n, C]
        own = np.searchsorted(points.present, points.codes)
        log_p = fitted.clf.likelihood_.log_classes(f)[:, np.arange(len(own)), own]
        complexity = float(log_p.mean(axis=0).sum()) - evidence
    return Occam(evidence, evidence + complexity, complexity) if complexity >= 0.0 else None


# -------------------------------------------------------------------------------- difference


def difference(state: State, one: Picture, other: Picture) -> Difference:
    """Return the difference of the pictures of both methods of a state."""
    p, q = one.second, other.second
    if signed := p is not None and q is not None:
        values = p - q
    else:
        values = 0.5 * np.abs(one.proba - other.proba).sum(axis=-1)
    at = int(np.abs(values).argmax())
    words = (
        f"{title(state.method)} and {title(state.other)} differ by at most {abs(values.ravel()[at]):.2g} in "
        f"probability, at {named_place(state, grid(state)[1][at])}."
    )
    return Difference(values, signed, words)


def named_place(state: State, place: Array) -> str:
    """Return a place in words, such as "x = 2.5"."""
    return ", ".join(f"{name} = {x:.3g}" for name, x in zip(state.points.names, place, strict=True))
