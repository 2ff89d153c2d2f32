"""SUNDIALS' IDA as a stepper on the same compiled problem, through scikit-sundae (extra `sundials`).

Residual and Jacobian are the same kernels; IDA calls them through Python. Its error test includes every unknown, so
multipliers get an absolute tolerance that takes them out of it (its Newton test does not see them then either).
Events and jumps of inputs are left to the own stepper.

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
from dalembert.tableau.time.dense_output import Dense
from dalembert.tableau.time.result import Result, Statistics

if TYPE_CHECKING:
    from dalembert.tableau.time.options import Settings
    from dalembert.tableau.time.problem import Problem

Array = np.ndarray

UNTESTED = 1e10
"""Absolute tolerance of unknowns that the error test must not see."""

MOST_IDA_ORDER = 5


def ida_functions(problem: Problem, environment: Array) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return residual and Jacobian as IDA calls them, backed by kernels."""
    dae = problem.dae
    inputs = [dae.x, dae.rates, dae.environment]
    names = ["x", "rates", "environment"]
    residual = Kernel(ca.Function("residual", inputs, [dae.residual], names, ["residual"]), width=1)
    matrix = Kernel(ca.Function("matrix", inputs, [ca.densify(dae.jacobian)], names, ["matrix"]), width=1)
    signals = problem.signals
    first, count = 2, len(signals.symbols)

    def set_time(t: float) -> None:
        environment[0] = t
        if count:
            environment[first : first + count] = signals.values(t)

    def resfn(t: float, y: Array, yp: Array, res: Array) -> None:
        set_time(t)
        residual(y, yp, environment, out=res)

    def jacfn(t: float, y: Array, yp: Array, res: Array, cj: float, JJ: Array) -> None:
        set_time(t)
        environment[1] = cj
        matrix(y, yp, environment, out=JJ)

    return resfn, jacfn


def integrate_ida(problem: Problem, settings: Settings, x: Array, rates: Array, start: Any, relax: Array) -> Result:
    """Integrate by IDA; dense output is the Hermite cubic between its steps."""
    try:
        from sksundae.ida import IDA
    except ImportError as error:
        raise MissingExtraError("scikit-sundae", "sundials", 'method="ida"') from error
    if len(problem.events) or problem.signals.jumps or settings.stop_times:
        raise UnsupportedError('method="ida" takes neither events nor jumps of inputs; use method="bdf"')
    dae = problem.dae
    environment = problem.environment(settings.t0, 1.0, relax[0])
    resfn, jacfn = ida_functions(problem, environment)
    tested = dae.tested if dae.tested.any() else np.ones(dae.n, bool)
    solver = IDA(
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
    ends = (settings.t0, settings.t1)
    times = np.asarray(ends if settings.t_eval is None else settings.t_eval, dtype=float)
    found = solver.solve(times, x, rates)
    t, y, yp = np.asarray(found.t), np.asarray(found.y), np.asarray(found.yp)
    order = np.ones(len(t), np.int64)
    steps = len(t) - 1 if settings.t_eval is None else 0
    return Result(
        t=t,
        y=y.T,
        rates=yp.T,
        sol=Dense(t, np.ascontiguousarray(y), order, np.zeros(len(t), np.int64), yp),
        t_events=[],
        y_events=[],
        status=0 if found.success else -1,
        message=f"IDA: {found.message}",
        statistics=Statistics(steps=steps, evaluations=int(found.nfev), factorizations=int(found.njev)),
        names=dae.unknowns,
        start=start,
    )
