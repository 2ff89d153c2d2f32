"""The kernel of joint forces beside the methods: the same members and the same uniqueness, for every cut."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from tests.model import test_joint_forces as graphs
from tests.model.test_joint_forces import interpreted as interpreted
from tests.simulate import overconstrained

Z = (0, 0, 1)


def body_motion(graph):
    """Return rotations and angular velocities of all bodies in a batch of states of one motion, and its first state."""
    first = graph.built(graph.cuts()[0])
    q0, v0 = graphs.moving(first)
    states = [(q0, v0), first.project(first.integrate(q0, 0.2 * v0), v0)[:2]]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    R, w = {"world": np.tile(np.eye(3), (len(q), 1, 1))}, {"world": np.zeros((len(q), 3))}
    for body in first.bodies:
        R[body.name] = first.kinematics(q, body.name)[0].reshape(-1, 3, 3)
        w[body.name] = first.frame_velocity(q, v, body.name, "local_world_aligned").reshape(-1, 6)[:, 3:]
    return R, w


def coordinates(mechanism, R, w):
    """Return the coordinates and velocities of a motion of the bodies in a mechanism of hinges, however it is cut."""
    angles, speeds = [], []
    for joint in mechanism.joints:
        axis = np.array(joint.axis, float)
        across = np.linalg.svd(axis[None])[2][1]
        turned = np.einsum("nji,njk,k->ni", R[joint.parent], R[joint.child], across)
        angles.append(np.arctan2(turned @ np.cross(axis, across), turned @ across))
        relative = w[joint.child] - w[joint.parent]
        speeds.append(np.einsum("ni,nij,j->n", relative, R[joint.child], axis))
    return np.array(angles).T, np.array(speeds).T


def by_hinge(graph, table, values):
    """Return values (N, k, ...) of transmissions in the order of the graph's hinges, and the signs of their ends."""
    places = {at.name: i for i, at in enumerate(table)}
    signs = [1.0 if table[places[name]].child == graph.hinges[name][0] else -1.0 for name in graph.hinges]
    return values[:, [places[name] for name in graph.hinges]], np.array(signs)[:, None]


TWO_FLEXIBLE = {"head 0": (1e7, 1e5), "head 1": 1e7}


@pytest.mark.parametrize(
    ("make", "flexible"),
    [
        (graphs.bricard_graph, None),
        (graphs.five_bar_graph, None),
        (graphs.two_loop_graph, None),
        (graphs.two_loop_graph, TWO_FLEXIBLE),
    ],
    ids=["bricard", "five-bar", "two loops", "two loops, flexible"],
)
def test_the_kernel_takes_the_same_member_wherever_loops_are_cut(make, flexible, interpreted):
    """Per sample and component: what methods say, and the same for every cut and root."""
    graph, known = make(), None
    motion = body_motion(graph)
    cuts = graph.cuts()
    for cut in cuts[:: max(1, len(cuts) // 5)]:
        mechanism = graph.built(cut, swap=len(cut[0]) % 2 == 0)
        q, v = coordinates(mechanism, *motion)
        options = {"axes": "world", "flexible": flexible, "backend": "numpy"}
        W, a, lam, status, unique = mechanism.compile("joint_forces", **options)(
            q, v, np.zeros_like(v), np.zeros((2, 1))
        )
        forces = mechanism.joint_forces(q, v, axes="world", flexible=flexible)
        W, unique = W.reshape(forces.wrenches.shape), unique.reshape(forces.wrenches.shape)
        size = np.abs(forces.wrenches).max()
        assert (status[:, 0] == da.Status.REDUNDANT).all()
        np.testing.assert_allclose(W, forces.wrenches, atol=1e-10 * size)
        np.testing.assert_allclose(lam, forces.multipliers, atol=1e-10 * size)
        np.testing.assert_allclose(a, forces.acceleration, atol=1e-10 * np.abs(a).max())
        np.testing.assert_array_equal(unique, forces.unique)
        here, signs = by_hinge(graph, forces.table, W)
        alone, _ = by_hinge(graph, forces.table, unique)
        known = known or (signs * here, alone)
        np.testing.assert_allclose(signs * here, known[0], atol=1e-9 * size)
        np.testing.assert_array_equal(alone, known[1])
        assert 0 < alone.sum() < alone.size


def test_least_multipliers_are_taken_where_they_are_asked_for(interpreted):
    """A metric of rows chooses by rows; what is unique is the same, and both choices at once are refused."""
    m = overconstrained.bennett()
    q = m.assemble(m.neutral()).q
    state = q, np.zeros(m.nv), np.zeros(m.nv), np.zeros(1)
    by_rows = m.compile("joint_forces", metric=np.ones(len(m.names)), backend="numpy")(*state)
    alike = m.compile("joint_forces", backend="numpy")(*state)
    lam = m.compile("forward", backend="numpy")(*state)[1]
    np.testing.assert_allclose(by_rows[2], lam, atol=1e-9)
    alone = alike[4].astype(bool)
    np.testing.assert_array_equal(alone, by_rows[4].astype(bool))
    assert np.abs(alike[0] - by_rows[0])[~alone].max() > 1e-3 * np.abs(alike[0]).max()
    np.testing.assert_allclose(alike[0][alone], by_rows[0][alone], atol=1e-9)
    with pytest.raises(da.ModelError, match="not both"):
        m.compile("joint_forces", metric=np.ones(len(m.names)), flexible={"hinge": 1.0})


def test_members_that_no_wrench_shows_are_left_alone(interpreted):
    """Two equal gears beside a door on two hinges: the gears share alike, the door's hinges give way alike."""
    b = da.Builder("gears and a door")
    for i in range(2):
        b.body(f"wheel {i}", mass=1.0, center=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
        b.joint(f"hinge {i}", "revolute", parent="world", child=f"wheel {i}", axis=Z, position=(i, 0, 0))
    for name in ("mesh", "again"):
        b.couple(name, {"hinge 0": 1.0, "hinge 1": 2.0})
    b.body("leaf", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
    b.joint("lower", "revolute", parent="world", child="leaf", axis=Z)
    b.loop("upper", "revolute", "leaf", "world", placement=(0, 0, 1.8), other_placement=(0, 0, 1.8), axis=Z)
    m = b.build()
    q, v, tau = np.zeros(3), np.array([1.0, -0.5, 0.3]), np.array([3.0, 0.0, 0.0])
    W, _, lam, status, unique = m.compile("joint_forces", backend="numpy")(q, v, tau, np.zeros(1))
    forces = m.joint_forces(q, v, tau)
    assert int(status[0]) == da.Status.REDUNDANT
    np.testing.assert_allclose(W, forces.wrenches, atol=1e-11 * np.abs(W).max())
    np.testing.assert_array_equal(unique, forces.unique)
    mesh, again = (m.names.index(name) for name in ("mesh", "again"))
    assert lam[mesh] == pytest.approx(lam[again], rel=1e-12)
    assert abs(lam[mesh]) > 0.1


def test_a_sample_without_an_answer_has_no_unique_component(interpreted):
    m = overconstrained.bennett()
    q = np.array([m.assemble(m.neutral()).q, np.full(m.nq, np.nan)])
    kernel = m.compile("joint_forces", backend="numpy")
    status, unique = kernel(q, np.zeros((2, m.nv)), np.zeros((2, m.nv)), np.zeros((2, 1)))[3:]
    assert status[1, 0] == da.Status.NONFINITE
    assert unique[0].any()
    assert not unique[1].any()
