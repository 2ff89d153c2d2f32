"""Contacts and their columns: one direction each, or two for a plane, whose sliding direction follows the velocity.

Symbols, per contact: xi' relative velocity (one or two entries), s = |xi'| speed (one direction: signed by the mode), d
unit vector of sliding, T = -limit d.

In a plane d = xi' / s turns as fast as limit / s: at the onset of slip (s = 0) the equation is singular, and attracts d
to the direction in which the forces at hand accelerate the contact. So below the speed `slow` of a contact that has
just let go, d is that direction, xi'' = positive times d, found by the iteration

    d <- unit(xi''(d) + k d),   k >= the acceleration that friction itself makes

Near the end of slip, s -> 0 with d turning ever faster: a step goes at most half of the way to rest (`HALF`), and the
contact is at rest when what is left takes less than the tolerance of an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.friction import Contact

Array = np.ndarray

STICK, SLIP = 0, 2
"""Modes of a contact in a plane; one direction slips with +1 or -1."""

HALF = 0.5
"""Part of the way to rest that a step may go."""

ALIGNED, ROUNDS = 1e-14, 60
"""When an aligned direction has settled, and after how many rounds it is left as it is."""

TURNED = 1e-9
"""Part of the velocity before, which stands for that of a plane that has come to rest within a fixed step."""

LEAST_SPEED = 1e-140
"""Stands for the speed of a contact in a plane that has just let go: its square is not zero."""


class Columns:
    """Which columns of the contact rows belong to which contact; directions and speeds of sliding.

    `slow` (m,) are speeds below which a plane's direction is that of its acceleration; `guess` (columns,) the last one.
    """

    def __init__(self, contacts: Sequence[Contact]) -> None:
        widths = [one.directions for one in contacts]
        self.first = np.concatenate([[0], np.cumsum(widths, dtype=int)]).astype(int)
        self.owner = np.repeat(np.arange(len(widths)), widths)
        self.plane = np.array(widths, dtype=int) == 2
        self.slow, self.guess = np.zeros(len(widths)), np.zeros(self.owner.size)
        pairs = [(one.name, width) for one, width in zip(contacts, widths, strict=True)]
        self.names = tuple(name if width == 1 else f"{name}[{j}]" for name, width in pairs for j in range(width))

    def of(self, i: Any) -> slice:
        """Return the columns of contact i."""
        return slice(int(self.first[i]), int(self.first[i + 1]))

    def stuck(self, mode: Array) -> Array:
        """Return the columns of sticking contacts."""
        return np.flatnonzero((mode == STICK)[self.owner])

    def sizes(self, values: Array) -> Array:
        """Return |values| per contact, (m,)."""
        return np.sqrt(np.bincount(self.owner, values * values, self.plane.size))

    def speeds(self, velocity: Array, mode: Array) -> Array:
        """Return the speed of every contact, signed by its mode (0 sticks); of a plane never negative."""
        signed = mode * velocity[self.first[:-1]]
        return np.where(self.plane & (mode != STICK), self.sizes(velocity), signed) if self.plane.any() else signed

    def units(self, velocity: Array, mode: Array) -> tuple[Array, list[int]]:
        """Return d of sliding contacts, (columns,), zero of others; and planes that are slow: d is a guess there."""
        unit, slow = np.where(mode == STICK, 0, mode)[self.owner].astype(float), []
        for i in np.flatnonzero(self.plane & (mode != STICK)).tolist():
            at = self.of(i)
            speed = float(np.sqrt(velocity[at] @ velocity[at]))
            if speed > self.slow[i]:
                unit[at] = velocity[at] / speed
            else:
                unit[at] = self.guess[at]
                slow.append(i)
        return unit, slow

    def let_go(self, i: int, direction: Array, slow: float) -> None:
        """Note that a contact in a plane begins to slip along a direction."""
        self.guess[self.of(i)], self.slow[i] = direction, slow

    def get_going(self, velocity: Array) -> None:
        """Forget the onset of planes that have got going."""
        self.slow[self.sizes(velocity) > self.slow] = 0.0

    def at_rest(self, velocity: Array, terms: Array, part: float) -> Array:
        """Return which contacts are at rest: relative velocities up to this part of the terms that they sum up."""
        return self.sizes(velocity) <= part * self.sizes(terms)

    def for_resolve(self, velocity: Array, mode: Array) -> Array:
        """Return relative velocities as `resolve` wants them: zero at rest, in the mode's direction otherwise."""
        least = np.where(self.plane, LEAST_SPEED, np.finfo(float).tiny)
        unit, _ = self.units(velocity, mode)
        speed = np.maximum(self.speeds(velocity, mode), least)
        return unit * speed[self.owner]

    def not_turned(self, velocity: Array, before: Array) -> Array:
        """Return velocities; of planes that have turned back since `before`, next to zero along the old direction."""
        turned = self.plane & (np.bincount(self.owner, velocity * before, self.plane.size) < 0.0)
        return np.where(turned[self.owner], TURNED * before, velocity)

    def time_to_rest(self, velocity: Array, acceleration: Array, mode: Array) -> Array:
        """Return how long planes need until they rest at the deceleration of this moment; infinite for others."""
        left = np.full(self.plane.size, np.inf)
        for i in np.flatnonzero(self.plane & (mode != STICK)).tolist():
            at = self.of(i)
            slowing = -float(velocity[at] @ acceleration[at])
            if slowing > 0.0:
                left[i] = float(velocity[at] @ velocity[at]) / slowing
        return left
