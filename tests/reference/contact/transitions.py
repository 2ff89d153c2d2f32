"""Transitions at an instant: impacts, contacts that close, open, slide and stick.

impact ─► who stays closed (normal velocity zero) ─► forces ─► who opens (force zero), who slides (cone) ─► again
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.events.record import EventRecord, Mode
from dalembert.simulate.session import Session
from tests.reference.contact.geometry import State
from tests.reference.contact.impacts import Collision, Zeno
from tests.reference.contact.locate import WEAK, opening
from tests.reference.contact.mode_dynamics import ContactState, ModeDynamics, ModeMotion

Array = np.ndarray

TOUCHING = 1e-9
"""Gaps below this touch, metres."""

STILL = 1e-9
"""Contact velocities below this part of the velocities are rest."""

SLOW = 1e-3
"""Contacts that separate below this when impacts pile up at another one are part of it, m/s."""

CLINGS = 1e-6
"""A landing foot may pull by this part of the largest force: rounding of the moment at which it lands."""

CLINGING = (
    "at t = {t:.9g} s the joint forces pull the massless limb of contact {name!r} off the ground with {force:.3g} N "
    "while its body comes down: held, it would go through the ground; let it push, or give it mass"
)

ROUNDS = 50
"""Changes of mode at one instant at most."""


class Switch:
    """Changes the modes of a phase, and notes what happened."""

    def __init__(self, session: Session, phase: ModeDynamics, collision: Collision) -> None:
        self.session, self.phase, self.collision = session, phase, collision
        self.pairs = phase.geometry.pairs
        self.zeno = Zeno(len(self.pairs), phase.units.rate)

    def touches(self, here: ContactState) -> bool:
        """Return whether something touches and does not separate."""
        x = here.motion.x
        return bool(np.any((x.gaps <= TOUCHING * self.phase.levers) & (x.W[::3] @ here.v <= STILL * self.phase.speeds)))

    def impact(self, here: ContactState) -> tuple[ContactState, float]:
        """Let touching contacts collide and close those that do not separate; return the state after, and the heat."""
        p = self.phase
        x = p.geometry.state(here.q, here.v, here.t)
        before = x.W @ here.v
        size = max(p.units.rate, float(np.abs(before.reshape(-1, 3) / p.levers[:, None]).max())) * p.levers
        touching = p.closed | ((x.gaps <= TOUCHING * p.levers) & (before[::3] <= STILL * size))
        limits = self.zeno.limits(here.t)
        v, impulses = self.collision.resolve(x, here.v, touching, limits > 0.0, here.t)
        self._note_impacts(here.t, before, impulses, limits)
        after = (x.W @ v).reshape(-1, 3)
        closed = touching & (after[:, 0] <= STILL * size)
        if np.any(
            (limits > 0.0) & touching & (before[::3] < -STILL * p.speeds)
        ):  # a block that rocks: corners strike in turn
            closed |= touching & (after[:, 0] <= SLOW * p.speeds)
        for i in np.flatnonzero(closed & ~p.closed):
            self._note(here.t, int(i), "open", "closed")
        for i in np.flatnonzero(p.closed & ~closed):
            self._note(here.t, int(i), "closed", "open")
        p.closed = closed
        speed = np.linalg.norm(after[:, 1:], axis=1)
        p.sliding = closed & (p.mu > 0.0) & (speed > STILL * p.speeds)
        p.direction[p.sliding] = after[p.sliding, 1:] / speed[p.sliding][:, None]
        found = self.settled(here.t, here.q, v)
        return found, self._heat(x, here, found.v, impulses)

    def _heat(self, x: State, here: ContactState, after: Array, impulses: Array) -> float:
        """Return what an impact takes away, joules: the loss of kinetic energy, or the work of contacts alone.

        Rows that move by themselves (a servo's) bring energy in as they push. There contacts take -P . (u- + u+) / 2,
        with u the velocities of one side of a contact relative to the other.
        """
        m = self.phase.geometry.mechanism
        if m.names and np.any(m.constraint_velocity(here.q, np.zeros(m.nv), here.t)):
            return -float(impulses @ (x.W @ (here.v + after))) / 2
        return float((here.v - after) @ x.M @ (here.v + after)) / 2

    def _note_impacts(self, t: float, before: Array, impulses: Array, limits: Array) -> None:
        massless = self.collision.massless
        for i in np.flatnonzero((impulses[::3] > 0.0) | (massless & (before[::3] < -STILL * self.phase.speeds))):
            if before[3 * i] < -STILL * self.phase.speeds[i]:
                self.zeno.struck(int(i), t, bool(limits[i] > 0.0 or massless[i]))
                self._note(t, int(i), "open", "impact")
            if limits[i] > 0.0:
                self.zeno.rests[i] = max(float(limits[i]), t)

    def rest(self, t: float) -> None:
        """Note the end of impacts that pile up, where it is due: a moment after the contact was taken as closed."""
        for i in np.flatnonzero(self.zeno.rests <= t):
            if self.phase.closed[i]:
                self._note(float(self.zeno.rests[i]), int(i), "impacts", "rest")
            self.zeno.rests[i] = np.inf

    def change(self, here: ContactState) -> ContactState:
        """Let those come to rest whose sliding has ended; then open and slide what must."""
        p = self.phase
        u = (here.motion.x.W @ here.v).reshape(-1, 3)[:, 1:]
        for i in np.flatnonzero(p.closed & p.sliding):
            if u[i] @ p.direction[i] <= 0.0:
                p.sliding[i] = False
                self._note(here.t, int(i), "slip", "stick")
        return self.settled(here.t, here.q, here.v)

    def settled(self, t: float, q: Array, v: Array) -> ContactState:
        """Return the state on its closed contacts, after those have opened or begun to slide that must."""
        p = self.phase
        for _ in range(ROUNDS):
            q, v = p.on_manifold(q, v, t)
            found = p.decided(q, v, t)
            p.choose(q, v, t)
            held = p.motion(q, v, t)
            opened, begins = self._must_change(found, held)
            opened &= self._leaves(q, v, t, held, opened) if p.limbs.any else True
            if not (opened.any() or begins.any()):
                return ContactState(t, q, v, held)
            for i in np.flatnonzero(opened):
                self._note(t, int(i), "closed", "open")
            p.closed &= ~opened
            p.sliding &= p.closed
            if not opened.any():
                for i in np.flatnonzero(begins):
                    self._note(t, int(i), "stick", "slip")
                p.sliding |= begins
                friction = found.r.reshape(-1, 3)[begins, 1:]
                p.direction[begins] = -friction / np.linalg.norm(friction, axis=1)[:, None]
        raise SolvabilityError(f"at t = {t:.9g} s contacts change their modes without end")

    def _must_change(self, found: ModeMotion, held: ModeMotion) -> tuple[Array, Array]:
        """Return who opens and who begins to slide: by the laws, or by the forces that going on would take."""
        p = self.phase
        pull = WEAK * (p.units.force + float(np.abs(held.r).max(initial=0.0)))
        noise = opening(p, found.a)
        force, apart, needed = (each.reshape(-1, 3) for each in (found.r, found.contact, held.r))
        opened = p.closed & (force[:, 0] <= pull) & ((apart[:, 0] > noise) | (needed[:, 0] < -pull))
        friction = np.linalg.norm(force[:, 1:], axis=1)
        beyond = p.mu * needed[:, 0] - np.linalg.norm(needed[:, 1:], axis=1) < -pull
        begins = (np.linalg.norm(apart[:, 1:], axis=1) > noise) | beyond
        sticks = p.closed & ~opened & ~p.sliding & (p.mu > 0.0) & (force[:, 0] > pull) & (friction > 0.0)
        return opened, sticks & begins

    def _leaves(self, q: Array, v: Array, t: float, held: ModeMotion, opened: Array) -> Array:
        """Return which contacts of massless limbs leave the ground when they are let go and held; others all do."""
        p, x = self.phase, held.x
        left = np.vstack([x.A, x.W[p.rows_of(np.flatnonzero(p.closed & ~opened), x.W)]])
        still = p.limbs.held(x.M, left)
        rate = x.W[::3] @ (v - still.T @ (still @ v))
        stays = p.limbs.seen_by(x.M, x.A, x.W) & (rate < 0.0)
        for i in np.flatnonzero(opened & stays):
            if held.r[3 * i] < -CLINGS * (p.units.force + np.abs(held.r).max()):
                raise SolvabilityError(CLINGING.format(name=self.pairs[i].name, t=t, force=-held.r[3 * i]))
        return ~stays

    def follow(self, here: ContactState) -> None:
        """Turn the directions of sliding contacts with their velocities."""
        p = self.phase
        u = (here.motion.x.W @ here.v).reshape(-1, 3)[:, 1:]
        size = np.linalg.norm(u, axis=1)
        moving = p.sliding & (size > STILL * p.speeds)
        p.direction[moving] = u[moving] / size[moving][:, None]

    def modes(self, motion: Any) -> Array:
        """Return what every contact does, by the numbers of `Mode`."""
        p = self.phase
        pushing = (motion.r[::3] > 0.0) | (motion.contact[::3] <= 0.0)
        return np.where(p.closed & pushing, np.where(p.sliding, Mode.SLIP, Mode.STICK), Mode.OPEN)

    def _note(self, t: float, i: int, old: str, new: str) -> None:
        if new == "open":
            self.zeno.rests[i] = np.inf
        self.session.events.append(EventRecord(float(t), self.pairs[i].name, i, old, new))
