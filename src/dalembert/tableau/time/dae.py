"""What a stepper integrates: a residual F(t, x, x') = 0 with names, and what kind each unknown is.

Symbols: x unknowns, x' their rates, s signals (inputs that are tables or callables of time), p parameters, c the
leading coefficient of the difference formula (x' = c x + ..., c = -alpha_0 / h in seed 003, eq. 11), J = dF/dx + c
dF/dx' the iteration matrix (eq. 13).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.model.symbols import as_column, symbol_column
from dalembert.tableau.time.hidden import indices, offsets

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Projection:
    """What puts q and v back on their constraints (`projection_loops.py`): [M A^T; A 0], (0, -phi), (0, -psi).

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
        own = ca.symvar(ca.vertcat(self.x, self.rates, self.time, self.signals, self.parameters))
        known = {s.element_hash() for s in own}
        strangers = [str(s) for s in ca.symvar(self.residual) if s.element_hash() not in known]
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
    equations says it (`hidden.py`). Differential unknowns are in the error test; one of index 3, or algebraic, is not.
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
        found = offsets(x, rates, residual) if square else None
        return power if found is None else indices(*found)
    if not isinstance(index, Mapping):
        raise ModelError(f"index={index!r}: a mapping from names of unknowns to 1, 2 or 3 is needed")
    for name, value in index.items():
        if name not in names or value not in (1, 2, 3):
            raise ModelError(f"index={{{name!r}: {value!r}}}: names of unknowns and 1, 2 or 3 are needed")
        power[names.index(name)] = value - 1
    return power
