"""The cost of learning in passes and the gain that it must bring: an exchange rate between work and log loss.

At most the entropy of the labels can be learned: n H nats, with H = -Σ_c p_c log p_c of the class frequencies p.
Every doubling of the work so far must gain the fraction ``gain`` of that. So work that multiplies the total by 1 + s
is done if it promises n H * gain * log2(1 + s) nats. With a rare class H is small, so that a few nats
are enough. Work is counted in pairs of inducing inputs per row, not in seconds, so that a fit gives the same result on
every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpclass.core.protocols import Array

KERNEL = 200  # number of inducing inputs at which products take as long as kernel values (measured)
EVALUATION = 2  # passes: one projects the sites on the new inducing inputs, one computes the gradient
GAP_NATS = 1e-4  # q counts as converged if another pass gains less than this per row
START = 45  # work of learning on n rows without inducing inputs, divided by n³: 4.5 to 5 s at 1,200 rows


@dataclass(slots=True, eq=False)
class Work:
    """Work done so far, and the fraction of the entropy of the labels that doubling it must gain.

    ``entropy`` is that of one label, in nats. With q in closed form a pass costs the same for any number of functions,
    and the bound is the sum of theirs.
    """

    gain: float
    n_latents: int
    closed: bool
    done: float
    entropy: float = 0.0

    def of_pass(self, n_rows: int, size: int) -> float:
        """Return the work of a pass with M = ``size`` inducing inputs; M x M matrices count as M more rows."""
        work = float(n_rows + size) * size * (size + KERNEL)
        return work if self.closed else work * self.n_latents

    def needed(self, cost: float, n_rows: int) -> float:
        """Return the least gain in nats, on this number of rows, that justifies work of this cost."""
        functions = self.n_latents if self.closed else 1
        return self.gain * self.entropy * n_rows * functions * float(np.log2(1.0 + cost / self.done))


def entropy_of(counts: Array) -> float:
    """Return the entropy of a label in nats, from the total weights of the classes; half a row of each is added."""
    p = (counts + 0.5) / (counts + 0.5).sum()
    return float(-(p * np.log(p)).sum())


def allowed_gap(n_rows: int) -> float:
    """Return the nats that another pass may still gain when q has converged."""
    return max(1.0, GAP_NATS * n_rows)
