"""`method="variational"`: symplectic steps of fixed size for long runs; energy does not drift."""

from __future__ import annotations

import time

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.simulate.event import Event
from dalembert.simulate.samples import refuse_breaks_between_steps, snapped
from dalembert.simulate.smooth import variational_loops as loop
from dalembert.simulate.smooth.callbacks import Callbacks
from dalembert.simulate.smooth.codes import Codes, _kernel
from dalembert.simulate.smooth.discrete_lagrangian import trace_mass, trace_step
from dalembert.simulate.smooth.explicit import BLOCK, CALLED_BLOCK, SECONDS
from dalembert.simulate.smooth.inside_loops import HIGH, UNRESOLVED, nodes_for
from dalembert.simulate.smooth.loop_state import Samples
from dalembert.simulate.smooth.session import FIELDS, Session, rank_of
from dalembert.simulate.smooth.step_loops import CALLBACK, DECLINED, FINE, NON_FINITE, OFF, Now, begin_at
from dalembert.simulate.smooth.zeros import event_values, first_zero, pieces, say_unresolved, stopped_by_non_finite
from dalembert.simulate.undisturbed import undisturbed
from dalembert.tableau.time.compiled import bind
from dalembert.tableau.time.isolate_loops import LEAST

Array = np.ndarray

MOST_NODES = 400
"""Shorter steps in the search for the zeros of a step, at most."""


class Variational:
    """The variational stepper of one session."""

    def __init__(self, session: Session) -> None:
        self.session, self.m = session, session.mechanism
        _refuse(session)
        m, s = self.m, session.settings
        rank = rank_of(session)
        self.codes = Codes(m, session.controller, session.event_function, rank)
        self.callbacks = Callbacks(self.codes, session.event_callables)
        self.work, self._alive = self.codes.work(self.callbacks.addresses, len(session.watches))
        self.signs, self.flushed = np.zeros(len(session.watches)), time.monotonic()
        self.callbacks.work = self.work
        n, rows, held = m.nv, len(m.names), self.codes.holonomic
        spare = np.zeros((0, 0))
        self.now = Now(np.zeros(m.nq), np.zeros(n), np.zeros(1), np.zeros((2, 2 * n + 1)), np.zeros(2 * n + 1), spare)
        self.clock, self.counts = np.zeros(2), np.zeros(3, np.int64)
        self.nodes = nodes_for(np.array([each.direction for each in session.watches], dtype=float), m.nq, n, 3)
        key = ("simulate", m.content())
        step = _kernel(
            (*key, "variational", session.controller.content), lambda: trace_step(m, session.controller), m.cacheable
        )
        size = n + held
        arrays = {
            "p": np.zeros(n), "lam": np.zeros(rows), "h": np.zeros(1), "residual": np.zeros(size),
            "jacobian": np.zeros((size, n + rows)), "momentum": np.zeros(n), "M": np.zeros((n, n)),
            "middle": np.zeros(m.nq), "speed": np.zeros(n), "power": np.zeros(1),
        }  # fmt: skip
        shared = {name: getattr(self.work, name) for name in ("base", "x", "environment", "q")}
        calls = np.zeros((2, 3), np.int64)
        self._kept = []
        mass = _kernel((*key, "mass"), lambda: trace_mass(m), m.cacheable)
        for row, kernel in enumerate((step, mass)):
            calls[row], kept = _bound(kernel, arrays | shared)
            self._kept.append((kernel, kept))
        self.discrete = loop.Discrete(calls, **arrays)
        self.samples = Samples(
            np.zeros(BLOCK), np.zeros((BLOCK, m.nq)), np.zeros((BLOCK, n)), np.zeros((BLOCK, n)),
            np.zeros((BLOCK, rows)), np.zeros(BLOCK), np.zeros(BLOCK),
        )  # fmt: skip
        self.total = max(1, round(s.duration / s.step))  # type: ignore[operator]
        self.step = s.duration / self.total
        self.stride = 1 if s.every is None else max(1, round(s.every / self.step))
        if s.every is not None and abs(s.every / self.step - self.stride) > 1e-9 * self.stride:
            raise ModelError(
                f'every={s.every:g} is no multiple of the step: method="variational" takes {self.total} steps of '
                f"{self.step:.9g} s, and samples at their ends"
            )
        refuse_breaks_between_steps(session.breaks, s.start, self.step, 'method="variational"')
        self.tables = session.controller.signals.tables()
        self.redundant = self.codes.carries

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s = self.session
        if s.checkpoint is None:
            self._start()
        else:
            k = s.checkpoint
            self.now.q[:], self.now.v[:], self.discrete.p[:], self.discrete.lam[:] = k["q"], k["v"], k["p"], k["lam"]
            self.clock[:], self.counts[:2], self.now.work[:] = k["clock"], k["counts"][:2], k["work"]
            self.signs[:], self.nodes.counts[:] = k["signs"], k.get("nodes", 0)
            if self.redundant:  # rows are chosen where a step starts
                begin_at(self.work, self.tables, self.now, self.clock[0], self.clock[0], s.settings.end)
        try:
            while s.status == "completed" and self._block() != loop.DONE:
                pass
        finally:
            self._flush()
            say_unresolved(s, int(self.nodes.counts[UNRESOLVED]))

    def _start(self) -> None:
        s = self.session
        self.now.q[:], self.now.v[:] = s.q, s.v
        self.clock[:] = s.settings.start
        loop.momentum_of(self.work, self.discrete, self.now)
        begin_at(self.work, self.tables, self.now, self.clock[0], self.clock[0], s.settings.end)
        loop.write(self.work, self.now, self.samples, self.counts, self.clock[0], 0.0)
        if self.signs.size:
            values = event_values(self.work, self.now.q, self.now.v, self.clock[0])
            if not stopped_by_non_finite(s, values, float(self.clock[0])):
                self.signs[:] = np.sign(values)

    @undisturbed()
    def _block(self) -> int:
        """Call the loop once and do what it came back for."""
        s, before = self.session, self.counts[0]
        most = 1 if s.on_step is not None else CALLED_BLOCK if self.callbacks.addresses else BLOCK
        try:
            code = loop.run_steps(
                self.work, self.tables, self.discrete, self.now, self.clock, self.counts, self.samples, self.signs,
                self.nodes, self.step, self.stride, self.total, most, self.redundant,
            )  # fmt: skip
        except np.linalg.LinAlgError:
            code = DECLINED
        if self.callbacks.error is not None:
            error, t = self.callbacks.error, self.callbacks.error_time
            s.extra["error"] = error, t
            s.stop("stopped", f"a Python function failed at t = {t:.9g} s: {error}")
        elif code == loop.EVENT:
            self._events()
        elif code not in (loop.DONE, loop.FULL):
            self._give_up(code)
        elif s.on_step is not None and self.counts[0] > before:
            s.on_step(float(self.clock[0]), self.now.q.copy(), self.now.v.copy())
        if self.counts[1] >= BLOCK or time.monotonic() - self.flushed > SECONDS:
            self._flush()
        return code

    # --- events -------------------------------------------------------------------------------------------------

    def _inside(self, h: float) -> Array:
        """Return the event values after a step by h; its end stays in `work`."""
        kept, t = self.discrete.lam.copy(), float(self.clock[0])
        if h == 0.0:
            return event_values(self.work, self.now.q, self.now.v, t)
        try:
            code = loop.take_step(self.work, self.tables, self.discrete, self.now, t, h, self.redundant)
        except np.linalg.LinAlgError:
            code = DECLINED
        self.discrete.lam[:] = kept
        found = event_values(self.work, self.work.q, self.work.v, t + h)
        return found if code == FINE else np.full(self.signs.size, np.nan)

    def _events(self) -> None:
        """Note the zeros inside the next step, in order, each a sample; a step is cut only where one ends the run."""
        s, t, h = self.session, float(self.clock[0]), self.step
        if self.callbacks.error is not None or stopped_by_non_finite(s, self._inside(h), t):
            return
        if self.nodes.found[HIGH] == 0.0:
            for k in np.flatnonzero(self.nodes.opened):
                if self._noted(int(k), 0.0, self.nodes.opened[k]):
                    return
            self.nodes.opened[:] = 0.0
            return
        self.signs[:] = self.nodes.before
        tolerance = max(s.settings.event_tolerance, 2e-16 * abs(t))
        for low, high, g_low, g_high, certain in pieces(lambda part: self._inside(part * h), LEAST, MOST_NODES):
            self.nodes.counts[UNRESOLVED] += not certain
            crossed = [k for k in range(g_high.size) if self.signs[k] != 0.0 and self.signs[k] * g_high[k] <= 0.0]
            roots = {
                k: first_zero(
                    lambda x, k=k: float(self._inside(x)[k]), self.signs[k], low * h, high * h, g_low[k], g_high[k],
                    tolerance,
                )
                for k in crossed
                if s.watches[k].direction in (0, -int(self.signs[k]))
            }  # fmt: skip
            for k in sorted(roots, key=lambda k: roots[k]):
                if self._noted(k, roots[k], -self.signs[k]):
                    return
            for k in range(g_high.size):
                self.signs[k] = np.sign(g_high[k]) if g_high[k] != 0.0 or k in crossed else self.signs[k]
        self.counts[2] = 1

    def _noted(self, k: int, h: float, direction: float) -> bool:
        """Note an event h after the start of the next step, and its sample; return whether it ends the run there."""
        s, t = self.session, float(self.clock[0] + h)
        s.events.append(Event(t, s.watches[k].name, k, "", "rising" if direction > 0 else "falling"))
        ends = s.ends_with(k)
        if h > 0.0:
            self._inside(h)
            kept = [each.copy() for each in (self.now.q, self.now.v, self.now.work, self.discrete.p)]
            loop.accept(self.work, self.discrete, self.now, h)
            begin_at(self.work, self.tables, self.now, t, t, t + self.step)
            if self.counts[1] >= BLOCK:
                self._flush()
            loop.write(self.work, self.now, self.samples, self.counts, t, h)
            if not ends:
                self.now.q[:], self.now.v[:], self.now.work[:], self.discrete.p[:] = kept
        if ends:
            self.counts[0] += h > 0.0
            s.stop("event", f"ended by {s.watches[k].name!r} at t = {t:.12g} s")
        return ends

    def _give_up(self, code: int) -> None:
        why = {
            NON_FINITE: "the motion is no longer finite",
            DECLINED: "no admissible velocity, or no acceleration: rows have become dependent, or contradict each "
            "other; mechanism.diagnose(q, v) says which",
            OFF: "Newton's method does not converge: take a shorter step",
            CALLBACK: "a Python function failed",
            loop.RESTLESS: "the forces of the Python controller do not settle at the middle of the step: its gains are "
            "too large for it; take a shorter step, or give them as a casadi.Function, which is solved with the step",
        }[code]
        t, now = float(self.clock[0]), self.now
        times = (t, t + self.step / 2, t + self.step)
        said = self.session.controller.non_finite(times, now.q, now.v) if code == NON_FINITE else ""
        self.session.stop("no solution", f"at t = {t:.9g} s, with a step of {self.step:.3g} s: {why}{said}")

    @undisturbed()
    def _flush(self) -> None:
        self.flushed = time.monotonic()
        count = int(self.counts[1])
        self.counts[1] = 0
        block = {name: rows[:count].copy() for name, rows in zip(FIELDS, self.samples, strict=True)}
        s = self.session.settings
        block["t"] = snapped(block["t"], s.start, s.end, s.every)
        checkpoint = {
            "q": self.now.q.copy(),
            "v": self.now.v.copy(),
            "p": self.discrete.p.copy(),
            "lam": self.discrete.lam.copy(),
            "clock": self.clock.copy(),
            "counts": self.counts.copy(),
            "work": self.now.work.copy(),
            "signs": self.signs.copy(),
            "nodes": self.nodes.counts.copy(),
        }
        self.session.steps = self.session.evaluations = int(self.counts[0])
        self.session.add(block, checkpoint)


def _bound(kernel: Kernel, arrays: dict[str, Array]) -> tuple[list[int], object]:
    """Bind a kernel whose matrices are stored by rows."""
    return bind(kernel, {port.name: arrays[port.name] for port in (*kernel.inputs, *kernel.outputs)})


def _refuse(session: Session) -> None:
    m, s = session.mechanism, session.settings
    if s.step is None:
        raise ModelError('method="variational" takes steps of one size: give step=')
    if not all(m.holonomic):
        raise UnsupportedError('method="variational" holds positions; rows without a residual need method="dop853"')


def run_variational(session: Session) -> None:
    """Integrate a session by variational steps."""
    Variational(session).run()
