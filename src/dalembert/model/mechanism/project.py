"""Newton's method onto the constraint manifold: the nearest admissible configuration and velocity.

Symbols: phi residuals of holonomic rows over their sizes, A rows, M mass matrix.

Steps of least kinetic energy, dq = -M^-1 A^T (A M^-1 A^T)^-1 phi in compiled code, halved as long as they make
residuals larger. Redundant rows that contradict each other within the model's digits come to rest by Levenberg and
Marquardt's method (`ranks.py`). Source: seed 000, sec. 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, one_number
from dalembert.errors import ModelError, SolvabilityError
from dalembert.model.mechanism.rows import residual_sizes
from dalembert.model.mechanism.solve import LARGEST_SURVEYED

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

Array = np.ndarray

MOST_STEPS = 50
"""Newton steps of a projection; three or four are usual, more where constraints meet tangentially."""

HALVINGS = 8
"""How often a step that makes residuals larger is halved."""


def project(mechanism: Mechanism, q: Any, v: Any, t: float, tolerance: float) -> Any:
    """Return the nearest admissible configuration and velocity, (q, v), or q alone without v."""
    start, t = mechanism.manifold.configuration(q), one_number(t, "t")
    tolerance = one_number(tolerance, "tolerance")
    q = closed(mechanism, np.array(start.reshape(-1, start.shape[-1])), t, tolerance).reshape(start.shape)
    if q.ndim == 1 and np.isnan(q).any():
        _refuse_open(mechanism, start, t)
    return q if v is None else (q, admissible_velocities(mechanism, q, floats(v, "v"), t))


def admissible_velocities(mechanism: Mechanism, q: Array, v: Array, t: float) -> Array:
    """Return the velocities of least kinetic energy from v that the rows allow, one or a batch; else NaN."""
    if not mechanism.names:
        return v.copy()
    from dalembert.kkt import Status

    velocity, _, status = mechanism.compile("project_velocity")(q, v, np.array([t]))
    solved = np.isin(status[..., 0], [Status.UNIQUE, Status.REDUNDANT])
    if solved.all():
        return velocity
    from dalembert.model.mechanism.ranks import admissible_velocity

    v, velocity = np.broadcast_to(v, velocity.shape), np.array(velocity)
    for k in map(tuple, np.argwhere(~solved)):
        place = np.broadcast_to(q, (*velocity.shape[:-1], q.shape[-1]))[k]
        finite = np.isfinite(place).all() and np.isfinite(v[k]).all()
        velocity[k] = admissible_velocity(mechanism, place, v[k], t) if finite else np.nan
    return velocity


def closed(mechanism: Mechanism, q: Array, t: float, tolerance: float) -> Array:
    """Return configurations (N, nq) with residuals below the tolerance, or at rest below the slack; else NaN."""
    if not any(mechanism.holonomic):
        return q
    step = mechanism.compile("project_step")
    time, start = np.array([t]), q.copy()
    size = largest_residual(mechanism, q, t)
    active = np.flatnonzero(~(size <= tolerance))
    for _ in range(MOST_STEPS):
        if not active.size:
            break
        move = step(q[active], time)[0]
        move = np.where(np.isfinite(move).all(axis=-1, keepdims=True), move, 0.0)
        before = size[active]
        q[active], size[active] = _shorter(mechanism, q[active], move, before, t)
        active = active[(size[active] > tolerance) & (size[active] < before)]
    for k in np.flatnonzero(~(size <= mechanism.slack)):
        q[k] = _least_open(mechanism, start[k], t)
    return q


def largest_residual(mechanism: Mechanism, q: Array, t: float) -> Array:
    """Return the largest residual of every configuration, as a part of its size."""
    return np.abs(mechanism.constraint(q, t) / residual_sizes(mechanism)).max(axis=-1, initial=0.0)


def _shorter(mechanism: Mechanism, q: Array, move: Array, size: Array, t: float) -> tuple[Array, Array]:
    """Take a step, halved as long as it makes the largest residual larger."""
    best, least = q.copy(), size.copy()
    todo = np.arange(len(q))
    for _ in range(HALVINGS):
        trial = mechanism.integrate(q[todo], move[todo])
        residual = largest_residual(mechanism, trial, t)
        better = residual < least[todo]
        best[todo[better]], least[todo[better]] = trial[better], residual[better]
        todo = todo[~better]
        if not todo.size:
            break
        move = move / 2
    return best, least


def _least_open(mechanism: Mechanism, q: Array, t: float) -> Array:
    """Return the configuration where redundant rows are open the least; NaN where that is more than the slack."""
    if not np.isfinite(q).all() or mechanism.nv > LARGEST_SURVEYED:
        return np.full_like(q, np.nan)
    from dalembert.model.mechanism.ranks import closed_by_least_squares

    place, size = closed_by_least_squares(mechanism, q, t)
    return place if size <= mechanism.slack else np.full_like(q, np.nan)


def _refuse_open(mechanism: Mechanism, q: Array, t: float) -> None:
    """Say which rows cannot be closed."""
    if not np.isfinite(q).all():
        i = int(np.flatnonzero(~np.isfinite(q))[0])
        raise ModelError(f"q[{i}] is {q[i]}; every coordinate of a configuration must be finite")
    rows = [name for name, has in zip(mechanism.names, mechanism.holonomic, strict=True) if has]
    phi = np.abs(mechanism.constraint(q, t))
    worst = [f"{rows[i]!r} ({phi[i]:.2g})" for i in np.argsort(-phi)[:3]]
    raise SolvabilityError(
        f"no admissible configuration was found within {MOST_STEPS} steps; at the start the rows furthest from "
        f"closing were {', '.join(worst)}. The constraints may be out of reach, or the start too far "
        "away: try another q",
        mechanism.diagnose(q, None, t),
    )
