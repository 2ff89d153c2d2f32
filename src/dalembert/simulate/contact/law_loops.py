"""Linear algebra and impulses of one time step, compiled: twins of `laws.Inverse`, `complementarity`, `expansion`.

Symbols: M = L L^T; Z = M^-1 A^T, S = A Z; rows of A that depend on others are left out of S (their verdict is kept).
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cone_kernel import COULOMB, UNILATERAL
from dalembert.friction.contact_kernel import solve_with_rows
from dalembert.tableau.graph_loops import compiled

DEPENDENT = 1e-11
"""A pivot below this part of its diagonal entry is rounding: the row depends on those above."""

TOLERANCE, SWEEPS, NEWTON = 1e-13, 12, 400
"""As in `laws`."""

NOTHING = 1e-9
"""Contact velocities (or accelerations) below this are none, m/s (m/s^2)."""

RESTING = 1e-6
"""Contacts that approach by less than this part of their speed do not strike."""

BEYOND = 1e6
"""Impulses this many times those that would stop what is seen cannot be explained by the data."""

EXPANSION = 20_000
"""Sweeps of an expansion at most."""


@compiled
def factor(M, L, kept):
    """Write Cholesky's factor of M and which rows are independent; return how many."""
    n, rank = M.shape[0], 0
    for j in range(n):
        total = M[j, j]
        for i in range(j):
            total -= L[j, i] * L[j, i] if kept[i] else 0.0
        kept[j] = total > DEPENDENT * M[j, j]
        if not kept[j]:
            L[j:, j] = 0.0
            continue
        rank += 1
        L[j, j] = np.sqrt(total)
        for k in range(j + 1, n):
            total = M[k, j]
            for i in range(j):
                total -= L[k, i] * L[j, i]
            L[k, j] = total / L[j, j]
    return rank


@compiled
def solve_in_place(L, kept, x):
    """Overwrite x (n, k) by the solution of L L^T y = x; places that are not kept get zero."""
    n = L.shape[0]
    for j in range(n):
        if not kept[j]:
            x[j] = 0.0
            continue
        for i in range(j):
            if L[j, i] != 0.0:
                x[j] -= L[j, i] * x[i]
        x[j] /= L[j, j]
    for j in range(n - 1, -1, -1):
        if not kept[j]:
            continue
        for i in range(j + 1, n):
            if L[i, j] != 0.0:
                x[j] -= L[i, j] * x[i]
        x[j] /= L[j, j]


@compiled
def impulses_of(G, g, mu, r):
    """Solve u = G r + g over the cones of contacts with three rows each, from the guess r; return the residual."""
    k = mu.size
    first = np.zeros(k + 1, np.int64)
    for i in range(k):
        first[i + 1] = first[i] + (3 if mu[i] > 0.0 else 1)
    size = first[k]
    keep = np.zeros(size, np.int64)
    for i in range(k):
        for j in range(first[i + 1] - first[i]):
            keep[first[i] + j] = 3 * i + j
    Gk, gk, rk = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    for a in range(size):
        gk[a], rk[a] = g[keep[a]], r[keep[a]]
        for b in range(size):
            Gk[a, b] = G[keep[a], keep[b]]
    residual, _, _ = solve_with_rows(
        np.zeros((size, 0)), Gk, gk, first, mu, COULOMB, np.full(k, UNILATERAL, np.int64), np.zeros(k, np.bool_),
        np.zeros(size), rk, TOLERANCE, SWEEPS, NEWTON,
    )  # fmt: skip
    r[:] = 0.0
    for a in range(size):
        r[keep[a]] = rk[a]
    return residual


@compiled
def missed_laws(G, g, mu, slides, r, missed):
    """Write per contact (three rows each) by how much its law is missed, relative to the data; return the largest.

    The natural map in velocities, over the largest |g|: not over G r, which grows without end where no answer exists.
    Contacts that push by `BEYOND` times what the data explain are part of a contradiction, and count as missed.
    Friction of contacts that slide is given by their normal force, and is not looked at.
    """
    scale = NOTHING
    for j in range(g.size):
        scale = max(scale, abs(g[j]))
    worst = 0.0
    for i in range(mu.size):
        a = 3 * i
        u, rho = g[a] + G[a] @ r, G[a, a]
        miss = abs(min(u, rho * r[a])) if rho > 0.0 else max(-u, 0.0)
        if rho * r[a] > BEYOND * scale:
            miss = max(miss, scale)
        rho = max(G[a + 1, a + 1], G[a + 2, a + 2])
        if mu[i] > 0.0 and not slides[i] and rho > 0.0:
            x, y = r[a + 1] - (g[a + 1] + G[a + 1] @ r) / rho, r[a + 2] - (g[a + 2] + G[a + 2] @ r) / rho
            length, limit = np.sqrt(x * x + y * y), mu[i] * max(r[a], 0.0)
            if length > limit:
                x, y = x * limit / length, y * limit / length
            miss = max(miss, rho * np.sqrt((r[a + 1] - x) ** 2 + (r[a + 2] - y) ** 2))
        missed[i] = miss / scale
        worst = max(worst, missed[i])
    return worst


@compiled
def approaching(G, g, r):
    """Return the largest velocity at which contacts still approach under the impulses r, relative to the data.

    Impulses beyond what the data explain count as such: they grow along a way on which no impulse helps.
    """
    scale, worst = NOTHING, 0.0
    for j in range(g.size):
        scale = max(scale, abs(g[j]))
    for a in range(0, g.size, 3):
        worst = max(worst, -(g[a] + G[a] @ r), scale if G[a, a] * r[a] > BEYOND * scale else 0.0)
    return worst / scale


@compiled
def paradox(G, before, mu, index):
    """Return the first place in `index` of a contact that slides, without striking, into Painleve's paradox; or -1.

    G_NN - mu G_NT . s <= 0 with s the direction of sliding: pushed harder, the contact is drawn in by its friction.
    """
    for j in range(index.size):
        a, b = 3 * j, 3 * index[j]
        speed = np.sqrt(before[b + 1] ** 2 + before[b + 2] ** 2)
        if mu[j] <= 0.0 or speed <= NOTHING or before[b] < -RESTING * (1.0 + speed):
            continue
        along = (G[a, a + 1] * before[b + 1] + G[a, a + 2] * before[b + 2]) / speed
        if G[a, a] - mu[j] * along <= 0.0:
            return j
    return -1


@compiled
def expansion(G, g, mu, floor, r):
    """Write the impulses of Poisson's expansion: r_N >= floor complementary to u_N, friction in the cone of all r_N.

    Projected sweeps; return the last change relative to the impulses.
    """
    k = mu.size
    r[:] = 0.0
    r[::3] = floor
    change, size = 0.0, 0.0
    for _ in range(EXPANSION):
        change, size = 0.0, 0.0
        for i in range(k):
            a = 3 * i
            u = g[a] + G[a] @ r
            new = max(floor[i], r[a] - u / G[a, a]) if G[a, a] > 0.0 else floor[i]
            change, size = max(change, abs(new - r[a])), max(size, new)
            r[a] = new
            most = max(G[a + 1, a + 1], G[a + 2, a + 2]) + abs(G[a + 1, a + 2])
            if mu[i] <= 0.0 or most <= 0.0:
                continue
            x = r[a + 1] - (g[a + 1] + G[a + 1] @ r) / most
            y = r[a + 2] - (g[a + 2] + G[a + 2] @ r) / most
            length, limit = np.sqrt(x * x + y * y), mu[i] * r[a]
            if length > limit:
                x, y = x * limit / length, y * limit / length
            change = max(change, abs(x - r[a + 1]), abs(y - r[a + 2]))
            r[a + 1], r[a + 2] = x, y
        if change <= 1e-15 * size:
            break
    return change / max(size, 1e-300)
