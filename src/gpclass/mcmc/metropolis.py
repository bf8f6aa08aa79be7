"""Metropolis sampling of blocks of latent values, with proposals from the conditional prior.

Given the other values f_r, a block f_b has the prior N(M_b f_r, C_b). With a draw from it as the proposal,
prior and proposal cancel in the Metropolis ratio, which leaves the likelihood ratio of the data points in the
block. With Q = K⁻¹, C_b = Q_bb⁻¹ and M_b f_r = -C_b Q_br f_r: one inverse is enough for all blocks.

Small blocks hardly move, because their neighbours determine them; proposals for large blocks are rarely
accepted. The warm-up finds a size in between. Blocks consist of strongly correlated points, and four
partitions alternate at random, so that no point is always at the edge of a block. Where a kernel is so smooth
that the neighbours determine every point, no block of any size moves far, and `Chains.complaint` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve

from gpclass.core.checks import check_integers, check_numbers
from gpclass.core.protocols import Array, Index
from gpclass.mcmc.chains import ChainState, Draw, Sampler
from gpclass.posteriors.target import Target

MIN_ACCEPT, MAX_ACCEPT = 0.28, 0.45  # the block size is kept if the acceptance rate is between these
WINDOW = 20  # steps over which the acceptance rate is measured


# A block of latent values: index, M and root of the conditional prior N(f M, root rootᵀ); M is zero in its own rows.
Block = tuple[Index, Array, Array]


@dataclass(frozen=True, slots=True, eq=False)
class BlockState(ChainState):
    """A state with partitions of the data into blocks, and the quantities needed to form other blocks."""

    each: Array  # the log likelihood of every data point, shape (chains, n)
    Q: Array  # K⁻¹
    order: Index  # data points sorted so that adjacent ones are close
    size: int  # number of values in a block
    partitions: list[list[Block]]


@dataclass(frozen=True, slots=True)
class BlockMetropolis(Sampler):
    """Block Metropolis sampling with the conditional prior as the proposal.

    Parameters
    ----------
    block_size : int
        Latent values per block at the start.
    adapt_size : bool
        Whether the warm-up changes the size, towards an acceptance rate between 0.28 and 0.45.
    jitter : float
        Added to the diagonal of K, relative to its mean, because the conditionals need its inverse. It is
        part of the model that is sampled, and too small to matter.
    """

    block_size: int = 4
    adapt_size: bool = True
    jitter: float = 1e-8
    whiten = None  # proposals come from the prior, not from an approximation

    def __post_init__(self) -> None:
        check_integers(block_size=self.block_size)
        check_numbers("[0, inf)", jitter=self.jitter)

    def init(self, target: Target, f: Array) -> BlockState:
        """Return the state of chains at the rows of f; the conditionals are computed here."""
        if len(target.prior_root) > len(target.y):
            raise ValueError("BlockMetropolis needs the same covariance for all latent functions.")
        target = target if target.jitter else target.with_jitter(self.jitter)
        Q = cho_solve((target.prior_root, True), np.eye(len(target.y)))
        order, size, each = _order(Q), min(self.block_size, len(target.y)), target.pointwise(f)
        return BlockState(target, f, each @ target.weight, each, Q, order, size, _partitions(Q, order, size))

    def step(self, rng: np.random.Generator, state: BlockState) -> tuple[BlockState, Array]:
        """Return the state after proposals for every block of one partition, for all latent functions together."""
        target, blocks = state.target, state.partitions[rng.integers(len(state.partitions))]
        f = state.f.reshape(len(state.f), -1, len(target.y)).copy()  # chains, functions, data points
        each, accepted = state.each.copy(), np.empty(state.each.shape)
        normals = rng.standard_normal(f.shape)
        for index, M, root in blocks:
            proposed = f @ M + normals[..., index] @ root.T
            seen = proposed.swapaxes(1, 2).reshape(len(f), len(index), *target.shape[1:])
            value = np.asarray(target.likelihood.log_prob(target.y[index], seen))
            gain = (value - each[:, index]) @ target.weight[index]
            take = (gain >= -rng.standard_exponential(len(f)))[:, None]
            f[..., index] = np.where(take[:, None], proposed, f[..., index])
            each[:, index] = np.where(take, value, each[:, index])
            accepted[:, index] = take
        end = replace(state, f=f.reshape(state.f.shape), value=each @ target.weight, each=each)
        return end, accepted

    def adapt(self, state: BlockState, draws: Sequence[Draw], progress: float) -> BlockState:
        """Return the state with other blocks if too many or too few of the last proposals were accepted."""
        if not self.adapt_size or len(draws) % WINDOW or progress > 0.9:
            return state
        rate, size = float(np.mean([draw.accept.mean() for draw in draws[-WINDOW:]])), state.size
        if MIN_ACCEPT <= rate <= MAX_ACCEPT:
            return state
        size = max(size + 1, int(1.5 * size)) if rate > MAX_ACCEPT else min(size - 1, int(size / 1.5))
        size = min(max(size, 1), len(state.Q))
        return replace(state, size=size, partitions=_partitions(state.Q, state.order, size))


def _order(Q: Array) -> Index:
    """Return the data points in the order of the leaves of a cluster tree, so that adjacent ones are close.

    Closeness is the absolute partial correlation given all other values, |Q_ij| / √(Q_ii Q_jj).
    """
    from scipy.cluster.hierarchy import leaves_list, linkage

    i, j = np.triu_indices(len(Q), 1)
    if not len(i):
        return np.arange(len(Q))
    scale = np.sqrt(Q.diagonal())
    distance = np.maximum(1.0 - np.abs(Q[i, j]) / (scale[i] * scale[j]), 0.0)
    return np.asarray(leaves_list(linkage(distance, "average")))


def _partitions(Q: Array, order: Index, size: int) -> list[list[Block]]:
    """Return partitions into blocks of neighbours, whose edges lie at different points."""
    firsts = sorted({max(1, size * k // 4) for k in (1, 2, 3, 4)}) if size < len(Q) else [size]
    splits = [np.split(order, range(first, len(Q), size)) for first in firsts]
    return [[_block(Q, np.sort(index)) for index in split] for split in splits]


def _block(Q: Array, index: Index) -> Block:
    """Return the conditional prior of a block given the rest."""
    C = np.linalg.inv(Q[np.ix_(index, index)])
    M = -(Q[:, index] @ C)
    M[index] = 0.0
    return index, M, np.linalg.cholesky(C)
