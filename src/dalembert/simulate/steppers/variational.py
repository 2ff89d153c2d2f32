"""`method="variational"`: the discrete Lagrangian and symplectic steps of fixed size."""

from __future__ import annotations

import time
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.kernel.loops import bind
from dalembert.kkt import KKT
from dalembert.large.requests import too_long
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.simulate.equations.callbacks import Callbacks
from dalembert.simulate.equations.chart import _cross, _product, _spherical, _turned
from dalembert.simulate.equations.codes import Codes, MechanismForm, _kernel, _traced, forces_at, form_of
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.equations.drives import drive_power
from dalembert.simulate.events.isolate import locate_zero
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.interruptible import undisturbed
from dalembert.simulate.limits import LEAST_PIECE, ON_THE_GRID, SERIES_OF_SINES, TIME_ROUNDING
from dalembert.simulate.samples import Steps, refuse_breaks_between_steps, snapped, steps_between, steps_that_go_on
from dalembert.simulate.session import FIELDS, Session, rank_of
from dalembert.simulate.steppers import variational_loops as loop
from dalembert.simulate.steppers.explicit import BLOCK, CALLED_BLOCK, SECONDS
from dalembert.simulate.steppers.explicit_events import event_values, pieces, stopped_by_non_finite
from dalembert.simulate.steppers.explicit_loops import (
    CALLBACK,
    DECLINED,
    FINE,
    NON_FINITE,
    OFF,
    Now,
    StepSamples,
    begin_at,
)
from dalembert.simulate.steppers.inside_loops import HIGH, UNRESOLVED, nodes_for
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# The discrete Lagrangian of a mechanism at the midpoint, its momenta, and the equations of one step, as expressions.
#
# Symbols: q0, q1 = q0 * x configurations, d0, d1 variations of both in the body's axes, r = r(x, d0, d1) the way from
# one to the other, h step, L = v^T M(q) v / 2 - V(q):
#
#     L_d(q0, q1) = h L(middle, r / h)         p0 = -D1 L_d - h F / 2 + A(q0)^T lam
#                                              p1 =  D2 L_d + h F / 2 - A(q1)^T mu,   phi(q1) = 0,   A(q1) M^-1 p1 = 0
#
# Where M is singular and rows carry what has no mass, M + rho A^T A takes its place in v1 = M^-1 p1: the forces A^T
# that it adds are of the kind of mu, and the projection onto A v1 = 0 behind it removes them.
#
# Rows on velocities, psi(q, v) = A v + b = 0, hold in the middle of a step, h psi(middle, r / h) = 0, and at its ends:
# the discrete principle of Lagrange and d'Alembert with forces A(q_k)^T (lam + mu) at the nodes. Such a step is
# symmetric, but preserves no symplectic form: the motion itself does not.
#
# Rotations: r = log(exp(-d0) exp(x) exp(d1)), middle = q0 exp(d0) exp(r / 2). Symplectic and of second order, holonomic
# rows exactly on the manifold (RATTLE). Sources: J. Marsden, M. West, "Discrete mechanics and variational integrators",
# Acta Numerica 2001, secs. 1-3; J. Cortes, S. Martinez, "Non-holonomic integrators", Nonlinearity 14 (2001) 1365-1392;
# Hairer, Lubich, Wanner, "Geometric Numerical Integration", secs. VI.6, VII.1.


Scalar = Any


def trace_step(system: Any, controller: Controller) -> ca.Function:
    """Return base, x, p, lam, h, environment -> the discrete equations.

    Outputs: residual, its Jacobian in (x, lam) by rows, momentum at the end; configuration and velocity in the
    middle, at which forces act, and their power.
    """
    form = form_of(system)
    n, rows = form.nv, len(form.names)
    base, x, p = ca.SX.sym("base", form.nq), ca.SX.sym("x", n), ca.SX.sym("p", n)
    lam, h = ca.SX.sym("lam", rows), ca.SX.sym("h")
    environment = ca.SX.sym("environment", 2 + controller.symbols.numel() + form.parameters.numel())
    t, values = environment[0], environment[2 + controller.symbols.numel() :]
    d0, d1 = ca.SX.sym("d0", n), ca.SX.sym("d1", n)
    middle, way = _middle(system, base, x, d0, d1, h)
    v = way / h
    action = h * _lagrangian(form, middle, v, t + h / 2, values)
    zero = ca.SX.zeros(2 * n)
    slopes = ca.substitute(ca.gradient(action, ca.vertcat(d0, d1)), ca.vertcat(d0, d1), zero)
    still = [ca.substitute(expression, ca.vertcat(d0, d1), zero) for expression in (middle, v)]
    power, force = _forces(form, controller, still[0], still[1], t + h / 2, environment)
    residual = p + slopes[:n] + h / 2 * force
    end, _ = form.chart(base, x, ca.SX.zeros(n))
    if rows:
        A = form.at("jacobian", base, still[1], t, values)
        residual = ca.vertcat(residual - A.T @ lam, _discrete_rows(form, end, still, t, h, values))
        power += drive_power(form, base, still[1], t, values, lam) / h
    jacobian = ca.jacobian(residual, ca.vertcat(x, lam))
    outputs = [residual, ca.vec(ca.densify(jacobian).T), slopes[n:] + h / 2 * force, *still, power]
    inputs = {"base": base, "x": x, "p": p, "lam": lam, "h": h, "environment": environment}
    inputs = {name: expression for name, expression in inputs.items() if expression.numel()}
    return ca.Function("variational", list(inputs.values()), [ca.densify(e) for e in outputs], list(inputs),
                       ["residual", "jacobian", "momentum", "middle", "speed", "power"])  # fmt: skip


def _discrete_rows(form: Any, end: ca.SX, middle: list[ca.SX], t: ca.SX, h: ca.SX, values: ca.SX) -> ca.SX:
    """Return phi at the end of a step, and h psi in its middle of rows on velocities: zero for the discrete motion."""
    q, v = middle
    phi = iter(ca.vertsplit(form.at("constraint", end, v, t + h, values)) if any(form.holonomic) else ())
    psi = ca.vertsplit(h * form.at("rate", q, v, t + h / 2, values))
    return ca.vertcat(*[next(phi) if has else slip for has, slip in zip(form.holonomic, psi, strict=True)])


def trace_mass(system: Any, massless: bool) -> ca.Function:
    """Return q, parameters -> M, row after row; of systems with massless motions also t -> A, which carries them."""
    form = form_of(system)
    q, p, t = ca.SX.sym("q", form.nq), form.parameters, ca.SX.sym("environment", 1)
    still = ca.SX.zeros(form.nv)
    M = form.at("mass", q, still, ca.SX(0), p)
    inputs = {"q": q} | ({"parameters": p} if p.numel() else {})
    outputs = {"M": ca.vec(ca.densify(M))}
    if massless:
        A = form.at("jacobian", q, still, t, p)
        inputs |= {"time": t}
        outputs |= {"A": ca.vec(ca.densify(A).T)}
    return ca.Function("mass", list(inputs.values()), list(outputs.values()), list(inputs), list(outputs))


def has_massless_motions(M: Array) -> bool:
    """Return whether some motion has no mass of its own."""
    return bool(M.shape[0]) and KKT(M, np.zeros((0, M.shape[0]))).analysis.motion.free.shape[1] > 0


def _lagrangian(form: Any, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
    """Return T - V."""
    if not isinstance(form, MechanismForm):
        return form.at("kinetic", q, v, t, p) - form.at("potential", q, v, t, p)
    M = form.at("mass", q, v, t, p)
    return ca.dot(v, M @ v) / 2 - form.traced("energy")(q, ca.SX.zeros(form.nv))[1]


def _forces(form: Any, controller: Controller, q: ca.SX, v: ca.SX, t: ca.SX, environment: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the power of what the balance counts, and all forces that have no potential."""
    tau, p = forces_at(controller, t, q, v, environment)
    power = form.power(q, v, tau, t, p)
    if not isinstance(form, MechanismForm):
        return power, tau + form.at("applied", q, v, t, p)
    mechanism = form.mechanism
    if not mechanism.passive:
        return power, tau
    bare, still = mechanism.with_passive(False), ca.SX.zeros(mechanism.nv)
    both, none = form.traced("bias"), _traced(bare, "bias")
    return power, tau - ((both(q, v) - none(q, v)) - (both(q, still) - none(q, still)))


def _middle(system: Any, base: ca.SX, x: ca.SX, d0: ca.SX, d1: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the configuration half way, and the way in the axes of the middle."""
    if not isinstance(system, Mechanism):
        path = x + d1 - d0
        return base + d0 + path / 2, path
    m = system.manifold
    middle: list[Scalar] = []
    way: list[Scalar] = []
    for i, joint in enumerate(system.joints):
        iq, iv = range(m.q_start[i], m.q_start[i + 1]), range(m.v_start[i], m.v_start[i + 1])
        parts = [[column[j] for j in place] for column, place in ((base, iq), (x, iv), (d0, iv), (d1, iv))]
        half, path = _KINDS.get(joint.kind, _vector)(*parts)
        middle += half
        way += path
    return ca.vertcat(*middle, ca.SX(0, 1)), ca.vertcat(*way, ca.SX(0, 1))


def _vector(q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    way = [x[i] + d1[i] - d0[i] for i in range(len(x))]
    return [q[i] + d0[i] + way[i] / 2 for i in range(len(x))], way


def _continuous(
    q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    way = x[0] + d1[0] - d0[0]
    return _turned(q, d0[0] + way / 2), [way]


def _planar(q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    turn = x[2] + d1[2] - d0[2]
    half = _turned(q[2:], d0[2] + turn / 2)
    end = _turned(q[2:], x[2])
    first, last = _rotated2(q[2:], d0[:2]), _rotated2(end, d1[:2])
    path = [x[k] + last[k] - first[k] for k in range(2)]
    place = [q[k] + first[k] + path[k] / 2 for k in range(2)]
    return [*place, *half], [*_rotated2([half[0], -half[1]], path), turn]


def _rotated2(turn: list[Scalar], x: list[Scalar]) -> list[Scalar]:
    return [turn[0] * x[0] - turn[1] * x[1], turn[1] * x[0] + turn[0] * x[1]]


def _spherical_middle(
    q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """Variations enter to first order, which is all that is differentiated."""
    turn, _ = _spherical([0.0, 0.0, 0.0, 1.0], x, [0.0, 0.0, 0.0])
    before = [-d0[0] / 2, -d0[1] / 2, -d0[2] / 2, 1.0]
    after = [d1[0] / 2, d1[1] / 2, d1[2] / 2, 1.0]
    way = _logarithm(_product(_product(before, turn), after))
    half, _ = _spherical([0.0, 0.0, 0.0, 1.0], [entry / 2 for entry in way], [0.0, 0.0, 0.0])
    start = _product(q, [d0[0] / 2, d0[1] / 2, d0[2] / 2, 1.0])
    return _product(start, half), way


def _logarithm(a: list[Scalar]) -> list[Scalar]:
    """Return the rotation vector of a quaternion with w > 0."""
    s = a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
    small = s < SERIES_OF_SINES
    n = ca.sqrt(ca.if_else(small, 1.0, s))
    w2 = a[3] * a[3]
    u = s / w2
    series = 2 / a[3] * (1 - u / 3 * (1 - u * 3 / 5 * (1 - u * 5 / 7 * (1 - u * 7 / 9))))
    factor = ca.if_else(small, series, 2 * ca.atan2(n, a[3]) / n)
    return [factor * a[0], factor * a[1], factor * a[2]]


def _free(q: list[Scalar], x: list[Scalar], d0: list[Scalar], d1: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
    half, turn = _spherical_middle(q[3:], x[3:], d0[3:], d1[3:])
    end, _ = _spherical(q[3:], x[3:], [0.0, 0.0, 0.0])
    first, last = _rotated(q[3:], d0[:3]), _rotated(end, d1[:3])
    path = [x[k] + last[k] - first[k] for k in range(3)]
    place = [q[k] + first[k] + path[k] / 2 for k in range(3)]
    back = [-half[0], -half[1], -half[2], half[3]]
    return [*place, *half], [*_rotated(back, path), *turn]


def _rotated(a: list[Scalar], x: list[Scalar]) -> list[Scalar]:
    twice = [2 * entry for entry in _cross(a[:3], x)]
    again = _cross(a[:3], twice)
    return [x[i] + a[3] * twice[i] + again[i] for i in range(3)]


_KINDS = {"continuous": _continuous, "planar": _planar, "spherical": _spherical_middle, "free": _free}

__all__ = ["trace_mass", "trace_step"]


# ----------------------------------------------------------------------------------------------------------------------
# `method="variational"`: symplectic steps of fixed size for long runs; energy does not drift.


MOST_NODES = 400
"""Shorter steps in the search for the zeros of a step, at most."""


class Variational:
    """The variational stepper of one session."""

    def __init__(self, session: Session) -> None:
        self.session, self.m = session, session.system
        _refuse(session)
        m, s = self.m, session.settings
        rank = rank_of(session)
        self.codes = Codes(m, session.controller, session.event_function, rank)
        self.callbacks = Callbacks(self.codes, session.event_callables)
        self.work, self._alive = self.codes.work(self.callbacks.addresses, len(session.watches))
        self.signs, self.flushed = np.zeros(len(session.watches)), time.monotonic()
        self.callbacks.work = self.work
        n, rows = m.nv, len(m.names)
        spare = np.zeros((0, 0))
        self.now = Now(
            np.zeros(m.nq), np.zeros(n), np.zeros(1), np.zeros((2, 2 * n + 1)), np.zeros(2 * n + 1), np.zeros(2), spare
        )
        self.clock, self.counts = np.zeros(2), np.zeros(3, np.int64)
        self.nodes = nodes_for(np.array([watch.direction for watch in session.watches], dtype=float), m.nq, n, 3)
        key = ("simulate", m.content())
        step = _kernel(
            (*key, "variational", session.controller.content), lambda: trace_step(m, session.controller), m.cacheable
        )
        size = n + rows
        arrays = {
            "p": np.zeros(n), "lam": np.zeros(rows), "h": np.zeros(1), "residual": np.zeros(size),
            "jacobian": np.zeros((size, n + rows)), "momentum": np.zeros(n), "M": np.zeros((n, n)),
            "middle": np.zeros(m.nq), "speed": np.zeros(n), "power": np.zeros(1),
        }  # fmt: skip
        massless = has_massless_motions(np.asarray(m.mass_matrix(session.q)))
        arrays["A"] = np.zeros((rows if massless else 0, n))
        shared = {name: getattr(self.work, name) for name in ("base", "x", "environment", "q")}
        shared["time"] = self.work.environment[:1]
        shared["parameters"] = self.work.environment[self.work.environment.size - self.codes.form.parameters.numel() :]
        calls = np.zeros((2, 3), np.int64)
        self._kept = []
        words = "mass and rows" if massless else "mass"
        mass = _kernel((*key, words), lambda: trace_mass(m, massless), m.cacheable)
        for row, kernel in enumerate((step, mass)):
            calls[row], memory = _bound(kernel, arrays | shared)
            self._kept.append((kernel, memory))
        self.discrete = loop.Discrete(calls, **arrays)
        self.samples = StepSamples(
            np.zeros(BLOCK), np.zeros((BLOCK, m.nq)), np.zeros((BLOCK, n)), np.zeros((BLOCK, n)),
            np.zeros((BLOCK, rows)), np.zeros(BLOCK), np.zeros(BLOCK),
        )  # fmt: skip
        self.begin, self.step, self.total = self._steps()
        self.stride = 1 if s.every is None else max(1, round(s.every / self.step))
        if s.every is not None and abs(s.every / self.step - self.stride) > ON_THE_GRID * self.stride:
            raise ModelError(
                f'every={s.every:g} is no multiple of the step: method="variational" takes {self.total} steps of '
                f"{self.step:.9g} s, and samples at their ends"
            )
        refuse_breaks_between_steps(session.breaks, self.begin, self.step, 'method="variational"')
        self.tables = session.controller.signals.tables()
        self.redundant = self.codes.carries

    def _steps(self) -> Steps:
        """Return the steps of the run; of one that goes on those from there."""
        s, kept = self.session.settings, self.session.checkpoint
        asked: Any = s.step
        if kept is None or "step" not in kept:  # not in files of older versions
            return steps_between(s.start, s.duration, asked)
        past = Steps(float(kept["clock"][1]), float(kept["step"][0]), int(kept["counts"][0]))
        return steps_that_go_on(past, float(kept["clock"][0]), s.end, asked)

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
            self.clock[1] = self.begin
            if self.redundant:  # rows are chosen where a step starts
                begin_at(self.work, self.tables, self.now, self.clock[0], self.clock[0], s.settings.end)
        try:
            while s.status == "completed" and self._block() != loop.DONE:
                pass
        finally:
            self._flush()
            s.say_unresolved(int(self.nodes.counts[UNRESOLVED]))

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
        multipliers, t = self.discrete.lam.copy(), float(self.clock[0])
        if h == 0.0:
            return event_values(self.work, self.now.q, self.now.v, t)
        try:
            code = loop.take_step(self.work, self.tables, self.discrete, self.now, t, h, self.redundant)
        except np.linalg.LinAlgError:
            code = DECLINED
        self.discrete.lam[:] = multipliers
        values = event_values(self.work, self.work.q, self.work.v, t + h)
        return values if code == FINE else np.full(self.signs.size, np.nan)

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
        tolerance = max(s.settings.event_tolerance, TIME_ROUNDING * abs(t))
        for low, high, g_low, g_high, certain in pieces(lambda part: self._inside(part * h), LEAST_PIECE, MOST_NODES):
            self.nodes.counts[UNRESOLVED] += not certain
            crossed = [k for k in range(g_high.size) if self.signs[k] != 0.0 and self.signs[k] * g_high[k] <= 0.0]
            roots = {
                k: locate_zero(
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
        s.events.append(EventRecord(t, s.watches[k].name, k, "", "rising" if direction > 0 else "falling"))
        ends = s.ends_with(k)
        if h > 0.0:
            self._inside(h)
            before = [array.copy() for array in (self.now.q, self.now.v, self.now.work, self.discrete.p)]
            loop.accept(self.work, self.discrete, self.now, h)
            begin_at(self.work, self.tables, self.now, t, t, t + self.step)
            if self.counts[1] >= BLOCK:
                self._flush()
            loop.write(self.work, self.now, self.samples, self.counts, t, h)
            if not ends:
                self.now.q[:], self.now.v[:], self.now.work[:], self.discrete.p[:] = before
        if ends:
            self.counts[0] += h > 0.0
            s.stop("event", f"ended by {s.watches[k].name!r} at t = {t:.12g} s")
        return ends

    def _give_up(self, code: int) -> None:
        from dalembert.simulate.steppers.singularities import reason_in_rows

        t, now = float(self.clock[0]), self.now
        times = (t, t + self.step / 2, t + self.step)
        why = {
            NON_FINITE: "the motion is no longer finite",
            OFF: "Newton's method does not converge: take a shorter step",
            CALLBACK: "a Python function failed",
            loop.RESTLESS: "the forces of the Python controller do not settle at the middle of the step: its gains are "
            "too large for it; take a shorter step, or give them as a casadi.Function, which is solved with the step",
        }.get(code) or f"no admissible velocity, or no acceleration: {reason_in_rows(self.m, now.q, now.v, times)}"
        reason = self.session.controller.non_finite(times, now.q, now.v) if code == NON_FINITE else ""
        self.session.stop("no solution", f"at t = {t:.9g} s, with a step of {self.step:.3g} s: {why}{reason}")

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
            "step": np.array([self.step]),
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


def unsuited(system: Any) -> str:
    """Return why variational steps do not take a system; empty where they do."""
    if not getattr(system, "compiled", True):
        return "Matrices have no Lagrangian"
    if isinstance(system, Mechanism):
        why = too_long(system)
        return why and f"its steps are straight-line code, and {why}"
    if ca.depends_on(system.expressions.kinetic, system.t):
        return "the kinetic energy depends on time"
    linear = ca.substitute(ca.gradient(system.expressions.kinetic, system.v), system.v, ca.SX.zeros(system.nv))
    return "" if ca.simplify(linear).is_zero() else "the kinetic energy has terms linear in velocities"


def _refuse(session: Session) -> None:
    if session.settings.step is None:
        raise ModelError('method="variational" takes steps of one size: give step=')
    why = unsuited(session.system)
    if why:
        raise UnsupportedError(f'method="variational" does not take this system: {why}; method="dop853" does')


def run_variational(session: Session) -> None:
    """Integrate a session by variational steps."""
    Variational(session).run()
