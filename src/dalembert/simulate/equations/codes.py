"""A system's equations compiled for the loops: one code per thing that a step asks for, and memory to run them on.

| code | reads | writes |
|---|---|---|
| `rate` | base, x, v, environment | x', acceleration, multipliers, power of the joint forces, status |
| `move` | base, x | q |
| `close` | q, environment | Newton's step onto the constraints, residuals, status |
| `admit` | q, v, environment | admissible velocity, status |
| `shift` | base, Newton's step | q: steps are velocities in time one, no coordinates of the chart |
| `events` | q, v, environment | what the user wants the zeros of |

Where rows depend on each other everywhere, `rate`, `close` and `admit` are the terms that `carried_loops` solves under
the mechanism's own rank: M, A, joint forces less bias, drift, rates and residuals.

`environment` is t, a spare place, the signals of the controller, and the parameters of a Lagrangian. Of `Matrices`,
which are Python functions, `rate` and `admit` are callbacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.kernel.loops import bind
from dalembert.large.requests import is_large
from dalembert.memory import Memory
from dalembert.model.mechanism.precision import slack
from dalembert.model.requests import requests
from dalembert.simulate.equations.callbacks import called
from dalembert.simulate.equations.chart import chart, normalised
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.equations.drives import drive_power, driven, known_by_accelerations, worth_expressions
from dalembert.simulate.limits import CONTRADICTED
from dalembert.simulate.samples import inside
from dalembert.simulate.steppers.carried_loops import Carried
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.ranks import GenericRank

CODES = ("rate", "move", "close", "admit", "events", "shift", "signals")
"""Rows of the table of calls; `signals.py` finds its callback in the last."""


LARGEST_CARRIED = 200
"""Velocities up to which rows are solved densely under the mechanism's rank."""

KEPT = 128
"""Kernels that stay in memory between runs: loading one takes as long as a short run."""

CODES_OF_RUNS: Memory[tuple[str, ...], Kernel] = Memory("codes of runs", KEPT)


class ExplicitWork(NamedTuple):
    """Memory of one run: what the codes read and write, and where they are."""

    calls: Array  # (codes, 3): address, table, scratch; address 0 where there is none
    base: Array
    x: Array
    v: Array
    environment: Array
    x_rate: Array
    acceleration: Array
    multipliers: Array
    power: Array
    worth: Array  # (2,): energy that errors of a driven motion are worth; empty where nothing is driven
    status: Array
    q: Array
    correction: Array
    residual: Array
    velocity: Array
    impulses: Array
    event_values: Array
    sizes: Array  # (h,): what residuals are measured against
    open: Array  # (1,): part of it by which constraints may stay open
    carried: Carried


class Codes:
    """The compiled codes of a system under a controller; made once, used by any number of runs.

    Attributes
    ----------
    carries
        Whether rows are solved under the rank of the system: where they depend on each other everywhere, and where
        straight-line code would be too long.
    looped
        Whether the mechanism is too large for straight-line code: loops over its bodies answer, called back.
    python
        Codes that are callbacks from the start: `Matrices`' own, and those of large mechanisms.
    """

    def __init__(
        self,
        system: Any,
        controller: Controller,
        events: ca.Function | None = None,
        rank: GenericRank | None = None,
    ) -> None:
        self.system, self.controller = system, controller
        self.form = form = form_of(system)
        if rank is None and form.compiled and not form.straight and system.nv <= LARGEST_CARRIED:
            rank = system.generic_rank(None)
        self.rank = rank
        self.looped = isinstance(form, MechanismForm) and is_large(form.mechanism)
        self.carries = (
            form.compiled and rank is not None and (rank.redundant or not form.straight or self._elsewhere(rank))
            and system.nv <= LARGEST_CARRIED and not self.looped
        )  # fmt: skip
        self.holonomic = int(sum(system.holonomic))
        straight = form.compiled and (self.carries or form.straight) and not self.looped
        self.python = () if straight else ("rate", "close", "admit")
        key = ("simulate", form.content())
        cacheable = system.cacheable
        law = controller.content
        rate, quantity = (trace_terms, "terms") if self.carries else (trace_rate, "rate")
        self.kernels = {"move": _kernel((*key, "move"), lambda: trace_move(form), cacheable)}
        if self.looped:
            self.kernels["chart"] = _kernel((*key, "chart"), lambda: trace_chart(form), cacheable)
        if self.holonomic:
            self.kernels["shift"] = _kernel((*key, "along"), lambda: trace_along(form), cacheable)
        if not self.python:
            self.kernels["rate"] = _kernel((*key, quantity, law), lambda: rate(form, controller), cacheable)
            self._compile_projections(key, cacheable)
        self.events = 0
        if events is not None:
            self.kernels["events"] = Kernel(events, width=1)
            self.events = events.numel_out(0)

    @property
    def driven(self) -> bool:
        """Whether rows may move by themselves, and the work of their drives has an error of its own.

        Rows known by their accelerations alone move off the constraints as stages do: there is no telling. Large
        mechanisms have no mass matrix to measure it by.
        """
        if self.python:
            return not self.looped and bool(self.system.names) and not known_by_accelerations(self.system)
        return any(port.name == "worth" for port in self.kernels["rate"].outputs)

    def _elsewhere(self, rank: GenericRank) -> bool:
        """Return whether a run goes where the rank is not that of straight-line code, decided before the run."""
        if not isinstance(self.form, MechanismForm) or self.looped or not self.system.names:
            return False
        usual = self.system.generic_rank(None)
        return usual.singular or bool(usual.doubt) or usual.rank != rank.rank

    def _compile_projections(self, key: tuple[str, ...], own: bool) -> None:
        """Compile Newton's step onto the constraints and the admissible velocity, or the rows that make them."""
        form = self.form
        if self.carries and self.system.names:
            rows = _kernel((*key, "rows"), lambda: trace_rows(form), own)
            self.kernels |= {"close": rows, "admit": rows} if self.holonomic else {"admit": rows}
        elif self.holonomic:
            self.kernels["close"] = _kernel((*key, "close"), lambda: form.traced("project_step"), own)
        if self.system.names and not self.carries:
            self.kernels["admit"] = _kernel((*key, "admit"), lambda: form.traced("project_velocity"), own)

    def work(self, callbacks: Mapping[str, int] | None = None, events: int = 0) -> tuple[ExplicitWork, Any]:
        """Return memory for one run, and what must be kept alive with it."""
        m, parameters = self.system, self.form.values
        rows, signals = len(m.names), 2 + self.controller.symbols.numel()
        sizes = {
            "base": m.nq, "x": m.nv, "v": m.nv, "environment": signals + parameters.size, "x_rate": m.nv,
            "acceleration": m.nv, "multipliers": rows, "power": 1, "worth": 2 if self.driven else 0, "status": 1,
            "q": m.nq, "correction": m.nv,
            "residual": self.holonomic, "velocity": m.nv, "impulses": rows, "event_values": max(self.events, events),
        }  # fmt: skip
        arrays = {name: np.zeros(size) for name, size in sizes.items()}
        carried = self._carried()
        terms = {name: getattr(carried, name) for name in ("M", "A", "drift", "force", "rate")}
        arrays["t"] = arrays["environment"][:1]
        arrays["environment"][signals:] = parameters
        arrays["parameters"] = arrays["environment"][signals:]
        calls = np.zeros((len(CODES), 3), np.int64)
        alive: list[Any] = [self, arrays]
        for row, code in enumerate(CODES):
            if code in self.kernels:
                renamed = {"step": arrays["correction"], "way": arrays["correction"]}
                calls[row], memory_of_call = bind(self.kernels[code], arrays | terms | renamed)
                alive.append(memory_of_call)
        for code, address in (callbacks or {}).items():
            calls[CODES.index(code)] = address, 0, 0
        del arrays["t"], arrays["parameters"]
        measured = np.ones(self.holonomic) if self.rank is None else self.rank.sizes[np.array(m.holonomic, bool)]
        digits = np.array([slack(m)])
        return ExplicitWork(calls=calls, sizes=measured, open=digits, carried=carried, **arrays), alive

    def _carried(self) -> Carried:
        """Return memory of the rows under the rank of the mechanism; next to none where it is not carried.

        Rows that move nothing within the model's digits are none: what rounding leaves of them is measured by nothing.
        """
        m = self.system
        rows, n = (len(m.names), m.nv) if self.carries else (0, 0)
        moving = ~self.rank.idle if self.carries and self.rank else np.zeros(0, bool)
        holonomic = np.array(m.holonomic, bool)[:rows]
        levels = np.flatnonzero(moving), np.flatnonzero(holonomic & moving)
        order = np.zeros((2, rows), np.int64)
        for level, chosen in enumerate(levels):
            order[level, : chosen.size] = chosen
        place = np.where(holonomic, np.cumsum(holonomic) - 1, -1).astype(np.int64)
        rank = np.array([self.rank.rank, self.rank.positions] if self.carries and self.rank else [-1, -1], np.int64)
        return Carried(
            rank=rank, counts=np.array([chosen.size for chosen in levels], np.int64), order=order, place=place,
            scales=self.rank.scales.copy() if self.carries and self.rank else np.zeros(rows),
            weights=self.rank.weights.copy() if self.carries and self.rank else np.zeros(rows),
            agree=np.array([CONTRADICTED * slack(m)]), distance=np.ones(2),
            M=np.zeros((n, n)), A=np.zeros((rows, n)), drift=np.zeros(rows),
            force=np.zeros(n), rate=np.zeros(rows),
            L=np.zeros((n, n)), B=np.zeros((rows, n)), Q=np.zeros((rows, n)), F=np.zeros((rows, rows)),
            R=np.zeros((rows, rows)), y=np.zeros(rows), b=np.zeros(rows), w=np.zeros(n), z=np.zeros(n),
        )  # fmt: skip


def _kernel(key: tuple[str, ...], build: Callable[[], ca.Function], cached: bool) -> Kernel:
    """Compile for one sample at a time, by name where names say it all; the last ones used stay in memory."""
    if not cached:
        return Kernel(build(), width=1)
    return CODES_OF_RUNS.get(key, lambda: Kernel.cached(key, build, width=1))


class MechanismForm:
    """A mechanism in expressions: chart, accelerations, matrices and rows."""

    compiled, straight = True, True

    def __init__(self, mechanism: Mechanism) -> None:
        nominal = getattr(mechanism, "shared", None)  # of a mechanism with bound parameters: one code for all values
        self.mechanism = mechanism if nominal is None else nominal
        self.parameters = ca.SX(0, 1) if nominal is None else nominal.parameter_column
        self.values = np.zeros(0) if nominal is None else np.array(getattr(mechanism, "values", ()))
        self.nq, self.nv = mechanism.nq, mechanism.nv
        self.names, self.holonomic = mechanism.names, mechanism.holonomic

    def content(self) -> str:
        """Return the key of what the codes are made of."""
        return self.mechanism.content()

    def traced(self, what: str) -> ca.Function:
        """Return a request's function with dense outputs."""
        return _traced(self.mechanism, what)

    def _of(self, what: str, p: ca.SX, *inputs: ca.SX) -> Any:
        """Return a request at expressions; parameters are its last input, where there are some."""
        function: Any = self.traced(what)
        return function(*inputs, *((p,) if self.parameters.numel() else ()))

    def chart(self, base: ca.SX, x: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return q and x' at the coordinates x around `base`."""
        return chart(self.mechanism, base, x, v)

    def accelerations(self, q: ca.SX, v: ca.SX, tau: ca.SX, t: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return acceleration, multipliers and status as expressions."""
        a, lam, status = self._of("forward", p, q, v, tau, t)
        return (a, lam, status) if self.names else (a, lam, ca.SX(0))  # loops look at numbers themselves

    def power(self, q: ca.SX, v: ca.SX, tau: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
        """Return the power of the joint forces."""
        return ca.dot(tau, v)

    def energies(self, q: ca.SX, v: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return kinetic and potential energy, and what changes by the work of forces: their sum."""
        kinetic, potential = self._of("energy", p, q, v)
        return kinetic, potential, kinetic + potential

    def at(self, what: str, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
        """Return a matrix or the rows at expressions."""
        match what:
            case "mass":
                return self._of("mass_matrix", p, q)
            case "bias":
                return self._of("bias", p, q, v)
            case "jacobian":
                speeds = (v,) if self.mechanism.of_accelerations else ()
                return ca.reshape(self._of("constraint_jacobian", p, q, *speeds, t), len(self.names), self.nv)
            case "drift":
                return self._of("constraint_drift", p, q, v, t)
            case "rate":
                return self._of("constraint_velocity", p, q, v, t)
            case _:
                return self._of("constraint", p, q, t)


def form_of(system: Any) -> Any:
    """Return a system in expressions."""
    from dalembert.model.mechanism.mechanism import Mechanism

    return MechanismForm(system) if isinstance(system, Mechanism) else system


def _traced(mechanism: Mechanism, what: str) -> ca.Function:
    """Return a request's function with dense outputs."""
    request = requests()[what]
    return request.trace(mechanism, **request.options)


def _symbols(form: Any, controller: Controller) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return base, x, v, environment."""
    size = 2 + controller.symbols.numel() + form.parameters.numel()
    return ca.SX.sym("base", form.nq), ca.SX.sym("x", form.nv), ca.SX.sym("v", form.nv), ca.SX.sym("environment", size)


def forces_at(controller: Controller, t: ca.SX, q: ca.SX, v: ca.SX, environment: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the applied forces at expressions, and the parameters in the environment."""
    law = ca.Function("tau", [controller.t, controller.q, controller.v, controller.symbols], [controller.tau])
    end = 2 + controller.symbols.numel()
    return law(t, q, v, environment[2:end]), environment[end:]


def trace_rate(form: Any, controller: Controller) -> ca.Function:
    """Return base, x, v, environment -> x', acceleration, multipliers, power, status, worth of errors if driven."""
    base, x, v, environment = _symbols(form, controller)
    t = environment[0]
    q, rate = form.chart(base, x, v)
    tau, p = forces_at(controller, t, q, v, environment)
    a, lam, status = form.accelerations(q, v, tau, t, p)
    power = form.power(q, v, tau, t, p) + drive_power(form, q, v, t, p, lam)
    outputs = {"x_rate": rate, "acceleration": a, "multipliers": lam, "power": power, "status": status,
               "worth": worth_expressions(form, q, v, t, p) if driven(form) else ca.SX(0, 1)}  # fmt: skip
    outputs = {name: e for name, e in outputs.items() if e.numel()}
    return ca.Function(
        "rate", [base, x, v, environment], [ca.densify(e) for e in outputs.values()],
        ["base", "x", "v", "environment"], list(outputs),
    )  # fmt: skip


def trace_terms(form: Any, controller: Controller) -> ca.Function:
    """Return base, x, v, environment -> x', power, force (tau - bias), M, A by rows, drift; if driven, worth."""
    base, x, v, environment = _symbols(form, controller)
    t = environment[0]
    q, rate = form.chart(base, x, v)
    tau, p = forces_at(controller, t, q, v, environment)
    outputs = {
        "x_rate": rate,
        "power": form.power(q, v, tau, t, p),
        "force": tau - form.at("bias", q, v, t, p),
        "M": ca.vec(form.at("mass", q, v, t, p)),
        "A": by_rows(form.at("jacobian", q, v, t, p)),
        "drift": form.at("drift", q, v, t, p),
        "worth": worth_expressions(form, q, v, t, p) if driven(form) else ca.SX(0, 1),
    }
    outputs = {name: e for name, e in outputs.items() if e.numel()}
    return ca.Function(
        "terms", [base, x, v, environment], [ca.densify(e) for e in outputs.values()],
        ["base", "x", "v", "environment"], list(outputs),
    )  # fmt: skip


def trace_rows(form: Any) -> ca.Function:
    """Return q, v, t, parameters -> M, A by rows, rates and residuals of the rows."""
    q, v, t, p = ca.SX.sym("q", form.nq), ca.SX.sym("v", form.nv), ca.SX.sym("t"), form.parameters
    outputs = {
        "M": ca.vec(form.at("mass", q, v, t, p)),
        "A": by_rows(form.at("jacobian", q, v, t, p)),
        "rate": form.at("rate", q, v, t, p),
    }
    if any(form.holonomic):
        outputs["residual"] = form.at("constraint", q, v, t, p)
    inputs = {"q": q, "v": v, "t": t} | ({"parameters": p} if p.numel() else {})
    return ca.Function(
        "rows", list(inputs.values()), [ca.densify(e) for e in outputs.values()], list(inputs), list(outputs)
    )  # fmt: skip


def by_rows(A: ca.SX) -> ca.SX:
    """Return a matrix, row after row."""
    return ca.vec(ca.densify(A).T)


def trace_along(form: Any) -> ca.Function:
    """Return base, way -> q: where a constant velocity leads, to second order; unit quaternions."""
    base, way = ca.SX.sym("base", form.nq), ca.SX.sym("way", form.nv)
    half, _ = form.chart(base, way / 2, way)
    _, rate = form.chart(half, ca.SX.zeros(form.nv), way)
    q, _ = form.chart(base, rate, way)
    return ca.Function("along", [base, way], [ca.densify(_unit(form, q))], ["base", "way"], ["q"])


def trace_move(form: Any) -> ca.Function:
    """Return base, x -> q, normalised."""
    base, x = ca.SX.sym("base", form.nq), ca.SX.sym("x", form.nv)
    q, _ = form.chart(base, x, ca.SX.zeros(form.nv))
    return ca.Function("move", [base, x], [ca.densify(_unit(form, q))], ["base", "x"], ["q"])


def trace_chart(form: Any) -> ca.Function:
    """Return base, x, v -> q, x'; q as it stands in the steps of a run."""
    base, x, v = ca.SX.sym("base", form.nq), ca.SX.sym("x", form.nv), ca.SX.sym("v", form.nv)
    q, rate = form.chart(base, x, v)
    return ca.Function("chart", [base, x, v], [ca.densify(q), ca.densify(rate)], ["base", "x", "v"], ["q", "x_rate"])


def _unit(form: Any, q: ca.SX) -> ca.SX:
    """Return q with quaternions of length one."""
    return normalised(form.mechanism, q) if isinstance(form, MechanismForm) else q


# ----------------------------------------------------------------------------------------------------------------------
# Joint forces and the chart in numbers, for steppers that are driven from Python.


class Forces:
    """tau(t, q, v) of a controller; the time of the last call is kept for messages."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.time = controller, 0.0
        self.bounds = -np.inf, np.inf
        self.zero = controller.kind == "none"
        c = controller
        if not self.zero:
            inputs = {"t": c.t, "q": c.q, "v": c.v, "signals": c.symbols}
            inputs = {name: port for name, port in inputs.items() if port.numel()}
            self.names = tuple(inputs)
            self.kernel = _kernel(
                ("simulate", "tau", c.content),
                lambda: ca.Function("tau", list(inputs.values()), [c.tau], list(inputs), ["tau"]), True,
            )  # fmt: skip

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        """Return the joint forces (nv,); between break points their limits from within `bounds`."""
        self.time = t = inside(t, self.bounds)
        if self.zero:
            return np.zeros(v.size)
        c = self.controller
        if c.function is not None:
            return called(c.function, t, q, v)
        values = {"t": np.array([t]), "q": q, "v": v, "signals": c.signals.values(t)}
        return np.atleast_1d(self.kernel(*(values[name] for name in self.names)))


class Chart:
    """Configurations around a base: q and x' at coordinates x; and a step along a velocity."""

    def __init__(self, mechanism: Mechanism) -> None:
        key = ("simulate", mechanism.content())
        self._at = _kernel((*key, "chart"), lambda: _trace_chart(mechanism), mechanism.cacheable)
        self.along_kernel = _kernel((*key, "along"), lambda: trace_along(MechanismForm(mechanism)), mechanism.cacheable)

    def at(self, base: Array, x: Array, v: Array) -> tuple[Array, Array]:
        """Return q and x' = T(x) v."""
        return self._at(base, x, v)

    def along(self, base: Array, way: Array) -> Array:
        """Return where a constant velocity leads whose time integral is `way`, to second order; unit quaternions."""
        return self.along_kernel(base, way)


def _trace_chart(mechanism: Mechanism) -> ca.Function:
    base, x, v = ca.SX.sym("base", mechanism.nq), ca.SX.sym("x", mechanism.nv), ca.SX.sym("v", mechanism.nv)
    q, rate = chart(mechanism, base, x, v)
    outputs = [ca.densify(normalised(mechanism, q)), ca.densify(rate)]
    return ca.Function("chart", [base, x, v], outputs, ["base", "x", "v"], ["q", "x_rate"])
