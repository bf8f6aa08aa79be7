"""Save a fitted classifier to a file, and load it again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import gpclass.learning.draws
import gpclass.learning.passes  # noqa: F401  model files may hold the records of every kind of fit
from gpclass import tables
from gpclass.estimator import FEATURES, RESULTS, GaussianProcessClassifier
from gpclass.parameters import check_parameters
from gpclass.persistence.codec import Decoder, Encoder, ModelFileError, reading, write

VERSION = 5  # version of the format


def save(estimator: Any, path: str | os.PathLike[str], *, extra: Mapping[str, Any] | None = None) -> None:
    """Write a fitted classifier, including its training data, to one file in the safetensors format.

    The file appears when it is complete; after an error the old file remains. A `ModelFileError`, a ValueError, names
    the parts of a classifier that a file cannot hold.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted. Kernels must be those of scikit-learn and gpclass, the optimizer a name: code is not saved.
    path : str or path
        The usual ending is ``".safetensors"``.
    extra : mapping, default=None
        Anything that JSON can hold, stored with the model; `load_with_extra` returns it.

    Examples
    --------
    >>> import tempfile, os
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.datasets import interval
    >>> from gpclass.persistence import load, save
    >>> X, y, X_test, y_test = interval()
    >>> clf = GaussianProcessClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(clf, os.path.join(directory, "interval.safetensors"))
    ...     again = load(os.path.join(directory, "interval.safetensors"))
    >>> bool((again.predict_proba(X_test) == clf.predict_proba(X_test)).all())
    True
    """
    if type(estimator) is not GaussianProcessClassifier:
        raise ModelFileError(
            f"A {type(estimator).__name__} cannot be saved, expected a GaussianProcessClassifier of gpclass, "
            "such as the last step of a pipeline, pipeline[-1]."
        )
    check_is_fitted(estimator)
    params = estimator.get_params(deep=False)
    fitted = {name: value for name, value in vars(estimator).items() if name not in params}
    if unknown := sorted(set(fitted) - RESULTS - FEATURES):
        raise ModelFileError(
            f"The classifier has the attribute {unknown[0]!r}, which fit() does not set and a file cannot "
            "hold: delete it before saving."
        )
    if estimator.encoder_ is not None:
        fitted["encoder_"] = estimator.encoder_.columns_
    encoder = Encoder()
    try:
        document = {
            "version": VERSION,
            "params": {name: encoder.value(value, name) for name, value in params.items()},
            "fitted": {name: encoder.value(value, name) for name, value in fitted.items()},
        }
        _restored(document, encoder.tensors)  # what `save` writes, `load` can read
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The classifier cannot be saved: {str(error).removesuffix('.')}.") from None
    try:
        text = json.dumps(document | {"extra": extra}, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"extra cannot be saved because it is not JSON: {error}.") from None
    write(path, text, encoder.tensors)


def load(path: str | os.PathLike[str]) -> GaussianProcessClassifier:
    """Return the classifier that `save` wrote.

    Nothing in a file is executed. A file that is cut off, damaged, of another version or of something else is
    rejected with a `ModelFileError`. `load` never uses more memory than a few dozen times the size of the file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    GaussianProcessClassifier
        Fitted. On the same machine its results equal those of the saved one to the last bit.
    """
    return load_with_extra(path)[0]


def load_with_extra(path: str | os.PathLike[str]) -> tuple[GaussianProcessClassifier, dict[str, Any] | None]:
    """Return the classifier, as `load` does, and the ``extra`` that was passed to `save`, or None."""
    with reading(path) as (text, tensors):
        document = json.loads(text)
        version = document["version"]
        if version != VERSION:
            advice = "update gpclass" if version > VERSION else "fit and save the model again"
            raise ModelFileError(
                f"has version {version!s:.20} of the format, but this gpclass reads version {VERSION}: {advice}."
            )
        return _restored(document, tensors), document["extra"]


def _restored(document: Mapping[str, Any], tensors: dict[str, Any]) -> GaussianProcessClassifier:
    """Return the classifier that a document describes; raise an error if its parts do not belong together."""
    decoder = Decoder(tensors)
    params, fitted = ({k: decoder.value(v) for k, v in document[of].items()} for of in ("params", "fitted"))
    if not RESULTS <= set(fitted) <= RESULTS | FEATURES:
        raise ModelFileError("has different attributes than a classifier of this version.")
    clf = GaussianProcessClassifier(**params)
    clf.__dict__ |= fitted
    check_parameters(clf)
    n_classes, n_inputs = clf.base_estimator_.n_classes, getattr(clf, "n_features_in_", None)
    if clf.n_classes_ != n_classes or np.shape(clf.classes_) != (n_classes,) or n_classes < 2:
        raise ModelFileError("is not consistent: the number of classes cannot be right.")
    if clf.encoder_ is not None:
        names = getattr(clf, "feature_names_in_", None)
        clf.encoder_ = tables.Encoder.restored(clf.encoder_, clf.categorical_features, names)
        n_inputs = len(clf.encoder_.groups_) if len(clf.encoder_.columns_) == n_inputs else None
    for model in clf.base_estimator_.models:
        if model.kernel.requires_vector_input and model.posterior.inputs.shape[1:] != (n_inputs,):
            raise ModelFileError("is not consistent: the number of columns cannot be right.")
    return clf
