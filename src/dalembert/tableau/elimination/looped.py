"""The looped executor of a plan: factorisation and solve for systems too large to unroll."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dalembert.kernel.loops import compiled, inlined
from dalembert.kkt.limits import PROBE_SHARE
from dalembert.tableau.elimination.plan import Plan
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# The plan, looped: factorization and solve, for systems too large to unroll; its checks are in `accuracy.py`.
#
# Row k of a block, up-looking: w = row of A; for each earlier pivot j of L: l = w[j] / u_jj, w -= l u_j; what is left
# is row k of U. The right side loses what earlier blocks found, and l times the earlier right sides; at the end of a
# block the unknowns follow backwards.


Ints = NDArray[np.uint32]  # unsigned: compiled code need not look for places counted from the end
Floats = NDArray[np.float64]

PARTS = (
    *("indptr", "indices"),  # A, by equations
    *("rows", "cols", "begins"),
    *("inside_ptr", "inside_source", "inside_place"),  # entries of the own block
    *("outside_ptr", "outside_source", "outside_place"),  # entries of earlier blocks
    *("lower_ptr", "lower", "cross"),  # cross, of entry (k, j) of L: where u_jk stands in `upper`, or NOWHERE
    *("upper_ptr", "upper"),
)
"""What an index program consists of; places are places in the pivot order, sources are entries of A."""

(
    INDPTR, INDICES, ROWS, COLS, BEGINS, INSIDE_PTR, INSIDE_SOURCE, INSIDE_PLACE, OUTSIDE_PTR, OUTSIDE_SOURCE,
    OUTSIDE_PLACE, LOWER_PTR, LOWER, CROSS, UPPER_PTR, UPPER,
) = range(len(PARTS))  # fmt: skip

NOWHERE = 2**32 - 1
"""In place of a place: the entry is zero."""


class IndexProgram(NamedTuple):
    """A plan as arrays: few of them, since a compiled call hands over every array as seven numbers."""

    integers: Ints  # the parts, one after the other
    starts: NDArray[np.int64]  # of every part in it, and the end
    probe: Floats
    nudges: Floats  # (K, n), entries of size 1/2 to 1


class Workspace(NamedTuple):
    """Room for one factorization; after it, L, U and the pivots."""

    w: Floats
    y: Floats
    low: Floats
    up: Floats
    diagonal: Floats


@inlined
def part(program, k):
    """Return one part of a program; inlined, since loops that count no references may not be handed a view."""
    return program.integers[program.starts[k] : program.starts[k + 1]]


@compiled
def factor(program, work, data):
    """Find L and U; return the least pivot quality and, of rows that change, the largest entries of U and of A."""
    lower_ptr, lower, cross, probe = part(program, LOWER_PTR), part(program, LOWER), part(program, CROSS), program.probe
    upper_ptr, upper, w, low, up = part(program, UPPER_PTR), part(program, UPPER), work.w, work.low, work.up
    inside_ptr, source, place = part(program, INSIDE_PTR), part(program, INSIDE_SOURCE), part(program, INSIDE_PLACE)
    diagonal = work.diagonal
    quality, largest, largest_entry = 1.0, 0.0, 0.0
    for k in range(diagonal.size):
        # the row of A, zeros where elimination may put something
        for e in range(lower_ptr[k], lower_ptr[k + 1]):
            w[lower[e]] = 0.0
        for e in range(upper_ptr[k], upper_ptr[k + 1]):
            w[upper[e]] = 0.0
        w[k] = entry = 0.0
        for e in range(inside_ptr[k], inside_ptr[k + 1]):
            w[place[e]] = data[source[e]]
            entry = max(entry, abs(data[source[e]]))
        # less multiples of earlier rows of U: what stays is this row of U, the multiples are that of L
        terms = abs(w[k])
        for e in range(lower_ptr[k], lower_ptr[k + 1]):
            j = lower[e]
            multiple = w[j] / diagonal[j]
            low[e] = multiple
            for f in range(upper_ptr[j], upper_ptr[j + 1]):
                w[upper[f]] -= multiple * up[f]
            if cross[e] != NOWHERE:
                terms += abs(multiple * up[cross[e]])
        diagonal[k] = w[k]
        size = abs(w[k])
        for e in range(upper_ptr[k], upper_ptr[k + 1]):
            up[e] = w[upper[e]]
            size = max(size, abs(up[e]))
        if lower_ptr[k] < lower_ptr[k + 1]:
            largest, largest_entry = max(largest, size), max(largest_entry, entry)
        # the pivot beside the sizes it was made of
        expected = max(terms, PROBE_SHARE * probe[k])
        # a pivot that overflowed, or is no number, has no digit left
        quality = min(quality, abs(w[k]) / expected if 0.0 < expected < np.inf else 0.0)
    return quality, largest, largest_entry


@compiled
def substitute(program, work, data, right, x):
    """Find the unknowns, block after block: forwards through L, backwards through U."""
    rows, cols, begins = part(program, ROWS), part(program, COLS), part(program, BEGINS)
    lower_ptr, lower = part(program, LOWER_PTR), part(program, LOWER)
    outside_ptr, source, place = part(program, OUTSIDE_PTR), part(program, OUTSIDE_SOURCE), part(program, OUTSIDE_PLACE)
    upper_ptr, upper = part(program, UPPER_PTR), part(program, UPPER)
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


NUDGES = 3
"""Random changes of data by which the reach of such changes is sampled: one alone may cancel in an unknown."""


def make_program(plan: Plan) -> IndexProgram:
    """Return the plan as arrays: entries of A by pivot row, those of earlier blocks apart."""
    parts = (
        plan.pattern.indptr,
        plan.pattern.indices,
        plan.rows,
        plan.cols,
        plan.begins,
        *_by_pivot(plan, ~plan.outside),
        *_by_pivot(plan, plan.outside),
        plan.lower_indptr,
        plan.lower,
        _crossings(plan),
        plan.upper_indptr,
        plan.upper,
    )
    starts = np.concatenate([[0], np.cumsum([len(x) for x in parts])]).astype(np.int64)
    return IndexProgram(np.concatenate(parts).astype(np.uint32), starts, plan.probe, make_nudges(plan.n))


class LoopedFactors(NamedTuple):
    """A plan as arrays, and room for its factors: what a compiled loop holds that factors once and solves often."""

    program: IndexProgram
    work: Workspace


def looped_factors(plan: Plan) -> LoopedFactors:
    """Return a plan with new room for factors; pivots are judged by their own terms alone, as nothing was probed."""
    program = make_program(plan)._replace(probe=np.zeros(plan.n), nudges=np.zeros((0, plan.n)))
    return LoopedFactors(program, make_workspace(plan))


def no_factors() -> LoopedFactors:
    """Return memory for no system at all, of the same types."""
    program = IndexProgram(np.zeros(0, np.uint32), np.zeros(len(PARTS) + 1, np.int64), np.zeros(0), np.zeros((0, 0)))
    return LoopedFactors(program, Workspace(*(np.zeros(0) for _ in Workspace._fields)))


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
    """Return, for each entry (k, j) of L, the place of (j, k) in U, NOWHERE where there is none."""
    k = np.repeat(np.arange(plan.n), np.diff(plan.lower_indptr))
    keys = np.repeat(np.arange(plan.n), np.diff(plan.upper_indptr)) * plan.n + plan.upper
    targets = plan.lower * plan.n + k
    at = np.searchsorted(keys, targets)
    hit = (at < len(keys)) & (keys[np.minimum(at, len(keys) - 1)] == targets) if len(keys) else np.zeros(len(at), bool)
    return np.where(hit, at, NOWHERE)
