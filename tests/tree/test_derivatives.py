"""Derivatives of dynamics against Pinocchio, 50-digit differences and closed forms."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.errors import ModelError, UnsupportedError
from dalembert.tree.requests import REQUESTS, SOLVES
from tests.tree.contacts import GO2, PANDA, Robot
from tests.tree.test_constrained_pinocchio import Oracle, end, states

CLOSE = 1e-10


def traced(mechanism, what, **options):
    """Return a request as a function of numbers that gives its outputs by name; nothing is compiled."""
    request = next(request for request in (*REQUESTS, *SOLVES) if request.name == what)
    function = request.trace(mechanism, **{**request.options, **options})
    function = getattr(function, "unrolled", function)  # columns written out

    def call(*inputs):
        return {name: np.array(x) for name, x in zip(function.name_out(), function.call(list(inputs)), strict=True)}

    return call


def assert_close(found, expected, close=CLOSE):
    np.testing.assert_allclose(found, expected, rtol=0, atol=close * max(np.abs(expected).max(), 1e-9))


# --- open trees -------------------------------------------------------------------------------------------------------

TREES = (PANDA, replace(GO2, frames=()), Robot("z1_description/urdf/z1.urdf", "fixed", (), 0))


@pytest.mark.parametrize("robot", TREES, ids=lambda robot: robot.file.split("/")[-1])
def test_open_trees_as_pinocchio(robot):
    """`computeABADerivatives` and `computeRNEADerivatives`: tangent columns, floating base included."""
    tree, model = robot.tree(), robot.pinocchio()
    data, rng = model.createData(), np.random.default_rng(4)
    forward, inverse = traced(tree, "forward_derivatives"), traced(tree, "inverse_derivatives")
    for q in tree.random(rng, 2):
        v, tau = rng.standard_normal(tree.nv), rng.standard_normal(tree.nv)
        found = forward(q, v, tau, 0.0)
        assert found["status"] == da.Status.UNIQUE
        expected = [np.array(x) for x in pin.computeABADerivatives(model, data, q, v, tau)]
        for name, block in zip(("q", "v", "force"), expected, strict=True):
            assert_close(found[f"dacceleration_d{name}"], block)
        found = inverse(q, v, tau, 0.0)
        for name, block in zip(("q", "v", "a"), pin.computeRNEADerivatives(model, data, q, v, tau), strict=True):
            assert_close(found[f"dtau_d{name}"], np.array(block))


def test_springs_dampers_and_armature_take_part():
    """q'' = (u - c v - k (q - q0)) / (I + J) of a disc on a spring: all derivatives are constants."""
    builder = da.Builder("disc")
    builder.body("disc", mass=1.0, inertia=(0.2, 0.2, 0.3))
    builder.joint(
        "hinge", "revolute", parent="world", child="disc", axis=(0, 0, 1), armature=0.2, damping=0.7, stiffness=3.0
    )
    disc = builder.build()
    d = disc.derivatives([0.4], [1.1], [0.5])
    for name, expected in (("q", -6.0), ("v", -1.4), ("force", 2.0)):
        assert_close(d["acceleration", name], [[expected]])
    d = disc.derivatives([0.4], [1.1], [0.5], wrt="inertia:disc")
    a = (0.5 - 0.77 - 1.2) / 0.5
    assert_close(d["acceleration", "inertia:disc"], [[0.0] * 9 + [-a / 0.5]])


def test_inverse_dynamics_of_a_held_hand():
    """Least joint forces beside a point that is held: differences of NumPy's least squares over Pinocchio's terms."""
    tree, model = PANDA.tree(), PANDA.pinocchio()
    frame = PANDA.frames[0]
    held, data, number = tree.constrain(da.Point(frame)), model.createData(), model.getFrameId(frame)
    rng = np.random.default_rng(5)
    q, v, a = tree.random(rng), *rng.standard_normal((2, tree.nv))

    def least(q, v, a):
        b = pin.rnea(model, data, q, v, a).copy()
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        A = pin.getFrameJacobian(model, data, number, pin.LOCAL_WORLD_ALIGNED)[:3]
        lam = np.linalg.lstsq(A.T, -b, rcond=None)[0]
        return np.concatenate([b + A.T @ lam, lam])

    found = traced(held, "inverse_derivatives")(q, v, a, 0.0)
    assert da.Status(int(found["status"].item())).ok
    both = np.concatenate([found["tau"], found["multipliers"]]).ravel()
    assert_close(both, least(q, v, a))
    for name, vary in (
        ("q", lambda h, x: least(pin.integrate(model, q, h * x), v, a)),
        ("v", lambda h, x: least(q, v + h * x, a)),
        ("a", lambda h, x: least(q, v, a + h * x)),
    ):
        expected = np.array([slope(lambda h, x=x, f=vary: f(h, x)) for x in np.eye(tree.nv)]).T
        assert_close(np.vstack([found[f"dtau_d{name}"], found[f"dmultipliers_d{name}"]]), expected, 1e-8)


# --- contacts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", [GO2, PANDA], ids=["go2", "panda"])
def test_contacts_as_pinocchio(robot):
    """`computeConstraintDynamicsDerivatives`: accelerations and forces, by q, v and joint forces."""
    mechanism, model = robot.in_contact(), robot.pinocchio()
    oracle = Oracle(model, robot.rows, [[end(model, frame)] for frame in robot.frames])
    found_at = traced(mechanism, "forward_derivatives")
    for q, v, tau in states(robot, mechanism, model, 2):
        found, settings = found_at(q, v, tau, 0.0), pin.ProximalSettings(1e-14, 0.0, 1)
        pin.constraintDynamics(model, oracle.data, q, v, tau, oracle.contacts, oracle.found, settings)
        blocks = pin.computeConstraintDynamicsDerivatives(model, oracle.data, oracle.contacts, oracle.found, settings)
        for k, name in enumerate(("q", "v", "force")):
            assert_close(found[f"dacceleration_d{name}"], np.array(blocks[k]))
            if robot.rows == 3:  # moments of 6-D contacts are in other axes there
                assert_close(-found[f"dmultipliers_d{name}"], np.array(blocks[3 + k]))


def test_impacts_as_pinocchio():
    """`computeImpulseDynamicsDerivatives`, by a fresh model each: it keeps terms of the state before."""
    mechanism, model = GO2.in_contact(), GO2.pinocchio()
    found_at = traced(mechanism, "impact_derivatives")
    for q, v, _ in states(GO2, mechanism, model, 2):
        oracle = Oracle(model, 3, [[end(model, frame)] for frame in GO2.frames])
        found, settings = found_at(q, v, np.zeros(12), 0.0), pin.ProximalSettings(1e-14, 0.0, 1)
        after = pin.impulseDynamics(model, oracle.data, q, v, oracle.contacts, oracle.found, 0.0, settings)
        assert_close(found["velocity"].ravel(), after)
        pin.computeImpulseDynamicsDerivatives(model, oracle.data, oracle.contacts, oracle.found, 0.0, settings)
        assert_close(found["dvelocity_dq"], oracle.data.ddq_dq)
        assert_close(found["dvelocity_dv"], np.eye(18) + oracle.data.ddq_dv)
        assert_close(-found["dimpulses_dq"], oracle.data.dlambda_dq)
        assert_close(-found["dimpulses_dv"], oracle.data.dlambda_dv)


def test_impacts_with_restitution():
    """Differences of `pin.impulseDynamics`; its own derivatives are those of e = 0 only."""
    robot = replace(GO2, frames=("FL_foot", "RR_foot"))
    mechanism, model = robot.in_contact(), robot.pinocchio()
    oracle = Oracle(model, 3, [[end(model, frame)] for frame in robot.frames])
    q, v, _ = next(iter(states(robot, mechanism, model, 1)))

    def after(q, v, e):
        settings = pin.ProximalSettings(1e-14, 0.0, 1)
        return pin.impulseDynamics(model, oracle.data, q, v, oracle.contacts, oracle.found, e, settings).copy()

    e = 0.3
    found = traced(mechanism, "impact_derivatives", wrt=("q", "v", "restitution"))(q, v, np.full(6, e), 0.0)
    by_q = [slope(lambda h, x=x: after(pin.integrate(model, q, h * x), v, e)) for x in np.eye(18)]
    by_v = [slope(lambda h, x=x: after(q, v + h * x, e)) for x in np.eye(18)]
    assert_close(found["dvelocity_dq"], np.array(by_q).T, 1e-8)
    assert_close(found["dvelocity_dv"], np.array(by_v).T, 1e-8)
    assert_close(found["dvelocity_drestitution"].sum(axis=1), slope(lambda h: after(q, v, e + h)), 1e-8)


def slope(f, h=1e-3):
    """Return f'(0) by central differences, extrapolated twice: h^6."""
    first = [(f(s) - f(-s)) / (2 * s) for s in (h, h / 2, h / 4)]
    second = [(4 * first[k + 1] - first[k]) / 3 for k in range(2)]
    return (16 * second[1] - second[0]) / 15


def test_inertial_numbers_of_a_body_on_the_ground():
    """d(a, lam) by the ten numbers of a calf: differences of `pin.constraintDynamics` with other inertias."""
    robot = replace(GO2, frames=("FL_foot", "RR_foot"))
    mechanism, model = robot.in_contact(), robot.pinocchio()
    q, v, tau = next(iter(states(robot, mechanism, model, 1)))
    joint = model.getJointId("FL_thigh_joint")
    numbers = model.inertias[joint].toDynamicParameters()

    def solved(change):
        other = model.copy()
        other.inertias[joint] = pin.Inertia.FromDynamicParameters(numbers + change)
        return np.concatenate(Oracle(other, 3, [[end(other, frame)] for frame in robot.frames])(q, v, tau))

    found = traced(mechanism, "forward_derivatives", wrt=("inertia:FL_thigh",))(q, v, tau, 0.0)
    expected = np.array([slope(lambda h, x=x: solved(h * x), 1e-4) for x in np.eye(10)]).T
    assert_close(found["dacceleration_dinertia_FL_thigh"], expected[:18], 1e-7)
    assert_close(-found["dmultipliers_dinertia_FL_thigh"], expected[18:], 1e-7)


# --- redundant rows ---------------------------------------------------------------------------------------------------

POINTS = ((0.3, 0.1, 0.0), (-0.2, 0.4, 0.1), (0.1, -0.3, 0.2))


def plate():
    """Return a plate with an arm; three of its points are held: nine rows of rank six, whose null space turns."""
    builder = da.Builder("plate")
    builder.body("plate", mass=2.0, center=(0.02, -0.01, 0.03), inertia=(0.1, 0.2, 0.25))
    builder.joint("free", "free", parent="world", child="plate")
    for k, place in enumerate(POINTS):
        builder.frame(f"p{k}", "plate", position=place)
    return builder.build().constrain(*[da.Point(f"p{k}") for k in range(3)])


def exact_forces(R, tau):
    """Return the least reactions of the plate at rest, with 50 digits: A^T lam = tau - bias, least squares."""
    cross = lambda p: mpmath.matrix([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])  # noqa: E731
    A = mpmath.matrix(9, 6)
    for k, place in enumerate(POINTS):
        A[3 * k : 3 * k + 3, 0:3] = R
        A[3 * k : 3 * k + 3, 3:6] = -R * cross([mpmath.mpf(x) for x in place])
    g = R.T * mpmath.matrix([0, 0, mpmath.mpf(-9.81)])
    weight = 2 * g
    moment = cross([2 * mpmath.mpf(x) for x in (0.02, -0.01, 0.03)]) * g
    f = mpmath.matrix([*(tau[i] + weight[i] for i in range(3)), *(tau[3 + i] + moment[i] for i in range(3))])
    return A * mpmath.lu_solve(A.T * A, f)  # A has full column rank: (A^T)^+ = A (A^T A)^-1


def test_the_null_space_of_redundant_rows_turns():
    """d lam against 50-digit differences of the least-norm reactions; a least-norm solve alone misses by 57 %."""
    mechanism, rng = plate(), np.random.default_rng(3)
    q, tau = mechanism.random(rng), rng.standard_normal(6)
    d = mechanism.derivatives(q, np.zeros(6), tau)
    assert d.status == da.Status.REDUNDANT
    assert not d.unique.any()
    with mpmath.workdps(50):
        x, y, z, w = (mpmath.mpf(float(c)) for c in q[3:])
        n = mpmath.sqrt(x * x + y * y + z * z + w * w)
        x, y, z, w = x / n, y / n, z / n, w / n
        R = mpmath.matrix(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )
        h = mpmath.mpf(10) ** -20
        expected = np.zeros((9, 6))
        for i in range(3):
            e = [1 if k == i else 0 for k in range(3)]
            S = mpmath.matrix([[0, -e[2], e[1]], [e[2], 0, -e[0]], [-e[1], e[0], 0]])
            ahead, behind = (exact_forces(R * mpmath.expm(s * h * S), tau) for s in (1, -1))
            expected[:, 3 + i] = [float(value / (2 * h)) for value in ahead - behind]
    assert_close(d["multipliers", "q"], expected)
    assert_close(d["acceleration", "q"] + 1.0, np.ones((6, 6)))


def test_redundant_rows_of_a_moving_mechanism():
    """Accelerations and least reactions against differences of NumPy's pseudoinverse over Pinocchio's matrices."""
    robot = replace(GO2, frames=("FL_foot", "FR_foot"))
    tree, model = robot.tree(), robot.pinocchio()
    tree = replace_frames(tree)
    mechanism = tree.constrain(da.Point("FL_foot"), da.Point("FR_foot"), da.Point("beside"))
    names = ("FL_foot", "FR_foot", "beside")
    calf = model.frames[model.getFrameId("FL_foot")]
    place = calf.placement * pin.SE3(np.eye(3), np.array([0.03, 0.0, 0.02]))
    model.addFrame(pin.Frame("beside", calf.parentJoint, 0, place, pin.FrameType.OP_FRAME))
    model.addFrame(
        pin.Frame(
            "third",
            calf.parentJoint,
            0,
            calf.placement * pin.SE3(np.eye(3), np.array([0.0, 0.05, 0.0])),
            pin.FrameType.OP_FRAME,
        )
    )
    mechanism = mechanism.constrain(da.Point("third"))
    data, ids = model.createData(), [model.getFrameId(name) for name in (*names, "third")]
    rng = np.random.default_rng(8)
    q, tau, v = mechanism.random(rng), rng.standard_normal(18), rng.standard_normal(18)

    def terms(q):
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        A = np.vstack([pin.getFrameJacobian(model, data, i, pin.LOCAL_WORLD_ALIGNED)[:3] for i in ids])
        return M.copy(), A

    v -= np.linalg.pinv(terms(q)[1]) @ (terms(q)[1] @ v)

    def exact(q):
        M, A = terms(q)
        h = pin.nonLinearEffects(model, data, q, v).copy()
        pin.forwardKinematics(model, data, q, v, np.zeros(18))
        pin.updateFramePlacements(model, data)
        drift = np.concatenate(
            [pin.getFrameClassicalAcceleration(model, data, i, pin.LOCAL_WORLD_ALIGNED).linear for i in ids]
        )
        inverse = np.linalg.inv(M)
        lam = np.linalg.pinv(A @ inverse @ A.T, rcond=1e-11) @ (A @ inverse @ (tau - h) + drift)
        return np.concatenate([inverse @ (tau - h - A.T @ lam), lam])

    found = traced(mechanism, "forward_derivatives")(q, v, tau, 0.0)
    assert found["status"] == da.Status.REDUNDANT
    expected = np.array([slope(lambda h, x=x: exact(pin.integrate(model, q, h * x))) for x in np.eye(18)]).T
    assert_close(found["dacceleration_dq"], expected[:18], 1e-7)
    assert_close(found["dmultipliers_dq"], expected[18:], 1e-7)


def replace_frames(tree):
    """Return Go2 with two more places on the calf of its left front leg."""
    foot = tree.frame("FL_foot")
    places = {"beside": (0.03, 0.0, 0.02), "third": (0.0, 0.05, 0.0)}
    at = [
        da.model.Frame(name, foot.body, foot.placement @ da.model.Placement(np.eye(3), np.array(p)))
        for name, p in places.items()
    ]
    return replace(tree, frames=(*tree.frames, *at))


# --- massless links, singular configurations, names -------------------------------------------------------------------


def test_massless_crank_and_rod():
    """A massless crank and rod drive 2 kg against a spring, with a row across the plane that holds nothing.

    With x = r cos t + sqrt(l^2 - r^2 sin^2 t) of the crank's angle t: m x_t a = u / x_t - k x - m x_tt w^2.
    """
    builder = da.Builder("engine", gravity=(0.0, 0.0, 0.0))
    for name in ("crank", "rod"):
        builder.body(name)
    builder.body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("crank", "revolute", parent="world", child="crank", axis=(0, 0, 1))
    builder.joint("pin", "revolute", parent="crank", child="rod", axis=(0, 0, 1), position=(0.3, 0, 0))
    builder.joint("slide", "prismatic", parent="world", child="block", axis=(1, 0, 0), stiffness=5.0)
    builder.frame("end", "rod", position=(1.0, 0, 0))
    engine = builder.build().constrain(da.Point("end", "block"))

    def x(t):
        return 0.3 * mpmath.cos(t) + mpmath.sqrt(1 - (0.3 * mpmath.sin(t)) ** 2)

    def phi(t):
        return -t - mpmath.asin(0.3 * mpmath.sin(t))

    def a(t, w, u):
        x1, x2 = mpmath.diff(x, t), mpmath.diff(x, t, 2)
        return (u / x1 - 5 * x(t) - 2 * x2 * w**2) / (2 * x1)

    t, w, u = 0.8, 1.3, 0.7
    with mpmath.workdps(50):
        along, second = ([float(mpmath.diff(f, t, n)) for f in (lambda t: t, phi, x)] for n in (1, 2))
        q = [t, float(phi(t)), float(x(t))]
        expected = [float(mpmath.diff(lambda t: a(t, w, u), t)), float(mpmath.diff(lambda w: a(t, w, u), w))]
        by_force = float(mpmath.diff(lambda u: a(t, w, u), u))
    d = engine.derivatives(q, w * np.array(along), [u, 0.0, 0.0])
    assert d.status == da.Status.REDUNDANT
    assert d.unique.tolist() == [True, True, False]
    by_angle = d["acceleration", "q"] @ along + d["acceleration", "v"] @ (w * np.array(second))
    assert_close(by_angle[0], expected[0])
    assert_close((d["acceleration", "v"] @ along)[0], expected[1])
    assert_close(d["acceleration", "force"][0, 0], by_force)


def test_singular_samples_leave_their_neighbours_alone():
    """A straight arm with a held hand loses rank: that sample says so, the others have the numbers they have alone."""
    builder = da.Builder("arm")
    for k in range(3):
        builder.body(f"b{k}", mass=1.0, center=(0.2, 0.1, 0.0), inertia=(0.02, 0.02, 0.03))
        parent = f"b{k - 1}" if k else "world"
        builder.joint(f"j{k}", "revolute", parent=parent, child=f"b{k}", axis=(0, 0, 1), position=(0.5 * bool(k), 0, 0))
    builder.frame("hand", "b2", position=(0.5, 0, 0))
    arm = builder.build().constrain(da.Point("hand"))
    rng = np.random.default_rng(0)
    q, v, tau = rng.standard_normal((3, 5, 3))
    q[1], v[1], tau[1] = [0.3, 0.0, 0.0], 0.0, 0.0  # at rest: nothing but the pivots shows that rank is lost
    q[3, 1] = np.nan
    d = arm.derivatives(q, v, tau)
    assert d.ok.tolist() == [True, False, True, False, True]
    assert d.status[3] == da.Status.NONFINITE
    for k in range(5):
        if d.ok[k]:
            alone = arm.derivatives(q[k], v[k], tau[k])
            np.testing.assert_array_equal(d["multipliers", "q"][k], alone["multipliers", "q"])
        else:
            assert np.isnan(d["acceleration", "q"][k]).all()


def test_a_batch_of_no_samples():
    d = plate().derivatives(np.zeros((0, 7)), np.zeros((0, 6)))
    assert d["multipliers", "q"].shape == (0, 9, 6)
    assert d.unique.shape == (0, 9)


def test_names_are_checked():
    tree = PANDA.tree()
    with pytest.raises(ModelError, match="nothing to differentiate by"):
        tree.compile("forward_derivatives", wrt=("mass",))
    with pytest.raises(ModelError, match="panda_link7"):
        tree.compile("forward_derivatives", wrt=("inertia:panda_lnk7",))
    with pytest.raises(ModelError, match="twice"):
        tree.compile("forward_derivatives", wrt=("q", "q"))
    for names in (None, ()):
        with pytest.raises(ModelError, match="wrt names what"):
            tree.compile("forward_derivatives", wrt=names)
    with pytest.raises(UnsupportedError, match="no constraint rows"):
        tree.compile("impact_derivatives")
