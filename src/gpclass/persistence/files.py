"""A fitted classifier to a file, and back."""

from __future__ import annotations

import json
import os
import platform
from itertools import combinations
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from gpclass.estimator import GaussianProcessClassifier
from gpclass.kernels import diag, matrix
from gpclass.learning.joint import JointModel
from gpclass.learning.joint_sampled import JointSampledModel
from gpclass.learning.multiclass import OneVsOne, OneVsRest
from gpclass.parameters import check_parameters
from gpclass.persistence.codec import Decoder, Encoder
from gpclass.persistence.container import ModelFileError, parse_json, read, write
from gpclass.persistence.registry import REGISTRY
from gpclass.persistence.schema import Sizes
from gpclass.posteriors.mixture import MixturePosterior
from gpclass.sparse.model import InducingJointModel, InducingModel, without_rows
from gpclass.validation import take

# What fit() leaves in a classifier, and whether it is always there.
FITTED = {
    "base_estimator_": True,
    "_seed": True,
    "_home": True,
    "classes_": True,
    "n_classes_": True,
    "log_marginal_likelihood_value_": True,
    "n_features_in_": False,
    "feature_names_in_": False,
}
PARAMETERS = {
    "kernel": "kernel|none",
    "likelihood": "text|likelihood",
    "inference": "text|approximation|sampling",
    "optimizer": "text|none",
    "n_restarts_optimizer": "count",
    "max_iter_predict": "count",
    "warm_start": "bool",
    "copy_X_train": "bool",
    "random_state": "count|none",
    "multi_class": "text",
    "n_jobs": "integer|none",
    "hyperparameters": "text",
    "hyperprior": "any",
    "inducing": "text|none|count|float[m,d]|Inducing",
    "class_weight": "any",
    "cost_matrix": "any",
    "integration": "text",
    "verbose": "integer|bool",
}


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to one file, in the safetensors format.

    The file holds all that the classifier knows, training data included, as numbers and names. It appears
    under its name when it is whole; an error leaves whatever was there before.

    Parameters
    ----------
    estimator : GaussianProcessClassifier
        Fitted. Kernels must be those of scikit-learn and gpclass, the optimizer a name: code is not saved.
    path : str or path
        ``".safetensors"`` is a good ending.

    Raises
    ------
    ModelFileError
        A ValueError, for a classifier with parts that no file holds; it names them.

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
    from gpclass import __version__

    if type(estimator) is not GaussianProcessClassifier:
        raise ModelFileError(
            f"A {type(estimator).__name__} cannot be saved, expected a GaussianProcessClassifier of gpclass."
        )
    check_is_fitted(estimator)
    params = estimator.get_params(deep=False)
    fitted = {name: value for name, value in vars(estimator).items() if name not in params}
    fitted["base_estimator_"] = without_rows(estimator.base_estimator_)
    if strange := sorted(set(fitted) - set(FITTED)):
        raise ModelFileError(
            f"The classifier has the attribute {strange[0]!r}, which fit() does not set and a file does not "
            "hold: delete it before saving."
        )
    _check_parameters(params)
    encoder = Encoder()
    document = {
        "params": {name: encoder.value(value, name) for name, value in params.items()},
        "fitted": {name: encoder.value(value, name) for name, value in fitted.items()},
        "versions": {
            "gpclass": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    write(path, {"model": text}, encoder.tensors)


def _check_parameters(params: dict[str, Any]) -> None:
    for name, value in params.items():
        if not REGISTRY.fits(PARAMETERS[name], value, Sizes()):
            hint = "give an integer" if name == "random_state" else "use set_params() to give another"
            raise ModelFileError(
                f"The parameter {name} is {value!r:.80}, which a model file cannot hold, as it has no code: "
                f"{hint}, then save again."
            )


# ------------------------------------------------------------------------------------ load


def load(path: str | os.PathLike[str]) -> GaussianProcessClassifier:
    """Return the classifier that `save` wrote.

    Nothing in a file is run. A file that is cut off, damaged, of a newer version or of something else is
    refused with one sentence, and none makes `load` take more memory than a few dozen times its size.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    GaussianProcessClassifier
        Fitted; whatever it returns is, on the same machine, what the saved one did to the last bit.

    Raises
    ------
    ModelFileError
        A ValueError, if the file is not a whole and possible model.

    Examples
    --------
    >>> import tempfile
    >>> from gpclass.persistence import load
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     load(file.name)
    Traceback (most recent call last):
        ...
    gpclass.persistence.container.ModelFileError: '...' is not a model file of gpclass: ...
    """
    strings, tensors = read(path)
    try:
        return _build(strings, tensors)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!r} {error}") from None


def _build(strings: dict[str, str], tensors: dict[str, Any]) -> GaussianProcessClassifier:
    document = parse_json(strings.get("model", ""))
    parts = [document.get(name) if isinstance(document, dict) else None for name in ("params", "fitted")]
    whole = [part for part in parts if isinstance(part, dict)]
    if len(whole) < 2:
        raise ModelFileError("has no description of a model.")
    decoder = Decoder(tensors)
    params, fitted = ({name: decoder.value(code) for name, code in part.items()} for part in whole)
    missing = {name for name, always in FITTED.items() if always} - set(fitted)
    if set(params) != set(PARAMETERS) or not set(fitted) <= set(FITTED) or missing:
        raise ModelFileError("has other parameters or attributes than a classifier of this version.")
    out = GaussianProcessClassifier(**params)
    for name, value in fitted.items():
        setattr(out, name, value)
    try:
        _check_parameters(params)
        check_parameters(out)
        with np.errstate(all="ignore"):
            _check_whole(out)
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:  # whatever does not fit, wherever it is found
        raise ModelFileError(f"does not hold together: {error!s:.200}") from None
    return out


def _check_whole(clf: Any) -> None:
    """Raise unless the parts of a classifier belong together."""
    base, n_classes = clf.base_estimator_, clf.n_classes_
    joint = (JointModel, JointSampledModel, InducingJointModel)
    known = (OneVsRest, OneVsOne, *joint, *REGISTRY.groups["model"])
    _require(type(base) in known, "it has no fitted model")
    _require(isinstance(clf.classes_, np.ndarray) and clf.classes_.shape == (n_classes,), "its classes")
    _require(_count_of(base) == n_classes >= 2, "the number of classes")
    _require(REGISTRY.fits("count", clf._seed, Sizes()), "its seed")
    _require(REGISTRY.fits("number|none", clf.log_marginal_likelihood_value_, Sizes()), "its evidence")
    for model in base.models:
        for kernel, inputs in _kernels(model):
            _require(len(inputs) > 0, "its inputs")
            row = take(inputs, [0])
            _require(bool(np.isfinite(matrix(kernel, row, row)).all()), "its kernel")
            if kernel.requires_vector_input:
                _require(inputs.shape[1:] == (clf.n_features_in_,), "the number of columns")
        if not isinstance(model.posterior, MixturePosterior):
            _check_variance(model)
    names = getattr(clf, "feature_names_in_", None)
    if names is not None:
        texts = isinstance(names, np.ndarray) and all(isinstance(name, str) for name in names.ravel())
        _require(texts and names.shape == (clf.n_features_in_,), "the names of its columns")
    _check_home(clf)


def _check_variance(model: Any) -> None:
    """Raise unless data leave a latent value less uncertain than it was, at a few of them."""
    rows = take(model.posterior.inputs, range(min(4, len(model.posterior.inputs))))
    mean, var = model.latent(rows)
    parts = getattr(model.posterior, "kernels", None) or [model.posterior.kernel]
    prior = np.max([diag(kernel, rows) for kernel in parts], axis=0)
    share = var.T / np.maximum(prior, 1e-300)
    _require(bool(np.isfinite(mean).all() and share.max() <= 1.001), "its posterior")


def _check_home(clf: Any) -> None:
    kept, home, truth = clf._home
    if all(isinstance(model, InducingModel | InducingJointModel) for model in clf.base_estimator_.models):
        _require(clf._home == (None, None, None), "its rows")
        return
    sizes = Sizes(c=clf.n_classes_)
    kinds = (("index[n]", kept), ("index[n]|none", home), ("index[n]|float[n,c]", truth))
    _require(all(REGISTRY.fits(kind, value, sizes) for kind, value in kinds), "its rows")
    if truth.ndim == 1:
        _require(bool(truth.max(initial=0) < clf.n_classes_), "the classes of its rows")
    if home is not None and not isinstance(clf.base_estimator_, OneVsOne):
        rows = [_loo_rows(model) for model in clf.base_estimator_.models]
        _require(min(rows) == max(rows) > home.max(initial=0), "the rows left out")


def _loo_rows(model: Any) -> int:
    kept = "loo" in REGISTRY.schemas[type(model).__name__].fields  # else it is worked out from draws
    return len(model.loo) if kept else int(model.draws.shape[1])


def _count_of(base: Any) -> int:
    """Return how many classes a fitted model tells apart; 0 if its parts do not fit."""
    if isinstance(base, OneVsRest):
        return len(base.models)
    if isinstance(base, OneVsOne):
        n_classes = 1 + max((pair[-1] for pair in base.pairs), default=0)
        # Not the list of all pairs of a number that a file made up.
        whole = n_classes * (n_classes - 1) == 2 * len(base.pairs) and len(base.pairs) == len(base.models)
        return n_classes if whole and list(base.pairs) == list(combinations(range(n_classes), 2)) else 0
    if isinstance(base, JointModel):
        return base.posterior.n_classes if base.loo.shape[1] == base.posterior.n_classes else 0
    return base.n_classes if isinstance(base, JointSampledModel) else 2


def _kernels(model: Any) -> list[tuple[Any, Any]]:
    """Return all kernels that a model predicts or learns with, and the inputs that they are for."""
    posterior = model.posterior
    inside = posterior.components if isinstance(posterior, MixturePosterior) else [posterior]
    pairs = [
        (k, posterior.inputs) for part in inside for k in getattr(part, "kernels", None) or [part.kernel]
    ]
    own = [model.kernel, model.problem.kernel]
    return pairs + [
        (k, model.problem.X) for kernel in own for k in getattr(kernel, "kernels", None) or [kernel]
    ]


def _require(fine: bool, what: str) -> None:
    if not fine:
        raise ModelFileError(f"does not hold together: {what} cannot be.")
