"""O8: many redundant contacts: stacks of boxes by interior points, judged by De Saxce's form and by Clarabel."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sps

from dalembert.friction.cones.interior import first_point, has_interior, in_cone_units, interior, inverted, polish
from dalembert.friction.cones.second_order_cones import add_forces, assemble, factor, gathered, rows_times, substitute
from dalembert.friction.cones.solver import factor_of, solve_contacts, solve_with_rows
from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB, evaluate, steps_of
from tests.friction.problems import stack, stack_rows
from tests.friction.test_cones import de_saxce, solved
from tests.reference.interior import interior_plain


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("contacts", [12, 40, 80])
def test_stacks_satisfy_de_saxces_form(contacts, seed):
    G, g, mu = stack(np.random.default_rng(seed), contacts)
    assert np.linalg.matrix_rank(G) <= 6 * (contacts // 4) < 3 * contacts
    r, residual = solved(G, g, mu, COULOMB, 1e-12)
    assert residual <= 1e-10
    assert de_saxce(G, g, mu, r) <= 1e-10


@pytest.mark.parametrize("contacts", [12, 40])
def test_associated_stacks_against_clarabel(contacts):
    G, g, mu = stack(np.random.default_rng(contacts), contacts)
    r, residual = solved(G, g, mu, ASSOCIATED, 1e-12)
    assert residual <= 1e-10
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    A = sps.csc_matrix(-np.diag(np.column_stack([mu, np.ones((contacts, 2))]).ravel()))
    cones = [clarabel.SecondOrderConeT(3)] * contacts
    peer = clarabel.DefaultSolver(sps.csc_matrix(np.triu(G)), g, A, np.zeros(3 * contacts), cones, options)
    best = np.array(peer.solve().x)
    cost = [0.5 * x @ G @ x + g @ x for x in (r, best)]
    assert cost[0] <= cost[1] + 1e-9 * abs(cost[1])
    np.testing.assert_allclose(G @ r, G @ best, atol=1e-4 * np.abs(g).max())


def solved_by_rows(J, g, mu, law, tolerance=1e-12):
    """Solve with the rows at hand, as `resolve` does."""
    k = mu.size
    r = np.zeros(3 * k)
    residual, proximal, steps = solve_with_rows(
        J, J @ J.T, g, np.arange(0, 3 * k + 1, 3), mu, law, np.zeros(k, np.int64), np.zeros(k, np.bool_),
        np.zeros(3 * k), r, tolerance, 12, 400,
    )  # fmt: skip
    return r, residual, proximal, steps


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("contacts", [12, 40, 100, 200])
@pytest.mark.parametrize("law", [ASSOCIATED, COULOMB])
def test_stacks_by_their_rows(law, contacts, seed):
    """In the space of accelerations: no proximal points needed, and the same certificate."""
    J, g, mu = stack_rows(np.random.default_rng(seed), contacts)
    r, residual, proximal, _ = solved_by_rows(J, g, mu, law)
    assert residual <= 1e-10
    assert proximal == 0
    if law == COULOMB:
        assert de_saxce(J @ J.T, g, mu, r) <= 1e-10
    else:
        other, again = solved(J @ J.T, g, mu, ASSOCIATED, 1e-12)
        assert again <= 1e-10
        np.testing.assert_allclose(J.T @ r, J.T @ other, atol=1e-8 * np.abs(J.T @ other).max())  # y is unique


@pytest.mark.parametrize("law", [ASSOCIATED, COULOMB])
@pytest.mark.parametrize("steps", [1, 3, 6])
def test_interior_points_compiled_and_plain(law, steps):
    """The same iterates, step by step, as the dense twin in NumPy."""
    J, g, mu = stack_rows(np.random.default_rng(4), 12)
    rows, start, envelope = gathered(J, np.arange(0, 37, 3))
    R, h, unit = in_cone_units(rows, g.reshape(-1, 3), mu)
    x, point = np.zeros((12, 3)), first_point(R, h, 1.0, 1.0)
    used, gap = interior(R, start, envelope, h, law == COULOMB, 0.99, point, x, 0.0, steps)
    assert used == steps
    assert gap > 0.0
    plain = interior_plain(J, g, mu, law == COULOMB, steps)
    np.testing.assert_allclose(unit * point[0], plain, rtol=1e-7, atol=1e-10 * np.abs(plain).max())


@pytest.mark.parametrize("law", [ASSOCIATED, COULOMB])
def test_interior_points_find_what_sweeps_and_newton_find(law):
    """Contacts that are not redundant have one answer for weak friction; rows of 1, 2 and 3 per contact, mu = 0."""
    rng = np.random.default_rng(3)
    first = np.array([0, 1, 3, 6, 9, 11, 12, 15])
    H = rng.normal(size=(15, 20))
    G, g, mu = H @ H.T, H @ rng.normal(size=20), np.array([0.0, 0.2, 0.1, 0.3, 0.2, 0.0, 0.0])
    kind, sliding, s = np.zeros(7, np.int64), np.zeros(7, np.bool_), np.zeros(15)
    plain = np.zeros(15)
    residual, _, _ = solve_contacts(G, g, first, mu, law, kind, sliding, s, plain, 1e-13, 12, 400)
    assert residual <= 1e-12
    rows, start, envelope = gathered(H, first)
    free = np.zeros((7, 3))
    for i in range(7):
        free[i, : first[i + 1] - first[i]] = g[first[i] : first[i + 1]]
    R, h, unit = in_cone_units(rows, free, mu)
    x = np.zeros((7, 3))
    steps, gap = interior(R, start, envelope, h, law == COULOMB, 0.99, first_point(R, h, 1.0, 1.0), x, 1e-10, 40)
    assert steps < 40
    assert gap <= 1e-9
    inside = np.concatenate([(unit * x)[i, : first[i + 1] - first[i]] for i in range(7)])
    np.testing.assert_allclose(inside, plain, atol=1e-6 * np.abs(plain).max())


def test_newton_in_the_space_of_accelerations_is_newton():
    """A perturbed answer comes back, quadratically; bilateral, sliding and bounded contacts are known to it."""
    rng = np.random.default_rng(7)
    J = rng.normal(size=(12, 20))
    g, mu, first = J @ rng.normal(size=20), np.array([0.2, 0.1, 0.3, 0.4]), np.arange(0, 13, 3)
    kind, sliding, s = np.array([0, 1, 0, 0]), np.array([False, False, True, False]), np.zeros(12)
    s[7] = 1.0
    r = np.zeros(12)
    residual, _, _ = solve_contacts(J @ J.T, g, first, mu, COULOMB, kind, sliding, s, r, 1e-14, 12, 400)
    assert residual <= 1e-13
    rows, start, envelope = gathered(J, first)
    x = r.reshape(4, 3) * (1.0 + 1e-4 * rng.normal(size=(4, 3)))
    left, steps = polish(rows, start, envelope, g.reshape(4, 3), mu, COULOMB, kind, sliding, s, x, 1e-14, 8)
    assert left <= 1e-14
    assert steps <= 4
    np.testing.assert_allclose(x.ravel(), r, atol=1e-12 * np.abs(r).max())


def test_rows_with_spans_are_the_dense_ones():
    rng = np.random.default_rng(1)
    J, _, _ = stack_rows(rng, 24)
    R, start, envelope = gathered(J, np.arange(0, 73, 3))
    n, w = J.shape[1], R.shape[2]
    assert w == 12 < n
    x, y, C = rng.normal(size=(24, 3)), rng.normal(size=n), rng.uniform(0.5, 1.0, (24, 3, 3))  # not symmetric
    u, sums, A = np.empty((24, 3)), np.zeros(n), np.empty((n, n))
    rows_times(R, start, y, u)
    np.testing.assert_allclose(u.ravel(), J @ y, atol=1e-13)
    add_forces(R, start, x, sums)
    np.testing.assert_allclose(sums, J.T @ x.ravel(), atol=1e-13)
    assemble(R, start, envelope, C, A, np.empty((3, w)))
    dense = np.eye(n) + J.T @ (C @ J.reshape(24, 3, n)).reshape(72, n)
    inside = np.zeros((n, n), dtype=bool)
    for i, (low, high) in enumerate(envelope):
        inside[i, low:high] = True
    assert not inside.all()
    np.testing.assert_array_equal(dense[~inside], 0.0)
    np.testing.assert_allclose(A[inside], dense[inside], atol=1e-12)
    factor(A, envelope)
    substitute(A, envelope, y)
    np.testing.assert_allclose(dense @ y, dense @ np.linalg.solve(dense, dense @ y), rtol=1e-9, atol=1e-10)
    back = np.linalg.solve(dense, rng.normal(size=n))
    right = dense @ back
    substitute(A, envelope, right)
    np.testing.assert_allclose(right, back, atol=1e-10 * np.abs(back).max())


def test_small_helpers_of_the_kernels():
    rng = np.random.default_rng(2)
    B, out = rng.normal(size=(3, 3)), np.empty((2, 3, 3))
    inverted(B, 1, out)
    np.testing.assert_allclose(out[1] @ B, np.eye(3), atol=1e-12)
    J, _, _ = stack_rows(rng, 12)
    G = J @ J.T
    L = factor_of(G)
    np.testing.assert_allclose(L @ L.T, G, atol=1e-12 * np.abs(G).max())
    kind, sliding = np.zeros(40, np.int64), np.zeros(40, np.bool_)
    assert has_interior(kind, sliding)
    assert not has_interior(kind + 1, sliding)
    assert not has_interior(kind, ~sliding)
    assert not has_interior(kind[:0], sliding[:0])


@pytest.mark.parametrize("change", ["one without friction", "one that slides", "one that holds"])
def test_stacks_that_interior_points_do_not_know(change):
    """One contact that the method has no cone for: the other methods do it."""
    G, g, mu = stack(np.random.default_rng(2), 12)
    kind, sliding, s = np.zeros(12, np.int64), np.zeros(12, np.bool_), np.zeros(36)
    if change == "one without friction":
        mu[5] = 0.0
    elif change == "one that slides":
        sliding[5], s[16] = True, 1.0
    else:
        kind[5] = 1
    r = np.zeros(36)
    residual, _, _ = solve_contacts(G, g, np.arange(0, 37, 3), mu, COULOMB, kind, sliding, s, r, 1e-12, 12, 400)
    assert residual <= 1e-10
    if change == "one without friction":
        np.testing.assert_allclose(r[16:18], 0.0, atol=1e-12)


def test_nan_is_no_answer():
    """A residual of NaN must not count as small."""
    G, g, mu = stack(np.random.default_rng(2), 4)
    first = np.arange(0, 13, 3)
    r = np.zeros(12)
    r[3] = np.nan
    empty = [np.empty(12) for _ in range(4)]
    worst, _ = evaluate(
        G,
        g,
        first,
        mu,
        COULOMB,
        np.zeros(4, np.int64),
        np.zeros(4, np.bool_),
        np.zeros(12),
        steps_of(G, first),
        r,
        *empty,
    )
    assert worst == np.inf
