"""Labels of any kind, turned into the form that a likelihood takes.

Likelihoods of two classes take labels -1 and 1; those of C classes take label weights of shape (n, C).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Index


def label_weights(codes: Index, n_classes: int, weight: Array | None = None) -> Array:
    """Return the matrix (n, C) with the weight of each row in the column of its class."""
    P = np.zeros((len(codes), n_classes))
    P[np.arange(len(codes)), codes] = 1.0 if weight is None else weight
    return P


@dataclass(frozen=True, slots=True, eq=False)
class Encode:
    """Converts labels to the form that the likelihood takes.

    Parameters
    ----------
    classes : array
        The distinct labels, sorted. Two become -1 and 1; more become label weights of shape (n, C), which
        include the weights of the rows.
    several : bool
        Whether two become label weights as well, for models with a latent function for each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.labels import Encode
    >>> Encode(np.array(["no", "yes"]))(np.array(["yes", "no"]), None)
    (array([ 1., -1.]), None)
    >>> Encode(np.array([1, 2, 3]))(np.array([3, 1]), np.array([2.0, 1.0]))[0]
    array([[0., 0., 2.],
           [1., 0., 0.]])
    """

    classes: Any
    several: bool = False

    @property
    def n_latents(self) -> int:
        """Number of latent functions: one for two classes, else one per class."""
        return 1 if len(self.classes) == 2 and not self.several else len(self.classes)

    def codes(self, y: Any) -> Index:
        """Return the positions of labels among the classes."""
        try:
            found: Index = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
            known = np.asarray(self.classes[found] == y)
        except TypeError:  # a mixture of texts and numbers
            found, known = np.zeros(len(y), dtype=np.intp), np.zeros(len(y), dtype=bool)
        if not known.all():
            label = np.asarray(y)[int(np.argmin(known))]
            label = label.item() if isinstance(label, np.generic) else label
            few = ", ".join(repr(c) for c in np.asarray(self.classes)[:10].tolist())
            raise ValueError(f"The label {label!r} is not among the classes, which are {few}.")
        return found

    def __call__(self, y: Any, weight: Array | None) -> tuple[Array, Array | None]:
        """Return labels -1 and 1 and the weights, or label weights (n, C) and None."""
        codes = self.codes(y)
        if self.n_latents == 1:
            return np.where(codes == 0, -1.0, 1.0), weight
        return label_weights(codes, len(self.classes), weight), None
