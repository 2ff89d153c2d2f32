"""Runs in implicit form, F(t, x, x') = 0: tableaux, DAEs, and mechanical systems of which something is known in time.

`da.simulate` comes here where `known=` is given or the system is written as equations; `Problem` is the object behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import casadi as ca
import numpy as np

from dalembert.checks import is_number
from dalembert.errors import ModelError
from dalembert.names import near_matches
from dalembert.simulate.equations.lagrangian_system import in_time
from dalembert.simulate.events.asked import Event, named_events
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.ignored import SIMPLIFIED, Ignored, ignored_data, missing_effects, with_ignored
from dalembert.simulate.limits import SLOPE_OF_RUN
from dalembert.simulate.problem import Problem
from dalembert.simulate.result import Result
from dalembert.simulate.samples import asked_times, checked_breaks, refuse_too_many
from dalembert.simulate.settings import IMPLICIT, Settings
from dalembert.simulate.trajectory import Trajectory
from dalembert.types import Array

OF_PROBLEM = ("formulation", "time", "parameters")
"""Options that `Problem` takes; the others are those of `Settings`."""

NOT_TAKEN = {
    "force": 'give forces as known={"tau joint": ...}, or controls by their names',
    "contacts": "contacts go with a Mechanism whose motion is not known",
    "on_step": "events= are called at every step",
    "file": "Trajectory keeps the run in memory",
    "step": "implicit steppers choose their steps by rtol and atol; max_step= bounds them",
}
"""What runs in implicit form do not take, and what to do instead."""


class DenseRun:
    """The dense solution of a run in implicit form, by name."""

    def __init__(self, problem: Problem, result: Result) -> None:
        self.problem, self.result = problem, result
        self.names = tuple(result.names)
        self.known_names = {*result.names, *result.known, *result.own_forces}

    def __getitem__(self, name: str) -> Array:
        """Return an unknown, or what is known, at the samples, (N,)."""
        return self.result[name]

    def __call__(self, t: Any) -> Array:
        """Return the unknowns at any times, (n,) or (K, n)."""
        return self.result.sol(t).T

    def states(self, t: Any) -> tuple[Array, Array]:
        """Return q and v of a mechanical system, or x and its rates of another, at any times."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        x = np.atleast_2d(self(times))
        if self.problem.motion is None:
            raise ModelError("the unknowns of a Tableau or a DAE between samples are run.solution(t)")
        q, v, _ = mechanical(self.problem, times, x)
        return (q[0], v[0]) if np.ndim(t) == 0 else (q, v)


def simulate_implicit(
    system: Any, duration: float, q: Any, v: Any, given: dict[str, Any], options: dict[str, Any]
) -> Trajectory:
    """Return the run of `da.simulate` in implicit form."""
    for word, instead in NOT_TAKEN.items():
        if given[word] is not None:
            raise ModelError(f"{word}= is not taken by a run in implicit form: {instead}")
    for word, value in (("duration", duration), ("t", given["t"])):
        if not (is_number(value) and np.isfinite(value)) or (word == "duration" and value <= 0):
            raise ModelError(f"{word}={value!r} must be a finite number{' > 0' if word == 'duration' else ''}")
    start, end = float(given["t"]), float(given["t"]) + float(duration)
    method, reason = _method(given)
    holder: list[Problem] = []
    names, asked = _events(given["events"], holder if hasattr(system, "coordinates") else None)
    known_options = [*OF_PROBLEM, *(f.name for f in fields(Settings))]
    for name in options:
        if name not in known_options:
            raise ModelError(
                f"simulate knows no option {name!r} in implicit form", near=near_matches(name, known_options)
            )
    problem = Problem(
        system,
        known=given["known"],
        events=asked,
        **{name: options.pop(name) for name in OF_PROBLEM if name in options},
    )
    holder.append(problem)
    refuse_too_many(float(duration), given["every"])
    every = None if given["every"] is None else asked_times(start, end, float(given["every"]))
    stops = checked_breaks(given["breaks"])
    result = problem.integrate(
        (start, end), q, v, method=method, rtol=given["rtol"], atol=given["atol"], t_eval=every,
        max_step=np.inf if given["max_step"] is None else given["max_step"], stop_times=stops, **options,
    )  # fmt: skip
    ignored = ignored_data(system, None, False, "implicit form" if given["friction"] else "friction=False")
    return trajectory_of_result(problem, result, names, method, reason, ignored)


def _method(given: dict[str, Any]) -> tuple[str, str]:
    """Return the implicit method, and the reason for it."""
    method = given["method"]
    if method == "auto":
        what = "the system is written as equations" if given["known"] is None else "something is known in time"
        return "bdf", f"{what}: backward differentiation on F(t, x, x') = 0"
    if method not in IMPLICIT:
        raise ModelError(
            f"method={method!r} does not solve F(t, x, x') = 0; {', '.join(map(repr, IMPLICIT))} do",
            near=near_matches(str(method), IMPLICIT),
        )
    return method, "asked for"


def _events(events: Any, holder: list[Problem] | None) -> tuple[list[str], list[Any]]:
    """Return names and functions g(t, x), or expressions; of a mechanical system functions are g(t, q, v)."""
    items = named_events(events)
    return [str(name) for name, _ in items], [_of_unknowns(event, holder) for _, event in items]


def _of_unknowns(event: Any, holder: list[Problem] | None) -> Any:
    """Return a function of (t, q, v) as one of the unknowns, (t, x), of the problem that will be in `holder`."""
    function: Any = event.g if isinstance(event, Event) else event
    if holder is None or isinstance(function, ca.SX):
        return event

    def value(t: float, x: Array) -> float:
        q, v, _ = mechanical(holder[0], np.array([t]), x[None])
        return float(function(t, q[0], v[0]))

    return Event(value, getattr(event, "terminal", False), getattr(event, "direction", 0.0))


def trajectory_of_result(
    problem: Problem, result: Result, names: list[str], method: str, reason: str, ignored: Sequence[Ignored] = ()
) -> Trajectory:
    """Return the result of an integration as a trajectory; `ignored` data do not act in it."""
    x, rates = result.y.T, result.rates.T
    samples: dict[str, Array] = {"t": np.asarray(result.t), "x": x, "rates": rates}
    moving: Any = problem.system
    if problem.motion is not None:
        m = problem.motion
        moving = in_time(problem.system)
        q, v, a = mechanical(problem, result.inside, x, result.accelerations)
        lam = [result[f"lam[{name}]"] for name in m.names]
        samples |= {"q": q, "v": v, "acceleration": a}
        samples["multipliers"] = np.array(lam).T.reshape(len(result.t), len(lam))
    status = {0: "completed", 1: "event"}.get(result.status, "no solution")
    if "interrupted" in result.message:
        status = "interrupted"
    zeros = sorted(
        ((float(t), k) for k in range(len(names)) for t in result.t_events[k]), key=lambda each: each
    )  # fmt: skip
    events = tuple(EventRecord(t, names[k], k, "", _way(problem, result, k, t)) for t, k in zeros)
    message = "" if status == "completed" else result.message
    missing = missing_effects(ignored, moving, None, [samples]) if status == "completed" else ""
    status, message = (SIMPLIFIED, missing) if missing else (status, message)
    return Trajectory(
        samples, moving, events, status, with_ignored(message, ignored), method, reason, result.statistics,
        solution=DenseRun(problem, result), notes=tuple(note.sentence for note in ignored),
        ignored=tuple(note.kind for note in ignored),
    )  # fmt: skip


def mechanical(problem: Problem, t: Array, x: Array, accelerations: Any = np.nan) -> tuple[Array, Array, Array]:
    """Return configurations, velocities and accelerations of all coordinates, known ones put in."""
    m = problem.motion
    assert m is not None
    n, nf = len(m.system.coordinates), len(m.free)
    q, v, a = (np.zeros((len(t), n)) for _ in range(3))
    q[:, list(m.free)], v[:, list(m.free)], a[:, list(m.free)] = x[:, :nf], x[:, nf : 2 * nf], accelerations
    for i, expressions in m.given.items():
        functions = [problem._function_of_time(item) for item in expressions]
        for column, function in zip((q, v, a), functions, strict=True):
            column[:, i] = [function(float(item)) for item in t]
    configuration = getattr(m.system, "configuration", None)
    return (q if configuration is None else configuration(q)), v, a


def _way(problem: Problem, result: Result, k: int, t: float) -> str:
    """Return whether an event's function rises or falls through its zero."""
    event: Event = problem.events.events[k]
    if event.direction:
        return "rising" if event.direction > 0 else "falling"
    span = abs(float(result.sol.t[-1]) - float(result.sol.t[0]))
    low, high = sorted((float(result.sol.t[0]), float(result.sol.t[-1])))
    ends = []
    for at in (max(low, t - SLOPE_OF_RUN * span), min(high, t + SLOPE_OF_RUN * span)):
        x = result.sol(at)
        if problem.events.expressions is None:
            ends.append(float(event.g(at, x)))
        else:
            dae = problem.dae
            inputs = [dae.x, dae.rates, dae.environment]
            g = ca.Function("g", inputs, [problem.events.expressions[k]])
            environment = problem.environment(at, 1.0, np.zeros(len(dae.relaxed)))
            ends.append(float(g(x, np.zeros_like(x), environment)))
    return "rising" if ends[1] > ends[0] else "falling"
