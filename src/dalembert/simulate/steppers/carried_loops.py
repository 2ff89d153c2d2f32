"""Rows of a mechanism whose rank is known, compiled: accelerations and projections that keep it off the manifold, too.

Symbols: H = M (M + A_c^T W A_c where M is singular) = L L^T, B = D A L^-T the rows in the metric of the mass, c the r
rows chosen at the start of a step; Q (r, n) an orthonormal basis of B_c, F = B Q^T (m, r).

    A x = b with least x^T H x:    F y = D b by least squares,   x = L^-T Q^T y

Off the manifold rows that depend on each other are independent by as much as they are open, and contradict each other:
a rank read off the numbers of a stage would make them rows of their own, with forces without limit. Here r directions
count, those of rows chosen by elimination with pivots where the constraints hold, and all rows have their say in them.
Least squares go by orthogonal bases (Gram and Schmidt, twice): next to a singular configuration digits are lost as
1 / distance, not as its square.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import inner
from dalembert.kkt.limits import ROUNDING
from dalembert.simulate.limits import RISEN

REDUNDANT, INCONSISTENT, MASSLESS, DECLINED, NOT_FINITE = 1.0, 5.0, 6.0, 8.0, 10.0
"""Members of `kkt.Status`, as kernels write them."""

RATES, POSITIONS = 0, 1
"""Levels: all rows, or the holonomic ones."""


class Carried(NamedTuple):
    """What the loops know of the rank, and memory; `rank` is that of all rows and of the holonomic ones, -1: none."""

    rank: np.ndarray
    counts: np.ndarray  # (2,) rows of each level, without those that move nothing
    order: np.ndarray  # (2, m): rows of each level, the chosen ones first
    place: np.ndarray  # (m,): residual of each row, -1 where it has none
    scales: np.ndarray  # (m,): D
    weights: np.ndarray  # (m,): W, zero where M is definite
    agree: np.ndarray  # (1,): part of their size by which rows may contradict each other
    distance: np.ndarray  # (2,): last pivot over the first, and what rows have beyond the kept directions
    M: np.ndarray
    A: np.ndarray
    drift: np.ndarray
    force: np.ndarray
    rate: np.ndarray
    L: np.ndarray
    B: np.ndarray
    Q: np.ndarray
    F: np.ndarray
    R: np.ndarray
    y: np.ndarray
    b: np.ndarray
    w: np.ndarray
    z: np.ndarray


@inner
def factored(c, level, using):
    """Factor H, with the weights of the first rows where M is singular, and write B; return whether H is definite."""
    n = c.w.size
    # H = M + A^T weights A, lower triangle
    for i in range(n):
        for j in range(i + 1):
            c.L[i, j] = c.M[i, j]
    for k in range(using):
        row = c.order[level, k]
        weight = c.weights[row]
        if weight > 0.0:
            for i in range(n):
                for j in range(i + 1):
                    c.L[i, j] += weight * c.A[row, i] * c.A[row, j]
    # H = L L^T
    for j in range(n):
        pivot = c.L[j, j]
        for k in range(j):
            pivot -= c.L[j, k] ** 2
        if not pivot > 0.0:
            return False
        root = np.sqrt(pivot)
        c.L[j, j] = root
        for i in range(j + 1, n):
            total = c.L[i, j]
            for k in range(j):
                total -= c.L[i, k] * c.L[j, k]
            c.L[i, j] = total / root
    # B = D A L^-T, row by row
    for k in range(c.counts[level]):
        row = c.order[level, k]
        for j in range(n):
            total = c.scales[row] * c.A[row, j]
            for i in range(j):
                total -= c.L[j, i] * c.B[row, i]
            c.B[row, j] = total / c.L[j, j]
    return True


@inner
def size_of(c):
    """Return a sum that is not finite where an entry of M or A is not."""
    total = 0.0
    for i in range(c.w.size):
        for j in range(c.w.size):
            total += c.M[i, j]
    for i in range(c.A.shape[0]):
        for j in range(c.w.size):
            total += c.A[i, j]
    return total


@inner
def choose(c, level):
    """Choose the rows of a level, at a state where the constraints hold: largest remainder first."""
    n, m, r = c.w.size, c.counts[level], c.rank[level]
    for k in range(r):
        best, largest = k, -1.0
        for i in range(k, m):
            row = c.order[level, i]
            size = 0.0
            for j in range(n):
                c.z[j] = c.B[row, j]
            remainder(c, k)
            for j in range(n):
                size += c.z[j] ** 2
            if size > 1.0000001 * largest:
                best, largest = i, size
        chosen = c.order[level, best]
        c.order[level, best] = c.order[level, k]
        c.order[level, k] = chosen
        extend(c, chosen, k)


@inner
def remainder(c, count):
    """Take the first directions of Q out of z, twice."""
    n = c.w.size
    for _ in range(2):
        for k in range(count):
            along = 0.0
            for j in range(n):
                along += c.Q[k, j] * c.z[j]
            for j in range(n):
                c.z[j] -= along * c.Q[k, j]


@inner
def extend(c, row, k):
    """Make what a row of B has beyond the first k directions the next one; return its size."""
    n = c.w.size
    for j in range(n):
        c.z[j] = c.B[row, j]
    remainder(c, k)
    size = 0.0
    for j in range(n):
        size += c.z[j] ** 2
    size = np.sqrt(size)
    for j in range(n):
        c.Q[k, j] = c.z[j] / size if size > 0.0 else 0.0
    return size


@inner
def directions(c, level):
    """Write Q and F of the chosen rows; set the distance from a singular configuration, and return it."""
    n, r = c.w.size, c.rank[level]
    first = last = 1.0
    for k in range(r):
        last = extend(c, c.order[level, k], k)
        if k == 0:
            first = last
    for i in range(c.counts[level]):
        row = c.order[level, i]
        for k in range(r):
            total = 0.0
            for j in range(n):
                total += c.B[row, j] * c.Q[k, j]
            c.F[k, i] = total
    c.distance[0] = last / first if first > 0.0 else 0.0
    return c.distance[0]


@inner
def orthogonal(c, count, r):
    """Replace the rows of F (r, count) by an orthonormal basis, with R so that F = R^T (that basis)."""
    for k in range(r):
        for i in range(r):
            c.R[k, i] = 0.0
        for _ in range(2):
            for p in range(k):
                along = 0.0
                for i in range(count):
                    along += c.F[p, i] * c.F[k, i]
                c.R[p, k] += along
                for i in range(count):
                    c.F[k, i] -= along * c.F[p, i]
        size = 0.0
        for i in range(count):
            size += c.F[k, i] ** 2
        size = np.sqrt(size)
        c.R[k, k] = size
        for i in range(count):
            c.F[k, i] = c.F[k, i] / size if size > 0.0 else 0.0


@inner
def least_squares(c, level):
    """Solve F y = b, b by the order of the level; F becomes orthonormal, b what is left of it. Return its largest."""
    count, r = c.counts[level], c.rank[level]
    orthogonal(c, count, r)
    for k in range(r):
        along = 0.0
        for i in range(count):
            along += c.F[k, i] * c.b[i]
        c.y[k] = along
        for i in range(count):
            c.b[i] -= along * c.F[k, i]
    left = 0.0
    for i in range(count):
        left = max(left, abs(c.b[i]))
    for k in range(r - 1, -1, -1):
        total = c.y[k]
        for p in range(k + 1, r):
            total -= c.R[k, p] * c.y[p]
        c.y[k] = total / c.R[k, k]
    return left


@inner
def motion(c, r, target):
    """Write L^-T (w + Q^T y), which belongs to y and to what is in w."""
    n = c.w.size
    for j in range(n):
        total = c.w[j]
        for k in range(r):
            total += c.Q[k, j] * c.y[k]
        c.z[j] = total
    for j in range(n - 1, -1, -1):
        total = c.z[j]
        for i in range(j + 1, n):
            total -= c.L[i, j] * target[i]
        target[j] = total / c.L[j, j]


@inner
def accelerated(c, v, acceleration, multipliers, strict):
    """Solve M a + A^T lam = force, A a = -drift; return a status. Multipliers, and a verdict, where it is strict."""
    n, r, count = c.w.size, c.rank[RATES], c.counts[RATES]
    if not factored(c, RATES, count if strict else r):
        return MASSLESS if np.isfinite(size_of(c)) else NOT_FINITE
    if strict:
        choose(c, POSITIONS)
        choose(c, RATES)
        if not factored(c, RATES, r):
            return MASSLESS
    distance = directions(c, RATES)
    # w = L^-1 (force - A^T weights drift): the motion without rows
    for j in range(n):
        total = c.force[j]
        for k in range(r):
            row = c.order[RATES, k]
            total -= c.weights[row] * c.A[row, j] * c.drift[row]
        for i in range(j):
            total -= c.L[j, i] * c.w[i]
        c.w[j] = total / c.L[j, j]
    # b: what the rows still ask for, each in its own unit
    size = 0.0
    for i in range(count):
        row = c.order[RATES, i]
        along = 0.0
        for j in range(n):
            along += c.B[row, j] * c.w[j]
        c.b[i] = -c.scales[row] * c.drift[row] - along
        size = max(size, abs(along), abs(c.scales[row] * c.drift[row]))
    if strict:
        c.distance[1] = beyond(c, RATES)
    # least squares over the kept directions, then multipliers and verdict
    left = least_squares(c, RATES)
    motion(c, r, acceleration)
    if not strict:
        return REDUNDANT
    unique_forces(c, multipliers)
    return verdict(c, v, distance, left, size)


@inner
def beyond(c, level):
    """Return the largest part of a row of B beyond the kept directions."""
    n, worst = c.w.size, 0.0
    for i in range(c.rank[level], c.counts[level]):
        row = c.order[level, i]
        for j in range(n):
            c.z[j] = c.B[row, j]
        remainder(c, c.rank[level])
        size = 0.0
        for j in range(n):
            size += c.z[j] ** 2
        worst = max(worst, np.sqrt(size))
    return worst


@inner
def unique_forces(c, multipliers):
    """Write the multipliers of least norm that exert the forces of y: F^T D^-1 lam = -y."""
    r, count = c.rank[RATES], c.counts[RATES]
    n = c.w.size
    for i in range(count):
        row = c.order[RATES, i]
        for k in range(r):
            total = 0.0
            for j in range(n):
                total += c.B[row, j] * c.Q[k, j]
            c.F[k, i] = total / c.scales[row]
    orthogonal(c, count, r)
    for k in range(r):
        total = -c.y[k]
        for p in range(k):
            total -= c.R[p, k] * c.b[p]
        c.b[k] = total / c.R[k, k]
    for i in range(count):
        total = 0.0
        for k in range(r):
            total += c.F[k, i] * c.b[k]
        multipliers[c.order[RATES, i]] = total


@inner
def verdict(c, v, distance, left, size):
    """Return the status of accelerations at a state on the manifold: what is left is judged against what entered."""
    speed = lever = 0.0
    total = size_of(c)
    for j in range(v.size):
        speed += abs(v[j])
        total += c.w[j]
    for k in range(c.counts[RATES]):
        i = c.order[RATES, k]
        total += c.drift[i]
        for j in range(v.size):
            lever = max(lever, abs(c.scales[i] * c.A[i, j]))
    if not np.isfinite(total):
        return NOT_FINITE
    if c.rank[RATES] > 0 and not distance > ROUNDING:
        return DECLINED
    if c.distance[1] > max(RISEN, c.agree[0]):
        return DECLINED
    return REDUNDANT if left <= c.agree[0] * (size + lever * speed**2) else INCONSISTENT


@inner
def projected(c, level, target):
    """Write the least motion with A x = b in the metric of the mass, b / D in c.b; return what is left, over D."""
    if not factored(c, level, c.rank[level]):
        return np.nan
    directions(c, level)
    for j in range(c.w.size):
        c.w[j] = 0.0
    left = least_squares(c, level)
    motion(c, c.rank[level], target)
    return left
