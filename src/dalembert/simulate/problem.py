"""`Problem`: a system made ready for time, integrated as often as wanted, also many starts at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cached_property
from threading import Lock
from typing import Any

import casadi as ca
import numpy as np

from dalembert.checks import floats, whole_number
from dalembert.errors import DalembertError, ModelError, ShapeError
from dalembert.memory import Memory
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.simulate.equations.callbacks import InputCallbacks
from dalembert.simulate.equations.compiled import PROBED_STEPS, Compiled, compile_dae, probes
from dalembert.simulate.equations.consistent import Consistent, Finder
from dalembert.simulate.equations.dae import Levels, levels
from dalembert.simulate.equations.formulation import KnownMotion, formulate, motion, refuse_formulation
from dalembert.simulate.equations.general_dae import general_dae
from dalembert.simulate.equations.independent_rows import chosen_multipliers, chosen_rows, conditioning, relaxation
from dalembert.simulate.events.asked import Events
from dalembert.simulate.interruptible import interrupted, interruptible
from dalembert.simulate.result import Result, Statistics
from dalembert.simulate.run import integrate_segments
from dalembert.simulate.settings import Settings
from dalembert.simulate.steppers.interpolation import DenseOutput
from dalembert.simulate.steppers.radau import RadauCodes
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Many starts of one problem, in threads without the interpreter lock: each has its own steps, orders and status.


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
    if whole_number(threads, "threads") < 1:
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
    array = floats(given, "starts")
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
        sol=DenseOutput(np.array([t]), empty, np.zeros(1, np.int64), np.zeros(1, np.int64)),
        t_events=[np.zeros(0)] * len(problem.events),
        y_events=[np.zeros((0, n))] * len(problem.events),
        status=-1,
        message=message,
        statistics=Statistics(),
        names=problem.dae.unknowns,
    )


# ----------------------------------------------------------------------------------------------------------------------
# A system made ready for time: formulated, planned, compiled; integrated as often as wanted.


NEARLY_BEST = 0.1
"""Rows whose least singular value is this part of the best choice's are used again: nothing has to be compiled."""


class Problem:
    """A system in one formulation, compiled when it is first integrated.

    Parameters
    ----------
    system
        A `Lagrangian`, a `Mechanism` (in joint coordinates, torques "tau joint1"), a `Tableau`, or a `DAE`.
    formulation
        For a `Lagrangian` or `Mechanism`: one of `FORMULATIONS`, default "stabilised".
    known
        Name -> number, expression of time, `Table`, (times, values), PPoly, or callable. Of a `Lagrangian`: coordinates
        and controls; controls not mentioned are zero; with known coordinates, as many controls become unknown: those
        given as None, of a `Mechanism` else the torques of the same joints. Of a `Tableau`: every known variable. Of a
        `DAE`: every signal.
    time
        The symbol of time that expressions in `known` use, where the system has none.
    events
        Functions g whose zeros are wanted: SX expressions of the system's symbols (known ones, too), or Python
        callables g(t, x); with attributes `terminal` and `direction` as in SciPy, or wrapped as `Event(g, terminal=...,
        direction=...)`.
    parameters
        Values of the system's parameters.
    """

    def __init__(
        self,
        system: Any,
        *,
        formulation: str = "stabilised",
        known: Mapping[str, Any] | None = None,
        time: ca.SX | None = None,
        events: Any = (),
        parameters: Any = None,
    ) -> None:
        self.system = system
        self.motion: KnownMotion | None = None
        if isinstance(system, Mechanism):
            from dalembert.simulate.equations.mechanism_system import MechanismSystem  # it brings the room `tree`

            system = MechanismSystem(system, time)
        if hasattr(system, "expressions") and hasattr(system, "coordinates"):
            self.motion = motion(system, known, time)
            self.dae = formulate(self.motion, formulation)
            self.signals = self.motion.signals
            self.parameters = system.parameters.pack(parameters)
            self._replaced = self.motion.replaced
        else:
            refuse_formulation(formulation)
            self.dae, self.signals, self.parameters, self._replaced = general_dae(system, known, time, parameters)
        if np.ndim(self.parameters) != 1:
            raise ShapeError("parameters of a problem are one set of values; make a problem per set")
        self.events = Events.of(events, self.dae, self._replaced)
        self._compiled: Compiled | None = None
        self.formulation = formulation
        self.rows = list(range(len(self.motion.names))) if self.motion else []
        self._variants: Memory[tuple[int, ...], Problem] = Memory("variants")
        self._variants.get(tuple(self.rows), lambda: self)
        self._lock = Lock()

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return self.dae.unknowns

    @cached_property
    def known_functions(self) -> dict[str, Any]:
        """Known coordinates, their rates (with a prime) and known controls, by name, as functions of time."""
        m = self.motion
        if m is None:
            return {}
        values = {}
        for i, (value, rate, _) in m.given.items():
            values |= {m.system.coordinates[i]: value, f"{m.system.coordinates[i]}'": rate}
        controls = [str(s) for s in ca.vertsplit(m.system.symbols.u)] if m.system.symbols.u.numel() else []
        values |= {controls[i]: value for i, value in m.driven.items()}
        return {name: self._function_of_time(e) for name, e in values.items()}

    def _function_of_time(self, expression: ca.SX) -> Any:
        f = ca.Function("known", [self.dae.time, self.signals.column], [expression])
        return lambda t: float(f(t, self.signals.values(t)))

    @cached_property
    def finder(self) -> Finder:
        """The search for consistent values."""
        if self.motion is None:
            raise ModelError(
                "consistent positions and velocities are defined for mechanical systems; give x0 and rates"
            )
        return Finder(self.motion)

    @cached_property
    def levels(self) -> Levels:
        """The equations of a general DAE with their derivatives: hidden constraints written out."""
        return levels(self.dae, self.signals)

    @property
    def compiled(self) -> Compiled:
        """The compiled codes; made by the first integration."""
        if self._compiled is None:
            raise ModelError("nothing is compiled before the first integration: pivots are probed at its start")
        return self._compiled

    def consistent(self, q: Any = None, v: Any = None, t: float = 0.0, hold: Sequence[str] = ()) -> Consistent:
        """Return consistent positions, velocities, accelerations and multipliers near what is given."""
        return self.finder.find(float(t), q, v, self.parameters, hold)

    def integrate(self, t_span: Any, q: Any = None, v: Any = None, **options: Any) -> Result:
        """Integrate from t_span[0] to t_span[1]; `options` are the fields of `Settings`.

        For a mechanical system q and v are positions and velocities, made consistent first. For others, q is x, all
        unknowns, and v their rates. Backwards in time is a span whose end is before its start.
        """
        settings = Settings.of(t_span, self.dae, options)
        self.signals.require(settings.t0, settings.t1)
        problem, x, rates, start, relax = self.begin(settings.first(self.signals.jumps), q, v, settings.hold)
        with InputCallbacks(self.signals, self.events, self.dae) as callbacks:
            return integrate_segments(problem, settings, x, rates, start, relax, callbacks)

    @cached_property
    def radau(self) -> RadauCodes:
        """The codes of the Radau stepper, made when first used."""
        return RadauCodes(self.compiled)

    @property
    def is_compiled(self) -> bool:
        """Whether an integration has already planned and compiled."""
        return any(variant._compiled is not None for _, variant in self._variants.items())

    def integrate_many(self, t_span: Any, q: Any, v: Any = None, threads: int = 1, **options: Any) -> list[Result]:
        """Integrate a batch of starts, (N, n) each, in threads without the interpreter lock; one result per start."""
        return integrate_many(self, t_span, q, v, threads, options)

    def begin(self, t: float, q: Any, v: Any, hold: Sequence[str] = ()) -> tuple[Problem, Array, Array, Any, Array]:
        """Return the problem under independent rows, x, x', the report and the relaxation at the start."""
        if self.motion is None:
            from dalembert.simulate.equations.general_dae import general_start

            x, rates, report = general_start(self, t, q, v, hold)
            return self, x, rates, report, np.zeros((2, 0))
        start = self.finder.find(t, q, v, self.parameters, hold)
        problem = self.choose(start, start.rank) if start.redundant else self
        x, rates = problem.pack(start)
        return problem, x, rates, start, problem.relaxation(start)

    def choose(self, start: Consistent, rank: int) -> Problem:
        """Return the same problem under `rank` independent rows, chosen at a point of the manifold.

        Rows that were chosen before are chosen again where they are nearly as good as the best.
        """
        m = self.motion
        assert m is not None
        M, _, A, *_ = self._terms_at(start)
        M = M[list(m.free), :]
        generic = self.finder.rank(start.q, start.t)
        sizes = None if generic is None else generic.scales
        best = chosen_rows(A, M, rank, sizes)
        enough = NEARLY_BEST * conditioning(A, M, best, sizes)
        with self._lock:
            for rows, problem in self._variants.items():
                if len(rows) == rank and conditioning(A, M, list(rows), sizes) >= enough:
                    return problem
            return self._variants.get(tuple(best), lambda: self._under(best))

    def _under(self, rows: list[int]) -> Problem:
        """Return a copy under some rows, nothing compiled yet."""
        assert self.motion is not None
        other = copy(self)
        other.__dict__.pop("radau", None)
        other.rows, other._compiled = rows, None
        other.dae = formulate(self.motion, self.formulation, rows)
        other.events = Events.of(self.events.events, other.dae, self._replaced)
        return other

    def _terms_at(self, start: Consistent) -> list[Array]:
        signals = self.signals.values(start.t)
        return self.finder.terms(start.q, start.v, start.t, signals, self.parameters)

    def pack(self, start: Consistent) -> tuple[Array, Array]:
        """Return x and x' of consistent values; multipliers of the position level are zero."""
        n, nf = self.dae.n, len(start.q)
        x, rates = np.zeros(n), np.zeros(n)
        lam = start.multipliers
        if len(self.rows) < len(lam):
            lam = chosen_multipliers(self._terms_at(start)[2], self.rows, lam)
        mechanical = np.concatenate([start.q, start.v, start.tau, lam])
        x[: len(mechanical)] = mechanical
        rates[: 2 * nf] = np.concatenate([start.v, start.a])
        return x, rates

    def relaxation(self, start: Consistent) -> Array:
        """Return the relaxation of J, (2, rows): none in the run, and what helps near a singular configuration."""
        relax = np.zeros((2, len(self.dae.relaxed)))
        if relax.size and self.motion is not None:
            M, _, A, *_ = self._terms_at(start)
            relax[1] = relaxation(self.motion, M, A[self.rows], self.rows, self.formulation == "stabilised")
        return relax

    def environment(self, t: float, shift: float, relax: Array) -> Array:
        """Return what kernels read beside x and x'."""
        return np.concatenate([[t, shift], self.signals.values(t), self.parameters, relax])

    def compile(self, settings: Settings, x: Array, rates: Array, relax: Array) -> Compiled:
        """Plan and compile, once."""
        with self._lock:
            if self._compiled is None:
                span = abs(settings.t1 - settings.t0) or 1.0
                environments = [self.environment(settings.t0, 1.0 / (part * span), relax[0]) for part in PROBED_STEPS]
                self._compiled = compile_dae(self.dae, *probes(x, rates, environments), self.events.expressions)
            return self._compiled


def integrate(system: Any, t_span: Any, q: Any = None, v: Any = None, **options: Any) -> Result:
    """Integrate a system once; options are those of `Problem` and of `Problem.integrate`."""
    of_problem = {k: options.pop(k) for k in ("formulation", "known", "time", "events", "parameters") if k in options}
    return Problem(system, **of_problem).integrate(t_span, q, v, **options)
