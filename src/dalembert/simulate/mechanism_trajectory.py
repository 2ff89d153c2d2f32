"""The trajectory of a mechanism: samples by name, reactions, states between samples, energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import MissingExtraError, ModelError, UnsupportedError
from dalembert.names import near_matches
from dalembert.simulate.session import Session
from dalembert.simulate.trajectory import Trajectory

if TYPE_CHECKING:
    from pathlib import Path

    from jaxtyping import Float

# ----------------------------------------------------------------------------------------------------------------------
# States between samples: the run continued from the sample before, with its own tolerances.


Array = np.ndarray


NEXT_TO = 1e-14
"""Times that differ by this part of the time itself are told apart by rounding alone: no step leads from one to the
other."""


def states_between(run: Any, t: Any) -> tuple[Array, Array]:
    """Return q and v at the times t."""
    try:
        times = np.atleast_1d(floats(t, "t"))
    except (TypeError, ValueError) as error:
        raise ModelError(f"t must be times in seconds, not {t!r}") from error
    first, last = float(run.t[0]), float(run.t[-1])
    if times.size and not ((times >= first) & (times <= last)).all():
        bad = times[~((times >= first) & (times <= last))][0]
        raise ModelError(f"t = {bad:g} s is outside of the run, which goes from {first:g} to {last:g} s")
    place = np.searchsorted(run.t, times, side="right") - 1
    q, v = run.q[place].copy(), run.v[place].copy()
    for k in np.flatnonzero(times > run.t[place]):
        q[k], v[k] = _continued(run, int(place[k]), float(times[k]))
    return (q[0], v[0]) if np.ndim(t) == 0 else (q, v)


def _continued(run: Any, i: int, t: float) -> tuple[Array, Array]:
    from dalembert.simulate.entry import METHODS, WITH_CONTACTS

    s: Session = run.session
    dt = t - float(run.t[i])
    if dt <= NEXT_TO * max(abs(t), abs(float(run.t[-1]))):
        return run.mechanism.integrate(run.q[i], dt * run.v[i]), run.v[i] + dt * run.acceleration[i]
    if s is None or s.settings.method in WITH_CONTACTS or s.extra.get("controller missing"):
        return _interpolated(run, i, t)
    settings = replace(s.settings, start=float(run.t[i]), duration=t - float(run.t[i]), every=None)
    short = Session(s.mechanism, settings, s.controller, run.q[i], run.v[i], rank=s.rank)
    METHODS[settings.method]()(short)
    if short.status != "completed":
        raise UnsupportedError(f"the run cannot be continued from t = {run.t[i]:g} s to {t:g} s: {short.message}")
    return short.blocks[-1]["q"][-1], short.blocks[-1]["v"][-1]


def _interpolated(run: Any, i: int, t: float) -> tuple[Array, Array]:
    """Return the cubic through both samples: where contacts may change between them, and for lost controllers."""
    m = run.mechanism
    if i + 1 >= run.t.size:
        return run.q[i], run.v[i]
    h = float(run.t[i + 1] - run.t[i])
    u = (t - float(run.t[i])) / h
    d = m.difference(run.q[i], run.q[i + 1])
    x = u * u * (3 - 2 * u) * d + h * u * (1 - u) * ((1 - u) * run.v[i] - u * run.v[i + 1])
    return m.integrate(run.q[i], x), (1 - u) * run.v[i] + u * run.v[i + 1]


# ----------------------------------------------------------------------------------------------------------------------
# Reactions of a run by the name of a row, a constraint or a frame.


@dataclass(frozen=True, eq=False)
class Reactions(Mapping[str, Array]):
    """Forces and moments of the constraints on the mechanism: rows (N,), constraints, frames and contacts (N, k)."""

    table: Array
    rows: tuple[str, ...]
    groups: dict[str, list[int]]
    contacts: dict[str, Array]

    @classmethod
    def of(cls, run: Any) -> Reactions:
        """Collect the reactions of a run; they are the negative of its multipliers."""
        m = run.mechanism
        groups: dict[str, list[int]] = {}
        for i, number in enumerate(m.row_groups):
            constraint = m.all_constraints[number]
            for name in {constraint.label, getattr(constraint, "frame", constraint.label)}:
                groups.setdefault(name, []).append(i)
        forces = run.samples.get("contact_forces")
        contacts = {} if forces is None else {name: forces[:, 3 * k : 3 * k + 3] for k, name in enumerate(run.contacts)}
        return cls(0.0 - run.samples["multipliers"], tuple(m.names), groups, contacts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all rows (N, m)."""
        return np.asarray(self.table, dtype=dtype)

    def __getitem__(self, name: str) -> Array:
        """Return the reaction of a row (N,), or of a constraint, a frame or a contact (N, k)."""
        if name in self.rows:
            return self.table[:, self.rows.index(name)]
        if name in self.groups:
            return self.table[:, self.groups[name]]
        if name in self.contacts:
            return self.contacts[name]
        near = near_matches(name, [*self.rows, *self.groups, *self.contacts])
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ModelError(f"no constraint or contact is called {name!r}{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter((*self.rows, *self.contacts))

    def __len__(self) -> int:
        return len(self.rows) + len(self.contacts)


# ----------------------------------------------------------------------------------------------------------------------
# The motion of a mechanism: samples by name, energy and residuals, states between samples, pictures, files.


@dataclass(frozen=True, eq=False)
class MechanismTrajectory(Trajectory):
    """A motion of a mechanism; N samples.

    Attributes
    ----------
    t, q, v
        Times (N,), configurations (N, nq), velocities (N, nv).
    modes
        Per sample and contact: 0 stick, 1 slip, 2 open, (N, contacts).
    events
        What happened, in order: zeros of user's functions, impacts, contacts that close and open.
    work
        Work of the joint forces since the start, joules, (N,).
    heat
        What impacts and sliding have taken away, joules, (N,).
    step
        Size of the step that led to each sample, seconds; 0 where one was asked for between steps, (N,).
    method, reason
        The stepper, and why it was taken.
    status, message
        "completed", "event" (a terminal one), "interrupted", "stopped", "no solution", "disk full"; and why.
        "inaccurate": the end was reached, but the energy balance is off by more than the tolerance allows, in the run
        or (where every step is a sample) in one step, or time stepping missed laws of contact or penetrated;
        "indeterminate": time stepping slid through Painleve's paradox.
        "simplified": the end was reached, but data of the model that do not act (dry friction of joints, damping and
        springs with passive=False, limits that were passed) would have changed the motion.
    notes
        Data of the model that do not act in this run, a sentence for each kind.
    """

    samples: dict[str, Array] = field(repr=False, default_factory=dict)
    method: str = ""
    reason: str = ""
    session: Any = field(repr=False, default=None)
    notes: tuple[str, ...] = ()

    # --- names --------------------------------------------------------------------------------------------------

    @property
    def mechanism(self) -> Any:
        """The mechanism that moved."""
        return self.dynamics.system

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the configuration's coordinates, (nq,)."""
        return tuple(self.mechanism.configuration_names)

    @property
    def velocities(self) -> tuple[str, ...]:
        """Names of the velocities, (nv,)."""
        return tuple(self.mechanism.coordinates)

    def __getitem__(self, name: str) -> Array:
        """Return a coordinate, a joint's coordinates, or the reaction of a row, a constraint or a contact.

        "name.v" and "name.a" are velocity and acceleration of a coordinate or a joint.

        One number per sample is (N,), several are (N, k).
        """
        m = self.mechanism
        known = {*m.configuration_names, *(j.name for j in m.joints)}
        reactions = self.reactions
        if name in m.names or (name not in known and (name in reactions.groups or name in reactions.contacts)):
            return reactions[name]
        base, _, rate = str(name).rpartition(".")
        if rate in ("v", "a") and base and (base in m.coordinates or base in {j.name for j in m.joints}):
            place, source = m.index_v(base), self.v if rate == "v" else self.acceleration
        else:
            if name not in known:
                near = near_matches(name, [*known, *m.names, *reactions.groups, *reactions.contacts])
                hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
                raise ModelError(f"no coordinate, joint, constraint or contact is called {name!r}{hint}")
            place, source = m.index_q(name), self.q
        part = source[:, place]
        return part[:, 0] if part.shape[1] == 1 else part

    @property
    def ignored(self) -> tuple[str, ...]:
        """Kinds of data of the model that do not act in this run, a word for each of `notes`."""
        return () if self.session is None else tuple(each.kind for each in self.session.ignored)

    # --- quantities ---------------------------------------------------------------------------------------------

    @property
    def acceleration(self) -> Float[Array, "N nv"]:
        """Accelerations of all samples."""
        return self.samples["acceleration"]

    @property
    def work(self) -> Float[Array, " N"]:
        """Work of the joint forces since the start, joules."""
        return self.samples["work"]

    @property
    def step(self) -> Float[Array, " N"]:
        """Size of the step that led to each sample, seconds."""
        return self.samples["step"]

    @cached_property
    def reactions(self) -> Reactions:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Reactions of the constraint rows by row, constraint or frame, and of contacts: forces on the mechanism."""
        return Reactions.of(self)

    @property
    def forces(self) -> Any:
        """Contact forces (N, 3 contacts), in the order of `contacts`."""
        return self.samples.get("contact_forces", np.zeros((self.t.size, 0)))

    @cached_property
    def kinetic(self) -> Float[Array, " N"]:
        """Kinetic energy, joules."""
        return self._energies[0]

    @cached_property
    def potential(self) -> Float[Array, " N"]:
        """Potential energy of gravity and springs, joules."""
        return self._energies[1]

    @cached_property
    def _energies(self) -> tuple[Array, Array]:
        kinetic, potential = self.mechanism.energy(self.q, self.v)
        return np.asarray(kinetic), np.asarray(potential)

    @cached_property
    def energy(self) -> Float[Array, " N"]:
        """Kinetic and potential energy together, joules."""
        return self.kinetic + self.potential

    @property
    def energy_residual(self) -> Float[Array, " N"]:
        """Energy less its start, less the work of joint forces, plus heat: zero but for dampers and moving rows."""
        return self.energy - self.energy[0] - (self.work - self.work[0]) + self.heat

    @cached_property
    def position_residual(self) -> Float[Array, " N"]:
        """Largest residual of the constraints at every sample, metres or radians."""
        return np.abs(self._rows("constraint")).max(axis=-1, initial=0.0)

    @cached_property
    def velocity_residual(self) -> Float[Array, " N"]:
        """Largest rate of the constraint rows at every sample, per second."""
        return np.abs(self._rows("constraint_velocity")).max(axis=-1, initial=0.0)

    def _rows(self, what: str) -> Array:
        arguments = (self.q,) if what == "constraint" else (self.q, self.v)
        return np.asarray(getattr(self.mechanism, what)(*arguments, self.t))

    def joint_forces(self, actuated: Any = None) -> tuple[Array, Array, Array]:
        """Return the joint forces that cause this motion: inverse dynamics of every sample.

        Parameters
        ----------
        actuated
            Names of the driven coordinates, or "actuators"; all by default. More of them than degrees of freedom
            share the work with the least sum of squares.

        Returns
        -------
        tau, multipliers, status
            (N, nv), (N, m) and `da.Status` per sample, (N,): inconsistent where these actuators cannot do it.
        """
        found = self.mechanism.inverse(self.q, self.v, self.acceleration, self.t, actuated=actuated)
        if isinstance(found, tuple):
            return found
        return found, np.zeros((self.t.size, 0)), np.zeros(self.t.size, int)

    # --- between samples ----------------------------------------------------------------------------------------

    def at(self, t: Any) -> tuple[Array, Array]:
        """Return configurations and velocities at any times of the run, (nq,), (nv,) or (K, nq), (K, nv).

        The run is continued from the sample before, so that they are as accurate as the samples themselves. With
        contacts, and where the file of a run could not hold its Python controller, they are a cubic between samples.
        """
        return states_between(self, t)

    # --- pictures and files -------------------------------------------------------------------------------------

    def plot(self, what: Sequence[str] = ("coordinates", "energy", "residuals")) -> Any:
        """Return a matplotlib figure.

        Parameters
        ----------
        what
            Panels: "coordinates", "velocities", "accelerations", "reactions", "energy", "residuals", "phases", "steps",
            "contacts".
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError("matplotlib", "view", "Plotting a trajectory") from error
        from dalembert.simulate.plots import draw_motion

        what = (what,) if isinstance(what, str) else tuple(what)
        if not what:
            raise ModelError("plot needs at least one panel")
        figure = Figure(figsize=(9.0, 2.6 * len(what) + 0.6), layout="constrained")
        for axes, one in zip(np.atleast_1d(figure.subplots(len(what), 1)), what, strict=True):
            draw_motion(axes, self, one)
        return figure

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset: q, v, acceleration, reactions, energies and residuals over time, with names."""
        from dalembert.simulate.storage.read import as_dataset

        return as_dataset(self)

    def save(self, path: str | Path) -> None:
        """Write the run to an HDF5 file in NetCDF-4's layout, with model and options, so that it can be repeated."""
        from dalembert.simulate.storage.sink import save_run

        save_run(self, path)

    def repeat(self, **changes: Any) -> MechanismTrajectory:
        """Run again what this trajectory was made with: bit for bit, or with other options of `da.simulate`.

        A loaded run needs nothing but its file; Python functions, which no file holds, are given again.
        """
        from dalembert.simulate.storage.text import options_of

        given = options_of(self.session, changes)
        from dalembert.simulate.mechanism import simulate_mechanism

        return simulate_mechanism(self.mechanism, given.pop("duration"), given.pop("q"), given.pop("v"), **given)

    @staticmethod
    def load(path: str | Path) -> MechanismTrajectory:
        """Read a run from a file; one that was killed while it ran is read as far as it came."""
        from dalembert.simulate.storage.read import load_run

        return load_run(path)

    def __str__(self) -> str:
        span = f"{self.t[-1] - self.t[0]:g} s, {self.steps} steps, {self.t.size} samples, {len(self.events)} events"
        head = f"{self.status}: {span}; {self.method}: {self.reason} {self.message}".rstrip()
        return "\n".join([head, *(f"note: {each}" for each in self.notes), *map(str, self.events[:50])])


@dataclass(frozen=True, eq=False)
class Named:
    """What a trajectory knows of its system besides samples."""

    system: Any
    names: tuple[str, ...] = ()
    n: int = 0
    m: int = 0


def trajectory_of(session: Session, contacts: tuple[str, ...] = ()) -> MechanismTrajectory:
    """Return the trajectory of a session as far as it came: its start at least."""
    m = session.mechanism
    blocks = session.blocks or [start_of(session)]
    names = sorted({name for block in blocks for name in block})
    rows = {name: np.concatenate([block[name] for block in blocks]) for name in names}
    count = rows["t"].size
    return MechanismTrajectory(
        rows["t"], rows["q"], rows["v"], rows.get("modes", np.zeros((count, len(contacts)), int)),
        tuple(session.events), np.zeros(count), rows.get("heat", np.zeros(count)), session.status, session.words,
        session.steps, session.evaluations, Named(m, contacts, m.nv, len(contacts)),  # type: ignore[arg-type]
        samples=rows, method=session.settings.method, reason=session.settings.reason, session=session,
        notes=tuple(each.sentence for each in session.ignored),
    )  # fmt: skip


def start_of(session: Session) -> dict[str, Array]:
    """Return the initial state as a block of one sample; accelerations and multipliers were not asked for."""
    n, rows = session.mechanism.nv, len(session.mechanism.names)
    return {
        "t": np.array([session.settings.start]), "q": np.array([session.q]), "v": np.array([session.v]),
        "acceleration": np.full((1, n), np.nan), "multipliers": np.full((1, rows), np.nan),
        "work": np.zeros(1), "step": np.zeros(1),
    }  # fmt: skip
