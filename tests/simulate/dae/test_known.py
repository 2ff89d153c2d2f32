"""Y5: forward, inverse and mixed dynamics with the same stepper; inputs as expressions, tables and callables."""

import casadi as ca
import numpy as np
import pytest
from benchmarks.dae_problems import andrews
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert.errors import ModelError, ShapeError
from dalembert.simulate import Problem, Table, integrate
from dalembert.tableau import implicit_lagrangian

T = ca.SX.sym("t")


def four_bar(masses, lengths, gravity=9.81):
    """A planar four-bar in angles: three moving rods, one loop of two rows, a torque on the first."""
    q, v, tau = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("tau")
    a, b, c, ground = lengths
    ends = [ca.vertcat(0, 0)]
    kinetic, potential = ca.SX(0), ca.SX(0)
    for i, (m, length) in enumerate(zip(masses, (a, b), strict=False)):
        direction = ca.vertcat(ca.cos(q[i]), ca.sin(q[i]))
        centre = ends[-1] + length / 2 * direction
        speed = ca.jtimes(centre, q, v)
        kinetic += m * ca.sumsqr(speed) / 2 + m * length**2 / 24 * v[i] ** 2
        potential += m * gravity * centre[1]
        ends.append(ends[-1] + length * direction)
    direction = ca.vertcat(ca.cos(q[2]), ca.sin(q[2]))
    kinetic += masses[2] * c**2 / 6 * v[2] ** 2
    potential += masses[2] * gravity * c / 2 * direction[1]
    closure = ends[-1] - ca.vertcat(ground, 0) - c * direction
    return da.Lagrangian(
        q,
        v,
        kinetic=kinetic,
        potential=potential,
        forces=ca.vertcat(tau, 0, 0),
        constraints={"loop": closure},
        controls=tau,
        coordinates=["crank", "coupler", "rocker"],
    )


@settings(max_examples=3)
@given(
    masses=st.tuples(*[st.floats(0.5, 3.0)] * 3),
    stretch=st.floats(0.9, 1.1),
)
def test_Y5_inverse_then_forward_returns_the_motion_of_a_loop(masses, stretch):
    """Random four-bars: prescribe the crank, find its torque, drive with it: the crank moves as prescribed."""
    system = four_bar(masses, (0.4, 1.0 * stretch, 0.8, 1.1))
    crank = 1.0 + 0.5 * (1 - ca.cos(2 * T))
    q0 = [1.0, 0.3, 1.7]
    back = Problem(system, known={"crank": crank}, time=T).integrate((0, 1), q0, rtol=1e-9, atol=1e-9)
    assert back.success, back.message
    times = np.linspace(0, 1, 801)
    torque = CubicSpline(times, back.sol(times)[back.names.index("tau")])
    start = back.y[:, 0]
    ahead = Problem(system, known={"tau": torque}).integrate(
        (0, 1), [1.0, *start[:2]], np.zeros(3), rtol=1e-9, atol=1e-9, t_eval=[0.5, 1.0]
    )
    assert ahead.success
    expected = 1.0 + 0.5 * (1 - np.cos(2 * ahead.t))
    assert np.abs(ahead["crank"] - expected).max() < 2e-5
    assert np.abs(ahead["rocker"] - back.sol(ahead.t)[back.names.index("rocker")]).max() < 2e-5


def test_Y5_inverse_dynamics_of_a_pendulum_has_a_closed_form():
    """tau = m l^2 theta'' + m g l sin(theta), at every step."""
    q, v, tau = ca.SX.sym("theta"), ca.SX.sym("omega"), ca.SX.sym("tau")
    arm = da.Lagrangian(q, v, kinetic=v**2 / 2, potential=-9.81 * ca.cos(q), forces=tau, controls=tau)
    run = integrate(arm, (0, 2), known={"theta": ca.sin(3 * T)}, time=T, rtol=1e-8, max_step=0.05)
    theta = np.sin(3 * run.t)
    assert np.abs(run["tau"] - (-9 * theta + 9.81 * np.sin(theta))).max() < 1e-12
    assert np.abs(run["theta"] - theta).max() < 1e-14


@pytest.mark.parametrize("reading", ["expression", "table", "callable", "ppoly"])
def test_Y5_inputs_may_be_expressions_tables_or_callables(reading):
    system = andrews.system(driven=True)
    times = np.linspace(0, 0.01, 201)
    spline = CubicSpline(times, 0.033 * np.cos(200 * times))
    moment = {
        "expression": 0.033 * ca.cos(200 * T),
        "table": Table(times, 0.033 * np.cos(200 * times)),
        "callable": lambda t: 0.033 * np.cos(200 * t),
        "ppoly": spline,
    }[reading]
    run = integrate(system, (0, 0.01), andrews.Q0, known={"moment": moment}, time=T, rtol=1e-8, atol=1e-8)
    exact = integrate(
        system, (0, 0.01), andrews.Q0, known={"moment": 0.033 * ca.cos(200 * T)}, time=T, rtol=1e-10, atol=1e-10
    )
    assert run.success
    assert np.abs(run.y[:7, -1] - exact.y[:7, -1]).max() < 1e-6
    assert run["moment"][-1] == pytest.approx(0.033 * np.cos(2.0), rel=1e-6)


def test_a_held_input_restarts_at_its_jumps():
    """A force that switches between constants: x is the exact piecewise parabola."""
    q, v, u = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("u")
    mass = da.Lagrangian(q, v, kinetic=v**2 / 2, forces=u, controls=u)
    held = Table([0.0, 0.3, 0.7], [1.0, -2.0, 0.5], "previous")
    run = integrate(mass, (0, 1), [0.0], [0.0], known={"u": held}, rtol=1e-10, atol=1e-10)
    assert run.statistics.restarts == 2
    assert {0.3, 0.7} <= set(run.t)
    speed = 0.3 - 2.0 * 0.4 + 0.5 * 0.3
    place = 0.3**2 / 2 + 0.3 * 0.4 - 0.4**2 + (0.3 - 0.8) * 0.3 + 0.5 * 0.3**2 / 2
    assert run["x"][-1] == pytest.approx(place, abs=1e-9)
    assert run["x'"][-1] == pytest.approx(speed, abs=1e-9)
    back = integrate(mass, (1, 0), [place], [speed], known={"u": held}, rtol=1e-10, atol=1e-10)
    assert back["x"][-1] == pytest.approx(0.0, abs=1e-9)


def test_Y5_a_tableau_is_integrated_as_it_stands():
    """The pendulum's implicit Lagrangian equations, velocity level (index 2): the same motion as in formulations."""
    from benchmarks.dae_problems.pendulums import PENDULUM

    tableau = implicit_lagrangian(PENDULUM.build(), level="velocity")
    run = Problem(tableau, known=dict.fromkeys(tableau.known, 0.0)).integrate(
        (0, 2), {"q x": -1.0}, rtol=1e-9, atol=1e-9
    )
    twin = integrate(PENDULUM.build(), (0, 2), PENDULUM.q, rtol=1e-9, atol=1e-9)
    assert run.success
    assert run["q x"][-1] == pytest.approx(twin["x"][-1], abs=1e-6)
    assert run["lam rod"][-1] == pytest.approx(twin["lam[rod]"][-1], abs=1e-5)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"crank": ca.sin(T), "rocker": T}, "2 known coordinates"),
        ({"krank": 1.0}, "no coordinate or control is called 'krank'"),
        ({"tau": "strong"}, "known 'tau' is str"),
        ({"crank": lambda t: t}, "3 callables"),
        ({"crank": Table([0, 1], [0, 1], "linear")}, "needs an acceleration"),
        ({"tau": Table([0, 0], [1, 2])}, "increasing times"),
        ({"tau": Table([0, 1], [1, np.nan])}, "finite"),
        ({"tau": Table([0, 1], [1, 2], "quintic")}, "'cubic', 'linear', 'previous'"),
        ({"tau": ca.SX.sym("z") * 2}, "time symbol alone"),
        ({"crank": ca.sin(T), "tau": 0.0}, "unknown are 0"),
    ],
)
def test_wrong_knowledge_is_refused_by_name(known, words):
    with pytest.raises((ModelError, ShapeError), match=words.replace("(", r"\(")):
        Problem(four_bar((1, 1, 1), (0.4, 1.0, 0.8, 1.1)), known=known, time=T)


def test_what_a_callable_returns_must_be_a_number():
    q, v, u = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("u")
    mass = da.Lagrangian(q, v, kinetic=v**2 / 2, forces=u, controls=u)
    for wrong in (None, "strong", np.ones(2)):
        with pytest.raises(ModelError, match="known u at t = 0"):
            integrate(mass, (0, 1), [0.0], known={"u": lambda t, wrong=wrong: wrong})
    with pytest.raises(ModelError, match="give a mapping"):
        Problem(mass, known=[1.0])
    late = integrate(mass, (0, 1), [0.0], known={"u": lambda t: "off" if t > 0.5 else 1.0})
    assert late.status == -1
    assert "known u at t" in late.message
    assert 0.2 < late.t[-1] <= 0.5


def test_a_motion_that_no_control_can_produce_is_refused():
    """The torque acts on x; the known coordinate is y, which it does not reach."""
    q, v, u = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("u")
    free = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, forces=ca.vertcat(u, 0), controls=u, coordinates=["x", "y"])
    with pytest.raises(da.SolvabilityError, match="no u can produce the known motion"):
        integrate(free, (0, 1), known={"y": T**2}, time=T)
