"""The picture of a mechanism in motion: poses, shapes, forces, markers and lines over time.

A page, an SVG, a film and the live viewer are made of one `Picture`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, ModelError, UnsupportedError
from dalembert.model.constraints.pairs import AxisPair
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.placement import Placement
from dalembert.model.mechanism.tree_text import describe
from dalembert.readers.meshes import TriangleMesh
from dalembert.simulate.contact.shapes import Box, Heightfield, Plane, Sphere
from dalembert.simulate.joint_forces import contact_loads
from dalembert.simulate.trajectory import Trajectory, interpolated
from dalembert.status import Status
from dalembert.types import Array
from dalembert.view.body_shapes import (
    PALETTE,
    PIN,
    THICKNESS,
    Drawing,
    Shape,
    along,
    drawing_of,
    ends_of,
    on_body,
    size_of,
)

RATE = 50.0
"""Frames per second of a page."""

TURN = 0.5
"""Radians that a joint turns from frame to frame at most, as far as `MOST_FRAMES` go: poses between two are blended."""

MOST_FRAMES = 1500
"""Frames of a page; longer runs have fewer a second."""

MOST_CHECKED = 60
"""Frames at which is decided which reactions are unique; those between have the answer of the one before."""

MOST_LINES = 4
"""Lines below a picture that nobody asked for."""

LINE_SAMPLES = 1000
"""Samples of a line: more than a screen has columns for it, so that its peaks are seen."""

LONGEST_ARROW, USUAL = 0.5, 0.98
"""Length of the arrow, in sizes of the mechanism, of a force that this part of all forces does not exceed."""

FRAMED_ARROW = 1.25
"""Lengths of that arrow up to which arrows are kept in view; those of impacts and short peaks may leave it."""

FRAMED = 60
"""Samples of the motion from which is taken what a picture must hold."""

ENOUGH = 1e-9
"""Directions that differ by less are parallel: rounding of axes in the world."""


@dataclass
class Force:
    """Forces on the mechanism at points over time, N.

    `kind` is "unique" or "family" of a constraint's reaction, whose components that are unique and that are one answer
    of many are two forces, or "contact".
    """

    name: str
    kind: str
    points: Array
    vectors: Array


@dataclass
class Ring:
    """A marker where a constraint acts: on which body, where, about which axis; whether its reactions are unique."""

    name: str
    body: int
    position: Array
    axis: Array
    unique: Array


@dataclass
class Connector:
    """A spring or a rod between points of two bodies (-1: the ground)."""

    name: str
    kind: str
    bodies: tuple[int, int]
    places: tuple[Array, Array]


@dataclass
class Picture:
    """What is to be seen.

    Attributes
    ----------
    t : (N,)
        Times; one alone of a mechanism that stands still.
    rotations, positions : (N, n, 3, 3), (N, n, 3)
        Poses of the bodies.
    ghosts
        Poses of further motions, overlaid.
    q, v : (N, nq), (N, nv)
        States, for the values of a joint that is picked.
    line_t, lines
        Name -> (K,) at the times line_t, drawn below the picture; closer than frames where the run is.
    up, view : (3,)
        Which way is up, and from which direction one looks.
    """

    mechanism: Mechanism
    title: str
    size: float
    drawing: Drawing
    t: Array
    q: Array
    v: Array
    rotations: Array
    positions: Array
    ghosts: list[tuple[Array, Array]] = field(default_factory=list)
    forces: list[Force] = field(default_factory=list)
    rings: list[Ring] = field(default_factory=list)
    links: list[Connector] = field(default_factory=list)
    line_t: Array = field(default_factory=lambda: np.zeros(0))
    lines: dict[str, Array] = field(default_factory=dict)
    events: list[float] = field(default_factory=list)
    caption: str = ""
    up: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    view: Array = field(default_factory=lambda: np.array([0.9, -1.6, 0.7]))

    @property
    def floor(self) -> float:
        """Height at which the ground is drawn: of a plane that is touched, else below the lowest place."""
        planes = [shape for shape in self.drawing.ground if shape.kind == "plane"]
        level = [s for s in planes if np.asarray(s.placement.rotation)[:, 2] @ self.up > 1.0 - ENOUGH]
        if level:
            return float(min(np.asarray(s.placement.position) @ self.up for s in level))
        heights = self.positions @ self.up
        anchors = [float(place @ self.up) for place in self.anchors]
        lowest = min([float(heights.min(initial=0.0 if heights.size == 0 else np.inf)), *anchors])
        return lowest - (0.12 if self.anchors else 0.05) * self.size

    @property
    def anchors(self) -> list[Array]:
        """Places on the ground that something is tied to by a joint or a constraint."""
        m = self.mechanism
        held = [j for j in m.joints if j.parent == m.ground and j.kind not in ("free", "planar", "prismatic", "fixed")]
        places = [np.asarray(joint.placement.position) for joint in held]
        for constraint in m.all_constraints:
            tied = constraint.kind in ("revolute", "universal", "distance", "weld")
            for frame, place in ends_of(constraint)[1:] if tied else ():
                body, X = on_body(m, frame, place)
                if body < 0:
                    places.append(np.asarray(X.position))
        return places

    @property
    def arrow_unit(self) -> float:
        """Length of an arrow, metres per newton."""
        sizes = [np.linalg.norm(force.vectors, axis=1) for force in self.forces]
        every = np.concatenate([np.zeros(0), *sizes])
        every = every[every > 0.0]
        return LONGEST_ARROW * self.size / float(np.quantile(every, USUAL)) if every.size else 0.0

    def ends_of_link(self, link: Connector) -> Array:
        """Return both ends of a spring or rod in the world, (N, 2, 3)."""
        ends = []
        for body, place in zip(link.bodies, link.places, strict=True):
            if body < 0:
                ends.append(np.broadcast_to(place, (self.t.size, 3)))
            else:
                ends.append(self.positions[:, body] + self.rotations[:, body] @ place)
        return np.stack(ends, axis=1)

    @property
    def outline(self) -> Array:
        """Places beside the bodies that must be in view: anchors, ends of springs and rods, tips of arrows, (K, 3)."""
        chosen = np.unique(np.linspace(0, self.t.size - 1, min(FRAMED, self.t.size)).astype(int))
        places = [np.asarray(place).reshape(1, 3) for place in self.anchors]
        places += [self.ends_of_link(link)[chosen].reshape(-1, 3) for link in self.links]
        unit, longest = self.arrow_unit, FRAMED_ARROW * LONGEST_ARROW * self.size
        for force in self.forces:
            lengths = unit * np.linalg.norm(force.vectors, axis=1)
            shown = np.union1d(chosen, np.argmax(np.where(lengths <= longest, lengths, 0.0)))
            shown = shown[(lengths[shown] > 0.0) & (lengths[shown] <= longest)]
            places.append(force.points[shown] + unit * force.vectors[shown])
        return np.concatenate([np.zeros((0, 3)), *places])


# ----------------------------------------------------------------------------------------------------------------------
# Scenes of mechanisms and of runs.


def picture_of(
    what: Any,
    q: Any = None,
    *,
    overlay: Sequence[Any] = (),
    rate: float | None = None,
    lines: Sequence[str] | Mapping[str, Any] | None = None,
    forces: bool | str = True,
    meshes: bool = True,
    title: str | None = None,
    caption: str = "",
    view: Any = None,
) -> Picture:
    """Return the picture of a mechanism at a configuration (several are overlaid), or of a run.

    Parameters
    ----------
    overlay
        Further runs, or configurations, drawn pale over it.
    rate
        Frames per second of a run.
    lines
        What is drawn over time below a run: names that `run[name]` knows, or {label: values at run.t}. By default
        sizes of reactions and contact forces, or coordinates where there are none.
    forces
        Whether reactions and contact forces are drawn; "joints": those of all joints as well.
    view : (3,)
        Direction from which one looks.
    """
    if forces not in (True, False, "joints"):
        raise ModelError(f"forces={forces!r}; it is True, False or 'joints'")
    if isinstance(what, Trajectory):
        picture = _picture_of_run(what, overlay, rate, lines, forces, meshes)
    elif isinstance(what, Mechanism):
        picture = _picture_of_mechanism(what, q, overlay, forces, meshes)
    else:
        raise ModelError(f"a mechanism or a run can be drawn, not {type(what).__name__}")
    picture.title, picture.caption = title or picture.mechanism.name, caption
    if view is not None:
        picture.view = np.asarray(view, float)
        if picture.view.shape != (3,) or not np.isfinite(picture.view).all() or not picture.view.any():
            raise ModelError(f"view is the direction from which one looks, three numbers, not {view!r}")
    return picture


def drawable(run: Trajectory) -> Mechanism:
    """Return the mechanism that a run moved; a system that has no bodies is refused."""
    system = run.moving
    if not isinstance(system, Mechanism) or "q" not in run.samples:
        raise UnsupportedError(
            f"a {type(run.system).__name__} has no bodies that could be drawn; run.plot() draws its coordinates. "
            "Build the mechanism with da.Builder to see it move"
        )
    return system


def _picture_of_mechanism(m: Mechanism, q: Any, overlay: Sequence[Any], forces: bool | str, meshes: bool) -> Picture:
    states = np.atleast_2d(np.asarray(natural(m) if q is None else q, float))
    if states.ndim != 2 or states.shape[1] != m.nq:
        raise ModelError(f"q has shape {states.shape}; {m.name} has nq = {m.nq} coordinates")
    first, others = states[:1], [*states[1:], *overlay]
    picture = _staged(m, np.zeros(1), first, np.zeros((1, m.nv)), meshes)
    picture.ghosts = [m.kinematics(np.asarray(configuration, float).reshape(1, m.nq)) for configuration in others]
    if forces:
        unique = uniqueness(m, picture.q, picture.v)
        picture.rings = _rings(m, unique)
    return picture


def natural(m: Mechanism) -> Array:
    """Return a configuration worth looking at: the file's, or the neutral one, with its loops closed if possible."""
    q = m.pose()
    if not m.all_constraints:
        return q
    try:
        assembly = m.assemble(q)
    except DalembertError:
        return q
    return assembly.q if assembly.ok else q


def _picture_of_run(
    run: Trajectory,
    overlay: Sequence[Any],
    rate: float | None,
    lines: Sequence[str] | Mapping[str, Any] | None,
    forces: bool | str,
    meshes: bool,
) -> Picture:
    m = drawable(run)
    t = frame_times(run, rate)
    q, v = states_at(run, t)
    picture = _staged(m, t, q, v, meshes)
    for other in overlay:
        if not isinstance(other, Trajectory) or drawable(other).nq != m.nq:
            raise ModelError("overlay= takes runs of the same mechanism")
        picture.ghosts.append(m.kinematics(states_at(other, np.clip(t, other.t[0], other.t[-1]))[0]))
    _add_contacts(picture, run)
    if forces:
        unique = uniqueness(m, q, v)
        table = at_times(t, run.t, np.asarray(run.reactions))
        picture.forces = [*reaction_forces(picture, table, unique), *_contact_forces(run, picture)]
        if forces == "joints":
            picture.forces += _joint_forces(run, picture)
        picture.rings = _rings(m, unique)
    _add_lines(picture, run, lines, forces)
    picture.events = sorted({float(event.time) for event in run.events})[:200]
    return picture


def frames_per_second(run: Trajectory, usual: float = RATE) -> float:
    """Return a rate at which no joint turns by more than `TURN` from frame to frame, the usual one at least."""
    turns = np.array([turn for joint in run.moving.joints for turn in KINDS[joint.kind].angular], dtype=bool)
    fastest = float(np.nanmax(np.abs(run.v[:, turns]), initial=0.0)) if turns.any() else 0.0
    duration = float(run.t[-1] - run.t[0])
    most = MOST_FRAMES / duration if duration > 0.0 else usual
    return min(max(usual, fastest / TURN if np.isfinite(fastest) else usual), max(most, 1.0 / max(duration, 1.0)))


def frame_times(run: Trajectory, rate: float | None) -> Array:
    """Return the times of the frames of a run."""
    start, end = float(run.t[0]), float(run.t[-1])
    if end <= start:
        return np.array([start])
    count = int(np.ceil((end - start) * (frames_per_second(run) if rate is None else float(rate)))) + 1
    return np.linspace(start, end, min(max(count, 2), MOST_FRAMES if rate is None else 20 * MOST_FRAMES))


def states_at(run: Trajectory, t: Array) -> tuple[Array, Array]:
    """Return q and v at times: of the dense solution, or the cubic between samples, which no eye tells from it."""
    if run.solution is not None:
        return run.at(t)
    place = np.clip(np.searchsorted(run.t, t, side="right") - 1, 0, max(run.t.size - 2, 0))
    if run.t.size < 2:
        return np.repeat(run.q, t.size, axis=0), np.repeat(run.v, t.size, axis=0)
    return interpolated(run, place, t)


def _staged(m: Mechanism, t: Array, q: Array, v: Array, meshes: bool) -> Picture:
    """Return the picture with bodies, springs and rods."""
    R, p = m.kinematics(q)
    size = size_of(m, q[0])
    picture = Picture(m, m.name, size, drawing_of(m, size, meshes), t, q, v, R, p)
    picture.links = _links(m)
    if not m.visuals:
        _add_rails(picture)
    gravity = np.asarray(m.gravity, float)
    if gravity.any():
        picture.up = -gravity / np.linalg.norm(gravity)
    normal = normal_of(picture)
    if normal is not None and abs(normal @ picture.up) < 0.5:
        side = np.cross(picture.up, normal)
        picture.view = normal * (1.0 if normal[np.argmax(np.abs(normal))] * _facing(normal) > 0 else -1.0)
        picture.view = picture.view + 0.12 * picture.up + 0.16 * side * np.sign(side.sum() or 1.0)
    elif picture.up[2] < 1.0 - ENOUGH:
        picture.view = np.array([0.9, 0.7, 1.6]) if abs(picture.up[1]) > 0.9 else np.array([0.7, 0.9, 1.6])
    return picture


def _facing(normal: Array) -> float:
    """Return the sign of the axis from which a plane is looked at: from -y (x to the right, z up), +z or +x."""
    return -1.0 if int(np.argmax(np.abs(normal))) == 1 else 1.0


def normal_of(picture: Picture) -> Array | None:
    """Return the normal of the plane in which everything moves, or None where there is none."""
    m = picture.mechanism
    axes = []
    for i, joint in enumerate(m.joints):
        R = np.eye(3) if m.parents[i] < 0 else picture.rotations[0, m.parents[i]]
        if joint.kind in ("revolute", "continuous", "planar"):
            axes.append(R @ np.asarray(joint.placement.rotation) @ np.asarray(joint.axis, float))
        elif joint.kind not in ("prismatic", "fixed"):
            return _plane_of_motion(picture)
    if not axes:
        return _plane_of_motion(picture)
    normal = axes[0]
    if any(np.linalg.norm(np.cross(normal, axis)) > ENOUGH for axis in axes):
        return None
    moved = (picture.positions - picture.positions[:1]) @ normal
    return normal if np.abs(moved).max(initial=0.0) <= 1e-6 * picture.size else None


def _plane_of_motion(picture: Picture) -> Array | None:
    """Return the normal of a plane along a coordinate axis in which bodies stay although their joints let them out."""
    for k in (1, 2, 0):
        normal = np.eye(3)[k]
        still = np.abs((picture.positions - picture.positions[:1]) @ normal).max(initial=0.0) <= 1e-6 * picture.size
        turned = np.abs(picture.rotations @ normal - picture.rotations[:1] @ normal).max(initial=0.0) <= 1e-6
        if still and turned and picture.t.size > 1 and np.ptp(picture.positions, axis=0).any():
            return normal
    return None


# ----------------------------------------------------------------------------------------------------------------------
# Forces: reactions of constraints in world axes, and whether they are unique; contact forces.


def uniqueness(m: Mechanism, q: Array, v: Array) -> Array:
    """Return for frames and rows whether the reaction is unique, (N, m); decided at some of the frames."""
    N, rows = len(q), len(m.names)
    if not rows:
        return np.zeros((N, 0), bool)
    chosen = np.unique(np.linspace(0, N - 1, min(N, MOST_CHECKED)).astype(int))
    certificate = m.solve(q[chosen], v[chosen]).certificate
    valid = np.asarray(certificate.status) < Status.NOT_SYMMETRIC
    unique = np.asarray(certificate.unique, bool).reshape(chosen.size, -1)[:, :rows] & valid.reshape(-1, 1)
    return unique[np.searchsorted(chosen, np.arange(N), side="right") - 1]


FIXED_POINTS = ("point", "weld", "revolute", "universal")
"""Constraints whose first three rows hold a point, along the axes of the second frame."""


def _directions(constraint: Any) -> Array | None:
    """Return the directions (k, 3) of a constraint's forces in the axes of its second frame; None: it has no point."""
    if constraint.kind in FIXED_POINTS:
        return np.eye(3)
    if constraint.kind == "planar":
        return np.asarray(constraint.axis, float).reshape(1, 3)
    if constraint.kind == "point in plane":
        return np.asarray(constraint.normal, float).reshape(1, 3)
    if isinstance(constraint, AxisPair):
        return np.array([np.ravel(direction) for direction in constraint.directions[1:]])
    return None


def _world(picture: Picture, frame: str | None, place: Any) -> tuple[Array, Array]:
    """Return rotation and position of a place on a frame in the world, (N, 3, 3), (N, 3)."""
    body, X = on_body(picture.mechanism, frame, place)
    if body < 0:
        N = picture.t.size
        return np.broadcast_to(X.rotation, (N, 3, 3)), np.broadcast_to(X.position, (N, 3))
    return picture.rotations[:, body] @ X.rotation, picture.positions[:, body] + picture.rotations[:, body] @ X.position


def reaction_forces(picture: Picture, table: Array, unique: Array) -> list[Force]:
    """Return reactions of constraint rows (N, m) as forces of the constraints on their first frames, in world axes."""
    m, start = picture.mechanism, 0
    forces = []
    for constraint in m.all_constraints:
        count = len(constraint.row_names())
        rows, start = slice(start, start + count), start + count
        ends = ends_of(constraint)
        if not ends:
            continue
        R1, p1 = _world(picture, *ends[0])
        if constraint.kind == "distance":
            d = p1 - _world(picture, *ends[1])[1]
            directions = (d / np.maximum(np.linalg.norm(d, axis=1, keepdims=True), np.finfo(float).tiny))[:, None]
        else:
            local = _directions(constraint)
            if local is None:
                continue
            R2 = _world(picture, *ends[1])[0] if len(ends) > 1 else R1
            if len(ends) == 1 and constraint.kind in FIXED_POINTS:
                R2 = np.broadcast_to(np.eye(3), R1.shape)
            directions = np.einsum("nij,kj->nki", R2, local)
        k = directions.shape[1]
        parts, single = table[:, rows][:, :k], unique[:, rows][:, :k]
        for kind, chosen in (("unique", single), ("family", ~single)):
            vectors = np.einsum("nk,nki->ni", np.where(chosen, parts, 0.0), directions)
            if np.linalg.norm(vectors, axis=1).max(initial=0.0) > ENOUGH * np.abs(table).max(initial=0.0):
                forces.append(Force(constraint.label, kind, p1, vectors))
    return forces


def at_times(t: Array, known: Array, values: Array) -> Array:
    """Return rows of values at times, linear between samples; of two samples at one time the later one counts."""
    place = np.clip(np.searchsorted(known, t, side="right") - 1, 0, max(known.size - 2, 0))
    if known.size < 2:
        return np.repeat(values[:1], t.size, axis=0)
    h = known[place + 1] - known[place]
    u = np.where(h > 0, (t - known[place]) / np.where(h > 0, h, 1.0), 1.0)
    u = np.clip(u, 0.0, 1.0).reshape(-1, *(1,) * (values.ndim - 1))
    mixed = (1 - u) * values[place] + u * values[place + 1]
    return np.where(np.isfinite(mixed), mixed, 0.0)


def _contact_forces(run: Trajectory, picture: Picture) -> list[Force]:
    """Return the forces of contacts between shapes at the points that touch."""
    loads = {} if run.columns is not None else contact_loads(run)
    places = {name: (at_times(picture.t, run.t, load.place), load.force) for name, load in loads.items()}
    return [Force(name, "contact", at, at_times(picture.t, run.t, force)) for name, (at, force) in places.items()]


def _joint_forces(run: Trajectory, picture: Picture) -> list[Force]:
    """Return the forces of the tree's joints on the bodies that they carry; unique components and others apart."""
    m, history = picture.mechanism, run.joint_forces.in_axes("world")
    forces = []
    for i, joint in enumerate(m.joints):
        if joint.name not in history.names or joint.kind == "free":
            continue
        k = history.names.index(joint.name)
        single = history.unique[:, k, :3]
        place = picture.positions[:, i] + picture.rotations[:, i] @ np.asarray(joint.child_placement.position)
        for kind, chosen in (("unique", single), ("family", ~single)):
            vectors = at_times(picture.t, run.t, np.where(chosen, history.force[:, k], 0.0))
            if np.linalg.norm(vectors, axis=1).max(initial=0.0) > ENOUGH:
                forces.append(Force(joint.name, kind, place, vectors))
    return forces


def _contacts_of(run: Trajectory) -> list[Any]:
    """Return the contacts of shapes that a run was given."""
    contacts = None if run.session is None else run.session.extra.get("contacts")
    several = list(contacts) if isinstance(contacts, Sequence) else [contacts]
    return [contact for contact in several if hasattr(contact, "shape") and hasattr(contact, "other")]


# ----------------------------------------------------------------------------------------------------------------------
# Markers, springs, grounds, lines.


def _rings(m: Mechanism, unique: Array) -> list[Ring]:
    """Return a ring for each constraint between frames, about its axis where it has one."""
    rings, start = [], 0
    for constraint in m.all_constraints:
        count = len(constraint.row_names())
        rows, start = slice(start, start + count), start + count
        for frame, place in ends_of(constraint)[:1]:
            body, X = on_body(m, frame, place)
            axis = np.asarray(getattr(constraint, "axis", (0.0, 0.0, 1.0)), float)
            single = np.all(unique[:, rows], axis=1)
            rings.append(Ring(constraint.label, body, np.asarray(X.position), np.asarray(X.rotation) @ axis, single))
    return rings


def _links(m: Mechanism) -> list[Connector]:
    """Return springs, and rods of constant length, which have no mass."""
    rods = [constraint for constraint in m.all_constraints if constraint.kind == "distance"]
    return [
        *(
            _link(spring.name, "spring", [on_body(m, frame) for frame in (spring.frame, spring.other)])
            for spring in m.springs
        ),
        *(_link(rod.label, "rod", [on_body(m, *end) for end in ends_of(rod)]) for rod in rods),
    ]


def _link(name: str, kind: str, ends: list[tuple[int, Any]]) -> Connector:
    (a, X), (b, Y) = ends
    return Connector(name, kind, (a, b), (np.asarray(X.position), np.asarray(Y.position)))


def _add_rails(picture: Picture) -> None:
    """Add a rail for each sliding joint, as long as it moves."""
    m, thin = picture.mechanism, 0.3 * THICKNESS * picture.size
    for i, joint in enumerate(m.joints):
        if joint.kind != "prismatic":
            continue
        q = picture.q[:, m.manifold.q_start[i]]
        low = max(float(q.min()), float(q[0]) - picture.size) - 0.15 * picture.size
        high = min(float(q.max()), float(q[0]) + picture.size) + 0.15 * picture.size
        axis = np.asarray(joint.axis, float)
        place = joint.placement @ along(axis, 0.5 * (low + high) * axis)
        rail = Shape("cylinder", (thin, high - low), place, PIN)
        (picture.drawing.ground if m.parents[i] < 0 else picture.drawing.bodies[m.parents[i]]).append(rail)


def _add_contacts(picture: Picture, run: Trajectory) -> None:
    """Add the planes and heightfields that a run touches; bodies without visuals have the shapes that touch."""
    m, contacts = picture.mechanism, _contacts_of(run)
    touching: dict[int, list[Shape]] = {}
    for shape in dict.fromkeys(part for pair in contacts for part in (pair.shape, pair.other)):
        if isinstance(shape, Sphere | Box):
            body, X = on_body(m, shape.frame, Placement(np.eye(3), np.array(shape.at)))
            size = shape.size if isinstance(shape, Box) else (shape.radius,)
            color = PALETTE[body % len(PALETTE)]
            kind = "box" if isinstance(shape, Box) else "sphere"
            touching.setdefault(body, []).extend([Shape(kind, size, X, color)] if max(size) > 0.0 else [])
    for body, shapes in touching.items():
        generated = [] if m.visuals or body < 0 else picture.drawing.bodies[body]
        if not m.visuals and body >= 0 and shapes:
            lone = len(generated) == 1 and generated[0].kind in ("sphere", "box")
            picture.drawing.bodies[body] = shapes if lone else [*generated, *shapes]
    grounds = {id(contact.other): contact.other for contact in contacts}
    for ground in grounds.values():
        if isinstance(ground, Plane):
            normal = np.asarray(ground.normal)
            place = along(normal, ground.offset * normal)
            picture.drawing.ground.append(Shape("plane", (0.0, 0.0), place, 0xCBD2DA, 0.55))
        elif isinstance(ground, Heightfield):
            picture.drawing.ground.append(_surface(ground))


def _surface(ground: Heightfield) -> Shape:
    nx, ny = ground.x.size, ground.y.size
    X, Y = np.meshgrid(ground.x, ground.y, indexing="ij")
    corner = (np.arange(nx - 1)[:, None] * ny + np.arange(ny - 1)).ravel()
    a, b, c, d = corner, corner + ny, corner + ny + 1, corner + 1
    faces = np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])
    mesh = TriangleMesh(np.column_stack([X.ravel(), Y.ravel(), np.asarray(ground.z).ravel()]), faces, 0xCBD2DA)
    return Shape("mesh", (1.0, 1.0, 1.0), color=0xCBD2DA, mesh=mesh)


def _add_lines(
    picture: Picture, run: Trajectory, asked: Sequence[str] | Mapping[str, Any] | None, forces: bool | str
) -> None:
    """Add the lines below the picture: at all samples of the run, those between its steps among them."""
    if isinstance(asked, Mapping):
        lines = {str(name): np.asarray(y, float) for name, y in asked.items()}
        for name, y in lines.items():
            if y.shape != run.t.shape:
                raise ModelError(f"lines[{name!r}] has shape {y.shape}; one number for each of {run.t.size} samples")
        fine = run
    else:
        fine = _with_samples(run)
        lines = _sizes_of_forces(fine, picture, forces) if asked is None else {}
        names = [joint.name for joint in picture.mechanism.joints if KINDS[joint.kind].nv == 1][:MOST_LINES]
        for name in (asked,) if isinstance(asked, str) else asked or (() if lines else names):
            column = angle_of(fine, name) if asked is None else np.asarray(fine[name])
            lines[name] = column if column.ndim == 1 else np.linalg.norm(column, axis=1)
    if fine.t.size <= picture.t.size:
        between = picture.t[~np.isin(picture.t, fine.t)]  # an instant that is twice in the run stays so: a jump
        order = np.argsort(np.concatenate([fine.t, between]), kind="stable")
        picture.line_t = np.concatenate([fine.t, between])[order]
        picture.lines = {name: np.concatenate([y, at_times(between, fine.t, y)])[order] for name, y in lines.items()}
        return
    chosen = np.linspace(0, fine.t.size - 1, min(fine.t.size, LINE_SAMPLES)).astype(int)
    lines = {name: np.where(np.isfinite(y), y, 0.0) for name, y in lines.items()}
    chosen = np.union1d(chosen, [k for y in lines.values() for k in (int(y.argmax()), int(y.argmin()))]).astype(int)
    picture.line_t = fine.t[chosen]
    picture.lines = {name: y[chosen] for name, y in lines.items()}


def _with_samples(run: Trajectory) -> Trajectory:
    """Return a run with samples between its steps, where no function of Python would be called for them again."""
    s = run.session
    called = s is None or (s.controller is not None and s.controller.function is not None)
    return run if called else run.refined()


def _sizes_of_forces(run: Trajectory, picture: Picture, forces: bool | str) -> dict[str, Array]:
    """Return the sizes of the forces that vary most, at the samples of a run."""
    if not picture.forces:
        return {}
    m, near = picture.mechanism, np.clip(np.searchsorted(picture.t, run.t), 0, picture.t.size - 1)
    R, p = m.kinematics(run.q)
    fine = replace(picture, t=run.t, q=run.q, v=run.v, rotations=R, positions=p)
    unique = uniqueness(m, picture.q, picture.v)[near]
    drawn = [*reaction_forces(fine, np.asarray(run.reactions), unique), *_contact_forces(run, fine)]
    drawn += _joint_forces(run, fine) if forces == "joints" else []
    totals: dict[str, Array] = {}
    for force in drawn:
        totals[force.name] = totals.get(force.name, 0.0) + force.vectors
    sizes = {f"|{name}| (N)": np.linalg.norm(vectors, axis=1) for name, vectors in totals.items()}
    shown = sorted(sizes, key=lambda name: -float(np.ptp(sizes[name])))[:MOST_LINES]
    return {name: sizes[name] for name in sizes if name in shown}


def angle_of(run: Trajectory, name: str) -> Array:
    """Return a joint's coordinate, (N,); of a continuous joint, which has cosine and sine, its angle."""
    column = np.asarray(run[name])
    return column if column.ndim == 1 else np.unwrap(np.arctan2(column[:, 1], column[:, 0]))


def values_of(picture: Picture) -> list[tuple[str, str, list[tuple[str, Array, str]]]]:
    """Return for every joint its words and its values over time: (name, kind, [(label, (N,), unit)])."""
    m, columns = picture.mechanism, []
    starts_q, starts_v = m.manifold.q_start, m.manifold.v_start
    for i, joint in enumerate(m.joints):
        kind, values = KINDS[joint.kind], []
        for k, suffix in enumerate(kind.q_names):
            values.append((f"q {suffix}".strip(), picture.q[:, starts_q[i] + k], _unit(joint.kind, suffix, "")))
        for k, suffix in enumerate(kind.v_names):
            values.append((f"v {suffix}".strip(), picture.v[:, starts_v[i] + k], _unit(joint.kind, suffix, "/s")))
        columns.append((joint.name, describe(joint).partition(": ")[2], values))
    return columns


def _unit(kind: str, suffix: str, per: str) -> str:
    """Return the unit of a coordinate or velocity; of cosines and quaternions none."""
    if kind == "prismatic" or suffix in ("x", "y", "z", "vx", "vy", "vz"):
        return "m" + per
    if not per and (suffix.startswith("q") or suffix in ("cos", "sin", "c", "s")):
        return ""
    return "rad" + per
