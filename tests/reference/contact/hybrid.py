"""`method="hybrid"`: smooth phases of high order, every impact and transition located."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.simulate.contact.complementarity import GAINED, ORDERS, Limbs
from dalembert.simulate.contact.geometry import Units, refuse_penetration
from dalembert.simulate.contact.run_end import guarded
from dalembert.simulate.contact.shapes import pairs_of
from dalembert.simulate.entry import prepare
from dalembert.simulate.equations.codes import Chart, Forces
from dalembert.simulate.limits import IMPACT_GAIN
from dalembert.simulate.samples import asked_time, bounds_between
from dalembert.simulate.session import Session
from dalembert.simulate.trajectory import Trajectory, trajectory_of
from tests.reference.contact.edges import Edges
from tests.reference.contact.geometry import Geometry
from tests.reference.contact.impacts import Collision, Zeno
from tests.reference.contact.locate import Locator, Watching
from tests.reference.contact.mode_dynamics import ContactState, ModeDynamics, ModeIntegrator, TrialStep
from tests.reference.contact.samples import SampleRows
from tests.reference.contact.transitions import Switch

Array = np.ndarray

# ----------------------------------------------------------------------------------------------------------------------
# `method="hybrid"`: smooth phases of high order; impacts, contacts that close, open, stick and slide located in time.
#
#     phase ─► a gap closes? ─► locate ─► impact ─► what stays closed ─► phase ...
#           └► a contact opens, sticks or slides? ─► locate ─► phase ...
#           └► impacts pile up (Zeno)? ─► their limit in closed form ─► the contact closes ─► phase ...
#
# Event times are roots of steps of full order, as accurate as the steps. Sources: V. Acary, B. Brogliato, "Numerical
# Methods for Nonsmooth Dynamical Systems", ch. 8; Ch. Glocker, "Set-Valued Force Laws".


MOST_AT_ONCE = 1000
"""Events at one instant at most."""

COUNT = 0
"""Place in `Hybrid.gains`; behind it: energy that the first of them gains, joules, and its time, seconds."""


class Hybrid:
    """The event-driven stepper of one session."""

    def __init__(self, session: Session, impacts: str = "simultaneous") -> None:
        if impacts not in ORDERS:
            raise ModelError(f"impacts={impacts!r} is not one of {', '.join(map(repr, ORDERS))}")
        self.session, m, s = session, session.mechanism, session.settings
        self.pairs = pairs_of(m, session.extra["contacts"])
        session.extra["contact_names"] = tuple(pair.name for pair in self.pairs)
        geometry, chart = Geometry(m, self.pairs), Chart(m)
        limbs = Limbs(np.asarray(m.mass_matrix(session.q)))
        self.phase = ModeDynamics(geometry, chart, Forces(session.controller), limbs)
        names, gaps = [pair.name for pair in self.pairs], geometry.gaps(session.q)
        self.phase.measure(Units.of(m, session.extra["contacts"], names, gaps, session.v))
        self.flow, self.watching = ModeIntegrator(self.phase, chart, s), Watching(session)
        self.locator, self.edges = Locator(self.flow, self.watching), Edges(self.flow)
        self.switch = Switch(session, self.phase, Collision(geometry, impacts, limbs))
        self.rows = SampleRows(session, len(self.pairs))
        self.here: ContactState
        self.next = 1
        self.standstill = 0
        self.gains = np.zeros(3)

    # --- the way through ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s = self.session
        if s.checkpoint is None:
            refuse_penetration([pair.name for pair in self.pairs], self.phase.geometry.gaps(s.q), self.phase.levers)
        stops = [*s.stops, s.settings.end]
        with guarded(s, lambda: self.phase.forces.time, self._finish):
            if s.checkpoint is None:
                self._begin()
            else:
                self._restore(s.checkpoint)
            self.rows.step_is_complete(self._checkpoint())
            for begin, stop in pairwise([s.settings.start, *stops]):
                if self.here.t < stop:
                    self._enter(begin, stop)
                while self.here.t < stop and s.status == "completed":
                    self._advance(stop)
                    self.rows.step_is_complete(self._checkpoint())
                    self.rows.on_step(self.here.t, self.here.q, self.here.v)
                    if self.rows.full:
                        self.rows.flush()

    def _enter(self, begin: float, stop: float) -> None:
        """Begin a piece between break points: forces take their limits from within, contacts see the new ones."""
        forces, here, known = self.phase.forces, self.here, self.session.stops
        forces.bounds = bounds_between(begin, stop, known)
        if here.t == begin and begin in known:
            self.here = self.switch.settled(here.t, here.q, here.v)

    def _finish(self) -> None:
        self.rows.flush()
        if self.gains[COUNT]:
            s, (count, gain, t) = self.session, self.gains
            s.status = "inaccurate" if s.status == "completed" else s.status
            said = GAINED.format(count=int(count), gain=gain, t=t)
            s.message = f"{s.message}; {said}".removeprefix("; ")
        self.session.evaluations = self.phase.evaluations
        self.session.say_unresolved(self.watching.unresolved)

    def _begin(self) -> None:
        """Close what touches at the start; approaching contacts collide."""
        s = self.session
        t, q, v = s.settings.start, s.q.copy(), s.v.copy()
        q, v = self.phase.on_manifold(q, v, t) if self.phase.limbs.any else (q, v)
        self.here = ContactState(t, q, v, self.phase.motion(q, v, t))
        if self.switch.touches(self.here):
            self._impact()
        self._record(0.0)
        self.watching.note(t, self.here.q, self.here.v)

    def _advance(self, stop: float) -> None:
        """Take one step, or part of one up to an event."""
        s, here = self.session.settings, self.here
        due = float(self.switch.zeno.rests.min(initial=np.inf))
        largest = min(s.step or self.flow.h, stop - here.t, due - here.t, s.largest_step, self.edges.reach(here))
        edge = self.edges.at_hand(here)
        shot = edge or self.flow.accepted(here, largest)
        edge = edge or self.edges.first(here, shot)
        shot = edge or shot
        shot, strikes = self.locator.first_gap(here, shot)
        changed = self.locator.changed_mode(here, shot)
        shot = changed or shot
        watched = self.locator.first_watch(here, shot) if self.watching.watches else None
        if watched is not None and watched[0].h < shot.h:
            shot, changed, strikes = watched[0], None, False
        self._go(shot)
        if changed is None and not strikes and self.here.t >= stop - 1e-15 * abs(stop):
            self.here.t = stop
        if changed is None and not strikes and due - self.here.t <= 1e-15 * abs(self.here.t):
            self.here.t = due
        self.switch.rest(self.here.t)
        if watched is not None and watched[0].h <= shot.h:
            self.watching.fire(self.here.t, watched[1])
        if changed is not None:
            self.here = self.switch.change(self.here)
        elif strikes:
            self._impact()
        elif shot is edge:
            self.here = ContactState(self.here.t, self.edges.behind(self.here), self.here.v, self.here.motion)
            self._impact()
        self.switch.follow(self.here)
        jump = changed is not None or strikes or shot is edge
        event = jump or watched is not None
        if event or s.every is None or self.here.t >= s.end:
            self._record(0.0 if jump else shot.h)
        self.watching.note(self.here.t, self.here.q, self.here.v, watched[1] if watched is not None else None)
        self.session.steps += 1
        self.standstill = 0 if shot.h > 0.0 else self.standstill + 1
        if self.standstill > MOST_AT_ONCE:
            raise SolvabilityError(f"at t = {self.here.t:.9g} s contacts change {MOST_AT_ONCE} times without a step")

    def _impact(self) -> None:
        self._record(0.0)
        self._keep()
        before = self.here
        self.here, heat = self.switch.impact(before)
        self.rows.heat += heat
        if heat < -IMPACT_GAIN * float(before.v @ before.motion.x.M @ before.v):
            self.gains[1:] = self.gains[1:] if self.gains[COUNT] else (-heat, before.t)
            self.gains[COUNT] += 1
        self.switch.rest(self.here.t)

    def _go(self, shot: TrialStep) -> None:
        """Move to the end of a step; samples at equal times on the way are steps of their own."""
        s, here = self.session.settings, self.here
        end = here.t + shot.h
        while s.every is not None and (t := asked_time(s.start, s.end, s.every, self.next)) < end:
            self.next += 1
            if t <= here.t:
                continue
            inside = self.flow.shot(here, t - here.t)
            at = self.flow.go(here, inside)
            at.t = t
            modes = self.switch.modes(at.motion)
            self.rows.add(at.t, at.q, at.v, at.motion, modes, 0.0, (inside.work, inside.heat))
        self.here = self.flow.go(here, shot)
        self.rows.work += shot.work
        self.rows.heat += shot.heat
        if s.every is not None and asked_time(s.start, s.end, s.every, self.next) == self.here.t < s.end:
            self._record(shot.h)
            self.next += 1

    def _keep(self) -> None:
        """Note that the motion up to here counts, whatever becomes of the impact or the change of mode at its end."""
        self.rows.step_is_complete(self._checkpoint())

    def _record(self, h: float) -> None:
        here = self.here
        self.rows.add(here.t, here.q, here.v, here.motion, self.switch.modes(here.motion), h)

    # --- checkpoints --------------------------------------------------------------------------------------------

    def _checkpoint(self) -> dict[str, Array]:
        """Return what the run needs to go on exactly as if it had not stopped."""
        p, here, s = self.phase, self.here, self.session
        s.rejected = self.flow.rejected
        numbers = [here.t, self.flow.h, self.rows.work, self.rows.heat, s.steps, s.rejected, self.next]
        return {
            "q": here.q.copy(), "v": here.v.copy(), "numbers": np.array(numbers), "closed": p.closed.copy(),
            "sliding": p.sliding.copy(), "direction": p.direction.copy(), "signs": self.watching.signs.copy(),
            "impacts": self.switch.zeno.as_array(), "gains": self.gains.copy(),
            "unresolved": np.array([self.watching.unresolved]),
        }  # fmt: skip

    def _restore(self, kept: dict[str, Array]) -> None:
        p, s = self.phase, self.session
        q, v, p.direction = kept["q"].copy(), kept["v"].copy(), kept["direction"].copy()
        p.closed, p.sliding = kept["closed"].astype(bool), kept["sliding"].astype(bool)
        t, self.flow.h, self.rows.work, self.rows.heat = (float(each) for each in kept["numbers"][:4])
        s.steps, self.flow.rejected, self.next = (int(each) for each in kept["numbers"][4:7])
        self.switch.zeno, self.watching.signs = (
            Zeno.from_array(kept["impacts"], self.phase.units.rate),
            kept["signs"].copy(),
        )
        self.watching.begins = False
        self.gains = kept["gains"].copy() if "gains" in kept else self.gains  # not in files of older versions
        self.watching.unresolved = int(kept["unresolved"][0]) if "unresolved" in kept else 0  # nor is this
        p.choose(q, v, t)
        self.here = ContactState(t, q, v, p.motion(q, v, t))


def simulate_plain(
    mechanism: Any, duration: float, q: Any = None, v: Any = None, impacts: str = "simultaneous", **options: Any
) -> Trajectory:
    """Return the run of `da.simulate(..., method="hybrid")` by this engine; it knows no dry friction of joints."""
    given: dict[str, Any] = {
        "friction": True,
        "t": 0.0, "force": None, "events": None, "rtol": 1e-8, "atol": 1e-10, "step": None, "max_step": None,
        "every": None, "breaks": (), "event_tolerance": 1e-13, "on_step": None, "file": None, "progress": False,
        "known": None,
    }  # fmt: skip
    session = prepare(mechanism, duration, q, v, given | options | {"method": "hybrid"}, {})
    Hybrid(session, impacts).run()
    return trajectory_of(session, tuple(session.extra["contact_names"]))
