"""`method="hybrid"`: a session driven from event to event by the contact engine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.names import near_matches
from dalembert.simulate.contact import engine
from dalembert.simulate.contact import engine_memory as memory
from dalembert.simulate.contact import run_loops as loop
from dalembert.simulate.contact.complementarity import GAINED, ORDERS, Limbs
from dalembert.simulate.contact.contact_system import (
    ContactSystem,
    lagrangian_contacts,
    mechanism_contacts,
    other_contacts,
    scene_of_contacts,
    split_contacts,
)
from dalembert.simulate.contact.geometry import Units, refuse_penetration, refuse_small
from dalembert.simulate.contact.run_end import call_on_step, guarded
from dalembert.simulate.contact.shapes import pairs_of
from dalembert.simulate.equations.codes import Chart, Forces
from dalembert.simulate.equations.lagrangian_system import LagrangianSystem
from dalembert.simulate.events.record import EventRecord, Mode
from dalembert.simulate.limits import CHATTER, IMPACT_GAIN, LONGEST_TURN, SHORTEST_TURN, SMALLEST_IN_CONTACT
from dalembert.simulate.runge_kutta import METHODS
from dalembert.simulate.samples import bounds_between
from dalembert.simulate.session import Session, rank_of

MOST = 400
"""Steps in one call of the compiled loop: the keyboard is looked at between calls."""

SPATIAL = 3
"""Components of a contact with a gap."""

PUBLIC = np.array([Mode.OPEN, Mode.OPEN, Mode.STICK, Mode.SLIP, Mode.SLIP_PLUS, Mode.SLIP_MINUS])
"""Modes of samples by the numbers of `memory`."""

STATUSES = {memory.DETACHED: "detached", memory.CHATTERING: "chattering"}
"""Ends of a run that have a status of their own."""


def contact_system(session: Session) -> ContactSystem:
    """Return the system of a session with its contacts."""
    system = session.system
    if isinstance(system, Mechanism):
        if scene_of_contacts(session.extra.get("contacts")) is not None:
            raise UnsupportedError(
                'method="hybrid" follows spheres and corners of boxes on planes, heightfields and each other, as '
                'da.Contact has them; the collision shapes of a scene go in time steps: method="moreau"'
            )
        shapes, rubbing = split_contacts(session.extra.get("contacts"))
        return mechanism_contacts(
            system, pairs_of(system, shapes) if shapes else (), session.settings.friction, rubbing,
            session.extra.get("massless") or "hold",
        )  # fmt: skip
    if isinstance(system, LagrangianSystem):
        return lagrangian_contacts(system.given)
    return other_contacts(system.given)


class ContactRun:
    """A session on its way from event to event."""

    def __init__(self, session: Session, impacts: str, sticking: Any, stepper: str = "dop853") -> None:
        if not isinstance(stepper, str) or stepper not in METHODS:
            raise ModelError(
                f"stepper={stepper!r} is not one of {', '.join(map(repr, METHODS))}",
                near=near_matches(str(stepper), METHODS),
            )
        if stepper == "rk4" and session.settings.step is None:
            raise ModelError('method="rk4" takes steps of one size: give step=')
        if impacts not in ORDERS:
            raise ModelError(f"impacts={impacts!r} is not one of {', '.join(map(repr, ORDERS))}")
        if session.checkpoint is not None and "clock" not in session.checkpoint:
            raise ModelError("an earlier version began this run: contacts cannot go on from there; run.repeat() can")
        self.session, s = session, session.settings
        self.system = contact_system(session)
        self.names = [contact.name for contact in self.system.contacts]
        session.extra["contact_names"] = tuple(self.names)
        if set(self.system.widths) - {SPATIAL}:
            session.extra["contact_widths"] = self.system.widths
        mechanical = isinstance(session.system, Mechanism)
        self.forces = Forces(session.controller)
        settings = engine.EngineSettings(
            s.rtol, s.atol, s.step or 0.0, s.largest_step, s.event_tolerance, impacts == "sequential",
            0.1 * s.duration * float(np.clip(np.sqrt(s.rtol), SHORTEST_TURN, LONGEST_TURN)), not mechanical,
            IMPACT_GAIN, s.inside, stepper,
        )  # fmt: skip
        touching = mechanical and session.extra.get("contacts") is not None
        rank = rank_of(session)
        self.engine = engine.ContactEngine(
            self.system, settings, session.q, session.v, s.start, s.end, s.every, self.forces,
            Chart(session.system) if mechanical else None, session.event_function, session.event_callables,
            [int(watch.direction) for watch in session.watches], [int(watch.terminal) for watch in session.watches],
            rank,
            touching and Limbs(np.asarray(session.system.mass_matrix(session.q))).any,
            [watch.name for watch in session.watches],
        )  # fmt: skip
        if touching:
            contacts = session.extra["contacts"]
            self.engine.measure(Units.of(session.system, contacts, self.names, self.engine.gaps(), session.v))
        self._refuse_moving(sticking)

    def _refuse_moving(self, sticking: Any) -> None:
        """Refuse contacts that must stick at the start and move."""
        for name in [sticking] if isinstance(sticking, str) else sticking or ():
            if name not in self.names:
                raise ModelError(
                    f"sticking: no contact is called {name!r}; there are {', '.join(self.names) or 'none'}"
                )
            i = self.names.index(name)
            e = self.engine
            e._ask(loop.FIND_MODES)
            if e.at.slides[i]:
                speeds = ", ".join(
                    f"{x:.6g}" for x in e.at.velocity[3 * i + 1 : 3 * i + 1 + self.system.contacts[i].width]
                )
                raise ModelError(
                    f"contact {name!r} cannot stick at the start: its relative velocity is {speeds} m/s; change v, or "
                    "leave it out of sticking="
                )

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s, e = self.session, self.engine
        if s.checkpoint is None:
            refuse_small(s.system, s.extra.get("contacts"), self.names, e.gaps(), SMALLEST_IN_CONTACT)
            refuse_penetration(self.names, e.gaps(), e.at.levers)
        most = MOST if s.on_step is None else 1
        with guarded(s, lambda: float(e.at.time[0]), self._finish):
            stops = [*s.stops, s.settings.end]
            if s.checkpoint is None:
                self._between(s.settings.start, stops[0])
                self._told(e.begin)
            else:
                e.restore(s.checkpoint)
            for begin, stop in pairwise([s.settings.start, *stops]):
                if e.at.clock[memory.T] < stop:
                    self._enter(begin, stop)
                while e.at.clock[memory.T] < stop and s.status == "completed":
                    why = self._told(lambda stop=stop: e.advance(stop, most))
                    if why == memory.ENDED:
                        k = int(e.at.tally[memory.WHO])
                        s.stop("event", f"ended by {s.watches[k].name!r} at t = {float(e.at.clock[memory.T]):.12g} s")
                    self._flush(why == memory.STEPS_TAKEN)
                    if s.on_step is not None:
                        call_on_step(s, float(e.at.clock[memory.T]), e.at.q0, e.at.v0)

    def _told(self, go: Callable[[], Any]) -> Any:
        """Go on; ends that have a status of their own set it."""
        try:
            return go()
        except engine.NoAnswerError as refused:
            status = STATUSES.get(refused.code)
            if status is None:
                raise
            message = str(refused)
            if status == "chattering":
                self._flush()
                message += f": {', '.join(sorted({event.contact for event in self.session.events[-CHATTER:]}))}"
            self.session.stop(status, message)
            return memory.FAILURE

    def _between(self, begin: float, stop: float) -> None:
        """Let forces take their limits from within a piece between break points."""
        self.engine.at.bounds[:] = bounds_between(begin, stop, self.session.stops)

    def _enter(self, begin: float, stop: float) -> None:
        """Begin a piece between break points: contacts see the new forces."""
        e = self.engine
        self._between(begin, stop)
        if e.at.clock[memory.T] == begin and begin in self.session.stops:
            self._told(e.settle)

    def _flush(self, sparing: bool = False) -> None:
        """Hand complete samples and events over."""
        e, s = self.engine, self.session
        if sparing and s.on_step is None and e.at.tally[memory.COMPLETE] < engine.SAMPLES // 4:
            return
        s.rejected, s.steps = int(e.at.tally[memory.REJECTED]), int(e.at.tally[memory.STEPS])
        for t, i, old, new in e.events():
            name = s.watches[i].name if not old else self.names[i]
            s.events.append(EventRecord(t, name, i, old, new))
        block = e.samples()
        block["modes"] = PUBLIC[block["modes"]].astype(np.int64)
        if self.system.plain:
            del block["friction_work"], block["relative_velocity"]  # of surfaces at rest it is the heat
        s.add(block, e.checkpoint)

    def _finish(self) -> None:
        e, s = self.engine, self.session
        self._flush()
        s.evaluations = int(e.at.tally[memory.EVALUATIONS])
        if e.at.tally[memory.GAINS]:
            s.status = "inaccurate" if s.status == "completed" else s.status
            message = GAINED.format(
                count=int(e.at.tally[memory.GAINS]), gain=float(e.at.gain[0]), t=float(e.at.gain[1])
            )
            s.message = f"{s.message}; {message}".removeprefix("; ")
        s.say_unresolved(int(e.at.tally[memory.UNRESOLVED]))


def run_contacts(
    session: Session, impacts: str = "simultaneous", sticking: Any = None, stepper: str = "dop853"
) -> None:
    """Integrate a session with contacts or dry friction from event to event.

    Parameters
    ----------
    impacts
        One of `ORDERS`.
    sticking
        Names of contacts that must stick at the start.
    stepper
        One of `runge_kutta.METHODS`: the steps between events.
    """
    ContactRun(session, impacts, sticking, stepper).run()
