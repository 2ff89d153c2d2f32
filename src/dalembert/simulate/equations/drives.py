"""Rows that move by themselves: how fast, and what their drives do.

Symbols: A v + b = 0 constraint rows, b(q, t) their rate where nothing moves: zero but where a servo, or a row that
depends on time, drives; lam multipliers, M a + A^T lam = f.

    power of the drives  -lam . A v = lam . b

The state of a driven mechanism may follow from its rows alone, and its steps be as long as they like: the work of
drives has an error of its own. A step may be wrong by d_v = atol + rtol |v|, d_q = atol + rtol max(1, |q|), which is
worth an energy (p = M v momenta, g = bias(q, 0) forces of the potential)

    |p| d_v + |g| d_q = atol s_0 + rtol s_1,    s_0 = sum |p| + |g|,    s_1 = sum |p| |v| + |g| max(1, |q|)
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


def power_at(
    system: Any, q: Array, v: Array, tau: Array, t: float, multipliers: Array, own: Array | None = None
) -> float:
    """Return the power of applied forces and of drives, whose rates b may be known, at one state."""
    power = getattr(system, "power_of", lambda q, v, tau, t: float(tau @ v))(q, v, tau, t)
    b = own_rates(system, q, v, t) if own is None else own
    return float(power + multipliers @ b) if np.any(b) else float(power)


def worth_of_errors(p: Array, g: Array, q: Array, v: Array) -> Array:
    """Return s_0 and s_1 (..., 2) of p, g, v (..., nv) and q (..., nq): joules for an error of one in each."""
    p, g = np.abs(p), np.abs(g)
    largest = np.maximum(1.0, np.abs(q).max(axis=-1, initial=0.0))
    return np.stack([(p + g).sum(axis=-1), (p * np.abs(v)).sum(axis=-1) + g.sum(axis=-1) * largest], axis=-1)


def worth_at(system: Any, q: Array, v: Array, t: float) -> Array:
    """Return s_0 and s_1 (2,) at one state."""
    p, g = np.asarray(system.mass_matrix(q, t)) @ v, np.asarray(system.bias(q, np.zeros(v.size), t))
    return worth_of_errors(p, g.ravel(), q, v)


def worth_expressions(form: Any, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
    """Return s_0 and s_1 (2,) as expressions."""
    n, zero = v.numel(), ca.SX.zeros(v.numel())
    momenta = ca.fabs(ca.mtimes(ca.reshape(ca.densify(form.at("mass", q, zero, t, p)), n, n), v))
    forces, largest = ca.sum1(ca.fabs(ca.densify(form.at("bias", q, zero, t, p)))), ca.SX(1)
    for i in range(q.numel()):
        largest = ca.fmax(largest, ca.fabs(q[i]))
    return ca.vertcat(ca.sum1(momenta) + forces, ca.dot(momenta, ca.fabs(v)) + forces * largest)


def driven(form: Any) -> bool:
    """Return whether rows move by themselves."""
    q, v, t = ca.SX.sym("q", form.nq), ca.SX.sym("v", form.nv), ca.SX.sym("t")
    return bool(form.names) and not ca.densify(own_rate_expressions(form, q, v, t, form.parameters)).is_zero()


def drive_power(form: Any, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX, multipliers: ca.SX) -> ca.SX:
    """Return lam . b as an expression; a zero where no row moves by itself."""
    return ca.dot(multipliers, own_rate_expressions(form, q, v, t, p)) if form.names else ca.SX(0)


def own_rate_expressions(form: Any, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
    """Return b (m,) as expressions."""
    return form.at("rate", q, ca.SX.zeros(v.numel()), t, p)
