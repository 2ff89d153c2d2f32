"""An integration, segment by segment: from jump to jump of the inputs, each with a fresh consistent start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.tableau.time.bdf_loops import run
from dalembert.tableau.time.dense_output import Dense
from dalembert.tableau.time.result import Result, Statistics
from dalembert.tableau.time.state import (
    DONE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    STOPPED,
    TOO_MANY_STEPS,
    Option,
    new_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dalembert.tableau.time.callbacks import Callbacks
    from dalembert.tableau.time.compiled import Compiled, Work
    from dalembert.tableau.time.options import Settings
    from dalembert.tableau.time.problem import Problem
    from dalembert.tableau.time.signal_loops import Tables

Array = np.ndarray

FIRST_ROWS = 256
SHIFT_RANGE = {True: 1.0 - 1e-9, False: 0.6}
"""Factors are kept while c / c_old lies between this and its reciprocal. Straight-line factors cost two Newton steps
and are made anew whenever c changes: half as many steps on Andrews' mechanism, since all rows then hold exactly.
"""
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
}


def option_of(problem: Problem, settings: Settings, relax: Array, straight: bool) -> Option:
    """Return the options as the loop reads them."""
    dae = problem.dae
    tested = dae.tested if dae.tested.any() else dae.differential if dae.differential.any() else np.ones(dae.n, bool)
    reach = max(abs(settings.t0), abs(settings.t1), abs(settings.t1 - settings.t0))
    return Option(
        rtol=float(settings.rtol),
        atol=settings.atol_all,
        power=dae.power.astype(np.int64),
        tested=tested,
        tested_count=float(tested.sum()),
        share=float(settings.newton),
        shift_range=SHIFT_RANGE[straight],
        relax=relax,
        least=16 * np.finfo(float).eps * reach,
        most_step=float(settings.max_step),
        first_step=float(settings.first_step),
        most_order=int(settings.max_order),
        most_steps=int(settings.max_steps),
        directions=problem.events.directions,
        terminal=problem.events.counts,
    )


def integrate_segments(
    problem: Problem,
    compiled: Compiled,
    settings: Settings,
    x: Array,
    rates: Array,
    start: Any,
    relax: Array,
    callbacks: Callbacks,
) -> Result:
    """Run the stepper from jump to jump; what was found so far is always returned."""
    work, alive = compiled.work(callbacks.addresses, len(problem.events))
    callbacks.work = work
    option = option_of(problem, settings, relax, compiled.straight)
    tables, totals = problem.signals.tables(), Totals()
    work.environment[:] = problem.environment(settings.t0, 1.0, relax[0])
    advance, kept = stepper(problem, settings, work)
    segments = settings.segments(problem.signals.jumps)
    message = ""
    for k, (begin, end) in enumerate(segments):
        if k:
            try:
                x, rates = restart(problem, begin, totals.meshes[-1][-1], end > begin)
            except DalembertError as error:
                message = f"no consistent restart at t = {begin:g}: {error}"
                totals.status = FAILED_CONVERGENCE
                break
        state = new_state()
        state[0].t, state[0].t_stop = begin, end
        work.x[:], work.rates[:] = x, rates
        if begin == end:
            totals.add(np.concatenate([[begin, 0.0], x, rates])[None, :], np.empty((0, 2 + len(x))), state[0])
            break
        mesh, found = advance(work, state, option, tables, np.empty((FIRST_ROWS, 2 + 2 * len(x))))
        totals.add(mesh, found, state[0])
        if state[0].status != DONE:
            break
    del alive, kept
    return totals.result(problem, settings, start, message or _message(totals, problem, callbacks))


def stepper(problem: Problem, settings: Settings, work: Work) -> tuple[Callable[..., tuple[Array, Array]], Any]:
    """Return the loop of a method, and what must be kept alive with it."""
    if settings.method == "bdf":
        return run, None
    if settings.method == "ida":
        from dalembert.tableau.time.ida import ida_stepper

        return ida_stepper(problem, settings), None
    from dalembert.tableau.time.radau_coefficients import radau
    from dalembert.tableau.time.radau_loops import run_radau

    extra, kept = problem.radau.work(work)

    def advance(work: Work, state: Array, option: Option, tables: Tables, mesh: Array) -> tuple[Array, Array]:
        return run_radau(work, extra, state, option, tables, mesh, radau())

    return advance, kept


def restart(problem: Problem, t: float, row: Array, forward: bool) -> tuple[Array, Array]:
    """Return x and x' just after a jump: positions and velocities stay, accelerations and forces are found anew."""
    n = problem.dae.n
    x, rates = row[2 : n + 2], row[n + 2 :]
    side = "right" if forward else "left"
    if problem.motion is None:
        from dalembert.tableau.time.general_start import general_start

        found = general_start(problem, t, x, rates, side)
        return found[0], found[1]
    nf = len(problem.motion.free)
    start = problem.finder.find(t, x[:nf], x[nf : 2 * nf], problem.parameters, (), side)
    return problem.pack(start)


class Totals:
    """What the segments gave, put together."""

    def __init__(self) -> None:
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
            statistics=Statistics(**self.counts, restarts=len(self.meshes) - 1, orders=orders),
            names=problem.dae.unknowns,
            start=start,
            known=problem.known_functions,
            problem=problem,
        )


def _message(totals: Totals, problem: Problem, callbacks: Callbacks) -> str:
    """Say how the integration ended, and if badly, where and why."""
    status, s = totals.status, totals.last
    if status == DONE:
        return "the end was reached"
    if status == STOPPED:
        return f"stopped by an event at t = {s['t']:.9g}"
    where = f"at t = {s['t']:.9g}"
    if callbacks.error is not None:
        return f"a callable raised {type(callbacks.error).__name__}: {callbacks.error} ({where})"
    if status == TOO_MANY_STEPS:
        return f"max_steps = {int(s['steps'])} steps were not enough; {where}, last step {s['h_used']:.3g}"
    name = problem.dae.unknowns[int(s["worst"])]
    causes = {
        FAILED_ERROR_TEST: f"the error test failed again and again, worst for {name!r}: a discontinuity (declare it as "
        "stop_times or an event), or tolerances below rounding",
        FAILED_CONVERGENCE: f"Newton's method did not converge, worst for {name!r}: the iteration matrix may be "
        "singular (a singular configuration, or redundant constraints that appeared on the way)",
        FAILED_NON_FINITE: f"the residual is not finite, first seen in {name!r}: check its domain (roots, divisions)",
    }
    return f"the step size collapsed to {abs(s['h_collapsed']):.3g} {where}: {causes[status]}"
