"""Gaps, directions and their rates at a state: everything that contacts and dynamics need, from one compiled call.

Symbols: c centre of a sphere, J, Jw its Jacobians (world axes), n normal, t1, t2 tangents; rows W (3 pairs, nv):

    u_N = n . (c' ...)  rate of the gap          u_T = t . velocity of the touching point, relative to the other side
    u' = W a + drift

The touching point of a sphere on the ground is c - r n; n is taken as constant there (planes), and turns with the
line of centres between spheres.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.model.joints import KINDS
from dalembert.model.requests import requests
from dalembert.simulate.contact.shapes import Contact, Heightfield, Plane, Sphere, pairs_of
from dalembert.simulate.limits import DEEP, TOUCHING
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


def tangents(n: Array) -> Array:
    """Return normal and two tangents by rows: right-handed, continuous but where n is -z (Duff et al. 2017)."""
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    return np.array([n, [1.0 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]], [b, sign + n[1] ** 2 * a, -n[1]]])


def asked(mechanism: Mechanism, what: str, **options: Any) -> ca.Function:
    """Return a request of a mechanism as a function in expressions."""
    request = requests()[what]
    return request.trace(mechanism, **{**request.options, **options})


# ----------------------------------------------------------------------------------------------------------------------
# Chains of joints, for bounds on the motion of shapes within a step: speeds and accelerations of their centres.
#
# Symbols: along the chain from the ground to a shape, W angular speed, B angular acceleration of a link, l length of a
# piece that moves with it, x way of a sliding joint; w, b relative angular speed and acceleration of a joint, u, c
# relative linear ones; all are largest values within the step:
#
#     speed        += W l              acceleration += (B + W^2) l                of every rigid piece
#     speed        += W x + u          acceleration += (B + W^2) x + 2 W u + c    of every joint that slides
#     W += w,  B += b + W w                                                       of every joint that turns
#
# `gap_loops.ball_bounds` sums them up. The configuration does not enter but for the ways of sliding joints, so that a
# bar may turn many times in a step. The speeds of the joints themselves are what the stages of the step say
# (`gap_loops.gap_bounds`): between two stages they change by at most the acceleration times half of their distance, and
# accelerations are taken some times as large as any stage's (`between` of a method in `runge_kutta.py`).


class Chain:
    """Joints from the ground to a sphere, and the lengths between them."""

    def __init__(self, mechanism: Mechanism, ball: Sphere) -> None:
        m = mechanism.manifold
        carried = {joint.child: (i, joint) for i, joint in enumerate(mechanism.joints)}
        frame = mechanism.frame(ball.frame)
        at = np.asarray(frame.placement.position) + np.asarray(frame.placement.rotation) @ np.array(ball.at)
        self.end = float(np.linalg.norm(at))
        self.links: list[tuple[Any, slice, slice, float, float]] = []
        body = frame.body
        while body in carried:
            i, joint = carried[body]
            q, v = slice(int(m.q_start[i]), int(m.q_start[i + 1])), slice(int(m.v_start[i]), int(m.v_start[i + 1]))
            before, behind = (np.linalg.norm(p.position) for p in (joint.placement, joint.child_placement))
            self.links.insert(0, (joint, q, v, float(before), float(behind)))
            body = joint.parent


# ----------------------------------------------------------------------------------------------------------------------
# Initial states with contacts: nothing may begin inside of something else.


class Units(NamedTuple):
    """What lengths, rates and forces of a system are measured by, where contacts are told apart.

    Attributes
    ----------
    length
        Metres: the largest of links, shapes, places and gaps at the start; one where all of these are zero.
    rate
        1/s: that at which a body of this size falls, sqrt(g / length) as a part of what a metre does on the Earth;
        without gravity that of the velocities at the start, or one.
    force
        Newtons: all mass with the acceleration length rate^2.
    """

    length: float = 1.0
    rate: float = 1.0
    force: float = 1.0

    @classmethod
    def of(cls, mechanism: Any, contacts: Any, names: Sequence[str], gaps: Array, v: Array) -> Units:
        """Return the units of a mechanism with contacts of shapes; ones for others."""
        length = contact_size(mechanism, contacts, names, gaps)
        if not length > 0.0:
            return cls()
        g = float(np.linalg.norm(mechanism.gravity)) / EARTH
        sizes = np.where(np.array(mechanism.velocity_sizes) == mechanism.reach, length, 1.0)
        turns = [KINDS[joint.kind].angular for joint in mechanism.joints]
        sizes = np.where(np.concatenate([np.asarray(x, dtype=bool) for x in turns]), 1.0, length) if turns else sizes
        rate = (g / length) ** 0.5 or float(np.abs(v / sizes).max(initial=0.0)) or 1.0
        mass = sum(body.inertia.mass for body in mechanism.bodies) or 1.0
        return cls(length, rate, mass * length * rate**2)


EARTH = 9.81
"""Gravity under which limits of contacts are as they are named, for parts of one metre: m/s^2."""


def refuse_penetration(names: Sequence[str], gaps: Array, levers: Any = 1.0) -> None:
    """Refuse a start in which a gap is negative, as a part of the levers (k,), with names and depths."""
    deep = np.flatnonzero(gaps < -DEEP * np.broadcast_to(levers, gaps.shape))
    if deep.size:
        worst = deep[np.argsort(gaps[deep])][:3]
        depths = ", ".join(f"{names[i]!r} by {-gaps[i]:.3g}" for i in worst)
        words = "move what touches apart, and joints inside of their limits"
        raise ModelError(f"the start interpenetrates (metres, radians): {depths}; {words}", subject="q")


def contact_size(mechanism: Any, contacts: Any, names: Sequence[str], gaps: Array) -> float:
    """Return the largest of links, shapes, places and gaps at the start, metres; zero where none is known."""
    items = contacts if isinstance(contacts, Sequence) else [contacts]
    shapes = [contact for contact in items if isinstance(contact, Contact)]
    if not shapes:
        return 0.0
    pairs = pairs_of(mechanism, shapes)
    pair_names, balls = (
        {pair.name for pair in pairs},
        [ball for pair in pairs for ball in (pair.ball, pair.other) if ball],
    )
    lengths = [
        abs(float(gap)) for name, gap in zip(names, gaps, strict=False) if name in pair_names and np.isfinite(gap)
    ]
    lengths += [max(ball.radius, *map(abs, ball.at)) for ball in balls]
    lengths += [abs(pair.ground.offset) for pair in pairs if isinstance(pair.ground, Plane)]
    lengths += [float(np.abs(joint.placement.position).max()) for joint in mechanism.joints]
    # the ground is as large as one likes (a heightfield without heights is a plane), unless nothing else has a size
    fields = [pair.ground for pair in pairs if isinstance(pair.ground, Heightfield)]
    wide = max((float(np.ptp(x)) for field in fields for x in (field.x, field.y)), default=0.0)
    return max(lengths) if max(lengths) > TOUCHING * wide else wide


def refuse_small(mechanism: Any, contacts: Any, names: Sequence[str], gaps: Array, smallest: float) -> None:
    """Refuse parts so small that limits which are in metres are not small beside them."""
    size = contact_size(mechanism, contacts, names, gaps)
    if 0.0 < size < smallest:
        raise ModelError(
            f"the parts that touch are {size:.2g} m in size: this method tells contacts apart in parts of "
            f"{smallest:.0e} m and more. Give the model in another unit of length, micrometres, say: lengths, gravity "
            "and inertias in it",
            subject="contacts",
        )
