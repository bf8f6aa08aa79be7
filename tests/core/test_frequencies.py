"""The evidence of class frequencies alone, compared with sums over all labellings and with integrals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import exact_probit_evidence
from scipy import integrate

from gpclass.core.frequencies import class_counts, no_better
from gpclass.evidence import frequency_evidence


@pytest.mark.parametrize("counts", [[7.0, 1.0], [0.3, 4.1], [12.0, 2.5]])
def test_two_classes_by_quadrature(counts):
    a, b = counts
    mass, _ = integrate.quad(lambda p: p**a * (1.0 - p) ** b, 0.0, 1.0, epsabs=1e-14)
    assert_allclose(
        frequency_evidence(np.array(counts)), max(np.log(mass), -(a + b) * np.log(2.0)), rtol=1e-9
    )


def test_three_classes_by_quadrature():
    a, b, c = 6.0, 1.5, 0.5
    mass, _ = integrate.dblquad(
        lambda q, p: p**a * q**b * (1.0 - p - q) ** c, 0.0, 1.0, 0.0, lambda p: 1.0 - p, epsabs=1e-12
    )
    assert_allclose(
        frequency_evidence(np.array([a, b, c])), np.log(2.0 * mass), rtol=1e-6
    )  # the density is 2


@pytest.mark.parametrize(("n", "n_classes"), [(5, 2), (5, 3)])
def test_each_of_the_two_models_is_a_distribution_over_labels(n, n_classes):
    total, better = 0.0, 0.0
    for labels in product(range(n_classes), repeat=n):
        value = np.exp(frequency_evidence(np.bincount(labels, minlength=n_classes)))
        equal = float(n_classes) ** -n
        assert value >= equal * (1.0 - 1e-12)
        better += value - equal
        total += value
    assert better > 0.0
    assert total < 2.0  # the larger of two distributions is less than their sum


def test_a_constant_latent_function_of_unit_variance_has_the_same_evidence():
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0])
    exact = -np.log(42.0)  # the integral of u⁵ (1 - u) from 0 to 1, where u = Φ(f) is uniform
    assert_allclose(frequency_evidence(class_counts(y)), exact, rtol=1e-12)
    assert_allclose(exact_probit_evidence(np.ones((6, 6)), y), exact, rtol=1e-4)


def test_counts_are_weights():
    y, weight = np.array([1.0, -1.0, 1.0]), np.array([2.0, 0.5, 1.5])
    assert class_counts(y, weight).tolist() == [0.5, 3.5]
    assert class_counts(y).tolist() == [1.0, 2.0]
    assert class_counts(np.array([[0.2, 0.8, 0.0], [1.0, 0.0, 2.0]])).tolist() == [1.2, 0.8, 2.0]


def test_a_number_and_the_evidence_of_class_frequencies():
    assert no_better(-5.0, -6.0) == ""
    assert "is not above -6" in no_better(-6.0, -6.0)
    assert "is not clearly above -6" in no_better(-5.0, -6.0, margin=2.0)
