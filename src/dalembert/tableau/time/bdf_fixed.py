"""The tableau method at fixed step and order, exactly as printed (seed 003, eqs. 11-14 and Fig. 2): the plain twin.

At every t_n: predict, then iterate J(x^(r)) dx = -G(x^(r)), x^(r+1) = x^(r) + dx until dx is small; J at every iterate.
The first k - 1 points are the user's to give: a formula of order k needs k of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float

from dalembert.errors import ShapeError, SolvabilityError
from dalembert.tableau.time.bdf_coefficients import alpha, gamma
from dalembert.tableau.time.dae import DAE

Array = np.ndarray

MOST_ITERATIONS = 20


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
        if change <= tolerance or (change < 1e-6 and change >= 0.5 * last):
            return x, iteration
        last = change
    raise SolvabilityError(f"Newton's method did not converge at t = {environment[0]:g}: last change {last:.3g}")
