"""Frames in which the arithmetic is short: x along the common normal of two joint axes.

A link's frame has z on its joint's axis; turning it about z and sliding it along z costs nothing, since both commute
with the joint's motion. Used well, this leaves one screw about x between a joint and the next (Denavit & Hartenberg
1955; Khalil & Kleinfinger 1986 for trees). Where a link carries several joints, the choice that leaves least to do is
taken.

Symbols: K = (R, p) where a joint stands in the frame of the link that carries it; K = Z(t, d) X(alpha, a) Z(t', d')
with Z, X screws about z and x (turn, slide).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.model.limits import EXACT_SUM, NEARLY_PARALLEL, PARALLEL
from dalembert.model.mechanism.placement import Placement
from dalembert.tree.algebra.screws import Screw
from dalembert.types import Array


@dataclass(frozen=True)
class Decomposition:
    """K as screws about z, x and z: `first` = (t, d), `middle` constant screws, `last` = (t', d')."""

    first: tuple[float, float]
    middle: tuple[Screw, ...]
    last: tuple[float, float]

    def steps(self) -> tuple[Screw, ...]:
        """Return all that comes before the joint's own screw, without those that do nothing."""
        chain = (turn("z", *self.first), *self.middle)
        return tuple(screw for screw in chain if not idle(screw))


def turn(axis: str, angle: float, slide: float = 0.0) -> Screw:
    """Return a screw of numbers, exact at quarter turns."""
    c, s = float(np.cos(angle)), float(np.sin(angle))
    if min(abs(c), abs(s)) <= EXACT_SUM:
        c, s = float(round(c)), float(round(s))
    return Screw("xyz".index(axis), c, s, float(slide))


def idle(screw: Screw) -> bool:
    """Say whether a screw changes nothing."""
    return screw.s == 0.0 and screw.c == 1.0 and screw.d == 0.0


def is_quarter(screw: Screw) -> bool:
    """Say whether a screw of numbers turns by quarters of a turn: axes are exchanged, nothing is multiplied."""
    return screw.c == 0.0 or screw.s == 0.0


def decompose(R: Array, p: Array) -> Decomposition:
    """Return the screws of K = (R, p); where the axes are parallel, t points along the offset and d is zero."""
    size = np.abs(p).max(initial=0.0)
    p = np.where(np.abs(p) <= EXACT_SUM * size, 0.0, p)
    sine = float(np.hypot(R[0, 2], R[1, 2]))
    if sine <= PARALLEL:
        return _parallel(R, p)
    alpha = float(np.arctan2(sine, R[2, 2]))
    first = float(np.arctan2(R[0, 2], -R[1, 2]))
    normal = np.array([np.cos(first), np.sin(first), 0.0])
    last = -float(np.arctan2(R[:, 1] @ normal, R[:, 0] @ normal))  # from the normal: t + t' is exact if alpha is small
    if sine < NEARLY_PARALLEL and size > 0:
        moves = tuple(Screw(k, 1.0, 0.0, float(p[k])) for k in range(3) if p[k])
        return Decomposition((0.0, 0.0), (*moves, turn("z", first), turn("x", alpha)), (last, 0.0))
    feet = np.linalg.solve(np.column_stack([[0.0, 0.0, 1.0], normal, R[:, 2]]), p)
    d, a, d_last = (0.0 if abs(x) <= EXACT_SUM * size / sine else float(x) for x in feet)
    return Decomposition((first, d), (turn("x", alpha, a),), (last, d_last))


def _parallel(R: Array, p: Array) -> Decomposition:
    """Return the screws where z is parallel to the link's z: t along the offset, all of the slide after it."""
    up = 1.0 if R[2, 2] > 0 else -1.0
    a = float(np.hypot(p[0], p[1]))
    if a <= EXACT_SUM * abs(float(p[2])):
        a = 0.0
    first = float(np.arctan2(p[1], p[0])) if a else 0.0
    angle = float(np.arctan2(R[1, 0], R[0, 0]))
    last = up * (angle - first)
    middle = turn("x", 0.0 if up > 0 else np.pi, a)
    return Decomposition((first, 0.0), (middle,), (_wrapped(last), up * float(p[2])))


def _wrapped(angle: float) -> float:
    """Return the angle in (-pi, pi], zero where it is zero up to rounding."""
    angle = float(np.arctan2(np.sin(angle), np.cos(angle)))
    return 0.0 if abs(angle) <= EXACT_SUM else angle


SLIDES = {"own": 2.2, "parent": 1.8}
"""What a slide before the joint's screw weighs, where one of the joint's own weighs 2: which of them should vanish."""


def choose(
    own: tuple[float, float], children: list[Placement], direction: float | None, slides: str
) -> tuple[float, float]:
    """Return the turn and slide of a link's frame that leave least to do.

    Parameters
    ----------
    own
        Constant turn and slide (t', d') of the link's own joint so far.
    children
        K of every joint that the link carries.
    direction
        Angle of the first moment h about z, or None: a good direction of x where no joint asks for one.
    slides
        One of `SLIDES`: whether offsets along the axes are left to a joint's own screw (cheap in articulated bodies) or
        to the screws before it (cheap in composite bodies).
    """
    turns = {0.0, -own[0]} | (set() if direction is None else {direction})
    lengths = {0.0, -own[1]}
    for child in children:
        first = decompose(child.rotation, child.position).first
        turns.add(first[0])
        lengths.add(first[1])
    ranked = [
        (_effort(own, children, direction, gamma, delta, SLIDES[slides]), order, (gamma, delta))
        for order, (gamma, delta) in enumerate((g, d) for g in sorted(turns, key=abs) for d in sorted(lengths, key=abs))
    ]
    return min(ranked)[2]


def _effort(
    own: tuple[float, float],
    children: list[Placement],
    direction: float | None,
    gamma: float,
    delta: float,
    before: float,
) -> float:
    """Return a measure of the work left: plane rotations weigh 4, slides 2, a turned angle and a turned h less."""
    own_frame = turn("z", gamma, delta)
    back, up = (
        np.array([[own_frame.c, own_frame.s, 0], [-own_frame.s, own_frame.c, 0], [0, 0, 1]]),
        np.array([0, 0, delta]),
    )
    effort = 2.0 * (abs(own[1] + delta) > EXACT_SUM * max(abs(delta), abs(own[1])))
    effort += 0.3 * (abs(_wrapped(own[0] + gamma)) > EXACT_SUM)
    if direction is not None:
        effort += 1.0 * (abs(_wrapped(direction - gamma)) > EXACT_SUM)
    for child in children:
        for screw in decompose(back @ child.rotation, back @ (child.position - up)).steps():
            effort += 4.0 * (not is_quarter(screw)) + before * (screw.d != 0.0)
    return effort
