"""O8: many redundant contacts: stacks of boxes by interior points, judged by De Saxce's form and by Clarabel."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sps

from dalembert.friction.cone_kernel import ASSOCIATED, COULOMB, evaluate, steps_of
from dalembert.friction.contact_kernel import has_interior, is_sparse, solve_contacts
from dalembert.friction.envelope_kernel import block_envelope, factor, substitute, times
from dalembert.friction.interior_kernel import interior
from tests.friction.problems import stack
from tests.friction.test_cones import de_saxce, solved


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


@pytest.mark.parametrize("law", [ASSOCIATED, COULOMB])
def test_interior_points_find_what_sweeps_and_newton_find(law):
    """Contacts that are not redundant have one answer for weak friction; rows of 1, 2 and 3 per contact."""
    rng = np.random.default_rng(3)
    first = np.array([0, 1, 3, 6, 9, 11, 12])
    H = rng.normal(size=(12, 16))
    G, g, mu = H @ H.T, H @ rng.normal(size=16), np.array([0.0, 0.2, 0.1, 0.3, 0.2, 0.0])
    kind, sliding, s = np.zeros(6, np.int64), np.zeros(6, np.bool_), np.zeros(12)
    plain, inside = np.zeros(12), np.zeros(12)
    residual, _, _ = solve_contacts(G, g, first, mu, law, kind, sliding, s, plain, 1e-13, 12, 400)
    assert residual <= 1e-12
    steps, gap = interior(G, g, first, mu, law == COULOMB, inside, 1e-14, 40)
    assert steps < 40
    assert gap <= 1e-9
    np.testing.assert_allclose(inside, plain, atol=1e-6 * np.abs(plain).max())


def test_elimination_within_the_envelope_is_a_solve():
    rng = np.random.default_rng(1)
    G, g, _ = stack(rng, 24)
    first = np.arange(0, 73, 3)
    low, high = block_envelope(G, first)
    outside = [(i, j) for i in range(72) for j in range(72) if not low[i] <= j <= high[i]]
    assert outside
    assert all(G[i, j] == 0.0 for i, j in outside)
    A = G + np.diag(rng.uniform(0.5, 1.0, 72))
    A[0] += 0.1 * A[1]  # not symmetric, as with De Saxce's shift
    L, U, x, back = np.zeros((72, 72)), np.zeros((72, 72)), g.copy(), np.empty(72)
    factor(A, L, U, low)
    substitute(L, U, low, x)
    np.testing.assert_allclose(x, np.linalg.solve(A, g), rtol=1e-9, atol=1e-12)
    times(A, low, high, x, back)
    np.testing.assert_allclose(back, g, atol=1e-12)


def test_which_method_when():
    G, _, mu = stack(np.random.default_rng(0), 40)
    first, kind, sliding = np.arange(0, 121, 3), np.zeros(40, np.int64), np.zeros(40, np.bool_)
    assert is_sparse(G, first)
    assert not is_sparse(np.ones((120, 120)), first)
    assert not is_sparse(np.eye(12), np.arange(0, 13, 3))  # few
    assert has_interior(first, mu, kind, sliding)
    assert not has_interior(first, 0.0 * mu, kind, sliding)
    assert not has_interior(first, mu, kind + 1, sliding)
    assert not has_interior(first, mu, kind, ~sliding)


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
