"""Transmissions of a URDF: one joint, one actuator, a reduction; anything else is listed in the notes."""

from __future__ import annotations

from dalembert.model.parts import Actuator, Joint
from dalembert.readers.draft import Draft
from dalembert.readers.urdf_joints import VELOCITIES
from dalembert.readers.values import number, number_attribute
from dalembert.readers.xml_tree import Element

KNOWN = ("type", "joint", "actuator", "mechanicalReduction")
KNOWN_IN_JOINT = ("mechanicalReduction",)
KNOWN_IN_ACTUATOR = ("mechanicalReduction", "motorInertia", "drake:gear_ratio", "drake:rotor_inertia")
"""What is read of a transmission and its two ends; <hardwareInterface> and the rest are named in the notes."""


def read_transmission(element: Element, joints: dict[str, Joint], draft: Draft) -> None:
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
    for part, known in ((element, KNOWN), (joint[0], KNOWN_IN_JOINT), (actuator[0], KNOWN_IN_ACTUATOR)):
        draft.leave_out_unknown(part, known)
    draft.actuators.append(Actuator(name, named.name, gear, _rotor(actuator[0]), effort, element.source))
    return None


def _rotor(actuator: Element) -> float:
    """Return the inertia of the motor's rotor, on its own side of the gear: Drake's, or <motorInertia>."""
    drake, other = actuator.only("drake:rotor_inertia"), actuator.only("motorInertia")
    if drake is not None and other is not None:
        raise other.error(f"a rotor's inertia is given twice; {drake} is in line {drake.line}")
    if other is not None:
        return number(other, other.text, "<motorInertia>")
    return 0.0 if drake is None else number_attribute(drake, "value")


def _gear(element: Element, actuator: Element) -> float:
    """Return the reduction, wherever it stands: PR2's in the transmission, ROS control's in the actuator, Drake's."""
    drake = actuator.only("drake:gear_ratio")
    if drake is not None:
        return number_attribute(drake, "value")
    for parent in (actuator, element, element.first("joint")):
        given = None if parent is None else parent.only("mechanicalReduction")
        if given is not None and given.text.strip():
            return number(given, given.text, "<mechanicalReduction>")
    return 1.0
