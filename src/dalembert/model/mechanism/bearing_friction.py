"""Dry friction of bearings that turn: a torque that depends on the load, which depends on the torque.

Symbols: F_i load of bearing i across its axis, mu_i coefficient, r_i radius (1 for a slider), s_i sign of its velocity,
tau_i friction along its coordinate, or about a hinge that closes a loop: then along the row of velocities of its turn
(`LoopMotion`). The block system is linear, so that loads are affine in the torques:

    tau_i = -s_i mu_i r_i |F_i + sum_j G_ij tau_j|        solved by Newton's method

The right side is a contraction where the rows of mu_i r_i |G_ij| add up to less than one: then there is one answer.
Beyond that a linkage may jam or have several (Wojtyra, Pekal & Fraczek 2020, "Utilization of the Moore-Penrose inverse
in the modeling of overconstrained mechanical systems with frictionless and frictional joints", Mech. Mach. Theory 153),
and the status says that it was declined. Bearings at rest stick or slip: that takes the history of a run
(`simulate/contact/bearing_loads.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import ModelError
from dalembert.kkt.limits import ROUNDING
from dalembert.model.mechanism.calls import on_manifold
from dalembert.model.mechanism.joint_forces import JointForces
from dalembert.model.mechanism.known_motion import MotionSamples
from dalembert.model.mechanism.transmissions import LoopMotion, loop_motions, transmissions
from dalembert.names import lookup
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

ITERATIONS = 50
"""Newton steps at most; a contraction takes a handful."""


@dataclass(frozen=True, eq=False)
class Bearing:
    """A bearing: its place in v or the hinge of a loop, the axis in the child's axes, coefficient times radius."""

    name: str
    motion: int | LoopMotion
    axis: Array
    factor: float

    @classmethod
    def of(cls, mechanism: Mechanism, name: str, data: Any) -> Bearing:
        """Check what was given for a joint: (radius, coefficient), or a coefficient for a slider."""
        hinge = loop_motions(mechanism).get(name)
        if hinge is None and name in {at.name for at in transmissions(mechanism) if at.group != "joint"}:
            raise ModelError(
                f"{name!r} closes a loop and is no hinge or slider; cut the loop at another joint, so that {name!r} "
                "has a coordinate: no force depends on where loops are cut"
            )
        joint: Any = mechanism.joint(name) if hinge is None else hinge.at
        turns = lookup(joint.kind, {"revolute": True, "continuous": True, "prismatic": False}, "kind of bearing")
        numbers = floats(data, f"the bearing of {name!r}")
        if numbers.shape != ((2,) if turns else ()) or not (np.isfinite(numbers) & (numbers >= 0.0)).all():
            form = "(radius in metres, coefficient)" if turns else "a coefficient"
            raise ModelError(f"the bearing of {joint.kind} joint {name!r} is {form}, not negative; got {data!r}")
        factor = float(np.prod(numbers))
        if hinge is not None:
            return cls(name, hinge, hinge.axis, factor)
        return cls(name, mechanism.index_v(name).start, np.array(joint.axis), factor)

    def rows(self, mechanism: Mechanism, q: Array) -> Array:
        """Return the rows of its velocity, (N, nv): friction acts along them."""
        if isinstance(self.motion, LoopMotion):
            return self.motion.rows(mechanism, q)
        return np.broadcast_to(np.eye(mechanism.nv)[self.motion], (len(q), mechanism.nv))

    def load(self, forces: JointForces) -> Array:
        """Return the force across the axis, (N, 3)."""
        F = forces[self.name].force.reshape(-1, 3)
        return F - (F @ self.axis)[:, None] * self.axis


def with_bearings(
    mechanism: Mechanism, q: Any, v: Any, force: Any, t: Any, axes: str, flexible: Any, bearings: Mapping[str, Any]
) -> JointForces:
    """Return the wrenches of forward dynamics with friction in bearings that turn."""
    several = [Bearing.of(mechanism, name, data) for name, data in bearings.items()]
    q, v, n = on_manifold(mechanism, q), vectors(v, mechanism.nv, "v"), mechanism.nv
    tau = np.zeros(n) if force is None else vectors(force, n, "force")
    shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1], np.shape(t))
    tau, v, q = (np.broadcast_to(x, (*shape, x.shape[-1])) for x in (tau, v, q))
    flat = [x.reshape(-1, x.shape[-1]) for x in (q, v)]
    rows = [bearing.rows(mechanism, flat[0]) for bearing in several]
    signs = np.array([np.sign(np.einsum("nj,nj->n", row, flat[1])) for row in rows])
    at_rest = [bearing.name for bearing, sign in zip(several, signs, strict=True) if (sign == 0.0).any()]
    if at_rest:
        raise ModelError(
            f"the bearing of {at_rest[0]!r} is at rest: whether it sticks depends on the run before; give it a "
            "velocity, or leave it out"
        )
    forces_along = [row.reshape(*shape, n) for row in rows]

    def answered(amounts: Array) -> JointForces:
        """Return the wrenches under torques (..., k) of the bearings; those of loops act on their two bodies."""
        extra = sum(amounts[..., i, None] * row for i, row in enumerate(forces_along))
        solution = mechanism.forward(q, v, tau + extra, t)
        motion = MotionSamples.of(mechanism, q, v, solution.acceleration, solution.multipliers, t, solution.status, tau)
        turns = {
            bearing.name: amounts[..., i].reshape(-1)
            for i, bearing in enumerate(several)
            if isinstance(bearing.motion, LoopMotion)
        }
        return replace(motion, torques=turns).joint_forces("child", flexible)

    def loads(amounts: Array) -> list[Array]:
        forces = answered(np.broadcast_to(amounts, (*shape, len(several))))
        refuse_open_loads(forces, several, "flexible={...} gives stiffnesses that decide it")
        return [bearing.load(forces) for bearing in several]

    F = loads(np.zeros(len(several)))
    moved = [loads(unit) for unit in np.eye(len(several))]
    G = np.array([[one - F[i] for one in column] for i, column in enumerate(zip(*moved, strict=True))])
    factors = np.array([bearing.factor for bearing in several])
    answers = [friction_torques(signs[:, k], factors, np.array(F)[:, k], G[:, :, k]) for k in range(signs.shape[1])]
    torque = np.array([x for x, _ in answers]).reshape(*shape, len(several))
    sure = np.array([one for _, one in answers]).reshape(shape)
    forces = answered(np.where(sure[..., None], torque, 0.0))
    return _judged(forces, sure, {bearing.name: torque[..., i] for i, bearing in enumerate(several)}).in_axes(axes)


def friction_torques(s: Array, factors: Array, F: Array, G: Array) -> tuple[Array, bool]:
    """Return the torques of one sample, and whether they are the only ones."""
    tau = np.zeros(s.size)
    if not (np.isfinite(F).all() and np.isfinite(G).all()):
        return tau + np.nan, False
    steepness = factors * np.linalg.norm(G, axis=2).sum(axis=1)
    if not steepness.max(initial=0.0) < 1.0:
        return tau + np.nan, False
    for _ in range(ITERATIONS):
        load = F + np.einsum("ijc,j->ic", G, tau)
        size = np.linalg.norm(load, axis=1)
        gap = tau + s * factors * size
        if np.abs(gap).max(initial=0.0) <= ROUNDING * max(
            np.abs(tau).max(initial=0.0), (factors * size).max(initial=0.0)
        ):
            return tau, True
        unit = load / np.where(size > 0.0, size, 1.0)[:, None]
        slope = np.eye(s.size) + (s * factors)[:, None] * np.einsum("ic,ijc->ij", unit, G)
        tau = tau - np.linalg.solve(slope, gap)
    return tau + np.nan, False


def refuse_open_loads(forces: JointForces, bearings: list[Bearing], advice: str) -> None:
    """Refuse a load that redundant constraints leave open: friction would follow a choice, and so would the motion."""
    for bearing in bearings:
        across = np.linalg.norm(forces[bearing.name].family[..., :3] - (
            forces[bearing.name].family[..., :3] @ bearing.axis)[..., None] * bearing.axis, axis=-1)  # fmt: skip
        sizes = np.linalg.norm(forces.family[..., :3], axis=-1).max(axis=-1, initial=0.0)
        if (across > np.sqrt(ROUNDING) * sizes).any():
            raise ModelError(
                f"the load of {bearing.name!r} is not unique, so that its friction and the motion with it are not; "
                f"{advice}"
            )


def _judged(forces: JointForces, sure: Array, friction: dict[str, Array]) -> JointForces:
    """Return the wrenches with the torques of friction; NaN and `DECLINED` where these are not the only ones."""
    status = np.where(sure, np.asarray(forces.status, dtype=int), int(Status.DECLINED))
    bad = ~sure[..., None, None]
    return replace(
        forces, friction=friction, status=Status(int(status)) if not sure.shape else status,
        wrenches=np.where(bad, np.nan, forces.wrenches), working=np.where(bad, np.nan, forces.working),
        unique=forces.unique & ~bad, acceleration=np.where(~sure[..., None], np.nan, forces.acceleration),
        multipliers=np.where(~sure[..., None], np.nan, forces.multipliers),
    )  # fmt: skip
