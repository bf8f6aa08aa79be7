"""Independent draws by inversion and by rejection, and importance sampling.

`inversion` and `inversion_discrete` turn uniform random numbers into draws of any distribution of one
variable. `rejection` and `generalised_rejection` need a bound of the density; the latter works in several
dimensions, and `posterior_by_rejection` makes exact draws from the posterior of a few data points. `importance`
weights draws of another distribution and reports whether the result can be trusted.
"""

from __future__ import annotations

from gpclass.sampling.accept import (
    Rejection,
    RejectionSample,
    generalised_rejection,
    posterior_by_rejection,
    rejection,
)
from gpclass.sampling.invert import inversion, inversion_discrete
from gpclass.sampling.weigh import ImportanceEstimate, importance, pareto_smooth

__all__ = [
    "ImportanceEstimate",
    "Rejection",
    "RejectionSample",
    "generalised_rejection",
    "importance",
    "inversion",
    "inversion_discrete",
    "pareto_smooth",
    "posterior_by_rejection",
    "rejection",
]
