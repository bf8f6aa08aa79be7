"""What inducing inputs miss, measured on the exact posterior of neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array

SMALL_SHIFT = 0.02  # mean change of a probability
SMALL_GAIN = 0.005  # nats per row
LARGE_GAIN = 0.02  # nats per row that would be worth more inducing inputs
UNSEEN = (
    "This does not see correlations that reach beyond those rows, other hyperparameters that more inducing inputs "
    "would allow, or a wrong kernel or likelihood."
)


@dataclass(frozen=True, slots=True, eq=False)
class Missing:
    """Leave-one-out probabilities of a model with inducing inputs compared with those of exact neighbourhoods.

    Parameters
    ----------
    n_places : int
        Rows at which they were compared.
    n_rows : int
        Rows whose latent values were correlated exactly around each of them; those of all other rows are known by
        the inducing inputs only.
    whole : bool
        Whether these were all rows, so that the comparison is with the model without inducing inputs.
    mean_shift, largest_shift : float
        Mean and largest absolute change of a class probability.
    gain : float
        Change of the mean leave-one-out log score, in nats per row: positive if the exact posterior is better.
    gain_error : float
        Its standard error.

    Examples
    --------
    >>> Missing(200, 200, False, 0.05, 0.3, 0.02, 0.005).matters
    True
    >>> Missing(90, 90, True, 0.001, 0.01, 0.0, 0.001).verdict[-31:]
    'the inducing inputs are enough.'
    """

    n_places: int
    n_rows: int
    whole: bool
    mean_shift: float
    largest_shift: float
    gain: float
    gain_error: float

    @property
    def matters(self) -> bool:
        """Whether the change is neither small nor explained by chance."""
        return self.mean_shift > SMALL_SHIFT or self.gain > SMALL_GAIN + 2.0 * self.gain_error

    @property
    def verdict(self) -> str:
        """The result in one or two sentences."""
        where = f"the {self.n_rows} rows around each of {self.n_places} random rows are treated exactly"
        where = f"all {self.n_rows} rows are treated exactly" if self.whole else where
        by = (
            f"leave-one-out probabilities move by {self.mean_shift:.2g} on average and "
            f"{self.largest_shift:.2g} at most, and the log score by {self.gain:+.2g} ± {self.gain_error:.1g} per row"
        )
        advice = "the inducing inputs are enough" + ("" if self.whole else " there")
        if self.matters:
            advice = "the inducing inputs miss part of the function; take more of them"
        elif self.gain + 2.0 * self.gain_error > LARGE_GAIN:
            advice = "so few rows do not tell whether more inducing inputs would pay"
        return f"If {where}, {by}: {advice}." + ("" if self.whole else f" {UNSEEN}")


def make_missing(ours: Array, exact: Array, score: Array, n_rows: int, *, whole: bool) -> Missing:
    """Return the comparison of probabilities (places, classes) and of the changes of the log score at each place."""
    shift = np.abs(exact - ours)
    error = float(score.std(ddof=1)) / np.sqrt(len(score)) if len(score) > 1 else np.inf
    return Missing(
        len(ours), n_rows, whole, float(shift.mean()), float(shift.max()), float(score.mean()), float(error)
    )
