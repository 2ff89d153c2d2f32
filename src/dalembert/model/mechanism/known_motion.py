"""From a motion that is known to the wrenches of all joints: forward dynamics, inverse dynamics, rest.

Accelerations and multipliers come from elsewhere; one kernel makes wrenches of them (`tree/block/joint_forces.py`),
another says what the family of the multipliers does to these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.kkt.limits import CLEAR, DOUBT, ROUNDING, negligible_level
from dalembert.model.mechanism.calls import on_manifold
from dalembert.model.mechanism.families import (
    FreeContactForces,
    MultiplierFamily,
    multiplier_families,
    singularity_in_words,
)
from dalembert.model.mechanism.joint_forces import JointForces, free_motions, unique_components
from dalembert.model.mechanism.joint_values import driven_coordinates
from dalembert.model.mechanism.member_choice import length_of
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.model.mechanism.transmissions import loop_motions, name_beside, places_of, transmissions
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from dalembert.model.mechanism.mechanism import Mechanism


def joint_forces(
    mechanism: Mechanism, q: Any, v: Any, force: Any, t: Any, axes: str, flexible: Mapping[str, Any] | None
) -> JointForces:
    """Return the wrenches of forward dynamics."""
    solution = mechanism.forward(q, v, force, t)
    drive = np.zeros(mechanism.nv) if force is None else force
    motion = MotionSamples.of(mechanism, q, v, solution.acceleration, solution.multipliers, t, solution.status, drive)
    return motion.joint_forces(axes, flexible)


@dataclass(frozen=True, eq=False)
class MotionSamples:
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
    contacts
        Contact forces, part of `external`, that are free to change; None where they are not.
    torques
        Torques (forces) of friction in hinges (sliders) that close loops, by name: (N,), of the parent on the child.
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
    contacts: FreeContactForces | None = None
    torques: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls, mechanism: Mechanism, q: Any, v: Any, a: Any, lam: Any, t: Any, status: Any, drive: Any = None
    ) -> MotionSamples:
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
        codes = np.where(np.isfinite(v).all(axis=1), codes, int(Status.NONFINITE))
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
            self._motors(), held=shaped(family.of_contacts),
            contact_family=shaped(np.swapaxes(family.contact_basis, 1, 2)),
        )  # fmt: skip
        return first.with_flexible(flexible).in_axes(axes)

    def family(self) -> MultiplierFamily:
        """Return what may be added to the multipliers."""
        suspect = self.solved if self.passive is not None else self.solved & (self.status != Status.UNIQUE)
        return multiplier_families(self.mechanism, self.q, self.t, self.passive, suspect, self.contacts)

    def _motors(self) -> dict[str, tuple[int, Array]]:
        """Return what every motor adds to the wrench of its joint, in the child's axes."""
        if self.drive is None:
            return {}
        names = {at.name for at in transmissions(self.mechanism)}
        motors, count = {}, Counter(motor.coordinate for motor in self.mechanism.actuators)
        for motor in self.mechanism.actuators:
            if count[motor.coordinate] > 1:
                continue  # forces along coordinates do not say how motors on one of them share it
            place = self.mechanism.index_v(motor.coordinate).start
            i = int(np.searchsorted(self.mechanism.manifold.v_start[:-1], place, side="right")) - 1
            joint = self.mechanism.joints[i]
            S, G = free_motions(self.mechanism, joint, self.q)
            along = np.zeros((len(self.q), S.shape[2], 1))
            along[:, place - int(self.mechanism.manifold.v_start[i]), 0] = self.drive[:, place]
            wrench = (G @ np.linalg.solve(np.swapaxes(S, 1, 2) @ G, along))[..., 0]
            motors[name_beside(names, "actuator", motor.name)] = i, self._shaped(wrench)
        return motors

    def _wrenches(self, lam: Array) -> Array:
        m, external = self.mechanism, dict(self.external)
        hinges = [(loop_motions(m)[name], torque) for name, torque in self.torques.items()]
        for hinge, torque in hinges:
            for body, wrench in hinge.wrenches(m, self.q, torque).items():
                external[body] = external.get(body, 0.0) + wrench
        names = tuple(external)
        options = {"external": names} if names else {}
        kernel = m.compile("joint_forces_of_motion", **options)
        outer = [np.concatenate([external[name] for name in names], axis=-1)] if names else []
        W = kernel(self.q, self.v, self.a, lam, self.t[:, None], *outer)
        W = np.array(W, dtype=float).reshape(len(self.q), len(transmissions(m)), 6)
        for hinge, torque in hinges:  # the hinge transmits its friction, too
            W[:, transmissions(m).index(hinge.at), hinge.components] += torque[:, None] * hinge.axis
        return W

    def of_multipliers(self, family: MultiplierFamily) -> Array:
        """Return T: what every member of the family does to the wrenches, (N, r, k, 6)."""
        count, _m, r = family.basis.shape
        k = len(transmissions(self.mechanism))
        T = np.zeros((count, r, k, 6))
        members = np.flatnonzero(family.dimension)
        if not members.size:
            return T
        outer = {} if self.contacts is None else self.contacts.external
        kernel = self.mechanism.compile("joint_forces_of_multipliers", **({"external": tuple(outer)} if outer else {}))
        lam, forces = (np.swapaxes(x[members], 1, 2) for x in (family.basis, family.contact_basis))
        q, t = (np.repeat(x[members][:, None], r, axis=1) for x in (self.q, self.t[:, None]))
        pushes = [np.einsum("nrp,npc->nrc", forces, unit[members]) for unit in outer.values()]
        T[members] = np.asarray(kernel(q, lam, t, *([np.concatenate(pushes, axis=-1)] if outer else []))).reshape(
            members.size, r, k, 6
        )
        for name, place in {} if self.contacts is None else self.contacts.hinges.items():
            hinge = loop_motions(self.mechanism)[name]  # the hinge transmits its friction, too
            at = transmissions(self.mechanism).index(hinge.at)
            T[members, :, at, hinge.components] += forces[:, :, place, None] * hinge.axis
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
        `da.Status` per sample, (...): `REDUNDANT` where tau or the multipliers are one choice of a family. `reason`
        says why a sample has no answer.
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

    def __str__(self) -> str:
        if self.reason:
            return f"no answer: {self.reason}"
        if np.ndim(self.status):
            return f"forces that cause {np.size(self.status)} motions"
        pairs = zip(self.mechanism.coordinates, np.asarray(self.tau), strict=True)
        several = Status(int(self.status)) == Status.REDUNDANT
        choice = "\none choice of many: the least sum of squares" if several else ""
        return "\n".join(f"{name}: {x:.6g}" for name, x in pairs if x) + choice

    def looked_at(self) -> InverseDynamics:
        """Return the same with answers of samples that the kernel declined, found by singular values."""
        declined = np.flatnonzero(np.asarray(self.status).reshape(-1) == Status.DECLINED)
        examined = self.mechanism.names and self.mechanism.nv <= LARGEST_SURVEYED
        if not (declined.size and examined):
            return self
        motion = self._motion
        tau, lam = (np.array(x).reshape(len(motion.q), -1) for x in (self.tau, self.multipliers))
        status = np.array(self.status).reshape(-1)
        for k in declined:
            answer = self._by_singular_values(int(k))
            if answer is not None:
                tau[k], lam[k], status[k] = answer
        shape = motion.shape
        solution = tau.reshape(*shape, -1), lam.reshape(*shape, -1), status.reshape(shape)
        return InverseDynamics(*solution, self.mechanism, self.state, self.actuated)

    def _by_singular_values(self, k: int) -> tuple[Array, Array, int] | None:
        """Return tau, multipliers and status of one sample, or None where fewer digits are certain than it takes.

        With f = M a + bias, passive coordinates p and driven ones d: A_p^T lam = -f_p has the least solution lam_0 and
        the solutions lam_0 + N z; z makes f_d + A_d^T lam, the motors' forces, least, and is the least that does. The
        rank of A_d^T N is that of A less that of A_p, as what A^T takes to zero A_p^T does, too: rows that are tilted
        within the model's digits count for no further one.
        """
        m, at = self.mechanism, self._motion
        q, v, a, t = at.q[k], at.v[k], at.a[k], float(at.t[k])
        A, p = np.asarray(m.jacobian(q, t)).reshape(len(m.names), m.nv), self._passive
        f = np.asarray(m.mass_matrix(q)) @ a + np.asarray(m.bias(q, v))
        if not all(np.isfinite(x).all() for x in (A, f)):
            return None
        samples = at.q[k][None], at.t[k][None]
        rows, mask = len(m.names), np.ones(1, dtype=bool)
        rank = rows - int(multiplier_families(m, *samples, p, mask, None).dimension[0]) if p.size else 0
        whole = rows - int(multiplier_families(m, *samples, np.arange(m.nv), mask, None).dimension[0])
        U, s, Vt = np.linalg.svd(A[:, p].T)
        if rank and not s[rank - 1] > DOUBT * s[0]:  # eps / DOUBT: fewer than six digits
            return None
        lam = Vt[:rank].T @ ((U[:, :rank].T @ -f[p]) / s[:rank])
        missed, size = np.abs(A[:, p].T @ lam + f[p]), np.abs(A[:, p].T) @ np.abs(lam) + np.abs(f[p])
        worst, largest = float(missed.max(initial=0.0)), float(size.max(initial=0.0))
        # rounding of 200 coordinates is up to 200^1.5 eps of the terms, 1e-12; beyond half of the digits no rounding
        # is left that could explain it; between these nothing is said
        if worst > np.sqrt(ROUNDING) * largest:
            if singularity_in_words(m, q, t):  # beside it forces may do, which are large
                return None
            return np.full(m.nv, np.nan), np.full(len(m.names), np.nan), int(Status.INCONSISTENT)
        if worst > ROUNDING * largest * CLEAR:
            return None
        N, d = Vt[rank:].T, np.setdiff1d(np.arange(m.nv), p)
        U, s, Vt = np.linalg.svd(A[:, d].T @ N, full_matrices=False)
        more = min(whole - rank, len(s))
        if more > 0 and not s[more - 1] > DOUBT * s[0]:
            return None
        y = U[:, :more].T @ (f + A.T @ lam)[d]
        lam = lam - N @ (Vt[:more].T @ (y / s[:more]))
        tau = np.zeros(m.nv)
        tau[d] = (f + A.T @ lam)[d]
        certified = Status.REDUNDANT if rank < rows else Status.UNIQUE
        return tau, lam, int(Status.ILL_CONDITIONED if m.rank_doubt else certified)

    @property
    def reason(self) -> str:
        """Why samples have no answer, in words: the first of them by its number; empty where all have one."""
        motion = self._motion
        bad = np.flatnonzero(motion.status > Status.ILL_CONDITIONED)
        if not bad.size:
            return ""
        k, code = int(bad[0]), Status(int(motion.status[bad[0]]))
        if code == Status.INCONSISTENT:
            why = f"no forces of {'these motors' if self.actuated is not None else 'motors'} cause this motion"
        elif code == Status.DECLINED:
            singular = singularity_in_words(self.mechanism, motion.q[k], float(motion.t[k]))
            why = singular or "rows and motors are nearly dependent: fewer than three digits are certain"
        else:
            why = code.message
        many = f"{bad.size} of {motion.status.size} samples, the first is number {k}: " if motion.shape else ""
        return many + why

    @cached_property
    def _passive(self) -> Array:
        """Coordinates that no motor drives."""
        driven = driven_coordinates(self.mechanism, self.actuated)
        return np.setdiff1d(np.arange(self.mechanism.nv), driven)

    @cached_property
    def _motion(self) -> MotionSamples:
        q, v, a, t = self.state
        motion = MotionSamples.of(self.mechanism, q, v, a, self.multipliers, t, self.status, self.tau)
        # rows that depend on each other are looked for in every sample that has an answer
        return replace(motion, status=np.where(motion.solved, int(Status.REDUNDANT), motion.status))

    @cached_property
    def _family(self) -> MultiplierFamily:
        """What motors and rows may do against each other without changing the motion."""
        return replace(self._motion, passive=self._passive).family()

    @property
    def unique(self) -> Bool[Array, "*batch m"]:
        """Per row and sample, whether its multiplier is the same however the motors share the work."""
        motion = self._motion
        return (self._family.unique & motion.solved[:, None]).reshape(*motion.shape, -1)

    @property
    def tau_unique(self) -> Bool[Array, "*batch nv"]:
        """Per coordinate and sample, whether its motor has no choice."""
        motion, family = self._motion, self._family
        A = np.asarray(self.mechanism.jacobian(motion.q, motion.t)) if self.mechanism.names else np.zeros((0, 0, 0))
        if not self.mechanism.names:
            return np.broadcast_to(motion.solved[:, None], motion.v.shape).reshape(*motion.shape, -1)
        change = np.abs(np.einsum("nmk,nmr->nkr", A, family.basis)).max(axis=2, initial=0.0)
        sizes = np.einsum("nmk,nmr->nkr", np.abs(A), np.abs(family.basis)).max(axis=2, initial=0.0)
        driven = np.ones(self.mechanism.nv, dtype=bool)
        driven[self._passive] = False
        level = np.array([negligible_level(float(x)) for x in family.noise])[:, None]
        alone = (change <= level * np.maximum(sizes, 0.0)) | ~driven
        return (alone & motion.solved[:, None]).reshape(*motion.shape, -1)

    @cached_property
    def joint_forces(self) -> JointForces:
        """Loads of all bearings under these motors, in the axes of the joints' frames on the child.

        `unique` counts all that motors could share otherwise. Of what they cannot reach (null(A^T)) the wrenches have
        the member of least elastic energy, all joints giving way alike.
        """
        motion = self._motion
        forces = motion.joint_forces()
        T = motion.of_multipliers(self._family)
        family = T.reshape(*motion.shape, *T.shape[1:])
        unique = unique_components(family, self._family.noise.reshape(motion.shape), length_of(self.mechanism))
        basis = np.swapaxes(self._family.basis, 1, 2)
        words = "the motors' forces of least squares, of all that cause this motion" if T.any() else forces.choice
        return replace(
            forces, family=family, unique=unique & motion.solved.reshape(motion.shape)[..., None, None], choice=words,
            multiplier_family=basis.reshape(*motion.shape, *basis.shape[1:]), status=self.status,
            given="motors' forces", held=np.zeros((*motion.shape, basis.shape[1]), dtype=bool),
            contact_family=np.zeros((*motion.shape, basis.shape[1], 0)),
        )  # fmt: skip
