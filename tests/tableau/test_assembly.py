"""Ledger Y4: equations put together from elements are those of `maximal`, entry by entry."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalembert as da
from dalembert.errors import ShapeError, UnsupportedError
from dalembert.status import Status
from dalembert.tableau import ElementAssembly, eliminate, make_plan, maximal
from tests.tableau.test_mechanics import (
    CONSTRAINTS,
    SEVERAL,
    SINGLE,
    closed_tree,
    one_body,
    rolling_ball,
    spatial_loop,
    tree,
)

SHIFT = 7.0


def assert_same_equations(mechanism: da.Mechanism, seed: int) -> None:
    """Residual and Newton's matrix equal those of the tableau, by the names of equations and unknowns."""
    assembly, tableau = ElementAssembly(mechanism), maximal(mechanism)
    assert set(assembly.pattern.unknowns) == set(tableau.unknowns)
    assert set(assembly.pattern.equations) == set(tableau.equations)
    assert set(assembly.torques) == set(tableau.known)
    rng = np.random.default_rng(seed)
    x, x_dot, u = (rng.standard_normal(n) for n in (assembly.n, assembly.n, len(assembly.torques)))
    place = {name: k for k, name in enumerate(assembly.pattern.unknowns)}
    cols = [place[name] for name in tableau.unknowns]
    row_of = {name: k for k, name in enumerate(assembly.pattern.equations)}
    rows = [row_of[name] for name in tableau.equations]
    inputs = [assembly.torques.index(name) for name in tableau.inputs]
    f = ca.Function("f", [tableau.x, tableau.x_dot, tableau.u], [tableau.residual, tableau.jacobian(SHIFT)])
    moving = [cols[k] for k in tableau.differential]
    G, J = (np.array(each) for each in f(x[cols], x_dot[moving], u[inputs]))
    scale = np.abs(J).max()
    np.testing.assert_allclose(assembly.residual(x, x_dot, u)[rows], G.ravel(), atol=1e-12 * scale)
    A = assembly.pattern.matrix(assembly.jacobian(x, x_dot, u, SHIFT)).toarray()
    np.testing.assert_allclose(A[np.ix_(rows, cols)], J, atol=1e-12 * scale)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.sampled_from([*SINGLE, *SEVERAL, "free", "fixed"]), min_size=1, max_size=4), st.integers(0, 1000))
def test_Y4_elements_of_random_trees(kinds, seed):
    if set(kinds) != {"fixed"}:
        assert_same_equations(tree(kinds, seed, passive="free" not in kinds), seed)


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_Y4_elements_of_constraints(kind):
    assert_same_equations(closed_tree(kind)[0], 1)


def test_Y4_elements_of_rows_that_have_no_positions():
    driven = rolling_ball()[0]
    assert_same_equations(driven.open_tree().constrain(da.Rolling("ball", "plate", radius=0.1)), 5)
    with pytest.raises(UnsupportedError, match=r"servo spindle.*newton_euler"):
        ElementAssembly(driven)


def test_Y4_elements_of_a_loop_that_a_joint_closes():
    assert_same_equations(spatial_loop()[0], 2)


def long_chain(bodies: int) -> da.Mechanism:
    b = da.Builder("chain")
    for i in range(bodies):
        b.body(f"b{i}", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        parent, at = (f"b{i - 1}", -1.0) if i else ("world", 0.0)
        axis = (0, 1, 0) if i % 2 else (1, 0, 0)
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=axis, position=(0, 0, at))
    return b.build()


def test_many_equal_elements_are_compiled_and_their_matrix_is_solved():
    """More elements than `WORTH_COMPILING`; the plan made in pairs solves Newton's system, judged by its residual."""
    mechanism = long_chain(70)
    assert_same_equations(mechanism, 3)
    assembly = ElementAssembly(mechanism)
    assert len(assembly._groups) == 4
    rng = np.random.default_rng(4)
    x, b = rng.standard_normal(assembly.n), rng.standard_normal(assembly.n)
    values = assembly.jacobian(x, np.zeros(assembly.n), shift=100.0)
    solver = eliminate(assembly.pattern, values=values, paired=True)
    found = solver.solve(values, b).x
    A = assembly.pattern.matrix(values)
    np.testing.assert_allclose(found, np.linalg.solve(A.toarray(), b), rtol=1e-6, atol=1e-9)
    assert solver.plan.operations <= make_plan(assembly.pattern, values=values).operations


@pytest.mark.parametrize(
    ("shift", "outcome"), [(1.0, Status.PLANNED), (1e-4, Status.REFINED), (1e-6, Status.REPLANNED)]
)
def test_pairs_that_are_no_pivots_any_more_are_noticed(shift, outcome):
    """Without inertia a velocity is no pivot in its force: the plan for shift 100 is refined, then given up."""
    assembly = ElementAssembly(long_chain(6))
    x, rest, b = np.random.default_rng(4).standard_normal(assembly.n), np.zeros(assembly.n), np.ones(assembly.n)
    planned, values = (assembly.jacobian(x, rest, shift=s) for s in (100.0, shift))
    solver = eliminate(assembly.pattern, values=planned, paired=True, engine="loop")
    found = solver.solve(values, b)
    assert found.status[0] == outcome
    np.testing.assert_allclose(
        found.x, np.linalg.solve(assembly.pattern.matrix(values).toarray(), b), rtol=1e-8, atol=1e-8
    )


def test_what_has_no_element_is_refused_by_name():
    b = one_body()
    b.spring("rubber", "rod", "world", stiffness=3.0)
    with pytest.raises(UnsupportedError, match=r"spring 'rubber'.*maximal"):
        ElementAssembly(b.build())
    assert ElementAssembly(b.build(passive=False)).n == 19
    with pytest.raises(UnsupportedError, match="weight of 'rod'"):
        ElementAssembly(one_body(compensation=0.5).build())
    with pytest.raises(ShapeError, match=r"x_dot must have shape \(19,\)"):
        ElementAssembly(one_body().build()).residual(np.zeros(19), np.zeros(3))
