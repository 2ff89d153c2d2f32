"""`Trajectory`: what comes back from time, for every kind of system: samples by name, events, reactions, energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, UnsupportedError
from dalembert.first_use import PICTURES, REPORTS, RERUN_BRIDGE
from dalembert.names import near_matches
from dalembert.simulate.events.record import EventRecord, ImpactRecord
from dalembert.simulate.limits import NO_STEP
from dalembert.simulate.session import Session
from dalembert.types import Array, Energy

if TYPE_CHECKING:
    from pathlib import Path

    from jaxtyping import Float, Int

    from dalembert.model.mechanism.joint_forces import JointForces
    from dalembert.model.mechanism.known_motion import InverseDynamics
    from dalembert.simulate.joint_forces import JointForceHistory
    from dalembert.simulate.sensitivity import Gradient, Sensitivity


# ----------------------------------------------------------------------------------------------------------------------
# States between samples: the run continued from the sample before, with its own tolerances.


def states_between(run: Trajectory, t: Any) -> tuple[Array, Array]:
    """Return q and v at the times t."""
    try:
        times = np.atleast_1d(floats(t, "t"))
    except (TypeError, ValueError) as error:
        raise ModelError(f"t must be times in seconds, not {t!r}") from error
    first, last = float(run.t[0]), float(run.t[-1])
    if times.size and not ((times >= first) & (times <= last)).all():
        bad = times[~((times >= first) & (times <= last))][0]
        raise ModelError(f"t = {bad:g} s is outside of the run, which goes from {first:g} to {last:g} s")
    if run.solution is not None:
        return run.solution.states(t)
    place = np.searchsorted(run.t, times, side="right") - 1
    q, v = run.q[place].copy(), run.v[place].copy()
    for k in np.flatnonzero(times > run.t[place]):
        q[k], v[k] = _continued(run, int(place[k]), float(times[k]))
    return (q[0], v[0]) if np.ndim(t) == 0 else (q, v)


def _continued(run: Trajectory, i: int, t: float) -> tuple[Array, Array]:
    from dalembert.simulate.time_methods import METHODS

    s: Session | None = run.session
    dt = t - float(run.t[i])
    if dt <= NO_STEP * max(abs(t), abs(float(run.t[-1]))):
        return run.moving.integrate(run.q[i], dt * run.v[i]), run.v[i] + dt * run.acceleration[i]
    if s is None or not METHODS[s.settings.method].continues or s.extra.get("controller missing"):
        return interpolated(run, i, t)
    settings = replace(s.settings, start=float(run.t[i]), duration=t - float(run.t[i]), every=None)
    short = Session(s.system, settings, s.controller, run.q[i], run.v[i], rank=s.rank)
    METHODS[settings.method].load()(short)
    if short.status != "completed":
        raise UnsupportedError(f"the run cannot be continued from t = {run.t[i]:g} s to {t:g} s: {short.message}")
    return short.blocks[-1]["q"][-1], short.blocks[-1]["v"][-1]


REFINED = 2000
"""Samples of a refined run: the peak of a sine of ten periods is found to a part in eight thousand."""


def refined_run(run: Trajectory, samples: int) -> Trajectory:
    """Return a smooth run with more samples; others as they are."""
    from dalembert.simulate.time_methods import METHODS

    s, span = run.session, float(run.t[-1] - run.t[0])
    if s is None or run.t.size >= samples or not span > 0.0:
        return run
    if not METHODS[s.settings.method].continues or s.extra.get("controller missing"):
        return run
    settings = replace(s.settings, start=float(run.t[0]), duration=span, every=span / samples)
    dense = Session(s.system, settings, s.controller, run.q[0], run.v[0], rank=s.rank)
    METHODS[settings.method].load()(dense)
    return trajectory_of(dense) if dense.status == "completed" else run


def interpolated(run: Trajectory, i: Any, t: Any) -> tuple[Array, Array]:
    """Return the cubic through samples i and i + 1 at t, one or many: with contacts, and for lost controllers."""
    if run.t.size < 2:
        return run.q[i], run.v[i]
    i = np.minimum(i, run.t.size - 2)
    h = np.asarray(run.t[i + 1] - run.t[i])[..., None]
    u = np.asarray(t - run.t[i])[..., None] / np.where(h > 0.0, h, 1.0)
    d = run.moving.difference(run.q[i], run.q[i + 1])
    x = u * u * (3 - 2 * u) * d + h * u * (1 - u) * ((1 - u) * run.v[i] - u * run.v[i + 1])
    return run.moving.integrate(run.q[i], x), (1 - u) * run.v[i] + u * run.v[i + 1]


# ----------------------------------------------------------------------------------------------------------------------
# Reactions of a run by the name of a row, a constraint or a frame.


@dataclass(frozen=True, eq=False)
class Reactions(Mapping[str, Array]):
    """Forces and moments of the constraints on the system: rows (N,), constraints, frames and contacts (N, k)."""

    table: Array
    rows: tuple[str, ...]
    groups: dict[str, list[int]]
    contacts: dict[str, Array]

    @classmethod
    def of(cls, run: Trajectory) -> Reactions:
        """Collect the reactions of a run; they are the negative of its multipliers."""
        m = run.moving
        groups: dict[str, list[int]] = {}
        for i, number in enumerate(m.row_groups if hasattr(m, "all_constraints") else ()):
            constraint = m.all_constraints[number]
            for name in {constraint.label, getattr(constraint, "frame", constraint.label)}:
                groups.setdefault(name, []).append(i)
        contacts = {name: run.forces[:, run.contact_columns[name]] for name in run.contacts} if run.contacts else {}
        return cls(0.0 - run.multipliers, tuple(m.names), groups, contacts)

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
# A motion: samples by name, energy and residuals, states between samples, pictures, files.


PRINT = 300
"""Dots per inch of pictures in files."""


@dataclass(frozen=True)
class Counts:
    """What a run took: accepted and rejected steps, evaluations of the equations."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion in time; N samples, with dry friction two of them at the time of every event (before and after).

    Attributes
    ----------
    samples
        Arrays by name, one row per sample: t, q, v, acceleration, multipliers, work, step; with contacts modes, heat,
        contact_forces; of a `Tableau` or `DAE` x and its rates.
    moving
        The system as steppers read it; `system` is what was given.
    events
        What happened, in order: zeros of the user's functions, impacts, contacts that close, open, stick and slide.
    status, message
        "completed", "event" (a terminal one), "interrupted", "stopped", "no solution", "disk full", "chattering",
        "detached"; and why. "inaccurate": the end was reached, but the energy balance is off by more than the tolerance
        allows, in the run or (where every step is a sample) in one step, or time stepping missed laws of contact or
        penetrated; "indeterminate": time stepping slid through Painleve's paradox. "simplified": the end was reached,
        but data of the model that do not act (dry friction of joints, damping and springs with passive=False, limits
        that were passed) would have changed the motion.
    method, reason
        The stepper, and why it was taken.
    statistics
        Steps, rejected steps, evaluations.
    contacts, contact_columns
        Names of the contacts, and the columns of `forces` that belong to each.
    notes, ignored
        Data of the model that do not act in this run, a sentence for each kind; the kinds.
    session, solution
        What the run goes on from; a dense solution, where there is one.
    given
        What `da.simulate` was given, of runs without a session.
    """

    samples: dict[str, Array] = field(repr=False)
    moving: Any = field(repr=False)
    events: tuple[EventRecord, ...] = ()
    status: str = "completed"
    message: str = ""
    method: str = ""
    reason: str = ""
    statistics: Any = Counts()
    contacts: tuple[str, ...] = ()
    columns: Mapping[str, Any] | None = field(repr=False, default=None)
    notes: tuple[str, ...] = ()
    session: Any = field(repr=False, default=None)
    solution: Any = field(repr=False, default=None)
    ignored: tuple[str, ...] = ()
    given: dict[str, Any] | None = field(repr=False, default=None)

    # --- samples ------------------------------------------------------------------------------------------------

    def sample(self, name: str, otherwise: Array | None = None) -> Array:
        """Return an array of the samples."""
        if name in self.samples:
            return self.samples[name]
        if otherwise is None:
            raise ModelError(f"this run has no {name}; there are {', '.join(self.samples)}")
        return otherwise

    @property
    def t(self) -> Float[Array, " N"]:
        """Times, seconds."""
        return self.samples["t"]

    @property
    def q(self) -> Float[Array, "N nq"]:
        """Configurations."""
        return self.sample("q")

    @property
    def v(self) -> Float[Array, "N nv"]:
        """Velocities."""
        return self.sample("v")

    @property
    def x(self) -> Float[Array, "N n"]:
        """Unknowns of a `Tableau`, a `DAE`, or a system of which something is known; names are `unknowns`."""
        return self.sample("x")

    @property
    def modes(self) -> Int[Array, "N contacts"]:
        """Modes of the contacts; `dalembert.simulate.MODES` names them."""
        return self.samples.get("modes", np.zeros((self.t.size, len(self.contacts)), int))

    @property
    def acceleration(self) -> Float[Array, "N nv"]:
        """Accelerations."""
        return self.sample("acceleration")

    @property
    def multipliers(self) -> Float[Array, "N m"]:
        """Multipliers of the constraint rows; reactions are their negative."""
        return self.sample("multipliers")

    @property
    def work(self) -> Float[Array, " N"]:
        """Work since the start, joules: of applied forces, of a Lagrangian all that have no potential, of friction."""
        return self.sample("work", np.zeros(self.t.size))

    @property
    def heat(self) -> Float[Array, " N"]:
        """What impacts and sliding have taken away, joules."""
        return self.sample("heat", np.zeros(self.t.size))

    @property
    def step(self) -> Float[Array, " N"]:
        """Size of the step that ends at each sample, seconds; 0 for samples between the ends of steps."""
        return self.sample("step", np.zeros(self.t.size))

    @property
    def forces(self) -> Float[Array, "N k"]:
        """Contact forces: three components per contact of a mechanism, one or two per contact of dry friction.

        Of a joint's limit the first is the force (of a hinge the moment) away from the bound, the others are zero.
        """
        return self.sample("contact_forces", np.zeros((self.t.size, 0)))

    def contact_points(self, t: float) -> tuple[Any, ...]:
        """Return where collision shapes touch at the sample nearest to t: pair, place, normal, gap, force, mode.

        The force is that of the whole pair: how several points share it is not unique.
        """
        from dalembert.simulate.contact_loads import touching_points

        return touching_points(self, t)

    @property
    def relative_velocity(self) -> Float[Array, "N k"]:
        """Relative velocities of contacts with dry friction; exactly zero where they stick."""
        return self.sample("relative_velocity")

    # --- names --------------------------------------------------------------------------------------------------

    @property
    def ok(self) -> bool:
        """True when the run reached its end."""
        return self.status == "completed"

    @property
    def steps(self) -> int:
        """Accepted steps."""
        return self.statistics.steps

    @property
    def evaluations(self) -> int:
        """Evaluations of the equations."""
        return self.statistics.evaluations

    @property
    def system(self) -> Any:
        """What moved, as it was given to `da.simulate`."""
        return getattr(self.moving, "given", self.moving)

    @property
    def mechanism(self) -> Any:
        """The mechanism that moved."""
        return self.system

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the columns of q."""
        return tuple(getattr(self.moving, "configuration_names", self.coordinates))

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the columns of v, as of the system."""
        return tuple(getattr(self.moving, "coordinates", ()))

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        return () if self.solution is None else tuple(self.solution.names)

    @property
    def contact_columns(self) -> Mapping[str, Any]:
        """Columns of `forces` by name of the contact."""
        if self.columns is not None:
            return self.columns
        return {name: slice(3 * k, 3 * k + 3) for k, name in enumerate(self.contacts)}

    @property
    def impacts(self) -> tuple[ImpactRecord, ...]:
        """Impacts that were located, instant by instant, with impulses and certificates (`method="hybrid"`)."""
        from dalembert.kkt import Status

        if "impact" not in self.samples:
            return ()
        struck = {event.time for event in self.events if event.new == "impact"}
        closed = [event for event in self.events if (event.old, event.new) == ("open", "closed")]
        last = {}  # closing of each contact whose impacts pile up
        for rest in (event for event in self.events if event.old == "impacts"):
            times = [
                closing.time for closing in closed if closing.contact == rest.contact and closing.time <= rest.time
            ]
            last |= {max(times): rest.contact} if times else {}
        impacts = []
        for row in np.flatnonzero(self.samples["impact"][:, 2] > 0.0):
            parts, t = self.samples["impulses"][row].reshape(-1, 3), float(self.t[row])
            impulses = {name: part for name, part in zip(self.contacts, parts, strict=True) if part.any()}
            momentum, laws, before, after, status = (float(x) for x in self.samples["impact"][row])
            heat = float(self.heat[row] - self.heat[max(row - 1, 0)])
            if impulses or t in struck:
                verdict = Status(int(status))
                wrenches = partial(self._joint_impulses, int(row), impulses)
                impacts.append(
                    ImpactRecord(t, impulses, momentum, laws, before, after, heat, verdict, t in last, wrenches)
                )
        return tuple(impacts)

    def _joint_impulses(self, row: int, impulses: dict[str, Array]) -> JointForces:
        from dalembert.simulate.joint_forces import joint_impulses_of_impact

        return joint_impulses_of_impact(self, row, impulses)

    def __getitem__(self, name: str) -> Array:
        """Return a coordinate, a joint's coordinates, the reaction of a row, a constraint or a contact, or an unknown.

        "name.v" and "name.a" are velocity and acceleration of a coordinate or a joint, also written "name'" and
        "name''". One number per sample is (N,), several are (N, k).
        """
        if not isinstance(name, str):
            raise ModelError(f"a trajectory is asked for a coordinate, row or contact by name, not {name!r}")
        if self.solution is not None and name in self.solution.known_names:
            return self.solution[name]
        column = self._mechanical(name) if "q" in self.samples else None
        if column is None:
            near = near_matches(name, self._names)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise ModelError(f"no coordinate, joint, constraint or contact is called {name!r}{hint}")
        return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column

    @property
    def _joints(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in getattr(self.moving, "joints", ()))

    @property
    def _names(self) -> list[str]:
        """All that can be asked for by name."""
        if "q" not in self.samples:
            return list(self.unknowns)
        groups = self.reactions.groups if self.moving.names else ()
        return [*self.configuration_names, *self._joints, *self.moving.names, *groups, *self.contacts, *self.unknowns]

    def _mechanical(self, name: str) -> Array | None:
        """Return a quantity of a mechanical system by name, or None."""
        from dalembert.simulate.table import rate_name

        m, places = self.moving, {*self.configuration_names, *self._joints}
        base, _, rate = rate_name(name).rpartition(".")
        if name in m.names:
            return self.reactions[name]
        if name in places:
            return self.q[:, m.index_q(name)] if hasattr(m, "index_q") else self.q[:, [m.coordinates.index(name)]]
        if rate in ("v", "a") and (base in m.coordinates or base in self._joints):
            source = self.v if rate == "v" else self.acceleration
            return source[:, m.index_v(base)] if hasattr(m, "index_v") else source[:, [m.coordinates.index(base)]]
        if name in self.contacts:
            return self.forces[:, self.contact_columns[name]]
        return self.reactions[name] if name in self.reactions.groups else None

    # --- quantities ---------------------------------------------------------------------------------------------

    @cached_property
    def reactions(self) -> Reactions:
        """Reactions of the constraint rows by row, constraint or frame, and of contacts: forces on the system."""
        return Reactions.of(self)

    @cached_property
    def energy(self) -> Energy:
        """Kinetic and potential energy, joules, (N,) each; `.total` is their sum."""
        m = self.moving
        if not getattr(m, "has_energy", hasattr(m, "energy")):
            raise ModelError("this system has no energy: give Matrices(energy=...), or use a Lagrangian")
        kinetic, potential = m.energy(self.q, self.v, self.t)
        return Energy(np.asarray(kinetic), np.asarray(potential))

    @property
    def kinetic(self) -> Float[Array, " N"]:
        """Kinetic energy, joules."""
        return self.energy.kinetic

    @property
    def potential(self) -> Float[Array, " N"]:
        """Potential energy of gravity and springs, joules."""
        return self.energy.potential

    @property
    def energy_residual(self) -> Float[Array, " N"]:
        """Energy minus its value at the start, minus work, plus heat; zero in exact arithmetic.

        The balance does not count dampers of a mechanism, nor rows of it that are stabilised.

        If the T of a Lagrangian is no quadratic form in v, its energy is v dT/dv - T + V. Heat is added only where
        `work` does not contain the work of friction.
        """
        m = self.moving
        h = m.balance(self.q, self.v, self.t) if hasattr(m, "balance") else self.energy.total
        lost = 0.0 if "friction_work" in self.samples else self.heat
        done = self.work + self.samples.get("friction_work", 0.0)
        return h - h[0] - (done - done[0]) + lost

    @property
    def friction_work(self) -> Float[Array, " N"]:
        """Work that dry friction has done on the system, joules; a moving surface may feed it."""
        return self.sample("friction_work")

    @cached_property
    def position_residual(self) -> Float[Array, " N"]:
        """Largest residual of the constraints at every sample, metres or radians."""
        return np.abs(np.asarray(self.moving.constraint(self.q, self.t))).max(axis=-1, initial=0.0)

    @cached_property
    def velocity_residual(self) -> Float[Array, " N"]:
        """Largest rate of the constraint rows at every sample, per second."""
        return np.abs(np.asarray(self.moving.constraint_velocity(self.q, self.v, self.t))).max(axis=-1, initial=0.0)

    @cached_property
    def joint_forces(self) -> JointForceHistory:
        """Wrenches of all joints, loops, constraints, springs and contacts of a mechanism, at every sample.

        `run.joint_forces["knee"].force` is (N, 3), in the axes of the joint's frame on the child; `in_axes("world")`
        tells them in others. `unique` says what the constraints determine, `peaks` how large loads become and when.
        """
        from dalembert.simulate.joint_forces import joint_forces_of_run

        return joint_forces_of_run(self)

    def inverse(self, actuated: Any = None) -> InverseDynamics:
        """Return the joint forces along the coordinates that cause this motion: inverse dynamics of every sample.

        Parameters
        ----------
        actuated
            Names of the driven coordinates, or "actuators"; all by default. More of them than degrees of freedom
            share the work with the least sum of squares.

        Returns
        -------
        InverseDynamics
            `tau, multipliers, status = ...`: (N, nv), (N, m) and `da.Status` per sample, (N,), inconsistent where these
            actuators cannot do it; `.unique` per row and sample, `.joint_forces` the bearing loads that go with them.
        """
        if not hasattr(self.moving, "inverse"):
            raise UnsupportedError("inverse is the inverse dynamics of a Mechanism")
        return self.moving.inverse(self.q, self.v, self.acceleration, self.t, actuated=actuated)

    # --- one number of a quantity ---------------------------------------------------------------------------------

    def maximum(self, name: str) -> Array:
        """Return the largest value of a quantity during the run, () or (k,): of the motion, between samples, too.

        Of "q", "v", "acceleration", "energy", "kinetic", "potential", "heat", "work" and all that `run[name]` knows.
        `run[name].max()` is that of samples: the ends of steps, or the times of `every=`. Extrema are located, and
        means are integrals over time, on polynomials through samples that the method takes inside of each of its steps
        (of "moreau" and "variational": on straight lines between their steps), as accurate as the run itself. The
        steps are taken again for it, once; a run that cannot be made again (its file could not hold the Python
        functions, or these have a memory) is reduced over its samples. Impulses of impacts are no part of reactions.
        """
        return self._reduced(name, "max")

    def minimum(self, name: str) -> Array:
        """Return the smallest value of a quantity during the run, () or (k,), as `maximum`."""
        return self._reduced(name, "min")

    def range(self, name: str) -> Array:
        """Return the difference of the largest and the smallest value of a quantity during the run, () or (k,)."""
        return self._reduced(name, "range")

    def mean(self, name: str) -> Array:
        """Return the mean of a quantity over time, () or (k,): its integral over the length of the run (`maximum`)."""
        return self._reduced(name, "mean")

    def rms(self, name: str) -> Array:
        """Return the root of the mean square of a quantity over time, () or (k,), as `mean`."""
        return self._reduced(name, "rms")

    def _reduced(self, name: str, take: str) -> Array:
        from dalembert.simulate.reductions import reduced

        return reduced(self, name, take)

    @cached_property
    def with_samples_inside(self) -> Trajectory:
        """The same motion at every step and at points inside of each: what `maximum` and `mean` are taken of."""
        from dalembert.simulate.reductions import with_samples_inside

        return with_samples_inside(self)

    # --- derivatives ----------------------------------------------------------------------------------------------

    def sensitivity(self, wrt: str | Sequence[str]) -> Sensitivity:
        """Return how every sample changes with the start and with parameters: `s["v", "q0"]` is (N, nv, nv).

        Parameters
        ----------
        wrt
            "q0", "v0" (the start, along its tangent, projected onto what constraints and contacts that are closed there
            allow), "force" (constant joint forces beside those of the run), and parameters: "mass:<body>",
            "inertia:<body>", "stiffness:<joint>", ... as in `Mechanism.with_parameters`; of contacts
            "friction:<contact>", "restitution:<contact>".

        Returns
        -------
        Sensitivity
            Derivatives of "q" (in tangent coordinates) and "v" at the times of the samples, through impacts, stick and
            slip by saltation matrices; `event_times` has those of the times of events. Where there is no derivative
            (infinitely many impacts, several at once, grazing, redundant contacts that leave open which one slips)
            the reason is said; so it is of joint forces that are Python functions or tables.
        """
        from dalembert.simulate.sensitivity import sensitivity

        return sensitivity(self, wrt)

    def gradient(self, loss: Any, wrt: str | Sequence[str]) -> Gradient:
        """Return the derivative of a number of the last state, `g["v0"]` (nv,): one pass back over the samples.

        Parameters
        ----------
        loss
            A `casadi.Function` of (q, v), or a function that returns (value, d/dq (nv,), d/dv (nv,)) with the slope by
            q in tangent coordinates.
        wrt
            As in `sensitivity`.
        """
        from dalembert.simulate.sensitivity import gradient

        return gradient(self, loss, wrt)

    # --- between samples ----------------------------------------------------------------------------------------

    def at(self, t: Any) -> tuple[Array, Array]:
        """Return configurations and velocities at any times of the run, (nq,), (nv,) or (K, nq), (K, nv).

        The run is continued from the sample before, so that they are as accurate as the samples themselves; a run in
        implicit form has a dense solution. With contacts, and where the file of a run could not hold its Python
        controller, they are a cubic between samples.
        """
        return states_between(self, t)

    def refined(self, samples: int = REFINED) -> Trajectory:
        """Return the same motion with at least that many samples, between its steps; peaks lie there as a rule.

        The steps are taken again, without events and `on_step`. Runs with contacts, in implicit form, or with a
        controller that their file could not hold are returned as they are: their samples are what there is.
        """
        return refined_run(self, samples)

    # --- pictures and files -------------------------------------------------------------------------------------

    def plot(self, what: Sequence[str] | str | None = None, file: str | Path | None = None) -> Any:
        """Return a matplotlib figure, which notebooks and pages show; one pair of axes per quantity and unit.

        Phases of contacts are shaded, events marked. In a script: `run.plot(file="run.pdf")`, or `run.plot().show()`.

        Parameters
        ----------
        what
            Panels: "coordinates", "velocities", "accelerations", "reactions", "forces", "energy", "residuals",
            "joint_forces", "phases", "steps", "contacts"; those that tell most of the run by default.
        file
            Where to write the picture; its ending is the format: .png, .pdf, .svg.
        """
        from dalembert.simulate.plots import figure_of

        figure = figure_of(self, what)
        if file is not None:
            figure.savefig(file, dpi=PRINT)
        return figure

    def animate(self, path: Any = None, **options: Any) -> Any:
        """Show the motion of a mechanism: in a notebook, or written to a file.

        Parameters
        ----------
        path
            "run.html" is one self-contained page: orbit camera, play, slider, speed, forces as arrows, lines that
            follow the time; click a body for its joint's values. "run.svg" moves without a script; "run.gif",
            "run.webp" (extra `view`) and "run.mp4" (extra `film`) are films. Without a path notebooks show the page.
        options
            `overlay` (further runs, drawn pale over it), `lines` (names that run[name] knows, or {label: values at
            run.t}), `rate` (frames per second), `title`, `caption`, `view` (direction from which one looks, three
            numbers), `forces=False` (no arrows) or "joints" (those of all joints, too), `meshes=False`.

        Returns
        -------
        Path or Animation

        Notes
        -----
        Arrows are forces on the mechanism: reactions green where they are unique and orange where they are not,
        contact forces blue.
        """
        return PICTURES.animate(self, path, **options)

    def view(self, **options: Any) -> Any:
        """Show the run live in the browser: play, scrub, and sliders for each joint (extra `view3d`).

        Options are those of `Mechanism.view`.
        """
        return PICTURES.live(self, **options)

    def to_csv(self, path: str | Path | None = None, what: Sequence[str] | str | None = None) -> str | None:
        """Write the samples as CSV: a column per quantity, headed by name and unit; without a path return the text.

        Parameters
        ----------
        path
            Where to write.
        what
            Quantities: "coordinates", "velocities", "accelerations", "reactions", "forces", "contacts", "energy",
            "residuals"; all of these by default. "joint_forces": force and moment of every joint.
        """
        from dalembert.simulate.table import as_csv

        return as_csv(self, path, what)

    def to_dataframe(self, what: Sequence[str] | str | None = None, *, units: bool = True) -> Any:
        """Return a pandas.DataFrame: time as its index, a column per quantity, headed as in "hinge [rad]".

        `what` is as for `to_csv`. units=False leaves units out of the heads; `frame.attrs["units"]` has them always.
        """
        from dalembert.simulate.table import as_dataframe

        return as_dataframe(self, what, units)

    def report(self, path: str | Path, title: str = "", **options: Any) -> Path:
        """Write a report of the run: one self-contained HTML page, and return its path.

        What was simulated, the mechanism in motion, plots, the peak of every reaction with its uniqueness, events, a
        certificate, versions. `options` are those of `dalembert.view.run_report`: about, panels, source, command.
        """
        return REPORTS.run_report(self, title, **options).write(path)

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset: q, v, acceleration, reactions, energies and residuals over time, with names."""
        from dalembert.simulate.storage.read import as_dataset

        return as_dataset(self)

    def to_rerun(self, path: str | Path | None = None) -> Any:
        """Write a recording (.rrd) that the viewer of Rerun opens: poses of bodies and all coordinates over time.

        Needs the extra `rerun`. Without a path the stream is returned, to be sent to a viewer.
        """
        return RERUN_BRIDGE.to_rerun(self, path)

    def save(self, path: str | Path) -> None:
        """Write the run to an HDF5 file in NetCDF-4's layout, with model and options, so that it can be repeated."""
        from dalembert.simulate.storage.sink import save_run

        save_run(self, path)

    def repeat(self, **changes: Any) -> Trajectory:
        """Run again what this trajectory was made with: bit for bit, or with other options of `da.simulate`.

        A loaded run needs nothing but its file; Python functions, which no file holds, are given again.
        """
        from dalembert.simulate.entry import simulate
        from dalembert.simulate.storage.text import options_of

        if self.given is not None:
            options = self.given | changes
        elif self.session is not None:
            options = options_of(self.session, changes)
        else:
            raise UnsupportedError("this run keeps no options to repeat it with: call da.simulate again")
        system = options.pop("system", self.system)
        if system is None:
            raise ModelError("the system of this run is not in its file; give it again: system=...")
        return simulate(system, options.pop("duration"), options.pop("q"), options.pop("v"), **options)

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """Read a run from a file; one that was killed while it ran is read as far as it came."""
        from dalembert.simulate.storage.read import load_run

        return load_run(path)

    def _repr_html_(self) -> str:
        return f"{PICTURES.notebook_html(self)}<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        span = f"{self.t[-1] - self.t[0]:g} s, {self.steps} steps, {self.t.size} samples, {len(self.events)} events"
        chosen = f"{self.method}: {self.reason}" if self.method else ""
        head = f"{self.status}: " + "; ".join(filter(None, (span, chosen, self.message)))
        return "\n".join([head, *(f"note: {note}" for note in self.notes), *map(str, self.events[:50])])


def trajectory_of(session: Session, contacts: tuple[str, ...] = ()) -> Trajectory:
    """Return the trajectory of a session as far as it came: its start at least."""
    blocks = session.blocks or [start_of(session)]
    names = sorted({name for block in blocks for name in block})
    rows = {name: np.concatenate([block[name] for block in blocks]) for name in names}
    s = session.settings
    columns = columns_of(contacts, session.extra["contact_widths"]) if "contact_widths" in session.extra else None
    return Trajectory(
        rows, session.system, tuple(session.events), session.status, session.words, s.method, s.reason,
        Counts(session.steps, session.rejected, session.evaluations), contacts, columns, session=session,
        notes=tuple(note.sentence for note in session.ignored), ignored=tuple(note.kind for note in session.ignored),
    )  # fmt: skip


def columns_of(contacts: Sequence[str], widths: Sequence[int]) -> dict[str, Array]:
    """Return the columns of every contact's components by name."""
    ends = np.cumsum([0, *widths]).astype(int)
    return {name: np.arange(ends[i], ends[i + 1]) for i, name in enumerate(contacts)}


def start_of(session: Session) -> dict[str, Array]:
    """Return the initial state as a block of one sample; accelerations and multipliers were not asked for."""
    n, rows = session.system.nv, len(session.system.names)
    return {
        "t": np.array([session.settings.start]), "q": np.array([session.q]), "v": np.array([session.v]),
        "acceleration": np.full((1, n), np.nan), "multipliers": np.full((1, rows), np.nan),
        "work": np.zeros(1), "step": np.zeros(1),
    }  # fmt: skip
