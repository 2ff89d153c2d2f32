# pyright: reportCallIssue=false, reportArgumentType=false
"""Contacts with reactions as limits: which method when, in compiled code.

| contacts | in this order, as long as the residual is too large |
|---|---|
| more rows than coordinates (stacks: redundant) | interior points and Newton, both in the space of accelerations |
| others, or a first guess | sweeps and Newton in the space of reactions, then as above |
| all | proximal points, the last resort |

Symbols as in `cone_kernel`; J rows with J J^T = G. Interior points need unilateral contacts at rest; others go without.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cone_kernel import ASSOCIATED, COULOMB, TINY, UNILATERAL, attempt, compiled, evaluate, steps_of
from dalembert.friction.interior_kernel import first_point, in_cone_units, interior
from dalembert.friction.polish_kernel import polish
from dalembert.friction.span_kernel import add_forces, gathered, rows_times

FEW = 16
"""Rows below which sweeps and Newton's method come first in any case."""

INTERIOR = 40
"""Steps of the interior-point method; 8 to 20 are usual."""

GAPS = (1e-9, 1e-12)
"""Where interior points hand over to Newton's method, first and where that failed."""

POLISH = 5
"""Steps of Newton's method after interior points; 1 to 3 are usual."""

CONVEX = 12
"""Convex problems in turn, each with the tangential accelerations of the one before on its normals."""

DEPENDENT = 1e-12
"""A pivot below this part of its diagonal entry is rounding: the row depends on those above."""

TRIALS = (((0.99, 3.0, 1.0), (0.99, 1.0, 1.0), (0.9, 1.0, 1.0)), ((0.99, 1.0, 0.3), (0.9, 1.0, 1.0), (0.9, 3.0, 1.0)))
"""Per law and trial: part of the way to the boundary that a step takes, sizes of the first forces and accelerations."""


@compiled
def has_interior(kind, sliding):
    """Say whether the interior-point method knows all these contacts."""
    for i in range(kind.size):
        if kind[i] != UNILATERAL or sliding[i]:
            return False
    return kind.size > 0


@compiled
def factor_of(G):
    """Return J (p, rank) with J J^T = G, G semidefinite: Cholesky's factor without the columns of rounding."""
    p, rank = G.shape[0], 0
    J = np.zeros((p, p))
    for j in range(p):
        total = G[j, j]
        for m in range(rank):
            total -= J[j, m] * J[j, m]
        if total <= DEPENDENT * G[j, j]:
            continue
        pivot = np.sqrt(total)
        for i in range(j, p):
            total = G[i, j]
            for m in range(rank):
                total -= J[i, m] * J[j, m]
            J[i, rank] = total / pivot if G[i, j] != 0.0 or abs(total) > DEPENDENT * G[j, j] else 0.0
        rank += 1
    return J[:, :rank].copy()


@compiled
def padded(values, first):
    """Return values of rows (p,) as (k, 3), zeros in place of rows that a contact lacks."""
    out = np.zeros((first.size - 1, 3))
    for i in range(first.size - 1):
        for j in range(first[i + 1] - first[i]):
            out[i, j] = values[first[i] + j]
    return out


@compiled
def from_inside(J, G, g, first, mu, law, kind, sliding, s, rho, r, tolerance, best):
    """Interior points, then Newton's method for the digits; r is overwritten where better than `best`.

    Where Newton's method fails, interior points go on to a smaller gap, then from another point. Where Coulomb's law
    defeats them, convex problems with the tangential accelerations of the last one on the normals are solved in turn.
    Returns the residual and the steps.
    """
    p, used, tries = g.size, 0, len(TRIALS[0])
    rows, span, envelope = gathered(J, first)
    free, along = padded(g, first), padded(s, first).ravel()
    R, h, unit = in_cone_units(rows, free, mu)
    shifted, x, v, y = h.copy(), np.zeros(h.shape), np.zeros(h.shape), np.zeros(envelope.shape[0])
    trial, u, z, out, F = np.empty(p), np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    for turn in range(tries + (CONVEX if law == COULOMB else 0)):
        whole = turn < tries
        near, force, acceleration = TRIALS[law][turn] if whole else TRIALS[ASSOCIATED][0]
        point = first_point(R, shifted, force, acceleration)
        for gap in GAPS:
            inner, reached = interior(
                R, span, envelope, shifted, whole and law == COULOMB, near, point, x, gap, INTERIOR
            )
            if not whole:
                y[:] = 0.0
                add_forces(R, span, x, y)
                rows_times(R, span, y, v)
                for i in range(mu.size):
                    shifted[i, 0] = h[i, 0] + np.sqrt((v[i, 1] + h[i, 1]) ** 2 + (v[i, 2] + h[i, 2]) ** 2)
            x *= unit
            _, more = polish(rows, span, envelope, free, mu, law, kind, sliding, along, x, 0.1 * tolerance, POLISH)
            used += inner + more
            for i in range(mu.size):
                for j in range(first[i + 1] - first[i]):
                    trial[first[i] + j] = x[i, j]
            worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, trial, u, z, out, F)
            if worst / max(scale, TINY) < best:
                best, r[:] = worst / max(scale, TINY), trial
            if best <= tolerance:
                return best, used
            if reached > gap or not whole:
                break
    return best, used


def solve_contacts(G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps):
    """Solve with the Delassus matrix alone, as `solve_with_rows` does; stacks are faster with their rows."""
    return solve_with_rows(np.zeros((g.size, 0)), G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps)


@compiled
def solve_with_rows(J, G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps):
    """Solve from a first guess r, overwritten; return |F| relative to its terms, proximal steps, all other steps.

    J (p, n) are rows divided by the root of the mass, J J^T = G; without columns they are made from G when needed.
    """
    rho, p = steps_of(G, first), g.size
    inside, best, used, kept = has_interior(kind, sliding), np.inf, 0, r.copy()
    redundant = inside and p >= FEW and 0 < J.shape[1] < p and not np.any(r)
    for turn in range(2):
        if redundant == (turn == 0):
            if inside:
                rows = J if 0 < J.shape[1] < p else factor_of(G)
                best, more = from_inside(rows, G, g, first, mu, law, kind, sliding, s, rho, kept, tolerance, best)
                used += more
        else:
            r[:] = kept
            found, more = attempt(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance, sweeps, 10)
            used += more
            if found < best:
                best, kept[:] = found, r
        if best <= tolerance or used >= steps:
            break
    r[:] = kept
    if best <= tolerance or used >= steps:
        return best, 0, used
    return proximal(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance, best, used, steps)


@compiled
def proximal(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance, best, used, steps):
    """Improve r by the proximal point method: G + delta I and g - delta r in place of G and g.

    Each step is a well-conditioned problem, and the steps end at an answer of the first; delta falls as long as that
    helps.
    """
    size = g.size
    trace = 0.0
    for j in range(size):
        trace += G[j, j] / size
    delta = 1e-2 * trace
    u, y, out, F = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    kept, Gp = r.copy(), G.copy()
    for outer in range(200):
        for j in range(size):
            Gp[j, j] = G[j, j] + delta
        near = steps_of(Gp, first)
        centre = r.copy()
        inner, more = attempt(Gp, g - delta * centre, first, mu, law, kind, sliding, s, near, r, 0.1 * tolerance, 8, 12)
        used += more
        worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F)
        found = worst / max(scale, TINY)
        if found < best:
            best, kept[:] = found, r
        if best <= tolerance or used >= steps:
            r[:] = kept
            return best, outer + 1, used
        delta = max(0.2 * delta, 1e-9 * trace) if inner <= tolerance else min(4.0 * delta, trace)
    r[:] = kept
    return best, 200, used
