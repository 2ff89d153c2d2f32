"""The constrained side of a mechanism: its rows by name, and their values.

Symbols: phi(q, t) residuals, A(q, t) Jacobian;  phi_dot = A v + offset,  phi_ddot = A a + drift.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.model.mechanism.manifold import reals

if TYPE_CHECKING:
    from dalembert.model.constraints.constraint import Constraint
    from dalembert.model.mechanism.ranks import GenericRank

Array = np.ndarray

ROUNDING = 64 * np.finfo(float).eps
"""Entries of A below this part of their joint's lever are rounding: chains of tens of joints add up so much."""

MOST_RANKS = 64
"""Configurations whose rank stays in memory."""

LARGEST_ROUNDING = 1e-6
"""Metres. Further than 1e8 m from the origin rounding is larger, and no reason to drop what holds a mechanism."""


class Constrained:
    """Couplings, loops and added constraints of a mechanism as one set of rows."""

    constraints: tuple[Constraint, ...]
    couplings: Any
    loops: Any
    joints: Any
    frames: Any
    source: Any
    nv: Any
    index_q: Any
    bias: Any
    manifold: Any
    _call: Any
    _with_columns: Any

    def constrain(self, *constraints: Constraint) -> Self:
        """Return a new mechanism with these constraints beside those it has.

        Names of rows must be unique: a second constraint on the same frames needs a `name`.
        """
        from dalembert.model.constraints.constraint import Constraint

        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                raise ModelError(f"{constraint!r} is no constraint; da.Point(frame), da.Weld(frame, other), ... are")
            constraint.check(self)  # type: ignore[arg-type]
        other = replace(self, constraints=(*self.constraints, *constraints))  # type: ignore[type-var]
        seen: set[str] = set()
        for name in other.names:
            if name in seen:
                raise ModelError(f"two constraint rows are called {name!r}: give one of the constraints another name=")
            seen.add(name)
        return other

    @cached_property
    def all_constraints(self) -> tuple[Constraint, ...]:
        """Couplings and loops of the model as constraints, then those that were added."""
        if not (self.couplings or self.loops):
            return self.constraints
        from dalembert.model.constraints.all_rows import closing

        return (*closing(self), *self.constraints)  # type: ignore[arg-type]

    @property
    def cacheable(self) -> bool:
        """Whether `content` says it all: not where a constraint is made of a Python function."""
        return not any(constraint.private for constraint in self.constraints)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the m constraint rows."""
        return tuple(name for constraint in self.all_constraints for name in constraint.row_names())

    @cached_property
    def row_groups(self) -> tuple[int, ...]:
        """Per row the number of the constraint it belongs to, in `all_constraints`."""
        return tuple(i for i, each in enumerate(self.all_constraints) for _ in each.row_names())

    @cached_property
    def scale_groups(self) -> tuple[int, ...]:
        """Per row the number of the scale it shares: rows of lengths and rows of angles of a constraint have each one.

        Rows of an expression are what the user takes them for: each has its own.
        """
        keys = [
            (i, turns, k if each.private else 0)
            for i, each in enumerate(self.all_constraints)
            for k, turns in enumerate(each.angular())
        ]
        place = {key: at for at, key in enumerate(dict.fromkeys(keys))}
        return tuple(place[key] for key in keys)

    @cached_property
    def holonomic(self) -> tuple[bool, ...]:
        """Per row, whether it has a residual: whether it constrains the configuration itself."""
        return tuple(each for constraint in self.all_constraints for each in constraint.holonomic())

    def jacobian(self, q: Any, t: Any = 0.0) -> Array:
        """Return A (m, nv) of the constraint rows; that of a frame is `frame_jacobian`."""
        shape = (len(self.names), self.nv)
        if isinstance(t, str):
            raise ModelError(
                f"jacobian(q, t) is that of the constraint rows, at a time t; that of the frame {t!r} is "
                f"frame_jacobian(q, {t!r})"
            )
        A = self._rows("constraint_jacobian", shape, q, t)
        return A if 0 in shape else self.without_rounding(self._with_columns(A), np.asarray(q, dtype=float))

    def without_rounding(self, A: Array, q: Array) -> Array:
        """Return A, changed in place: zero where rounding is all that is left of entries that cancel.

        A row whose entries cancel altogether, as that across a plane linkage, has no size of its own by which a rank
        could be decided. Entries of rotations are components of unit axes; those of displacements are components of a
        joint's lever, seen in other rows, in the model's size, or computed from places far from the origin. A
        configuration that is not finite has no rows.
        """
        far = np.abs(q[..., self._places]).max(axis=-1, initial=self._reach)[..., None, None]
        for rows, angular in self._geometric:
            part = A[..., rows, :]
            lever = 1.0 if angular else np.maximum(np.abs(part).max(axis=-2, keepdims=True), far)
            A[..., rows, :] = np.where(np.abs(part) <= np.minimum(ROUNDING * lever, LARGEST_ROUNDING), 0.0, part)
        known = np.asarray(np.isfinite(q).all(axis=-1))
        return np.where(known[..., None, None], A, np.nan)

    @cached_property
    def _reach(self) -> float:
        """The largest distance of the model: between joints, or from a body to the place of a constraint."""
        places = [place for joint in self.joints for place in (joint.placement, joint.child_placement)]
        ends = [getattr(each, word, None) for each in self.all_constraints for word in ("placement", "at")]
        return max((float(np.abs(p.position).max()) for p in (*places, *ends) if p is not None), default=0.0)

    @cached_property
    def reach(self) -> float:
        """The model's size, metres: the largest distance between joints, or to a place of a constraint; one if none."""
        named = {getattr(each, word, None) for each in self.all_constraints for word in ("frame", "other")}
        places = [f.placement.position for f in self.frames if f.name in named]
        lengths = [getattr(each, word, None) for each in self.all_constraints for word in ("radius", "length")]
        numbers = [abs(x) for x in lengths if isinstance(x, float | int) and np.isfinite(x)]
        return max(self._reach, *(float(np.abs(p).max()) for p in places), *numbers, 0.0) or 1.0

    @cached_property
    def row_sizes(self) -> Array:
        """Per row what its residual is measured against, (m,): the model's size in metres, or one radian."""
        from dalembert.model.mechanism.ranks import row_sizes

        return row_sizes(self)

    @property
    def slack(self) -> float:
        """Part of `row_sizes` by which redundant rows may contradict each other: the digits that the model has."""
        from dalembert.model.mechanism.precision import BUILT_DIGITS, FILE_DIGITS
        from dalembert.model.mechanism.ranks import SLACK

        return max(SLACK, BUILT_DIGITS if self.source is None else FILE_DIGITS)

    def generic_rank(self, q: Any = None, t: float = 0.0) -> GenericRank:
        """Return the rank that the rows have around a configuration (the neutral one by default), decided once.

        A property of the mechanism: next to a singular configuration, and off the constraints, all that goes through
        time keeps so many rows. See `ranks.py`.
        """
        from dalembert.model.mechanism.ranks import generic_rank

        key = (None if q is None else np.asarray(q, dtype=float).tobytes(), float(t))
        if key not in self._ranks:
            if len(self._ranks) >= MOST_RANKS:
                del self._ranks[next(iter(self._ranks))]
            self._ranks[key] = generic_rank(self, q, t)
        return self._ranks[key]

    @cached_property
    def _ranks(self) -> dict[Any, GenericRank]:
        """What `generic_rank` has found."""
        return {}

    @cached_property
    def _places(self) -> Array:
        """Coordinates that are positions of bodies that fly or slide on a plane."""
        free = {"free": 3, "planar": 2}
        starts = [(self.index_q(j.name).start, free[j.kind]) for j in self.joints if j.kind in free]
        return np.array([start + k for start, count in starts for k in range(count)], dtype=int)

    @cached_property
    def _geometric(self) -> list[tuple[Array, bool]]:
        """Rows between frames, those of lengths and those of angles apart, and which they are."""
        from dalembert.model.constraints.constraint import Pair

        pairs = [(isinstance(c, Pair), turns) for c in self.all_constraints for turns in c.angular()]
        kinds = [(np.flatnonzero([p and turns == angular for p, turns in pairs]), angular) for angular in (False, True)]
        return [(rows, angular) for rows, angular in kinds if rows.size]

    def drift(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return what remains of the rows' accelerations at a = 0, (m,), with stabilisation where it is on."""
        return self._rows("constraint_drift", (len(self.names),), q, v, t)

    def constraint(self, q: Any, t: Any = 0.0) -> Array:
        """Return phi of the holonomic rows, (h,); zero where they hold."""
        return self._rows("constraint", (sum(self.holonomic),), q, t)

    def constraint_velocity(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return the rates of the rows, (m,); zero where they hold."""
        return self._rows("constraint_velocity", (len(self.names),), q, v, t)

    @np.errstate(over="ignore", invalid="ignore")
    def drift_size(self, A: Array, v: Any) -> Array:
        """Return lever times speed squared, (...,): the size that accelerations of the rows have at a = 0."""
        speed = np.abs(reals(v, "v")).sum(axis=-1)
        gains = [each.stabilize for each in self.all_constraints if each.stabilize is not None]
        kp, kd = np.max(gains, axis=0) if gains else (0.0, 0.0)
        lever = np.maximum(np.abs(A).max(axis=(-2, -1), initial=0.0), self._reach)
        return np.asarray(lever * (speed**2 + kd * speed + kp))

    def _rows(self, what: str, shape: tuple[int, ...], q: Any, *rest: Any) -> Array:
        """Call a kernel; where there are no rows none is needed. The time comes last."""
        *others, t = rest
        t = reals(t, "t")
        if 0 in shape:
            states = [self.manifold.configuration(q), *map(self.manifold.velocity, others)]
            try:
                batch = np.broadcast_shapes(*(x.shape[:-1] for x in states), t.shape)
            except ValueError as error:
                found = ", ".join(str(x.shape) for x in (*states, t))
                raise ShapeError(f"batches must agree; the inputs are {found}") from error
            return np.zeros((*batch, *shape))
        return self._call(what, q, *others, t[..., None])
