"""Contacts of a mechanism as single pairs: a sphere with the ground, two spheres, or a joint with its limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalembert.errors import ModelError
from dalembert.simulate.contact.shapes import Box, Contact, Heightfield, JointLimits, Plane, Sphere

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Pair:
    """One thing that may touch one other: what a row of gaps belongs to.

    For a joint's limit `ball` is None, `coordinate` its places in q and v, and the gap sign (q - bound). `slot` counts
    the places at which one sphere touches one heightfield, -1 where there is one alone.
    """

    name: str
    ball: Sphere | None
    ground: Plane | Heightfield | None
    other: Sphere | None
    friction: float
    restitution: float
    law: str
    coordinate: tuple[int, int] = (0, 0)
    sign: float = 0.0
    bound: float = 0.0
    slot: int = -1


def pairs_of(mechanism: Mechanism, contacts: Any, slots: int = 0) -> tuple[Pair, ...]:
    """Return the pairs of a list of contacts; names are checked and made unique.

    With `slots` a sphere has that many pairs with a heightfield, for places that it touches at once: a floor, a wall.
    """
    several = contacts if isinstance(contacts, Sequence) else [contacts]
    found: list[Pair] = []
    for one in several:
        if isinstance(one, Contact):
            found += _of_contact(mechanism, one, slots)
        elif isinstance(one, JointLimits):
            found += _of_limits(mechanism, one)
        else:
            raise ModelError(f"{one!r} is no contact; Contact(Sphere(frame), Plane()), JointLimits(), ... are")
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two contacts are called {name!r}: give one of them another name=")
    if not found:
        raise ModelError("contacts= holds nothing that could touch")
    return tuple(found)


def _of_contact(mechanism: Mechanism, c: Contact, slots: int) -> list[Pair]:
    mechanism.frame(c.shape.frame)
    other = c.other if isinstance(c.other, Sphere) else None
    if other is not None:
        mechanism.frame(other.frame)
    ground: Any = None if other is not None else c.other
    common = (ground, other, c.friction, c.restitution, c.law)
    if isinstance(c.shape, Box):
        corners = c.shape.corners()
        balls = [(f"{c.name} {k}", Sphere(c.shape.frame, 0.0, at)) for k, at in enumerate(corners)]
    else:
        balls = [(c.name, c.shape)]
    if not (slots and isinstance(ground, Heightfield)):
        return [Pair(name, ball, *common) for name, ball in balls]
    return [
        Pair(f"{name} ({k + 1})" if k else name, ball, *common, slot=k) for name, ball in balls for k in range(slots)
    ]


def _of_limits(mechanism: Mechanism, limits: JointLimits) -> list[Pair]:
    m = mechanism.manifold
    chosen = limits.joints or [joint.name for joint in mechanism.joints]
    found: list[Pair] = []
    for name in chosen:
        i = mechanism.joint_index(name)
        iq, iv = int(m.q_start[i]), int(m.v_start[i])
        single = m.q_start[i + 1] - m.q_start[i] == 1 and m.v_start[i + 1] - m.v_start[i] == 1
        bounds = mechanism.joints[i].limits
        given = [(1.0, bounds.lower, "lower"), (-1.0, bounds.upper, "upper")]
        some = [(s, b[0], w) for s, b, w in given if len(b) == 1 and abs(b[0]) < float("inf")]
        if limits.joints and not (single and some):
            raise ModelError(f"joint {name!r} has no limit that could be a stop")
        if single:
            found += [Pair(f"{name} {word}", None, None, None, 0.0, limits.restitution, "newton", (iq, iv), sign, bound)
                      for sign, bound, word in some]  # fmt: skip
    return found
