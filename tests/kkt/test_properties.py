"""What holds for every system: identities, optimality, invariance, and agreement of batches with single solves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dalembert import KKT, ModelError, SolvabilityError, Status
from dalembert.kkt import FACTORISATIONS
from tests.kkt import oracles, strategies
from tests.kkt.strategies import System

Array = np.ndarray

CLOSE = 1e-8
"""Agreement relative to the size of the terms: integer systems of six rows have conditions up to 1e5."""

IDENTITIES = 1e-11
"""Defect of the identities (10)-(14) relative to the largest sum of absolute terms in them."""

FACTORS = st.floats(1e-6, 1e6).flatmap(lambda x: st.sampled_from([x, -x]))
"""Units of a row that are no powers of two, either sign."""


def outcome(system: System, force: Array, drift: Array) -> tuple[Status, Array | None, Array | None]:
    """Return status, acceleration and uniqueness, solved or not."""
    K = KKT(system.M, system.A)
    try:
        s = K.solve(force, drift)
    except SolvabilityError as refused:
        return refused.diagnosis.verdict, None, refused.diagnosis.unique
    return s.status, s.acceleration, s.certificate.unique


def units_of(system: System) -> Array:
    """Return what one unit of each coordinate is worth, so that accelerations in mixed units can be compared."""
    units = np.maximum(np.sqrt(np.abs(system.M).max(axis=1)), np.abs(system.A).max(axis=0, initial=0.0))
    return np.where(units > 0.0, units, 1.0)


def same(got: Array, expected: Array, units: Array | float = 1.0) -> None:
    """Compare two vectors relative to the largest entry in common units."""
    size = np.abs(expected * units).max(initial=0.0) + np.abs(got * units).max(initial=0.0)
    assert np.all(np.abs((got - expected) * units) <= CLOSE * size + 1e-12)


@given(strategies.regular())
def test_identities_10_to_14(system: System) -> None:
    residuals = KKT(system.M, system.A).dagger.residuals()
    assert max(float(value) for value in residuals.values()) <= IDENTITIES, residuals


@given(strategies.systems())
def test_inertia_counts_what_is_known(system: System) -> None:
    """inertia(K) = (mass on admissible motions + r, r, massless + m - r), from exact ranks."""
    n, m, r, free = system.n, system.m, system.rank, system.massless
    report = KKT(system.M, system.A).diagnose()
    assert report.inertia == (n - free, r, free + m - r)
    assert report.rank == r
    assert report.mass_rank == system.mass_rank


@given(strategies.systems(), st.data())
def test_the_verdict_is_the_one_of_the_exact_ranks(system: System, data: st.DataObject) -> None:
    status, _, _ = outcome(system, data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system)))
    redundant = Status.REDUNDANT if system.rank < system.m else Status.UNIQUE
    assert status is (Status.MASSLESS if system.massless else redundant)


@given(strategies.solvable(), st.data())
def test_answers_are_exact_and_error_bars_contain_the_error(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    s = KKT(system.M, system.A).solve(force, drift)
    a, lam = oracles.exact_solution(system.M, system.A, force, -drift)
    ulp = np.finfo(float).eps  # the oracle's answer is rounded once itself
    assert np.all(np.abs(s.acceleration - a) <= s.certificate.acceleration_error + ulp * np.abs(a))
    assert np.all(np.abs(s.multipliers - lam) <= s.certificate.multiplier_error + ulp * np.abs(lam))
    same(s.acceleration, a, units_of(system))
    assert s.ok
    assert s.certificate.residual_motion <= 1e-12  # redundant rows of different sizes share their rounding
    assert s.certificate.residual_constraint <= 1e-12


@given(strategies.solvable(definite=True), st.data())
def test_gauss_optimality(system: System, data: st.DataObject) -> None:
    """The constraint's change of momentum M (a - a0) is orthogonal to every admissible motion, and only that."""
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    a = KKT(system.M, system.A).solve(force, drift).acceleration
    Z = oracles.integer_null(system.A)
    work = Z.T @ (system.M @ a - force)
    size = np.abs(Z.T) @ (np.abs(system.M) @ np.abs(a) + np.abs(force))
    assert np.all(np.abs(work) <= CLOSE * size.max(initial=0.0))
    free = np.linalg.solve(system.M, force)
    closing = np.abs(system.A) @ (np.abs(a) + np.abs(free)) + np.abs(drift)
    assert np.all(np.abs(system.A @ a + drift) <= CLOSE * closing.max(initial=0.0))


@given(strategies.solvable(scaled=False), st.data(), st.floats(0, 1))
def test_impact_loses_energy_by_one_minus_e_squared(system: System, data: st.DataObject, e: float) -> None:
    v = data.draw(strategies.vectors(system.n))
    K = KKT(system.M, system.A)
    plastic, hit = K.impact(v, 0.0), K.impact(v, e)
    scale = np.abs(system.M).max() * (np.abs(v).max() + np.abs(plastic.velocity).max()) ** 2
    assert plastic.energy_loss >= -CLOSE * scale
    assert abs(hit.energy_loss - (1 - e**2) * plastic.energy_loss) <= CLOSE * scale


@given(strategies.solvable(scaled=False), st.data())
def test_all_routes_agree(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    K, answers = KKT(system.M, system.A), {}
    for route in FACTORISATIONS:
        try:
            answers[route] = K.solve(force, drift, route=route)
        except SolvabilityError:
            continue
    reference = answers["nullspace"]
    for s in answers.values():
        same(s.acceleration, reference.acceleration)
        same(s.multipliers, reference.multipliers)
        assert s.status is reference.status


@given(strategies.systems(), st.data())
def test_order_of_rows_does_not_matter(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    order = list(data.draw(st.permutations(range(system.m))))
    status, a, unique = outcome(system, force, drift)
    status2, a2, unique2 = outcome(System(system.M, system.A[order]), force, drift[order])
    assert status2 is status
    np.testing.assert_array_equal(unique2, unique[order])
    if a is not None:
        same(a2, a, units_of(system))


@given(strategies.systems(), st.data())
def test_order_of_coordinates_does_not_matter(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    order = list(data.draw(st.permutations(range(system.n))))
    status, a, unique = outcome(system, force, drift)
    turned = System(system.M[np.ix_(order, order)], system.A[:, order])
    status2, a2, unique2 = outcome(turned, force[order], drift)
    assert status2 is status
    np.testing.assert_array_equal(unique2, unique)
    if a is not None:
        same(a2, a[order], units_of(system)[order])


@given(strategies.systems(), st.data())
def test_units_of_rows_do_not_matter(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    factors = np.array(data.draw(st.lists(FACTORS, min_size=system.m, max_size=system.m)))
    status, a, unique = outcome(system, force, drift)
    status2, a2, unique2 = outcome(System(system.M, factors[:, None] * system.A), force, factors * drift)
    assert status2 is status
    np.testing.assert_array_equal(unique2, unique)
    if a is not None:
        same(a2, a, units_of(system))


@given(strategies.redundant(), st.data())
def test_units_of_rows_do_not_matter_for_conflicts(system: System, data: st.DataObject) -> None:
    drift = data.draw(strategies.outside_range(system))
    factors = np.array(data.draw(st.lists(st.floats(0.1, 10), min_size=system.m, max_size=system.m)))
    report = KKT(system.M, factors[:, None] * system.A).diagnose(factors * drift)
    assert report.verdict is Status.INCONSISTENT
    assert len(report.conflict.rows) == len(KKT(system.M, system.A).diagnose(drift).conflict.rows)


@given(strategies.redundant(), st.data())
def test_least_norm_follows_the_units_when_the_metric_does(system: System, data: st.DataObject) -> None:
    """Rows in other units with the metric in those units too give the same physical constraint forces."""
    force = data.draw(strategies.vectors(system.n))
    factors = np.array(data.draw(st.lists(st.floats(0.01, 100), min_size=system.m, max_size=system.m)))
    lam = KKT(system.M, system.A).solve(force).multipliers
    lam2 = KKT(system.M, factors[:, None] * system.A, metric=factors**2).solve(force).multipliers
    same(factors * lam2, lam, np.abs(system.A / units_of(system)).max(axis=1))


@given(strategies.systems(), st.data())
def test_units_of_coordinates_do_not_matter(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    units = data.draw(strategies.powers_of_two(system.n, 20))
    status, a, unique = outcome(system, force, drift)
    scaled = System(units[:, None] * system.M * units, system.A * units)
    status2, a2, unique2 = outcome(scaled, units * force, drift)
    assert status2 is status
    np.testing.assert_array_equal(unique2, unique)
    if a is not None:
        same(units * a2, a, units_of(system))


@given(strategies.solvable(), st.data())
def test_superposition(system: System, data: st.DataObject) -> None:
    K = KKT(system.M, system.A)
    f1, f2 = data.draw(strategies.vectors(system.n)), data.draw(strategies.vectors(system.n))
    d1, d2 = data.draw(strategies.in_range(system)), data.draw(strategies.in_range(system))
    one, two, both = K.solve(f1, d1), K.solve(f2, d2), K.solve(f1 + f2, d1 + d2)
    units = units_of(system)
    size = np.abs(one.acceleration * units).max() + np.abs(two.acceleration * units).max()
    difference = (both.acceleration - one.acceleration - two.acceleration) * units
    assert np.all(np.abs(difference) <= CLOSE * size + 1e-12)


@given(strategies.regular(least_rows=1), st.data())
def test_a_combination_of_rows_adds_nothing(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.vectors(system.m))
    mix = data.draw(strategies.vectors(system.m, 3))
    assume(mix.any())
    more = KKT(system.M, np.vstack([system.A, mix @ system.A])).solve(force, np.append(drift, mix @ drift))
    assert more.status is Status.REDUNDANT
    same(more.acceleration, KKT(system.M, system.A).solve(force, drift).acceleration, units_of(system))
    np.testing.assert_array_equal(more.certificate.unique, [*(mix == 0), False])


@given(strategies.regular(), st.data())
def test_solve_is_the_dagger_times_the_right_side(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.vectors(system.m))
    K = KKT(system.M, system.A)
    s, dagger, units = K.solve(force, drift), K.dagger, units_of(system)
    size = np.abs(dagger.M) @ np.abs(force) + np.abs(dagger.A.T) @ np.abs(drift)
    difference = s.acceleration - (dagger.M @ force - dagger.A.T @ drift)
    assert np.all(np.abs(difference * units) <= CLOSE * (size * units).max() + 1e-12)


@given(strategies.solvable(), st.data())
def test_projection_is_idempotent_and_self_adjoint(system: System, data: st.DataObject) -> None:
    K, units = KKT(system.M, system.A), units_of(system)
    v, w = data.draw(strategies.vectors(system.n)), data.draw(strategies.vectors(system.n))
    pv, pw = K.project_velocity(v), K.project_velocity(w)
    same(K.project_velocity(pv), pv, units)
    size = np.abs(w) @ np.abs(system.M) @ np.abs(pv) + np.abs(v) @ np.abs(system.M) @ np.abs(pw)
    assert abs(w @ system.M @ pv - v @ system.M @ pw) <= CLOSE * size + 1e-12
    assert pv @ system.M @ pv <= v @ system.M @ v + CLOSE * (np.abs(v) @ np.abs(system.M) @ np.abs(v) + size)


@given(strategies.solvable(), st.data())
def test_answers_do_not_depend_on_earlier_solves(system: System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    K = KKT(system.M, system.A)
    K.diagnose()
    for route in ("nullspace", "augmented", "auto"):
        K.solve(force[::-1], drift, route=route)
    fresh = KKT(system.M, system.A).solve(force, drift)
    np.testing.assert_array_equal(K.solve(force, drift).acceleration, fresh.acceleration)
    np.testing.assert_array_equal(K.solve(force, drift).multipliers, fresh.multipliers)


# batches -------------------------------------------------------------------------------------------------------------

SIZES = [1, 2, 15, 16, 17, 63, 64, 65, 100]
"""Around the width of a lane (16) and the size from which compiled code is used (64)."""


def random_batch(size: int, n: int, m: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return M, A, force, drift; every fifth sample has a massless coordinate, every seventh redundant rows."""
    rng = np.random.default_rng(seed)
    J = rng.standard_normal((size, n, n))
    M = J @ J.swapaxes(-1, -2) + np.eye(n)
    A, force = rng.standard_normal((size, m, n)), rng.standard_normal((size, n))
    M[4::5, 0], M[4::5, :, 0] = 0.0, 0.0
    if m > 1:
        A[6::7, -1] = 2.0 * A[6::7, 0]
    drift = np.einsum("sij,sj->si", A, rng.standard_normal((size, n)))
    return M, A, force, drift


def assert_equals_loop(s, M: Array, A: Array, force: Array, drift: Array) -> None:
    """Compare a flat batch with single solves, refusals included."""
    for i in range(len(s.acceleration)):
        if s.status[i] > Status.ILL_CONDITIONED:
            with pytest.raises(SolvabilityError) as refused:
                KKT(M[i], A[i]).solve(force[i], drift[i])
            assert refused.value.diagnosis.verdict == s.status[i]
            assert np.isnan(s.acceleration[i]).all()
            assert np.isnan(s.multipliers[i]).all()
            continue
        one = KKT(M[i], A[i]).solve(force[i], drift[i])
        assert one.status == s.status[i]
        np.testing.assert_allclose(s.acceleration[i], one.acceleration, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(s.multipliers[i], one.multipliers, rtol=1e-9, atol=1e-9)
        assert s.certificate.residual_motion[i] <= 1e-13
        assert s.certificate.residual_constraint[i] <= 1e-13


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("n", "m"), [(3, 2), (6, 1), (4, 4), (5, 0)])
def test_batch_equals_a_loop_of_single_solves(size: int, n: int, m: int) -> None:
    M, A, force, drift = random_batch(size, n, m)
    s = KKT(M, A).solve(force, drift)
    assert s.acceleration.shape == (size, n)
    assert s.multipliers.shape == (size, m)
    assert_equals_loop(s, M, A, force, drift)


@given(st.integers(48, 81), st.integers(1, 7), st.data())
def test_batch_of_any_size_equals_a_loop(size: int, n: int, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, n))
    batch = random_batch(size, n, m, seed=data.draw(st.integers(0, 99)))
    assert_equals_loop(KKT(*batch[:2]).solve(*batch[2:]), *batch)


@pytest.mark.parametrize("shape", [(70,), (7, 10), (2, 5, 7), (0,), (3, 0)])
def test_batch_axes_of_any_shape(shape: tuple[int, ...]) -> None:
    M, A, force, drift = random_batch(int(np.prod(shape)), 3, 2)
    s = KKT(M.reshape(*shape, 3, 3), A.reshape(*shape, 2, 3)).solve(force.reshape(*shape, 3), drift.reshape(*shape, 2))
    assert s.acceleration.shape == (*shape, 3)
    assert s.multipliers.shape == (*shape, 2)
    assert s.status.shape == s.ok.shape == shape
    flat = KKT(M, A).solve(force, drift)
    np.testing.assert_array_equal(s.acceleration.reshape(-1, 3), flat.acceleration)


@pytest.mark.parametrize("size", [5, 80])
def test_batch_broadcasts_every_argument(size: int) -> None:
    M, A, force, drift = random_batch(size, 4, 2)
    one_M, one_A, one_force, one_drift = M[0], A[0], force[0], drift[0]
    many = lambda x: np.broadcast_to(x, (size, *x.shape))  # noqa: E731
    assert_equals_loop(KKT(one_M, one_A).solve(force, one_drift), many(one_M), many(one_A), force, many(one_drift))
    assert_equals_loop(KKT(M, one_A).solve(one_force), M, many(one_A), many(one_force), np.zeros((size, 2)))
    assert_equals_loop(KKT(one_M, A).solve(one_force, drift), many(one_M), A, many(one_force), drift)
    grid = KKT(one_M, one_A).solve(force[:, None], drift[None, :3])
    assert grid.acceleration.shape == (size, 3, 4)
    np.testing.assert_allclose(
        grid.acceleration[2, 1], KKT(one_M, one_A).solve(force[2], drift[1]).acceleration, atol=1e-12
    )


@pytest.mark.parametrize("size", [40, 90])
@pytest.mark.parametrize("layout", ["strided", "reversed", "transposed", "fortran", "read-only"])
def test_batch_takes_views_of_any_layout(size: int, layout: str) -> None:
    M, A, force, drift = random_batch(size, 3, 2)
    plain = KKT(M, A).solve(force, drift)

    def view(x: Array) -> Array:
        if layout == "strided":
            wide = np.full((2 * size, *x.shape[1:]), np.nan)
            wide[::2] = x
            return wide[::2]
        if layout == "reversed":
            return np.ascontiguousarray(x[::-1])[::-1]
        if layout == "transposed":
            return np.ascontiguousarray(np.moveaxis(x, 0, -1)).transpose(x.ndim - 1, *range(x.ndim - 1))
        if layout == "fortran":
            return np.asfortranarray(x)
        x = x.copy()
        x.flags.writeable = False
        return x

    s = KKT(view(M), view(A)).solve(view(force), view(drift))
    np.testing.assert_array_equal(s.status, plain.status)
    np.testing.assert_allclose(s.acceleration, plain.acceleration, rtol=1e-12)
    np.testing.assert_allclose(s.multipliers, plain.multipliers, rtol=1e-12)


@pytest.mark.parametrize("route", ["auto", *FACTORISATIONS])
def test_batch_by_every_route(route: str) -> None:
    M, A, force, _ = random_batch(70, 3, 1, seed=5)
    s = KKT(M, A).solve(force, route=route)
    auto = KKT(M, A).solve(force)
    solved = s.status != Status.DECLINED
    np.testing.assert_allclose(s.acceleration[solved], auto.acceleration[solved], rtol=1e-8, atol=1e-9)
    assert np.isnan(s.acceleration[~solved]).all()
    assert route in {"schur", "gauss", "short_form", "gram_form"} or solved.all()


def test_batch_of_small_masses_keeps_its_digits() -> None:
    """The compiled kernel under J12's family: every mass ratio from 1 to 1e-16, against mpmath."""
    exponents = np.repeat(np.arange(17), 4)
    M = np.stack([oracles.two_link_mass(10.0**-k) for k in exponents])
    A, force, drift = np.array([[2.0, -1.0]]), np.array([0.3, -0.7]), np.array([0.9])
    s = KKT(M, A).solve(force, drift)
    for i in range(0, len(M), 4):
        a, _ = oracles.mp_solution(M[i], A, force, -drift)
        assert s.ok[i]
        assert np.abs(s.acceleration[i] - a).max() <= 1e-12 * np.abs(a).max(), exponents[i]


@pytest.mark.parametrize("overwritten", range(4), ids=["M", "A", "force", "drift"])
def test_a_batch_certificate_never_speaks_of_overwritten_data(overwritten: int) -> None:
    """Details are computed on demand: from a copy, or else a change since the solve is noticed and said."""
    data = random_batch(5, 3, 2)
    reference = KKT(*(x.copy() for x in data[:2])).solve(*(x.copy() for x in data[2:]))
    s = KKT(*data[:2]).solve(*data[2:])
    data[overwritten][1] += 0.5 * np.eye(3) if overwritten == 0 else 0.5
    try:
        certificate = s.certificate[1]
    except ModelError:
        return
    assert certificate.condition == pytest.approx(reference.certificate[1].condition)
    np.testing.assert_array_equal(certificate.acceleration_error, reference.certificate[1].acceleration_error)
