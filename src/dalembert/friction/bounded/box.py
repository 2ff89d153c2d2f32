# pyright: reportCallIssue=false, reportArgumentType=false
"""The box-constrained friction problem in compiled code, and the least-norm member of its solutions."""

from __future__ import annotations

import numpy as np

from dalembert.friction.limits import DEPENDENT_COLUMN, EXACT_SUM, REDUNDANT_PIVOT, STILL
from dalembert.kernel.loops import compiled

# ----------------------------------------------------------------------------------------------------------------------
# Bounded friction, exactly, in compiled code: a box-constrained convex problem in the Delassus matrix.
#
# Symbols: G = W^T M^-1 W Delassus matrix (m, m), semidefinite; g contact acceleration without the forces; x forces with
# lower <= x <= upper; c = G x + g contact acceleration. All in units that give G a unit diagonal (`scaled`).
#
#     minimise  x^T G x / 2 + g^T x     optimal:  c_i = 0 inside,  c_i >= 0 at a lower bound,  c_i <= 0 at an upper one
#
# First the primal-dual active set method (a semismooth Newton method: all sets change at once, usually 2 to 6 rounds),
# then, where it cycles, the primal active set method, which cannot. Its plain twin: `tests/reference/box.py`.
#
# Sources: M. Hintermueller, K. Ito, K. Kunisch, SIAM J. Optim. 13 (2002) 865-888; J. Nocedal, S. Wright, "Numerical
# Optimization", 2nd ed., section 16.5. Cost: O(k^3) a round, k free contacts.


ROUNDS = 12
"""Rounds of the primal-dual method before the safe one takes over."""

SOLVED, STALLED = 0, 1


@compiled
def scaled(G, g, lower, upper):
    """Return scales d and d G d, d g, lower / d, upper / d; a contact that moves nothing keeps its own unit."""
    m = g.size
    d = np.ones(m)
    for i in range(m):
        if G[i, i] > 0.0:
            d[i] = 1.0 / np.sqrt(G[i, i])
    Gs = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            Gs[i, j] = d[i] * G[i, j] * d[j]
    return d, Gs, d * g, lower / d, upper / d


@compiled
def cholesky_solve(G, index, k, b, L):
    """Solve G[index, index] x = b in place of b by a Cholesky factorisation; False where a pivot is rounding."""
    for i in range(k):
        for j in range(i + 1):
            total = G[index[i], index[j]]
            for p in range(j):
                total -= L[i, p] * L[j, p]
            if i == j:
                if total <= REDUNDANT_PIVOT * G[index[i], index[i]]:
                    return False
                L[i, i] = np.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    for i in range(k):
        total = b[i]
        for p in range(i):
            total -= L[i, p] * b[p]
        b[i] = total / L[i, i]
    for i in range(k - 1, -1, -1):
        total = b[i]
        for p in range(i + 1, k):
            total -= L[p, i] * b[p]
        b[i] = total / L[i, i]
    return True


@compiled
def least_solve(G, index, k, b):
    """Return the least-norm solution of G[index, index] x = b and the part of b outside the range."""
    F = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            F[i, j] = G[index[i], index[j]]
    values, vectors = np.linalg.eigh(F)
    x, left = np.zeros(k), np.zeros(k)
    limit = REDUNDANT_PIVOT * max(values[k - 1], 1.0)
    for j in range(k):
        along = 0.0
        for i in range(k):
            along += vectors[i, j] * b[i]
        if values[j] > limit:
            x += along / values[j] * vectors[:, j]
        else:
            left += along * vectors[:, j]
    return x, left


@compiled
def accelerations(G, g, x, c, size):
    """Write c = G x + g, and the size of the terms it is summed from."""
    m = g.size
    for i in range(m):
        total, terms = g[i], abs(g[i])
        for j in range(m):
            term = G[i, j] * x[j]
            total += term
            terms += abs(term)
        c[i], size[i] = total, terms


@compiled
def residual(c, size, x, lower, upper):
    """Return the largest violation of the optimality conditions, relative to the terms of its row."""
    worst = 0.0
    for i in range(x.size):
        step = x[i] - min(max(x[i] - c[i], lower[i]), upper[i])
        if step != 0.0:
            worst = max(worst, abs(step) / size[i])
    return worst


@compiled
def free_forces(G, g, x, free, lower, upper, L):
    """Solve c = 0 on the free contacts, the others as they are, with one step of refinement; False if no such x."""
    m = x.size
    index, k = np.empty(m, dtype=np.int64), 0
    for i in range(m):
        if free[i]:
            index[k] = i
            k += 1
            x[i] = 0.0
    if k == 0:
        return True
    b, sound = np.empty(k), True
    # solve, then once more for what is left
    for turn in range(2):
        terms = 0.0
        for i in range(k):
            total = g[index[i]]
            for j in range(m):
                total += G[index[i], j] * x[j]
            b[i] = -total
            terms = max(terms, abs(g[index[i]]) + abs(total))
        # redundant contacts: least squares; a system without solution is told by what is left
        if not cholesky_solve(G, index, k, b, L):
            for i in range(k):
                total = g[index[i]]
                for j in range(m):
                    total += G[index[i], j] * x[j]
                b[i] = -total
            b, left = least_solve(G, index, k, b)
            sound = sound and (turn > 0 or np.abs(left).max() <= 1e3 * STILL * terms)
        for i in range(k):
            x[index[i]] += b[i]
    return sound


@compiled
def primal_dual(G, g, lower, upper, x):
    """Run the primal-dual active set method from x; return whether it ended at an optimum, and the rounds."""
    m = x.size
    c, size, L = np.empty(m), np.empty(m), np.empty((m, m))
    side, before = np.zeros(m, dtype=np.int8), np.full(m, 9, dtype=np.int8)
    accelerations(G, g, x, c, size)
    for turn in range(ROUNDS):
        for i in range(m):
            y = x[i] - c[i]
            slack = 4.0 * STILL * (size[i] + abs(x[i]))
            side[i] = -1 if y < lower[i] - slack else (1 if y > upper[i] + slack else 0)
            if lower[i] == upper[i]:
                side[i] = 1
        if (side == before).all():
            for i in range(m):
                x[i] = min(max(x[i], lower[i]), upper[i])
            accelerations(G, g, x, c, size)
            return residual(c, size, x, lower, upper) <= 16.0 * STILL, turn
        before[:] = side
        for i in range(m):
            x[i] = lower[i] if side[i] < 0 else (upper[i] if side[i] > 0 else x[i])
        if not free_forces(G, g, x, side == 0, lower, upper, L):
            return False, turn
        accelerations(G, g, x, c, size)
    return False, ROUNDS


@compiled
def blocked(x, step, free, lower, upper):
    """Return how far x may go along the step (1 at most where it is a Newton step), and who blocks."""
    reach, who = np.inf, -1
    for i in range(x.size):
        if free[i] and step[i] != 0.0:
            room = (upper[i] - x[i]) / step[i] if step[i] > 0.0 else (lower[i] - x[i]) / step[i]
            if room < reach:
                reach, who = max(room, 0.0), i
    return reach, who


@compiled
def active_set(G, g, lower, upper, x):
    """Run the primal active set method from x; return whether it ended at an optimum, and the rounds."""
    m = x.size
    c, size, step = np.empty(m), np.empty(m), np.zeros(m)
    free = np.zeros(m, dtype=np.bool_)
    for i in range(m):
        x[i] = min(max(x[i], lower[i]), upper[i])
        free[i] = lower[i] < x[i] < upper[i]
    most = 60 * m + 200
    for turn in range(most):
        accelerations(G, g, x, c, size)
        # the step of the free contacts to c = 0; where there is none, along what is left of c
        index = np.flatnonzero(free)
        k = index.size
        newton = True
        step[:] = 0.0
        if k:
            b, left = least_solve(G, index, k, -c[index])
            newton = np.abs(left).max() <= 1e2 * STILL * size[index].max()
            step[index] = b if newton else left
        # up to the first limit in the way, which then holds its contact
        reach, who = blocked(x, step, free, lower, upper)
        if who >= 0 and (not newton or reach < 1.0):
            x += reach * step
            x[who] = upper[who] if step[who] > 0.0 else lower[who]
            free[who] = False
            continue
        if not newton:
            return False, turn
        x += step
        accelerations(G, g, x, c, size)
        # at the optimum of the free ones: let go the contact that is pulled off its limit most, later the first
        worst, who = 0.0, -1
        for i in range(m):
            if not free[i] and lower[i] < upper[i]:
                pull = -c[i] if x[i] == lower[i] else c[i]
                if pull > STILL * size[i]:
                    if turn > most // 2:
                        who = i
                        break
                    if pull / size[i] > worst:
                        worst, who = pull / size[i], i
        if who < 0:
            return residual(c, size, x, lower, upper) <= 64.0 * STILL, turn
        free[who] = True
    return False, most


@compiled
def solve_box(G, g, lower, upper, x):
    """Solve from a first guess x, overwritten by the answer; return status, rounds and the residual of optimality."""
    d, Gs, gs, low, up = scaled(G, g, lower, upper)
    y = x / d
    for i in range(y.size):
        y[i] = min(max(y[i], low[i]), up[i])
    start = y.copy()
    good, rounds = primal_dual(Gs, gs, low, up, y)
    if not good:
        y[:] = start
        good, more = active_set(Gs, gs, low, up, y)
        rounds += more
    c, size = np.empty(y.size), np.empty(y.size)
    accelerations(Gs, gs, y, c, size)
    for i in range(y.size):
        x[i] = lower[i] if y[i] == low[i] else (upper[i] if y[i] == up[i] else d[i] * y[i])
    return SOLVED if good else STALLED, rounds, residual(c, size, y, low, up)


# ----------------------------------------------------------------------------------------------------------------------
# The least-norm forces among the optimal ones, in compiled code.
#
# Optimal forces differ by null(B), B = Z^T W (Z the admissible motions; B = W without constraints), within the box;
# contacts about to slip are fixed at their limits. With R an orthonormal basis of the row space of B over the others,
# the least-norm member is the projection of 0 onto a polytope,
#
#     minimise |x|^2 / 2  subject to  R^T x = R^T x0,  lower <= x <= upper        x = clip(R y)
#
# and y is the maximiser of a concave, piecewise quadratic function: a Newton method with a line search ends after
# finitely many steps. Masses do not enter.


LEAST_CURVATURE = 1e-9
"""The dual function of unit columns is taken to be at least so curved: where nothing is inside the box it is flat."""

GAIN, SHORTEST = 1e-4, 1e-10
"""Part of the slope that a step must gain, and the shortest step that is tried."""

STEPS = 60
"""Newton steps; a handful is usual."""


@compiled
def row_space(B, index):
    """Return an orthonormal basis of the row space of B[:, index], (k, r), its rank decided on unit columns."""
    p, k = B.shape[0], index.size
    if p == 0:
        return np.empty((k, 0))
    F, d = np.empty((p, k)), np.ones(k)
    for j in range(k):
        size = 0.0
        for i in range(p):
            F[i, j] = B[i, index[j]]
            size = max(size, abs(F[i, j]))
        if size > 0.0:
            d[j] = 1.0 / size
    for j in range(k):
        F[:, j] *= d[j]
    _, values, Vt = np.linalg.svd(F, full_matrices=False)
    rank = 0
    while rank < values.size and values[rank] > DEPENDENT_COLUMN * values[0]:
        rank += 1
    basis = np.empty((k, rank))
    for j in range(rank):
        basis[:, j] = Vt[j] / d
    if rank == 0 or rank == k:
        return basis
    q, _ = np.linalg.qr(basis)
    return np.ascontiguousarray(q)


@compiled
def dual(R, y, b, lower, upper, x):
    """Write x = clip(R y); return the dual function b^T y - sum of max over the box, to be maximised."""
    total = 0.0
    for j in range(y.size):
        total += b[j] * y[j]
    for i in range(x.size):
        z = 0.0
        for j in range(y.size):
            z += R[i, j] * y[j]
        x[i] = min(max(z, lower[i]), upper[i])
        total -= z * x[i] - 0.5 * x[i] * x[i]
    return total


@compiled
def project(R, b, lower, upper, x):
    """Write the least-norm x with R^T x = b within the box; return whether the Newton method ended."""
    r = b.size
    y, trial = np.zeros(r), np.empty(r)
    value = dual(R, y, b, lower, upper, x)
    scale, before = np.abs(b).max() + 1e-300, np.inf
    for _ in range(STEPS):
        missing = b - R.T @ x
        left = np.abs(missing).max()
        if left <= EXACT_SUM * scale or (left <= 4.0 * STILL * scale and left >= before):
            return True
        before = left
        # generalised Hessian of the dual function: contacts strictly inside the box
        H = np.zeros((r, r))
        z = R @ y
        for i in range(x.size):
            if lower[i] < z[i] < upper[i] or (z[i] == x[i] and lower[i] < upper[i]):
                for j in range(r):
                    for p in range(r):
                        H[j, p] += R[i, j] * R[i, p]
        values, vectors = np.linalg.eigh(H)
        along = vectors.T @ missing
        for j in range(r):
            along[j] /= max(values[j], LEAST_CURVATURE)
        step = vectors @ along
        # the dual function must rise enough
        slope, t, new = step @ missing, 1.0, value
        for _ in range(40):
            trial[:] = y + t * step
            new = dual(R, trial, b, lower, upper, x)
            if new >= value + GAIN * t * slope or t < SHORTEST:
                break
            t *= 0.5
        y[:] = trial
        value = new
    return np.abs(b - R.T @ x).max() <= 1e2 * STILL * scale


@compiled
def least_norm(B, G, g, lower, upper, x):
    """Replace optimal forces x by the least-norm ones; return the dimension of the family they are chosen from."""
    m = x.size
    c, size = np.empty(m), np.empty(m)
    accelerations(G, g, x, c, size)
    loose = np.zeros(m, dtype=np.bool_)
    for i in range(m):
        inside = lower[i] < x[i] < upper[i]
        loose[i] = lower[i] < upper[i] and (inside or abs(c[i]) <= 8.0 * STILL * size[i])
    index = np.flatnonzero(loose)
    if index.size == 0:
        return 0
    R = row_space(B, index)
    family = index.size - R.shape[1]
    if family == 0:
        return 0
    if R.shape[1] == 0:
        for i in range(index.size):
            x[index[i]] = min(max(0.0, lower[index[i]]), upper[index[i]])
        return family
    new = np.empty(index.size)
    if project(R, R.T @ x[index], lower[index], upper[index], new):
        x[index] = new
    return family
