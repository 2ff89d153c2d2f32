"""All routes to the block matrix of a mechanism, on random trees, contacts, loops and redundant rows (seed 002)."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.tree.algorithms.dynamics import REST
from dalembert.tree.block import constrained
from dalembert.tree.block.articulated_system import Load, TreeSystem
from dalembert.tree.routes.four_steps import ABA, delassus_by_columns
from dalembert.tree.routes.route_table import ROUTES
from dalembert.tree.routes.tree_rows import TreeRows
from tests import reference as plain
from tests.tree.benchmark_models import models
from tests.tree.closed import Traced, branched, hopper, least_norm, numeric, stewart
from tests.tree.contacts import GO2
from tests.tree.random_closed import closed

FEW = settings(max_examples=max(settings().max_examples // 4, 1))
"""Every example traces all routes."""

SOLVED = (da.Status.UNIQUE, da.Status.REDUNDANT)

mechanisms = st.builds(
    closed,
    st.integers(0, 10**6),
    depth=st.integers(1, 4),
    branches=st.integers(1, 3),
    contacts=st.integers(1, 2),
    loops=st.integers(0, 2),
    extras=st.sampled_from(["", "", "c", "r", "cr"]),
)


def by_route(mechanism, route):
    return numeric(constrained.block_solution(mechanism, route, None, "float64"))


def looped(mechanism):
    kernel = mechanism.compile("kkt", backend="looped")

    def call(*inputs):
        a, lam, status = kernel(*inputs)
        return a, lam, da.Status(int(status[0]))

    return call


@FEW
@given(mechanisms)
def test_W3_all_routes_solve_the_block_matrix_for_arbitrary_right_sides(made):
    assert_all_routes_solve(*made)


@pytest.mark.parametrize("mechanism", [models.rails(9), models.rails(12), models.net(2)], ids=lambda m: m.name)
def test_W3_ropes_side_by_side_that_are_tied_in_several_places(mechanism):
    """Loops that all close at the ground: rows that have filled in where another went must not go before they meet."""
    rng = np.random.default_rng(0)
    assert_all_routes_solve(mechanism, mechanism.neutral(), rng)


def assert_all_routes_solve(mechanism, q, rng):
    """M x1 + A^T x2 = y1, A x1 = y2 against NumPy: unique x1, and the least x2 where rows are redundant."""
    numbers = Traced(mechanism)
    M, A = numbers.M(q), numbers.A(q)
    y1, y2 = 5 * rng.standard_normal(mechanism.nv), A @ rng.standard_normal(mechanism.nv)
    G = A @ np.linalg.solve(M, A.T)
    held = np.linalg.pinv(G, rcond=1e-9, hermitian=True) @ (A @ np.linalg.solve(M, y1) - y2)
    x1 = np.linalg.solve(M, y1 - A.T @ held)
    x2 = least_norm(A, y1 - M @ x1)
    size = np.sqrt(np.where(np.diag(G) > 1e-13 * np.diag(G).max(), np.diag(G), 1.0))  # a row may hold nothing
    spectrum = np.linalg.eigvalsh(G / np.outer(size, size))
    clear = (spectrum > 1e-4) | (spectrum < 1e-13)
    for route in ROUTES:
        found, lam, status = by_route(mechanism, route)(q, y1, y2, 0)
        assert status in SOLVED or not clear.all(), (route, status, spectrum)
        if status in SOLVED and clear.all():
            np.testing.assert_allclose(found, x1, atol=1e-8 * np.abs(x1).max(), err_msg=route)
            np.testing.assert_allclose(lam, x2, atol=1e-7 * max(np.abs(x2).max(), 1e-3), err_msg=route)
            assert (status == da.Status.UNIQUE) == (spectrum > 1e-4).all(), route


@FEW
@given(mechanisms)
def test_W5_every_route_makes_the_delassus_matrix(made):
    """G = A M^-1 A^T against NumPy, in the user's rows; the plain twins likewise."""
    mechanism, q, _ = made
    numbers = Traced(mechanism)
    M, A = numbers.M(q), numbers.A(q)
    G = A @ np.linalg.solve(M, A.T)
    close = {"rtol": 0, "atol": 1e-11 * np.abs(G).max() * np.linalg.cond(M) ** 0.5}
    for route in (each for each in ROUTES.values() if each.makes_delassus):
        np.testing.assert_allclose(numbers("delassus", q, 0, route=route.name).reshape(G.shape), G, **close)
    state, rows = plain.State.at(mechanism, q), plain.RowForces.at(mechanism, q)
    np.testing.assert_allclose(rows.matrix(state), A, atol=1e-11)
    np.testing.assert_allclose(plain.delassus_by_passes(state, rows), G, **close)
    if not rows.j.any():
        np.testing.assert_allclose(plain.delassus_by_propagators(state, rows), G, **close)


@FEW
@given(mechanisms)
def test_W3_plain_twins(made):
    """The seed's four steps and the elimination inside the tree, in NumPy, against the dense block matrix."""
    mechanism, q, rng = made
    state, rows = plain.State.at(mechanism, q), plain.RowForces.at(mechanism, q)
    M, A = plain.crba(state), rows.matrix(state)
    y1, y2 = rng.standard_normal(mechanism.nv), A @ rng.standard_normal(mechanism.nv)
    K = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
    if np.linalg.cond(K) > 1e6:
        return
    x = np.linalg.solve(K, np.concatenate([y1, y2]))
    for twin in (plain.four_steps, plain.caba):
        np.testing.assert_allclose(np.concatenate(twin(state, rows, y1, y2)), x, atol=1e-8 * np.abs(x).max())


@pytest.mark.parametrize("mechanism", [branched().constrain(da.Point("f3"), da.Weld("f5")), stewart()[0]])
def test_W1_W2_steps_one_and_two(mechanism):
    """One call of ABA gives J M^-1 y1, m calls the Delassus matrix; compiled steps and plain twin against dense."""
    rng = np.random.default_rng(3)
    q, y1 = mechanism.random(rng), rng.standard_normal(mechanism.nv)
    state, rows = plain.State.at(mechanism, q), plain.RowForces.at(mechanism, q)
    M, A = plain.crba(state), rows.matrix(state)
    none = np.zeros(len(A))
    np.testing.assert_allclose(plain.ABA(state, rows, y1, none)[1], A @ np.linalg.solve(M, y1), atol=1e-10)
    np.testing.assert_allclose(plain.ABA(state, rows, y1, none)[0], np.linalg.solve(M, y1), atol=1e-10)

    setting = constrained.Tracing.of(mechanism)
    system = TreeSystem.of(setting.tree, setting.posed, TreeRows.of(setting).in_world())
    tau = setting.symbol("tau")
    called = ABA(system, Load([REST] * len(setting.tree.links), tau), none.tolist())
    columns = ca.vertcat(*[ca.horzcat(*row) for row in delassus_by_columns(system)])
    inputs = [setting.column(name) for name in ("q", "tau", "v", "t")]
    steps = ca.Function("steps", inputs, [ca.vertcat(*called.contacts), columns])
    a1, G = (np.array(x) for x in steps(q, y1, 0, 0))
    np.testing.assert_allclose(a1.ravel(), A @ np.linalg.solve(M, y1), atol=1e-10)
    np.testing.assert_allclose(G, A @ np.linalg.solve(M, A.T), atol=1e-10)


def test_W6_auto_takes_the_fewest_operations():
    for mechanism in (GO2.in_contact(), stewart()[0], branched().constrain(da.Point("f3"))):
        table = mechanism.routes()
        figures = {line.route: line.operations for line in table.lines if line.competes}
        assert table.taken == min(figures, key=figures.__getitem__)
        auto = constrained.forward(mechanism).n_instructions()
        assert auto == constrained.forward(mechanism, table.taken).n_instructions()
        assert auto == min(constrained.forward(mechanism, route).n_instructions() for route in ROUTES)
        text = str(table)
        assert all(line.why in text for line in table.lines)
        assert f"* {table.taken}" in text


def test_W6_rows_at_the_ends_go_where_their_limbs_begin():
    """Four feet of Go2: one fifth fewer operations than by the next route, half as deep."""
    table = GO2.in_contact().routes()
    assert table.taken == "caba"
    assert table["caba"].operations < 0.85 * table["efpa"].operations
    assert table["caba"].depth < 0.7 * table["efpa"].depth


def test_massless_leaves_are_named_and_auto_takes_the_block_route():
    mechanism = hopper(0.0).constrain(da.Point("foot"))
    table = mechanism.routes()
    assert table.taken == "matrix"
    for route in ("aba", "efpa", "pv", "caba"):
        assert table[route].operations is None
        assert "nothing resists the coordinate 'knee'" in table[route].why
        with pytest.raises(da.ModelError, match=r"nothing resists the coordinate 'knee'.*route='matrix'"):
            constrained.forward(mechanism, route)
    q = mechanism.random(1)
    q[mechanism.index_q("knee")] = 0.8
    *_, status = numeric(constrained.forward(mechanism))(q, np.zeros(8), np.ones(8), 0)
    assert status == da.Status.UNIQUE


def test_a_leg_that_is_straight_is_declined_inside_the_tree_and_solved_by_kkt():
    """Knees within limits that no probe has straight: the pivot tells, and `forward` gives the sample to `KKT`."""
    mechanism = bent_leg()
    table = mechanism.routes()
    assert table.taken == "caba"
    rng = np.random.default_rng(0)
    q = mechanism.random(rng, 3)
    q[:, mechanism.index_q("knee")] = np.array([[1.0], [1e-9], [0.0]])
    v, tau = 0.1 * rng.standard_normal((3, mechanism.nv)), rng.standard_normal((3, mechanism.nv))
    *_, status = mechanism.compile("forward")(q, v, tau, np.zeros((3, 1)))
    assert [int(x) for x in status.ravel()] == [da.Status.UNIQUE, da.Status.DECLINED, da.Status.DECLINED]
    a, lam, status = mechanism.forward(q, v, tau)
    assert (status == da.Status.UNIQUE).all()
    by_efpa, multipliers, _ = mechanism.compile("forward", route="efpa")(q, v, tau, np.zeros((3, 1)))
    np.testing.assert_allclose(a, by_efpa, atol=1e-8 * np.abs(a).max())
    np.testing.assert_allclose(lam, multipliers, atol=1e-8 * np.abs(lam).max())


def bent_leg():
    """Return a flying body on a leg of three hinges whose knee bends one way."""
    b = da.Builder("bent leg")
    b.body("trunk", mass=8.0, inertia=(0.3, 0.4, 0.2))
    for name in ("hip", "thigh", "shank"):
        b.body(name, mass=1.0, center=(0, 0, -0.2), inertia=(0.02, 0.02, 0.01))
    b.joint("abduct", "revolute", parent="trunk", child="hip", axis=(1, 0, 0), position=(0.2, 0.1, 0))
    b.joint("swing", "revolute", parent="hip", child="thigh", axis=(0, 1, 0), position=(0, 0.1, 0))
    b.joint("knee", "revolute", parent="thigh", child="shank", axis=(0, 1, 0), position=(0, 0, -0.4), limits=(0.4, 2.0))
    b.frame("foot", "shank", position=(0, 0, -0.4))
    return b.build(base="floating").constrain(da.Point("foot"))


@pytest.mark.parametrize("leg", [1.0, 0.0], ids=["", "massless"])
@pytest.mark.parametrize("idle", [da.Distance("knob", "thigh", length=1.0), da.Point("knob", "thigh")], ids=["1", "3"])
def test_a_constraint_that_can_move_nothing_has_no_say(idle, leg):
    """Rows of rounding are neither independent nor scaled up: forces 0, a as without them, contradictions noticed.

    The knob lies on the axis of the knee: neither its place nor its distance from the thigh can change.
    """
    b = da.Builder("idle")
    b.body("torso", mass=5.0, center=(0.05, 0, 0.2), inertia=(0.2, 0.3, 0.15))
    for name in ("thigh", "shank"):
        b.body(name, mass=leg, center=(0, 0, -0.2), inertia=(0.02 * leg, 0.03 * leg, 0.01 * leg))
    b.joint("hip", "revolute", parent="torso", child="thigh", axis=(0, 1, 0), position=(0.1, 0.2, 0.3), rpy=(1, 2, 3))
    ends = {"parent": "thigh", "child": "shank", "position": (0.01, 0.02, -0.4), "rpy": (0.3, 0.2, 0.1)}
    b.joint("knee", "revolute", axis=(0.6, 0.8, 0), **ends)
    b.frame("knob", "shank", position=(0.6, 0.8, 0))
    b.frame("foot", "shank", position=(0, 0.1, -0.4))
    plain = b.build(base="floating").constrain(da.Point("foot"))
    mechanism, rng = plain.constrain(idle), np.random.default_rng(0)
    for q in mechanism.random(rng, 3):
        y1, y2 = rng.standard_normal(8), rng.standard_normal(3)
        a, lam, _ = by_route(plain, "matrix")(q, y1, y2, 0)
        more = np.zeros(len(mechanism.names) - 3)
        for route in (*(ROUTES if leg else ("matrix",)), "looped"):
            solve = looped(mechanism) if route == "looped" else by_route(mechanism, route)
            found, forces, status = solve(q, y1, np.append(y2, more), 0)
            assert status == da.Status.REDUNDANT, route
            np.testing.assert_allclose(found, a, atol=1e-10 * np.abs(a).max(), err_msg=route)
            np.testing.assert_allclose(forces, np.append(lam, more), atol=1e-8 * np.abs(lam).max(), err_msg=route)
            assert solve(q, y1, np.append(y2, more + 1e-3), 0)[-1] == da.Status.INCONSISTENT, route
