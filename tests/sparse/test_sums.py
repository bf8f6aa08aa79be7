"""What a pass adds up does not depend on the blocks that the rows come in."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import inputs_and_labels

from gpclass.data.rows import Rows
from gpclass.kernels import RBF
from gpclass.likelihoods import Logit, Probit, Softmax
from gpclass.priors.basis import make_basis
from gpclass.sparse.engine import Engine, Q, factored, latent_of, prior_q
from gpclass.sparse.sums import Sums

KERNEL = 3.0 * RBF([0.8, 1.0, 2.0])


@pytest.mark.parametrize("n_latents", [1, 3])
def test_blocks_do_not_matter(n_latents):
    X, y = inputs_and_labels(200)
    likelihood, others = Logit(), (Probit(),)
    if n_latents == 3:
        y, likelihood, others = np.eye(3)[np.arange(200) % 3], Softmax(), ()
    basis = make_basis(KERNEL, X[:12].copy())
    q = Q(np.linspace(-1.0, 1.0, 12 * n_latents).reshape(12, n_latents), 3.0 * prior_q(12, n_latents).P)
    engine = Engine(Rows(X, y), likelihood, n_latents, np.float64)
    step = engine.step(basis, factored(q), gradient=True, others=others)
    rows = Rows(X, y)
    whole, parts = step(rows), step(rows.take(slice(0, 7)))
    for part in (slice(7, 7), slice(7, 120), slice(120, 200)):
        parts.add(step(rows.take(part)))
    for name in Sums.__slots__:
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-10)


def test_negative_weights_of_products():
    """Where log p(y|f) is not concave, precisions of rows are negative."""
    X, _ = inputs_and_labels(50)
    at = latent_of(make_basis(KERNEL, X[:12].copy()), prior_q(12, 1)).at(X)
    w = np.linspace(-1.0, 2.0, 50)
    assert_allclose(at.gram(w), np.tril(at.A.T @ (w[:, None] * at.A)), atol=1e-12)
