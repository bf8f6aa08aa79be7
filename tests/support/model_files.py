"""Small classifiers of every kind, and whether two of them say the same."""

from __future__ import annotations

import dataclasses

import numpy as np

from gpclass.core.hyperpriors import Shrinkage
from gpclass.mcmc import MCMC, EllipticalSlice
from gpclass.persistence import load, save

SHORT = MCMC(EllipticalSlice(), n_chains=2, n_draws=6, n_warmup=2, n_thetas=4)


def data(n: int = 24, n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))


GRID = np.random.default_rng(5).normal(size=(6, 2)) * 1.5


def saved(clf, path):
    """Return the classifier after a visit to the disk."""
    save(clf, path / "model.safetensors")
    return load(path / "model.safetensors")


def same(a, b):
    """Assert that two answers are equal to the last bit, in value and in type."""
    if isinstance(a, tuple | list):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            same(getattr(a, field.name), getattr(b, field.name))
    else:
        assert type(a) is type(b)
        x, y = np.asarray(a), np.asarray(b)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert (x.tobytes() == y.tobytes()) if x.dtype.kind == "f" else (x == y).all()


def answers(clf, X):
    """Yield all that a fitted classifier can be asked and what it says, be it a refusal."""
    questions = {
        "predict": lambda: clf.predict(X),
        "proba": lambda: clf.predict_proba(X),
        "log_proba": lambda: clf.predict_log_proba(X),
        "interval": lambda: clf.predict_interval(X),
        "mean": lambda: clf.predict_latent(X),
        "std": lambda: clf.predict_latent(X, return_std=True),
        "cov": lambda: clf.predict_latent(X, return_cov=True),
        "sample": lambda: clf.sample_latent(X, 3, random_state=1),
        "loo": lambda: clf.loo_proba_,
        "score": lambda: clf.loo_log_score_,
        "evidence": lambda: clf.log_marginal_likelihood_value_,
        "evidence at": lambda: clf.log_marginal_likelihood(clf.kernel_.theta + 0.1, eval_gradient=True),
        "theta": lambda: clf.kernel_.theta,
        "bounds": lambda: clf.kernel_.bounds,
        "history": lambda: clf.history_,
        "classes": lambda: clf.classes_,
        "chains": lambda: clf.chains_.f,
        "columns": lambda: clf.n_features_in_,
    }
    for name, question in questions.items():
        try:
            yield name, question()
        except (ValueError, TypeError, AttributeError) as error:
            yield name, str(error)


def assert_same(a, b, X=GRID, rows=True):
    """Assert that two classifiers give the same answers, but for what needs training rows if not ``rows``."""
    for (name, x), (_, y) in zip(answers(a, X), answers(b, X), strict=True):
        if not rows and name in ("evidence at", "loo", "score"):
            assert "the training rows" in y
            continue
        try:
            same(x, y)
        except AssertionError as error:
            raise AssertionError(f"{name} differs") from error
    assert a.kernel_ == b.kernel_
    params, again = a.get_params(deep=False), b.get_params(deep=False)
    priors, others = params.pop("hyperprior") or {}, again.pop("hyperprior") or {}
    assert repr(params) == repr(again)
    if isinstance(priors, Shrinkage):
        assert priors == others
        return
    assert {k: (p.dist.name, p.args, p.kwds) for k, p in priors.items()} == {
        k: (p.dist.name, p.args, p.kwds) for k, p in others.items()
    }
