"""Straight-line solves: what is certified is right, what is wrong is not certified."""

from __future__ import annotations

import casadi as ca
import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dalembert.kernel import Kernel
from dalembert.kkt import KKT
from dalembert.model.lagrangian.quantities import straight_line

N, M = 4, 2
TRUE_DIGITS = 1e-3
"""What a certificate promises."""


def _kernel() -> Kernel:
    mass, rows, f, c = ca.SX.sym("M", N, N), ca.SX.sym("A", M, N), ca.SX.sym("f", N), ca.SX.sym("c", M)
    s = straight_line(mass, rows, f, c)
    return Kernel(ca.Function("block", [mass, rows, f, c], [s.acceleration, s.multipliers, s.certified]))


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
    a, lam, certified = BLOCK(mass, rows, f, c)
    if certified[0]:
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
    a, lam, certified = BLOCK(mass, rows, f, c)
    assert certified[0] == 1.0
    np.testing.assert_allclose(np.append(a, lam), exact(mass, rows, f, c), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["redundant", "zero row", "free massless motion", "negative mass", "NaN", "overflow"])
def test_what_has_no_unique_answer_is_not_certified(kind):
    rng = np.random.default_rng(7)
    mass, rows, f, c = np.eye(N), rng.normal(size=(M, N)), rng.normal(size=N), rng.normal(size=M)
    assert BLOCK(mass, rows, f, c)[2][0] == 1.0
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
    assert BLOCK(mass, rows, f, c)[2][0] == 0.0


@pytest.mark.parametrize(("size", "sure"), [(1e-6, True), (1e-17, False)])
def test_a_row_that_is_rounding_beside_another_is_not_certified(size, sure):
    """As in `KKT`: another unit, or a row that has vanished, cannot be told apart."""
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 1.0, 0.0]]) * np.array([[1.0], [size]])
    _, _, certified = BLOCK(np.eye(N), rows, np.ones(N), np.zeros(M))
    assert bool(certified[0]) == sure
    assert KKT(np.eye(N), rows).solve(np.ones(N)).ok == sure
