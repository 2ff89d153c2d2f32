"""Friction of contacts at a state, compiled: laws, directions of sliding, rates and powers.

Symbols: u = W v + offsets relative velocities, u' = W a + shift; r reactions on the system (N, T, T); T_s, T_k limits
of friction for unit load, at rest and at a speed.
"""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.friction.laws import laws
from dalembert.kernel.array_loops import copy_to, dot, factor, substitute
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import flags, matrix, vector, whole, whole_matrix
from dalembert.simulate.contact.engine_memory import AT, FRICTION_WORK, HEAT, HELD, LAWS, POWER
from dalembert.simulate.limits import ROW_AT_REST

DRY, STRIBECK, HYPERBOLIC, TABULATED, OTHER = range(5)
"""Laws of friction that loops know; `OTHER` ones are asked by a call."""


# ----------------------------------------------------------------------------------------------------------------------
# Laws.


stribeck, hyperbolic = nested(laws.stribeck), nested(laws.hyperbolic)
"""The formulas of laws, compiled."""


@nested
def kinetic(w, i, s):
    """Return T_k at a speed s >= 0."""
    law_speeds, law_kinetic, law_tables = vector(w, AT.law_speeds), vector(w, AT.law_kinetic), vector(w, AT.law_tables)
    law_ = whole(w, AT.law)
    law_numbers = matrix(w, AT.law_numbers)
    calls = whole_matrix(w, AT.calls)
    law, p = law_[i], law_numbers[i]
    if law == DRY:
        return p[1]
    if law == STRIBECK:
        return stribeck(s, p[0], p[1], p[2], p[3], p[4])
    if law == HYPERBOLIC:
        return hyperbolic(s, p[0], p[1])
    if law == TABULATED:
        first, count = int(p[1]), int(p[2])
        if s >= law_tables[first + count - 1]:
            return law_tables[first + 2 * count - 1]
        j = 0
        while law_tables[first + j + 1] <= s:
            j += 1
        low, high = law_tables[first + j], law_tables[first + j + 1]
        part = (s - low) / (high - low)
        return (1.0 - part) * law_tables[first + count + j] + part * law_tables[first + count + j + 1]
    law_speeds[i] = s
    invoke(calls[LAWS, 0], calls[LAWS, 1], calls[LAWS, 2])
    return law_kinetic[i]


@nested
def static(w, i):
    """Return T_s."""
    law_static = vector(w, AT.law_static)
    law = whole(w, AT.law)
    law_numbers = matrix(w, AT.law_numbers)
    calls = whole_matrix(w, AT.calls)
    if law[i] != OTHER:
        return law_numbers[i, 0]
    invoke(calls[LAWS, 0], calls[LAWS, 1], calls[LAWS, 2])
    return law_static[i]


@nested
def continued(w, i, s):
    """Return T_k, continued to speeds below zero by its cubic through 0, d, 2 d, 3 d, d = -s."""
    law = whole(w, AT.law)
    if s >= 0.0 or law[i] == DRY:
        return kinetic(w, i, max(s, 0.0))
    return (
        4.0 * kinetic(w, i, 0.0) - 6.0 * kinetic(w, i, -s) + 4.0 * kinetic(w, i, -2.0 * s)
        - kinetic(w, i, -3.0 * s)
    )  # fmt: skip


@nested
def static_applies(w, i):
    """Return whether a contact that does not slide sticks: it has friction, or its limit is given."""
    gapped = flags(w, AT.gapped)
    return not gapped[i] or static(w, i) > 0.0


@nested
def limit_factor(w, i):
    """Return the limit of a sliding contact for unit load."""
    sliding_speed = vector(w, AT.sliding_speed)
    return continued(w, i, sliding_speed[i])


# ----------------------------------------------------------------------------------------------------------------------
# Directions of sliding, rates and powers.


@nested
def set_directions(w):
    """Write unit vectors of sliding and speeds along them; return how many planes are too slow to tell."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    sliding_speed, velocity, slow_ = vector(w, AT.sliding_speed), vector(w, AT.velocity), vector(w, AT.slow)
    sliding_unit, direction = matrix(w, AT.sliding_unit), matrix(w, AT.direction)
    tangents = whole(w, AT.tangents)
    slow = 0
    for i in range(closed.size):
        sliding_unit[i, 0], sliding_unit[i, 1], sliding_speed[i] = 0.0, 0.0, 0.0
        if not (closed[i] and slides[i]):
            continue
        a, b = velocity[3 * i + 1], velocity[3 * i + 2]
        sliding_unit[i, 0], sliding_unit[i, 1] = direction[i, 0], direction[i, 1]
        sliding_speed[i] = a * direction[i, 0] + b * direction[i, 1]
        if tangents[i] < 2:
            continue
        size = np.sqrt(a * a + b * b)
        # next to its end a sliding velocity may have crossed zero inside a step: the direction must not turn round
        if size > slow_[i] and sliding_speed[i] > 0.0:
            sliding_unit[i, 0], sliding_unit[i, 1], sliding_speed[i] = a / size, b / size, size
        elif slow_[i] > 0.0:
            slow += 1
    return slow


@nested
def rate_of_itself(w, row):
    """Return the rate b of a constraint row that moves by itself, A v + b = 0; zero where it is rounding.

    Of rows that are known by their accelerations alone psi is zero, and b = -A v.
    """
    A, v, psi = matrix(w, AT.A), vector(w, AT.v), vector(w, AT.psi)
    total, size = psi[row], abs(psi[row])
    for j in range(v.size):
        total -= A[row, j] * v[j]
        size += abs(A[row, j] * v[j])
    return total if abs(total) > ROW_AT_REST * size else 0.0


@nested
def set_rates(w):
    """Write accelerations of contacts, and powers: of forces and drives, of heat, of contacts on the system.

    Drives are rows that move by themselves: their force -A^T lam has the power lam . b. Normal forces have one where a
    gap moves by itself.
    """
    M, W = matrix(w, AT.M), matrix(w, AT.W)
    contact_rate, powers, force = vector(w, AT.contact_rate), vector(w, AT.powers), vector(w, AT.force)
    v, shift, acceleration = vector(w, AT.v), vector(w, AT.shift), vector(w, AT.acceleration)
    reactions, velocity, lam = vector(w, AT.reactions), vector(w, AT.velocity), vector(w, AT.lam)
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    n = M.shape[0]
    power, heat, friction = vector(w, AT.applied)[0], 0.0, 0.0
    for j in range(n):
        power += force[j] * v[j]
    # what leads a limb without mass takes the power of the forces on it
    held, bias = matrix(w, AT.held_rows), vector(w, AT.bias)
    for b in range(whole(w, AT.mode_counts)[HELD]):
        pull, along = 0.0, 0.0
        for j in range(n):
            pull += held[b, j] * (force[j] - bias[j])
            along += held[b, j] * v[j]
        power -= pull * along
    for row in range(lam.size):
        if lam[row] != 0.0:
            power += lam[row] * rate_of_itself(w, row)
    for row in range(W.shape[0]):
        total, speed = shift[row], 0.0
        for j in range(n):
            total += W[row, j] * acceleration[j]
            speed += W[row, j] * v[j]
        contact_rate[row] = total
        if not closed[row // 3]:
            continue
        if row % 3 == 0:
            friction += reactions[row] * (speed - velocity[row])
            continue
        friction += reactions[row] * speed
        if slides[row // 3]:
            heat -= reactions[row] * velocity[row]
    powers[POWER], powers[HEAT], powers[FRICTION_WORK] = power, heat, friction


@nested
def own_acceleration(w, i):
    """Return the largest relative acceleration that a friction force of the size of contact i's makes there."""
    M, W = matrix(w, AT.M), matrix(w, AT.W)
    reactions = vector(w, AT.reactions)
    n = M.shape[0]
    size = np.sqrt(reactions[3 * i + 1] ** 2 + reactions[3 * i + 2] ** 2)
    LU, pivot, y = M.copy(), np.zeros(n, np.int64), np.zeros(n)
    if not factor(LU, n, pivot):
        return 0.0
    total = 0.0
    for j in range(1, 3):
        copy_to(y, W[3 * i + j])
        substitute(LU, n, pivot, y)
        total += dot(W[3 * i + j], y)
    return size * total


@nested
def terms_of(w, i):
    """Return the size of the terms that the relative velocity of a contact is summed from."""
    v, velocity = vector(w, AT.v), vector(w, AT.velocity)
    W = matrix(w, AT.W)
    total = 0.0
    for j in range(1, 3):
        size, sum_of = 0.0, 0.0
        for b in range(v.size):
            size += abs(W[3 * i + j, b] * v[b])
            sum_of += W[3 * i + j, b] * v[b]
        size += abs(velocity[3 * i + j] - sum_of)
        total += size * size
    return np.sqrt(total)
