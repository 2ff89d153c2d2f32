"""Projection, compiled: positions and velocities put back on the rows of the mode.

By the least change in the metric of the mass.
"""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import add_multiple, copy_to, dot, factor, fill, substitute
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.kkt import newton
from dalembert.simulate.contact.engine_memory import (
    ALONG,
    AT,
    CALLBACK,
    CODE,
    FAILED,
    FIRST,
    KEPT_ROWS,
    PROJECT,
    ROWS,
    SINGULAR,
    SOUND,
    TERMS,
)
from dalembert.simulate.contact.row_loops import entry, free_motions
from dalembert.simulate.limits import CLOSED_MODE, DEPENDENT_ENTRY, HELPS, LIGHT, MOST_CLOSING

goes_on = nested(newton.goes_on)
"""The rule by which Newton's method onto the rows ends, compiled."""


@nested
def least_change(w, rows, count, missing, out):
    """Write the least change, in the metric of the mass, that moves some rows by -missing; return whether there is."""
    solution = vector(w, AT.solution)
    factors, M, A = matrix(w, AT.factors), matrix(w, AT.M), matrix(w, AT.A)
    W, held = matrix(w, AT.W), matrix(w, AT.held_rows)
    pivot = whole(w, AT.pivot)
    n, m, given = M.shape[0], A.shape[0], count
    if whole(w, AT.limbs)[0]:
        # what has no mass and is not held by these rows stays
        for j in range(free_motions(w, rows, count)):
            rows[count] = m + W.shape[0] + j
            count += 1
    size = n + count
    x = solution
    for i in range(n):
        x[i] = 0.0
        for j in range(n):
            factors[i, j] = M[i, j]
    for p in range(count):
        x[n + p] = -missing[p] if p < given else 0.0
        row = rows[p]
        for j in range(n):
            value = entry(A, W, held, row, j)
            factors[n + p, j] = value
            factors[j, n + p] = value
        for o in range(count):
            factors[n + p, n + o] = 0.0
    if not factor(factors, size, pivot):
        return False
    substitute(factors, size, pivot, x)
    for j in range(n):
        if not np.isfinite(x[j]):
            return False
        out[j] = x[j]
    return True


@nested
def move_onto(w, t):
    """Move w.q onto closed gaps and constraints, w.v onto the rows of the mode; return how it ended."""
    q, moved, time = vector(w, AT.q), vector(w, AT.moved), vector(w, AT.time)
    chart_base, way, environment = vector(w, AT.chart_base), vector(w, AT.way), vector(w, AT.environment)
    v, psi, velocity = vector(w, AT.v), vector(w, AT.psi), vector(w, AT.velocity)
    phi, gaps = vector(w, AT.phi), vector(w, AT.gaps)
    mode_counts, kept, holonomic = whole(w, AT.mode_counts), whole(w, AT.kept), whole(w, AT.holonomic)
    M, A, W = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W)
    calls = whole_matrix(w, AT.calls)
    n, m = M.shape[0], A.shape[0]
    limbs, held, limb = whole(w, AT.limbs)[0], matrix(w, AT.held_rows), vector(w, AT.limb)
    if mode_counts[KEPT_ROWS] == 0 and not limbs:
        return SOUND
    rows, missing = np.zeros(m + W.shape[0] + 2 * n, np.int64), np.zeros(m + W.shape[0] + 2 * n)
    change, last = np.zeros(n), np.inf
    for _ in range(MOST_CLOSING):
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
        if environment[FAILED] != 0.0:
            return CALLBACK
        count, worst = 0, 0.0
        for p in range(mode_counts[KEPT_ROWS]):
            row = kept[p]
            if row < m and holonomic[row] >= 0:
                rows[count], missing[count] = row, phi[holonomic[row]]
            elif row >= m and (row - m) % 3 == 0:
                rows[count], missing[count] = row, gaps[(row - m) // 3]
            else:
                continue
            worst = max(worst, abs(missing[count]))
            count += 1
        if not goes_on(worst, last, CLOSED_MODE, np.inf, HELPS):
            break
        last = worst
        if not least_change(w, rows, count, missing, change):
            return SINGULAR
        copy_to(chart_base, q)
        copy_to(way, change)
        invoke(calls[ALONG, 0], calls[ALONG, 1], calls[ALONG, 2])
        copy_to(q, moved)
    else:
        time[0] = t
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    for _ in range(2):
        worst, count = 0.0, mode_counts[KEPT_ROWS]
        for p in range(count):
            row = kept[p]
            rows[p], missing[p] = row, psi[row] if row < m else velocity[row - m]
            worst = max(worst, abs(missing[p]))
        if limbs:
            for j in range(free_motions(w, kept, count)):
                rows[count], missing[count] = m + W.shape[0] + j, dot(held[j], v) - dot(held[j], limb)
                worst = max(worst, abs(missing[count]))
                count += 1
        if worst == 0.0:
            break
        if not least_change(w, rows, count, missing, change):
            return SINGULAR
        for j in range(n):
            v[j] += change[j]
        invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    if sticks_without_gap(w):
        for _ in range(2):
            if not round_off(w, missing, change):
                break
            invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    return SOUND


@nested
def sticks_without_gap(w):
    """Return whether a row of the mode is the tangent of a contact without a gap."""
    mode_counts, kept, gapped = whole(w, AT.mode_counts), whole(w, AT.kept), flags(w, AT.gapped)
    m = matrix(w, AT.A).shape[0]
    sticks = False
    for p in range(mode_counts[KEPT_ROWS]):
        sticks = sticks or (kept[p] >= m and not gapped[(kept[p] - m) // 3])
    return sticks


@nested
def round_off(w, missing, change):
    """Move w.v so that rows of zeros and ones hold to the last bit: a block on a belt, blocks together.

    Dependent velocities follow from independent ones through a row-reduced form of the rows, light coordinates first.
    Return whether something was missing.
    """
    M, A, W = matrix(w, AT.M), matrix(w, AT.A), matrix(w, AT.W)
    psi, velocity, v = vector(w, AT.psi), vector(w, AT.velocity), vector(w, AT.v)
    mode_counts, kept = whole(w, AT.mode_counts), whole(w, AT.kept)
    n, m, count = M.shape[0], A.shape[0], mode_counts[KEPT_ROWS]
    R, size, weight = np.zeros((count, n)), np.zeros(count), np.zeros(n)
    pivots, heaviest, any_missing = np.full(count, -1), 1.0, False
    for j in range(n):
        heaviest = max(heaviest, M[j, j])
    for j in range(n):
        weight[j] = 1.0 / np.sqrt(M[j, j]) if M[j, j] > 0.0 else 1.0 / np.sqrt(LIGHT * heaviest)
    for p in range(count):
        row = kept[p]
        missing[p] = -(psi[row] if row < m else velocity[row - m])
        any_missing = any_missing or missing[p] != 0.0
        for j in range(n):
            R[p, j] = A[row, j] if row < m else W[row - m, j]
            size[p] = max(size[p], abs(R[p, j]))
    if not any_missing:
        return False
    for p in range(count):
        column, largest = 0, -1.0
        for j in range(n):
            if abs(R[p, j]) * weight[j] > largest:
                column, largest = j, abs(R[p, j]) * weight[j]
        lead = R[p, column]
        if abs(lead) <= DEPENDENT_ENTRY * size[p]:
            continue
        pivots[p] = column
        missing[p] /= lead
        for j in range(n):
            R[p, j] /= lead
        for o in range(count):
            part = R[o, column]
            if o != p and part != 0.0:
                missing[o] -= part * missing[p]
                add_multiple(R[o], -part, R[p])
    fill(change, 0.0)
    for p in range(count):
        if pivots[p] >= 0:
            change[pivots[p]] = missing[p]
    for j in range(n):
        v[j] += change[j]
    return True


def _project(address, first, stop, scratch):
    w = table_at(address, ROWS)
    arguments = vector(w, AT.arguments)
    arguments[CODE] = move_onto(w, arguments[FIRST])


project_unit = Unit(_project)


@nested
def project(w, t):
    """Move q onto closed gaps and constraints, v onto the rows of the mode; return how it ended."""
    arguments, calls = vector(w, AT.arguments), whole_matrix(w, AT.calls)
    arguments[FIRST] = t
    invoke(calls[PROJECT, 0], calls[PROJECT, 1], calls[PROJECT, 2])
    return int(arguments[CODE])
