"""Welds as wrenches of their link: the same answers with fewer operations, and none where rows may be redundant."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.tree.block import constrained
from dalembert.tree.block.articulated_system import ArticulatedSystem
from dalembert.tree.block.constrained import Tracing
from dalembert.tree.routes.route_report import cost_of
from dalembert.tree.routes.route_table import ROUTES
from dalembert.tree.routes.tree_rows import TreeRows
from tests.tree.closed import TRACES, numeric
from tests.tree.contacts import GO2


def walker(kind="revolute", armature=0.0):
    """Return a flying body with two legs of seven joints; the last one is of a kind, with an armature."""
    b = da.Builder("walker")
    b.body("trunk", mass=8.0, center=(0.01, 0.02, 0.1), inertia=(0.3, 0.4, 0.2))
    axes = [(0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 1, 0), (0, 1, 0.3), (1, 0.1, 0)]
    for leg, side in enumerate((0.1, -0.1)):
        for k, axis in enumerate(axes):
            b.body(f"{leg}.{k}", mass=1.0 + k, center=(0.02, 0.01 * k, -0.1), inertia=(0.02, 0.03, 0.01))
            last = k == len(axes) - 1
            b.joint(
                f"j{leg}.{k}",
                kind if last else "revolute",
                parent=f"{leg}.{k - 1}" if k else "trunk",
                child=f"{leg}.{k}",
                axis=axis,
                position=(0, 0, -0.2) if k else (0, side, 0),
                armature=armature if last else 0.0,
            )
        b.frame(f"sole {leg}", f"{leg}.{k}", position=(0.05, 0.0, -0.1), rpy=(0.1, 0.2, 0.3))
    return b.build(base="floating")


CASES = {
    "two soles": walker().constrain(da.Weld("sole 0"), da.Weld("sole 1")),
    "slider": walker("prismatic").constrain(da.Weld("sole 0"), da.Point("sole 1")),
    "armature": walker(armature=0.3).constrain(da.Weld("sole 0")),
    "inside": walker().constrain(da.Weld("0.3"), da.Weld("sole 1")),
}


def state(mechanism):
    rng = np.random.default_rng(1)
    return mechanism.random(rng), rng.standard_normal(mechanism.nv), 10 * rng.standard_normal(mechanism.nv)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("route", [name for name, route in ROUTES.items() if route.through_tree])
def test_same_answer_as_by_matrices(name, route):
    """M a + A^T lam = tau - bias, A a = -drift: the user's multipliers come back, for any right side too (seed 002)."""
    mechanism = CASES[name]
    q, v, tau = state(mechanism)
    expected = numeric(constrained.forward(mechanism, "matrix"))(q, v, tau, 0)
    found = numeric(constrained.forward(mechanism, route))(q, v, tau, 0)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-11 * (1 + np.abs(two).max()))
    y2 = np.random.default_rng(2).standard_normal(len(mechanism.names))
    a, lam, _ = numeric(constrained.block_solution(mechanism, route, None, "float64"))(q, tau, y2, 0)
    M, A = mechanism.mass_matrix(q), mechanism.jacobian(q)
    np.testing.assert_allclose(M @ a + A.T @ lam, tau, atol=1e-10 * np.abs(tau).max())
    np.testing.assert_allclose(A @ a, y2, atol=1e-10)


def test_the_joint_of_a_welded_link_meets_one_row_alone():
    """The wrench U / D ends at its joint, the five others pass it: the row is its own block of G."""
    setting = Tracing.of(CASES["two soles"])
    rows = TreeRows.of(setting).in_short_bases(setting)
    system = ArticulatedSystem.of(setting.tree, setting.posed, rows.forces)
    for group, joint in ((0, 12), (6, 19)):
        meeting = [r for r in range(12) if joint in system.rows[r]]
        assert len(meeting) == 1
        assert set(system.rows[meeting[0]]) == {joint}
        assert group <= meeting[0] < group + 6


def test_fewer_operations():
    setting = Tracing.of(CASES["two soles"])
    rows = TreeRows.of(setting)
    rows = {"plain": rows, "short": rows.in_short_bases(setting)}
    counts = {}
    for name, each in rows.items():
        solver = ROUTES["efpa"].through_tree(setting, each.forces)
        setting.symbol("tau")
        answer = solver.solve(each.load(setting), each.c, setting.inputs(("q", "v", "tau", "t")))
        outputs = {"a": answer.acceleration, "lam": each.to_world(answer.multipliers)}
        counts[name] = setting.function("count", ("q", "v", "tau", "t"), outputs).n_instructions()
    assert counts["short"] < 0.93 * counts["plain"]


def test_redundant_rows_stay_the_users():
    """Least-norm multipliers are those of the rows that people see."""
    mechanism = walker().constrain(da.Weld("sole 0"), da.Weld("0.6", name="again"))
    setting = Tracing.of(mechanism)
    assert setting.needs.redundant
    assert TreeRows.of(setting).in_short_bases(setting).bases == [None, None]
    q, v, _ = state(mechanism)
    v = mechanism.project(q, v)[1]
    _, lam, status = mechanism.forward(q, v, np.zeros(mechanism.nv))
    assert status == da.Status.REDUNDANT
    rest = mechanism.mass_matrix(q) @ mechanism.forward(q, v).acceleration + mechanism.bias(q, v)
    least = -np.linalg.pinv(mechanism.jacobian(q).T, rcond=1e-9) @ rest
    np.testing.assert_allclose(lam, least, atol=1e-8 * np.abs(least).max())


def test_wrenches_cost_at_most_two_fifths_of_forward_dynamics():
    """Go2 flying, its moving joints; Go2 standing, every joint: 1.36 and 1.37 times the operations of forward alone."""
    for robot, joints in ((GO2.tree(), "moving"), (GO2.in_contact(), None)):
        options = {"route": "auto" if not robot.names else "caba", "metric": None, "dtype": "float64"}
        alone = TRACES["forward"](robot, **options)
        both = TRACES["joint_forces"](robot, **options, axes="child", joints=joints)
        assert cost_of(both).operations <= 1.4 * cost_of(alone).operations
