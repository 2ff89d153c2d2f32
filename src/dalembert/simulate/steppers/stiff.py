"""`method="bdf"`, `"radau"`, `"ida"`: systems on the implicit steppers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.large.requests import too_long
from dalembert.memory import Memory
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.ranks import distance
from dalembert.simulate.equations.callbacks import called_event
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.equations.drives import own_rates
from dalembert.simulate.equations.lagrangian_system import LagrangianSystem
from dalembert.simulate.equations.mechanism_system import ControlledLagrangian, ControlledSystem
from dalembert.simulate.events.asked import Event
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.interruptible import undisturbed
from dalembert.simulate.limits import LATER, SLOPE_OF_STEP
from dalembert.simulate.problem import Problem
from dalembert.simulate.samples import asked_times
from dalembert.simulate.session import Session, rank_of
from dalembert.simulate.steppers.singularities import SINGULAR
from dalembert.simulate.trajectory import start_of
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Python inside the implicit steppers: events, a function after every step, and errors kept with their time.


class StiffCalls:
    """What one session calls back. After the first error everything is NaN, which ends the run at its last step."""

    system: Any

    def __init__(self, session: Session) -> None:
        self.session = session
        self.error: BaseException | None = None
        self.error_time = np.nan
        self.last_step = session.settings.start
        self.reading = False
        self._pending: tuple[float, Array, Array] | None = None

    def guarded(self, t: float, function: Callable[[], Any]) -> Any:
        """Call a user's function; keep its first error, and stop the run by raising it."""
        if self.error is not None and not self.reading:
            raise self.error
        try:
            return function()
        except BaseException as error:
            if self.error is None:
                self.error, self.error_time = error, t
            raise

    def read(self, t: float, function: Callable[[], Any], otherwise: Any) -> Any:
        """Read something off a finished piece, also after an error; what cannot be had is `otherwise`."""
        self.reading = True
        try:
            return self.guarded(t, function)
        except Exception:
            return otherwise
        finally:
            self.reading = False

    def events(self) -> list[Any]:
        """Return the events as the tableau takes them; a function after every step is an event that never happens."""
        s, n = self.session, self.session.system.nv
        if s.event_function is not None and s.on_step is None:
            symbols = self.system.symbols
            values = s.event_function(self.system.place, symbols.v, symbols.t)
            return [Event(ca.densify(values)[k], watch.terminal, watch.direction) for k, watch in enumerate(s.watches)]
        events = [Event(self._function(k), watch.terminal, watch.direction) for k, watch in enumerate(s.watches)]
        if s.on_step is not None:
            events.append(Event(lambda t, x: self._stepped(t, x[:n], x[n : 2 * n])))
        return events

    def _function(self, k: int) -> Callable[[float, Array], float]:
        function, n = self.session.watches[k].g, self.session.system.nv

        def value(t: float, x: Array) -> float:
            q, v = self.system.configuration(x[:n]), x[n : 2 * n].copy()
            return self.guarded(t, lambda: called_event(function, k, t, q, v))

        return value

    def _stepped(self, t: float, x: Array, v: Array) -> float:
        """Tell the step before: whether the last one counts is known when the next one is there."""
        if t > self.last_step:
            self._tell()
            self._pending, self.last_step = (t, x.copy(), v.copy()), t
        return 1.0

    def _tell(self) -> None:
        if self._pending is not None and self.session.on_step is not None:
            t, x, v = self._pending
            self._pending = None
            on_step, q = self.session.on_step, self.system.configuration(x)
            self.guarded(t, lambda: on_step(t, q, v))

    def finish(self, end: float) -> None:
        """Tell the last step of a block, unless an event ended the run before it."""
        pending, self._pending = self._pending, None
        if pending is not None and self.error is None and pending[0] <= end:
            self._pending = pending
            try:
                self._tell()
            except BaseException:
                return

    def slope(self, k: int, t: float, sol: Any) -> float:
        """Return the change of an event's function from before its zero to behind it."""
        n, watch = self.session.system.nv, self.session.watches[k]
        i = int(np.clip(np.searchsorted(sol.t, t), 1, sol.t.size - 1)) if sol.t.size > 1 else 0
        reach = SLOPE_OF_STEP * (sol.t[i] - sol.t[i - 1]) if sol.t.size > 1 else 0.0
        ends = []
        for at in (t - reach, t + reach):
            x = sol(at)
            ends.append(float(watch.g(at, self.system.configuration(x[:n]), x[n : 2 * n])))
        return ends[1] - ends[0]


# ----------------------------------------------------------------------------------------------------------------------
# Work of joint forces and drives along an implicit run: Gauss' rule of four points on every step of its dense output.


GAUSS = 0.5 * (1.0 + np.polynomial.legendre.leggauss(4)[0]), 0.5 * np.polynomial.legendre.leggauss(4)[1]
"""Points and weights of the rule in a step of length one: exact for powers of the order of the dense output."""


def work_along(controller: Controller, system: Any, result: Any, times: Array, start: float) -> tuple[Array, float]:
    """Return the work at `times` and at the end of a result that begins with the work `start`, joules."""
    from dalembert.simulate.equations.codes import Forces

    m, points = system.moving, np.union1d(result.sol.t, times)
    n, h, forced = m.nv, np.diff(points), controller.kind != "none" or not getattr(m, "is_conservative", True)
    forces, total = Forces(controller), np.zeros(h.size)
    for c, weight in zip(*GAUSS, strict=True):
        t = points[:-1] + c * h
        x = result.sol(t)
        q, v = system.configuration(x[:n].T), x[n : 2 * n].T
        b = own_rates(m, q, v, t)
        if not (forced or np.any(b)):
            continue
        tau = np.array([forces(float(t[k]), q[k], v[k]) for k in range(t.size)]).reshape(t.size, n)
        power = getattr(m, "power_of", lambda q, v, tau, t: float(tau @ v))
        total += weight * h * np.array([power(q[k], v[k], tau[k], float(t[k])) for k in range(t.size)])
        if np.any(b):
            _, multipliers, _ = m.forward(q, v, tau, t)
            total += weight * h * np.einsum("ki,ki->k", multipliers, b)
    work = start + np.concatenate([[0.0], np.cumsum(total)])
    return work[np.searchsorted(points, times)], float(work[-1])


# ----------------------------------------------------------------------------------------------------------------------
# `method="bdf"`, `"radau"`, `"ida"`: a mechanism or a Lagrangian on the implicit steppers, in the stabilised form of
# index 2.
#
# Positions and velocities of the constraints hold at every step; multipliers are unknowns. See `simulate.Problem`. A
# run goes in blocks of `BLOCK` steps, each from a fresh consistent start: what is written after a block is all that the
# next one needs, so a run that was killed goes on bit for bit.


BLOCK = 4096
"""Steps a block: what a killed run may lose."""

CALLED_BLOCK = 512
"""The same where a Python function makes steps slow."""


KEPT = 16
"""Problems that stay in memory: tracing and planning one takes as long as a thousand steps."""

PROBLEMS: Memory[tuple[Any, ...], tuple[Any, Problem]] = Memory("stiff problems", KEPT)


def prepared(session: Session, calls: StiffCalls) -> tuple[Any, Problem]:
    """Return a session's equations as a problem; one without tables and Python functions is made once for a start.

    Pivots are chosen at the start of a problem's first integration: another start's would round otherwise.
    """
    m, law = session.system, session.controller
    shared = m.cacheable and not law.signals.symbols and not session.watches and session.on_step is None
    values = np.asarray(getattr(m, "values", ())).tobytes()
    first = (np.asarray(session.q).tobytes(), np.asarray(session.v).tobytes(), session.settings.start)

    def make() -> tuple[Any, Problem]:
        form: Any = ControlledLagrangian if isinstance(m, LagrangianSystem) else ControlledSystem
        system = calls.system = form(m, law, calls.guarded)
        return system, Problem(system, known=system.forces.known(), events=calls.events())

    return PROBLEMS.get((m.content(), values, law.content, *first), make) if shared else make()


class Stiff:
    """An implicit run of one session."""

    def __init__(self, session: Session) -> None:
        refuse(session)
        self.session, self.m = session, session.system
        self.calls = StiffCalls(session)
        self.system, self.problem = prepared(session, self.calls)
        self.calls.system = self.system

        self.point: dict[str, Array] = {}
        self.unresolved = 0

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        s = self.session
        if s.checkpoint is None:
            self.t, self.work, self.asked = s.settings.start, 0.0, 0
            self.x, self.v = self.m.difference(self.system.base, s.q), s.v
            self._good(0)
        else:
            k = self.point = s.checkpoint
            self.x, self.v = k["x"], k["v"]
            self.t, self.work = (float(number) for number in k["time"])
            self.asked, s.steps, s.rejected, s.evaluations = (int(number) for number in k["counts"])
            self._plan_as_begun()
        while s.status == "completed" and self.t < s.settings.end:
            self._block()
        s.say_unresolved(self.unresolved)

    def _plan_as_begun(self) -> None:
        """Choose pivots where the run began, as it did: others would round otherwise, and not go on bit for bit."""
        s, first = self.session, self.m.difference(self.system.base, self.session.q)
        if not self.problem.is_compiled and s.controller.function is None and s.on_step is None:
            options: dict[str, Any] = {"rtol": s.settings.rtol, "atol": s.settings.atol, "method": s.settings.method}
            self.problem.integrate((s.settings.start, s.settings.end), first, s.v, max_steps=1, **options)

    def _block(self) -> None:
        """Take steps until the block is full, and write them down."""
        s, settings = self.session, self.session.settings
        most = BLOCK if s.controller.function is None else min(BLOCK, CALLED_BLOCK)
        if self.system.forces.model is not None:
            self.system.forces.model.state = np.concatenate([self.x, self.v])
        options: dict[str, Any] = {
            "rtol": settings.rtol, "atol": settings.atol, "method": settings.method,
            "max_step": settings.step or settings.largest_step, "max_steps": most,
            "stop_times": s.stops, "t_eval": self._asked_times(),
        }  # fmt: skip
        self.calls.last_step = self.t
        self._count_down()
        try:
            result = self.problem.integrate((self.t, settings.end), self.x, self.v, **options)
        except BaseException:
            if self.calls.error is None:
                raise
            self._failed_at_start()
            return
        full = not result.success and result.statistics.steps >= most and self.calls.error is None
        s.steps += result.statistics.steps
        s.rejected += result.statistics.rejections
        self.unresolved += result.statistics.unresolved
        s.evaluations += result.statistics.evaluations
        self.calls.finish(result.sol.t_max)
        if self.calls.error is not None:
            self._failed()
        elif result.status == 1:
            s.stop("event", "")
        elif not result.success and not full:
            interrupted = "interrupted from the keyboard" in result.message
            why = self._no_number(result) + self._configuration(result)
            s.stop("interrupted" if interrupted else "no solution", result.message + why)
        self._hand_over(result)

    def _count_down(self) -> None:
        """Tell the events how many of their zeros are left until they end the run."""
        s, problem_events = self.session, self.problem.events
        if not any(int(item.terminal) > 1 for item in s.watches):
            return
        done = [sum(item.index == k and item.old == "" for item in s.events) for k in range(len(s.watches))]
        remaining = [
            max(1, int(item.terminal) - done[k]) if item.terminal else False for k, item in enumerate(s.watches)
        ]
        events = [
            replace(e, terminal=remaining[k]) if k < len(remaining) else e for k, e in enumerate(problem_events.events)
        ]
        self.problem.events = replace(problem_events, events=tuple(events))

    def _no_number(self, result: Any) -> str:
        """Return which joint force is no number where a run could not go on, in words."""
        if "not finite" not in result.message:
            return ""
        t, n = float(result.sol.t_max), self.m.nv
        x = result.sol(t)
        times = (t, t + LATER * self.session.settings.duration)
        return self.session.controller.non_finite(times, self.system.configuration(x[:n]), x[n : 2 * n])

    def _configuration(self, result: Any) -> str:
        """Return whether the configuration is singular where Newton's method did not converge, in words.

        Rows say so themselves; where these are as independent as ever, Newton's method has come down to rounding.
        """
        rank, t = rank_of(self.session), float(result.sol.t_max)
        if "did not converge" not in result.message or rank is None or not rank.rank:
            return ""
        s_r = distance(self.m, rank, self.system.configuration(result.sol(t)[: self.m.nv]), t)
        if s_r < SINGULAR * rank.kept:
            return (
                f"; the configuration is close to a singular one, s_r / s_1 = {s_r:.1e} where {rank.kept:.1e} is usual"
            )
        s = self.session.settings
        return (
            f"; the configuration is regular, s_r / s_1 = {s_r:.1e}: rtol={s.rtol:g}, atol={s.atol:g} may be less than "
            'rounding leaves of the multipliers; take wider ones, or method="dop853"'
        )

    def _asked_times(self) -> Array | None:
        s = self.session.settings
        if s.every is None:
            return None
        times = asked_times(s.start, s.end, s.every)
        return times[times > self.t] if self.asked else times

    def _failed(self) -> None:
        error, t = self.calls.error, self.calls.error_time
        if isinstance(error, KeyboardInterrupt):
            self.session.stop("interrupted", f"stopped by the keyboard at t = {t:.9g} s")
        else:
            self.session.extra["error"] = error, t
            self.session.stop("stopped", f"a Python function failed at t = {t:.9g} s: {error}")

    def _failed_at_start(self) -> None:
        """End a run whose Python function fails before the first step of a block; its initial state is a sample."""
        self._failed()
        if not self.session.blocks:
            self.session.add(start_of(self.session), self.point)

    @undisturbed()
    def _hand_over(self, result: Any) -> None:
        """Turn the tableau's unknowns into samples, events and a point from which the run goes on."""
        s, n, calls = self.session, self.m.nv, self.calls
        mesh, inside = result.sol.t, s.settings.inside
        result = result.inside_steps(inside) if inside else result
        unknown = np.full((result.t.size, len(self.m.names)), np.nan)
        multipliers = calls.read(mesh[-1], lambda: _multipliers(self.system, result), unknown)
        accelerations = calls.read(mesh[-1], lambda: result.accelerations, result.rates[n : 2 * n].T)
        rows = _samples(self.system, result, accelerations, multipliers, first=not s.blocks)
        self._events(result, rows)
        rows["work"], end_work = calls.read(
            mesh[-1],
            lambda: work_along(s.controller, self.system, result, rows["t"], self.work),
            (np.full(rows["t"].size, np.nan), np.nan),
        )
        if calls.error is not None and s.status == "completed":
            self._failed()
        rows["step"] = np.diff(mesh, prepend=mesh[0])[np.searchsorted(mesh, rows["t"])] * np.isin(rows["t"], mesh)
        if s.status in ("completed", "event"):
            end = result.sol(mesh[-1])
            self.x, self.v, self.t, self.work = end[:n].copy(), end[n : 2 * n].copy(), float(mesh[-1]), end_work
            self.asked += result.t.size if s.settings.every is not None else 0
            self._good(rows["t"].size)
        s.add(rows, self.point)

    def _good(self, new: int) -> None:
        """Make the end of a block the point from which a run goes on; `kept` samples belong to what is behind it."""
        s = self.session
        self.point = {
            "x": np.array(self.x), "v": np.array(self.v), "time": np.array([self.t, self.work]),
            "counts": np.array([self.asked, s.steps, s.rejected, s.evaluations], float),
            "kept": np.array([sum(len(block["t"]) for block in s.blocks) + new], float),
        }  # fmt: skip

    def _events(self, result: Any, rows: dict[str, Array]) -> None:
        """Note the events in the order of time; each is a sample."""
        s, n = self.session, self.m.nv
        zeros = [
            (float(t), k, x[: 2 * n])
            for k in range(len(s.watches))
            for t, x in zip(result.t_events[k], result.y_events[k], strict=True)
        ]
        for t, k, _ in sorted(zeros, key=lambda zero: zero[:2]):
            way = "rising" if self.calls.slope(k, t, result.sol) > 0 else "falling"
            s.events.append(EventRecord(t, s.watches[k].name, k, "", way))
            if s.status == "event" and s.ends_with(k):
                s.message = f"ended by {s.watches[k].name!r} at t = {t:.12g} s"
        if not zeros or s.settings.inside:  # there samples are those of steps and points inside
            return
        states = np.array([x for _, _, x in sorted(zeros, key=lambda zero: zero[:2])])
        times = np.array(sorted(t for t, _, _ in zeros))
        new = ~np.isin(times, rows["t"])
        if not new.any():
            return
        extra = _solved(self.session, self.system, times[new], states[new])
        order = np.argsort(np.concatenate([rows["t"], times[new]]), kind="stable")
        for name in rows:
            rows[name] = np.concatenate([rows[name], extra[name]])[order]


def _multipliers(system: Any, result: Any) -> Array:
    """Return the multipliers of all rows at the times of a result, (N, m)."""
    columns = [result[f"lam[{name}]"] for name in system.moving.names]
    return np.array(columns).T.reshape(result.t.size, len(columns))


def _samples(system: Any, result: Any, accelerations: Array, multipliers: Array, first: bool) -> dict[str, Array]:
    """Return t, q, v, accelerations and multipliers; the first sample of a later block is known already."""
    n = system.moving.nv
    keep = slice(0 if first or result.t.size == 0 or result.t[0] > result.sol.t_min else 1, None)
    return {
        "t": np.asarray(result.t, dtype=float)[keep], "q": system.configuration(result.y[:n].T[keep]),
        "v": result.y[n : 2 * n].T[keep].copy(), "acceleration": accelerations[keep].copy(),
        "multipliers": multipliers[keep],
    }  # fmt: skip


def _solved(session: Session, system: Any, t: Array, states: Array) -> dict[str, Array]:
    """Return samples at states beside the mesh, their accelerations solved for."""
    from dalembert.simulate.equations.codes import Forces

    m, n = system.moving, system.moving.nv
    forces = Forces(session.controller)
    q, v = system.configuration(states[:, :n]), states[:, n : 2 * n]
    tau = np.array([forces(float(t[k]), q[k], v[k]) for k in range(t.size)]).reshape(t.size, n)
    a, lam, _ = m.forward(q, v, tau, t)
    return {"t": t, "q": q, "v": v, "acceleration": np.asarray(a), "multipliers": np.asarray(lam)}


def run_stiff(session: Session) -> None:
    """Integrate a session by an implicit method of the tableau."""
    Stiff(session).run()


def unsuited(system: Any) -> str:
    """Return why the implicit steppers do not take a system; empty where they do."""
    if not getattr(system, "compiled", True):
        return "Matrices are Python functions, and implicit steppers differentiate expressions: write a Lagrangian"
    why = too_long(system) if isinstance(system, Mechanism) else ""
    if why:
        return f"its residuals are straight-line code, and {why}"
    others = sorted({joint.kind for joint in getattr(system, "joints", ()) if not KINDS[joint.kind].has_rates})
    if not others:
        return ""
    return (
        f"they take joints of angles and lengths, not {', '.join(others)} ones, whose velocities are no rates of "
        "coordinates"
    )


def refuse(session: Session) -> None:
    """Refuse what the implicit steppers do not take."""
    method, why = session.settings.method, unsuited(session.system)
    if why:
        raise UnsupportedError(f'method="{method}": {why}; method="dop853" takes all')
    if session.settings.step is not None:
        raise UnsupportedError(
            f'method="{method}" chooses its steps by rtol and atol; leave step= out, or take method="variational"'
        )
