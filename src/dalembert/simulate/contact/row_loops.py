"""Independent rows of a mode, and motions without mass that it holds, compiled."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import add_multiple, copy_to, dot, fill
from dalembert.kernel.loops import nested
from dalembert.kernel.views import flags, matrix, vector, whole
from dalembert.kkt.limits import DOUBT
from dalembert.simulate.contact.engine_memory import AT, HELD, KEPT_CONSTRAINTS, KEPT_ROWS, REDUNDANT
from dalembert.simulate.contact.friction_loops import static
from dalembert.simulate.limits import SEEN

# ----------------------------------------------------------------------------------------------------------------------
# Independent rows of the mode.


@nested
def choose(w):
    """Choose independent rows of the mode: constraint rows, normals of closed contacts, tangents of sticking ones.

    Constraint rows by size, down to the rank of the system where that is known, beside the sizes that rows of their
    constraint have: what tilted axes leave of a row is not scaled up. Contact rows one after the other.
    """
    mode_counts, known_rank, kept = whole(w, AT.mode_counts), whole(w, AT.known_rank), whole(w, AT.kept)
    tangents, row_sizes = whole(w, AT.tangents), vector(w, AT.row_sizes)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    A, M, W = matrix(w, AT.A), matrix(w, AT.M), matrix(w, AT.W)
    see_limbs(w)
    m, k, n = A.shape[0], closed.size, M.shape[0]
    Q = np.zeros((min(n, m + 3 * k), n))
    scale, y, rest = np.ones(n), np.zeros(n), np.zeros((m, n))
    for j in range(n):
        scale[j] = 1.0 / np.sqrt(M[j, j]) if M[j, j] > 0.0 else 1.0
    # constraint rows, pivoted
    count, used = 0, np.zeros(m, np.bool_)
    sizes = np.zeros(m)
    for i in range(m):
        for j in range(n):
            rest[i, j] = A[i, j] * scale[j]
        sizes[i] = np.sqrt(dot(rest[i], rest[i])) if known_rank[0] < 0 else row_sizes[i]
    most = m if known_rank[0] < 0 else known_rank[0]
    for _ in range(min(most, n)):
        best, largest = -1, DOUBT if known_rank[0] < 0 else 0.0
        for i in range(m):
            left = np.sqrt(dot(rest[i], rest[i])) / sizes[i] if sizes[i] > 0.0 else 0.0
            if not used[i] and left > largest:
                best, largest = i, left
        if best < 0:
            break
        used[best] = True
        fill(Q[count], 0.0)
        add_multiple(Q[count], 1.0 / np.sqrt(dot(rest[best], rest[best])), rest[best])
        for i in range(m):
            if not used[i]:
                for _ in range(2):
                    add_multiple(rest[i], -dot(Q[count], rest[i]), Q[count])
        count += 1
    place = 0
    for i in range(m):
        if used[i]:
            kept[place] = i
            place += 1
    mode_counts[KEPT_CONSTRAINTS] = place
    # contact rows in order: normals first
    mode_counts[REDUNDANT] = 0
    for part in range(2):
        for i in range(k):
            first, last = (0, 1) if part == 0 else (1, 1 + tangents[i])
            if not closed[i] or (part == 0 and not gapped[i]) or (part == 1 and slides[i]):
                continue
            if part == 1 and gapped[i] and not static(w, i) > 0.0:
                continue
            for j in range(first, last):
                size = 0.0
                for b in range(n):
                    y[b] = W[3 * i + j, b] * scale[b]
                    size += y[b] * y[b]
                if not size > 0.0:
                    continue
                for _ in range(2):
                    for a in range(count):
                        add_multiple(y, -dot(Q[a], y), Q[a])
                left = np.sqrt(dot(y, y) / size)
                if left > DOUBT and count < Q.shape[0]:
                    add_multiple(Q[count], 1.0 / np.sqrt(dot(y, y)), y)
                    count += 1
                    kept[place] = m + 3 * i + j
                    place += 1
                else:
                    mode_counts[REDUNDANT] = 1
    mode_counts[KEPT_ROWS] = place


# ----------------------------------------------------------------------------------------------------------------------
# Massless limbs: on the ground they are levers, in the air they are held (see `complementarity.py`).


@nested
def entry(A, W, held, row, j):
    """Return an entry of a row: of a constraint, of a contact, of a motion without mass that is held."""
    m, p = A.shape[0], W.shape[0]
    if row < m:
        return A[row, j]
    return W[row - m, j] if row < m + p else held[row - m - p, j]


@nested
def add_direction(Q, count, y, tolerance):
    """Add what is new of y to orthonormal rows Q; return their count."""
    size = dot(y, y)
    if not size > 0.0:
        return count
    for _ in range(2):
        for a in range(count):
            add_multiple(y, -dot(Q[a], y), Q[a])
    left = dot(y, y)
    if left > tolerance * tolerance * size and count < Q.shape[0]:
        for j in range(y.size):
            Q[count, j] = y[j] / np.sqrt(left)
        return count + 1
    return count


@nested
def complement(Q, count, scale, out):
    """Write an orthonormal basis of what rows Q, columns scaled, do not see; return its size."""
    n = Q.shape[0]
    y, size = np.zeros(n), 0
    total = count
    while total < n:
        best, largest = -1, 0.0
        for b in range(n):
            left = 1.0
            for a in range(total):
                left -= Q[a, b] * Q[a, b]
            if left > largest:
                best, largest = b, left
        fill(y, 0.0)
        y[best] = 1.0
        new = add_direction(Q, total, y, 0.0)
        if new == total:
            break
        for j in range(n):
            out[size, j] = Q[total, j] * scale[j]
        total, size = new, size + 1
    # orthonormal again after scaling
    basis, count = np.zeros((n, n)), 0
    for b in range(size):
        copy_to(y, out[b])
        count = add_direction(basis, count, y, 0.0)
    for b in range(count):
        copy_to(out[b], basis[b])
    return count


@nested
def mass_directions(w, Q, scale):
    """Write the directions that M sees, columns scaled to one, into Q; return how many."""
    M = matrix(w, AT.M)
    n, largest, y, count = M.shape[0], 0.0, np.zeros(M.shape[0]), 0
    for j in range(n):
        largest = max(largest, M[j, j])
    for j in range(n):
        scale[j] = 1.0 / np.sqrt(M[j, j]) if M[j, j] > DOUBT * largest else 1.0
    for i in range(n):
        for j in range(n):
            y[j] = M[i, j] * scale[i] * scale[j]
        if dot(y, y) > DOUBT * DOUBT:
            count = add_direction(Q, count, y, DOUBT)
    return count


@nested
def free_motions(w, rows, count):
    """Write an orthonormal basis of the motions without mass that some rows allow into `held_rows`; return its size."""
    A, W, held = matrix(w, AT.A), matrix(w, AT.W), matrix(w, AT.held_rows)
    n = held.shape[0]
    Q, scale, y = np.zeros((n, n)), np.ones(n), np.zeros(n)
    seen = mass_directions(w, Q, scale)
    for p in range(count):
        for j in range(n):
            y[j] = entry(A, W, held, rows[p], j) * scale[j]
        seen = add_direction(Q, seen, y, DOUBT)
    return complement(Q, seen, scale, held)


@nested
def hold_limbs(w):
    """Append the motions without mass that the mode allows to its rows; return how many; note whose feet they are."""
    kept, mode_counts = whole(w, AT.kept), whole(w, AT.mode_counts)
    A, W = matrix(w, AT.A), matrix(w, AT.W)
    mode_counts[HELD] = 0
    if whole(w, AT.limbs)[0] == 0:
        return 0
    mode_counts[HELD] = free_motions(w, kept, mode_counts[KEPT_ROWS])
    for j in range(mode_counts[HELD]):
        kept[mode_counts[KEPT_ROWS] + j] = A.shape[0] + W.shape[0] + j
    return mode_counts[HELD]


@nested
def see_limbs(w):
    """Note which contacts are feet of massless limbs: their rows see motions without mass."""
    massless = flags(w, AT.massless)
    A, W, M = matrix(w, AT.A), matrix(w, AT.W), matrix(w, AT.M)
    if whole(w, AT.limbs)[0] == 0:
        return
    n = M.shape[0]
    Q, scale, y, free = np.zeros((n, n)), np.ones(n), np.zeros(n), np.zeros((n, n))
    seen = mass_directions(w, Q, scale)
    for i in range(A.shape[0]):
        for j in range(n):
            y[j] = A[i, j] * scale[j]
        seen = add_direction(Q, seen, y, DOUBT)
    count = complement(Q, seen, scale, free)
    for i in range(massless.size):
        massless[i] = False
        for row in range(3 * i, 3 * i + 3):
            largest = 0.0
            for j in range(n):
                largest = max(largest, abs(W[row, j]))
            for b in range(count):
                massless[i] = massless[i] or abs(dot(W[row], free[b])) > SEEN * largest


@nested
def with_limbs(w, rows, count, taking, impulses, stiff):
    """Append motions without mass that are held to some constraint rows; write what stiffens massless feet that stay.

    M + rho R^T R in place of M has the same motions and forces, R the rows of feet that stay.
    """
    massless, slides = flags(w, AT.massless), flags(w, AT.slides)
    kept, mode_counts, tangents = whole(w, AT.kept), whole(w, AT.mode_counts), whole(w, AT.tangents)
    M, A, W = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W)
    fill(stiff, 0.0)
    if whole(w, AT.limbs)[0] == 0:
        return count
    n, m, trace, largest = M.shape[0], A.shape[0], 0.0, 0.0
    fixing = np.zeros(m + W.shape[0], np.int64)
    fixed = mode_counts[KEPT_CONSTRAINTS]
    for p in range(fixed):
        fixing[p] = kept[p]
    for i in range(massless.size):
        if not (taking[i] and massless[i]):
            continue
        rough = static(w, i) > 0.0 and (impulses or not slides[i])
        for j in range(1 + (tangents[i] if rough else 0)):
            size = dot(W[3 * i + j], W[3 * i + j])
            if size > 0.0:
                stiff[3 * i + j], largest = 1.0, max(largest, size)
                fixing[fixed] = m + 3 * i + j
                fixed += 1
    for j in range(n):
        trace += M[j, j]
    for row in range(stiff.size):
        stiff[row] *= trace / n / largest if largest > 0.0 else 0.0
    if impulses:
        free = free_motions(w, fixing, fixed)
    else:
        free = mode_counts[HELD] = free_motions(w, kept, mode_counts[KEPT_ROWS])
    for j in range(free):
        rows[count] = m + W.shape[0] + j
        count += 1
    return count
