"""`method="moreau"`: Moreau-Jean time stepping; memory, codes and driver."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dalembert.contact.scene import CollisionScene
from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.friction.cones.turns import ConeWork
from dalembert.kernel.loops import SIGNATURE, bind, invoke
from dalembert.simulate.contact.complementarity import GAINED, NO_IMPULSES, Limbs, free_motion
from dalembert.simulate.contact.geometry import refuse_penetration, refuse_small
from dalembert.simulate.contact.run_end import call_on_step, guarded
from dalembert.simulate.contact.surface_loops import SLOTS
from dalembert.simulate.equations.callbacks import called
from dalembert.simulate.equations.codes import Forces, _kernel, _traced
from dalembert.simulate.equations.signals import SIGNALS
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import ACCEPTED, CONFLICT, ON_THE_GRID, RESTING, SMALLEST_IN_STEPS, TOUCHING
from dalembert.simulate.samples import Steps, refuse_breaks_between_steps, snapped, steps_between, steps_that_go_on
from dalembert.simulate.session import Session, rank_of
from dalembert.simulate.steppers import moreau_loops as loop
from dalembert.simulate.steppers.moreau_loops import (
    ALONG,
    BIAS,
    CLOSE,
    TAU,
    TERMS,
    FoundShapes,
    MoreauSamples,
    MoreauWork,
)
from dalembert.simulate.steppers.moreau_terms import MoreauTerms, address
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Memory of time stepping: what compiled steps read and write.


class MoreauMemory:
    """Work of one session, with everything that must stay alive beside it; errors of Python functions are kept."""

    def __init__(self, session: Session, terms: MoreauTerms, forces: Forces, room: int) -> None:
        self.session, self.terms, self.forces = session, terms, forces
        self.error: BaseException | None = None
        self.alive: list[Any] = [terms, forces]
        self.work = _work(session, terms, room)
        self._bind(terms)
        self.evaluate(0.0)
        w = self.work
        self.massless = Limbs(w.M.copy()).any
        self.trapped_motion = self.massless and bool(free_motion(w.M.copy(), w.A.copy()).shape[1])
        w.stiff[0] = 1.0 if self.massless else 0.0
        w.driven[:], w.passive[:] = terms.driven(), terms.springs_and_dampers()

    def pattern(self) -> None:
        """Write the pattern of the mass matrix's factor, from a configuration of no special kind."""
        w = self.work
        kept = w.q.copy(), w.v.copy()
        w.v[:] = np.cos(np.arange(w.v.size) + 1.0)  # half a step of a second away from the start
        self.evaluate(1.0)
        ancestors, depth = self.terms.ancestors(w.M.copy(), self.massless)
        w.ancestors[:], w.depth[:] = ancestors, depth
        w.q[:], w.v[:] = kept
        self.evaluate(0.0)

    def evaluate(self, h: float, t: float | None = None) -> None:
        """Write the terms in the middle of a step of h seconds."""
        w = self.work
        w.time[0], w.h[0] = self.session.settings.start if t is None else t, h
        invoke(*w.calls[TERMS])
        self.raise_error()

    def raise_error(self) -> None:
        """Raise what a function of Python has raised."""
        if self.error is not None:
            error, self.error, self.work.environment[1] = self.error, None, 0.0
            raise error

    def _bind(self, terms: MoreauTerms) -> None:
        w, m = self.work, self.session.mechanism
        kernels = terms.kernels()
        self._take(ALONG, kernels["along"], {"base": w.base, "way": w.way, "q": w.moved})
        if terms.python:
            self._call(TERMS, terms.callback(w, self._fail))
            self._call(BIAS, terms.bias_callback(w, self._fail))
        else:
            names = (
                "h", "middle", "M", "bias", "A", "rate", "gaps", "W", "offset", "load", "axes", "balls", "turns",
                "screws", "poses",
            )  # fmt: skip
            arrays = {name: getattr(w, name) for name in names} | {"q": w.q, "v": w.v, "t": w.time} | terms.inputs
            self._take(TERMS, kernels["terms"], arrays)
            arrays = {"q": w.middle, "v": w.speed, "t": w.time, "bias": w.bias, "power": w.power} | terms.inputs
            self._take(BIAS, kernels["bias"], arrays)
        if w.residual.size:
            if terms.mechanism is not None:
                key = ("simulate", m.content(), "close")
                kernel = _kernel(key, lambda: _traced(m, "project_step"), m.cacheable)
                status = np.zeros(1)
                self.alive.append(status)
                done = {"step": w.correction, "residual": w.residual, "status": status}
                self._take(CLOSE, kernel, {"q": w.moved, "t": w.time} | done)
            else:
                self._call(CLOSE, SIGNATURE(self._close))
        if self.forces.controller.function is not None:
            self._call(SIGNALS, SIGNATURE(self._called))
        if not self.forces.zero:
            arrays = {"t": w.environment[:1], "q": w.q, "v": w.v, "signals": w.environment[2:], "tau": w.tau}
            self._take(TAU, terms.force_kernel(self.forces), arrays | {"slopes": w.slopes})

    def _take(self, row: int, kernel: Any, arrays: dict[str, Array]) -> None:
        self.work.calls[row], memory = bind(kernel, arrays)
        self.alive += [memory, kernel]

    def _call(self, row: int, function: Any) -> None:
        self.work.calls[row] = address(function), 0, 0
        self.alive.append(function)

    def _fail(self, error: BaseException) -> None:
        """Keep an exception: it cannot pass through compiled code."""
        self.error, self.work.environment[1] = error, 1.0

    def _called(self, table: Any, first: int, stop: int, scratch: Any) -> None:
        """Ask the Python function for joint forces."""
        w, c = self.work, self.forces.controller
        try:
            self.forces.time = float(w.environment[0])
            w.environment[2:] = called(c.function, self.forces.time, w.q, w.v)  # type: ignore[arg-type]
        except BaseException as error:
            self._fail(error)

    def _close(self, table: Any, first: int, stop: int, scratch: Any) -> None:
        """Put positions onto the constraints of a system that is no mechanism."""
        w = self.work
        try:
            w.correction[:] = self.session.mechanism.project(w.moved.copy(), t=float(w.time[0])) - w.moved
            w.moved[:] += w.correction
            w.residual[:] = 0.0
        except BaseException as error:
            self._fail(error)


def _work(session: Session, terms: MoreauTerms, room: int) -> MoreauWork:
    """Return the memory of a run, zeros but for the state and what is known of the rank of its rows."""
    m, n, k = session.mechanism, session.mechanism.nv, terms.k + room
    rows, held = len(m.names), int(sum(m.holonomic))
    rank, signals = rank_of(session), session.controller.symbols.numel()
    balls, frames = len(terms.contacts.fields), 0 if terms.scene is None else len(terms.scene.frames)
    turning = 3 * terms.k if terms.turning else 0
    shapes: dict[str, tuple[int, ...]] = {
        "time": (1,), "h": (1,), "power": (1,), "slopes": (2 * n,), "passive": (2 * n,), "stiff": (1,),
        "rho": (1,), "q": (m.nq,), "base": (m.nq,), "moved": (m.nq,),
        "middle": (m.nq,), "environment": (2 + signals,), "M": (n, n), "A": (rows, n), "rate": (rows,),
        "screws": (n if frames else 0, 6), "poses": (frames, 12), "margin": (1,),
        "residual": (held,), "stiffened": (n, n), "L": (n, n), "Q": (rows, n), "S": (rows, rows), "C": (rows, rows),
        "rest": (rows, rows), "side": (rows,), "lam": (rows,), "row_sizes": (rows,), "gaps": (k,), "W": (3 * k, n),
        "offset": (3 * k,), "load": (k,), "axes": (k, 3, 3), "balls": (balls, 12 + 6 * n), "turns": (turning, n),
        "Y": (k, n, 3), "block": (3, 3), "distance": (SLOTS,), "normals": (SLOTS, 3), "places": (SLOTS, 3),
        "normal": (3,),
        "left": (k, 9), "missed": (k,), "mu": (k,), "bound": (k,), "floor": (k,), "G": (3 * k, 3 * k),
        "found": (room, 7), "past_at": (room, 3), "past_push": (room, 3), "past_left": (room, 9),
    }  # fmt: skip
    shapes |= dict.fromkeys(("warm", "before", "after", "P", "g", "r", "more"), (3 * k,))
    whole = {"calls": (SIGNALS + 1, 3), "ancestors": (n, n), "depth": (n,), "known_rank": (1,), "live": (1,)}
    whole |= dict.fromkeys(("active", "kinds", "first"), (k,))
    whole |= {"who": (room, 3), "past": (1,), "past_who": (room, 2)}
    flags = {"kept": (rows,), "driven": (rows,), "ready": (k,), "closed": (k,), "inside": (k,), "taken": (room,)}
    arrays: dict[str, Any] = {name: np.zeros(shapes.get(name, (n,))) for name in MoreauWork._fields if name != "cones"}
    arrays |= {name: np.zeros(shape, np.int64) for name, shape in whole.items()}
    arrays |= {name: np.zeros(shape, np.bool_) for name, shape in flags.items()}
    arrays["axes"][:], arrays["load"][:], arrays["live"][0] = np.eye(3), 1.0, terms.k
    arrays["q"][:], arrays["v"][:] = session.q, session.v
    arrays["row_sizes"][:] = np.ones(rows) if rank is None else 1.0 / rank.scales
    arrays["known_rank"][0] = -1 if rank is None else rank.rank
    if terms.scene is not None:
        sizes = [float(record["reach"]) for record in terms.scene.records if record["reach"] > 0.0]
        arrays["margin"][0] = min(MARGIN, MARGIN_PART * min(sizes, default=MARGIN))
    return MoreauWork(**arrays, cones=ConeWork.of(k, 3 * k))


def samples_of(session: Session, contacts: int, size: int) -> MoreauSamples:
    """Return room for a block of samples."""
    m = session.mechanism
    widths: dict[str, tuple[int, ...]] = {
        "q": (m.nq,), "v": (m.nv,), "acceleration": (m.nv,), "multipliers": (len(m.names),),
        "contact_forces": (3 * contacts,), "contact_moments": (3 * contacts,), "modes": (contacts,),
        "contact_points": (contacts,),
    }  # fmt: skip
    whole = ("modes", "contact_status", "contact_points")
    return MoreauSamples(
        **{
            name: np.zeros((size, *widths.get(name, ())), np.int64 if name in whole else float)
            for name in MoreauSamples._fields
        }
    )


# ----------------------------------------------------------------------------------------------------------------------
# `method="moreau"`: time stepping for many contacts; impacts and forces alike are impulses of a step.
#
# Symbols: q_m = q + v h / 2 configuration in the middle; u = W v + offset contact velocities; P impulses;
# e restitution:
#
#     M (v+ - v) = h f + W^T P - A^T L         A v+ + rate = 0
#     0 <= u_N+ + e u_N-  perp  P_N >= 0,      P_T by Coulomb's law            for contacts that would close in the step
#     q+ = q + h (v + v+) / 2,  then positions moved back by the least motion where a gap is negative, and onto the rows
#
# f is taken in the middle too, at the velocity to which forces and the last impulses lead there: gyroscopic terms at
# the old velocity would feed energy into whatever spins. Rates of driven rows and surfaces are those of the end of the
# step. Contacts that the answer would close join the problem, until there are none: impulses of others close contacts,
# too. Friction without a normal has |P_T| <= h load limit. u_N- of a contact that was closed is that of the end of the
# last step, and so is its part in the heat, -P . (u- + u+) / 2, in the axes and at the touching point of the new
# normal: rows turn with their bodies, and would show what rolls as bouncing. Poisson's restitution: P of e = 0
# compresses, then contacts that were open in the step before expand with at least e P. First order, whatever happens in
# a step; no event is located. Contacts at rest do not creep: u = 0 to rounding. Sources: J. J. Moreau 1988; M. Jean
# 1999; V. Acary, "Projected event-capturing time-stepping schemes", Comput. Methods Appl. Mech. Eng. 256 (2013)
# 224-250.


MARGIN, MARGIN_PART = 1e-3, 0.02
"""Contacts between shapes are looked for within these metres, or this part of the smallest shape, and what moves."""

ROOM = 64
"""Contacts between shapes that memory begins with; it is doubled where they are more."""

MOST_KEPT = 1024
"""Contacts between shapes that a checkpoint holds."""

MOST_POINTS = 8
"""Points at which a pair of shapes touches at once, at most."""

BLOCK = 1000
"""Samples a block."""

MOST = 250
"""Steps in one call of the compiled loop: the keyboard is looked at between calls."""

KEPT = ("q", "v", "tau_before", "mean", "warm", "left", "past", "past_who", "past_at", "past_push", "past_left")
"""Memory that a checkpoint holds: state, impulses and contact velocities of the last step."""

PARADOX = (
    "steps that slide through Painleve's paradox: {count}, {first}: G_NN - mu G_NT . s <= 0, forces there are none or "
    'several, and the steps take one impulse, or none, in their place; method="hybrid" stops there'
)
"""What is said of sliding that has no answer, or several; steps go on with an impulse, as time stepping can."""

REMEDY = (
    "take a smaller step=, give forces as an expression of t, q, v, whose stiffness and damping are then implicit, or "
    'take method="hybrid", whose steps adapt'
)

UNSTABLE = (
    "at t = {t:.9g} s the steps of {h:.3g} s are unstable: joint forces change faster than a step, and the energy of "
    "motion has grown {growth:.3g} times in a few steps; " + REMEDY
)
"""What is said where the steps make the energy that they show."""

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


OPPOSING = (
    "at t = {t:.9g} s constraint rows contradict each other: {names} ask for velocities that no motion has; look at "
    "the rates of what drives them"
)
"""What is said of rows that move by themselves against each other."""


def pair_names(scene: CollisionScene) -> list[str]:
    """Return the names of the pairs of a scene, each once."""
    names, seen = [], Counter[str]()
    for k in range(len(scene.pairs)):
        one, other = scene.names(k)
        name = f"{other} on {one}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return names


class Moreau:
    """The time stepper of one session."""

    def __init__(self, session: Session) -> None:
        self.session, s = session, session.settings
        if session.watches:
            raise UnsupportedError('method="moreau" locates no events; method="hybrid" does')
        self.terms, self.forces = MoreauTerms(session), Forces(session.controller)
        scene = self.terms.scene
        pairs = [] if scene is None else pair_names(scene)
        self.names = [*(contact.name for contact in self.terms.contacts.contacts), *pairs]
        session.extra["contact_names"] = tuple(self.names)
        self.room = 0 if scene is None else min(ROOM, MOST_POINTS * len(pairs))
        self.memory = MoreauMemory(session, self.terms, self.forces, self.room)
        self.shapes = None if scene is None else FoundShapes(scene.tables, scene.memory())
        if self.memory.trapped_motion:
            raise UnsupportedError('method="moreau" needs mass in every motion; method="hybrid" takes massless limbs')
        self.memory.pattern()
        self.laws = self.terms.table(self.memory.work.ancestors, self.memory.work.depth, self.room)
        self.tables = session.controller.signals.tables()
        start, h, total = self._steps()
        stride = 1 if s.every is None else max(1, round(s.every / h))
        if s.every is not None and s.every < s.duration and abs(s.every / h - stride) > ON_THE_GRID * stride:
            raise ModelError(
                f'every={s.every:g} is no multiple of the step: method="moreau" takes {total} steps of {h:.9g} s, and '
                "samples at their ends; give a step= that divides it"
            )
        refuse_breaks_between_steps(session.breaks, start, h, 'method="moreau"')
        self.counts, self.sums = np.zeros(loop.STREAK + 1, np.int64), np.zeros(loop.STREAK_ENERGY + 1)
        self.counts[[loop.STRIDE, loop.TOTAL]] = stride, total
        self.sums[[loop.STEP, loop.START]] = h, start
        self.samples = samples_of(session, len(self.names), BLOCK)

    def _steps(self) -> Steps:
        """Return the steps of the run; of one that goes on those from there."""
        s, kept = self.session.settings, self.session.checkpoint
        asked, at_most = s.step or min(DEFAULT_STEP, s.largest_step), s.step is None
        if kept is None or "clock" not in kept:  # not in files of older versions
            return steps_between(s.start, s.duration, asked, at_most)
        t, start, size = kept["clock"]
        return steps_that_go_on(Steps(start, size, int(kept["numbers"][0])), t, s.end, asked, at_most)

    @property
    def t(self) -> float:
        """The time of the state."""
        return float(self.sums[loop.START] + self.counts[loop.COUNT] * self.sums[loop.STEP])

    def run(self) -> None:
        """Take all steps."""
        s, counts = self.session, self.counts
        if s.checkpoint is None:
            gaps = self._start_gaps()
            refuse_small(s.system, s.extra.get("contacts"), self.names, gaps, SMALLEST_IN_STEPS)
            refuse_penetration(self.names, gaps)
            if self.terms.scene is not None:
                found, who = self.terms.scene.detect(s.q, 0.0)
                refuse_penetration([self.names[self.terms.k + pair] for pair in who[:, 0]], found[:, 6])
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
        code = loop.advance(work, self.laws, self.shapes, self.tables, self.counts, self.sums, self.samples, most)
        self.memory.raise_error()
        if code == loop.FULL:
            self._enlarge()
            return
        if code == loop.OPPOSED:
            names = [repr(name) for name, kept in zip(self.terms.contacts.names, work.kept, strict=True) if not kept]
            raise SolvabilityError(OPPOSING.format(t=self.t, names=", ".join(names)))
        if code == loop.UNSTABLE:
            growth = float(loop.kinetic_energy(work) / self.sums[loop.STREAK_ENERGY])
            raise SolvabilityError(UNSTABLE.format(t=self.t, growth=growth, h=self.sums[loop.STEP]))
        if code == loop.NON_FINITE:
            raise SolvabilityError(f"at t = {self.t:.9g} s the steps are unstable, the motion is not finite: {REMEDY}")
        if code == loop.MASSLESS:
            raise SolvabilityError(f"at t = {self.t:.9g} s the mass matrix is singular")
        if code in (loop.CONTRADICTORY, loop.TRAPPED):
            worst = float(work.missed.max())
            bad = np.flatnonzero(work.missed > CONFLICT * worst)
            fixed = self.terms.k
            places = [int(i) if i < fixed else fixed + int(work.who[i - fixed, 0]) for i in bad]
            names = ", ".join(repr(self.names[i]) for i in dict.fromkeys(places))
            words = NO_IMPULSES if code == loop.CONTRADICTORY else NO_PLACE
            raise SolvabilityError(words.format(t=self.t, names=names, residual=worst))

    def _first_sample(self) -> None:
        w, samples = self.memory.work, self.samples
        samples.t[0], samples.q[0], samples.v[0] = self.t, w.q, w.v
        samples.modes[0] = Mode.OPEN
        self.counts[loop.SAMPLES] = 1
        self._close_touching()

    def _enlarge(self) -> None:
        """Double the room for contacts between shapes; the step that found more begins again."""
        old, massless = self.memory.work, self.memory.massless
        self.room *= 2
        self.memory = MoreauMemory(self.session, self.terms, self.forces, self.room)
        w = self.memory.work
        for name in ("ancestors", "depth", "stiff", "q", "v", "environment", "past"):
            getattr(w, name)[...] = getattr(old, name)
        for name in ("warm", "closed", "left", "past_who", "past_at", "past_push", "past_left"):
            getattr(w, name)[: len(getattr(old, name))] = getattr(old, name)
        self.memory.massless = massless
        self.laws = self.terms.table(w.ancestors, w.depth, self.room)

    def _start_gaps(self) -> Array:
        """Return the gaps at the start; infinite for friction without a normal, which has none."""
        w = self.memory.work
        self.memory.evaluate(0.0, self.t)
        if self.laws.radius.size:
            loop.fields_at_start(w, self.laws)
        return np.where(self.laws.gapped, w.gaps, np.inf)[: self.terms.k]

    def _close_touching(self) -> None:
        """Note which contacts touch at the start of the run, neither approaching nor separating, and how they move."""
        w, gaps, k = self.memory.work, self._start_gaps(), self.terms.k
        w.after[:] = w.W @ w.v + w.offset
        u = w.after.reshape(-1, 3)[:k]
        resting = np.abs(u[:, 0]) <= RESTING * (1.0 + np.hypot(u[:, 1], u[:, 2]))
        w.closed[:k] = (gaps <= TOUCHING) & resting
        w.new[:] = w.v
        loop.leave_at_start(w, self.laws)

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
        count = int(self.counts[loop.SAMPLES])
        block = {name: rows[:count].copy() for name, rows in zip(self.samples._fields, self.samples, strict=True)}
        s = self.session.settings
        block["t"] = snapped(block["t"], s.start, s.end, s.every)
        self.counts[loop.SAMPLES] = 0
        numbers = np.array([self.counts[loop.COUNT], self.counts[loop.UNSOLVED], *self.sums[:3]])
        troubles = np.array([*self.counts[loop.PARADOXES :], *self.sums[loop.PARADOX_TIME :]])
        clock = np.array([self.t, self.sums[loop.START], self.sums[loop.STEP]])
        checkpoint: dict[str, Any] = {"numbers": numbers, "troubles": troubles, "clock": clock}
        checkpoint |= {name: self._kept(name) for name in KEPT}
        self.session.add(block, checkpoint)

    def _kept(self, name: str) -> Array:
        """Return memory of a checkpoint; of contacts between shapes as many rows in every block."""
        values = getattr(self.memory.work, name)
        rows = min(MOST_KEPT, MOST_POINTS * (len(self.names) - self.terms.k))
        if name in ("warm", "left"):  # those found in each step are not kept by place
            return values[: (3 if name == "warm" else 1) * self.terms.k].copy()
        if not name.startswith("past_"):
            return values.copy()
        padded = np.zeros((rows, *values.shape[1:]), values.dtype)
        count = min(int(self.memory.work.past[0]), rows)
        padded[:count] = values[:count]
        return padded

    def _restore(self, kept: dict[str, Array]) -> None:
        w = self.memory.work
        for name in KEPT:
            if name in kept:  # not in files of older versions
                values = np.asarray(kept[name])
                values = values[: int(kept["past"][0])] if name.startswith("past_") else values
                while len(values) > len(getattr(w, name)):
                    self._enlarge()
                    w = self.memory.work
                getattr(w, name)[: len(values)] = values
        w.closed[:] = w.warm[::3] > 0.0
        self.counts[[loop.COUNT, loop.UNSOLVED]] = kept["numbers"][:2].astype(np.int64)
        self.sums[:3] = kept["numbers"][2:]
        split = self.counts.size - loop.PARADOXES
        if "troubles" in kept and kept["troubles"].size > split:  # not in files of older versions
            self.counts[loop.PARADOXES :] = kept["troubles"][:split].astype(np.int64)
            self.sums[loop.PARADOX_TIME :] = kept["troubles"][split:]


def run_moreau(session: Session) -> None:
    """Integrate a session with contacts by time stepping."""
    Moreau(session).run()
