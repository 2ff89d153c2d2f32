"""Delassus' form twice: of one state through the block matrix, and of batches by Gram and Schmidt in compiled code."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.friction.delassus import Delassus
from dalembert.friction.sample_elimination import backward, eliminated, forward, particular, prescribed_terms, project
from dalembert.kkt import KKT

Array = np.ndarray


def random_state(seed: int) -> dict[str, Array]:
    """Return a state: rows redundant or none, contact directions beside constraints or within them, units apart."""
    rng = np.random.default_rng(seed)
    n, k, m = int(rng.integers(1, 7)), int(rng.integers(0, 4)), int(rng.integers(1, 5))
    root = rng.normal(size=(n, n))
    M, A, W = root @ root.T + 0.1 * np.eye(n), rng.normal(size=(k, n)), rng.normal(size=(n, m))
    if k > 1 and seed % 2:
        A[-1] = A[:-1].sum(axis=0)
    if k and seed % 3 == 0:
        W[:, 0] = A[0]  # a contact that pushes on constraints alone
    if seed % 5 == 0:
        d = 10.0 ** rng.uniform(-3, 3, n)
        M, A, W = M * np.outer(d, d), A * d, W * d[:, None]
    drift = -A @ (rng.normal(size=n) / np.sqrt(M.diagonal()))
    f = rng.normal(size=n) * np.sqrt(M.diagonal())
    return {"M": M, "A": A, "W": W, "f": f, "drift": drift, "contact_drift": rng.normal(size=m)}


def by_elimination(s: dict[str, Array]) -> tuple[Array, Array, Array, Array]:
    """Return G, g, the terms of g and the free acceleration, as the loops of batches put them together."""
    M, A, H = s["M"], s["A"], np.ascontiguousarray(s["W"].T)
    (k, n), m = A.shape, len(H)
    L, Q, R, J, b = np.zeros((n, n)), np.zeros((k, n)), np.zeros((k, k)), np.empty((m, n)), np.zeros(n)
    assert eliminated(M, A, H, L, Q, R, J)
    assert particular(Q, R, s["drift"], b)
    y, inward = s["f"].copy(), b.copy()
    forward(L, y)
    backward(L, inward)
    known = prescribed_terms(L, Q, b)
    g = J @ y + H @ inward + s["contact_drift"]
    terms = np.abs(J) @ np.abs(y) + np.abs(H) @ known + np.abs(s["contact_drift"])
    free = y.copy()
    project(Q, free)
    free += b
    backward(L, free)
    return J @ J.T, g, terms, free


@pytest.mark.parametrize("seed", range(60))
def test_one_state_and_a_batch_see_the_same_contacts(seed):
    s = random_state(seed)
    G, g, terms, free = by_elimination(s)
    m = s["W"].shape[1]
    one = Delassus(KKT(s["M"], s["A"]), s["f"], s["drift"], s["W"], s["contact_drift"], np.zeros(m))
    stiffness = np.sqrt(np.maximum(G.diagonal(), one.delassus[0].diagonal()))
    size = np.outer(stiffness, stiffness)
    assert (np.abs(G - one.delassus[0]) <= 1e-11 * size).all()
    assert ((G.diagonal() == 0.0) == (one.delassus[0].diagonal() == 0.0)).all()  # who pushes on constraints alone
    assert (np.abs(g - one.delassus[1]) <= 1e-11 * np.maximum(terms, one.terms)).all()
    moved = np.sqrt(s["M"].diagonal())
    scale = np.abs(moved * free).max() + np.abs(s["f"] / moved).max()
    assert (np.abs(moved * (free - one.free_acceleration)) <= 1e-10 * scale).all()


def test_contradicting_constraints_are_seen_by_both():
    A, drift = np.array([[1.0, 2.0], [2.0, 4.0]]), np.array([1.0, 2.1])
    L, Q, R, J, b = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2)), np.empty((1, 2)), np.zeros(2)
    assert eliminated(np.eye(2), A, np.ones((1, 2)), L, Q, R, J)
    assert not particular(Q, R, drift, b)
    assert particular(Q, R, np.array([1.0, 2.0]), b)
    assert KKT(np.eye(2), A).diagnose(drift).conflict is not None


def test_a_mass_that_is_none_is_seen_by_both():
    M = np.array([[1.0, 1.0], [1.0, 1.0]])
    L, Q, R, J = np.zeros((2, 2)), np.zeros((0, 2)), np.zeros((0, 0)), np.empty((1, 2))
    assert not eliminated(M, np.zeros((0, 2)), np.ones((1, 2)), L, Q, R, J)
    assert Delassus(KKT(M), np.zeros(2), np.zeros(0), np.ones((2, 1)), np.zeros(1), np.zeros(1)).singular
