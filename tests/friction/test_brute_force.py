"""O8: `exact` against every mode and every direction of slip, one to three contacts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalembert.friction import Reacting, resolve
from tests.friction.brute_force import OPEN, SLIP, STICK, every_answer, obeys, reactions

seeds = st.integers(0, 2**32 - 1)


def contacts(rng, k, planes, strongest=1.2):
    """Return M, f, A (normals), W (tangents), mu of contacts that are coupled but not redundant."""
    d = 2 if planes else 1
    n = (1 + d) * k + 1
    root = rng.normal(size=(n, n))
    M = root @ root.T + np.diag(rng.uniform(0.5, 2.0, n))
    return (
        M,
        5.0 * rng.normal(size=n),
        rng.normal(size=(k, n)),
        rng.normal(size=(n, d * k)),
        rng.uniform(0.05, strongest, k),
    )


def by_both(M, f, A, W, mu, planes):
    """Return the library's answer, its reactions in order of contacts, and all answers by brute force."""
    k, d = len(mu), 2 if planes else 1
    H = np.vstack([np.vstack([A[i], W[:, d * i : d * (i + 1)].T]) for i in range(k)])
    G, g = H @ np.linalg.solve(M, H.T), H @ np.linalg.solve(M, f)
    laws = [Reacting(m, i, directions=d) for i, m in enumerate(mu)]
    answer = resolve(M, f, W, np.zeros(d * k), laws, A=A)
    r = np.column_stack([-answer.multipliers, answer.forces.reshape(k, d)]).ravel()
    return answer, r, every_answer(G, g, mu, planes)


def among(r, every, scale):
    return np.abs(every - r).max(axis=1, initial=0.0).min(initial=np.inf) <= 1e-7 * scale


@settings(max_examples=40)
@given(seeds, st.integers(1, 3))
def test_one_tangent_each_against_all_modes(seed, k):
    answer, r, every = by_both(*contacts(np.random.default_rng(seed), k, planes=False), planes=False)
    assert len(every)
    assert answer.ok
    assert among(r, every, np.abs(every).max() + 1e-300)
    unique = answer.report.accelerations_unique
    assert unique is None or unique is (len(every) == 1)


@settings(max_examples=12)
@given(seeds, st.integers(1, 3))
def test_planes_against_all_modes_and_directions(seed, k):
    answer, r, every = by_both(*contacts(np.random.default_rng(seed), k, planes=True), planes=True)
    assert len(every)
    assert answer.ok
    assert among(r, every, np.abs(every).max() + 1e-300)
    if answer.report.accelerations_unique:
        assert len(every) == 1


@pytest.mark.parametrize("k", [2, 3])
def test_contacts_that_all_slip_in_a_plane(k):
    """Pressed and dragged: every contact slips, so the scan runs over k angles at once."""
    rng = np.random.default_rng(k)
    M, _, A, W, _ = contacts(rng, k, planes=True)
    mu = rng.uniform(0.2, 0.5, k)
    pull = W @ rng.normal(size=2 * k) * 20.0
    f = pull - A.T @ rng.uniform(1.0, 2.0, k)
    answer, r, every = by_both(M, f, A, W, mu, planes=True)
    assert answer.ok
    assert among(r, every, np.abs(every).max())


def test_the_oracle_catches_a_wrong_answer():
    """The associated problem's answer is not Coulomb's where a contact slips."""
    M, f, A, W, mu = contacts(np.random.default_rng(5), 2, planes=True)
    f = f - 30.0 * A.sum(axis=0) + 60.0 * W[:, 0]
    answer, r, every = by_both(M, f, A, W, mu, planes=True)
    assert answer.sets.about_to_slip
    assert among(r, every, np.abs(every).max())
    laws = [Reacting(m, i, directions=2) for i, m in enumerate(mu)]
    convex = resolve(M, f, W, np.zeros(4), laws, A=A, associated=True)
    wrong = np.column_stack([-convex.multipliers, convex.forces.reshape(2, 2)]).ravel()
    assert not among(wrong, every, np.abs(every).max())


def test_the_oracle_on_a_brick_by_hand():
    G, mu, none = np.eye(2), np.array([0.5]), np.zeros((1, 1))
    for g, mode, s, r in (
        ([-10.0, 4.0], STICK, 0.0, [10.0, -4.0]),
        ([-10.0, 6.0], SLIP, 1.0, [10.0, -5.0]),
        ([1.0, 6.0], OPEN, 0.0, [0.0, 0.0]),
    ):
        found = every_answer(G, np.array(g), mu, planes=False)
        np.testing.assert_allclose(found, [r])
        assert obeys(G, np.array(g), mu, (mode,), none + s, reactions(G, np.array(g), mu, (mode,), none + s))
