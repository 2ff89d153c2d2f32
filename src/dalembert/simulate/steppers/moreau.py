"""`method="moreau"`: Moreau-Jean time stepping; memory, codes and driver."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.kernel.loops import SIGNATURE, bind
from dalembert.simulate.contact.complementarity import GAINED, NO_IMPULSES, Limbs, free_motion
from dalembert.simulate.contact.geometry import Geometry, refuse_penetration, refuse_small
from dalembert.simulate.contact.run_end import call_on_step, guarded
from dalembert.simulate.contact.shapes import Heightfield, Plane
from dalembert.simulate.equations.callbacks import called
from dalembert.simulate.equations.codes import Chart, Forces, _kernel, _traced
from dalembert.simulate.equations.signals import SIGNALS
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import ACCEPTED, CONFLICT, ON_THE_GRID, RESTING, SMALLEST_IN_STEPS, TOUCHING
from dalembert.simulate.samples import refuse_breaks_between_steps, snapped
from dalembert.simulate.session import Session, rank_of
from dalembert.simulate.steppers import moreau_loops as loop
from dalembert.simulate.steppers.moreau_contacts import contacts_of
from dalembert.simulate.steppers.moreau_loops import ALONG, CLOSE, CONTACTS, FIELD, LIMIT, PLANE, SPHERES, TAU, Pairs
from dalembert.simulate.steppers.moreau_plain import PlainSteps
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Memory of time stepping: what compiled steps read and write.


class MoreauWork(NamedTuple):
    """Memory of one run: what the codes read and write, and where they are."""

    calls: np.ndarray
    q: np.ndarray
    v: np.ndarray
    environment: np.ndarray  # t, failure, signals
    tau: np.ndarray
    base: np.ndarray
    way: np.ndarray
    moved: np.ndarray
    middle: np.ndarray
    time: np.ndarray  # (1,)
    speed: np.ndarray  # at which bias is taken
    M: np.ndarray
    bias: np.ndarray
    A: np.ndarray
    frames: np.ndarray
    correction: np.ndarray
    residual: np.ndarray
    gaps: np.ndarray
    W: np.ndarray
    axes: np.ndarray
    warm: np.ndarray  # impulses of the last step
    closed: np.ndarray  # (k,) contacts that touch at the start of the step
    left: np.ndarray  # (k, 9) contact velocity after it in world axes, r omega, normal
    row_sizes: np.ndarray  # (m,) that rows of their constraint have in the metric of the mass, where the rank is known
    known_rank: np.ndarray  # (1,), -1 where it is not known
    missed: np.ndarray  # (k,) by how much the laws of contacts were missed in the last step, relative to the data


class MoreauSamples(NamedTuple):
    """Rows of a block; the last ones as `record.CONTACT_FIELDS`."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray
    multipliers: np.ndarray
    work: np.ndarray
    step: np.ndarray
    heat: np.ndarray
    contact_forces: np.ndarray
    modes: np.ndarray
    contact_status: np.ndarray
    contact_residual: np.ndarray


# ----------------------------------------------------------------------------------------------------------------------
# Data of compiled time steps: pairs as arrays, codes bound to memory, joint forces by Python functions.


def pair_arrays(geometry: Geometry) -> Pairs:
    """Return the pairs of a geometry as arrays."""
    pairs, frames = geometry.pairs, geometry.frames
    k = len(pairs)
    kind, frame, place = np.zeros(k, np.int64), np.zeros((k, 2), np.int64), np.zeros((k, 2), np.int64)
    at, radius, normal = np.zeros((k, 2, 3)), np.zeros((k, 2)), np.zeros((k, 3))
    offset, sign, bound, field = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros((k, 5), np.int64)
    heights: list[Array] = [np.zeros(0)]
    for i, pair in enumerate(pairs):
        if pair.ball is None:
            kind[i], place[i], sign[i], bound[i] = LIMIT, pair.coordinate, pair.sign, pair.bound
            continue
        for j, ball in enumerate((pair.ball, pair.other)):
            if ball is not None:
                frame[i, j], at[i, j], radius[i, j] = frames.index(ball.frame), ball.at, ball.radius
        if isinstance(pair.ground, Plane):
            kind[i], normal[i], offset[i] = PLANE, pair.ground.normal, pair.ground.offset
        elif isinstance(pair.ground, Heightfield):
            kind[i], field[i] = FIELD, pair.ground.stored(heights)
        else:
            kind[i] = SPHERES
    mu, e = (np.array([getattr(pair, name) for pair in pairs]) for name in ("friction", "restitution"))
    poisson = np.array([pair.impact == "poisson" for pair in pairs], bool)
    slot = np.array([pair.slot for pair in pairs], np.int64)
    fields = [pair.ground if isinstance(pair.ground, Heightfield) else None for pair in pairs]
    reach = np.array(
        [0.0 if ground is None else ground.reach(r) for ground, r in zip(fields, radius[:, 0], strict=True)]
    )
    return Pairs(
        kind, frame, at, radius, normal, offset, place, sign, bound, field, slot, reach, np.concatenate(heights), mu, e,
        poisson,
    )  # fmt: skip


class MoreauMemory:
    """Work of one session, with everything that must stay alive beside it; errors of Python functions are kept."""

    def __init__(
        self, session: Session, geometry: Any, chart: Any, forces: Forces, k: int, compiled: bool = True
    ) -> None:
        self.session, self.forces = session, forces
        self.error: BaseException | None = None
        m = session.mechanism
        n, rows, held = m.nv, len(m.names), int(sum(m.holonomic))
        signals, rank = session.controller.symbols.numel(), rank_of(session)
        self.work = MoreauWork(
            np.zeros((SIGNALS + 1, 3), np.int64), session.q.copy(), session.v.copy(), np.zeros(2 + signals),
            np.zeros(n), np.zeros(m.nq), np.zeros(n), np.zeros(m.nq), np.zeros(m.nq), np.zeros(1), np.zeros(n),
            np.zeros((n, n)), np.zeros(n), np.zeros((rows, n)), np.zeros((len(geometry.frames), 18 + 6 * n)),
            np.zeros(n), np.zeros(held), np.zeros(k), np.zeros((3 * k, n)), np.zeros((k, 3, 3)),
            np.zeros(3 * k), np.zeros(k, np.bool_), np.zeros((k, 9)),
            np.ones(rows) if rank is None else 1.0 / rank.scales,
            np.array([-1 if rank is None else rank.rank], np.int64), np.zeros(k),
        )  # fmt: skip
        self.alive: list[Any] = [geometry, chart, forces]
        if compiled:
            self._bind(geometry, chart, rows, held)

    def _bind(self, geometry: Geometry, chart: Chart, rows: int, held: int) -> None:
        w, m = self.work, self.session.mechanism
        spare, status = np.zeros(rows), np.zeros(1)
        read = {"q": w.middle, "v": w.speed, "t": w.time}
        write = {"M": w.M, "bias": w.bias, "A": w.A, "drift": spare, "frames": w.frames}
        self._take(CONTACTS, geometry.kernel, read | write)
        self._take(ALONG, chart.along_kernel, {"base": w.base, "way": w.way, "q": w.moved})
        if held:
            key = ("simulate", m.content(), "close")
            kernel = _kernel(key, lambda: _traced(m, "project_step"), m.cacheable)
            done = {"step": w.correction, "residual": w.residual, "status": status}
            self._take(CLOSE, kernel, {"q": w.moved, "t": w.time} | done)
        if self.forces.controller.function is not None:
            callback = SIGNATURE(self._called)
            self.alive.append(callback)
            w.calls[SIGNALS] = ctypes.cast(callback, ctypes.c_void_p).value or 0, 0, 0
        if not self.forces.zero:
            arrays = {"t": w.environment[:1], "q": w.q, "v": w.v, "signals": w.environment[2:], "tau": w.tau}
            self._take(TAU, self.forces.kernel, arrays)
        self.alive += [spare, status]

    def _take(self, row: int, kernel: Any, arrays: dict[str, Array]) -> None:
        self.work.calls[row], memory = bind(kernel, arrays)
        self.alive += [memory, kernel]

    def _called(self, table: Any, first: int, stop: int, scratch: Any) -> None:
        """Ask the Python function for joint forces; an exception cannot pass through compiled code and is kept."""
        w, c = self.work, self.forces.controller
        try:
            self.forces.time = float(w.environment[0])
            w.environment[2:] = called(c.function, self.forces.time, w.q, w.v)  # type: ignore[arg-type]
        except BaseException as error:
            self.error, w.environment[1] = error, 1.0


def samples_of(session: Session, contacts: int, size: int) -> MoreauSamples:
    """Return room for a block of samples."""
    m = session.mechanism
    widths: dict[str, tuple[int, ...]] = {
        "q": (m.nq,), "v": (m.nv,), "acceleration": (m.nv,), "multipliers": (len(m.names),),
        "contact_forces": (3 * contacts,), "modes": (contacts,),
    }  # fmt: skip
    whole = ("modes", "contact_status")
    return MoreauSamples(
        **{
            name: np.zeros((size, *widths.get(name, ())), np.int64 if name in whole else float)
            for name in MoreauSamples._fields
        }
    )


# ----------------------------------------------------------------------------------------------------------------------
# `method="moreau"`: time stepping for many contacts; impacts and forces alike are impulses of a step.
#
# Symbols: q_m = q + v h / 2 configuration in the middle; u = W v contact velocities; P impulses; e restitution.
#
#     M (v+ - v) = h f + W^T P - A^T L         A v+ = 0
#     0 <= u_N+ + e u_N-  perp  P_N >= 0,      P_T by Coulomb's law            for contacts that would close in the step
#     q+ = q + h (v + v+) / 2,  then positions moved back by the least motion where a gap is negative, and onto the rows
#
# f is taken in the middle too, at the velocity to which forces and the last impulses lead there: gyroscopic terms at
# the old velocity would feed energy into whatever spins. u_N- of a contact that was closed is that of the end of the
# last step, and so is its part in the heat, -P . (u- + u+) / 2, in the axes and at the touching point of the new
# normal: rows turn with their bodies, and would show what rolls as bouncing. Poisson's restitution: P of e = 0
# compresses, then contacts that were open in the step before expand with at least e P. First order, whatever happens in
# a step; no event is located. Contacts at rest do not creep: u = 0 to rounding. Sources: J. J. Moreau 1988; M. Jean
# 1999; V. Acary, "Projected event-capturing time-stepping schemes", Comput. Methods Appl. Mech. Eng. 256 (2013)
# 224-250.


BLOCK = 1000
"""Samples a block."""

MOST = 250
"""Steps in one call of the compiled loop: the keyboard is looked at between calls."""

KEPT = ("q", "v", "warm", "left")
"""Memory that a checkpoint holds: state, impulses and contact velocities of the last step."""

PARADOX = (
    "steps that slide through Painleve's paradox: {count}, {first}: G_NN - mu G_NT . s <= 0, forces there are none or "
    'several, and the steps take one impulse, or none, in their place; method="hybrid" stops there'
)
"""What is said of sliding that has no answer, or several; steps go on with an impulse, as time stepping can."""

NO_PLACE = (
    "at t = {t:.9g} s no motion frees the contacts {names} of their penetration: they contradict each other; something "
    "is driven against what cannot give way"
)
"""What is said where positions have no answer: bounces may hide it from the laws of impact."""

DOUBT = (
    "steps whose masses and rows leave fewer than three certain digits: {count}, the first at t = {t:.9g} s: rows are "
    "nearly dependent, or masses far apart"
)

DEFAULT_STEP = 1e-3
"""Seconds, where none is asked for."""


class Moreau:
    """The time stepper of one session."""

    def __init__(self, session: Session, compiled: bool) -> None:
        self.session, m, s = session, session.mechanism, session.settings
        if session.watches:
            raise UnsupportedError('method="moreau" locates no events; method="hybrid" does')
        self.geometry, self.chart = contacts_of(session)
        start = self.geometry.state(session.q, session.v, s.start)
        massless = Limbs(start.M).any
        if massless and free_motion(start.M, start.A).shape[1]:
            raise UnsupportedError('method="moreau" needs mass in every motion; method="hybrid" takes massless limbs')
        self.forces = Forces(session.controller)
        shapes_alone = type(self.geometry) is Geometry
        self.names = [pair.name for pair in self.geometry.pairs] if shapes_alone else self.geometry.names
        session.extra["contact_names"] = tuple(self.names)
        compiled = compiled and shapes_alone and not massless
        self.laws: Any = pair_arrays(self.geometry) if shapes_alone else self.geometry.laws()
        self.memory = MoreauMemory(session, self.geometry, self.chart, self.forces, len(self.names), compiled)
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
        self.counts, self.sums = np.zeros(loop.UNCERTAIN + 1, np.int64), np.zeros(loop.DOUBT_TIME + 1)
        self.counts[[loop.STRIDE, loop.TOTAL]] = stride, total
        self.sums[[loop.STEP, loop.START]] = h, s.start
        self.samples = samples_of(session, len(self.names), BLOCK)
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
            gaps = self.geometry.gaps(s.q)
            refuse_small(s.system, s.extra.get("contacts"), self.names, gaps, SMALLEST_IN_STEPS)
            refuse_penetration(self.names, gaps)
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
            code = loop.advance(work, self.laws, self.tables, self.counts, self.sums, self.samples, most)
        if code == loop.CALLBACK and self.memory.error is not None:
            error, self.memory.error, work.environment[1] = self.memory.error, None, 0.0
            raise error
        if code == loop.NON_FINITE:
            raise SolvabilityError(f"at t = {self.t:.9g} s: the motion is no longer finite; try a smaller step")
        if code == loop.MASSLESS:
            raise SolvabilityError(f"at t = {self.t:.9g} s the mass matrix is singular")
        if code in (loop.CONTRADICTORY, loop.TRAPPED):
            worst = float(work.missed.max())
            bad = np.flatnonzero(work.missed > CONFLICT * worst)
            names = ", ".join(repr(self.names[i]) for i in bad)
            words = NO_IMPULSES if code == loop.CONTRADICTORY else NO_PLACE
            raise SolvabilityError(words.format(t=self.t, names=names, residual=worst))

    def _first_sample(self) -> None:
        w, samples = self.memory.work, self.samples
        samples.t[0], samples.q[0], samples.v[0] = self.t, w.q, w.v
        samples.modes[0] = Mode.OPEN
        self.counts[loop.SAMPLES] = 1
        self._close_touching()

    def _close_touching(self) -> None:
        """Note which contacts touch at the start of the run, neither approaching nor separating, and how they move."""
        w = self.memory.work
        x = self.geometry.state(w.q, w.v, self.t)
        u = (x.W @ w.v).reshape(-1, 3)
        resting = np.abs(u[:, 0]) <= RESTING * (1.0 + np.hypot(u[:, 1], u[:, 2]))
        w.closed[:] = (x.gaps <= TOUCHING) & resting
        w.left[:, :3] = np.einsum("kij,ki->kj", x.axes, u)
        w.left[:, 3:6], w.left[:, 6:] = self.geometry.spins(w.q, w.v), x.axes[:, 0]

    def _finish(self) -> None:
        s = self.session
        self._flush()
        s.steps = s.evaluations = int(self.counts[loop.COUNT])
        for status, message in self._troubles():
            s.status = status if s.status == "completed" else s.status
            s.message = f"{s.message}; {message}".removeprefix("; ")

    def _troubles(self) -> list[tuple[str, str]]:
        """Return what steps could not do, as status and words: laws, penetration, energy, digits, Painleve."""
        c, sums, troubles, name = self.counts, self.sums, [], self.names
        if c[loop.UNSOLVED]:
            words = f"steps that miss the laws of contact by more than {ACCEPTED:g}: {c[loop.UNSOLVED]}"
            troubles.append(("inaccurate", f"{words}, see contact_residual"))
        if c[loop.DEEP_STEPS]:
            where = f"contact {name[c[loop.DEEP_PAIR]]!r} at t = {sums[loop.DEEP_TIME]:.9g} s"
            words = f"steps that begin with a penetration: {c[loop.DEEP_STEPS]}, from t = {sums[loop.DEEP_FIRST]:.9g} s"
            troubles.append(("inaccurate", f"{words}, the deepest {sums[loop.DEEPEST]:.3g} m of {where}"))
        if c[loop.GAINS]:
            words = GAINED.format(count=c[loop.GAINS], gain=sums[loop.GAIN], t=sums[loop.GAIN_TIME])
            troubles.append(("inaccurate", words))
        if c[loop.UNCERTAIN]:
            troubles.append(("inaccurate", DOUBT.format(count=c[loop.UNCERTAIN], t=sums[loop.DOUBT_TIME])))
        if c[loop.PARADOXES]:
            first = f"the first at t = {sums[loop.PARADOX_TIME]:.9g} s at contact {name[c[loop.PARADOX]]!r}"
            troubles.append(("indeterminate", PARADOX.format(count=c[loop.PARADOXES], first=first)))
        return troubles

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
        w.closed[:] = w.warm[::3] > 0.0
        self.counts[[loop.COUNT, loop.UNSOLVED]] = kept["numbers"][:2].astype(np.int64)
        self.sums[:3] = kept["numbers"][2:]
        split = self.counts.size - loop.PARADOXES
        if "troubles" in kept and kept["troubles"].size > split:  # not in files of older versions
            self.counts[loop.PARADOXES :] = kept["troubles"][:split].astype(np.int64)
            self.sums[loop.PARADOX_TIME :] = kept["troubles"][split:]


def run_moreau(session: Session, compiled: bool = True) -> None:
    """Integrate a session with contacts by time stepping; `compiled=False` takes the plain steps, for comparison."""
    if not isinstance(compiled, bool):
        raise ModelError(f"compiled={compiled!r} must be True or False")
    Moreau(session, compiled).run()
