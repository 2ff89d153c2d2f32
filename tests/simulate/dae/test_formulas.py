"""Y6: backward differentiation formulas as printed, their order and stability; the fixed-step tableau method."""

from fractions import Fraction

import casadi as ca
import numpy as np
import pytest

from dalembert.errors import ModelError, ShapeError
from dalembert.simulate import from_expressions
from tests.reference.bdf_fixed import (
    alpha,
    boundary,
    derivative,
    error_constant,
    fixed_step,
    gamma,
    roots_at_zero,
    sector,
    spectral_radius,
)

ORDERS = range(1, 7)

# Ascher & Petzold 1998, table 5.3: h x'_n = sum (...) / beta_0
PUBLISHED = {
    1: ((1, -1), 1),
    2: ((1, Fraction(-4, 3), Fraction(1, 3)), Fraction(2, 3)),
    3: ((1, Fraction(-18, 11), Fraction(9, 11), Fraction(-2, 11)), Fraction(6, 11)),
    6: (
        tuple(Fraction(c, 147) for c in (147, -360, 450, -400, 225, -72, 10)),
        Fraction(60, 147),
    ),
}


@pytest.mark.parametrize("k", PUBLISHED)
def test_Y6_coefficients_are_the_published_ones(k):
    coefficients, leading = PUBLISHED[k]
    assert tuple(-a * leading for a in alpha(k)) == coefficients


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_formula_is_exact_to_degree_k_and_no_further(k):
    """Eq. (11) differentiates t^p exactly for p <= k; at p = k + 1 the error is (k + 1)! / (k + 1) h^k."""
    h = Fraction(1, 7)
    for p in range(k + 2):
        points = [(1 - i * h) ** p for i in range(k + 1)]
        found = -sum(a * x for a, x in zip(alpha(k), points, strict=True)) / h
        left = found - p
        factorial = int(np.prod(range(1, k + 2)))
        assert left == (0 if p <= k else -error_constant(k) * factorial * h**k)


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_predictor_extrapolates_polynomials_of_degree_below_k(k):
    for p in range(k):
        points = [Fraction(5 - i) ** p for i in range(1, k + 1)]
        assert -sum(g * x for g, x in zip(gamma(k), points, strict=True)) == Fraction(5) ** p


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_formulas_up_to_six_are_zero_stable(k):
    roots = np.sort(np.abs(roots_at_zero(k)))
    assert roots[-1] == pytest.approx(1.0, abs=1e-9)
    assert (roots[:-1] < 0.9).all()


def test_Y6_sectors_of_stability():
    """Hairer & Wanner II, table V.2.1: 90, 90, 86.03, 73.35, 51.84, 17.84 degrees."""
    assert [sector(k) for k in ORDERS] == pytest.approx([90, 90, 86.03, 73.35, 51.84, 17.84], abs=0.01)


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_boundary_separates_stable_from_unstable(k):
    z = boundary(k, 181)[45]
    outward = z - 0.05 * abs(z), z + 0.05 * abs(z)
    radii = [spectral_radius(k, x) for x in outward]
    assert min(radii) <= 1.0 + 1e-9
    assert spectral_radius(k, -1e6) < 1.0  # L-stable at infinity on the negative axis
    assert spectral_radius(k, 0.5) > 1.0


def oscillator():
    """x' = y + (exact forcing), algebraic z = x^2: an index-1 DAE with solution sin, cos, sin^2."""
    x, r, t = ca.SX.sym("x", 3), ca.SX.sym("r", 3), ca.SX.sym("t")
    rows = [r[0] - x[1], r[1] + x[0] - (x[2] - ca.sin(t) ** 2), x[2] - x[0] ** 2]
    return from_expressions(x, r, rows, time=t)


def exact(t):
    return np.stack([np.sin(t), np.cos(t), np.sin(t) ** 2], axis=-1)


@pytest.mark.parametrize("k", ORDERS)
def test_Y6_order_of_convergence_measured(k):
    dae = oscillator()
    errors, steps = [], (40, 60, 90)
    for n in steps:
        h = 2.0 / n
        run = fixed_step(dae, k, h, n - k + 1, exact(h * np.arange(k)))
        errors.append(np.abs(run.x[-1] - exact(run.t[-1])).max())
    slope = np.polyfit(np.log([1 / n for n in steps]), np.log(errors), 1)[0]
    assert slope == pytest.approx(k, abs=0.25)


def test_Y6_derivative_of_a_parabola():
    t = np.array([3.0, 2.5, 2.0])
    assert derivative(2, 0.5, (t**2)[:, None])[0] == pytest.approx(6.0, rel=1e-14)


def test_wrong_orders_and_starts_are_refused():
    with pytest.raises(ModelError, match="orders 1 to 6"):
        alpha(7)
    with pytest.raises(ShapeError, match=r"first 3 points, \(3, 3\)"):
        fixed_step(oscillator(), 3, 0.1, 5, np.zeros((2, 3)))
