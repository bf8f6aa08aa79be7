"""Approximations of p(f | X, y): each a frozen record of settings, called at one theta."""

from gpclass.inference.laplace import Laplace

__all__ = ["Laplace"]
