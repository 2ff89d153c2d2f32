"""Runs in implicit form, F(t, x, x') = 0: tableaux, DAEs, and mechanical systems of which something is known in time.

`da.simulate` comes here where `known=` is given or the system is written as equations; `Problem` is the object behind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.checks import is_number
from dalembert.errors import ModelError
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.names import near_matches
from dalembert.simulate.equations.controller import forces_known_in_time
from dalembert.simulate.equations.lagrangian_system import in_time
from dalembert.simulate.events.asked import Event, named_events
from dalembert.simulate.events.record import EventRecord
from dalembert.simulate.ignored import SIMPLIFIED, Ignored, ignored_data, missing_effects, with_ignored
from dalembert.simulate.limits import SLOPE_OF_RUN
from dalembert.simulate.problem import Problem
from dalembert.simulate.result import Result, Statistics
from dalembert.simulate.samples import asked_times, checked_breaks, refuse_too_many
from dalembert.simulate.session import RunSettings, Session
from dalembert.simulate.settings import IMPLICIT, Settings
from dalembert.simulate.steppers.interpolation import DenseOutput
from dalembert.simulate.trajectory import Trajectory
from dalembert.types import Array

OF_PROBLEM = ("formulation", "time", "parameters")
"""Options that `Problem` takes; the others are those of `Settings`."""

NOT_TAKEN = {
    "contacts": "contacts go with a Mechanism whose motion is not known",
    "on_step": "events= are called at every step",
    "step": "implicit steppers choose their steps by rtol and atol; max_step= bounds them",
}
"""What runs in implicit form do not take, and what to do instead."""


class DenseRun:
    """The dense solution of a run in implicit form, by name."""

    def __init__(self, problem: Problem, result: Result, session: Session) -> None:
        self.problem, self.result, self.session = problem, result, session
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

    def with_samples_inside(self, run: Trajectory, count: int) -> Trajectory:
        """Return the run at every step and at `count` points inside of each."""
        result = self.result.inside_steps(count)
        samples = samples_of(self.problem, result)
        ends = np.isin(result.t, result.sol.t) & (np.diff(result.t, prepend=result.t[0]) > 0.0)
        steps = np.diff(result.t[ends], prepend=result.t[0])
        samples["step"] = np.zeros(result.t.size)
        samples["step"][ends] = steps
        settings = replace(self.session.settings, every=None, inside=count)
        dense = replace(self.session, settings=settings, blocks=[])
        return replace(run, samples=samples, session=dense, solution=DenseRun(self.problem, result, dense))


class StoredRun:
    """The samples of a run in implicit form that was in a file: unknowns by name, Hermite's cubic between samples."""

    def __init__(self, session: Session, samples: dict[str, Array], names: Sequence[str]) -> None:
        self.session, self.samples, self.names = session, samples, tuple(names)
        self.known_names = set(self.names)

    def __getitem__(self, name: str) -> Array:
        """Return an unknown at the samples, (N,)."""
        return self.samples["x"][:, self.names.index(name)]

    def __call__(self, t: Any) -> Array:
        """Return the unknowns at any times, (n,) or (K, n)."""
        return self._cubic(self.samples["x"], self.samples["rates"], t)

    def states(self, t: Any) -> tuple[Array, Array]:
        """Return q and v of a mechanical system at any times."""
        if "q" not in self.samples:
            raise ModelError("the unknowns of a Tableau or a DAE between samples are run.solution(t)")
        q, v, a = (self.samples[name] for name in ("q", "v", "acceleration"))
        return self._cubic(q, v, t), self._cubic(v, a, t)

    def _cubic(self, values: Array, rates: Array, t: Any) -> Array:
        times = self.samples["t"]
        rows = np.arange(times.size)
        return DenseOutput(times, values, np.ones_like(rows), np.maximum(rows - 1, 0), rates)(t).T


class ImplicitSystem:
    """A system in implicit form as files read it: names along all dimensions, and a key."""

    def __init__(self, given: Any, unknowns: Sequence[str]) -> None:
        self.given, self.unknowns = given, tuple(unknowns)
        self.moving = in_time(given) if hasattr(given, "mass_matrix") else None
        self.stored = given if self.moving is None else self.moving
        self.name = str(getattr(self.moving, "name", type(given).__name__))
        m: Any = self.moving
        self.coordinates, self.names = (() if m is None else tuple(x) for x in (m and m.coordinates, m and m.names))
        self.configuration_names = () if m is None else tuple(m.configuration_names)
        self.nq, self.nv = len(self.configuration_names), len(self.coordinates)

    def content(self) -> str:
        """Return a key of the unknowns, and of a mechanical system."""
        key = (self.unknowns, "" if self.moving is None else self.moving.content())
        return hashlib.sha256(repr(key).encode()).hexdigest()


def simulate_implicit(
    system: Any, duration: float, q: Any, v: Any, given: dict[str, Any], options: dict[str, Any],
    begun: Session | None = None, sink: Any = None,
) -> Trajectory:  # fmt: skip
    """Return the run of `da.simulate` in implicit form; `begun` is one that goes on, and `sink` where it is written."""
    given = given | {"force": None, "known": known_with_forces(system, given.get("force"), given["known"])}
    for keyword, instead in NOT_TAKEN.items():
        if given[keyword] is not None:
            raise ModelError(f"{keyword}= is not taken by a run in implicit form: {instead}")
    for keyword, value in (("duration", duration), ("t", given["t"])):
        if not (is_number(value) and np.isfinite(value)) or (keyword == "duration" and value <= 0):
            raise ModelError(f"{keyword}={value!r} must be a finite number{' > 0' if keyword == 'duration' else ''}")
    method, reason = _method(given)
    holder: list[Problem] = []
    names, expressions = _events(given["events"], holder if hasattr(system, "coordinates") else None)
    known_options = [*OF_PROBLEM, *(f.name for f in fields(Settings))]
    for name in options:
        if name not in known_options:
            raise ModelError(
                f"simulate knows no option {name!r} in implicit form", near=near_matches(name, known_options)
            )
    problem = Problem(
        system,
        known=given["known"],
        events=expressions,
        **{keyword: options[keyword] for keyword in OF_PROBLEM if keyword in options},
    )
    holder.append(problem)
    refuse_too_many(float(duration), given["every"])
    ignored = ignored_data(system, None, False, "implicit form" if given["friction"] else "friction=False")
    session = begun
    if session is None:
        session = _session_of(problem, float(duration), q, v, given, options, (method, reason))
        session.ignored = list(ignored)
    if given["file"] is not None:
        from dalembert.simulate.storage.sink import FileSink

        sink = FileSink(given["file"], session)
    session.sink = sink
    run = ImplicitRun(problem, session, names)
    try:
        result = run.go()
    finally:
        if sink is not None:
            sink.close()
    return trajectory_of_run(run, result, ignored)


def known_with_forces(system: Any, force: Any, known: Any) -> Any:
    """Return what is known, with applied forces among it: torques of a mechanism's joints, signals by their names."""
    if force is None:
        return known
    words = "force= in implicit form is what is known in time"
    if not hasattr(system, "mass_matrix"):
        if not isinstance(force, Mapping):
            raise ModelError(f"{words}: of a {type(system).__name__} a dict by name of its signals or known variables")
        values = dict(force)
    else:
        if not isinstance(system, Mechanism):
            raise ModelError(f"{words}: give the controls of a {type(system).__name__} by name, as known=")
        by_coordinate = forces_known_in_time(system, force)
        if by_coordinate is None:
            raise ModelError(f"{words}: numbers and tables, no functions of the state. Give these without known=")
        driven = {system.coordinates[system.index_v(name).start] for name in known if name in system.coordinates}
        values = {f"tau {name}": x for name, x in by_coordinate.items() if name not in driven}
        needless = [name for name in driven & set(by_coordinate) if not _is_zero(by_coordinate[name])]
        if needless:
            raise ModelError(f"force of {needless[0]!r}: its motion is known, and its force is part of the answer")
    twice = set(values) & set(known or {})
    if twice:
        raise ModelError(f"{sorted(twice)[0]!r} is given twice, by force= and by known=")
    return {**(known or {}), **values}


def _is_zero(value: Any) -> bool:
    """Say whether a number, or all of a table, is zero."""
    return not np.any(np.asarray(getattr(value, "values", value), dtype=float))


def _session_of(
    problem: Problem, duration: float, q: Any, v: Any, given: dict[str, Any], options: dict[str, Any], way: Any
) -> Session:
    """Return what a file holds of a run in implicit form."""
    largest = np.inf if given["max_step"] is None else float(given["max_step"])
    settings = RunSettings(
        way[0], way[1], float(given["t"]), duration, given["rtol"], given["atol"], None, given["every"], largest,
        given["event_tolerance"], checked_breaks(given["breaks"]), bool(given["friction"]),
    )  # fmt: skip
    watches = asked_events(given["events"])
    controller: Any = SimpleNamespace(given=None)
    session = Session(ImplicitSystem(problem.system, problem.unknowns), settings, controller, q, v, watches)
    session.extra |= {"form": "implicit", "known": given["known"], "options": dict(options)}
    return session


def asked_events(events: Any) -> list[Event]:
    """Return what a user gives for `events=` as `Event`s with names."""
    return [
        Event(getattr(g, "g", g), getattr(g, "terminal", False), getattr(g, "direction", 0.0), str(name))
        for name, g in named_events(events)
    ]


# ----------------------------------------------------------------------------------------------------------------------
# A run in blocks of steps, each from a fresh consistent start: what is written after a block is all that the next one
# needs, so a run that was killed goes on bit for bit.


BLOCK = 4096
"""Steps a block: what a killed run may lose."""


class ImplicitRun:
    """An integration on its way from block to block."""

    def __init__(self, problem: Problem, session: Session, names: Sequence[str]) -> None:
        self.problem, self.session, self.names = problem, session, names
        self.options = {k: x for k, x in session.extra["options"].items() if k not in OF_PROBLEM}
        self.most = int(self.options.pop("max_steps", Settings.max_steps))
        self.done = np.zeros(len(names), int)
        self.results: list[Result] = []

    def go(self) -> Result | None:
        """Integrate to the end, or as far as it goes; return the results of all blocks put together."""
        session, s = self.session, self.session.settings
        events, point = self.problem.events, session.checkpoint
        t, state, taken = s.start, (session.q, session.v), 0
        if point is not None:
            self._integrate(t, state, 1, s.end)  # pivots are chosen where the run began: others would round otherwise
            t, taken, state = float(point["time"][0]), session.steps, self._state(point["x"], point["rates"])
            self.done = point["zeros"].astype(int)
        while t < s.end and session.status == "completed":
            most = min(BLOCK, self.most - taken)
            self._count_down(events)
            result = self._integrate(t, state, most, s.end)
            taken += result.statistics.steps
            full = not result.success and result.statistics.steps >= most and taken < self.most
            t = float(result.sol.t[-1])
            self._hand_over(result, t)
            if not full:
                self._end(result)
                break
            both = result.sol.x[-1]
            state = self._state(both[: len(both) // 2], both[len(both) // 2 :])
        self.problem.events = events
        return _joined(self.results) if self.results else None

    def _integrate(self, t: float, state: Any, most: int, end: float) -> Result:
        s = self.session.settings
        first = t == s.start
        options = self.options if first else {k: x for k, x in self.options.items() if k not in ("hold", "first_step")}
        times = None if s.every is None else asked_times(s.start, s.end, float(s.every))
        return self.problem.integrate(
            (t, end), *state, method=s.method, rtol=s.rtol, atol=s.atol, max_step=s.largest_step, stop_times=s.breaks,
            t_eval=times if first or times is None else times[times > t], max_steps=most, **options,
        )  # fmt: skip

    def _state(self, x: Array, rates: Array) -> tuple[Array, Array]:
        """Return what the next block begins with: positions and velocities, or unknowns and their rates."""
        if self.problem.motion is None:
            return np.array(x), np.array(rates)
        free = len(self.problem.motion.free)
        return np.array(x[:free]), np.array(x[free : 2 * free])

    def _count_down(self, asked: Any) -> None:
        """Tell the events how many of their zeros are left until they end the run."""
        events = [
            replace(event, terminal=max(1, int(event.terminal) - int(done))) if int(event.terminal) > 1 else event
            for event, done in zip(asked.events, self.done, strict=True)
        ]
        self.problem.events = replace(asked, events=tuple(events))

    def _hand_over(self, result: Result, t: float) -> None:
        """Keep the samples and events of a block, and the point from which the run goes on."""
        session = self.session
        again = bool(session.blocks) and result.t.size > 0 and result.t[0] == result.sol.t[0]
        self.results.append(result)
        zeros = sorted((float(at), k) for k in range(len(self.names)) for at in result.t_events[k])
        way = [EventRecord(at, self.names[k], k, "", _way(self.problem, result, k, at)) for at, k in zeros]
        session.events += way
        self.done = self.done + np.array([len(times) for times in result.t_events], int)
        session.steps += result.statistics.steps
        session.rejected += result.statistics.rejections
        session.evaluations += result.statistics.evaluations
        block = {name: rows[1:] if again else rows for name, rows in samples_of(self.problem, result).items()}
        both, count = result.sol.x[-1], sum(len(samples["t"]) for samples in session.blocks) + len(block["t"])
        n = len(both) // 2
        point = {"time": np.array([t]), "x": both[:n], "rates": both[n:], "zeros": self.done, "kept": np.array([count])}
        session.add(block, {name: np.array(array, float) for name, array in point.items()})

    def _end(self, result: Result) -> None:
        """Note how the run ended."""
        status = {0: "completed", 1: "event"}.get(result.status, "no solution")
        status = "interrupted" if "interrupted" in result.message else status
        message = "" if status == "completed" else result.message
        if status == "completed":
            moving = self.session.system.moving
            missing = missing_effects(self.session.ignored, moving, None, self.session.blocks) if moving else ""
            status, message = (SIMPLIFIED, missing) if missing else (status, message)
        self.session.stop(status, message)


def _joined(results: Sequence[Result]) -> Result:
    """Return the results of blocks as one."""
    if len(results) == 1:
        return results[0]
    first, last = results[0], results[-1]
    again = [k > 0 and block.t.size > 0 and block.t[0] == block.sol.t[0] for k, block in enumerate(results)]
    counted = [f.name for f in fields(Statistics) if f.name != "orders"]
    totals = {name: sum(getattr(block.statistics, name) for block in results) for name in counted}
    orders: dict[int, int] = {}
    for block in results:
        for order, count in block.statistics.orders.items():
            orders[order] = orders.get(order, 0) + count
    offsets = [0, *accumulate(len(block.sol.t) for block in results)]
    parts = [block.sol.rates for block in results if block.sol.rates is not None]
    rates = np.concatenate(parts) if parts else None
    sol = DenseOutput(
        np.concatenate([block.sol.t for block in results]), np.concatenate([block.sol.x for block in results]),
        np.concatenate([block.sol.order for block in results]),
        np.concatenate([block.sol.begins + offset for block, offset in zip(results, offsets, strict=False)]),
        rates, first.sol.columns,
    )  # fmt: skip

    def together(part: Callable[[Result], Array], axis: int) -> Array:
        cut = [part(block)[..., int(skip) :] for block, skip in zip(results, again, strict=True)]
        return np.concatenate(cut, axis=axis)

    return replace(
        last, t=together(lambda block: block.t, 0), y=together(lambda block: block.y, 1),
        rates=together(lambda block: block.rates, 1), sol=sol,
        t_events=[np.concatenate(parts) for parts in zip(*(block.t_events for block in results), strict=True)],
        y_events=[np.concatenate(parts) for parts in zip(*(block.y_events for block in results), strict=True)],
        statistics=Statistics(**totals | {"restarts": totals["restarts"] + len(results) - 1}, orders=orders),
        start=first.start,
    )  # fmt: skip


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


def samples_of(problem: Problem, result: Result) -> dict[str, Array]:
    """Return the samples of a result: unknowns and rates, of a mechanical system also states and multipliers."""
    x, rates = result.y.T, result.rates.T
    samples: dict[str, Array] = {"t": np.asarray(result.t), "x": x, "rates": rates}
    if problem.motion is not None:
        q, v, a = mechanical(problem, result.inside, x, result.accelerations)
        lam = [result[f"lam[{name}]"] for name in problem.motion.names]
        samples |= {"q": q, "v": v, "acceleration": a}
        samples["multipliers"] = np.array(lam).T.reshape(len(result.t), len(lam))
    return samples


def trajectory_of_run(run: ImplicitRun, result: Result | None, ignored: Sequence[Ignored] = ()) -> Trajectory:
    """Return a run as a trajectory; `ignored` data do not act in it."""
    session, s = run.session, run.session.settings
    names = sorted(session.blocks[0])
    samples = {name: np.concatenate([block[name] for block in session.blocks]) for name in names}
    whole = result is not None and result.t.size == samples["t"].size
    solution = DenseRun(run.problem, result, session) if result is not None and whole else None
    return Trajectory(
        samples, session.system.moving or run.problem.system, tuple(session.events), session.status,
        with_ignored(session.message, ignored), s.method, s.reason,
        result.statistics if result is not None and whole else _counts(session),
        solution=solution or StoredRun(session, samples, run.problem.unknowns),
        notes=tuple(note.sentence for note in ignored), ignored=tuple(note.kind for note in ignored),
    )  # fmt: skip


def _counts(session: Session) -> Statistics:
    return Statistics(steps=session.steps, error_failures=session.rejected, evaluations=session.evaluations)


# ----------------------------------------------------------------------------------------------------------------------
# Runs that were in a file.


def stored_trajectory(session: Session) -> Trajectory:
    """Return the run of a file as far as it came."""
    samples, s, system = session.blocks[0], session.settings, session.system
    return Trajectory(
        samples, system.moving or system.given, tuple(session.events), session.status, session.words, s.method,
        s.reason, _counts(session), solution=StoredRun(session, samples, system.unknowns),
        notes=tuple(note.sentence for note in session.ignored), ignored=tuple(note.kind for note in session.ignored),
        given=given_of(session),
    )  # fmt: skip


def given_of(session: Session) -> dict[str, Any]:
    """Return what `da.simulate` was given for a run in implicit form."""
    s = session.settings
    return {
        "duration": s.duration, "q": session.q, "v": session.v, "t": s.start, "known": session.extra["known"],
        "events": {watch.name: watch for watch in session.watches} or None, "method": s.method, "rtol": s.rtol,
        "atol": s.atol, "max_step": s.largest_step if np.isfinite(s.largest_step) else None, "every": s.every,
        "breaks": list(s.breaks), "event_tolerance": s.event_tolerance, "friction": s.friction,
    } | session.extra["options"]  # fmt: skip


def resume_implicit(session: Session, sink: Any) -> Trajectory:
    """Continue the run of a file."""
    arguments = given_of(session)
    words = ("t", "known", "events", "method", "rtol", "atol", "max_step", "every", "breaks", "event_tolerance")
    taken = {keyword: arguments[keyword] for keyword in (*words, "friction")}
    taken |= dict.fromkeys(("file", "progress", *NOT_TAKEN))
    options = dict(session.extra["options"])
    system, s = session.system.given, session.settings
    return simulate_implicit(system, s.duration, session.q, session.v, taken, options, session, sink)


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
