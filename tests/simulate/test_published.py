"""Published multibody problems with converged references: data and sources in `linkages.py`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from tests.simulate.linkages import (
    ANDREWS,
    GOVERNOR,
    SLIDER_CRANK,
    andrews,
    bricard,
    governor,
    n_four_bar,
    pendulum,
    redundant_slider_crank,
)


def test_A01_pendulum_in_closed_form():
    run = da.simulate(pendulum(), 10.0, [np.pi], [0.0], rtol=1e-12, atol=1e-12)
    x, y = np.cos(run.q[-1, 0]), np.sin(run.q[-1, 0])
    np.testing.assert_allclose([x, y], [-0.27508746257611686005, -0.96141920509912506427], atol=1e-10)
    assert run.ok
    assert np.ptp(run.energy.total) < 1e-10
    assert "explicit" in run.reason


@pytest.mark.parametrize(("tolerance", "error"), [(1e-6, 1e-3), (1e-9, 1e-6), (1e-12, 1e-7)])
def test_A02_double_four_bar_through_its_singular_configurations(tolerance, error):
    m, q, v = n_four_bar(2)
    run = da.simulate(m, 10.0, q, v, rtol=tolerance, atol=tolerance)
    _, tip = m.kinematics(run.q[-1], "tip 0")
    np.testing.assert_allclose(tip[:2], [0.32845811154081537865, 0.94451853817860096216], atol=error)
    assert run.ok
    assert run.position_residual.max() < 1e-12
    assert run.velocity_residual.max() < 1e-12


@pytest.mark.parametrize(("tolerance", "error"), [(1e-3, 1e-2), (1e-6, 1e-4), (1e-11, 1e-10)])
def test_A04_bricard_with_a_redundant_row(tolerance, error):
    """At 1e-6 a state is solved through `KKT`, and stages beside it whose rows contradict each other."""
    m = bricard()
    run = da.simulate(m, 2.0, rtol=tolerance, atol=tolerance)
    _, P3 = m.kinematics(run.q[-1], "P3")
    np.testing.assert_allclose(P3, [-0.9693403447776, -1.2212468949563, 0.7542780107798], atol=error)
    assert run.position_residual.max() < 1e-12
    assert np.ptp(run.energy.total) < 10 * error


@pytest.mark.parametrize(
    ("method", "tolerance", "error"), [("auto", 1e-11, 1e-10), ("auto", 1e-6, 1e-3), ("bdf", 1e-9, 1e-4)]
)
def test_andrews_squeezer(method, tolerance, error):
    m, q, torque = andrews()
    run = da.simulate(m, 0.03, q, force=torque, method=method, rtol=tolerance, atol=tolerance)
    assert run.ok
    for name, angle in ANDREWS.items():
        assert run[f"to {name}"][-1] == pytest.approx(angle, abs=error)
    assert run.position_residual.max() < 1e-10
    assert np.abs(run.energy_residual).max() < error


@pytest.mark.parametrize(("tolerance", "error"), [(1e-11, 1e-10), (1e-6, 1e-4)])
def test_slider_crank_with_three_redundant_rows(tolerance, error):
    m, q, push = redundant_slider_crank()
    assert np.linalg.matrix_rank(m.jacobian(q)) == 2 < len(m.names)
    run = da.simulate(m, 10.0, q, force=push, rtol=tolerance, atol=tolerance)
    assert run.ok
    for name, value in SLIDER_CRANK.items():
        assert run[name][-1] == pytest.approx(value, abs=error)
    assert run.position_residual.max() < 1e-11


def governor_rate(t, y):
    """Return the rates of (turn, angle, s) and their velocities: both rods alike, J the inertia about the shaft."""
    _, angle, s, spin, swing, slide = y
    rod, ball, mass = 0.3, 5.0, 5.3
    c = (0.5 * rod + ball) / mass
    along, across = rod * 1e-4 / 6, rod * (1 + 1e-4) / 12 + rod * (c - 0.5) ** 2 + ball * (1 - c) ** 2
    sine, cosine = np.sin(angle), np.cos(angle)
    x = 0.05 + c * cosine
    J = rod * 1e-4 / 6 + 3 * 0.01 / 6 + 2 * (along * sine**2 + across * cosine**2 + mass * x**2)
    slope = 4 * ((along - across) * sine * cosine - mass * x * c * sine)
    wide, high = 0.5 * cosine, 1 - 0.5 * sine - s
    length = np.hypot(wide, high)
    by_angle, by_s = -0.5 * (wide * sine + high * cosine) / length, -high / length
    force = 8e5 * (length - 0.5) + 4e4 * (by_angle * swing + by_s * slide)
    turning = -slope * swing * spin / J
    swinging = slope * spin**2 / 2 + 2 * mass * 9.81 * c * cosine - 2 * force * by_angle
    sliding = -3 * 9.81 - 2 * force * by_s
    return np.array([spin, swing, slide, turning, swinging / 2 / (across + mass * c**2), sliding / 3])


def test_A05_governor_agrees_with_equations_written_by_hand():
    m, q, v = governor()
    exact = solve_ivp(governor_rate, (0, 0.2), [0, np.pi / 6, 0.5, 2 * np.pi, 0, 0], "DOP853", rtol=1e-12, atol=1e-12)
    run = da.simulate(m, 0.2, q, v, method="dop853", rtol=1e-11, atol=1e-11)
    found = [run[name][-1] for name in ("turn", "hinge 0", "s", "turn.v", "hinge 0.v", "s.v")]
    np.testing.assert_allclose(found, exact.y[:, -1], atol=1e-9)
    np.testing.assert_allclose(run["hinge 0"], run["hinge 1"], atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "radau"])
def test_A05_stiff_governor_for_ten_seconds(method):
    m, q, v = governor()
    run = da.simulate(m, 10.0, q, v, method=method, rtol=1e-9, atol=1e-9)
    assert run.ok
    assert run.method == ("bdf" if method == "auto" else method)
    for name, key in (("turn", "turn"), ("hinge 0", "angle"), ("s", "s")):
        assert run[name][-1] == pytest.approx(GOVERNOR[key], abs=2e-5)
