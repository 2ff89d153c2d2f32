"""Joint forces: the wrench that every joint transmits, which components are unique, and the family of the others.

Symbols: W wrench [force; moment] of a joint, the parent's on the child, at the joint; S its free motions; lam
multipliers, N a basis of null(A^T), T = dW/dlam N what the family does to the wrenches; C compliances of joints.

    W(z) = W + T z        the same motion for every z: a component is unique where its row of T is zero
    working part          G (S^T G)^-1 S^T W: motors, springs and dampers in the joint; the rest is the constraint's
    z                     least sum of W^T C W: the rigid limit of joints that give way by C (Castigliano)

By default all joints give way alike, moments being measured by the radius of gyration of the bodies: no part of the
choice depends on where loops are cut, nor on units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import ModelError
from dalembert.kkt.limits import negligible_level
from dalembert.model.joints import KINDS, as_array
from dalembert.model.mechanism.calls import on_manifold
from dalembert.model.mechanism.families import MultiplierFamily, multiplier_families
from dalembert.model.mechanism.transmissions import AXES, Transmission, places_of, transmissions
from dalembert.names import lookup
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint

COMPONENTS = ("force x", "force y", "force z", "moment x", "moment y", "moment z")
"""Names of the six components of a wrench."""

SHOWN = 1e-12
"""Part of the largest component below which a table shows zero."""

DETERMINED = 1e-8
"""Part of the largest elastic energy of a unit member of a family from which on flexible joints decide it: half the
digits, since energies are squares."""


# ----------------------------------------------------------------------------------------------------------------------
# What comes back.


@dataclass(frozen=True, eq=False)
class JointForce:
    """The wrench of one joint, loop, constraint, spring or motor: of the parent on the child, at the joint.

    Attributes
    ----------
    name, kind, child, parent
        Which one it is, of what kind; the body that the wrench acts on, and the one that exerts it.
    axes
        "child", "parent" (of the joint's frame on these bodies) or "world".
    wrench
        [force; moment], (..., 6), N and N m; the moment is about the origin of the joint's frame on the child.
    working
        The part along the joint's free motions, (..., 6): of motors, springs, dampers, rotors and gears.
    unique
        Per component whether the constraints determine it, (..., 6).
    family
        What may be added to the wrench without changing the motion: any combination of the rows, (..., r, 6).
    """

    name: str
    kind: str
    child: str
    parent: str
    axes: str
    wrench: Float[Array, "*batch 6"]
    working: Float[Array, "*batch 6"]
    unique: Bool[Array, "*batch 6"]
    family: Float[Array, "*batch r 6"]

    @property
    def force(self) -> Float[Array, "*batch 3"]:
        """Force on the child, N."""
        return self.wrench[..., :3]

    @property
    def moment(self) -> Float[Array, "*batch 3"]:
        """Moment on the child about the joint, N m."""
        return self.wrench[..., 3:]

    @property
    def constraint(self) -> Float[Array, "*batch 6"]:
        """The part that the joint's guide exerts; it does no work."""
        return self.wrench - self.working

    def __str__(self) -> str:
        if self.wrench.ndim > 1:
            return f"{self.name} ({self.kind}): {self.wrench.shape[:-1]} wrenches of {self.parent} on {self.child}"
        return f"{self.name} ({self.kind}), {self.parent} on {self.child}: {_wrench_text(self.wrench, self.unique)}"


@dataclass(frozen=True, eq=False)
class JointForces(Mapping[str, JointForce]):
    """The wrenches of all joints of a mechanism at one state, or a batch: `forces["knee"]` is that of one of them.

    Attributes
    ----------
    mechanism, table, q
        Whose they are; the joints, loops, constraints and springs in order; the configuration, (..., nq).
    axes
        In which the wrenches are: "child", "parent" or "world"; `in_axes` tells them in others.
    wrenches
        [force; moment] of the parent on the child, at the joint, (..., k, 6).
    working
        The parts along free motions, (..., k, 6).
    family
        What may be added without changing the motion, (..., r, k, 6): any combination of the r members.
    unique
        Per component whether the constraints determine it, (..., k, 6).
    acceleration, multipliers, status
        The motion that goes with them, (..., nv); the multipliers of the chosen member, (..., m); `da.Status`, (...).
    choice
        In words, which member of the family the wrenches are.
    rotations
        Of the joints' frames on the child and on the parent in the world, (..., k, 3, 3) each.
    multiplier_family
        What members of the family add to the multipliers, (..., r, m).
    noise
        Part of a member of the family that is rounding, (...).
    motors
        Per actuator the number of its joint and the wrench that it adds there, (..., 6).
    given
        What has chosen the member, so that `with_flexible` cannot; else nothing.
    friction
        Torques (forces of sliders) of dry friction along the coordinates of `bearings`, (...), by joint.
    """

    mechanism: Mechanism = field(repr=False)
    table: tuple[Transmission, ...] = field(repr=False)
    q: Float[Array, "*batch nq"] = field(repr=False)
    axes: str
    wrenches: Float[Array, "*batch k 6"]
    working: Float[Array, "*batch k 6"]
    family: Float[Array, "*batch r k 6"]
    unique: Bool[Array, "*batch k 6"]
    acceleration: Float[Array, "*batch nv"]
    multipliers: Float[Array, "*batch m"]
    status: Any
    choice: str
    rotations: tuple[Array, Array] = field(repr=False)
    multiplier_family: Array = field(repr=False)
    noise: Array = field(repr=False)
    motors: Mapping[str, tuple[int, Array]] = field(default_factory=dict, repr=False)
    given: str = field(default="", repr=False)
    friction: Mapping[str, Array] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of joints, loops, constraints and springs."""
        return tuple(each.name for each in self.table)

    @property
    def force(self) -> Float[Array, "*batch k 3"]:
        """Forces on the children, N."""
        return self.wrenches[..., :3]

    @property
    def moment(self) -> Float[Array, "*batch k 3"]:
        """Moments on the children about the joints, N m."""
        return self.wrenches[..., 3:]

    @property
    def constraint(self) -> Float[Array, "*batch k 6"]:
        """The parts that do no work."""
        return self.wrenches - self.working

    @property
    def not_unique(self) -> dict[str, tuple[str, ...]]:
        """Per joint that has any, its components that the constraints leave open (in any sample of a batch)."""
        open_ones = np.asarray(~self.unique.reshape(-1, *self.unique.shape[-2:]).all(axis=0))
        named = zip(self.names, open_ones, strict=True)
        return {name: tuple(np.array(COMPONENTS)[row].tolist()) for name, row in named if row.any()}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> JointForce:
        """Return the wrench of a joint, loop, constraint, spring or motor."""
        if name in self.motors and name not in self._places:
            i, wrench = self.motors[name]
            at, sure = self.table[i], np.ones(wrench.shape, dtype=bool)
            none = np.zeros((*wrench.shape[:-1], 0, 6))
            return JointForce(name, "actuator", at.child, at.parent, self.axes, wrench, wrench, sure, none)
        i = lookup(name, self._places, "joint, loop, constraint or spring")
        at = self.table[i]
        return JointForce(
            at.name, at.kind, at.child, at.parent, self.axes, self.wrenches[..., i, :], self.working[..., i, :],
            self.unique[..., i, :], self.family[..., i, :],
        )  # fmt: skip

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.table)

    def in_axes(self, axes: str) -> Self:
        """Return the same wrenches in other axes: "child", "parent" or "world"."""
        if axes not in AXES:
            raise ModelError(f"axes={axes!r}: joint forces are told in the axes of {', '.join(map(repr, AXES))}")
        if axes == self.axes:
            return self
        child, parent = self.rotations
        world = np.broadcast_to(np.eye(3), child.shape)
        known = {"child": child, "parent": parent, "world": world}
        turn = np.swapaxes(known[axes], -1, -2) @ known[self.axes]
        family = turned(turn[..., None, :, :, :], self.family)
        parts = [turned(turn, x) for x in (self.wrenches, self.working)]
        unique = unique_components(family, self.noise, length_of(self.mechanism))
        unique &= np.isfinite(self.wrenches).all(axis=(-2, -1), keepdims=True)
        motors = {name: (i, turned(turn[..., i, :, :], x)) for name, (i, x) in self.motors.items()}
        return replace(
            self, axes=axes, wrenches=parts[0], working=parts[1], family=family, unique=unique, motors=motors
        )

    def with_flexible(self, flexible: Mapping[str, Any] | None) -> Self:
        """Return the member of least elastic energy in joints of given stiffness, all others rigid.

        Parameters
        ----------
        flexible
            Per joint a number (N/m; turns stay rigid), a pair (N/m, N m/rad), or an array of six along and about the
            child's axes. What these joints leave open goes to joints that give way alike, as all do without `flexible`.
        """
        if self.given:
            raise ModelError(
                f"these wrenches go with {self.given} that are given; mechanism.joint_forces(q, v, tau, flexible=...) "
                "has those of flexible joints under the same forces"
            )
        child = self.in_axes("child")
        m, shape, (r, k) = self.mechanism, self.wrenches.shape[:-2], self.family.shape[-3:-1]
        count = int(np.prod(shape))
        W, T = child.wrenches.reshape(count, k, 6), child.family.reshape(count, r, k, 6)
        z, free = chosen_members(m, W, T, flexible)
        W, left = W + np.einsum("nr,nrkc->nkc", z, T), np.einsum("nrj,nrkc->njkc", free, T)
        basis = self.multiplier_family.reshape(count, r, len(m.names))
        lam = self.multipliers + np.einsum("nr,nrm->nm", z, basis).reshape(self.multipliers.shape)
        wide = free.shape[2]
        left, basis = left.reshape(*shape, wide, k, 6), np.einsum("nrj,nrm->njm", free, basis)
        solved = np.isfinite(W).all(axis=(-2, -1)).reshape(shape)[..., None, None]
        return replace(
            child, wrenches=W.reshape(*shape, k, 6), multipliers=lam, family=left,
            working=working_parts(m, self.q.reshape(count, m.nq), W).reshape(*shape, k, 6),
            unique=unique_components(left, self.noise, length_of(m)) & solved,
            multiplier_family=basis.reshape(*shape, wide, len(m.names)),
            choice=_words(m, self.status, bool(T.any()), flexible, bool(left.any())),
        ).in_axes(self.axes)  # fmt: skip

    def __str__(self) -> str:
        if self.wrenches.ndim > 2:
            return f"joint forces of {len(self)} joints, {self.wrenches.shape[:-2]} samples; {self.choice}"
        width = max((len(name) for name in self.names), default=0)
        head = f"{'':{width}}  " + "  ".join(f"{name:>12}" for name in COMPONENTS)
        shown = np.where(
            np.abs(self.wrenches) > SHOWN * np.nanmax(np.abs(self.wrenches), initial=0.0), self.wrenches, 0.0
        )
        shown = np.where(np.isnan(self.wrenches), np.nan, shown)
        rows = zip(self.names, shown, self.unique, strict=True)
        lines = [f"{name:{width}}  {_row_text(row, alone)}" for name, row, alone in rows]
        mark = ["* not unique; " + self.choice] if not self.unique.all() else []
        return "\n".join([f"axes of the {self.axes}, N and N m", head, *lines, *mark])


def _row_text(wrench: Array, unique: Array) -> str:
    return "  ".join(f"{x:>12.6g}" if alone else f"{x:>11.5g}*" for x, alone in zip(wrench, unique, strict=True))


def _wrench_text(wrench: Array, unique: Array) -> str:
    words = zip(COMPONENTS, wrench, unique, strict=True)
    return ", ".join(f"{name} {x:.6g}{'' if alone else ' (not unique)'}" for name, x, alone in words)


def turned(R: Array, wrenches: Array) -> Array:
    """Return wrenches (..., 6) in axes that R (..., 3, 3) leads to."""
    force = np.einsum("...ij,...j->...i", R, wrenches[..., :3])
    return np.concatenate([force, np.einsum("...ij,...j->...i", R, wrenches[..., 3:])], axis=-1)


# ----------------------------------------------------------------------------------------------------------------------
# From a state, or a motion that is known, to wrenches.


def joint_forces(
    mechanism: Mechanism, q: Any, v: Any, force: Any, t: Any, axes: str, flexible: Mapping[str, Any] | None
) -> JointForces:
    """Return the wrenches of forward dynamics."""
    solution = mechanism.forward(q, v, force, t)
    drive = np.zeros(mechanism.nv) if force is None else force
    known = KnownMotion.of(mechanism, q, v, solution.acceleration, solution.multipliers, t, solution.status, drive)
    return known.joint_forces(axes, flexible)


@dataclass(frozen=True, eq=False)
class KnownMotion:
    """States with their accelerations and multipliers, one after the other.

    Attributes
    ----------
    mechanism, shape
        What moves; the shape of the batch.
    q, v, a, lam, t, status
        (N, nq), (N, nv), (N, nv), (N, m), (N,), (N,).
    passive
        Coordinates that no motor drives, where motors make up for what the rows do along the others; else None.
    external
        Forces on bodies from outside, by name: (N, 6), world axes, about the body's origin.
    drive
        Forces of the motors along the coordinates, (N, nv), where they are known.
    """

    mechanism: Mechanism
    shape: tuple[int, ...]
    q: Array
    v: Array
    a: Array
    lam: Array
    t: Array
    status: Array
    passive: Array | None = None
    external: Mapping[str, Array] = field(default_factory=dict)
    drive: Array | None = None

    @classmethod
    def of(
        cls, mechanism: Mechanism, q: Any, v: Any, a: Any, lam: Any, t: Any, status: Any, drive: Any = None
    ) -> KnownMotion:
        """Check and flatten a batch."""
        q, n, m = on_manifold(mechanism, q), mechanism.nv, len(mechanism.names)
        parts = [q, vectors(v, n, "v"), vectors(a, n, "a"), vectors(lam, m, "multipliers")]
        t, codes = floats(t, "t"), np.asarray(status, dtype=int)
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in parts), t.shape, codes.shape)
        count = int(np.prod(shape))
        flat = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(count, x.shape[-1]) for x in parts]
        rest = [np.broadcast_to(x, shape).reshape(-1) for x in (t, codes)]
        if drive is not None:
            drive = np.broadcast_to(vectors(drive, n, "force"), (*shape, n)).reshape(count, n)
        (q, v, a, lam), (t, codes) = flat, rest
        return cls(mechanism, shape, q, v, a, lam, t, codes, drive=drive)

    @property
    def solved(self) -> Array:
        """Which samples have numbers."""
        return np.asarray(self.status <= Status.ILL_CONDITIONED)

    def joint_forces(self, axes: str = "child", flexible: Mapping[str, Any] | None = None) -> JointForces:
        """Return the wrenches, their families, and the member of each that joints with compliance choose."""
        m, shaped = self.mechanism, self._shaped
        W, family = self._wrenches(self.lam), self.family()
        T, lam = self.of_multipliers(family), self.lam.copy()
        W[~self.solved], lam[~self.solved] = np.nan, np.nan
        looked_at = (self.status == Status.REDUNDANT) & (family.dimension == 0)
        status = np.where(looked_at, int(Status.UNIQUE), self.status)
        rotations = rotations_of(m, self.q)
        first = JointForces(
            m, transmissions(m), shaped(self.q), "child", shaped(W), shaped(W), shaped(T), shaped(np.isfinite(W)),
            shaped(self.a), shaped(lam), shaped(status) if self.shape else Status(int(status[0])), "",
            (shaped(rotations[0]), shaped(rotations[1])), shaped(np.swapaxes(family.basis, 1, 2)), shaped(family.noise),
            self._motors(),
        )  # fmt: skip
        return first.with_flexible(flexible).in_axes(axes)

    def family(self) -> MultiplierFamily:
        """Return what may be added to the multipliers."""
        suspect = self.solved if self.passive is not None else self.solved & (self.status != Status.UNIQUE)
        return multiplier_families(self.mechanism, self.q, self.t, self.passive, suspect)

    def _motors(self) -> dict[str, tuple[int, Array]]:
        """Return what every motor adds to the wrench of its joint, in the child's axes."""
        if self.drive is None:
            return {}
        motors = {}
        for motor in self.mechanism.actuators:
            place = self.mechanism.index_v(motor.coordinate).start
            i = int(np.searchsorted(self.mechanism.manifold.v_start[:-1], place, side="right")) - 1
            joint = self.mechanism.joints[i]
            S, G = free_motions(self.mechanism, joint, self.q)
            along = np.zeros((len(self.q), S.shape[2], 1))
            along[:, place - int(self.mechanism.manifold.v_start[i]), 0] = self.drive[:, place]
            wrench = (G @ np.linalg.solve(np.swapaxes(S, 1, 2) @ G, along))[..., 0]
            motors[motor.name] = i, self._shaped(wrench)
        return motors

    def _wrenches(self, lam: Array) -> Array:
        names = tuple(self.external)
        options = {"external": names} if names else {}
        kernel = self.mechanism.compile("joint_forces_of_motion", **options)
        outer = [np.concatenate([self.external[name] for name in names], axis=-1)] if names else []
        W = kernel(self.q, self.v, self.a, lam, self.t[:, None], *outer)
        return np.array(W, dtype=float).reshape(len(self.q), len(transmissions(self.mechanism)), 6)

    def of_multipliers(self, family: MultiplierFamily) -> Array:
        """Return T: what every member of the family does to the wrenches, (N, r, k, 6)."""
        count, _m, r = family.basis.shape
        k = len(transmissions(self.mechanism))
        T = np.zeros((count, r, k, 6))
        members = np.flatnonzero(family.dimension)
        if not members.size:
            return T
        kernel = self.mechanism.compile("joint_forces_of_multipliers")
        lam = np.swapaxes(family.basis[members], 1, 2)
        q, t = (np.repeat(x[members][:, None], r, axis=1) for x in (self.q, self.t[:, None]))
        T[members] = np.asarray(kernel(q, lam, t)).reshape(members.size, r, k, 6)
        return T

    def _shaped(self, x: Array) -> Array:
        return x.reshape((*self.shape, *x.shape[1:]))


def rotations_of(mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
    """Return the rotations of the joints' frames on child and parent in the world, (N, k, 3, 3) each."""
    R = np.asarray(mechanism.kinematics(q)[0]) if mechanism.bodies else np.zeros((len(q), 0, 3, 3))
    ground = np.broadcast_to(np.eye(3), (len(q), 1, 3, 3))
    bodies = np.concatenate([R, ground], axis=1)
    child, parent, on_child, on_parent = places_of(mechanism)
    return bodies[:, child] @ on_child, bodies[:, parent] @ on_parent


def working_parts(mechanism: Mechanism, q: Array, W: Array) -> Array:
    """Return the parts of wrenches (N, k, 6), child's axes, along the free motions of the joints; of springs all.

    A motor of a screw acts as a moment about its axis: of the wrenches that do its work this is the one without thrust.
    """
    parts = np.zeros_like(W)
    for i, at in enumerate(transmissions(mechanism)):
        if at.group == "spring":
            parts[:, i] = W[:, i]
        elif at.group == "joint" and at.kind != "fixed":
            S, G = free_motions(mechanism, mechanism.joints[at.number], q)
            St = np.swapaxes(S, 1, 2)
            parts[:, i] = (G @ np.linalg.solve(St @ G, St @ W[:, i, :, None]))[..., 0]
    return parts


def free_motions(mechanism: Mechanism, joint: Joint, q: Array) -> tuple[Array, Array]:
    """Return S (N, 6, n) of a joint, and the wrenches G (N, 6, n) of motors along its velocities."""
    kind = KINDS[joint.kind]
    S = as_array(kind.subspace(joint, list(q[:, mechanism.index_q(joint.name)].T)))
    S = np.array(np.broadcast_to(S, (len(q), 6, kind.nv)))
    turns = np.array(kind.angular)
    G = np.zeros_like(S)
    G[:, 3:, turns], G[:, :3, ~turns] = S[:, 3:, turns], S[:, :3, ~turns]
    return S, G


def length_of(mechanism: Mechanism) -> float:
    """Return the length that moments are measured by, metres: the radius of gyration of all bodies about their centres.

    The same wherever loops are cut; of bodies that are points, or weigh nothing, the mechanism's size.
    """
    mass = sum(abs(body.inertia.mass) for body in mechanism.bodies)
    second = sum(abs(float(np.trace(body.inertia.rotational))) for body in mechanism.bodies)
    return float(np.sqrt(second / mass)) if mass > 0.0 and second > 0.0 else mechanism.reach


@np.errstate(invalid="ignore")
def unique_components(family: Array, noise: Any, length: float) -> Array:
    """Return per component whether no member (..., r, k, 6) of a family has a part in it, (..., k, 6).

    Rounding is measured against the largest force of a member anywhere, or moment over a length.
    """
    if not family.shape[-3]:
        return np.ones((*family.shape[:-3], *family.shape[-2:]), dtype=bool)
    force, moment = np.abs(family[..., :3]), np.abs(family[..., 3:])
    size = np.maximum(force.max(axis=(-2, -1), initial=0.0), moment.max(axis=(-2, -1), initial=0.0) / length)
    level = np.vectorize(negligible_level, otypes=[float])(noise)[..., None] * size
    alone = np.concatenate([force <= level[..., None, None], moment <= length * level[..., None, None]], axis=-1)
    return np.asarray(alone.all(axis=-3))


# ----------------------------------------------------------------------------------------------------------------------
# Inverse dynamics: forces of motors, and the loads of bearings that go with them.


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Forces that cause a motion: `tau, multipliers, status = ...` unpacks them.

    Attributes
    ----------
    tau
        Forces along the coordinates, (..., nv): the least sum of squares, zero where nothing is driven.
    multipliers
        (..., m), the least that go with them.
    status
        `da.Status` per sample, (...): `REDUNDANT` where tau or the multipliers are one choice of a family.
    mechanism, state, actuated
        What was asked: (q, v, a, t), and the driven joints.
    """

    tau: Float[Array, "*batch nv"]
    multipliers: Float[Array, "*batch m"]
    status: Any
    mechanism: Mechanism = field(repr=False)
    state: tuple[Any, Any, Any, Any] = field(repr=False)
    actuated: Any = None

    def __iter__(self) -> Iterator[Any]:
        """Unpack as the outputs of the kernel."""
        return iter((self.tau, self.multipliers, self.status))

    def __getitem__(self, i: int) -> Any:
        """Return tau, multipliers or status by number."""
        return (self.tau, self.multipliers, self.status)[i]

    def __len__(self) -> int:
        return 3

    @cached_property
    def _passive(self) -> Array:
        """Coordinates that no motor drives."""
        from dalembert.model.mechanism.joint_values import driven_coordinates

        driven = driven_coordinates(self.mechanism, self.actuated)
        return np.setdiff1d(np.arange(self.mechanism.nv), driven)

    @cached_property
    def _motion(self) -> KnownMotion:
        q, v, a, t = self.state
        known = KnownMotion.of(self.mechanism, q, v, a, self.multipliers, t, self.status, self.tau)
        # rows that depend on each other are looked for in every sample that has an answer
        return replace(known, status=np.where(known.solved, int(Status.REDUNDANT), known.status))

    @cached_property
    def _family(self) -> MultiplierFamily:
        """What motors and rows may do against each other without changing the motion."""
        return replace(self._motion, passive=self._passive).family()

    @property
    def unique(self) -> Bool[Array, "*batch m"]:
        """Per row and sample, whether its multiplier is the same however the motors share the work."""
        known = self._motion
        return (self._family.unique & known.solved[:, None]).reshape(*known.shape, -1)

    @property
    def tau_unique(self) -> Bool[Array, "*batch nv"]:
        """Per coordinate and sample, whether its motor has no choice."""
        known, family = self._motion, self._family
        A = np.asarray(self.mechanism.jacobian(known.q, known.t)) if self.mechanism.names else np.zeros((0, 0, 0))
        if not self.mechanism.names:
            return np.broadcast_to(known.solved[:, None], known.v.shape).reshape(*known.shape, -1)
        change = np.abs(np.einsum("nmk,nmr->nkr", A, family.basis)).max(axis=2, initial=0.0)
        sizes = np.einsum("nmk,nmr->nkr", np.abs(A), np.abs(family.basis)).max(axis=2, initial=0.0)
        driven = np.ones(self.mechanism.nv, dtype=bool)
        driven[self._passive] = False
        level = np.array([negligible_level(float(x)) for x in family.noise])[:, None]
        return ((change <= level * np.maximum(sizes, 0.0)) | ~driven).reshape(*known.shape, -1)

    @cached_property
    def joint_forces(self) -> JointForces:
        """Loads of all bearings under these motors, in the axes of the joints' frames on the child.

        `unique` counts all that motors could share otherwise. Of what they cannot reach (null(A^T)) the wrenches have
        the member of least elastic energy, all joints giving way alike.
        """
        known = self._motion
        forces = known.joint_forces()
        T = known.of_multipliers(self._family)
        family = T.reshape(*known.shape, *T.shape[1:])
        unique = unique_components(family, self._family.noise.reshape(known.shape), length_of(self.mechanism))
        basis = np.swapaxes(self._family.basis, 1, 2)
        words = f"least sum of squares of the motors' forces; {forces.choice}" if T.any() else forces.choice
        return replace(
            forces, family=family, unique=unique & known.solved.reshape(known.shape)[..., None, None], choice=words,
            multiplier_family=basis.reshape(*known.shape, *basis.shape[1:]), status=self.status, given="motors' forces",
        )  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------------
# Which member of a family: the one that joints with compliance would take.
#
#     least sum over joints of W^T C W,  W = W0 + T z:      T^T C T z = -T^T C W0
#
# This is Castigliano's theorem: of all wrenches in balance the true ones store the least elastic energy, and only the
# ratios of compliances matter, so that it is also the limit of joints that become rigid together. Members that store no
# energy in the joints named are left open.


def chosen_members(mechanism: Mechanism, W: Array, T: Array, flexible: Mapping[str, Any] | None) -> tuple[Array, Array]:
    """Return z (N, r) of least elastic energy, and the members that `flexible` joints leave open, (N, r, r')."""
    even = np.tile(np.repeat([1.0, 1.0 / length_of(mechanism)], 3), (W.shape[1], 1))
    even[[at.group == "spring" for at in transmissions(mechanism)]] = 0.0
    roots = None if flexible is None else np.sqrt(compliances(mechanism, flexible))
    count, r = T.shape[:2]
    z, free, widest = np.zeros((count, r)), np.zeros((count, r, r)), 0
    for i in np.flatnonzero((T != 0.0).any(axis=(1, 2, 3)) & np.isfinite(W).all(axis=(1, 2))):
        members = np.flatnonzero((T[i] != 0.0).any(axis=(1, 2)))
        z[i, members], left = _least_energy(W[i], T[i, members], even, roots)
        free[i, members, : left.shape[1]] = left
        widest = max(widest, left.shape[1])
    return z, free[:, :, :widest]


def _least_energy(W: Array, T: Array, even: Array, roots: Array | None) -> tuple[Array, Array]:
    """Return z, and as columns the members that nothing has decided but the even choice."""
    z, free = np.zeros(len(T)), np.eye(len(T))
    if roots is not None:
        z, free = _decided(W, T, roots, z, free)
    return (_decided(W, T, even, z, free)[0] if free.shape[1] else z), free


def _decided(W: Array, T: Array, roots: Array, z: Array, free: Array) -> tuple[Array, Array]:
    """Return z with the energy made least over the open members, and the members that store none."""
    E = np.einsum("kc,rkc,rj->kcj", roots, T, free).reshape(-1, free.shape[1])
    w = (roots * (W + np.einsum("r,rkc->kc", z, T))).reshape(-1)
    sizes = np.linalg.norm(np.einsum("rj,rkc->kcj", free, T).reshape(-1, free.shape[1]), axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    U, s, Vt = np.linalg.svd(E / sizes, full_matrices=E.shape[0] < E.shape[1])
    keep = np.zeros(free.shape[1], dtype=bool)
    keep[: s.size] = s > DETERMINED * s.max(initial=0.0)
    step = Vt[keep].T @ (-(U[:, : s.size].T @ w)[keep[: s.size]] / s[keep[: s.size]]) / sizes
    return z + free @ step, free @ (Vt[~keep].T / sizes[:, None])


def compliances(mechanism: Mechanism, flexible: Mapping[str, Any]) -> Array:
    """Return per transmission and component the compliance, (k, 6): zero where a joint is rigid."""
    table = {at.name: i for i, at in enumerate(transmissions(mechanism))}
    C = np.zeros((len(table), 6))
    for name, stiffness in flexible.items():
        C[lookup(name, table, "joint, loop or constraint")] = 1.0 / six_stiffnesses(name, stiffness)
    return C


def six_stiffnesses(name: str, stiffness: Any) -> Array:
    """Return six stiffnesses along and about the child's axes: of one number (N/m; turns are rigid), a pair, or six."""
    parts = [
        floats(x, f"the stiffness of {name!r}") for x in (stiffness if isinstance(stiffness, tuple) else (stiffness,))
    ]
    if len(parts) == 1 and parts[0].shape == (6,):
        six = parts[0]
    elif len(parts) == 1 and parts[0].ndim == 0:
        six = np.array([*np.full(3, float(parts[0])), *np.full(3, np.inf)])
    elif len(parts) == 2 and all(x.shape in ((), (3,)) for x in parts):
        six = np.concatenate([np.broadcast_to(x, 3) for x in parts])
    else:
        raise ModelError(
            f"the stiffness of {name!r} is a number (N/m), a pair (N/m, N m/rad) of numbers or triples, or an array of "
            f"six; not {stiffness!r}"
        )
    if not (six > 0.0).all():
        raise ModelError(f"the stiffness of {name!r} must be positive (infinite where it is rigid), not {stiffness!r}")
    return six


def _words(mechanism: Mechanism, status: Any, several: bool, flexible: Mapping[str, Any] | None, left: bool) -> str:
    """Return which member was taken, for people."""
    codes = np.asarray(status, dtype=int).ravel()
    if codes.size and (codes > Status.ILL_CONDITIONED).all():
        return f"no wrenches: {Status(int(codes[0])).message}"
    if not several:
        return "every wrench is unique"
    even = f"least elastic energy of joints that give way alike, moments over {length_of(mechanism):.3g} m"
    if flexible is None:
        return even
    named = f"least elastic energy of {', '.join(map(repr, flexible))}, all others rigid"
    return named if not left else f"{named}; what these leave open: {even}"
