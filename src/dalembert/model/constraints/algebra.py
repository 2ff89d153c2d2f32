"""The few matrix operations that NumPy and CasADi spell differently; columns are (3, 1), matrices two-dimensional."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    return stack([each.T for each in columns]).T


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

    kept = [column for column in range(matrix.shape[1]) if column not in columns]
    result = ca.SX(*matrix.shape)
    result[:, kept] = matrix[:, kept]
    return ca.sparsify(result)
