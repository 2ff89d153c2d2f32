"""O10: constraints with and without time, forward and inverse dynamics, contacts that come and go: one form for all."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.examples import two_blocks
from dalembert.friction import Bounded, Coulomb, Hyperbolic, Reacting, resolve
from dalembert.memory import memory_of
from dalembert.model import solve

GRAVITY = 9.81


def driven_pendulum(drive=None, **more):
    """Return two rods of 1 m with point masses 2 and 1 kg, angles from the vertical, their joints driven on request."""
    q, v, t, u = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t"), ca.SX.sym("u", 2)
    first = ca.vertcat(ca.sin(q[0]), -ca.cos(q[0]))
    second = first + ca.vertcat(ca.sin(q[1]), -ca.cos(q[1]))
    speed = [ca.jtimes(x, q, v) for x in (first, second)]
    return da.Lagrangian(
        q, v, kinetic=ca.sumsqr(speed[0]) + ca.sumsqr(speed[1]) / 2, potential=GRAVITY * (2 * first[1] + second[1]),
        forces=u, controls=u, time=t, constraints={} if drive is None else drive(q, t), **more,
    )  # fmt: skip


def prescribed(t):
    """Return a motion of both angles with its rates: (2, 3)."""
    return np.array(
        [
            [0.4 * np.sin(2 * t), 0.8 * np.cos(2 * t), -1.6 * np.sin(2 * t)],
            [0.3 * t**2 - 0.1, 0.6 * t, 0.6 + 0.0 * t],
        ]
    )


def both_driven(q, t):
    return {"shoulder": q[0] - 0.4 * ca.sin(2 * t), "elbow": q[1] - (0.3 * t**2 - 0.1)}


@pytest.mark.parametrize("t", [0.0, 0.37, 1.9])
def test_O10_a_rheonomic_constraint_gives_the_drive_force(t):
    """Inverse dynamics is the forward problem with the motion prescribed; the reaction is Lagrange's left side."""
    q, v, a = prescribed(t).T
    driven = driven_pendulum(both_driven)
    np.testing.assert_allclose(driven.constraint(q, t), 0.0, atol=1e-15)
    np.testing.assert_allclose(driven.constraint_velocity(q, v, t), 0.0, atol=1e-15)
    found = driven.solve(q, v, t=t)
    np.testing.assert_allclose(found.acceleration, a, rtol=1e-13, atol=1e-13)
    c, s = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])  # two rods, by the textbook
    torque = [
        3 * a[0] + c * a[1] + s * v[1] ** 2 + 3 * GRAVITY * np.sin(q[0]),
        a[1] + c * a[0] - s * v[0] ** 2 + GRAVITY * np.sin(q[1]),
    ]
    np.testing.assert_allclose(found.reactions, torque, rtol=1e-13)
    forward = driven_pendulum().solve(q, v, t=t, u=found.reactions)
    np.testing.assert_allclose(forward.acceleration, a, rtol=1e-12, atol=1e-12)


def test_O10_inverse_then_forward_dynamics_return_the_motion_in_time():
    """Integrate the driven system, hand its drive forces to the free one, integrate again."""
    q, v, _ = prescribed(0.0).T
    driven, free = driven_pendulum(both_driven), driven_pendulum()
    inverse = da.simulate(driven, 1.5, q, v, every=0.1)
    np.testing.assert_allclose(inverse.q, prescribed(inverse.t)[:, 0].T, atol=1e-14)

    def drive(t, q, v):
        return driven.solve(*prescribed(t).T[:2], t=t).reactions

    forward = da.simulate(free, 1.5, q, v, every=0.1, force=drive, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(forward.q[-1], prescribed(1.5)[:, 0], atol=1e-8)
    np.testing.assert_allclose(np.asarray(inverse.reactions)[-1], drive(1.5, None, None), rtol=1e-10)


def test_O10_one_joint_driven_the_other_free():
    """Mixed: the elbow falls freely while the shoulder is driven; both halves satisfy the same equations."""
    half = driven_pendulum(lambda q, t: {"shoulder": q[0] - 0.4 * ca.sin(2 * t)})
    run = da.simulate(half, 2.0, [0.0, 0.5], [0.8, 0.0], every=0.25)
    motion = prescribed(run.t)
    np.testing.assert_allclose(run.q[:, 0], motion[0, 0], atol=1e-14)
    np.testing.assert_allclose(run.acceleration[:, 0], motion[0, 2], atol=1e-11)
    free = driven_pendulum()
    for k in (0, 3, -1):
        answer = free.solve(run.q[k], run.v[k], t=run.t[k], u=[run["shoulder"][k], 0.0])
        np.testing.assert_allclose(answer.acceleration, run.acceleration[k], rtol=1e-10, atol=1e-10)


def test_O10_scleronomic_rods_and_rheonomic_drive_share_one_matrix():
    """The same pendulum by four Cartesian coordinates: rods are rows without time, the drive is one with time."""
    x, v, t = ca.SX.sym("x", 4), ca.SX.sym("v", 4), ca.SX.sym("t")
    reach = x[2:] - x[:2]
    rows = {
        "upper rod": (ca.sumsqr(x[:2]) - 1) / 2,
        "lower rod": (ca.sumsqr(reach) - 1) / 2,
        "shoulder": ca.atan2(x[0], -x[1]) - 0.4 * ca.sin(2 * t),
    }
    rods = da.Lagrangian(
        x, v, kinetic=ca.sumsqr(v[:2]) + ca.sumsqr(v[2:]) / 2, potential=GRAVITY * (2 * x[1] + x[3]), constraints=rows,
        time=t,
    )  # fmt: skip
    now = 0.6
    q, rate, _ = prescribed(now).T
    e = [np.array([np.sin(y), -np.cos(y)]) for y in q]
    n = [np.array([np.cos(y), np.sin(y)]) for y in q]
    place, speed = (
        np.concatenate([e[0], e[0] + e[1]]),
        np.concatenate([rate[0] * n[0], rate[0] * n[0] + rate[1] * n[1]]),
    )
    np.testing.assert_allclose(rods.constraint(place, now), 0.0, atol=1e-15)
    cartesian = rods.solve(place, speed, t=now)
    angles = driven_pendulum(lambda q, t: {"shoulder": q[0] - 0.4 * ca.sin(2 * t)}).solve(q, rate, t=now)
    turn = (cartesian.acceleration[2:] - cartesian.acceleration[:2]) @ n[1]
    np.testing.assert_allclose(turn, angles.acceleration[1], rtol=1e-12)
    np.testing.assert_allclose(cartesian.reactions[2], angles.reactions[0], rtol=1e-12)


def test_O10_servos_on_every_joint_of_a_mechanism_are_inverse_dynamics():
    """Pinocchio's recursive Newton-Euler algorithm gives the torques of the drives."""
    b, names = da.Builder("arm"), ["hip", "knee", "ankle"]
    rng = np.random.default_rng(10)
    peer, parent, last = pin.Model(), "world", 0
    for k, name in enumerate(names):
        place, center, mass = rng.normal(size=3), 0.3 * rng.normal(size=3), 1.0 + k
        axis = tuple(np.eye(3)[k])
        b.body(f"body {k}", mass=mass, center=center, inertia=(0.2, 0.3, 0.25))
        b.joint(name, "revolute", parent=parent, child=f"body {k}", axis=axis, position=place)
        joint = getattr(pin, "JointModelR" + "XYZ"[k])()
        last = peer.addJoint(last, joint, pin.SE3(np.eye(3), place), name)
        peer.appendBodyToJoint(last, pin.Inertia(mass, center, np.diag([0.2, 0.3, 0.25])), pin.SE3.Identity())
        parent = f"body {k}"
    free = b.build()
    motions = [lambda t, k=k: 0.5 * ca.sin((k + 1) * t) + 0.2 * k for k in range(3)]
    driven = free.constrain(*[da.Servo(name, motion) for name, motion in zip(names, motions, strict=True)])
    t, order = 0.8, np.arange(1, 4)
    q, v, a = (
        0.5 * np.sin(order * t) + 0.2 * np.arange(3),
        0.5 * order * np.cos(order * t),
        -0.5 * order**2 * np.sin(order * t),
    )
    found = solve(driven, q, v, t=t)
    np.testing.assert_allclose(found.acceleration, a, rtol=1e-12)
    np.testing.assert_allclose(found.reactions, pin.rnea(peer, peer.createData(), q, v, a), rtol=1e-11)
    some = free.constrain(da.Servo(names[1], motions[1]))
    mixed = solve(some, q, v, [0.3, 0.0, -0.7], t)
    torque = pin.rnea(peer, peer.createData(), q, v, mixed.acceleration)
    np.testing.assert_allclose(torque, [0.3, mixed.reactions[0], -0.7], rtol=1e-10)
    assert mixed.acceleration[1] == pytest.approx(a[1], rel=1e-12)


def test_O10_a_drive_pulls_a_block_through_friction():
    """A rheonomic row and friction together: the drive force is inertia plus the friction that the sets say."""
    q, v, t = ca.SX.sym("x", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    pulled = da.Lagrangian(
        q, v, kinetic=2.0 * v[0] ** 2 + 1.5 * v[1] ** 2, time=t, constraints={"drive": q[0] - 0.5 * ca.sin(t)},
        friction=[Bounded("between", v[1] - v[0], 1.0), Bounded("ground", v[0], 6.0)],
    )  # fmt: skip
    run = da.simulate(pulled, 3.0, [0.0, 0.0], [0.5, 0.5], every=0.05)
    assert run.ok
    a = -0.5 * np.sin(run.t)
    np.testing.assert_allclose(run.acceleration[:, 0], a, atol=1e-12)
    between, ground = run.forces.T
    np.testing.assert_allclose(run.reactions["drive"], 4.0 * a + between - ground, atol=1e-11)
    held = run.modes[:, 0] == 0
    assert held.any()
    assert not held.all()
    np.testing.assert_allclose(between[held], 3.0 * a[held], atol=1e-11)  # the carried block needs its inertia
    first = next(event for event in run.events if event.contact == "between")
    assert first.time == pytest.approx(np.arcsin(1.0 / 1.5), abs=1e-10)  # until that is all the contact can give


def test_O10_degrees_of_freedom_change_without_new_code():
    """Two blocks on a belt: the rank of the sticking rows changes at events, the compiled code does not."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    contacts = [Bounded("first", v[0] - 0.3, Hyperbolic(4.0, 3.0)), Bounded("second", v[1] - 0.3, Hyperbolic(7.0, 3.0)),
                Bounded("between", v[0] - v[1], Hyperbolic(5.0, 3.0))]  # fmt: skip
    elastic = 14.0 * (q[0] ** 2 + 0.5 * q[1] ** 2 - q[0] * q[1])
    blocks = da.Lagrangian(q, v, kinetic=2.0 * v[0] ** 2 + 3.5 * v[1] ** 2, potential=elastic, friction=contacts)
    start = [0.0, 0.0], [0.3, 0.3]
    da.simulate(blocks, 1e-3, *start)
    blocks.contact_terms(*start, 0.0)
    kernels = memory_of(blocks, "kernels").items()
    run = da.simulate(blocks, 10.0, *start)
    freedoms = set()
    for place, rate, t, mode in zip(run.q, run.v, run.t, run.modes, strict=True):
        rows = blocks.contact_terms(place, rate, t)[1]
        assert rows.shape == (3, 2)
        freedoms.add(2 - (int(np.linalg.matrix_rank(rows[mode == 0])) if (mode == 0).any() else 0))
    assert freedoms == {0, 1, 2}
    assert memory_of(blocks, "kernels").items() == kernels
    by_hand = da.simulate(two_blocks(), 10.0, *start)
    np.testing.assert_allclose([e.time for e in run.events], [e.time for e in by_hand.events], atol=1e-8)


def by_the_sets(M, f, A, W, sets, names, mu):
    """Return the acceleration by the rows that the index sets name, in one block matrix: a plain solve."""
    closed = [i for i, name in enumerate(names) if name not in sets.open]
    stuck = [i for i, name in enumerate(names) if name in sets.sticking]
    pull = A.T.copy()  # columns of the normals; a slipping contact brings its friction along
    for i, name in enumerate(names):
        if name in sets.about_to_slip:
            pull[:, i] -= sets.about_to_slip[name] * mu * W[:, i]
    n, c, s = len(f), len(closed), len(stuck)
    K = np.zeros((n + c + s, n + c + s))
    K[:n, :n], K[:n, n : n + c], K[:n, n + c :] = M, -pull[:, closed], -W[:, stuck]
    K[n : n + c, :n], K[n + c :, :n] = A[closed], W[:, stuck].T
    return np.linalg.lstsq(K, np.concatenate([f, np.zeros(c + s)]), rcond=1e-12)[0][:n]


def test_O10_a_contact_that_closes_and_opens_changes_the_index_sets_alone():
    """A plank on two feet is pulled up and sideways and let down again: same M, A, W, four sets of contacts."""
    M, mu, names = np.diag([2.0, 2.0, 0.3]), 0.4, ["left", "right"]
    A = np.array([[0.0, 1.0, -0.5], [0.0, 1.0, 0.5]])  # heights of the feet: y and turn
    W = np.array([[1.0, 1.0], [0.0, 0.0], [0.1, 0.1]])
    before = [x.copy() for x in (M, A, W)]
    met = []
    for lift in (*np.linspace(0.0, 26.0, 14), *np.linspace(26.0, 0.0, 14)):
        f = np.array([0.35 * lift, lift - 2.0 * GRAVITY, 0.05 * lift])  # grips near the right foot
        r = resolve(M, f, W, [0.0, 0.0], [Reacting(mu, 0), Reacting(mu, 1)], A=A, names=names)
        assert r.ok
        assert sorted((*r.sets.sticking, *r.sets.about_to_slip, *r.sets.open)) == names
        np.testing.assert_allclose(r.acceleration, by_the_sets(M, f, A, W, r.sets, names, mu), atol=1e-10)
        opened = np.array([name in r.sets.open for name in names])
        np.testing.assert_array_equal(r.multipliers[opened], 0.0)
        np.testing.assert_array_equal(r.forces[opened], 0.0)
        met.append((r.sets.open, r.sets.sticking))
    assert met == met[::-1]
    assert {who for who, _ in met} == {(), ("right",), ("left", "right")}
    assert {who for _, who in met} >= {("left", "right"), ()}
    for x, y in zip((M, A, W), before, strict=True):
        np.testing.assert_array_equal(x, y)


def test_O10_a_contact_in_time_opens_where_its_reaction_ends():
    """The run says so: a unilateral normal that would pull has left, at the time that the load prescribes."""
    q, v, t = ca.SX.sym("x", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    crate = da.Lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=GRAVITY * q[1], forces=ca.vertcat(1.0, 10.0 * t), time=t,
        constraints={"floor": q[1]}, friction=[Coulomb("crate", v[0], 0.5, normal="floor", unilateral=True)],
    )  # fmt: skip
    run = da.simulate(crate, 2.0, [0.0, 0.0], [0.0, 0.0])
    assert run.status == "detached"
    assert run.t[-1] == pytest.approx(GRAVITY / 10.0, abs=1e-9)
    slip = next(iter(run.events))
    assert slip.time == pytest.approx((GRAVITY - 2.0) / 10.0, abs=1e-9)
    after = crate.resolve(run.q[-1], run.v[-1], run.t[-1] + 1e-3)
    assert after.sets.open == ("crate",)
    np.testing.assert_allclose(after.acceleration, [1.0, 1e-2], atol=1e-7)
