"""Metropolis sampling with proposals from the conditional prior, one block of latent values at a time.

Given the other values f_r, a block f_b has the prior N(M_b f_r, C_b). A draw from it as a proposal makes
prior and proposal cancel in the Metropolis ratio, which leaves the ratio of the likelihoods of the block's
data. With Q = K⁻¹ the two are C_b = Q_bb⁻¹ and M_b f_r = -C_b Q_br f_r: one inverse for all blocks, once.

Small blocks are pinned down by their neighbours and hardly move, large ones are hardly accepted. Warming up
looks for the size in between. Blocks are made of near points, since only those move together; four
partitions take turns at random, so that no point is always at the edge of a block. Where a kernel is so
smooth that many points pin down each one, no block of any size moves far, and `Chains.complaint` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from gpclass.core.protocols import Array, Index
from gpclass.core.registry import stored
from gpclass.mcmc.records import Info, State
from gpclass.posteriors.target import Target

LEAST, MOST = 0.28, 0.45  # acceptance rates between which a block size is left as it is


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The values ``index`` with their conditional prior N(f M, root rootᵀ); M is zero in their own rows."""

    index: Index
    M: Array
    root: Array


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """Partitions of the data into blocks, and what is needed to make others."""

    precision: Array
    size: int
    partitions: tuple[tuple[Block, ...], ...]
    steps: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Pointwise(State):
    """A state with the log likelihood of every datum, shape (chains, n)."""

    each: Array | None = None


@stored
@dataclass(frozen=True, slots=True)
class BlockMetropolis:
    """Block Metropolis sampling with the conditional prior as the proposal.

    Parameters
    ----------
    block_size : int
        Latent values in a block at first.
    adapt_size : bool
        Whether warming up changes the size, towards an acceptance rate between 0.28 and 0.45.
    jitter : float
        Added to the diagonal of K, relative to its mean: the conditionals need its inverse. It is
        part of the model that is sampled, and far below what any draw could show.

    Examples
    --------
    >>> import numpy as np
    >>> from gpclass.kernels import RBF
    >>> from gpclass.likelihoods import Logit
    >>> from gpclass.mcmc import BlockMetropolis, sample
    >>> from gpclass.posteriors.target import make_target
    >>> X, y = np.arange(6.0)[:, None], np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
    >>> target = make_target(Logit(), (4.0 * RBF(1.0))(X), y)
    >>> chains = sample(target, BlockMetropolis(block_size=2), n_draws=500, n_warmup=200, rng=0)
    >>> chains.accept_points.shape
    (6,)
    """

    block_size: int = 4
    adapt_size: bool = True
    jitter: float = 1e-8

    def __post_init__(self) -> None:
        if not self.block_size >= 1 or not self.jitter >= 0.0:
            raise ValueError(f"{self!r} is not possible: block_size must be at least 1, jitter not negative.")

    @property
    def whiten(self) -> None:
        """Proposals are the prior's."""

    def init(self, target: Target, f: Array) -> State:
        """Return the state of chains at the rows of f; the conditionals are worked out here."""
        if target.rank < len(target.y):
            raise ValueError(
                f"K has the rank {target.rank} for {len(target.y)} data, so that some latent values are "
                "given by the others: make the target with a jitter (1e-8 times the signal variance)."
            )
        precision = _precision(target)
        size = min(self.block_size, len(target.y))
        return _enter(target, f, Tuning(precision, size, _partitions(precision, size)))

    def step(self, rng: np.random.Generator, state: State) -> tuple[State, Info]:
        """Propose every block of one partition in turn."""
        assert isinstance(state, Pointwise)
        assert state.each is not None
        target, tuning = state.target, state.tuning
        blocks = tuning.partitions[rng.integers(len(tuning.partitions))]
        f, each = state.f.copy(), state.each.copy()
        normals = rng.standard_normal(f.shape)
        log_u = -rng.standard_exponential((len(blocks), len(f)))
        points = np.empty(each.shape)
        across = (-1,) + (1,) * (f.ndim - 1)
        start = 0
        for block, height in zip(blocks, log_u, strict=True):
            index = block.index
            stop = start + len(index)
            proposed = f @ block.M + normals[..., start:stop] @ block.root.T
            start = stop
            seen = proposed if target.n_latent is None else proposed.swapaxes(-1, -2)
            value = np.asarray(target.likelihood.log_prob(target.y[index], seen))
            gain = (value - each[:, index]) @ target.weight[index]
            take = (gain >= height)[:, None]
            f[..., index] = np.where(take.reshape(across), proposed, f[..., index])
            each[:, index] = np.where(take, value, each[:, index])
            points[:, index] = take
        end = Pointwise(target, f, each @ target.weight, tuning, each)
        return end, Info(points.mean(axis=1), np.ones(len(f)), points)

    def adapt(self, state: State, infos: list[Info], progress: float) -> State:
        """Return the state with other blocks if too many or too few of the last ones were accepted."""
        tuning: Tuning = state.tuning
        steps = tuning.steps + 1
        if not self.adapt_size or steps < 20 or progress > 0.9:
            return replace(state, tuning=replace(tuning, steps=steps))
        rate = float(np.mean([info.accept.mean() for info in infos[-steps:]]))
        size = tuning.size
        if rate > MOST:
            size = min(len(state.target.y), max(size + 1, int(1.5 * size)))
        elif rate < LEAST:
            size = max(1, min(size - 1, int(size / 1.5)))
        if size == tuning.size:
            return replace(state, tuning=replace(tuning, steps=0))
        partitions = _partitions(tuning.precision, size)
        return replace(state, tuning=Tuning(tuning.precision, size, partitions))


def _enter(target: Target, f: Array, tuning: Tuning) -> Pointwise:
    each = target.pointwise(f)
    return Pointwise(target, f, each @ target.weight, tuning, each)


def _precision(target: Target) -> Array:
    """Return K⁻¹ from the pivoted factor of K."""
    L = target.prior_root[target.pivots]
    inverse = solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)
    Q = np.empty_like(inverse)
    Q[np.ix_(target.pivots, target.pivots)] = inverse.T @ inverse
    return np.asarray(Q)


def _partitions(Q: Array, size: int) -> tuple[tuple[Block, ...], ...]:
    """Return partitions into near points, each with its edges where the others have none."""
    n = len(Q)
    if size >= n:
        return ((_block(Q, np.arange(n)),),)
    firsts = sorted({max(1, size * k // 4) for k in (1, 2, 3, 4)})
    return tuple(tuple(_block(Q, index) for index in _groups(Q, size, first)) for first in firsts)


def _groups(Q: Array, size: int, first: int) -> list[Index]:
    """Return index sets of near points: each is grown from the point most tied to all that are taken.

    Two values are near if they are strongly tied given all others: |Q_ij| / √(Q_ii Q_jj).
    """
    scale = 1.0 / np.sqrt(Q.diagonal())
    near = np.abs(Q) * scale * scale[:, None]
    left = np.ones(len(Q), dtype=bool)
    groups: list[Index] = []
    tied = np.zeros(len(Q))  # how strongly each point is tied to those already in blocks
    while left.any():
        group = [int(np.flatnonzero(left)[np.argmax(tied[left])])] if groups else [_corner(near)]
        pull = near[group[0]].copy()
        left[group[0]] = False
        while len(group) < (size if groups else first) and left.any():
            new = int(np.flatnonzero(left)[np.argmax(pull[left])])
            group.append(new)
            left[new] = False
            pull += near[new]
        tied += near[group].sum(axis=0)
        groups.append(np.array(sorted(group)))
    return groups


def _corner(near: Array) -> int:
    """Return a point at the edge of the data: the one with the weakest ties."""
    return int(np.argmin(near.sum(axis=0)))


def _block(Q: Array, index: Index) -> Block:
    """Return the conditional prior of a block given the rest."""
    L = np.linalg.cholesky(Q[np.ix_(index, index)])
    inverse = solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False)
    C = inverse.T @ inverse
    M = -(Q[:, index] @ C)
    M[index] = 0.0
    return Block(index, M, inverse.T)
