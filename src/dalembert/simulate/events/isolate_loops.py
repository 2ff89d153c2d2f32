"""Zeros of functions inside a step: isolated by bounds on their second derivatives, then located in brackets.

A step is looked at on nodes s_0 = 0 < ... < s_N = 1, unevenly spaced, so that an oscillation cannot hide behind its own
period. A piece between two nodes is *certain* where

- it is not much longer than the piece before (`GRADED`), and the functions are smooth on the nodes around it: each
  node agrees with the cubic through its four neighbours to `ROUGH` of the range of their values; and
- with |g''| <= M, M = `SAFETY` times what divided differences of the nodes around it say, g has no zero there
  (|g| > M d^2 / 8 on the chord of length d) or is monotone (|slope| > M d / 2): then the signs at its ends tell all;
- or all nodes around it, twelve on each side, are far from zero, by more than `FAR` times their range. (Of fewer, an
  oscillation of which each piece holds a whole period shows equal values, and looks far from zero.)

Any other piece is split, down to `least`. What is left: an excursion through zero and back that is narrower than a
seventh of a step and leaves no trace on any node. Shorter steps (`max_step`) see it.

Roots in brackets are found by the Illinois method (M. Dowell, P. Jarratt, BIT 11 (1971) 168-174). Nothing here calls
the functions: who looks asks where, evaluates, and hands the values in; so one search serves compiled and plain
steppers.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import compiled
from dalembert.simulate.limits import DIFFERENCE_NOISE, ZERO_VALUE

GRID = np.array([0.0, 0.13, 0.238, 0.321, 0.415, 0.546, 0.659, 0.803, 0.893, 1.0])
"""The first nodes of a step: of 54,000 sines with 2 to 300 periods in it, none looks smooth on them (evenly spaced
nodes, moved by a tenth: 1,199)."""

ROUGH = 0.015
"""Part of their range by which nodes may miss the cubic through their neighbours: a sine has some 15 nodes a period."""

AROUND = 12
"""Nodes on each side that must be far from zero."""

SAFETY = 2.0
"""Factor on the second derivatives that differences of nodes show."""

GRADED = 3.0
"""A piece is not longer than this many times the one before: close nodes say little about a long piece behind them."""

FAR = 3.0
"""Values of one sign that are larger than this many times their range are far from zero."""

SPLIT = 0.42
"""Where a piece is split: not in its middle, so that nodes stay uneven. Of 40,000 sines with 1 to 200 periods in a step
and a growing frequency, none loses a zero; split at 0.48, and far from zero by three nodes a side, 561 do."""

QUIET, CROSSING = -2, -1
"""What a certain piece is: without a zero, or with one between signs that differ. Else: which piece to split, >= 0."""


@compiled
def _misses(s, g, j, e):
    """Return by how much node j misses the cubic through its four neighbours, over what may be missed."""
    predicted, low, high = 0.0, g[j, e], g[j, e]
    for a in range(j - 2, j + 3):
        low, high = min(low, g[a, e]), max(high, g[a, e])
        if a != j:
            weight = 1.0
            for b in range(j - 2, j + 3):
                if b not in (a, j):
                    weight *= (s[j] - s[b]) / (s[a] - s[b])
            predicted += weight * g[a, e]
    allowed = ROUGH * (high - low) + DIFFERENCE_NOISE * max(abs(low), abs(high))
    missed = abs(g[j, e] - predicted)
    return 0.0 if missed <= allowed else np.inf


@compiled
def _far(g, count, i, e):
    """Return whether all nodes around piece i have one sign and are far from zero."""
    first, last = max(i - AROUND, 0), min(i + AROUND + 1, count - 1)
    low, high = g[first, e], g[first, e]
    for j in range(first, last + 1):
        low, high = min(low, g[j, e]), max(high, g[j, e])
    nearest = low if low > 0.0 else -high
    return nearest > FAR * (high - low) or (low == 0.0 and high == 0.0)


@compiled
def _bend(s, g, count, i, e):
    """Return a bound on |g''| in piece i from divided differences of the nodes around it."""
    k = min(max(i - 1, 0), count - 4)
    one = (g[k + 1, e] - g[k, e]) / (s[k + 1] - s[k])
    two = (g[k + 2, e] - g[k + 1, e]) / (s[k + 2] - s[k + 1])
    three = (g[k + 3, e] - g[k + 2, e]) / (s[k + 3] - s[k + 2])
    left, right = (two - one) / (s[k + 2] - s[k]), (three - two) / (s[k + 3] - s[k + 1])
    third = (right - left) / (s[k + 3] - s[k])
    return SAFETY * (2.0 * max(abs(left), abs(right)) + 6.0 * abs(third) * (s[i + 1] - s[i]))


@compiled
def _longest(s, first, last):
    """Return the longest of the pieces first ... last."""
    found = first
    for j in range(first + 1, last + 1):
        if s[j + 1] - s[j] > s[found + 1] - s[found]:
            found = j
    return found


@compiled
def _verdict(s, g, count, i, e, least):
    """Return what piece i is for one function."""
    a, b, d = g[i, e], g[i + 1, e], s[i + 1] - s[i]
    ends = CROSSING if a * b <= 0.0 and (a != 0.0 or b != 0.0) else QUIET
    if d <= least or not np.isfinite(a + b):
        return ends
    if i > 0 and d > GRADED * (s[i] - s[i - 1]):
        return i
    if _far(g, count, i, e):
        return QUIET
    for j in range(max(min(i - 1, count - 5), 2), min(max(i + 2, 4), count - 3) + 1):
        if _misses(s, g, j, e) > 0.0:
            return _longest(s, i, max(i, min(j + 1, count - 2)))
    bend = _bend(s, g, count, i, e)
    if a * b > 0.0 and min(abs(a), abs(b)) > bend * d * d / 8.0:
        return QUIET
    return ends if abs(b - a) > bend * d * d / 2.0 else _longest(s, i, min(i + 1, count - 2))


@compiled
def verdict(s, g, count, i, least):
    """Return what piece i, between the nodes i and i + 1 of `count`, is for all functions, or which piece to split.

    g is (nodes, functions).
    """
    found = QUIET
    for e in range(g.shape[1]):
        found = max(found, _verdict(s, g, count, i, e, least))
        if found >= 0:
            return found
    return found


@compiled
def begin(g, count, scale):
    """Write the sizes of all functions on the first nodes into `scale`; what is rounding beside them becomes zero."""
    for e in range(g.shape[1]):
        scale[e] = 0.0
        for j in range(count):
            scale[e] = max(scale[e], abs(g[j, e])) if np.isfinite(g[j, e]) else scale[e]
        for j in range(count):
            g[j, e] = 0.0 if abs(g[j, e]) <= ZERO_VALUE * scale[e] else g[j, e]


@compiled
def insert(s, g, count, i, at, values, scale):
    """Put a node behind node i; `s` and `g` must have room."""
    for j in range(count, i + 1, -1):
        s[j] = s[j - 1]
        for e in range(g.shape[1]):
            g[j, e] = g[j - 1, e]
    s[i + 1] = at
    for e in range(g.shape[1]):
        g[i + 1, e] = 0.0 if abs(values[e]) <= ZERO_VALUE * scale[e] else values[e]


@compiled
def next_trial(bracket):
    """Return where to look for the zero in a bracket (low, g there, high, g there, side)."""
    low, g_low, high, g_high = bracket[0], bracket[1], bracket[2], bracket[3]
    middle = high - g_high * (high - low) / (g_high - g_low)
    return middle if min(low, high) < middle < max(low, high) else 0.5 * (low + high)


@compiled
def narrow(bracket, at, value):
    """Take a value into a bracket: `high` keeps the sign behind the zero, a zero itself is behind it."""
    if value * bracket[3] < 0.0 or (bracket[3] == 0.0 and value * bracket[1] > 0.0):
        bracket[0], bracket[1] = at, value
        if bracket[4] == 1.0:
            bracket[3] *= 0.5
        bracket[4] = 1.0
    else:
        bracket[2], bracket[3] = at, value
        if bracket[4] == -1.0:
            bracket[1] *= 0.5
        bracket[4] = -1.0
