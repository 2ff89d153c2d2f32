"""Y5: inverse, then forward dynamics of random mechanisms with loops returns the motion that was prescribed."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert.simulate import Problem
from dalembert.tableau import maximal
from tests.tableau.test_mechanics import body_states, spatial_loop, with_centres

T = ca.SX.sym("t")
RTOL = 1e-9


def polygon(bars, seed):
    """A closed chain of bars between two points of the ground, random lengths and masses, motors on all but two joints.

    Angles at the start are those of a random polygon, so the loop is closed there.
    """
    rng = np.random.default_rng(seed)
    q, v, tau = ca.SX.sym("q", bars), ca.SX.sym("v", bars), ca.SX.sym("tau", bars - 2)
    turns = np.cumsum(rng.uniform(0.5, 1.0, bars))
    start = 1.2 - (turns - turns[0]) * 3.6 / (turns[-1] - turns[0])  # a convex polygon, far from being stretched
    lengths, masses = rng.uniform(0.5, 1.0, bars), rng.uniform(0.5, 2.0, bars)
    end, kinetic, potential = ca.SX.zeros(2), ca.SX(0), ca.SX(0)
    for i in range(bars):
        along = lengths[i] * ca.vertcat(ca.cos(q[i]), ca.sin(q[i]))
        centre = end + along / 2
        speed = ca.jtimes(centre, q, v)
        kinetic += masses[i] * (ca.sumsqr(speed) / 2 + lengths[i] ** 2 / 24 * v[i] ** 2)
        potential += 9.81 * masses[i] * centre[1]
        end = end + along
    pin = np.array(ca.DM(ca.substitute(end, q, ca.SX(start)))).ravel()
    forces = ca.vertcat(tau, ca.SX.zeros(2))
    system = da.Lagrangian(
        q, v, kinetic=kinetic, potential=potential, forces=forces, constraints={"loop": end - pin}, controls=tau
    )
    return system, start


@settings(max_examples=3, deadline=None)
@given(bars=st.integers(3, 5), seed=st.integers(0, 1000))
def test_Y5_random_planar_loops(bars, seed):
    """One to three motors; their torques by inverse dynamics, given back as splines."""
    system, start = polygon(bars, seed)
    driven = range(bars - 2)
    swing = {system.coordinates[i]: start[i] + 0.15 * (i + 1) / bars * (1 - ca.cos(2 * T)) for i in driven}
    back = Problem(system, known=swing, time=T).integrate((0, 1), start, rtol=RTOL, atol=RTOL, max_step=2e-3)
    assert back.success, back.message
    controls = [str(s) for s in ca.vertsplit(system.symbols.u)]
    drive = {name: CubicSpline(back.t, back[name]) for name in controls}
    q0, t_end = start.copy(), [1.0]
    ahead = Problem(system, known=drive).integrate((0, 1), q0, rtol=RTOL, atol=RTOL, t_eval=t_end)
    assert ahead.success, ahead.message
    steps = ahead.statistics.steps + back.statistics.steps
    for i in driven:
        expected = start[i] + 0.15 * (i + 1) / bars * (1 - np.cos(2.0))
        # each step adds a tolerance; an error of the torque e-folds with the pendulum's own rate, here below e^4
        assert abs(ahead[system.coordinates[i]][-1] - expected) < steps * RTOL * np.exp(4.0)


@pytest.fixture(scope="module")
def ring():
    """Seven hinges with random axes in a ring, as a tableau in maximal coordinates; a start that moves."""
    mechanism, _ = spatial_loop()
    q = mechanism.neutral()
    v = 0.5 * np.linalg.svd(mechanism.jacobian(q))[2][-1]
    a = mechanism.forward(q, v).acceleration
    values, rates = body_states(with_centres(mechanism), q, v, np.zeros(6), a)
    return mechanism, maximal(mechanism), values, {name[:-1]: x for name, x in rates.items()}, (q, v)


def ring_run(ring, known, t_end=0.3):
    _, tableau, values, rates, _ = ring
    names = {name: 0.0 for name in tableau.known if name != "tau j0"} | known
    problem = Problem(tableau, known=names, time=T)
    x = {name: values[name] for name in problem.unknowns if name in values}
    return problem.integrate((0, t_end), x, {n: r for n, r in rates.items() if n in x}, rtol=1e-8, atol=1e-8)


def test_Y5_a_spatial_loop_as_tableau_moves_as_its_mechanism(ring):
    """Index 3, 119 unknowns, a torque as expression of time; against SciPy on the mechanism's forward dynamics."""
    mechanism, *_, (q, v) = ring
    run = ring_run(ring, {"tau j0": 2 * ca.sin(3 * T)})
    assert run.success, run.message

    def rate(t, y):
        return np.concatenate([y[6:], mechanism.forward(y[:6], y[6:], np.eye(6)[0] * 2 * np.sin(3 * t)).acceleration])

    twin = solve_ivp(rate, (0, 0.3), np.concatenate([q, v]), rtol=1e-9, atol=1e-9).y[:, -1]
    end, _ = body_states(with_centres(mechanism), twin[:6], twin[6:], np.zeros(6), np.zeros(6))
    names = [name for name in end if name in run.names and name[0] in "pvw"]
    assert len(names) == 54
    assert max(abs(run[name][-1] - end[name]) for name in names) < 1e-5


def test_Y5_the_torque_of_a_spatial_loop_gives_its_motion_back(ring):
    """Known is how fast the first body turns; the torque, of index 3, follows; then it is given."""
    _, _, values, rates, _ = ring
    name = "w b0[1]"
    turning = values[name] + rates[name] * T + 2 * T**3
    back = ring_run(ring, {name: turning})
    assert back.success, back.message
    ahead = ring_run(ring, {"tau j0": CubicSpline(back.t, back["tau j0"])})
    assert ahead.success, ahead.message
    assert np.abs(back["tau j0"]).max() > 0.1
    assert ahead[name][-1] == pytest.approx(values[name] + rates[name] * 0.3 + 2 * 0.3**3, rel=1e-2)
    for axis in range(3):
        assert ahead[f"p b5[{axis}]"][-1] == pytest.approx(back[f"p b5[{axis}]"][-1], abs=1e-4)
