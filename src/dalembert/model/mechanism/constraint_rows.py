"""Constraint rows of a mechanism: their names, sizes and values.

Symbols: phi(q, t) residuals, A(q, t) Jacobian;  phi_dot = A v + offset,  phi_ddot = A a + drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError
from dalembert.kkt.limits import CLEAR, LARGEST_ROUNDING, LEVER_ROUNDING, TOUCHING, UNMISSED
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.calls import call, with_columns
from dalembert.model.mechanism.precision import digits_of, in_doubt
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.constraints.constraint import Constraint
    from dalembert.model.mechanism.mechanism import Mechanism


# ----------------------------------------------------------------------------------------------------------------------
# Constraints put together: those of the model, and those that are added.


def constrained(mechanism: Mechanism, constraints: Sequence[Constraint]) -> Mechanism:
    """Return a mechanism with these constraints beside those it has; names of rows must be unique."""
    from dalembert.model.constraints.constraint import Constraint

    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise ModelError(f"{constraint!r} is no constraint; da.Point(frame), da.Weld(frame, other), ... are")
        constraint.check(mechanism)
    other = replace(mechanism, constraints=(*mechanism.constraints, *constraints))
    seen: set[str] = set()
    for name in other.names:
        if name in seen:
            raise ModelError(f"two constraint rows are called {name!r}: give one of the constraints another name=")
        seen.add(name)
    return other


def all_constraints(mechanism: Mechanism) -> tuple[Constraint, ...]:
    """Return couplings and loops of the model as constraints, then those that were added."""
    if not (mechanism.couplings or mechanism.loops):
        return mechanism.constraints
    from dalembert.model.constraints.all_rows import closing

    return (*closing(mechanism), *mechanism.constraints)


def scale_groups(mechanism: Mechanism) -> tuple[int, ...]:
    """Return per row the number of the scale it shares with rows of lengths, or of angles, of its constraint."""
    keys = [
        (i, turns, k if constraint.private else 0)
        for i, constraint in enumerate(mechanism.all_constraints)
        for k, turns in enumerate(constraint.angular())
    ]
    place = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    return tuple(place[key] for key in keys)


# ----------------------------------------------------------------------------------------------------------------------
# Sizes: what residuals and entries of A are measured against.


@dataclass(frozen=True, eq=False)
class Levers:
    """Lengths of a model by which rounding in A is told from an entry.

    Attributes
    ----------
    longest
        The largest distance of the model, metres: between joints, or from a body to the place of a constraint.
    places
        Coordinates that are positions of bodies that fly or slide on a plane.
    geometric
        Rows between frames, those of lengths and those of angles apart, each with whether they are angles.
    """

    longest: float
    places: Array
    geometric: list[tuple[Array, bool]]

    @classmethod
    def of(cls, mechanism: Mechanism) -> Levers:
        """Return the levers of a mechanism and its constraints."""
        from dalembert.model.constraints.constraint import Pair

        constraints = mechanism.all_constraints
        placements = [place for joint in mechanism.joints for place in (joint.placement, joint.child_placement)]
        ends = [getattr(constraint, attribute, None) for constraint in constraints for attribute in ("placement", "at")]
        longest = max((float(np.abs(p.position).max()) for p in (*placements, *ends) if p is not None), default=0.0)
        counts = [KINDS[joint.kind].position for joint in mechanism.joints]
        starts = zip(mechanism.manifold.q_start, counts, strict=False)  # where the last joint ends comes last
        places = np.array([start + k for start, count in starts for k in range(count)], dtype=int)
        pairs = [(isinstance(c, Pair), turns) for c in constraints for turns in c.angular()]
        kinds = [(np.flatnonzero([p and turns == angular for p, turns in pairs]), angular) for angular in (False, True)]
        return cls(longest, places, [(rows, angular) for rows, angular in kinds if rows.size])


def reach(mechanism: Mechanism) -> float:
    """Return the model's size, metres; one if it has none."""
    constraints = mechanism.all_constraints
    named = {getattr(constraint, attribute, None) for constraint in constraints for attribute in ("frame", "other")}
    places = [f.placement.position for f in mechanism.frames if f.name in named]
    lengths = [getattr(constraint, attribute, None) for constraint in constraints for attribute in ("radius", "length")]
    numbers = [abs(x) for x in lengths if isinstance(x, float | int) and np.isfinite(x)]
    return max(mechanism._levers.longest, *(float(np.abs(p).max()) for p in places), *numbers, 0.0) or 1.0


def row_sizes(mechanism: Mechanism) -> Array:
    """Return per row what its residual is measured against, (m,).

    One radian, or the mechanism's largest length, for rows between frames; for others what a radian, or that length,
    of the coordinates makes of them.
    """
    from dalembert.model.constraints.constraint import Pair

    rows, first = np.ones(len(mechanism.names)), 0
    for constraint in mechanism.all_constraints:
        turns = np.array(constraint.angular(), dtype=bool)
        span = slice(first, first + turns.size)
        first += turns.size
        if isinstance(constraint, Pair):
            rows[span] = np.where(turns, 1.0, mechanism.reach)
            continue
        A = np.abs(np.asarray(generic_jacobian(mechanism, mechanism.neutral()))[span])
        rows[span] = float((A * velocity_sizes(mechanism)).max(initial=0.0)) or 1.0
    return rows


def residual_sizes(mechanism: Mechanism) -> Array:
    """Return what the residuals of holonomic rows are measured against, (h,)."""
    return mechanism.row_sizes[np.array(mechanism.holonomic, dtype=bool)]


def velocity_sizes(mechanism: Mechanism) -> Array:
    """Return per velocity one, or the mechanism's largest length where it is that of a length."""
    sizes = np.ones(mechanism.nv)
    starts = mechanism.manifold.v_start
    for i, joint in enumerate(mechanism.joints):
        sizes[starts[i] : starts[i] + KINDS[joint.kind].lengths] = mechanism.reach
    return sizes


def angular_rows(mechanism: Mechanism) -> tuple[bool, ...]:
    """Return per row whether its residual is an angle."""
    return tuple(bool(turns) for constraint in mechanism.all_constraints for turns in constraint.angular())


class Idle(NamedTuple):
    """Of which constraints the rows of lengths, or of angles, move nothing within the model's digits.

    Attributes
    ----------
    rows
        (m,).
    sizes
        The largest entry of a constraint's rows of angles, radians, by row; 1 of all other rows.
    doubtful
        Which of them are neither rounding of the model's numbers nor clearly rows, (m,).
    """

    rows: Array
    sizes: Array
    doubtful: Array

    @classmethod
    def none(cls, m: int) -> Idle:
        """Return that none of m rows is known to move nothing."""
        return cls(np.zeros(m, dtype=bool), np.ones(m), np.zeros(m, dtype=bool))


def idle_rows(mechanism: Mechanism, A: Array, gap: float = 0.0) -> Idle:
    """Return which rows of constraints between frames move nothing within the model's digits.

    A loop in a plane has rows across it, whose entries are the tilt of its axes: what its numbers leave of zero. Scaled
    up for themselves they would pass for rows and lock the loop. So they are measured in the model's own units, at
    configurations with the rows A (N, m, n) that are open by a part `gap` of their sizes: a hinge that a row of angles
    holds turns by its cosine, levers of rows of lengths may be shorter than the model. Rows of other constraints than
    those between frames have no such size, and none of them is idle.
    """
    digits, idle, (least, most) = digits_of(mechanism), Idle.none(len(mechanism.names)), in_doubt(mechanism)
    levers, groups = velocity_sizes(mechanism), np.array(mechanism.row_groups)
    for rows, angular in mechanism.rows_between_frames:
        unit, limit = (1.0, max(CLEAR * digits, TOUCHING * gap**0.5)) if angular else (mechanism.reach, digits)
        sizes = (np.abs(A[:, rows]) * levers / unit).max(axis=(0, 2), initial=0.0)
        largest = np.array([sizes[groups[rows] == group].max() for group in groups[rows]])
        idle.rows[rows] = largest <= limit
        if angular:  # of rows of lengths, whose levers may be short, singular values tell
            idle.sizes[rows] = largest
            idle.doubtful[rows] = (largest > least) & (largest <= max(most, limit))
    return idle


def row_units(mechanism: Mechanism) -> Array:
    """Return per row the size in which rows of lengths and of angles can be compared, (m,): reach, or one."""
    units = np.ones(len(mechanism.names))
    for rows, angular in mechanism.rows_between_frames:
        units[rows] = 1.0 if angular else mechanism.reach
    return units


# ----------------------------------------------------------------------------------------------------------------------
# Values: A, drift, residuals and rates.


def evaluated(mechanism: Mechanism, what: str, shape: tuple[int, ...], q: Any, *rest: Any) -> Array:
    """Return the rows' values by a kernel; where there are no rows none is needed. The time comes last."""
    *others, t = rest
    t = floats(t, "t")
    if 0 in shape:
        states = [mechanism.manifold.configuration(q), *map(mechanism.manifold.velocity, others)]
        try:
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in states), t.shape)
        except ValueError as error:
            shapes = ", ".join(str(x.shape) for x in (*states, t))
            raise ShapeError(f"batches must agree; the inputs are {shapes}") from error
        return np.zeros((*batch, *shape))
    return call(mechanism, what, q, *others, t[..., None])


def rows_at(system: Any, q: Array, t: Any, v: Array) -> Array:
    """Return A at a state: rows that constrain accelerations may depend on velocities."""
    return system.jacobian(q, t, v=v) if getattr(system, "of_accelerations", ()) else system.jacobian(q, t)


def generic_jacobian(system: Any, q: Any, t: Any = 0.0) -> Array:
    """Return A; of rows that depend on velocities at velocities like any others, by which ranks are looked at."""
    if not getattr(system, "joints", None) or not system.of_accelerations:
        return system.jacobian(q, t)
    return system.jacobian(q, t, np.random.default_rng(1).standard_normal(system.nv))


def jacobian(mechanism: Mechanism, q: Any, t: Any, v: Any = None) -> Array:
    """Return A (m, nv), without entries that are nothing but rounding."""
    shape = (len(mechanism.names), mechanism.nv)
    if isinstance(t, str):
        raise ModelError(
            f"jacobian(q, t) is that of the constraint rows, at a time t; that of the frame {t!r} is "
            f"frame_jacobian(q, {t!r})"
        )
    if mechanism.of_accelerations:
        if v is None:
            rows = ", ".join(map(repr, mechanism.of_accelerations))
            raise ModelError(f"{rows} constrain accelerations, and rows depend on velocities: give v=")
        A = evaluated(mechanism, "constraint_jacobian", shape, q, mechanism.manifold.velocity(v), t)
    else:
        A = evaluated(mechanism, "constraint_jacobian", shape, q, t)
    return A if 0 in shape else without_rounding(mechanism, with_columns(mechanism, A), np.asarray(q, dtype=float))


def without_rounding(mechanism: Mechanism, A: Array, q: Array) -> Array:
    """Return A, changed in place: zero where rounding is all that is left of entries that cancel.

    Next to a singular configuration a row fades, and entries of it that are rounding elsewhere are what it says: one is
    left out with its whole row, or where the row does not miss it in half of its digits.
    """
    levers = mechanism._levers
    far = np.abs(q[..., levers.places]).max(axis=-1, initial=levers.longest)[..., None, None]
    for rows, angular in levers.geometric:
        part = A[..., rows, :]
        lever = 1.0 if angular else np.maximum(np.abs(part).max(axis=-2, keepdims=True), far)
        limit = np.minimum(LEVER_ROUNDING * lever, LARGEST_ROUNDING)
        sizes = np.abs(part) / np.maximum(limit, np.finfo(float).tiny)
        size = sizes.max(axis=-1, keepdims=True, initial=0.0)
        A[..., rows, :] = np.where((sizes <= 1.0) & ((size <= 1.0) | (sizes <= UNMISSED * size)), 0.0, part)
    finite = np.asarray(np.isfinite(q).all(axis=-1))
    return np.where(finite[..., None, None], A, np.nan)


@np.errstate(over="ignore", invalid="ignore")
def drift_size(mechanism: Mechanism, A: Array, v: Any) -> Array:
    """Return lever times speed squared, (...,), with stabilisation where it is on."""
    speed = np.abs(floats(v, "v")).sum(axis=-1)
    gains = [c.stabilize for c in mechanism.all_constraints if c.stabilize is not None]
    kp, kd = np.max(gains, axis=0) if gains else (0.0, 0.0)
    lever = np.maximum(np.abs(A).max(axis=(-2, -1), initial=0.0), mechanism._levers.longest)
    return np.asarray(lever * (speed**2 + kd * speed + kp))


def refuse_turning_rows(mechanism: Mechanism) -> None:
    """Refuse, for a motion in time, rows along directions that turn with a frame which is held where it is."""
    for constraint in mechanism.all_constraints:
        if constraint.turning:
            raise ModelError(
                f"constraint {constraint.label!r} ({constraint.kind}) holds its frame where it is, along directions "
                "that turn with it: that means one instant. For a motion in time say where they are fixed, by at= "
                "(numbers on the ground) or other= (a frame)"
            )
