"""Conditions: equations without unknowns, which known data fulfil or contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from dalembert.tableau.tableau import Tableau

Array = np.ndarray

FULFILLED = 1e-9
"""Violation of a condition, as a part of the sizes of its terms, that given data to ten digits may have."""

LEAST = 1e-4
"""Part of the largest sizes of terms that every condition has at least."""


def violations(tableau: Tableau, others: list[Array]) -> dict[str, Float[Array, " N"]]:
    """Return, per condition c(u, t) = 0, |c| over sum_j |dc/du_j u_j|, every sample; at most FULFILLED is fulfilled.

    Conditions with rates of variables that are known at one instant only say nothing about it and are left out. The sum
    is at least LEAST times the largest of all conditions: one that cancels to rounding whatever the data (a direction
    across a planar loop) is fulfilled. Where all sums are zero, |c| itself is returned.
    """
    names = [name for name, row in tableau.conditions.items() if _readable(tableau, row)]
    if not names:
        return {}
    rows = ca.vertcat(*[tableau.conditions[name] for name in names])
    inputs = [s for s in (tableau.u, tableau.time, tableau.parameters.column) if s.numel()]
    column = ca.vertcat(*inputs)
    sizes = ca.mtimes(ca.fabs(ca.jacobian(rows, column)), ca.fabs(column))
    f = ca.Function("conditions", inputs, [rows, sizes])
    count = len(others[0]) if others else 1
    found = []
    for k in range(count):
        value, size = (np.array(each, dtype=float).ravel() for each in f(*[other[k] for other in others]))
        size = np.maximum(size, LEAST * size.max(initial=0.0))
        found.append(np.abs(value) / np.where(size > 0.0, size, 1.0))
    return dict(zip(names, np.array(found).T, strict=True))


def _readable(tableau: Tableau, row: ca.SX) -> bool:
    """Whether a condition contains inputs, time and parameters only."""
    own = ca.vertcat(tableau.u, tableau.time, tableau.parameters.column)
    known = {s.element_hash() for s in ca.vertsplit(own)} if own.numel() else set()
    return all(s.element_hash() in known for s in ca.symvar(row))
