"""Centre of mass, momentum and its rate, energy.

Symbols: m, h mass and first moment of all that moves, in the world; c = h / m centre of mass; p, L linear momentum and
angular momentum about the world's origin, L_c = L - c x p about the centre of mass; T, V kinetic and potential energy.

All of them are sums over links, carried inward to the ground as a force is (momentum) or as an inertia is (first
moments).
"""

from __future__ import annotations

from dalembert.errors import ModelError
from dalembert.kkt.expressions.scalars import add, mul, neg
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.algebra.rigid import momentum as link_momentum
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algebra.vectors import NOTHING, ZERO, Vector, cross, dot, scale
from dalembert.tree.algorithms.inverse import accelerations, body_forces, joint_forces
from dalembert.tree.algorithms.kinematics import velocities
from dalembert.tree.prepared.configuration import Posed, inward, pair_add
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar


def first_moment(tree: Tree, posed: list[Posed]) -> tuple[float, Vector]:
    """Return m and h of everything that moves, in the world."""
    moments = [Rigid(link.inertia.m, link.inertia.h, NOTHING) for link in tree.links]

    def step(i: int, link: Posed, total: Rigid) -> Rigid:
        moved = link.rigid_out(total)
        return Rigid(moved.m, moved.h, NOTHING)

    _, ground = inward(posed, moments, Rigid(tree.still.m, tree.still.h, NOTHING), step, Rigid.add)
    return ground.m, ground.h


def center_of_mass(tree: Tree, posed: list[Posed]) -> Vector:
    """Return c = h / m, in the world."""
    m, h = first_moment(tree, posed)
    if m <= 0.0:
        raise ModelError(f"{tree.name!r} has no centre of mass: the bodies that move weigh {m:g} kg in all")
    return scale(1.0 / m, h)


def momentum(tree: Tree, posed: list[Posed], v: list[Scalar]) -> Pair:
    """Return p and L about the world's origin."""
    momenta = [
        link_momentum(link.inertia, *velocity) for link, velocity in zip(tree.links, velocities(posed, v), strict=True)
    ]
    return inward(posed, momenta, (ZERO, ZERO), lambda i, link, force: link.force_out(force), pair_add)[1]


def centroidal_momentum(tree: Tree, posed: list[Posed], v: list[Scalar]) -> list[Scalar]:
    """Return [p; L_c]."""
    p, L = momentum(tree, posed, v)
    return [*p, *vectors.difference(L, cross(center_of_mass(tree, posed), p))]


def centroidal_rate(tree: Tree, posed: list[Posed], v: list[Scalar], a: list[Scalar]) -> list[Scalar]:
    """Return d/dt [p; L_c] = [f; n - c x f], f and n the sums of inertial forces; dc/dt x p is zero."""
    forces = body_forces(tree, accelerations((0.0, 0.0, 0.0), posed, v, a))
    _, (f, n) = joint_forces(tree, posed, forces)
    return [*f, *vectors.difference(n, cross(center_of_mass(tree, posed), f))]


def center_velocity(tree: Tree, posed: list[Posed], v: list[Scalar]) -> Vector:
    """Return dc/dt = p / m."""
    m, _ = first_moment(tree, posed)
    if m <= 0.0:
        center_of_mass(tree, posed)
    return scale(1.0 / m, momentum(tree, posed, v)[0])


def energy(tree: Tree, posed: list[Posed], v: list[Scalar]) -> tuple[Scalar, Scalar]:
    """Return T = 1/2 sum (v . p + w . L) + 1/2 sum armature qd^2 and V = -g . h."""
    twice: Scalar = 0.0
    for link, (linear, w) in zip(tree.links, velocities(posed, v), strict=True):
        p, L = link_momentum(link.inertia, linear, w)
        twice = add(twice, add(dot(linear, p), dot(w, L)))
        for place, armature in enumerate(link.armature):
            speed = v[link.v + place]
            twice = add(twice, mul(armature, speed * speed))
    return mul(0.5, twice), neg(dot(tree.gravity, first_moment(tree, posed)[1]))
