"""Prescribed motions and rolling against closed forms; inverse dynamics, impacts and projections of closed loops."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.tree.block import constrained
from dalembert.tree.block import constrained as constrained_inverse
from tests.tree import closed
from tests.tree.closed import Traced, numeric, routes

SLOPE = 0.3


def pendulum():
    b = da.Builder("pendulum")
    b.body("rod", mass=2.0, center=(0, 0, -0.4), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    return b.build()


def test_the_reaction_of_a_servo_is_the_torque_of_its_drive():
    """Tau = (I + m l^2) theta'' + m g l sin(theta) along theta(t) = 0.3 sin 2 t."""
    driven = pendulum().constrain(da.Servo("hinge", lambda t: 0.3 * ca.sin(2 * t)))
    for t in (0.0, 0.4, 1.9):
        theta, rate, acceleration = 0.3 * np.sin(2 * t), 0.6 * np.cos(2 * t), -1.2 * np.sin(2 * t)
        torque = (0.1 + 2 * 0.4**2) * acceleration + 2 * 9.81 * 0.4 * np.sin(theta)
        for solve in routes(driven).values():
            a, lam, status = solve([theta], [rate], [0.0], t)
            np.testing.assert_allclose(a, acceleration, atol=1e-14)
            np.testing.assert_allclose(-lam, torque, rtol=1e-12, atol=1e-12)
            assert status == da.Status.UNIQUE
    np.testing.assert_allclose(Traced(driven)("constraint", [theta], t), 0, atol=1e-15)
    np.testing.assert_allclose(driven.project([0.0], [0.0], t=t), ([theta], [rate]), atol=1e-12)


def wheel(moments):
    """Return a wheel of radius 0.5 and 3 kg, its axis y; gravity points down a slope along x."""
    b = da.Builder("wheel", gravity=(9.81 * np.sin(SLOPE), 0, -9.81 * np.cos(SLOPE)))
    b.body("wheel", mass=3.0, inertia=moments)
    return b.build(base="floating")


@pytest.mark.parametrize(
    ("moments", "axis", "share"),
    [
        ((3 / 16, 3 / 8, 3 / 16), (0, 1, 0), 2 / 3),
        ((0.3, 0.3, 0.3), None, 5 / 7),
    ],
    ids=["disc", "ball"],
)
def test_rolling_down_a_slope(moments, axis, share):
    """A disc rolls with 2/3, a ball with 5/7 of g sin(slope); friction takes the rest, the plane the weight."""
    mechanism = wheel(moments).constrain(da.Rolling("wheel", radius=0.5, axis=axis, name="tyre"))
    q, v = mechanism.neutral(), np.array([1.5, 0, 0, 0, 3.0, 0])
    q[2] = 0.5
    numbers = Traced(mechanism)
    np.testing.assert_allclose(numbers("constraint_velocity", q, v, 0.0), 0, atol=1e-15)
    pull = 9.81 * np.sin(SLOPE)
    for solve in routes(mechanism).values():
        a, lam, status = solve(q, v, np.zeros(6), 0)
        moving = a[:3] + np.cross(v[3:], v[:3])  # v is in the turning axes of the wheel
        np.testing.assert_allclose([*moving, *a[3:]], [share * pull, 0, 0, 0, share * pull / 0.5, 0], atol=1e-13)
        reactions = dict(zip(mechanism.names, -lam, strict=True))
        assert reactions["tyre: contact"] == pytest.approx(3 * 9.81 * np.cos(SLOPE))
        assert reactions["tyre: slip along x"] == pytest.approx(-(1 - share) * 3 * pull)
        assert status == da.Status.UNIQUE


def test_a_coin_rolls_in_a_circle():
    """Steady rolling with lean b, turning rate W about the vertical and rate n about the coin's own axis:

    (C + m r^2) n W cos b - A W^2 sin b cos b = -m g r sin b,    A = m r^2 / 4, C = m r^2 / 2,

    from the moments about the centre (Routh 1905, "Advanced rigid dynamics", art. 244).
    """
    m, r, lean, turning = 3.0, 0.5, 0.4, 2.0
    A, C = m * r**2 / 4, m * r**2 / 2
    b = da.Builder("coin")
    b.body("coin", mass=m, inertia=(A, C, A))
    mechanism = b.build(base="floating").constrain(da.Rolling("coin", radius=r, axis=(0, 1, 0)))

    def lean_rate(spin):
        """Return the acceleration of the lean for a spin about the coin's axis (body y), turning about the vertical."""
        q = np.array([0, 0, r * np.cos(lean), np.sin(lean / 2), 0, 0, np.cos(lean / 2)])
        w = np.array([0, spin + turning * np.sin(lean), turning * np.cos(lean)])  # body axes, leaning about x
        down = -r * np.array([0, 0, 1.0])  # from the centre to the contact, in the body's axes
        v = np.concatenate([-np.cross(w, down), w])
        a, _, status = solve(q, v, np.zeros(6), 0)
        assert status == da.Status.UNIQUE
        return a[3] + spin * turning * np.cos(lean)  # seen from axes that lean and turn, but do not spin

    solve = numeric(constrained.forward(mechanism, "efpa"))
    start, slope = lean_rate(0.0), lean_rate(1.0) - lean_rate(0.0)
    steady = -start / slope  # the lean accelerates linearly with the spin
    assert lean_rate(steady) == pytest.approx(0, abs=1e-12)
    n = steady + turning * np.sin(lean)
    left = (C + m * r**2) * n * turning * np.cos(lean) - A * turning**2 * np.sin(lean) * np.cos(lean)
    np.testing.assert_allclose(left, -m * 9.81 * r * np.sin(lean), rtol=1e-10)


def mechanisms():
    driven = closed.walker()
    return {
        "four-bar": closed.four_bar(),
        "foot": driven.constrain(*[da.Point(f"corner {i}") for i in range(3)]),
        "weld": driven.constrain(da.Weld("foot")),
    }


@pytest.mark.parametrize("name", mechanisms())
def test_inverse_undoes_forward(name):
    """Its forces cause the motion that forward dynamics gave, and none are smaller."""
    mechanism = mechanisms()[name]
    rng = np.random.default_rng(2)
    q = mechanism.project(np.array([1.1, -0.7, 1.4])) if name == "four-bar" else mechanism.random(rng)
    numbers = Traced(mechanism)
    A = numbers.A(q)
    v = rng.standard_normal(mechanism.nv)
    v, tau = v - np.linalg.pinv(A, rcond=1e-10) @ (A @ v), 5 * rng.standard_normal(mechanism.nv)
    solve = routes(mechanism)["efpa"]
    a, _, status = solve(q, v, tau, 0)
    assert status.answered
    least, lam, status = numeric(constrained_inverse.inverse(mechanism))(q, v, a, 0)
    assert status == da.Status.REDUNDANT  # every joint is driven: motors may strain the rows against each other
    np.testing.assert_allclose(solve(q, v, least, 0)[0], a, atol=1e-9 * np.abs(a).max())
    np.testing.assert_allclose(least - A.T @ lam, tau - numbers.force(q, v, tau) + numbers.M(q) @ a, atol=1e-8)
    assert np.linalg.norm(least) <= np.linalg.norm(tau) * (1 + 1e-12)
    assert np.abs(np.linalg.svd(A)[2][: np.linalg.matrix_rank(A, tol=1e-9)] @ least).max() < 1e-8 * np.abs(tau).max()


def test_inverse_with_one_motor():
    """One motor moves the four-bar: its torque does the work, passive hinges get none."""
    mechanism = closed.four_bar()
    q = mechanism.project(np.array([1.1, -0.7, 1.4]))
    v = np.linalg.svd(mechanism.jacobian(q))[2][-1]
    torque = np.array([7.0, 0, 0])
    a, lam, _ = routes(mechanism)["matrix"](q, v, torque, 0)
    tau, found, status = mechanism.inverse(q, v, a, actuated=["A"])
    np.testing.assert_allclose(tau, torque, atol=1e-9)
    np.testing.assert_allclose(found, lam, atol=1e-8)
    assert status == da.Status.REDUNDANT  # the pin across the plane
    with pytest.raises(da.ModelError, match="no joint or coordinate 'AA'; did you mean 'A'"):
        mechanism.inverse(q, v, a, actuated=["AA"])
    with pytest.raises(da.ModelError, match="no actuators"):
        mechanism.inverse(q, v, a, actuated="actuators")


@pytest.mark.parametrize("name", mechanisms())
def test_J13_impact(name):
    """M (v+ - v) = -A^T P and A v+ = -e A v: full restitution keeps the energy, none loses the most (Carnot)."""
    mechanism = mechanisms()[name]
    rng = np.random.default_rng(2)
    q = mechanism.project(np.array([1.1, -0.7, 1.4])) if name == "four-bar" else mechanism.random(rng)
    numbers, impact = Traced(mechanism), numeric(constrained.impact(mechanism))
    M, A, v = numbers.M(q), numbers.A(q), rng.standard_normal(mechanism.nv)
    energies = []
    for e in (0.0, 0.5, 1.0):
        after, impulses, status = impact(q, v, np.full(len(A), e), 0)
        assert status.answered
        np.testing.assert_allclose(M @ (after - v), -A.T @ impulses, atol=1e-9)
        np.testing.assert_allclose(A @ after, -e * A @ v, atol=1e-9)
        exact = numbers.system(q).impact(v, e)
        np.testing.assert_allclose(after, exact.velocity, atol=1e-9)
        np.testing.assert_allclose(impulses, exact.impulse, atol=1e-8)
        energies.append(after @ M @ after / 2)
    before = v @ M @ v / 2
    assert energies[0] < energies[1] < energies[2]
    assert energies[2] == pytest.approx(before, rel=1e-11)
    lost = v - impact(q, v, np.zeros(len(A)), 0)[0]
    assert energies[0] == pytest.approx(before - lost @ M @ lost / 2, rel=1e-11)


def test_projection_is_idempotent_and_least():
    mechanism = closed.four_bar(da.Revolute, axis=closed.Z)
    rng = np.random.default_rng(0)
    start = np.array([1.1, -0.7, 1.4]) + 0.2 * rng.standard_normal((5, 3))
    speed = rng.standard_normal((5, 3))
    q, v = mechanism.project(start, speed)
    np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-12)
    np.testing.assert_allclose(mechanism.constraint_velocity(q, v), 0, atol=1e-12)
    again = mechanism.project(q, v)
    np.testing.assert_array_equal(again[0], q)
    np.testing.assert_allclose(again[1], v, atol=1e-13)
    M = mechanism.mass_matrix(q)
    for i in range(5):  # what was taken is orthogonal to all admissible velocities, in the metric of kinetic energy
        free = np.linalg.svd(mechanism.jacobian(q[i]))[2][-1]
        assert free @ M[i] @ (speed[i] - v[i]) == pytest.approx(0, abs=1e-12)
    with pytest.raises(da.SolvabilityError, match=r"no admissible configuration.*far x"):
        pendulum().constrain(da.Point("rod", at=(9, 0, 0), placement=(0, 0, -0.4), name="far")).project([0.1])


def test_the_kernel_of_both_projections():
    """`compile("project")` has Newton's step and the nearest velocity of its two halves; iterated, it is `project`."""
    b = da.Builder("held and closed")
    for i in range(4):
        b.body(f"b{i}", mass=1.0, center=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.3))
        parent = f"b{i - 1}" if i else "world"
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=(i % 2, 0.2, 1), position=(0.5, 0, 0))
    b.frame("tip", "b3", position=(0.5, 0, 0))
    rod, drive = da.Distance("tip", length=1.2, name="rod"), da.Servo("j0", lambda t: 0.3 + 0.5 * t)
    rows = (rod, drive, da.Point("b1", name="held"))
    mechanism = b.build().constrain(*rows[:2])
    kernel = mechanism.compile("project")
    rng = np.random.default_rng(0)
    q, v, t = rng.uniform(-1, 1, (6, 4)), rng.standard_normal((6, 4)), np.full((6, 1), 0.4)
    step, velocity, residual, impulses, status = kernel(q, v, t)
    np.testing.assert_allclose(step, mechanism.compile("project_step")(q, t)[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(velocity, mechanism.compile("project_velocity")(q, v, t)[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(residual, mechanism.constraint(q, t[:, 0]), atol=1e-14)
    for i in range(6):
        M, A = mechanism.mass_matrix(q[i]), mechanism.jacobian(q[i], 0.4)
        np.testing.assert_allclose(M @ (velocity[i] - v[i]) + A.T @ impulses[i], 0, atol=1e-11)
        np.testing.assert_allclose(mechanism.constraint_velocity(q[i], velocity[i], 0.4), 0, atol=1e-12)
        np.testing.assert_allclose(A @ step[i], -residual[i], atol=1e-12)
    assert not status.any()
    start = mechanism.project(q[0], t=0.4) + 1e-3
    found = start
    for _ in range(4):
        found = mechanism.integrate(found, kernel(found, v[0], t[0])[0])
    np.testing.assert_allclose(found, mechanism.project(start, t=0.4), atol=1e-12)
    mixed = b.build().constrain(*rows)  # rows that are held have a rate, and no residual
    step, _, residual, impulses, status = mixed.compile("project")(q[0], v[0], t[0])
    assert residual.shape == (2,)
    assert impulses.shape == (5,)
    assert np.isnan(mixed.compile("project")(q[0] * np.nan, v[0], t[0])[0]).all()
    assert mixed.compile("project")(q[0], v[0] * np.nan, t[0])[-1] == da.Status.NONFINITE
