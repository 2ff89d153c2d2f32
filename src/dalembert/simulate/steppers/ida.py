"""SUNDIALS' IDA as a stepper on the same compiled problem, through scikit-sundae (extra `sundials`).

Residual and Jacobian are the same kernels; IDA calls them through Python, step by step, so that events, stop times,
restarts, limits and what is returned are those of the own steppers. Its error test includes every unknown, so
multipliers get an absolute tolerance that takes them out of it (its Newton test does not see them then either).

Source: A. C. Hindmarsh et al., "SUNDIALS: Suite of Nonlinear and Differential/Algebraic Equation Solvers", ACM TOMS 31
(2005) 363-396.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import MissingExtraError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.simulate.equations.signals import Tables, set_signals
from dalembert.simulate.events.event_loops import begin_events, pass_events
from dalembert.simulate.interruptible import interrupted
from dalembert.simulate.steppers.bdf import grown
from dalembert.simulate.steppers.interpolation import hermite
from dalembert.simulate.steppers.newton_loops import (
    DONE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    INTERRUPTED,
    TOO_MANY_STEPS,
    Option,
)
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.equations.compiled import ImplicitWork
    from dalembert.simulate.problem import Problem
    from dalembert.simulate.settings import Settings

UNTESTED = 1e10
"""Absolute tolerance of unknowns that the error test must not see."""

MOST_IDA_ORDER = 5
CAUSES = {-4: FAILED_CONVERGENCE, -5: FAILED_CONVERGENCE, -6: FAILED_CONVERGENCE, -9: FAILED_NON_FINITE}
"""IDA's reasons (convergence, setup and solve of the linear system; residual) in our words; others: the error test."""

EPS = np.finfo(np.float64).eps


def ida_solver(problem: Problem, settings: Settings, environment: Array, set_time: Callable[[float], None]) -> Any:
    """Return IDA on the kernels of a problem; `set_time` writes t and the signals into the environment."""
    try:
        from sksundae.ida import IDA
    except ImportError as error:
        raise MissingExtraError("scikit-sundae", "sundials", 'method="ida"') from error
    dae = problem.dae
    inputs, names = [dae.x, dae.rates, dae.environment], ["x", "rates", "environment"]
    residual = Kernel(ca.Function("residual", inputs, [dae.residual], names, ["residual"]), width=1)
    matrix = Kernel(ca.Function("matrix", inputs, [ca.densify(dae.jacobian)], names, ["matrix"]), width=1)

    def resfn(t: float, y: Array, yp: Array, res: Array) -> None:
        set_time(t)
        residual(y, yp, environment, out=res)

    def jacfn(t: float, y: Array, yp: Array, res: Array, cj: float, JJ: Array) -> None:
        set_time(t)
        environment[1] = cj
        matrix(y, yp, environment, out=JJ if dae.n > 1 else JJ[0])  # one column comes out as a vector

    tested = dae.tested if dae.tested.any() else np.ones(dae.n, bool)
    return IDA(
        resfn,
        jacfn=jacfn,
        rtol=settings.rtol,
        atol=np.where(tested, settings.atol_all, UNTESTED),
        algebraic_idx=np.flatnonzero(~dae.differential).tolist() or None,
        max_num_steps=settings.max_steps,
        max_step=0.0 if np.isinf(settings.max_step) else settings.max_step,
        first_step=settings.first_step,
        max_order=min(settings.max_order, MOST_IDA_ORDER),
        linsolver="dense",
    )


def ida_stepper(problem: Problem, settings: Settings) -> Callable[..., tuple[Array, Array]]:
    """Return a loop of the same form as `bdf.run`: mesh (rows t, order, x, x') and events."""
    if problem.dae.projection is not None:
        raise UnsupportedError('method="ida" cannot project within its steps; use formulation="stabilised"')

    def advance(work: ImplicitWork, state: Any, option: Option, tables: Tables, mesh: Array) -> tuple[Array, Array]:
        s = state[0]

        def set_time(t: float) -> None:
            set_signals(work.calls, work.environment, tables, t, s.t_low, s.t_high)

        solver = ida_solver(problem, settings, work.environment, set_time)
        return _run(solver, work, state, option, tables, mesh)

    return advance


def _run(
    solver: Any, work: ImplicitWork, state: Any, option: Option, tables: Tables, mesh: Array
) -> tuple[Array, Array]:
    """Take IDA's own steps, one by one, until the end, an event, or trouble."""
    s, n = state[0], work.x.size
    point = (work.calls, work.x, work.rates, work.environment, work.event_values)
    signs = work.event_signs
    mesh[0], rows = np.concatenate([[s.t, 0.0], work.x, work.rates]), 1
    events, ended = begin_events(point, tables, state, signs, option)
    if ended:
        return mesh[:rows], events
    solver.init_step(s.t, work.x.copy(), work.rates.copy())
    s.status = TOO_MANY_STEPS
    while s.steps < option.most_steps:
        if interrupted(option.keyboard):
            s.status = INTERRUPTED
            break
        if not _step(solver, work, state, option):
            break
        mesh = grown(mesh, 2 * rows) if rows == len(mesh) else mesh
        mesh[rows], rows = np.concatenate([[s.t, 1.0], work.x, work.rates]), rows + 1
        if signs.size:
            past = hermite(mesh[:, 0], mesh[:, 2 : n + 2], mesh[:, n + 2 :], 0, rows - 1)
            events, ended = pass_events(point, tables, past, state, s.h_used, signs, option, events)
            if ended and s.t == mesh[rows - 2, 0]:
                rows -= 1  # at the start
                break
            if ended:
                mesh[rows - 1] = np.concatenate([[s.t, 1.0], work.x, work.rates])
                break
        if s.t == s.t_stop:
            s.status = DONE
            break
    return mesh[:rows], events


def _step(solver: Any, work: ImplicitWork, state: Any, option: Option) -> bool:
    """Take one step; return whether it got anywhere, and if not leave the reason in the state."""
    s = state[0]
    solution = solver.step(float(s.t_stop), method="onestep", tstop=float(s.t_stop))
    y = np.ravel(solution.y)
    if not np.isfinite(y).all():
        s.status, s.worst = FAILED_NON_FINITE, int(np.flatnonzero(~np.isfinite(y))[0])
        return False
    if not solution.success or abs(solution.t - s.t) <= 4.0 * EPS * abs(s.t):
        s.status = CAUSES.get(int(getattr(solution, "status", 0)), FAILED_ERROR_TEST)
        s.h_collapsed = np.nan
        s.worst = int(np.argmax(np.abs(y) * option.tested))
        return False
    s.h_used, s.t = solution.t - s.t, float(solution.t)
    s.steps, s.evaluations, s.factorizations = s.steps + 1, int(solution.nfev), int(solution.njev)
    work.x[:], work.rates[:] = y, np.ravel(solution.yp)
    return True
