"""The looped executor of a plan: factorisation and solve for systems too large to unroll."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from dalembert.kernel.loops import compiled
from dalembert.tableau.elimination.plan import Plan

# ----------------------------------------------------------------------------------------------------------------------
# The plan, looped: factorization and solve, for systems too large to unroll; its checks are in `accuracy.py`.
#
# Row k of a block, up-looking: w = row of A; for each earlier pivot j of L: l = w[j] / u_jj, w -= l u_j; what is left
# is row k of U. The right side loses what earlier blocks found, and l times the earlier right sides; at the end of a
# block the unknowns follow backwards.


Ints = NDArray[np.uint32]  # unsigned: compiled code need not look for places counted from the end
Signed = NDArray[np.int32]
Floats = NDArray[np.float64]

PROBE_SHARE = 1e-4
"""A pivot that is its entry of A is compared with this part of its size at the probed points."""


class IndexProgram(NamedTuple):
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


# ----------------------------------------------------------------------------------------------------------------------
# From a plan to the arrays of the compiled loop.


Array = np.ndarray

NUDGES = 3
"""Random changes of data by which the reach of such changes is sampled: one alone may cancel in an unknown."""


def make_program(plan: Plan) -> IndexProgram:
    """Return the plan as arrays: entries of A by pivot row, those of earlier blocks apart."""
    crossings = _crossings(plan)
    arrays = (
        plan.pattern.indptr,
        plan.pattern.indices,
        plan.rows,
        plan.cols,
        plan.begins,
        *_by_pivot(plan, ~plan.outside),
        *_by_pivot(plan, plan.outside),
        plan.lower_indptr,
        plan.lower,
        crossings,
        plan.upper_indptr,
        plan.upper,
    )
    numbers: list[Any] = [a.astype(np.int32 if a is crossings else np.uint32) for a in arrays]
    return IndexProgram(*numbers, probe=plan.probe, nudges=make_nudges(plan.n))


def make_nudges(n: int) -> Float[Array, "K n"]:
    """Return vectors with entries of size 1/2 to 1 and random signs, the same at every call."""
    rng = np.random.default_rng(1998)
    return rng.uniform(0.5, 1.0, (NUDGES, n)) * rng.choice([-1.0, 1.0], (NUDGES, n))


def make_workspace(plan: Plan) -> Workspace:
    """Return room for one factorization."""
    n = plan.n
    return Workspace(np.zeros(n), np.zeros(n), np.zeros(len(plan.lower)), np.zeros(len(plan.upper)), np.ones(n))


def _by_pivot(plan: Plan, chosen: Bool[Array, " entries"]) -> tuple[Array, Array, Array]:
    """Return (pointers, sources, places) of chosen entries of A, pivot row by pivot row."""
    row, col, _ = plan.places
    sources = np.flatnonzero(chosen)
    sources = sources[np.argsort(row[sources], kind="stable")]
    pointers = np.concatenate([[0], np.cumsum(np.bincount(row[sources], minlength=plan.n))])
    return pointers, sources, col[sources]


def _crossings(plan: Plan) -> Int[Array, " lower"]:
    """Return, for each entry (k, j) of L, the place of (j, k) in U, -1 where there is none."""
    k = np.repeat(np.arange(plan.n), np.diff(plan.lower_indptr))
    keys = np.repeat(np.arange(plan.n), np.diff(plan.upper_indptr)) * plan.n + plan.upper
    wanted = plan.lower * plan.n + k
    at = np.searchsorted(keys, wanted)
    hit = (at < len(keys)) & (keys[np.minimum(at, len(keys) - 1)] == wanted) if len(keys) else np.zeros(len(at), bool)
    return np.where(hit, at, -1)
