"""Complementarity, compiled: forces and impulses of all closed contacts at once.

It decides at transitions, and where rows of contacts depend on each other.

    G = H K^-1 H^T, g = H x_free + shift:   u' = G r + g,   0 <= u'_N perp r_N >= 0,   r_T within Coulomb's cone

H rows of the contacts that take part, K the block matrix of the others.
"""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.friction.cones.sweeps import COULOMB, attempt
from dalembert.friction.contact_problem import BILATERAL, FIXED, UNILATERAL
from dalembert.friction.limits import AIM, EXPLAINED
from dalembert.kernel.array_loops import add_multiple, copy_to, dot, factor, fill, substitute
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import flags, matrix, vector, whole, whole_matrix
from dalembert.simulate.contact.engine_memory import (
    APPROACH,
    AT,
    CONTACT,
    HARD,
    KEPT_CONSTRAINTS,
    NO_FORCES,
    NOT_FINITE,
    NUMBER,
    PAINLEVE,
    RESIDUAL,
    SINGULAR,
    SLIPPING_LIMB,
    SOUND,
)
from dalembert.simulate.contact.friction_loops import limit_factor, set_directions, set_rates, static
from dalembert.simulate.contact.impulse_loops import resistance
from dalembert.simulate.contact.row_loops import entry, with_limbs
from dalembert.simulate.limits import ACCEPTED, CONE_NEWTON, CONE_SWEEPS, EVEN_SHARES, NO_VELOCITY, SLIPS

# ----------------------------------------------------------------------------------------------------------------------
# The problem of all closed contacts.


@nested
def block(w, rows, count, stiff):
    """Factor the block matrix of rows and M, stiffened by `stiff` (3 k,); return whether it is regular."""
    factors, M, A = matrix(w, AT.factors), matrix(w, AT.M), matrix(w, AT.A)
    W, held = matrix(w, AT.W), matrix(w, AT.held_rows)
    pivot = whole(w, AT.pivot)
    n = M.shape[0]
    size = n + count
    for i in range(n):
        for j in range(n):
            factors[i, j] = M[i, j]
    for row in range(stiff.size):
        if stiff[row] > 0.0:
            for i in range(n):
                for j in range(n):
                    factors[i, j] += stiff[row] * W[row, i] * W[row, j]
    for p in range(count):
        for j in range(n):
            value = entry(A, W, held, rows[p], j)
            factors[n + p, j] = value
            factors[j, n + p] = value
        for o in range(count):
            factors[n + p, n + o] = 0.0
    return factor(factors, size, pivot)


@nested
def other_rows(w, rows, impulses):
    """Write the independent constraint rows that load no contact that takes part; return how many."""
    mode_counts, kept, load_row = whole(w, AT.mode_counts), whole(w, AT.kept), whole(w, AT.load_row)
    closed, gapped = flags(w, AT.closed), flags(w, AT.gapped)
    count = 0
    for p in range(mode_counts[KEPT_CONSTRAINTS]):
        row, loads = kept[p], False
        for i in range(closed.size):
            loads = loads or (load_row[i] == row and not gapped[i])
        if not loads:
            rows[count] = row
            count += 1
    return count


@nested
def pose(w, taking, impulses):
    """Write kinds, coefficients and rows of the contacts that take part; known forces go to w.right."""
    cone_first, cone_size, cone_kind = whole(w, AT.cone_first), whole(w, AT.cone_size), whole(w, AT.cone_kind)
    cone_row, load_row, tangents = whole(w, AT.cone_row), whole(w, AT.load_row), whole(w, AT.tangents)
    closed, cone_sliding, gapped = flags(w, AT.closed), flags(w, AT.cone_sliding), flags(w, AT.gapped)
    slides, pushes = flags(w, AT.slides), flags(w, AT.pushes)
    cone_s, cone_mu, load = vector(w, AT.cone_s), vector(w, AT.cone_mu), vector(w, AT.load)
    sliding_unit = matrix(w, AT.sliding_unit)
    rows = contacts = 0
    cone_first[0] = 0
    for i in range(closed.size):
        if not taking[i]:
            continue
        own = gapped[i] or load_row[i] >= 0
        if not own and (impulses or slides[i]):
            continue
        cone_sliding[contacts] = slides[i] and not impulses
        if own:
            cone_kind[contacts] = UNILATERAL if gapped[i] or pushes[i] else BILATERAL
            cone_row[rows] = 3 * i if gapped[i] else -1 - load_row[i]
            cone_s[rows] = 0.0
            rows += 1
            cone_mu[contacts] = limit_factor(w, i) if cone_sliding[contacts] else static(w, i)
        else:
            cone_kind[contacts] = FIXED
            cone_mu[contacts] = load[i] * static(w, i)
        if not own or cone_mu[contacts] > 0.0:
            for j in range(tangents[i]):
                cone_row[rows], cone_s[rows] = 3 * i + 1 + j, sliding_unit[i, j]
                rows += 1
        contacts += 1
        cone_first[contacts] = rows
    cone_size[0], cone_size[1], cone_size[2] = rows, contacts, impulses


# ----------------------------------------------------------------------------------------------------------------------
# Its solution.


@nested
def largest_equal(y):
    """Make all parts of limits one, which is the least that the largest can be where they hold one motion alone.

    Then y is along the one row v of B, and the same product with v is had by sign(v) |y|^2 / sum |y|; where there are
    more motions this does not hold them, and complementarity decides.
    """
    squares, sizes = 0.0, 0.0
    for a in range(y.size):
        squares, sizes = squares + y[a] * y[a], sizes + abs(y[a])
    for a in range(y.size):
        y[a] = np.sign(y[a]) * squares / sizes


@nested
def shared_evenly(w, G, g, r):
    """Write forces that hold sticking contacts with given limits: of all, the least in parts of these limits.

    With y = r / mu and B = mu G mu: B y = -mu g of least |y|, by steps with B + EVEN_SHARES I, which stay in the range
    of B. Where one is beyond its limit, all get the same part. Return whether they are within the limits; where they
    are not they are cut off there.
    """
    cone_kind, cone_first, cone_size = whole(w, AT.cone_kind), whole(w, AT.cone_first), whole(w, AT.cone_size)
    cone_mu = vector(w, AT.cone_mu)
    contacts, p, fixed = cone_size[1], g.size, True
    mu, y, part = np.ones(p), np.zeros(p), np.zeros(p)
    for i in range(contacts):
        fixed = fixed and cone_kind[i] == FIXED and cone_mu[i] > 0.0
        for a in range(cone_first[i], cone_first[i + 1]):
            mu[a] = cone_mu[i]
    fill(r, 0.0)
    if not fixed or cone_size[2]:
        return False
    B, LU, pivot, largest = np.zeros((p, p)), np.zeros((p, p)), np.zeros(p, np.int64), 0.0
    for a in range(p):
        for b in range(p):
            B[a, b] = mu[a] * G[a, b] * mu[b]
            LU[a, b] = B[a, b]
        largest = max(largest, B[a, a])
    for a in range(p):
        LU[a, a] += EVEN_SHARES * largest
    if not factor(LU, p, pivot):
        return False
    for _ in range(4):
        for a in range(p):
            part[a] = -mu[a] * g[a] - dot(B[a], y)
        substitute(LU, p, pivot, part)
        add_multiple(y, 1.0, part)
    beyond = 0.0
    for a in range(p):
        beyond = max(beyond, abs(y[a]))
    if beyond > 1.0 and p == contacts:
        largest_equal(y)
    holds, missing, size = True, 0.0, 0.0
    for i in range(contacts):
        length = 0.0
        for a in range(cone_first[i], cone_first[i + 1]):
            length += y[a] * y[a]
        cut = 1.0 / np.sqrt(length) if length > 1.0 else 1.0
        holds = holds and length <= 1.0
        for a in range(cone_first[i], cone_first[i + 1]):
            r[a] = mu[a] * y[a] * cut
    for a in range(p):
        missing, size = max(missing, abs(dot(G[a], r) + g[a])), max(size, abs(g[a]))
    return holds and missing <= AIM * size


@nested
def cut_off(w, r):
    """Cut friction along one direction off at its limit, which it may exceed by rounding."""
    cone_kind, cone_first, cone_size = whole(w, AT.cone_kind), whole(w, AT.cone_first), whole(w, AT.cone_size)
    cone_mu = vector(w, AT.cone_mu)
    for i in range(cone_size[1]):
        normal = 0 if cone_kind[i] == FIXED else 1
        a = cone_first[i] + normal
        if cone_first[i + 1] - a == 1:
            limit = cone_mu[i] * (abs(r[a - 1]) if normal else 1.0)
            r[a] = min(max(r[a], -limit), limit)


@nested
def solve_cones(w, rows, contacts):
    """Solve the problem in w.G, w.g; return whether its laws hold."""
    powers, cone_r, missed = vector(w, AT.powers), vector(w, AT.cone_r), vector(w, AT.missed)
    cone_g, cone_mu, cone_s = vector(w, AT.cone_g), vector(w, AT.cone_mu), vector(w, AT.cone_s)
    cone_kind, cone_first = whole(w, AT.cone_kind), whole(w, AT.cone_first)
    calls = whole_matrix(w, AT.calls)
    cone_G = matrix(w, AT.cone_G)
    cone_sliding = flags(w, AT.cone_sliding)
    G, g = cone_G[:rows, :rows].copy(), cone_g[:rows].copy()
    r = np.zeros(rows)
    if contacts == 1 and rows == 1 and cone_kind[0] == UNILATERAL:
        r[0] = max(0.0, -g[0] / G[0, 0]) if G[0, 0] > 0.0 else 0.0
        cone_r[0], powers[RESIDUAL] = r[0], 0.0
        return G[0, 0] > 0.0 or g[0] >= 0.0
    if shared_evenly(w, G, g, r):
        copy_to(cone_r, r)
        powers[RESIDUAL] = 0.0
        return True
    residual, _ = attempt(
        G, g, cone_first[: contacts + 1].copy(), cone_mu[:contacts].copy(), COULOMB, cone_kind[:contacts].copy(),
        cone_sliding[:contacts].copy(), cone_s[:rows].copy(), r, AIM, CONE_SWEEPS, CONE_NEWTON,
    )  # fmt: skip
    # two steps of Newton's more: the end of redundant sticking is found from accelerations that are nearly zero
    if 0.0 < residual <= AIM:
        residual, _ = attempt(
            G, g, cone_first[: contacts + 1].copy(), cone_mu[:contacts].copy(), COULOMB, cone_kind[:contacts].copy(),
            cone_sliding[:contacts].copy(), cone_s[:rows].copy(), r, 0.0, 0, 2,
        )  # fmt: skip
    cut_off(w, r)
    # reactions beyond what the data explain are part of a contradiction
    explained, sound = 0.0, residual <= ACCEPTED
    for j in range(rows):
        explained = max(explained, abs(g[j]))
    for j in range(rows):
        if G[j, j] * abs(r[j]) > EXPLAINED * max(explained, NO_VELOCITY) or not np.isfinite(r[j]):
            sound = False
    for j in range(rows):
        cone_r[j] = r[j]
    if not sound:
        missed[0] = 1.0
        invoke(calls[HARD, 0], calls[HARD, 1], calls[HARD, 2])
        sound, residual = missed[0] <= ACCEPTED, missed[0]
    powers[RESIDUAL] = residual
    return sound


@nested
def decided(w):
    """Decide forces and accelerations of all closed contacts by complementarity; return how it ended."""
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    cone_size, pivot, cone_row = whole(w, AT.cone_size), whole(w, AT.pivot), whole(w, AT.cone_row)
    load_row = whole(w, AT.load_row)
    factors, M, A = matrix(w, AT.factors), matrix(w, AT.M), matrix(w, AT.A)
    cone_G, W, sliding_unit = matrix(w, AT.cone_G), matrix(w, AT.W), matrix(w, AT.sliding_unit)
    lam, reactions, cone_g = vector(w, AT.lam), vector(w, AT.reactions), vector(w, AT.cone_g)
    acceleration, force, bias = vector(w, AT.acceleration), vector(w, AT.force), vector(w, AT.bias)
    drift, shift, cone_r = vector(w, AT.drift), vector(w, AT.shift), vector(w, AT.cone_r)
    load, powers = vector(w, AT.load), vector(w, AT.powers)
    held, limb_rate = matrix(w, AT.held_rows), vector(w, AT.limb_rate)
    n, m = M.shape[0], A.shape[0]
    set_directions(w)
    rows, stiff = np.zeros(m + n, np.int64), np.zeros(W.shape[0])
    count = with_limbs(w, rows, other_rows(w, rows, False), closed, False, stiff)
    if not block(w, rows, count, stiff):
        return SINGULAR
    pose(w, closed, 0)
    p = cone_size[0]
    # the motion without reactions of the contacts; sliding ones with a given limit push already
    free = np.zeros(n + count)
    for j in range(n):
        free[j] = force[j] - bias[j]
    for i in range(closed.size):
        if closed[i] and slides[i] and not gapped[i] and load_row[i] < 0:
            size = load[i] * limit_factor(w, i)
            for j in range(n):
                free[j] -= size * (W[3 * i + 1, j] * sliding_unit[i, 0] + W[3 * i + 2, j] * sliding_unit[i, 1])
    for row in range(stiff.size):
        if stiff[row] > 0.0:
            for j in range(n):
                free[j] -= stiff[row] * W[row, j] * shift[row]
    for o in range(count):
        free[n + o] = -drift[rows[o]] if rows[o] < m else dot(held[rows[o] - m - W.shape[0]], limb_rate)
    substitute(factors, n + count, pivot, free)
    X = np.zeros((p, n + count))
    H = np.zeros((p, n))
    for a in range(p):
        own = cone_row[a]
        for j in range(n):
            H[a, j] = W[own, j] if own >= 0 else A[-1 - own, j]
            X[a, j] = H[a, j]
        substitute(factors, n + count, pivot, X[a])
    for a in range(p):
        own = cone_row[a]
        total = shift[own] if own >= 0 else drift[-1 - own]
        for j in range(n):
            total += H[a, j] * free[j]
        cone_g[a] = total
        for b in range(p):
            total = 0.0
            for j in range(n):
                total += H[a, j] * X[b, j]
            cone_G[a, b] = total
    powers[RESIDUAL] = 0.0
    if p and not solve_cones(w, p, cone_size[1]):
        code = paradox(w)
        return NO_FORCES if code == SOUND else code
    fill(lam, 0.0)
    fill(reactions, 0.0)
    for a in range(p):
        for j in range(n + count):
            free[j] += X[a, j] * cone_r[a]
        if cone_row[a] >= 0:
            reactions[cone_row[a]] = cone_r[a]
        else:
            lam[-1 - cone_row[a]] = -cone_r[a]
    for j in range(n):
        if not np.isfinite(free[j]):
            return NOT_FINITE
        acceleration[j] = free[j]
    for o in range(count):
        if rows[o] < m:
            lam[rows[o]] = free[n + o]
    for i in range(closed.size):
        if closed[i] and slides[i] and not gapped[i] and load_row[i] < 0:
            size = load[i] * limit_factor(w, i)
            reactions[3 * i + 1], reactions[3 * i + 2] = -size * sliding_unit[i, 0], -size * sliding_unit[i, 1]
    set_rates(w)
    return slipping_limb(w)


# ----------------------------------------------------------------------------------------------------------------------
# Contacts that have no answer.


@nested
def slipping_limb(w):
    """Refuse feet of massless limbs that are pushed out of their cones: nothing would resist; return how it ended."""
    closed, slides, massless = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.massless)
    reactions, contact_rate = vector(w, AT.reactions), vector(w, AT.contact_rate)
    trouble = vector(w, AT.trouble)
    if whole(w, AT.limbs)[0] == 0:
        return SOUND
    largest = 0.0
    for j in range(contact_rate.size):
        largest = max(largest, abs(contact_rate[j]))
    for i in range(closed.size):
        if closed[i] and massless[i] and reactions[3 * i] > 0.0 and static(w, i) > 0.0:
            begins = np.sqrt(contact_rate[3 * i + 1] ** 2 + contact_rate[3 * i + 2] ** 2)
            if slides[i] or begins > SLIPS * (1.0 + largest):
                trouble[CONTACT], trouble[NUMBER] = i, static(w, i)
                return SLIPPING_LIMB
    return SOUND


@nested
def paradox(w):
    """Look for sliding contacts whose friction leaves no force, or several: G_NN - mu G_NT . d <= 0."""
    force, bias, drift = vector(w, AT.force), vector(w, AT.bias), vector(w, AT.drift)
    shift, trouble = vector(w, AT.shift), vector(w, AT.trouble)
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    W, factors, A = matrix(w, AT.W), matrix(w, AT.factors), matrix(w, AT.A)
    sliding_unit = matrix(w, AT.sliding_unit)
    pivot = whole(w, AT.pivot)
    n, m = W.shape[1], A.shape[0]
    rows, stiff = np.zeros(m + n, np.int64), np.zeros(W.shape[0])
    for i in range(closed.size):
        if not (closed[i] and slides[i] and gapped[i]):
            continue
        count = with_limbs(w, rows, other_rows(w, rows, False), closed, False, stiff)
        if not block(w, rows, count, stiff):
            return SOUND
        y, free = np.zeros(n + count), np.zeros(n + count)
        copy_to(y, W[3 * i])
        substitute(factors, n + count, pivot, y)
        effective = resistance(W, 3 * i, limit_factor(w, i), sliding_unit[i, 0], sliding_unit[i, 1], y)
        if effective <= 0.0:
            for j in range(n):
                free[j] = force[j] - bias[j]
                for row in range(stiff.size):
                    free[j] -= stiff[row] * W[row, j] * shift[row]
            for o in range(count):
                free[n + o] = -drift[rows[o]] if rows[o] < m else 0.0
            substitute(factors, n + count, pivot, free)
            trouble[CONTACT], trouble[NUMBER] = i, effective
            trouble[APPROACH] = shift[3 * i] + dot(W[3 * i], free[:n])
            return PAINLEVE
    return SOUND
