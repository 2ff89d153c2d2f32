"""Constraints: three levels that are derivatives of one another, the motions they leave free, twins and oracles."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.model.constraints import KINDS, assemble
from dalembert.model.constraints.constraint import Pair
from dalembert.model.joints import KINDS as JOINTS
from dalembert.model.joints import as_array
from dalembert.model.mechanism.placement import Placement
from tests.model.mechanisms import make_joint, random_tree
from tests.reference import PlainKinematics

OBLIQUE = (2.0, -1.0, 3.0)
PLACE = Placement.from_quaternion((0.1, 0.2, -0.3, 0.5), (0.3, -0.2, 0.1))
OTHER = Placement.from_quaternion((0.5, -0.1, 0.2, 0.3), (-0.1, 0.4, 0.2))
BETWEEN = {"placement": PLACE, "at": OTHER}

EXAMPLES = [
    da.Point("f3", "f5", **BETWEEN),
    da.Point("f4", at=(1, 2, 3)),
    da.Weld("f3", "f5", **BETWEEN),
    da.Revolute("f3", "f5", axis=OBLIQUE, **BETWEEN),
    da.Prismatic("f3", "f5", axis=OBLIQUE, **BETWEEN),
    da.Cylindrical("f3", "f5", axis=OBLIQUE, **BETWEEN),
    da.Universal("f3", "f5", axis=OBLIQUE, axis2=(0.3, 0.2, 1), **BETWEEN),
    da.Planar("f3", "f5", axis=OBLIQUE, **BETWEEN),
    da.Distance("f3", "f5", length=0.7, **BETWEEN),
    da.PointOnLine("f3", "f5", axis=OBLIQUE, **BETWEEN),
    da.PointInPlane("f3", "f5", normal=OBLIQUE, **BETWEEN),
    da.Rolling("f3", "f5", radius=0.3, normal=OBLIQUE, **BETWEEN),
    da.Rolling("f3", "f5", radius=0.3, axis=(1, 2, -1), normal=OBLIQUE, name="wheel", **BETWEEN),
    da.Coupler({"j1": 2.0, "j2": -0.5}, 0.3),
    da.Servo("j2", lambda t: 0.3 * ca.sin(2 * t) + t**2),
    da.Servo("j1", 0.2),
]
"""One or more of every kind but `Expression`, which has no plain twin."""


def tree(seed):
    """Return a random tree whose joints j1 and j2 have single coordinates, a continuous one among them."""
    mechanism = random_tree(seed)
    kinds = {"j1": "prismatic", "j2": "continuous"}
    joints = tuple(replace(joint, kind=kinds.get(joint.name, joint.kind)) for joint in mechanism.joints)
    return replace(mechanism, joints=joints)


def levels(mechanism, q, v, t):
    return assemble(PlainKinematics(mechanism, q, v, t))


def test_every_constraint_has_an_example():
    assert {type(each) for each in EXAMPLES} | {da.Expression} == set(KINDS)


def every(seed):
    """Return a tree with all examples on it at once."""
    return tree(seed).constrain(*[replace(each, name=f"{i} {each.kind}") for i, each in enumerate(EXAMPLES)])


@given(st.integers(0, 10**6))
def test_rate_and_drift_are_time_derivatives(seed):
    """Along q(t) with constant v, d phi/dt = A v + offset and d/dt (A v + offset) = drift, by central differences.

    Angles about several axes: d phi/dt is the rate where phi = 0 only, see the next tests.
    """
    mechanism = every(seed)
    rng = np.random.default_rng(seed)
    q, v, t, h = mechanism.random(rng), rng.uniform(-1, 1, mechanism.nv), rng.uniform(-1, 1), 1e-5
    here = levels(mechanism, q, v, t)
    after = levels(mechanism, mechanism.integrate(q, h * v), v, t + h)
    before = levels(mechanism, mechanism.integrate(q, -h * v), v, t - h)
    at_rest = levels(mechanism, q, 0 * v, t)
    size = 1 + np.abs(here.jacobian).max(axis=1, keepdims=True) + np.abs(here.drift)
    errors = {"rate is A v + offset": (here.jacobian @ v[:, None] + at_rest.rate - here.rate, 1e-12 * size)}
    errors["drift"] = ((after.rate - before.rate) / (2 * h) - here.drift, 1e-7 * size**2)
    has = np.array(mechanism.holonomic)
    error = (after.residual - before.residual) / (2 * h) - here.rate[has]
    error[["rotation about" in name for name, one in zip(mechanism.names, has, strict=True) if one]] = 0.0
    errors["residual"] = (error, 1e-7 * size[has] ** 2)
    for what, (error, allowed) in errors.items():
        names = np.array(mechanism.names)[has] if what == "residual" else np.array(mechanism.names)
        wrong = np.abs(error) > allowed
        assert not wrong.any(), (what, names[wrong[:, 0]], error[wrong])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_kernels_are_the_plain_twin(seed):
    mechanism = every(seed)
    rng = np.random.default_rng(seed)
    q, v, t = mechanism.random(rng, 3), rng.standard_normal((3, mechanism.nv)), np.array([0.1, 0.2, 0.3])
    A, drift = mechanism.jacobian(q, t), mechanism.drift(q, v, t)
    phi, rate = mechanism.constraint(q, t), mechanism.constraint_velocity(q, v, t)
    for i in range(3):
        plain = levels(mechanism, q[i], v[i], t[i])
        np.testing.assert_allclose(A[i], plain.jacobian, atol=1e-12)
        np.testing.assert_allclose(drift[i], plain.drift[:, 0], atol=1e-11)
        np.testing.assert_allclose(rate[i], plain.rate[:, 0], atol=1e-12)
        np.testing.assert_allclose(phi[i], plain.residual[:, 0], atol=1e-12)
    assert len(mechanism.names) == A.shape[1]


HELD = [
    each for each in EXAMPLES if isinstance(each, Pair) and not isinstance(each, da.Distance | da.Rolling | da.Weld)
]


@pytest.mark.parametrize("example", HELD, ids=lambda c: c.kind)
def test_held_is_anchored_at_the_present_place(example):
    """Without `other` and `at` the rows are those of an anchor where the frame is now, but for the residual."""
    free = replace(example, other=None, at=None)
    mechanism = tree(4).constrain(free)
    rng = np.random.default_rng(0)
    q, v = mechanism.random(rng), rng.standard_normal(mechanism.nv)
    now = PlainKinematics(mechanism, q, v).frame("f3" if example.frame == "f3" else "f4", free.placement)
    place = now.position[:, 0] if isinstance(free, da.Point) else Placement(now.rotation, now.position[:, 0])
    anchored = tree(4).constrain(replace(free, at=place))
    held, fixed = levels(mechanism, q, v, 0.0), levels(anchored, q, v, 0.0)
    assert not any(mechanism.holonomic)
    assert all(anchored.holonomic)
    assert held.residual.size == 0
    np.testing.assert_allclose(fixed.residual, 0, atol=1e-14)
    np.testing.assert_allclose(held.jacobian, fixed.jacobian, atol=1e-13)
    np.testing.assert_allclose(held.drift, fixed.drift, atol=1e-13)


def test_a_held_weld_is_the_jacobian_in_world_axes():
    mechanism = tree(4).constrain(da.Weld("f3"))
    rng = np.random.default_rng(0)
    q, v = mechanism.random(rng), rng.standard_normal(mechanism.nv)
    now = PlainKinematics(mechanism, q, v).frame("f3")
    rows = levels(mechanism, q, v, 0.0)
    np.testing.assert_array_equal(rows.jacobian, now.jacobian)
    anchored = tree(4).constrain(da.Weld("f3", at=Placement(now.rotation, now.position[:, 0])))
    turned = np.kron(np.eye(2), now.rotation)
    fixed = levels(anchored, q, v, 0.0)
    np.testing.assert_allclose(turned @ fixed.jacobian, rows.jacobian, atol=1e-13)
    np.testing.assert_allclose(turned @ fixed.drift, rows.drift, atol=1e-13)


def two_bodies():
    b = da.Builder("two", gravity=(0, 0, 0))
    for name in ("one", "two"):
        b.body(name, mass=1.0, inertia=(1, 1, 1))
    return b.build(base="floating")


JOINTLIKE = [
    (da.Point, "spherical", {}),
    (da.Weld, "fixed", {}),
    (da.Revolute, "revolute", {"axis": make_joint("revolute", "x").axis}),
    (da.Revolute, "revolute", {"axis": (0.6, 0.0, -0.8)}),
    (da.Prismatic, "prismatic", {"axis": (0.6, 0.0, -0.8)}),
    (da.Planar, "planar", {"axis": (0.6, 0.0, -0.8)}),
    (da.Universal, "universal", {"axis": (0.6, 0.0, -0.8), "axis2": (0.0, 1.0, 0.0)}),
]


@pytest.mark.parametrize(("kind", "joint", "axes"), JOINTLIKE)
def test_a_loop_joint_leaves_the_motion_of_the_tree_joint_free(kind, joint, axes):
    """Wherever the joint of a tree can go, the loop's residual is zero; its rows have full rank and stop the rest."""
    mechanism = two_bodies().constrain(kind("one", "two", **BETWEEN, **axes))
    tree_joint = replace(make_joint(joint, "x"), **axes)
    rng = np.random.default_rng(0)
    for _ in range(4):
        base = mechanism.random(rng)[:7]
        unlimited = np.full(JOINTS[joint].nv, np.inf)
        x = JOINTS[joint].random(rng, -unlimited, unlimited, ())
        if joint == "universal":  # the first axis belongs to `other` in a tree, to `frame` in a loop
            R, p = (
                as_array(each)
                for each in JOINTS[joint].motion(replace(tree_joint, axis=axes["axis2"], axis2=axes["axis"]), list(x))
            )
        else:
            R, p = (as_array(each) for each in JOINTS[joint].motion(tree_joint, list(x)))
        X2 = Placement.from_quaternion(base[3:], base[:3])
        X1 = X2 @ OTHER @ Placement(R, p) @ PLACE.inverse()
        q = np.concatenate([X1.position, X1.quaternion(), base])
        rows = levels(mechanism, q, np.zeros(12), 0.0)
        np.testing.assert_allclose(rows.residual, 0, atol=1e-14)
        assert len(mechanism.names) == 6 - JOINTS[joint].nv
        assert np.linalg.matrix_rank(rows.jacobian, tol=1e-9) == 6 - JOINTS[joint].nv


def test_cylindrical_line_and_plane_leave_their_motions_free():
    axis = np.array([0.6, 0.0, -0.8])
    X2 = Placement.from_quaternion((0.3, 0.1, 0.5, -0.7), (1, 2, 3))
    R, p = (
        as_array(JOINTS["revolute"].motion(replace(make_joint("revolute", "x"), axis=tuple(axis)), [0.7])[0]),
        0.4 * axis,
    )
    turned = Placement.from_quaternion((0.3, -0.5, 0.1, 0.2))
    across = np.cross(axis, [0, 1, 0])
    for constraint, motion, rows in [
        (da.Cylindrical("one", "two", axis=axis), Placement(R, p), 4),
        (da.PointOnLine("one", "two", axis=axis), Placement(turned.rotation, p), 2),
        (da.PointInPlane("one", "two", normal=axis), Placement(turned.rotation, across), 1),
    ]:
        X1 = X2 @ motion
        q = np.concatenate([X1.position, X1.quaternion(), X2.position, X2.quaternion()])
        found = levels(two_bodies().constrain(constraint), q, np.zeros(12), 0.0)
        np.testing.assert_allclose(found.residual, 0, atol=1e-14)
        assert np.linalg.matrix_rank(found.jacobian) == rows == len(constraint.row_names())


def test_residuals_measure_metres_and_radians():
    """A weld off by a turn of 0.3 about z and 0.2 m along x says so; a rod 1 % too long is off by its excess."""
    weld = two_bodies().constrain(da.Weld("one", "two"), da.Distance("one", "two", length=1.0))
    q = np.zeros(14)
    q[0], q[5], q[6], q[13] = 1.01, np.sin(0.15), np.cos(0.15), 1.0
    phi = weld.constraint(q)
    np.testing.assert_allclose(phi[:6], [1.01, 0, 0, 0, 0, 0.3], atol=1e-15)
    np.testing.assert_allclose(phi[6], 0.01, rtol=0.01)


def test_names_are_for_people():
    mechanism = tree(0).constrain(
        da.Point("f1"), da.Revolute("f2", "f3", axis=(0, 0, 1), name="loop knee"), da.Distance("f1", "f4", length=1),
        da.Rolling("f5", radius=0.1, name="wheel"), da.Servo("j1", 0.0), da.Coupler({"j1": 1, "j2": -2}),
    )  # fmt: skip
    assert mechanism.names == (
        "f1 x", "f1 y", "f1 z", "loop knee x", "loop knee y", "loop knee z", "loop knee: rotation about x",
        "loop knee: rotation about y", "f1-f4: distance", "wheel: slip along x", "wheel: slip along y",
        "wheel: contact", "servo j1", "coupler j1-j2",
    )  # fmt: skip
    assert "constraints\n  f1: point, 3 rows\n  loop knee: revolute, 5 rows\n  f1-f4: distance, 1 row\n" in str(
        mechanism
    )


def test_stabilisation_adds_rate_and_residual():
    example = da.Weld("f3", "f5")
    plain = tree(0).constrain(example)
    rng = np.random.default_rng(0)
    q, v = plain.random(rng), rng.standard_normal(plain.nv)
    off = levels(plain, q, v, 0.0)
    for given_gains, kp, kd in ((10.0, 100.0, 20.0), ((3.0, 5.0), 3.0, 5.0)):
        on = levels(tree(0).constrain(replace(example, stabilize=given_gains)), q, v, 0.0)
        np.testing.assert_allclose(on.drift, off.drift + kd * off.rate + kp * off.residual, rtol=1e-13)
    held = levels(tree(0).constrain(da.Point("f3", stabilize=(3, 5))), q, v, 0.0)
    bare = levels(tree(0).constrain(da.Point("f3")), q, v, 0.0)
    np.testing.assert_allclose(held.drift, bare.drift + 5 * bare.rate, rtol=1e-13)


def test_constrain_returns_a_new_mechanism():
    open_one = tree(0)
    closed = open_one.constrain(da.Point("f3"))
    assert open_one.names == ()
    assert closed.names == ("f3 x", "f3 y", "f3 z")
    assert closed.constrain(da.Point("f4")).names[3:] == ("f4 x", "f4 y", "f4 z")
    assert closed.open_tree() == open_one
    assert closed != open_one
    assert closed == open_one.constrain(da.Point("f3"))
    assert closed.cacheable
    assert not closed.constrain(da.Servo("j1", lambda t: t)).cacheable
    assert closed.constrain(da.Servo("j1", 1)).cacheable


def test_loops_and_couplings_of_a_model_are_constraints():
    b = da.Builder()
    for i in range(3):
        b.body(f"b{i}", mass=1.0)
        b.joint(
            f"j{i}", "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}", axis=(0, 0, 1), position=(1, 0, 0)
        )
    b.couple("gear", {"j0": 1, "j1": 3}, offset=0.5)
    for kind in ("point", "weld", "revolute", "prismatic", "cylindrical", "universal", "planar"):
        b.loop(kind, kind, "b2", "world", placement=PLACE, other_placement=OTHER, axis=(0, 0, 1))
    b.loop("rod", "distance", "b2", "b0", options={"length": 0.5})
    mechanism = b.build()
    kinds = [each.kind for each in mechanism.all_constraints]
    assert kinds == [
        "coupler",
        "point",
        "weld",
        "revolute",
        "prismatic",
        "cylindrical",
        "universal",
        "planar",
        "distance",
    ]
    assert mechanism.names[:2] == ("gear", "loop point x")
    assert len(mechanism.names) == 1 + 3 + 6 + 5 + 5 + 4 + 4 + 3 + 1
    assert mechanism.jacobian(mechanism.neutral()).shape == (32, 3)
    b.loop("bad", "distance", "b2", "b0")
    with pytest.raises(da.ModelError, match=r"loop 'bad'.*length"):
        _ = b.build().names


def test_places_in_every_form():
    """A place is what people have at hand: a homogeneous matrix, rotation and position, SE3, or a frame's name."""
    place = Placement.from_rpy((0.3, -0.2, 0.9), (0.1, 0.2, 0.3))
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = place.rotation, place.position
    pair = (place.rotation.tolist(), place.position.tolist())
    same = [place, matrix, matrix.tolist(), pair, (place.quaternion(), place.position), pin.SE3(matrix)]
    m = flying()
    q = m.random(np.random.default_rng(0))
    expected = m.constrain(da.Weld("f3", "ball", at=place, placement=place)).constraint(q)
    for each in same:
        found = m.constrain(da.Weld("f3", "ball", at=each, placement=each)).constraint(q)
        np.testing.assert_allclose(found, expected, atol=1e-15)
    named = m.constrain(da.Weld("f3", at="ball"))
    assert named.names == m.constrain(da.Weld("f3", "ball")).names
    np.testing.assert_array_equal(named.constraint(q), m.constrain(da.Weld("f3", "ball")).constraint(q))


MISTAKES = [
    (lambda m: m.constrain(da.Point("f33")), "no frame 'f33'; did you mean 'f3'"),
    (lambda m: m.constrain(da.Weld("f3", "bo3")), "no frame 'bo3'; did you mean 'b3'"),
    (lambda m: m.constrain(da.Point("f3", "b3")), "'f3' and 'b3' are both on 'b3'"),
    (lambda m: m.constrain(da.Point("world")), "both on 'world'"),
    (lambda m: m.constrain(da.Point("f3"), da.Weld("f3")), "two constraint rows are called 'f3 x'.*name="),
    (lambda m: m.constrain("f3"), "'f3' is no constraint; da.Point"),
    (lambda m: m.constrain(da.Coupler({"j7": 1})), "no joint or coordinate 'j7'"),
    (lambda m: m.constrain(da.Servo("j7", 0)), "no joint or coordinate 'j7'"),
    (lambda m: m.constrain(da.Servo("flying", 0)), "'flying' is no single length or angle"),
    (lambda m: m.constrain(da.Coupler({"flying.wx": 1})), "'flying.wx' is no single length or angle.*free joint"),
    (lambda m: da.Coupler({"j1": 0}), "couples nothing"),
    (lambda m: da.Coupler({"j1": float("nan")}), "factor of constraint 'coupler j1'"),
    (lambda m: da.Servo("j1", float("inf")), "motion of constraint 'servo j1'"),
    (lambda m: m.constrain(da.Servo("j1", lambda t: ca.SX.sym("x") * t)).jacobian(m.neutral()), "of the time alone"),
    (lambda m: da.Revolute("f3", axis=(0, 0, 0)), "axis of constraint 'f3'.*not all zero"),
    (lambda m: da.Universal("f3", axis=(1, 0, 0), axis2=(2, 0, 0)), "are parallel"),
    (lambda m: da.Distance("f3", length=0), "more than zero, not 0.*Point"),
    (lambda m: da.Rolling("f3", radius=-1), "radius of constraint 'f3' must be more than zero"),
    (lambda m: da.Point("f3", at=(1, 2)), "a position .three numbers.*not .1, 2."),
    (lambda m: da.Weld("f3", at=np.ones((4, 4))), "4x4 matrix with last row 0 0 0 1"),
    (lambda m: da.Weld("f3", at=2 * np.eye(4)), "4x4 matrix with last row 0 0 0 1"),
    (lambda m: da.Weld("f3", at=np.diag([2.0, 1, 1, 1])), "not a rotation matrix"),
    (lambda m: da.Weld("f3", at=((0, 0, 0, 0), (1, 2, 3))), "constraint 'f3'.*quaternion"),
    (lambda m: da.Weld("f3", "b1", at="f1"), "both name a frame"),
    (lambda m: da.Weld("f3", placement="f1"), "a place of constraint 'f3' is a position"),
    (lambda m: m.constrain(da.Weld("f3", at="f11")), "no frame 'f11'; did you mean 'f1'"),
    (lambda m: da.Point("f3", at=(1, 2, float("nan"))), "not finite"),
    (lambda m: da.Point("f3", stabilize=-1), "a rate w >= 0"),
    (lambda m: da.Point("f3", stabilize=(1, 2, 3)), "a rate w >= 0"),
    (lambda m: da.Expression(3.0, name="x"), "is a function of the mechanism in motion"),
    (lambda m: da.Expression(lambda k: k.q[0]), "needs a name"),
    (lambda m: da.Coupler("j1"), "coordinates with factors.*not 'j1'"),
    (lambda m: da.Coupler(None), "coordinates with factors.*not None"),
    (lambda m: da.Coupler([("j1", 1, 2)]), "coordinates with factors"),
    (lambda m: da.Point("f3", name=5), "name of a constraint is a text, not 5"),
    (lambda m: da.Point("f3", stabilize=True), "a rate w >= 0.*not True"),
    (lambda m: da.Rolling("f3", radius=1, contact="no"), "contact of constraint 'f3' is True or False"),
    (lambda m: m.constrain(da.Servo("j1", lambda: 3)).jacobian(m.neutral()), "function of the time t.*it failed"),
    (lambda m: m.constrain(da.Servo("j1", lambda t: 1 / 0)).jacobian(m.neutral()), "it failed: division"),
    (lambda m: m.constrain(da.Servo("j1", lambda t: "x")).jacobian(m.neutral()), "function of the time t"),
    (lambda m: m.constrain(da.Point("f3")).compile("forward", metric="x"), "metric is 3 positive weights"),
]  # fmt: skip


def flying():
    b = da.Builder("with a ball")
    for i in range(5):
        b.body(f"b{i}", mass=1.0)
        b.joint(f"j{i}", "revolute", parent=f"b{i - 1}" if i else "world", child=f"b{i}")
        b.frame(f"f{i}", f"b{i}")
    b.body("ball", mass=1.0)
    b.joint("flying", "free", parent="world", child="ball")
    return b.build()


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistakes(mistake, message):
    with pytest.raises(da.ModelError, match=message):
        mistake(flying())
