# pyright: reportCallIssue=false, reportArgumentType=false
"""Choice of solver for complementarity over cones: which method when.

| contacts | in this order, as long as the residual is too large |
|---|---|
| more rows than coordinates (stacks: redundant) | interior points and Newton, both in the space of accelerations |
| others, or a first guess | sweeps and Newton in the space of reactions, many sweeps, then as above |
| all | proximal points, the last resort |

Called from Python, each method is compiled when it is first needed, on its own: most problems need the first alone.
Compiled loops call `solve_with_rows` as well, and get all of them.

Symbols as in `sweeps.py`; J rows with J J^T = G. Interior points need unilateral contacts at rest; others go without.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from dalembert.friction.cones.interior import first_point, has_interior, in_cone_units, interior, polish
from dalembert.friction.cones.second_order_cones import gathered
from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB, TINY, attempt, evaluate, patient, steps_of
from dalembert.friction.limits import REDUNDANT_PIVOT
from dalembert.kernel.loops import reordered

FEW = 16
"""Rows below which sweeps and Newton's method come first in any case."""

INTERIOR = 40
"""Steps of the interior-point method; 6 to 15 are usual."""

GAPS = np.array([1e-7, 1e-9, 1e-12])
GAPS.flags.writeable = False
"""Where interior points hand over to Newton's method, first and where that failed."""

MANY, LATER = 100, 1
"""From so many rows on, so many of the first gaps are left out: some contact is still in the wrong mode there."""

POLISH = 5
"""Steps of Newton's method after interior points; 1 to 3 are usual."""

CONVEX = 12
"""Convex problems in turn, each with the tangential accelerations of the one before on its normals."""

PATIENT = 3000
"""Sweeps where the quick methods fail; they end where eight looks in a row gain little."""

LEAST_SHIFT = 1e-9
"""Least part of the mean diagonal that proximal points add to G: below, the problem is as hard as the first."""

TRIALS = (((0.99, 3.0, 1.0), (0.99, 1.0, 1.0), (0.9, 1.0, 1.0)), ((0.99, 1.0, 0.3), (0.9, 1.0, 1.0), (0.9, 3.0, 1.0)))
"""Per law and trial: part of the way to the boundary that a step takes, sizes of the first forces and accelerations."""


@reordered
def factor_of(G):
    """Return J (p, rank) with J J^T = G, G semidefinite: Cholesky's factor without the columns of rounding."""
    p, rank = G.shape[0], 0
    J = np.zeros((p, p))
    for j in range(p):
        total = G[j, j]
        for m in range(rank):
            total -= J[j, m] * J[j, m]
        if total <= REDUNDANT_PIVOT * G[j, j]:
            continue
        pivot = np.sqrt(total)
        for i in range(j, p):
            total = G[i, j]
            for m in range(rank):
                total -= J[i, m] * J[j, m]
            J[i, rank] = total / pivot if G[i, j] != 0.0 or abs(total) > REDUNDANT_PIVOT * G[j, j] else 0.0
        rank += 1
    return J[:, :rank].copy()


@reordered
def padded(values, first):
    """Return values of rows (p,) as (k, 3), zeros in place of rows that a contact lacks."""
    out = np.zeros((first.size - 1, 3))
    for i in range(first.size - 1):
        for j in range(first[i + 1] - first[i]):
            out[i, j] = values[first[i] + j]
    return out


@reordered
def trial(J, inner, g, first, mu, law, coulomb, kind, sliding, s, tolerance, start, gaps, r):
    """Interior points, then Newton's method for the digits; r is overwritten where the answer is good.

    Where Newton's method fails, interior points go on to a smaller gap. `inner` is what the interior points see in
    place of g, with the law `coulomb` or the convex problem. Returns the residual, and the steps.
    """
    if not has_interior(kind, sliding):
        return np.inf, 0
    rows, span, envelope = gathered(J, first)
    free, along = padded(g, first), padded(s, first).ravel()
    R, h, unit = in_cone_units(rows, padded(inner, first), mu)
    x, used, best = np.zeros(h.shape), 0, np.inf
    point = first_point(R, h, start[1], start[2])
    for gap in gaps:
        more, reached = interior(R, span, envelope, h, coulomb, start[0], point, x, gap, INTERIOR)
        for i in range(mu.size):
            for j in range(3):
                x[i, j] *= unit[i, j]
        found, last = polish(rows, span, envelope, free, mu, law, kind, sliding, along, x, 0.1 * tolerance, POLISH)
        used += more + last
        if found < best:
            best = found
            for i in range(mu.size):
                for j in range(first[i + 1] - first[i]):
                    r[first[i] + j] = x[i, j]
        if best <= tolerance or reached > gap:
            break
    return best, used


@register_jitable
def from_inside(J, g, first, mu, law, kind, sliding, s, r, tolerance):
    """Run the trials in turn, from r = 0; r is overwritten by the best answer. Returns its residual and the steps.

    Where Coulomb's law defeats them, convex problems with the tangential accelerations of the last one on the normals
    are solved in turn.
    """
    best, used, new, coulomb = np.inf, 0, r, law == COULOMB
    gaps = GAPS if g.size < MANY else GAPS[LATER:]
    for start in TRIALS[law]:
        found, more = trial(J, g, g, first, mu, law, coulomb, kind, sliding, s, tolerance, start, gaps, new)
        used += more
        if found < best:
            best, r[:] = found, new
        if best <= tolerance or not more:
            return best, used
        new = np.zeros_like(r)
    tangent, inner = np.ones(g.size, np.bool_), g.copy()
    tangent[first[:-1]] = False
    owner = np.repeat(np.arange(mu.size), np.diff(first))
    for _ in range(CONVEX if coulomb else 0):
        start, new = TRIALS[ASSOCIATED][0], np.zeros_like(r)
        found, more = trial(J, inner, g, first, mu, law, False, kind, sliding, s, tolerance, start, GAPS[1:2], new)
        used += more
        if found < best:
            best, r[:] = found, new
        if best <= tolerance:
            break
        u = J @ (J.T @ new) + g
        inner[first[:-1]] = g[first[:-1]] + mu * np.sqrt(np.bincount(owner, np.where(tangent, u * u, 0.0), mu.size))
    return best, used


def solve_contacts(G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps):
    """Solve with the Delassus matrix alone, as `solve_with_rows` does; stacks are faster with their rows."""
    return solve_with_rows(np.zeros((g.size, 0)), G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps)


@register_jitable
def solve_with_rows(J, G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps):
    """Solve from a first guess r, overwritten; return |F| relative to its terms, proximal steps, all other steps.

    J (p, n) are rows divided by the root of the mass, J J^T = G; without columns they are made from G when needed.
    """
    p, best, used = g.size, np.inf, 0
    few = 0 < J.shape[1] < p
    redundant = few and p >= FEW and not r.any()
    # many redundant contacts: interior points first
    if redundant:
        best, used = from_inside(J, g, first, mu, law, kind, sliding, s, r, tolerance)
        if best <= tolerance:
            return best, 0, used
    # sweeps and Newton's method, then many sweeps
    kept = r.copy()
    found, more = attempt(G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, 10)
    used += more
    if found < best:
        best, kept[:] = found, r
    if best > tolerance:
        trial = kept.copy()
        found, more = patient(G, g, first, mu, law, kind, sliding, s, trial, tolerance, PATIENT)
        used += more
        if found < best:
            best, kept[:] = found, trial
    # interior points, if they have not been tried
    if best > tolerance and not redundant and used < steps:
        rows = J if few else factor_of(G)
        r[:] = 0.0
        found, more = from_inside(rows, g, first, mu, law, kind, sliding, s, r, tolerance)
        used += more
        if found < best:
            best, kept[:] = found, r
    # the last resort
    r[:] = kept
    if best <= tolerance or used >= steps:
        return best, 0, used
    return proximal(G, g, first, mu, law, kind, sliding, s, r, tolerance, best, used, steps)


@reordered
def proximal(G, g, first, mu, law, kind, sliding, s, r, tolerance, best, used, steps):
    """Improve r by the proximal point method: G + delta I and g - delta r in place of G and g.

    Each step is a well-conditioned problem, and the steps end at an answer of the first; delta falls as long as that
    helps.
    """
    size, rho = g.size, steps_of(G, first)
    trace = 0.0
    for j in range(size):
        trace += G[j, j] / size
    delta = 1e-2 * trace
    u, y, out, F = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    kept, Gp = r.copy(), G.copy()
    for outer in range(200):
        for j in range(size):
            Gp[j, j] = G[j, j] + delta
        inner, more = attempt(Gp, g - delta * r, first, mu, law, kind, sliding, s, r, 0.1 * tolerance, 8, 12)
        used += more
        worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F)
        found = worst / max(scale, TINY)
        if found < best:
            best, kept[:] = found, r
        if best <= tolerance or used >= steps:
            r[:] = kept
            return best, outer + 1, used
        delta = max(0.2 * delta, LEAST_SHIFT * trace) if inner <= tolerance else min(4.0 * delta, trace)
    r[:] = kept
    return best, 200, used
