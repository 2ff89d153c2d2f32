"""Differential-algebraic equations F(t, x, x') = 0, with names and hidden constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.model.lagrangian.symbols import as_column, symbol_column
from dalembert.tableau.structure.index_reduction import signature
from dalembert.tableau.tableau import Tableau
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.equations.signals import Signals

# ----------------------------------------------------------------------------------------------------------------------
# Hidden constraints of a general DAE: its equations differentiated as often as the structure asks.
#
# Symbols: c_i how often equation i is differentiated, d_j the highest derivative of unknown j that then appears
# (Pryce's offsets, `tableau/structure/index_reduction.py`). All of F_i^(k) = 0, k = 0 ... c_i, hold at a consistent
# point (C. C. Pantelides, SIAM J. Sci. Stat. Comput. 9 (1988) 213-231; J. D. Pryce, BIT 41 (2001) 364-394); those with
# k > 0 are not written in F.


WORDS = {0: "{}", 1: "rate of {} (hidden)", 2: "second rate of {} (hidden)"}


def offsets(x: ca.SX, rates: ca.SX, residual: ca.SX) -> tuple[Array, Array] | None:
    """Return c and d; None where equations and unknowns cannot be matched, and nothing can be said."""
    symbols = {s.element_hash() for s in ca.symvar(ca.vertcat(x, rates))}
    others = [s for s in ca.symvar(residual) if s.element_hash() not in symbols]
    if others:
        residual = ca.substitute(residual, ca.vertcat(*others), ca.SX(np.linspace(0.6, 0.7, len(others))))
    present = {s.element_hash() for s in ca.symvar(residual)}
    names = [f"x{j}" for j in range(x.numel())]
    differential = {name: r for name, r in zip(names, ca.vertsplit(rates), strict=True) if r.element_hash() in present}
    rows = {f"e{i}": row for i, row in enumerate(ca.vertsplit(residual))}
    try:
        tableau = Tableau(rows, dict(zip(names, ca.vertsplit(x), strict=True)), differential)
        structure = signature(tableau)
    except SolvabilityError:
        return None
    if len(tableau.equations) != len(rows):
        return None
    return structure.equation_offsets, structure.unknown_offsets


def indices(c: Array, d: Array) -> Array:
    """Return the power of h that weighs each unknown: 0 for index 1, 1 for index 2, 2 for index 3."""
    return np.maximum(c.max(initial=0) - d, 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Levels:
    """Every F_i^(k), and the unknowns' derivatives in it.

    Attributes
    ----------
    names
        Of every row.
    algebraic
        Which rows are derivatives (or the equation itself) of equations without rates: constraints.
    orders
        How many columns of derivatives there are, x included.
    highest
        d: the highest derivative of each unknown.
    evaluate
        (columns, t, signals and their derivatives, parameters) -> rows, d rows / d columns.
    unchecked
        Why hidden constraints are not known, empty if they are.
    """

    names: tuple[str, ...]
    hidden: tuple[str, ...]
    algebraic: Array
    orders: int
    highest: Array
    evaluate: Any
    signals: Signals
    unchecked: str

    def inputs(self, t: float) -> Array:
        """Return the signals at t and their derivatives, order by order."""
        return np.concatenate([self.signals.values(t, k) for k in range(self.orders + 1)])


def levels(dae: DAE, signals: Signals) -> Levels:
    """Differentiate as the structure asks; not at all where it says nothing, or an input has no derivatives."""
    structure = offsets(dae.x, dae.rates, dae.residual)
    if structure is None:
        return _levels(dae, signals, np.zeros(dae.n, int), dae.differential.astype(int), "the structure is singular")
    deep = _levels(dae, signals, *structure, "")
    if deep is None:
        reason = "a callable among the inputs has no derivatives: give an expression of time or a table"
        return _levels(dae, signals, np.zeros(dae.n, int), dae.differential.astype(int), reason)
    return deep


def _levels(dae: DAE, signals: Signals, c: Array, d: Array, unchecked: str) -> Any:
    """Return the rows up to F_i^(c_i); None where they need the derivative of a callable."""
    deepest, n = int(c.max(initial=0)), dae.n
    orders = 2 + deepest
    columns = [dae.x, dae.rates, *(ca.SX.sym(f"x{k}", n) for k in range(2, orders))]
    count = dae.signals.numel()
    inputs = [dae.signals, *(ca.SX.sym(f"s{k}", count) for k in range(1, orders + 1))]
    old, new = ca.vertcat(*columns[:-1], *inputs[:-1]), ca.vertcat(*columns[1:], *inputs[1:])
    rates = {s.element_hash() for s in ca.vertsplit(dae.rates)}
    plain = [not any(s.element_hash() in rates for s in ca.symvar(row)) for row in ca.vertsplit(dae.residual)]
    row, places, parts, names = dae.residual, list(range(n)), [dae.residual], list(dae.equations)
    algebraic, hidden = list(plain), []
    for k in range(1, deepest + 1):
        keep = [a for a, i in enumerate(places) if c[i] >= k]
        row, places = row[keep], [places[a] for a in keep]
        row = ca.jtimes(row, old, new) + ca.jtimes(row, dae.time, ca.SX(1))
        parts.append(row)
        words = [WORDS.get(k, f"derivative {k} of {{}} (hidden)").format(dae.equations[i]) for i in places]
        names += words
        hidden += [name for name, i in zip(words, places, strict=True) if plain[i]]
        algebraic += [plain[i] for i in places]
    rows = ca.vertcat(*parts)
    called = [s[i] for s in inputs[1:] for i, _ in signals.callables]
    if called and ca.depends_on(rows, ca.vertcat(*called)):
        return None
    z = ca.vertcat(*columns)
    arguments = [z, dae.time, ca.vertcat(*inputs), dae.parameters]
    f = ca.Function("levels", arguments, [rows, ca.densify(ca.jacobian(rows, z))])
    return Levels(tuple(names), tuple(hidden), np.array(algebraic, bool), orders, d, f, signals, unchecked)


# ----------------------------------------------------------------------------------------------------------------------
# A differential-algebraic equation: a residual F(t, x, x') = 0 with names, and the kind of each unknown.
#
# Symbols: x unknowns, x' their rates, s signals (inputs that are tables or callables of time), p parameters, c the
# leading coefficient of the difference formula (x' = c x + ..., c = -alpha_0 / h in seed 003, eq. 11), J = dF/dx + c
# dF/dx' the iteration matrix (eq. 13).


@dataclass(frozen=True, eq=False)
class Projection:
    """What puts q and v back on their constraints (`manifold_loops.py`): [M A^T; A 0], (0, -phi), (0, -psi).

    The first `free` unknowns are q, as many after them v.
    """

    matrix: ca.SX
    right: ca.SX
    rate_right: ca.SX
    free: int


@dataclass(frozen=True, eq=False)
class DAE:
    """A system of implicit differential-algebraic equations.

    Attributes
    ----------
    x, rates
        Columns of n symbols; a rate that `residual` does not contain belongs to an algebraic unknown.
    residual
        F, (n,).
    time, signals, parameters
        Symbols of t (one), s and p.
    unknowns, equations
        Names, n each.
    tested
        (n,) bool: which unknowns the error test sees. Multipliers and other algebraic unknowns stay out.
    power
        (n,) int: the unknown's error is weighed by h^power, 0 for index 1, 1 for index 2, 2 for index 3 (E. Hairer,
        G. Wanner, "Solving Ordinary Differential Equations II", sec. VII.7).
    relaxed
        (row, column, power) triples: J loses relax / c^power there, which keeps redundant constraints solvable. F is
        what it was, so answers do not change.
    projection
        How a point is put back on constraints after a step, where that is wanted.
    """

    x: ca.SX
    rates: ca.SX
    residual: ca.SX
    time: ca.SX
    unknowns: tuple[str, ...]
    equations: tuple[str, ...]
    tested: Array
    power: Array
    signals: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    parameters: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    relaxed: tuple[tuple[int, int, int], ...] = ()
    projection: Projection | None = None

    def __post_init__(self) -> None:
        n = self.x.numel()
        if self.residual.numel() != n or self.rates.numel() != n:
            raise ShapeError(
                f"{self.residual.numel()} equations and {self.rates.numel()} rates for {n} unknowns; "
                "a DAE needs as many equations as unknowns"
            )
        if len(self.unknowns) != n or len(set(self.unknowns)) != n:
            twice = [name for name in self.unknowns if self.unknowns.count(name) > 1]
            raise ModelError(f"{n} unknowns need {n} different names; got {len(self.unknowns)}, repeated: {twice[:3]}")
        symbols = ca.symvar(ca.vertcat(self.x, self.rates, self.time, self.signals, self.parameters))
        hashes = {s.element_hash() for s in symbols}
        strangers = [str(s) for s in ca.symvar(self.residual) if s.element_hash() not in hashes]
        if strangers:
            raise ModelError(
                f"the equations contain {', '.join(strangers[:8])}, which is neither unknown, rate, time nor parameter"
            )

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.x.numel()

    @cached_property
    def differential(self) -> Array:
        """Which unknowns have a rate in the residual, (n,) bool."""
        present = {s.element_hash() for s in ca.symvar(self.residual)}
        return np.array([r.element_hash() in present for r in ca.vertsplit(self.rates)])

    @cached_property
    def driven(self) -> Array:
        """Which equations fix the state whatever the step is, (n,) bool: algebraic ones, where one depends on time.

        Without time they bind a free motion, and no step is longer than that motion allows.
        """
        algebraic = ~np.array(ca.which_depends(self.residual, self.rates, 1, True), dtype=bool)
        inputs = ca.vertcat(self.time, self.signals)
        moving = algebraic & np.array(ca.which_depends(self.residual, inputs, 1, True), dtype=bool)
        return algebraic & moving.any()

    @cached_property
    def shift(self) -> ca.SX:
        """Symbol of c."""
        return ca.SX.sym("c")

    @cached_property
    def relax(self) -> ca.SX:
        """Symbols of the relaxation, one per entry of `relaxed`."""
        return ca.SX.sym("relax", len(self.relaxed))

    @cached_property
    def environment(self) -> ca.SX:
        """Everything that a kernel needs beside x and x': t, c, s, p, relaxation."""
        return ca.vertcat(self.time, self.shift, self.signals, self.parameters, self.relax)

    @cached_property
    def jacobian(self) -> ca.SX:
        """J = dF/dx + c dF/dx', less the relaxation."""
        J = ca.jacobian(self.residual, self.x) + self.shift * ca.jacobian(self.residual, self.rates)
        for k, (i, j, power) in enumerate(self.relaxed):
            J[i, j] -= self.relax[k] / self.shift**power
        return J

    def place(self, name: str) -> int:
        """Return the place of an unknown."""
        if name not in self.unknowns:
            raise ModelError(f"no unknown is called {name!r}; there are {', '.join(self.unknowns)}")
        return self.unknowns.index(name)


def from_expressions(
    x: Any,
    rates: Any,
    residual: Any,
    time: Any = None,
    parameters: Any = None,
    signals: Any = None,
    unknowns: Any = None,
    equations: Any = None,
    index: Any = None,
) -> DAE:
    """Return the DAE of a user's own expressions.

    `index` maps names of unknowns to 1, 2 or 3: what index they have (others 1); left out, the structure of the
    equations says it (`dae.py`). Differential unknowns are in the error test; one of index 3, or algebraic, is not.
    `signals` are symbols of inputs, given by their names in `known=` of a problem.
    """
    x, rates = symbol_column(x, "x"), symbol_column(rates, "rates")
    residual = as_column(residual, "residual")
    names = tuple(str(s) for s in ca.vertsplit(x)) if unknowns is None else tuple(unknowns)
    rows = tuple(f"equation {i}" for i in range(residual.numel())) if equations is None else tuple(equations)
    none = ca.SX(0, 1)
    power = _power(x, rates, residual, names, index)
    present = {s.element_hash() for s in ca.symvar(residual)}
    differential = np.array([r.element_hash() in present for r in ca.vertsplit(rates)], dtype=bool)
    return DAE(
        x=x,
        rates=rates,
        residual=residual,
        time=ca.SX.sym("t") if time is None else symbol_column(time, "time"),
        unknowns=names,
        equations=rows,
        tested=differential & (power < 2),
        power=power,
        signals=none if signals is None else symbol_column(signals, "signals"),
        parameters=none if parameters is None else symbol_column(parameters, "parameters"),
    )


def _power(x: ca.SX, rates: ca.SX, residual: ca.SX, names: tuple[str, ...], index: Any) -> Array:
    """Return the power of h of every unknown: by its index as given, or by the structure of the equations."""
    power = np.zeros(len(names), np.int64)
    if index is None:
        square = len(names) == x.numel() == rates.numel() == residual.numel()
        structure = offsets(x, rates, residual) if square else None
        return power if structure is None else indices(*structure)
    if not isinstance(index, Mapping):
        raise ModelError(f"index={index!r}: a mapping from names of unknowns to 1, 2 or 3 is needed")
    for name, value in index.items():
        if name not in names or value not in (1, 2, 3):
            raise ModelError(f"index={{{name!r}: {value!r}}}: names of unknowns and 1, 2 or 3 are needed")
        power[names.index(name)] = value - 1
    return power
