"""Labels of any kind, turned into the form that a likelihood takes.

Likelihoods with one latent function take labels y, -1 and 1 for two classes; others label weights of shape (n, C).
"""

from __future__ import annotations

from collections.abc import Sequence
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
        The distinct labels, sorted.
    values : sequence of float or None
        The y of each class, for models with one latent function. None: label weights of shape (n, C), which include
        the weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.labels import Encode
    >>> Encode(np.array(["no", "yes"]), (-1.0, 1.0))(np.array(["yes", "no"]), None)
    (array([ 1., -1.]), None)
    >>> Encode(np.array([1, 2, 3]))(np.array([3, 1]), np.array([2.0, 1.0]))[0]
    array([[0., 0., 2.],
           [1., 0., 0.]])
    """

    classes: Any
    values: Sequence[float] | None = None

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
        """Return labels y and the weights, or label weights (n, C) and None."""
        codes = self.codes(y)
        if self.values is not None:
            return np.array(self.values)[codes], weight
        return label_weights(codes, len(self.classes), weight), None
