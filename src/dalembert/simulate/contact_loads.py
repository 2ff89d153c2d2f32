"""Contacts of a run as forces on bodies: where they act, and in which directions they are free to change.

A contact that sticks has free forces in all directions, one that slides along one direction, a smooth one along its
normal. Forces at the edge of friction cones, which can change to one side only, count as free. Limits and friction of
joints act along coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.model.mechanism.families import FreeContactForces
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.transmissions import LoopMotion
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import LOCATED_GAP, SEEN_AT_REST, STEPPED_GAP
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.contact.scene import CollisionScene
    from dalembert.simulate.contact.shapes import ContactPair
    from dalembert.simulate.trajectory import Trajectory


def no_gap(run: Trajectory) -> float:
    """Return the part of the mechanism's size that counts as no gap."""
    return STEPPED_GAP if run.method == "moreau" else LOCATED_GAP


class TouchingPoint(NamedTuple):
    """A place where two shapes touch: their pair, bodies, place and normal (3,) in world axes, gap in metres.

    The normal points from the first body to the second; `force` (3,) is that of all points of the pair on the second
    body, `mode` says whether it sticks or slides.
    """

    pair: str
    bodies: tuple[str, str]
    place: Array
    normal: Array
    gap: float
    force: Array
    mode: Mode


def touching_points(run: Trajectory, t: float) -> tuple[TouchingPoint, ...]:
    """Return where the shapes of a run touch at the sample nearest to t."""
    from dalembert.simulate.contact.contact_system import scene_of_contacts

    scene = None if run.session is None else scene_of_contacts(run.session.extra.get("contacts"))
    if scene is None:
        return ()
    i = int(np.abs(run.t - t).argmin())
    found, who = scene.detect(run.q[i], STEPPED_GAP * run.moving.reach)
    first, points = len(run.contacts) - len(scene.pairs), []
    modes = np.asarray(run.sample("modes"))[i]
    for row, (k, *_) in zip(found, who, strict=True):
        if run.sample("contact_points")[i, first + k]:
            name = run.contacts[first + k]
            one, other = (scene.shapes[j].body for j in scene.pairs[k])
            force = run.forces[i, run.contact_columns[name]]
            points.append(
                TouchingPoint(name, (one, other), row[:3], row[3:6], float(row[6]), force, Mode(modes[first + k]))
            )
    return tuple(points)


class ContactLoad(NamedTuple):
    """A contact over time: its two bodies, force on the first, place and normal in world axes, (N, 3); gap, (N,).

    Shapes touch in several points: `place` is the centre of their forces, `moment` what these have about it, and the
    wrench is free to change in all directions where there are `points`.
    """

    child: str
    parent: str
    force: Array
    place: Array
    normal: Array
    gap: Array
    friction: float
    moment: Array | None = None
    points: Array | None = None


def contact_loads(run: Trajectory) -> dict[str, ContactLoad]:
    """Return forces and places of the contacts between shapes at the samples of a run."""
    columns = run.contact_columns
    if not run.forces.shape[1]:  # a run that ended where it began has none
        return {}
    return loads_at(run, run.q, {name: run.forces[:, columns[name]] for name in run.contacts})


def loads_at(run: Trajectory, q: Array, forces: dict[str, Array]) -> dict[str, ContactLoad]:
    """Return the contacts between shapes at configurations (N, nq) with forces, or impulses, (N, 3)."""
    if not run.contacts or run.session is None or run.session.extra.get("contacts") is None:
        return {}
    from dalembert.simulate.contact.contact_system import scene_of_contacts, split_contacts

    contacts = run.session.extra["contacts"]
    shapes, scene = split_contacts(contacts)[0], scene_of_contacts(contacts)
    if scene is not None and q is run.q:
        found = loads_of_scene(run, scene, forces)
        return found | (loads_at_shapes(run, q, forces, shapes) if shapes else {})
    return loads_at_shapes(run, q, forces, shapes) if shapes else {}


def loads_of_scene(run: Trajectory, scene: CollisionScene, forces: dict[str, Array]) -> dict[str, ContactLoad]:
    """Return the wrenches between shapes at the samples: force, centre, moment about it, on the second body of a pair.

    With the moment M about the world's origin: centre F x M / F^2, and what is left there is along F.
    """
    names, columns, loads = run.contacts[-len(scene.pairs) :], run.contact_columns, {}
    moments, points = run.sample("contact_moments"), run.sample("contact_points")
    for k, name in enumerate(names):
        F, M = forces[name], moments[:, columns[name]]
        count = points[:, run.contacts.index(name)]
        if not count.any():
            continue
        square = np.maximum((F * F).sum(axis=1), np.finfo(float).tiny)[:, None]
        centre = np.cross(F, M) / square
        one, other = (scene.shapes[i].body for i in scene.pairs[k])
        normal, gap = F / np.sqrt(square), np.where(count > 0, 0.0, np.inf)
        rest = M - np.cross(centre, F)
        loads[name] = ContactLoad(other, one, F, centre, normal, gap, float(scene.friction[k]), rest, count)
    return loads


def loads_at_shapes(run: Trajectory, q: Array, forces: dict[str, Array], shapes: list[Any]) -> dict[str, ContactLoad]:
    """Return the contacts of `da.Contact` at configurations with forces, or impulses."""
    from dalembert.simulate.contact.shapes import pairs_of
    from dalembert.simulate.contact.surface_loops import SLOTS

    pairs = {pair.name: pair for slots in (SLOTS, 0) for pair in pairs_of(run.moving, shapes, slots)}
    touching = [pairs[name] for name in run.contacts if name in pairs and pairs[name].ball is not None]
    return {pair.name: load_of_pair(run.moving, q, pair, forces[pair.name]) for pair in touching}


def load_of_pair(m: Mechanism, q: Array, pair: ContactPair, force: Array) -> ContactLoad:
    """Return the force on the sphere of a pair and the place where it touches."""
    from dalembert.simulate.contact.shapes import Plane

    ball, other, ground = pair.ball, pair.other, pair.ground
    assert ball is not None
    R, p = m.kinematics(q, ball.frame)
    centre = p + R @ np.array(ball.at)
    parent = m.ground
    if isinstance(ground, Plane):
        normal = np.broadcast_to(np.asarray(ground.normal, dtype=float), centre.shape)
        gap = (normal * centre).sum(axis=1) - ground.offset - ball.radius
    elif other is not None:
        R2, p2 = m.kinematics(q, other.frame)
        line = centre - p2 - R2 @ np.array(other.at)
        distance = np.linalg.norm(line, axis=1)
        normal = line / np.maximum(distance, np.finfo(float).tiny)[:, None]
        gap = distance - ball.radius - other.radius
        parent = m.frame(other.frame).body
    else:
        places = [_on_field(ground, pair.slot, c, ball.radius) for c in centre]
        gap, normal = np.array([nearest[0] for nearest in places]), np.array([nearest[1] for nearest in places])
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
                moment = moment if load.moment is None else moment + sign * load.moment
                sums[body] = sums.get(body, 0.0) + np.concatenate([sign * load.force, moment], axis=1)
    return {body: np.nan_to_num(wrench) for body, wrench in sums.items()}


# ----------------------------------------------------------------------------------------------------------------------
# Directions in which contact forces are free to change.


def free_contact_forces(
    run: Trajectory, loads: dict[str, ContactLoad]
) -> tuple[FreeContactForces | None, dict[str, tuple[Array, slice]]]:
    """Return the directions in which contact forces are free to change, and those of contacts between shapes by name.

    Friction that has its limit, and depends on no reaction, is known; it is free where it holds. So is that of
    bearings: a run goes on where their loads determine it alone. Friction of a row's reaction counts as free whatever
    it does.
    """
    modes = np.asarray(run.modes).reshape(run.t.size, -1)
    if not run.contacts or not modes.size:
        return None, {}
    return free_forces_at(run, loads, run.q, run.v, modes)


def free_forces_at(
    run: Trajectory, loads: dict[str, ContactLoad], q: Array, v: Array, modes: Array
) -> tuple[FreeContactForces, dict[str, tuple[Array, slice]]]:
    """Return free directions of contact forces, or impulses, at states (N, nq), (N, nv) with modes (N, k)."""
    m, N = run.moving, len(q)
    along, units, rows, free = _rows_along_coordinates(run, q, v, modes), {}, [], []
    hinges = rubbing_hinges(run)
    external: dict[str, list[tuple[int, Array]]] = {}
    columns, torques = 0, dict[str, int]()
    for i, name in enumerate(run.contacts):
        mode = modes[:, i]
        if name in loads:
            ends = _wrenches_of_unit_forces(m, q, loads[name])
            world = np.asarray(sum(along_coordinates(m, q, body, wrench) for body, wrench in ends.items()))
            near = no_gap(run) * m.reach
            directions, holds = _directions(loads[name], mode, np.einsum("ncj,nj->nc", world[:, :3], v), near)
            units[name] = directions[:, :3, :3], slice(columns, columns + 3)
            rows.append(directions @ world)
            for body, wrench in ends.items():
                external.setdefault(body, []).append((columns, directions @ wrench))
        else:
            part, whenever = along.get(name, (np.zeros((1, m.nv)), False))  # shapes that never touch
            rows.append(np.broadcast_to(part, (N, *part.shape[-2:])))
            holds = (mode == int(Mode.STICK)) | whenever
            holds = np.broadcast_to(holds[:, None], (N, part.shape[-2]))
            for body, wrench in hinges[name].wrenches(m, q, np.ones(N)).items() if name in hinges else ():
                external.setdefault(body, []).append((columns, wrench[:, None]))
                torques[hinges[name].at.name] = columns
        free.append(holds)
        columns += holds.shape[1]
    wrenches = {body: np.zeros((N, columns, 6)) for body in external}
    for body, parts in external.items():
        for first, wrench in parts:
            wrenches[body][:, first : first + wrench.shape[1]] = wrench
    rows, holds = np.nan_to_num(np.concatenate(rows, axis=1)), np.concatenate(free, axis=1)
    return FreeContactForces(rows, holds, wrenches, torques), units


def _directions(load: ContactLoad, mode: Array, u: Array, near: float) -> tuple[Array, Array]:
    """Return the directions of a contact's free forces, (N, 3, 3) by rows, and which of them there are, (N, 3).

    u (N, 3) is the velocity of the touching point. A contact without force is called open, though it may touch: one
    that is at rest and near counts as closed.
    """
    if load.points is not None:  # several points: any wrench, a point any force
        holds = np.stack([load.points > 0] * 3 + [load.points > 1] * 3, axis=1)
        return np.tile(np.eye(6), (len(mode), 1, 1)), holds
    n = load.normal
    across = u - (u * n).sum(axis=1)[:, None] * n
    opened = mode == int(Mode.OPEN)
    touches = (np.abs((u * n).sum(axis=1)) <= SEEN_AT_REST) & (load.gap <= near)
    closed = ~opened | touches
    slides = np.where(opened, np.linalg.norm(across, axis=1) > SEEN_AT_REST, mode != int(Mode.STICK))
    speed, size = (np.linalg.norm(x, axis=1)[:, None] for x in (across, load.force))
    law = n - load.friction * across / np.where(speed > 0.0, speed, 1.0)
    sliding = np.where(size > 0.0, load.force / np.where(size > 0.0, size, 1.0), law)
    single = slides | (load.friction == 0.0)
    directions = np.tile(np.eye(3), (len(mode), 1, 1))
    directions[single, 0] = np.where(load.friction == 0.0, n, sliding)[single]
    return np.nan_to_num(directions), np.stack([closed, closed & ~single, closed & ~single], axis=1)


def _wrenches_of_unit_forces(m: Mechanism, q: Array, load: ContactLoad) -> dict[str, Array]:
    """Return the wrenches of unit forces along the world's axes at a contact on its bodies, (N, 3, 6).

    Of shapes those of unit moments as well, (N, 6, 6).
    """
    wrenches, units = {}, np.tile(np.eye(3), (len(q), 1, 1))
    turns = np.concatenate([np.zeros_like(units), units], axis=2)
    for body, sign in ((load.child, 1.0), (load.parent, -1.0)):
        if body != m.ground:
            arm = np.nan_to_num(load.place - m.kinematics(q, body)[1])[:, None, :]
            wrench = sign * np.concatenate([units, np.cross(arm, units)], axis=2)
            wrench = wrench if load.points is None else np.concatenate([wrench, sign * turns], axis=1)
            wrenches[body] = wrenches.get(body, 0.0) + wrench
    return wrenches


def along_coordinates(m: Mechanism, q: Array, body: str, wrenches: Array) -> Array:
    """Return wrenches (N, p, 6) on a body as forces along the coordinates, (N, p, nv)."""
    return wrenches @ np.asarray(m.frame_jacobian(q, body, "local_world_aligned"))


def _rows_along_coordinates(run: Trajectory, q: Array, v: Array, modes: Array) -> dict[str, tuple[Array, Any]]:
    """Return rows (w, nv) or (N, w, nv) of contacts along velocities, and where they are free, sticking or not."""
    from dalembert.friction import Coulomb
    from dalembert.simulate.contact.contact_system import rubbing_rows, split_contacts

    m, unit = run.moving, np.eye(run.moving.nv)
    rows: dict[str, tuple[Array, Any]] = {f"friction of {x}": (unit[[j]], False) for j, x in enumerate(m.coordinates)}
    for name, (j, near) in limits_reached(run, q).items():
        closed = modes[:, run.contacts.index(name)] != int(Mode.OPEN)
        rows[name] = unit[[j]], closed | (near & (np.abs(v[:, j]) <= SEEN_AT_REST))
    _, rubbing = split_contacts(None if run.session is None else run.session.extra.get("contacts"))
    for rubbing_contact in rubbing:
        rows[rubbing_contact.name] = rubbing_rows(m, rubbing_contact).at(m, q), isinstance(rubbing_contact, Coulomb)
    return rows


def rubbing_hinges(run: Trajectory) -> dict[str, LoopMotion]:
    """Return the hinges that close loops and have dry friction, by contact."""
    from dalembert.simulate.contact.contact_system import rubbing_rows, split_contacts

    _, rubbing = split_contacts(None if run.session is None else run.session.extra.get("contacts"))
    if not isinstance(run.moving, Mechanism):
        return {}
    several = {rubbing_contact.name: rubbing_rows(run.moving, rubbing_contact).hinge for rubbing_contact in rubbing}
    return {name: hinge for name, hinge in several.items() if hinge is not None}


def hinge_torques(run: Trajectory) -> dict[str, Array]:
    """Return the friction of hinges that close loops at the samples, (N,), by the hinge's name."""
    sums: dict[str, Array] = {}
    for contact, hinge in rubbing_hinges(run).items() if run.forces.shape[1] else ():
        torque = np.nan_to_num(run.forces[:, run.contact_columns[contact]].reshape(run.t.size, -1)[:, 0])
        sums[hinge.at.name] = sums.get(hinge.at.name, 0.0) + torque
    return sums


def limits_reached(run: Trajectory, q: Array) -> dict[str, tuple[int, Array]]:
    """Return per limit of a joint the number of its velocity, and where it is reached, (N,)."""
    from dalembert.simulate.contact.contact_system import split_contacts
    from dalembert.simulate.contact.shapes import pairs_of

    shapes, _ = split_contacts(None if run.session is None else run.session.extra.get("contacts"))
    limits = [pair for pair in (pairs_of(run.moving, shapes) if shapes else ()) if pair.ball is None]
    near = no_gap(run)
    return {x.name: (x.coordinate[1], x.sign * (q[:, x.coordinate[0]] - x.bound) <= near) for x in limits}
