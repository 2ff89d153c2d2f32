"""All constraint rows of a large mechanism: kernels by type, forces on bodies, drift."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.kernel.loops import fused_steady
from dalembert.large.fronts.front_plan import Touches
from dalembert.large.layout import VELOCITIES, Layout
from dalembert.large.outward import Sites
from dalembert.model.constraints.constraint import Constraint, Pair
from dalembert.model.constraints.prescribed import Coupler, Servo
from dalembert.model.constraints.primitives import FrameKinematics, Kinematics, coordinate_index
from dalembert.model.mechanism.placement import IDENTITY
from dalembert.types import Array

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.kernel import Kernel
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Constraint rows by type: one compiled kernel for all constraints of a type, run over all of them as a batch.
#
# A row between two frames is linear in their velocities: its Jacobian with respect to them is a force and a moment on
# each. So a constraint's formulas (`model/constraints`) are traced once, on two frames that are inputs, and never again
# for the next constraint of the same type; lengths and gains are inputs, too.


FRAME = 24
"""Reals of a frame in motion: R row by row, then position, velocity, angular velocity, their derivatives."""

VALUES = ("length", "radius")
"""Values of constraints that are inputs of the kernel; axes and the like are part of the type."""

INPUTS = 2 * FRAME + len(VALUES) + 2
"""Two frames, the values, kp and kd."""

_PLACES = ("name", "stabilize", "frame", "other", "at", "placement", *VALUES)


def type_of(constraint: Pair) -> tuple[Any, ...]:
    """Return what constraints must share to share a kernel."""
    rest = [(field.name, getattr(constraint, field.name)) for field in fields(constraint) if field.name not in _PLACES]
    return (type(constraint).__name__, constraint.held, *rest)


def values_of(constraint: Pair) -> list[float]:
    """Return the inputs of a constraint that are no frames."""
    kp, kd = constraint.stabilize or (0.0, 0.0)
    return [*(float(getattr(constraint, name, 0.0)) for name in VALUES), kp, kd]


def type_kernel(mechanism: Mechanism, constraint: Pair) -> Kernel:
    """Return the kernel: x (52,) -> forces (r, 12), rate (r,), drift (r,), residual (h,)."""
    from dalembert.kernel import Kernel

    key = ("rows by type", repr(type_of(constraint)))
    return Kernel.cached(key, lambda: trace(mechanism, constraint))


def trace(mechanism: Mechanism, constraint: Pair) -> ca.Function:
    """Return the CasADi function of a type."""
    import casadi as ca

    x = ca.SX.sym("x", INPUTS)
    twin = copy(constraint)
    for k, name in enumerate(VALUES):
        if hasattr(twin, name):
            object.__setattr__(twin, name, x[2 * FRAME + k])
    gains: Any = (x[INPUTS - 2], x[INPUTS - 1])
    rows = twin.rows(TwoFrames(mechanism, x))
    parts = rows if isinstance(rows, list) else [rows]
    residual = [ca.SX(part.residual) for part in parts if part.residual is not None]
    drift = [ca.SX(part.stabilized(gains).drift) for part in parts]
    outputs = {
        "forces": ca.densify(ca.vertcat(*(ca.SX(part.jacobian) for part in parts))),
        "rate": ca.densify(ca.vertcat(*(ca.SX(part.rate) for part in parts))),
        "drift": ca.densify(ca.vertcat(*drift)),
        "residual": ca.densify(ca.vertcat(*residual)) if residual else ca.SX(1, 1),
    }
    return ca.Function("rows", [x], list(outputs.values()), ["x"], list(outputs))


class TypeFrame(FrameKinematics):
    """A frame whose Jacobian has six columns of its own: none are of joints."""

    def unmoved_by(self, velocities: list[int]) -> FrameKinematics:
        """Return the frame."""
        return self


class TwoFrames(Kinematics):
    """Two frames in motion as inputs; whichever a constraint asks for first is the first."""

    def __init__(self, mechanism: Mechanism, x: Any) -> None:
        self.mechanism, self.x, self.asked = mechanism, x, 0

    def frame(self, name: str, placement: Any = None) -> FrameKinematics:
        """Return the next frame."""
        import casadi as ca

        x, k = self.x[FRAME * self.asked : FRAME * self.asked + FRAME], self.asked
        self.asked += 1
        columns = np.zeros((6, 12))
        columns[:, 6 * k : 6 * k + 6] = np.eye(6)
        rotation = ca.reshape(x[:9], 3, 3).T
        return TypeFrame(rotation, x[9:12], ca.SX(columns), x[12:18], x[18:24])


# ----------------------------------------------------------------------------------------------------------------------
# All constraint rows of a large mechanism at a state: forces on bodies, couplings of joints, rate, drift, residual.


@dataclass(frozen=True, eq=False)
class RowValues:
    """Rows at a state: forces (m, 2, 6) about bodies' origins, rate (m,), drift (m,), residual (h,)."""

    wrenches: Array
    rate: Array
    drift: Array
    residual: Array


@dataclass(frozen=True, eq=False)
class Group:
    """All constraints of one type: rows (k, r), places of residuals (k, h), both ends, inputs of the kernel."""

    rows: Array
    residuals: Array
    holonomic: Array
    sites: tuple[Sites, Sites]
    x: Array
    kernel: Any

    @cached_property
    def ends(self) -> tuple[Array, Array, Array]:
        """Bodies (k, 2), rotations (k, 2, 3, 3) and positions (k, 2, 3) of both ends."""
        return tuple(
            np.stack([getattr(s, name) for s in self.sites], axis=1) for name in ("row", "rotation", "position")
        )  # type: ignore[return-value]


class LargeRows:
    """The rows of `mechanism.all_constraints`, in the order of `mechanism.names`."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        mechanism = layout.mechanism
        self.m, self.h = len(mechanism.names), int(sum(mechanism.holonomic))
        self.owner = np.array(mechanism.scale_groups, dtype=np.int64)
        self.owners = int(self.owner.max(initial=-1)) + 1
        self.units = mechanism.row_units**2
        holonomic = np.array(mechanism.holonomic, dtype=bool)
        self.residual_place = np.where(holonomic, np.cumsum(holonomic) - 1, -1)
        sizes = [len(source.row_names()) for source in mechanism.all_constraints]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        pairs: dict[Any, list[tuple[int, Pair]]] = {}
        self.linear: list[tuple[int, Constraint]] = []
        for start, constraint in zip(starts.tolist(), mechanism.all_constraints, strict=False):
            if isinstance(constraint, Pair):
                pairs.setdefault(type_of(constraint), []).append((start, constraint))
            elif isinstance(constraint, Coupler | Servo):
                self.linear.append((start, constraint))
            else:
                raise UnsupportedError(
                    f"constraint {constraint.label!r} ({constraint.kind}) is an expression of the whole mechanism, "
                    "which large mechanisms are not traced for; backend='cpu' unrolls the mechanism with it, where "
                    "that is not too long; constraints between frames, couplers and servos are looped over"
                )
        self.groups = [self._group(members) for members in pairs.values()]
        self._make_linear()

    def _group(self, members: list[tuple[int, Pair]]) -> Group:
        """Return constraints of one type with a kernel."""
        mechanism, first = self.layout.mechanism, members[0][1]
        holonomic = np.array(first.holonomic(), dtype=bool)
        rows = np.array([start for start, _ in members])[:, None] + np.arange(len(holonomic))
        one = Sites.of(self.layout, [(c.frame, c.placement) for _, c in members])
        two = Sites.of(self.layout, [(c.other or mechanism.ground, c.at or IDENTITY) for _, c in members])
        if first.held:
            two = Sites(np.full_like(two.row, -1), two.rotation, two.position)
        x = np.zeros((len(members), INPUTS))
        x[:, 2 * FRAME :] = [values_of(c) for _, c in members]
        residuals = self.residual_place[rows[:, holonomic]]
        return Group(rows, residuals, holonomic, (one, two), x, type_kernel(mechanism, first))

    def _make_linear(self) -> None:
        """Lay out couplers and servos: entries (row, body, column of its joint), place in v, factor."""
        layout, mechanism = self.layout, self.layout.mechanism
        rows, places, factors = [], [], []
        for row, constraint in self.linear:
            terms = constraint.terms if isinstance(constraint, Coupler) else ((constraint.coordinate, 1.0),)  # type: ignore[attr-defined]
            for name, factor in terms:
                rows.append(row)
                places.append(coordinate_index(mechanism, name, constraint.label))
                factors.append(factor)
        self.row, self.place, self.factor = np.array(rows, int), np.array(places, int), np.array(factors, float)
        moving = np.flatnonzero(VELOCITIES[layout.code])
        moving = moving[np.argsort(layout.iv[moving])]
        body = moving[np.searchsorted(layout.iv[moving], self.place, side="right") - 1] if len(rows) else self.place
        self.body = body
        self.linear_terms = (self.row, self.place, self.factor)
        self.gains = np.array([constraint.stabilize or (0.0, 0.0) for _, constraint in self.linear]).reshape(-1, 2)

    @cached_property
    def touches(self) -> Touches:
        """Where rows act."""
        ends = [np.zeros((0, 3), dtype=np.int64)]
        for group in self.groups:
            bodies, k = group.ends[0], group.rows.shape[1]
            row = group.rows.reshape(-1)
            ends += [np.column_stack([row, np.repeat(bodies[:, end], k), np.full(len(row), end)]) for end in range(2)]
        joints = np.column_stack([self.row, self.body, self.place - self.layout.iv[self.body]]).astype(np.int64)
        return Touches(self.m, np.concatenate(ends).astype(np.int64), joints.reshape(-1, 3), self.factor)

    def at(self, K: Array, P: Array, V: Array, q: Array, v: Array, t: float) -> RowValues:
        """Return the rows at a state that `outward` has left in K; P, V origins and their velocities."""
        wrenches, (rate, drift), residual = np.zeros((self.m, 2, 6)), np.zeros((2, self.m)), np.zeros(self.h)
        for group in self.groups:
            body, R, p = group.ends
            arms = np.zeros((len(body), 2, 3))
            x = group.x.copy()
            gather(body, R, p, K, P, V, self.layout.gravity, x, arms)
            forces, rates, drifts, residuals = group.kernel(x)
            scatter(
                forces, rates, drifts, residuals, arms, group.rows, group.residuals, wrenches, rate, drift, residual
            )
        if self.linear:
            self._add_linear(q, v, t, rate, drift, residual)
        return RowValues(wrenches, rate, drift, residual)

    def _add_linear(self, q: Array, v: Array, t: float, rate: Array, drift: Array, residual: Array) -> None:
        """Fill in couplers and servos."""
        mechanism = self.layout.mechanism
        rows = np.array([row for row, _ in self.linear])
        np.add.at(rate, self.row, self.factor * v[self.place])
        state = _Coordinates(mechanism, q, v, t)
        for k, (row, constraint) in enumerate(self.linear):
            if isinstance(constraint, Servo):
                terms = constraint.rows(state)  # type: ignore[arg-type]
                rate[row], drift[row] = terms.rate.item(), terms.drift.item()
                residual[self.residual_place[row]] = terms.residual.item()  # type: ignore[union-attr]
            elif self.gains[k].any() or self.h:
                value = -constraint.offset  # type: ignore[attr-defined]
                for name, factor in constraint.terms:  # type: ignore[attr-defined]
                    value += factor * state.coordinate(name).item()
                residual[self.residual_place[row]] = value
        kp, kd = self.gains.T
        drift[rows] += kp * residual[self.residual_place[rows]] + kd * rate[rows]


class _Coordinates:
    """What servos and couplers ask of a state."""

    def __init__(self, mechanism: Mechanism, q: Array, v: Array, t: float) -> None:
        from dalembert.model.constraints.primitives import Kinematics

        self.mechanism, self.q, self.v, self.t = mechanism, q[:, None], v[:, None], np.full((1, 1), t)
        self._coordinate = Kinematics.coordinate

    def coordinate(self, name: str) -> Any:
        """Return a length or angle, (1, 1)."""
        return self._coordinate(self, name)  # type: ignore[arg-type]


@fused_steady
def gather(body, R, p, K, P, V, gravity, x, arms):
    """Fill x (k, ...) with the motion of both ends of every constraint, arms (k, 2, 3) with levers from origins."""
    for k in range(len(body)):
        for end in range(2):
            i, at = body[k, end], 24 * end
            # an end on the ground does not move
            if i < 0:
                for a in range(3):
                    for b in range(3):
                        x[k, at + 3 * a + b] = R[k, end, a, b]
                    x[k, at + 9 + a] = p[k, end, a]
                for a in range(12, 24):
                    x[k, at + a] = 0.0
                continue
            for a in range(3):
                arm = 0.0
                for c in range(3):
                    arm += K[i, 3 * c + a] * p[k, end, c]
                arms[k, end, a] = arm
                x[k, at + 9 + a] = P[i, a] + arm
                for b in range(3):
                    total = 0.0
                    for c in range(3):
                        total += K[i, 3 * c + a] * R[k, end, c, b]
                    x[k, at + 3 * a + b] = total
            # velocity and acceleration at the end of the lever; K holds accelerations less gravity
            r0, r1, r2 = arms[k, end, 0], arms[k, end, 1], arms[k, end, 2]
            w0, w1, w2 = K[i, 12], K[i, 13], K[i, 14]
            d0, d1, d2 = K[i, 18], K[i, 19], K[i, 20]
            s0, s1, s2 = w1 * r2 - w2 * r1, w2 * r0 - w0 * r2, w0 * r1 - w1 * r0
            x[k, at + 12], x[k, at + 13], x[k, at + 14] = V[i, 0] + s0, V[i, 1] + s1, V[i, 2] + s2
            x[k, at + 15], x[k, at + 16], x[k, at + 17] = w0, w1, w2
            x[k, at + 18] = K[i, 15] + gravity[0] + d1 * r2 - d2 * r1 + w1 * s2 - w2 * s1
            x[k, at + 19] = K[i, 16] + gravity[1] + d2 * r0 - d0 * r2 + w2 * s0 - w0 * s2
            x[k, at + 20] = K[i, 17] + gravity[2] + d0 * r1 - d1 * r0 + w0 * s1 - w1 * s0
            x[k, at + 21], x[k, at + 22], x[k, at + 23] = d0, d1, d2


@fused_steady
def scatter(forces, rates, drifts, residuals, arms, rows, places, wrenches, rate, drift, residual):
    """Put forces (k, r, 12) at frames into wrenches (m, 2, 6) about the bodies' origins; the rest where it belongs."""
    for k in range(len(rows)):
        for r in range(rows.shape[1]):
            row = rows[k, r]
            rate[row], drift[row] = rates[k, r], drifts[k, r]
            for end in range(2):
                out, at = wrenches[row, end], 6 * end
                f0, f1, f2 = forces[k, r, at], forces[k, r, at + 1], forces[k, r, at + 2]
                a0, a1, a2 = arms[k, end, 0], arms[k, end, 1], arms[k, end, 2]
                out[0], out[1], out[2] = f0, f1, f2
                out[3] = forces[k, r, at + 3] + a1 * f2 - a2 * f1
                out[4] = forces[k, r, at + 4] + a2 * f0 - a0 * f2
                out[5] = forces[k, r, at + 5] + a0 * f1 - a1 * f0
        for h in range(places.shape[1]):
            residual[places[k, h]] = residuals[k, h]
