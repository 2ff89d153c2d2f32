"""The plan, looped: factorization and solve, for systems too large to unroll; its checks are in `accuracy_loops`.

Row k of a block, up-looking: w = row of A; for each earlier pivot j of L: l = w[j] / u_jj, w -= l u_j; what is left is
row k of U. The right side loses what earlier blocks found, and l times the earlier right sides; at the end of a block
the unknowns follow backwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalembert.tableau.graph_loops import compiled

Ints = NDArray[np.uint32]  # unsigned: compiled code need not look for places counted from the end
Signed = NDArray[np.int32]
Floats = NDArray[np.float64]

PROBE_SHARE = 1e-4
"""A pivot that is its entry of A is compared with this part of its size at the probed points."""


class Program(NamedTuple):
    """A plan as arrays; places are places in the pivot order, sources are entries of A."""

    indptr: Ints  # A, by equations
    indices: Ints
    rows: Ints
    cols: Ints
    begins: Ints
    inside_ptr: Ints  # entries of the own block
    inside_source: Ints
    inside_place: Ints
    outside_ptr: Ints  # entries of earlier blocks
    outside_source: Ints
    outside_place: Ints
    lower_ptr: Ints
    lower: Ints
    cross: Signed  # of entry (k, j) of L: where u_jk stands in `upper`, -1 if it is zero
    upper_ptr: Ints
    upper: Ints
    probe: Floats
    nudges: Floats  # (K, n), entries of size 1/2 to 1


class Workspace(NamedTuple):
    """Room for one factorization; after it, L, U and the pivots."""

    w: Floats
    y: Floats
    low: Floats
    up: Floats
    diagonal: Floats


@compiled
def factor(program, work, data):
    """Find L and U; return the least pivot quality and, of rows that change, the largest entries of U and of A.

    One function without calls: handing a program of many arrays over costs more than most rows.
    """
    lower_ptr, lower, cross, probe = program.lower_ptr, program.lower, program.cross, program.probe
    upper_ptr, upper, w, low, up, diagonal = program.upper_ptr, program.upper, work.w, work.low, work.up, work.diagonal
    inside_ptr, source, place = program.inside_ptr, program.inside_source, program.inside_place
    quality, largest, largest_entry = 1.0, 0.0, 0.0
    for k in range(diagonal.size):
        for e in range(lower_ptr[k], lower_ptr[k + 1]):
            w[lower[e]] = 0.0
        for e in range(upper_ptr[k], upper_ptr[k + 1]):
            w[upper[e]] = 0.0
        w[k] = entry = 0.0
        for e in range(inside_ptr[k], inside_ptr[k + 1]):
            w[place[e]] = data[source[e]]
            entry = max(entry, abs(data[source[e]]))
        terms = abs(w[k])
        for e in range(lower_ptr[k], lower_ptr[k + 1]):
            j = lower[e]
            multiple = w[j] / diagonal[j]
            low[e] = multiple
            for f in range(upper_ptr[j], upper_ptr[j + 1]):
                w[upper[f]] -= multiple * up[f]
            if cross[e] >= 0:
                terms += abs(multiple * up[cross[e]])
        diagonal[k] = w[k]
        size = abs(w[k])
        for e in range(upper_ptr[k], upper_ptr[k + 1]):
            up[e] = w[upper[e]]
            size = max(size, abs(up[e]))
        if lower_ptr[k] < lower_ptr[k + 1]:
            largest, largest_entry = max(largest, size), max(largest_entry, entry)
        expected = max(terms, PROBE_SHARE * probe[k])
        quality = min(quality, abs(w[k]) / expected if expected > 0.0 else 0.0)
    return quality, largest, largest_entry


@compiled
def substitute(program, work, data, right, x):
    """Find the unknowns, block after block: forwards through L, backwards through U."""
    rows, begins, lower_ptr, lower = program.rows, program.begins, program.lower_ptr, program.lower
    outside_ptr, source, place = program.outside_ptr, program.outside_source, program.outside_place
    upper_ptr, upper, cols = program.upper_ptr, program.upper, program.cols
    y, low, up, diagonal = work.y, work.low, work.up, work.diagonal
    for b in range(begins.size - 1):
        first, last = np.int64(begins[b]), np.int64(begins[b + 1])
        for k in range(first, last):
            value = right[rows[k]]
            for e in range(outside_ptr[k], outside_ptr[k + 1]):
                value -= data[source[e]] * y[place[e]]
            for e in range(lower_ptr[k], lower_ptr[k + 1]):
                value -= low[e] * y[lower[e]]
            y[k] = value
        for k in range(last - 1, first - 1, -1):
            value = y[k]
            for e in range(upper_ptr[k], upper_ptr[k + 1]):
                value -= up[e] * y[upper[e]]
            y[k] = value / diagonal[k]
            x[cols[k]] = y[k]
