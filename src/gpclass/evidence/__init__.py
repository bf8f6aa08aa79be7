"""The evidence without an approximation's error, and how wrong an approximation is.

Every method gives q(f) = prior x Gaussian sites. Drawing from it and weighting the draws corrects both its
evidence and its probabilities (`importance_evidence`, `check_approximation`); annealing does so where
plain weighting fails (`annealed_evidence`); for a handful of data the integral itself can be done
(`exact_evidence`), and for expectation propagation there is a series (`ep_correction`).
"""

from __future__ import annotations

from gpclass.evidence.annealed import annealed_evidence
from gpclass.evidence.check import ApproximationCheck, check_approximation, check_model
from gpclass.evidence.correction import ep_correction
from gpclass.evidence.exact import exact_evidence
from gpclass.evidence.importance import importance_evidence
from gpclass.evidence.weights import EvidenceEstimate
from gpclass.sampling.pareto import pareto_smooth

__all__ = [
    "ApproximationCheck",
    "EvidenceEstimate",
    "annealed_evidence",
    "check_approximation",
    "check_model",
    "ep_correction",
    "exact_evidence",
    "importance_evidence",
    "pareto_smooth",
]
