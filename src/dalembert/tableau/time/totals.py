"""What the segments of an integration gave, put together; and in words how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.tableau.time.dense_output import Dense
from dalembert.tableau.time.result import Result, Statistics
from dalembert.tableau.time.state import (
    DONE,
    EVENT_NOT_FINITE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    INTERRUPTED,
    STOPPED,
    TOO_MANY_STEPS,
)

if TYPE_CHECKING:
    from dalembert.tableau.time.callbacks import Callbacks
    from dalembert.tableau.time.options import Settings
    from dalembert.tableau.time.problem import Problem

Array = np.ndarray

COUNTS = {
    "steps": "steps",
    "error_failures": "error_failures",
    "newton_failures": "newton_failures",
    "evaluations": "evaluations",
    "factorizations": "factorizations",
    "newton_iterations": "iterations",
    "plan_repairs": "repairs",
    "relaxations": "relaxations",
    "widened": "widened",
    "unresolved": "unresolved",
}

UNRESOLVED = (
    "; in {count} steps an event function changes too often to be followed, zeros may be missing: a function of "
    "rounding alone, or set max_step below half its period"
)


class Totals:
    """What the segments gave, put together."""

    def __init__(self, terminal: Array) -> None:
        self.terminal = terminal  # zeros of each event that are left until it ends the run; below 0: never
        self.rechosen = 0
        self.meshes: list[Array] = []
        self.events: list[Array] = []
        self.counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        self.orders = np.zeros(8, np.int64)
        self.status = DONE
        self.last: Any = None

    def add(self, mesh: Array, events: Array, state: Any) -> None:
        """Take over one segment."""
        self.meshes.append(mesh)
        self.events.append(events)
        for name, field in COUNTS.items():
            self.counts[name] += int(state[field])
        self.orders += state["order_counts"]
        self.terminal = self.terminal - np.bincount(events[:, 0].astype(np.int64), minlength=len(self.terminal))
        self.status = int(state["status"])
        self.last = state

    def result(self, problem: Problem, settings: Settings, start: Any, message: str) -> Result:
        """Return the trajectory."""
        n = problem.dae.n
        mesh = np.concatenate(self.meshes)
        lengths = [len(part) for part in self.meshes]
        begins = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
        t, order = mesh[:, 0].copy(), mesh[:, 1].astype(np.int64)
        both = np.ascontiguousarray(mesh[:, 2:])
        rates = None if settings.method == "bdf" else both[:, n:]
        dense = Dense(t, both, order, begins, rates)
        if settings.t_eval is not None:
            t = np.asarray(settings.t_eval, dtype=float)
            inside = (t >= dense.t_min) & (t <= dense.t_max)
            t = t[inside]
            both = dense(t).T if len(t) else np.empty((0, 2 * n))
        events = np.concatenate(self.events) if self.events else np.empty((0, n + 2))
        split = [events[events[:, 0] == k] for k in range(len(problem.events))]
        orders = {k: int(c) for k, c in enumerate(self.orders) if c}
        return Result(
            t=t,
            y=both[:, :n].T,
            rates=both[:, n:].T,
            sol=Dense(dense.t, dense.x, order, begins, rates, n),
            t_events=[part[:, 1] for part in split],
            y_events=[part[:, 2:] for part in split],
            status={DONE: 0, STOPPED: 1}.get(self.status, -1),
            message=message,
            statistics=Statistics(**self.counts, restarts=len(self.meshes) - 1, rechosen=self.rechosen, orders=orders),
            names=problem.dae.unknowns,
            start=start,
            known=problem.known_functions,
            problem=problem,
        )


def ending(totals: Totals, problem: Problem, callbacks: Callbacks) -> str:
    """Say how the integration ended, and if badly, where and why."""
    status, s = totals.status, totals.last
    count = totals.counts["unresolved"]
    said = UNRESOLVED.format(count=count) if count else ""
    if status == DONE:
        return f"the end was reached{said}"
    if status == STOPPED:
        return f"stopped by an event at t = {s['t']:.9g}{said}"
    where = f"at t = {s['t']:.9g}"
    if callbacks.error is not None:
        return f"{_told(callbacks.error)} ({where})"
    if status == EVENT_NOT_FINITE:
        return f"event {int(s['worst'])} is not finite {where}"
    if status == INTERRUPTED:
        return f"interrupted from the keyboard {where}"
    if status == TOO_MANY_STEPS:
        return f"max_steps = {totals.counts['steps']} steps were not enough; {where}, last step {s['h_used']:.3g}"
    name = problem.dae.unknowns[int(s["worst"])]
    causes = {
        FAILED_ERROR_TEST: f"the error test failed again and again, worst for {name!r}: a discontinuity (declare it as "
        "stop_times or an event), or tolerances below rounding",
        FAILED_CONVERGENCE: f"Newton's method did not converge, worst for {name!r}: the iteration matrix may be "
        "singular (a singular configuration, or redundant constraints that appeared on the way)",
        FAILED_NON_FINITE: f"the residual is not finite, first seen in {name!r}: check its domain (roots, divisions)",
    }
    size = abs(s["h_collapsed"])
    to = f" to {size:.3g}" if np.isfinite(size) else ""
    return f"the step size collapsed{to} {where}: {causes[status]}"


def _told(error: BaseException) -> str:
    """Say what a callable raised: an error of ours says it all."""
    return str(error) if isinstance(error, DalembertError) else f"a callable raised {type(error).__name__}: {error}"
