"""A mechanism's equations compiled for the loops: one code per thing that a step asks for, and memory to run them on.

| code | reads | writes |
|---|---|---|
| `rate` | base, x, v, environment | x', acceleration, multipliers, power of the joint forces, status |
| `move` | base, x | q |
| `close` | q, environment | Newton's step onto the constraints, residuals, status |
| `admit` | q, v, environment | admissible velocity, status |
| `events` | q, v, environment | what the user wants the zeros of |

`environment` is t, a spare place, and the signals of the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.model.requests import requests
from dalembert.simulate.smooth.chart import chart, normalised
from dalembert.simulate.smooth.controller import Controller
from dalembert.tableau.time.compiled import bind

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray

CODES = ("rate", "move", "close", "admit", "events", "spare", "signals")
"""Rows of the table of calls; `signal_loops` finds its callback in the last."""


KEPT = 128
"""Kernels that stay in memory between runs: loading one takes as long as a short run."""

_kept: dict[tuple[str, ...], Kernel] = {}
_lock = Lock()


class Work(NamedTuple):
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


class Codes:
    """The compiled codes of a mechanism under a controller; made once, used by any number of runs."""

    def __init__(self, mechanism: Mechanism, controller: Controller, events: ca.Function | None = None) -> None:
        self.mechanism, self.controller = mechanism, controller
        self.holonomic = int(sum(mechanism.holonomic))
        key = ("simulate", mechanism.content())
        own = mechanism.cacheable
        law = controller.content
        self.kernels = {
            "rate": _kernel((*key, "rate", law), lambda: trace_rate(mechanism, controller), own),
            "move": _kernel((*key, "move"), lambda: trace_move(mechanism), own),
        }
        if self.holonomic:
            self.kernels["close"] = _kernel((*key, "close"), lambda: _traced(mechanism, "project_step"), own)
        if mechanism.names:
            self.kernels["admit"] = _kernel((*key, "admit"), lambda: _traced(mechanism, "project_velocity"), own)
        self.events = 0
        if events is not None:
            self.kernels["events"] = Kernel(events, width=1)
            self.events = events.numel_out(0)

    def work(self, callbacks: Mapping[str, int] | None = None, events: int = 0) -> tuple[Work, Any]:
        """Return memory for one run, and what must be kept alive with it."""
        m = self.mechanism
        rows = len(m.names)
        sizes = {
            "base": m.nq, "x": m.nv, "v": m.nv, "environment": 2 + self.controller.symbols.numel(), "x_rate": m.nv,
            "acceleration": m.nv, "multipliers": rows, "power": 1, "status": 1, "q": m.nq, "correction": m.nv,
            "residual": self.holonomic, "velocity": m.nv, "impulses": rows, "event_values": max(self.events, events),
        }  # fmt: skip
        arrays = {name: np.zeros(size) for name, size in sizes.items()}
        arrays["t"] = arrays["environment"][:1]
        calls = np.zeros((len(CODES), 3), np.int64)
        alive: list[Any] = [self, arrays]
        for row, code in enumerate(CODES):
            if code in self.kernels:
                renamed = {"step": arrays["correction"]} if code == "close" else {}
                calls[row], kept = bind(self.kernels[code], arrays | renamed)
                alive.append(kept)
        for code, address in (callbacks or {}).items():
            calls[CODES.index(code)] = address, 0, 0
        del arrays["t"]
        return Work(calls=calls, **arrays), alive


def _kernel(key: tuple[str, ...], build: Callable[[], ca.Function], cached: bool) -> Kernel:
    """Compile for one sample at a time, by name where names say it all; the last ones used stay in memory."""
    if not cached:
        return Kernel(build(), width=1)
    with _lock:
        found = _kept.pop(key, None)
    found = Kernel.cached(key, build, width=1) if found is None else found
    with _lock:
        _kept[key] = found
        while len(_kept) > KEPT:
            del _kept[next(iter(_kept))]
    return found


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


def trace_move(mechanism: Mechanism) -> ca.Function:
    """Return base, x -> q, normalised."""
    base, x = ca.SX.sym("base", mechanism.nq), ca.SX.sym("x", mechanism.nv)
    q, _ = chart(mechanism, base, x, ca.SX.zeros(mechanism.nv))
    return ca.Function("move", [base, x], [ca.densify(normalised(mechanism, q))], ["base", "x"], ["q"])
