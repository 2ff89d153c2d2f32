"""An integration on its way: compiled problem, segments from jump to jump, totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.simulate.equations.independent_rows import DroppedRows, Opened
from dalembert.simulate.interruptible import NEVER, interruptible
from dalembert.simulate.result import Result, Statistics
from dalembert.simulate.steppers.bdf import run
from dalembert.simulate.steppers.interpolation import DenseOutput
from dalembert.simulate.steppers.newton_loops import (
    DONE,
    EVENT_NOT_FINITE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    INTERRUPTED,
    ROW_OPENED,
    STOPPED,
    TOO_MANY_STEPS,
    Option,
    new_state,
)
from dalembert.types import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from dalembert.simulate.equations.callbacks import InputCallbacks
    from dalembert.simulate.equations.compiled import ImplicitWork
    from dalembert.simulate.equations.signals import Tables
    from dalembert.simulate.problem import Problem
    from dalembert.simulate.settings import Settings

# ----------------------------------------------------------------------------------------------------------------------
# A problem made ready to run: compiled, with its stepper, options and memory.


FIRST_ROWS = 256
SHIFT_RANGE = {True: 1.0 - 1e-9, False: 0.6}
"""Factors are kept while c / c_old lies between this and its reciprocal. Straight-line factors cost two Newton steps
and are made anew whenever c changes: half as many steps on Andrews' mechanism, since all rows then hold exactly.
"""


def option_of(problem: Problem, settings: Settings, relax: Array, straight: bool) -> Option:
    """Return the options as the loop reads them."""
    dae = problem.dae
    tested = dae.tested if dae.tested.any() else dae.differential if dae.differential.any() else np.ones(dae.n, bool)
    return Option(
        rtol=float(settings.rtol),
        atol=settings.atol_all,
        power=dae.power.astype(np.int64),
        tested=tested,
        lasting=np.flatnonzero(tested & (dae.power > 0)),
        tested_count=float(tested.sum()),
        share=float(settings.newton),
        shift_range=SHIFT_RANGE[straight],
        relax=relax,
        least=16 * np.finfo(float).eps,
        most_step=float(settings.max_step),
        first_step=float(settings.first_step),
        most_order=int(settings.max_order),
        most_steps=int(settings.max_steps),
        directions=problem.events.directions,
        terminal=problem.events.counts,
        keyboard=NEVER,
    )


class CompiledRun:
    """A problem, compiled, with its stepper and memory; `watch` where rows were left out."""

    def __init__(
        self, problem: Problem, settings: Settings, x: Array, rates: Array, relax: Array, callbacks: InputCallbacks
    ) -> None:
        compiled = problem.compile(settings, x, rates, relax)
        self.problem, self.settings = problem, settings
        self.work, self._alive = compiled.work(callbacks.addresses, len(problem.events))
        callbacks.work = self.work
        self.option = option_of(problem, settings, relax, compiled.straight)
        self.tables = problem.signals.tables()
        self.work.environment[:] = problem.environment(settings.t0, 1.0, relax[0])
        self.advance, self._kept = stepper(problem, settings, self.work)
        reduced = problem.motion is not None and len(problem.rows) < len(problem.motion.names)
        self.watch = DroppedRows(problem) if reduced else None
        self.armed = False  # whether signs of events are those of the point that a run begins at

    def run(self, begin: float, end: float, x: Array, rates: Array, totals: Totals) -> Opened | None:
        """Run from one time to another; take over what is good, and say where a row that was left out opened."""
        state = new_state()
        low, high = self.settings.bounds(begin, end, self.problem.signals.jumps)
        state[0].t, state[0].t_stop, state[0].t_low, state[0].t_high = begin, end, low, high
        state[0].span = abs(self.settings.t1 - self.settings.t0)
        state[0].opening = 1 if not totals.meshes else 0 if self.armed else 2
        self.armed = True
        work = self.work
        work.x[:], work.rates[:] = x, rates
        if begin == end:
            totals.add(np.concatenate([[begin, 0.0], x, rates])[None, :], np.empty((0, 2 + len(x))), state[0])
            return None
        self.option.terminal[:] = totals.terminal
        option = self.option._replace(most_steps=max(self.option.most_steps - totals.counts["steps"], 0))
        with interruptible() as keyboard:
            option = option._replace(keyboard=keyboard)
            mesh, zeros = self.advance(work, state, option, self.tables, np.empty((FIRST_ROWS, 2 + 2 * len(x))))
        opened = None if self.watch is None else self.watch.opened(mesh, self.settings, low, high)
        if opened is not None:
            good = max(opened.row, 1)
            state[0].steps -= len(mesh) - good
            mesh = mesh[:good]
            zeros = zeros[(zeros[:, 1] - mesh[-1, 0]) * (end - begin) <= 0.0]
            state[0].t, state[0].status = mesh[-1, 0], ROW_OPENED
        totals.add(mesh, zeros, state[0])
        return opened


def stepper(problem: Problem, settings: Settings, work: ImplicitWork) -> tuple[Callable[..., tuple[Array, Array]], Any]:
    """Return the loop of a method, and what must be kept alive with it."""
    if settings.method == "bdf":
        return run, None
    if settings.method == "ida":
        from dalembert.simulate.steppers.ida import ida_stepper

        return ida_stepper(problem, settings), None
    from dalembert.simulate.steppers.radau import radau, run_radau

    extra, memory_of_call = problem.radau.work(work)

    def advance(work: ImplicitWork, state: Array, option: Option, tables: Tables, mesh: Array) -> tuple[Array, Array]:
        return run_radau(work, extra, state, option, tables, mesh, radau())

    return advance, memory_of_call


# ----------------------------------------------------------------------------------------------------------------------
# The segments of an integration put together, and its end in words.


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
        dense = DenseOutput(t, both, order, begins, rates)
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
            sol=DenseOutput(dense.t, dense.x, order, begins, rates, n),
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


def ending(totals: Totals, problem: Problem, callbacks: InputCallbacks) -> str:
    """Say how the integration ended, and if badly, where and why."""
    status, s = totals.status, totals.last
    count = totals.counts["unresolved"]
    warning = UNRESOLVED.format(count=count) if count else ""
    if status == DONE:
        return f"the end was reached{warning}"
    if status == STOPPED:
        return f"stopped by an event at t = {s['t']:.9g}{warning}"
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
        "singular (a singular configuration, or redundant constraints that appeared on the way), or tolerances below "
        "rounding",
        FAILED_NON_FINITE: f"the residual is not finite, first seen in {name!r}: check its domain (roots, divisions)",
    }
    size = abs(s["h_collapsed"])
    to = f" to {size:.3g}" if np.isfinite(size) else ""
    return f"the step size collapsed{to} {where}: {causes[status]}"


def _told(error: BaseException) -> str:
    """Say what a callable raised: an error of ours says it all."""
    return str(error) if isinstance(error, DalembertError) else f"a callable raised {type(error).__name__}: {error}"


# ----------------------------------------------------------------------------------------------------------------------
# An integration, segment by segment: from jump to jump of the inputs, each with a fresh consistent start.


MOST_CHOICES = 1000
"""Times that rows may be chosen anew in one integration."""

BRANCHES = (
    "at t = {t:.9g} the rank of the constraints changes; Radau in index 3 could go on along another branch of the "
    "motion unnoticed: take method='bdf', or formulation='stabilised'"
)


def integrate_segments(
    problem: Problem,
    settings: Settings,
    x: Array,
    rates: Array,
    start: Any,
    relax: Array,
    callbacks: InputCallbacks,
) -> Result:
    """Run the stepper from jump to jump; what was found so far is always returned."""
    machine = CompiledRun(problem, settings, x, rates, relax, callbacks)
    totals = Totals(problem.events.counts)
    segments = settings.segments(problem.signals.jumps)
    message = ""
    try:
        for k, (begin, end) in enumerate(segments):
            if k:
                at = np.clip(begin, *settings.bounds(begin, end, problem.signals.jumps))
                x, rates = restart(machine.problem, float(at), totals.meshes[-1][-1])
            machine, message = _span(machine, begin, end, x, rates, totals, callbacks)
            if totals.status != DONE:
                break
    except DalembertError as error:
        if not totals.meshes:
            raise
        message = f"no consistent restart at t = {totals.meshes[-1][-1, 0]:g}: {error}"
        totals.status = FAILED_CONVERGENCE
    return totals.result(problem, settings, start, message or ending(totals, problem, callbacks))


def _span(
    machine: CompiledRun, begin: float, end: float, x: Array, rates: Array, totals: Totals, callbacks: InputCallbacks
) -> tuple[CompiledRun, str]:
    """Run to the next jump, choosing rows anew where those left out open or the chosen ones become dependent."""
    since = None
    while True:
        opened = machine.run(begin, end, x, rates, totals)
        trouble = totals.status in (ROW_OPENED, FAILED_CONVERGENCE, FAILED_ERROR_TEST, FAILED_NON_FINITE)
        if not trouble or machine.watch is None or callbacks.error is not None:
            return machine, ""
        begin = float(totals.meshes[-1][-1, 0])
        if machine.settings.method == "radau" and machine.problem.formulation == "index3":
            return machine, BRANCHES.format(t=begin)
        chosen = _choose_anew(machine, totals, callbacks)
        reason = (
            "" if opened is None else f"constraint {opened.name!r}, left out as dependent, opened to {opened.size:.3g}"
        )
        if chosen is None or begin == since or totals.rechosen >= MOST_CHOICES:
            where = f" at t = {begin:.9g}: the rank changes there, and no choice of rows carries on"
            return machine, reason + where if reason else _contradiction(machine, totals, begin)
        machine, x, rates = chosen
        totals.rechosen += 1
        since = begin


CONTRADICT = (
    "at t = {t:.9g} redundant rows contradict each other: {names} stay open by {size:.2g} at least, and steps that "
    "follow some of them jump by as much. Correct the lengths of the loops, allow for it by atol, or take dop853: it "
    "closes them by least squares"
)


def _contradiction(machine: CompiledRun, totals: Totals, t: float) -> str:
    """Return the reason where an error test fails since redundant rows contradict each other; else nothing."""
    if totals.status not in (FAILED_ERROR_TEST, FAILED_CONVERGENCE) or machine.watch is None:
        return ""
    rows = machine.watch.contradicting(totals.meshes[-1][-1], machine.settings)
    names = ", ".join(f"{name!r}" for name in list(rows)[:4])
    return CONTRADICT.format(t=t, size=max(rows.values()), names=names) if rows else ""


def _choose_anew(
    machine: CompiledRun, totals: Totals, callbacks: InputCallbacks
) -> tuple[CompiledRun, Array, Array] | None:
    """Return a machine on rows chosen at the last point, and x, x' there; None where the same rows failed."""
    old, row = machine.problem, totals.meshes[-1][-1]
    assert old.motion is not None
    nf = len(old.motion.free)
    at = float(np.clip(row[0], totals.last["t_low"], totals.last["t_high"]))
    start = old.finder.find(at, row[2 : nf + 2], row[nf + 2 : 2 * nf + 2], old.parameters)
    new = old.choose(start, max(start.rank, len(old.rows)))
    if new is old and totals.status != ROW_OPENED:
        return None
    x, rates = new.pack(start)
    return CompiledRun(new, machine.settings, x, rates, new.relaxation(start), callbacks), x, rates


def restart(problem: Problem, t: float, row: Array) -> tuple[Array, Array]:
    """Return x and x' just after a jump: positions and velocities stay, accelerations and forces are found anew."""
    n = problem.dae.n
    x, rates = row[2 : n + 2], row[n + 2 :]
    if problem.motion is None:
        from dalembert.simulate.equations.general_dae import general_start

        states = general_start(problem, t, x, rates)
        return states[0], states[1]
    nf = len(problem.motion.free)
    start = problem.finder.find(t, x[:nf], x[nf : 2 * nf], problem.parameters)
    return problem.pack(start)
