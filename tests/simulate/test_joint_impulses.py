"""Impulsive wrenches of joints at impacts: against all bodies cut free, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from tests.reference.free_bodies import FreeBodies
from tests.simulate.test_uniqueness_of_contact_forces import linkage_on_the_floor


def cut_free(run, impact):
    """Return Newton's and Euler's equations of an impact: changes of velocity for accelerations, no weight."""
    m = run.moving.with_gravity((0, 0, 0))
    row = int(np.flatnonzero(run.t == impact.time)[-1])
    change = run.v[row] - run.v[row - 1]
    free = FreeBodies(m, run.q[row], np.zeros(m.nv), change)
    places = {name: load.place[row] for name, load in run.joint_forces.contacts.items()}
    child = {name: load.child for name, load in run.joint_forces.contacts.items()}
    for name, P in impact.impulses.items():
        k = m.body_index(child[name])
        lever = places[name] - free.p[k] - free.R[k] @ m.bodies[k].inertia.center
        free.b[6 * k : 6 * k + 6] -= np.append(P, np.cross(lever, P))
    free.x = np.linalg.lstsq(free.E, free.b, rcond=1e-10)[0]
    return free


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_double_pendulum_that_strikes_the_floor(friction):
    """Every wrench of an open chain is unique, and that of the bodies cut free; the hinge passes no moment on."""
    b = da.Builder("chain")
    for i in range(2):
        b.body(f"bar {i}", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.09, 0.09))
        b.joint(f"hinge {i}", "revolute", f"bar {i - 1}" if i else "world", f"bar {i}", axis=(0, 1, 0),
                position=(1.0, 0, 0) if i else (0, 0, 1.0))  # fmt: skip
    b.body("tool", mass=0.3, center=(0.1, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.joint("bolt", "fixed", "bar 1", "tool", position=(1.0, 0, 0))
    floor = da.Contact(da.Sphere("tool", 0.05), friction=friction, restitution=0.5)
    run = da.simulate(b.build(), 1.0, [0.1, 0.3], contacts=[floor], method="hybrid")
    impact = run.impacts[0]
    forces, free = impact.joint_impulses, cut_free(run, impact)
    assert free.imbalance < 1e-9
    np.testing.assert_allclose(forces.wrenches, free.wrenches(), atol=1e-9)
    assert np.abs(forces.wrenches).max() > 0.1
    assert abs(forces["hinge 0"].moment[1]) < 1e-9
    joints = forces.in_axes("world")
    np.testing.assert_allclose(
        joints["bolt"].force + sum(impact.impulses.values()), 0.3 * _jump(run, impact), atol=1e-9
    )


def _jump(run, impact):
    """Return the change of velocity of the tool's centre of mass."""
    row = int(np.flatnonzero(run.t == impact.time)[-1])
    J = run.moving.frame_jacobian(run.q[row], "tool", "local_world_aligned")
    R, _ = run.moving.kinematics(run.q[row], "tool")
    twist = J @ (run.v[row] - run.v[row - 1])
    return twist[:3] + np.cross(twist[3:], R @ [0.1, 0, 0])


def test_redundant_linkage_that_falls_onto_the_floor():
    """The components that are unique are those of the bodies cut free; the others differ by members of the family."""
    m, q, contacts = linkage_on_the_floor(0.0)
    lifted = m.assemble(q + np.array([0.05, 0.0, 0.0]), np.zeros(3), hold=["A"])
    run = da.simulate(m, 0.5, lifted.q, lifted.v, contacts=contacts[:1], method="hybrid")
    forces, free = run.impacts[0].joint_impulses, cut_free(run, run.impacts[0])
    assert free.imbalance < 1e-9
    np.testing.assert_array_equal(forces.unique, free.unique())
    np.testing.assert_allclose(forces.wrenches[forces.unique], free.wrenches()[forces.unique], atol=1e-8)
    away = (forces.wrenches - free.wrenches()).ravel()
    family = free.family().reshape(-1, away.size)
    np.testing.assert_allclose(family.T @ np.linalg.lstsq(family.T, away, rcond=None)[0], away, atol=1e-8)


def test_stop_of_a_joint_strikes_the_bearing():
    """A bar swings against its stop: centre of percussion; the impulse of the stop is a moment at the hinge."""
    b = da.Builder("door", gravity=(0, 0, 0))
    b.body("bar", mass=2.0, center=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    b.joint("hinge", "revolute", "world", "bar", axis=(0, 0, 1), limits=(-1.0, 1.0))
    run = da.simulate(b.build(), 1.0, [0.0], [3.0], contacts=[da.JointLimits()], method="hybrid")
    forces = run.impacts[0].joint_impulses
    assert "impact of hinge upper:" in str(run.impacts[0])
    np.testing.assert_allclose(run.impacts[0].impulses["hinge upper"], [0.7 * 3.0, 0, 0], rtol=1e-9)
    row = int(np.flatnonzero(run.t == run.impacts[0].time)[-1])
    change = float(run.v[row, 0] - run.v[row - 1, 0])
    assert change < -2.9
    np.testing.assert_allclose(forces["hinge"].force, [0, 2.0 * 0.5 * change, 0], atol=1e-9)
    np.testing.assert_allclose(forces["hinge"].moment, [0, 0, (0.2 + 2.0 * 0.25) * change], atol=1e-9)
    assert forces["hinge"].working[5] == pytest.approx(0.7 * change)


@pytest.mark.parametrize("options", [{"method": "hybrid"}, {"method": "moreau", "step": 2e-3}], ids=str)
def test_stop_that_bears_a_weight_has_a_force(options):
    """A bar lies on its stop: the moment of its weight, told under the limit's name and at the hinge."""
    b = da.Builder("flap")
    b.body("bar", mass=2.0, center=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    b.joint("hinge", "revolute", "world", "bar", axis=(0, 1, 0), limits=(-1.0, 0.3))
    run = da.simulate(b.build(), 0.5, contacts=[da.JointLimits()], **options)
    moment = 2.0 * 9.81 * 0.5 * np.cos(0.3)
    np.testing.assert_allclose(run["hinge upper"][-1], [moment, 0, 0], rtol=1e-4)
    assert run.joint_forces["hinge"].working[-1, 4] == pytest.approx(-moment, rel=1e-4)
