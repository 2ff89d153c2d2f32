"""Constrained motion: accelerations against Pinocchio and closed forms; rows by CasADi against rows by hand."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.model import solve
from dalembert.model.mechanism.placement import Placement
from tests.model.test_constraints import tree

GO2 = next(Path(str(p.locate())) for p in files("example-robot-data") or () if p.name == "go2.urdf")


def pinocchio_acceleration(model, contacts, q, v, tau):
    """Return Pinocchio's constrained acceleration and the physical forces, for contacts without stabilisation."""
    data = model.createData()
    datas = [contact.createData() for contact in contacts]
    pin.initConstraintDynamics(model, data, contacts, datas)
    settings = pin.ProximalSettings(1e-12, 1e-14, 20)
    a = pin.constraintDynamics(model, data, q, v, tau, contacts, datas, settings)
    return np.array(a), np.array(data.lambda_c)


def contact(model, kind, one, two=None, at=None):
    """Return Pinocchio's contact of a frame with the world, or between two frames, in world axes."""
    frame = model.frames[model.getFrameId(one)]
    reference = pin.LOCAL_WORLD_ALIGNED
    if two is None:
        return pin.RigidConstraintModel(kind, model, frame.parentJoint, frame.placement, reference)
    other = model.frames[model.getFrameId(two)]
    place = other.placement * pin.SE3(np.array(at.rotation), np.array(at.position))
    return pin.RigidConstraintModel(
        kind, model, frame.parentJoint, frame.placement, other.parentJoint, place, pin.LOCAL
    )


@pytest.fixture(scope="module")
def go2():
    return da.load(GO2, base="floating"), pin.buildModelFromUrdf(str(GO2), pin.JointModelFreeFlyer())


def state(robot, seed):
    rng = np.random.default_rng(seed)
    return robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)


def interpreted(mechanism, q, v, t):
    """Return residual, A, rate and drift by the plain twin of kernels: no time is spent on compiling them."""
    kernels = [
        mechanism.compile(f"constraint{part}", backend="numpy") for part in ("", "_jacobian", "_velocity", "_drift")
    ]
    state = {"q": q, "v": v, "t": np.array([t])}
    return [kernel(*(state[port.name] for port in kernel.inputs)) for kernel in kernels]


def test_feet_that_stick_are_pinocchios_contacts(go2):
    """Acceleration and forces of four points: the reactions are the forces on the feet in world axes, in N."""
    robot, model = go2
    feet = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    constrained = robot.constrain(*map(da.Point, feet))
    contacts = [contact(model, pin.ContactType.CONTACT_3D, foot) for foot in feet]
    for seed in range(3):
        q, v, tau = state(robot, seed)
        found = solve(constrained, q, v, force=tau)
        a, forces = pinocchio_acceleration(model, contacts, q, v, tau)
        np.testing.assert_allclose(found.acceleration, a, rtol=1e-8, atol=1e-8 * np.abs(a).max())
        np.testing.assert_allclose(found.reactions, forces, atol=1e-7 * np.abs(forces).max())


def test_a_welded_foot_and_a_loop_are_pinocchios(go2):
    """At an admissible velocity: at others the rates of velocities in moving and in world axes differ by w x v.

    The loop holds a foot at the place where it is now, seen from the calf of another.
    """
    robot, model = go2
    q, v, tau = state(robot, 7)
    (R1, p1), (R2, p2) = (robot.kinematics(q, frame) for frame in ("FR_foot", "RR_calf"))
    here = Placement(R2.T @ R1, R2.T @ (p1 - p2))
    contacts = [
        contact(model, pin.ContactType.CONTACT_6D, "FL_foot"),
        contact(model, pin.ContactType.CONTACT_3D, "FR_foot", "RR_calf", here),
    ]
    for count in (1, 2):
        constrained = robot.constrain(*(da.Weld("FL_foot"), da.Point("FR_foot", "RR_calf", at=here))[:count])
        A = constrained.jacobian(q)
        v = v - np.linalg.pinv(A) @ A @ v
        found = constrained.solve(q, v, tau)
        a, _ = pinocchio_acceleration(model, contacts[:count], q, v, tau)
        np.testing.assert_allclose(found.acceleration, a, atol=1e-8 * np.abs(a).max())
    assert not A[6:, :6].any()  # the trunk moves both feet alike


def turntable():
    """Return a solid ball of 0.5 kg on a turntable; its centre is 0.1 m above the origin of the plate."""
    b = da.Builder("turntable")
    b.body("plate", mass=1.0, inertia=(1, 1, 1))
    b.joint("spindle", "revolute", parent="world", child="plate", axis=(0, 0, 1))
    b.body("ball", mass=0.5, inertia=np.full(3, 0.4 * 0.5 * 0.1**2))
    b.joint("flies", "free", parent="world", child="ball")
    return b.build().constrain(da.Rolling("ball", "plate", radius=0.1), da.Servo("spindle", lambda t: 3.0 * t))


def test_a_ball_on_a_turntable_circles_with_two_sevenths_of_its_speed():
    """a = 2/7 Omega x v for a solid ball, whatever its place (Earnshaw 1844; Weltner 1979)."""
    mechanism = turntable()
    rng = np.random.default_rng(0)
    position, velocity, turn = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2), np.array([0, 0, 3.0])
    spin_z, t = 0.7, 0.4
    slip_free = np.array([*velocity, 0]) - np.cross(turn, [*position, 0])  # = -w x (-r n) = r w x n
    w = np.array([-slip_free[1], slip_free[0], 0]) / 0.1 + [0, 0, spin_z]
    q = np.array([3.0 * t, *position, 0.1, 0, 0, 0, 1])
    v = np.array([3.0, *velocity, 0.0, *w])
    np.testing.assert_allclose(mechanism.constraint_velocity(q, v, t), 0, atol=1e-13)
    np.testing.assert_allclose(mechanism.constraint(q, t), 0, atol=1e-15)
    found = solve(mechanism, q, v, t=t)
    expected = 2 / 7 * np.cross(turn, [*velocity, 0])
    np.testing.assert_allclose(found.acceleration[1:4] + np.cross(w, v[1:4]), expected, atol=1e-12)
    assert found.reactions[2] == pytest.approx(0.5 * 9.81)


def test_a_leaning_disc_touches_where_its_rim_is_lowest():
    b = da.Builder("coin")
    b.body("coin", mass=1.0, inertia=(1, 1, 2))
    mechanism = b.build(base="floating").constrain(da.Rolling("coin", radius=0.2, axis=(0, 0, 1)))
    for lean in (0.1, 1.0, np.pi / 2, 2.5):
        height = 0.2 * np.sin(lean)
        turned = Placement.from_rpy((lean, 0, 0.4))
        q = np.array([3.0, -1.0, height, *turned.quaternion()])
        np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-15)
        assert mechanism.constraint(q + np.eye(7)[2] * 0.01)[0] == pytest.approx(0.01)


def test_the_reaction_of_a_servo_is_the_torque_of_its_drive():
    """A prescribed motion is inverse dynamics: minus the multiplier is the torque that RNEA asks for."""
    b = da.Builder("pendulum")
    b.body("rod", mass=2.0, center=(0, 0, -0.5), inertia=(0.2, 0.2, 0))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    free = b.build()
    driven = free.constrain(da.Servo("hinge", lambda t: 0.3 * ca.sin(2 * t)))
    t = 0.7
    q, v, a = 0.3 * np.sin(2 * t), 0.6 * np.cos(2 * t), -1.2 * np.sin(2 * t)
    found = solve(driven, [q], [v], t=t)
    np.testing.assert_allclose(driven.constraint([q], t), 0, atol=1e-16)
    np.testing.assert_allclose(found.acceleration, [a])
    np.testing.assert_allclose(found.reactions, free.inverse([q], [v], [a]).tau)
    np.testing.assert_allclose(found.reactions, [(0.2 + 2 * 0.25) * a + 2 * 9.81 * 0.5 * np.sin(q)])


def test_a_servo_on_a_continuous_joint_counts_turns():
    b = da.Builder("wheel")
    b.body("rim", mass=1.0, inertia=(1, 1, 1))
    b.joint("axle", "continuous", parent="world", child="rim", axis=(0, 0, 1))
    mechanism = b.build().constrain(da.Servo("axle", 7.0))
    np.testing.assert_allclose(mechanism.constraint([np.cos(7.1), np.sin(7.1)]), [0.1], atol=1e-14)


def test_expressions_of_frames_are_the_rows_by_hand():
    """CasADi's derivatives of positions and slip against the formulas of Point, Distance and Rolling."""
    by_hand = tree(5).constrain(
        da.Point("f3", "f5"),
        da.Distance("f3", "f4", length=0.5),
        da.Rolling("f4", radius=0.2, axis=(0, 1, 0), contact=False),
    )

    def slip(k):
        frame = k.frame("f4")
        n, axis = ca.SX([0, 0, 1]), frame.rotation[:, 1]
        g = n - axis * ca.dot(n, axis)
        slip = frame.velocity[:3] + ca.cross(frame.velocity[3:], -0.2 * g / ca.norm_2(g))
        return slip[:2]

    def rod(k):
        d = k.frame("f3").position - k.frame("f4").position
        return (ca.sumsqr(d) - 0.25) / 1.0

    by_casadi = tree(5).constrain(
        da.Expression(
            lambda k: k.frame("f5").rotation.T @ (k.frame("f3").position - k.frame("f5").position),
            names=("x", "y", "z"),
        ),
        da.Expression(rod, name="rod"),
        da.Expression(slip, names=("along", "across"), name="slip", velocity=True),
    )
    assert by_casadi.names == ("x", "y", "z", "rod", "slip: along", "slip: across")
    assert by_casadi.holonomic == by_hand.holonomic == (True, True, True, True, False, False)
    q, v, _ = state(by_hand, 1)
    for one, two in zip(interpreted(by_casadi, q, v, 0.0), interpreted(by_hand, q, v, 0.0), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)


def test_an_expression_of_time_and_coordinates():
    mechanism = tree(0).constrain(
        da.Expression(lambda k: k.coordinate("j1") - ca.sin(k.t), name="drive"),
        da.Expression(lambda k: k.coordinate("j2") - 0.1, name="hold", stabilize=10),
    )
    twin = tree(0).constrain(
        da.Servo("j1", lambda t: ca.sin(t), name="drive"), da.Servo("j2", 0.1, name="hold", stabilize=10)
    )
    q, v, _ = state(mechanism, 2)
    for one, two in zip(interpreted(mechanism, q, v, 0.3), interpreted(twin, q, v, 0.3), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-13)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (da.Expression(lambda k: k.v[0] ** 2, name="x", velocity=True), "must be linear in the velocities"),
        (da.Expression(lambda k: k.v[0], name="x"), "no velocity=True, but its expression depends"),
        (da.Expression(lambda k: k.q[0], name="x", velocity=True), "does not depend on the velocities"),
        (da.Expression(lambda k: k.q[:2], name="x"), r"shape \(2, 1\) and 1 row names"),
        (da.Expression(lambda k: k.frame("f77").position, names=("a", "b", "c")), "no frame 'f77'"),
        (da.Expression(lambda k: None, name="x"), "its function failed"),
    ],
)
def test_mistakes_in_expressions(expression, message):
    mechanism = tree(0).constrain(expression)
    with pytest.raises(da.ModelError, match=message):
        mechanism.jacobian(mechanism.neutral())


def test_a_spherical_pendulum_by_a_rod_without_mass():
    """A ball on a Distance moves as a point on a sphere: a = g - (g.u + v.v/L) u, the rod's force m (v.v/L + g.u)."""
    b = da.Builder("ball")
    b.body("ball", mass=2.0, inertia=(1, 1, 1))
    mechanism = b.build(base="floating").constrain(da.Distance("ball", length=1.5))
    u = np.array([2.0, -1.0, -2.0]) / 3
    v = np.cross(u, [0.3, 0.5, -0.2])
    q = np.array([*(1.5 * u), 0, 0, 0, 1])
    found = solve(mechanism, q, [*v, 0, 0, 0])
    g = np.array([0, 0, -9.81])
    tension = 2.0 * (v @ v / 1.5 + g @ u)
    np.testing.assert_allclose(found.acceleration[:3], g - tension / 2.0 * u, atol=1e-13)
    np.testing.assert_allclose(found.reactions, [-tension])


def four_bar():
    """Return a parallelogram of three bars in the plane of x and z, closed by a hinge."""
    b = da.Builder("four-bar")
    for name, parent, x in (("crank", "world", 0), ("coupler", "crank", 1), ("rocker", "coupler", 1)):
        b.body(name, mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(f"{name}_hinge", "revolute", parent=parent, child=name, axis=(0, 1, 0), position=(x, 0, 0))
    return b.build().constrain(da.Revolute("rocker", at=(1, 0, 0), placement=(1, 0, 0), axis=(0, 1, 0), name="pin"))


def test_a_four_bar_closed_by_a_hinge():
    """Five rows of rank two: the motion is that of the loop closed in its plane; the diagnosis names the others."""
    mechanism = four_bar()
    q, v = np.array([-1.0, 1.0, np.pi - 1.0]), [0.5, -0.5, 0.5]
    np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-15)
    np.testing.assert_allclose(mechanism.constraint_velocity(q, v), 0, atol=1e-15)

    def in_plane(k):
        end = k.frame("rocker").rotation[:, 0] + k.frame("rocker").position
        return [end[0] - 1, end[2]]

    planar = mechanism.open_tree().constrain(da.Expression(in_plane, names=("x", "z")))
    found = mechanism.solve(q, v)
    np.testing.assert_allclose(found.acceleration, planar.solve(q, v).acceleration, atol=1e-12)
    diagnosis = mechanism.diagnose(q, v)
    assert diagnosis.rank == 2
    assert set(diagnosis.redundant_names) == {"pin y", "pin: rotation about z", "pin: rotation about x"}


@pytest.mark.parametrize(("name", "rank"), [("cassie_v2.sdf", (10, 11)), ("cassie.sdf", (22,))])
def test_cassies_loops_close_and_solve(name, rank):
    """Loops of the file hold at the neutral configuration, with rows of a rank lower than their count.

    It falls as one body, wherever it stands; what rounding leaves of rows that vanish must not count as a row.
    """
    path = next(Path(str(p.locate())) for p in files("example-robot-data") or () if p.name == name)
    robot = da.load(path, base="floating", allow_unphysical=True)
    turned = Placement.from_rpy((0.3, -0.2, 1.0))
    for place in (np.array([0, 0, 0, 0, 0, 0, 1.0]), np.array([70.0, -50, 3, *turned.quaternion()])):
        q, v = np.concatenate([place, robot.neutral()[7:]]), np.zeros(robot.nv)
        np.testing.assert_allclose(robot.constraint(q), 0, atol=1e-9)
        found = robot.solve(q, v)
        assert found.certificate.rank in rank
        gravity = Placement.from_quaternion(place[3:]).rotation.T @ [0, 0, -9.8]
        np.testing.assert_allclose(found.acceleration[:3], gravity, atol=1e-8)
        np.testing.assert_allclose(found.acceleration[3:], 0, atol=1e-7)


@pytest.fixture(scope="module")
def full_cassie():
    path = next(Path(str(p.locate())) for p in files("example-robot-data") or () if p.name == "cassie.sdf")
    return da.load(path, base="floating", allow_unphysical=True)


def at_file_digits(robot, q, v):
    """Return the acceleration by the null space of the rows whose singular values are more than 1e-6 of the largest."""
    M, A, f, c = robot.mass_matrix(q), robot.jacobian(q), -robot.bias(q, v), -robot.drift(q, v)
    d = np.diag(M) ** -0.5
    norms = np.linalg.norm(A * d, axis=1)
    groups = np.array(robot.row_groups)
    g = np.array([1 / norms[groups == group].max() for group in groups])
    U, S, Vt = np.linalg.svd(g[:, None] * A * d)
    k = int((S[0] * 1e-6 < S).sum())
    N, H = Vt[k:].T, d[:, None] * M * d
    y = Vt[:k].T @ ((U[:, :k].T @ (g * c)) / S[:k])
    return d * (y + N @ np.linalg.solve(N.T @ H @ N, N.T @ (d * f - H @ y)))


def test_rows_that_only_digits_contradict_agree_in_motion(full_cassie):
    """Thirty-two rows of rank 22 at the file's digits: solved in motion, by `KKT` and kernel as by the null space.

    Singular values of 8e-7 and 6e-8 are no rounding of the computer; they are within the digits of the file.
    """
    q = full_cassie.neutral()
    springs = [full_cassie.index_v(f"{side}-knee-spring-joint").start for side in ("left", "right")]
    A = np.vstack([full_cassie.jacobian(q), np.eye(40)[springs]])
    v = np.random.default_rng(0).standard_normal(40)
    v -= np.linalg.pinv(A, rcond=1e-9) @ (A @ v)
    assert np.abs(full_cassie.drift(q, v)).max() > 1e-3
    found = full_cassie.solve(q, v)
    assert found.status == da.Status.REDUNDANT
    assert found.certificate.rank == 22
    expected = at_file_digits(full_cassie, q, v)
    np.testing.assert_allclose(found.acceleration, expected, atol=1e-5 * np.abs(expected).max())
    kernel = full_cassie.compile("forward", route="efpa", backend="numpy")
    acceleration, _, status = kernel(q, v, np.zeros(40), np.zeros(1))
    assert status == da.Status.REDUNDANT
    np.testing.assert_allclose(acceleration, expected, atol=1e-5 * np.abs(expected).max())


def test_springs_of_cassie_at_their_dead_centre_cannot_move(full_cassie):
    """Knee spring and shin hinge on one body 35 mm apart, and a slider keeps them parallel: it is at its dead centre.

    Turning both at the rate w is admissible for the rows' rates, but moves the slide by -0.035 w^2 across: a conflict
    of the design and not of digits, as the same linkage in full digits shows.
    """
    b = da.Builder("shin", gravity=(0, 0, 0))
    for name, y in (("spring", 0.0), ("shin", -0.035)):
        b.body(name, mass=0.2, center=(0.1, 0, 0), inertia=(0.001, 0.001, 0.001))
        b.joint(f"{name}_hinge", "revolute", parent="world", child=name, axis=(0, 0, 1), position=(0, y, 0))
    exact = b.build().constrain(da.Prismatic("shin", "spring", placement=(0.13, 0.04, 0), at=(0.13, 0.005, 0)))
    w = 0.7
    q, v = np.zeros(2), np.full(2, w)
    np.testing.assert_allclose(exact.constraint(q), 0, atol=1e-15)
    np.testing.assert_allclose(exact.constraint_velocity(q, v), 0, atol=1e-15)
    np.testing.assert_allclose(exact.drift(q, v)[0], 0.035 * w**2, rtol=1e-12)
    with pytest.raises(da.SolvabilityError, match="contradict"):
        exact.solve(q, v)
    assert exact.solve(q, 0 * v).certificate.rank == 1
    q, v = full_cassie.neutral(), np.zeros(40)
    for side in ("left", "right"):
        for joint in ("knee-spring-joint", "knee-shin-joint"):
            v[full_cassie.index_v(f"{side}-{joint}")] = w
    with pytest.raises(da.SolvabilityError, match="contradict"):
        full_cassie.solve(q, v)


def test_rows_that_vanish_contradict_nothing_in_motion():
    """Out of its plane a linkage has rows 0 = 0; turned in space they are 1e-17 = 1e-16, and still no conflict."""
    b = da.Builder("turned four-bar")
    b.body("frame", mass=1.0)
    b.joint("mount", "fixed", parent="world", child="frame", rpy=(0.3, 0.5, -0.7), position=(3, -2, 5))
    for name, parent, x in (("crank", "frame", 0), ("coupler", "crank", 1), ("rocker", "coupler", 1)):
        b.body(name, mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(f"{name}_hinge", "revolute", parent=parent, child=name, axis=(0, 1, 0), position=(x, 0, 0))
    pin_joint = da.Revolute("rocker", "frame", at=(1, 0, 0), placement=(1, 0, 0), axis=(0, 1, 0), stabilize=10.0)
    mechanism = b.build().constrain(pin_joint)
    q, v = np.array([-1.0, 1.0, np.pi - 1.0]), [0.5, -0.5, 0.5]
    found = mechanism.solve(q, v)
    assert found.certificate.rank == 2
    assert mechanism.diagnose(q, v).rank == 2
    np.testing.assert_allclose(found.acceleration[0], -found.acceleration[1], rtol=1e-9)
