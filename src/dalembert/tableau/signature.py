"""The structural index of a tableau as a differential-algebraic equation: Pryce's signature method.

Symbols: s_ij the order of the highest derivative of unknown j in equation i (0 or 1 here, -inf if absent); c_i, d_j the
smallest offsets with d_j - c_i >= s_ij, equality on a transversal of greatest value. Equation i is differentiated c_i
times, unknown j appears up to its d_j-th derivative, there are sum d - sum c degrees of freedom, and

    index = max c_i + (1 if some d_j = 0, else 0)

J. D. Pryce, "A simple structural analysis method for DAEs", BIT 41 (2001) 364-394. It gives the same index as
C. C. Pantelides, SIAM J. Sci. Stat. Comput. 9 (1988) 213-231. Both look at the pattern only: they are right where the
system Jacobian (dG_i^(c_i)/dx_j^(d_j)) is regular, which `reduce_index` checks with numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy.sparse as sp
from jaxtyping import Int
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from dalembert.tableau.solvability import listed
from dalembert.tableau.tableau import Tableau, require_tableau

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Signature:
    """Offsets and index.

    Attributes
    ----------
    equation_offsets, unknown_offsets
        c and d.
    transversal
        Unknown matched to each equation.
    """

    tableau: Tableau
    equation_offsets: Int[Array, " n"]
    unknown_offsets: Int[Array, " n"]
    transversal: Int[Array, " n"]

    @property
    def index(self) -> int:
        """The structural index."""
        if not len(self.unknown_offsets):
            return 0
        return int(self.equation_offsets.max() + (self.unknown_offsets.min() == 0))

    @property
    def freedom(self) -> int:
        """Number of initial values that can be chosen."""
        return int(self.unknown_offsets.sum() - self.equation_offsets.sum())

    @property
    def hidden(self) -> dict[str, int]:
        """Equations that must be differentiated, and how often."""
        pairs = zip(self.tableau.equations, self.equation_offsets, strict=True)
        return {name: int(c) for name, c in pairs if c > 0}

    def __str__(self) -> str:
        text = f"structural index {self.index}, {self.freedom} degrees of freedom"
        for times in sorted(set(self.hidden.values()), reverse=True):
            names = [name for name, c in self.hidden.items() if c == times]
            text += f"; differentiate {times} time(s): {listed(names)}"
        return text


def signature(tableau: Tableau) -> Signature:
    """Return offsets and structural index; raises `SolvabilityError`, by name, where no transversal exists."""
    require_tableau(tableau)
    tableau.structure().require()
    orders = signature_matrix(tableau)
    row, col = min_weight_full_bipartite_matching(
        sp.csr_matrix((2.0 - orders.data, orders.indices, orders.indptr), shape=orders.shape)
    )
    transversal = np.empty(len(row), np.int64)
    transversal[row] = col
    return Signature(tableau, *_offsets(orders, transversal), transversal)


def signature_matrix(tableau: Tableau) -> sp.csr_array:
    """Return s_ij + 0 where present: entries 0 or 1 on the pattern of the tableau."""
    pattern = tableau.pattern
    rates = {tableau.x_dot[k].element_hash(): j for k, j in enumerate(tableau.differential)}
    orders = np.zeros(pattern.entries, np.int64)
    for i, row in enumerate(ca.vertsplit(tableau.residual)):
        own = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
        for s in ca.symvar(row):
            if s.element_hash() in rates:
                orders[pattern.indptr[i] + np.searchsorted(own, rates[s.element_hash()])] = 1
    return sp.csr_array((orders, pattern.indices, pattern.indptr), shape=pattern.shape)


def _offsets(orders: Any, transversal: Int[Array, " n"]) -> tuple[Int[Array, " n"], Int[Array, " n"]]:
    """Return the smallest offsets, by Pryce's fixed-point iteration from c = 0."""
    n = orders.shape[0]
    row = np.repeat(np.arange(n), np.diff(orders.indptr))
    c = np.zeros(n, np.int64)
    on = orders.indices == transversal[row]
    chosen = np.zeros(n, np.int64)
    chosen[row[on]] = orders.data[on]
    while True:
        d = np.zeros(n, np.int64)
        np.maximum.at(d, orders.indices, orders.data + c[row])
        new = d[transversal] - chosen
        if np.array_equal(new, c):
            return c, d
        c = new
