"""The corrected evidence, and the accuracy of an approximation.

Laplace, EP and VI give q(f) = prior x Gaussian sites. Importance sampling from q corrects both its evidence and
its probabilities (`importance_evidence`, `check_approximation`). `frequency_evidence` is the evidence of a
model without inputs.
"""

from __future__ import annotations

from gpclass.core.frequencies import frequency_evidence
from gpclass.evidence.check import ApproximationCheck, check_approximation
from gpclass.sampling.weigh import importance_evidence

__all__ = ["ApproximationCheck", "check_approximation", "frequency_evidence", "importance_evidence"]
