"""Rows of a constraint at position, velocity and acceleration level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# ----------------------------------------------------------------------------------------------------------------------
# The few matrix operations that NumPy and CasADi spell differently; columns are (3, 1), matrices two-dimensional.


Matrix = Any
"""A two-dimensional NumPy array or a CasADi SX."""


def cross(a: Matrix, b: Matrix) -> Matrix:
    """Return a x b of columns (3, 1)."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.cross(a, b, axis=0)
    import casadi as ca

    return ca.cross(ca.SX(a), ca.SX(b))


def dot(a: Matrix, b: Matrix) -> Matrix:
    """Return a . b of columns, (1, 1)."""
    return a.T @ b


def stack(blocks: list[Matrix]) -> Matrix:
    """Return blocks one below the other."""
    if all(isinstance(block, np.ndarray) for block in blocks):
        return np.vstack(blocks)
    import casadi as ca

    return ca.vertcat(*blocks)


def side_by_side(columns: list[Matrix]) -> Matrix:
    """Return columns as a matrix."""
    return stack([column.T for column in columns]).T


def choose(condition: Matrix, one: Matrix, other: Matrix) -> Matrix:
    """Return `one` where a (1, 1) condition holds, else `other`."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, one, other)
    import casadi as ca

    return ca.if_else(condition, one, other)


def column(values: Any) -> np.ndarray:
    """Return three numbers as a column (3, 1)."""
    return np.asarray(values, dtype=float).reshape(-1, 1)


def square_root(x: Matrix) -> Matrix:
    """Return the square root of a (1, 1) matrix."""
    return np.sqrt(x) if isinstance(x, np.ndarray) else x.sqrt()


def without_columns(matrix: Matrix, columns: list[int]) -> Matrix:
    """Return a matrix with these columns set to zero, in an expression to structural ones."""
    if isinstance(matrix, np.ndarray):
        matrix = matrix.copy()
        matrix[:, columns] = 0.0
        return matrix
    import casadi as ca

    others = [column for column in range(matrix.shape[1]) if column not in columns]
    result = ca.SX(*matrix.shape)
    result[:, others] = matrix[:, others]
    return ca.sparsify(result)


# ----------------------------------------------------------------------------------------------------------------------
# Rows of a constraint at position, velocity and acceleration level.
#
# Symbols: phi(q, t) residual, zero where the constraint holds; A v + offset its rate; A a + drift the rate's
# derivative, always. The rate is phi_dot everywhere for lengths and coordinates; for angles about several axes, of
# which no vector has the angular velocity for its derivative, where phi = 0. A row that constrains velocities only has
# no phi, and A v + offset is what must vanish.


@dataclass(frozen=True, eq=False)
class Rows:
    """Some scalar rows.

    Attributes
    ----------
    residual : (h, 1)
        phi of the rows that have one: all (h = m) or none (None).
    jacobian : (m, nv)
        A.
    rate : (m, 1)
        A v + offset.
    drift : (m, 1)
        What remains of the acceleration level at a = 0.
    """

    residual: Matrix | None
    jacobian: Matrix
    rate: Matrix
    drift: Matrix

    def without_residual(self) -> Rows:
        """Return the same rows at velocity level."""
        return Rows(None, self.jacobian, self.rate, self.drift)

    def stabilized(self, gains: tuple[float, float]) -> Rows:
        """Return the rows with drift + kd rate + kp residual for drift (Baumgarte 1972)."""
        kp, kd = gains
        drift = self.drift + kd * self.rate
        if self.residual is not None:
            drift = drift + kp * self.residual
        return Rows(self.residual, self.jacobian, self.rate, drift)


def stacked(parts: list[Rows]) -> Rows:
    """Return rows one below the other; either all have residuals or none has."""
    residuals = [part.residual for part in parts]
    return Rows(
        None if residuals[0] is None else stack(residuals),
        stack([part.jacobian for part in parts]),
        stack([part.rate for part in parts]),
        stack([part.drift for part in parts]),
    )
