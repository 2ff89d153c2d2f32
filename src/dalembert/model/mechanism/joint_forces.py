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

from dalembert.errors import ModelError
from dalembert.kkt.limits import negligible_level
from dalembert.model.joints import KINDS, as_array
from dalembert.model.mechanism.member_choice import choice_in_words, chosen_members, length_of
from dalembert.model.mechanism.transmissions import AXES, Transmission, loop_motions, transmissions
from dalembert.names import lookup
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint

COMPONENTS = ("force x", "force y", "force z", "moment x", "moment y", "moment z")
"""Names of the six components of a wrench."""

SHOWN = 1e-12
"""Part of the largest component below which a table shows zero."""


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
        Per actuator the number of its joint and the wrench that it adds there, (..., 6). One that is called as a joint
        is "actuator ...".
    given
        What has chosen the member, so that `with_flexible` cannot; else nothing.
    friction
        Torques (forces of sliders) of dry friction in `bearings`, (...), by joint: of the parent on the child.
    held, contact_family
        Members of the family that change contact forces, which nobody chooses here, (..., r); what they add to these
        forces, (..., r, p).
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
    held: Array = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)
    contact_family: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of joints, loops, constraints and springs."""
        return tuple(place.name for place in self.table)

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
    def multipliers_unique(self) -> Bool[Array, "*batch m"]:
        """Per constraint row whether its multiplier is the same in the whole family."""
        alone = ~(self.multiplier_family != 0.0).any(axis=-2)
        return alone & np.isfinite(self.multipliers)

    @property
    def not_unique(self) -> dict[str, tuple[str, ...]]:
        """Per joint that has any, its components that the constraints leave open (in any sample of a batch)."""
        valid = np.isfinite(self.wrenches).all(axis=(-2, -1), keepdims=True)
        open_ones = np.asarray((~self.unique & valid).reshape(-1, *self.unique.shape[-2:]).any(axis=0))
        named = zip(self.names, open_ones, strict=True)
        return {name: tuple(np.array(COMPONENTS)[row].tolist()) for name, row in named if row.any()}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> JointForce:
        """Return the wrench of a joint, loop, constraint, spring or motor."""
        if name in self.motors:
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

    def __contains__(self, name: object) -> bool:
        return name in self.motors or name in tuple(self)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the wrench of a joint, or the default where there is none of that name."""
        return self[name] if name in self else default  # noqa: SIM401 - this is that method

    def in_axes(self, axes: str) -> Self:
        """Return the same wrenches in other axes: "child", "parent" or "world"."""
        if axes not in AXES:
            raise ModelError(f"axes={axes!r}: joint forces are told in the axes of {', '.join(map(repr, AXES))}")
        if axes == self.axes:
            return self
        child, parent = self.rotations
        world = np.broadcast_to(np.eye(3), child.shape)
        rotations = {"child": child, "parent": parent, "world": world}
        turn = np.swapaxes(rotations[axes], -1, -2) @ rotations[self.axes]
        family = turned(turn[..., None, :, :, :], self.family)
        parts = [turned(turn, x) for x in (self.wrenches, self.working)]
        unique = unique_components(family, self.noise, length_of(self.mechanism), self.contact_family)
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
        held = self.held.reshape(count, r)
        pressing = self.contact_family.reshape(count, r, self.contact_family.shape[-1])
        T = np.where(unique_components(T, self.noise.reshape(count), length_of(m), pressing)[:, None], 0.0, T)
        basis = self.multiplier_family.reshape(count, r, len(m.names))
        z, free = chosen_members(m, W, T, (basis != 0.0).any(axis=2), flexible, held)
        W, remaining = W + np.einsum("nr,nrkc->nkc", z, T), np.einsum("nrj,nrkc->njkc", free, T)
        lam = self.multipliers + np.einsum("nr,nrm->nm", z, basis).reshape(self.multipliers.shape)
        wide, of_contacts = free.shape[2], ((free != 0.0) & held[:, :, None]).any(axis=1)
        several = bool(T[~held].any()), bool(remaining[~of_contacts].any())
        remaining, basis = remaining.reshape(*shape, wide, k, 6), np.einsum("nrj,nrm->njm", free, basis)
        pressing = np.einsum("nrj,nrp->njp", free, pressing).reshape(*shape, wide, pressing.shape[2])
        solved = np.isfinite(W).all(axis=(-2, -1)).reshape(shape)[..., None, None]
        return replace(
            child, wrenches=W.reshape(*shape, k, 6), multipliers=lam, family=remaining,
            working=working_parts(m, self.q.reshape(count, m.nq), W).reshape(*shape, k, 6),
            unique=unique_components(remaining, self.noise, length_of(m), pressing) & solved,
            multiplier_family=basis.reshape(*shape, wide, len(m.names)),
            held=of_contacts.reshape(*shape, wide),
            contact_family=pressing,
            choice=choice_in_words(m, self.status, several[0], flexible, several[1]),
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
        lines = [
            line if at.group == "joint" else f"{line}  of {at.parent} on {at.child}"
            for line, at in zip(lines, self.table, strict=True)
        ]
        mark = ["* not unique; " + self.choice] if not self.unique.all() else []
        axes = "the world" if self.axes == "world" else f"the {self.axes}"
        return "\n".join([f"of the parent on the child, in the axes of {axes}, N and N m", head, *lines, *mark])


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
# Parts of wrenches, and which components are unique.


def working_parts(mechanism: Mechanism, q: Array, W: Array) -> Array:
    """Return the parts of wrenches (N, k, 6), child's axes, along the free motions of the joints; of springs all.

    A motor of a screw acts as a moment about its axis: of the wrenches that do its work this is the one without thrust.
    """
    parts, motions = np.zeros_like(W), loop_motions(mechanism)
    for i, at in enumerate(transmissions(mechanism)):
        if at.group == "spring":
            parts[:, i] = W[:, i]
        elif at.group == "joint" and at.kind != "fixed":
            S, G = free_motions(mechanism, mechanism.joints[at.number], q)
            St = np.swapaxes(S, 1, 2)
            parts[:, i] = (G @ np.linalg.solve(St @ G, St @ W[:, i, :, None]))[..., 0]
        elif at.name in motions:  # friction; a loop has no motor
            axis, some = motions[at.name].axis, motions[at.name].components
            parts[:, i, some] = (W[:, i, some] @ axis)[:, None] * axis
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


@np.errstate(invalid="ignore")
def unique_components(family: Array, noise: Any, length: float, pressing: Array | None = None) -> Array:
    """Return per component whether no member (..., r, k, 6) of a family has a part in it, (..., k, 6).

    Rounding is measured against the largest force of a member anywhere, contacts (..., r, p) included, or moment over a
    length.
    """
    if not family.shape[-3]:
        return np.ones((*family.shape[:-3], *family.shape[-2:]), dtype=bool)
    force, moment = np.abs(family[..., :3]), np.abs(family[..., 3:])
    size = np.maximum(force.max(axis=(-2, -1), initial=0.0), moment.max(axis=(-2, -1), initial=0.0) / length)
    if pressing is not None:
        size = np.maximum(size, np.abs(pressing).max(axis=-1, initial=0.0))
    share = np.maximum(np.vectorize(negligible_level, otypes=[float])(noise), noise)
    level = share[..., None] * size
    alone = np.concatenate([force <= level[..., None, None], moment <= length * level[..., None, None]], axis=-1)
    return np.asarray(alone.all(axis=-3))
