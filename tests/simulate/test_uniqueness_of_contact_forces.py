"""Which contact forces and joint wrenches of a run are unique: rows and contacts together, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sla

import dalembert as da
from dalembert.simulate.events.record import Mode
from tests.reference.free_bodies import FreeBodies

MEANS = [{"method": "hybrid"}, {"method": "moreau", "step": 1e-3}]


def table(legs, friction):
    """Return a table on point feet around its centre, at rest, with the contacts of its feet."""
    b = da.Builder("table")
    b.body("table", mass=10.0, center=(0, 0, 0.7), inertia=(1, 1, 1))
    b.joint("flight", "free", "world", "table")
    places = [(np.cos(a), np.sin(a), 0.0) for a in 2 * np.pi * np.arange(legs) / legs + 0.1]
    for i, place in enumerate(places):
        b.frame(f"foot {i}", "table", position=place)
    feet = [da.Contact(da.Sphere(f"foot {i}"), friction=friction) for i in range(legs)]
    return b.build(), feet, np.array(places)


def brute_force(columns):
    """Return which entries of x in E x = b are the same in all solutions, by the null space of E."""
    null = sla.null_space(np.array(columns).T)
    return np.linalg.norm(null, axis=1) < 1e-10, null.shape[1]


@pytest.mark.parametrize("options", MEANS, ids=str)
@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("legs", [3, 4])
def test_table_on_its_legs(legs, friction, options):
    """Three legs carry what is determined, four do not; feet that stick may push against each other."""
    m, feet, places = table(legs, friction)
    run = da.simulate(m, 0.01, contacts=feet, **options)
    forces = run.joint_forces
    axes = np.eye(3)[2:] if friction == 0.0 else np.eye(3)
    alone, several = brute_force([np.append(e, np.cross(p, e)) for p in places for e in axes])
    assert forces.held[-1].sum() == several
    for i, name in enumerate(forces.contacts):
        expected = np.ones(3, dtype=bool)
        expected[3 - len(axes) :] = alone[i * len(axes) : (i + 1) * len(axes)]
        np.testing.assert_array_equal(forces[name].unique[-1, :3], expected)
        assert forces[name].force[-1, 2] == pytest.approx(98.1 / legs, rel=1e-6) or legs == 4
    assert forces["flight"].unique[-1].all()  # nothing passes through it
    assert forces.contacts_unique[-1] == (several == 0)


@pytest.mark.parametrize("options", MEANS, ids=str)
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_block_on_two_feet_in_the_plane(speed, options):
    """Two equations of forces, one of moments: two normals and the guide's forces; sticking adds two and more."""
    b = da.Builder("block")
    b.body("block", mass=2.0, center=(0, 0, 0.3), inertia=(0.1, 0.1, 0.1))
    b.body("slide", mass=0.0, inertia=(0, 0, 0))
    b.body("lift", mass=0.0, inertia=(0, 0, 0))
    b.joint("x", "prismatic", "world", "slide", axis=(1, 0, 0))
    b.joint("z", "prismatic", "slide", "lift", axis=(0, 0, 1))
    b.joint("turn", "revolute", "lift", "block", axis=(0, 1, 0))
    for i, x in enumerate((-0.5, 0.5)):
        b.frame(f"foot {i}", "block", position=(x, 0, 0))
    m = b.build()
    feet = [da.Contact(da.Sphere(f"foot {i}"), friction=0.3) for i in range(2)]
    run = da.simulate(m, 0.01, v=[speed, 0.0, 0.0], contacts=feet, **options)
    forces = run.joint_forces.in_axes("world")
    slides = speed > 0.0
    for name in run.contacts:
        np.testing.assert_array_equal(forces[name].unique[-1, :3], [slides, slides, True])
    assert forces["turn"].unique[-1, [0, 2, 4]].all()  # x, z and about y: joints of the plane have none of these
    assert forces["turn"].unique[-1].all() == slides
    assert forces.contacts_unique[-1] == slides


def linkage_on_the_floor(friction):
    """Return a four-bar, redundant across its plane, whose coupler and rocker rest on smooth or rough points."""
    b = da.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.5), ("coupler", 1.0), ("rocker", 0.8)):
        b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(1e-3, 0.1, 0.1))
    axis = (0, 0, 1)
    b.joint("A", "revolute", "world", "crank", axis=axis)
    b.joint("B", "revolute", "crank", "coupler", axis=axis, position=(0.5, 0, 0))
    b.joint("D", "revolute", "world", "rocker", axis=axis, position=(1.1, 0, 0))
    b.loop("C", "revolute", "coupler", "rocker", placement=(1.0, 0, 0), other_placement=(0.8, 0, 0), axis=axis)
    m = b.build()
    q = m.assemble([1.0, 0.5, 2.0], [0.0, 0.0, 0.0]).q
    contacts = []
    for body in ("coupler", "rocker"):
        R, p = m.kinematics(q, body)
        height = (p + R @ [0.4, 0, 0])[1]
        plane = da.Plane((0, 1, 0), float(height))
        contacts.append(da.Contact(da.Sphere(body, 0.0, (0.4, 0, 0)), plane, friction=friction, name=f"under {body}"))
    return m, q, contacts


@pytest.mark.parametrize("options", MEANS, ids=str)
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_redundant_loops_beside_contacts(friction, options):
    """Against all bodies cut free, contact forces among the unknowns: the null space says what is unique."""
    m, q, contacts = linkage_on_the_floor(friction)
    run = da.simulate(m, 0.004, q, contacts=contacts, **options)
    forces = run.joint_forces
    free = FreeBodies(m, run.q[-1], run.v[-1], run.acceleration[-1])
    columns = []
    for i, load in enumerate(forces.contacts.values()):
        k = m.body_index(load.child)
        lever = load.place[-1] - free.p[k] - free.R[k] @ m.bodies[k].inertia.center
        sticks = friction > 0.0 and run.modes[-1, i] != Mode.SLIP  # time steps may leave one of them without impulse
        for e in np.eye(3) if sticks else [load.normal[-1] if friction == 0.0 else load.force[-1]]:
            column = np.zeros(6 * len(m.bodies))
            column[6 * k : 6 * k + 6] = np.append(e, np.cross(lever, e))
            columns.append(column)
    joints = free.E.shape[1]
    null = sla.null_space(np.column_stack([free.E, *columns]), rcond=1e-9)
    zero = free.wrenches(np.zeros(joints))
    members = np.array([free.wrenches(x[:joints]) - zero for x in null.T])
    np.testing.assert_array_equal(forces.unique[-1], np.abs(members).max(axis=0) < 1e-8)
    assert np.count_nonzero((forces.family[-1] != 0.0).any(axis=(1, 2))) == null.shape[1]
    assert forces.contacts_unique[-1] == (np.abs(null[joints:]).max() < 1e-8)
    for member in forces.family[-1]:  # every member is one of the null space
        x = np.linalg.lstsq(members.reshape(len(members), -1).T, member.ravel(), rcond=None)[0]
        np.testing.assert_allclose(np.einsum("r,rkc->kc", x, members), member, atol=1e-8)


def test_stiffness_decides_what_contacts_leave_to_joints():
    """Flexible hinges decide the rows' part of the family; what the contacts leave open stays open, and is told."""
    m, q, contacts = linkage_on_the_floor(0.0)
    forces = da.simulate(m, 0.004, q, contacts=contacts, method="hybrid").joint_forces
    soft = forces.with_flexible(dict.fromkeys("ABCD", (10000000.0, 10000.0)))
    assert soft.held[-1].sum() == forces.held[-1].sum() > 0
    assert (soft.unique >= forces.unique).all()
    assert soft.unique[-1, :, [2, 3, 4]].all()  # across the plane the hinges alone decide
    assert not soft.contacts_unique[-1]
    assert not forces.contacts_unique[-1]
