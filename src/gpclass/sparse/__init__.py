"""Gaussian-process classification without n x n matrices: inducing inputs and passes over the data."""

from gpclass.sparse.settings import Inducing

__all__ = ["Inducing"]
