"""How a classifier draws exactly: the record that stands for ``inference="rejection"``."""

from __future__ import annotations

from dataclasses import dataclass

from gpclass.core.protocols import Inference
from gpclass.core.registry import stored
from gpclass.inference import EP


@stored
@dataclass(frozen=True, slots=True)
class Rejection:
    """Settings of exact posterior draws by rejection from the prior, for a handful of data.

    Parameters
    ----------
    n_draws : int
    max_proposals : int
        Proposals at most; what would take more is refused with a sentence.
    learn_by : settings record
        The method whose evidence hyperparameters are learned by, before the sampling.

    Examples
    --------
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.kernels import RBF
    >>> clf = GaussianProcessClassifier(4.0 * RBF(1.0), inference="rejection", optimizer=None, random_state=0)
    >>> clf.fit([[0.0], [1.0], [3.0]], ["a", "a", "b"]).predict_proba([[0.5]]).round(1)
    array([[0.8, 0.2]])
    """

    n_draws: int = 4000
    max_proposals: int = 100_000_000
    learn_by: Inference = EP()  # noqa: RUF009

    def __post_init__(self) -> None:
        if self.n_draws < 1 or self.max_proposals < self.n_draws:
            raise ValueError(f"{self!r} is not possible: n_draws must be positive, max_proposals more.")
