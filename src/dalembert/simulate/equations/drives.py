"""Rows that move by themselves: how fast, and what their drives do.

Symbols: A v + b = 0 constraint rows, b(q, t) their rate where nothing moves: zero but where a servo, or a row that
depends on time, drives; lam multipliers, M a + A^T lam = f.

    power of the drives  -lam . A v = lam . b
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.first_use import LaterModule
from dalembert.types import Array

if TYPE_CHECKING:
    import casadi as ca
else:
    ca = LaterModule("casadi")


def own_rates(system: Any, q: Array, v: Array, t: Any) -> Array:
    """Return b (m,) at one state, or (N, m) of a batch.

    Rows of `Matrices` with a drift are known by their accelerations alone: they move as the state does, b = -A v.
    """
    if not system.names:
        return np.zeros((*np.shape(q)[:-1], 0))
    if known_by_accelerations(system):
        return -np.einsum("...ij,...j->...i", np.asarray(system.jacobian(q, t)), v)
    return np.asarray(system.constraint_velocity(q, np.zeros(np.shape(v)), t))


def known_by_accelerations(system: Any) -> bool:
    """Return whether rows have neither residuals nor rates: those of `Matrices` with a drift."""
    matrices = getattr(system, "matrices", None)
    return matrices is not None and not (
        getattr(matrices, "rows_rest", False) or hasattr(matrices, "constraint_velocity")
    )


def power_at(system: Any, q: Array, v: Array, tau: Array, t: float, multipliers: Array) -> float:
    """Return the power of applied forces and of drives at one state."""
    power = getattr(system, "power_of", lambda q, v, tau, t: float(tau @ v))(q, v, tau, t)
    b = own_rates(system, q, v, t)
    return float(power + multipliers @ b) if np.any(b) else float(power)


def drive_power(form: Any, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX, multipliers: ca.SX) -> ca.SX:
    """Return lam . b as an expression; a zero where no row moves by itself."""
    return ca.dot(multipliers, own_rate_expressions(form, q, v, t, p)) if form.names else ca.SX(0)


def own_rate_expressions(form: Any, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
    """Return b (m,) as expressions."""
    return form.at("rate", q, ca.SX.zeros(v.numel()), t, p)
