"""The plan, looped: factorization, solve and its checks in one compiled call, for systems too large to unroll.

Row k of a block, up-looking: w = row of A; for each earlier pivot j of L: l = w[j] / u_jj, w -= l u_j; what is left is
row k of U. The right side loses what earlier blocks found, and l times the earlier right sides; at the end of a block
the unknowns follow backwards. Checks: see `checks.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalembert.tableau.graph_loops import compiled

Ints = NDArray[np.int32]
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
    cross: Ints  # of entry (k, j) of L: where u_jk stands in `upper`, -1 if it is zero
    upper_ptr: Ints
    upper: Ints
    probe: Floats


class Workspace(NamedTuple):
    """Room for one factorization; after it, L, U and the pivots."""

    w: Floats
    y: Floats
    low: Floats
    up: Floats
    diagonal: Floats


@compiled
def _factor_row(program, data, k, work):
    """Find row k of L and U; return pivot quality and, of a row that changes, the largest entries of U and of A."""
    low_first, low_last = program.lower_ptr[k], program.lower_ptr[k + 1]
    up_first, up_last = program.upper_ptr[k], program.upper_ptr[k + 1]
    w, low, up, diagonal = work.w, work.low, work.up, work.diagonal
    for e in range(low_first, low_last):
        w[program.lower[e]] = 0.0
    for e in range(up_first, up_last):
        w[program.upper[e]] = 0.0
    w[k] = 0.0
    for e in range(program.inside_ptr[k], program.inside_ptr[k + 1]):
        w[program.inside_place[e]] = data[program.inside_source[e]]
    terms = abs(w[k])
    for e in range(low_first, low_last):
        j = program.lower[e]
        factor = w[j] / diagonal[j]
        low[e] = factor
        for f in range(program.upper_ptr[j], program.upper_ptr[j + 1]):
            w[program.upper[f]] -= factor * up[f]
        if program.cross[e] >= 0:
            terms += abs(factor * up[program.cross[e]])
    diagonal[k] = w[k]
    largest, entry = abs(w[k]), 0.0
    for e in range(up_first, up_last):
        up[e] = w[program.upper[e]]
        largest = max(largest, abs(up[e]))
    expected = max(terms, PROBE_SHARE * program.probe[k])
    for e in range(program.inside_ptr[k], program.inside_ptr[k + 1]):
        entry = max(entry, abs(data[program.inside_source[e]]))
    changed = 1.0 if low_first < low_last else 0.0
    return abs(w[k]) / expected if expected > 0.0 else 0.0, changed * largest, changed * entry


@compiled
def _solve_block(program, data, right, first, last, work):
    """Find the unknowns of one block, in y."""
    y = work.y
    for k in range(first, last):
        value = right[program.rows[k]]
        for e in range(program.outside_ptr[k], program.outside_ptr[k + 1]):
            value -= data[program.outside_source[e]] * y[program.outside_place[e]]
        for e in range(program.lower_ptr[k], program.lower_ptr[k + 1]):
            value -= work.low[e] * y[program.lower[e]]
        y[k] = value
    for k in range(last - 1, first - 1, -1):
        value = y[k]
        for e in range(program.upper_ptr[k], program.upper_ptr[k + 1]):
            value -= work.up[e] * y[program.upper[e]]
        y[k] = value / work.diagonal[k]


@compiled
def backward_error(indptr, indices, data, right, x):
    """Return max_i |b - A x|_i / s_i, zero rows left out; NaN if anything is.

    s_i = (|A| |x| + |b|)_i; where this is itself only rounding, s_i gains |A_i| |x| in the maximum norm, x taken over
    the unknowns of row i (after M. Arioli, J. W. Demmel, I. S. Duff, "Solving sparse linear systems with sparse
    backward error", SIAM J. Matrix Anal. Appl. 10 (1989) 165-190).
    """
    worst = 0.0
    rounding = 1000.0 * x.size * 2.3e-16
    for i in range(right.size):
        residual, size = right[i], abs(right[i])
        entry = x_size = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            term = data[e] * x[indices[e]]
            residual -= term
            size += abs(term)
            entry, x_size = max(entry, abs(data[e])), max(x_size, abs(x[indices[e]]))
        if not np.isfinite(size):
            return np.nan
        if size <= rounding * (entry * x_size + abs(right[i])):
            size += entry * x_size
        if size > 0.0:
            worst = max(worst, abs(residual) / size)
    return worst


@compiled
def factor_solve(program, work, data, right, x, checks):
    """Solve one system; checks: backward error, least pivot quality, growth."""
    quality, largest, entry = 1.0, 0.0, 0.0
    for b in range(program.begins.size - 1):
        first, last = program.begins[b], program.begins[b + 1]
        for k in range(first, last):
            found, up, own = _factor_row(program, data, k, work)
            quality, largest, entry = min(quality, found), max(largest, up), max(entry, own)
        _solve_block(program, data, right, first, last, work)
    for k in range(program.rows.size):
        x[program.cols[k]] = work.y[k]
    checks[0] = backward_error(program.indptr, program.indices, data, right, x)
    checks[1], checks[2] = quality, max(1.0, largest / entry) if entry > 0.0 else 1.0


@compiled
def factor_solve_batch(program, work, data, right, x, checks):
    """Solve many systems of one plan, one after another; leading axis of every array."""
    for sample in range(right.shape[0]):
        factor_solve(program, work, data[sample], right[sample], x[sample], checks[sample])


@compiled
def backward_errors(indptr, indices, data, right, x, found):
    """Return the backward error of many systems."""
    for sample in range(right.shape[0]):
        found[sample] = backward_error(indptr, indices, data[sample], right[sample], x[sample])


@compiled
def residuals(indptr, indices, data, right, x, found):
    """Return b - A x of many systems."""
    for sample in range(right.shape[0]):
        for i in range(right.shape[1]):
            value = right[sample, i]
            for e in range(indptr[i], indptr[i + 1]):
                value -= data[sample, e] * x[sample, indices[e]]
            found[sample, i] = value
