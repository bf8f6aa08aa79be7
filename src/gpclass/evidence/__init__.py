"""The evidence without the error of an approximation, and how accurate an approximation is.

Every method gives q(f) = prior x Gaussian sites. Importance sampling from q corrects both its evidence and
its probabilities (`importance_evidence`, `check_approximation`); annealing works where plain importance
sampling fails (`annealed_evidence`). For a few data points the integral can be computed (`exact_evidence`),
and for expectation propagation there is a series (`ep_correction`). `frequency_evidence` is that of a
model without inputs.
"""

from __future__ import annotations

from gpclass.evidence.annealed import annealed_evidence
from gpclass.evidence.check import ApproximationCheck, check_approximation, check_model
from gpclass.evidence.correction import ep_correction
from gpclass.evidence.exact import exact_evidence
from gpclass.evidence.frequencies import frequency_evidence
from gpclass.evidence.importance import importance_evidence
from gpclass.evidence.missing import Missing
from gpclass.evidence.weights import EvidenceEstimate
from gpclass.sampling.pareto import pareto_smooth

__all__ = [
    "ApproximationCheck",
    "EvidenceEstimate",
    "Missing",
    "annealed_evidence",
    "check_approximation",
    "check_model",
    "ep_correction",
    "exact_evidence",
    "frequency_evidence",
    "importance_evidence",
    "pareto_smooth",
]
