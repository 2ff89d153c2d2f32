"""Edges of a heightfield's cells: what slides or rolls on it meets a new slope there, with an impact or by flying off.

Within a cell the ground is smooth; at its edges the normal jumps. A point whose contact is closed and that leaves its
cell is stopped right before the edge and moved right behind it, and the impact of that instant says whether it stays.
A sphere touches edges themselves, and two slopes at once: it ends the run where the slopes around its touching point
differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.contact.shapes import Heightfield
from tests.reference.contact.locate import step_to_zero
from tests.reference.contact.mode_dynamics import ContactState, ModeIntegrator, TrialStep

Array = np.ndarray

BEYOND = 1e-12
"""Touching points this far outside of their cell have left it, metres: along an edge rounding must not count. Those
this near to an edge that move towards it are at it: a step from there would feel both slopes."""

TOWARDS = 1e-6
"""Touching points that leave their cell by more than this part of their speed do not move along its edge."""

WIDTH = 1e-13
"""Width of the bracket in which a crossing is known, seconds."""

FLAT = 1e-7
"""Normals that differ by less than this are one: a twisted cell turns by that within `ASIDE`, rounding by less."""

ASIDE = 1e-9
"""How far beside a touching point slopes are looked at, metres."""

ROLLING = (
    'at t = {t:.9g} s the sphere of contact {name!r} comes to an edge of its heightfield: method="hybrid" follows '
    'points over edges, and spheres where slopes do not change; method="moreau" takes all'
)

TRIALS = 60
"""Doublings of a way at most."""


class Edges:
    """Looks into a step for edges that closed contacts cross."""

    def __init__(self, flow: ModeIntegrator) -> None:
        self.flow, self.phase, self.geometry = flow, flow.phase, flow.phase.geometry
        pairs: list[Any] = list(self.geometry.pairs)
        self.fields = {i: pair.ground for i, pair in enumerate(pairs) if isinstance(pair.ground, Heightfield)}

    def reach(self, here: ContactState) -> float:
        """Return a step in which no closed contact passes through more than about one cell."""
        found = np.inf
        for i in self._closed():
            field = self.fields[i]
            speed = float(np.linalg.norm(here.motion.x.W[3 * i : 3 * i + 3] @ here.v))
            speed = max(speed, float(np.linalg.norm(self._speed(here, i))))
            if speed > 0.0:
                found = min(found, min(np.diff(field.x).min(), np.diff(field.y).min()) / speed)
        return found

    def at_hand(self, here: ContactState) -> TrialStep | None:
        """Return a step of no length where a closed contact is at an edge and moves towards it, or None."""
        for i in self._closed():
            bounds = self._bounds(i, here.q)
            if self._room(i, bounds, here.q) <= BEYOND and self._leaves(here, i, bounds):
                self._refuse_edge(here, i)
                return TrialStep(0.0, here.q, here.v, 0.0, 0.0, 0.0)
        return None

    def first(self, here: ContactState, shot: TrialStep) -> TrialStep | None:
        """Return the step that ends right before the first edge that a closed contact crosses, or None."""
        found: TrialStep | None = None
        for i in self._closed():
            self._refuse_edge(here, i)
            bounds = self._bounds(i, here.q)
            end = self._room(i, bounds, shot.q)
            if end >= 0.0 or (end >= -BEYOND and not self._leaves(here, i, bounds)):
                continue

            def value(h: float, i: int = i, bounds: Array = bounds) -> tuple[float, TrialStep]:
                at = self.flow.shot(here, h)
                return self._room(i, bounds, at.q), at

            after = step_to_zero(value, 0.0, (self._room(i, bounds, here.q), end), shot, WIDTH)
            if found is None or after.h < found.h:
                found = self._before(here, i, bounds, after.h)
        return found

    def behind(self, here: ContactState) -> Array:
        """Return the configuration right behind the edge before which this one is."""
        closed, way, q = self._closed(), WIDTH, here.q
        bounds = {i: self._bounds(i, here.q) for i in closed}
        for _ in range(TRIALS):
            q = self.phase.chart.along(here.q, way * here.v)
            if min(self._room(i, bounds[i], q) for i in closed) < 0.0:
                break
            way *= 2.0
        for i in closed:
            self._refuse_edge(ContactState(here.t, q, here.v, here.motion), i)
        return q

    def _refuse_edge(self, here: ContactState, i: int) -> None:
        """Refuse a sphere whose touching point is on an edge between different slopes, or comes to one."""
        pair: Any = self.geometry.pairs[i]
        if pair.ball.radius == 0.0:
            return
        foot, known = self.geometry.foot(here.q, i), here.motion.x.axes[i, 0]
        around = [self.fields[i].at(foot + ASIDE * np.array([x, y, 0.0]))[1] for x in (-1, 1) for y in (-1, 1)]
        if max(float(np.abs(each - known).max()) for each in around) > FLAT:
            raise SolvabilityError(ROLLING.format(t=here.t, name=pair.name))

    def _before(self, here: ContactState, i: int, bounds: Array, h: float) -> TrialStep:
        back = WIDTH
        while h - back > 0.0:
            at = self.flow.shot(here, h - back)
            if self._room(i, bounds, at.q) > 0.0:
                return at
            back *= 2.0
        return TrialStep(0.0, here.q, here.v, 0.0, 0.0, 0.0)

    def _closed(self) -> list[int]:
        return [i for i in self.fields if self.phase.closed[i]]

    def _bounds(self, i: int, q: Array) -> Array:
        """Return the edges of the cell, (2, 2): lower and upper of x and of y."""
        field, c = self.fields[i], self.geometry.foot(q, i)
        grids = [np.concatenate([[-np.inf], grid, [np.inf]]) for grid in (field.x, field.y)]
        places = [int(np.searchsorted(grid[1:-1], x, side="right")) for grid, x in zip(grids, c[:2], strict=True)]
        return np.array([grid[k : k + 2] for grid, k in zip(grids, places, strict=True)])

    def _room(self, i: int, bounds: Array, q: Array) -> float:
        """Return how far the touching point is from the nearest edge, negative outside."""
        c = self.geometry.foot(q, i)[:2]
        return float(min((c - bounds[:, 0]).min(), (bounds[:, 1] - c).min()))

    def _leaves(self, here: ContactState, i: int, bounds: Array) -> bool:
        """Return whether the touching point moves towards the nearest edge, and not along it."""
        c, u = self.geometry.foot(here.q, i)[:2], self._speed(here, i)[:2]
        room, rate = np.concatenate([c - bounds[:, 0], bounds[:, 1] - c]), np.concatenate([u, -u])
        near = room <= max(BEYOND, float(room.min()))
        return bool(rate[near].min() < -TOWARDS * np.linalg.norm(u))

    def _speed(self, here: ContactState, i: int) -> Array:
        ahead = self.geometry.foot(self.phase.chart.along(here.q, 1e-6 * here.v), i)
        return (ahead - self.geometry.foot(here.q, i)) / 1e-6
