"""Inverse kinematics with loops and limits against Pinocchio and closed forms; distribution of forces."""

from __future__ import annotations

import numpy as np
import pink
import pinocchio as pin
import pytest
from pink.tasks import FrameTask
from scipy.optimize import linprog

import dalembert as da
from dalembert.errors import ModelError
from dalembert.model import Placement
from tests.tree.contacts import GO2, PANDA, Robot

UR5 = Robot("ur_description/urdf/ur5_robot.urdf", "fixed", (), 0)


def test_an_arm_reaches_poses_that_pinocchio_has():
    """Poses of random configurations: Pinocchio's forward kinematics at the answer is the target, within limits."""
    tree, model = PANDA.tree(), PANDA.pinocchio()
    data, rng = model.createData(), np.random.default_rng(1)
    frame = model.getFrameId(PANDA.frames[0])
    low, high = tree.lower, tree.upper
    for _ in range(3):
        goal = low + (0.2 + 0.6 * rng.random(tree.nv)) * (high - low)
        pin.framesForwardKinematics(model, data, goal)
        target = np.array(data.oMf[frame].homogeneous)
        start = np.clip(goal + 0.3 * rng.standard_normal(tree.nv), low, high)
        found = tree.inverse_kinematics(start, {PANDA.frames[0]: target})
        assert found.ok, str(found)
        pin.framesForwardKinematics(model, data, found.q)
        np.testing.assert_allclose(data.oMf[frame].homogeneous, target, atol=1e-9)
        assert (found.q >= low - 1e-9).all()
        assert (found.q <= high + 1e-9).all()


@pytest.mark.filterwarnings("ignore:Converted matrix")  # of qpsolvers, to which pink hands dense matrices
def test_an_arm_goes_where_pink_takes_it():
    """From one start pink's differential inverse kinematics and this come to one configuration, to 1e-8.

    Not always to the one that the target was made of: an arm of six hinges reaches a pose in several ways.
    """
    tree, model = UR5.tree(), UR5.pinocchio()
    data, rng = model.createData(), np.random.default_rng(3)
    digits = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
    for _ in range(4):
        goal = rng.uniform(-1.2, 1.2, 6)
        start = goal + 0.2 * rng.standard_normal(6)
        pin.framesForwardKinematics(model, data, goal)
        target = data.oMf[model.getFrameId("tool0")].copy()
        task = FrameTask("tool0", 1.0, 1.0, lm_damping=0.0)
        task.set_target(target)
        arm = pink.Configuration(model, data, start)
        for _ in range(200):
            if np.linalg.norm(task.compute_error(arm)) < 1e-10:
                break
            step = pink.solve_ik(arm, [task], 1.0, solver="clarabel", damping=1e-12, **digits)
            arm.integrate_inplace(step, 1.0)
        found = tree.inverse_kinematics(start, {"tool0": target.homogeneous})
        assert found.ok, str(found)
        np.testing.assert_allclose(found.q, arm.q, atol=1e-8)


def stewart():
    """Return a platform on six legs, each a universal joint and a slide, held by six points; and its anchors."""
    angles = np.radians([5, 55, 125, 175, 245, 295])
    base = np.stack([np.cos(angles), np.sin(angles), np.zeros(6)], axis=1)
    turned = np.radians([25, 35, 145, 155, 265, 275])
    top = 0.6 * np.stack([np.cos(turned), np.sin(turned), np.zeros(6)], axis=1)
    b = da.Builder("stewart")
    b.body("plate", mass=3.0, inertia=(0.2, 0.2, 0.3))
    b.joint("free", "free", parent="world", child="plate", position=(0, 0, 1.2))
    for k in range(6):
        b.body(f"tube{k}", mass=0.2, center=(0, 0, 0.3), inertia=(0.01, 0.01, 0.001))
        b.body(f"rod{k}", mass=0.1, center=(0, 0, -0.2), inertia=(0.01, 0.01, 0.001))
        b.joint(f"foot{k}", "universal", parent="world", child=f"tube{k}", position=tuple(base[k]))
        b.joint(f"leg{k}", "prismatic", parent=f"tube{k}", child=f"rod{k}", axis=(0, 0, 1), limits=(0.2, 1.6))
        b.frame(f"top{k}", "plate", position=tuple(top[k]))
    machine = b.build()
    return machine.constrain(*[da.Point(f"rod{k}", f"top{k}") for k in range(6)]), base, top


def test_a_stewart_platform_in_closed_form():
    """Legs are as long as the anchors are apart, whatever the pose; loops stay closed; a leg too short is named."""
    machine, base, top = stewart()
    q = machine.neutral()
    for k in range(6):
        q[machine.index_q(f"leg{k}")] = 1.2
    start = machine.assemble(q).q
    pose = Placement.from_rpy((0.1, -0.15, 0.2), (0.1, -0.05, 1.1))
    found = machine.inverse_kinematics(start, {"plate": pose})
    assert found.ok, str(found)
    assert found.gap < 1e-11
    anchors = top @ np.asarray(pose.rotation).T + pose.position
    legs = [found.q[machine.index_q(f"leg{k}")][0] for k in range(6)]
    np.testing.assert_allclose(legs, np.linalg.norm(anchors - base, axis=1), atol=1e-9)
    far = machine.inverse_kinematics(start, {"plate": np.array([0.0, 0.0, 2.5])})
    assert not far.ok
    assert far.gap < 1e-10
    assert any(name.startswith("limit of leg") for name in far.conflicts["plate"])
    reach = max(far.q[machine.index_q(f"leg{k}")][0] for k in range(6))
    assert reach == pytest.approx(1.6, abs=1e-9)


def delta(base=0.2, plate=0.05, upper=0.3, lower=0.7, half=0.04):
    """Return a delta robot: three shoulders, and per arm two rods of one length, which keep the plate level."""
    b = da.Builder("delta")
    b.body("plate", mass=0.3, inertia=(1e-3, 1e-3, 1e-3))
    b.joint("plate", "free", parent="world", child="plate")
    rods = []
    for k in range(3):
        turn = Placement.from_rpy((0, 0, 2 * np.pi * k / 3))
        out, side = (np.asarray(turn.rotation)[:, i] for i in (0, 1))
        b.body(f"arm{k}", mass=0.4, center=(upper / 2, 0, 0), inertia=(1e-4, 3e-3, 3e-3))
        at = Placement(turn.rotation, base * out)
        b.joint(f"shoulder{k}", "revolute", parent="world", child=f"arm{k}", placement=at, axis=(0, 1, 0))
        for word, s in (("left", half), ("right", -half)):
            b.frame(f"elbow{k} {word}", f"arm{k}", position=(upper, s, 0))
            b.frame(f"ball{k} {word}", "plate", position=tuple(plate * out + s * side))
            rods.append(da.Distance(f"elbow{k} {word}", f"ball{k} {word}", length=lower, name=f"rod{k} {word}"))
    return b.build().constrain(*rods)


def shoulders_of_delta(place, base=0.2, plate=0.05, upper=0.3, lower=0.7):
    """Return the angles of its shoulders, elbows outwards: A cos + B sin = C for each arm (Clavel 1988)."""
    angles = []
    for k in range(3):
        c, s = np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3)
        x, y, z = c * place[0] + s * place[1], c * place[1] - s * place[0], place[2]
        gap = base - plate - x
        A, B = 2 * upper * gap, 2 * upper * z
        C = lower**2 - gap**2 - upper**2 - y**2 - z**2
        angles.append(np.arctan2(B, A) + np.arccos(C / np.hypot(A, B)))
    return (np.array(angles) + np.pi) % (2 * np.pi) - np.pi


def test_a_delta_robot_in_closed_form():
    """The plate goes where it shall and stays level, held by six rods; a place out of reach names a rod or a limit."""
    robot = delta()
    start = robot.assemble(robot.integrate(robot.neutral(), [0, 0, -0.6, 0, 0, 0, 0.3, 0.3, 0.3])).q
    for place in ((0, 0, -0.65), (0.1, -0.05, -0.6), (-0.15, 0.1, -0.7)):
        found = robot.inverse_kinematics(start, {"plate": np.array(place, dtype=float)})
        assert found.ok, str(found)
        assert found.gap < 1e-11
        angles = [found.q[robot.index_q(f"shoulder{k}")][0] for k in range(3)]
        np.testing.assert_allclose(angles, shoulders_of_delta(place), atol=1e-9)
        np.testing.assert_allclose(robot.kinematics(found.q, frame="plate")[0], np.eye(3), atol=1e-9)
    far = robot.inverse_kinematics(start, {"plate": np.array([0.0, 0.0, -1.4])})
    assert not far.ok
    assert far.conflicts["plate"]


def test_a_task_that_fights_a_loop_is_told():
    """The coupler of a parallelogram keeps its attitude: a pose that turns it is missed, and the loop is named."""
    b = da.Builder("parallelogram")
    z = {"axis": (0, 0, 1)}
    for name in ("left", "coupler", "right"):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("a", "revolute", parent="world", child="left", **z)
    b.joint("b", "revolute", parent="left", child="coupler", position=(0.0, 1.0, 0), **z)
    b.joint("c", "revolute", parent="world", child="right", position=(2.0, 0, 0), **z)
    b.loop("d", "revolute", "coupler", "right", placement=(2.0, 0, 0), other_placement=(0, 1.0, 0), axis=(0, 0, 1))
    b.frame("hand", "coupler", position=(1.0, 0, 0))
    linkage = b.build()
    angle = 0.3
    place = np.array([1.0 - np.sin(angle), np.cos(angle), 0.0])
    found = linkage.inverse_kinematics([0, 0, 0], {"hand": place})
    assert found.ok
    np.testing.assert_allclose(found.q, [angle, -angle, angle], atol=1e-9)
    turned = linkage.inverse_kinematics([0, 0, 0], {"hand": Placement.from_rpy((0, 0, 0.2), tuple(place))})
    assert not turned.ok
    assert turned.conflicts["hand"] == ("loop d y",)
    assert turned.gap < 1e-10
    first = linkage.inverse_kinematics([0, 0, 0], {"hand": place, "com": (0.5, 0.5, 0)}, priority=["hand", "com"])
    np.testing.assert_allclose(first.q, [angle, -angle, angle], atol=1e-8)
    assert first.met == {"hand": True, "com": False}
    with pytest.raises(ModelError, match="position"):
        linkage.inverse_kinematics([0, 0, 0], {"hand": [1.0, 2.0]})


def table(load):
    """Return a table of 10 kg whose weight acts at a place, on four feet that are held."""
    b = da.Builder("table")
    b.body("table", mass=10.0, center=(*load, 0.5), inertia=(1.0, 1.0, 1.0))
    b.joint("free", "free", parent="world", child="table")
    for k, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        b.frame(f"f{k}", "table", position=(x, y, 0.0))
    return b.build().constrain(*[da.Point(f"f{k}") for k in range(4)])


def test_a_table_on_four_legs():
    """Least squares and least peak of a statically indeterminate table, in closed form and by a linear program."""
    weight, (x, y) = 98.1, (0.3, -0.2)
    feet = [f"f{k}" for k in range(4)]
    still = table((x, y))
    q = still.neutral()
    share = still.distribute(q, contacts=feet, friction=0.5)
    signs = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    expected = weight / 4 * (1 + signs @ [x, y])
    forces = np.array([share.reactions[name] for name in feet])
    assert share.status == da.Status.REDUNDANT
    assert share.residual < 1e-9
    np.testing.assert_allclose(forces[:, 2], expected, rtol=1e-6)
    np.testing.assert_allclose(forces[:, :2], 0.0, atol=1e-5)
    assert share.family.shape == (12, 6)
    assert not share.unique[2]
    np.testing.assert_allclose([share.margin[name] for name in feet], 0.5 * expected, rtol=1e-5)
    peak = still.distribute(q, contacts=feet, friction=0.5, minimise="peak")
    balance = np.vstack([np.ones(4), signs.T])
    best = linprog(
        [0, 0, 0, 0, 1], A_ub=np.hstack([np.eye(4), -np.ones((4, 1))]), b_ub=np.zeros(4),
        A_eq=np.hstack([balance, np.zeros((3, 1))]), b_eq=weight * np.array([1, x, y]),
    )  # fmt: skip
    assert peak.peak == pytest.approx(best.fun, rel=1e-6)
    assert peak.peak <= share.peak + 1e-9
    over = table((1.5, 0.0)).distribute(q, contacts=feet)  # beyond the feet: no push holds it
    assert over.status == da.Status.INCONSISTENT
    assert not over.ok


def test_a_quadruped_stands():
    """Go2 on four points, its base free: forces and torques satisfy Pinocchio's equations of motion."""
    robot, model = GO2.in_contact(), GO2.pinocchio()
    data = model.createData()
    q = np.array(robot.neutral())
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    feet = list(dict.fromkeys(constraint.label for constraint in robot.constraints))
    share = robot.distribute(q, contacts=feet, friction=0.7)
    assert share.ok
    needed = pin.rnea(model, data, q, np.zeros(18), np.zeros(18))
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    total = share.tau.copy()
    for name, frame in zip(feet, GO2.frames, strict=True):
        J = pin.getFrameJacobian(model, data, model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED)[:3]
        total += J.T @ share.reactions[name]
    np.testing.assert_allclose(total, needed, atol=1e-6)
    assert min(share.margin.values()) > 0


def test_targets_may_be_what_kinematics_returns():
    """A pair (rotation, position) is the same target as the 4 x 4 pose."""
    tree = PANDA.tree()
    goal = tree.random(3)
    R, p = tree.kinematics(goal, PANDA.frames[0])
    pose = np.block([[R, p[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    start = tree.random(4)
    pair, matrix = (tree.inverse_kinematics(start, {PANDA.frames[0]: target}) for target in ((R, p), pose))
    np.testing.assert_array_equal(pair.q, matrix.q)
    with pytest.raises(ModelError, match="pair of a rotation"):
        tree.inverse_kinematics(start, {PANDA.frames[0]: (p, R)})


def test_joints_that_do_not_move_the_task_do_not_stand_against_it():
    """A hand 5 m away is out of reach; fingers at their limits, tied to each other, have no part in that."""
    tree = da.load(PANDA.path)
    _, p = tree.kinematics(tree.random(3), "panda_hand")
    found = tree.inverse_kinematics(tree.neutral(), {"panda_hand": p + np.array([5.0, 0.0, 0.0])})
    assert not found.ok
    assert not any("finger" in name for name in found.conflicts.get("panda_hand", ()))


def folding_arm(held=False):
    """Return two links of 0.4 m in a plane; `held` closes a parallelogram beside the first, which changes nothing."""
    b = da.Builder("arm")
    for name, parent, at in (("upper", "world", 0.0), ("fore", "upper", 0.4)):
        b.body(name, mass=2.0, center=(0.2, 0.0, 0.0), inertia=(0.02, 0.1, 0.1))
        b.joint(name, "revolute", parent=parent, child=name, axis=(0, 1, 0), position=(at, 0, 0))
    b.frame("hand", "fore", position=(0.4, 0, 0))
    if not held:
        return b.build()
    b.body("rod", mass=0.1, inertia=(0.01, 0.01, 0.01))
    b.joint("rod", "revolute", parent="world", child="rod", axis=(0, 1, 0), position=(0, 0, 0.2))
    b.body("bridge", mass=0.1, inertia=(0.01, 0.01, 0.01))
    b.joint("bridge", "revolute", parent="upper", child="bridge", axis=(0, 1, 0), position=(0.4, 0, 0))
    b.loop("pin", "revolute", "rod", "bridge", placement=(0.4, 0, 0), other_placement=(0.0, 0, 0.2), axis=(0, 1, 0))
    return b.build()


@pytest.mark.parametrize("held", [False, True])
def test_a_straight_arm_folds(held):
    """Towards its shoulder a straight arm moves in second order alone; its elbow bends by the law of cosines."""
    arm = folding_arm(held)
    for reach in (0.5, 0.2):
        found = arm.inverse_kinematics(arm.neutral(), {"hand": np.array([reach, 0.0, 0.0])})
        assert found.ok, str(found)
        elbow = float(found.q[arm.index_q("fore")][0])
        assert np.cos(elbow) == pytest.approx((reach**2 - 2 * 0.4**2) / (2 * 0.4**2), abs=1e-9)
    beyond = arm.inverse_kinematics(arm.neutral(), {"hand": np.array([2.0, 0.0, 0.0])})
    assert not beyond.ok
    np.testing.assert_allclose(beyond.q, arm.neutral(), atol=1e-9)


def test_states_that_are_no_numbers_are_refused():
    arm, still = folding_arm(), table((0.3, -0.2))
    with pytest.raises(ModelError, match="begins nowhere"):
        arm.inverse_kinematics([np.nan, 0.2], {"hand": np.array([0.5, 0.0, 0.0])})
    for bad in (np.nan, np.inf):
        with pytest.raises(ModelError, match="NaN or infinity"):
            still.distribute(still.neutral(), None, [0, 0, bad, 0, 0, 0], contacts=["f0"])
