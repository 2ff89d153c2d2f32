"""Joint forces along a run: loads of bearings over time, their peaks, their share of the time; contacts included.

The wrenches are those of the samples' accelerations, multipliers and contact forces, by one call of a kernel for all
samples (`model/mechanism/joint_forces.py`). A run with time stepping (`moreau`) has the mean forces of its steps: none
belong to its first sample, and those of a step with an impact grow as the step shrinks. Other runs leave impacts out;
`run.impacts[i].joint_impulses` has their wrenches, N s and N m s, by the same recursion: with the change of velocities
in place of accelerations, impulses in place of forces, at rest and without weight and springs.

Contact forces are taken as they are. Which of them, and of the wrenches that go with them, are unique is decided for
constraint rows and contacts together, sample by sample (`model/mechanism/families.py`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, UnsupportedError
from dalembert.kkt.limits import negligible_level
from dalembert.memory import remembered
from dalembert.model.mechanism.joint_forces import COMPONENTS, JointForce, JointForces
from dalembert.model.mechanism.known_motion import MotionSamples
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.precision import digits_of
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.model.mechanism.transmissions import name_beside
from dalembert.simulate.contact_loads import (
    ContactLoad,
    along_coordinates,
    contact_loads,
    free_contact_forces,
    free_forces_at,
    hinge_torques,
    limits_reached,
    loads_at,
    outer_forces,
)
from dalembert.simulate.equations.codes import Forces
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import INSIDE_CONE, SHOWN_FORCE
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory


COARSE = 0.01
"""Part of a run between two samples above which its peaks are not seen: a hundred samples show a sine to 0.05 %."""


PEAK_HEADS = (
    "joint", "peak force [N]", "at [s]", "peak moment [N m]", "moment at [s]", "equivalent load [N]", "not unique",
)  # fmt: skip
"""Columns of a table of peaks."""


class Peak(NamedTuple):
    """The largest force (N) and moment (N m) of a joint, with the times at which they come, seconds."""

    force: float
    force_time: float
    moment: float
    moment_time: float


@dataclass(frozen=True, eq=False)
class JointForceHistory(JointForces):
    """Wrenches of a run's samples, (N, k, 6); beside joints, loops, constraints and springs also contacts by name.

    Attributes
    ----------
    t
        Times of the samples, seconds.
    contacts
        Loads of contacts by name; one that is called as a joint is "contact ...".
    units
        Per contact the directions of its free forces, world axes, (N, 3, 3), and their columns in `contact_family`.
    examined
        Whether anybody has looked which forces of contacts are unique: of mechanisms with too many velocities not.
    """

    t: Array = field(default_factory=lambda: np.zeros(0))
    contacts: dict[str, ContactLoad] = field(default_factory=dict, repr=False)
    units: dict[str, tuple[Array, slice]] = field(default_factory=dict, repr=False)
    examined: Array = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)

    def in_axes(self, axes: str) -> JointForceHistory:
        """Return the same wrenches in other axes: "child", "parent" or "world"."""
        return super().in_axes(axes)._seen()

    def with_flexible(self, flexible: Mapping[str, Any] | None) -> JointForceHistory:
        """Return the member of least elastic energy in joints of given stiffness, all others rigid."""
        return super().with_flexible(flexible)._seen()

    def _seen(self) -> JointForceHistory:
        """Return the same, no wrench being called unique in samples whose contacts nobody has examined."""
        return replace(self, unique=self.unique & self.examined[:, None, None])

    @property
    def contacts_unique(self) -> Array:
        """Per sample whether the forces of all contacts, friction of joints included, are unique, (N,)."""
        return self.examined & ~self.held.any(axis=1)

    def __getitem__(self, name: str) -> JointForce:
        """Return the wrench of a joint, loop, constraint or spring; of a contact the force, in world axes."""
        if name not in self.contacts:
            return super().__getitem__(name)
        load, (units, columns) = self.contacts[name], self.units[name]
        wrench = np.concatenate([load.force, np.zeros_like(load.force)], axis=1)
        family = np.zeros((*self.contact_family.shape[:2], 6))
        family[..., :3] = np.einsum("nrp,npc->nrc", self.contact_family[..., columns], units)
        largest = np.abs(self.contact_family).max(axis=2, initial=0.0)[..., None]
        level = np.maximum(np.vectorize(negligible_level, otypes=[float])(self.noise), self.noise)[:, None, None]
        unique = ~(np.abs(family) > level * largest).any(axis=1) & self.examined[:, None]
        return JointForce(name, "contact", load.child, load.parent, "world", wrench, 0.0 * wrench, unique, family)

    def __iter__(self) -> Iterator[str]:
        return iter((*self.names, *self.contacts))

    def __len__(self) -> int:
        return len(self.names) + len(self.contacts)

    @property
    def peaks(self) -> dict[str, Peak]:
        """Largest force and moment of every joint and contact, with their times."""
        return {name: self.peak(name) for name in self}

    def peak(self, name: str) -> Peak:
        """Return the largest force and moment of a joint, with their times; samples without an answer are left out."""
        load = self[name]
        sizes = [np.linalg.norm(part, axis=1) for part in (load.force, load.moment)]
        if not self.t.size or all(np.isnan(size).all() for size in sizes):
            return Peak(np.nan, np.nan, np.nan, np.nan)
        (i, j) = (int(np.nanargmax(size)) for size in sizes)
        return Peak(float(sizes[0][i]), float(self.t[i]), float(sizes[1][j]), float(self.t[j]))

    def peaks_to_csv(self, path: str | Path) -> None:
        """Write a line per joint and contact: its peaks with their times, its steady load, what is not unique."""
        open_ones = self.not_unique
        with Path(path).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(PEAK_HEADS)
            for name, peak in self.peaks.items():
                force, moment = self.peak_sizes[name]
                load, free = self.equivalent_load(name), ", ".join(open_ones.get(name, ()))
                times = (peak.force_time if force else "", peak.moment_time if moment else "")  # zero throughout: none
                writer.writerow((name, force, times[0], moment, times[1], load, free))

    @property
    def not_unique(self) -> dict[str, tuple[str, ...]]:
        """Per joint and contact that has any, its components that are open in some sample."""
        open_ones = super().not_unique
        for name in self.contacts:
            free = np.array(COMPONENTS)[~self[name].unique.all(axis=0)]
            open_ones |= {name: tuple(free.tolist())} if free.size else {}
        return open_ones

    def duty_cycle(self, name: str, levels: Any, what: str = "force") -> Array:
        """Return the share of the time for which the force (or "moment") of a joint is at least as large as levels."""
        size, weights = self._size(name, what)
        bounds = np.atleast_1d(floats(levels, "levels"))
        if np.isnan(bounds).any():
            raise ModelError("levels of a duty cycle must be numbers; one is nan")
        return np.array([weights[size >= level].sum() for level in bounds])

    def equivalent_load(self, name: str, exponent: float = 3.0, what: str = "force") -> float:
        """Return the steady load that wears a bearing as much: (mean of load^exponent)^(1/exponent) over time.

        The exponent of ISO 281 is 3 for ball bearings and 10/3 for roller bearings, at a steady speed.
        """
        if not exponent > 0.0:
            raise ModelError(f"exponent={exponent!r} must be positive; 3 is that of ball bearings")
        size, weights = self._size(name, what)
        largest = float(size.max(initial=0.0))
        if not largest > 0.0:
            return 0.0
        return largest * float((weights * (size / largest) ** exponent).sum()) ** (1.0 / exponent)

    def _size(self, name: str, what: str) -> tuple[Array, Array]:
        """Return the loads of the samples that have an answer, and the share of the time that each stands for."""
        _refuse_quantity(what)
        size = np.linalg.norm(getattr(self[name], what), axis=1)
        finite = np.isfinite(size)
        weights = np.where(finite, self._weights, 0.0)[finite]
        return size[finite], weights / weights.sum() if weights.sum() > 0.0 else weights

    @property
    def _weights(self) -> Array:
        """Share of the time that every sample stands for: half of the steps around it."""
        steps = np.diff(self.t)
        weights = np.zeros(self.t.size)
        weights[:-1] += steps / 2
        weights[1:] += steps / 2
        return weights / weights.sum() if weights.sum() > 0.0 else np.full(self.t.size, 1.0 / max(self.t.size, 1))

    @property
    def peak_sizes(self) -> dict[str, tuple[float, float]]:
        """The largest force (N) and moment (N m) of every joint; what is rounding beside the largest of all is zero."""
        peaks = self.peaks
        largest = [np.nanmax([peak[k] for peak in peaks.values()], initial=0.0) for k in (0, 2)]
        return {
            name: (
                0.0 if peak.force < SHOWN_FORCE * largest[0] else float(peak.force),
                0.0 if peak.moment < SHOWN_FORCE * largest[1] else float(peak.moment),
            )
            for name, peak in peaks.items()
        }

    def __str__(self) -> str:
        width = max((len(name) for name in self), default=5)
        head = f"{'':{width}}  {'peak force, N':>14}  {'at, s':>9}  {'peak moment, N m':>16}  {'at, s':>9}"
        head += f"  {'load, N':>10}"
        open_ones, lines = self.not_unique, []
        peaks, all_sizes = self.peaks, self.peak_sizes
        for name, peak in peaks.items():
            sizes = all_sizes[name]
            load = self.equivalent_load(name)
            mark = f"  not unique: {', '.join(open_ones[name])}" if name in open_ones else ""
            lines.append(
                f"{name:{width}}  {sizes[0]:>14.6g}  {_time(sizes[0], peak.force_time)}  {sizes[1]:>16.6g}  "
                f"{_time(sizes[1], peak.moment_time)}  {load:>10.5g}{mark}"
            )
        widest = float(np.diff(self.t).max(initial=0.0))
        samples = f"peaks are those of {self.t.size} samples, at most {widest:.3g} s apart"
        if self.t.size > 1 and widest > COARSE * float(self.t[-1] - self.t[0]):
            samples += "; larger ones may lie between them: every= (--every) asks for more samples"
        return "\n".join([head, *lines, samples, *([self.choice] if open_ones else [])])

    def plot(self, names: Sequence[str] | str | None = None, what: str = "force") -> Any:
        """Return a matplotlib figure: the size of the force, or "moment", of joints over time; all by default."""
        from dalembert.simulate.plots import figure_of_chart, joint_force_chart

        _refuse_quantity(what)
        return figure_of_chart(joint_force_chart(self, (names,) if isinstance(names, str) else names, what))


def _time(size: float, at: float) -> str:
    """Return the time of a peak as it is printed; what is zero throughout has none."""
    return f"{at:>9.5g}" if size else f"{'':9}"


def _refuse_quantity(what: str) -> None:
    if what not in ("force", "moment"):
        raise ModelError(f"what={what!r} is not one of 'force', 'moment'")


def joint_forces_of_run(run: Trajectory) -> JointForceHistory:
    """Return the wrenches of all samples of a mechanism's run."""
    m = run.moving
    if not isinstance(m, Mechanism):
        raise UnsupportedError(
            "joint forces are those of a Mechanism; a Lagrangian does not say what bodies are joined"
        )
    arrays = (run.q, run.v, run.acceleration, run.multipliers)
    finite = np.logical_and.reduce([np.isfinite(x).all(axis=1) for x in arrays])
    if run.method == "moreau" and finite.size > 1:
        finite[0] = False  # no step lies before it
    status = np.where(finite, int(Status.REDUNDANT), int(Status.NONFINITE))  # ranks of all samples are looked at
    q, v, a, lam = (np.where(finite[:, None], x, x[:1] if x is run.q else 0.0) for x in arrays)
    if (
        m.nv > LARGEST_SURVEYED and m.names
    ):  # too many for decompositions: what loops over the bodies say of each sample
        verdicts = np.asarray(m.forward(q, v, None, run.t).status)
        status = np.where(finite & (verdicts == Status.UNIQUE), int(Status.UNIQUE), status)
    motion = MotionSamples.of(m, q, v, a, lam, run.t, status, driving_forces(run))
    loads = contact_loads(run)
    closed = np.zeros(run.t.size, dtype=bool)
    if run.contacts and np.asarray(run.modes).size:
        closed = (np.asarray(run.modes).reshape(run.t.size, -1) != int(Mode.OPEN)).any(axis=1)
    free, units = (None, {}) if m.nv > LARGEST_SURVEYED else free_contact_forces(run, loads)
    examined = ~closed | (free is not None)
    outer = outer_forces(m, run.q, loads)
    forces = replace(motion, external=outer, contacts=free, torques=hinge_torques(run)).joint_forces()
    base = {field_.name: getattr(forces, field_.name) for field_ in fields(JointForces)}
    names = {x: name_beside(forces.names, "contact", x) for x in loads}
    unknown = np.zeros((run.t.size, 0, 3)), slice(0, 0)
    units = {names[x]: units.get(x, unknown) for x in loads}
    loads = {names[x]: load for x, load in loads.items()}
    history = JointForceHistory(**base, t=run.t, contacts=loads, units=units, examined=examined)._seen()
    alone = history.contacts_unique
    if alone.all():
        return history
    why = "one answer of many" if examined.all() else "not examined: the mechanism is large"
    return replace(
        history,
        choice=f"but for the contacts {forces.choice}; in {int((~alone).sum())} of {alone.size} samples the forces of "
        f"contacts are {why}, and so are wrenches that go with them",
    )


def driving_forces(run: Trajectory) -> Array | None:
    """Return the applied forces along the coordinates at the samples, (N, nv); None where a file could not keep them.

    Where an instant has two samples, the first has the limit from before it and the second that from behind it.
    """
    m = run.moving
    if run.solution is not None:
        names, tau = run.solution.known_names, np.zeros((run.t.size, m.nv))
        for j, name in enumerate(m.coordinates):
            if f"tau {name}" in names:
                tau[:, j] = run.solution[f"tau {name}"]
        return tau
    if run.session is None or run.session.extra.get("controller missing"):
        return None
    forces = Forces(run.session.controller)
    t, twice = run.t.copy(), np.flatnonzero(np.diff(run.t) == 0.0)
    t[twice], t[twice + 1] = np.nextafter(t[twice], -np.inf), np.nextafter(t[twice + 1], np.inf)
    tau = [forces(float(t[k]), run.q[k], run.v[k]) for k in range(t.size)] if not forces.zero else []
    return np.array(tau) if tau else np.zeros((t.size, m.nv))


# ----------------------------------------------------------------------------------------------------------------------
# Impulses of joints at impacts.
#
# Symbols: Lam impulses of constraint rows, P of contacts, x of limits and of friction along coordinates (rows E).
#
#     M (v+ - v-) + A^T Lam - E^T x = W^T P         wrenches: the recursion at rest, without weight, with v+ - v- for a


@remembered(1)
def weightless(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism without gravity and springs: what impacts move."""
    return mechanism.with_gravity((0.0, 0.0, 0.0)).with_passive(False)


def joint_impulses_of_impact(run: Trajectory, row: int, impulses: dict[str, Array]) -> JointForces:
    """Return the impulsive wrenches (N s, N m s) of all joints in the impact whose state after it is sample `row`."""
    if not isinstance(run.moving, Mechanism):
        raise UnsupportedError(
            "joint impulses are those of a Mechanism; a Lagrangian does not say what bodies are joined"
        )
    m = run.moving
    q, t, after = run.q[row][None], float(run.t[row]), run.v[row]
    before = run.v[row - 1] if row and run.t[row - 1] == t else run.session.v
    loads = loads_at(run, q, {name: impulses.get(name, np.zeros(3))[None] for name in run.contacts})
    free, units = free_forces_at(run, loads, q, after[None], _modes_of_impulses(run, loads, q))
    outer, momentum = outer_forces(m, q, loads), -np.asarray(m.mass_matrix(q[0])) @ (after - before)
    for body, wrench in outer.items():
        momentum += along_coordinates(m, q, body, wrench[:, None])[0, 0]
    others = free.free[0].copy()  # limits, and friction along coordinates
    for _, columns in units.values():
        others[columns] = False
    A = np.asarray(m.jacobian(q[0], t)).reshape(-1, m.nv)
    lam = np.linalg.lstsq(np.vstack([A, -free.rows[0][others]]).T, momentum, rcond=digits_of(m))[0][: len(A)]
    motion = MotionSamples.of(weightless(m), q[0], 0.0 * after, after - before, lam, t, int(Status.REDUNDANT))
    return replace(motion, external=outer, contacts=free).joint_forces()


def _modes_of_impulses(run: Trajectory, loads: dict[str, ContactLoad], q: Array) -> Array:
    """Return what contacts do in an impact, (1, k): impulses inside their cone stick; limits that are reached push."""
    modes, reached = np.full((1, len(run.contacts)), int(Mode.SLIP)), limits_reached(run, q)
    for i, name in enumerate(run.contacts):
        if name in reached:
            modes[0, i] = int(Mode.STICK if reached[name][1][0] else Mode.OPEN)
        elif name in loads:
            P, n = loads[name].force[0], loads[name].normal[0]
            along = float(P @ n)
            sticks = np.linalg.norm(P - along * n) < (1.0 - INSIDE_CONE) * loads[name].friction * along
            modes[0, i] = int(Mode.OPEN if not along > 0.0 else Mode.STICK if sticks else Mode.SLIP)
    return modes
