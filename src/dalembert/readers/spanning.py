"""A spanning tree through a graph of joints: which joints carry a body, which close a loop.

Joints with little freedom carry bodies, those with much close loops: a ball joint in a loop is three equations, a
hinge five. Among equals those that need not be turned around come first, then those that stand first in the file. So
this is Prim's minimal spanning tree; a body that no joint carries is attached by the reverse of one that it carries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from dalembert.errors import UnsupportedError
from dalembert.model.constraints.all_rows import LOOP_OF_JOINT
from dalembert.model.joints import KINDS as JOINT_KINDS
from dalembert.model.mechanism.parts import Joint, Limits, Loop


@dataclass(frozen=True)
class Spanning:
    """Joints of the tree, parent before child; joints that close loops; bodies that begin a tree of their own."""

    tree: tuple[Joint, ...]
    loops: tuple[Joint, ...]
    roots: tuple[str, ...]
    reversed: tuple[str, ...]


def span(
    bodies: Sequence[str],
    joints: Sequence[Joint],
    ground: str,
    first: Sequence[str] = (),
    closing: Collection[str] = (),
) -> Spanning:
    """Return a spanning forest; cost O((bodies + joints) log joints).

    `first` are bodies that begin trees before others do, `closing` joints that carry a body only where no other does.
    """
    costs = [(joint.name in closing, JOINT_KINDS[joint.kind].nv) for joint in joints]
    forward: dict[str, list[int]] = {name: [] for name in (ground, *bodies)}
    backward: dict[str, list[int]] = {name: [] for name in (ground, *bodies)}
    for i, joint in enumerate(joints):
        forward[joint.parent].append(i)
        backward[joint.child].append(i)
    reached, used, tree, roots, turned = {ground}, set(), [], [], []
    heads = iter([*first, *(name for name in bodies if not backward[name]), *bodies])
    start: str | None = ground
    while start is not None:
        frontier: list[tuple[tuple[bool, int], int, int]] = []
        _offer(frontier, start, costs, forward, backward)
        while frontier:
            _, direction, i = heappop(frontier)
            joint = joints[i] if direction == 0 else reverse(joints[i])
            if joint.child in reached:
                continue
            reached.add(joint.child)
            used.add(i)
            tree.append(joint)
            if direction:
                turned.append(joint.name)
            _offer(frontier, joint.child, costs, forward, backward)
        start = next((name for name in heads if name not in reached), None)
        if start is not None:
            reached.add(start)
            roots.append(start)
    loops = tuple(joint for i, joint in enumerate(joints) if i not in used)
    return Spanning(tuple(tree), loops, tuple(roots), tuple(turned))


def _offer(
    frontier: list[tuple[tuple[bool, int], int, int]],
    body: str,
    costs: Sequence[tuple[bool, int]],
    forward: dict[str, list[int]],
    backward: dict[str, list[int]],
) -> None:
    """Offer the joints of a body that was reached: freedom, whether turned around, place in the file."""
    for i in forward[body]:
        heappush(frontier, (costs[i], 0, i))
    for i in backward[body]:
        heappush(frontier, (costs[i], 1, i))


def reverse(joint: Joint) -> Joint:
    """Return the same joint with parent and child exchanged: X_CP = X_CJ motion(q)^-1 X_PJ^-1.

    One coordinate keeps its value, about the opposite axis; a universal joint's two change places.
    """
    swapped = replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        placement=joint.child_placement,
        child_placement=joint.placement,
        axis=_opposite(joint.axis),
    )
    if joint.kind != "universal":
        return swapped
    pairs = {
        name: tuple(reversed(getattr(joint, name))) for name in ("damping", "friction", "armature", "stiffness", "rest")
    }
    limits = Limits(*(tuple(reversed(values)) for values in vars(joint.limits).values()))
    return replace(swapped, axis=_opposite(joint.axis2), axis2=_opposite(joint.axis), limits=limits, **pairs)


def _opposite(axis: tuple[float, float, float]) -> tuple[float, float, float]:
    return 0.0 - axis[0], 0.0 - axis[1], 0.0 - axis[2]


def as_loop(joint: Joint) -> Loop:
    """Return a joint as the constraint that closes a loop."""
    if joint.kind not in LOOP_OF_JOINT:
        raise UnsupportedError(
            f"{joint.source}: a {joint.kind} joint cannot close a loop; write another joint of the loop behind it"
        )
    options = (("axis2", joint.axis2),) if joint.kind == "universal" else ()
    return Loop(
        joint.name,
        LOOP_OF_JOINT[joint.kind],
        joint.parent,
        joint.child,
        joint.placement,
        joint.child_placement,
        joint.axis,
        options,
        joint.source,
    )
