"""Random trees with random loops and contacts: the principles of mechanics, whatever the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.model import KINDS, Placement
from dalembert.tree.block import constrained
from dalembert.tree.routes.route_table import ROUTES
from tests.model.mechanisms import random_tree
from tests.tree.closed import Traced, numeric

FEW = settings(max_examples=max(settings().max_examples // 5, 1))
"""Every example traces dynamics anew."""

MOVING = [kind for kind in KINDS if kind != "fixed"]
LOOPS = (da.Point, da.Weld, da.Revolute, da.Prismatic, da.Cylindrical, da.Universal, da.Planar, da.PointOnLine)


def closed_state(seed):
    """Return a tree whose loops and contacts are closed at a configuration, and an admissible state there."""
    rng = np.random.default_rng(seed)
    mechanism = random_tree(seed, bodies=int(rng.integers(3, 6)), kinds=MOVING)
    q = mechanism.random(rng)
    kinematics = Traced(mechanism)
    count = len(mechanism.bodies)

    def pose(frame):
        R, p = kinematics("kinematics", q, frame=frame)
        return Placement(R, p)

    constraints = [LOOPS[rng.integers(2)](f"f{rng.integers(count)}", name="contact")]
    one, two = rng.choice(count, 2, replace=False)
    kind = LOOPS[rng.integers(len(LOOPS))]
    at = pose(f"f{two}").inverse() @ pose(f"f{one}")
    if kind is da.Universal:
        constraints.append(kind(f"f{one}", f"f{two}", at=at, axis=(1, 0, 0), axis2=(0, 1, 0), name="loop"))
    elif rng.random() < 0.3:
        length = float(np.linalg.norm(pose(f"f{two}").position - pose(f"f{one}").position))
        constraints.append(da.Distance(f"f{one}", f"f{two}", length=length, name="loop"))
    else:
        constraints.append(kind(f"f{one}", f"f{two}", at=at, name="loop"))
    mechanism = mechanism.constrain(*constraints)
    numbers = Traced(mechanism)
    A, v = numbers.A(q), rng.standard_normal(mechanism.nv)
    v -= np.linalg.pinv(A, rcond=1e-9) @ (A @ v)
    return mechanism, numbers, q, v, 5 * rng.standard_normal(mechanism.nv), rng


def free_motions(A):
    """Return a basis of the admissible velocities, (nv, f)."""
    _, s, Vt = np.linalg.svd(A)
    return Vt[np.count_nonzero(s > 1e-9 * max(s.max(), 1)) :].T


@FEW
@given(st.integers(0, 10**6), st.sampled_from(list(ROUTES)))
def test_principles(seed, route):
    """D'Alembert, Gauss, energy balance: for one random closed mechanism at a time."""
    mechanism, numbers, q, v, tau, rng = closed_state(seed)
    a, lam, status = numeric(constrained.forward(mechanism, route))(q, v, tau, 0)
    assert status in (da.Status.UNIQUE, da.Status.REDUNDANT), mechanism
    M, A, f = numbers.M(q), numbers.A(q), numbers.force(q, v, tau)
    size = np.abs(f).max() + np.abs(M @ a).max() + np.abs(lam).max()
    N = free_motions(A)

    # d'Alembert: what makes the motion differ from the free one does no work on admissible velocities
    np.testing.assert_allclose(N.T @ (f - M @ a), 0, atol=1e-9 * size)
    np.testing.assert_allclose(f - M @ a, A.T @ lam, atol=1e-9 * size)
    np.testing.assert_allclose(A @ a, -numbers.drift(q, v), atol=1e-8 * (1 + np.abs(A).max()) * (1 + np.abs(a).max()))

    # Gauss: among all admissible accelerations this is nearest to the free one, and Pythagoras holds
    free = np.linalg.solve(M, f)
    gap = (a - free) @ M @ (a - free)
    for _ in range(3):
        z = N @ rng.standard_normal(N.shape[1])
        other = (a + z - free) @ M @ (a + z - free)
        assert other >= gap * (1 - 1e-9)
        np.testing.assert_allclose(other, gap + z @ M @ z, rtol=1e-8, atol=1e-8 * (gap + z @ M @ z))

    # energy: along the motion it changes by the power of tau alone
    h = 1e-5

    def energy(sign):
        where = mechanism.integrate(q, sign * h * v + h * h / 2 * a)
        return np.sum(numbers("energy", where, v + sign * h * a))

    power = v @ tau
    scale = 1 + np.abs(v).max() * np.abs(tau).max() + np.sum(np.abs(numbers("energy", q, v))) + v @ M @ v + size
    np.testing.assert_allclose((energy(1) - energy(-1)) / (2 * h), power, atol=1e-6 * scale)


@FEW
@given(st.integers(0, 10**6))
def test_reordering_of_branches(seed):
    """Bodies added in another order: the same accelerations by name, the same multipliers."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice([kind for kind in MOVING if kind != "free"], 5)
    parents = [rng.integers(0, max(i, 1)) for i in range(5)]
    data = [(rng.uniform(0.5, 2), *rng.uniform(-0.5, 0.5, (3, 3)), rng.standard_normal(4)) for _ in range(5)]

    def built(order):
        b = da.Builder("tree")
        b.body("base", mass=3.0, inertia=(1, 1, 1))
        for i in order:
            mass, center, position, axis, rotation = data[i]
            b.body(f"b{i}", mass=mass, center=center, inertia=(0.5, 0.6, 0.7))
            parent = "base" if i == 0 else f"b{parents[i]}" if parents[i] != i else "base"
            b.joint(
                f"j{i}", str(kinds[i]), parent=parent, child=f"b{i}", axis=axis, position=position, rotation=rotation
            )
            b.frame(f"f{i}", f"b{i}", position=center)
        return b.build(base="floating").constrain(da.Point("f2"), da.Distance("f4", "f3", length=1.0))

    one, two = built(range(5)), built(rng.permutation(5))
    q, v, tau = one.random(rng), rng.standard_normal(one.nv), rng.standard_normal(one.nv)
    to_q = [one.configuration_names.index(name) for name in two.configuration_names]
    to_v = [one.coordinates.index(name) for name in two.coordinates]
    a, lam, status = numeric(constrained.forward(one, "efpa"))(q, v, tau, 0)
    b, mu, same = numeric(constrained.forward(two, "efpa"))(q[to_q], v[to_v], tau[to_v], 0)
    assert status == same
    np.testing.assert_allclose(b, a[to_v], atol=1e-9 * np.abs(a).max())
    np.testing.assert_allclose(mu, lam, atol=1e-9 * np.abs(lam).max())


def rooted(root, places):
    """Return four bodies in a row, joined by hinges, flying by the body `root`; a hinge seen from behind turns back."""
    b = da.Builder(f"rooted at {root}")
    for i in range(4):
        b.body(f"b{i}", mass=1.0 + i, center=(0.1 * i, 0.2, -0.1), inertia=(0.5, 0.6, 0.7))
        b.frame(f"f{i}", f"b{i}", position=(0.3, -0.2, 0.1 * i))
    b.joint("base", "free", parent="world", child=f"b{root}")
    for i, place in enumerate(places):
        if i >= root:
            ends = {"parent": f"b{i}", "child": f"b{i + 1}", "placement": place, "axis": (0, 0, 1)}
        else:
            ends = {"parent": f"b{i + 1}", "child": f"b{i}", "child_placement": place, "axis": (0, 0, -1)}
        b.joint(f"h{i}", "revolute", **ends)
    return b.build().constrain(da.Point("f0"), da.Revolute("f3", axis=(1, 0, 0)), da.Distance("f1", "f3", length=1.0))


@FEW
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_rerooting(seed, root):
    """The same mechanism, flying by another of its bodies: hinges accelerate alike, forces are the same."""
    rng = np.random.default_rng(seed)
    places = [Placement.from_quaternion(rng.standard_normal(4), rng.uniform(-1, 1, 3)) for _ in range(3)]
    one, two = rooted(0, places), rooted(root, places)
    q, v, tau = one.random(rng), rng.standard_normal(one.nv), rng.standard_normal(one.nv)
    tau[:6] = 0.0
    hinges = [f"h{i}" for i in range(3)]
    there = two.neutral()
    R, p = Traced(one)("kinematics", q, frame=f"b{root}")
    base = Placement(R, p)
    there[:7] = np.concatenate([base.position, base.quaternion()])
    speed, torque = np.zeros(two.nv), np.zeros(two.nv)
    speed[:6] = Traced(one)("velocity", q, v, frame=f"b{root}", reference="local")
    for hinge in hinges:
        there[two.index_q(hinge)] = q[one.index_q(hinge)]
        speed[two.index_v(hinge)] = v[one.index_v(hinge)]
        torque[two.index_v(hinge)] = tau[one.index_v(hinge)]
    a, lam, status = numeric(constrained.forward(one, "efpa"))(q, v, tau, 0)
    b, mu, same = numeric(constrained.forward(two, "efpa"))(there, speed, torque, 0)
    assert status == same == da.Status.UNIQUE
    for hinge in hinges:
        np.testing.assert_allclose(b[two.index_v(hinge)], a[one.index_v(hinge)], atol=1e-8 * np.abs(a).max())
    np.testing.assert_allclose(mu, lam, atol=1e-8 * np.abs(lam).max())
