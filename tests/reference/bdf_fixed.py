"""The tableau method at fixed step and order, as printed (seed 003, eqs. 11-14 and Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.simulate.equations.dae import DAE
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Complex, Float

# ----------------------------------------------------------------------------------------------------------------------
# Backward differentiation formulas at a fixed step, as printed: coefficients, predictor, stability (seed 003, eq. 11).
#
#     x'_n = -(1/h) sum_{i=0..k} alpha_i x_{n-i}           exact for polynomials up to degree k
#     x_n^Pr = -sum_{i=1..} gamma_i x_{n-i}                the polynomial through the last points, extrapolated
#
# With the seed's sign alpha_0 < 0: k = 1 has alpha = (-1, 1). The seed prints the predictor with k points, of degree
# k - 1. All coefficients are rationals, found exactly.


MOST_ORDER = 6
"""k = 7 is unstable even at h = 0 (C. W. Cryer, BIT 12 (1972) 17-25)."""

LEFT = 1e-12
"""Points of the boundary of stability this far left of the imaginary axis are left of it, whatever the rounding."""


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
    left = z[(z.real < -LEFT)]
    if not len(left):
        return 90.0
    return float(np.degrees(np.arctan2(np.abs(left.imag), -left.real).min()))


def derivative(k: int, h: float, history: Float[Array, "points n"]) -> Float[Array, " n"]:
    """Return x'_n by eq. (11); history[0] is x_n, history[i] is x_{n-i}."""
    return -np.sum([float(a) * x for a, x in zip(alpha(k), history, strict=False)], axis=0) / h


def _check(k: int) -> None:
    if k not in range(1, MOST_ORDER + 1):
        raise ModelError(f"k={k!r}: backward differentiation formulas have orders 1 to {MOST_ORDER}")


# ----------------------------------------------------------------------------------------------------------------------
# The tableau method at fixed step and order, exactly as printed (seed 003, eqs. 11-14 and Fig. 2): the plain twin.
#
# At every t_n: predict, then iterate J(x^(r)) dx = -G(x^(r)), x^(r+1) = x^(r) + dx until dx is small; J at every
# iterate. The first k - 1 points are the user's to give: a formula of order k needs k of them.


MOST_ITERATIONS = 20

SMALL_CHANGE = 1e-6
"""Newton's steps below this part of the unknowns that fall no more are rounding."""


@dataclass(frozen=True, eq=False)
class FixedRun:
    """Times (N,), unknowns (N, n), Newton iterations per step."""

    t: Float[Array, " N"]
    x: Float[Array, "N n"]
    iterations: list[int]


def fixed_step(
    dae: DAE,
    k: int,
    h: float,
    steps: int,
    first: Any,
    t0: float = 0.0,
    parameters: Any = (),
    tolerance: float = 1e-13,
) -> FixedRun:
    """Integrate `steps` steps of size h from `first`, (k, n): x at t0, t0 + h, ..., t0 + (k - 1) h.

    Newton's method ends when the step, relative to 1 + |x|, is below `tolerance` or no longer shrinks. Each iteration
    is a dense LAPACK solve of rows scaled to one: nothing here is fast, everything is as printed.
    """
    start = np.asarray(first, dtype=float)
    if start.shape != (k, dae.n):
        raise ShapeError(f"order {k} needs the first {k} points, ({k}, {dae.n}); got {start.shape}")
    evaluate = ca.Function("G", [dae.x, dae.rates, dae.environment], [dae.residual, ca.densify(dae.jacobian)])
    a, g = [float(c) for c in alpha(k)], [float(c) for c in gamma(k)]
    rest = [*np.asarray(parameters, dtype=float), *[0.0] * len(dae.relaxed)]
    x = list(start)
    counts = []
    for n in range(k, k + steps):
        past = x[: -k - 1 : -1]
        predicted = -np.sum([c * y for c, y in zip(g, past, strict=True)], axis=0)  # x_n^Pr
        history = -np.sum([c * y for c, y in zip(a[1:], past, strict=True)], axis=0) / h
        environment = np.array([t0 + n * h, -a[0] / h, *rest])
        found, count = _newton(evaluate, predicted, history, -a[0] / h, environment, tolerance)
        x.append(found)
        counts.append(count)
    return FixedRun(t0 + h * np.arange(len(x)), np.array(x), counts)


def _newton(
    evaluate: ca.Function, x: Array, history: Array, shift: float, environment: Array, tolerance: float
) -> tuple[Array, int]:
    """Eqs. (12)-(14): solve G(x, shift x + history) = 0."""
    last = np.inf
    for iteration in range(1, MOST_ITERATIONS + 1):
        G, J = (np.asarray(z, dtype=float) for z in evaluate(x, shift * x + history, environment))
        size = np.abs(J).max(axis=1, keepdims=True)
        try:
            dx = -np.linalg.solve(J / size, G / size).ravel()
        except np.linalg.LinAlgError as error:
            raise SolvabilityError(f"the Jacobian is singular at t = {environment[0]:g}") from error
        x = x + dx
        change = float((np.abs(dx) / (1.0 + np.abs(x))).max())
        if change <= tolerance or (change < SMALL_CHANGE and change >= 0.5 * last):
            return x, iteration
        last = change
    raise SolvabilityError(f"Newton's method did not converge at t = {environment[0]:g}: last change {last:.3g}")
