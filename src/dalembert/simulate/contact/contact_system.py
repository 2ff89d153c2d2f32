"""The terms of a system with contacts as one kernel: masses, forces, constraint rows, gaps, contact rows and drifts.

| system | terms |
|---|---|
| `Mechanism` | traced from its joints and pairs of shapes; dry friction, of joints or along constant rows, has no gap |
| `Lagrangian` | its expressions |
| `Matrices`, others | a Python function, called back |

Every contact has three rows, normal, tangent, tangent; those that it lacks are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.checks import is_number
from dalembert.contact.scene import CollisionScene
from dalembert.errors import ModelError
from dalembert.friction import (
    BearingFriction,
    Coulomb,
    Dry,
    FrictionContact,
    Hyperbolic,
    JointFriction,
    Law,
    StaticKinetic,
    Stribeck,
    Tabulated,
    Unilateral,
)
from dalembert.friction.laws.laws import ExpressionLaw
from dalembert.kernel import Kernel
from dalembert.kernel.program.trace import trace, untrace
from dalembert.memory import memory_of
from dalembert.model.mechanism.transmissions import LoopMotion, loop_motions
from dalembert.simulate.contact.bearing_loads import BearingLaw
from dalembert.simulate.contact.friction_loops import DRY, HYPERBOLIC, OTHER, STRIBECK, TABULATED
from dalembert.simulate.contact.geometry import asked
from dalembert.simulate.contact.shapes import ContactPair, Heightfield, Plane
from dalembert.simulate.equations.codes import _kernel
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.ranks import GenericRank

OUTPUTS = (
    "M", "bias", "A", "drift", "phi", "psi", "gaps", "W", "u", "shift", "load", "axes", "applied", "balls", "limb",
    "limb_rate",
)  # fmt: skip
"""What terms consist of, in the order of their memory; `applied` is the power of forces without a potential that `bias`
holds, `limb` the velocities that limbs without mass take by their laws."""


@dataclass(eq=False)
class ContactData:
    """One contact of the engine: what a row of its table holds."""

    name: str
    gapped: bool
    law: Law
    width: int
    row: int = -1
    pushes: bool = False
    restitution: float = 0.0
    poisson: bool = False
    pair: ContactPair | None = None
    along: Any = None  # of friction along a velocity, or of a joint


@dataclass(eq=False)
class ContactSystem:
    """A system with its contacts as the engine reads it.

    `kernel` computes the terms, or `function(q, v, t)` returns them by name where they are Python's.
    """

    system: Any
    nq: int
    n: int
    names: tuple[str, ...]
    holonomic: tuple[bool, ...]
    contacts: list[ContactData]
    kernel: Kernel | None = None
    function: Callable[[Array, Array, float], dict[str, Array]] | None = None
    vectors: bool = True  # coordinates are their own velocities' integrals
    axes: bool = False
    inputs: dict[str, Array] = field(default_factory=dict)  # further inputs of the kernel, constant
    trace: Callable[[Any], ca.Function] | None = None  # the terms of the mechanism, or of one with symbols for numbers
    described: str = ""  # what the contacts of a mechanism are, as the key of a code
    rubbing: list[Array] = field(
        default_factory=list
    )  # directions of a mechanism's contacts without a gap; zero if they move

    @property
    def k(self) -> int:
        """Number of contacts."""
        return len(self.contacts)

    @property
    def plain(self) -> bool:
        """Whether all contacts are pairs of a mechanism's shapes: three components each, in world axes."""
        return all(contact.pair is not None for contact in self.contacts)

    @property
    def places(self) -> Array:
        """Rows (of 3 k) that samples show: all of contacts with a gap, tangents of those without."""
        columns = [np.arange(3) if contact.gapped else np.arange(1, 1 + contact.width) for contact in self.contacts]
        return np.concatenate([np.zeros(0, int), *(3 * i + rows for i, rows in enumerate(columns))])

    @property
    def widths(self) -> tuple[int, ...]:
        """Per contact how many components samples show."""
        return tuple(3 if contact.gapped else contact.width for contact in self.contacts)

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the terms, by the names of their memory."""
        n, m, k = self.n, len(self.names), self.k
        return {
            "M": (n, n), "bias": (n,), "A": (m, n), "drift": (m,), "phi": (sum(self.holonomic),), "psi": (m,),
            "gaps": (k,), "W": (3 * k, n), "velocity": (3 * k,), "shift": (3 * k,), "load": (k,),
            "axes": (k, 3, 3) if self.axes else (0, 3, 3), "applied": (1,), "balls": (len(self.fields), 12 + 6 * n),
        }  # fmt: skip

    @property
    def fields(self) -> list[int]:
        """Contacts with heightfields."""
        return [i for i, c in enumerate(self.contacts) if c.pair is not None and isinstance(c.pair.ground, Heightfield)]

    def field_arrays(self) -> dict[str, Array]:
        """Return the contacts with heightfields as arrays."""
        table, numbers, heights = [], [], [np.zeros(0)]
        for i in self.fields:
            pair: Any = self.contacts[i].pair
            ground, radius = pair.ground, pair.ball.radius
            narrow = min(np.diff(ground.x).min(), np.diff(ground.y).min())
            table.append(ground.stored(heights))
            numbers.append((radius, ground.reach(radius), ground.steepness(radius), ground.most_twist(), narrow))
        f = len(table)
        return {
            "field_pair": np.array(self.fields, np.int64), "field_table": np.array(table, np.int64).reshape(f, 5),
            "field_numbers": np.array(numbers, float).reshape(f, 5), "heights": np.concatenate(heights),
            "feet": np.zeros((f, 3)), "cell_bounds": np.zeros((f, 4)),
        }  # fmt: skip

    def table(self, rank: GenericRank | None = None) -> dict[str, Array]:
        """Return the contacts as arrays; `rank` is that of the constraint rows, with their sizes, where it is known."""
        k, tables, several = self.k, [np.zeros(0)], self.contacts
        law, numbers = np.full(k, OTHER, np.int64), np.zeros((k, 6))
        for i, contact in enumerate(several):
            law[i], numbers[i] = _law(contact.law, tables)
        place = np.cumsum(self.holonomic) - 1
        return {
            "gapped": _array([c.gapped for c in several], bool), "load_row": _array([c.row for c in several], np.int64),
            "pushes": _array([c.pushes for c in several], bool),
            "tangents": _array([c.width for c in several], np.int64),
            "restitution": _array([c.restitution for c in several], float),
            "poisson": _array([c.poisson for c in several], bool), "law": law, "law_numbers": numbers,
            "law_tables": np.concatenate(tables), "known_rank": _array([-1 if rank is None else rank.rank], np.int64),
            "row_sizes": np.zeros(len(self.holonomic)) if rank is None else 1.0 / rank.scales,
            "holonomic": _array([int(p) if h else -1 for p, h in zip(place, self.holonomic, strict=True)], np.int64),
        }  # fmt: skip


def _array(values: list[Any], dtype: Any) -> Array:
    return np.array(values, dtype=dtype).reshape(len(values))


def _law(law: Law, tables: list[Array]) -> tuple[int, Array]:
    """Return kind and numbers of a law: its static limit first."""
    numbers = np.zeros(6)
    if type(law) is Dry:
        numbers[:2] = law.limit, law.limit
        return DRY, numbers
    if type(law) is StaticKinetic:
        numbers[:2] = law.static_limit, law.kinetic_limit
        return DRY, numbers
    if type(law) is Stribeck:
        numbers[:5] = law.static_limit, law.coulomb, law.velocity, law.exponent, law.viscous
        return STRIBECK, numbers
    if type(law) is Hyperbolic:
        numbers[:2] = law.static_limit, law.decay
        return HYPERBOLIC, numbers
    if type(law) is Tabulated:
        first = sum(table.size for table in tables)
        numbers[:3] = law.static(), first, law.speeds.size
        tables += [np.asarray(law.speeds, float), np.asarray(law.forces, float)]
        return TABULATED, numbers
    return OTHER, numbers


# ----------------------------------------------------------------------------------------------------------------------
# Mechanisms: pairs of shapes on planes and with each other, limits of joints, dry friction of joints.


class RubbingRows(NamedTuple):
    """Directions (w, n) of a contact without a gap, velocities of its surface (w,), and its load.

    Directions are constant, unless the contact is a `hinge`, or slider, that closes a loop: its motion is a row that
    moves.
    """

    rows: Array
    surface: Array
    load: float = 1.0
    hinge: LoopMotion | None = None

    def at(self, mechanism: Any, q: Array) -> Array:
        """Return the directions at configurations (N, nq), (N, w, n)."""
        if self.hinge is not None:
            return self.hinge.rows(mechanism, q)[:, None]
        return np.broadcast_to(self.rows, (len(q), *self.rows.shape))

    def described(self) -> tuple[Any, ...]:
        """Return all that a trace takes from it."""
        hinge = self.hinge
        where = () if hinge is None else (hinge.at.child, hinge.at.parent, hinge.at.place.position, hinge.turns)
        place = None if hinge is None else (*where, hinge.on_child.tolist())
        return self.rows.tolist(), self.surface.tolist(), self.load, place

    def traced(self, mechanism: Any, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return its rows (3, n) and drifts (3,) as expressions; the first row is that of a normal, and empty."""
        n = mechanism.nv
        row, drift = ca.SX.zeros(3, n), ca.SX.zeros(3)
        for j in range(len(self.rows)):
            row[1 + j, :] = ca.SX(self.rows[j]).T
        if self.hinge is not None:
            row[1, :], drift[1] = _loop_row(mechanism, self.hinge, q, v)
        return row, drift


def _loop_row(mechanism: Any, motion: LoopMotion, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the row (1, n) of a hinge or slider that closes a loop, and its drift.

    The axis turns with the child. Its own rate adds (w x axis) . (relative velocity), which is zero where the loop is
    closed: the relative velocity is along the axis. For the same reason points of a slider's parent that the child
    passes by add nothing along the axis.
    """
    n, place = mechanism.nv, ca.SX(np.array(motion.at.place.position, dtype=float))
    frames = {body: joint_frame(mechanism, body, q, v) for body, _ in motion.ends if body != mechanism.ground}
    child = frames.get(motion.at.child)
    axis = ca.SX(motion.on_child) if child is None else child[0] @ ca.SX(motion.on_child)
    point = place if child is None else child[1] + child[0] @ place
    row, drift = ca.SX.zeros(3, n), ca.SX.zeros(3)
    for body, sign in motion.ends:
        if body == mechanism.ground:
            continue
        _, p, J, Jw, rest, w_rest, w = frames[body]
        d = point - p
        if not motion.turns:
            Jw, w_rest = J - ca.skew(d) @ Jw, rest + ca.cross(w_rest, d) + ca.cross(w, ca.cross(w, d))
        row, drift = row + sign * Jw, drift + sign * w_rest
    return axis.T @ row, ca.dot(axis, drift)


def split_contacts(contacts: Any) -> tuple[list[Any], list[FrictionContact]]:
    """Return what may touch, and contacts with dry friction, of a list that `simulate` was given for a mechanism."""
    several = [] if contacts is None else contacts if isinstance(contacts, Sequence) else [contacts]
    rubbing = [contact for contact in several if isinstance(contact, FrictionContact)]
    return [x for x in several if not isinstance(x, FrictionContact | CollisionScene)], rubbing


def scene_of_contacts(contacts: Any) -> CollisionScene | None:
    """Return the shapes that may touch, of a list that `simulate` was given for a mechanism; None without them."""
    several = [] if contacts is None else contacts if isinstance(contacts, Sequence) else [contacts]
    scenes = [x for x in several if isinstance(x, CollisionScene)]
    if len(scenes) > 1:
        raise ModelError(
            f"contacts= holds {len(scenes)} scenes of shapes; one has all of them: m.contacts(pairs=[...])"
        )
    return scenes[0] if scenes else None


def rubbing_rows(mechanism: Any, contact: FrictionContact) -> RubbingRows:
    """Return the rows of a contact with dry friction of a mechanism: numbers, along its velocities."""
    n, message, hinge = mechanism.nv, f"contact {contact.name!r}: of a mechanism", None
    if isinstance(contact, Unilateral):
        raise ModelError(f"{message} Contact(shape, other) may touch, not Unilateral")
    if isinstance(contact, JointFriction | BearingFriction):
        names, hinges = tuple(mechanism.coordinates), loop_motions(mechanism)
        exists = contact.along in names if isinstance(contact.along, str) else 0 <= contact.along < n
        if exists:
            rows = np.eye(n)[[names.index(contact.along) if isinstance(contact.along, str) else contact.along]]
        elif contact.along in hinges:
            hinge, rows = hinges[contact.along], np.ones((1, n))
        else:
            several = f", or a hinge or slider that closes a loop, {tuple(hinges)}" if hinges else ""
            raise ModelError(f"{message} `along` is one of its velocities, {names}{several}, not {contact.along!r}")
    else:
        try:
            rows = np.asarray(contact.along, dtype=float).reshape(contact.directions, -1)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{message} `along` is a row of {n} numbers, or two: {error}") from error
    if rows.shape[1] != n or not np.isfinite(rows).all() or not rows.any(axis=1).all():
        raise ModelError(f"{message} `along` is a row of {n} finite numbers, not all zero, or two of them")
    if isinstance(contact, Coulomb) and contact.normal not in mechanism.names:
        raise ModelError(
            f"{message} `normal` is one of its constraint rows, {tuple(mechanism.names)}, not {contact.normal!r}"
        )
    surface, load = [contact.part("surface", j) for j in range(len(rows))], getattr(contact, "load", 1.0)
    if not all(is_number(x) and np.isfinite(x) for x in (*surface, load)) or load < 0.0 or contact.drift is not None:
        raise ModelError(
            f"{message} surface= and load= are finite numbers, load= is not negative, and there is no drift="
        )
    return RubbingRows(rows if hinge is None else np.zeros((1, n)), np.array(surface, float), float(load), hinge)


def mechanism_contacts(
    mechanism: Any, pairs: tuple[ContactPair, ...], friction: bool, more: Sequence[FrictionContact] = (),
    massless: Any = "hold", compiled: bool = True,
) -> ContactSystem:  # fmt: skip
    """Return a mechanism with pairs that may touch and, where wanted, the dry friction of its joints and of others.

    `massless` is what limbs without mass do while nothing holds them: `Mechanism.with_massless`. Without `compiled` the
    terms are not made a kernel.
    """
    contacts = [
        ContactData(
            pair.name, True, Dry(pair.friction), 0 if pair.ball is None else 2, restitution=pair.restitution,
            poisson=pair.impact == "poisson", pair=pair,
        )
        for pair in pairs
    ]  # fmt: skip
    rubbing: list[RubbingRows] = []
    if friction:
        limits = np.asarray(mechanism.friction)
        places = [int(j) for j in np.flatnonzero(limits > 0.0)]
        contacts += [
            ContactData(f"friction of {mechanism.coordinates[j]}", False, Dry(float(limits[j])), 1) for j in places
        ]
        rubbing = [RubbingRows(np.eye(mechanism.nv)[[j]], np.zeros(1)) for j in places]
    rubbing += [rubbing_rows(mechanism, contact) for contact in more]
    contacts += [_data(contact, tuple(mechanism.names)) for contact in more]
    _refuse_twice(contacts, tuple(mechanism.names))
    described = [rubs.described() for rubs in rubbing]
    key = (
        "simulate", mechanism.content(), "contact terms", repr([_described(pair) for pair in pairs]), repr(described)
    )  # fmt: skip
    led = None if isinstance(massless, str) and massless == "hold" else mechanism.with_massless(massless)
    cacheable = mechanism.cacheable and (led is None or led.cacheable)
    key = (*key, *(() if led is None else ("massless", led.content())))
    kernel = _kernel(key, lambda: trace_mechanism(mechanism, pairs, rubbing, led), cacheable) if compiled else None
    return ContactSystem(
        mechanism, mechanism.nq, mechanism.nv, tuple(mechanism.names), tuple(mechanism.holonomic), contacts, kernel,
        vectors=False, axes=True, trace=lambda moving: trace_mechanism(moving, pairs, rubbing, led),
        described=repr(key[3:]), rubbing=[rubs.rows for rubs in rubbing],
    )  # fmt: skip


def _described(pair: ContactPair) -> tuple[Any, ...]:
    """Return all that a trace takes from a pair."""
    ground = (pair.ground.normal, pair.ground.offset) if isinstance(pair.ground, Plane) else None
    return pair.ball, ground, pair.other, pair.coordinate, pair.sign, pair.bound, isinstance(pair.ground, Heightfield)


def trace_mechanism(
    mechanism: Any, pairs: tuple[ContactPair, ...], rubbing: list[RubbingRows], led: Any = None
) -> ca.Function:
    """Return q, v, t -> the terms of `OUTPUTS`, matrices by rows; `led` has rows for its limbs without mass."""
    n, m = mechanism.nv, len(mechanism.names)
    q, v, t = ca.SX.sym("q", mechanism.nq), ca.SX.sym("v", n), ca.SX.sym("t")
    outputs: dict[str, ca.SX] = {
        "M": ca.vec(_of(mechanism, "mass_matrix")(q)),
        "bias": _of(mechanism, "bias")(q, v),
    }
    if m:
        A = ca.reshape(_of(mechanism, "constraint_jacobian")(q, t), m, n)
        outputs |= {"A": ca.vec(A.T), "drift": _of(mechanism, "constraint_drift")(q, v, t)}
        if any(mechanism.holonomic):
            outputs["phi"] = _of(mechanism, "constraint")(q, t)
        outputs["psi"] = _of(mechanism, "constraint_velocity")(q, v, t)
    frames: dict[str, tuple[ca.SX, ...]] = {}
    for pair in pairs:
        for ball in (pair.ball, pair.other):
            if ball is not None and ball.frame not in frames:
                frames[ball.frame] = joint_frame(mechanism, ball.frame, q, v)
    gaps, rows, drifts, axes, balls = [], [], [], [], []
    for pair in pairs:
        if isinstance(pair.ground, Heightfield):  # what loops make of it: `field_loops.py`
            balls.append(_ball(pair, frames, v))
            gap, row, drift, axis = ca.SX(0), ca.SX.zeros(3, n), ca.SX.zeros(3), ca.SX.zeros(3, 3)
        else:
            gap, row, drift, axis = _pair(pair, frames, q, v, n)
        gaps, rows, drifts, axes = [*gaps, gap], [*rows, row], [*drifts, drift], [*axes, axis]
    surfaces, loads = [ca.SX.zeros(3 * len(pairs))], [1.0] * len(pairs)
    for rubs in rubbing:
        (row, drift), surface = rubs.traced(mechanism, q, v), ca.SX.zeros(3)
        for j in range(len(rubs.rows)):
            surface[1 + j] = rubs.surface[j]
        gaps, rows, drifts, axes = [*gaps, ca.SX(0)], [*rows, row], [*drifts, drift], [*axes, ca.SX.eye(3)]
        surfaces, loads = [*surfaces, surface], [*loads, rubs.load]
    k = len(gaps)
    if k:
        W = ca.vertcat(*rows)
        outputs |= {
            "gaps": ca.vertcat(*gaps), "W": ca.vec(W.T), "u": W @ v - ca.vertcat(*surfaces),
            "shift": ca.vertcat(*drifts), "load": ca.SX(ca.DM(loads)),
            "axes": ca.vertcat(*[ca.vec(axis.T) for axis in axes]),
        }  # fmt: skip
    if led is not None:
        outputs |= _limbs(led, q, v, t)
    if balls:
        outputs["balls"] = ca.vertcat(*balls)
    symbols = {"q": q, "v": v, "t": t}
    if mechanism.parameter_column is not None:
        symbols["parameters"] = mechanism.parameter_column
    return ca.Function(
        "contact_terms", list(symbols.values()), [ca.densify(e) for e in outputs.values()], list(symbols), list(outputs)
    )


def _limbs(led: Any, q: ca.SX, v: ca.SX, t: ca.SX) -> dict[str, ca.SX]:
    """Return the velocities of limbs without mass by their laws, and their rates: what their rows lack at rest."""
    rows = [led.names.index(name) for name in led.massless_rows]
    A = ca.reshape(_of(led, "constraint_jacobian")(q, t), len(led.names), led.nv)[rows, :]
    rate, drift = _of(led, "constraint_velocity")(q, 0 * v, t)[rows], _of(led, "constraint_drift")(q, v, t)[rows]
    return {"limb": -A.T @ rate, "limb_rate": -A.T @ drift}


def _of(mechanism: Any, what: str, **options: Any) -> Callable[..., Any]:
    """Return a request's function of the state, the symbols of the mechanism's parameters put in where it has any."""
    function = asked(mechanism, what, **options)
    if "parameters" not in function.name_in():
        return function
    return lambda *state: function(*state, mechanism.parameter_column)


def joint_frame(mechanism: Any, name: str, q: ca.SX, v: ca.SX) -> tuple[ca.SX, ...]:
    """Return R, p, J, Jw (3, n), drifts and angular velocity of a frame, in world axes."""
    n = mechanism.nv
    R, p = _of(mechanism, "kinematics", frame=name)(q)
    J = ca.reshape(_of(mechanism, "jacobian", frame=name, reference="local_world_aligned")(q), 6, n)
    drift = _of(mechanism, "jacobian_drift", frame=name, reference="local_world_aligned")(q, v)
    return ca.reshape(R, 3, 3), ca.vec(p), J[:3, :], J[3:, :], drift[:3], drift[3:], J[3:, :] @ v


def _centre(frame: tuple[ca.SX, ...], at: Any, v: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return centre, its Jacobian, velocity, and acceleration at a = 0 of a ball."""
    R, p, J, Jw, drift, w_drift, w = frame
    d = R @ ca.SX(np.array(at, float))
    Jc = J - ca.skew(d) @ Jw
    return p + d, Jc, Jc @ v, drift + ca.cross(w_drift, d) + ca.cross(w, ca.cross(w, d))


def _ball(pair: ContactPair, frames: dict[str, tuple[ca.SX, ...]], v: ca.SX) -> ca.SX:
    """Return centre, velocity, drift, angular drift and Jacobians of a ball over a heightfield, as one column."""
    ball: Any = pair.ball
    frame = frames[ball.frame]
    c, J, speed, drift = _centre(frame, ball.at, v)
    return ca.vertcat(c, speed, drift, ca.vec(frame[5]), ca.vec(J.T), ca.vec(frame[3].T))


def _pair(pair: ContactPair, frames: dict[str, tuple[ca.SX, ...]], q: ca.SX, v: ca.SX, n: int) -> tuple[ca.SX, ...]:
    """Return gap, rows (3, n), drift (3,) and axes (3, 3) of a pair."""
    if pair.ball is None:
        row = ca.SX.zeros(3, n)
        row[0, pair.coordinate[1]] = pair.sign
        return pair.sign * (q[pair.coordinate[0]] - pair.bound), row, ca.SX.zeros(3), ca.SX.eye(3)
    frame = frames[pair.ball.frame]
    c, J, speed, drift = _centre(frame, pair.ball.at, v)
    if isinstance(pair.ground, Plane):
        normal = ca.SX(np.array(pair.ground.normal))
        axes = _tangents(normal)
        arm = -pair.ball.radius * normal
        rows = axes @ (J - ca.skew(arm) @ frame[3])
        shift = axes @ (drift + ca.cross(frame[5], arm))
        return ca.dot(normal, c) - pair.ground.offset - pair.ball.radius, rows, shift, axes
    if pair.other is None:
        raise ModelError(f"contact {pair.name!r}: the engine takes planes, spheres and limits of joints")
    two = frames[pair.other.frame]
    c2, J2, speed2, drift2 = _centre(two, pair.other.at, v)
    line = c - c2
    distance = ca.norm_2(line)
    normal = line / distance
    axes = _tangents(normal)
    relative = speed - speed2
    turning = (relative - ca.dot(normal, relative) * normal) / distance
    arm1, arm2 = -pair.ball.radius * normal, pair.other.radius * normal
    rows = axes @ (J - ca.skew(arm1) @ frame[3] - J2 + ca.skew(arm2) @ two[3])
    shift = drift - drift2 + ca.cross(frame[5], arm1) - ca.cross(two[5], arm2)
    shift = shift - pair.ball.radius * ca.cross(frame[6], turning) - pair.other.radius * ca.cross(two[6], turning)
    rates = axes @ shift
    rates[0] = ca.dot(normal, drift - drift2) + distance * ca.dot(turning, turning)
    return distance - pair.ball.radius - pair.other.radius, rows, rates, axes


def _tangents(n: ca.SX) -> ca.SX:
    """Return normal and two tangents by rows, as `geometry.tangents`."""
    sign = ca.if_else(n[2] >= 0.0, 1.0, -1.0)
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    first = ca.horzcat(n[0], n[1], n[2])
    second = ca.horzcat(1.0 + sign * n[0] ** 2 * a, sign * b, -sign * n[0])
    third = ca.horzcat(b, sign + n[1] ** 2 * a, -n[1])
    return ca.vertcat(first, second, third)


# ----------------------------------------------------------------------------------------------------------------------
# Lagrangians and matrices: contacts of `dalembert.friction`.


def _data(contact: FrictionContact, names: tuple[str, ...]) -> ContactData:
    """Return one contact with friction as the engine reads it."""
    if isinstance(contact, Unilateral):
        return ContactData(
            contact.name,
            True,
            contact.law,
            contact.directions,
            restitution=contact.restitution,
            poisson=contact.impact == "poisson",
        )
    if isinstance(contact, Coulomb):
        return ContactData(
            contact.name, False, contact.law, contact.directions, names.index(contact.normal), contact.unilateral
        )
    if isinstance(contact, BearingFriction):
        law = BearingLaw(contact.law, contact.along, contact.radius)
        return ContactData(contact.name, False, law, 1, along=contact.along)
    along = contact.along if isinstance(contact, JointFriction) else None
    return ContactData(contact.name, False, contact.law, contact.directions, along=along)


def _several(system: Any) -> list[ContactData]:
    """Return the contacts of a system; two of them share no normal."""
    data = [_data(contact, system.names) for contact in (*system.contacts, *getattr(system, "unilateral", ()))]
    _refuse_twice(data, tuple(system.names))
    return data


def _refuse_twice(contacts: list[ContactData], names: tuple[str, ...]) -> None:
    """Refuse two contacts of one name, and two whose normal is the same row."""
    called, taken = set[str](), set[int]()
    for contact in contacts:
        if contact.name in called:
            raise ModelError(f"two contacts are called {contact.name!r}: give one of them another name")
        if contact.row >= 0 and contact.row in taken:
            raise ModelError(
                f"contact {contact.name!r}: the row {names[contact.row]!r} is the normal of another contact already"
            )
        called.add(contact.name)
        taken.add(contact.row)


def lagrangian_contacts(system: Any) -> ContactSystem:
    """Return a Lagrangian with its contacts, compiled."""
    contacts = _several(system)
    kernel = memory_of(system, "kernels").get(
        ("time", "contact terms"), lambda: Kernel(contact_terms_of(system), width=1)
    )
    names = [port.name for port in kernel.inputs]
    inputs = {"parameters": np.array(system.parameters.pack(None), float)} if "parameters" in names else {}
    n = len(system.coordinates)
    return ContactSystem(system, n, n, tuple(system.names), tuple(system.holonomic), contacts, kernel, inputs=inputs)


def contact_terms_of(system: Any) -> ca.Function:
    """Return the terms of a Lagrangian with contacts as their list of operations reads, which is what a file holds."""
    return memory_of(system, "time").get("contact terms", lambda: untrace(trace(trace_lagrangian(system))))


def trace_lagrangian(system: Any) -> ca.Function:
    """Return q, v, t and parameters of a Lagrangian -> the terms of `OUTPUTS`, matrices by rows; controls are zero."""
    s, e, contacts = system.symbols, system.expressions, system._contact_expressions
    outputs: dict[str, ca.SX] = {"M": ca.vec(e.mass), "bias": e.bias, "applied": ca.dot(e.applied, s.v)}
    if len(system.names):
        outputs |= {"A": ca.vec(e.jacobian.T), "drift": e.drift, "psi": e.rate}
        if any(system.holonomic):
            outputs["phi"] = e.constraint
    n = s.v.numel()
    rows, velocity, shift, column = [], [], [], 0
    for contact in system.contacts:
        row, u, d = ca.SX.zeros(3, n), ca.SX.zeros(3), ca.SX.zeros(3)
        for j in range(contact.directions):
            row[1 + j, :] = contacts.rows[column, :]
            u[1 + j], d[1 + j] = contacts.velocity[column], contacts.drift[column]
            column += 1
        rows, velocity, shift = [*rows, row], [*velocity, u], [*shift, d]
    gaps, extra = system._gap_expressions, len(system.unilateral)
    if rows or extra:
        k = len(rows)
        outputs |= {
            "gaps": ca.vertcat(ca.SX.zeros(k), gaps.gaps), "W": ca.vec(ca.vertcat(*rows, gaps.rows).T),
            "u": ca.vertcat(*velocity, gaps.velocity), "shift": ca.vertcat(*shift, gaps.drift),
            "load": ca.vertcat(contacts.loads, ca.SX.ones(extra)),
        }  # fmt: skip
    groups = {"q": s.q, "v": s.v, "t": s.groups.get("t", ca.SX.sym("t"))}
    groups |= {name: s.groups[name] for name in ("parameters",) if name in s.sizes}
    values = [ca.densify(ca.SX(x)) for x in outputs.values()]
    if s.u.numel():
        values = [ca.substitute(x, s.u, ca.SX.zeros(s.u.numel())) for x in values]
    return ca.Function("contact_terms", list(groups.values()), values, list(groups), list(outputs))


def other_contacts(system: Any) -> ContactSystem:
    """Return any system with contacts, its terms by Python."""
    contacts = _several(system)
    n, m, k = len(system.coordinates), len(system.names), len(contacts)
    holonomic = tuple(getattr(system, "holonomic", ())) if hasattr(system, "constraint") else (False,) * m
    rate = getattr(system, "constraint_velocity", None)
    rubbing = len(getattr(system, "contacts", ()))

    def terms(q: Array, v: Array, t: float) -> dict[str, Array]:
        A = np.asarray(system.jacobian(q, t), float).reshape(m, n)
        values = {"M": system.mass_matrix(q, t), "bias": system.bias(q, v, t), "A": A, "drift": system.drift(q, v, t)}
        values["psi"] = (
            rate(q, v, t) if rate is not None else (A @ v if getattr(system, "rows_rest", False) else np.zeros(m))
        )
        if any(holonomic):
            values["phi"] = system.constraint(q, t)
        W, u, shift = np.zeros((3 * k, n)), np.zeros(3 * k), np.zeros(3 * k)
        gaps, load = np.zeros(k), np.ones(k)
        if rubbing:
            velocity, rows, drift, load[:rubbing] = system.contact_terms(q, v, t)
            column = 0
            for i, contact in enumerate(contacts[:rubbing]):
                for j in range(contact.width):
                    W[3 * i + 1 + j], u[3 * i + 1 + j], shift[3 * i + 1 + j] = (
                        rows[column],
                        velocity[column],
                        drift[column],
                    )
                    column += 1
        if k > rubbing:
            first = 3 * rubbing
            gaps[rubbing:], u[first:], W[first:], shift[first:] = system.gap_terms(q, v, t)
        return values | {"W": W, "u": u, "shift": shift, "gaps": gaps, "load": load}

    return ContactSystem(system, n, n, tuple(system.names), holonomic or (False,) * m, contacts, function=terms)


def law_function(contacts: ContactSystem) -> ca.Function | None:
    """Return speeds, q, v, t -> kinetic forces and static limits of laws that loops do not know; None if Python's."""
    q, v, t = ca.SX.sym("q", contacts.nq), ca.SX.sym("v", contacts.n), ca.SX.sym("t")
    speeds = ca.SX.sym("speeds", contacts.k)
    kinetic, static = ca.SX.zeros(contacts.k), ca.SX.zeros(contacts.k)
    for i, contact in enumerate(contacts.contacts):
        if _law(contact.law, [np.zeros(0)])[0] != OTHER:
            continue
        if type(contact.law) is not ExpressionLaw:
            return None
        law: Any = contact.law
        groups = (
            [x if law._static.size1_in(j) else ca.SX(0, 1) for j, x in enumerate((q, v, t))] if law.needs_state else []
        )
        kinetic[i], static[i] = law._kinetic(speeds[i], *groups), law._static.call(groups)[0]
    return ca.Function(
        "laws", [speeds, q, v, t], [ca.densify(kinetic), ca.densify(static)], ["speeds", "q", "v", "t"],
        ["kinetic", "static"],
    )  # fmt: skip
