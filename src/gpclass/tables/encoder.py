"""The transformer that codes a table as a matrix of numbers, learned from a table or in one pass over a source."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from gpclass.core.protocols import Array
from gpclass.data.rows import FoundLabels, Rows, Source, read_labels, reading
from gpclass.tables.kinds import TableWarning, check_levels, is_explicit, kinds_of, warn_of_doubts
from gpclass.tables.reading import TakesTables, Values, as_table, check_names, columns_of, is_frame
from gpclass.tables.records import Column, finite_numbers, levels_of
from gpclass.validation import check_weights

SAMPLED = 100_000  # number of values sampled per column of a source, for its median and standard deviation
NUMERIC = ("number", "truth")  # kinds of columns that need no code


class Encoder(TakesTables, TransformerMixin, BaseEstimator):
    """Code a table with numbers, categories, dates and missing values as a matrix of numbers.

    - A number keeps its value. Dates are days since 1970 in UTC, durations are days. If values are missing, the median
      replaces them, and a second column is the standard deviation where a value is missing and 0 elsewhere.
    - A category has a column for each level, with √½ where a row has this level and 0 elsewhere, so that two rows of
      different levels are at the distance 1. Truth values are categories. Missing values are a level if there are any.
    - Levels that were not in the training rows are zero in all columns of the category. A warning counts them.
    - Constant columns are left out.

    Parameters
    ----------
    categorical_features : "from_dtype", names, indices, mask or None, default="from_dtype"
        Columns that are categories. With ``"from_dtype"`` the type of a column decides: text, booleans and
        categorical types are categories, but texts that are all plain numbers are numbers. Columns that are
        given by names, positions or a mask are categories too, regardless of their type. None means that there are
        no categories; text is then an error.

    Attributes
    ----------
    columns_ : tuple of Column
        How each column of the table is coded.
    groups_ : ndarray of int
        For each coded column the number of its column in the table, counted without those that are left out.
    group_names_ : list of str
        Names of the columns that are not left out.
    numeric_ : ndarray of bool
        Whether each coded column is a number, a date or a duration.
    n_features_in_, feature_names_in_
        Number and, for data frames, names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.tables import Encoder
    >>> rows = np.array([[1.0, "a"], [np.nan, "b"], [3.0, "a"]], dtype=object)
    >>> encoder = Encoder().fit(rows)
    >>> encoder.get_feature_names_out().tolist()
    ['x0', 'x0=missing', 'x1=a', 'x1=b']
    >>> encoder.transform(rows).round(2)
    array([[1.  , 0.  , 0.71, 0.  ],
           [2.  , 1.  , 0.  , 0.71],
           [3.  , 0.  , 0.71, 0.  ]])
    >>> encoder.groups_
    array([0, 0, 1, 1])
    """

    def __init__(self, categorical_features: Any = "from_dtype") -> None:
        self.categorical_features = categorical_features

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kinds of the columns, their levels and replacements for missing values; return the encoder.

        Parameters
        ----------
        X : pandas, polars or Arrow table, or array of shape (n, n_features)
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows in medians and standard deviations; rows of weight zero do not count.
        """
        X = self._checked(X, reset=True)
        weight = check_weights(sample_weight, None, range(X.shape[0]))
        columns = columns_of(X)
        kinds = kinds_of(columns, self.categorical_features)
        found = survey(Rows(X, None, weight), kinds)
        if is_frame(X):
            seen = zip(columns, kinds, found.columns, strict=True)
            warn_of_doubts({column.name: values[0] for column, kind, values in seen if kind == "number"})
        return self._set(found.records(columns, kinds))

    def _set(self, columns: Any) -> Self:
        """Assign consecutive positions to the coded columns, and set the other attributes."""
        placed, n = [], 0
        for column in columns:
            placed.append(replace(column, positions=tuple(range(n, n + column.width))))
            n += column.width
        kept = [column for column in placed if column.positions]
        self.columns_ = tuple(placed)
        self.group_names_ = [column.name for column in kept]
        self.groups_ = np.repeat(np.arange(len(kept)), [column.width for column in kept])
        first = [(np.arange(column.width) == 0) & column.is_numeric for column in kept]
        self.numeric_ = np.concatenate(first)
        return self

    @classmethod
    def restored(cls, columns: tuple[Column, ...], categorical_features: Any, names: Any) -> Encoder:
        """Return a fitted encoder from its ``columns_`` and, if the columns have names, ``feature_names_in_``."""
        encoder = cls(categorical_features)._set(columns)
        encoder.n_features_in_ = len(columns)
        if names is not None:
            encoder.feature_names_in_ = names
        return encoder

    def transform(self, X: Any) -> Array:
        """Return the coded rows; one warning counts values that the training rows did not have.

        Parameters
        ----------
        X : table or array with the columns of the training rows

        Returns
        -------
        ndarray of shape (n, n_coded)
        """
        return self.code(X)

    def code(self, X: Any, *, warn: bool = True) -> Array:
        """Return the result of `transform` as an array, regardless of ``set_output``; ``warn`` allows the warning."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        out = np.zeros((X.shape[0], len(self.groups_)))
        unknown = []
        for record, column in zip(self.columns_, columns_of(X), strict=True):
            if record.positions:
                first, last = record.positions[0], record.positions[-1]
                n = record.code(column, out[:, first : last + 1])
                unknown += [f"{n} in column {record.name!r}"] if n else []
        if unknown and warn:
            warnings.warn(
                f"X has levels or missing values that the training rows did not have: {', '.join(unknown)}.",
                TableWarning,
                stacklevel=6,
            )
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the coded columns, such as "age", "age=missing" and "sex=female".

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in column.coded_names], dtype=object)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return a table or a matrix with the right number and names of columns."""
        X = as_table(X)
        check_names(X, None if reset else getattr(self, "feature_names_in_", None))
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        if X.shape[0] == 0:
            raise ValueError("X has 0 rows, expected at least one.")
        return X


@dataclass(slots=True, eq=False)
class Found:
    """What the code of a table depends on: levels of categories, and numbers (NaN if missing) with their weights."""

    n_rows: int
    columns: list[Any]  # sets, and arrays (2, n) of numbers and weights
    labels: FoundLabels | None = None

    def add(self, other: Found) -> None:
        """Add the results of other rows."""
        self.n_rows += other.n_rows
        for i, (mine, new) in enumerate(zip(self.columns, other.columns, strict=True)):
            self.columns[i] = mine | new if isinstance(mine, set) else np.hstack([mine, new])
        if self.labels is not None and other.labels is not None:
            self.labels.add(other.labels)

    def records(self, columns: list[Values], kinds: list[str]) -> tuple[Column, ...]:
        """Return how the columns of these kinds are coded."""
        records = tuple(
            category(column.name, seen) if kind == "category" else number(column.name, kind, *seen)
            for column, kind, seen in zip(columns, kinds, self.columns, strict=True)
        )
        if not any(record.positions for record in records):
            raise ValueError(
                f"All columns of X are constant (n_samples = {self.n_rows}): there is nothing to learn from."
            )
        return records


def survey(block: Rows, kinds: Sequence[str], step: int = 1) -> Found:
    """Return the levels of the categories in a block, and of each number every ``step``-th value and the extremes."""
    X, labels, weight = _table(block), None, block.weight
    if block.y is not None:
        y, weight = read_labels(block)
        labels = FoundLabels.of(y)
    weight = np.ones(X.shape[0]) if weight is None else weight
    known, columns = weight > 0.0, list[Any]()
    for column, kind in zip(columns_of(X), kinds, strict=True):
        if kind == "category":
            levels = levels_of(column)
            columns.append({levels[value] for value in compress(column.objects, known)})
            check_levels(column.name, len(columns[-1]))
        else:
            values = np.stack([finite_numbers(column, kind, block.where), weight])[:, known]
            gaps, rows = np.isnan(values[0]), np.arange(0, known.sum(), step)
            if len(rows):
                low, high = (np.where(gaps, end, values[0]) for end in (np.inf, -np.inf))
                rows = np.union1d(rows, [low.argmin(), high.argmax(), gaps.argmax()])
            columns.append(values[:, rows])
    return Found(X.shape[0], columns, labels)


def encode_source(source: Source, categorical_features: Any) -> tuple[Any, Encoder | None]:
    """Return the distinct labels of a source, and the encoder of its columns; None if they are numbers without gaps.

    The first block decides the kinds of the columns.
    """
    head = _table(next(source.blocks()))
    columns = columns_of(head)
    kinds = kinds_of(columns, categorical_features)
    step = -(-source.n_rows // SAMPLED)
    found: Any = source.total(partial(survey, kinds=kinds, step=step))
    gaps = (None in seen if isinstance(seen, set) else np.isnan(seen[0]).any() for seen in found.columns)
    numeric = all(column.kind in NUMERIC for column in columns) and not any(gaps)
    if numeric and not is_explicit(categorical_features):
        return found.labels.values, None
    names = None if source.names is None else np.asarray(source.names, dtype=object)
    return found.labels.values, Encoder.restored(found.records(columns, kinds), categorical_features, names)


def _table(block: Rows) -> Any:
    """Return the inputs of a block as a table or a matrix."""
    X = as_table(block.X)
    if is_frame(X):
        return X
    with reading(block):
        return check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=0)


def number(name: str, kind: Any, values: Array, weight: Array) -> Column:
    """Return how a column of numbers is coded; a constant column is not used and has no ``positions``."""
    missing = np.isnan(values)
    gaps = bool(missing.any())
    # Sums over distinct values make a weight of k the same as k copies, to the last bit.
    known, place = np.unique(values[~missing], return_inverse=True)
    if len(known) == 0 or (len(known) == 1 and not gaps):
        return Column(name, kind)
    total = np.bincount(place, weight[~missing])
    below = np.cumsum(total)
    middle = [known[np.searchsorted(below, 0.5 * below[-1], side)] for side in ("left", "right")]
    size = float(np.abs(known).max()) or 1.0  # divided by it, because squares of large numbers overflow
    centred = known / size - np.average(known / size, weights=total)
    scale = size * float(np.sqrt(np.average(centred**2, weights=total)))
    fill = float(0.5 * middle[0] + 0.5 * middle[1])
    return Column(name, kind, fill=fill, scale=(scale or 1.0) if gaps else None, positions=(0,))


def category(name: str, seen: set[Any]) -> Column:
    """Return the record of a category; ``positions`` is not empty if it has two levels or more."""
    check_levels(name, len(seen))
    levels = sorted(seen - {None}, key=lambda level: (isinstance(level, str), level))
    levels += [None] * (None in seen)
    return Column(name, "category", tuple(levels), positions=(0,) if len(levels) > 1 else ())
