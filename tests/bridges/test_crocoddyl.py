"""Crocoddyl: derivatives of the state by differences, of the action by its numerical twin; a solve."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.status import Status
from tests.bridges.models import batch, four_bar, linkage

crocoddyl = pytest.importorskip("crocoddyl")
bridge = pytest.importorskip("dalembert.bridges.crocoddyl")


def differences(f, n, h=1e-6):
    return np.array([(f(h * e) - f(-h * e)) / (2 * h) for e in np.eye(n)]).T


def test_state_by_differences():
    m = linkage()
    state = bridge.MechanismState(m)
    q, v, _ = batch(m, None)
    x, n = np.concatenate([q, v]), 2 * m.nv
    dx = np.linspace(-0.5, 0.5, n)
    end = state.integrate(x, dx)
    np.testing.assert_allclose(state.diff(x, end), dx, atol=1e-14)
    wanted = [
        differences(lambda d: state.diff(state.integrate(x, d), end), n),
        differences(lambda d: state.diff(x, state.integrate(end, d)), n),
    ]
    np.testing.assert_allclose(state.Jdiff(x, end), wanted, atol=1e-8)
    wanted = [
        differences(lambda d: state.diff(end, state.integrate(state.integrate(x, d), dx)), n),
        differences(lambda d: state.diff(end, state.integrate(x, dx + d)), n),
    ]
    np.testing.assert_allclose(state.Jintegrate(x, dx), wanted, atol=1e-8)


def test_one_control_and_one_freedom():
    """Crocoddyl's matrices of one column or row have one axis in Python: a pendulum by its numerical twin."""
    b = da.Builder("pendulum")
    b.body("bob", mass=1.0, center=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    action = bridge.MechanismAction(b.build())
    twin = crocoddyl.DifferentialActionModelNumDiff(action, False)
    for model, memory in ((action, data := action.createData()), (twin, other := twin.createData())):
        model.calc(memory, np.array([0.3, -0.2]), np.array([0.5]))
        model.calcDiff(memory, np.array([0.3, -0.2]), np.array([0.5]))
    np.testing.assert_allclose(data.Fx, other.Fx, atol=1e-6)
    np.testing.assert_allclose(data.Fu, other.Fu, atol=1e-6)


def test_action_by_its_numerical_twin_and_a_solve():
    m = linkage()
    state = bridge.MechanismState(m)
    costs = crocoddyl.CostModelSum(state, 2)
    goal = crocoddyl.ResidualModelState(state, state.zero(), 2)
    costs.addCost("x", crocoddyl.CostModelResidual(state, goal), 1.0)
    costs.addCost("u", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, 2)), 0.1)
    action = bridge.MechanismAction(m, costs, ["ball.wx", "hinge"], state)
    x, u = np.concatenate(batch(m, None)[:2]), np.array([1.0, -2.0])
    twin = crocoddyl.DifferentialActionModelNumDiff(action, True)
    data, other = action.createData(), twin.createData()
    for model, memory in ((action, data), (twin, other)):
        model.calc(memory, x, u)
        model.calcDiff(memory, x, u)
    for word in ("Fx", "Fu", "Lx", "Lu"):
        found, wanted = getattr(data, word), getattr(other, word)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * max(1.0, np.abs(wanted).max()))
    nodes = [crocoddyl.IntegratedActionModelEuler(action, h) for h in (1e-2, 0.0)]
    solver = crocoddyl.SolverFDDP(crocoddyl.ShootingProblem(x, [nodes[0]] * 10, nodes[1]))
    assert solver.solve([], [], 50)


def test_a_state_without_an_answer_ends_no_process():
    """From the open linkage, where Crocoddyl begins by itself: no solution, with the reason; from its loop, one."""
    m = four_bar()
    state = bridge.MechanismState(m)
    start = np.concatenate([m.assemble([1.0, -0.7, -1.5]).q, np.zeros(3)])
    costs = crocoddyl.CostModelSum(state, 1)
    costs.addCost("x", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, start, 1)), 1.0)
    costs.addCost("u", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, 1)), 0.1)
    action = bridge.MechanismAction(m, costs, ["crank hinge"], state)
    nodes = [crocoddyl.IntegratedActionModelEuler(action, h) for h in (1e-2, 0.0)]
    solver = crocoddyl.SolverFDDP(crocoddyl.ShootingProblem(start, [nodes[0]] * 5, nodes[1]))
    assert solver.solve([start] * 6, [np.zeros(1)] * 5)
    assert action.status is None
    data = action.createData()
    action.calc(data, state.zero(), np.zeros(1))
    action.calcDiff(data, state.zero(), np.zeros(1))
    assert all(np.isnan(x).all() for x in (data.xout, data.cost, data.Fx, data.Fu))
    assert isinstance(action.status, Status)
    assert not solver.solve([state.zero()] * 6, [np.zeros(1)] * 5, 5)
