"""An integration, segment by segment: from jump to jump of the inputs, each with a fresh consistent start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.tableau.time.machine import Machine
from dalembert.tableau.time.state import (
    DONE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    ROW_OPENED,
)
from dalembert.tableau.time.totals import Totals, ending

if TYPE_CHECKING:
    from dalembert.tableau.time.callbacks import Callbacks
    from dalembert.tableau.time.options import Settings
    from dalembert.tableau.time.problem import Problem
    from dalembert.tableau.time.result import Result

Array = np.ndarray

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
    callbacks: Callbacks,
) -> Result:
    """Run the stepper from jump to jump; what was found so far is always returned."""
    machine = Machine(problem, settings, x, rates, relax, callbacks)
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
    machine: Machine, begin: float, end: float, x: Array, rates: Array, totals: Totals, callbacks: Callbacks
) -> tuple[Machine, str]:
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
            return machine, reason + where if reason else ""
        machine, x, rates = chosen
        totals.rechosen += 1
        since = begin


def _choose_anew(machine: Machine, totals: Totals, callbacks: Callbacks) -> tuple[Machine, Array, Array] | None:
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
    return Machine(new, machine.settings, x, rates, new.relaxation(start), callbacks), x, rates


def restart(problem: Problem, t: float, row: Array) -> tuple[Array, Array]:
    """Return x and x' just after a jump: positions and velocities stay, accelerations and forces are found anew."""
    n = problem.dae.n
    x, rates = row[2 : n + 2], row[n + 2 :]
    if problem.motion is None:
        from dalembert.tableau.time.general_start import general_start

        found = general_start(problem, t, x, rates)
        return found[0], found[1]
    nf = len(problem.motion.free)
    start = problem.finder.find(t, x[:nf], x[nf : 2 * nf], problem.parameters)
    return problem.pack(start)
