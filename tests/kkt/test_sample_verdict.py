"""Straight-line solves: what is certified is right, what is wrong is not certified."""

from __future__ import annotations

import casadi as ca
import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dalembert.kernel import Kernel
from dalembert.kkt import KKT, Status
from dalembert.kkt.expressions.block_solver import solve_by_sample
from dalembert.kkt.expressions.matrix_system import MatrixSystem, unit_free_weights
from dalembert.kkt.expressions.verdict import Conditioning
from dalembert.kkt.limits import EPS

N, M = 4, 2
TRUE_DIGITS = 1e-3
"""What a certificate promises."""


def _kernel(implied: bool = False) -> Kernel:
    """Return M, A, f, c -> a, lam, status, for any M; with the second row a multiple of the first where `implied`."""
    mass, rows, f, c = ca.SX.sym("M", N, N), ca.SX.sym("A", M, N), ca.SX.sym("f", N), ca.SX.sym("c", M)
    last = (False,) * (M - 1) + (implied,)
    sums = ((),) * (M - 1) + ((0,) if implied else (),)
    needs = Conditioning(True, (1.0,) * N, (1.0,) * M, (0.0,) * M, last, sums)
    matrices = [[ca.horzsplit(row) for row in ca.vertsplit(x)] for x in (mass, rows)]
    system = MatrixSystem.weighed(*matrices, unit_free_weights(*matrices, needs.implied))
    inputs = [x for each in (mass, rows, f, c) for x in ca.vertsplit(ca.vec(each))]
    answer = solve_by_sample(system, needs, ca.vertsplit(f), ca.vertsplit(c), inputs, EPS)
    outputs = [ca.vertcat(*x) for x in (answer.acceleration, answer.multipliers, [answer.status])]
    return Kernel(ca.Function("block", [mass, rows, f, c], outputs))


BLOCK = _kernel()


def exact(mass, rows, f, c) -> np.ndarray:
    """Solve with 60 digits."""
    with mpmath.workdps(60):
        block = np.block([[mass, rows.T], [rows, np.zeros((M, M))]])
        x = mpmath.lu_solve(mpmath.matrix(block.tolist()), mpmath.matrix([*f.tolist(), *c.tolist()]))
        return np.array([float(value) for value in x])


@given(st.integers(0, 2**32 - 1), st.integers(0, 14), st.integers(0, 14), st.integers(0, 2), st.integers(-6, 6))
@example(16, 13, 2, 1, 3)  # light beside massless: right in scaled units, wrong in the user's
@example(27, 10, 5, 1, -5)
@example(73, 14, 0, 1, 4)
def test_certified_answers_have_their_digits(seed, near_mass, near_rows, massless, unit):
    """From well to badly conditioned, with light and massless coordinates, in odd units."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, N)) * np.array([1.0, 1.0, 10.0**-near_mass, 1.0])
    mass = root.T @ root
    mass[:massless], mass[:, :massless] = 0.0, 0.0
    rows = rng.normal(size=(M, N))
    rows[1] = rows[0] + 10.0**-near_rows * rows[1]
    scale = np.array([1.0, 10.0**unit, 1.0, 10.0**-unit])
    mass, rows = scale[:, None] * mass * scale, rows * scale
    f, c = rng.normal(size=N) * scale, rng.normal(size=M)
    a, lam, status = BLOCK(mass, rows, f, c)
    if status[0] == Status.UNIQUE:
        truth = exact(mass, rows, f, c)
        assert np.abs(a - truth[:N]).max() <= TRUE_DIGITS * np.abs(truth[:N]).max()
        assert np.abs(lam - truth[N:]).max() <= TRUE_DIGITS * np.abs(truth[N:]).max()
    else:
        assert near_mass >= 2 or near_rows >= 2 or abs(unit) >= 3


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_systems_are_solved_to_rounding(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, N)) + 2 * np.eye(N)
    mass, rows = root.T @ root, rng.normal(size=(M, N))
    f, c = rng.normal(size=N), rng.normal(size=M)
    a, lam, status = BLOCK(mass, rows, f, c)
    assert status[0] == Status.UNIQUE
    np.testing.assert_allclose(np.append(a, lam), exact(mass, rows, f, c), rtol=1e-11, atol=1e-12)


KINDS = {
    "redundant": Status.DECLINED,
    "zero row": Status.DECLINED,
    "free massless motion": Status.MASSLESS,
    "negative mass": Status.DECLINED,
    "NaN": Status.NONFINITE,
    "overflow": Status.NONFINITE,
}
"""What has no unique answer, and what straight-line code for independent rows says of it."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_unique_answer_is_not_certified(kind):
    rng = np.random.default_rng(7)
    mass, rows, f, c = np.eye(N), rng.normal(size=(M, N)), rng.normal(size=N), rng.normal(size=M)
    assert BLOCK(mass, rows, f, c)[2][0] == Status.UNIQUE
    match kind:
        case "redundant":
            rows[1] = 2 * rows[0]
        case "zero row":
            rows[1] = 0.0
        case "free massless motion":
            mass[:3] = 0.0
        case "negative mass":
            mass = -mass
        case "NaN":
            f[2] = np.nan
        case "overflow":
            mass *= 1e308
            f *= 1e308
            rows *= 1e200
    assert BLOCK(mass, rows, f, c)[2][0] == KINDS[kind]


@pytest.mark.parametrize(("size", "sure"), [(1e-6, True), (1e-17, False)])
def test_a_row_that_is_rounding_beside_another_is_not_certified(size, sure):
    """As in `KKT`: another unit, or a row that has vanished, cannot be told apart."""
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 1.0, 0.0]]) * np.array([[1.0], [size]])
    status = BLOCK(np.eye(N), rows, np.ones(N), np.zeros(M))[2]
    assert (status[0] == Status.UNIQUE) == sure
    assert KKT(np.eye(N), rows).solve(np.ones(N)).ok == sure


IMPLIED = _kernel(implied=True)


@given(st.integers(0, 2**32 - 1), st.integers(4, 17), st.integers(4, 17), st.integers(-6, 6))
@example(0, 17, 17, 0)
@example(1, 4, 17, 3)
@example(2, 17, 4, -3)
@example(3, 17, 17, 6)
def test_verdicts_on_implied_rows_are_those_of_kkt(seed, apart, conflict, unit):
    """From rows that depend to the last digit to independent ones, right sides that agree or contradict each other.

    What straight-line code says, `KKT` says, too; rows that depend to rounding it must not decline, unless right sides
    neither agree to rounding nor contradict each other clearly.
    """
    rng = np.random.default_rng(seed)
    root, factor = rng.normal(size=(N, N)) + 2 * np.eye(N), 10.0**unit * rng.uniform(0.5, 2.0)
    mass, first, scale = root.T @ root, rng.normal(size=N), np.array([1.0, 10.0**unit, 1.0, 10.0**-unit])
    rows = np.array([first, factor * first])
    if apart < 17:
        rows[1] += factor * 10.0**-apart * rng.normal(size=N)
    c = rng.normal() * np.array([1.0, factor])
    if conflict < 17:
        c[1] += factor * 10.0**-conflict
    mass, rows, f = scale[:, None] * mass * scale, rows * scale, rng.normal(size=N) * scale
    a, lam, code = IMPLIED(mass, rows, f, c)
    status = Status(int(code[0]))
    if apart == 17 and not 9 < conflict < 17:
        assert status in (Status.REDUNDANT, Status.INCONSISTENT)
    if status == Status.DECLINED:
        return
    batch = KKT(mass[None], rows[None]).solve(f[None], -c[None])
    at_rounding = 12 < apart < 17 or 11 < conflict < 17  # either may take it for more than rounding
    assert batch.status[0] == status or (at_rounding and batch.status[0] == Status.ILL_CONDITIONED)
    if status == Status.REDUNDANT:
        np.testing.assert_allclose(a, batch.acceleration[0], rtol=1e-9, atol=1e-9 * np.abs(a).max())
        np.testing.assert_allclose(lam, batch.multipliers[0], rtol=1e-9, atol=1e-9 * np.abs(lam).max())
