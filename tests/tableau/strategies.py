"""Random sparse systems: solvable by construction, and broken on purpose."""

from __future__ import annotations

import casadi as ca
import mpmath
import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st


@st.composite
def patterns(draw, largest: int = 12, square: bool = False):
    """Any pattern, as a boolean matrix."""
    rows = draw(st.integers(1, largest))
    cols = rows if square else draw(st.integers(1, largest))
    density = draw(st.sampled_from([0.05, 0.15, 0.3, 0.6]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.random((rows, cols)) < density


@st.composite
def regular_matrices(draw, largest: int = 25):
    """A sparse matrix that has a perfect matching with entries of moderate size, so that it is regular."""
    n = draw(st.integers(1, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.02, 0.1, 0.3]))
    A = rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < density)
    strong = np.where(rng.random(n) < 0.5, -1.0, 1.0) * rng.uniform(1.0, 2.0, n) * (1 + np.abs(A).sum(axis=1))
    A[np.arange(n), np.arange(n)] = strong
    A = A[rng.permutation(n)][:, rng.permutation(n)]
    matrix = sp.csr_array(A)
    matrix.sort_indices()
    return matrix


def casadi_sparsity(pattern: np.ndarray) -> ca.Sparsity:
    rows, cols = (index.tolist() for index in np.nonzero(pattern))
    return ca.Sparsity.triplet(*pattern.shape, rows, cols)


def exactly(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A^-1 b and |A^-1|, computed with sixty digits."""
    with mpmath.workdps(60):
        inverse = mpmath.matrix(A.tolist()) ** -1
        x = inverse * mpmath.matrix(b.tolist())
        return np.array(x.tolist(), dtype=float).ravel(), np.abs(np.array(inverse.tolist(), dtype=float))
