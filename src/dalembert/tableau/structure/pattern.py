"""The sparse pattern of equations and unknowns, with names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.sparse as sp

from dalembert.checks import refuse_masked
from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.kkt.inputs import checked_names
from dalembert.tableau.inputs import as_list, as_numbers
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class Pattern:
    """A bipartite graph between equations (rows) and unknowns (columns), rows stored one after another (CSR).

    Attributes
    ----------
    indptr, indices
        The unknowns of equation i are indices[indptr[i]:indptr[i + 1]], ascending.
    equations, unknowns
        Names of rows and columns.
    """

    indptr: Int[Array, " rows_and_one"]
    indices: Int[Array, " entries"]
    equations: tuple[str, ...]
    unknowns: tuple[str, ...]

    @classmethod
    def of(cls, system: Any, equations: Any = None, unknowns: Any = None) -> Pattern:
        """Read a pattern, a SciPy sparse matrix, a CasADi sparsity, or a dense array (nonzeros count)."""
        if isinstance(system, Pattern):
            return system if equations is None and unknowns is None else system.named(equations, unknowns)
        matrix: Any = sp.csr_array(_as_sparse(system))
        matrix.sum_duplicates()
        matrix.sort_indices()
        rows, cols = matrix.shape
        return cls(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            default_names(equations, rows, "equation"),
            default_names(unknowns, cols, "unknown"),
        )

    def named(self, equations: Any = None, unknowns: Any = None) -> Pattern:
        """Return the same pattern with other names; those that are None stay."""
        return replace(
            self,
            equations=self.equations if equations is None else default_names(equations, self.shape[0], "equation"),
            unknowns=self.unknowns if unknowns is None else default_names(unknowns, self.shape[1], "unknown"),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of equations and of unknowns."""
        return len(self.equations), len(self.unknowns)

    @property
    def entries(self) -> int:
        """Number of entries."""
        return int(self.indptr[-1])

    @cached_property
    def rows(self) -> Int[Array, " entries"]:
        """The row of every entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def matrix(self, values: Any = None) -> sp.csr_array:
        """Return the pattern as a sparse matrix; ones unless values (entries,), row after row, are given."""
        data = np.ones(self.entries) if values is None else self.values_of(values, "values")
        if data.shape != (self.entries,):
            raise ShapeError(f"values of shape {data.shape} for a pattern with {self.entries} entries")
        return sp.csr_array((data, self.indices, self.indptr), shape=self.shape)

    def values_of(self, system: Any, what: str) -> Float[Array, "..."]:
        """Return values row after row (CSR): given so, or taken from a sparse matrix of this pattern."""
        if not sp.issparse(system):
            return as_numbers(system, what)
        matrix = sp.csr_array(system)
        matrix.sum_duplicates()
        matrix.sort_indices()
        same = matrix.shape == self.shape and np.array_equal(matrix.indptr, self.indptr)
        if not same or not np.array_equal(matrix.indices, self.indices):
            raise ShapeError(
                f"{what}: the sparse matrix, {matrix.shape} with {matrix.nnz} entries, has not the pattern that was "
                f"planned, {self.shape} with {self.entries}; store zeros where entries may be zero"
            )
        return as_numbers(matrix.data, what)

    @cached_property
    def transposed(self) -> Pattern:
        """The same graph, unknowns as rows."""
        matrix = sp.csr_array(self.matrix().T)
        matrix.sort_indices()
        return Pattern(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), self.unknowns, self.equations)

    def require_square(self) -> None:
        """Refuse a system that has not as many equations as unknowns."""
        rows, cols = self.shape
        if rows != cols:
            more = "equation" if rows > cols else "unknown"
            raise ShapeError(
                f"{rows} equations for {cols} unknowns: {abs(rows - cols)} {more}(s) too many. "
                "`structure(pattern).report()` names the parts with too many equations and with too few"
            )


def default_names(names: Any, size: int, what: str) -> tuple[str, ...]:
    """Return the given names, checked, or "equation 0", "equation 1", ..."""
    if names is None:
        return tuple(f"{what} {i}" for i in range(size))
    if not isinstance(names, str):
        names = as_list(names, f"names of {what}s", "strings")
    return checked_names(names, size, f"names of {what}s", f"{what}s")


def _as_sparse(matrix: Any) -> Any:
    """Return something that SciPy takes as a sparse matrix of the nonzeros."""
    if sp.issparse(matrix):
        structural = sp.csr_array(matrix).astype(float)
        structural.data = np.ones_like(structural.data)
        return structural
    if isinstance(matrix, (ca.DM, ca.SX, ca.MX)):
        matrix = matrix.sparsity()
    if hasattr(matrix, "get_triplet"):
        rows, cols = matrix.get_triplet()
        return sp.coo_array((np.ones(len(rows)), (rows, cols)), shape=matrix.shape)
    refuse_masked(matrix, "the matrix")
    try:
        dense = np.asarray(matrix)
        if dense.ndim != 2 or dense.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise UnsupportedError(
            "a pattern is a SciPy sparse matrix, a casadi.Sparsity or a two-dimensional array, not "
            f"{type(matrix).__name__}"
        ) from None
    if not np.isfinite(dense).all():
        raise ModelError("the matrix holds NaN or infinity; a pattern is read from its nonzeros")
    return dense != 0
