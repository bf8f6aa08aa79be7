"""Labels, hard and soft, turned into classes and weights of rows.

A soft label is a row of class probabilities P. It counts as Σ_c P_c log p(c|f), which softmax takes as it is.
A likelihood of two classes takes it as rows with the same input, one for each class, of the weights P_c.

Likelihoods of two classes take labels -1 and 1; those of C classes take label weights of shape (n, C).
`Encode` makes them from labels of any kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Index, Inputs
from gpclass.kernels import has_noise
from gpclass.validation import check_labels, check_weights, merge_copies, take

ROUNDING = 1e-5  # allowed deviation of a sum of probabilities from one
NEGLIGIBLE = 1e-8  # smaller probabilities may be rounding errors and are set to zero: each would add a row


def signs(codes: Index) -> Array:
    """Return -1 for the first class and 1 for the second."""
    return np.where(codes == 0, -1.0, 1.0)


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
            return signs(codes), weight
        return label_weights(codes, len(self.classes), weight), None


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Rows of positive weight, and their classes."""

    X: Inputs
    codes: Any  # positions in ``classes``, (n,), or label weights, (n, C)
    weight: Array | None
    classes: Any
    kept: Index  # positions of the given rows that have a positive weight
    home: Index | None  # the merged row of X for each kept row; None if it became several rows
    truth: Any  # its class, (n_kept,), or class probabilities, (n_kept, C)


def soft_classes(y: Any) -> Any | None:
    """Return the classes if y is a matrix of class probabilities: several columns of floats; else None.

    Examples
    --------
    >>> from gpclass.labels import soft_classes
    >>> soft_classes([[0.2, 0.8], [1.0, 0.0]])
    array([0, 1])
    >>> soft_classes([[0, 1], [1, 0]]) is None
    True
    """
    try:
        matrix = np.asarray(y)
    except (TypeError, ValueError):  # ragged
        return None
    if matrix.ndim != 2 or matrix.shape[1] < 2 or matrix.dtype.kind != "f":
        return None
    names = getattr(y, "columns", None)
    return np.arange(matrix.shape[1]) if names is None else np.asarray(names)


def from_labels(X: Inputs, y: Any, sample_weight: Any, class_weight: Any, kernel: Any) -> Labelled:
    """Return the rows of labels of any kind."""
    check_labels(y)
    weight = check_weights(sample_weight, class_weight, y)
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    classes, codes = np.unique(y[kept], return_inverse=True)
    return _hard(X, codes, classes, weight, kept, kernel)


def from_probabilities(
    X: Inputs,
    P: Array,
    classes: Any,
    sample_weight: Any,
    class_weight: Any,
    kernel: Any,
    takes_matrix: Callable[[], bool],
) -> Labelled:
    """Return the rows of a matrix of class probabilities.

    ``takes_matrix`` says whether the model can use label weights, and raises if it cannot use soft
    labels; it is not called if all rows are one-hot, because these are ordinary labels.
    """
    _check_probabilities(P)
    P = np.where(P < NEGLIGIBLE, 0.0, P)
    P = P / P.sum(axis=1, keepdims=True)
    if ((P == 0.0) | (P == 1.0)).all():
        codes = P.argmax(axis=1)
        weight = check_weights(sample_weight, class_weight, classes[codes])
        kept = np.arange(len(P)) if weight is None else np.flatnonzero(weight)
        return _hard(X, codes[kept], classes, weight, kept, kernel)
    matrix = takes_matrix()
    weight = check_weights(sample_weight, None, P[:, 0])
    L = P * _class_weights(class_weight, classes, P)
    if weight is not None:
        L *= weight[:, None]
    kept = np.flatnonzero(L.any(axis=1))
    L = L[kept]
    _check_classes(classes[L.any(axis=0)])
    if matrix:
        return Labelled(take(X, kept), L, None, classes, kept, np.arange(len(kept)), P[kept])
    if kernel is not None and has_noise(kernel):
        raise ValueError(
            "Soft labels with a kernel that has independent noise for each row need likelihood='softmax'."
        )
    rows, codes = np.nonzero(L)
    X, codes, weight, _ = merge_copies(take(X, kept[rows]), codes, L[rows, codes], kernel)
    return Labelled(X, codes, weight, classes, kept, None, P[kept])


def _hard(X: Inputs, codes: Index, classes: Any, weight: Array | None, kept: Index, kernel: Any) -> Labelled:
    """Return rows of known classes, with equal rows merged."""
    _check_classes(classes[np.unique(codes)])
    if weight is not None and len(kept) < len(weight):
        X, weight = take(X, kept), weight[kept]
    X, merged, weight, home = merge_copies(X, codes, weight, kernel)
    return Labelled(X, merged, weight, classes, kept, home, codes)


def _check_classes(present: Any) -> None:
    if len(present) < 2:
        raise ValueError(
            f"GaussianProcessClassifier requires 2 or more distinct classes; got {len(present)} class "
            f"with a positive weight ({present}): give it rows of another class."
        )


def _check_probabilities(P: Array) -> None:
    negative, total = (P < 0.0).any(axis=1), P.sum(axis=1)
    if negative.any():
        row = int(np.argmax(negative))
        raise ValueError(
            f"Row {row} of y has the negative number {P[row].min()}, expected class probabilities, or labels "
            "in one dimension."
        )
    off = np.abs(total - 1.0) > ROUNDING
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"Row {row} of y sums to {total[row]:.6g}, expected class probabilities that sum to one: divide "
            "by the sums, or give labels in one dimension."
        )


def _class_weights(class_weight: Any, classes: Any, P: Array) -> Array:
    """Return one weight per class; "balanced" makes the total weights of the classes equal."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        total = P.sum(axis=0)
        return np.where(total > 0.0, len(P) / (len(classes) * np.maximum(total, 1e-300)), 1.0)
    one_each = check_weights(np.ones(len(classes)), class_weight, classes)
    return np.ones(len(classes)) if one_each is None else one_each
