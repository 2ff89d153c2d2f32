"""`method="hybrid"`: smooth phases of high order; impacts, contacts that close, open, stick and slide located in time.

    phase ─► a gap closes? ─► locate ─► impact ─► what stays closed ─► phase ...
          └► a contact opens, sticks or slides? ─► locate ─► phase ...
          └► impacts pile up (Zeno)? ─► their limit in closed form ─► the contact closes ─► phase ...

Event times are roots of steps of full order, as accurate as the steps. Sources: V. Acary, B. Brogliato, "Numerical
Methods for
Nonsmooth Dynamical Systems", ch. 8; Ch. Glocker, "Set-Valued Force Laws".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.simulate.contact.collision import ORDERS, Collision
from dalembert.simulate.contact.forces import Chart, Forces
from dalembert.simulate.contact.geometry import Geometry
from dalembert.simulate.contact.pairs import pairs_of
from dalembert.simulate.contact.phase import Motion, Phase
from dalembert.simulate.contact.record import Rows
from dalembert.simulate.contact.start import refuse_penetration
from dalembert.simulate.contact.zeno import Zeno
from dalembert.simulate.event import Event
from dalembert.simulate.smooth.session import Session
from dalembert.simulate.steppers.tables import DOP853_TABLE

Array = np.ndarray

SAFETY, LEAST, MOST = 0.9, 0.2, 6.0
"""Part of the optimal step, and how much a step may shrink or grow at once."""

TOUCHING = 1e-9
"""Gaps below this touch, metres."""

STILL = 1e-9
"""Contact velocities below this part of the velocities are rest."""

HALVINGS = 60
"""Halvings of a step in which a change of mode is located."""

WORDS = {0: "stick", 1: "slip", 2: "open"}


class Hybrid:
    """The event-driven stepper of one session."""

    def __init__(self, session: Session, impacts: str = "simultaneous") -> None:
        if impacts not in ORDERS:
            raise ModelError(f"impacts={impacts!r} is not one of {', '.join(map(repr, ORDERS))}")
        self.session, m, s = session, session.mechanism, session.settings
        self.pairs = pairs_of(m, session.extra["contacts"])
        session.extra["contact_names"] = tuple(pair.name for pair in self.pairs)
        self.geometry, self.chart = Geometry(m, self.pairs), Chart(m)
        self.phase = Phase(self.geometry, self.chart, Forces(session.controller))
        self.collision = Collision(self.geometry, impacts)
        self.zeno = Zeno(len(self.pairs))
        self.t, self.q, self.v = s.start, session.q.copy(), session.v.copy()
        self.h = s.step or min(1e-3, s.duration / 100)
        self.rows = Rows(session, len(self.pairs))
        self.now: Any = None
        self.spent = np.zeros(2)
        self.n = m.nv

    # --- the way through ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s = self.session
        fresh = s.checkpoint is None
        if fresh:
            refuse_penetration(self.geometry, self.q)
        else:
            self._restore(s.checkpoint or {})
        stops = [*s.controller.stops(s.settings.start, s.settings.end), s.settings.end]
        try:
            if fresh:
                self._touch_down()
            for stop in stops:
                while self.t < stop and s.status == "completed":
                    self._advance(stop)
                    if s.on_step is not None:
                        s.on_step(self.t, self.q.copy(), self.v.copy())
                    if self.rows.full:
                        self.rows.flush(self._checkpoint())
        except SolvabilityError as refused:
            s.stop("no solution", str(refused))
        except ModelError as error:
            s.extra["error"] = error, self.phase.forces.time
            s.stop("stopped", str(error))
        finally:
            self.rows.flush(self._checkpoint())
            s.evaluations = self.phase.evaluations

    def _checkpoint(self) -> dict[str, Array]:
        """Return what the run needs to go on exactly as if it had not stopped."""
        p = self.phase
        numbers = [self.t, self.h, self.rows.work, self.rows.heat, self.session.steps, self.session.rejected]
        return {
            "q": self.q.copy(), "v": self.v.copy(), "numbers": np.array(numbers), "closed": p.closed.copy(),
            "sliding": p.sliding.copy(), "direction": p.direction.copy(), "impacts": self.zeno.as_array(),
        }  # fmt: skip

    def _restore(self, kept: dict[str, Array]) -> None:
        p, s = self.phase, self.session
        self.q, self.v, p.direction = kept["q"].copy(), kept["v"].copy(), kept["direction"].copy()
        p.closed, p.sliding = kept["closed"].astype(bool), kept["sliding"].astype(bool)
        self.t, self.h, self.rows.work, self.rows.heat = (float(each) for each in kept["numbers"][:4])
        s.steps, s.rejected = (int(each) for each in kept["numbers"][4:6])
        self.zeno = Zeno.from_array(kept["impacts"])
        self._evaluate()

    def _evaluate(self) -> Motion:
        """Evaluate at the state; contacts whose force has ended open, those that begin to slide do."""
        found = self.phase.motion(self.q, self.v, self.t)
        self.now = found
        return found

    def _advance(self, stop: float) -> None:
        """Take one step, or part of one up to an event."""
        s = self.session
        h = min(s.settings.step or self.h, stop - self.t, s.settings.largest_step, self._reach())
        h, end = self._accepted(h)
        event = self._first_gap(h, end)
        if event is not None:
            self._go_to(*event[:2])
            self._impact()
            return
        changed = self._changed_mode(h, end)
        if changed is not None:
            self._go_to(*changed)
            self._change_modes()
            return
        self._go_to(h, end)
        if self.t >= stop - 1e-15 * abs(stop):
            self.t = stop
        self._watch_directions()
        self._record(h)
        s.steps += 1

    def _reach(self) -> float:
        """Return a step in which no sphere can pass through another unseen: their distance has no sign."""
        x, reach = self.now.x, np.inf
        for i, pair in enumerate(self.pairs):
            if pair.ball is not None and pair.other is not None:
                speed = float(np.linalg.norm(x.W[3 * i : 3 * i + 3] @ self.v))
                room = max(float(x.gaps[i]), 0.0) + 0.5 * (pair.ball.radius + pair.other.radius)
                reach = min(reach, room / speed if speed > 0.0 else np.inf)
        return reach

    def _rate(self, base: Array) -> Any:
        def rate(t: float, y: Array) -> Array:
            v = y[self.n : 2 * self.n]
            q, x_rate = self.chart.at(base, y[: self.n], v)
            found = self.phase.motion(q, v, t)
            return np.concatenate([x_rate, found.a, [found.power, found.loss]])

        return rate

    def _shot(self, h: float) -> tuple[Array, Array, float]:
        """Return the state after a step by h, put back on its manifold, and its error over the tolerance.

        What joint forces have done and sliding has taken in the step is left in `self.spent`.
        """
        settings, n = self.session.settings, self.n
        y = np.concatenate([np.zeros(n), self.v, [0.0, 0.0]])
        _, x_rate = self.chart.at(self.q, y[:n], self.v)
        first = np.concatenate([x_rate, self.now.a, [self.now.power, self.now.loss]])
        size = np.concatenate([np.ones(n), np.abs(self.v), [np.inf, np.inf]])
        end, ratio = DOP853_TABLE.step(self._rate(self.q), self.t, y, h, first, settings.atol + settings.rtol * size)
        self.spent = end[2 * n :]
        q, _ = self.chart.at(self.q, end[:n], end[n : 2 * n])
        q, v = self.phase.on_manifold(q, end[n : 2 * n], self.t + h)
        return q, v, ratio

    def _accepted(self, h: float) -> tuple[float, tuple[Array, Array]]:
        """Return a step that meets the tolerance, and its end."""
        fixed = self.session.settings.step is not None
        for _ in range(60):
            q, v, ratio = self._shot(h)
            if fixed or ratio < 1.0:
                self.h = h * (MOST if ratio == 0.0 else float(np.clip(SAFETY * ratio ** (-1 / 8), LEAST, MOST)))
                return h, (q, v)
            self.session.rejected += 1
            h *= max(LEAST, SAFETY * ratio ** (-1 / 8)) if np.isfinite(ratio) else LEAST
        raise SolvabilityError(f"at t = {self.t:.9g} s the step size collapsed to {h:.1e} s")

    def _go_to(self, h: float, end: tuple[Array, Array]) -> None:
        """Move to the end of a step; what was spent on the way is found by that very step."""
        if h > 0.0:
            self._shot(h)
            self.rows.work += float(self.spent[0])
            self.rows.heat += float(self.spent[1])
        self.q, self.v = end
        self.t += h
        self._evaluate()

    # --- impacts ------------------------------------------------------------------------------------------------

    def _gap(self, i: int, h: float) -> tuple[float, tuple[Array, Array]]:
        q, v, _ = self._shot(h)
        return float(self.geometry.gaps(q)[i]), (q, v)

    def _first_gap(self, h: float, end: tuple[Array, Array]) -> tuple[float, tuple[Array, Array], int] | None:
        """Return the step to the first gap that closes, or None."""
        open_ = np.flatnonzero(~self.phase.closed)
        if not open_.size:
            return None
        x0, x1 = self.now.x, self.geometry.state(end[0], end[1], self.t + h)
        found: list[tuple[float, tuple[Array, Array], int]] = []
        for i in open_:
            rates = float(x0.W[3 * i] @ self.v), float(x1.W[3 * i] @ end[1])
            reached = self._bracket(int(i), h, (float(x0.gaps[i]), float(x1.gaps[i])), rates)
            if reached is not None:
                step, state = self._root(int(i), *reached)
                found.append((step, state, int(i)))
        return min(found, key=lambda each: each[0]) if found else None

    def _bracket(self, i: int, h: float, gaps: tuple[float, float], rates: tuple[float, float]) -> Any:
        """Return steps (low, high) with a positive and a negative gap, or None where it stays open."""
        g0, g1 = gaps
        if g1 >= 0.0:
            dip = _lowest(h, gaps, rates)
            if dip is None or self._gap(i, dip)[0] >= 0.0:
                return None
            h, g1 = dip, -1.0
        if g0 > 0.0:
            return 0.0, h
        low = h
        while low > 1e-9 * h:
            low *= 0.5
            if self._gap(i, low)[0] > 0.0:
                return low, min(2 * low, h)
        return 0.0, 0.0 if rates[0] < 0.0 else low

    def _root(self, i: int, low: float, high: float) -> tuple[float, tuple[Array, Array]]:
        """Return the step at which the gap is zero (regula falsi, Illinois), and the state there."""
        g_low = self._gap(i, low)[0] if low > 0.0 else max(float(self.now.x.gaps[i]), np.finfo(float).tiny)
        if high <= 0.0:
            return 0.0, (self.q, self.v)
        g_high, state = self._gap(i, high)
        side = 0
        tolerance = max(self.session.settings.event_tolerance, 1e-16 * abs(self.t))
        for _ in range(200):
            if high - low <= tolerance or g_high == 0.0:
                break
            middle = high - g_high * (high - low) / (g_high - g_low)
            if not low < middle < high:
                middle = 0.5 * (low + high)
            g, at = self._gap(i, middle)
            if g > 0.0:
                low, g_low = middle, g
                g_high = g_high / 2 if side == 1 else g_high
                side = 1
            else:
                high, g_high, state = middle, g, at
                g_low = g_low / 2 if side == -1 else g_low
                side = -1
        return high, state

    def _touch_down(self) -> None:
        """Close what touches at the start; approaching contacts collide."""
        self._evaluate()
        x = self.now.x
        if np.any((x.gaps <= TOUCHING) & (x.W[::3] @ self.v <= STILL)):
            self._impact()
        self._record(0.0)

    def _impact(self) -> None:
        """Let touching contacts collide; close those that do not separate."""
        p, x = self.phase, self.geometry.state(self.q, self.v, self.t)
        before = x.W @ self.v
        touching = p.closed | ((x.gaps <= TOUCHING) & (before[::3] <= STILL * max(1.0, np.abs(before).max())))
        self._record(0.0)
        limits = self.zeno.limits(self.t)
        v, impulses = self.collision.resolve(x, self.v, touching, limits > 0.0)
        self.rows.heat -= float(impulses @ (x.W @ (v + self.v))) / 2
        after = x.W @ v
        struck = np.flatnonzero(impulses[::3] > 0.0)
        for i in struck:
            if before[3 * i] < -STILL:
                self.zeno.struck(int(i), self.t, limits[i] > 0.0)
                self._note(int(i), "open", "impact")
            if limits[i] > 0.0:
                self.session.events.append(Event(float(limits[i]), self.pairs[i].name, int(i), "impacts", "rest"))
        self.v = v
        rest = after[::3] <= STILL * max(1.0, np.abs(before).max())
        new = touching & rest
        for i in np.flatnonzero(new & ~p.closed):
            self._note(int(i), "open", "closed")
        for i in np.flatnonzero(p.closed & ~new):
            self._note(int(i), "closed", "open")
        p.closed = new
        self._watch_directions(x)
        self.q, self.v = p.on_manifold(self.q, self.v, self.t)
        self._evaluate()
        self._release()
        self._record(0.0)
        self.session.steps += 1

    # --- modes --------------------------------------------------------------------------------------------------

    def _modes(self, motion: Motion, v: Array) -> Array:
        """Return what every contact does: 0 sticks, 1 slides, 2 is open."""
        u = (motion.x.W @ v).reshape(-1, 3)
        slides = (np.linalg.norm(u[:, 1:], axis=1) > STILL) & (self.phase.mu > 0.0)
        pushing = (motion.r[::3] > 0.0) | (motion.contact[::3] <= 0.0)
        return np.where(self.phase.closed & pushing, np.where(slides, 1, 0), 2)

    def _changed_mode(self, h: float, end: tuple[Array, Array]) -> tuple[float, tuple[Array, Array]] | None:
        """Return the step at which a closed contact opens, or one that slides comes to rest; None where all go on."""
        if not self.phase.closed.any() or not self._differs(h, end):
            return None
        low, high, state = 0.0, h, end
        tolerance = max(1e-13, 4e-16 * abs(self.t))
        for _ in range(HALVINGS):
            if high - low <= tolerance:
                break
            middle = 0.5 * (low + high)
            q, v, _ = self._shot(middle)
            if self._differs(middle, (q, v)):
                high, state = middle, (q, v)
            else:
                low = middle
        return high, state

    def _differs(self, h: float, end: tuple[Array, Array]) -> bool:
        p = self.phase
        found = p.motion(end[0], end[1], self.t + h)
        closed = np.flatnonzero(p.closed)
        opened = (found.r[3 * closed] <= 0.0) & (found.contact[3 * closed] > 0.0)
        u = (found.x.W @ end[1]).reshape(-1, 3)[:, 1:]
        stopped = p.sliding & ((u * p.direction).sum(axis=1) <= 0.0)
        return bool(opened.any() or stopped[closed].any())

    def _change_modes(self) -> None:
        """Open contacts whose force has ended; let those come to rest whose sliding has."""
        p = self.phase
        u = (self.now.x.W @ self.v).reshape(-1, 3)[:, 1:]
        for i in np.flatnonzero(p.closed & p.sliding):
            if u[i] @ p.direction[i] <= STILL:
                p.sliding[i] = False
                self._note(int(i), "slip", "stick")
        self.q, self.v = p.on_manifold(self.q, self.v, self.t)
        self._evaluate()
        self._release()
        self._record(0.0)
        self.session.steps += 1

    def _release(self) -> None:
        """Open closed contacts that accelerate apart without force; then those left are evaluated anew."""
        p = self.phase
        opened = p.closed & (self.now.r[::3] <= 0.0) & (self.now.contact[::3] > 0.0)
        if opened.any():
            for i in np.flatnonzero(opened):
                self._note(int(i), "closed", "open")
            p.closed &= ~opened
            p.sliding &= p.closed
            self._evaluate()
        self._watch_directions()

    def _watch_directions(self, x: Any = None) -> None:
        """Note which closed contacts slide and where to; a contact at rest that must slide gets its direction."""
        p = self.phase
        u = ((self.now.x if x is None else x).W @ self.v).reshape(-1, 3)[:, 1:]
        size = np.linalg.norm(u, axis=1)
        slides = p.closed & (p.mu > 0.0) & (size > STILL)
        for i in np.flatnonzero(slides & ~p.sliding):
            if x is None:
                self._note(int(i), "stick", "slip")
        p.sliding = slides
        p.direction[slides] = u[slides] / size[slides][:, None]

    def _note(self, i: int, old: str, new: str) -> None:
        self.session.events.append(Event(float(self.t), self.pairs[i].name, i, old, new))

    def _record(self, h: float) -> None:
        self.rows.add(self.t, self.q, self.v, self.now, self._modes(self.now, self.v), h)


def _lowest(h: float, gaps: tuple[float, float], rates: tuple[float, float]) -> float | None:
    """Return where the cubic through both ends is negative inside a step, or None."""
    u = np.linspace(0.0, 1.0, 17)[1:-1]
    cubic = (1 + 2 * u) * (1 - u) ** 2 * gaps[0] + u * (1 - u) ** 2 * h * rates[0]
    cubic += u * u * (3 - 2 * u) * gaps[1] + u * u * (u - 1) * h * rates[1]
    k = int(np.argmin(cubic))
    return float(u[k] * h) if cubic[k] < 0.0 else None


def run_hybrid(session: Session, impacts: str = "simultaneous") -> None:
    """Integrate a session with contacts from event to event; `impacts`: one of `collision.ORDERS`."""
    Hybrid(session, impacts).run()
