"""Draws of finitely many values and of labels against their probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from draws import LIKELY, MANY
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gpclass.sampling import (
    draw_labels,
    inversion_discrete,
)


def fits(counts, p):
    return stats.chisquare(counts[p > 0], counts.sum() * p[p > 0] / p.sum()).pvalue > LIKELY


def test_discrete_inversion():
    p = np.array([0.0, 3.0, 0.5, 0.0, 0.02, 8.0, 0.0])
    counts = np.bincount(inversion_discrete(p, size=MANY, rng=0), minlength=7)
    assert (counts[p == 0] == 0).all()
    assert fits(counts, p)
    x = inversion_discrete(stats.poisson(4.0).pmf, np.arange(40), size=(10, MANY // 10), rng=1)
    assert fits(
        np.bincount(np.minimum(x.ravel(), 12)), np.append(stats.poisson(4.0).pmf(range(12)), 0.000915233)
    )
    pairs = inversion_discrete([1, 1], [[1.0, 2.0], [3.0, 4.0]], size=8, rng=0)
    assert pairs.shape == (8, 2)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.0, 1e308), min_size=1, max_size=8), st.integers(0, 10**6))
def test_what_has_no_probability_is_never_drawn(p, seed):
    p = np.array(p)
    if not p.any():
        return
    assert (p[inversion_discrete(p, size=200, rng=seed)] > 0).all()
    assert (p[draw_labels(np.tile(p, (3, 1)), 70, seed)] > 0).all()


def test_labels_follow_their_rows():
    P = np.vstack([np.random.default_rng(0).dirichlet(np.ones(5), size=6), [0, 0.5, 0, 0.5, 0]])
    L = draw_labels(P, MANY, rng=3)
    assert L.shape == (7, MANY)
    for row, p in zip(L, P, strict=True):
        counts = np.bincount(row, minlength=5)
        assert (counts[p == 0] == 0).all()
        assert fits(counts, p)
    assert abs(np.corrcoef(L[:6])[np.triu_indices(6, 1)]).max() < 5.0 / MANY**0.5  # rows are independent
    assert set(draw_labels(P, 50, 0, classes=list("abcde"))[6]) == {"b", "d"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inversion_discrete([0.5, -0.1]), "pmf has -0.1"),
        (lambda: inversion_discrete([0.0, 0.0]), "pmf sums to 0.0"),
        (lambda: inversion_discrete([0.5, np.nan]), "pmf has nan"),
        (lambda: inversion_discrete([[0.5, 0.5]]), r"shape \(1, 2\)"),
        (lambda: inversion_discrete([0.5, 0.5], [1, 2, 3]), "a probability for each value"),
        (lambda: inversion_discrete(np.exp), "values must be given"),
        (lambda: draw_labels(np.array([0.5, 0.5])), r"shape \(2,\)"),
        (lambda: draw_labels(np.array([[0.5, 0.5], [0.0, 0.0]])), "Row 1 of P sums to 0"),
        (lambda: draw_labels(np.array([[0.5, 0.5], [np.inf, 0.0]])), "Row 1 of P has inf"),
        (lambda: draw_labels(np.eye(2), 0), "n_samples=0 is not possible"),
        (lambda: draw_labels(np.eye(2), classes=[1]), "one name per column"),
    ],
)
def test_discrete_inversion_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
