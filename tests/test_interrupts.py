"""An interrupt ends a fit soon, with the best model so far and one warning, or with the previous fit untouched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import interrupts
import numpy as np
import pytest
from interrupts import KINDS, Outcome, at_call, count_calls, faults, interrupted
from sklearn.exceptions import ConvergenceWarning

from gpclass import GaussianProcessClassifier
from gpclass.learning.problem import SiteObjective

MOMENTS = 20


@pytest.fixture(autouse=True)
def _usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", KINDS)
def test_an_interrupt_at_any_call_leaves_a_sound_model(name):
    kind = replace(KINDS[name], n_rows=KINDS[name].n_rows // 4)
    whole = count_calls(kind)
    for fraction in (0.0, 0.1, 0.5, 0.98):
        outcome = interrupted(kind, lambda n=1 + int(fraction * whole): at_call(n))
        assert not list(faults(outcome)), (fraction, outcome)
        assert outcome.sent
        assert outcome.kept != bool(outcome.raised)
        assert outcome.raised or fraction > 0.0


def test_an_interrupt_of_the_first_stage_ends_learning_with_inducing_inputs(monkeypatch):
    """With EP or Laplace on inducing inputs, learning on all rows must not begin after that."""
    kind = KINDS["fitc laplace"]
    X, y = kind.data()
    whole, sizes = SiteObjective.evaluate, list[int]()

    def evaluate(self, *args, **options):
        if len(sizes) == 12:
            raise KeyboardInterrupt
        sizes.append(len(self.problem.X))
        return whole(self, *args, **options)

    monkeypatch.setattr(SiteObjective, "evaluate", evaluate)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        clf = GaussianProcessClassifier(**kind.options, random_state=0).fit(X, y)
    assert max(sizes) < len(X)
    assert len(sizes) == 12
    assert clf.score(X, y) > 0.75


def test_an_interrupt_of_the_last_inference_keeps_the_hyperparameters(monkeypatch):
    from gpclass.learning import strategies

    X, y = replace(KINDS["vi"], n_rows=150).data()
    expected = GaussianProcessClassifier("rbf").fit(X, y)
    right, calls = strategies.left_out, []

    def interrupts_once(*args):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return right(*args)

    monkeypatch.setattr(strategies, "left_out", interrupts_once)
    with pytest.warns(
        ConvergenceWarning, match="Learning was interrupted: the best hyperparameters"
    ) as caught:
        clf = GaussianProcessClassifier("rbf").fit(X, y)
    assert len(caught) == 1
    assert clf.base_estimator_.interrupted
    np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))


def test_a_second_interrupt_goes_through(monkeypatch):
    def interrupts_always(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpclass.learning.strategies.left_out", interrupts_always)
    clf = GaussianProcessClassifier("rbf")
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*replace(KINDS["vi"], n_rows=150).data())
    assert not hasattr(clf, "base_estimator_")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_signals_at_random_moments(name):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, interrupts.__file__, name, str(MOMENTS), "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, check=True)
    outcomes = [Outcome(**json.loads(line)) for line in ran.stdout.splitlines()]
    assert len(outcomes) == MOMENTS
    assert any(outcome.sent for outcome in outcomes)
    for outcome in outcomes:
        assert not list(faults(outcome)), outcome
