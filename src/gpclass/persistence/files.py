"""Save a fitted classifier to a file, and load it again."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

import gpclass.learning.draws
import gpclass.learning.passes  # noqa: F401  model files may hold the records of every kind of fit
from gpclass import tables
from gpclass.core.checks import is_integer
from gpclass.estimator import FEATURES, RESULTS, GaussianProcessClassifier
from gpclass.parameters import check_parameters
from gpclass.persistence.codec import Decoder, Encoder
from gpclass.persistence.container import ModelFileError, located, read, write
from gpclass.persistence.kernels import is_number
from gpclass.training import TrainingRows

VERSION = 4  # of the format


def save(estimator: Any, path: str | os.PathLike[str], *, extra: Mapping[str, Any] | None = None) -> None:
    """Write a fitted classifier to one file, in the safetensors format.

    The file contains the whole fitted classifier, including the training data, as numbers and names. It
    appears when it is complete; after an error the old file remains.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted. Kernels must be those of scikit-learn and gpclass, the optimizer a name: code is not saved.
    path : str or path
        The usual ending is ``".safetensors"``.
    extra : mapping, default=None
        Anything that JSON can hold, stored with the model; `load_with_extra` returns it.

    Raises
    ------
    ModelFileError
        A ValueError, for a classifier with parts that a file cannot hold; it names them.
    ImportError
        If the package safetensors is not installed.

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
            f"A {type(estimator).__name__} cannot be saved, expected a GaussianProcessClassifier of gpclass."
        )
    check_is_fitted(estimator)
    params = estimator.get_params(deep=False)
    fitted = {name: value for name, value in vars(estimator).items() if name not in params}
    if unknown := sorted(set(fitted) - RESULTS - FEATURES):
        raise ModelFileError(
            f"The classifier has the attribute {unknown[0]!r}, which fit() does not set and a file does not "
            "hold: delete it before saving."
        )
    if estimator.encoder_ is not None:
        fitted["encoder_"] = estimator.encoder_.columns_
    encoder = Encoder()
    document = {
        "version": VERSION,
        "params": {name: encoder.value(value, name) for name, value in params.items()},
        "fitted": {name: encoder.value(value, name) for name, value in fitted.items()},
        "packages": _packages(),
        "extra": extra,
    }
    try:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"extra cannot be saved, as it is not JSON: {error}.") from None
    write(path, text, encoder.tensors)


def _packages() -> dict[str, str]:
    """Return the versions of the packages that made a model, as information for later readers."""
    from gpclass import __version__

    versions = {"numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
    return {"gpclass": __version__, **versions, "python": platform.python_version()}


def load(path: str | os.PathLike[str]) -> GaussianProcessClassifier:
    """Return the classifier that `save` wrote.

    Nothing in a file is executed. A file that is cut off, damaged, of another version or of something else is
    rejected with one sentence, and none makes `load` use more memory than a few dozen times its size.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    GaussianProcessClassifier
        Fitted. On the same machine its results equal those of the saved one to the last bit.

    Raises
    ------
    ModelFileError
        A ValueError, if the file is not a complete and valid model.
    ImportError
        If the package safetensors is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from gpclass.persistence import load
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     load(file.name)
    Traceback (most recent call last):
        ...
    gpclass.persistence.container.ModelFileError: '...' is not a model file of gpclass, or is cut off or damaged: ...
    """
    return load_with_extra(path)[0]


def load_with_extra(path: str | os.PathLike[str]) -> tuple[GaussianProcessClassifier, dict[str, Any] | None]:
    """Return the classifier that `save` wrote, and the ``extra`` it was given, or None.

    Parameters and errors are those of `load`.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    classifier : GaussianProcessClassifier
    extra : object or None

    Examples
    --------
    >>> import tempfile, os
    >>> from gpclass import GaussianProcessClassifier
    >>> from gpclass.datasets import interval
    >>> X, y, _, _ = interval()
    >>> clf = GaussianProcessClassifier(optimizer=None).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "interval.safetensors")
    ...     save(clf, path, extra={"unit": "hours"})
    ...     again, extra = load_with_extra(path)
    >>> extra
    {'unit': 'hours'}
    """
    text, tensors = read(path)
    with located(path):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise ModelFileError("is damaged: its description is not JSON.") from None
        if not isinstance(document, dict) or not is_integer(document.get("version")):
            raise ModelFileError("has no description of a model.")
        if document["version"] != VERSION:
            advice = "update gpclass" if document["version"] > VERSION else "fit and save the model again"
            raise ModelFileError(
                f"has version {document['version']!s:.20} of the format, and this gpclass reads version "
                f"{VERSION}: {advice}."
            )
        parts = {name: document.get(name) or {} for name in ("params", "fitted", "extra")}
        if not all(isinstance(part, dict) for part in parts.values()):
            raise ModelFileError("has no description of a model.")
        return _build(parts["params"], parts["fitted"], Decoder(tensors)), document.get("extra")


def _build(params: dict[str, Any], fitted: dict[str, Any], decoder: Decoder) -> GaussianProcessClassifier:
    known = set(GaussianProcessClassifier().get_params(deep=False))
    if set(params) != known or not RESULTS <= set(fitted) <= RESULTS | FEATURES:
        raise ModelFileError("has other parameters or attributes than a classifier of this version.")
    out = GaussianProcessClassifier(**{name: decoder.value(code) for name, code in params.items()})
    for name, code in fitted.items():
        setattr(out, name, decoder.value(code))
    try:
        check_parameters(out)
        if out.encoder_ is not None:
            names = getattr(out, "feature_names_in_", None)
            out.encoder_ = tables.Encoder.restored(out.encoder_, out.categorical_features, names)
        _check_whole(out)
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:  # any check of any part may have failed
        raise ModelFileError(f"is not consistent: {error!s:.200}") from None
    return out


def _check_whole(clf: Any) -> None:
    """Raise unless the parts of a classifier are consistent."""
    n_classes, value = clf.n_classes_, clf.log_marginal_likelihood_value_
    whole = is_integer(n_classes) and clf.base_estimator_.n_classes == n_classes >= 2
    _require(whole, "the number of classes")
    _require(_is_vector(clf.classes_, n_classes), "its classes")
    _require(is_integer(clf._seed) and clf._seed >= 0, "its seed")
    _require(value is None or is_number(value), "its evidence")
    if clf.encoder_ is not None:
        _require(len(clf.encoder_.columns_) == clf.n_features_in_, "the columns of its table")
    n_inputs = None if clf.encoder_ is None else len(clf.encoder_.groups_)
    for model in clf.base_estimator_.models:
        if model.kernel.requires_vector_input:
            _require(
                model.posterior.inputs.shape[1:] == (n_inputs or clf.n_features_in_,), "the number of columns"
            )
    names = getattr(clf, "feature_names_in_", None)
    if names is not None:
        texts = _is_vector(names, clf.n_features_in_) and all(isinstance(name, str) for name in names)
        _require(texts, "the names of its columns")
    if clf._rows is not None:  # a model that was fitted in passes does not keep its rows
        _check_rows(clf._rows, n_classes)


def _check_rows(rows: TrainingRows, n_classes: int) -> None:
    """Raise unless positions after copies were merged and classes are consistent."""
    home, truth = rows.home, rows.truth
    n = len(home)
    _require(_is_index(home, n) and home.max() < n, "its rows")
    _require(_is_index(truth, n) and truth.max() < n_classes, "the classes of its rows")


def _is_vector(value: Any, length: int) -> bool:
    return isinstance(value, np.ndarray) and value.shape == (length,)


def _is_index(value: Any, length: int) -> bool:
    return _is_vector(value, length) and value.dtype.kind in "iu" and bool(value.min() >= 0)


def _require(fine: bool, what: str) -> None:
    if not fine:
        raise ModelFileError(f"is not consistent: {what} cannot be right.")
