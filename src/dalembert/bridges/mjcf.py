"""The writer of MJCF: the tree as nested bodies, loops and couplings as equalities, what joints carry.

A body of MuJoCo stands in its parent where the joint's coordinates are zero: with X the placement of the joint on the
parent and C its placement on the child, at X C^-1; the joint's anchor and axis are C's, in the child. Kinds that MuJoCo
lacks are chains of its own: a cardan joint is two hinges, a plane is two slides and a hinge, whose velocities are along
the parent's axes instead of the child's. Equalities are held softly there and exactly here.

What is left out is named: reading MJCF, XML reference of MuJoCo 3 and later, "equality", "joint", "inertial".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from dalembert.errors import UnsupportedError, warn_user
from dalembert.model.constraints.constraint import Pair
from dalembert.model.constraints.pairs import Point, Revolute, Weld
from dalembert.model.joints.rotations import plane
from dalembert.model.mechanism.placement import IDENTITY, Placement

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint

LEVER = 0.5
"""Distance of the two points that hold a hinge which closes a loop, as a part of the mechanism's reach: MuJoCo has no
such equality, and two points on the axis have the same rows, one of them twice."""

WORLD = "world"
"""The name of the ground in MuJoCo, which no body may have."""


def to_mjcf(mechanism: Mechanism, strict: bool = False) -> str:
    """Return a mechanism as MJCF; what it cannot say is named in a warning, or refused."""
    text = MjcfText(mechanism)
    written = text.write()
    if text.left_out:
        message = f"{mechanism.name!r} as MJCF: cannot be said: {'; '.join(text.left_out)}"
        if strict:
            raise UnsupportedError(message)
        warn_user(message)
    return written


def _numbers(values: Any) -> str:
    return " ".join(repr(float(x) + 0.0) for x in np.atleast_1d(values))


def _attributes(**words: Any) -> str:
    texts = {name: value if isinstance(value, str) else _numbers(value) for name, value in words.items()}
    return "".join(f" {name.rstrip('_')}={quoteattr(text)}" for name, text in texts.items())


def _quaternion(R: Any) -> np.ndarray:
    """Return [w x y z] of a rotation, from its largest component (Shepperd 1978)."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(np.asarray(R)).as_quat()
    return np.array([w, x, y, z])


def _place(placement: Placement) -> dict[str, Any]:
    words: dict[str, Any] = {}
    if np.any(placement.position):
        words["pos"] = placement.position
    if not np.array_equal(placement.rotation, np.eye(3)):
        words["quat"] = _quaternion(placement.rotation)
    return words


@dataclass
class MjcfText:
    """Lines of an MJCF file in the making; `left_out` is what it cannot say."""

    mechanism: Mechanism
    left_out: list[str] = field(default_factory=list)
    sites: dict[str, list[str]] = field(default_factory=dict)
    equalities: list[str] = field(default_factory=list)

    def write(self) -> str:
        """Return the whole file."""
        m = self.mechanism
        self._closures()
        for kind, parts in (("tendon", m.tendons), ("spring between frames", m.springs)):
            self.left_out += [f"{kind} {part.name!r}" for part in parts]
        self.left_out += [f"weight of {body.name!r} that is held up" for body in m.bodies if body.compensation]
        lines = [f"<mujoco model={quoteattr(m.name)}>", '  <compiler angle="radian" autolimits="true"/>']
        lines.append(f"  <option{_attributes(gravity=m.gravity)}/>")
        lines += [
            "  <worldbody>",
            *(f"    {line}" for line in self.sites.get(m.ground, [])),
            *self._children(m.ground, 2),
            "  </worldbody>",
        ]
        if self.equalities:
            lines += ["  <equality>", *self.equalities, "  </equality>"]
        lines += self._actuators()
        return "\n".join([*lines, "</mujoco>", ""])

    def _children(self, parent: str, depth: int) -> list[str]:
        """Return the bodies on a body, with all that is on them."""
        m, lines = self.mechanism, []
        for body, joint in zip(m.bodies, m.joints, strict=True):
            if joint.parent != parent:
                continue
            indent = "  " * depth
            place = IDENTITY if joint.kind == "free" else joint.placement @ joint.child_placement.inverse()
            name = f"{body.name}#body" if body.name == WORLD else body.name
            lines.append(f"{indent}<body{_attributes(name=name, **_place(place))}>")
            lines += [f"{indent}  {line}" for line in (*self._joint(joint), *self._inertial(body.inertia))]
            lines += [f"{indent}  {line}" for line in self.sites.get(body.name, [])]
            lines += [*self._children(body.name, depth + 1), f"{indent}</body>"]
        return lines

    def _inertial(self, inertia: Any) -> list[str]:
        """Return mass and moments about the centre; nothing for a body that has neither."""
        I = inertia.rotational  # noqa: E741 - the letter of the field
        if not inertia.mass and not np.any(I):
            return []
        full = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        return [f"<inertial{_attributes(pos=inertia.center, mass=inertia.mass, fullinertia=full)}/>"]

    def _joint(self, joint: Joint) -> list[str]:
        """Return the joint, or the chain of joints that moves like it."""
        C = joint.child_placement
        axis = C.rotation @ np.asarray(joint.axis)
        anchor = {"pos": C.position} if np.any(C.position) else {}
        if joint.kind == "fixed":
            return []
        if joint.kind == "free":
            if np.any(C.position) or not np.array_equal(C.rotation, np.eye(3)) or joint.placement != IDENTITY:
                self.left_out.append(f"placements of the free joint {joint.name!r}")
            if any(joint.armature) or any(joint.damping) or any(joint.friction):
                return [f"<joint{_attributes(name=joint.name, type='free', **self._passive(joint, 0))}/>"]
            return [f"<freejoint{_attributes(name=joint.name)}/>"]
        if joint.kind == "spherical":
            if not np.array_equal(C.rotation, np.eye(3)):
                self.left_out.append(f"axes of {joint.name!r} that are not its body's (its velocities are turned)")
            return [f"<joint{_attributes(name=joint.name, type='ball', **anchor, **self._passive(joint, 0))}/>"]
        if joint.kind == "helical":
            self.left_out.append(f"screw {joint.name!r}")
            return []
        chains = {
            "revolute": [("hinge", axis, "")],
            "continuous": [("hinge", axis, "")],
            "prismatic": [("slide", axis, "")],
            "universal": [("hinge", axis, ".1"), ("hinge", C.rotation @ np.asarray(joint.axis2), ".2")],
        }
        if joint.kind == "planar":
            e1, e2 = (C.rotation @ np.array(e) for e in plane(joint.axis))
            chains["planar"] = [("slide", e1, ".x"), ("slide", e2, ".y"), ("hinge", axis, ".wz")]
        if joint.kind not in chains:
            self.left_out.append(f"{joint.kind} joint {joint.name!r}")
        lines = []
        for place, (kind, direction, suffix) in enumerate(chains.get(joint.kind, ())):
            words = {
                "name": joint.name + suffix,
                "type": kind,
                "axis": direction,
                **anchor,
                **self._passive(joint, place),
            }
            if joint.kind in ("revolute", "prismatic") and (joint.limits.lower or joint.limits.upper):
                ends = [
                    side[0] if side else edge
                    for side, edge in ((joint.limits.lower, -1e10), (joint.limits.upper, 1e10))
                ]
                words["range"] = np.clip(ends, -1e10, 1e10)
            lines.append(f"<joint{_attributes(**words)}/>")
        return lines

    def _passive(self, joint: Joint, place: int) -> dict[str, Any]:
        """Return armature, damping, dry friction and spring of one velocity of a joint."""
        words: dict[str, Any] = {}
        names = {"armature": "armature", "damping": "damping", "frictionloss": "friction", "stiffness": "stiffness"}
        for attribute, name in names.items():
            values = getattr(joint, name)
            if (
                values
                and values[min(place, len(values) - 1)]
                and (self.mechanism.passive or name in ("armature", "friction"))
            ):
                words[attribute] = values[min(place, len(values) - 1)]
        if "stiffness" in words and joint.rest and joint.kind in ("revolute", "prismatic"):
            words["springref"] = joint.rest[0]
        return words

    def _closures(self) -> None:
        """Write loops, constraints and couplings as equalities between sites and between joints."""
        m = self.mechanism
        for loop in m.loops:
            self._pair(loop.name, loop.kind, (loop.body, loop.placement), (loop.other, loop.other_placement), loop.axis)
        kinds = {Point: "point", Weld: "weld", Revolute: "revolute"}
        for constraint in m.constraints:
            kind = kinds.get(type(constraint))
            if kind is None or not isinstance(constraint, Pair) or constraint.held:
                self.left_out.append(f"constraint {constraint.label!r} ({constraint.kind})")
                continue
            ends = []
            for name, placement in ((constraint.frame, constraint.placement), (constraint.other, constraint.at)):
                frame = m.frame(name) if name is not None else None
                body, at = (m.ground, IDENTITY) if frame is None else (frame.body, frame.placement)
                ends.append((body, at @ (placement or IDENTITY)))
            self._pair(constraint.label, kind, ends[0], ends[1], getattr(constraint, "axis", None))
        for coupling in m.couplings:
            self._coupling(coupling)

    def _site(self, label: str, body: str, placement: Placement) -> str:
        self.sites.setdefault(body, []).append(f"<site{_attributes(name=label, **_place(placement))}/>")
        return label

    def _pair(self, name: str, kind: str, one: Any, two: Any, axis: Any) -> None:
        if kind in ("point", "weld"):
            ends = [self._site(f"{name}#{k}", *end) for k, end in enumerate((one, two))]
            tag = {"point": "connect", "weld": "weld"}[kind]
            self.equalities.append(f"    <{tag}{_attributes(name=name, site1=ends[0], site2=ends[1])}/>")
            return
        if kind != "revolute":
            self.left_out.append(f"loop {name!r} ({kind})")
            return
        lever = LEVER * (self.mechanism.reach or 1.0) * np.asarray(axis, dtype=float)
        other = one[1].rotation @ np.asarray(axis)
        for letter, d in (("a", 0.0), ("b", 1.0)):
            first = (one[0], one[1] @ Placement(position=d * lever))
            second = (two[0], two[1] @ Placement(position=d * lever))
            self._pair(f"{name}#{letter}", "point", first, second, other)

    def _coupling(self, coupling: Any) -> None:
        """Write c1 x + c2 y = offset as x = offset/c1 - c2/c1 y."""
        joints = [self.mechanism._joint_index.get(name) for name, _ in coupling.terms]
        if len(coupling.terms) != 2 or None in joints:
            self.left_out.append(f"coupling {coupling.name!r}")
            return
        (x, c1), (y, c2) = coupling.terms
        words = {"name": coupling.name, "joint1": x, "joint2": y, "polycoef": [coupling.offset / c1, -c2 / c1, 0, 0, 0]}
        self.equalities.append(f"    <joint{_attributes(**words)}/>")

    def _actuators(self) -> list[str]:
        lines = []
        for actuator in self.mechanism.actuators:
            if actuator.coordinate not in self.mechanism._joint_index:
                self.left_out.append(f"motor {actuator.name!r}")
                continue
            words: dict[str, Any] = {"name": actuator.name, "joint": actuator.coordinate, "gear": actuator.gear}
            if np.isfinite(actuator.effort):
                words["ctrlrange"] = [
                    -actuator.effort / abs(actuator.gear or 1),
                    actuator.effort / abs(actuator.gear or 1),
                ]
            lines.append(f"    <motor{_attributes(**words)}/>")
        return ["  <actuator>", *lines, "  </actuator>"] if lines else []
