"""`method="fixed"`: the seed's own way, the friction scheme inside a fixed-step integrator (seed 001, sec. 3.1).

At every stage of a step the contacts at rest are resolved (Fig. 2, or another method of `friction`); nothing is
located. A contact whose relative velocity changes its sign in a step (in a plane: turns by more than a right angle)
comes to rest at the end of it, which is the seed's test for the set of potentially sticking contacts; those that stick
are put back on their manifold. Event times are therefore off by a step, and forces jump at the next step only. First
order at events, whatever the stepper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.friction import METHODS, Limited, Reacting, resolve
from dalembert.simulate.dry.dynamics import SLIP, STICK
from dalembert.simulate.dry.transition import on_manifold
from dalembert.simulate.events.record import MODES, EventRecord
from dalembert.simulate.limits import ON_THE_GRID, WHOLE_STEPS
from dalembert.simulate.samples import refuse_breaks_between_steps
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.dry.events import Run


def run_fixed(run: Run, resolver: str | None = None, **options: Any) -> None:
    """Integrate with run.options.step to the end; `resolver` is a method of `dalembert.friction.resolve`.

    By default the flowchart, or "exact" where a limit is a reaction or a disk, which the flowchart does not know.
    """
    if resolver is None:
        others = any(isinstance(law, Reacting | Limited) for law in run.dynamics.limits)
        resolver = "exact" if others else "flowchart"
    if not isinstance(resolver, str) or resolver not in METHODS:
        raise ModelError(f"resolver={resolver!r} is not one of {', '.join(map(repr, METHODS))}")
    o, d = run.options, run.dynamics
    size = o.step or o.duration
    count = int(np.ceil(o.duration / size * (1.0 - WHOLE_STEPS)))
    start, n = run.t, d.n
    creeps = resolver == "regularised"
    rate = _Rate(run, resolver, options)
    stops = [t for t in o.breaks if start < t < start + o.duration]
    refuse_breaks_between_steps(stops, start, size, 'method="fixed"')
    for k in range(count):
        h = min(start + o.duration, start + (k + 1) * size) - run.t
        d.bounds = _bounds(run.t, run.t + h, stops, size)
        before = d.terms(run.y[:n], run.y[n : 2 * n], run.t).velocity
        rate.rest, rate.before = run.mode == 0, before
        try:
            y, _ = o.stepper.step(rate, run.t, run.y, h, rate(run.t, run.y), o.atol + o.rtol * np.abs(run.y))
            _inside(run, rate, start + (k + 1) * size if k + 1 < count else start + o.duration, creeps)
        except SolvabilityError as refused:
            run.status, run.message = "no solution", str(refused)
            return
        run.t = start + (k + 1) * size if k + 1 < count else start + o.duration
        after = d.terms(y[:n], y[n : 2 * n], run.t).velocity
        mode = _sets(run, rate.stuck, before, after, creeps)
        if not creeps:
            y[:n], y[n : 2 * n] = on_manifold(d, y[:n], y[n : 2 * n], run.t, mode)
        run.y = y
        run.record.steps += 1
        _note(run, mode)
        run.record.step(run.t, run.y, run.mode)
        if run.events and run.events[-1].time == run.t:
            run.record.before_event()


def _bounds(begin: float, end: float, stops: list[float], size: float) -> tuple[float, float]:
    """Return the times between which forces are evaluated in a step: inside the break points at its ends."""
    near = ON_THE_GRID * size
    low = next((float(np.nextafter(t, np.inf)) for t in stops if abs(t - begin) <= near), -np.inf)
    high = next((float(np.nextafter(t, -np.inf)) for t in stops if abs(t - end) <= near), np.inf)
    return low, high


def _inside(run: Run, rate: _Rate, end: float, creeps: bool) -> None:
    """Record the asked times inside a step, each by a shorter step from the same start."""
    o, d, n, stuck = run.options, run.dynamics, run.dynamics.n, rate.stuck
    for t in run.record.asked(end):
        k = rate(run.t, run.y)
        y, _ = o.stepper.step(rate, run.t, run.y, t - run.t, k, o.atol + o.rtol * np.abs(run.y))
        if not creeps:
            y[:n], y[n : 2 * n] = on_manifold(d, y[:n], y[n : 2 * n], t, run.mode)
        run.record.add(t, y, run.mode)
    rate.stuck = stuck


def _sets(run: Run, stuck: Array, before: Array, after: Array, creeps: bool) -> Array:
    """Return the modes at the end of a step."""
    mode, columns = run.mode, run.dynamics.columns
    way = np.where(columns.plane, SLIP, np.sign(after[columns.first[:-1]])).astype(int)
    still = columns.sizes(after) == 0.0
    if creeps:
        return np.where(still, mode, way)
    crossed = (mode != 0) & (np.bincount(columns.owner, before * after, mode.size) < 0.0)
    return np.where(stuck | crossed | still, STICK, way)


def _note(run: Run, mode: Array) -> None:
    for i in np.flatnonzero(mode != run.mode):
        run.events.append(
            EventRecord(float(run.t), run.dynamics.names[i], int(i), MODES[int(run.mode[i])], MODES[int(mode[i])])
        )
    run.mode = mode


class _Rate:
    """y' with the friction scheme at every stage; `stuck` are the contacts that stuck at the last one."""

    def __init__(self, run: Run, resolver: str, options: dict[str, Any]) -> None:
        self.run, self.resolver, self.options = run, resolver, options
        self.rest, self.before = run.mode == 0, np.zeros(run.dynamics.columns.owner.size)
        self.stuck = self.rest.copy()

    def __call__(self, t: float, y: Array) -> Array:
        d = self.run.dynamics
        q, v = y[: d.n], y[d.n : 2 * d.n]
        x = d.terms(q, v, t)
        mode = np.where(self.rest, STICK, self.run.mode)
        mode = np.where(d.columns.plane & (d.columns.sizes(x.velocity) == 0.0), STICK, mode)
        velocity = d.columns.not_turned(x.velocity, self.before)
        speed = x.velocity if self.resolver == "regularised" else d.columns.for_resolve(velocity, mode)
        answer = resolve(
            x.M, x.f, x.rows.T, speed, d.limits, self.resolver, A=x.A, drift=x.drift, contact_drift=x.contact_drift,
            names=d.names, rows=d.system.names, coordinates=d.system.coordinates, loads=x.loads,
            state_of_system=(q, v, t), **self.options,
        )  # fmt: skip
        if answer.status not in (Status.SOLVED, Status.NOT_OPTIMAL, Status.CYCLE, Status.NOT_CONVERGED):
            raise SolvabilityError(f"at t = {t:.6g}: {answer.status.message}; {answer.certificate.note}", answer.report)
        self.stuck = np.array([name in answer.sets.sticking for name in d.names], dtype=bool)
        heat = -float(np.sum(np.where(self.stuck[d.columns.owner], 0.0, answer.forces * x.velocity)))
        return np.concatenate([v, answer.acceleration, [float(v @ (x.rows.T @ answer.forces)), heat]])
