"""Systems given by a Lagrangian, against closed forms and independent derivations."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.model import System, solve
from tests.model.lagrangians import GRAVITY, SYSTEMS, bead, double_pendulum, pendulum, sleigh, slider_crank
from tests.reference.crank_slider import CrankSlider

PARAMETERS = {"double_pendulum": {"m1": 1.0, "m2": 0.7, "l1": 0.9, "l2": 1.3}}


def values_of(make) -> dict[str, float]:
    return PARAMETERS.get(make.__name__, {})


def flow(system: da.Lagrangian, q, v, times, **options):
    """Integrate the accelerations of `solve` with SciPy; (q, v) per time."""
    n = len(q)

    def rate(t, y):
        return np.concatenate((y[n:], system.solve(y[:n], y[n:], t=t, **options).acceleration))

    run = solve_ivp(rate, (times[0], times[-1]), [*q, *v], t_eval=times, rtol=1e-10, atol=1e-12, method="DOP853")
    return run.y[:n].T, run.y[n:].T


@pytest.mark.parametrize("make", SYSTEMS)
def test_protocol(make):
    """Anything that solves a `System` solves these."""
    system = make().with_parameters(**values_of(make))
    assert isinstance(system, System)
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, len(system.coordinates)))
    np.testing.assert_array_equal(solve(system, q, v).acceleration, system.solve(q, v).acceleration)


@given(st.floats(0.0, 2 * np.pi), st.floats(-3.0, 3.0), st.floats(0.2, 5.0), st.floats(0.2, 5.0))
def test_pendulum_closed_form(angle, rate, mass, length):
    """The angle from the vertical obeys theta'' = -(g / l) sin theta; the rod pulls with m (l theta'^2 + g cos)."""
    system = _PENDULUM
    q = length * np.array([np.sin(angle), -np.cos(angle)])
    tangent = np.array([np.cos(angle), np.sin(angle)])
    values = {"mass": mass, "length": length}
    s = system.solve(q, rate * length * tangent, parameters=values)
    angular = -GRAVITY / length * np.sin(angle)
    expected = length * angular * tangent - rate**2 * q
    np.testing.assert_allclose(s.acceleration, expected, rtol=1e-12, atol=1e-12)
    pull = mass * (length * rate**2 + GRAVITY * np.cos(angle))
    np.testing.assert_allclose(-s["rod"] * length, pull, rtol=1e-11, atol=1e-11)


_PENDULUM = pendulum()


def test_pendulum_keeps_energy_and_period():
    """Small swings take 2 pi sqrt(l / g) (1 + theta^2 / 16 + ...); energy and length stay."""
    system, angle = _PENDULUM, 0.1
    period = 2 * np.pi * np.sqrt(1 / GRAVITY) * (1 + angle**2 / 16 + 11 * angle**4 / 3072)
    start = [np.sin(angle), -np.cos(angle)]
    q, v = flow(system, start, [0.0, 0.0], np.linspace(0.0, period, 9))
    np.testing.assert_allclose(q[-1], start, atol=1e-7)
    np.testing.assert_allclose(system.energy(q, v).total, system.energy(q[0], v[0]).total, rtol=1e-9)
    np.testing.assert_allclose(system.constraint(q), 0.0, atol=1e-9)
    np.testing.assert_allclose(system.constraint_velocity(q, v), 0.0, atol=1e-9)


def test_projected_velocity_holds_the_constraint():
    """A velocity projected by the block matrix has no constraint velocity left."""
    system = sleigh()
    q, v = np.array([0.3, -0.2, 0.8]), np.array([1.0, 2.0, -0.5])
    assert abs(system.constraint_velocity(q, v)[0]) > 0.1
    projected = da.KKT(system.mass_matrix(q), system.jacobian(q)).project_velocity(v)
    np.testing.assert_allclose(system.constraint_velocity(q, projected), 0.0, atol=1e-15)


def textbook_double_pendulum(theta, omega, m1, m2, l1, l2):
    """Return the accelerations as printed in textbooks, solved for by hand."""
    d = theta[0] - theta[1]
    below = 2 * m1 + m2 - m2 * np.cos(2 * d)
    first = -GRAVITY * (2 * m1 + m2) * np.sin(theta[0]) - m2 * GRAVITY * np.sin(theta[0] - 2 * theta[1])
    first -= 2 * np.sin(d) * m2 * (omega[1] ** 2 * l2 + omega[0] ** 2 * l1 * np.cos(d))
    second = omega[0] ** 2 * l1 * (m1 + m2) + GRAVITY * (m1 + m2) * np.cos(theta[0])
    second += omega[1] ** 2 * l2 * m2 * np.cos(d)
    return np.array([first / (l1 * below), 2 * np.sin(d) * second / (l2 * below)])


def test_double_pendulum_textbook():
    system, values = double_pendulum(), values_of(double_pendulum)
    rng = np.random.default_rng(2)
    theta, omega = rng.uniform(-3, 3, (2, 50, 2))
    expected = textbook_double_pendulum(theta.T, omega.T, **values).T
    s = system.forward(theta, omega, parameters=values)
    assert (s.status == da.Status.UNIQUE).all()
    np.testing.assert_allclose(s.acceleration, expected, rtol=1e-12, atol=1e-12)
    assert s.multipliers.shape == (50, 0)


def test_double_pendulum_keeps_energy():
    system = double_pendulum().with_parameters(**values_of(double_pendulum))
    q, v = flow(system, [1.2, -0.4], [0.0, 1.0], np.linspace(0.0, 1.0, 5))
    np.testing.assert_allclose(system.energy(q, v).total, system.energy(q[0], v[0]).total, rtol=1e-9)


@pytest.mark.parametrize("rod", [0.0, 1e-12, 0.7])
def test_slider_crank_with_and_without_mass_of_the_rod(rod):
    """The hand-derived `CrankSlider` gives the same, also where M is singular."""
    system, by_hand = slider_crank(), CrankSlider(rod_mass=rod, l1=1.1, l2=0.8)
    rng = np.random.default_rng(3)
    for q, v in rng.uniform(-1.2, 1.2, (5, 2, 2)):
        force = np.array([0.6, 0.0])
        expected = solve(by_hand, q, v, force=force)
        s = system.solve(q, v, u=[0.6], parameters={"rod": rod})
        np.testing.assert_allclose(s.acceleration, expected.acceleration, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(s["slider"], expected["slider"], rtol=1e-11, atol=1e-11)
        fast = system.forward(q, v, u=[0.6], parameters={"rod": rod})
        np.testing.assert_allclose(fast.acceleration, expected.acceleration, rtol=1e-10, atol=1e-10)


def test_massless_rod_is_certified_by_the_straight_line():
    """A singular M needs no detour through `KKT`."""
    system = slider_crank()
    q, v = np.random.default_rng(4).uniform(-1.2, 1.2, (2, 40, 2))
    assert np.linalg.matrix_rank(system.mass_matrix(q[0])) == 1
    *_, status = system.compile()(q, v, np.zeros(2), np.array([0.5]), np.zeros(1))
    np.testing.assert_array_equal(status, da.Status.UNIQUE)


def test_sleigh_closed_form():
    """With u the speed of the blade and w the turn: u' = a w^2, w' = -m a u w / (I + m a^2).

    From w = 0+ to 0-: u^2 + w^2 (I + m a^2) / m stays, and the angle sweeps as Chaplygin's tanh and sech.
    """
    system, (a, m, inertia) = sleigh(), (0.4, 2.0, 0.3)
    b = (inertia + m * a**2) / m
    scale = 1.3
    times = np.linspace(0.0, 3.0, 7)
    k = a / b * scale
    speed, turn = scale * np.tanh(k * times), scale / np.sqrt(b) / np.cosh(k * times)
    q, v = flow(system, [0.0, 0.0, 0.0], [0.0, 0.0, turn[0]], times)
    along = v[:, 0] * np.cos(q[:, 2]) + v[:, 1] * np.sin(q[:, 2])
    np.testing.assert_allclose(along, speed, atol=1e-8)
    np.testing.assert_allclose(v[:, 2], turn, atol=1e-8)
    np.testing.assert_allclose(system.energy(q, v).total, system.energy(q[0], v[0]).total, rtol=1e-9)
    assert system.holonomic == (False,)
    assert system.constraint(q).shape == (7, 0)


def test_bead_closed_form():
    """r'' = rate^2 r, so r = cosh(rate t); the wire pushes with 2 rate r'."""
    system, rate = bead(), 1.5
    times = np.linspace(0.0, 1.2, 5)
    q, v = flow(system, [1.0, 0.0], [0.0, rate], times)
    direction = np.column_stack((np.cos(rate * times), np.sin(rate * times)))
    np.testing.assert_allclose(q, np.cosh(rate * times)[:, None] * direction, atol=1e-8)
    s = system.forward(q, v, t=times)
    np.testing.assert_allclose(s["wire"], 2 * rate**2 * np.sinh(rate * times), atol=1e-7)
    np.testing.assert_allclose(system.constraint(q, times), 0.0, atol=1e-9)
    np.testing.assert_allclose(system.constraint_velocity(q, v, times), 0.0, atol=1e-8)


def test_rotating_frame_has_terms_of_all_degrees_in_v():
    """T in a rotating frame has parts linear in v and free of v: Coriolis and centrifugal force come out."""
    q, v, w = ca.SX.sym("q", 2), ca.SX.sym("v", 2), 0.8
    kinetic = ((v[0] - w * q[1]) ** 2 + (v[1] + w * q[0]) ** 2) / 2
    system = da.Lagrangian(q, v, kinetic)
    state, rate = np.array([0.4, -1.1]), np.array([0.3, 0.9])
    expected = 2 * w * np.array([rate[1], -rate[0]]) + w**2 * state
    np.testing.assert_allclose(system.solve(state, rate).acceleration, expected, rtol=1e-14)


def test_dissipation_and_explicit_time():
    """x'' = (F cos(t) - c v - M' v) / M for a mass that grows, M = 1 + t, damped by D = c v^2 / 2."""
    q, v, t, u = (ca.SX.sym(name) for name in "qvtu")
    system = da.Lagrangian(q, v, (1 + t) * v**2 / 2, forces=u * ca.cos(t), dissipation=0.3 * v**2, controls=u, time=t)
    s = system.solve([0.0], [2.0], t=0.5, u=[3.0])
    np.testing.assert_allclose(s.acceleration, (3 * np.cos(0.5) - 0.6 * 2.0 - 2.0) / 1.5, rtol=1e-14)


@pytest.mark.parametrize("make", SYSTEMS)
@given(st.integers(0, 2**32 - 1))
def test_jacobian_and_drift_by_finite_differences(make, seed):
    """Along any path, d/dt of the constraint velocity is A a + drift, and A is its derivative by v."""
    system = _MADE.setdefault(make, make().with_parameters(**values_of(make)))
    rng = np.random.default_rng(seed)
    n, h = len(system.coordinates), 1e-5
    q, v, a = rng.normal(size=(3, n))
    t = rng.normal()

    def rate(s):
        return system.constraint_velocity(q + s * v + s * s * a / 2, v + s * a, t + s)

    slope = (rate(h) - rate(-h)) / (2 * h)
    np.testing.assert_allclose(
        system.jacobian(q, t) @ a + system.drift(q, v, t), slope, atol=1e-6 * (1 + a @ a + v @ v)
    )
    columns = [(rate_at(system, q, v + h * e, t) - rate_at(system, q, v - h * e, t)) / (2 * h) for e in np.eye(n)]
    np.testing.assert_allclose(system.jacobian(q, t), np.array(columns).T, atol=1e-8)
    if all(system.holonomic) and system.names:
        by_q = [(system.constraint(q + h * e, t) - system.constraint(q - h * e, t)) / (2 * h) for e in np.eye(n)]
        np.testing.assert_allclose(system.jacobian(q, t), np.array(by_q).T, atol=1e-8)


_MADE: dict = {}


def rate_at(system, q, v, t):
    return system.constraint_velocity(q, v, t)
