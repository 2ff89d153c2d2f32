"""Many starts of one problem, in threads without the interpreter lock: each has its own steps, orders and status."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError, ShapeError
from dalembert.tableau.time.dense_output import Dense
from dalembert.tableau.time.interruptible import interrupted, interruptible
from dalembert.tableau.time.numbers import reals, whole
from dalembert.tableau.time.options import Settings
from dalembert.tableau.time.result import Result, Statistics

if TYPE_CHECKING:
    from dalembert.tableau.time.problem import Problem

Array = np.ndarray


def integrate_many(
    problem: Problem, t_span: Any, q: Any, v: Any, threads: int, options: dict[str, Any]
) -> list[Result]:
    """Integrate every row of q and v, (N, n) each, or (n,) for all; a start that fails is a result with its reason.

    Ctrl-C ends the runs under way after their step; those that had not begun are results that say so.
    """
    starts, speeds = _rows(q), _rows(v)
    count = max(len(starts), len(speeds)) if starts and speeds else 0
    if count and not {len(starts), len(speeds)} <= {1, count}:
        raise ShapeError(f"{len(starts)} starts q and {len(speeds)} starts v; give as many of both, or one for all")
    settings = Settings.of(t_span, problem.dae, options)  # misuse is told once, not with every start
    problem.signals.require(settings.t0, settings.t1)
    t0 = settings.t0
    if whole("threads", threads) < 1:
        raise ShapeError(f"threads={threads!r}: a positive whole number is needed")
    pairs = [(starts[i % len(starts)], speeds[i % len(speeds)]) for i in range(count)]

    def one(pair: tuple[Any, Any]) -> Result:
        if interrupted(keyboard):
            return _nothing(problem, t0, "interrupted from the keyboard before it began")
        try:
            return problem.integrate(t_span, *pair, **options)
        except DalembertError as error:
            return _nothing(problem, t0, str(error))

    # until a start has worked nothing is compiled: threads would all compile the same
    results: list[Result] = []
    with interruptible(shared=True) as keyboard, ThreadPoolExecutor(threads, "dalembert-time") as pool:
        while len(results) < count and not problem.is_compiled:
            results.append(one(pairs[len(results)]))
        return results + list(pool.map(one, pairs[len(results) :]))


def _rows(given: Any) -> list[Any]:
    """Return a list of starts."""
    if given is None:
        return [None]
    array = reals("starts", given)
    if array.ndim and not len(array):
        return []
    if array.ndim not in (1, 2):
        raise ShapeError(f"starts have shape {array.shape}; expected (N, n) or (n,)")
    return list(np.atleast_2d(array))


def _nothing(problem: Problem, t: float, message: str) -> Result:
    """Return the result of a start that could not begin."""
    n = problem.dae.n
    empty = np.full((1, n), np.nan)
    return Result(
        t=np.array([t]),
        y=empty.T,
        rates=empty.T,
        sol=Dense(np.array([t]), empty, np.zeros(1, np.int64), np.zeros(1, np.int64)),
        t_events=[np.zeros(0)] * len(problem.events),
        y_events=[np.zeros((0, n))] * len(problem.events),
        status=-1,
        message=message,
        statistics=Statistics(),
        names=problem.dae.unknowns,
    )
