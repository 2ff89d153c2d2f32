# pyright: reportCallIssue=false, reportArgumentType=false
"""The last digits of many redundant contacts, in compiled code: Newton's method in the space of accelerations.

Symbols as in `cone_kernel`: F(r) = r - map(r - rho u), u = J J^T r + g, P the derivative of the map; J (k, 3, w) rows
divided by the root of the mass. Redundant contacts make Newton's equation singular; a proximal part EPSILON of P keeps
the blocks E = I - (1 - EPSILON) P regular, and its error falls by that factor each step:

    E dr + rho P J w = -F,   w = J^T dr      =>      (I + J^T C J) w = -J^T E^-1 F,   C = rho E^-1 P
    dr = -E^-1 F - C J w

The matrix has the size of the mass matrix and the envelope of `span_kernel`: one elimination a step, as the interior
points, against 2 p^3 / 3 in the space of reactions.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cone_algebra_kernel import image
from dalembert.friction.cone_kernel import TINY, UNILATERAL, derivative, local_map, part_explained
from dalembert.friction.interior_kernel import copied
from dalembert.friction.span_kernel import add_forces, assemble, factor, rows_times, substitute
from dalembert.kernel.loops import loop

compiled = loop(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})

EPSILON = 1e-8
"""Proximal part: large against rounding, small against what a step may miss."""


@compiled
def has_interior(kind, sliding):
    """Say whether interior points know all these contacts: unilateral ones at rest."""
    for i in range(kind.size):
        if kind[i] != UNILATERAL or sliding[i]:
            return False
    return kind.size > 0


@compiled
def inverted(B, i, out):
    """Write the inverse of a 3 x 3 block to block i."""
    a, b, c, d, e, f, g, h, k = B[0, 0], B[0, 1], B[0, 2], B[1, 0], B[1, 1], B[1, 2], B[2, 0], B[2, 1], B[2, 2]
    p, q, s = e * k - f * h, f * g - d * k, d * h - e * g
    scale = 1.0 / (a * p + b * q + c * s)
    out[i, 0, 0], out[i, 0, 1], out[i, 0, 2] = scale * p, scale * (c * h - b * k), scale * (b * f - c * e)
    out[i, 1, 0], out[i, 1, 1], out[i, 1, 2] = scale * q, scale * (a * k - c * g), scale * (c * d - a * f)
    out[i, 2, 0], out[i, 2, 1], out[i, 2, 2] = scale * s, scale * (b * g - a * h), scale * (a * e - b * d)


@compiled
def distance(J, span, g, mu, law, kind, sliding, s, rho, r, root, u, y, out, F):
    """Write u, y and F; return the largest |F| over the largest of its terms (NaN counts as infinite)."""
    for j in range(root.size):
        root[j] = 0.0
    add_forces(J, span, r, root)
    rows_times(J, span, root, u)
    worst, size = 0.0, TINY
    for i in range(mu.size):
        for j in range(3):
            size = max(size, rho[i] * abs(u[i, j]), rho[i] * abs(g[i, j]), abs(r[i, j]))
            y[3 * i + j] = r[i, j] - rho[i] * (u[i, j] + g[i, j])
        local_map(y, 3 * i, 3 * i + 3, mu[i], law, kind[i], sliding[i], s, out)
        for j in range(3):
            F[i, j] = r[i, j] - out[3 * i + j]
            if not abs(F[i, j]) < np.inf:
                return np.inf
            worst = max(worst, abs(F[i, j]))
    size *= part_explained(g.ravel(), r.ravel(), 3 * np.arange(mu.size + 1), mu, kind, rho)
    return worst / size


@compiled
def blocks_of(mu, law, kind, sliding, s, rho, y, F, E, C, right):
    """Write E^-1, C and -E^-1 F of all contacts."""
    P, B = np.zeros((3, 3)), np.empty((3, 3))
    for i in range(mu.size):
        derivative(y, 3 * i, 3 * i + 3, mu[i], law, kind[i], sliding[i], s, P)
        for j in range(3):
            for m in range(3):
                B[j, m] = (1.0 if j == m else 0.0) - (1.0 - EPSILON) * P[j, m]
        inverted(B, i, E)
        for j in range(3):
            for m in range(3):
                C[i, j, m] = rho[i] * (E[i, j, 0] * P[0, m] + E[i, j, 1] * P[1, m] + E[i, j, 2] * P[2, m])
        image(E, F, i, right)
        for j in range(3):
            right[i, j] *= -1.0


@compiled
def polish(J, span, envelope, g, mu, law, kind, sliding, s, r, tolerance, steps):
    """Improve r (k, 3), overwritten by the best met; return its distance and the steps."""
    k, n = J.shape[0], envelope.shape[0]
    rho = np.ones(k)
    for i in range(k):
        trace = 0.0
        for j in range(3):
            for m in range(J.shape[2]):
                trace += J[i, j, m] * J[i, j, m]
        if trace > 0.0:
            rho[i] = 1.0 / trace
    vectors, blocks = np.zeros((5, k, 3)), np.empty((2, k, 3, 3))
    F, u, right, step, kept, E, C = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], blocks[0], blocks[1]
    y, out, root, work, A = np.zeros(3 * k), np.zeros(3 * k), np.zeros(n), np.empty((3, J.shape[2])), np.empty((n, n))
    copied(r, kept)
    best = distance(J, span, g, mu, law, kind, sliding, s, rho, r, root, u, y, out, F)
    used = 0
    while used < steps and best > tolerance:
        used += 1
        blocks_of(mu, law, kind, sliding, s, rho, y, F, E, C, right)
        assemble(J, span, envelope, C, A, work)
        factor(A, envelope)
        for j in range(n):
            root[j] = 0.0
        add_forces(J, span, right, root)
        substitute(A, envelope, root)
        rows_times(J, span, root, u)
        for i in range(k):
            image(C, u, i, step)
            for j in range(3):
                r[i, j] += right[i, j] - step[i, j]
        found = distance(J, span, g, mu, law, kind, sliding, s, rho, r, root, u, y, out, F)
        if not found < np.inf:
            break
        if found < best:
            best = found
            copied(r, kept)
    copied(kept, r)
    return best, used
