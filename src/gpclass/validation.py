"""Checks of the data that a user gives, and labels of any kind in the form that a likelihood takes."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from gpclass.core.protocols import Array, Index, Inputs
from gpclass.kernels import has_noise

MERGED_UP_TO = 20_000  # copies are merged in at most this many rows: sorting more is not worth its cost
CONTROLS = 4  # maximum number of rows of one class per row of the others: more add little information
HEAVIEST = 1e12  # largest weight; next to a larger one the others would be lost in rounding
Where = Callable[[int], str]  # describes row i, as in 'row 7 of a.parquet'


def check_inputs(estimator: Any, X: Any, y: Any = None, *, vectors: bool, fitting: bool) -> Any:
    """Return X (and y when fitting) as float64 rows, or as they are for kernels on structured inputs."""
    options: dict[str, Any] = {"ensure_2d": vectors, "dtype": np.float64 if vectors else None}
    if vectors:
        options["ensure_all_finite"] = False  # checked below, with the position in the message
    if fitting:
        X, y = validate_data(estimator, X, y, **options)
    else:
        X = validate_data(estimator, X, reset=False, **options)
    if vectors:
        check_finite(X, getattr(estimator, "feature_names_in_", None))
    return (X, y) if fitting else X


def check_labels(y: Any) -> None:
    """Raise unless y are class labels of one kind."""
    try:
        check_classification_targets(y)
    except (TypeError, ValueError):
        kinds = sorted({type(label).__name__ for label in y})
        if kinds in (["bytes"], ["bytes_"]):
            raise ValueError(
                "y has labels of bytes, expected text or integers: decode them first, for example with "
                "numpy.char.decode."
            ) from None
        if len(kinds) == 1 and y.dtype != object:
            raise
        raise ValueError(
            f"y has labels of the types {', '.join(kinds)}, expected text, integers or booleans, of one type: "
            "convert them, for example with [str(label) for label in y]."
        ) from None


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Number | np.generic) and bool(value != value)


def check_finite(X: Array, names: Sequence[str] | None = None, where: Where = "row {}".format) -> None:
    """Raise if X has NaN or infinity, and name the position of the first."""
    # If the sum is finite, all entries are; unlike isfinite this needs no extra array.
    with np.errstate(over="ignore", invalid="ignore"):
        total = X.sum()
    if np.isfinite(total) or np.isfinite(X).all():
        return
    row, column = np.argwhere(~np.isfinite(X))[0]
    what = "NaN" if np.isnan(X[row, column]) else "infinity (inf)"
    name = column if names is None else repr(str(names[column]))
    raise ValueError(
        f"Input X contains {what} in {where(int(row))}, column {name}: drop or impute such rows first, for "
        "example with sklearn.impute.SimpleImputer."
    )


def check_weights(sample_weight: Any, class_weight: Any, y: Any) -> Array | None:
    """Return one weight per row, or None when all are one."""
    from sklearn.utils.class_weight import compute_sample_weight

    weight = None
    if sample_weight is not None:
        try:
            weight = np.asarray(sample_weight, dtype=float)
        except (TypeError, ValueError):
            raise ValueError("sample_weight cannot be read as numbers, expected one for each row.") from None
        if weight.ndim == 0:
            weight = np.full(len(y), float(weight))
        if weight.shape != (len(y),):
            raise ValueError(
                f"sample_weight has shape {weight.shape}, expected ({len(y)},): one weight for each row of X."
            )
    if class_weight is not None:
        by_class = compute_sample_weight(class_weight, y)
        weight = by_class if weight is None else weight * by_class
    if weight is not None:
        check_weight_values(weight, "row {} (sample_weight times class_weight)".format)
        if not weight.any():
            raise ValueError("All sample weights are zero, expected some positive ones.")
    return None if weight is None or (weight == 1.0).all() else weight


def check_weight_values(weight: Array, where: Where) -> None:
    """Raise unless all weights are numbers from zero to `HEAVIEST`."""
    fine = (weight >= 0.0) & (weight < HEAVIEST)
    if not fine.all():
        row = int(np.argmin(fine))
        raise ValueError(
            f"The weight of {where(row)} is {weight[row]}, expected a number from 0 to {HEAVIEST:.0e}."
        )


def merge_copies(X: Inputs, codes: Any, weight: Array | None, kernel: Any) -> tuple[Any, Any, Any, Any]:
    """Return distinct rows, their classes, the sums of their weights, and the position of each given row among them.

    k copies of a row become one row of weight k, so that only distinct rows cost time, and the result
    does not depend, to the last bit, on which of the two was given. Kernels with independent noise
    for each row (`WhiteKernel`) distinguish copies, so then nothing is merged.
    """
    noisy = kernel is not None and has_noise(kernel)
    if not isinstance(X, np.ndarray) or X.ndim != 2 or len(X) > MERGED_UP_TO or noisy:
        return X, codes, weight, np.arange(len(codes))
    both = np.column_stack([X, codes])
    rows, first, inverse = np.unique(both, axis=0, return_index=True, return_inverse=True)
    if len(rows) == len(X) and weight is None:
        return X, codes, None, np.arange(len(codes))
    total = np.bincount(inverse.ravel(), weights=weight).astype(float)
    return X[first], codes[first], None if (total == 1.0).all() else total, inverse.ravel()


def take(X: Inputs, rows: Any) -> Inputs:
    """Return some rows of X, an array or a sequence of objects."""
    return X[rows] if isinstance(X, np.ndarray) else [X[i] for i in rows]


def some_of_each(classes: Index, n: int, rng: np.random.Generator) -> Index:
    """Return about n random rows, in order, with class counts as equal as the data allow.

    Such a case-control sample shifts the intercept of a logistic model only, and a rare class keeps its information.
    One class has at most four times as many rows as all others together, so that there may be fewer than n rows.
    """
    order = rng.permutation(len(classes))
    labels, counts = np.unique(classes[order], return_counts=True)
    rank = np.empty(len(order), dtype=int)  # rank of each row within its class
    for label in labels:
        own = classes[order] == label
        rank[own] = np.arange(own.sum())
    most = (1 + CONTROLS) * max(len(classes) - int(counts.max()), 1)
    return np.sort(order[np.argsort(rank, kind="stable")][: min(n, most)])


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
    >>> from gpclass.validation import Encode
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
