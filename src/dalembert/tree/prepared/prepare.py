"""Preparation of a mechanism: welded bodies merged, frames chosen, masses regrouped; the cheapest way counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.memory import remembered
from dalembert.model.joints import KINDS
from dalembert.model.joints.rotations import plane
from dalembert.model.limits import EXACT_SUM
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.tree.algebra.count import arithmetic, count, inputs
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.prepared.configuration import Posed, pose_tree
from dalembert.tree.prepared.frames import choose, decompose, idle, turn
from dalembert.tree.prepared.link import (
    FAR,
    TURNING,
    Link,
    TendonData,
    Tree,
    TreeBody,
    matrix,
    moments,
    moved,
    rigid,
    screw_placement,
)

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint

# ----------------------------------------------------------------------------------------------------------------------
# Base parameters: mass that lies on a joint's axis is counted with the link before the joint.
#
# A point on a hinge's axis belongs to both links: it moves with either. So any distribution of mass along the axis,
# with its three moments m, h_z and E_zz, may be handed from a link to its parent, negative mass included; the link then
# has seven parameters instead of ten. No force, energy, momentum or pivot of the mass matrix changes. This is the
# regrouping of Gautier & Khalil 1990 ("Direct calculation of minimum set of inertial parameters of serial robots", IEEE
# Trans. Robotics and Automation 6(3)), whose YY, MZ and M these moments are. For other joints:
#
# - slider: both links turn alike, so the second moments about the centre of mass go to the parent;
# - ball: the mass goes to the parent, as a point in the ball's centre;
# - helical, planar, free: nothing.


def regroup(tree: Tree) -> Tree:
    """Return the tree with its masses handed toward the ground."""
    inertias = [link.inertia for link in tree.links]
    handed = list(tree.handed)
    still = tree.still
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        inertias[i], handed[i] = _shares(link.kind, inertias[i])
        passed = moved(handed[i], at_zero(link))
        if link.parent < 0:
            still = still.add(passed)
        else:
            inertias[link.parent] = _sum(inertias[link.parent], passed)
    links = tuple(replace(link, inertia=inertia) for link, inertia in zip(tree.links, inertias, strict=True))
    return replace(tree, links=links, still=still, handed=tuple(handed))


def _shares(kind: str, inertia: Rigid) -> tuple[Rigid, Rigid]:
    """Return what stays and what the parent gets, both in the link's frame."""
    m, h, E = inertia
    if kind in ("revolute", "continuous"):
        return (
            Rigid(0.0, (h[0], h[1], 0.0), (*E[:5], 0.0)),
            Rigid(m, (0.0, 0.0, h[2]), (0.0, 0.0, 0.0, 0.0, 0.0, E[5])),
        )
    if kind == "prismatic" and m != 0.0:
        _, first, second = matrix(inertia)
        point = rigid(m, first, np.outer(first, first) / m)
        return point, rigid(0.0, np.zeros(3), second - np.outer(first, first) / m)
    if kind == "prismatic" and not any(h):
        return Rigid(), inertia
    if kind == "spherical":
        return Rigid(0.0, h, E), Rigid(m)
    return inertia, Rigid()


def _sum(one: Rigid, other: Rigid) -> Rigid:
    m, h, E = matrix(one.add(other))
    return rigid(m, h, E)


def at_zero(link: Link) -> Placement:
    """Return where the link's frame stands in its parent's when the joint is at zero."""
    place = IDENTITY
    for screw in link.steps:
        place = place @ screw_placement(screw)
    angle = Placement.from_rpy((0.0, 0.0, link.angle), (0.0, 0.0, link.slide))
    return place @ angle


# ----------------------------------------------------------------------------------------------------------------------
# From a mechanism to a tree that is cheap to compute with: welded bodies merged, frames chosen, masses regrouped.
#
# Nothing here changes a result, only the number of operations:
#
# - a body on a fixed joint is part of the body that carries it, down to the ground;
# - each link gets a frame in which transforms are few plane rotations (`frames.py`);
# - mass that lies on a joint's axis is counted with the link before it (`prepare.py`).
#
# Whether the last two pay is decided by counting (`prepare`).


@dataclass
class _Raw:
    """A link while it is being prepared: `K` places its joint on the parent's frame; z is the joint's axis."""

    joint: Joint
    kind: str
    parent: int
    q: int
    v: int
    K: Placement
    inertia: Rigid
    passive: dict[str, tuple[float, ...]]


FRAMES = ("own", "parent", "file")
"""Chosen, with offsets along the axes left to a joint's own screw or to those before it; or those of the file."""


def prepare(mechanism: Mechanism, *, frames: str = "own", regrouped: bool = True) -> Tree:
    """Return the mechanism's moving links; `frames` is one of `FRAMES`, `regrouped` moves masses to parents."""
    raws, places, bodies = _collect(mechanism)
    links: list[Link] = []
    turns = [IDENTITY] * len(raws)
    for i, raw in enumerate(raws):
        K = raw.K if raw.parent < 0 else turns[raw.parent].inverse() @ raw.K
        carried = [other.K for other in raws if other.parent == i]
        split = decompose(K.rotation, K.position)
        steps, last = split.steps(), split.last
        if raw.kind in TURNING:
            choice = (0.0, 0.0) if frames == "file" else _choice(raw, last, carried, frames)
            turns[i] = Placement.from_rpy((0.0, 0.0, choice[0]), (0.0, 0.0, choice[1]))
            last = (_small(last[0] + choice[0]), _small(last[1] + choice[1], choice[1]))
        else:
            steps, last = (*steps, turn("z", *last)), (0.0, 0.0)
            steps = tuple(screw for screw in steps if not idle(screw))
        links.append(_link(raw, steps, last, moved(raw.inertia, turns[i].inverse())))
    where = {name: (i, _turned_place(turns, i, placement)) for name, (i, placement) in places.items()}
    springs = mechanism.springs if mechanism.passive else ()
    tree = Tree(
        mechanism.name,
        tuple(links),
        tuple(float(g) for g in mechanism.gravity),  # type: ignore[arg-type]
        Rigid(),
        where,
        mechanism.nq,
        mechanism.nv,
        tuple((s.frame, s.other, float(s.stiffness), float(s.rest), float(s.damping)) for s in springs),
        _lifts(mechanism),
        mechanism.coordinates,
        tendon_data(mechanism),
        tuple(_body(mechanism, k, i, _turned_place(turns, i, place)) for k, (i, place) in enumerate(bodies)),
        (Rigid(),) * len(links),
    )
    return regroup(tree) if regrouped else tree


def _turned_place(turns: list[Placement], i: int, place: Placement) -> Placement:
    """Return a place on link i, or on the ground, in the link's frame as it was chosen."""
    return place if i < 0 else turns[i].inverse() @ place


def _body(mechanism: Mechanism, k: int, link: int, place: Placement) -> TreeBody:
    """Return body k as a part of its link."""
    body, joint = mechanism.bodies[k], mechanism.joints[k]
    inertia, R = body.inertia, place.rotation
    turned = R @ inertia.rotational @ R.T
    E = rigid(0.0, np.zeros(3), 0.5 * np.trace(turned) * np.eye(3) - turned).E
    x, y, z = (float(c) for c in R @ inertia.center + place.position)
    joint_place = place @ joint.child_placement
    return TreeBody(link, mechanism.parents[k], place, joint_place, inertia.mass, (x, y, z), E)


def tendon_data(mechanism: Mechanism) -> tuple[TendonData, ...]:
    """Return the springs along sums of coordinates, where passive forces act."""
    return tuple(
        (
            tuple((mechanism.index_q(n).start, mechanism.index_v(n).start, factor) for n, factor in tendon.terms),
            tendon.stiffness,
            tendon.rest,
            tendon.damping,
        )
        for tendon in mechanism.tendons
        if mechanism.passive
    )


def _lifts(mechanism: Mechanism) -> tuple[tuple[str, float, tuple[float, ...]], ...]:
    """Return the bodies whose weight is held up."""
    held = [body for body in mechanism.bodies if body.compensation]
    return tuple((b.name, b.compensation * b.inertia.mass, tuple(map(float, b.inertia.center))) for b in held)


def _choice(raw: _Raw, own: tuple[float, float], carried: list[Placement], slides: str) -> tuple[float, float]:
    """Return the turn and slide of a link's frame."""
    h = raw.inertia.h
    direction = float(np.arctan2(h[1], h[0])) if h[0] or h[1] else None
    return choose(own, carried, direction, slides)


def _small(x: float, scale: float = 1.0) -> float:
    return 0.0 if abs(x) <= EXACT_SUM * abs(scale) else float(x)


def _link(raw: _Raw, steps: tuple[Any, ...], last: tuple[float, float], inertia: Rigid) -> Link:
    joint = raw.joint
    return Link(
        joint.child, joint.name, raw.kind, raw.parent, raw.q, raw.v, steps, last[0], last[1], joint.pitch, inertia,
        **raw.passive, bounded=_bounded(joint),
    )  # fmt: skip


def _bounded(joint: Joint) -> bool:
    """Say whether a joint's limits keep its coordinates small."""
    lower, upper = joint.limits.lower, joint.limits.upper
    return bool(lower and upper) and max(abs(x) for x in (*lower, *upper)) <= FAR


def _collect(
    mechanism: Mechanism,
) -> tuple[list[_Raw], dict[str, tuple[int, Placement]], list[tuple[int, Placement]]]:
    """Return the links with welded bodies merged, where every named frame is, and where every body is."""
    raws: list[_Raw] = []
    body_places: dict[str, tuple[int, Placement]] = {mechanism.ground: (-1, IDENTITY)}
    manifold = mechanism.manifold
    for i, (body, joint) in enumerate(zip(mechanism.bodies, mechanism.joints, strict=True)):
        carrier, place = body_places[joint.parent]
        K = place @ joint.placement
        align = IDENTITY
        for part in _parts(mechanism, joint, int(manifold.q_start[i]), int(manifold.v_start[i])):
            kind, axis, q, v, passive = part
            align = _aligned(kind, axis)
            raws.append(_Raw(joint, kind, carrier, q, v, K @ align, Rigid(), passive))
            carrier, K = len(raws) - 1, align.inverse()
        carried_place = K @ joint.child_placement.inverse()
        if carrier >= 0:
            raws[carrier].inertia = raws[carrier].inertia.add(moved(moments(body.inertia), carried_place))
        body_places[body.name] = (carrier, carried_place)
    names = {mechanism.ground, *mechanism._frames}
    places = {}
    for name in names:
        frame = mechanism.frame(name)
        carrier, place = body_places[frame.body]
        places[name] = (carrier, place @ frame.placement)
    return raws, places, [body_places[body.name] for body in mechanism.bodies]


def _parts(mechanism: Mechanism, joint: Joint, q: int, v: int) -> list[tuple[str, Any, int, int, dict[str, Any]]]:
    """Return (kind, axis, q, v, numbers per velocity) of the elementary joints that a joint is made of."""
    on = 1.0 if mechanism.passive else 0.0
    numbers = {
        "armature": mechanism.armature,
        "damping": on * mechanism.damping,
        "stiffness": on * mechanism.stiffness,
        "rest": mechanism.rest,
    }

    def some(start: int, number: int) -> dict[str, Any]:
        return {name: tuple(float(x) for x in values[start : start + number]) for name, values in numbers.items()}

    if joint.kind == "fixed":
        return []
    if joint.kind == "universal":
        first = ("revolute", joint.axis, q, v, some(v, 1))
        return [first, ("revolute", joint.axis2, q + 1, v + 1, some(v + 1, 1))]
    return [(joint.kind, joint.axis, q, v, some(v, KINDS[joint.kind].nv))]


def _aligned(kind: str, axis: Any) -> Placement:
    """Return the frame whose z is the joint's axis (for a plane: its normal), in the joint's frame."""
    if kind in ("spherical", "free"):
        return IDENTITY
    e1, e2 = plane(axis)
    return Placement(np.column_stack([e1, e2, np.asarray(axis, dtype=float)]))


# ----------------------------------------------------------------------------------------------------------------------
# The preparation of a mechanism, and the algorithm, with the fewest operations: decided by counting.


Algorithm = Callable[[Tree, list[Posed], list[Any], list[Any], list[Any]], Any]
"""algorithm(tree, posed, q, v, a) -> nested lists of scalars."""


@remembered(1)
def candidates(mechanism: Mechanism) -> tuple[Tree, ...]:
    """Return the mechanism prepared in every way that wins somewhere; small trees like the file's frames and masses."""
    return (
        *(prepare(mechanism, frames=choice) for choice in FRAMES),
        prepare(mechanism, frames="file", regrouped=False),
    )


class CountedTree:
    """A tree whose configuration is written once in symbols that count, for all algorithms that are tried on it."""

    def __init__(self, tree: Tree) -> None:
        self.tree, self._table, self._lock = tree, dict[Any, Any](), Lock()
        self._inputs = [inputs(number, self._table) for number in (tree.nq, tree.nv, tree.nv)]
        self._posed = pose_tree(tree, self._inputs[0])
        self._own = len(self._table)

    def kinds(self, algorithm: Algorithm) -> Counter[str]:
        """Return how many operations of each kind an algorithm takes: "mul", "add", "sub", "div", "sin", ..."""
        with self._lock:
            kinds = count(algorithm(self.tree, self._posed, *self._inputs))
            while len(self._table) > self._own:  # the next algorithm finds the configuration alone
                self._table.popitem()
        return kinds


def operations(tree: Tree, algorithm: Algorithm) -> int:
    """Return the number of products, sums and quotients of an algorithm on a tree."""
    return arithmetic(kinds(tree, algorithm))


def kinds(tree: Tree, algorithm: Algorithm) -> Counter[str]:
    """Return how many operations of each kind an algorithm takes on a tree: "mul", "add", "sub", "div", "sin", ..."""
    return CountedTree(tree).kinds(algorithm)


@remembered(1)
def counted_candidates(mechanism: Mechanism) -> tuple[CountedTree, ...]:
    """Return all candidates, ready to be counted."""
    return tuple(map(CountedTree, candidates(mechanism)))


def cheapest(mechanism: Mechanism, *algorithms: Algorithm) -> tuple[Tree, Algorithm]:
    """Return the tree and the algorithm with the fewest operations; the first of equals.

    Where the mechanism has symbols in the place of numbers, so has the tree.
    """
    if mechanism.parameter_column is None:
        trees = counted_candidates(mechanism)
    else:
        trees = tuple(CountedTree(prepare(mechanism, frames=choice, regrouped=False)) for choice in FRAMES)
    pairs = [(counted, algorithm) for algorithm in algorithms for counted in trees]
    counted, algorithm = min(pairs, key=lambda pair: arithmetic(pair[0].kinds(pair[1])))
    tree = counted.tree
    if mechanism.parameter_column is not None:
        from dalembert.tree.prepared.symbolic import with_symbols

        tree = with_symbols(mechanism, tree)  # type: ignore[arg-type]
    return tree, algorithm
