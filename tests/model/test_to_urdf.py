"""`to_urdf`: what URDF can say comes back the same, what it cannot is listed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.model.mechanism.placement import Placement
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


def motors(**actuators: tuple[str, float]) -> da.Mechanism:
    """Return two links with motors on them, {name: (coordinate, effort)}; the second joint has a limit of 5 N m."""
    b = da.Builder("motors")
    for name, parent, limits in (("a", "world", None), ("b", "a", {"effort": 5.0})):
        b.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.joint(f"j{name}", "revolute", parent, name, limits=limits)
    for name, (coordinate, effort) in actuators.items():
        b.actuator(name, coordinate, gear=10.0, effort=effort)
    return b.build()


def test_efforts_of_motors_survive(again):
    robot = motors(one=("ja", 4.0), two=("jb", 5.0))
    assert [motor.effort for motor in again(robot).actuators] == [4.0, 5.0]
    robot.to_urdf(strict=True)
    for wrong in (motors(two=("jb", 3.0)), motors(two=("jb", np.inf)), motors(one=("ja", 1.0), other=("ja", 2.0))):
        with pytest.raises(da.UnsupportedError, match="effort of actuator"):
            wrong.to_urdf(strict=True)


def test_a_motor_on_one_of_several_coordinates_is_listed():
    b = da.Builder("ball")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.joint("ball", "spherical", "world", "a")
    b.actuator("m", "ball.wx")
    with pytest.raises(da.UnsupportedError, match="actuator m on ball"):
        b.build().to_urdf(strict=True)


def test_springs_survive_any_number_of_copies(again):
    """Names and forces are the same in the third generation, for ends in frames, joints, bodies and the ground."""
    robot = machine()
    for _ in range(3):
        copy = again(robot, passive=True)
        assert [spring.name for spring in copy.springs] == ["coil"]
        (spring,), (was,) = copy.springs, robot.springs
        assert (spring.stiffness, spring.rest, spring.damping) == (was.stiffness, was.rest, was.damping)
        assert [copy.frame(end).name for end in (spring.frame, spring.other)] == ["tip", "d"]
        robot = copy
    b = da.Builder("s")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.joint("j", "prismatic", "world", "a", child_placement=(0.1, 0.2, 0.3))
    b.spring("s", "a", "world", 3.0)
    robot = b.build()
    q = np.array([0.7])
    for _ in range(3):
        copy = again(robot, passive=True)
        np.testing.assert_allclose(
            copy.forward(q, [0.0]).acceleration, robot.forward(q, [0.0]).acceleration, rtol=1e-14
        )
        robot = copy
