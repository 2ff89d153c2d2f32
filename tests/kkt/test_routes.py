"""All routes against each other and against an exact solution: being in `FACTORISATIONS` is being tested."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.errors import SolvabilityError
from dalembert.kkt import FACTORISATIONS, KKT, Status
from dalembert.kkt.routes import NullSpace, RouteDeclined
from tests.kkt import oracles, strategies

CLOSE = 1e-8
"""Relative agreement with the exact solution, times the condition that the certificate reports is not needed here:
integer systems of six rows have conditions up to 1e5."""

PROMISED = {"schur", "dense", "nullspace", "augmented", "gauss", "short_form", "gram_form"}

ALWAYS = ("auto", "nullspace")
"""Routes that must answer whenever there is an answer."""

NAMES = ["auto", *FACTORISATIONS]


def test_the_promised_routes_are_listed() -> None:
    assert set(FACTORISATIONS) >= PROMISED
    assert all(name == route.name for name, route in FACTORISATIONS.items())


def cross(system: strategies.System, force: np.ndarray, drift: np.ndarray, routes: list[str]) -> dict[str, str]:
    """Solve by every route; each agrees with the exact solution or declines with a reason, which is returned."""
    a, lam = oracles.exact_solution(system.M, system.A, force, -drift)
    K = da.KKT(system.M, system.A)
    units = np.sqrt(np.maximum(np.abs(system.M).max(axis=1), np.abs(system.A).max(axis=0, initial=0.0) ** 2))
    row_units = np.abs(system.A / units).max(axis=1, initial=0.0)
    # the largest number in the problem, in units where all matrices are of size one: zeros are compared with it
    size = max(np.abs(x).max(initial=0.0) for x in (a * units, lam * row_units, force / units))
    declined = {}
    for route in routes:
        try:
            s = K.solve(force, drift, route=route)
        except da.SolvabilityError as refused:
            declined[route] = str(refused)
            continue
        assert s.ok, (route, str(s.certificate))
        for got, truth, unit in ((s.acceleration, a, units), (s.multipliers, lam, row_units)):
            assert np.all(np.abs((got - truth) * unit) <= CLOSE * size), route
        assert s.certificate.unique.all() == (system.rank == system.m)
    return declined


@given(strategies.solvable(), st.data())
def test_every_route_agrees_or_declines_with_a_reason(system: strategies.System, data: st.DataObject) -> None:
    drift = data.draw(st.one_of(st.just(np.zeros(system.m)), strategies.in_range(system)))
    declined = cross(system, data.draw(strategies.vectors(system.n)), drift, NAMES)
    definite = system.mass_rank == system.n
    for route, reason in declined.items():
        assert route not in ALWAYS, reason
        assert "declined: " in reason
        if route in {"schur", "dense"} and definite:
            assert system.rank < system.m, reason
        if route in {"gauss", "augmented"}:
            assert not definite, reason
        if route == "dense":
            assert system.rank < system.m, reason
        if route == "augmented":
            pytest.fail(f"augmented declined a solvable system: {reason}")


@pytest.mark.parametrize("route", NAMES)
def test_each_route_answers_the_plain_case(route: str) -> None:
    """Equal masses, full rank, zero drift: the case that no route may decline."""
    s = da.KKT(2 * np.eye(3), [[1, 1, 0]]).solve([1, 3, 5], route=route)
    np.testing.assert_allclose(s.acceleration, [-0.5, 0.5, 2.5], atol=1e-15)
    np.testing.assert_allclose(s.multipliers, [2], atol=1e-15)


@pytest.mark.parametrize("route", NAMES)
def test_each_route_answers_without_constraints(route: str) -> None:
    np.testing.assert_allclose(da.KKT(np.diag([2, 4])).solve([2, 8], route=route).acceleration, [1, 2])


@pytest.mark.parametrize("route", NAMES)
def test_no_route_answers_where_there_is_no_answer(route: str) -> None:
    massless = da.KKT(np.diag([1, 0]), [[1, 0]], coordinates=["x", "y"])
    with pytest.raises(da.SolvabilityError, match="free massless motion: y"):
        massless.solve([1, 1], route=route)
    conflicting = da.KKT(np.eye(2), [[1, 1], [1, 1]], names=["left", "right"])
    with pytest.raises(da.SolvabilityError, match="'left', 'right'"):
        conflicting.solve([1, 1], [0, 1], route=route)


@pytest.mark.parametrize("route", ["nullspace", "augmented", "gauss"])
def test_routes_for_redundant_rows_use_the_metric(route: str) -> None:
    W = np.array([1.0, 4.0])
    s = da.KKT(np.eye(1), [[1], [1]], metric=W).solve([5], route=route)
    np.testing.assert_allclose(s.multipliers, [4, 1], rtol=1e-14)


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_routes_solve_many_right_sides_from_one_factorisation(name: str) -> None:
    M, A = np.diag([1.0, 1.0, 1.0]), np.array([[1.0, 2.0, 3.0]])
    factor = FACTORISATIONS[name].factor(da.KKT(M, A).analysis)
    forces = np.random.default_rng(0).standard_normal((3, 5))
    x = factor.solve(np.vstack([forces, np.zeros((1, 5))]))
    inverse = np.linalg.inv(oracles.dense_matrix(M, A))
    np.testing.assert_allclose(x, inverse[:, :3] @ forces, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "m"), [(12, 5), (30, 20), (18, 12)])
def test_routes_agree_with_mpmath_on_larger_systems(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    J, A = rng.standard_normal((n, n)), rng.standard_normal((m, n))
    M = J @ J.T + 0.1 * np.eye(n)
    force, drift = rng.standard_normal(n), rng.standard_normal(m)
    a, lam = oracles.mp_solution(M, A, force, -drift)
    for route in NAMES:
        if route in {"short_form", "gram_form"}:
            continue  # zero drift only
        s = da.KKT(M, A).solve(force, drift, route=route)
        assert np.abs(s.acceleration - a).max() <= 1e-11 * np.abs(a).max(), route
        assert np.abs(s.multipliers - lam).max() <= 1e-11 * np.abs(lam).max(), route


@pytest.mark.parametrize("exponent", range(0, 17, 2))
@pytest.mark.parametrize("route", ["auto", "schur", "dense", "nullspace", "augmented", "gauss"])
def test_each_route_keeps_digits_under_small_masses_or_says_so(route: str, exponent: int) -> None:
    """Forward error below 1e-3 wherever the certificate says ok, and within the error bars everywhere."""
    M, A = oracles.two_link_mass(10.0**-exponent), np.array([[2.0, -1.0]])
    force, drift = np.array([0.3, -0.7]), np.array([0.9])
    a, lam = oracles.mp_solution(M, A, force, -drift)
    s = da.KKT(M, A, route=route).solve(force, drift)
    if s.ok:
        assert np.abs(s.acceleration - a).max() <= 1e-3 * np.abs(a).max()
        assert np.abs(s.multipliers - lam).max() <= 1e-3 * np.abs(lam).max()
    assert np.all(np.abs(s.acceleration - a) <= s.certificate.acceleration_error)
    assert np.all(np.abs(s.multipliers - lam) <= s.certificate.multiplier_error)


@pytest.mark.parametrize(("angle", "seed"), [(1e-7, 0), (1e-7, 6), (1e-5, 0), (1e-5, 1)])
@pytest.mark.parametrize("route", ["auto", "nullspace", "gauss", "augmented"])
def test_nearly_parallel_rows_beside_a_column_of_rounding_contradict_nothing(angle, seed, route):
    """The third row is twice the first, to the last digit: what `diagnose` calls solvable, `solve` answers."""
    rng, n = np.random.default_rng(seed), 4
    root = rng.standard_normal((n, n))
    A = np.zeros((2, n))
    A[0, :3] = rng.standard_normal(3)
    A[1] = A[0] * [1 + angle, 1, 1, 1]
    A[:, 3] = 1e-17 * np.array([1, -1]) * rng.uniform(0.5, 2, 2)
    K = KKT(root @ root.T + np.eye(n), np.vstack([A, 2 * A[:1]]))
    a, f = rng.standard_normal(n), rng.standard_normal(n)
    assert K.diagnose().verdict is Status.REDUNDANT
    s = K.solve(f, -K.A @ a, route=route)
    assert s.status is Status.REDUNDANT
    np.testing.assert_allclose(A @ s.acceleration, A @ a, rtol=1e-12)


@pytest.mark.parametrize("route", ["auto", "gauss", "augmented"])
def test_a_route_that_declines_leaves_the_others_and_its_reason_is_no_exception(monkeypatch, route):
    """Error bars need no route but the one that solved."""

    def factor(cls, analysis):
        raise RouteDeclined("the reduced mass matrix is not definite")

    monkeypatch.setattr(NullSpace, "factor", classmethod(factor))
    K = KKT(np.diag([1.0, 2.0]), [[1, 1], [2, 2]])
    s = K.solve([1, 2], [0, 0], route=route)
    assert s.status is Status.REDUNDANT
    np.testing.assert_allclose(s.acceleration, [-1 / 3, 1 / 3], atol=1e-15)
    assert s.certificate.acceleration_error.max() < 1e-14
    with pytest.raises(SolvabilityError, match="declined"):
        K.solve([1, 2], [0, 0], route="nullspace")
