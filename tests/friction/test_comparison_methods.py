"""O14: friction as a linear complementarity problem with faceted cones (Lemke), and by projected sweeps."""

import itertools

import numpy as np
import pytest

from dalembert.errors import ModelError, UnsupportedError
from dalembert.friction import Limited, Reacting, resolve, resolve_batch
from dalembert.friction.cones.faceted import lemke
from dalembert.status import Status


def definite(rng, n):
    X = rng.standard_normal((n, n))
    return X @ X.T + 0.5 * np.eye(n)


def table(directions: int, mu: float = 0.5, legs: int = 4):
    """A body of three translations and three small rotations on four legs: redundant normals, coupled tangents."""
    M = np.diag([2.0, 2.0, 2.0, 0.3, 0.4, 0.5])
    feet = np.array([[0.5, 0.4, -0.6], [-0.5, 0.4, -0.6], [-0.5, -0.4, -0.6], [0.5, -0.4, -0.6]])[:legs]
    A, W = [], []
    for x in feet:
        J = np.hstack([np.eye(3), -np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])])
        A.append(J[2])
        W += [J[0], J[1]][:directions]
    laws = [Reacting(mu, i, directions=directions) for i in range(legs)]
    return M, np.array(W).T, laws, np.array(A)


@pytest.mark.parametrize("seed", range(20))
def test_O14_lemke_solves_linear_complementarity_problems(seed):
    """Against all 2^N bases."""
    rng = np.random.default_rng(seed)
    n = 6
    Q, q = definite(rng, n) + 0.5 * (lambda X: X - X.T)(rng.standard_normal((n, n))), rng.standard_normal(n)
    answer = lemke(Q, q)
    w = Q @ answer.z + q
    assert answer.solved
    assert answer.z.min() >= 0
    assert w.min() > -1e-12
    assert abs(answer.z @ w) < 1e-12
    found = []
    for basis in itertools.product((False, True), repeat=n):
        B = np.flatnonzero(basis)
        z = np.zeros(n)
        z[B] = np.linalg.solve(Q[np.ix_(B, B)], -q[B])
        if z.min() >= -1e-12 and (Q @ z + q).min() >= -1e-12:
            found.append(z)
    np.testing.assert_allclose(answer.z, found[0], atol=1e-11)


def test_O14_degenerate_problems_end():
    """All ratios tie: the lexicographic rule."""
    Q, q = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]), np.array([-1.0, -1, -1])
    answer = lemke(Q, q)
    np.testing.assert_allclose(Q @ answer.z + q, 0, atol=1e-14)


@pytest.mark.parametrize("method", ["lcp", "sweeps"])
@pytest.mark.parametrize("seed", range(8))
def test_O14_given_limits_are_solved_exactly(method, seed):
    """Redundant directions, constraint rows, contacts in motion: the acceleration is unique."""
    rng = np.random.default_rng(seed)
    n, m = 4, 6
    M, f, W = definite(rng, n), 5 * rng.standard_normal(n), rng.standard_normal((n, m))
    W[:, 5] = W[:, 0] + W[:, 1]
    state = np.array([0, 0, 0, 1.0, 0, 0])
    A, limits = rng.standard_normal((1, n)), rng.uniform(0.5, 3, m)
    exact = resolve(M, f, W, state, limits, A=A)
    other = resolve(M, f, W, state, limits, A=A, method=method)
    assert other.ok
    np.testing.assert_allclose(other.acceleration, exact.acceleration, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["lcp", "sweeps"])
def test_O14_cones_of_one_direction_are_not_approximated(method):
    M, W, laws, A = table(1, mu=0.2)
    rng = np.random.default_rng(1)
    for push in rng.standard_normal((6, 3)):
        f = np.array([6 * push[0], 0, -20, 0, 2 * push[1], push[2]])
        exact, other = (resolve(M, f, W, np.zeros(4), laws, A=A, method=way) for way in ("exact", method))
        assert exact.ok
        assert other.ok
        np.testing.assert_allclose(other.acceleration, exact.acceleration, rtol=0, atol=1e-8)


def test_O14_faceted_cones_converge_to_the_exact_cone():
    """Errors of the acceleration fall with the number of facets; a sticking table sticks at every number."""
    M, W, laws, A = table(2, mu=0.3, legs=3)
    rng = np.random.default_rng(0)
    loads = [np.array([*(12 * rng.standard_normal(2)), -20, 0, 0, 3 * rng.standard_normal()]) for _ in range(12)]
    worst = []
    for facets in (8, 32, 128):
        errors = []
        for f in loads:
            exact = resolve(M, f, W, np.zeros(6), laws, A=A)
            other = resolve(M, f, W, np.zeros(6), laws, A=A, method="lcp", facets=facets)
            assert exact.ok
            assert other.status in (Status.SOLVED, Status.NOT_OPTIMAL)
            errors.append(np.linalg.norm(other.acceleration - exact.acceleration) / np.linalg.norm(f[:3]))
        worst.append(np.mean(errors))
    assert worst[0] > 2.5 * worst[1] > 6 * worst[2]
    assert worst[2] < 0.002
    M, W, laws, A = table(2, mu=0.3)
    still = resolve(M, [1, 1, -20, 0, 0, 0], W, np.zeros(8), laws, A=A, method="lcp", facets=4)
    assert still.ok
    assert len(still.sets.sticking) == 4


def test_O14_force_and_direction_of_a_facet():
    """A block pushed along angle phi: the force is a corner's, at most pi / F from the push, or on an edge."""
    mu, facets = 0.5, 8
    for phi in np.linspace(0, 2 * np.pi, 23):
        f = np.array([8 * np.cos(phi), 8 * np.sin(phi), -9.81])
        r = resolve(np.eye(3), f, np.eye(3)[:, :2], [0, 0], [Reacting(mu, 0, directions=2)], A=[[0, 0, 1]],
                    method="lcp", facets=facets)  # fmt: skip
        size = np.linalg.norm(r.forces)
        assert mu * 9.81 * np.cos(np.pi / facets) - 1e-12 <= size <= mu * 9.81 + 1e-12
        against = -f[:2] / np.linalg.norm(f[:2])
        assert np.arccos(np.clip(r.forces @ against / size, -1, 1)) <= np.pi / facets + 1e-9


def test_O14_disks_of_given_limits():
    W = np.eye(2)
    exact = resolve(np.eye(2), [3, 1], W, [0, 0], [Limited(2.0)])
    near = resolve(np.eye(2), [3, 1], W, [0, 0], [Limited(2.0)], method="lcp", facets=512)
    swept = resolve(np.eye(2), [3, 1], W, [0, 0], [Limited(2.0)], method="sweeps")
    np.testing.assert_allclose(near.acceleration, exact.acceleration, atol=0.03)
    np.testing.assert_allclose(swept.acceleration, exact.acceleration, atol=1e-10)


@pytest.mark.parametrize("scheme", ["gauss-seidel", "jacobi"])
def test_O14_sweeps_reach_the_exact_cone(scheme):
    M, W, laws, A = table(2, mu=0.4, legs=3)
    for f in ([9, 2, -20, 0, 0, 1], [1, 1, -20, 0, 0, 0], [0, 12, -20, 1, 0, 0]):
        exact = resolve(M, f, W, np.zeros(6), laws, A=A)
        other = resolve(M, f, W, np.zeros(6), laws, A=A, method="sweeps", scheme=scheme)
        assert other.ok, other
        np.testing.assert_allclose(other.acceleration, exact.acceleration, rtol=0, atol=1e-7)


def test_O14_jacobi_without_shorter_steps_does_not_converge_and_says_so():
    M, W, laws, A = table(2, mu=0.4)
    r = resolve(M, [9, 2, -20, 0, 0, 1], W, np.zeros(8), laws, A=A, method="sweeps", scheme="jacobi", relaxation=1.9,
                sweeps=50)  # fmt: skip
    assert not r.ok
    assert r.certificate.optimality > 1e-3
    assert r.certificate.iterations == 50


def test_O14_few_sweeps_are_returned_with_what_they_miss():
    M, W, laws, A = table(2)
    r = resolve(M, [9, 2, -20, 0, 0, 1], W, np.zeros(8), laws, A=A, method="sweeps", sweeps=3)
    assert r.status is Status.NOT_OPTIMAL
    assert np.isfinite(r.acceleration).all()
    assert r.certificate.optimality > 1e-8


PAINLEVE = np.linalg.inv(np.array([[1.0, 0.9], [0.9, 1.0]]))
"""Mass matrix whose Delassus matrix couples normal and tangent: sliding with mu = 2 has no answer under a push."""


def test_O14_ray_of_lemke_is_named():
    f = PAINLEVE @ [-1.0, 0.0]
    r = resolve(PAINLEVE, f, [[0], [1]], [1.0], [Reacting(2.0, 0)], A=[[1, 0]], names=["tip"], method="lcp")
    assert r.status is Status.NOT_CONVERGED
    assert "ended on a ray along tip" in r.certificate.note
    jaws = resolve(np.eye(2), [0, -9.81], [[0, 0], [1, 1]], [0, 0], [Reacting(0.3, 0), Reacting(0.3, 1)],
                   A=[[1, 0], [-1, 0]], drift=[-1, -1], names=["left", "right"], method="lcp")  # fmt: skip
    assert jaws.status is Status.NO_SOLUTION
    assert dict(jaws.certificate.contradiction).keys() == {"left", "right"}


@pytest.mark.parametrize("method", ["lcp", "sweeps"])
def test_O14_batches_equal_single_states(method):
    M, W, laws, A = table(2)
    f = np.array([[9, 2, -20, 0, 0, 1.0], [0, 0, -20, 0, 0, 0], [np.nan] * 6, [0, 0, 30, 0, 0, 0]])
    out = resolve_batch(M, f, W, np.zeros((4, 8)), laws, A=A, method=method)
    assert out.status[2] == Status.NONFINITE
    assert np.isnan(out.acceleration[2]).all()
    for s in (0, 1, 3):
        one = resolve(M, f[s], W, np.zeros(8), laws, A=A, method=method)
        assert out.status[s] == one.status
        np.testing.assert_array_equal(out.acceleration[s], one.acceleration)
        np.testing.assert_array_equal(out.forces[s], one.forces)
    assert (out.sets[3] == 3).all()


def test_O14_what_the_methods_do_not_know_is_said():
    guide = [Reacting(0.3, 0, unilateral=False)]
    with pytest.raises(UnsupportedError, match="pushes and pulls"):
        resolve(np.eye(2), [1, -1], [[1], [0]], [0], guide, A=[[0, 1]], method="lcp")
    assert resolve(np.eye(2), [1, -1], [[1], [0]], [0], guide, A=[[0, 1]], method="sweeps").ok
    with pytest.raises(ModelError, match="need method='exact' or 'lcp' or 'sweeps'"):
        resolve(np.eye(2), [1, -1], [[1], [0]], [0], guide, A=[[0, 1]], method="flowchart")
    with pytest.raises(ModelError, match="at least 3"):
        resolve(np.eye(2), [3, 1], np.eye(2), [0, 0], [Limited(2.0)], method="lcp", facets=2)
    with pytest.raises(ModelError, match="does not know the option 'facet'; it has facets"):
        resolve(np.eye(2), [3, 1], np.eye(2), [0, 0], [Limited(2.0)], method="lcp", facet=2)
    with pytest.raises(ModelError, match="scheme='sor' is not one of"):
        resolve(np.eye(2), [3, 1], np.eye(2), [0, 0], [Limited(2.0)], method="sweeps", scheme="sor")
    massless = np.diag([1.0, 1.0, 0.0])
    declined = resolve(massless, [8, 0, -9], np.eye(3)[:, :2], [0, 0], [Reacting(0.5, 0, directions=2)],
                       A=[[0, 0, 1]], method="lcp")  # fmt: skip
    assert declined.status in (Status.DECLINED, Status.SOLVED, Status.NOT_OPTIMAL)
    held = resolve(np.diag([1.0, 0.0]), [1, 0.5], [[0], [1]], [0], [2.0], method="sweeps")
    assert held.status is Status.DECLINED
    assert "use 'exact'" in held.certificate.note
