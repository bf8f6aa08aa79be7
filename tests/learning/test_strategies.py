"""The table of combinations: what it allows fits, what it refuses is refused in its words."""

from __future__ import annotations

import re
import warnings
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import three_classes, two_moons_like
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import CompoundKernel

from gpclass import GaussianProcessClassifier
from gpclass.kernels import RBF
from gpclass.learning.strategies import METHODS, RULES, SAMPLING, SEVERAL, Case, refusal
from gpclass.mcmc import MCMC
from gpclass.sampling import Rejection

X, CLASSES = three_classes(9)
SHORT = {
    "mcmc": MCMC(n_draws=4, n_warmup=2, n_chains=2),
    "rejection": Rejection(20, max_proposals=10**6),
}
OPTIONS = METHODS, ("two classes", *SEVERAL), ("all", "inducing", "passes"), ("learn", "sample")
CASES = [Case(*options) for options in product(*OPTIONS)]
ALLOWED = [case for case in CASES if refusal(case) is None]
REFUSED = [case for case in CASES if refusal(case) is not None]


def fit_case(case):
    """Fit a classifier whose options mean the case."""
    several = case.likelihood in SEVERAL
    clf = GaussianProcessClassifier(
        2.0 * RBF(1.0),
        # Dirichlet classification takes the probit for softmax.
        likelihood=case.likelihood if several else "cloglog" if case.method == "dirichlet" else "probit",
        inference=SHORT.get(case.method, case.method),
        optimizer=None,
        inducing=4 if case.rows != "all" else None,
        hyperparameters=case.hyperparameters,
        random_state=0,
    )
    # Rejection is for a handful of rows.
    rows = slice(None) if case.method != "rejection" else slice(0, 4)
    y = (CLASSES if several else CLASSES == 1)[rows]
    return clf.fit(lambda: [(X[rows], y)]) if case.rows == "passes" else clf.fit(X[rows], y)


def name(case):
    return f"{case.method}-{case.likelihood}-{case.rows}-{case.hyperparameters}"


def is_quick(case):
    """Chains over theta whiten with an approximation at every step: the quickest of them stands for all."""
    return case.hyperparameters != "sample" or case.method in ("laplace", "mcmc")


@pytest.mark.parametrize(
    "case", [c if is_quick(c) else pytest.param(c, marks=pytest.mark.slow) for c in ALLOWED], ids=name
)
def test_what_the_table_allows_is_fitted(case, monkeypatch):
    if case.method != "mcmc":  # the chains that an approximation starts
        monkeypatch.setattr("gpclass.learning.draws.MCMC", Short)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains this short
        clf = fit_case(case)
    n_classes = 3 if case.likelihood in SEVERAL else 2
    p = clf.predict_proba(X)
    assert p.shape == (9, n_classes)
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    model = clf.base_estimator_
    assert (model.draws is not None) == ("sampling" in case.strategy)
    assert (model.inducing is not None) == (case.strategy == "passes over the rows")
    assert (model.sites is None) or "sites" in case.strategy or case.method == "mcmc"
    if case.hyperparameters == "sample":
        assert clf.chains_.theta.shape[-1] == 2


class Short(MCMC):
    """Very short chains, in the place of the default ones."""

    __slots__ = ()
    name = "_short"

    def __init__(self, **options):
        super().__init__(**({"n_draws": 3, "n_warmup": 2, "n_chains": 2} | options))


@pytest.mark.parametrize("case", REFUSED, ids=name)
def test_what_the_table_refuses_is_refused_in_its_words(case):
    why = refusal(case)
    with pytest.raises(ValueError, match=re.escape(f"{why[0].upper()}{why[1:]}.")):
        fit_case(case)


def test_every_rule_is_met():
    """Each rule is the first to refuse some case of the table or one of these."""
    cases = [
        *REFUSED,
        Case("mcmc", "softmax", kernel="per class"),
        Case("vi", "softmax", "inducing", kernel="per class"),
        Case("vi", "two classes", "inducing", inputs="structured"),
        Case("vi", "two classes", "passes", combine="one_vs_rest"),
        Case("vi", "softmax", combine="one_vs_one"),
        Case("dirichlet", "softmax", combine="one_vs_rest"),
    ]
    met = {refusal(case) for case in cases}
    assert met == set(RULES)


@pytest.mark.parametrize(
    ("options", "labels", "words"),
    [
        (
            {"kernel": CompoundKernel([RBF()] * 3), "inference": "mcmc"},
            CLASSES,
            "Sampling needs one kernel for all classes",
        ),
        (
            {"kernel": CompoundKernel([RBF()] * 3), "inducing": 4, "likelihood": "softmax"},
            CLASSES,
            "Inducing inputs need one kernel for all classes",
        ),
        ({"likelihood": "cloglog"}, CLASSES, "'cloglog' is for two classes and cannot be used for 3 classes"),
        ({"likelihood": "softmax", "multi_class": "one_vs_rest"}, CLASSES, "needs multi_class='joint'"),
        (
            {"inference": "dirichlet", "multi_class": "one_vs_rest"},
            CLASSES,
            "has its own targets for all classes",
        ),
        ({"inference": "dirichlet", "likelihood": "label_noise"}, CLASSES == 1, "has the softmax likelihood"),
    ],
)
def test_refusals_of_the_classifier(options, labels, words):
    with pytest.raises(ValueError, match=words):
        GaussianProcessClassifier(**{"optimizer": None, "kernel": RBF()} | options).fit(X, labels)


def test_the_multinomial_probit_has_no_inducing_inputs():
    clf = GaussianProcessClassifier(RBF(), likelihood="multiprobit", optimizer=None, inducing=4)
    with pytest.raises(ValueError, match="multinomial probit has no form with inducing inputs"):
        clf.fit(X, CLASSES)


def test_strategies_have_names():
    assert {case.strategy for case in ALLOWED} == {
        "sites",
        "sites with inducing inputs",
        "passes over the rows",
        "sampling f",
        "sampling f and theta",
    }
    assert all("sampling" in case.strategy for case in ALLOWED if case.method in SAMPLING)


def test_a_good_part_of_all_combinations_is_possible():
    assert len(ALLOWED) > 0.2 * len(CASES)


@pytest.mark.parametrize("inference", ["laplace", "ep", "vi"])
@pytest.mark.parametrize("likelihood", ["logit", "probit"])
def test_leave_one_out_is_near_really_leaving_out(inference, likelihood):
    X, y = two_moons_like(30)
    options = {"kernel": 3.0 * RBF(1.0), "inference": inference, "likelihood": likelihood, "optimizer": None}
    clf = GaussianProcessClassifier(**options).fit(X, y)
    for i in range(0, 30, 6):
        rest = GaussianProcessClassifier(**options).fit(np.delete(X, i, 0), np.delete(y, i))
        assert np.abs(clf.loo_proba_[i] - rest.predict_proba(X[i : i + 1])[0]).max() < 0.02
    own = clf.loo_proba_[np.arange(30), (y > 0).astype(int)]
    assert_allclose(clf.loo_log_score_, np.log(own).mean(), rtol=1e-12)


def test_leave_one_out_knows_copies_and_classes():
    X, y = two_moons_like(20)
    options = {"kernel": 3.0 * RBF(1.0), "inference": "ep", "optimizer": None}
    twice = GaussianProcessClassifier(**options).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert twice.loo_proba_.shape == (40, 2)
    assert_allclose(twice.loo_proba_[::2], twice.loo_proba_[1::2])
    one = GaussianProcessClassifier(**options).fit(
        np.delete(np.repeat(X, 2, axis=0), 0, 0), np.delete(np.repeat(y, 2), 0)
    )
    assert np.abs(one.predict_proba(X[:1]) - twice.loo_proba_[0]).max() < 0.02
    three = GaussianProcessClassifier(**options).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert_allclose(three.loo_proba_.sum(axis=1), 1.0)
    three.set_params(multi_class="one_vs_one").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert not hasattr(three, "loo_proba_")
