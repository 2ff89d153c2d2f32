"""`method="moreau"`: time stepping for many contacts; impacts and forces alike are impulses of a step.

Symbols: q_m = q + v h / 2 configuration in the middle; u = W v contact velocities; P impulses; e restitution.

    M (v+ - v) = h f + W^T P - A^T L         A v+ = 0
    0 <= u_N+ + e u_N-  perp  P_N >= 0,      P_T by Coulomb's law            for contacts that would close in the step
    q+ = q + h (v + v+) / 2,  then positions moved back by the least motion where a gap is negative, and onto the rows

f is taken in the middle too, at the velocity to which forces and the last impulses lead there: gyroscopic terms at the
old velocity would feed energy into whatever spins.
u_N- of a contact that was closed is that of the end of the last step, and so is its part in the heat,
-P . (u- + u+) / 2, in the axes and at the touching point of the new normal: rows turn with their bodies, and would show
what rolls as bouncing.
Poisson's restitution: P of e = 0 compresses, then contacts that were open in the step before expand with at least e P.
First order, whatever happens in a step; no event is located. Contacts at rest do not creep: u = 0 to rounding.
Sources: J. J. Moreau 1988; M. Jean 1999; V. Acary, "Projected event-capturing time-stepping schemes", Comput. Methods
Appl. Mech. Eng. 256 (2013) 224-250.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.simulate.contact import moreau_loops as loop
from dalembert.simulate.contact.collision import NO_IMPULSES
from dalembert.simulate.contact.forces import Chart, Forces
from dalembert.simulate.contact.geometry import Geometry
from dalembert.simulate.contact.laws import CONFLICT
from dalembert.simulate.contact.massless import Limbs
from dalembert.simulate.contact.moreau_codes import Memory, pair_arrays, samples_of
from dalembert.simulate.contact.moreau_plain import PlainSteps
from dalembert.simulate.contact.pairs import pairs_of
from dalembert.simulate.contact.record import call_on_step, guarded
from dalembert.simulate.contact.start import refuse_penetration
from dalembert.simulate.contact.surface_loops import SLOTS
from dalembert.simulate.samples import ON_THE_GRID, refuse_breaks_between_steps, snapped
from dalembert.simulate.smooth.session import Session

Array = np.ndarray

BLOCK = 1000
"""Samples a block."""

MOST = 250
"""Steps in one call of the compiled loop: the keyboard is looked at between calls."""

KEPT = ("q", "v", "warm", "left")
"""Memory that a checkpoint holds: state, impulses and contact velocities of the last step."""

PARADOX = (
    "steps that slide through Painleve's paradox: {count}, {first}: G_NN - mu G_NT . s <= 0, forces there are none or "
    'several, and the steps take an impulse in their place; method="hybrid" stops there'
)
"""What is said of sliding that has no answer, or several; steps go on with an impulse, as time stepping can."""

DEFAULT_STEP = 1e-3
"""Seconds, where none is asked for."""


class Moreau:
    """The time stepper of one session."""

    def __init__(self, session: Session, compiled: bool) -> None:
        self.session, m, s = session, session.mechanism, session.settings
        if session.watches:
            raise UnsupportedError('method="moreau" locates no events; method="hybrid" does')
        if Limbs(np.asarray(m.mass_matrix(session.q))).any:
            raise UnsupportedError('method="moreau" needs mass in every motion; method="hybrid" takes massless limbs')
        pairs = pairs_of(m, session.extra["contacts"], SLOTS)
        session.extra["contact_names"] = tuple(pair.name for pair in pairs)
        self.geometry, self.chart, self.forces = Geometry(m, pairs), Chart(m), Forces(session.controller)
        self.pair_arrays = pair_arrays(self.geometry)
        self.memory = Memory(session, self.geometry, self.chart, self.forces)
        self.tables = session.controller.signals.tables()
        h = s.step or min(DEFAULT_STEP, s.largest_step)
        total = max(1, round(s.duration / h)) if s.step else int(np.ceil(s.duration / h * (1.0 - ON_THE_GRID)))
        h = s.duration / total
        stride = 1 if s.every is None else max(1, round(s.every / h))
        if s.every is not None and s.every < s.duration and abs(s.every / h - stride) > ON_THE_GRID * stride:
            raise ModelError(
                f'every={s.every:g} is no multiple of the step: method="moreau" takes {total} steps of {h:.9g} s, and '
                "samples at their ends; give a step= that divides it"
            )
        refuse_breaks_between_steps(session.breaks, s.start, h, 'method="moreau"')
        self.counts = np.array([0, stride, total, 0, 0, 0, 0, 0, 0], np.int64)
        self.sums = np.array([0.0, 0.0, 0.0, h, s.start, 0.0, 0.0, 0.0])
        self.samples = samples_of(session, len(pairs), BLOCK)
        offsets = bool(m.names) and bool(np.any(m.constraint_velocity(session.q, np.zeros(m.nv), s.start)))
        self.plain = None if compiled and not offsets else PlainSteps(self)

    @property
    def t(self) -> float:
        """The time of the state."""
        return float(self.sums[loop.START] + self.counts[loop.COUNT] * self.sums[loop.STEP])

    def run(self) -> None:
        """Take all steps."""
        s, counts = self.session, self.counts
        if s.checkpoint is None:
            refuse_penetration(self.geometry, s.q)
        with guarded(s, lambda: self.forces.time, self._finish):
            if s.checkpoint is None:
                self._first_sample()
            else:
                self._restore(s.checkpoint)
            most = MOST if s.on_step is None else 1
            while counts[loop.COUNT] < counts[loop.TOTAL] and s.status == "completed":
                self._advance(most)
                if s.on_step is not None:
                    call_on_step(s, self.t, self.memory.work.q, self.memory.work.v)
                if counts[loop.SAMPLES] >= BLOCK:
                    self._flush()

    def _advance(self, most: int) -> None:
        work = self.memory.work
        if self.plain is not None:
            code = self.plain.advance(most)
        else:
            code = loop.advance(work, self.pair_arrays, self.tables, self.counts, self.sums, self.samples, most)
        if code == loop.CALLBACK and self.memory.error is not None:
            error, self.memory.error, work.environment[1] = self.memory.error, None, 0.0
            raise error
        if code == loop.NON_FINITE:
            raise SolvabilityError(f"at t = {self.t:.9g} s: the motion is no longer finite; try a smaller step")
        if code == loop.MASSLESS:
            raise SolvabilityError(f"at t = {self.t:.9g} s the mass matrix is singular")
        if code == loop.CONTRADICTORY:
            worst = float(work.missed.max())
            bad = np.flatnonzero(work.missed > CONFLICT * worst)
            names = ", ".join(repr(self.geometry.pairs[i].name) for i in bad)
            raise SolvabilityError(NO_IMPULSES.format(t=self.t, names=names, residual=worst))

    def _first_sample(self) -> None:
        w, samples = self.memory.work, self.samples
        samples.t[0], samples.q[0], samples.v[0] = self.t, w.q, w.v
        samples.modes[0] = 2
        self.counts[loop.SAMPLES] = 1

    def _finish(self) -> None:
        s = self.session
        self._flush()
        s.steps = s.evaluations = int(self.counts[loop.COUNT])
        for status, message in self._troubles():
            s.status = status if s.status == "completed" else s.status
            s.message = f"{s.message}; {message}".removeprefix("; ")

    def _troubles(self) -> list[tuple[str, str]]:
        """Return what steps could not do, as status and words: laws missed, penetration, Painleve's paradox."""
        c, sums, found = self.counts, self.sums, []
        name = [pair.name for pair in self.geometry.pairs]
        if c[loop.UNSOLVED]:
            words = f"steps that miss the laws of contact by more than {loop.ACCEPTED:g}: {c[loop.UNSOLVED]}"
            found.append(("inaccurate", f"{words}, see contact_residual"))
        if c[loop.DEEP_STEPS]:
            where = f"contact {name[c[loop.DEEP_PAIR]]!r} at t = {sums[loop.DEEP_TIME]:.9g} s"
            words = f"steps that begin with a penetration: {c[loop.DEEP_STEPS]}"
            found.append(("inaccurate", f"{words}, the deepest {sums[loop.DEEPEST]:.3g} m of {where}"))
        if c[loop.PARADOXES]:
            first = f"the first at t = {sums[loop.PARADOX_TIME]:.9g} s at contact {name[c[loop.PARADOX]]!r}"
            found.append(("indeterminate", PARADOX.format(count=c[loop.PARADOXES], first=first)))
        return found

    def _flush(self) -> None:
        w, count = self.memory.work, int(self.counts[loop.SAMPLES])
        block = {name: rows[:count].copy() for name, rows in zip(self.samples._fields, self.samples, strict=True)}
        s = self.session.settings
        block["t"] = snapped(block["t"], s.start, s.end, s.every)
        self.counts[loop.SAMPLES] = 0
        numbers = np.array([self.counts[loop.COUNT], self.counts[loop.UNSOLVED], *self.sums[:3]])
        troubles = np.array([*self.counts[loop.PARADOXES :], *self.sums[loop.PARADOX_TIME :]])
        checkpoint: dict[str, Any] = {"numbers": numbers, "troubles": troubles}
        checkpoint |= {name: getattr(w, name).copy() for name in KEPT}
        self.session.add(block, checkpoint)

    def _restore(self, kept: dict[str, Array]) -> None:
        w = self.memory.work
        for name in KEPT:
            getattr(w, name)[:] = kept[name]
        self.counts[[loop.COUNT, loop.UNSOLVED]] = kept["numbers"][:2].astype(np.int64)
        self.sums[:3] = kept["numbers"][2:]
        if "troubles" in kept:  # not in files of older versions
            self.counts[loop.PARADOXES :] = kept["troubles"][:4].astype(np.int64)
            self.sums[loop.PARADOX_TIME :] = kept["troubles"][4:]


def run_moreau(session: Session, compiled: bool = True) -> None:
    """Integrate a session with contacts by time stepping; `compiled=False` takes the plain steps, for comparison."""
    if not isinstance(compiled, bool):
        raise ModelError(f"compiled={compiled!r} must be True or False")
    Moreau(session, compiled).run()
