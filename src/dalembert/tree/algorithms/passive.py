"""Springs and dampers, in joints and on a line between two frames; weights that are held up.

Symbols: k stiffness, c damping, l length of a spring and l' its rate, e the unit vector along it; e_q a joint's
deviation from rest. A spring pulls its two frames together with k (l - rest) + c l'; a joint's spring resists with k
e_q.

For rotations e_q is the rotation vector from the rest rotation to the joint's, in the child's axes; one stiffness
must then serve all three directions, else the force would not be the gradient of 1/2 e_q^T k e_q. Displacements of
planar and free joints are along the axes of the parent.
"""

from __future__ import annotations

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.kkt.expressions.scalars import add, atan2, copysign, fmax, fmin, is_zero, mul, sqrt, sub, total
from dalembert.model.limits import TINY_SQUARE
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.screws import Pair, Pose, Rotation
from dalembert.tree.algebra.vectors import ZERO, Vector, cross, dot, scale
from dalembert.tree.algorithms.kinematics import poses, vector, velocities
from dalembert.tree.prepared.configuration import Posed
from dalembert.tree.prepared.link import Link, Tree
from dalembert.types import Scalar


def joint_resistance(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar]) -> list[Scalar]:
    """Return damping v + spring force along every velocity: what passive joints take from tau."""
    tau: list[Scalar] = [0.0] * tree.nv
    for i, link in enumerate(tree.links):
        springs = _spring(link, posed[i], q[link.q :])
        for place, (damping, spring) in enumerate(zip(link.damping, springs, strict=True)):
            tau[link.v + place] = add(mul(damping, v[link.v + place]), spring)
    for terms, k, rest, c in tree.tendons:
        rate = total(*(mul(factor, v[place]) for _, place, factor in terms))
        pull = add(mul(k, _stretch(terms, rest, q)), mul(c, rate))
        for _, place, factor in terms:
            tau[place] = add(tau[place], mul(factor, pull))
    return tau


def _stretch(terms: tuple[tuple[int, int, float], ...], rest: tuple[float, float], q: list[Scalar]) -> Scalar:
    """Return how much longer a tendon is than its rest, or shorter (negative); zero while it is slack."""
    length = total(*(mul(factor, q[place]) for place, _, factor in terms))
    low, high = rest
    if low == high:
        return sub(length, low)
    return add(fmax(sub(length, high), 0.0), fmin(sub(length, low), 0.0))


def elastic_energy(tree: Tree, posed: list[Posed], q: list[Scalar]) -> Scalar:
    """Return the energy stored in all springs."""
    energy: Scalar = 0.0
    for link in tree.links:
        if not all(map(is_zero, link.stiffness)):
            for k, e in zip(link.stiffness, deviation(link, q[link.q :]), strict=True):
                energy = add(energy, mul(mul(0.5, k), e * e))
    for terms, k, rest, _ in tree.tendons:
        stretch = _stretch(terms, rest, q)
        energy = add(energy, mul(0.5 * k, stretch * stretch))
    world = poses(posed) if tree.springs or tree.lifts else []
    for name, mass, center in tree.lifts:
        i, place = tree.places[name]
        if i >= 0:
            p = vectors.columns_times(world[i].R, vector(place.rotation @ center + place.position))
            energy = add(energy, mul(mass, dot(vector(np.array(tree.gravity)), vectors.add(world[i].p, p))))
    for frame, other, k, rest, _ in tree.springs:
        length, _ = _line(_point(tree, world, frame), _point(tree, world, other))
        stretch = sub(length, rest)
        energy = add(energy, mul(mul(0.5, k), stretch * stretch))
    return energy


def lift_forces(tree: Tree, posed: list[Posed]) -> list[Pair]:
    """Return per link minus the force that holds up its weight, (f, n) about its origin; adds to what it needs."""
    forces: list[Pair] = [(ZERO, ZERO)] * len(tree.links)
    for name, (f, n) in lift_ends(tree, posed):
        i, _ = tree.places[name]
        if i >= 0:
            forces[i] = vectors.add(forces[i][0], f), vectors.add(forces[i][1], n)
    return forces


def lift_ends(tree: Tree, posed: list[Posed]) -> list[tuple[str, Pair]]:
    """Return per body whose weight is held up minus what does it, (f, n) in the frame of the link that it is on."""
    world = poses(posed) if tree.lifts else []
    ends = []
    for name, mass, center in tree.lifts:
        i, place = tree.places[name]
        g = vector(np.array(tree.gravity))
        f = scale(mass, g if i < 0 else vectors.transposed_times(world[i].R, g))
        ends.append((name, (f, cross(vector(place.rotation @ center + place.position), f))))
    return ends


def spring_forces(tree: Tree, posed: list[Posed], v: list[Scalar]) -> list[Pair]:
    """Return per link minus what springs between frames and lifts supply, (f, n) about its origin; adds to the need."""
    forces = lift_forces(tree, posed)
    for name, (f, n) in (end for ends in spring_ends(tree, posed, v) for end in ends):
        i, _ = tree.places[name]
        if i >= 0:
            forces[i] = vectors.add(forces[i][0], f), vectors.add(forces[i][1], n)
    return forces


def spring_ends(tree: Tree, posed: list[Posed], v: list[Scalar]) -> list[tuple[tuple[str, Pair], tuple[str, Pair]]]:
    """Return per spring between frames minus what it does at both, (f, n) in the frame of the link each is on."""
    if not tree.springs:
        return []
    world, speeds = poses(posed), velocities(posed, v)
    springs = []
    for frame, other, k, rest, c in tree.springs:
        length, e = _line(*(_point(tree, world, name) for name in (frame, other)))
        apart = vectors.difference(*(_speed(tree, world, speeds, name) for name in (other, frame)))
        pull = add(mul(k, sub(length, rest)), mul(c, dot(e, apart)))
        springs.append((_end(tree, world, frame, scale(-1.0, e), pull), _end(tree, world, other, e, pull)))
    return springs


def _end(tree: Tree, world: list[Pose], name: str, direction: Vector, pull: Scalar) -> tuple[str, Pair]:
    """Return a force along a direction of the world at a frame's origin, in the frame of the link that it is on."""
    i, place = tree.places[name]
    f = scale(pull, direction)
    f = f if i < 0 else vectors.transposed_times(world[i].R, f)
    return name, (f, cross(vector(place.position), f))


def _point(tree: Tree, world: list[Pose], name: str) -> Vector:
    """Return the origin of a frame in the world."""
    i, place = tree.places[name]
    p = vector(place.position)
    return p if i < 0 else vectors.add(world[i].p, vectors.columns_times(world[i].R, p))


def _speed(tree: Tree, world: list[Pose], speeds: list[Pair], name: str) -> Vector:
    """Return the velocity of a frame's origin, world axes."""
    i, place = tree.places[name]
    if i < 0:
        return ZERO
    v, w = speeds[i]
    return vectors.columns_times(world[i].R, vectors.add(v, cross(w, vector(place.position))))


def _line(start: Vector, end: Vector) -> tuple[Scalar, Vector]:
    """Return the length from start to end and the unit vector along it."""
    d = vectors.difference(end, start)
    length = sqrt(add(dot(d, d), TINY_SQUARE))
    return length, (d[0] / length, d[1] / length, d[2] / length)


def _spring(link: Link, posed: Posed, q: list[Scalar]) -> list[Scalar]:
    """Return the force of a joint's spring along its velocities."""
    if all(map(is_zero, link.stiffness)):
        return [0.0] * len(link.axes)
    forces = [mul(k, e) for k, e in zip(link.stiffness, deviation(link, q), strict=True)]
    if link.kind == "planar":
        x, y, _ = posed.path[-1].into((forces[0], forces[1], 0.0))
        return [x, y, forces[2]]
    if link.kind == "free":
        last = posed.path[-1]
        assert isinstance(last, Rotation)
        return [*last.into((forces[0], forces[1], forces[2])), *forces[3:]]
    return forces


def deviation(link: Link, q: list[Scalar]) -> list[Scalar]:
    """Return how far a joint is from where its spring is relaxed, one value for each velocity."""
    rest = link.rest
    if link.kind == "continuous":
        return [_angle(q[0], q[1], rest[0])]
    if link.kind == "planar":
        return [sub(q[0], rest[0]), sub(q[1], rest[1]), _angle(q[2], q[3], rest[2])]
    if link.kind == "spherical":
        return _rotation_vector(link, q[:4], rest, link.stiffness)
    if link.kind == "free":
        moved = [sub(x, r) for x, r in zip(q[:3], rest[:3], strict=True)]
        return [*moved, *_rotation_vector(link, q[3:7], rest[3:], link.stiffness[3:])]
    return [sub(q[0], rest[0])]


def _angle(c: Scalar, s: Scalar, rest: float) -> Scalar:
    """Return the angle of (c, s) less rest, within pi."""
    c0, s0 = float(np.cos(rest)), float(np.sin(rest))
    return atan2(sub(mul(c0, s), mul(s0, c)), add(mul(c0, c), mul(s0, s)))


def _rotation_vector(
    link: Link, q: list[Scalar], rest: tuple[float, ...], stiffness: tuple[float, ...]
) -> list[Scalar]:
    """Return log(rest^-1 q) for the quaternion q and the rotation vector `rest`, of length at most pi."""
    if len(set(stiffness)) > 1:
        raise UnsupportedError(
            f"joint {link.joint!r} has springs {stiffness} about its three axes; a ball joint's spring must be the "
            "same about all; use frames and springs between them instead"
        )
    a, b, c, d = _conjugate(rest)
    x, y, z, w = q
    vec = (
        total(mul(d, x), mul(a, w), mul(b, z), mul(-c, y)),
        total(mul(d, y), mul(b, w), mul(c, x), mul(-a, z)),
        total(mul(d, z), mul(c, w), mul(a, y), mul(-b, x)),
    )
    real = total(mul(d, w), mul(-a, x), mul(-b, y), mul(-c, z))
    n = sqrt(add(dot(vec, vec), TINY_SQUARE))
    size = copysign(1.0, real) * (2.0 * atan2(n, copysign(real, n)) / n)
    return [mul(size, component) for component in vec]


def _conjugate(rest: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Return the quaternion [x y z w] of the rotation vector -rest."""
    from scipy.spatial.transform import Rotation as Turn

    a, b, c, d = (float(x) for x in Turn.from_rotvec(-np.asarray(rest, dtype=float)).as_quat())
    return a, b, c, d
