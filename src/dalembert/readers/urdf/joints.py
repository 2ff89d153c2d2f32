"""Joints, mimic joints and transmissions of a URDF."""

from __future__ import annotations

import math

from dalembert.model.mechanism.parts import Actuator, Coupling, Joint, Limits
from dalembert.readers.draft import Draft
from dalembert.readers.xml_tree import (
    HUGE,
    XmlElement,
    number,
    number_attribute,
    origin,
    shortened,
    unit_axis,
    vector_attribute,
)

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
    given = element.attribute("type")
    if given not in KINDS:
        raise element.error(f"unknown type {shortened(given)!r}; known are {', '.join(KINDS)}")
    kind = KINDS[given]
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
    bounds = [word for word in ("lower", "upper") if word in limit.attributes]
    if bounds and kind not in LIMITED:
        draft.leave_out(limit, f"{' and '.join(bounds)} of a {element.attribute('type')} joint")
    if kind in LIMITED:
        lower, upper = ((_bound(limit, word, 0.0),) for word in ("lower", "upper"))
    speed, effort = (_bound(limit, word, math.inf) for word in ("velocity", "effort"))
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
    if any(VELOCITIES.get(joints[each].kind, 1) != 1 for each in (name, other)):
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
    wanted = actuator[0].attributes.get("name", "").strip() or f"{named.name}_motor"
    name = draft.new_name("actuators", wanted)
    effort = named.limits.effort[0] if named.limits.effort else float("inf")
    if effort < 0:
        draft.notes.append(
            f"{element.source}: the effort of its joint is negative ({effort:g}); the motor has no limit"
        )
        effort = float("inf")
    gear = _gear(element, actuator[0])
    if gear == 0:
        return draft.leave_out(element, "its reduction is zero")
    for part, known in ((element, KNOWN_TRANSMISSIONS), (joint[0], KNOWN_IN_JOINT), (actuator[0], KNOWN_IN_ACTUATOR)):
        draft.leave_out_unknown(part, known)
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
        given = None if parent is None else parent.only("mechanicalReduction")
        if given is not None and given.text.strip():
            return number(given, given.text, "<mechanicalReduction>")
    return 1.0
