"""Gaussian-process classification when n x n is out of the question: inducing inputs, passes over data."""

from gpclass.sparse.settings import Inducing

__all__ = ["Inducing"]
