"""A problem made ready to run: compiled, with its stepper, options and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.tableau.time.bdf_loops import run
from dalembert.tableau.time.interruptible import NEVER, interruptible
from dalembert.tableau.time.state import ROW_OPENED, Option, new_state
from dalembert.tableau.time.watch import Opened, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from dalembert.tableau.time.callbacks import Callbacks
    from dalembert.tableau.time.compiled import Work
    from dalembert.tableau.time.options import Settings
    from dalembert.tableau.time.problem import Problem
    from dalembert.tableau.time.signal_loops import Tables
    from dalembert.tableau.time.totals import Totals

Array = np.ndarray

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


class Machine:
    """A problem, compiled, with its stepper and memory; `watch` where rows were left out."""

    def __init__(
        self, problem: Problem, settings: Settings, x: Array, rates: Array, relax: Array, callbacks: Callbacks
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
        self.watch = Watch(problem) if reduced else None
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
            mesh, found = self.advance(work, state, option, self.tables, np.empty((FIRST_ROWS, 2 + 2 * len(x))))
        opened = None if self.watch is None else self.watch.opened(mesh, self.settings, low, high)
        if opened is not None:
            good = max(opened.row, 1)
            state[0].steps -= len(mesh) - good
            mesh = mesh[:good]
            found = found[(found[:, 1] - mesh[-1, 0]) * (end - begin) <= 0.0]
            state[0].t, state[0].status = mesh[-1, 0], ROW_OPENED
        totals.add(mesh, found, state[0])
        return opened


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
