"""Constraint rows as a connection: how they turn with the configuration, hence the curvature (seed 003, sec. 2.3).

Symbols: e_i the frame of velocities, v = v^i e_i, with dq/dt = S(q) v; N (m, n) rows; X, Y admissible velocities with
constant components. With D_i N = dN/dq S e_i and the brackets [e_i, e_j] = gamma_ij,

    dN(X, Y) = (D_X N) Y - (D_Y N) X - N gamma(X, Y)

which is the same for rows that are multiplied by any matrix of functions, up to that matrix. Where velocities are rates
of coordinates S = I and gamma = 0; those of a free or a ball joint are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.model import Lagrangian, Mechanism
from dalembert.model.constraints.all_rows import assemble
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

EXACT = 1e-11
"""Part of its terms below which a curvature found from expressions is rounding."""

DIFFERENCES = 1e-6
"""The same, where rows are differentiated by central differences."""

STEP = 6e-6
"""Step of central differences beside 1 + |q|: the cube root of rounding."""


@dataclass(frozen=True, eq=False)
class RowDerivatives:
    """D_i N (n, m, n), brackets gamma_ij (n, n, n), components first, and the part of the terms that is rounding."""

    rates: Float[Array, "n m n"]
    brackets: Float[Array, "n n n"]
    rounding: float

    def exterior(self, N: Float[Array, "m n"], B: Float[Array, "n f"]) -> tuple[Array, Array]:
        """Return dN (m, f, f) on the columns of B, and the size of its terms."""
        along = np.einsum("imj,ia,jb->mab", self.rates, B, B)
        turned = np.einsum("mc,cij,ia,jb->mab", N, self.brackets, B, B)
        size = np.einsum("imj,ia,jb->mab", *(np.abs(x) for x in (self.rates, B, B)))
        size = size + size.transpose(0, 2, 1)
        size += np.einsum("mc,cij,ia,jb->mab", *(np.abs(x) for x in (N, self.brackets, B, B)))
        return along - along.transpose(0, 2, 1) - turned, size


def row_derivatives(system: Any, q: Float[Array, " nq"], t: float) -> RowDerivatives:
    """Return how the rows of a system turn: from expressions, or by differences where a system has numbers alone."""
    if isinstance(system, Lagrangian):
        symbols, rows = system.symbols, system.expressions.jacobian
        given = [symbols.t, symbols.parameters.column]
        values = [np.full(symbols.t.numel(), t), system.parameters.pack(None)]
        return _of_expressions(rows, symbols.q, ca.SX.eye(symbols.q.numel()), given, q, values)
    if isinstance(system, Mechanism):
        return _of_mechanism(system, q, t)
    return _by_differences(system, q, t)


def _of_mechanism(mechanism: Mechanism, q: Array, t: float) -> RowDerivatives:
    """Write the rows over the tableau's coordinates; springs have no part in them."""
    from dalembert.tableau.mechanics.newton_euler import JointKinematics, rate_of_q
    from dalembert.tableau.mechanics.welded import coordinates, welded

    tree = welded(mechanism.with_passive(False))
    nq, nv = tree.size
    own, velocity = ca.SX.sym("q", nq), ca.SX.sym("v", nv)
    seen = JointKinematics(tree, own, velocity)
    frame = ca.jacobian(rate_of_q(tree, own, velocity), velocity)
    at = np.asarray(coordinates(mechanism, q), dtype=float)
    return _of_expressions(ca.SX(assemble(seen).jacobian), own, frame, [seen.t], at, [np.array([t])])


def _of_expressions(
    rows: ca.SX, q: ca.SX, S: ca.SX, given: list[ca.SX], at: Array, values: list[Array]
) -> RowDerivatives:
    """Differentiate rows and frame along every vector of the frame."""
    n, m = S.shape[1], rows.shape[0]
    turned = [ca.reshape(ca.jtimes(ca.vec(ca.densify(rows)), q, S[:, i]), m, n) for i in range(n)]
    moved = [ca.reshape(ca.jtimes(ca.vec(ca.densify(S)), q, S[:, i]), *S.shape) for i in range(n)]
    f = ca.Function("turned", [q, *given], [ca.densify(S), *[ca.densify(x) for x in (*turned, *moved)]])
    frame, *parts = (np.array(x, dtype=float) for x in f(at, *values))
    rates = np.array(parts[:n]).reshape(n, m, n)
    along = np.array(parts[n:])  # (i, q, j): the derivative of S e_j along e_i
    brackets = np.einsum("cq,iqj->cij", np.linalg.pinv(frame), along - along.transpose(2, 1, 0))
    return RowDerivatives(rates, brackets, EXACT)


def _by_differences(system: Any, q: Array, t: float) -> RowDerivatives:
    """Differentiate the rows of a system whose velocities are the rates of its coordinates."""
    rates = []
    for i in range(q.size):
        step = np.zeros(q.size)
        step[i] = STEP * (1.0 + abs(float(q[i])))
        ahead, behind = (np.asarray(system.jacobian(q + sign * step, t), dtype=float) for sign in (1.0, -1.0))
        rates.append((ahead - behind) / (2.0 * step[i]))
    return RowDerivatives(np.array(rates), np.zeros((q.size, q.size, q.size)), DIFFERENCES)
