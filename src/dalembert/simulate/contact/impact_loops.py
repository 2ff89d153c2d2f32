"""Impacts, compiled: impulses by Newton's law (Poisson's: Python, `engine.py`), certificates, impacts that pile up."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_to, dot, fill, substitute
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import flags, matrix, vector, whole, whole_matrix
from dalembert.kkt.limits import DOUBT
from dalembert.simulate.contact.cone_loops import block, other_rows, pose, solve_cones
from dalembert.simulate.contact.engine_memory import (
    AT,
    ENDLESS,
    ENERGY_AFTER,
    ENERGY_BEFORE,
    HARD,
    KNOWN,
    LAWS_MISSED,
    MOMENTUM,
    NO_IMPULSES,
    NOT_FINITE,
    RESIDUAL,
    SINGULAR,
    SOUND,
    TERMS,
    UNIQUENESS,
)
from dalembert.simulate.contact.row_loops import with_limbs
from dalembert.simulate.limits import ACCEPTED, STEADY, STRUCK_APART


@nested
def strike(w, taking, plastic, impulses, after):
    """Resolve the impact of contacts `taking`; write impulses (3 k,) and velocities after; return how it ended.

    `plastic` contacts have no restitution whatever they are.
    """
    cone_size, cone_row, pivot = whole(w, AT.cone_size), whole(w, AT.cone_row), whole(w, AT.pivot)
    M, factors, A = matrix(w, AT.M), matrix(w, AT.factors), matrix(w, AT.A)
    cone_G, W = matrix(w, AT.cone_G), matrix(w, AT.W)
    cone_g, missed, v = vector(w, AT.cone_g), vector(w, AT.missed), vector(w, AT.v)
    velocity, cone_r, restitution = vector(w, AT.velocity), vector(w, AT.cone_r), vector(w, AT.restitution)
    poisson_, held, limb = flags(w, AT.poisson), matrix(w, AT.held_rows), vector(w, AT.limb)
    powers, impact, row_impulses = vector(w, AT.powers), vector(w, AT.impact), vector(w, AT.row_impulses)
    calls = whole_matrix(w, AT.calls)
    n, m = M.shape[0], A.shape[0]
    rows, stiff = np.zeros(m + n, np.int64), np.zeros(W.shape[0])
    count = with_limbs(w, rows, other_rows(w, rows, True), taking, True, stiff)
    if not block(w, rows, count, stiff):
        return SINGULAR
    # the velocity without impulses of these contacts: massless feet that land stop at once
    free = np.zeros(n + count)
    if whole(w, AT.limbs)[0]:
        for i in range(n):
            free[i] = dot(M[i], v)
        for o in range(count):
            free[n + o] = dot(A[rows[o]], v) if rows[o] < m else dot(held[rows[o] - m - W.shape[0]], limb)
        substitute(factors, n + count, pivot, free)
    else:
        copy_to(free, v)
    pose(w, taking, 1)
    p = cone_size[0]
    X, H = np.zeros((p, n + count)), np.zeros((p, n))
    for a in range(p):
        own = cone_row[a]
        for j in range(n):
            H[a, j] = W[own, j] if own >= 0 else A[-1 - own, j]
            X[a, j] = H[a, j]
        substitute(factors, n + count, pivot, X[a])
    poisson = False
    for a in range(p):
        own = cone_row[a]
        cone_g[a] = velocity[own] if own >= 0 else 0.0
        for j in range(n):
            cone_g[a] += H[a, j] * (free[j] - v[j])
        if own >= 0 and own % 3 == 0:
            i = own // 3
            if poisson_[i]:
                poisson = poisson or (restitution[i] > 0.0 and not plastic[i])
            elif not plastic[i]:
                cone_g[a] += restitution[i] * min(velocity[own], 0.0)
        for b in range(p):
            total = 0.0
            for j in range(n):
                total += H[a, j] * X[b, j]
            cone_G[a, b] = total
    sound = True
    if poisson:
        missed[0] = 2.0  # the law of impulses has two phases: Python knows it
        for i in range(plastic.size):
            missed[1 + i] = 1.0 if plastic[i] else 0.0
        invoke(calls[HARD, 0], calls[HARD, 1], calls[HARD, 2])
        sound, powers[RESIDUAL] = missed[0] <= ACCEPTED, missed[0]
    elif p:
        sound = solve_cones(w, p, cone_size[1])
    if not sound:
        return NO_IMPULSES
    impact[LAWS_MISSED] = max(impact[LAWS_MISSED], powers[RESIDUAL] if p else 0.0)
    impact[UNIQUENESS] = max(impact[UNIQUENESS], 0.0 if independent(cone_G, p) else 1.0)
    fill(impulses, 0.0)
    for j in range(n):
        after[j] = free[j]
    for a in range(p):
        for j in range(n):
            after[j] += X[a, j] * cone_r[a]
        for o in range(count):
            if rows[o] < m:
                row_impulses[rows[o]] += X[a, n + o] * cone_r[a]
        if cone_row[a] >= 0:
            impulses[cone_row[a]] = cone_r[a]
    for j in range(n):
        if not np.isfinite(after[j]):
            return NOT_FINITE
    return SOUND


@nested
def strike_one_by_one(w, touching, plastic, impulses, after):
    """Resolve impacts of contacts one after the other, the fastest first; write as `strike`; return how it ended."""
    v, velocity, gapped = vector(w, AT.v), vector(w, AT.velocity), flags(w, AT.gapped)
    calls, k = whole_matrix(w, AT.calls), touching.size
    total, taking = np.zeros(3 * k), np.zeros(k, np.bool_)
    for _ in range(10_000):
        worst, slowest = -1, np.inf
        fastest = 1.0
        for i in range(k):
            if gapped[i]:
                fastest = max(fastest, abs(velocity[3 * i]))
        for i in range(k):
            if gapped[i] and touching[i] and velocity[3 * i] < slowest:
                worst, slowest = i, velocity[3 * i]
        if worst < 0 or slowest >= -STRUCK_APART * fastest:
            copy_to(impulses, total)
            copy_to(after, v)
            return SOUND
        fill(taking, False)
        taking[worst] = True
        code = strike(w, taking, plastic, impulses, after)
        if code != SOUND:
            return code
        total += impulses
        copy_to(v, after)
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    return ENDLESS


@nested
def independent(G, p):
    """Return whether the rows of contacts are independent: no pivot of G, scaled to one, is rounding."""
    S = np.zeros((p, p))
    for a in range(p):
        for b in range(p):
            size = np.sqrt(G[a, a] * G[b, b])
            S[a, b] = G[a, b] / size if size > 0.0 else 0.0
    for a in range(p):
        if not S[a, a] > DOUBT:
            return False
        for b in range(a + 1, p):
            part = S[b, a] / S[a, a]
            for c in range(a, p):
                S[b, c] -= part * S[a, c]
    return True


@nested
def certify(w, start):
    """Write kinetic energies before and after an impact, and what its balance of momentum misses.

    M (v+ - v-) + A^T L = W^T P, with velocities as they are after contacts have closed, relative to its terms.
    """
    impulses, row_impulses, impact = vector(w, AT.impulses), vector(w, AT.row_impulses), vector(w, AT.impact)
    M, A, W, v0 = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W), vector(w, AT.v0)
    n, before, after, worst, data = v0.size, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        held, pushed = dot(M[i], start), 0.0
        moved = dot(M[i], v0)
        before, after = before + 0.5 * start[i] * held, after + 0.5 * v0[i] * moved
        missing = moved - held
        for row in range(A.shape[0]):
            missing += A[row, i] * row_impulses[row]
        for row in range(W.shape[0]):
            missing -= W[row, i] * impulses[row]
            pushed = max(pushed, abs(W[row, i] * impulses[row]))
        worst, data = max(worst, abs(missing)), max(data, abs(held), abs(moved), pushed)
    impact[MOMENTUM] = worst / data if data > 0.0 else 0.0
    impact[ENERGY_BEFORE], impact[ENERGY_AFTER] = before, after


@nested
def limit_of(times, t, longest):
    """Return the limit of a steady sequence of impacts, the last at t, if it ends within `longest`, or 0."""
    all_times = np.zeros(KNOWN)
    for j in range(KNOWN - 1):
        all_times[j] = times[j + 1]
    all_times[KNOWN - 1] = t
    for j in range(KNOWN):
        if not np.isfinite(all_times[j]):
            return 0.0
    low, high, p, last = np.inf, 0.0, 0.0, 0.0
    for j in range(KNOWN - 1):
        interval = all_times[j + 1] - all_times[j]
        if not interval > 0.0:
            return 0.0
        if j > 0:
            p = interval / last
            low, high = min(low, p), max(high, p)
        last = interval
    if p >= 1.0 or high - low > STEADY or last * p / (1.0 - p) > longest:
        return 0.0
    return t + last * p / (1.0 - p)
