"""Integrals with mpmath, shared by the accuracy tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import mpmath as mp

Edges = Sequence[mp.mpf]


@cache
def gauss_legendre(n: int, dps: int) -> tuple[tuple[mp.mpf, mp.mpf], ...]:
    """Nodes and weights on [-1, 1] by Newton on Legendre's recurrence."""
    rule = []
    with mp.workdps(dps + 10):
        for k in range(1, n + 1):
            x = mp.cos(mp.pi * (k - mp.mpf(1) / 4) / (n + mp.mpf(1) / 2))
            for _ in range(9):
                p0, p1 = mp.mpf(1), x
                for j in range(2, n + 1):
                    p0, p1 = p1, ((2 * j - 1) * x * p1 - (j - 1) * p0) / j
                slope = n * (x * p1 - p0) / (x * x - 1)
                x -= p1 / slope
            rule.append((x, 2 / ((1 - x * x) * slope**2)))
    return tuple(rule)


def integrate(g: Callable[[mp.mpf], tuple[mp.mpf, ...]], edges: Edges, n: int) -> list[mp.mpf]:
    """Integrals of the functions in g over panels, n Gauss-Legendre nodes each."""
    rule = gauss_legendre(n, mp.mp.dps)
    rows = []
    for low, high in pairwise(edges):
        half, middle = (high - low) / 2, (high + low) / 2
        rows += [[half * w * value for value in g(middle + half * x)] for x, w in rule]
    return [mp.fsum(column) for column in zip(*rows, strict=True)]


def march(low: mp.mpf, high: mp.mpf, width: Callable[[mp.mpf], mp.mpf]) -> list[mp.mpf]:
    edges = [low]
    while edges[-1] < high:
        edges.append(min(high, edges[-1] + width(edges[-1])))
    return edges
