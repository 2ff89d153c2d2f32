"""Python inside compiled loops: forces, inputs and events given as callables, and the way through `KKT`.

An exception cannot pass through compiled code: it is kept, the loop is told to stop, and the driver raises it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import called as called_number
from dalembert.checks import refuse_masked
from dalembert.errors import DalembertError, ModelError, ShapeError, SolvabilityError
from dalembert.kernel.loops import SIGNATURE
from dalembert.kkt import Status
from dalembert.model.mechanism.constraint_rows import rows_at
from dalembert.model.mechanism.project import newton_step
from dalembert.model.mechanism.ranks import admissible_velocity, solved_under_rank
from dalembert.simulate.equations.drives import own_rates, power_at, worth_at
from dalembert.simulate.equations.signals import FIRST_SIGNAL
from dalembert.simulate.steppers.explicit_loops import FAILED_CALL, LAST_SOLVED
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.equations.codes import Codes, ExplicitWork
    from dalembert.simulate.equations.dae import DAE
    from dalembert.simulate.equations.signals import Signals
    from dalembert.simulate.events.asked import Events


class GuardedCalls:
    """C functions around Python ones; the first error in one is kept, with its time."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.error_time = np.nan
        self.work: Any = None
        self.addresses: dict[str, int] = {}
        self._kept: list[Any] = []

    def _made(self, function: Callable[[Any], None]) -> int:
        """Return the address of a function of the memory that a run works on."""

        def guarded(table: Any, first: int, stop: int, scratch: Any) -> None:
            try:
                function(self.work)
            except BaseException as error:
                if self.error is None:
                    self.error, self.error_time = error, float(self.work.environment[0])
                self.failed()

        self._kept.append(SIGNATURE(guarded))
        return ctypes.cast(self._kept[-1], ctypes.c_void_p).value or 0

    def failed(self) -> None:
        """Tell the loop that a function has failed; NaN, which functions leave where they fail, tells it by itself."""


class Callbacks(GuardedCalls):
    """Of the explicit loop: forces and events of the user, and the codes that go through `KKT`."""

    def __init__(self, codes: Codes, events: Sequence[Callable[..., Any]] = ()) -> None:
        super().__init__()
        self.codes, self.events = codes, tuple(events)
        if codes.controller.function is not None:
            self.addresses["signals"] = self._made(self._forces)
        if self.events:
            self.addresses["events"] = self._made(self._event_values)
        self.careful = {
            "rate": self._made(self._rate),
            "close": self._made(self._close),
            "admit": self._made(self._admit),
        }
        needed = {"rate": True, "close": codes.holonomic > 0, "admit": bool(codes.system.names)}
        self.addresses |= {code: self.careful[code] for code in codes.python if needed[code]}

    def failed(self) -> None:
        """Tell the loop to stop."""
        self.work.environment[FAILED_CALL] = 1.0

    def _forces(self, work: ExplicitWork) -> None:
        t = float(work.environment[0])
        function: Any = self.codes.controller.function
        work.environment[2 : 2 + work.v.size] = called(function, t, work.q, work.v)

    def _event_values(self, work: ExplicitWork) -> None:
        t, q, v = float(work.environment[0]), work.q.copy(), work.v.copy()
        for k, function in enumerate(self.events):
            work.event_values[k] = called_event(function, k, t, q, v)

    def _rate(self, work: ExplicitWork) -> None:
        """Evaluate the rate; what the kernel declines is solved through `KKT`."""
        if self.codes.looped:
            self._by_loops(work)
            return
        if "rate" in self.codes.python:
            self._solved(work)
            return
        names = [port.name for port in self.codes.kernels["rate"].outputs]
        outputs = self.codes.kernels["rate"](work.base, work.x, work.v, work.environment)
        for name, value in zip(names, outputs, strict=True):
            getattr(work, name)[:] = np.ravel(value)
        if not work.status[0] <= LAST_SOLVED:
            q = np.asarray(self.codes.kernels["move"](work.base, work.x))
            self._set_power(work, q, self._solve(work, q))

    def _by_loops(self, work: ExplicitWork) -> None:
        """Evaluate the rate of a large mechanism; what its loops decline goes the careful way of `forward`."""
        m, t, v = self.codes.system, float(work.environment[0]), work.v.copy()
        q, rate = self.codes.kernels["chart"](work.base, work.x, v)
        tau = self.forces(q, v, work.environment)
        a, lam, status = m.compile("forward")(q, v, tau, np.array([t]))
        if not status[0] <= LAST_SOLVED:
            a, lam, status = m.forward(q, v, tau, t)
        work.acceleration[:], work.multipliers[:], work.status[0] = a, lam, float(np.ravel(status)[0])
        work.x_rate[:] = rate
        self._set_power(work, q, tau)

    def _solved(self, work: ExplicitWork) -> None:
        """Evaluate the rate of a system that is Python functions."""
        work.status[0] = np.nan
        q = np.array(work.base + work.x)
        tau = self._solve(work, q)
        work.x_rate[:] = work.v
        self._set_power(work, q, tau)

    def _set_power(self, work: ExplicitWork, q: Array, tau: Array) -> None:
        """Write the power of the applied forces, and of rows that move by themselves; what errors there are worth."""
        m, v, t = self.codes.system, work.v.copy(), float(work.environment[0])
        b = own_rates(m, q, v, t)
        work.power[0] = power_at(m, q, v, tau, t, work.multipliers, b)
        if work.worth.size:
            work.worth[:] = worth_at(m, q, v, t) if np.any(b) else 0.0

    def _solve(self, work: ExplicitWork, q: Array) -> Array:
        """Solve the state in `work` under the rank of its rows, or through `KKT`; return the applied forces."""
        m, t = self.codes.system, float(work.environment[0])
        tau = self.forces(q, work.v, work.environment)
        if self._carried(work, q, tau, t):
            return tau
        try:
            solution = m.solve(q, work.v.copy(), tau, t)
            work.status[0] = float(np.asarray(solution.status))
        except SolvabilityError:
            # a stage off the manifold, whose redundant rows contradict each other: nearest, and not certified
            solution = m.solve(q, work.v.copy(), tau, t, inconsistent="least_squares")
            work.status[0] = float(Status.INCONSISTENT)
        work.acceleration[:], work.multipliers[:] = solution.acceleration, solution.multipliers
        return tau

    def _carried(self, work: ExplicitWork, q: Array, tau: Array, t: float) -> bool:
        """Solve Python's redundant rows under the rank that is carried; False where the answer is not clear."""
        m, rank = self.codes.system, self.codes.rank
        if "rate" not in self.codes.python or rank is None or not rank.redundant:
            return False
        v = work.v.copy()
        M, A, drift = np.asarray(m.mass_matrix(q, t)), np.asarray(rows_at(m, q, t, v)), np.asarray(m.drift(q, v, t))
        force = tau - np.asarray(m.bias(q, v, t))
        try:
            solution = solved_under_rank(rank, M, A, force, drift)
        except (SolvabilityError, np.linalg.LinAlgError):  # `KKT` says why
            return False
        if not solution.clear(M, A, force, drift):
            return False
        work.status[0] = float(Status.REDUNDANT)
        work.acceleration[:], work.multipliers[:] = solution.acceleration, solution.multipliers
        return True

    def forces(self, q: Array, v: Array, environment: Array) -> Array:
        """Return the joint forces at a state."""
        count = self.codes.controller.symbols.numel()
        return np.asarray(self._law(environment[0], q, v, environment[2 : 2 + count])).ravel()

    @cached_property
    def _law(self) -> Any:
        """The controller's forces as a function."""
        import casadi as ca

        c = self.codes.controller
        return ca.Function("tau", [c.t, c.q, c.v, c.symbols], [c.tau])

    def _close(self, work: ExplicitWork) -> None:
        """Take Newton's step in the plain norm, through an orthogonal decomposition."""
        m, t = self.codes.system, float(work.environment[0])
        if self.codes.looped:
            work.correction[:], work.residual[:], work.status[:] = m.compile("project_step")(work.q, np.array([t]))
            return
        work.residual[:], work.correction[:] = newton_step(m, work.q, t)
        work.status[0] = float(Status.UNIQUE if np.isfinite(work.correction).all() else Status.NONFINITE)

    def _admit(self, work: ExplicitWork) -> None:
        """Take the admissible velocity under the mechanism's rank, by an orthogonal decomposition."""
        m, t = self.codes.system, float(work.environment[0])
        if self.codes.looped:
            work.velocity[:], _, work.status[:] = m.compile("project_velocity")(work.q, work.v, np.array([t]))
            return
        try:
            velocity, status, broken = admissible_velocity(m, work.q.copy(), work.v.copy(), t)
        except np.linalg.LinAlgError:  # no metric: a motion without mass, or numbers that are none
            velocity, status, broken = np.full(work.v.size, np.nan), Status.NONFINITE, {}
        work.velocity[:] = velocity
        work.status[0] = float(
            Status.INCONSISTENT if broken else status
        )  # no step ends with a velocity that breaks rows


class InputCallbacks(GuardedCalls):
    """Of the implicit loop: inputs and events of a DAE."""

    def __init__(self, signals: Signals, events: Events, dae: DAE) -> None:
        super().__init__()
        self.signals, self.events, self.dae = signals, events, dae
        if signals.callables or signals.states:
            self.addresses["signals"] = self._made(self._set_signals)
        if events.callables:
            self.addresses["events"] = self._made(self._set_events)

    def __enter__(self) -> InputCallbacks:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.clear()
        self.work = None

    def _set_signals(self, work: Any) -> None:
        environment = work.environment
        t = float(environment[0])
        for signal, function in self.signals.callables:
            environment[FIRST_SIGNAL + signal] = np.nan
            value = called_number(f"known {self.signals.symbols[signal]}", function, t)
            if not np.isfinite(value):
                raise ModelError(f"known {self.signals.symbols[signal]} is {value} at t = {t:g}")
            environment[FIRST_SIGNAL + signal] = value
        for signal, _ in self.signals.states:
            environment[FIRST_SIGNAL + signal] = np.nan
        self.signals.at_state(t, work.x.copy(), environment[FIRST_SIGNAL:])

    def _set_events(self, work: Any) -> None:
        values, t, x = work.event_values, float(work.environment[0]), work.x.copy()
        for k, function in enumerate(self.events.callables):
            values[k] = np.nan
            values[k] = called_number(f"event {k}", function, t, x)


def called(function: Callable[..., Any], t: float, q: Array, v: Array) -> Array:
    """Return what a controller gives, checked; an error in it is raised with its name and time."""
    return checked_forces(_told(f"force ({_name(function)})", function, t, q, v), v.size, t)


def called_event(function: Callable[..., Any], k: int, t: float, q: Array, v: Array, name: str = "") -> float:
    """Return what an event function gives, checked; an error in it is raised with its name and time."""
    if name:
        return checked_event(_told(f"the event {name!r}", function, t, q, v), f"the event {name!r}", t)
    return checked_event(_told(f"event {k} ({_name(function)})", function, t, q, v), f"event {k}", t)


def _told(what: str, function: Callable[..., Any], t: float, q: Array, v: Array) -> Any:
    try:
        return function(t, q.copy(), v.copy())
    except DalembertError:
        raise
    except Exception as error:
        raise ModelError(f"{what} failed at t = {t:.9g} s: {type(error).__name__}: {error}") from error


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def checked_forces(tau: Any, n: int, t: float) -> Array:
    """Return what a controller gave as finite numbers (nv,), or say when and how it was wrong."""
    refuse_masked(tau, f"force at t = {t:.9g} s")
    try:
        array = np.asarray(tau)
        if array.dtype.kind == "c":
            raise ShapeError(f"force returned complex numbers at t = {t:.9g} s; forces are real")
        array = np.asarray(tau, dtype=float)
    except ShapeError:
        raise
    except (TypeError, ValueError) as error:
        raise ShapeError(f"force returned no numbers at t = {t:.9g} s: {error}") from error
    if array.shape != (n,):
        raise ShapeError(f"force returned shape {array.shape} at t = {t:.9g} s; it must return ({n},)")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ModelError(
            f"force[{bad[0]}] is {array[bad[0]]} at t = {t:.9g} s; a controller must return finite numbers"
        )
    return array


def checked_event(value: Any, what: str, t: float) -> float:
    """Return what an event function gave as a finite number, or say when and how it was wrong."""
    refuse_masked(value, f"{what} at t = {t:.9g} s")
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise ShapeError(f"{what} returned {array.dtype} of shape {array.shape} at t = {t:.9g} s; give one number")
    if not np.isfinite(array).all():
        raise ModelError(f"{what} is {array.item()} at t = {t:.9g} s; an event function must be finite")
    return float(array.item())


class CallError(Exception):
    """An error of a function that is called after a step, with its time."""

    def __init__(self, error: BaseException, t: float) -> None:
        super().__init__(str(error))
        self.error, self.t = error, t


def guarded_step(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Return a user's function whose errors are told apart from ours; Ctrl-C passes."""
    if function is None:
        return None
    if not callable(function):
        raise ModelError(f"on_step is {type(function).__name__}; give a function of (t, q, v)")

    def told(t: float, q: Array, v: Array) -> None:
        try:
            function(t, q, v)
        except Exception as error:
            raise CallError(error, t) from error

    return told


def as_user_error(error: BaseException, t: float, trajectory: Any) -> BaseException:
    """Return the error that leaves `simulate`, with the trajectory so far as its attribute `trajectory`."""
    if isinstance(error, CallError):
        error, t = error.error, error.t
    if not isinstance(error, DalembertError | KeyboardInterrupt):
        wrapped = ModelError(f"on_step failed at t = {t:.9g} s: {type(error).__name__}: {error}")
        wrapped.__cause__ = error
        error = wrapped
    error.trajectory = trajectory  # type: ignore[attr-defined]
    return error
