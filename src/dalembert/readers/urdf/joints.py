"""Joints of a URDF file, with limits, dynamics and mimic; loops that its extensions close."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dalembert.model.constraints.all_rows import LOOP_OF_JOINT, LOOPS
from dalembert.model.mechanism.parts import Actuator, Coupling, Frame, Joint, Limits, Loop, Spring
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.draft import Draft
from dalembert.readers.xml_tree import (
    HUGE,
    XmlElement,
    number,
    number_attribute,
    origin,
    placement_of,
    shortened,
    unit_axis,
    vector_attribute,
)
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Joints of a URDF: kind, place, axis, limits, damping and friction; mimic joints become couplings.


KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
    "ball": "spherical",
    "spherical": "spherical",
    "universal": "universal",
    "screw": "helical",
}
"""URDF's types, and those that Drake (ball, universal, screw) and others (spherical) have added."""

VELOCITIES = {"fixed": 0, "spherical": 3, "planar": 3, "free": 6, "universal": 2}
"""Velocities of a kind; one where not listed."""

KNOWN = ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic", "drake:screw_thread_pitch")
LIMITED = ("revolute", "prismatic")


def read_joint(element: XmlElement, draft: Draft) -> Joint:
    """Return a joint."""
    draft.leave_out_unknown(element, KNOWN)
    type_name = element.attribute("type")
    if type_name not in KINDS:
        raise element.error(f"unknown type {shortened(type_name)!r}; known are {', '.join(KINDS)}")
    kind = KINDS[type_name]
    axis = element.only("axis")
    direction = (1.0, 0.0, 0.0)
    if axis is not None and kind not in ("fixed", "free", "spherical"):
        direction = unit_axis(axis, vector_attribute(axis, "xyz", (1.0, 0.0, 0.0)))
        if "xyz" not in axis.attributes:
            draft.notes.append(f"{axis.source}: no xyz; URDF's default, x of the joint's frame, is used")
    dynamics = element.only("dynamics")
    return Joint(
        name=element.attribute("name"),
        kind=kind,
        parent=element.required("parent").attribute("link"),
        child=element.required("child").attribute("link"),
        placement=origin(element),
        axis=direction,
        axis2=(0.0, 1.0, 0.0),
        pitch=_pitch(element) if kind == "helical" else 0.0,
        limits=_limits(element, kind, draft),
        damping=_dynamics(dynamics, "damping", kind),
        friction=_dynamics(dynamics, "friction", kind),
        source=element.source,
    )


def _dynamics(dynamics: XmlElement | None, name: str, kind: str) -> tuple[float, ...]:
    """Return a value for every velocity of the joint, or () for none."""
    value = 0.0 if dynamics is None else number_attribute(dynamics, name, 0.0)
    return (value,) * VELOCITIES.get(kind, 1) if value else ()


def _limits(element: XmlElement, kind: str, draft: Draft) -> Limits:
    """Return the limits; those of a continuous joint bound its speed and effort only, as in Pinocchio."""
    limit, nv = element.only("limit"), VELOCITIES.get(kind, 1)
    if limit is None or nv == 0:
        if kind in LIMITED and limit is None:
            draft.notes.append(f"{element.source}: no <limit>; the joint is taken as unlimited")
        return Limits()
    lower, upper = ((), ())
    bounds = [bound for bound in ("lower", "upper") if bound in limit.attributes]
    if bounds and kind not in LIMITED:
        draft.leave_out(limit, f"{' and '.join(bounds)} of a {element.attribute('type')} joint")
    if kind in LIMITED:
        lower, upper = ((_bound(limit, bound, 0.0),) for bound in ("lower", "upper"))
    speed, effort = (_bound(limit, bound, math.inf) for bound in ("velocity", "effort"))
    return Limits(lower, upper, (speed,) * nv, (effort,) * nv)


def _bound(limit: XmlElement, word: str, default: float) -> float:
    """Return one limit; numbers beyond any machine mean none."""
    value = number_attribute(limit, word, default, infinite=True)
    return value if abs(value) <= HUGE else math.copysign(math.inf, value)


def _pitch(element: XmlElement) -> float:
    """Return metres per radian; Drake gives metres per revolution."""
    return number_attribute(element.required("drake:screw_thread_pitch"), "value") / (2 * math.pi)


def read_mimic(element: XmlElement, joints: dict[str, Joint], draft: Draft) -> None:
    """Add the coupling of a mimic joint: joint - multiplier * other = offset."""
    mimic = element.only("mimic")
    if mimic is None:
        return None
    name, other = element.attribute("name"), mimic.attribute("joint")
    if other == name:
        raise mimic.error("a joint cannot mimic itself")
    if other not in joints:
        return draft.leave_out(mimic, f"{name!r} mimics {shortened(other)!r}, which does not exist")
    if any(VELOCITIES.get(joints[joint].kind, 1) != 1 for joint in (name, other)):
        return draft.leave_out(mimic, f"{name!r} and {other!r} have not one coordinate each")
    factor, offset = number_attribute(mimic, "multiplier", 1.0), number_attribute(mimic, "offset", 0.0)
    draft.couplings.append(Coupling(f"{name}_mimic", ((name, 1.0), (other, -factor)), offset, mimic.source))
    return None


def note_circles(draft: Draft) -> None:
    """Name joints that mimic each other in a circle: one of their rows says nothing new, or contradicts the others."""
    leaders = {coupling.terms[0][0]: coupling.terms[1][0] for coupling in draft.couplings}
    seen: set[str] = set()
    for start in leaders:
        path: list[str] = []
        name = start
        while name in leaders and name not in seen:
            seen.add(name)
            path.append(name)
            name = leaders[name]
        if name in path:
            circle = [*path[path.index(name) :], name]
            draft.notes.append(
                f"{draft.file}: joints mimic each other in a circle, {' -> '.join(circle[:6])}; all their rows are kept"
            )


# ----------------------------------------------------------------------------------------------------------------------
# Transmissions of a URDF: one joint, one actuator, a reduction; anything else is listed in the notes.


KNOWN_TRANSMISSIONS = ("type", "joint", "actuator", "mechanicalReduction")
KNOWN_IN_JOINT = ("mechanicalReduction",)
KNOWN_IN_ACTUATOR = ("mechanicalReduction", "motorInertia", "drake:gear_ratio", "drake:rotor_inertia")
"""What is read of a transmission and its two ends; <hardwareInterface> and the rest are named in the notes."""


def read_transmission(element: XmlElement, joints: dict[str, Joint], draft: Draft) -> None:
    """Add an actuator: torque at the joint = reduction * torque of the motor."""
    joint, actuator = element.all("joint"), element.all("actuator")
    if len(joint) != 1 or len(actuator) != 1:
        return draft.leave_out(element, "not one joint and one actuator")
    named = joints.get(joint[0].attributes.get("name", "").strip())
    if named is None or VELOCITIES.get(named.kind, 1) != 1:
        return draft.leave_out(element, "its joint has not one coordinate")
    label = actuator[0].attributes.get("name", "").strip() or f"{named.name}_motor"
    name = draft.new_name("actuators", label)
    effort = named.limits.effort[0] if named.limits.effort else float("inf")
    if effort < 0:
        draft.notes.append(
            f"{element.source}: the effort of its joint is negative ({effort:g}); the motor has no limit"
        )
        effort = float("inf")
    gear = _gear(element, actuator[0])
    if gear == 0:
        return draft.leave_out(element, "its reduction is zero")
    for part, names in ((element, KNOWN_TRANSMISSIONS), (joint[0], KNOWN_IN_JOINT), (actuator[0], KNOWN_IN_ACTUATOR)):
        draft.leave_out_unknown(part, names)
    draft.actuators.append(Actuator(name, named.name, gear, _rotor(actuator[0]), effort, element.source))
    return None


def _rotor(actuator: XmlElement) -> float:
    """Return the inertia of the motor's rotor, on its own side of the gear: Drake's, or <motorInertia>."""
    drake, other = actuator.only("drake:rotor_inertia"), actuator.only("motorInertia")
    if drake is not None and other is not None:
        raise other.error(f"a rotor's inertia is given twice; {drake} is in line {drake.line}")
    if other is not None:
        return number(other, other.text, "<motorInertia>")
    return 0.0 if drake is None else number_attribute(drake, "value")


def _gear(element: XmlElement, actuator: XmlElement) -> float:
    """Return the reduction, wherever it stands: PR2's in the transmission, ROS control's in the actuator, Drake's."""
    drake = actuator.only("drake:gear_ratio")
    if drake is not None:
        return number_attribute(drake, "value")
    for parent in (actuator, element, element.first("joint")):
        reduction = None if parent is None else parent.only("mechanicalReduction")
        if reduction is not None and reduction.text.strip():
            return number(reduction, reduction.text, "<mechanicalReduction>")
    return 1.0


# ----------------------------------------------------------------------------------------------------------------------
# Extensions of URDF by other tools: loops, springs.
#
# | element | from | becomes |
# |---|---|---|
# | `<constraint>` with parent_origin, child_origin | urdfdom, pull request 264 | a loop of the joint's kind |
# | `<loop_joint>` with link1, link2, axis | Drake before 2019 | a loop of the joint's kind |
# | `<drake:ball_constraint>` | Drake | a loop "point" |
# | `<drake:weld_constraint>` | Drake | a loop "weld" |
# | `<drake:linear_spring_damper>` | Drake | a spring between two frames |


NEARLY_OPPOSITE = -0.9
"""Below this cosine a half turn is made first: the formula divides by 1 + cosine."""

LOOP_TYPES = {name: name for name, kind in LOOPS.items() if kind.urdf} | LOOP_OF_JOINT | {"ball": "point"}
"""Types of joints, as loops."""


def loop_kind(element: XmlElement) -> str:
    """Return the kind of loop that an element's type asks for."""
    type_name = element.attribute("type")
    if type_name not in LOOP_TYPES:
        raise element.error(f"a loop of type {shortened(type_name)!r} is not known; known are {', '.join(LOOP_TYPES)}")
    return LOOP_TYPES[type_name]


def _constraint(element: XmlElement, draft: Draft) -> None:
    """Read urdfdom's proposal; where the child has an axis of its own, its frame is turned so that the two meet."""
    kind = loop_kind(element)
    names = ("parent", "child", "parent_origin", "child_origin", "parent_axis", "child_axis", "origin", "axis")
    draft.leave_out_unknown(element, names)
    parent, child = element.required("parent").attribute("link"), element.required("child").attribute("link")
    place = origin(element, "parent_origin" if element.first("parent_origin") else "origin")
    other = origin(element, "child_origin")
    axes = {}
    for tag in ("axis", "parent_axis", "child_axis"):
        axis = element.only(tag)
        if axis is not None:
            axes[tag] = unit_axis(axis, vector_attribute(axis, "xyz", (1.0, 0.0, 0.0)))
    axis = axes.get("parent_axis", axes.get("axis", (1.0, 0.0, 0.0)))
    options: tuple[tuple[str, object], ...] = ()
    if "child_axis" in axes and kind == "universal":
        options = (("axis2", axes["child_axis"]),)
    elif "child_axis" in axes:
        other = other @ Placement(shortest_turn(np.array(axis), np.array(axes["child_axis"])))
    draft.loops.append(
        Loop(element.attribute("name"), kind, parent, child, place, other, axis, options, element.source)
    )


def shortest_turn(a: Array, b: Array) -> Array:
    """Return the least rotation R with R a = b, for unit vectors: 1 + [u]x + [u]x^2 / (1 + a.b), u = a x b."""
    cosine = float(a @ b)
    if cosine < NEARLY_OPPOSITE:
        n = np.cross(a, np.eye(3)[np.argmin(np.abs(a))])
        half = 2 * np.outer(n, n) / (n @ n) - np.eye(3)
        return shortest_turn(half @ a, b) @ half
    x, y, z = np.cross(a, b)
    U = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + U + U @ U / (1 + cosine)


def _loop_joint(element: XmlElement, draft: Draft) -> None:
    """Read Drake's former <loop_joint>."""
    draft.leave_out_unknown(element, ("link1", "link2", "axis", "limit", "dynamics"))
    first, second, axis = element.required("link1"), element.required("link2"), element.only("axis")
    direction = (1.0, 0.0, 0.0) if axis is None else unit_axis(axis, vector_attribute(axis, "xyz", (1.0, 0.0, 0.0)))
    name, kind = element.attribute("name"), loop_kind(element)
    bodies = first.attribute("link"), second.attribute("link")
    placements = placement_of(first), placement_of(second)
    draft.loops.append(Loop(name, kind, *bodies, *placements, direction, (), element.source))


def _ball(element: XmlElement, draft: Draft) -> None:
    """Read <drake:ball_constraint>: a point of one body stays on a point of another."""
    a, b = (element.required(f"{element.tag}_body_{side}").attribute("name") for side in "AB")
    p, q = _point(element, f"{element.tag}_p_AP"), _point(element, f"{element.tag}_p_BQ")
    name = draft.new_name("loops", f"{a}_{b}_ball")
    draft.loops.append(Loop(name, "point", a, b, p, q, source=element.source))


def _weld(element: XmlElement, draft: Draft) -> None:
    """Read <drake:weld_constraint>: a frame of one body stays on a frame of another."""
    a, b = (element.required(tag).attribute("link") for tag in ("parent", "child"))
    name = draft.new_name("loops", f"{a}_{b}_weld")
    draft.loops.append(Loop(name, "weld", a, b, source=element.source))


def _spring(element: XmlElement, draft: Draft) -> None:
    """Read <drake:linear_spring_damper>."""
    values = {
        short: number_attribute(element.required(f"{element.tag}_{tag}"), "value")
        for short, tag in (("stiffness", "stiffness"), ("rest", "free_length"), ("damping", "damping"))
    }
    ends = []
    draft.taken.setdefault("frames", {body.name: 1 for body in draft.bodies})
    for side, point in (("A", "p_AP"), ("B", "p_BQ")):
        body, place = element.required(f"{element.tag}_body_{side}").attribute("name"), f"{element.tag}_{point}"
        placement = _point(element, place)
        if placement.is_identity():
            ends.append(body)
            continue
        frame = Frame(draft.new_name("frames", f"{body}_spring_end"), body, placement, element.source)
        draft.frames.append(frame)
        ends.append(frame.name)
    name = draft.new_name("springs", element.attributes.get("name", "").strip() or "spring")
    draft.springs.append(Spring(name, ends[0], ends[1], **values, source=element.source))


def _point(element: XmlElement, tag: str) -> Placement:
    child = element.only(tag)
    if child is None:
        return IDENTITY
    return Placement(position=np.array(vector_attribute(child, "value", (0.0, 0.0, 0.0))))


LOOP_READERS: dict[str, Callable[[XmlElement, Draft], None]] = {
    "constraint": _constraint,
    "loop_joint": _loop_joint,
    "drake:ball_constraint": _ball,
    "drake:weld_constraint": _weld,
    "drake:linear_spring_damper": _spring,
}
"""Tag -> reader."""
