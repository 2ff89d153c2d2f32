"""`method="variational"`: symplectic steps of fixed size for long runs; energy does not drift."""

from __future__ import annotations

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.simulate.smooth import variational_loops as loop
from dalembert.simulate.smooth.advance_loops import Samples
from dalembert.simulate.smooth.callbacks import Callbacks
from dalembert.simulate.smooth.codes import Codes, _kernel
from dalembert.simulate.smooth.discrete_lagrangian import trace_mass, trace_step
from dalembert.simulate.smooth.explicit import BLOCK
from dalembert.simulate.smooth.session import FIELDS, Session
from dalembert.simulate.smooth.step_loops import DECLINED, NON_FINITE, OFF, Now, begin_at
from dalembert.tableau.time.compiled import bind

Array = np.ndarray


class Variational:
    """The variational stepper of one session."""

    def __init__(self, session: Session) -> None:
        self.session, self.m = session, session.mechanism
        _refuse(session)
        m, s = self.m, session.settings
        self.codes = Codes(m, session.controller)
        self.callbacks = Callbacks(self.codes)
        self.work, self._alive = self.codes.work()
        self.callbacks.work = self.work
        n, rows, held = m.nv, len(m.names), self.codes.holonomic
        self.now = Now(np.zeros(m.nq), np.zeros(n), np.zeros(1), np.zeros((2, 2 * n + 1)), np.zeros(2 * n + 1))
        self.clock, self.counts = np.zeros(2), np.zeros(2, np.int64)
        key = ("simulate", m.content())
        step = _kernel(
            (*key, "variational", session.controller.content), lambda: trace_step(m, session.controller), m.cacheable
        )
        size = n + held
        arrays = {
            "p": np.zeros(n), "lam": np.zeros(rows), "h": np.zeros(1), "residual": np.zeros(size),
            "jacobian": np.zeros((size, n + rows)), "momentum": np.zeros(n), "M": np.zeros((n, n)),
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
        self.total = round(s.duration / s.step)  # type: ignore[operator]
        self.step = s.duration / self.total
        self.stride = 1 if s.every is None else max(1, round(s.every / self.step))
        self.tables = session.controller.signals.tables()
        A = np.asarray(m.jacobian(session.q, s.start)) if rows else np.zeros((0, n))
        self.redundant = bool(rows and np.linalg.matrix_rank(A, tol=1e-9 * np.abs(A).max()) < rows)

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s = self.session
        if s.checkpoint is None:
            self.now.q[:], self.now.v[:] = s.q, s.v
            self.clock[:] = s.settings.start
            loop.momentum_of(self.work, self.discrete, self.now)
            begin_at(self.work, self.tables, self.now, self.clock[0], self.clock[0], s.settings.end)
            values = (self.clock[0], self.now.q, self.now.v, self.work.acceleration, self.work.multipliers, 0.0, 0.0)
            for rows, value in zip(self.samples, values, strict=True):
                rows[0] = value
            self.counts[1] = 1
        else:
            k = s.checkpoint
            self.now.q[:], self.now.v[:], self.discrete.p[:], self.discrete.lam[:] = k["q"], k["v"], k["p"], k["lam"]
            self.clock[:], self.counts[:] = k["clock"], k["counts"]
        arguments = (self.work, self.tables, self.discrete, self.now, self.clock, self.counts, self.samples)
        try:
            code = loop.FULL
            while code == loop.FULL:
                code = loop.run_steps(*arguments, self.step, self.stride, self.total, self.redundant)
                self._flush()
            if code != loop.DONE:
                self._give_up(code)
        finally:
            s.steps = s.evaluations = int(self.counts[0])

    def _give_up(self, code: int) -> None:
        why = {
            NON_FINITE: "the motion is no longer finite",
            DECLINED: "no admissible velocity: rows have become dependent; mechanism.diagnose(q) says which",
            OFF: "Newton's method does not converge: take a shorter step",
        }[code]
        self.session.stop("no solution", f"at t = {self.clock[0]:.9g} s, with a step of {self.step:.3g} s: {why}")

    def _flush(self) -> None:
        count = int(self.counts[1])
        self.counts[1] = 0
        block = {name: rows[:count].copy() for name, rows in zip(FIELDS, self.samples, strict=True)}
        checkpoint = {
            "q": self.now.q.copy(),
            "v": self.now.v.copy(),
            "p": self.discrete.p.copy(),
            "lam": self.discrete.lam.copy(),
            "clock": self.clock.copy(),
            "counts": self.counts.copy(),
        }
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
    if session.controller.function is not None:
        raise UnsupportedError(
            'method="variational" takes joint forces that are compiled in: numbers, tables or a casadi.Function'
        )
    if session.watches or session.on_step is not None:
        raise UnsupportedError('method="variational" locates no events and calls nothing back; method="dop853" does')


def run_variational(session: Session) -> None:
    """Integrate a session by variational steps."""
    Variational(session).run()
