"""Impulses of contacts with three rows each, compiled: cones, laws that are missed, Poisson's expansion, paradoxes.

Symbols: r impulses (normal, tangent, tangent), u = G r + g velocities after them, mu coefficients of friction.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.cones.solver import solve_with_rows
from dalembert.friction.cones.sweeps import COULOMB
from dalembert.friction.contact_problem import UNILATERAL
from dalembert.friction.limits import AIM
from dalembert.kernel.loops import compiled, nested
from dalembert.simulate.limits import (
    CONE_NEWTON,
    CONE_SWEEPS,
    EXPANSION_SETTLED,
    NO_VELOCITY,
    NOT_ZERO,
    RESTING,
    UNEXPLAINED_IMPULSE,
)

EXPANSION = 20_000
"""Sweeps of an expansion at most."""


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
        np.zeros(size), rk, AIM, CONE_SWEEPS, CONE_NEWTON,
    )  # fmt: skip
    r[:] = 0.0
    for a in range(size):
        r[keep[a]] = rk[a]
    return residual


@compiled
def missed_laws(G, g, mu, slides, r, missed):
    """Write per contact (three rows each) by how much its law is missed, relative to the data; return the largest.

    The natural map in velocities, over the largest |g|: not over G r, which grows without end where no answer exists.
    Contacts that push by `UNEXPLAINED_IMPULSE` times what the data explain are part of a contradiction, and count as
    missed. Friction of contacts that slide is given by their normal force, and is not looked at.
    """
    scale = NO_VELOCITY
    for j in range(g.size):
        scale = max(scale, abs(g[j]))
    worst = 0.0
    for i in range(mu.size):
        a = 3 * i
        u, rho = g[a] + G[a] @ r, G[a, a]
        miss = abs(min(u, rho * r[a])) if rho > 0.0 else max(-u, 0.0)
        if rho * r[a] > UNEXPLAINED_IMPULSE * scale:
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
    scale, worst = NO_VELOCITY, 0.0
    for j in range(g.size):
        scale = max(scale, abs(g[j]))
    for a in range(0, g.size, 3):
        worst = max(worst, -(g[a] + G[a] @ r), scale if G[a, a] * r[a] > UNEXPLAINED_IMPULSE * scale else 0.0)
    return worst / scale


@nested
def resistance(W, row, mu, x, y, column):
    """Return G_NN - mu G_NT . s of a contact whose rows begin at `row` and that slides along s = (x, y).

    `column` begins with the motion that a unit normal impulse makes, G = W (columns). Where it is not positive friction
    draws the contact in, the harder the more it is pushed: Painleve's paradox.
    """
    total = 0.0
    for j in range(W.shape[1]):
        pull = W[row + 1, j] * x + W[row + 2, j] * y
        total += (W[row, j] - mu * pull) * column[j]
    return total


@compiled
def first_paradox(W, B, before, mu, index):
    """Return the first of the contacts `index` that slides, without striking, into Painleve's paradox; or -1.

    G_NN - mu G_NT . s <= 0 with s the direction of sliding: pushed harder, the contact is drawn in by its friction.
    G = W B; the columns of B are in the order of `index`. Without a force such a contact approaches, and there is no
    answer, or it separates, and there are several.
    """
    for j in range(index.size):
        a, b = 3 * j, 3 * index[j]
        speed = np.sqrt(before[b + 1] ** 2 + before[b + 2] ** 2)
        if mu[index[j]] <= 0.0 or speed <= NO_VELOCITY or before[b] < -RESTING * (1.0 + speed):
            continue
        x, y = before[b + 1] / speed, before[b + 2] / speed
        if resistance(W, b, mu[index[j]], x, y, B[:, a]) <= 0.0:
            return index[j]
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
        if change <= EXPANSION_SETTLED * size:
            break
    return change / max(size, NOT_ZERO)
