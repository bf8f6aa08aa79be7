"""The rows of one fit, in memory or in a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass.core.protocols import Array, Index
from gpclass.core.registry import stored
from gpclass.data.rows import Data
from gpclass.data.source import Source
from gpclass.kernels import takes_vectors
from gpclass.labels import Encode
from gpclass.tables import read_inputs
from gpclass.tables.encoder import encode_source
from gpclass.validation import check_labels, check_weights, merge_copies, some_of_each, take


@stored
@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """For each given row of positive weight, the merged row that contains it (``home``) and its class (``truth``)."""

    home: Index
    truth: Index


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows of one fit and their classes."""

    classes: Any
    n_rows: int
    X: Any  # inputs in memory; empty for the rows of a source
    codes: Index  # classes by position; empty for the rows of a source
    weight: Array | None = None
    data: Data | None = None  # rows that are read in passes
    rows: TrainingRows | None = None  # needed for leave-one-out predictions
    vectors: bool = True
    coding: Any = None  # the encoder if X is a coded table

    def some(self, n: int) -> Training:
        """Return n random rows in memory, with some of each class if possible; itself if it has at most n rows."""
        if n >= self.n_rows:
            return self
        kept = some_of_each(self.codes, n, np.random.default_rng(0))
        weight, X = None if self.weight is None else self.weight[kept], take(self.X, kept)
        options: Any = {"vectors": self.vectors, "coding": self.coding}
        return Training(self.classes, n, X, self.codes[kept], weight, **options)


def from_rows(clf: Any, X: Any, y: Any, sample_weight: Any) -> Training:
    """Return checked rows in memory, with equal rows merged; sets the attributes of the classifier about columns."""
    vectors = takes_vectors(clf.kernel)
    X, y = read_inputs(clf, X, y, sample_weight, vectors=vectors, fitting=True)
    check_labels(y)
    weight = check_weights(sample_weight, clf.class_weight, y)
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, y, weight = take(X, kept), y[kept], weight[kept]
    classes, truth = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"GaussianProcessClassifier requires 2 or more distinct classes; got {len(classes)} class "
            f"with a positive weight ({classes}): give it rows of another class."
        )
    kernel = None if isinstance(clf.kernel, str) else clf.kernel
    X, codes, weight, home = merge_copies(X, truth, weight, kernel)
    X = np.copy(X) if clf.copy_X_train else X
    vectors = vectors and isinstance(X, np.ndarray) and X.ndim == 2
    rows = TrainingRows(home, truth)
    return Training(classes, len(X), X, codes, weight, None, rows, vectors, clf.encoder_)


def from_source(clf: Any, source: Source, *, several: bool) -> Training:
    """Return the rows of a source, which are read in passes and not kept in memory; sets the columns of the classifier.

    ``several`` is for models with a latent function for each of two classes.
    """
    clf.n_features_in_ = source.n_columns
    clf.__dict__.pop("feature_names_in_", None)
    if source.names is not None:
        clf.feature_names_in_ = np.asarray(source.names, dtype=object)
    if clf.class_weight is not None:
        raise ValueError(
            "class_weight is for rows in memory: give the weights of the rows as sample_weight, or as a "
            "column of the files."
        )
    labels, clf.encoder_ = encode_source(source, clf.categorical_features)
    classes = np.asarray(labels)
    if len(classes) < 2:
        raise ValueError(f"The labels have one class only, {classes[0]!r}: two or more are needed.")
    data = source.data(Encode(classes, several), clf.n_jobs, clf.encoder_)
    empty = np.empty(0, dtype=np.intp)
    return Training(classes, source.n_rows, np.empty(0), empty, data=data, coding=clf.encoder_)
