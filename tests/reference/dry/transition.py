"""Transitions: modes decided anew, states put back where constraints and sticking hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.friction import Resolution
from dalembert.simulate.limits import AT_REST, CLOSED_PLAIN, DEPENDENT_ENTRY, LEAST_SQUARES, LIGHT
from dalembert.types import Array
from tests.reference.dry.dynamics import SLIP, STICK, Dynamics, Terms
from tests.reference.dry.limits import AHEAD, LIMIT_DROPS
from tests.reference.dry.locate import Segment, let_go

# ----------------------------------------------------------------------------------------------------------------------
# Keep a state where its constraints and sticking contacts hold: relative velocities exactly zero, no creep.
#
# Velocities: the rows psi = 0 of constraints and sticking contacts are affine in v. Dependent velocities follow from
# the independent ones through a row-reduced form of the rows, so that rows of zeros and ones (a block on a belt, two
# blocks together) hold to the last bit. Positions: a step of Newton's method on holonomic rows, least in the plain
# norm.


def on_manifold(dynamics: Dynamics, q: Array, v: Array, t: float, mode: Array) -> tuple[Array, Array]:
    """Return the nearest consistent state."""
    system: Any = dynamics.system
    if hasattr(system, "constraint") and any(getattr(system, "holonomic", ())):
        for _ in range(3):
            phi = np.asarray(system.constraint(q, t))
            A = np.asarray(system.jacobian(q, t))[np.array(system.holonomic)]
            if not np.abs(phi).max(initial=0.0) > CLOSED_PLAIN * (1.0 + np.abs(q).max()):
                break
            q = q - np.linalg.lstsq(A, phi, rcond=LEAST_SQUARES)[0]
    for _ in range(2):
        rows, missing = velocity_rows(dynamics, q, v, t, mode)
        if not np.any(missing):
            break
        v = reduced(rows, missing, v, np.diag(np.asarray(system.mass_matrix(q, t))))
    return q, v


def velocity_rows(dynamics: Dynamics, q: Array, v: Array, t: float, mode: Array) -> tuple[Array, Array]:
    """Return rows and values of what must be zero at velocity level."""
    x = dynamics.terms(q, v, t)
    stuck = dynamics.columns.stuck(mode)
    rows, values = x.rows[stuck], x.velocity[stuck]
    rate = getattr(dynamics.system, "constraint_velocity", None)
    if rate is not None and x.A.shape[0]:
        rows, values = np.vstack([x.A, rows]), np.concatenate([np.asarray(rate(q, v, t)), values])
    return rows, values


def reduced(rows: Array, missing: Array, v: Array, mass: Array) -> Array:
    """Return v + d with rows d = -missing, d on the dependent coordinates alone, light ones first."""
    R, b = rows.astype(float).copy(), -missing.astype(float)
    d, pivots = np.zeros(v.size), []
    size = np.abs(R).max(axis=1, initial=0.0)
    weight = 1.0 / np.sqrt(np.where(mass > 0.0, mass, np.finfo(float).tiny + mass.max(initial=1.0) * LIGHT))
    for i in range(len(R)):
        column = int(np.argmax(np.abs(R[i]) * weight))
        if np.abs(R[i, column]) <= DEPENDENT_ENTRY * size[i]:
            continue
        b[i] /= R[i, column]
        R[i] /= R[i, column]
        for j in range(len(R)):
            if j != i and R[j, column] != 0.0:
                b[j] -= R[j, column] * b[i]
                R[j] -= R[j, column] * R[i]
        pivots.append((i, column))
    for i, column in pivots:
        d[column] = b[i]
    return v + d


# ----------------------------------------------------------------------------------------------------------------------
# Decide the modes after a transition: the exact friction problem over all contacts at rest together.
#
# A contact that comes to rest joins those that stick; the exact problem says who stays, who slips on and in which
# direction (a reversal is a slip the other way). A contact that leaves rest under a law with a static limit above the
# kinetic force drops to the latter at once, which may tear others loose: the problem is solved again with its force
# given, until nobody else lets go. Where stick is lost slowly, with zero relative acceleration at the event itself, the
# problem is looked at a little later on the path that the sticking contacts would have taken.


def modes_at_rest(
    dynamics: Dynamics, q: Array, v: Array, t: float, mode: Array, time_scale: float
) -> tuple[Array, Array, Array]:
    """Return q, v and the modes after contacts of mode 0 (candidates) were resolved; all of them are at rest now."""
    q, v = on_manifold(dynamics, q, v, t, mode)
    return q, v, settled(dynamics, q, v, t, mode, time_scale)


def settled(dynamics: Dynamics, q: Array, v: Array, t: float, mode: Array, time_scale: float) -> Array:
    """Return the modes that follow from resolving the contacts of mode 0, with static limits, then kinetic forces."""
    mode = mode.copy()
    while (mode == 0).any():
        state, x = (q, v, t), dynamics.terms(q, v, t)
        answer = dynamics.resolved(x, mode, state)
        if not answer.ok:
            raise SolvabilityError(f"at t = {t:.9g}: {answer.status.message}\n{answer.report}", answer.report)
        if not answer.sets.about_to_slip:
            return mode
        if not _let_go(dynamics, x, answer, mode, state, time_scale):
            return mode
    return mode


def _let_go(dynamics: Dynamics, x: Terms, answer: Resolution, mode: Array, state: Any, time_scale: float) -> bool:
    """Set the modes of contacts that are about to slip; say whether the force of one of them drops.

    A plane slides where it is accelerated to as long as its direction follows within `time_scale`.
    """
    drops = False
    for name, way in answer.sets.about_to_slip.items():
        i = dynamics.names.index(name)
        if dynamics.columns.plane[i]:
            mode[i] = SLIP
            slow = time_scale * dynamics.own_acceleration(x, answer.forces, i)
            dynamics.columns.let_go(i, np.asarray(way), slow)
        else:
            mode[i] = int(way)  # pyright: ignore[reportArgumentType]
        law = dynamics.laws[i]
        drops |= float(law.kinetic(0.0, state)) < float(law.static(state)) * (1.0 - LIMIT_DROPS)
    return drops


def after_loss(dynamics: Dynamics, segment: Segment, h: float, time_scale: float) -> tuple[Array, Array, Array]:
    """Return q, v and modes after the sticking contacts let go h after the start of the step."""
    n, t = dynamics.n, segment.t + h
    y = segment.at(h)
    q, v = on_manifold(dynamics, y[:n], y[n : 2 * n], t, segment.rate.mode)
    ahead = max(AHEAD * segment.h, 64.0 * np.finfo(float).eps * max(abs(t), segment.h))
    for _ in range(12):
        later = segment.at(h + ahead)
        if let_go(dynamics, segment, later, h + ahead) > 0.0:
            break
        ahead *= 8.0
    else:
        return q, v, segment.rate.mode.copy()
    q1, v1 = on_manifold(dynamics, later[:n], later[n : 2 * n], t + ahead, segment.rate.mode)
    x = dynamics.terms(q1, v1, t + ahead)
    mode = segment.rate.mode.copy()
    answer = dynamics.resolved(x, mode, (q1, v1, t + ahead))
    drops = _let_go(dynamics, x, answer, mode, (q, v, t), time_scale)
    return q, v, settled(dynamics, q, v, t, mode, time_scale) if drops else mode


def arrived_together(dynamics: Dynamics, q: Array, v: Array, t: float, mode: Array, arrived: tuple[int, ...]) -> Array:
    """Return the modes with every contact that is at rest now set to 0."""
    velocity, rows = dynamics.system.contact_terms(q, v, t)[:2]
    size = np.abs(rows) @ np.abs(v) + np.abs(velocity - rows @ v)
    mode = np.where(dynamics.columns.at_rest(velocity, size, AT_REST), STICK, mode)
    mode[list(arrived)] = 0
    return mode
