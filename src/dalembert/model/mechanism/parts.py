"""The parts of a mechanism, as data: bodies, joints, frames, springs, tendons, actuators, couplings, loops, shapes.

Everything is named; lengths in metres, angles in radians, SI throughout. Parts know nothing of each other but names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.placement import IDENTITY, Placement


@dataclass(frozen=True)
class Source:
    """Where a part was read: file, line and element; said in every complaint about it."""

    file: str
    line: int | None = None
    element: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place} {self.element}".rstrip()


@dataclass(frozen=True)
class Body:
    """A rigid body; its frame is where the joint that carries it puts it.

    Attributes
    ----------
    compensation
        Share of its weight that is held up, as by a balloon: the force -compensation * mass * gravity acts at its
        centre of mass, whether springs and dampers act or not. MuJoCo's `gravcomp`, SDF's <gravity>false</gravity>.
    """

    name: str
    inertia: Inertia = field(default_factory=Inertia)
    source: Source | None = field(default=None, compare=False)
    compensation: float = 0.0


@dataclass(frozen=True)
class Limits:
    """What a joint's coordinate may do: one value for each of its nv velocities; unlimited by default."""

    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()


@dataclass(frozen=True)
class Joint:
    """How one body moves relative to another.

    The child's frame in the parent's frame is  placement  ·  motion(q)  ·  child_placement⁻¹.

    Attributes
    ----------
    kind
        A name in `dalembert.model.joints.KINDS`: "revolute", "continuous", "prismatic", "helical", "universal",
        "spherical", "planar", "free", "fixed".
    parent, child
        Names of bodies; the parent may be the ground.
    placement
        The joint's frame in the parent's frame, at zero motion.
    child_placement
        The joint's frame in the child's frame; identity where the child's frame is the joint's, as in URDF.
    axis, axis2 : (3,)
        Unit axes in the joint's frame: of rotation or translation, normal of the plane for "planar"; `axis2` is the
        second axis of "universal".
    pitch
        Of "helical": metres per radian along the axis.
    damping, friction, armature : one value for each velocity, or () for none
        Viscous damping (N s/m, N m s/rad), dry friction (N, N m), inertia of the rotor seen at the joint (kg, kg m^2).
    stiffness, rest : one value for each velocity, or ()
        Of a spring in the joint, and the coordinate (or rotation vector, from `neutral`) where it is relaxed.
    """

    name: str
    kind: str
    parent: str
    child: str
    placement: Placement = IDENTITY
    child_placement: Placement = IDENTITY
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    axis2: tuple[float, float, float] = (0.0, 1.0, 0.0)
    pitch: float = 0.0
    limits: Limits = Limits()
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    armature: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    rest: tuple[float, ...] = ()
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Frame:
    """A named place on a body: a foot's point, a tool, a sensor."""

    name: str
    body: str
    placement: Placement = IDENTITY
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Spring:
    """A spring with damper between two frames, along their line: stiffness (length - rest) + damping d(length)/dt."""

    name: str
    frame: str
    other: str
    stiffness: float
    rest: float = 0.0
    damping: float = 0.0
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Tendon:
    """A spring with damper whose length is a sum of factor * coordinate: MuJoCo's fixed tendon.

    Attributes
    ----------
    rest
        Shortest and longest length at which the spring is slack; between them only the damper acts.
    """

    name: str
    terms: tuple[tuple[str, float], ...]
    stiffness: float = 0.0
    rest: tuple[float, float] = (0.0, 0.0)
    damping: float = 0.0
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Actuator:
    """A motor on one coordinate: torque at the joint = gear * control; the rotor adds gear^2 * rotor_inertia to it."""

    name: str
    coordinate: str
    gear: float = 1.0
    rotor_inertia: float = 0.0
    effort: float = float("inf")
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Coupling:
    """A mimic joint or a gear: sum of factor * coordinate over `terms` = offset; kept as a constraint row."""

    name: str
    terms: tuple[tuple[str, float], ...]
    offset: float = 0.0
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Loop:
    """A joint that closes a loop, as a file gives it: frame `placement` on `body` against `other_placement` on `other`.

    Attributes
    ----------
    kind
        "point", "weld", "revolute", "prismatic", "cylindrical", "universal", "planar" or "distance".
    axis : (3,)
        Free axis of the joint, in the frame `placement`.
    """

    name: str
    kind: str
    body: str
    other: str
    placement: Placement = IDENTITY
    other_placement: Placement = IDENTITY
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    options: tuple[tuple[str, Any], ...] = ()
    source: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Visual:
    """A shape that a body is drawn with; it has no effect on the motion.

    Attributes
    ----------
    body
        Name of a body, or of the ground.
    kind
        One of `VISUALS`.
    size
        Numbers of the kind, in metres; of a mesh its scale along x, y, z.
    placement
        The shape's frame in the body's frame.
    color : (4,)
        Red, green, blue and opacity from 0 to 1; None where the file gives none.
    file
        Path of a mesh (.stl, .obj, .dae), opened when the mechanism is drawn; "" of one that was not found, for which a
        generated shape stands in.
    """

    body: str
    kind: str
    size: tuple[float, ...]
    placement: Placement = IDENTITY
    color: tuple[float, float, float, float] | None = None
    file: str = ""
    source: Source | None = field(default=None, compare=False)


VISUALS = {
    "box": ("edge along x", "along y", "along z"),
    "sphere": ("radius",),
    "cylinder": ("radius", "length along z"),
    "capsule": ("radius", "length along z without the caps"),
    "ellipsoid": ("radius along x", "along y", "along z"),
    "plane": ("half the edge along x, 0 where it has no end", "along y"),
    "mesh": ("scale along x", "along y", "along z"),
}
"""Kinds of visuals, and what their numbers are."""


@dataclass(frozen=True)
class CollisionShape:
    """A shape by which a body touches others; it acts in a run that is given contacts of shapes (`contacts`).

    Attributes
    ----------
    name
        What it is called: as in the file, or after its body.
    body
        Name of a body, or of the ground.
    kind, size, placement, file
        As of a `Visual`, with sizes above zero. The kind "heightfield" has no numbers in `size`, but its grid in
        `points`; a "plane" is without end. Of a mesh its convex hull touches.
    points : (n, 3)
        Vertices of a mesh that stands in the file itself; of a height field x (n,), y (m,) and heights (n, m).
    friction, restitution
        Coulomb's coefficient, and Newton's between 0 and 1; None where the file says nothing.
    group, mask
        Bits: two shapes may touch if the group of one has a bit in the mask of the other (MuJoCo's `contype`,
        `conaffinity`).
    priority
        Of two shapes that touch, the one with the higher priority has the say on friction; otherwise the larger counts.
    """

    name: str
    body: str
    kind: str
    size: tuple[float, ...]
    placement: Placement = IDENTITY
    file: str = ""
    points: Any = field(default=None, compare=False, repr=False)
    friction: float | None = None
    restitution: float | None = None
    group: int = 1
    mask: int = 1
    priority: int = 0
    source: Source | None = field(default=None, compare=False)


COLLISION_KINDS = {**VISUALS, "heightfield": ()}
"""Kinds of collision shapes, and what their numbers are."""


@dataclass(frozen=True)
class ContactRule:
    """What a file says on a pair of bodies, or of shapes: they never touch, or touch in their own way.

    Attributes
    ----------
    one, other
        Names of bodies; of shapes where `touch` is true.
    touch
        False: pairs of these bodies are left out. True: these two shapes touch, whatever else would leave them out.
    friction
        Coulomb's coefficient of a pair that touches.
    reason
        Who says so: "<disable_collisions> of the SRDF file".
    """

    one: str
    other: str
    touch: bool = False
    friction: float | None = None
    reason: str = ""
    source: Source | None = field(default=None, compare=False)


FILE_POSE = "file"
"""Name of the pose in which a file draws its model; other poses have names that the file gives them."""


@dataclass(frozen=True)
class NamedPose:
    """A configuration with a name.

    Attributes
    ----------
    name
        What it is called: `FILE_POSE`, a keyframe of MJCF, a group state of SRDF, or a name of one's own.
    values
        Joints and their coordinates; an angle stands for the cosine and sine of a continuous joint. Joints that are
        not named are at zero.
    """

    name: str
    values: tuple[tuple[str, tuple[float, ...]], ...]
    source: Source | None = None
