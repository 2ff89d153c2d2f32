"""Seed 001 (Oprea, generalized inverses), sections 1 and 2: the ledger's O2 to O4."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.kkt import gauss_function
from tests.kkt import oracles, strategies

QP = 1e-6
"""Agreement with an interior-point method asked for 1e-10."""

CLOSE = 1e-9
"""Relative agreement of routes on integer systems, whose condition is moderate."""

W = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
"""Seed 001, eq. (21a): belt to block 1, belt to block 2, block to block; columns are contacts."""

CONTACTS = ["belt to block 1", "belt to block 2", "block to block"]
MASSES = np.diag([4.0, 7.0])
"""Seed 001, Table 1: masses of the two blocks on the belt."""


def two_blocks(stick: list[int], M: np.ndarray = MASSES) -> da.KKT:
    """Return the two blocks on a belt with the given contacts sticking."""
    return da.KKT(M, W.T[stick], names=[CONTACTS[i] for i in stick], coordinates=["block 1", "block 2"])


# O2: (7) -------------------------------------------------------------------------------------------------------------


@given(strategies.solvable(definite=True, scaled=False, least_rows=1), st.data())
def test_O2_acceleration_minimises_the_gauss_function(system: strategies.System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    s = da.KKT(system.M, system.A).solve(force, drift)
    best = oracles.quadratic_program(system.M, -force, system.A, -drift)  # G without its constant term
    np.testing.assert_allclose(s.acceleration, best, atol=QP * (1 + np.abs(best).max()))


@given(strategies.solvable(definite=True, scaled=False), st.data())
def test_O2_no_admissible_acceleration_has_a_smaller_gauss_function(
    system: strategies.System, data: st.DataObject
) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    s = da.KKT(system.M, system.A).solve(force, drift)
    unconstrained = np.linalg.solve(system.M, force)
    least = gauss_function(system.M, s.acceleration, unconstrained)
    for motion in oracles.integer_null(system.A).T:
        for step in (-1.0, 1e-3, 1.0):
            other = gauss_function(system.M, s.acceleration + step * motion, unconstrained)
            assert other > least


def test_O2_gauss_function_of_two_blocks() -> None:
    # stuck together, 11 kg under 3 N + 8 N: a = 1; G = 4 (1 - 3/4)^2 / 2 + 7 (1 - 8/7)^2 / 2
    a = two_blocks([2]).solve([3, 8]).acceleration
    np.testing.assert_allclose(a, [1, 1], rtol=1e-15)
    np.testing.assert_allclose(gauss_function(MASSES, a, np.array([3 / 4, 8 / 7])), 1 / 8 + 1 / 14)


# O3: (9)-(14) --------------------------------------------------------------------------------------------------------


def test_O3_all_three_contacts_stick_redundantly() -> None:
    K = two_blocks([0, 1, 2])
    s = K.solve([3, 8], route="gauss")
    assert s.status is da.Status.REDUNDANT
    np.testing.assert_allclose(s.acceleration, [0, 0], atol=1e-15)
    np.testing.assert_allclose(W @ s.reactions, [-3, -8], atol=1e-14)  # M a = h + W T
    np.testing.assert_allclose(s.multipliers, np.linalg.pinv(W) @ [3, 8], atol=1e-14)
    assert not s.certificate.unique.any()
    assert K.diagnose().redundant_names == ("block to block",)


@given(strategies.solvable(definite=True), st.data())
def test_O3_gauss_route_equals_the_null_space_route(system: strategies.System, data: st.DataObject) -> None:
    force, drift = data.draw(strategies.vectors(system.n)), data.draw(strategies.in_range(system))
    K = da.KKT(system.M, system.A)
    gauss, null = K.solve(force, drift, route="gauss"), K.solve(force, drift, route="nullspace")
    a, lam = oracles.exact_solution(system.M, system.A, force, -drift)
    for s in (gauss, null):
        np.testing.assert_allclose(s.acceleration, a, atol=CLOSE * (np.abs(a).max() + 1e-3))
        np.testing.assert_allclose(s.multipliers, lam, atol=CLOSE * (np.abs(lam).max(initial=0) + 1e-3))


@pytest.mark.parametrize("seed", range(4))
def test_O3_explicit_formula_with_the_generalized_inverse(seed: int) -> None:
    """(13)-(14) written out with J_M = W^T M^-1/2 and its Moore-Penrose inverse, rank-deficient W."""
    rng = np.random.default_rng(seed)
    M = np.diag(rng.uniform(1, 5, 5))
    A = rng.standard_normal((3, 5))
    A = np.vstack([A, A[0] - 2 * A[1]])
    force, drift = rng.standard_normal(5), A @ rng.standard_normal(5)
    root = np.diag(np.diag(M) ** -0.5)
    J, free = A @ root, np.linalg.solve(M, force)
    pseudo = np.linalg.pinv(J, rcond=1e-12)
    s = da.KKT(M, A).solve(force, drift, route="gauss")
    np.testing.assert_allclose(s.acceleration, free + root @ pseudo @ (-drift - A @ free), atol=1e-12)
    force_on_system = -A.T @ pseudo.T @ pseudo @ (A @ free + drift)
    np.testing.assert_allclose(A.T @ s.reactions, force_on_system, atol=1e-12)


# O4: (15)-(17) -------------------------------------------------------------------------------------------------------

BOTH_COMPUTATIONS = {
    "T = -(W^T W)^+ W^T h": lambda W, h: -np.linalg.pinv(W.T @ W, rcond=1e-12) @ W.T @ h,
    "T = -W^+ h": lambda W, h: -np.linalg.pinv(W, rcond=1e-12) @ h,
}


@pytest.mark.parametrize("computation", BOTH_COMPUTATIONS)
@pytest.mark.parametrize(
    ("stick", "M"),
    [
        ([0, 1, 2], MASSES),  # W of full row rank
        ([0, 1], MASSES),
        ([0, 2], MASSES),
        ([1, 2], MASSES),
        ([0], MASSES),  # W picks one block: M^-1 and W W^+ commute
        ([2], np.diag([5.0, 5.0])),  # equal masses
    ],
)
def test_O4_short_form_is_exact_where_the_range_condition_holds(
    computation: str, stick: list[int], M: np.ndarray
) -> None:
    h = np.array([3.0, 8.0])
    K = two_blocks(stick, M)
    s, reference = K.solve(h, route="short_form"), K.solve(h, route="nullspace")
    assert s.ok
    np.testing.assert_allclose(s.acceleration, reference.acceleration, atol=1e-14)
    np.testing.assert_allclose(s.multipliers, reference.multipliers, atol=1e-14)
    np.testing.assert_allclose(s.reactions, BOTH_COMPUTATIONS[computation](W[:, stick], h), atol=1e-14)


def test_O4_only_the_contact_between_unequal_blocks_is_refused_with_the_residual() -> None:
    h = np.array([3.0, 8.0])
    K = two_blocks([2])
    w = W[:, [2]]
    condition = w.T @ np.linalg.inv(MASSES) @ (np.eye(2) - w @ np.linalg.pinv(w)) @ h  # 5.5 / 4 - 5.5 / 7
    assert condition[0] == pytest.approx(5.5 / 4 - 5.5 / 7)
    size = 3 / 4 + 8 / 7
    with pytest.raises(da.SolvabilityError, match="range condition") as caught:
        K.solve(h, route="short_form")
    assert f"{condition[0] / size:.2e}" in str(caught.value)
    assert "gauss" in str(caught.value)
    np.testing.assert_allclose(K.solve(h).acceleration, [1, 1], rtol=1e-15)


def test_O4_refusal_holds_for_every_unit_of_the_row() -> None:
    """A second, satisfied row must not hide the failing one when that is written in small units."""
    M = np.diag([4.0, 7.0, 1.0])
    for unit in (1.0, 1e-6, 1e-12, 1e6):
        K = da.KKT(M, [[unit, -unit, 0], [0, 0, 1]])
        with pytest.raises(da.SolvabilityError, match="range condition"):
            K.solve([3, 1, 2], route="short_form")


def test_O4_prescribed_accelerations_are_refused() -> None:
    with pytest.raises(da.SolvabilityError, match="zero acceleration"):
        two_blocks([0]).solve([1, 1], [0.5], route="short_form")


@given(strategies.solvable(definite=True, scaled=False), st.data())
def test_O4_short_form_is_right_or_refused(system: strategies.System, data: st.DataObject) -> None:
    force = data.draw(strategies.vectors(system.n))
    K = da.KKT(system.M, system.A)
    a, lam = oracles.exact_solution(system.M, system.A, force, np.zeros(system.m))
    W = system.A.T
    defect = W.T @ np.linalg.solve(system.M, force - W @ np.linalg.pinv(W, rcond=1e-10) @ force)
    size = np.abs(W.T) @ np.abs(np.linalg.inv(system.M)) @ np.abs(force)
    if np.any(np.abs(defect) > 1e-10 * size):
        with pytest.raises(da.SolvabilityError, match="range condition"):
            K.solve(force, route="short_form")
        return
    s = K.solve(force, route="short_form")
    np.testing.assert_allclose(s.acceleration, a, atol=CLOSE * (1 + np.abs(a).max()))
    np.testing.assert_allclose(s.multipliers, lam, atol=CLOSE * (1 + np.abs(lam).max(initial=0)))


# O15: the other computation of (17) -----------------------------------------------------------------------------------


@given(strategies.solvable(definite=True, scaled=False), st.data())
def test_O15_both_computations_of_the_short_form_are_equal_where_both_hold(
    system: strategies.System, data: st.DataObject
) -> None:
    """Redundant rows among them; both are refused by the same condition."""
    force, K = data.draw(strategies.vectors(system.n)), da.KKT(system.M, system.A)
    answers = []
    for route in ("short_form", "gram_form"):
        try:
            answers.append(K.solve(force, route=route))
        except da.SolvabilityError as refused:
            assert "range condition" in str(refused)  # noqa: PT017 - either route may be refused, but not alone
            answers.append(None)
    if answers[0] is None or answers[1] is None:
        assert answers[0] is answers[1]
        return
    size = 1 + np.abs(answers[0].multipliers).max(initial=0)
    np.testing.assert_allclose(answers[1].multipliers, answers[0].multipliers, atol=CLOSE * size)
    np.testing.assert_allclose(answers[1].acceleration, answers[0].acceleration, atol=CLOSE * size)


@pytest.mark.parametrize("stick", [[0, 1, 2], [0, 1], [0, 2], [1, 2], [0]])
def test_O15_rows_and_columns_of_sliding_contacts_are_removed(stick: list[int]) -> None:
    """The principal submatrix of W^T W and the elements of W^T h, as the seed says it."""
    h = np.array([3.0, 8.0])
    gram, right = W.T @ W, W.T @ h
    expected = -np.linalg.pinv(gram[np.ix_(stick, stick)], rcond=1e-12) @ right[stick]
    s = two_blocks(stick).solve(h, route="gram_form")
    np.testing.assert_allclose(s.reactions, expected, atol=1e-14)


def test_O15_the_gram_matrix_squares_the_condition() -> None:
    """Two contacts that point almost the same way: W^T W loses at 1e-8 what W shows down to rounding."""
    h, M = np.array([1.0, 2.0, 0.0]), np.eye(3)
    for angle in (1e-2, 1e-5, 1e-9):
        K = da.KKT(M, [[1.0, 0.0, 0.0], [1.0, angle, 0.0]])
        exact = np.array([-1.0 + 2.0 / angle, -2.0 / angle])
        np.testing.assert_allclose(K.solve(h, route="short_form").reactions, exact, rtol=1e-5 * 1e-2 / angle)
        if angle < 1e-7:
            with pytest.raises(da.SolvabilityError, match="squares the condition"):
                K.solve(h, route="gram_form")
        else:
            np.testing.assert_allclose(K.solve(h, route="gram_form").reactions, exact, rtol=1e-6)


def test_O15_batches_take_the_gram_form() -> None:
    h = np.random.default_rng(0).standard_normal((5, 2))
    both = [two_blocks([0, 1, 2]).solve(h, route=route) for route in ("short_form", "gram_form")]
    assert both[1].ok.all()
    np.testing.assert_allclose(both[1].multipliers, both[0].multipliers, atol=1e-13)
