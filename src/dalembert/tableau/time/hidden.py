"""Hidden constraints of a general DAE: its equations differentiated as often as the structure asks.

Symbols: c_i how often equation i is differentiated, d_j the highest derivative of unknown j that then appears (Pryce's
offsets, `tableau/signature.py`). All of F_i^(k) = 0, k = 0 ... c_i, hold at a consistent point (C. C. Pantelides, SIAM
J. Sci. Stat. Comput. 9 (1988) 213-231; J. D. Pryce, BIT 41 (2001) 364-394); those with k > 0 are not written in F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.tableau.signature import signature
from dalembert.tableau.tableau import Tableau

if TYPE_CHECKING:
    from dalembert.tableau.time.dae import DAE
    from dalembert.tableau.time.known import Signals

Array = np.ndarray

WORDS = {0: "{}", 1: "rate of {} (hidden)", 2: "second rate of {} (hidden)"}


def offsets(x: ca.SX, rates: ca.SX, residual: ca.SX) -> tuple[Array, Array] | None:
    """Return c and d; None where equations and unknowns cannot be matched, and nothing can be said."""
    own = {s.element_hash() for s in ca.symvar(ca.vertcat(x, rates))}
    others = [s for s in ca.symvar(residual) if s.element_hash() not in own]
    if others:
        residual = ca.substitute(residual, ca.vertcat(*others), ca.SX(np.linspace(0.6, 0.7, len(others))))
    present = {s.element_hash() for s in ca.symvar(residual)}
    names = [f"x{j}" for j in range(x.numel())]
    differential = {name: r for name, r in zip(names, ca.vertsplit(rates), strict=True) if r.element_hash() in present}
    rows = {f"e{i}": row for i, row in enumerate(ca.vertsplit(residual))}
    try:
        tableau = Tableau(rows, dict(zip(names, ca.vertsplit(x), strict=True)), differential)
        found = signature(tableau)
    except SolvabilityError:
        return None
    if len(tableau.equations) != len(rows):
        return None
    return found.equation_offsets, found.unknown_offsets


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
    found = offsets(dae.x, dae.rates, dae.residual)
    if found is None:
        return _levels(dae, signals, np.zeros(dae.n, int), dae.differential.astype(int), "the structure is singular")
    deep = _levels(dae, signals, *found, "")
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
        own = [WORDS.get(k, f"derivative {k} of {{}} (hidden)").format(dae.equations[i]) for i in places]
        names += own
        hidden += [name for name, i in zip(own, places, strict=True) if plain[i]]
        algebraic += [plain[i] for i in places]
    rows = ca.vertcat(*parts)
    called = [s[i] for s in inputs[1:] for i, _ in signals.callables]
    if called and ca.depends_on(rows, ca.vertcat(*called)):
        return None
    z = ca.vertcat(*columns)
    given = [z, dae.time, ca.vertcat(*inputs), dae.parameters]
    f = ca.Function("levels", given, [rows, ca.densify(ca.jacobian(rows, z))])
    return Levels(tuple(names), tuple(hidden), np.array(algebraic, bool), orders, d, f, signals, unchecked)
