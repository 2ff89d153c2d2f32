"""Y5: mechanisms in joint coordinates: forward, inverse and mixed dynamics of trees and of closed loops."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert.examples import stanford_arm
from dalembert.model import Inertia, Placement
from dalembert.simulate import Problem, integrate
from tests.tableau.test_mechanics import spatial_loop

T = ca.SX.sym("t")
TOL = {"rtol": 1e-9, "atol": 1e-9}


def chain_of_bars(bars, seed):
    """Bars on hinges about z between two points of the ground, random lengths and masses; a loop of three dimensions.

    The loop has five rows of which two are independent: a planar mechanism in space.
    """
    rng = np.random.default_rng(seed)
    lengths, masses = rng.uniform(0.5, 1.0, bars), rng.uniform(0.5, 2.0, bars)
    angles = 1.2 - np.linspace(0, 3.6, bars)  # of the bars themselves: a convex polygon
    b = da.Builder("bars")
    for i in range(bars):
        moments = np.diag([1e-3, masses[i] * lengths[i] ** 2 / 12, masses[i] * lengths[i] ** 2 / 12])
        inertia = Inertia(masses[i], (lengths[i] / 2, 0, 0), moments)
        b.body(f"bar{i}", inertia=inertia)
        at = (lengths[i - 1], 0, 0) if i else (0, 0, 0)
        parent = f"bar{i - 1}" if i else "world"
        b.joint(f"j{i}", "revolute", parent=parent, child=f"bar{i}", axis=(0, 0, 1), position=at)
    end = (lengths[:, None] * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)).sum(axis=0)
    tip = Placement(np.eye(3), np.array([lengths[-1], 0, 0]))
    b.loop("closing", "revolute", f"bar{bars - 1}", "world", tip, Placement(np.eye(3), end), axis=(0, 0, 1))
    return b.build(), np.diff(angles, prepend=0.0)


def acceleration_of(mechanism, run, k):
    """The mechanism's own forward dynamics at one point of a run, with the torques found."""
    names = mechanism.coordinates
    q, v = (np.array([run[name + mark][k] for name in names]) for mark in ("", "'"))
    tau = np.array([run[f"tau {name}"][k] for name in names])
    return mechanism.forward(q, v, tau).acceleration


@pytest.mark.parametrize(("bars", "seed"), [(3, 1), (4, 2)])
def test_Y5_round_trips_of_random_mechanisms_with_loops(bars, seed):
    """Known are as many joints as there are freedoms; their torques by inverse dynamics, given back as splines."""
    mechanism, start = chain_of_bars(bars, seed)
    driven = [f"j{i}" for i in range(bars - 2)]
    swing = {name: float(start[i]) + 0.05 * (i + 1) * (1 - ca.cos(2 * T)) for i, name in enumerate(driven)}
    back = Problem(mechanism, known=swing, time=T).integrate((0, 1), start, **TOL, t_eval=np.linspace(0, 1, 201))
    assert back.success, back.message
    assert back.start.redundant == 3
    for k in (0, 77, 200):  # torques found are those that the mechanism needs
        own = acceleration_of(mechanism, back, k)
        expected = [0.2 * (i + 1) * np.cos(2 * back.t[k]) for i in range(bars - 2)]
        np.testing.assert_allclose(own[: bars - 2], expected, atol=1e-5)
    drive = {f"tau {name}": CubicSpline(back.t, back[f"tau {name}"]) for name in driven}
    ahead = Problem(mechanism, known=drive).integrate((0, 1), start, **TOL)
    assert ahead.success, ahead.message
    for i, name in enumerate(driven):
        assert ahead[name][-1] == pytest.approx(start[i] + 0.05 * (i + 1) * (1 - np.cos(2.0)), abs=1e-5)


def test_Y5_a_spatial_loop_in_joint_coordinates():
    """Seven hinges in a ring: forward against SciPy on the mechanism's own dynamics, then inverse, mixed, and back."""
    ring, _ = spatial_loop()
    q = ring.neutral()
    v = 0.5 * np.linalg.svd(ring.jacobian(q))[2][-1]
    ahead = Problem(ring, known={"tau j0": 2 * ca.sin(3 * T)}, time=T).integrate((0, 0.3), q, v, **TOL)

    def rate(t, y):
        return np.concatenate([y[6:], ring.forward(y[:6], y[6:], np.eye(6)[0] * 2 * np.sin(3 * t)).acceleration])

    twin = solve_ivp(rate, (0, 0.3), np.concatenate([q, v]), rtol=1e-10, atol=1e-10).y[:, -1]
    assert np.abs(ahead.y[:12, -1] - twin).max() < 1e-7
    # the motion found is known of one joint: its torque comes back; or that of another one that does the same
    motion = CubicSpline(ahead.t, ahead["j0"])
    times = np.linspace(0.05, 0.25, 5)
    back = Problem(ring, known={"j0": motion}).integrate((0, 0.3), q, v, rtol=1e-7, atol=1e-7, t_eval=times)
    assert back.success, back.message
    np.testing.assert_allclose(back["tau j0"], 2 * np.sin(3 * times), atol=0.1)  # second derivative of a spline
    other = Problem(ring, known={"j0": motion, "tau j0": 0.0, "tau j3": None})
    other = other.integrate((0, 0.3), q, v, rtol=1e-7, atol=1e-7, t_eval=times)
    assert other.success, other.message
    np.testing.assert_allclose(other["j3"], back["j3"], atol=1e-5)
    assert np.abs(other["tau j3"]).max() > 0.1


def test_Y5_Y12_the_stanford_arm_as_its_multibody():
    """All joints known, then all torques: no energies written by hand."""
    arm = stanford_arm()
    start = np.array([0.3, -0.7, 0.5, 0.4, -0.9, 0.6])
    names = [f"joint{i + 1}" for i in range(6)]
    swing = {
        name: float(x) + 0.2 * (1 + 0.2 * i) * (1 - ca.cos(2 * T))
        for i, (name, x) in enumerate(zip(names, start, strict=True))
    }
    times = np.linspace(0, 1, 201)
    back = integrate(arm, (0, 1), known=swing, time=T, t_eval=times, max_step=0.02)
    assert back.success, back.message
    drive = {f"tau {name}": CubicSpline(times, back[f"tau {name}"]) for name in names}
    ahead = Problem(arm, known=drive).integrate((0, 1), start, np.zeros(6), **TOL)
    end = start + 0.2 * (1 + 0.2 * np.arange(6)) * (1 - np.cos(2.0))
    assert np.abs(ahead.y[:6, -1] - end).max() < 1e-6


def test_a_continuous_joint_is_an_angle_that_counts_turns():
    """Given as (cos, sin) or as an angle; a wheel with a constant torque turns many times."""
    b = da.Builder("wheel")
    b.body("wheel", inertia=Inertia(1.0, (0, 0, 0), np.eye(3)))
    b.joint("axle", "continuous", parent="world", child="wheel", axis=(0, 0, 1))
    problem = Problem(b.build(), known={"tau axle": 4.0})
    for start in ([np.cos(0.3), np.sin(0.3)], [0.3]):
        assert problem.integrate((0, 5), start)["axle"][-1] == pytest.approx(50.3, rel=1e-6)


def test_what_joint_coordinates_cannot_say_is_refused():
    b = da.Builder("ball")
    b.body("ball", inertia=Inertia(1.0, (0, 0, -0.1), np.eye(3)))
    b.joint("socket", "spherical", parent="world", child="ball")
    with pytest.raises(da.UnsupportedError, match=r"socket.*maximal"):
        Problem(b.build())
    mechanism, start = chain_of_bars(3, 1)
    with pytest.raises(da.ModelError, match="need as many unknown controls"):
        Problem(mechanism, known={"j0": 0.0, "tau j0": 0.0})
    with pytest.raises(da.ModelError, match="no coordinate or control is called 'j9'"):
        Problem(mechanism, known={"j9": 0.0})
    rigid = Problem(mechanism, known={"j0": float(start[0]), "j1": start[1] + T}, time=T)
    with pytest.raises(da.SolvabilityError, match="closing"):
        rigid.integrate((0, 1), start)
