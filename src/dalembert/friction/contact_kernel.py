# pyright: reportCallIssue=false, reportArgumentType=false
"""Contacts with reactions as limits: which method when, in compiled code.

| contacts | in this order, as long as the residual is too large |
|---|---|
| few, or all coupled, or a first guess | sweeps and Newton, interior points and Newton, proximal points |
| many, each coupled with few (stacks, chains) | interior points and Newton, sweeps and Newton, proximal points |

Symbols as in `cone_kernel`. Interior points need unilateral contacts at rest with mu > 0; others go without.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cone_kernel import COULOMB, TINY, UNILATERAL, attempt, compiled, evaluate, steps_of
from dalembert.friction.envelope_kernel import block_envelope
from dalembert.friction.interior_kernel import interior

SPARSE = 0.5
"""Part of the matrix within its envelope below which interior points come first."""

FEW = 24
"""Rows below which sweeps and Newton's method come first in any case."""

INTERIOR = 40
"""Steps of the interior-point method; 10 to 20 are usual."""


@compiled
def has_interior(first, mu, kind, sliding):
    """Say whether the interior-point method knows all these contacts."""
    for i in range(kind.size):
        if kind[i] != UNILATERAL or sliding[i] or (mu[i] <= 0.0 and first[i + 1] - first[i] > 1):
            return False
    return kind.size > 0


@compiled
def is_sparse(G, first):
    """Say whether the envelope of G leaves enough out."""
    low, high = block_envelope(G, first)
    filled = 0
    for i in range(low.size):
        filled += high[i] - low[i] + 1
    return low.size >= FEW and filled < SPARSE * low.size * low.size


@compiled
def from_inside(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance):
    """Interior points, then Newton's method for the digits; r is overwritten; return the residual and the steps."""
    inner, _ = interior(G, g, first, mu, law == COULOMB, r, 0.1 * tolerance, INTERIOR)
    best, used = attempt(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance, 0, 12)
    return best, used + inner


@compiled
def solve_contacts(G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps):
    """Solve from a first guess r, overwritten; return |F| relative to its terms, proximal steps, all other steps."""
    rho = steps_of(G, first)
    inside = has_interior(first, mu, kind, sliding)
    best, used, kept = np.inf, 0, r.copy()
    if inside and is_sparse(G, first) and not np.any(r):
        inside = False
        best, used = from_inside(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance)
        if best <= tolerance or used >= steps:
            return best, 0, used
        kept[:] = r
    found, more = attempt(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance, sweeps, 10)
    used += more
    if found < best:
        best, kept[:] = found, r
    if inside and best > tolerance and used < steps:
        found, more = from_inside(G, g, first, mu, law, kind, sliding, s, rho, r, tolerance)
        used += more
        if found < best:
            best, kept[:] = found, r
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
