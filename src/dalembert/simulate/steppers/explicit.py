"""`method="dop853"`, `"dopri5"` and `"rk4"`: explicit Runge-Kutta on the constraint manifold, block by block."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.simulate.equations.callbacks import Callbacks
from dalembert.simulate.equations.chart import LARGEST_TURN, ROTATIONS, rotation_places
from dalembert.simulate.equations.codes import CODES, Codes
from dalembert.simulate.interruptible import undisturbed
from dalembert.simulate.runge_kutta import CLASSICAL, DOP853, RK45
from dalembert.simulate.session import FIELDS, Session, rank_of
from dalembert.simulate.steppers import advance_loops
from dalembert.simulate.steppers import explicit_loops as at
from dalembert.simulate.steppers.explicit_events import note_signs, pass_events
from dalembert.simulate.steppers.explicit_loops import (
    CALLBACK,
    DECLINED,
    NON_FINITE,
    OFF,
    SPARE,
    Now,
    RungeKuttaPair,
    begin_at,
)
from dalembert.simulate.steppers.inside_loops import UNRESOLVED, nodes_for
from dalembert.simulate.steppers.progress import CAUSES, Progress
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Explicit pairs as the loop reads them, and what errors are measured against.


PAIRS = ("dop853", "dopri5")
"""Methods with an error estimate; being in the list is being tested."""


def pair_of(method: str) -> RungeKuttaPair:
    """Return an explicit method for the loop; the rate at the end, where the error needs it, is one more stage."""
    third = np.zeros(0)
    if method == "rk4":
        a, b, c, error, order = CLASSICAL, np.array([1.0, 2.0, 2.0, 1.0]) / 6.0, np.array([0.0, 0.5, 0.5, 1.0]), None, 4
        error = np.zeros(5)
    elif method == "dopri5":
        a, b, c, error, order = *(np.asarray(getattr(RK45, x)) for x in "ABCE"), 5
    else:
        a, b, c, error, third = (np.asarray(getattr(DOP853, x)) for x in ("A", "B", "C", "E5", "E3"))
        order = 8
    stages = b.size
    a = a[:, :stages]
    if error[stages] != 0.0:
        wide = np.zeros((stages + 1, stages + 1))
        wide[:stages, : a.shape[1]], wide[stages, :stages] = a, b
        a, b, c = wide, np.append(b, 0.0), np.append(c, 1.0)
    a, b, c, error, third = (np.ascontiguousarray(x, dtype=float) for x in (a, b, c, error[: b.size], third[: b.size]))
    more_a, more_c, dense = CONTINUOUS[method]
    return RungeKuttaPair(a, b, c, error, third, order, more_a, more_c, dense)


def _continuous_853() -> tuple[Array, Array, Array]:
    """Return the further stages and the polynomials of dop853's continuous extension (Hairer, Norsett, Wanner, II.6).

    SciPy keeps y(s) = y0 + F0 s + F1 s (1 - s) + F2 s^2 (1 - s) + ..., F linear in the stages.
    """
    method: Any = DOP853
    stages, b = method.B.size, np.asarray(method.B)
    rows = stages + 4
    more_a, dense = np.zeros((4, rows)), np.zeros((rows, 7))
    more_a[0, :stages], more_a[1:] = b, np.asarray(method.A_EXTRA)
    s, one_less = np.polynomial.Polynomial([0.0, 1.0]), np.polynomial.Polynomial([1.0, -1.0])
    for k in range(rows):
        end, first, last = (b[k] if k < stages else 0.0), float(k == 0), float(k == stages)
        F = [end, first - end, 2.0 * end - first - last, *np.asarray(method.D)[:, k]]
        y = np.polynomial.Polynomial([0.0])
        for i, f in enumerate(reversed(F)):
            y = (y + f) * (s if i % 2 == 0 else one_less)
        dense[k, : y.coef.size - 1] = y.coef[1:]
    return more_a, np.append(1.0, np.asarray(method.C_EXTRA)), dense


CONTINUOUS = {
    "dop853": _continuous_853(),
    "dopri5": (np.zeros((0, 7)), np.zeros(0), np.ascontiguousarray(RK45.P, dtype=float)),
    "rk4": (
        np.zeros((0, 4)),
        np.zeros(0),
        np.array([[1.0, -3 / 2, 2 / 3], [0.0, 1.0, -2 / 3], [0.0, 1.0, -2 / 3], [0.0, -1 / 2, 2 / 3]]),
    ),
}
"""Further stages, their times, and polynomials of states inside a step, by name of the method: of order 7, 4 and 3."""


def scale_places(system: Any) -> Array:
    """Return per velocity the coordinate whose size its error is compared with; -1: one radian."""
    if not isinstance(system, Mechanism):
        return np.arange(system.nv)
    mechanism = system
    places = np.full(mechanism.nv, -1, np.int64)
    starts_q, starts_v = mechanism.manifold.q_start, mechanism.manifold.v_start
    for i, joint in enumerate(mechanism.joints):
        kind = KINDS[joint.kind]
        for k in range(kind.nv if kind.straight else kind.lengths):
            places[starts_v[i] + k] = starts_q[i] + k
    return places


# ----------------------------------------------------------------------------------------------------------------------
# `method="dop853"` and `"dopri5"`: explicit steps on the constraint manifold, driven from Python block by block.


BLOCK = 4096
"""Samples a block: what a killed run may lose, and how often Ctrl-C is looked at."""

CALLED_BLOCK, SECONDS = 32, 1.0
"""Steps a call of the loop where Python functions make them slow; a block ends after so many seconds at the latest."""


class Explicit:
    """The explicit stepper of one session: memory, the loop, and what it comes back for."""

    def __init__(self, session: Session) -> None:
        if session.settings.method == "rk4" and session.settings.step is None:
            raise ModelError('method="rk4" takes steps of one size: give step=')
        self.session, self.m = session, session.system
        self.progress = Progress(session.settings.start, session.settings.end)
        self.rank = rank_of(session)
        self.codes = Codes(self.m, session.controller, session.event_function, self.rank)
        self.callbacks = Callbacks(self.codes, session.event_callables)
        self.work, self._alive = self.codes.work(self.callbacks.addresses, len(session.watches))
        self.callbacks.work = self.work
        self.pair = pair_of(session.settings.method)
        n, size = self.m.nv, 2 * self.m.nv + 1
        self.now = Now(
            np.zeros(self.m.nq),
            np.zeros(n),
            np.zeros(1),
            np.zeros((self.pair.dense.shape[0], size)),
            np.zeros(size),
            np.zeros(2),
            np.zeros((SPARE, max(size, self.m.nq))),
        )
        self.clock, self.counts = np.zeros(14), np.zeros(9, np.int64)
        self.clock[[at.ALLOWED, at.LEAST_RATIO, at.LAST_RATIO]] = 1.0, np.inf, np.inf
        self.signs, self.flushed = np.zeros(len(session.watches)), time.monotonic()
        directions = np.array([watch.direction for watch in session.watches], dtype=float)
        self.nodes = nodes_for(directions, self.m.nq, n, self.pair.dense.shape[1])
        self.tables = session.controller.signals.tables()
        self.samples = at.StepSamples(
            np.zeros(BLOCK), np.zeros((BLOCK, self.m.nq)), np.zeros((BLOCK, n)), np.zeros((BLOCK, n)),
            np.zeros((BLOCK, len(self.m.names))), np.zeros(BLOCK), np.zeros(BLOCK),
        )  # fmt: skip
        s = session.settings
        self.limits = at.StepLimits(
            s.rtol, s.atol, s.step or 0.0, s.largest_step, s.every or 0.0, s.inside, s.start, s.end, LARGEST_TURN,
            scale_places(self.m), np.array(rotation_places(self.m), np.int64),
        )  # fmt: skip

    # --- the way through ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s = self.session
        fresh = s.checkpoint is None
        if fresh:
            self.now.q[:], self.now.v[:] = s.q, s.v
            self.clock[at.T] = s.settings.start
        else:
            self._restore(s.checkpoint)  # type: ignore[arg-type]
        ends = [*s.stops, s.settings.end]
        self.progress.begin(float(self.clock[at.T]), int(self.counts[at.STEPS]), int(self.counts[at.REJECTED]))
        try:
            for stop in [end for end in ends if end > self.clock[at.T]]:
                if fresh or self.clock[at.STOP] != stop:
                    self._segment(stop)
                    if not fresh and self.limits.inside:  # pieces begin behind the jump
                        self.work.q[:] = self.now.q
                        self.write(0.0)
                if fresh:
                    self._first()
                    fresh = False
                while s.status == "completed" and self.clock[at.T] < stop:
                    self._block(1 if s.on_step else CALLED_BLOCK if self.callbacks.addresses else BLOCK)
                if s.status != "completed":
                    break
        finally:
            self._flush()
            s.extra["relaxed"] = int(self.counts[at.RELAXED])
            if s.extra["relaxed"] and s.status == "completed":
                first, last, widest = self.clock[[at.FIRST_WIDE, at.LAST_WIDE, at.WIDEST]]
                steps = "1 step" if s.extra["relaxed"] == 1 else f"{s.extra['relaxed']} steps"
                s.message = (
                    f"{steps} between t = {first:.6g} s and {last:.6g} s had a wider tolerance, up to {widest:.1e} "
                    "times: errors did not fall with the step, as next to a singular configuration"
                )
            s.say_unresolved(int(self.nodes.counts[UNRESOLVED]))

    def _segment(self, stop: float) -> None:
        """Begin a segment without jumps: K[0] sees the new piece of every table, and functions behind the jump."""
        begin = float(self.clock[at.T])
        self.clock[at.BEGIN] = np.nextafter(begin, stop) if begin in self.session.stops else begin
        self.clock[at.STOP] = stop
        self.clock[at.ORIGIN], self.counts[at.FIXED] = self.clock[at.T], 0
        self.begin()

    def _first(self) -> None:
        """Write the initial state, choose the first step, note the signs of the events."""
        self.work.q[:] = self.now.q
        self.write(0.0)
        settings = self.session.settings
        self.clock[at.H] = settings.step or advance_loops.first_step(
            self.now, self.limits, self.m.nv, settings.duration
        )
        note_signs(self)

    @undisturbed()
    def _block(self, most_steps: int) -> None:
        """Call the loop once and do what it came back for."""
        arguments = (
            self.work,
            self.tables,
            self.pair,
            self.now,
            self.clock,
            self.counts,
            self.limits,
            self.samples,
            self.signs,
            self.nodes,
        )
        code = advance_loops.advance(*arguments, most_steps)
        if code in (DECLINED, at.SHORT, at.STUCK):
            code = self._rescue(code, arguments)
        if self.callbacks.error is not None:
            error = self.callbacks.error
            self.session.extra["error"] = error, self.callbacks.error_time
            self.session.stop("stopped", f"a Python function failed at t = {self.callbacks.error_time:.9g} s: {error}")
        elif code == at.EVENT:
            pass_events(self)
        elif code in (NON_FINITE, at.STUCK, DECLINED, CALLBACK, OFF):
            self._give_up(code)
        else:
            self._ask_progress()
        if self.session.on_step is not None and self.session.status == "completed":
            self.session.on_step(float(self.clock[at.T]), self.now.q.copy(), self.now.v.copy())
        if self.counts[at.SAMPLES] >= BLOCK - 1 or time.monotonic() - self.flushed > SECONDS:
            self._flush()

    def _ask_progress(self) -> None:
        """End a run whose steps fail or collapse and that would go on for hours, with the likely cause."""
        from dalembert.simulate.steppers.singularities import near_singular

        t, counts = float(self.clock[at.T]), self.counts
        said = self.progress.lost(t, int(counts[at.STEPS]), int(counts[at.REJECTED]))
        if said:
            near = f"A singular configuration is near, where rows become dependent (distance {self.distance():.1e})"
            cause = near if near_singular(self) else CAUSES
            self.session.stop("stopped", f"at t = {t:.9g} s, with a step of {self.clock[at.H]:.3g} s: {said}. {cause}")

    def _rescue(self, code: int, arguments: tuple[Any, ...]) -> int:
        """Go on where the loop did not: by a step across a singular configuration, or by states solved with `KKT`."""
        from dalembert.simulate.steppers.singularities import by_kkt, near_singular, over_the_singularity

        if near_singular(self):
            code = over_the_singularity(self, code, arguments)
        return by_kkt(self, arguments) if code == DECLINED and not self.codes.carries else code

    def begin(self) -> int:
        """Evaluate the state that the next step starts from; return what became of it."""
        ends = self.clock[at.BEGIN], self.clock[at.STOP]
        return self.careful(begin_at, self.work, self.tables, self.now, self.clock[at.T], *ends)

    def careful(self, function: Any, *arguments: Any) -> int:
        """Run with codes that go through `KKT` where needed; not under a rank that is carried, which needs none."""
        if self.codes.carries:
            return function(*arguments)
        calls = self.work.calls.copy()
        for code, address in self.callbacks.careful.items():
            row = CODES.index(code)
            if calls[row, 0]:
                self.work.calls[row] = address, 0, 0
        try:
            return function(*arguments)
        finally:
            self.work.calls[:] = calls

    def distance(self) -> float:
        """Return s_r / s_1 of the rows at the state, in the metric of the mass: zero in a singular configuration."""
        from dalembert.model.mechanism.ranks import distance

        return 1.0 if self.rank is None else distance(self.m, self.rank, self.now.q, float(self.clock[at.T]))

    def _give_up(self, code: int) -> None:
        from dalembert.simulate.steppers.singularities import near_singular, reason_in_rows

        t, h = float(self.clock[at.T]), float(self.clock[at.TRIED])
        why = {
            NON_FINITE: "the motion is no longer finite",
            at.STUCK: "the step size collapsed: a singularity of the motion, or a tolerance below rounding",
            CALLBACK: "a Python function failed",
            OFF: "the constraints stay open after a step: it is too long, or the loop cannot be closed any further",
        }.get(code) or reason_in_rows(self.m, self.now.q, self.now.v, (t, t + h))
        if code in (DECLINED, at.STUCK, NON_FINITE, OFF) and near_singular(self):
            why += f"; a singular configuration is near, where rows become dependent (distance {self.distance():.1e})"
        law = self.session.controller
        reason = (
            law.non_finite((t, t + h, np.nextafter(t + h, np.inf)), self.now.q, self.now.v)
            if code == NON_FINITE
            else ""
        )
        self.session.stop("no solution", f"at t = {t:.9g} s, with a step of {h:.3g} s: {why}{reason}")

    # --- writing down -------------------------------------------------------------------------------------------

    def write(self, h: float) -> None:
        """Append the state as a sample."""
        advance_loops.write(self.work, self.samples, self.counts, self.clock[at.T], self.now.work[0], h)
        if self.counts[at.SAMPLES] >= BLOCK:
            self._flush()

    @undisturbed()
    def _flush(self) -> None:
        self.flushed = time.monotonic()
        count = int(self.counts[at.SAMPLES])
        self.counts[at.SAMPLES] = 0
        block = {name: rows[:count].copy() for name, rows in zip(FIELDS, self.samples, strict=True)}
        s = self.session
        s.steps, s.rejected, s.evaluations = (int(self.counts[i]) for i in (at.STEPS, at.REJECTED, at.EVALUATIONS))
        s.add(block, self._checkpoint())

    def _checkpoint(self) -> dict[str, Array]:
        """Return what the loop needs to go on exactly as if it had not stopped."""
        return {
            "q": self.now.q.copy(), "v": self.now.v.copy(), "work": self.now.work.copy(), "clock": self.clock.copy(),
            "counts": self.counts.copy(), "signs": self.signs.copy(), "nodes": self.nodes.counts.copy(),
        }  # fmt: skip

    def _restore(self, kept: dict[str, Array]) -> None:
        self.now.q[:], self.now.v[:], self.now.work[:] = kept["q"], kept["v"], kept["work"]
        self.clock[: kept["clock"].size] = kept["clock"]  # older files end before what is noted of wide steps
        self.counts[:], self.signs[:] = kept["counts"], kept["signs"]
        self.nodes.counts[:] = kept.get("nodes", 0)
        self.begin()


def run_explicit(session: Session) -> None:
    """Integrate a session by an explicit pair."""
    Explicit(session).run()


__all__ = ["PAIRS", "ROTATIONS", "Explicit", "run_explicit"]
