"""The motion of a mechanism: samples by name, energy and residuals, states between samples, pictures, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dalembert.errors import MissingExtraError, ModelError
from dalembert.simulate.reactions import Reactions
from dalembert.simulate.trajectory import Trajectory

if TYPE_CHECKING:
    from pathlib import Path

    from dalembert.simulate.smooth.session import Session

Array = np.ndarray


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
        "completed", "event" (a terminal one), "interrupted", "stopped", "no solution", "disk full"; and why. "inaccurate":
        the end was reached, but the energy balance is off by more than the tolerance allows, or time stepping missed laws
        of contact or penetrated; "indeterminate": time stepping slid through Painleve's paradox. Kinds of data that do
        not act are named in the message.
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
                near = get_close_matches(str(name), [*known, *m.names, *reactions.groups, *reactions.contacts], n=3)
                hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
                raise ModelError(f"no coordinate, joint, constraint or contact is called {name!r}{hint}")
            place, source = m.index_q(name), self.q
        part = source[:, place]
        return part[:, 0] if part.shape[1] == 1 else part

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
            share the
            work with the least sum of squares.

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
        from dalembert.simulate.between import states_between

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
        from dalembert.simulate.panels import draw_motion

        what = (what,) if isinstance(what, str) else tuple(what)
        if not what:
            raise ModelError("plot needs at least one panel")
        figure = Figure(figsize=(9.0, 2.6 * len(what) + 0.6), layout="constrained")
        for axes, one in zip(np.atleast_1d(figure.subplots(len(what), 1)), what, strict=True):
            draw_motion(axes, self, one)
        return figure

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset: q, v, acceleration, reactions, energies and residuals over time, with names."""
        from dalembert.simulate.storage.dataset import as_dataset

        return as_dataset(self)

    def save(self, path: str | Path) -> None:
        """Write the run to an HDF5 file in NetCDF-4's layout, with model and options, so that it can be repeated."""
        from dalembert.simulate.storage.write import save_run

        save_run(self, path)

    def repeat(self, **changes: Any) -> MechanismTrajectory:
        """Run again what this trajectory was made with: bit for bit, or with other options of `da.simulate`.

        A loaded run needs nothing but its file; Python functions, which no file holds, are given again.
        """
        from dalembert.simulate.storage.description import options_of

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
    """Return the trajectory of a session as far as it came."""
    m = session.mechanism
    names = sorted({name for block in session.blocks for name in block})
    rows = {name: np.concatenate([block[name] for block in session.blocks]) for name in names}
    count = rows["t"].size
    return MechanismTrajectory(
        rows["t"], rows["q"], rows["v"], rows.get("modes", np.zeros((count, len(contacts)), int)),
        tuple(session.events), np.zeros(count), rows.get("heat", np.zeros(count)), session.status, session.words,
        session.steps, session.evaluations, Named(m, contacts, m.nv, len(contacts)),  # type: ignore[arg-type]
        samples=rows, method=session.settings.method, reason=session.settings.reason, session=session,
        notes=tuple(each.sentence for each in session.ignored),
    )  # fmt: skip
