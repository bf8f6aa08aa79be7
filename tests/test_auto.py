"""inference="auto": VI for two classes, the better of VI and Dirichlet classification for more."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from gpclass import GaussianProcessClassifier
from gpclass.inference import VI, Dirichlet
from gpclass.kernels import RBF, CompoundKernel


def classifier(**options):
    return GaussianProcessClassifier("rbf-shared", random_state=0, **options)


def noisy_classes(n, seed=0):
    """Return two informative columns, and three classes of which a third of the labels is random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] > 0.5, 2, np.where(X[:, 1] > 0.0, 1, 0))
    return X, np.where(rng.random(n) < 0.35, rng.integers(0, 3, n), y)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_on_all_of_a_few_rows_the_better_leave_one_out_score_wins(load):
    X, y = load(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[::2], y[::2]
    scores = {m: classifier(inference=m).fit(X, y).loo_log_score_ for m in ("vi", "dirichlet")}
    chosen = classifier().fit(X, y)
    assert type(chosen.inference_) is {"vi": VI, "dirichlet": Dirichlet}[max(scores, key=scores.__getitem__)]
    # VI starts from the kernel that Dirichlet classification ended with: the same maximum, to its tolerance.
    assert chosen.loo_log_score_ == pytest.approx(max(scores.values()), abs=2e-3)


def test_many_clearly_separated_classes_are_left_to_dirichlet_classification():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=100, random_state=0)
    losses = {}
    for method in ("auto", "vi"):
        clf = GaussianProcessClassifier(9.0 * RBF(30.0), inference=method).fit(X, y)
        losses[method] = -np.log(clf.predict_proba(X_test)[np.arange(len(y_test)), y_test]).mean()
        if method == "auto":
            assert isinstance(clf.inference_, Dirichlet)
    assert losses["auto"] < losses["vi"]


def test_noisy_labels_are_left_to_vi():
    X, y = noisy_classes(260)
    assert isinstance(classifier().fit(X, y).inference_, VI)


TWO = {"y": "two"}
CASES = {
    "two classes": ({}, TWO, VI),
    "likelihood of the user": ({"likelihood": "softmax"}, {}, VI),
    "fixed hyperparameters": ({"optimizer": None}, {}, VI),
    "inducing inputs": ({"inducing": 20}, {}, Dirichlet),
    "fractions of rows": ({}, {"weight": True}, Dirichlet),
}


@pytest.mark.parametrize("case", CASES)
def test_where_there_is_no_choice(case):
    options, given, method = CASES[case]
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    kind, weight = given.get("y"), np.linspace(0.3, 1.7, len(X)) if "weight" in given else None
    if kind == "two":
        X, y = X[y > 0], y[y > 0]
    clf = classifier(**options).fit(X, y, sample_weight=weight)
    assert isinstance(clf.inference_, method)
    assert (clf.predict(X) == y).mean() > 0.9


@pytest.mark.filterwarnings("ignore:The optimal value found")  # a class between two others needs no function
def test_a_kernel_for_each_class_is_for_vi():
    X, y = load_iris(return_X_y=True)
    kernel = CompoundKernel([1.0 * RBF(1.0), 1.0 * RBF(1.0), 1.0 * RBF(1.0)])
    assert isinstance(GaussianProcessClassifier(kernel).fit(X[::3], y[::3]).inference_, VI)


@pytest.mark.parametrize(
    ("method", "after", "kept"), [(VI, 2, (VI, Dirichlet)), (VI, 0, Dirichlet), (Dirichlet, 2, Dirichlet)]
)
def test_an_interruption_keeps_what_was_reached(method, after, kept, monkeypatch):
    from gpclass.learning.problem import SiteObjective

    X, y = load_iris(return_X_y=True)
    whole, count = SiteObjective.evaluate, [0]

    def evaluate(self, *args, **options):
        count[0] += isinstance(self.problem.inference, method)
        if count[0] > after:
            raise KeyboardInterrupt
        return whole(self, *args, **options)

    monkeypatch.setattr(SiteObjective, "evaluate", evaluate)
    with pytest.warns(UserWarning, match="interrupted"):
        clf = classifier().fit(X, y)
    assert isinstance(clf.inference_, kept)
    assert clf.score(X, y) > 0.9


def test_what_matters_to_one_of_two_methods_is_not_warned_about():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(max_iter_predict=80).fit(X[::2], y[::2])
