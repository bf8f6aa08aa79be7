"""Gaussian-process classification: probabilities that can be trusted, with their evidence."""

from __future__ import annotations

from gpclass.compare import compare
from gpclass.decision import bayes_decision
from gpclass.estimator import GaussianProcessClassifier

__version__ = "0.1.0"

__all__ = ["GaussianProcessClassifier", "bayes_decision", "compare"]
