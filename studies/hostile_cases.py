"""Small classification problems that are hard on the arithmetic, each made from its seed alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF, ConstantKernel, DotProduct, Matern, NeuralNetwork

METHODS = ("laplace", "ep", "vi", "dirichlet")
LIKELIHOODS = ("logit", "probit", "softmax", "multiprobit", "cloglog")
KERNELS = (None, "rbf", "dot", "matern", "network")
COMBINATIONS = ("joint", "one_vs_rest", "one_vs_one")


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One hostile fit: the data, the classifier, the inputs to predict at, and all of it in words."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    classifier: GaussianProcessClassifier
    test: np.ndarray
    words: dict[str, Any]


def make(seed: int) -> Case:
    """Return the case of a seed.

    Examples
    --------
    >>> case = make(3)
    >>> len(case.X) == len(case.y)
    True
    """
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(2, 31)), int(rng.choice([2, 2, 2, 3, 4, 6]))
    n_classes = min(n_classes, n)
    d = int(rng.integers(1, 7))
    codes, labels = _codes(rng, n, n_classes)
    X, inputs = _inputs(rng, codes, d)
    y, soft = _soften(rng, codes, n_classes)
    weight, weights = _weights(rng, n)
    clf, words = _classifier(rng, d, seed)
    far = X * 10.0 ** rng.uniform(-3.0, 3.0)
    test = np.concatenate([X, far, np.zeros((1, d)), rng.normal(size=(3, d)) * np.abs(X).max()])
    words |= {"n": n, "d": d, "classes": n_classes, "labels": labels, "inputs": inputs}
    return Case(X, y, weight, clf, test, words | {"soft": soft, "weights": weights})


def _codes(rng: np.random.Generator, n: int, n_classes: int) -> tuple[np.ndarray, str]:
    """Return labels with at least one row of every class, and what they are like."""
    kind = str(rng.choice(["balanced", "one-sided", "random"]))
    if kind == "one-sided":  # one row of every class but the first
        codes = np.zeros(n, dtype=int)
        codes[:n_classes] = np.arange(n_classes)
    elif kind == "balanced":
        codes = np.arange(n) % n_classes
    else:
        codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return rng.permutation(codes), kind


def _inputs(rng: np.random.Generator, codes: np.ndarray, d: int) -> tuple[np.ndarray, str]:
    """Return inputs that may be separable, repeated, constant in some columns, and of any scale."""
    n, said = len(codes), []
    X = rng.normal(size=(n, d))
    kind = str(rng.choice(["noise", "separable", "separable by far", "lattice"]))
    said.append(kind)
    if kind.startswith("separable"):
        X[:, 0] = codes * (1e4 if kind.endswith("far") else 4.0) + 0.1 * X[:, 0]
    elif kind == "lattice":
        X = rng.integers(0, 2, (n, d)).astype(float)
    if rng.random() < 0.3:  # whole rows again, with the same label or with another
        some = rng.integers(0, n, n)
        X = np.where(rng.random((n, 1)) < 0.6, X[some], X)
        said.append("repeated rows")
    if rng.random() < 0.3:
        X[:, rng.integers(0, d, max(1, d // 2))] = rng.normal()
        said.append("constant columns")
    if rng.random() < 0.05:
        X[:] = X[0]
        said.append("all rows equal")
    scaling = str(rng.choice(["unit", "common", "per column"]))
    exponent = rng.uniform(-8.0, 8.0, 1 if scaling == "common" else d)
    if scaling != "unit":
        X = X * 10.0**exponent
        said.append("scale " + " to ".join(f"1e{e:.0f}" for e in sorted({exponent.min(), exponent.max()})))
    if rng.random() < 0.2:
        X = X + 10.0 ** rng.uniform(0.0, 8.0)
        said.append("far from zero")
    return X, ", ".join(said)


def _soften(rng: np.random.Generator, codes: np.ndarray, n_classes: int) -> tuple[np.ndarray, str]:
    """Return labels, as numbers, as texts, or as class probabilities."""
    kind = str(rng.choice(["no", "no", "no", "texts", "yes", "nearly hard"]))
    if kind == "no":
        return codes, kind
    if kind == "texts":
        return np.array([f"class {c}" for c in codes]), kind
    P = np.eye(n_classes)[codes]
    share = 1e-9 if kind == "nearly hard" else rng.uniform(0.01, 0.9)
    return (1.0 - share) * P + share * rng.dirichlet(np.ones(n_classes), len(codes)), kind


def _weights(rng: np.random.Generator, n: int) -> tuple[np.ndarray | None, str]:
    """Return the weights of the rows."""
    kind = str(rng.choice(["none", "none", "none", "moderate", "wide", "some zero", "integer"]))
    if kind == "none":
        return None, kind
    if kind == "wide":
        return 10.0 ** rng.uniform(-6.0, 4.0, n), kind
    if kind == "some zero":
        return rng.integers(0, 2, n) * rng.uniform(0.5, 2.0, n), kind
    return (rng.integers(1, 50, n) if kind == "integer" else rng.uniform(0.2, 5.0, n)), kind


def _kernel(rng: np.random.Generator, kind: str | None, d: int) -> Any:
    """Return a kernel with hyperparameters anywhere."""
    wide = rng.random() < 0.4
    length = 10.0 ** rng.uniform(-4.0, 4.0) if wide else 1.0
    constant = 10.0 ** rng.uniform(-4.0, 4.0) if wide else 1.0
    if kind is None:
        return None
    if kind == "rbf":
        return ConstantKernel(constant) * RBF(np.full(d, length) if rng.random() < 0.5 else length)
    if kind == "matern":
        return ConstantKernel(constant) * Matern(length, nu=float(rng.choice([0.5, 1.5, 2.5])))
    if kind == "dot":
        return ConstantKernel(constant) * DotProduct(length)
    return ConstantKernel(constant) * NeuralNetwork()


def _classifier(
    rng: np.random.Generator, d: int, seed: int
) -> tuple[GaussianProcessClassifier, dict[str, Any]]:
    """Return a classifier and its parameters in words."""
    method, likelihood = str(rng.choice(METHODS)), str(rng.choice(LIKELIHOODS))
    kind = KERNELS[int(rng.integers(len(KERNELS)))]
    combine = str(rng.choice(COMBINATIONS, p=[0.6, 0.25, 0.15]))
    if likelihood in ("softmax", "multiprobit") and rng.random() < 0.8:
        combine = "joint"  # the others are refused
    if method == "dirichlet" and rng.random() < 0.7:
        likelihood = "probit"  # the default, which means that none was named
    kernel, learned = _kernel(rng, kind, d), bool(rng.random() < 0.6)
    clf = GaussianProcessClassifier(
        kernel,
        inference=method,
        likelihood=likelihood,
        multi_class=combine,
        optimizer="fmin_l_bfgs_b" if learned else None,
        random_state=seed,
    )
    words = {"method": method, "likelihood": likelihood, "combine": combine}
    return clf, words | {"kernel": str(kernel), "learned": learned}
