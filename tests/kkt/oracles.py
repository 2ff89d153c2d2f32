"""What the answers are compared with: exact rational elimination, mpmath, Clarabel, and plain NumPy."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import clarabel
import mpmath
import numpy as np
import scipy.sparse as sps

Array = np.ndarray

DIGITS = 50
"""Working precision of mpmath: three times double precision and some."""

QP_TOLERANCE = 1e-10
"""What Clarabel is asked for; its answers are then good to about the square root of it where the problem is flat."""


def dense_matrix(M: Array, A: Array) -> Array:
    """Return the block matrix, assembled here and not by the library."""
    m = A.shape[0]
    return np.block([[M, A.T], [A, np.zeros((m, m))]])


def exact(array: Array) -> list:
    """Return the exact rational values of floating-point numbers, nested as the array is."""
    return [exact(x) for x in array] if np.ndim(array) else Fraction(float(array))


def reduced_echelon(matrix: list[list[Fraction]], width: int) -> tuple[list[list[Fraction]], list[int]]:
    """Return the reduced row echelon form over the first `width` columns, and its pivot columns."""
    rows, pivots = [list(row) for row in matrix], []
    for column in range(width):
        at = len(pivots)
        found = next((i for i in range(at, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        rows[at] = [x / rows[at][column] for x in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[column]:
                rows[i] = [x - row[column] * y for x, y in zip(row, rows[at], strict=True)]
        pivots.append(column)
    return rows, pivots


def exact_null(matrix: Array) -> list[list[Fraction]]:
    """Return a basis of the null space of a matrix over the rationals, one vector per entry."""
    width = matrix.shape[1]
    rows, pivots = reduced_echelon(exact(matrix), width) if matrix.shape[0] else ([], [])
    basis = []
    for free in (j for j in range(width) if j not in pivots):
        vector = [Fraction(int(j == free)) for j in range(width)]
        for row, pivot in zip(rows, pivots, strict=False):
            vector[pivot] = -row[free]
        basis.append(vector)
    return basis


def integer_null(matrix: Array) -> Array:
    """Return a basis of the null space with integer entries (exact in double precision for small matrices), (n, k)."""
    basis = exact_null(matrix)
    whole = [[x * lcm(*(y.denominator for y in vector)) for x in vector] for vector in basis]
    return np.array([[float(x) for x in vector] for vector in whole]).reshape(-1, matrix.shape[1]).T


def exact_solution(M: Array, A: Array, f: Array, c: Array, W: Array | None = None) -> tuple[Array, Array]:
    """Solve M a + A^T lam = f, A a = c over the rationals; lam is of least W-norm where it is not unique.

    The rows N^T W lam = 0, N a basis of null(A^T), make the least-norm member the only solution.  Returns the
    answers rounded to double precision.
    """
    m, n = A.shape
    W = np.eye(m) if W is None else W
    K = exact(dense_matrix(M, A))
    right = exact(np.concatenate([f, c]))
    Wx = exact(W)
    for y in exact_null(A.T) if m else []:
        weighted = [sum(y[i] * Wx[i][j] for i in range(m)) for j in range(m)]
        K.append([Fraction(0)] * n + weighted)
        right.append(Fraction(0))
    rows, pivots = reduced_echelon([[*row, b] for row, b in zip(K, right, strict=True)], n + m)
    assert pivots == list(range(n + m)), "the oracle needs unique accelerations"
    assert all(not row[-1] for row in rows[n + m :]), "the oracle needs a consistent right side"
    x = np.array([float(row[-1]) for row in rows[: n + m]])
    return x[:n], x[n:]


def mp_solution(M: Array, A: Array, f: Array, c: Array) -> tuple[Array, Array]:
    """Solve a regular system with 50 digits."""
    n = M.shape[0]
    with mpmath.workdps(DIGITS):
        K = mpmath.matrix(dense_matrix(M, A).tolist())
        x = mpmath.lu_solve(K, mpmath.matrix(np.concatenate([f, c]).tolist()))
        x = np.array([float(v) for v in x])
    return x[:n], x[n:]


def quadratic_program(P: Array, q: Array, A: Array, b: Array) -> Array:
    """Minimise x^T P x / 2 + q^T x subject to A x = b, with Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = QP_TOLERANCE
    upper = sps.csc_matrix(np.triu(P))
    solver = clarabel.DefaultSolver(upper, q, sps.csc_matrix(A), b, [clarabel.ZeroConeT(b.size)], settings)
    result = solver.solve()
    assert str(result.status) in {"Solved", "AlmostSolved"}, result.status
    return np.array(result.x)


def two_link_mass(m2: float, theta2: float = 0.7, l1: float = 1.0, l2: float = 1.0) -> Array:
    """Return the mass matrix of the two-link arm, seed 000, eq. (31), with m1 l1^2 / 4 + I1 = 1 and a slender rod 2."""
    I2 = m2 * l2**2 / 12
    coupling = m2 * l2**2 / 4 + m2 * l1 * l2 / 2 * np.cos(theta2) + I2
    first = 1.0 + m2 * l1**2 + m2 * l2**2 / 4 + m2 * l1 * l2 * np.cos(theta2) + I2
    return np.array([[first, coupling], [coupling, m2 * l2**2 / 4 + I2]])
