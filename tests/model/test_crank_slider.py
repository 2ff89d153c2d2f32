"""The crank-slider against its own Lagrangian, differentiated by CasADi."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.examples import crank_slider
from tests.reference.crank_slider import CrankSlider


def from_lagrangian(c: CrankSlider) -> ca.Function:
    """Return M, bias, A, drift derived from positions alone."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    turn = q[0] - q[1]
    crank = c.l1 / 2 * ca.vertcat(ca.cos(q[0]), ca.sin(q[0]))
    rod = 2 * crank + c.l2 / 2 * ca.vertcat(ca.cos(turn), ca.sin(turn))
    speeds = [ca.jtimes(x, q, v) for x in (crank, rod)]
    kinetic = 0.5 * (c.crank_mass * ca.sumsqr(speeds[0]) + c.crank_inertia * v[0] ** 2)
    kinetic += 0.5 * c.rod_mass * (ca.sumsqr(speeds[1]) + c.l2**2 / 12 * (v[0] - v[1]) ** 2)
    potential = c.gravity * (c.crank_mass * crank[1] + c.rod_mass * rod[1])
    momentum = ca.gradient(kinetic, v)
    bias = ca.jtimes(momentum, q, v) - ca.gradient(kinetic - potential, q)
    height = c.l1 * ca.sin(q[0]) + c.l2 * ca.sin(turn)
    row = ca.jacobian(height, q)
    return ca.Function("f", [q, v], [ca.hessian(kinetic, v)[0], bias, row, ca.jtimes(row @ v, q, v)])


@pytest.mark.parametrize("rod_mass", [0.0, 0.7, 12.0])
def test_equations_follow_from_the_lagrangian(rod_mass):
    by_hand = CrankSlider(rod_mass=rod_mass, l1=1.1, l2=0.8)
    example, derived = crank_slider(rod_mass=rod_mass, l1=1.1, l2=0.8), from_lagrangian(by_hand)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v = rng.uniform(-3, 3, 2), rng.uniform(-3, 3, 2)
        M, bias, A, drift = (np.array(x) for x in derived(q, v))
        for system in (by_hand, example):
            np.testing.assert_allclose(system.mass_matrix(q), M, rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(system.bias(q, v), bias[:, 0], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(system.jacobian(q), A, rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(system.drift(q, v), drift[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("make", [CrankSlider, crank_slider])
def test_default_is_equation_34(make):
    """M = diag(1, 0), and a row proportional to [2, -1] on the slider."""
    system = make()
    q = np.array([0.9, 1.8])
    np.testing.assert_array_equal(system.mass_matrix(q), [[1.0, 0.0], [0.0, 0.0]])
    row = system.jacobian(q)[0]
    np.testing.assert_allclose(row / row[1], [-2.0, 1.0], rtol=1e-15)


@pytest.mark.parametrize("rod_mass", [0.0, 0.7])
def test_the_example_moves_on_its_line_and_keeps_its_energy(rod_mass):
    """With a massless rod the mass matrix is singular, and the motion is that of the crank alone: a pendulum."""
    system = crank_slider(rod_mass=rod_mass)
    run = da.simulate(system, 1.0, [0.6, 1.2], [0.3, 0.6], rtol=1e-9, atol=1e-11)
    assert run.status == "completed"
    end = run.q[-1]
    assert abs(np.sin(end[0]) + np.sin(end[0] - end[1])) < 1e-9
    energy = system.energy(run.q, run.v).total
    np.testing.assert_allclose(energy, energy[0], atol=1e-6)
    if rod_mass == 0.0:
        theta, speed = end[0], run.v[-1, 0]
        start = 0.5 * 0.3**2 + 9.81 * 1.5 * np.sin(0.6)
        assert 0.5 * speed**2 + 9.81 * 1.5 * np.sin(theta) == pytest.approx(start, abs=1e-6)
