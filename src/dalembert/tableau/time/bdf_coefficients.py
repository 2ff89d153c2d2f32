"""Backward differentiation formulas at a fixed step, as printed: coefficients, predictor, stability (seed 003, eq. 11).

    x'_n = -(1/h) sum_{i=0..k} alpha_i x_{n-i}           exact for polynomials up to degree k
    x_n^Pr = -sum_{i=1..} gamma_i x_{n-i}                the polynomial through the last points, extrapolated

With the seed's sign alpha_0 < 0: k = 1 has alpha = (-1, 1). The seed prints the predictor with k points, of degree
k - 1. All coefficients are rationals, found exactly.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
from jaxtyping import Complex, Float

from dalembert.errors import ModelError

Array = np.ndarray

MOST_ORDER = 6
"""k = 7 is unstable even at h = 0 (C. W. Cryer, BIT 12 (1972) 17-25)."""


@cache
def alpha(k: int) -> tuple[Fraction, ...]:
    """Return alpha_0 ... alpha_k of eq. (11).

    h x' = sum_{j=1..k} nabla^j x / j, and nabla^j x_n = sum_i (-1)^i C(j, i) x_{n-i}.
    """
    _check(k)
    sums = [Fraction(0)] * (k + 1)
    for j in range(1, k + 1):
        for i in range(j + 1):
            sums[i] -= Fraction((-1) ** i * comb(j, i), j)
    return tuple(sums)


@cache
def gamma(k: int) -> tuple[Fraction, ...]:
    """Return gamma_1 ... gamma_k of the predictor: nabla^k x_n = 0."""
    _check(k)
    return tuple(Fraction((-1) ** i * comb(k, i)) for i in range(1, k + 1))


def error_constant(k: int) -> Fraction:
    """Return C of the leading error C h^k x^(k+1) of x': 1 / (k + 1)."""
    _check(k)
    return Fraction(1, k + 1)


def roots_at_zero(k: int) -> Complex[Array, " k"]:
    """Return the roots of rho(z) = -sum alpha_i z^(k-i): one is 1, the others must lie inside the unit circle."""
    return np.roots([-float(a) for a in alpha(k)]).astype(complex)


def boundary(k: int, points: int = 721) -> Any:
    """Return the root locus h lambda = sum_j (1 - e^(-i theta))^j / j, (points,): outside, the formula is stable."""
    _check(k)
    w = 1.0 - np.exp(-1j * np.linspace(0.0, 2.0 * np.pi, points))
    return np.sum([w**j / j for j in range(1, k + 1)], axis=0)


def spectral_radius(k: int, z: complex) -> float:
    """Return the largest root of rho(w) - z w^k: at most one where h lambda = z is in the region of stability."""
    polynomial = np.array([-float(a) for a in alpha(k)], dtype=complex)
    polynomial[0] -= z
    return float(np.abs(np.roots(polynomial)).max(initial=0.0))


def sector(k: int) -> float:
    """Return the angle of A(alpha)-stability in degrees: 90 for k = 1, 2; 17.8 for k = 6."""
    z = boundary(k, 100_001)
    left = z[(z.real < -1e-12)]
    if not len(left):
        return 90.0
    return float(np.degrees(np.arctan2(np.abs(left.imag), -left.real).min()))


def derivative(k: int, h: float, history: Float[Array, "points n"]) -> Float[Array, " n"]:
    """Return x'_n by eq. (11); history[0] is x_n, history[i] is x_{n-i}."""
    return -np.sum([float(a) * x for a, x in zip(alpha(k), history, strict=False)], axis=0) / h


def _check(k: int) -> None:
    if k not in range(1, MOST_ORDER + 1):
        raise ModelError(f"k={k!r}: backward differentiation formulas have orders 1 to {MOST_ORDER}")
