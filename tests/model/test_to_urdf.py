"""`to_urdf`: what URDF can say comes back the same, what it cannot is listed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.model.placement import Placement
from tests.readers.robots import BROKEN, ROBOTS, URDFS

SOME = [name for name in URDFS if name not in BROKEN][::4]


@pytest.fixture
def again(tmp_path):
    def read(robot: da.Mechanism, **options) -> da.Mechanism:
        (tmp_path / "again.urdf").write_text(robot.to_urdf(), encoding="utf-8")
        return da.load(tmp_path / "again.urdf", **options)

    return read


def close(one: Placement, two: Placement) -> None:
    np.testing.assert_allclose(one.rotation, two.rotation, atol=1e-14)
    np.testing.assert_allclose(one.position, two.position, atol=1e-14)


@pytest.mark.parametrize("name", SOME)
def test_urdf_round_trip(again, name):
    """A URDF is read, written and read: the same joints, placements, inertias, limits, couplings and motors."""
    robot = da.load(ROBOTS / name, "fixed", allow_unphysical=True)
    copy = again(robot, base="fixed", allow_unphysical=True)
    assert copy.coordinates == robot.coordinates
    for one, two in zip(robot.joints, copy.joints, strict=True):
        close(one.placement, two.placement)
        assert (one.name, one.kind, one.parent, one.child) == (two.name, two.kind, two.parent, two.child)
        assert (one.damping, one.friction) == (two.damping, two.friction)
        np.testing.assert_allclose(one.axis, two.axis, atol=1e-15)
        if one.kind in ("revolute", "prismatic"):
            assert [x or (s * np.inf,) for x, s in zip((one.limits.lower, one.limits.upper), (-1, 1), strict=True)] == [
                two.limits.lower, two.limits.upper]  # fmt: skip
    for one, two in zip(robot.bodies, copy.bodies, strict=True):
        assert one.name == two.name
        np.testing.assert_allclose(one.inertia.matrix(), two.inertia.matrix(), atol=1e-14, rtol=1e-12)
    assert sorted(copy.couplings, key=lambda c: c.name) == sorted(robot.couplings, key=lambda c: c.name)
    assert [(a.coordinate, a.gear) for a in copy.actuators] == [(a.coordinate, a.gear) for a in robot.actuators]


def machine() -> da.Mechanism:
    """Return a mechanism with much that URDF cannot say."""
    b = da.Builder("machine & co", gravity=(0, 0, -3))
    for name in ("a", "b", "c", "d", "e"):
        b.body(name, mass=1.5, center=(0.1, 0.2, 0.3), inertia=(1.0, 1.1, 1.2))
    moved = Placement.from_rpy((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    b.joint("one", "revolute", "world", "a", axis=(0, 1, 1), child_placement=moved, armature=0.1, damping=0.3)
    b.joint("two", "universal", "a", "b", axis=(0, 1, 0), axis2=(0, 1, 1), placement=moved, limits=((-1, -2), (1, 2)))
    b.joint("three", "helical", "b", "c", axis=(0, 0, 1), pitch=0.2, child_placement=moved)
    b.joint("four", "spherical", "c", "d", position=(0, 0, 1))
    b.joint("five", "prismatic", "a", "e", axis=(1, 0, 0), stiffness=3.0)
    b.frame("tip", "a", placement=moved)
    b.couple("gear", {"one": 2.0, "five": 3.0}, offset=0.5)
    b.couple("sum", {"one": 1.0, "five": 1.0, "three": 1.0})
    b.loop("closing", "point", "d", "e", placement=moved, other_placement=moved)
    b.loop("rod", "distance", "d", "e", options={"length": 1.0})
    b.spring("coil", "tip", "d", 10.0, 0.3, 0.1)
    b.actuator("motor", "five", gear=20.0, rotor_inertia=1e-4)
    return b.build()


def test_what_cannot_be_said_is_listed():
    text = machine().to_urdf()
    for words in ("gravity", "armature of joint one", "stiffness of joint five", "joint two as one", "coupling sum",
                  "loop rod", "frames of a, c", "URDF: the helical", "URDF: the spring coil"):  # fmt: skip
        assert words in text
    with pytest.raises(da.UnsupportedError, match="armature of joint one"):
        machine().to_urdf(strict=True)


def test_motion_and_inertia_survive(again):
    """The centre of mass, the kinetic energy and the loop's points are the same in both, at the same coordinates."""
    robot = machine()
    copy = again(robot)
    assert copy.nv == robot.nv
    names = {"two.1": "two_1", "two.2": "two_2"}
    order = [copy.index_v(names.get(each, each)).start for each in robot.coordinates]
    order_q = [copy.index_q(names.get(each, each)).start for each in robot.configuration_names]
    q, v = robot.random(0), np.random.default_rng(0).normal(size=robot.nv)
    q2, v2 = np.empty(copy.nq), np.empty(copy.nv)
    q2[order_q], v2[order] = q, v
    np.testing.assert_allclose(copy.center_of_mass(q2), robot.center_of_mass(q), atol=1e-13)
    armature = 0.5 * 0.1 * v[robot.index_v("one")] ** 2
    np.testing.assert_allclose(copy.energy(q2, v2)[0] + armature, robot.energy(q, v)[0], rtol=1e-12)
    (loop,), (mine, _) = copy.loops, robot.loops
    for body, place, other in ((mine.body, mine.placement, loop.placement),
                               (mine.other, mine.other_placement, loop.other_placement)):  # fmt: skip
        (R, p), (R2, p2) = robot.kinematics(q, body), copy.kinematics(q2, body)
        np.testing.assert_allclose(R @ place.position + p, R2 @ other.position + p2, atol=1e-13)
    R, p = robot.kinematics(q, "tip")
    R2, p2 = copy.kinematics(q2, "tip")
    np.testing.assert_allclose(p, p2, atol=1e-13)
    np.testing.assert_allclose(R, R2, atol=1e-13)
    assert dict(copy.couplings[0].terms) == {"one": 1.0, "five": 1.5}
    assert copy.couplings[0].offset == 0.25
    assert (copy.actuators[0].gear, copy.actuators[0].rotor_inertia) == (20.0, 1e-4)


def test_pinocchio_reads_it():
    robot = da.load(ROBOTS / "talos_data/robots/talos_full_v2.urdf")
    model = pin.buildModelFromXML(robot.to_urdf())
    assert (model.nq, model.nv) == (robot.nq, robot.nv)
    q = robot.random(0)
    np.testing.assert_allclose(pin.crba(model, model.createData(), q), robot.mass_matrix(q), atol=1e-12)


def test_roll_pitch_yaw_near_a_quarter_turn():
    """The three angles together give the rotation back, however near the pitch is to where they are not unique."""
    for tilt in (0.0, 1e-16, 1e-12, 1e-8, 1e-4):
        for sign in (-1, 1):
            X = Placement.from_rpy((0.3, sign * (np.pi / 2 - tilt), 0.7))
            close(X, Placement.from_rpy(X.rpy()))


def test_names_are_escaped(again):
    b = da.Builder('a<b>"c"&d')
    b.body("x & y <z>", mass=1.0)
    assert again(b.build()).bodies[0].name == "x & y <z>"
