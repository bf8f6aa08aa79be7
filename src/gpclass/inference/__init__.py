"""Approximations of p(f | X, y): each a frozen record of settings, called at one theta."""

from gpclass.inference.dirichlet import Dirichlet
from gpclass.inference.ep import EP
from gpclass.inference.laplace import Laplace
from gpclass.inference.variational import VI

__all__ = ["EP", "VI", "Dirichlet", "Laplace"]
