"""The structural index (Pryce's signature method) and index reduction by dummy derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.kkt.limits import NAMED_AT_SINGULARITY, SINGULAR_JACOBIAN
from dalembert.tableau.elimination.equilibration import equilibrate
from dalembert.tableau.inputs import as_mapping, named_values
from dalembert.tableau.mechanics.dirac import pivot_columns
from dalembert.tableau.structure.sample_points import sample_points
from dalembert.tableau.structure.solvability import listed
from dalembert.tableau.tableau import Tableau, require_tableau
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# ----------------------------------------------------------------------------------------------------------------------
# The structural index of a tableau as a differential-algebraic equation: Pryce's signature method.
#
# Symbols: s_ij the order of the highest derivative of unknown j in equation i (0 or 1 here, -inf if absent); c_i, d_j
# the smallest offsets with d_j - c_i >= s_ij, equality on a transversal of greatest value. Equation i is differentiated
# c_i times, unknown j appears up to its d_j-th derivative, there are sum d - sum c degrees of freedom, and
#
#     index = max c_i + (1 if some d_j = 0, else 0)
#
# J. D. Pryce, "A simple structural analysis method for DAEs", BIT 41 (2001) 364-394. It gives the same index as
# C. C. Pantelides, SIAM J. Sci. Stat. Comput. 9 (1988) 213-231. Both look at the pattern only: they are right where the
# system Jacobian (dG_i^(c_i)/dx_j^(d_j)) is regular, which `reduce_index` checks with numbers.


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
        columns = pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]]
        for s in ca.symvar(row):
            if s.element_hash() in rates:
                orders[pattern.indptr[i] + np.searchsorted(columns, rates[s.element_hash()])] = 1
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


# ----------------------------------------------------------------------------------------------------------------------
# Index reduction by dummy derivatives: a tableau of index 1 (or 0) with the hidden constraints written out.
#
# Equation i is differentiated c_i times and all its derivatives are kept; each x_j^(k), k = 1 ... d_j, is an unknown of
# its own. Too many equations now say how x_j^(k) changes; the surplus is taken up by calling some derivatives "dummy":
# their link (x^(k-1))' = x^(k) is dropped. Which ones, decides the Jacobian at a sample point (QR, columns pivoted).
#
# S. E. Mattsson, G. Soderlind, "Index reduction in differential-algebraic equations using dummy derivatives", SIAM J.
# Sci. Comput. 14 (1993) 677-692. The choice is good near the sample point; far from it another may be needed.


UNEVEN = 1e4
"""Sizes of rows that differ by more are brought to one before columns are compared."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """The reduced tableau, the signature it came from, and the states that are left."""

    tableau: Tableau
    signature: Signature
    states: tuple[str, ...]
    dummies: tuple[str, ...]


class _Derivatives:
    """Symbols of x_j^(k) and of the inputs' derivatives, made on demand, and total time derivatives with them."""

    def __init__(self, tableau: Tableau) -> None:
        self.tableau = tableau
        self.chains: dict[str, list[ca.SX]] = {}
        variables = tableau.variables
        for i, name in enumerate(variables.names):
            chain = [variables.symbols[i]]
            rate = variables.rates[i]
            if rate is not None:
                chain.append(rate)
            self.chains[name] = chain

    def symbol(self, name: str, order: int) -> ca.SX:
        """Return the symbol of a derivative."""
        chain = self.chains[name]
        while len(chain) <= order:
            chain.append(ca.SX.sym(name + "'" * len(chain)))
        return chain[order]

    def rate(self, expression: ca.SX) -> ca.SX:
        """Return the total time derivative."""
        present = {s.element_hash() for s in ca.symvar(expression)}
        total = ca.SX(0)
        for name, chain in list(self.chains.items()):
            for k, s in enumerate(list(chain)):
                if s.element_hash() in present:
                    total += ca.jacobian(expression, s) * self.symbol(name, k + 1)
        if self.tableau.time.numel():
            total += ca.jacobian(expression, self.tableau.time)
        return total


def reduce_index(tableau: Tableau, values: Mapping[str, Any] | None = None) -> Reduced:
    """Return a tableau of index at most 1 with the same solutions.

    `values` is the sample point by name (derivatives with primes: "x'", "x''"), random numbers for the rest. Raises
    `SolvabilityError` where the system Jacobian is singular there: then the structural index is not the index.
    """
    offsets = signature(tableau)
    derivatives = _Derivatives(tableau)
    c, d = offsets.equation_offsets, offsets.unknown_offsets
    rows: list[list[ca.SX]] = []
    for i, row in enumerate(ca.vertsplit(tableau.residual)):
        levels = [row]
        for _ in range(c[i]):
            levels.append(derivatives.rate(levels[-1]))
        rows.append(levels)
    J = _system_jacobian(tableau, offsets, derivatives, rows, values)
    dummies = _choose_dummies(tableau, offsets, J)
    return _assemble(tableau, offsets, derivatives, rows, dummies, d)


def _system_jacobian(
    tableau: Tableau, signature: Signature, derivatives: _Derivatives, rows: list[list[ca.SX]], values: Any
) -> Float[Array, "n n"]:
    """Return dG_i^(c_i)/dx_j^(d_j) at the sample point, checked to be regular whatever the units."""
    highest = [derivatives.symbol(n, int(k)) for n, k in zip(tableau.unknowns, signature.unknown_offsets, strict=True)]
    J = ca.jacobian(ca.vertcat(*[levels[-1] for levels in rows]), ca.vertcat(*highest))
    symbols, point, t, p = _sample(tableau, derivatives, values)
    f = ca.Function("J", [ca.vertcat(*symbols), tableau.time, tableau.parameters.column], [J])
    found_J = np.array(f(point, t, p), dtype=float)
    if not np.isfinite(found_J).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(found_J))[0])
        raise ModelError(
            f"at the sample point {tableau.equations[i]!r} is not finite with respect to {tableau.unknowns[j]!r}; "
            "give another one by name, values={...}"
        )
    row, col = equilibrate(sp.csr_array(found_J))
    scaled = row[:, None] * found_J * col
    U, sizes, Vt = np.linalg.svd(scaled)
    if sizes.size and sizes[-1] <= SINGULAR_JACOBIAN * sizes[0]:
        equations = [e for e, w in zip(tableau.equations, U[:, -1], strict=True) if abs(w) > NAMED_AT_SINGULARITY]
        unknowns = [e for e, w in zip(tableau.unknowns, Vt[-1], strict=True) if abs(w) > NAMED_AT_SINGULARITY]
        raise SolvabilityError(
            f"the system Jacobian is singular at the sample point: equations {listed(equations)} (differentiated as "
            f"the structure asks) do not determine {listed(unknowns)}. The structural index {signature.index} is then "
            "not the index: entries cancel. Give another sample point, or rewrite these equations"
        )
    return found_J


def _sample(
    tableau: Tableau, derivatives: _Derivatives, values: Any
) -> tuple[list[ca.SX], list[float], Float[Array, " t"], Float[Array, " p"]]:
    """Return the symbols of all derivatives with their values at the sample point, and time and parameters there."""
    mapping = as_mapping(values, "values")
    plain = {k: v for k, v in mapping.items() if not (isinstance(k, str) and k.endswith("'"))}
    x, _, u, t, p = sample_points(tableau, 1, plain)
    if len(x) != 1:
        raise ShapeError(f"values: one sample point is needed; {len(x)} are given")
    orders = {name + "'" * k: s for name, chain in derivatives.chains.items() for k, s in enumerate(chain)}
    primed = {k: v for k, v in mapping.items() if k not in plain}
    numbers = dict(zip((*tableau.unknowns, *tableau.inputs), (*x[0], *u[0]), strict=True))
    numbers |= named_values(tableau.variables, primed, "values", orders, finite=True)
    rng = np.random.default_rng(11)
    point = [float(np.ravel(numbers.get(name, rng.standard_normal()))[0]) for name in orders]
    return list(orders.values()), point, t[0], p[0]


def _even_rows(J: Float[Array, "m n"]) -> Float[Array, "m n"]:
    """Return rows scaled by powers of two where their sizes differ much: an equation may be written in any unit."""
    size = np.abs(J).max(axis=1, initial=0.0)
    even = np.all(size <= UNEVEN * size.min(initial=np.inf))
    return J if even else J * np.exp2(-np.round(np.log2(np.where(size > 0.0, size, 1.0))))[:, None]


def _choose_dummies(tableau: Tableau, signature: Signature, J: Float[Array, "n n"]) -> set[tuple[int, int]]:
    """Return the dummy derivatives (unknown, order), from the highest order down."""
    c, d = signature.equation_offsets, signature.unknown_offsets
    dummies: set[tuple[int, int]] = set()
    columns = np.arange(len(d))
    for level in range(1, int(c.max(initial=0)) + 1):
        rows = np.flatnonzero(c >= level)
        columns = np.array([j for j in columns if d[j] >= level], dtype=np.int64)
        order = pivot_columns(_even_rows(J[np.ix_(rows, columns)]))[1]
        columns = np.sort(columns[order[: len(rows)]])
        dummies |= {(int(j), int(d[j] - level + 1)) for j in columns}
    return dummies


def _assemble(
    tableau: Tableau,
    signature: Signature,
    derivatives: _Derivatives,
    rows: list[list[ca.SX]],
    dummies: set[tuple[int, int]],
    d: Any,
) -> Reduced:
    """Write the reduced tableau: every derivative a variable, links for those that are not dummy."""
    variables: dict[str, ca.SX] = {}
    rates: dict[str, ca.SX] = {}
    equations: dict[str, ca.SX] = {}
    states, called = [], []
    for j, name in enumerate(tableau.unknowns):
        for k in range(int(d[j]) + 1):
            label = name + "'" * k
            variables[label] = derivatives.symbol(name, k)
            if k < d[j]:
                if (j, k + 1) in dummies:
                    called.append(f"{label}'")
                else:
                    states.append(label)
                    rates[label] = ca.SX.sym(f"d({label})")
                    equations[f"link {label}"] = rates[label] - derivatives.symbol(name, k + 1)
    for name, levels in zip(tableau.equations, rows, strict=True):
        for k, row in enumerate(levels):
            equations[name + "'" * k] = row
    present = {s.element_hash() for row in equations.values() for s in ca.symvar(row)}
    known_names = []
    for name in tableau.known:
        for k, s in enumerate(derivatives.chains[name]):
            if k == 0 or s.element_hash() in present:
                variables[name + "'" * k] = s
                known_names.append(name + "'" * k)
    inputs = tableau.given
    reduced = Tableau(equations, variables, rates, known_names, None, inputs[3], inputs[4])
    return Reduced(reduced, signature, tuple(states), tuple(called))
