"""A link welded to the ground: its six rows as wrenches of the link, the joint that carries it apart from the others.

Symbols: F (6, 6) wrenches of the rows on their link, constants; S the joint's unit axis, U = I S, D = S^T U for a link
that carries no other (`articulated_factor.py`).

A weld holds all six directions, so any basis of wrenches B serves as well: rows T A with T = B F^-1, right sides T c,
multipliers lam = T^T lam'. Two kinds of wrenches spare work:

    S^T e = 0       the joint does not give way to it: it passes on to the link before as it is
    U / D           the joint gives way to it and nothing is left: it ends there

so B has the five unit wrenches across the joint's axis and one along U. The sixth row meets no other, and a weld costs
what a hinge to the ground costs. Least-norm multipliers are those of the user's rows: not where rows are redundant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.tree.articulated import along, articulated
from dalembert.tree.articulated_factor import columns
from dalembert.tree.row_forces import RowForce
from dalembert.tree.scalars import Scalar, mul, total
from dalembert.tree.screws import Pair

if TYPE_CHECKING:
    from dalembert.tree.constrained import Setting

STEEPEST = 1e3
"""Entries of U / D may be this large, 1/m: more says that the link's inertia about the axis is next to nothing."""

ROUNDING = 8 * np.finfo(float).eps
"""Entries of T this small beside the largest are zero."""


@dataclass(frozen=True, eq=False)
class WrenchRows:
    """Rows in another basis, and the matrix T that leads to it."""

    rows: list[RowForce]
    T: np.ndarray

    def right(self, c: Sequence[Scalar]) -> list[Scalar]:
        """Return T c."""
        return [total(*map(mul, row, c)) for row in self.T.tolist()]

    def multipliers(self, lam: Sequence[Scalar]) -> list[Scalar]:
        """Return T^T lam."""
        return [total(*map(mul, row, lam)) for row in self.T.T.tolist()]


def wrench_rows(setting: Setting, rows: list[RowForce]) -> WrenchRows | None:
    """Return the rows of a weld in the better basis; None where they are none, or the basis is no better."""
    links = {i for row in rows for i in row.links}
    if setting.needs.redundant or len(rows) != 6 or len(links) != 1 or any(row.joints for row in rows):
        return None
    (i,) = links
    entries = [[x for part in row.links[i] for x in part] for row in rows]
    if any(type(x) is not float for row in entries for x in row):
        return None
    F, B = np.array(entries), _basis(setting, i)
    if B is None or np.linalg.matrix_rank(F) < 6:
        return None
    T = B @ np.linalg.inv(F)
    T[np.abs(T) <= ROUNDING * np.abs(T).max()] = 0.0
    drifts = [total(*map(mul, weights, (row.drift for row in rows))) for weights in T.tolist()]
    return WrenchRows([RowForce({i: _pair(b)}, {}, drift) for b, drift in zip(B, drifts, strict=True)], T)


def _basis(setting: Setting, i: int) -> np.ndarray | None:
    """Return the wrenches (6, 6): unit ones, and U / D in the place of that along the joint's axis if U is known."""
    tree = setting.tree
    link = tree.links[i]
    (column, *more) = columns(link)
    if more or len(column) > 1:
        return None
    B, axis = np.eye(6), column[0][0]
    U = along(articulated(link.inertia), column)
    if link.armature[0] or any(other.parent == i for other in tree.links) or not U[axis] > 0:
        return B
    steep = np.array(U, dtype=float) / U[axis]
    if np.abs(steep).max() <= STEEPEST:
        B[axis] = steep
    return B


def _pair(wrench: np.ndarray) -> Pair:
    f1, f2, f3, n1, n2, n3 = wrench.tolist()
    return (f1, f2, f3), (n1, n2, n3)
