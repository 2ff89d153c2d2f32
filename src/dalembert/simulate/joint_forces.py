"""Joint forces along a run: loads of bearings over time, their peaks, their share of the time; contacts included.

The wrenches are those of the samples' accelerations, multipliers and contact forces, by one call of a kernel for all
samples (`model/mechanism/joint_forces.py`). A run with time stepping (`moreau`) has the mean forces of its steps: none
belong to its first sample, and those of a step with an impact grow as the step shrinks. Other runs leave impacts out;
`run.impacts` has them.

Contact forces are taken as they are. Which of them, and of the wrenches that go with them, are unique is decided for
constraint rows and contacts together, sample by sample (`model/mechanism/families.py`): a contact that sticks has free
forces in all directions, one that slides along one direction, a smooth one along its normal. Forces at the edge of
friction cones, which can change to one side only, count as free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, UnsupportedError
from dalembert.kkt.limits import negligible_level
from dalembert.model.mechanism.families import ContactForces
from dalembert.model.mechanism.joint_forces import COMPONENTS, JointForce, JointForces
from dalembert.model.mechanism.known_motion import MotionSamples
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.simulate.events.record import Mode
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.contact.shapes import ContactPair
    from dalembert.simulate.trajectory import Trajectory


RESTING, NEAR = 1e-6, 1e-3
"""Time steps: touching points that move along their normal by no more than this, m/s, over gaps of no more than this
part of the mechanism's size count as closed contacts, whatever their impulse is."""


class Peak(NamedTuple):
    """The largest force (N) and moment (N m) of a joint, with the times at which they come, seconds."""

    force: float
    force_time: float
    moment: float
    moment_time: float


class ContactLoad(NamedTuple):
    """A contact over time: its two bodies, force on the first, place and normal in world axes, (N, 3); gap, (N,)."""

    child: str
    parent: str
    force: Array
    place: Array
    normal: Array
    gap: Array
    friction: float


@dataclass(frozen=True, eq=False)
class JointForceHistory(JointForces):
    """Wrenches of a run's samples, (N, k, 6); beside joints, loops, constraints and springs also contacts by name.

    Attributes
    ----------
    t
        Times of the samples, seconds.
    contacts
        Loads of contacts by name.
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
        if name not in self.contacts or name in self.names:
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
        for name in self.contacts:
            free = np.array(COMPONENTS)[~self[name].unique.all(axis=0)]
            open_ones |= {name: tuple(free.tolist())} if free.size else {}
        for name, peak in self.peaks.items():
            load = self.equivalent_load(name)
            mark = f"  not unique: {', '.join(open_ones[name])}" if name in open_ones else ""
            lines.append(
                f"{name:{width}}  {peak.force:>14.6g}  {peak.force_time:>9.5g}  {peak.moment:>16.6g}  "
                f"{peak.moment_time:>9.5g}  {load:>10.5g}{mark}"
            )
        return "\n".join([head, *lines, *([self.choice] if open_ones else [])])

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
    loads = contact_loads(run)
    closed = np.zeros(run.t.size, dtype=bool)
    if run.contacts and np.asarray(run.modes).size:
        closed = (np.asarray(run.modes).reshape(run.t.size, -1) != int(Mode.OPEN)).any(axis=1)
    free, units = (None, {}) if m.nv > LARGEST_SURVEYED else free_contact_forces(run, loads)
    examined = ~closed | (free is not None)
    forces = replace(known, external=outer_forces(m, run.q, loads), contacts=free).joint_forces()
    base = {each.name: getattr(forces, each.name) for each in fields(JointForces)}
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


def free_contact_forces(
    run: Trajectory, loads: dict[str, ContactLoad]
) -> tuple[ContactForces | None, dict[str, tuple[Array, slice]]]:
    """Return the directions in which contact forces are free to change, and those of contacts between shapes by name.

    Friction that has its limit, and depends on no reaction, is known; it is free where it holds. That of a row's
    reaction counts as free whatever it does.
    """
    m, N = run.moving, run.t.size
    modes = np.asarray(run.modes).reshape(N, -1)
    if not run.contacts or not modes.size:
        return None, {}
    along, units, rows, free = _rows_along_coordinates(run), {}, [], []
    external: dict[str, list[tuple[int, Array]]] = {}
    columns = 0
    for i, name in enumerate(run.contacts):
        mode = modes[:, i]
        if name in loads:
            ends = _wrenches_of_unit_forces(m, run.q, loads[name])
            world = np.asarray(sum(_along_coordinates(m, run.q, body, wrench) for body, wrench in ends.items()))
            directions, holds = _directions(run, loads[name], mode, np.einsum("ncj,nj->nc", world, run.v))
            units[name] = directions, slice(columns, columns + 3)
            rows.append(directions @ world)
            for body, wrench in ends.items():
                external.setdefault(body, []).append((columns, directions @ wrench))
        else:
            part, whenever = along[name]
            rows.append(np.broadcast_to(part, (N, *part.shape)))
            holds = (mode == int(Mode.STICK)) | whenever
            holds = np.broadcast_to(holds[:, None], (N, len(part)))
        free.append(holds)
        columns += holds.shape[1]
    wrenches = {body: np.zeros((N, columns, 6)) for body in external}
    for body, parts in external.items():
        for first, wrench in parts:
            wrenches[body][:, first : first + wrench.shape[1]] = wrench
    rows, holds = np.nan_to_num(np.concatenate(rows, axis=1)), np.concatenate(free, axis=1)
    return ContactForces(rows, holds, wrenches), units


def _directions(run: Trajectory, load: ContactLoad, mode: Array, u: Array) -> tuple[Array, Array]:
    """Return the directions of a contact's free forces, (N, 3, 3) by rows, and which of them there are, (N, 3).

    u (N, 3) is the velocity of the touching point. Time steps call a contact open that has no impulse, though it may
    touch: one that is at rest and near counts as closed.
    """
    n = load.normal
    across = u - (u * n).sum(axis=1)[:, None] * n
    closed, slides = mode != int(Mode.OPEN), mode != int(Mode.STICK)
    if run.method == "moreau":
        at_rest = np.abs((u * n).sum(axis=1)) <= RESTING
        closed = closed | (at_rest & (load.gap <= NEAR * run.moving.reach))
        slides = np.where(mode == int(Mode.OPEN), np.linalg.norm(across, axis=1) > RESTING, slides)
    speed, size = (np.linalg.norm(x, axis=1)[:, None] for x in (across, load.force))
    law = n - load.friction * across / np.where(speed > 0.0, speed, 1.0)
    sliding = np.where(size > 0.0, load.force / np.where(size > 0.0, size, 1.0), law)
    single = slides | (load.friction == 0.0)
    directions = np.tile(np.eye(3), (len(mode), 1, 1))
    directions[single, 0] = np.where(load.friction == 0.0, n, sliding)[single]
    return np.nan_to_num(directions), np.stack([closed, closed & ~single, closed & ~single], axis=1)


def _wrenches_of_unit_forces(m: Mechanism, q: Array, load: ContactLoad) -> dict[str, Array]:
    """Return the wrenches of unit forces along the world's axes at a contact on its bodies, (N, 3, 6)."""
    found, units = {}, np.tile(np.eye(3), (len(q), 1, 1))
    for body, sign in ((load.child, 1.0), (load.parent, -1.0)):
        if body != m.ground:
            arm = np.nan_to_num(load.place - m.kinematics(q, body)[1])[:, None, :]
            wrench = sign * np.concatenate([units, np.cross(arm, units)], axis=2)
            found[body] = found.get(body, 0.0) + wrench
    return found


def _along_coordinates(m: Mechanism, q: Array, body: str, wrenches: Array) -> Array:
    """Return wrenches (N, p, 6) on a body as forces along the coordinates, (N, p, nv)."""
    return wrenches @ np.asarray(m.frame_jacobian(q, body, "local_world_aligned"))


def _rows_along_coordinates(run: Trajectory) -> dict[str, tuple[Array, Any]]:
    """Return rows (w, nv) of contacts that act along coordinates, and where they are free whether they stick or not."""
    from dalembert.friction import Coulomb
    from dalembert.simulate.contact.equations import rubbing_rows, split_contacts
    from dalembert.simulate.contact.shapes import pairs_of

    m, unit = run.moving, np.eye(run.moving.nv)
    found: dict[str, tuple[Array, Any]] = {f"friction of {x}": (unit[[j]], False) for j, x in enumerate(m.coordinates)}
    shapes, rubbing = split_contacts(None if run.session is None else run.session.extra.get("contacts"))
    for pair in pairs_of(m, shapes) if shapes else ():
        if pair.ball is None:  # a limit of a joint
            place, velocity = pair.coordinate
            reached = np.asarray(run.modes)[:, run.contacts.index(pair.name)] != int(Mode.OPEN)
            if run.method == "moreau":
                near = pair.sign * (run.q[:, place] - pair.bound) <= NEAR
                reached = reached | (near & (np.abs(run.v[:, velocity]) <= RESTING))
            found[pair.name] = unit[[velocity]], reached
    for one in rubbing:
        found[one.name] = rubbing_rows(m, one).rows, isinstance(one, Coulomb)
    return found


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
        gap = (normal * centre).sum(axis=1) - ground.offset - ball.radius
    elif other is not None:
        R2, p2 = m.kinematics(run.q, other.frame)
        line = centre - p2 - R2 @ np.array(other.at)
        distance = np.linalg.norm(line, axis=1)
        normal = line / np.maximum(distance, np.finfo(float).tiny)[:, None]
        gap = distance - ball.radius - other.radius
        parent = m.frame(other.frame).body
    else:
        places = [_on_field(ground, pair.slot, c, ball.radius) for c in centre]
        gap, normal = np.array([each[0] for each in places]), np.array([each[1] for each in places])
    place = centre - ball.radius * normal
    return ContactLoad(m.frame(ball.frame).body, parent, force, place, normal, gap, pair.friction)


def _on_field(ground: Any, slot: int, centre: Array, radius: float) -> tuple[float, Array]:
    """Return gap and normal of a heightfield where a sphere touches it."""
    if slot < 0:
        return ground.below(centre, radius)[:2]
    distances, normals, _ = ground.nearest(centre, radius)
    return float(distances[slot]) - radius, normals[slot]


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
