"""Cones: one state with reactions as limits, its contact rows in order, normals first, then tangents.

Symbols: H contact rows (p, n) = normals of A and columns of W; r their reactions; u = G r + g contact accelerations.
Rows of A that load no contact stay constraints of the block matrix; a given limit in motion is a load, and has no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.friction.contact_problem import FIXED, ContactProblem
from dalembert.friction.delassus import Delassus
from dalembert.kkt import KKT
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class ConeProblem:
    """Contacts (k) on their rows (p), ready for the kernel.

    `first` (k + 1,) are offsets of rows, `mu` (k,) coefficients (or the limit of a bounded contact), `kind` (k,),
    `sliding` (k,), `direction` (p,) unit vectors of sliding on the tangential rows. `columns` maps a column of W to
    its row, or -1 where its force is known; `moving` are the contacts of the latter. `normals` are the rows of A in
    order of contacts that have one. W (n, m) and its drift are those of all columns.
    """

    reduced: Delassus
    first: Array
    mu: Float[Array, " k"]
    kind: Array
    sliding: Array
    direction: Float[Array, " p"]
    names: tuple[str, ...]
    column_names: tuple[str, ...]
    columns: Array
    known: Float[Array, " m"]
    normals: tuple[int, ...]
    others: tuple[int, ...]
    system: KKT
    moving: tuple[str, ...]
    W: Float[Array, "n m"]
    contact_drift: Float[Array, " m"]

    @classmethod
    def of(cls, problem: ContactProblem, s: int = 0) -> ConeProblem:
        """Return state s of a problem: the normals taken out of the constraints, and the rest reduced."""
        sets, system = problem.contacts, problem.block(s)
        W, shift, drift = problem.matrices(s)[1], problem.contact_drift[s], problem.drift[s]
        keeps = ~(sets.sliding[s] & (sets.kind == FIXED))
        widths = np.diff(sets.first)
        rows = np.repeat(keeps, widths)
        source, tangent = sets.source[rows], sets.source[rows] >= 0
        normals = -1 - source[~tangent]
        H, row_drift = np.empty((source.size, system.n)), np.empty(source.size)
        H[tangent], H[~tangent] = W.T[source[tangent]], system.A[normals]
        row_drift[tangent], row_drift[~tangent] = shift[source[tangent]], drift[normals]
        columns = np.full(W.shape[1], -1)
        columns[source[tangent]] = np.flatnonzero(tangent)
        others = sets.others.tolist()
        block = KKT(system.M, system.A[others], [system.names[i] for i in others], system.coordinates)
        reduced = Delassus(
            block, problem.f[s] + W @ sets.known[s], drift[others], H.T.copy(), row_drift, np.zeros(source.size)
        )
        first = np.concatenate([[0], np.cumsum(widths[keeps])])
        pairs = list(zip(sets.names, keeps.tolist(), strict=True))
        return cls(
            reduced, first, sets.mu[s][keeps], sets.kind[keeps], sets.sliding[s][keeps], sets.direction[s][rows],
            tuple(name for name, stays in pairs if stays), sets.column_names, columns, sets.known[s],
            tuple(normals.tolist()), tuple(others), system, tuple(name for name, stays in pairs if not stays), W, shift,
        )  # fmt: skip

    @property
    def delassus(self) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """G and g over the contact rows."""
        return self.reduced.delassus

    @property
    def row_limits(self) -> Float[Array, " p"]:
        """The given limit on the rows of bounded contacts, zero on the others."""
        return np.repeat(np.where(self.kind == FIXED, self.mu, 0.0), np.diff(self.first))
