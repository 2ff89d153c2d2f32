"""Consistent initial values: least change in the mass metric, a report by name, refusal where nothing fits."""

import casadi as ca
import numpy as np
import pytest
import scipy.linalg
from benchmarks.dae_problems import PROBLEMS
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.simulate import Problem, from_expressions, integrate

ANGLE = st.floats(-3.0, 3.0)


def two_masses(m1=1.0, m2=4.0):
    """Two points in the plane, the first on the unit circle, joined by a rod of length one."""
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    return da.Lagrangian(
        q,
        v,
        kinetic=(m1 * ca.sumsqr(v[:2]) + m2 * ca.sumsqr(v[2:])) / 2,
        potential=9.81 * (m1 * q[1] + m2 * q[3]),
        constraints={"circle": ca.sumsqr(q[:2]) - 1, "rod": ca.sumsqr(q[:2] - q[2:]) - 1},
        coordinates=["x1", "y1", "x2", "y2"],
    )


@given(first=ANGLE, second=ANGLE, noise=st.lists(st.floats(-0.1, 0.1), min_size=8, max_size=8))
def test_start_satisfies_all_levels_and_is_the_nearest(first, second, noise):
    system = two_masses()
    q = np.array([np.cos(first), np.sin(first), np.cos(first) + np.cos(second), np.sin(first) + np.sin(second)])
    given_q, given_v = q + noise[:4], np.array(noise[4:])
    start = Problem(system).consistent(given_q, given_v)
    assert np.abs(system.constraint(start.q)).max() < 1e-12
    assert np.abs(system.constraint_velocity(start.q, start.v)).max() < 1e-12
    A, drift = system.jacobian(start.q), system.drift(start.q, start.v)
    M, bias = system.mass_matrix(start.q), system.bias(start.q, start.v)
    assert np.abs(A @ start.a + drift).max() < 1e-9
    assert np.abs(M @ start.a + bias + A.T @ start.multipliers).max() < 1e-9
    W = system.mass_matrix(given_q)
    found = minimize(
        lambda x: (x - given_q) @ W @ (x - given_q),
        q,
        constraints={"type": "eq", "fun": system.constraint},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    change = start.q - given_q
    assert change @ W @ change <= found.fun + 1e-6


def test_report_names_what_moved_and_what_was_hidden():
    start = Problem(two_masses()).consistent([1.1, 0, 1, 1], [0.5, 0, 0, 0])
    assert "circle" in start.violated
    assert "rate of circle (hidden)" in start.violated
    assert start.moved["x1"] < -0.05
    assert start.moved["x1'"] == pytest.approx(-0.5, abs=0.2)
    assert "x1 moved by" in str(start)
    quiet = Problem(two_masses()).consistent([1, 0, 1, 1], [0, 1, 0, 1])
    assert not quiet.moved
    assert not quiet.violated


def test_held_coordinates_do_not_move():
    start = Problem(two_masses()).consistent([0.6, 0.9, 1.0, 1.5], hold=["x1"])
    assert start.q[0] == 0.6
    assert start.q[1] == pytest.approx(0.8, abs=1e-12)
    with pytest.raises(da.ModelError, match="no free coordinate is called 'z1'"):
        Problem(two_masses()).consistent([0.6, 0.9, 1.0, 1.5], hold=["z1"])


def test_constraints_that_contradict_each_other_are_named():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rows = {"unit circle": ca.sumsqr(q) - 1, "far line": q[0] - 2}
    impossible = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, constraints=rows)
    with pytest.raises(da.SolvabilityError, match="unit circle"):
        integrate(impossible, (0, 1), [1.0, 0.0])


def test_redundant_rows_are_counted_and_forces_are_shared():
    """A pendulum with its rod written three times: the same motion, the tension shared by least norm."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rod = (ca.sumsqr(q) - 1) / 2
    system = da.Lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * q[1], constraints={"a": rod, "b": rod, "c": rod}
    )
    p = PROBLEMS["pendulum"]
    run = integrate(system, (0, 2), p.q, p.v, rtol=1e-9, atol=1e-9)
    twin = integrate(p.build(), (0, 2), p.q, p.v, rtol=1e-9, atol=1e-9)
    assert run.start.redundant == 2
    assert np.abs(run.y[:2, -1] - twin.y[:2, -1]).max() < 1e-6
    for name in "abc":
        assert run[f"lam[{name}]"][-1] == pytest.approx(twin["lam[rod]"][-1] / 3, rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_rows_across_a_tilted_plane_are_rounding(seed):
    """A four-bar in a plane that no axis of the ground lies in: what its rows across the plane miss is 1e-17."""
    R = Rotation.random(random_state=seed).as_matrix()
    A, B, C, D = (R @ np.append(p, 0.0) for p in ((0.0, 0.0), (0.4, 0.5), (1.3, 0.9), (1.1, 0.0)))
    b = da.Builder("four-bar")
    for name, length in (("crank", B - A), ("coupler", C - B), ("rocker", C - D)):
        b.body(name, mass=1.0, center=length / 2, inertia=(0.1, 0.1, 0.1))
    b.joint("A", "revolute", "world", "crank", axis=R[:, 2])
    b.joint("B", "revolute", "crank", "coupler", axis=R[:, 2], position=B)
    b.joint("D", "revolute", "world", "rocker", axis=R[:, 2], position=D)
    b.loop("C", "revolute", "coupler", "rocker", placement=C - B, other_placement=C - D, axis=R[:, 2])
    m = b.build()
    v = scipy.linalg.null_space(m.jacobian(np.zeros(3)), rcond=1e-9)[:, 0]
    start = Problem(m).consistent(np.zeros(3), v)
    assert not start.moved
    assert not start.violated
    assert (start.rank, start.redundant) == (2, 3)


def test_nonholonomic_and_massless_systems_start_and_run():
    """A sleigh on a knife edge, and a pendulum whose second coordinate has no mass of its own."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    edge = v[0] * ca.sin(q[2]) - v[1] * ca.cos(q[2])
    sleigh = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, constraints={"edge": edge})
    run = integrate(sleigh, (0, 3), [0, 0, 0], [1.0, 0.0, 0.5], rtol=1e-9, atol=1e-9)
    assert run.success
    assert run.y[0, -1] == pytest.approx(2.0 * np.sin(1.5), abs=1e-6)
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2)
    rope = da.Lagrangian(x, y, kinetic=y[0] ** 2 / 2, potential=x[0] ** 2 / 2, constraints={"tie": x[1] - 2 * x[0]})
    run = integrate(rope, (0, 1), [1.0, 2.0], rtol=1e-9, atol=1e-9)
    assert run.y[1, -1] == pytest.approx(2 * np.cos(1.0), abs=1e-6)


def test_general_dae_finds_its_algebraic_unknowns():
    x, r = ca.SX.sym("x", 2), ca.SX.sym("r", 2)
    dae = from_expressions(x, r, [r[0] + x[1], x[1] - x[0] ** 3], unknowns=["slow", "fast"], equations=["rate", "law"])
    run = Problem(dae).integrate((0, 1), [2.0, 0.0], rtol=1e-9, atol=1e-10)
    assert run["fast"][0] == pytest.approx(8.0, abs=1e-9)
    assert run.start.moved["fast"] == pytest.approx(8.0, abs=1e-9)
    assert run["slow"][-1] == pytest.approx(1 / np.sqrt(2 + 0.25), abs=1e-7)
    broken = from_expressions(x, r, [r[0] + x[1], x[0] ** 2 + 1 + 0 * x[1]], equations=["rate", "never"])
    with pytest.raises(da.SolvabilityError, match="never"):
        Problem(broken).integrate((0, 1), [2.0, 0.0])
