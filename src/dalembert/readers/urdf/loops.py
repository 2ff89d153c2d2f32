"""Extensions of URDF by other tools: loops, springs.

| element | from | becomes |
|---|---|---|
| `<constraint>` with parent_origin, child_origin | urdfdom, pull request 264 | a loop of the joint's kind |
| `<loop_joint>` with link1, link2, axis | Drake before 2019 | a loop of the joint's kind |
| `<drake:ball_constraint>` | Drake | a loop "point" |
| `<drake:weld_constraint>` | Drake | a loop "weld" |
| `<drake:linear_spring_damper>` | Drake | a spring between two frames |
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalembert.model.mechanism.parts import Frame, Loop, Spring
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.draft import Draft
from dalembert.readers.xml_tree import (
    XmlElement,
    number_attribute,
    origin,
    placement_of,
    shortened,
    unit_axis,
    vector_attribute,
)
from dalembert.types import Array

NEARLY_OPPOSITE = -0.9
"""Below this cosine a half turn is made first: the formula divides by 1 + cosine."""

LOOP_KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "cylindrical": "cylindrical",
    "universal": "universal",
    "planar": "planar",
    "fixed": "weld",
    "weld": "weld",
    "ball": "point",
    "spherical": "point",
    "point": "point",
}
"""Types of joints, as loops."""


def loop_kind(element: XmlElement) -> str:
    """Return the kind of loop that an element's type asks for."""
    given = element.attribute("type")
    if given not in LOOP_KINDS:
        raise element.error(f"a loop of type {shortened(given)!r} is not known; known are {', '.join(LOOP_KINDS)}")
    return LOOP_KINDS[given]


def _constraint(element: XmlElement, draft: Draft) -> None:
    """Read urdfdom's proposal; where the child has an axis of its own, its frame is turned so that the two meet."""
    kind = loop_kind(element)
    known = ("parent", "child", "parent_origin", "child_origin", "parent_axis", "child_axis", "origin", "axis")
    draft.leave_out_unknown(element, known)
    parent, child = element.required("parent").attribute("link"), element.required("child").attribute("link")
    own = origin(element, "parent_origin" if element.first("parent_origin") else "origin")
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
    draft.loops.append(Loop(element.attribute("name"), kind, parent, child, own, other, axis, options, element.source))


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
    one, two, axis = element.required("link1"), element.required("link2"), element.only("axis")
    direction = (1.0, 0.0, 0.0) if axis is None else unit_axis(axis, vector_attribute(axis, "xyz", (1.0, 0.0, 0.0)))
    name, kind = element.attribute("name"), loop_kind(element)
    bodies = one.attribute("link"), two.attribute("link")
    placements = placement_of(one), placement_of(two)
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
        short: number_attribute(element.required(f"{element.tag}_{word}"), "value")
        for short, word in (("stiffness", "stiffness"), ("rest", "free_length"), ("damping", "damping"))
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
