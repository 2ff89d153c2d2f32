"""The writer of URDF."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from dalembert.errors import UnsupportedError
from dalembert.model.constraints.all_rows import LOOPS
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.placement import IDENTITY, Placement

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Actuator, Body, Coupling, Joint, Loop, Spring

# ----------------------------------------------------------------------------------------------------------------------
# Small elements of a URDF as text: limits, dynamics, origins, numbers.


UNLIMITED = 1e308
"""Stands for infinity, which urdfdom does not read."""


def limit(joint: Joint, effort: float | None = None) -> list[str]:
    """Return the <limit> of a joint with one coordinate; URDF asks for it where the joint is revolute or prismatic.

    `effort` is that of its motor, for a joint without a limit of its own.
    """
    if joint.kind not in ("revolute", "prismatic", "continuous", "helical"):
        return []
    values = vars(joint.limits)
    if not joint.limits.effort and effort is not None:
        values = values | {"effort": (effort,)}
    defaults = {"lower": -UNLIMITED, "upper": UNLIMITED, "effort": UNLIMITED, "velocity": UNLIMITED}
    if joint.kind in ("continuous", "helical"):
        del defaults["lower"], defaults["upper"]
        if not values["velocity"] and not values["effort"]:
            return []
    words = []
    for name, default in defaults.items():
        value = values[name][0] if values[name] else default
        words.append(f'{name}="{word(max(-UNLIMITED, min(UNLIMITED, value)))}"')
    return [f"    <limit {' '.join(words)}/>"]


def dynamics(joint: Joint) -> list[str]:
    """Return the <dynamics> of a joint, where one value serves all its velocities."""
    fields = [(name, getattr(joint, name)) for name in ("damping", "friction") if len(set(getattr(joint, name))) == 1]
    words = " ".join(f'{name}="{word(values[0])}"' for name, values in fields)
    return [f"    <dynamics {words}/>"] if fields else []


def origin(tag: str, placement: Placement) -> str:
    """Return a placement as an element with xyz and rpy."""
    return f'<{tag} xyz="{words(placement.position)}" rpy="{words(placement.rpy())}"/>'


def word(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(float(value) + 0.0)


def words(values: Iterable[float]) -> str:
    """Return numbers, separated by blanks."""
    return " ".join(word(value) for value in values)


# ----------------------------------------------------------------------------------------------------------------------
# A mechanism as URDF; what URDF cannot say is written in the syntax of a tool that has added it, or listed.
#
# In URDF a link's frame is its joint's. So with X = `child_placement` of the joint that carries a body, the link's
# frame stands at X in the body's: inertia, joints, frames and loops on the body are moved by X^-1. The motion is the
# same.


def urdf_text(mechanism: Mechanism, strict: bool) -> str:
    """Return a mechanism as URDF; with `strict` what URDF cannot say is refused."""
    urdf = UrdfText(mechanism)
    text = urdf.write()
    if strict and urdf.left_out:
        raise UnsupportedError(f"{mechanism.name!r} as URDF: cannot be said: {'; '.join(urdf.left_out)}")
    return text


@dataclass
class UrdfText:
    """Lines of a URDF in the making.

    Attributes
    ----------
    left_out
        What neither URDF nor a known addition to it can say.
    added
        What is said in the syntax of another tool.
    opened
        Constraints, couplings and loops among `left_out`: without them the mechanism moves otherwise.
    """

    mechanism: Mechanism
    lines: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    shifts: dict[str, Placement] = field(default_factory=dict)
    mimics: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    efforts: dict[str, float] = field(default_factory=dict)

    def write(self) -> str:
        """Return the whole file."""
        m = self.mechanism
        self.shifts = {m.ground: IDENTITY} | {joint.child: joint.child_placement for joint in m.joints}
        self._general()
        for coupling in m.couplings:
            self._coupling(coupling)
        self._efforts()
        grounded = [joint for joint in m.joints if joint.parent == m.ground]
        root = grounded[0] if len(grounded) == 1 and _is_root(grounded[0]) else None
        if root is None:
            self.lines.append(f"  <link name={quoteattr(m.ground)}/>")
        for body, joint in zip(m.bodies, m.joints, strict=True):
            self._link(body)
            if joint is not root:
                self._joint(joint)
        for frame in m.frames:
            self._frame(frame.name, frame.body, frame.placement)
        for loop in m.loops:
            self._loop(loop)
        for actuator in m.actuators:
            self._actuator(actuator)
        for spring in m.springs:
            self._spring(spring)
        head = ['<?xml version="1.0"?>', *self._comment(), f"<robot name={quoteattr(m.name)}>"]
        return "\n".join([*head, *self.lines, "</robot>", ""])

    def _comment(self) -> list[str]:
        """Return what the file does not say, or not in plain URDF."""
        comments = [f"not said: {text}" for text in self.left_out] + [f"beyond URDF: {text}" for text in self.added]
        return [f"<!-- {text.replace('--', '- -')} -->" for text in comments]

    def _open(self, part: str) -> None:
        self.left_out.append(part)
        self.opened.append(part)

    def _general(self) -> None:
        m = self.mechanism
        for constraint in m.constraints:
            self._open(f"constraint {constraint.label}")
        if m.visuals:
            self.left_out.append(f"{len(m.visuals)} visuals")
        if m.collision_shapes:
            self.left_out.append(f"{len(m.collision_shapes)} collision shapes")
        if tuple(m.gravity) != (0.0, 0.0, -9.81):
            self.left_out.append(f"gravity {m.gravity}")
        if any(joint.kind == "free" and _is_root(joint) for joint in m.joints):
            self.left_out.append("the floating base (load with base='floating')")
        held = [body.name for body in m.bodies if body.compensation]
        if held:
            self.left_out.append(f"weight held up: of {', '.join(held[:5])}")
        self.left_out += [f"tendon {tendon.name}" for tendon in m.tendons]
        moved = [joint.child for joint in m.joints if not joint.child_placement.is_identity()]
        if moved:
            self.left_out.append(f"frames of {', '.join(moved[:5])}: they stand where their joints are")
        for joint in m.joints:
            for value in ("armature", "stiffness"):
                if any(getattr(joint, value)):
                    self.left_out.append(f"{value} of joint {joint.name}")
            for value in ("damping", "friction"):
                if len(set(getattr(joint, value))) > 1 and joint.kind != "universal":
                    self.left_out.append(f"{value} of joint {joint.name}, which differs between its velocities")

    def _link(self, body: Body) -> None:
        """Write a link with its inertia in the link's frame, axes of the file."""
        inertia = body.inertia.moved(self.shifts[body.name].inverse())
        if inertia.is_zero():
            self.lines.append(f"  <link name={quoteattr(body.name)}/>")
            return
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.rotational
        self.lines += [
            f"  <link name={quoteattr(body.name)}>",
            "    <inertial>",
            f'      <origin xyz="{words(inertia.center)}"/>',
            f'      <mass value="{word(inertia.mass)}"/>',
            f'      <inertia ixx="{word(xx)}" ixy="{word(xy)}" ixz="{word(xz)}" '
            f'iyy="{word(yy)}" iyz="{word(yz)}" izz="{word(zz)}"/>',
            "    </inertial>",
            "  </link>",
        ]

    def _joint(self, joint: Joint) -> None:
        """Write a joint; a universal one as two, with a massless link between."""
        placement = self.shifts[joint.parent].inverse() @ joint.placement
        if joint.kind == "universal":
            return self._universal(joint, placement)
        if KINDS[joint.kind].urdf is None:
            raise UnsupportedError(f"URDF has no {joint.kind} joint ({joint.name!r})")
        tag = "drake:joint" if joint.kind == "helical" else "joint"
        if joint.kind in ("helical", "spherical"):
            self.added.append(f"the {joint.kind} joint {joint.name}")
        self.lines += [
            f'  <{tag} name={quoteattr(joint.name)} type="{KINDS[joint.kind].urdf}">',
            f"    <parent link={quoteattr(joint.parent)}/>",
            f"    <child link={quoteattr(joint.child)}/>",
            f"    {origin('origin', placement)}",
        ]
        if KINDS[joint.kind].axes:
            self.lines.append(f'    <axis xyz="{words(joint.axis)}"/>')
        if joint.kind == "helical":
            self.lines.append(f'    <drake:screw_thread_pitch value="{word(2 * math.pi * joint.pitch)}"/>')
        self.lines += limit(joint, self.efforts.get(joint.name)) + dynamics(joint)
        if joint.name in self.mimics:
            other, factor, offset = self.mimics[joint.name]
            numbers = f'multiplier="{word(factor)}" offset="{word(offset)}"'
            self.lines.append(f"    <mimic joint={quoteattr(other)} {numbers}/>")
        self.lines.append(f"  </{tag}>")
        return None

    def _universal(self, joint: Joint, placement: Placement) -> None:
        """Write R(axis, q1) R(axis2, q2) as two revolute joints."""
        middle = f"{joint.name}_cross"
        self.left_out.append(f"joint {joint.name} as one: it is written as {joint.name}_1 and {joint.name}_2")
        self.lines.append(f"  <link name={quoteattr(middle)}/>")
        ends = ((joint.parent, middle, placement, joint.axis), (middle, joint.child, IDENTITY, joint.axis2))
        for i, (parent, child, place, axis) in enumerate(ends):
            half = {
                name: getattr(joint, name)[i : i + 1]
                for name in ("damping", "friction", "armature", "stiffness", "rest")
            }
            limits = replace(joint.limits, **{name: v[i : i + 1] for name, v in vars(joint.limits).items()})
            self.shifts[middle] = IDENTITY
            hinge = replace(joint, name=f"{joint.name}_{i + 1}", kind="revolute", parent=parent, child=child, axis=axis,
                          placement=self.shifts[parent] @ place, limits=limits, **half)  # fmt: skip
            self._joint(hinge)

    def _coupling(self, coupling: Coupling) -> None:
        """Note a coupling of two coordinates as a mimic joint of one of them."""
        names = {joint.name for joint in self.mechanism.joints}
        terms = [(name, factor) for name, factor in coupling.terms if factor]
        if len(terms) == 2 and all(name in names for name, _ in terms):
            for (joint_name, factor), (other, by) in (terms, terms[::-1]):
                if joint_name not in self.mimics:
                    self.mimics[joint_name] = (other, -by / factor, coupling.offset / factor)
                    return
        self._open(f"coupling {coupling.name}")

    def _frame(self, name: str, body: str, placement: Placement) -> None:
        """Write a frame as a link without inertia."""
        self.lines += [
            f"  <link name={quoteattr(name)}/>",
            f'  <joint name={quoteattr(f"{name}_frame")} type="fixed">',
            f"    <parent link={quoteattr(body)}/>",
            f"    <child link={quoteattr(name)}/>",
            f"    {origin('origin', self.shifts[body].inverse() @ placement)}",
            "  </joint>",
        ]

    def _loop(self, loop: Loop) -> None:
        """Write a loop as urdfdom's proposed <constraint>."""
        if LOOPS[loop.kind].urdf is None:
            self._open(f"loop {loop.name} ({loop.kind})")
            return
        self.added.append(f"the loop {loop.name}, by <constraint>")
        place = self.shifts[loop.body].inverse() @ loop.placement
        other = self.shifts[loop.other].inverse() @ loop.other_placement
        second = dict(loop.options).get("axis2")
        self.lines += [
            f'  <constraint name={quoteattr(loop.name)} type="{LOOPS[loop.kind].urdf}">',
            f"    <parent link={quoteattr(loop.body)}/>",
            f"    {origin('parent_origin', place)}",
            f'    <parent_axis xyz="{words(loop.axis)}"/>',
            f"    <child link={quoteattr(loop.other)}/>",
            f"    {origin('child_origin', other)}",
            *([] if second is None else [f'    <child_axis xyz="{words(second)}"/>']),
            "  </constraint>",
        ]

    def _efforts(self) -> None:
        """Find the efforts of motors, which `load` takes from the limit of their joint."""
        m = self.mechanism
        joints = {joint.name: joint for joint in m.joints}
        for motor in m.actuators:
            joint = joints.get(motor.coordinate)
            if joint is None:
                self.left_out.append(f"actuator {motor.name} on {motor.coordinate}, one of several coordinates")
                continue
            effort = joint.limits.effort[0] if joint.limits.effort else self.efforts.get(joint.name)
            if effort is None and math.isfinite(motor.effort):
                self.efforts[joint.name] = effort = motor.effort
                self.added.append(f"the effort of {motor.name} is written as the limit of its joint")
            if motor.effort != (math.inf if effort is None else effort):
                self.left_out.append(f"effort of actuator {motor.name}, {motor.effort:g}: that of its joint is another")

    def _actuator(self, actuator: Actuator) -> None:
        """Write a motor as a transmission, its rotor in Drake's syntax."""
        if all(joint.name != actuator.coordinate for joint in self.mechanism.joints):
            return
        rotor = f'<drake:rotor_inertia value="{word(actuator.rotor_inertia)}"/>' if actuator.rotor_inertia else ""
        if rotor:
            self.added.append(f"the rotor of {actuator.name}")
        self.lines += [
            f"  <transmission name={quoteattr(actuator.name)}>",
            "    <type>transmission_interface/SimpleTransmission</type>",
            f"    <joint name={quoteattr(actuator.coordinate)}/>",
            f"    <actuator name={quoteattr(actuator.name)}>",
            f"      <mechanicalReduction>{word(actuator.gear)}</mechanicalReduction>{rotor}",
            "    </actuator>",
            "  </transmission>",
        ]

    def _spring(self, spring: Spring) -> None:
        """Write a spring between two frames in Drake's syntax."""
        self.added.append(f"the spring {spring.name}")
        tag = "drake:linear_spring_damper"
        self.lines.append(f"  <{tag} name={quoteattr(spring.name)}>")
        written = {frame.name for frame in self.mechanism.frames}
        for side, point, name in (("A", "p_AP", spring.frame), ("B", "p_BQ", spring.other)):
            frame = self.mechanism.frame(name)
            body, place = name, IDENTITY
            if name not in written:
                body, place = frame.body, self.shifts[frame.body].inverse() @ frame.placement
            self.lines.append(f"    <{tag}_body_{side} name={quoteattr(body)}/>")
            self.lines.append(f'    <{tag}_{point} value="{words(place.position)}"/>')
        values = (("free_length", spring.rest), ("stiffness", spring.stiffness), ("damping", spring.damping))
        self.lines += [f'    <{tag}_{name} value="{word(value)}"/>' for name, value in values]
        self.lines.append(f"  </{tag}>")


def _is_root(joint: Joint) -> bool:
    """Say whether a joint is what `load` adds itself."""
    return joint.name == "root_joint" and joint.kind in ("fixed", "free") and joint.placement.is_identity()
