"""`simulate`: from an initial state to a trajectory, stick and slip included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.checks import finite_vector, is_number
from dalembert.errors import ModelError, SolvabilityError
from dalembert.model.system import System
from dalembert.simulate.equations.lagrangian_system import in_time
from dalembert.simulate.limits import AT_REST
from dalembert.simulate.samples import breaks_of, checked_breaks
from dalembert.simulate.trajectory import Counts, Trajectory
from dalembert.status import Status
from dalembert.types import Array
from tests.reference.dry.dynamics import SLIP, STICK, Dynamics
from tests.reference.dry.events import Record, Run, checked_options, run_events
from tests.reference.dry.limits import CONSISTENT_DRY
from tests.reference.dry.transition import settled, velocity_rows


def simulate(
    system: System,
    duration: float,
    q: Any,
    v: Any,
    *,
    t: float = 0.0,
    stepper: str = "dop853",
    rtol: float = 1e-10,
    atol: float = 1e-12,
    step: float | None = None,
    max_step: float | None = None,
    event_tolerance: float = 1e-13,
    every: float | None = None,
    force: Any = None,
    breaks: Any = None,
    sticking: Sequence[str] | str | None = None,
) -> Trajectory:
    """Simulate a system with dry friction (or without).

    Parameters
    ----------
    system
        A `Lagrangian` or `Matrices`, whose velocities are the rates of its coordinates.
    duration, t
        Length of the run and its start, seconds.
    q, v
        Initial coordinates and velocities, (n,).
    stepper
        One of `STEPPERS`: "dop853" (order 8), "dopri5", "rk4" (needs `step`), "radau" (implicit,
        stiff).
    rtol, atol
        Tolerances of a step.
    step
        A fixed step, seconds, in place of an adaptive one.
    event_tolerance
        Tolerance of an event within its step, seconds.
    max_step
        The longest step, seconds. Step control sees forces at its stages alone: a pulse between them is not there.
        Take `max_step` below the shortest pulse of a force, or declare its `breaks`.
    every
        Samples at exactly t + k every, at the end and at events (both sides), instead of at every step.
    force
        A function of (t, q, v) that returns applied forces, (n,).
    breaks
        Times at which forces or their rates jump, also as an attribute of `force`: steps end there, and forces take
        their limits from within.
    sticking
        Names of contacts that must stick at the start: refused where their velocities say otherwise.

    Returns
    -------
    Trajectory
        Also where the run could not go on: `status` and `message` say why.
    """
    if not (is_number(t) and np.isfinite(t)):
        raise ModelError(f"t={t!r} must be a finite number, the time at the start")
    declared = {*checked_breaks(breaks), *breaks_of(force)} if force is not None else set(checked_breaks(breaks))
    checked = checked_options(
        duration, stepper, rtol, atol, step, event_tolerance, every, max_step, tuple(sorted(declared))
    )
    dynamics = Dynamics(system, force)  # pyright: ignore[reportArgumentType] - a plain System has no contacts
    q, v = (finite_vector(x, dynamics.system.coordinates, what) for x, what in ((q, "q"), (v, "v")))
    mode = _first_modes(dynamics, q, v, float(t), sticking)
    run = Run(
        dynamics, checked, Record(float(t), float(t) + checked.duration, checked.every), float(t),
        np.concatenate([q, v, [0.0, 0.0]]), mode,
        checked.step or min(checked.duration / 100.0, checked.largest_step),
    )  # fmt: skip
    try:
        run.mode = settled(dynamics, q, v, float(t), mode, checked.time_scale)
    except SolvabilityError as refused:
        run.status, run.message = "no solution", str(refused)
    run.record.add(run.t, run.y, run.mode)
    run_events(run)
    return _trajectory(run)


def _first_modes(dynamics: Dynamics, q: Array, v: Array, t: float, sticking: Sequence[str] | str | None) -> Array:
    """Return who is at rest and who slides; refuse initial values that contradict constraints or `sticking`."""
    x = dynamics.terms(q, v, t)
    size = np.abs(x.rows) @ np.abs(v) + np.abs(x.velocity - x.rows @ v)
    columns = dynamics.columns
    way = np.where(columns.plane, SLIP, np.sign(x.velocity[columns.first[:-1]])).astype(int)
    mode = np.where(columns.at_rest(x.velocity, size, AT_REST), STICK, way)
    for name in [sticking] if isinstance(sticking, str) else sticking or ():
        if name not in dynamics.names:
            raise ModelError(
                f"sticking: no contact is called {name!r}; there are {', '.join(dynamics.names) or 'none'}"
            )
        i = dynamics.names.index(name)
        if mode[i] != 0:
            raise ModelError(
                f"contact {name!r} cannot stick at the start: its relative velocity is "
                f"{', '.join(f'{one:.6g}' for one in x.velocity[columns.of(i)])} m/s; "
                "change v, or leave it out of sticking="
            )
    _refuse_inconsistent(dynamics, q, v, t, mode)
    return mode


def _refuse_inconsistent(dynamics: Dynamics, q: Array, v: Array, t: float, mode: Array) -> None:
    system: Any = dynamics.system
    k = len(system.names)
    if hasattr(system, "constraint") and k:
        phi = np.asarray(system.constraint(q, t))
        names = [name for name, kind in zip(system.names, system.holonomic, strict=True) if kind]
        bad = np.flatnonzero(np.abs(phi) > CONSISTENT_DRY * (1.0 + np.abs(q).max()))
        if bad.size:
            raise ModelError(f"the initial q violates {names[bad[0]]!r} by {phi[bad[0]]:.3g}")
    if k and (hasattr(system, "constraint_velocity") or getattr(system, "rows_rest", False)):
        rows, values = velocity_rows(dynamics, q, v, t, np.ones_like(mode))
        if not hasattr(system, "constraint_velocity"):
            rows = np.asarray(system.jacobian(q, t))
            values = rows @ v
        bad = np.flatnonzero(np.abs(values) > CONSISTENT_DRY * (np.abs(rows) @ np.abs(v) + 1.0))
        if bad.size:
            raise ModelError(
                f"the initial velocities contradict {system.names[bad[0]]!r}: its rate is {values[bad[0]]:.3g}, not 0; "
                "KKT.project_velocity gives the nearest admissible ones"
            )


@dataclass(frozen=True, eq=False)
class PlainTrajectory(Trajectory):
    """A run whose forces are resolved when they are first asked for."""

    dynamics: Any = field(repr=False, default=None)

    def sample(self, name: str, otherwise: Array | None = None) -> Array:
        """Return an array of the samples, computed now where it was left for later."""
        if name not in self.samples:
            for word, rows in _resolved(self.dynamics, self).items():
                self.samples.setdefault(word, rows)
        return super().sample(name, otherwise)


def _trajectory(run: Run) -> PlainTrajectory:
    d, record = run.dynamics, run.record
    n = d.n
    y = np.array(record.y)
    modes = np.array(record.mode, dtype=int).reshape(len(record.t), d.m)
    samples = {
        "t": np.array(record.t), "q": y[:, :n], "v": y[:, n : 2 * n], "modes": modes,
        "friction_work": y[:, 2 * n], "heat": y[:, 2 * n + 1],
    }  # fmt: skip
    columns: dict[str, Any] = {name: np.arange(d.columns.owner.size)[d.columns.of(i)] for i, name in enumerate(d.names)}
    return PlainTrajectory(
        samples, in_time(d.system), tuple(run.events), run.status, run.message, run.options.stepper.name,
        "from event to event, sticking contacts as constraints", Counts(record.steps, 0, d.evaluations),
        tuple(d.names), columns, dynamics=d,
    )  # fmt: skip


def _resolved(d: Dynamics, run: Trajectory) -> dict[str, Array]:
    """Return accelerations, friction forces, multipliers and relative velocities of all samples, resolved exactly."""
    n, m, k = d.n, d.columns.owner.size, len(d.system.names)
    a, T = np.full((run.t.size, n), np.nan), np.full((run.t.size, m), np.nan)
    lam, xi = np.full((run.t.size, k), np.nan), np.zeros((run.t.size, m))
    warm = None
    for s in range(run.t.size):
        q, v, t, mode = run.q[s], run.v[s], float(run.t[s]), run.modes[s]
        x = d.terms(q, v, t)
        xi[s] = np.where((mode == 0)[d.columns.owner], 0.0, x.velocity)
        mode = np.where(d.columns.plane & (d.columns.sizes(xi[s]) == 0.0), 0, mode)
        answer = d.resolved(x, mode, (q, v, t), warm)
        if answer.status in (Status.SOLVED, Status.NOT_OPTIMAL):
            a[s], T[s], lam[s] = answer.acceleration, answer.forces, answer.multipliers
            warm = answer.forces
    return {"acceleration": a, "contact_forces": T, "multipliers": lam, "relative_velocity": xi}
