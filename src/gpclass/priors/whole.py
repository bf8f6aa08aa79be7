"""The margins of three classes as one matrix, where that is cheaper than a matrix for each class.

With one kernel for all functions, the covariance of the margins g_k = f_y + e_y - f_k of data points i and j is K_ij
times

    [y_i = y_j] - [y_i = l] - [k = y_j] + [k = l]

for the margins over the classes k and l, plus 1 if i = j. To factor and invert it takes (C - 1)³ n³ operations where
`gpclass.priors.factors` takes (2C + 1) n³: about as many for three classes, in far fewer steps, and the inverse of the
whole matrix tells how variances follow the sites (`DenseConditioned.respond`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpclass.core.linalg import BForm, Stage, mirror
from gpclass.core.protocols import Array, Index
from gpclass.priors.dense import DenseConditioned, MatrixPrior

LeftOut = Callable[[Array], tuple[Array, Array]]

# Measured on one thread: at 150 rows of three classes the whole matrix takes two thirds of the time, at 500 rows the
# same; with four classes it takes more from 100 rows on.
MOST_CLASSES, MOST_ROWS = 3, 500


def is_cheaper(n: int, n_classes: int, n_kernels: int) -> bool:
    """Return whether the matrix of all margins is to be preferred."""
    return n_kernels == 1 and n_classes <= MOST_CLASSES and n <= MOST_ROWS


class WholeMargins(MatrixPrior):
    """The covariance of all margins in memory."""

    __slots__ = ("_signs",)

    def __init__(self, labels: Index, others: Array) -> None:
        n, C = others.shape
        A = np.eye(C)[labels][:, None, :] - np.eye(C)[np.nonzero(others)[1]].reshape(n, C - 1, C)
        self._signs = np.einsum("ikc,jlc->klij", A, A)
        N = n * (C - 1)
        super().__init__(None, np.empty((N, N)), BForm(N))

    def _parts(self, M: Array) -> Iterator[tuple[int, int, Array]]:
        """Yield the margins k and l and the part of a matrix, n x n, that belongs to them."""
        size = len(self._signs)
        for k in range(size):
            for l in range(size):
                yield k, l, M[k::size, l::size]

    def at(self, kernel: Any, K: Array) -> WholeMargins:
        """Return the prior of this kernel, with its matrix in the lower triangle of K, in the same buffers."""
        moved = object.__new__(WholeMargins)
        moved._signs, moved.kernel, moved.K, moved._B = self._signs, kernel, self.K, self._B
        mirror(K)
        for k, l, part in self._parts(self.K):
            np.multiply(self._signs[k, l], K, out=part)
            np.einsum("ii->i", part)[...] += 1.0
        return moved

    def subtract_R(self, q: DenseConditioned, G: Array) -> None:
        """Subtract what R of the margins is for K of the latent functions from the lower triangle of G."""
        inverse = q.B.advance(Stage.INVERSE)
        size = len(self._signs)
        for k, l, part in self._parts(inverse):
            W = part * self._signs[k, l]
            W *= q.scale[l::size]
            W *= q.scale[k::size, None]
            # Of a data point with itself only the lower triangle is there: it counts twice, the upper one not at all.
            np.einsum("ii->i", W)[...] *= 1.0 if k == l else 2.0 if k > l else 0.0
            G -= W


class WholeConditioned(DenseConditioned):
    """q over the margins, by the whole matrix; ``left_out_of`` takes it to the moments of the latent functions."""

    __slots__ = ("_left_out_of",)

    def __init__(self, q: DenseConditioned, left_out_of: LeftOut) -> None:
        super().__init__(q.prior, q.B, q.scale, q.alpha, q.mean, q.half_logdet)
        self._left_out_of = left_out_of

    def left_out(self, copies: Array) -> tuple[Array, Array]:
        """Return mean and covariance of each data point's latent values f without its site."""
        return self._left_out_of(self.alpha)
