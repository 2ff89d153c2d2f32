"""A mechanism's equations compiled for the loops: one code per thing that a step asks for, and memory to run them on.

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

`environment` is t, a spare place, and the signals of the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.kernel.loops import bind
from dalembert.memory import Memory
from dalembert.model.mechanism.precision import slack
from dalembert.model.requests import requests
from dalembert.simulate.equations.chart import chart, normalised
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.steppers.carried_loops import Carried

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.ranks import GenericRank

Array = np.ndarray

CODES = ("rate", "move", "close", "admit", "events", "shift", "signals")
"""Rows of the table of calls; `signals.py` finds its callback in the last."""


LARGEST_CARRIED = 200
"""Velocities up to which rows are solved densely under the mechanism's rank."""

CONTRADICTED = 100.0
"""Times the model's digits by which accelerations of redundant rows may contradict each other: residuals of positions
at its digits are seen so many times in second derivatives."""

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
    """The compiled codes of a mechanism under a controller; made once, used by any number of runs."""

    def __init__(
        self,
        mechanism: Mechanism,
        controller: Controller,
        events: ca.Function | None = None,
        rank: GenericRank | None = None,
    ) -> None:
        self.mechanism, self.controller = mechanism, controller
        self.rank = rank
        self.carries = rank is not None and rank.redundant and mechanism.nv <= LARGEST_CARRIED
        self.holonomic = int(sum(mechanism.holonomic))
        key = ("simulate", mechanism.content())
        own = mechanism.cacheable
        law = controller.content
        rate, word = (trace_terms, "terms") if self.carries else (trace_rate, "rate")
        self.kernels = {
            "rate": _kernel((*key, word, law), lambda: rate(mechanism, controller), own),
            "move": _kernel((*key, "move"), lambda: trace_move(mechanism), own),
        }
        if self.holonomic:
            self.kernels["shift"] = _kernel((*key, "along"), lambda: trace_along(mechanism), own)
        if self.carries:
            rows = _kernel((*key, "rows"), lambda: trace_rows(mechanism), own)
            self.kernels |= {"close": rows, "admit": rows} if self.holonomic else {"admit": rows}
        elif self.holonomic:
            self.kernels["close"] = _kernel((*key, "close"), lambda: _traced(mechanism, "project_step"), own)
        if mechanism.names and not self.carries:
            self.kernels["admit"] = _kernel((*key, "admit"), lambda: _traced(mechanism, "project_velocity"), own)
        self.events = 0
        if events is not None:
            self.kernels["events"] = Kernel(events, width=1)
            self.events = events.numel_out(0)

    def work(self, callbacks: Mapping[str, int] | None = None, events: int = 0) -> tuple[ExplicitWork, Any]:
        """Return memory for one run, and what must be kept alive with it."""
        m = self.mechanism
        rows = len(m.names)
        sizes = {
            "base": m.nq, "x": m.nv, "v": m.nv, "environment": 2 + self.controller.symbols.numel(), "x_rate": m.nv,
            "acceleration": m.nv, "multipliers": rows, "power": 1, "status": 1, "q": m.nq, "correction": m.nv,
            "residual": self.holonomic, "velocity": m.nv, "impulses": rows, "event_values": max(self.events, events),
        }  # fmt: skip
        arrays = {name: np.zeros(size) for name, size in sizes.items()}
        carried = self._carried()
        terms = {name: getattr(carried, name) for name in ("M", "A", "drift", "force", "rate")}
        arrays["t"] = arrays["environment"][:1]
        calls = np.zeros((len(CODES), 3), np.int64)
        alive: list[Any] = [self, arrays]
        for row, code in enumerate(CODES):
            if code in self.kernels:
                renamed = {"step": arrays["correction"], "way": arrays["correction"]}
                calls[row], kept = bind(self.kernels[code], arrays | terms | renamed)
                alive.append(kept)
        for code, address in (callbacks or {}).items():
            calls[CODES.index(code)] = address, 0, 0
        del arrays["t"]
        measured = np.ones(self.holonomic) if self.rank is None else self.rank.sizes[np.array(m.holonomic, bool)]
        digits = np.array([slack(m)])
        return ExplicitWork(calls=calls, sizes=measured, open=digits, carried=carried, **arrays), alive

    def _carried(self) -> Carried:
        """Return memory of the rows under the rank of the mechanism; next to none where it is not carried."""
        m = self.mechanism
        rows, n = (len(m.names), m.nv) if self.carries else (0, 0)
        holonomic = np.array(m.holonomic, bool)[:rows]
        order = np.zeros((2, rows), np.int64)
        order[0] = np.arange(rows)
        order[1, : holonomic.sum()] = np.flatnonzero(holonomic)
        place = np.where(holonomic, np.cumsum(holonomic) - 1, -1).astype(np.int64)
        rank = np.array([self.rank.rank, self.rank.positions] if self.carries and self.rank else [-1, -1], np.int64)
        return Carried(
            rank=rank, counts=np.array([rows, holonomic.sum()], np.int64), order=order, place=place,
            scales=self.rank.scales.copy() if self.carries and self.rank else np.zeros(rows),
            weights=self.rank.weights.copy() if self.carries and self.rank else np.zeros(rows),
            agree=np.array([CONTRADICTED * slack(m)]), distance=np.ones(2),
            M=np.zeros((n, n)), A=np.zeros((rows, n)), drift=np.zeros(rows), force=np.zeros(n), rate=np.zeros(rows),
            L=np.zeros((n, n)), B=np.zeros((rows, n)), Q=np.zeros((rows, n)), F=np.zeros((rows, rows)),
            R=np.zeros((rows, rows)), y=np.zeros(rows), b=np.zeros(rows), w=np.zeros(n), z=np.zeros(n),
        )  # fmt: skip


def _kernel(key: tuple[str, ...], build: Callable[[], ca.Function], cached: bool) -> Kernel:
    """Compile for one sample at a time, by name where names say it all; the last ones used stay in memory."""
    if not cached:
        return Kernel(build(), width=1)
    return CODES_OF_RUNS.get(key, lambda: Kernel.cached(key, build, width=1))


def _traced(mechanism: Mechanism, what: str) -> ca.Function:
    """Return a request's function with dense outputs."""
    request = requests()[what]
    return request.trace(mechanism, **request.options)


def trace_rate(mechanism: Mechanism, controller: Controller) -> ca.Function:
    """Return base, x, v, environment -> x', acceleration, multipliers, power, status."""
    base, x = ca.SX.sym("base", mechanism.nq), ca.SX.sym("x", mechanism.nv)
    v = ca.SX.sym("v", mechanism.nv)
    environment = ca.SX.sym("environment", 2 + controller.symbols.numel())
    t = environment[0]
    q, rate = chart(mechanism, base, x, v)
    law = ca.Function("tau", [controller.t, controller.q, controller.v, controller.symbols], [controller.tau])
    tau = law(t, q, v, environment[2:])
    forward = _traced(mechanism, "forward")
    if mechanism.names:
        a, lam, status = forward(q, v, tau, t)
    else:
        a, lam, status = forward(q, v, tau), ca.SX(0, 1), ca.SX(0)
    outputs = {"x_rate": rate, "acceleration": a, "multipliers": lam, "power": ca.dot(tau, v), "status": status}
    outputs = {name: e for name, e in outputs.items() if e.numel()}
    return ca.Function(
        "rate", [base, x, v, environment], [ca.densify(e) for e in outputs.values()],
        ["base", "x", "v", "environment"], list(outputs),
    )  # fmt: skip


def trace_terms(mechanism: Mechanism, controller: Controller) -> ca.Function:
    """Return base, x, v, environment -> x', power, force (tau - bias), M, A by rows, drift."""
    base, x = ca.SX.sym("base", mechanism.nq), ca.SX.sym("x", mechanism.nv)
    v = ca.SX.sym("v", mechanism.nv)
    environment = ca.SX.sym("environment", 2 + controller.symbols.numel())
    t = environment[0]
    q, rate = chart(mechanism, base, x, v)
    law = ca.Function("tau", [controller.t, controller.q, controller.v, controller.symbols], [controller.tau])
    tau = law(t, q, v, environment[2:])
    outputs = {
        "x_rate": rate,
        "power": ca.dot(tau, v),
        "force": tau - _traced(mechanism, "bias")(q, v),
        "M": ca.vec(_traced(mechanism, "mass_matrix")(q)),
        "A": _by_rows(mechanism, q, t),
        "drift": _traced(mechanism, "constraint_drift")(q, v, t),
    }
    return ca.Function(
        "terms", [base, x, v, environment], [ca.densify(e) for e in outputs.values()],
        ["base", "x", "v", "environment"], list(outputs),
    )  # fmt: skip


def trace_rows(mechanism: Mechanism) -> ca.Function:
    """Return q, v, t -> M, A by rows, rates and residuals of the rows."""
    q, v, t = ca.SX.sym("q", mechanism.nq), ca.SX.sym("v", mechanism.nv), ca.SX.sym("t")
    outputs = {
        "M": ca.vec(_traced(mechanism, "mass_matrix")(q)),
        "A": _by_rows(mechanism, q, t),
        "rate": _traced(mechanism, "constraint_velocity")(q, v, t),
    }
    if any(mechanism.holonomic):
        outputs["residual"] = _traced(mechanism, "constraint")(q, t)
    return ca.Function(
        "rows", [q, v, t], [ca.densify(e) for e in outputs.values()], ["q", "v", "t"], list(outputs)
    )  # fmt: skip


def _by_rows(mechanism: Mechanism, q: ca.SX, t: ca.SX) -> ca.SX:
    """Return A, row after row."""
    A = ca.reshape(_traced(mechanism, "constraint_jacobian")(q, t), len(mechanism.names), mechanism.nv)
    return ca.vec(ca.densify(A).T)


def trace_along(mechanism: Mechanism) -> ca.Function:
    """Return base, way -> q: where a constant velocity leads, to second order; unit quaternions."""
    base, way = ca.SX.sym("base", mechanism.nq), ca.SX.sym("way", mechanism.nv)
    half, _ = chart(mechanism, base, way / 2, way)
    _, rate = chart(mechanism, half, ca.SX.zeros(mechanism.nv), way)
    q, _ = chart(mechanism, base, rate, way)
    return ca.Function("along", [base, way], [ca.densify(normalised(mechanism, q))], ["base", "way"], ["q"])


def trace_move(mechanism: Mechanism) -> ca.Function:
    """Return base, x -> q, normalised."""
    base, x = ca.SX.sym("base", mechanism.nq), ca.SX.sym("x", mechanism.nv)
    q, _ = chart(mechanism, base, x, ca.SX.zeros(mechanism.nv))
    return ca.Function("move", [base, x], [ca.densify(normalised(mechanism, q))], ["base", "x"], ["q"])
