"""Keep a state where its constraints and sticking contacts hold: relative velocities exactly zero, no creep.

Velocities: the rows psi = 0 of constraints and sticking contacts are affine in v. Dependent velocities follow from the
independent ones through a row-reduced form of the rows, so that rows of zeros and ones (a block on a belt, two blocks
together) hold to the last bit. Positions: a step of Newton's method on holonomic rows, least in the plain norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulate.dynamics import Dynamics

Array = np.ndarray

PIVOT = 1e-9
"""A row whose largest entry left is below this part of its size depends on rows above."""


def on_manifold(dynamics: Dynamics, q: Array, v: Array, t: float, mode: Array) -> tuple[Array, Array]:
    """Return the nearest consistent state."""
    system: Any = dynamics.system
    if hasattr(system, "constraint") and any(getattr(system, "holonomic", ())):
        for _ in range(3):
            phi = np.asarray(system.constraint(q, t))
            A = np.asarray(system.jacobian(q, t))[np.array(system.holonomic)]
            if not np.abs(phi).max(initial=0.0) > 4e-16 * (1.0 + np.abs(q).max()):
                break
            q = q - np.linalg.lstsq(A, phi, rcond=1e-12)[0]
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
    weight = 1.0 / np.sqrt(np.where(mass > 0.0, mass, np.finfo(float).tiny + mass.max(initial=1.0) * 1e-12))
    for i in range(len(R)):
        column = int(np.argmax(np.abs(R[i]) * weight))
        if np.abs(R[i, column]) <= PIVOT * size[i]:
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
