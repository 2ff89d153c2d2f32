"""Joint forces along a run: loads of bearings over time, their peaks, their share of the time; contacts included.

The wrenches are those of the samples' accelerations, multipliers and contact forces, by one call of a kernel for all
samples (`model/mechanism/joint_forces.py`). A run with time stepping (`moreau`) has the mean forces of its steps: none
belong to its first sample, and those of a step with an impact grow as the step shrinks. Other runs leave impacts out;
`run.impacts` has them.

Contact forces are taken as they are. Where they are not unique, or nobody has looked, no wrench is called unique.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.mechanism.joint_forces import COMPONENTS, JointForce, JointForces
from dalembert.model.mechanism.known_motion import MotionSamples
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.simulate.events.record import Mode
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.contact.shapes import ContactPair
    from dalembert.simulate.trajectory import Trajectory


ROUNDING = 1e-12
"""Forces below this part of the largest are shown as zero: what they are is rounding."""


class Peak(NamedTuple):
    """The largest force (N) and moment (N m) of a joint, with the times at which they come, seconds."""

    force: float
    force_time: float
    moment: float
    moment_time: float


class ContactLoad(NamedTuple):
    """A contact over time: its two bodies, the force on the first, the place where it acts; world axes, (N, 3)."""

    child: str
    parent: str
    force: Array
    place: Array


@dataclass(frozen=True, eq=False)
class JointForceHistory(JointForces):
    """Wrenches of a run's samples, (N, k, 6); beside joints, loops, constraints and springs also contacts by name.

    Attributes
    ----------
    t
        Times of the samples, seconds.
    contacts
        Loads of contacts by name.
    contacts_unique
        Per sample whether the forces of all contacts are unique, (N,).
    """

    t: Array = field(default_factory=lambda: np.zeros(0))
    contacts: dict[str, ContactLoad] = field(default_factory=dict, repr=False)
    contacts_unique: Array = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)

    def in_axes(self, axes: str) -> JointForceHistory:
        """Return the same wrenches in other axes: "child", "parent" or "world"."""
        turned = super().in_axes(axes)
        return replace(turned, unique=turned.unique & self.contacts_unique[:, None, None])

    def __getitem__(self, name: str) -> JointForce:
        """Return the wrench of a joint, loop, constraint or spring; of a contact the force, in world axes."""
        if name not in self.contacts or name in self.names:
            return super().__getitem__(name)
        load = self.contacts[name]
        wrench = np.concatenate([load.force, np.zeros_like(load.force)], axis=1)
        none, sure = np.zeros((len(wrench), 0, 6)), np.broadcast_to(self.contacts_unique[:, None], wrench.shape)
        return JointForce(name, "contact", load.child, load.parent, "world", wrench, 0.0 * wrench, sure, none)

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
        if what not in ("force", "moment"):
            raise ModelError(f"what={what!r} is not one of 'force', 'moment'")
        size = np.linalg.norm(getattr(self[name], what), axis=1)
        answered = np.isfinite(size)
        weights = np.where(answered, self._weights, 0.0)[answered]
        return size[answered], weights / weights.sum() if weights.sum() > 0.0 else weights

    @property
    def _weights(self) -> Array:
        """Share of the time that every sample stands for: half of the steps around it."""
        steps = np.diff(self.t)
        weights = np.zeros(self.t.size)
        weights[:-1] += steps / 2
        weights[1:] += steps / 2
        return weights / weights.sum() if weights.sum() > 0.0 else np.full(self.t.size, 1.0 / max(self.t.size, 1))

    def __str__(self) -> str:
        width = max((len(name) for name in self), default=5)
        head = f"{'':{width}}  {'peak force, N':>14}  {'at, s':>9}  {'peak moment, N m':>16}  {'at, s':>9}"
        head += f"  {'load, N':>10}"
        open_ones, lines = self.not_unique, []
        if not self.contacts_unique.all():
            open_ones |= dict.fromkeys(self.contacts, COMPONENTS[:3])
        peaks = self.peaks
        largest = [np.nanmax([peak[k] for peak in peaks.values()], initial=0.0) for k in (0, 2)]
        for name, peak in peaks.items():
            sizes = [0.0 if peak[k] < ROUNDING * most else peak[k] for k, most in zip((0, 2), largest, strict=True)]
            load = self.equivalent_load(name)
            mark = f"  not unique: {', '.join(open_ones[name])}" if name in open_ones else ""
            lines.append(
                f"{name:{width}}  {sizes[0]:>14.6g}  {peak.force_time:>9.5g}  {sizes[1]:>16.6g}  "
                f"{peak.moment_time:>9.5g}  {load:>10.5g}{mark}"
            )
        widest = float(np.diff(self.t).max(initial=0.0))
        samples = f"peaks are those of {self.t.size} samples, at most {widest:.3g} s apart"
        return "\n".join([head, *lines, samples, *([self.choice] if open_ones else [])])

    def plot(self, names: Sequence[str] | str | None = None, what: str = "force") -> Any:
        """Return a matplotlib figure: the size of the force, or "moment", of joints over time; all by default."""
        from dalembert.simulate.plots import figure_of_chart, joint_force_chart

        return figure_of_chart(joint_force_chart(self, (names,) if isinstance(names, str) else names, what))


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
    known = MotionSamples.of(m, q, v, a, lam, run.t, status)
    contacts = contact_loads(run)
    forces = replace(known, external=outer_forces(m, run.q, contacts)).joint_forces()
    base = {each.name: getattr(forces, each.name) for each in fields(JointForces)}
    alone = contacts_unique(run)
    if not alone.all():
        base["unique"] = forces.unique & alone[:, None, None]
        base["choice"] = (
            f"but for the contacts {forces.choice}; in {int((~alone).sum())} of {alone.size} samples the forces of "
            "contacts are one answer of many, or were not examined, and so are the wrenches that go with them"
        )
    return JointForceHistory(**base, t=run.t, contacts=contacts, contacts_unique=alone)


def contacts_unique(run: Trajectory) -> Array:
    """Return per sample whether the contacts, friction of joints included, leave no choice of their forces, (N,).

    From event to event the rows of the mode are ranked at every sample. Time steps rank nothing: there one contact of
    a mechanism without constraints is sure, and nothing else.
    """
    N = run.t.size
    if not run.contacts or np.asarray(run.modes).size == 0:
        return np.ones(N, dtype=bool)
    closed = (np.asarray(run.modes).reshape(N, -1) != int(Mode.OPEN)).sum(axis=1)
    if run.method == "moreau" or "contact_status" not in run.samples:
        return (closed == 0) | ((closed == 1) & (len(run.moving.names) == 0))
    return (closed == 0) | (np.asarray(run.samples["contact_status"]).reshape(N) == int(Status.UNIQUE))


def contact_loads(run: Trajectory) -> dict[str, ContactLoad]:
    """Return forces and places of the contacts between shapes; limits and friction of joints act along coordinates."""
    if not run.contacts or run.session is None or run.session.extra.get("contacts") is None:
        return {}
    from dalembert.simulate.contact.equations import split_contacts
    from dalembert.simulate.contact.shapes import pairs_of
    from dalembert.simulate.contact.surface_loops import SLOTS

    shapes, _ = split_contacts(run.session.extra["contacts"])
    if not shapes:
        return {}
    pairs = {pair.name: pair for slots in (SLOTS, 0) for pair in pairs_of(run.moving, shapes, slots)}
    touching = [pairs[name] for name in run.contacts if name in pairs and pairs[name].ball is not None]
    return {pair.name: _load(run, pair) for pair in touching}


def _load(run: Trajectory, pair: ContactPair) -> ContactLoad:
    """Return the force on the sphere of a pair and the place where it touches."""
    from dalembert.simulate.contact.shapes import Plane

    m, ball, other, ground = run.moving, pair.ball, pair.other, pair.ground
    assert ball is not None
    force = run.forces[:, run.contact_columns[pair.name]]
    R, p = m.kinematics(run.q, ball.frame)
    centre = p + R @ np.array(ball.at)
    parent = m.ground
    if isinstance(ground, Plane):
        normal = np.broadcast_to(np.asarray(ground.normal, dtype=float), centre.shape)
    elif other is not None:
        R2, p2 = m.kinematics(run.q, other.frame)
        line = centre - p2 - R2 @ np.array(other.at)
        normal = line / np.maximum(np.linalg.norm(line, axis=1), np.finfo(float).tiny)[:, None]
        parent = m.frame(other.frame).body
    else:
        normal = np.array([_field_normal(ground, pair.slot, c, ball.radius) for c in centre])
    return ContactLoad(m.frame(ball.frame).body, parent, force, centre - ball.radius * normal)


def _field_normal(ground: Any, slot: int, centre: Array, radius: float) -> Array:
    """Return the normal of a heightfield where a sphere touches it."""
    return ground.below(centre, radius)[1] if slot < 0 else ground.nearest(centre, radius)[1][slot]


def outer_forces(mechanism: Mechanism, q: Array, contacts: dict[str, ContactLoad]) -> dict[str, Array]:
    """Return the forces of contacts on bodies, (N, 6): world axes, about the bodies' origins."""
    sums: dict[str, Array] = {}
    for load in contacts.values():
        for body, sign in ((load.child, 1.0), (load.parent, -1.0)):
            if body != mechanism.ground:
                _, p = mechanism.kinematics(q, body)
                moment = np.cross(load.place - p, sign * load.force)
                sums[body] = sums.get(body, 0.0) + np.concatenate([sign * load.force, moment], axis=1)
    return {body: np.nan_to_num(wrench) for body, wrench in sums.items()}
