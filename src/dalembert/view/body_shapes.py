"""Shapes that bodies are drawn with: those of the file, or shapes generated from joints, constraints and inertia."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.meshes import TriangleMesh, read_mesh
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint, Visual

PALETTE = (0x4E79A7, 0xE09F5A, 0x59A587, 0xA67BA5, 0xC9686B, 0x8C8C5A, 0x6C7A89, 0x7FA6C9)
"""Colours of bodies, told apart by colour-blind people, too."""

PIN, MASSLESS, PLAIN = 0x39424E, 0xFFFFFF, 0xB4BBC4
"""Colours of joints, of bodies without mass, and of meshes without a colour."""

THICKNESS = 0.022
"""Radius of a generated link over the mechanism's size."""

NEAR = 1e-6
"""Places nearer to each other than this part of the mechanism's size are one."""


@dataclass(frozen=True)
class Shape:
    """One solid on a body: kind and size as of a `Visual`, its axis along z."""

    kind: str
    size: tuple[float, ...]
    placement: Placement = IDENTITY
    color: int = PLAIN
    opacity: float = 1.0
    mesh: TriangleMesh | None = None


@dataclass(frozen=True)
class Drawing:
    """The solids of every body, in the order of `bodies`, and of the ground; what could not be drawn is in `notes`."""

    bodies: list[list[Shape]]
    ground: list[Shape] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def drawing_of(m: Mechanism, size: float, meshes: bool = True) -> Drawing:
    """Return what a mechanism is drawn with: its visuals, and generated shapes in place of meshes that are missing.

    `meshes=False` leaves files unopened. Where a body of a file has no visual and others have, it is a sensor or a
    joint's part, and stays undrawn; where none has, all are generated.
    """
    drawing = Drawing([[] for _ in m.bodies])
    lost: set[int] = set()
    for visual in m.visuals:
        place = m.body_index(visual.body)
        try:
            solids = _solids(visual, meshes)
        except DalembertError as error:
            drawing.notes.append(str(error))
            solids = []
        (drawing.ground if place < 0 else drawing.bodies[place]).extend(solids)
        if not solids:
            lost.add(place)
    if lost or not any(drawing.bodies):
        for i, shapes in enumerate(generated(m, size)):
            if not drawing.bodies[i] and (i in lost or not m.visuals):
                drawing.bodies[i].extend(shapes)
    if not any(drawing.bodies):  # visuals of the ground alone
        drawing.bodies[:] = generated(m, size)
    return drawing


def _solids(visual: Visual, meshes: bool) -> list[Shape]:
    """Return the solids of a visual; those of a mesh have the file's colours, or else the visual's."""
    color, opacity = PLAIN, 1.0
    if visual.color is not None:
        red, green, blue = (round(255 * x) for x in visual.color[:3])
        color, opacity = red << 16 | green << 8 | blue, visual.color[3]
    if visual.kind != "mesh":
        return [Shape(visual.kind, visual.size, visual.placement, color, opacity)]
    if not meshes or not visual.file:
        return []
    parts = read_mesh(visual.file)
    return [
        Shape("mesh", visual.size, visual.placement, color if part.color is None else part.color, opacity, part)
        for part in parts
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Places on bodies: joints, constraints, springs, frames.


def size_of(m: Mechanism, q: Array) -> float:
    """Return the length by which links, joints and arrows are drawn: that of the box around all joints and tips."""
    R, p = m.kinematics(q)
    tips = tips_of(m)
    points = [*p, *(p[i] + R[i] @ np.asarray(body.inertia.center) for i, body in enumerate(m.bodies))]
    points += [p[i] + R[i] @ place for i in range(len(m.bodies)) for place in tips[i]]
    points += [*tips[-1], *(np.asarray(j.placement.position) for j in m.joints if j.parent == m.ground)]
    span = float(np.linalg.norm(np.ptp(np.array(points), axis=0))) if points else 0.0
    inertias = [body.inertia for body in m.bodies if body.inertia.mass > 0.0]
    gyration = [float(np.sqrt(max(np.trace(inertia.rotational), 0.0) / inertia.mass)) for inertia in inertias]
    return max(span, 2.0 * max(gyration, default=0.0)) or 1.0


def ends_of(constraint: Any) -> list[tuple[str | None, Placement]]:
    """Return both ends of a constraint between frames: frame (None: the ground) and place in it; none of others."""
    if not hasattr(constraint, "frame") or not hasattr(constraint, "placement"):
        return []
    ends = [(constraint.frame, constraint.placement)]
    if not constraint.held:
        ends.append((constraint.other, constraint.at or IDENTITY))
    return ends


def on_body(m: Mechanism, frame: str | None, place: Placement = IDENTITY) -> tuple[int, Placement]:
    """Return the body that carries a frame (-1: the ground), and the place in the body's frame."""
    if frame is None:
        return -1, place
    carrier = m.frame(frame)
    return m.body_index(carrier.body), carrier.placement @ place


def tips_of(m: Mechanism) -> dict[int, list[Array]]:
    """Return per body (-1: the ground) the places where something is attached: joints, constraints, springs, frames."""
    tips: dict[int, list[Array]] = {i: [] for i in range(-1, len(m.bodies))}
    ornaments = ornaments_of(m)
    for i, (joint, parent) in enumerate(zip(m.joints, m.parents, strict=True)):
        if parent >= 0 and i not in ornaments:
            tips[parent].append(np.asarray(joint.placement.position))
    ends = [end for constraint in m.all_constraints for end in ends_of(constraint)]
    ends += [(frame, IDENTITY) for spring in m.springs for frame in (spring.frame, spring.other)]
    ends += [(frame.name, IDENTITY) for frame in m.frames if frame.body != m.ground]
    for frame, place in ends:
        body, X = on_body(m, frame, place)
        tips[body].append(np.asarray(X.position))
    return tips


def ornaments_of(m: Mechanism) -> set[int]:
    """Return the bodies that are fixed leaves to which nothing is tied: rotors, sensors."""
    tied = {on_body(m, frame)[0] for constraint in m.all_constraints for frame, _ in ends_of(constraint)}
    inner = {*m.parents, *tied}
    return {i for i, joint in enumerate(m.joints) if joint.kind == "fixed" and i not in inner}


# ----------------------------------------------------------------------------------------------------------------------
# Generated shapes: capsules from the joint to each place, a box through many, a sphere where there is none.


def generated(m: Mechanism, size: float) -> list[list[Shape]]:
    """Return generated shapes for every body."""
    bodies: list[list[Shape]] = []
    tips, ornaments = tips_of(m), ornaments_of(m)
    for i, (body, joint) in enumerate(zip(m.bodies, m.joints, strict=True)):
        if i in ornaments and joint.parent != m.ground:
            bodies.append([])
            continue
        massless = body.inertia.is_zero()
        color, opacity = (MASSLESS, 0.5) if massless else (PALETTE[i % len(PALETTE)], 1.0)
        origin = np.asarray(joint.child_placement.position, float)
        ends = _apart(tips[i], origin, size)
        center = np.asarray(body.inertia.center, float)
        if not ends and np.linalg.norm(center - origin) > NEAR * size:
            ends = [origin + _length_factor(body.inertia) * (center - origin)]
        bodies.append([*_links(joint, origin, ends, body, size, color, opacity), *_pin(joint, origin, size)])
    return bodies


def _apart(places: list[Array], origin: Array, size: float) -> list[Array]:
    """Return the places that differ from the origin and from each other."""
    shapes: list[Array] = []
    for place in places:
        if all(np.linalg.norm(place - other) > NEAR * size for other in (origin, *shapes)):
            shapes.append(place)
    return shapes


def _length_factor(inertia: Any) -> float:
    """Return the length of a body over the distance of its centre: 2 of a rod, 1 of a point at the end of one."""
    far = float(np.linalg.norm(inertia.center))
    spread = np.trace(inertia.rotational) / (2.0 * inertia.mass) if inertia.mass > 0 and far > 0 else 0.0
    return 2.0 if spread > 0.02 * far * far else 1.0


def _links(
    joint: Joint, origin: Array, ends: list[Array], body: Any, size: float, color: int, opacity: float
) -> list[Shape]:
    thick = THICKNESS * size
    style = {"color": color, "opacity": opacity}
    if len(ends) > 3 and np.linalg.svd(np.array(ends) - np.mean(ends, axis=0))[1][1] > 0.05 * size:
        low, high = np.min(ends, axis=0), np.max(ends, axis=0)
        edges = np.maximum(high - low, 4 * thick)
        return [Shape("box", tuple(edges.tolist()), Placement(np.eye(3), (low + high) / 2), **style)]
    shapes = []
    for place in ends:
        d = place - origin
        length = float(np.linalg.norm(d))
        shapes.append(Shape("capsule", (thick, length), along(d, (place + origin) / 2), **style))
        if _length_factor(body.inertia) == 1.0 and body.inertia.mass > 0 and np.allclose(place, body.inertia.center):
            shapes.append(Shape("sphere", (2.4 * thick,), Placement(np.eye(3), place), **style))
    if not ends and joint.kind == "prismatic":
        axis = np.asarray(joint.child_placement.rotation) @ np.asarray(joint.axis)
        shapes.append(Shape("box", (4.4 * thick, 4.4 * thick, 6.5 * thick), along(axis, origin), **style))
    elif not ends and joint.kind != "fixed":
        shapes.append(_block(body.inertia, thick, size, style))
    return shapes


def _block(inertia: Any, thick: float, size: float, style: dict[str, Any]) -> Shape:
    """Return the box or ball that has the moments of a body."""
    center, mass = np.asarray(inertia.center, float), inertia.mass
    if mass <= 0:
        return Shape("sphere", (1.6 * thick,), Placement(np.eye(3), center), **style)
    moments, axes = np.linalg.eigh(np.asarray(inertia.rotational, float))
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    if np.ptp(moments) <= 0.02 * moments.max():
        radius = float(np.sqrt(2.5 * max(moments.mean(), 0.0) / mass))
        return Shape("sphere", (float(np.clip(radius, thick, 0.5 * size)),), Placement(np.eye(3), center), **style)
    squares = 6.0 / mass * (moments.sum() - 2.0 * moments)
    edges = np.clip(np.sqrt(np.maximum(squares, 0.0)), 0.6 * thick, size)
    return Shape("box", tuple(edges.tolist()), Placement(axes, center), **style)


def _pin(joint: Joint, origin: Array, size: float) -> list[Shape]:
    """Return what shows the joint itself: a pin along its axis, a ball, a sleeve."""
    thick, R = THICKNESS * size, np.asarray(joint.child_placement.rotation)
    if joint.kind in ("revolute", "continuous", "helical"):
        return [Shape("cylinder", (1.35 * thick, 2.9 * thick), along(R @ np.asarray(joint.axis), origin), PIN)]
    if joint.kind in ("spherical", "universal"):
        return [Shape("sphere", (1.5 * thick,), Placement(np.eye(3), origin), PIN)]
    return []


def along(direction: Array, position: Array) -> Placement:
    """Return the placement at a position whose z axis has a direction."""
    d = np.asarray(direction, float)
    d = d / np.linalg.norm(d)
    across = np.cross((0.0, 0.0, 1.0), d)
    flip = d[2] < -0.999999
    return Placement.from_quaternion((1.0, 0.0, 0.0, 0.0) if flip else (*across, 1.0 + d[2]), position)
