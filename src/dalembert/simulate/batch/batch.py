"""Many runs of one system: prepared once, then the compiled loops of a single run, start after start.

    session of the first run ─► codes bound, memory kept ─► starts checked together ─► loops ─► samples of all runs

A run is by definition that of `da.simulate` with the same numbers, and its samples here have the same bits: the same
loops take the same steps in memory that is put back to its beginning. What cannot be told for many at once is not told
here: `UnsuitedError` says why no run of a kind goes this way, `ALONE` marks single runs that do not (a start that is
refused, a step that asks for Python, an energy balance that is not plainly kept), which `da.simulate` then makes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.large.requests import is_large
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.project import of_samples
from dalembert.model.mechanism.ranks import distances
from dalembert.model.named_state import default_start
from dalembert.simulate.batch import batch_loops as loop
from dalembert.simulate.batch.batch_loops import ALONE, COMPLETE, WAITING, RunEnds, Starts, snapshot
from dalembert.simulate.entry import session_of
from dalembert.simulate.ignored import FRICTION, PASSIVE, missing_effects
from dalembert.simulate.limits import CONSISTENT, ENERGY_ROUNDING, NO_STEP, ON_MANIFOLD
from dalembert.simulate.reductions import INSIDE, RunPieces, column
from dalembert.simulate.session import FIELDS, Session
from dalembert.simulate.steppers import explicit_loops as at
from dalembert.simulate.time_methods import LONG, LOOSE, STIFF
from dalembert.simulate.trajectory import Counts, Trajectory, columns_of, interpolated
from dalembert.simulate.witness import JUMP, MOST_SAMPLES, ONE_STEP, SAFE, _damped, broken_balance, step_tolerance
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.steppers.explicit import Explicit

BUFFER = 2**25
"""Bytes of the samples that are kept before they are looked at."""

MOST_BYTES = 2**32
"""Bytes of the samples inside of steps that a device makes at once."""

LEAST_ROWS, MOST_ROWS = 4096, 2**16
"""Rows of samples in that memory."""

CLEARLY_INDEPENDENT = 1e-3
"""s_r / s_1 of the rows at a start from which on no closer look would find them dependent."""

PLAINLY = 0.5
"""Part of what the energy balance allows up to which it is kept plainly; of limits up to which numbers are below."""

VALUED = {"mass": 0.0, "stiffness": 0.0, "damping": 0.0, "armature": 0.0}
"""Kinds of a mechanism's parameters that change neither lengths nor what is refused: from these values on."""


class UnsuitedError(DalembertError):
    """Runs of this kind are made one by one; the message says why."""


@dataclass(eq=False)
class FinishedRuns:
    """Runs that reached their end, K of them, their samples one after the other.

    Attributes
    ----------
    rows : (K,)
        Which of the starts they are.
    first, stop : (K,)
        Where the samples of each begin and end.
    run
        All samples as one trajectory, whose system has the parameters of each sample.
    events : (E, 5)
        Which run, time, number of the contact, words before and after as numbers of `contact/memory.py`.
    """

    rows: Array
    first: Array
    stop: Array
    steps: Array
    run: Trajectory
    events: Array

    @property
    def lengths(self) -> Array:
        """Samples of each run, (K,)."""
        return self.stop - self.first

    def chosen(self, good: Array) -> FinishedRuns:
        """Return some of the runs, (K,) truth values; samples of the others stay where they are."""
        kept = np.isin(self.events[:, 0], self.rows[good])
        return replace(
            self, rows=self.rows[good], first=self.first[good], stop=self.stop[good], steps=self.steps[good],
            events=self.events[kept],
        )  # fmt: skip


class RunBatch:
    """A system, prepared for any number of runs.

    Parameters
    ----------
    system
        Of the first run, with its values of all parameters.
    q, v
        Its start.
    parameters
        Names of those that vary.
    common_q
        Whether all runs start at the same configuration.
    options
        Of `da.simulate`.
    lanes
        Backend of the kernels on which all runs go in step with each other (`lanes.py`); "": the loops of a single run,
        run after run.
    inside
        Samples inside of every step, in place of those of `every` (`reductions.py`).
    """

    def __init__(
        self, system: Any, duration: float, q: Any, v: Any, options: Mapping[str, Any],
        parameters: Sequence[str] = (), common_q: bool = False, lanes: str = "", inside: int = 0,
    ) -> None:  # fmt: skip
        session = session_of(system, duration, q, v, **options)
        if session is None:
            raise UnsuitedError("the system goes in implicit form")
        if inside:
            session.settings = replace(session.settings, every=None, inside=inside)
        self.given = system, duration, q, v, options, parameters, common_q, lanes
        self.session, self.system, self.names = session, session.system, tuple(parameters)
        self.common, self.lanes = common_q and not parameters, lanes
        self.asked = options.get("method", "auto") != "auto"
        self._refuse_python()
        self.places = self._parameter_places()
        with_contacts = session.settings.method == "hybrid"
        if lanes:
            if with_contacts:
                raise UnsuitedError("contacts end steps at each run's own events")
            from dalembert.simulate.batch.lanes import LaneRunner

            self.runner: Any = LaneRunner(self, lanes)
        else:
            self.runner = ContactRunner(self) if with_contacts else SmoothRunner(self)

    def _refuse_python(self) -> None:
        """Refuse runs that come back to Python on their way, or whose model is not that of the first run."""
        s = self.session
        reasons = {
            "a Python function gives forces": s.controller.function is not None,
            "events are watched": bool(s.watches),
            "on_step= is called": s.on_step is not None,
            "forces have corners or jumps": bool(s.stops),
            "Python functions are the system": not getattr(self.system, "compiled", True),
            "loops over the bodies are called back": isinstance(self.system, Mechanism) and is_large(self.system),
            "negative inertias": bool(getattr(self.system, "negative_bodies", ())),
            "data of the model do not act": any(each.kind in (FRICTION, PASSIVE) for each in s.ignored),
        }
        for reason, holds in reasons.items():
            if holds:
                raise UnsuitedError(reason)
        rows = bool(self.system.names)
        if rows and not self.common and (not isinstance(self.system, Mechanism) or s.settings.method == "hybrid"):
            raise UnsuitedError("constraint rows are measured where each run starts")

    def _parameter_places(self) -> dict[str, slice]:
        """Return where each parameter that varies lies among all numbers of parameters."""
        if not self.names:
            return {}
        m = self.system
        if isinstance(m, Mechanism):
            nominal: Any = getattr(m, "shared", None)
            if nominal is None or self.session.settings.method == "hybrid":
                raise UnsuitedError("every value of a parameter is compiled for itself")
            for name in self.names:
                if name.partition(":")[0] not in VALUED:
                    raise UnsuitedError(f"{name!r} changes lengths, or inertias that may be refused")
            parameters = nominal.parameters
        else:
            parameters = m.lagrangian.parameters
        ends = np.cumsum([0, *(symbol.numel() for symbol in parameters.symbols)])
        return {
            name: slice(int(a), int(b))
            for name, a, b in zip(parameters.names, ends[:-1], ends[1:], strict=True) if name in self.names
        }  # fmt: skip

    @property
    def reason(self) -> str:
        """How these runs are made, in words."""
        s = self.session.settings
        where = f", all runs in step, backend {self.lanes!r}" if self.lanes else ""
        return f"compiled{where}: {s.method}, {s.reason}"

    # --- parameters ---------------------------------------------------------------------------------------------

    def values(self, given: Mapping[str, Array], count: int) -> tuple[Array, Array]:
        """Return all numbers of parameters (N, k), and for which runs they are sound."""
        if not self.names:
            return np.zeros((count, 0)), np.ones(count, bool)
        rows = np.tile(np.asarray(self.system.values, float), (count, 1))
        for name, where in self.places.items():
            rows[:, where] = np.asarray(given[name], float).reshape(count, -1)
        sound = np.array(np.isfinite(rows).all(axis=1))
        for name, where in self.places.items() if isinstance(self.system, Mechanism) else ():
            sound = sound & (rows[:, where] > VALUED[name.partition(":")[0]]).all(axis=1)
        return rows, sound

    def at(self, values: Array) -> Any:
        """Return the system with numbers of its parameters: of one run (k,), or of every sample (N, k)."""
        if not self.names:
            return self.system
        if isinstance(self.system, Mechanism):
            return replace(self.system, values=values)  # type: ignore[call-arg]
        moving = copy.copy(self.system)
        given = {name: values[..., where] for name, where in self.places.items()}
        moving.values, moving.lagrangian = values, moving.lagrangian.with_parameters(**given)
        return moving

    # --- starts -------------------------------------------------------------------------------------------------

    def starts(self, q: Any, v: Any, values: Array, project: bool, count: int) -> tuple[Array, Array, Array]:
        """Return states (N, nq), (N, nv) on the constraints, and for which runs they are plainly right.

        What `entry.consistent_start` does, for all runs together; whose start it would refuse, or might, is left out.
        """
        m, t = self.system, self.session.settings.start
        q = np.array(np.broadcast_to(default_start(m) if q is None else q, (count, m.nq)), float)
        v = np.array(np.broadcast_to(np.zeros(m.nv) if v is None else v, (count, m.nv)), float)
        good = np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1)
        q[~good], v[~good] = self.session.q, self.session.v
        if isinstance(m, Mechanism):
            unit = np.array(m.normalize(q))
            off = np.abs(unit - q).max(axis=1, initial=0.0)
            good &= off < PLAINLY * CONSISTENT
            if m.nq != m.nv or off.any():
                q = np.where(good[:, None], unit, self.session.q)
        if not m.names:
            return q, v, good
        moving = self.at(values)
        if project:
            q, v = moving.project(q, v, t)
            good &= np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1)
            q[~good], v[~good] = self.session.q, self.session.v
        return self._on_rows(moving, q, v, good, t)

    def _on_rows(self, m: Any, q: Array, v: Array, good: Array, t: float) -> tuple[Array, Array, Array]:
        """Look at residuals and rates of starts; put those on the constraints that miss them by a little."""
        times, sizes = np.full(len(q), t), m.row_sizes
        held = np.array(m.holonomic, bool)
        phi = np.abs(np.asarray(m.constraint(q, times)) / sizes[held]).max(axis=1, initial=0.0)
        good, near = _judged(good, phi)
        if near.any():
            q[near] = of_samples(m, near).project(q[near], t=t)
        A = np.asarray(m.jacobian(q, times)).reshape(len(q), len(m.names), m.nv)
        rate = np.asarray(m.constraint_velocity(q, v, times))
        speeds = np.maximum(sizes, np.einsum("kij,kj->ki", np.abs(A), np.abs(v)))
        good, near = _judged(good, np.abs(rate / speeds).max(axis=1, initial=0.0))
        if near.any():
            v[near] = of_samples(m, near).project(q[near], v[near], t)[1]
        rank = self.session.rank
        if rank is not None and not rank.redundant and not self.common:
            M = np.asarray(m.mass_matrix(q)).reshape(len(q), m.nv, m.nv)
            good &= distances(rank, M, A) > CLEARLY_INDEPENDENT
        return q, v, good & np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1)

    # --- runs ---------------------------------------------------------------------------------------------------

    def run(
        self, q: Any, v: Any, values: Mapping[str, Array], count: int, project: bool, ends: bool = False
    ) -> Iterator[FinishedRuns]:
        """Make N runs; yield those that reached their end and plainly kept what a single run is asked for.

        `ends`: of the samples the first and the last are wanted alone, if that is less work.
        """
        numbers, sound = self.values(values, count)
        q, v, good = self.starts(q, v, numbers, project, count)
        s = self.session.settings
        verdict = np.where(good & sound, WAITING, ALONE).astype(np.int64)
        starts = Starts(q, v, np.full(count, s.start), np.full(count, s.end), numbers)
        if self.lanes:  # these have looked at the balance themselves, at every step
            for finished in self.runner.run(starts, verdict, ends=ends and not self.session.ignored):
                yield finished.chosen(~self._simplified(finished))
            return
        for finished in self.runner.run(starts, verdict):
            good = self._plainly_balanced(finished, numbers) & ~self._simplified(finished)
            yield finished.chosen(good)

    def _simplified(self, f: FinishedRuns) -> Array:
        """Return which runs passed limits of joints, which they do not know."""
        s, found = self.session, np.zeros(f.rows.size, bool)
        for k in range(f.rows.size if s.ignored else 0):
            block = {name: f.run.samples[name][f.first[k] : f.stop[k]] for name in ("t", "q")}
            found[k] = bool(missing_effects(s.ignored, self.system, s.extra.get("contacts"), [block]))
        return found

    def single(self, f: FinishedRuns, k: int, values: Array) -> Trajectory:
        """Return run k of some as a trajectory: what a witness reads of it."""
        rows = {name: x[f.first[k] : f.stop[k]] for name, x in f.run.samples.items()}
        session = SimpleNamespace(settings=self.session.settings)
        return replace(
            f.run, samples=rows, moving=self.at(values[f.rows[k]]), statistics=Counts(int(f.steps[k])), session=session
        )

    def _plainly_balanced(self, f: FinishedRuns, values: Array) -> Array:
        """Return which runs keep the balance of energy, `witness.broken_balance`: plainly, or by a closer look."""
        plainly = np.zeros(f.rows.size, bool)
        if f.rows.size and getattr(self.system, "has_energy", hasattr(self.system, "energy")):
            with np.errstate(all="ignore"):
                plainly = self._below(f)
        for k in np.flatnonzero(~plainly):
            plainly[k] = not broken_balance(self.single(f, int(k), values))
        return plainly

    def _below(self, f: FinishedRuns) -> Array:
        """Return which runs stay far below what the witness allows, by bounds of it from two samples of each."""
        m, s, run = f.run.moving, self.session.settings, f.run
        starts = np.repeat(f.first, f.lengths)
        place = f.first - f.first[0]  # runs lie one behind the other
        energy = run.energy
        h = m.balance(run.q, run.v, run.t) if hasattr(m, "balance") else energy.total
        done = run.work + run.samples.get("friction_work", 0.0)
        lost = 0.0 if "friction_work" in run.samples else run.heat
        residual = h - h[starts] - (done - done[starts]) + lost
        damped = _damped(self.system)
        residual = np.maximum(residual, 0.0) if damped else np.abs(residual)
        worst = np.maximum.reduceat(residual, place)
        kinetic, potential = (np.maximum.reduceat(np.abs(x), place) for x in (energy.kinetic, energy.potential))
        level = kinetic + potential
        rounding = ENERGY_ROUNDING * (f.steps + 10) * level
        signed = h - h[starts] - (done - done[starts]) + lost
        changes = np.diff(signed)
        changes = np.maximum(changes, 0.0) if damped else np.abs(changes)
        inside = np.repeat(np.arange(f.rows.size), f.lengths)
        within = np.diff(inside) == 0
        if s.step is not None:
            most = np.zeros(f.rows.size)
            np.maximum.at(most, inside[1:][within], changes[within])
            return most <= PLAINLY * JUMP * np.maximum.reduceat(energy.kinetic, place)
        look = np.where(f.lengths <= MOST_SAMPLES, _argmax(energy.kinetic, f), f.first)
        worth = np.zeros(f.rows.size)
        for rows in (f.first, look):
            worth = np.maximum(worth, self._worth(f, rows))
        below = worst <= PLAINLY * (SAFE * f.steps * worth + rounding)
        if s.every is None:
            speed = np.maximum(energy.kinetic[1:], energy.kinetic[:-1])
            least = ONE_STEP * s.rtol * 2.0 * speed + 10.0 * ENERGY_ROUNDING * level[inside[1:]]
            suspects = np.flatnonzero(within & ~(changes <= least))
            ends = [self._worth(f, suspects + side) for side in (0, 1)]
            allowed = PLAINLY * ONE_STEP * np.maximum(*ends)
            np.logical_and.at(below, inside[1:][suspects], changes[suspects] <= allowed)
        return below & np.isfinite(worst)

    def _worth(self, f: FinishedRuns, rows: Array) -> Array:
        """Return the energy that the tolerance of a step is worth at some samples."""
        s, m = self.session.settings, f.run.moving
        if not rows.size:
            return np.zeros(0)
        moving = self.at(np.asarray(m.values)[rows]) if self.names else m
        return step_tolerance(moving, f.run.q[rows], f.run.v[rows], s.rtol, s.atol)

    # --- the motion between samples -------------------------------------------------------------------------------

    @cached_property
    def with_samples_inside(self) -> RunBatch:
        """The same runs with samples inside of their steps."""
        return RunBatch(*self.given, inside=INSIDE)

    def reduced(
        self, f: FinishedRuns, wanted: Sequence[tuple[str, str, bool]], values: Array
    ) -> tuple[list[Array], Array]:
        """Return numbers of runs (K, ...) for each (quantity, reduction, norm), and for which runs they are.

        The runs are made again with samples inside of their steps, and reduced as `Trajectory.maximum` reduces one.
        """
        s, dense, count = self.session.settings, self.with_samples_inside, f.rows.size
        found: list[Any] = [None] * len(wanted)
        good = np.zeros(count, bool)
        for part in self._parts(f):
            first = f.first[part]
            starts = Starts(
                f.run.q[first], f.run.v[first], np.full(first.size, s.start), np.full(first.size, s.end),
                values[f.rows[part]],
            )  # fmt: skip
            for d in dense.runner.run(starts, np.full(first.size, WAITING, np.int64)):
                if not d.rows.size:
                    continue
                motion = RunPieces(d.run.t, d.run.step, d.first, d.stop, INSIDE)
                rows = part[d.rows]
                good[rows] = True
                for k, (name, take, norm) in enumerate(wanted):
                    numbers = motion.reduced(column(d.run, name), take, norm)
                    if found[k] is None:
                        found[k] = np.full((count, *numbers.shape[1:]), np.nan)
                    found[k][rows] = numbers
        return [np.full(count, np.nan) if x is None else x for x in found], good

    def _parts(self, f: FinishedRuns) -> Iterator[Array]:
        """Yield runs that are made again together: their samples fit into the memory of the device."""
        sizes = np.cumsum((f.steps + 1) * (INSIDE + 1)) * getattr(self.runner, "width", 0) * 8
        number = sizes // MOST_BYTES
        for k in np.unique(number):
            yield np.flatnonzero(number == k)

    # --- states between samples -----------------------------------------------------------------------------------

    def states(self, f: FinishedRuns, times: Array, values: Array) -> tuple[Array, Array, Array]:
        """Return q (K, T, nq), v (K, T, nv) at times of the runs, as `Trajectory.at`; and for which runs they are."""
        m, run, count = self.system, f.run, f.rows.size
        t, place = np.tile(times, count), np.zeros(count * times.size, np.int64)
        for k in range(count):
            samples = run.t[f.first[k] : f.stop[k]]
            place[k * times.size : (k + 1) * times.size] = f.first[k] - 1 + np.searchsorted(samples, times, "right")
        q, v, good = run.q[place].copy(), run.v[place].copy(), np.ones(count, bool)
        owner = np.repeat(np.arange(count), times.size)
        last = np.maximum(np.abs(t), np.abs(run.t[f.stop - 1])[owner])
        behind = t > run.t[place]
        near = behind & (t - run.t[place] <= NO_STEP * last)
        for k in np.flatnonzero(near):
            i, dt = place[k], t[k] - run.t[place[k]]
            q[k], v[k] = m.integrate(run.q[i], dt * run.v[i]), run.v[i] + dt * run.acceleration[i]
        far = np.flatnonzero(behind & ~near)
        if far.size and isinstance(self.runner, ContactRunner):
            q[far], v[far] = interpolated(run, np.minimum(place[far], f.stop[owner[far]] - 2), t[far])
        elif far.size:
            numbers = values[f.rows[owner[far]]]
            starts = Starts(run.q[place[far]], run.v[place[far]], run.t[place[far]].copy(), t[far], numbers)
            reached = np.zeros(far.size, bool)
            for short in self.runner.run(starts, np.full(far.size, WAITING, np.int64), short=True):
                q[far[short.rows]], v[far[short.rows]] = short.run.q[short.stop - 1], short.run.v[short.stop - 1]
                reached[short.rows] = True
            np.logical_and.at(good, owner[far], reached)
        return q.reshape(count, times.size, -1), v.reshape(count, times.size, -1), good


def _judged(good: Array, missing: Array) -> tuple[Array, Array]:
    """Return which starts are taken, and which of these are put on the constraints first; next to limits none is."""
    unclear = np.abs(missing - ON_MANIFOLD) < 0.01 * ON_MANIFOLD
    good = good & (missing < PLAINLY * CONSISTENT) & ~unclear
    return good, good & (missing > ON_MANIFOLD)


def _argmax(x: Array, f: FinishedRuns) -> Array:
    """Return where x is largest in each run."""
    return np.array([a + int(np.argmax(x[a:b])) for a, b in zip(f.first, f.stop, strict=True)], np.int64)


# ----------------------------------------------------------------------------------------------------------------------
# What drives the loops: memory of one run, and samples of many.


def smooth_stepper(batch: RunBatch) -> Explicit:
    """Return the explicit stepper of a batch; refuse runs that its loops cannot make together."""
    from dalembert.simulate.steppers.explicit import Explicit

    s = batch.session
    if s.settings.method not in ("dop853", "dopri5", "rk4"):
        raise UnsuitedError(f"method {s.settings.method!r} has no loop over runs")
    steps = 0.0 if s.settings.step is None else s.settings.duration / s.settings.step
    if not batch.asked and s.settings.rtol >= LOOSE and steps >= LONG:
        raise UnsuitedError("whether symplectic steps are taken depends on the start")
    e, m = Explicit(s), s.system
    if e.callbacks.addresses or e.codes.python:
        raise UnsuitedError("Python functions are called at every stage")
    if m.names and e.codes.carries and not batch.common:
        raise UnsuitedError("redundant rows are scaled where each run starts")
    return e


class SmoothRunner:
    """Explicit steps on the constraint manifold."""

    def __init__(self, batch: RunBatch) -> None:
        s = batch.session
        self.batch, self.stepper = batch, smooth_stepper(batch)
        e, m = self.stepper, s.system
        self.first = 2 + s.controller.symbols.numel()
        sizes = {"t": 0, "q": m.nq, "v": m.nv, "acceleration": m.nv, "multipliers": len(m.names), "work": 0, "step": 0}
        rows = buffer_rows(8 * (4 + sum(sizes.values())))
        self.samples = at.StepSamples(
            *(np.zeros((rows, k) if k or n in FIELDS[1:5] else rows) for n, k in sizes.items())
        )
        arrays = [*e.work[:-1], *e.work.carried, *e.now, e.clock, e.counts, e.signs, *e.nodes]
        self.kept, self.alive = snapshot(arrays)

    def run(self, starts: Starts, verdict: Array, short: bool = False) -> Iterator[FinishedRuns]:
        """Make runs and yield those that reached their end; `short`: to a state between samples of others."""
        e, batch, i = self.stepper, self.batch, 0
        limits = e.limits._replace(every=0.0, inside=0) if short else e.limits
        decay = 0.0 if short or batch.asked else PLAINLY * STIFF
        while i < verdict.size:
            before = i
            ends = ends_of(verdict)
            i = loop.run_smooth(
                e.work, e.tables, e.pair, e.now, e.clock, e.counts, limits, self.samples, e.signs, e.nodes,
                self.kept, starts, ends, i, self.first, decay,
            )  # fmt: skip
            yield self._finished(starts, ends, before, i, short)

    def _finished(self, starts: Starts, ends: RunEnds, before: int, i: int, short: bool) -> FinishedRuns:
        rows = before + np.flatnonzero(ends.verdict[before:i] == COMPLETE)
        stop = int(ends.samples[rows[-1], 1]) if rows.size else 0
        samples = {name: x[:stop].copy() for name, x in zip(FIELDS, self.samples, strict=True)}
        return finished_runs(self.batch, starts, ends, rows, samples, np.zeros((0, 5)), short)


class ContactRunner:
    """From event to event, by the contact engine."""

    def __init__(self, batch: RunBatch) -> None:
        from dalembert.simulate.contact import engine
        from dalembert.simulate.contact.hybrid import MOST, ContactRun
        from dalembert.simulate.contact.run_loops import command_unit

        s = batch.session
        options = {"impacts": "simultaneous", "sticking": None, **s.extra.get("options", {})}
        if options["sticking"]:
            raise UnsuitedError("sticking= is looked at where each run starts")
        self.batch, self.contacts, self.most = batch, ContactRun(s, **options), MOST
        e = self.engine = self.contacts.engine
        self._refuse(e)
        names = [name for name in engine.EngineArrays._fields if name.startswith("sample_")]
        state = [x for name, x in e.at.__dict__.items() if name not in (*names, "events")]
        parameters = e.system.inputs.get("parameters", np.zeros(0))
        self.kept, self.alive = snapshot([*state, parameters])
        sources = {name: getattr(e.at, name) for name in names}
        rows = buffer_rows(sum(x[:1].nbytes for x in sources.values()))
        self.samples = {name: np.zeros((rows, *x.shape[1:]), x.dtype) for name, x in sources.items()}
        self.events = np.zeros((rows, 4))
        source, target = (
            np.array([[*_at(x), x.shape[0], x[:1].size, 0] for x in several.values()], np.int64)
            for several in (sources, self.samples)
        )
        w, table = e.at, e.table.__array_interface__["data"][0]
        self.memory = loop.Contacts(
            np.array([engine.address_of(command_unit), table], np.int64), w.arguments, w.tally, w.clock, w.environment,
            w.q0, w.v0, w.kept_q, w.kept_v, parameters, w.gapped, w.gaps, source, target, w.events, self.events,
        )  # fmt: skip

    def _refuse(self, e: Any) -> None:
        """Refuse what Python decides at the start or on the way."""
        from dalembert.simulate.contact.contact_system import law_function
        from dalembert.simulate.contact.friction_loops import OTHER
        from dalembert.simulate.contact.geometry import refuse_small
        from dalembert.simulate.contact.shapes import Heightfield
        from dalembert.simulate.limits import SMALLEST_IN_CONTACT

        m, s = self.batch.system, self.batch.session
        several = s.extra.get("contacts") or ()
        several = several if isinstance(several, Sequence) else [several]
        reasons = {
            "Python functions are the system": e.system.kernel is None,
            "friction of bearings": e.bearings is not None,
            "laws of friction are Python functions": (e.at.law == OTHER).any() and law_function(e.system) is None,
            "massless limbs": bool(e.limbs),
            "heightfields": any(isinstance(getattr(c, "other", None), Heightfield) for c in several),
            "bodies without mass": bool(several) and not all(body.inertia.mass > 0.0 for body in m.bodies),
        }
        for reason, holds in reasons.items():
            if holds:
                raise UnsuitedError(reason)
        if several:
            refuse_small(m, s.extra.get("contacts"), [], np.zeros(0), SMALLEST_IN_CONTACT)

    def run(self, starts: Starts, verdict: Array, short: bool = False) -> Iterator[FinishedRuns]:
        """Make runs and yield those that reached their end."""
        i = 0
        while i < verdict.size:
            before, ends = i, ends_of(verdict)
            i = loop.run_contacts(self.memory, self.kept, starts, ends, i, self.most)
            self.engine.error = None  # of runs that are made alone
            yield self._finished(starts, ends, before, i)

    def _finished(self, starts: Starts, ends: RunEnds, before: int, i: int) -> FinishedRuns:
        from dalembert.simulate.contact.hybrid import PUBLIC

        rows = before + np.flatnonzero(ends.verdict[before:i] == COMPLETE)
        stop = int(ends.samples[rows[-1], 1]) if rows.size else 0
        block = self.engine.named({name: x[:stop].copy() for name, x in self.samples.items()})
        block["modes"] = PUBLIC[block["modes"]].astype(np.int64)
        if self.contacts.system.plain:
            del block["friction_work"], block["relative_velocity"]
        events = [
            np.column_stack([np.full(b - a, k, float), self.events[a:b]])
            for k, (a, b) in zip(rows, ends.events[rows], strict=True) if b > a
        ]  # fmt: skip
        happened = np.concatenate(events) if events else np.zeros((0, 5))
        return finished_runs(self.batch, starts, ends, rows, block, happened)

    def described(self, event: Array) -> tuple[float, str, str, str]:
        """Return time, contact and words of an event."""
        from dalembert.simulate.contact.engine import WORDS

        _, t, i, old, new = event
        return float(t), self.contacts.names[int(i)], WORDS[int(old)], WORDS[int(new)]


def _at(x: Array) -> tuple[int]:
    return (x.__array_interface__["data"][0],)


def buffer_rows(size: int) -> int:
    """Return how many samples of so many bytes are kept."""
    return int(np.clip(BUFFER // max(size, 1), LEAST_ROWS, MOST_ROWS))


def ends_of(verdict: Array) -> RunEnds:
    """Return memory of what becomes of runs; `verdict` is written."""
    count = verdict.size
    return RunEnds(verdict, np.zeros((count, 2), np.int64), np.zeros((count, 2), np.int64), np.zeros(count, np.int64))


def finished_runs(
    batch: RunBatch, starts: Starts, ends: RunEnds, rows: Array, samples: dict[str, Array], events: Array,
    short: bool = False,
) -> FinishedRuns:  # fmt: skip
    """Return runs whose samples lie one behind the other."""
    s: Session = batch.session
    first, stop = ends.samples[rows].T
    moving = batch.system if short or not batch.names else batch.at(np.repeat(starts.parameters[rows], stop - first, 0))
    names = tuple(s.extra.get("contact_names", ()))
    columns = columns_of(names, s.extra["contact_widths"]) if "contact_widths" in s.extra else None
    run = Trajectory(samples, moving, method=s.settings.method, contacts=names, columns=columns)
    return FinishedRuns(rows, first, stop, ends.steps[rows], run, events)
