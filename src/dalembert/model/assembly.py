"""From a heap of joints to a tree: what holds each body, and the order in which states are numbered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dalembert.errors import ModelError
from dalembert.model.naming import lookup
from dalembert.model.parts import Body, Joint

ROOT = "root_joint"
"""Name of the joint that holds a body which no other joint carries."""

BASES = ("fixed", "floating", "auto")
ORDERS = ("added", "name")


def rooted(joints: list[Joint], bodies: Mapping[str, Body], ground: str, base: str) -> tuple[list[Joint], bool]:
    """Return the joints with one more for each body that none carries, and whether any body floats."""
    lookup(base, dict.fromkeys(BASES), "base")
    _check_ends(joints, bodies, ground)
    carried = {joint.child for joint in joints}
    roots = [body for name, body in bodies.items() if name not in carried]
    grounded = any(joint.parent == ground for joint in joints)
    if base == "floating" and not roots:
        raise ModelError(
            f"base='floating', but no body is free to float: every body is carried by a joint, and {ground!r} holds "
            f"{next((j.child for j in joints if j.parent == ground), 'none')!r}"
        )
    if base == "fixed" and roots and (len(roots) > 1 or grounded):
        names = ", ".join(repr(body.name) for body in roots[:4]) + (" ..." if len(roots) > 4 else "")
        raise ModelError(
            f"{len(roots)} bodies are carried by no joint: {names}; give each a joint (a 'fixed' or 'free' one to "
            f"{ground!r}, or to the body it belongs to), or let them float with base='floating'",
            roots[-1].source,
        )
    added = [_root(body, ground, base, len(roots) > 1) for body in roots]
    free = any(joint.kind == "free" and joint.parent == ground for joint in [*added, *joints])
    return added + joints, free


def _root(body: Body, ground: str, base: str, several: bool) -> Joint:
    floats = base == "floating" or (base == "auto" and body.inertia.mass != 0)
    name = f"{body.name}_{ROOT}" if several else ROOT
    return Joint(name, "free" if floats else "fixed", ground, body.name, source=body.source)


def _check_ends(joints: Sequence[Joint], bodies: Mapping[str, Body], ground: str) -> None:
    """Refuse joints whose bodies do not exist, and two joints that carry one body."""
    ends = {ground: None} | dict.fromkeys(bodies)
    carrier: dict[str, Joint] = {}
    for joint in joints:
        lookup(joint.parent, ends, f"body (parent of joint {joint.name!r})", joint.source)
        if joint.child == ground:
            raise ModelError(
                f"joint {joint.name!r} carries the ground {ground!r}: swap its parent and child", joint.source
            )
        lookup(joint.child, ends, f"body (child of joint {joint.name!r})", joint.source)
        other = carrier.setdefault(joint.child, joint)
        if other is not joint:
            raise ModelError(
                f"two joints carry the body {joint.child!r}: {other.name!r} and {joint.name!r}; "
                "a tree has one, the other closes a loop: give it as a loop (Builder.loop)",
                joint.source,
            )


def in_order(joints: Sequence[Joint], bodies: Mapping[str, Body], ground: str, order: str) -> list[Joint]:
    """Return the joints depth first, children as added or sorted by joint name; a cycle is refused by its names."""
    lookup(order, dict.fromkeys(ORDERS), "order")
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    if order == "name":
        for siblings in children.values():
            siblings.sort(key=lambda joint: joint.name)
    ordered: list[Joint] = []
    stack = children.get(ground, [])[::-1]
    while stack:
        joint = stack.pop()
        ordered.append(joint)
        stack += children.get(joint.child, [])[::-1]
    if len(ordered) < len(joints):
        _refuse_cycle(joints, {joint.child for joint in ordered})
    return ordered


def _refuse_cycle(joints: Sequence[Joint], reached: set[str]) -> None:
    """Name the bodies of a cycle: each carries the next, and none is held by the ground."""
    carrier = {joint.child: joint for joint in joints if joint.child not in reached}
    name = next(iter(carrier))
    visited: dict[str, int] = {}
    while name not in visited:
        visited[name] = len(visited)
        name = carrier[name].parent
    cycle = list(visited)[visited[name] :]
    shown = " <- ".join(repr(each) for each in (*cycle[:6], *(["..."] if len(cycle) > 6 else []), cycle[0]))
    raise ModelError(
        f"joints form a cycle that nothing holds: {shown}; one of them must close a loop (Builder.loop) instead",
        carrier[name].source,
    )
