"""Joints of an SDF model: kind, axes, limits, springs; gearboxes and mimic axes as couplings.

Axes are given in the joint's frame. Before SDF 1.7 <use_parent_model_frame> puts them into the model's (before 1.5 they
always were); since then `expressed_in` may name any frame. Screws: `screw_thread_pitch` is metres per revolution, right
handed; the older `thread_pitch` is radians per metre with the opposite sign, -2 pi / screw_thread_pitch.
"""

from __future__ import annotations

import math

import numpy as np

from dalembert.model.mechanism.parts import Actuator, Coupling, Joint, Limits
from dalembert.model.mechanism.placement import Placement
from dalembert.readers.draft import Draft
from dalembert.readers.sdf.scope import MODEL, Scope, text_of
from dalembert.readers.xml_tree import (
    XmlElement,
    number,
    number_attribute,
    number_text,
    numbers,
    shortened,
    truth_text,
    unit_axis,
)

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "screw": "helical",
    "universal": "universal",
    "revolute2": "universal",
    "ball": "spherical",
    "fixed": "fixed",
}
AXES = {"revolute": 1, "continuous": 1, "prismatic": 1, "helical": 1, "universal": 2}
DYNAMICS = ("damping", "friction", "spring_stiffness", "spring_reference")
HUGE = 1e16
"""SDF's own word for no limit."""

PARALLEL = 1e-3
"""Cosines this close to 1 are one axis: poses in files have four digits."""

KNOWN = (
    "parent",
    "child",
    "pose",
    "axis",
    "axis2",
    "thread_pitch",
    "screw_thread_pitch",
    "gearbox_ratio",
    "gearbox_reference_body",
    "drake:rotor_inertia",
    "drake:gear_ratio",
)


def read_joint(element: XmlElement, scope: Scope, ends: tuple[str, str], draft: Draft) -> Joint:
    """Return a joint between two bodies whose full names are given; placements are filled in by the caller."""
    draft.leave_out_unknown(element, KNOWN)
    type_name = element.attribute("type")
    if type_name not in KINDS:
        raise element.error(f"unknown type {shortened(type_name)!r}; known are {', '.join(KINDS)}, gearbox")
    kind = KINDS[type_name]
    axes = [_axis(element, tag, scope, draft) for tag in ("axis", "axis2")[: AXES.get(kind, 0)]]
    dynamics = [(_dynamics(axis, draft) if axis is not None else (0.0,) * 4) for axis, _ in axes]
    if kind == "spherical" and (axis := element.only("axis")) is not None:
        dynamics = [_dynamics(axis, draft)] * 3
    damping, friction, stiffness, rest = zip(*dynamics, strict=True) if dynamics else ((), (), (), ())
    directions = [direction for _, direction in axes] + [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0)]
    return Joint(
        name=scope.prefix + element.attribute("name"),
        kind=kind,
        parent=ends[0],
        child=ends[1],
        axis=directions[0],
        axis2=directions[1],
        pitch=_pitch(element) if kind == "helical" else 0.0,
        limits=_limits([axis for axis, _ in axes], draft),
        damping=_given(damping),
        friction=_given(friction),
        stiffness=_given(stiffness),
        rest=_given(rest) if any(stiffness) else (),
        source=element.source,
    )


def _given(values: tuple[float, ...]) -> tuple[float, ...]:
    return values if any(values) else ()


def _axis(
    element: XmlElement, tag: str, scope: Scope, draft: Draft
) -> tuple[XmlElement | None, tuple[float, float, float]]:
    """Return an <axis> and its direction in the joint's frame."""
    axis = element.only(tag)
    if axis is None:
        if tag == "axis2":
            raise element.error("<axis2> is missing")
        draft.notes.append(f"{element.source}: no <axis>; SDF's default, z of the joint's frame, is used")
        return None, (0.0, 0.0, 1.0)
    draft.leave_out_unknown(axis, ("xyz", "limit", "dynamics", "use_parent_model_frame", "mimic", "drake:mimic"))
    return axis, direction_in(element, axis, scope, element.attribute("name"))


def direction_in(element: XmlElement, axis: XmlElement, scope: Scope, frame: str) -> tuple[float, float, float]:
    """Return the direction of an axis of a joint in a frame of the joint's model."""
    xyz = axis.only("xyz")
    vector = (0.0, 0.0, 1.0) if xyz is None else numbers(xyz, xyz.text, 3, "an axis")
    direction = unit_axis(axis if xyz is None else xyz, vector)
    expressed = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
    if not expressed and truth_text(axis, "use_parent_model_frame", scope.version < (1, 5)):
        expressed = MODEL
    expressed = expressed or element.attribute("name")
    if expressed == frame:
        return direction
    R = scope.placement(frame, element).rotation.T @ scope.placement(expressed, element).rotation
    x, y, z = R @ direction
    return float(x), float(y), float(z)


def _dynamics(axis: XmlElement, draft: Draft) -> tuple[float, float, float, float]:
    """Return damping, friction, stiffness and rest of an axis."""
    dynamics = axis.only("dynamics")
    if dynamics is None:
        return 0.0, 0.0, 0.0, 0.0
    draft.leave_out_unknown(dynamics, DYNAMICS)
    damping, friction, stiffness, rest = (number_text(dynamics, tag, 0.0) for tag in DYNAMICS)
    return damping, friction, stiffness, rest


def _limits(axes: list[XmlElement | None], draft: Draft) -> Limits:
    """Return the limits of all axes; negative speeds and efforts mean none."""
    rows = []
    for axis in axes:
        limit = None if axis is None else axis.only("limit")
        if limit is None:
            rows.append((-math.inf, math.inf, math.inf, math.inf))
            continue
        draft.leave_out_unknown(limit, ("lower", "upper", "velocity", "effort"))
        defaults = (("lower", -math.inf), ("upper", math.inf), ("velocity", math.inf), ("effort", math.inf))
        values = [number_text(limit, tag, default, infinite=True) for tag, default in defaults]
        lower, upper = (math.copysign(math.inf, x) if abs(x) >= HUGE else x for x in values[:2])
        speed, effort = (math.inf if x < 0 or x >= HUGE else x for x in values[2:])
        rows.append((lower, upper, speed, effort))
    return Limits(*(() if all(map(math.isinf, column)) else column for column in zip(*rows, strict=True)))


def _pitch(element: XmlElement) -> float:
    """Return metres per radian."""
    if element.first("screw_thread_pitch") is not None:
        return number_text(element, "screw_thread_pitch", 1.0) / (2 * math.pi)
    old = element.only("thread_pitch")
    if old is None:
        return 1 / (2 * math.pi)
    turns = number(old, old.text, "<thread_pitch>")
    if turns == 0:
        raise old.error("zero radians per metre: a screw without a thread; use screw_thread_pitch, in metres per turn")
    return -1 / turns


def read_mimic(element: XmlElement, scope: Scope, joints: dict[str, Joint], draft: Draft) -> None:
    """Add the coupling of a mimic axis (SDF 1.11): q = multiplier (leader - reference) + offset."""
    axis = element.only("axis")
    mimic = None if axis is None else axis.only("mimic") or axis.only("drake:mimic")
    if mimic is None:
        return
    names = [scope.prefix + name for name in (element.attribute("name"), mimic.attribute("joint"))]
    for name in names:
        if name not in joints or AXES.get(joints[name].kind, 0) != 1:
            raise mimic.error(f"{shortened(name)!r} is not a joint with one coordinate")
    if mimic.tag == "mimic":
        defaults = (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        factor, offset, zero = (number_text(mimic, tag, default) for tag, default in defaults)
    else:
        factor, offset = number_attribute(mimic, "multiplier", 1.0), number_attribute(mimic, "offset", 0.0)
        zero = 0.0
    terms = ((names[0], 1.0), (names[1], -factor))
    draft.couplings.append(Coupling(f"{names[0]}_mimic", terms, offset - factor * zero, mimic.source))


def read_actuator(element: XmlElement, joint: Joint, draft: Draft) -> None:
    """Add an actuator where Drake's tags give a rotor."""
    rotor = element.only("drake:rotor_inertia")
    if rotor is None or AXES.get(joint.kind, 0) != 1:
        return
    gear = number_text(element, "drake:gear_ratio", 1.0)
    inertia = number(rotor, rotor.text, "<drake:rotor_inertia>")
    draft.actuators.append(Actuator(f"{joint.name}_motor", joint.name, gear, inertia, source=element.source))


def read_gearbox(
    element: XmlElement, scope: Scope, tree: dict[frozenset[str], Joint], places: dict[str, Placement], draft: Draft
) -> None:
    """Add the coupling of a gearbox: theta_2 = -ratio theta_1.

    theta_1 is the angle from the reference body to the parent about `axis`, theta_2 that to the child about `axis2`;
    both must be coordinates of revolute joints of the tree, else the gearbox is listed in the notes. `places` holds the
    placement of every body, and under the scope's prefix that of its model.
    """
    owners = [scope.link(text_of(element, tag), element) for tag in ("gearbox_reference_body", "parent", "child")]
    reference, parent, child = (owner.prefix + link for owner, link in owners)
    terms = []
    for tag, body in (("axis", parent), ("axis2", child)):
        joint, axis = tree.get(frozenset((reference, body))), element.only(tag)
        if joint is None or joint.kind not in ("revolute", "continuous") or axis is None:
            return draft.leave_out(element, "gearbox whose angles are not coordinates of the tree")
        turn = places[scope.prefix].rotation @ direction_in(element, axis, scope, MODEL)
        turning = places[joint.parent].rotation @ joint.placement.rotation @ np.array(joint.axis)
        cosine = float(turn @ turning)
        if abs(abs(cosine) - 1) > PARALLEL:
            return draft.leave_out(element, "gearbox with an axis that is not its joint's")
        terms.append((joint.name, math.copysign(1.0, cosine) * (1.0 if joint.parent == reference else -1.0)))
    ratio = number_text(element, "gearbox_ratio", 1.0)
    (first, sign), (second, other) = terms
    coupling = ((second, other), (first, ratio * sign))
    draft.couplings.append(Coupling(scope.prefix + element.attribute("name"), coupling, 0.0, element.source))
    return None
