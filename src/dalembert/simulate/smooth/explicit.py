"""`method="dop853"` and `"dopri5"`: explicit steps on the constraint manifold, driven from Python block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulate.event import Event
from dalembert.simulate.smooth import advance_loops as loop
from dalembert.simulate.smooth.callbacks import Callbacks
from dalembert.simulate.smooth.chart import LARGEST_TURN, ROTATIONS, rotation_places
from dalembert.simulate.smooth.codes import CODES, Codes
from dalembert.simulate.smooth.session import Session
from dalembert.simulate.smooth.step_loops import (
    CALLBACK,
    DECLINED,
    FINE,
    LAST_SOLVED,
    NON_FINITE,
    OFF,
    Now,
    Pair,
    begin_at,
    settle,
    stages,
)
from dalembert.simulate.steppers.explicit import ExplicitRungeKutta
from dalembert.simulate.steppers.tables import DOP853_TABLE, DOPRI5

Array = np.ndarray

PAIRS = {"dop853": DOP853_TABLE, "dopri5": DOPRI5}
"""Explicit pairs; being in the list is being tested."""

BLOCK = 4096
"""Samples a block: what a killed run may lose, and how often Ctrl-C is looked at."""

SINGULAR, ALWAYS_DEPENDENT = 0.05, 1e-11
"""A singular value of A between these parts of the largest tells of rows that are about to become dependent."""

JUMPS = (1.0, 0.83, 0.71, 0.6, 0.5, 0.41, 0.33)
"""Steps that are tried across a singular configuration, as parts of the usual one."""

BISECTIONS = 200
"""Halvings of a step in which an event is located, at most."""


class Explicit:
    """The explicit stepper of one session: memory, the loop, and what it comes back for."""

    def __init__(self, session: Session) -> None:
        self.session, self.m = session, session.mechanism
        self.codes = Codes(self.m, session.controller, session.event_function)
        self.callbacks = Callbacks(self.codes, session.event_callables)
        self.work, self._alive = self.codes.work(self.callbacks.addresses, len(session.watches))
        self.callbacks.work = self.work
        self.pair = pair_of(PAIRS[session.settings.method])
        n, size = self.m.nv, 2 * self.m.nv + 1
        self.now = Now(
            np.zeros(self.m.nq), np.zeros(n), np.zeros(1), np.zeros((self.pair.b.size, size)), np.zeros(size)
        )
        self.clock, self.counts = np.zeros(11), np.zeros(9, np.int64)
        self.clock[[loop.ALLOWED, loop.LEAST_RATIO, loop.LAST_RATIO]] = 1.0, np.inf, np.inf
        self.signs = np.zeros(len(session.watches))
        self.tables = session.controller.signals.tables()
        self.samples = loop.Samples(
            np.zeros(BLOCK), np.zeros((BLOCK, self.m.nq)), np.zeros((BLOCK, n)), np.zeros((BLOCK, n)),
            np.zeros((BLOCK, len(self.m.names))), np.zeros(BLOCK), np.zeros(BLOCK),
        )  # fmt: skip
        s = session.settings
        self.limits = loop.Limits(
            s.rtol, s.atol, s.step or 0.0, s.largest_step, s.every or 0.0, s.start, LARGEST_TURN,
            scale_places(self.m), np.array(rotation_places(self.m), np.int64),
        )  # fmt: skip

    # --- the way through ----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s = self.session
        fresh = s.checkpoint is None
        if fresh:
            self.now.q[:], self.now.v[:] = s.q, s.v
            self.clock[loop.T] = s.settings.start
        else:
            self._restore(s.checkpoint)  # type: ignore[arg-type]
        ends = [*s.controller.stops(s.settings.start, s.settings.end), s.settings.end]
        try:
            for stop in [each for each in ends if each > self.clock[loop.T]]:
                if fresh or self.clock[loop.STOP] != stop:
                    self._segment(stop)
                if fresh:
                    self._first()
                    fresh = False
                while s.status == "completed" and self.clock[loop.T] < stop:
                    self._block(1 if s.on_step else BLOCK)
                if s.status != "completed":
                    break
        finally:
            self._flush()
            s.extra["relaxed"] = int(self.counts[loop.RELAXED])
            s.steps, s.rejected, s.evaluations = (
                int(self.counts[i]) for i in (loop.STEPS, loop.REJECTED, loop.EVALUATIONS)
            )

    def _segment(self, stop: float) -> None:
        """Begin a segment without jumps: K[0] sees the new piece of every table."""
        self.clock[loop.BEGIN], self.clock[loop.STOP] = self.clock[loop.T], stop
        self.clock[loop.ORIGIN], self.counts[loop.FIXED] = self.clock[loop.T], 0
        self._careful(begin_at, self.work, self.tables, self.now, self.clock[loop.T], self.clock[loop.T], stop)

    def _first(self) -> None:
        """Write the initial state, choose the first step, note the signs of the events."""
        self.work.q[:] = self.now.q
        self._write(0.0)
        self.clock[loop.H] = self.session.settings.step or self._first_step()
        self._note_signs()

    def _first_step(self) -> float:
        """Return a first step from the sizes of y, y' and y'' (Hairer, Norsett, Wanner, II.4)."""
        n, s, K = self.m.nv, self.session.settings, self.now.K
        size = np.concatenate([np.ones(n), np.abs(self.now.v)])
        scale = s.atol + s.rtol * size
        d1 = float(np.sqrt(np.mean((K[0, : 2 * n] / scale) ** 2)))
        h = 0.01 * float(np.sqrt(np.mean((size / scale) ** 2))) / d1 if d1 > 1e-5 else 1e-6
        h = min(h, s.largest_step, 1e-3 * s.duration)
        return max(h, 1e-12 * s.duration)

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
        )
        code = loop.advance(*arguments, most_steps)
        if code in (DECLINED, loop.SHORT) and self._near_singular():
            code = self._over_the_singularity(code)
        if code == DECLINED:
            code = self._by_kkt(arguments)
        if self.callbacks.error is not None:
            error = self.callbacks.error
            self.session.extra["error"] = error, self.callbacks.error_time
            self.session.stop("stopped", f"a Python function failed at t = {self.callbacks.error_time:.9g} s: {error}")
        elif code == loop.EVENT:
            self._event()
        elif code in (NON_FINITE, loop.STUCK, DECLINED, CALLBACK, OFF):
            self._give_up(code)
        if self.session.on_step is not None and self.session.status == "completed":
            self.session.on_step(float(self.clock[loop.T]), self.now.q.copy(), self.now.v.copy())
        if self.counts[loop.SAMPLES] >= BLOCK:
            self._flush()

    def _near_singular(self) -> bool:
        """Return whether rows of A are about to become dependent: a singular value falls out of line."""
        A = np.asarray(self.m.jacobian(self.now.q, float(self.clock[loop.T])))
        values = np.linalg.svd(A, compute_uv=False)
        top = values.max(initial=0.0)
        return bool(((values < SINGULAR * top) & (values > ALWAYS_DEPENDENT * top)).any())

    def _over_the_singularity(self, code: int) -> int:
        """Choose a step that leads past a configuration where rows depend on each other.

        Accelerations next to it are noise; of several steps across it, the one with the least error is taken, and
        noted in `extra["relaxed"]`.
        """
        if self.counts[loop.CLOSING] == 2:
            return code
        best, choice = np.inf, 0.0
        for part in JUMPS:
            h = min(part * self.clock[loop.USUAL], self.clock[loop.STOP] - self.clock[loop.T])
            self.clock[loop.ALLOWED] = np.inf
            arguments = (self.work, self.tables, self.pair, self.now, self.clock, self.counts, self.limits)
            what, ratio = loop.try_step(*arguments, h, self.clock[loop.T] + h)
            if what == FINE and ratio < best and self._certified():
                best, choice = ratio, h
        if not best < loop.LARGEST_NOISE:
            self.clock[loop.ALLOWED] = 1.0
            return code
        self.clock[loop.ALLOWED], self.clock[loop.H] = max(1.0, 1.01 * best), choice
        self.counts[loop.RELAXED] += best > 1.0
        self.counts[loop.CLOSING] = 2
        return loop.FULL

    def _certified(self) -> bool:
        """Return whether accelerations exist at the settled end of a tried step."""
        w = self.work
        w.base[:], w.x[:] = w.q, 0.0
        loop.invoke(*w.calls[CODES.index("rate")])
        return bool(w.status[0] <= LAST_SOLVED)

    def _by_kkt(self, arguments: tuple[Any, ...]) -> int:
        """Take one step whose states are solved through `KKT` where the kernel declines them."""
        code = self._careful(
            begin_at,
            self.work,
            self.tables,
            self.now,
            self.clock[loop.T],
            self.clock[loop.BEGIN],
            self.clock[loop.STOP],
        )
        if code != FINE:
            return code
        missing = self.counts[loop.SAMPLES] == 0 or self.samples.t[self.counts[loop.SAMPLES] - 1] < self.clock[loop.T]
        last = self.session.blocks[-1]["t"][-1] if self.session.blocks else -np.inf
        if missing and last < self.clock[loop.T] and self.limits.every == 0.0:
            self.work.q[:] = self.now.q
            self._write(self.clock[loop.TRIED])
        self.session.extra["by_kkt"] = self.session.extra.get("by_kkt", 0) + 1
        return self._careful(loop.advance, *arguments, 1)

    def _careful(self, function: Any, *arguments: Any) -> int:
        """Run with codes that go through `KKT` where needed."""
        kept = self.work.calls.copy()
        for code, address in self.callbacks.careful.items():
            row = CODES.index(code)
            if kept[row, 0]:
                self.work.calls[row] = address, 0, 0
        try:
            return function(*arguments)
        finally:
            self.work.calls[:] = kept

    def _give_up(self, code: int) -> None:
        t, h = self.clock[loop.T], self.clock[loop.TRIED]
        why = {
            NON_FINITE: "the motion is no longer finite",
            loop.STUCK: "the step size collapsed: a singularity of the motion, or a tolerance below rounding",
            DECLINED: "accelerations do not exist or are not unique here; mechanism.diagnose(q, v) says why",
            CALLBACK: "a Python function failed",
            OFF: "the constraints stay open after a step: it is too long, or the loop cannot be closed any further",
        }[code]
        self.session.stop("no solution", f"at t = {t:.9g} s, with a step of {h:.3g} s: {why}")

    # --- events -------------------------------------------------------------------------------------------------

    def _note_signs(self, after: Array | None = None) -> None:
        """Remember the signs of all events at the start of the next step."""
        if self.signs.size:
            self.signs[:] = np.sign(self._event_values() if after is None else after)

    def _event_values(self) -> Array:
        w = self.work
        w.q[:], w.v[:], w.environment[0] = self.now.q, self.now.v, self.clock[loop.T]
        loop.invoke(*w.calls[CODES.index("events")])
        return w.event_values.copy()

    def _inside(self, h: float) -> Array:
        """Return the event values after a step by h; its end stays in `work`."""
        t = self.clock[loop.T]
        code = self._careful(
            stages,
            self.work,
            self.tables,
            self.pair,
            self.now,
            t,
            h,
            self.clock[loop.BEGIN],
            self.clock[loop.STOP],
            False,
            self.counts[loop.CLOSING] > 0,
        )
        if code == FINE:
            code = self._careful(settle, self.work, self.now, t + h)
        loop.invoke(*self.work.calls[CODES.index("events")])
        return self.work.event_values.copy() if code == FINE else np.full(self.signs.size, np.nan)

    def _event(self) -> None:
        """Locate the first zero inside the step, go there, note it."""
        h, signs = float(self.clock[loop.TRIED]), self.signs.copy()
        end_values = self._inside(h)
        crossed = [k for k in range(signs.size) if signs[k] != 0.0 and signs[k] * end_values[k] <= 0.0]
        wanted = [k for k in crossed if self.session.watches[k].direction in (0, -int(signs[k]))]
        if not wanted:
            for k in crossed:
                self.signs[k] = np.sign(end_values[k])
            return
        roots = {k: self._root(k, signs[k], h, end_values[k]) for k in wanted}
        first = min(roots.values())
        values = self._inside(first)
        loop.accept(self.work, self.tables, self.now, self.clock, self.counts, self.clock[loop.T] + first)
        self.counts[loop.STEPS] += 1
        self.clock[loop.ORIGIN], self.counts[loop.FIXED] = self.clock[loop.T], 0
        self.work.q[:] = self.now.q
        self._write(first)
        for k in sorted(roots):
            if roots[k] <= first:
                self._fire(k, signs[k])
        self.signs[:] = [np.sign(end_values[k]) if k in roots and roots[k] <= first else np.sign(values[k]) or signs[k]
                         for k in range(signs.size)]  # fmt: skip

    def _fire(self, k: int, sign: float) -> None:
        watch = self.session.watches[k]
        words = ("rising", "falling") if sign < 0 else ("falling", "rising")
        self.session.events.append(Event(float(self.clock[loop.T]), watch.name, k, "", words[0]))
        if watch.terminal:
            self.session.stop("event", f"ended by {watch.name!r} at t = {self.clock[loop.T]:.12g} s")

    def _root(self, k: int, sign: float, h: float, end_value: float) -> float:
        """Return the step to the zero of event k, by a bracketing method on steps of full order (Illinois)."""
        low, high = 0.0, h
        f_low, f_high = float(self._at_start(k, sign)), float(end_value)
        tolerance = max(self.session.settings.event_tolerance, 2e-16 * abs(self.clock[loop.T]))
        side = 0
        for _ in range(BISECTIONS):
            if high - low <= tolerance or f_high == 0.0:
                break
            middle = high - f_high * (high - low) / (f_high - f_low)
            if not low < middle < high:
                middle = 0.5 * (low + high)
            f = float(self._inside(middle)[k])
            if f * sign > 0.0:
                low, f_low = middle, f
                f_high = f_high / 2 if side == 1 else f_high
                side = 1
            else:
                high, f_high = middle, f
                f_low = f_low / 2 if side == -1 else f_low
                side = -1
                if f == 0.0:
                    break
        return high

    def _at_start(self, k: int, sign: float) -> float:
        value = self._event_values()[k]
        return value if value * sign > 0.0 else sign * np.finfo(float).tiny

    # --- writing down -------------------------------------------------------------------------------------------

    def _write(self, h: float) -> None:
        loop.write(self.work, self.samples, self.counts, self.clock[loop.T], self.now.work[0], h)
        if self.counts[loop.SAMPLES] >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        count = int(self.counts[loop.SAMPLES])
        self.counts[loop.SAMPLES] = 0
        fields = ("t", "q", "v", "acceleration", "multipliers", "work", "step")
        block = {name: rows[:count].copy() for name, rows in zip(fields, self.samples, strict=True)}
        self.session.add(block, self._checkpoint())

    def _checkpoint(self) -> dict[str, Array]:
        """Return what the loop needs to go on exactly as if it had not stopped."""
        return {
            "q": self.now.q.copy(), "v": self.now.v.copy(), "work": self.now.work.copy(), "clock": self.clock.copy(),
            "counts": self.counts.copy(), "signs": self.signs.copy(),
        }  # fmt: skip

    def _restore(self, kept: dict[str, Array]) -> None:
        self.now.q[:], self.now.v[:], self.now.work[:] = kept["q"], kept["v"], kept["work"]
        self.clock[:], self.counts[:], self.signs[:] = kept["clock"], kept["counts"], kept["signs"]
        self._careful(
            begin_at,
            self.work,
            self.tables,
            self.now,
            self.clock[loop.T],
            self.clock[loop.BEGIN],
            self.clock[loop.STOP],
        )


def pair_of(table: ExplicitRungeKutta) -> Pair:
    """Return a table for the loop; the rate at the end, where the error needs it, is one more stage."""
    a, b, c, stages = table.a[:, : table.b.size], table.b, table.c, table.b.size
    error = np.asarray(table.error)
    third = np.zeros(0) if table.third is None else np.asarray(table.third)
    if error[stages] != 0.0:
        wide = np.zeros((stages + 1, stages + 1))
        wide[:stages, : a.shape[1]], wide[stages, :stages] = a, b
        a, b, c = wide, np.append(b, 0.0), np.append(c, 1.0)
    a, b, c, error, third = (np.ascontiguousarray(x, dtype=float) for x in (a, b, c, error[: b.size], third[: b.size]))
    return Pair(a, b, c, error, third, table.order)


def scale_places(mechanism: Any) -> Array:
    """Return per velocity the coordinate whose size its error is compared with; -1: one radian."""
    places = np.full(mechanism.nv, -1, np.int64)
    starts_q, starts_v = mechanism.manifold.q_start, mechanism.manifold.v_start
    lengths = {"free": 3, "planar": 2, "continuous": 0, "spherical": 0}
    for i, joint in enumerate(mechanism.joints):
        width = int(starts_v[i + 1] - starts_v[i])
        for k in range(lengths.get(joint.kind, width)):
            places[starts_v[i] + k] = starts_q[i] + k
    return places


def run_explicit(session: Session) -> None:
    """Integrate a session by an explicit pair."""
    Explicit(session).run()


__all__ = ["PAIRS", "ROTATIONS", "Explicit", "run_explicit"]
