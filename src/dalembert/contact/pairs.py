"""Which shapes may touch: parents and children, rules of files, groups, and what is asked for by name.

Two shapes of a mechanism are a pair unless
    they are on one body, or on bodies that fixed joints hold together,
    a joint connects their bodies (over fixed joints, too), and neither is the ground itself,
    a rule of the file leaves their bodies out (SRDF <disable_collisions>, MJCF <exclude>),
    neither group has a bit in the mask of the other (MJCF contype, conaffinity).
A pair that is named touches whatever of these it meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.errors import ModelError
from dalembert.names import lookup

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import CollisionShape

DEFAULT_FRICTION = 1.0
"""Coulomb's coefficient where a file says nothing: MuJoCo's."""


@dataclass(frozen=True)
class ShapePair:
    """Two shapes by their numbers, with their law of contact; `named` if somebody asked for it."""

    one: int
    other: int
    friction: float
    restitution: float
    named: bool = False


class Neighbours:
    """Bodies that fixed joints hold together, and which of these groups joints connect."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.ground = mechanism.ground
        self.root: dict[str, str] = {mechanism.ground: mechanism.ground}
        self.joined: set[tuple[str, str]] = set()
        for joint in mechanism.joints:  # parents come before children
            self.root[joint.child] = self.root[joint.parent] if joint.kind == "fixed" else joint.child
        for joint in mechanism.joints:
            if joint.kind != "fixed":
                a, b = self.root[joint.parent], self.root[joint.child]
                self.joined |= {(a, b), (b, a)}

    def together(self, one: str, other: str) -> bool:
        """Return whether two bodies never move relative to each other."""
        return self.root[one] == self.root[other]

    def adjacent(self, one: str, other: str) -> bool:
        """Return whether a joint connects two bodies, over fixed joints; the ground itself has no neighbours."""
        return self.ground not in (one, other) and (self.root[one], self.root[other]) in self.joined


def chosen_pairs(
    mechanism: Mechanism,
    shapes: Sequence[CollisionShape],
    self_contact: bool,
    named: Iterable[tuple[str, str]],
    friction: float | None,
    restitution: float | None,
) -> list[ShapePair]:
    """Return the pairs of shapes that may touch; those with the ground come first."""
    near = Neighbours(mechanism)
    excluded = {frozenset((rule.one, rule.other)) for rule in mechanism.contact_rules if not rule.touch}
    asked = _asked(mechanism, shapes, named)
    pairs: dict[tuple[int, int], ShapePair] = {}
    for i, one in enumerate(shapes):
        for j in range(i):
            other = shapes[j]
            on_ground = near.ground in (one.body, other.body)
            if near.together(one.body, other.body) or not (on_ground or self_contact):
                continue
            if near.adjacent(one.body, other.body) or frozenset((one.body, other.body)) in excluded:
                continue
            if one.group & other.mask or other.group & one.mask:
                pairs[j, i] = ShapePair(j, i, *law(one, other, friction, restitution))
    for (j, i), own in asked.items():
        mu, e = law(shapes[i], shapes[j], friction, restitution)
        pairs[j, i] = ShapePair(j, i, mu if own is None or friction is not None else own, e, named=True)
    return sorted(pairs.values(), key=lambda pair: not _with_ground(pair, shapes, near.ground))


def _with_ground(pair: ShapePair, shapes: Sequence[CollisionShape], ground: str) -> bool:
    return ground in (shapes[pair.one].body, shapes[pair.other].body)


def _asked(
    mechanism: Mechanism, shapes: Sequence[CollisionShape], named: Iterable[tuple[str, str]]
) -> dict[tuple[int, int], float | None]:
    """Return the pairs that a file or the user asks for, lower number first, with the friction given to them alone."""
    places: dict[str, list[int]] = {}
    for i, shape in enumerate(shapes):
        places.setdefault(shape.body, []).append(i)
    for i, shape in enumerate(shapes):
        places.setdefault(shape.name, [i])
    shape_names = {shape.name: [i] for i, shape in enumerate(shapes)}
    asked: dict[tuple[int, int], float | None] = {}
    for rule in mechanism.contact_rules:
        if rule.touch and rule.one in shape_names and rule.other in shape_names:
            a, b = shape_names[rule.one][0], shape_names[rule.other][0]
            asked[min(a, b), max(a, b)] = rule.friction
    for pair in named:
        if isinstance(pair, str) or len(tuple(pair)) != 2:
            raise ModelError(f"a pair is two names of bodies or shapes, not {pair!r}", subject="pairs")
        one, other = pair
        for a in lookup(one, places, "body or collision shape"):
            for b in lookup(other, places, "body or collision shape"):
                if a != b:
                    asked.setdefault((min(a, b), max(a, b)), None)
    return asked


def law(
    one: CollisionShape, other: CollisionShape, friction: float | None, restitution: float | None
) -> tuple[float, float]:
    """Return friction and restitution of two shapes: the larger ones, friction of the higher priority alone."""
    mu = [DEFAULT_FRICTION if shape.friction is None else shape.friction for shape in (one, other)]
    if one.priority != other.priority:
        mu = [mu[0] if one.priority > other.priority else mu[1]]
    elif one.friction is None or other.friction is None:  # who says nothing has no say
        mu = [x for x, shape in zip(mu, (one, other), strict=True) if shape.friction is not None] or mu
    e = max(shape.restitution or 0.0 for shape in (one, other))
    return (max(mu) if friction is None else float(friction)), (e if restitution is None else float(restitution))
