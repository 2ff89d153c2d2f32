"""The first zero of a function with known bounds on its rates: none is missed, however short the dip.

Symbols: g the function, r = g' its rate; |g'| <= L and |g''| <= K on the whole interval. On a piece [a, b] of width w

    g >= (g_a + g_b - L w) / 2                                       two cones
    g >= min(g_a, g_b, P(s)),   P(s) = g_a + r_a (s - a) - K (s - a)^2 / 2  where the parabolas of both ends meet
    g' <= (r_a + r_b + K w) / 2                                      below zero: g falls all the way, one zero at most

A piece whose least value is positive holds no zero; one that falls from above zero to below holds one; any other is
split. This is conservative advancement (B. Mirtich, "Impulse-based Dynamic Simulation of Rigid Body Systems", 1996,
section 2.3) from both ends, of second order where K is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class GapPoint(NamedTuple):
    """Where a function was looked at: place, value, rate."""

    s: float
    g: float
    r: float


class Isolated(NamedTuple):
    """What is certain: `found` says whether a zero lies in [low.s, high.s]; else there is none before high.s."""

    found: bool
    low: GapPoint
    high: GapPoint


def least_value(a: GapPoint, b: GapPoint, L: float, K: float) -> float:
    """Return a lower bound of g on [a, b]."""
    w = b.s - a.s
    cones = 0.5 * (a.g + b.g - L * w)
    if not np.isfinite(K):
        return cones
    bend = K * w + b.r - a.r
    meet = (a.g - b.g + b.r * w + 0.5 * K * w * w) / bend if bend > 0.0 else -1.0
    if not 0.0 <= meet <= w:  # values that contradict the bound: rounding, or more is to be looked at
        return cones
    return max(cones, min(a.g, b.g, a.g + a.r * meet - 0.5 * K * meet * meet))


def falls(a: GapPoint, b: GapPoint, K: float) -> bool:
    """Return whether g is certain to fall from a to b."""
    return 0.5 * (a.r + b.r + K * (b.s - a.s)) < 0.0


def first_zero(
    look: Callable[[float], GapPoint],
    start: GapPoint,
    end: GapPoint,
    L: float,
    K: float | Callable[[GapPoint, GapPoint], float],
    width: float,
    depth: float,
    most: int,
) -> Isolated:
    """Return a bracket of the first zero between two points, or how far there is none.

    Parameters
    ----------
    look
        Evaluates g and its rate anywhere between.
    start
        A point with g > 0.
    L, K
        Bounds of |g'| and |g''|; inf where there is none. K may be a function of the ends of a piece.
    width, depth
        Pieces narrower than `width`, or that cannot go below -`depth`, are not split any more.
    most
        Looks at most; then the interval is certain only as far as it was looked through.
    """
    bend, a, ends, looks = K if callable(K) else lambda a, b: K, start, [end], 0
    while ends:
        b = ends[-1]
        k = bend(a, b)
        narrow = b.s - a.s <= width or L * (b.s - a.s) <= depth
        if b.g <= 0.0 and (narrow or falls(a, b, k)):
            return Isolated(True, a, b)
        if b.g > 0.0 and (narrow or least_value(a, b, L, k) > -depth):
            a = ends.pop()
            continue
        if looks == most:
            return Isolated(False, start, a)
        looks += 1
        ends.append(look(0.5 * (a.s + b.s)))
    return Isolated(False, start, end)
