"""Constraint rows as forces on the links of a tree, wrenches of welded links among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dalembert.kkt.expressions.scalars import mul, neg, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.limits import EXACT_SUM
from dalembert.tree.algebra.articulated import along, articulated
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algorithms.dynamics import columns
from dalembert.tree.algorithms.inverse import LinkMotion, accelerations, body_forces
from dalembert.tree.algorithms.passive import joint_resistance, spring_forces
from dalembert.tree.block.articulated_system import Load, scaled
from dalembert.tree.block.row_forces import RowForce, TreeMotion
from dalembert.tree.prepared.configuration import pair_add
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.tree.block.constrained import Tracing

# ----------------------------------------------------------------------------------------------------------------------
# A link welded to the ground: its six rows as wrenches of the link, the joint that carries it apart from the others.
#
# Symbols: F (6, 6) wrenches of the rows on their link, constants; S the joint's unit axis, U = I S, D = S^T U for a
# link that carries no other (`algorithms/dynamics.py`).
#
# A weld holds all six directions, so any basis of wrenches B serves as well: rows T A with T = B F^-1, right sides T c,
# multipliers lam = T^T lam'. Two kinds of wrenches spare work:
#
#     S^T e = 0       the joint does not give way to it: it passes on to the link before as it is
#     U / D           the joint gives way to it and nothing is left: it ends there
#
# so B has the five unit wrenches across the joint's axis and one along U. The sixth row meets no other, and a weld
# costs what a hinge to the ground costs. Least-norm multipliers are those of the user's rows: not where rows are
# redundant.


STEEPEST = 1e3
"""Entries of U / D may be this large, 1/m: more says that the link's inertia about the axis is next to nothing."""


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


def wrench_rows(setting: Tracing, rows: list[RowForce]) -> WrenchRows | None:
    """Return the rows of a weld in the better basis; None where they are none, or the basis is no better."""
    links = {i for row in rows for i in row.links}
    if setting.needs.redundant or setting.mechanism.parameter_column is not None:
        return None
    if len(rows) != 6 or len(links) != 1 or any(row.joints for row in rows):
        return None
    (i,) = links
    entries = [[x for part in row.links[i] for x in part] for row in rows]
    if any(type(x) is not float for row in entries for x in row):
        return None
    F, B = np.array(entries), _basis(setting, i)
    if B is None or np.linalg.matrix_rank(F) < 6:
        return None
    T = B @ np.linalg.inv(F)
    T[np.abs(T) <= EXACT_SUM * np.abs(T).max()] = 0.0
    drifts = [total(*map(mul, weights, (row.drift for row in rows))) for weights in T.tolist()]
    return WrenchRows([RowForce({i: _pair(b)}, {}, drift) for b, drift in zip(B, drifts, strict=True)], T)


def _basis(setting: Tracing, i: int) -> np.ndarray | None:
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


# ----------------------------------------------------------------------------------------------------------------------
# The rows of a mechanism as forces on its links, and the way between them and the user's rows.
#
# Rows between frames are made in the axes of the frame that they name first (`row_forces.py`); three rows that the user
# has in world axes are turned: right sides on the way in, multipliers on the way out.


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Constraints with their rows, in the order of `mechanism.names`.

    Attributes
    ----------
    bases
        Per constraint the basis that its rows are in, where it is not the observer's axes.
    """

    motion: TreeMotion
    groups: list[tuple[Constraint, list[RowForce]]]
    bases: list[WrenchRows | None]

    @classmethod
    def of(cls, setting: Tracing) -> TreeRows:
        """Make the rows of a mechanism at the symbols q, v, t."""
        q, v, t = (setting.column(name) for name in ("q", "v", "t"))
        motions = accelerations(setting.tree.gravity, setting.posed, setting.symbol("v"), [0.0] * setting.tree.nv)
        motion = TreeMotion(setting.mechanism, setting.tree, setting.posed, q, v, t, motions)
        groups = [(constraint, motion.rows(constraint)) for constraint in setting.mechanism.all_constraints]
        return cls(motion, groups, [None] * len(groups))

    def in_short_bases(self, setting: Tracing) -> TreeRows:
        """Return the rows of welds in the basis with the shortest code; not for `in_world`."""
        bases = [wrench_rows(setting, rows) for _, rows in self.groups]
        pairs = zip(self.groups, bases, strict=True)
        return TreeRows(
            self.motion, [(constraint, basis.rows if basis else rows) for (constraint, rows), basis in pairs], bases
        )

    @property
    def forces(self) -> list[RowForce]:
        """All rows."""
        return [row for _, rows in self.groups for row in rows]

    @property
    def c(self) -> list[Scalar]:
        """What A a must be along a motion: minus the drift."""
        return [neg(row.drift) for row in self.forces]

    def load(self, setting: Tracing) -> Load:
        """Return what acts in the state (q, v) under tau: velocity, gravity, springs and dampers included."""
        tree, posed, motions = setting.tree, setting.posed, list[LinkMotion](self.motion.motions)
        q, v, tau = (setting.symbol(name) for name in ("q", "v", "tau"))
        pairs = zip(body_forces(tree, motions), spring_forces(tree, posed, v), strict=True)
        resist = joint_resistance(tree, posed, q, v)
        return Load([pair_add(*pair) for pair in pairs], [sub(*pair) for pair in zip(tau, resist, strict=True)])

    def to_world(self, lam: list[Scalar]) -> list[Scalar]:
        """Return multipliers as the user's rows have them."""
        result: list[Scalar] = []
        for (constraint, rows), basis in zip(self.groups, self.bases, strict=True):
            part = lam[len(result) : len(result) + len(rows)]
            result += self.motion.in_world(constraint, basis.multipliers(part) if basis else part)
        return result

    def from_world(self, c: list[Scalar]) -> list[Scalar]:
        """Return right sides of the user's rows as these rows have them."""
        result: list[Scalar] = []
        for (constraint, rows), basis in zip(self.groups, self.bases, strict=True):
            part = self.motion.from_world(constraint, c[len(result) : len(result) + len(rows)])
            result += basis.right(part) if basis else part
        return result

    def in_world(self) -> list[RowForce]:
        """Return the user's rows as forces: three rows in world axes are mixed by the rotation to the observer's."""
        return [row for constraint, rows in self.groups for row in self._mixed(constraint, rows)]

    def _mixed(self, constraint: Constraint, rows: list[RowForce]) -> list[RowForce]:
        """Return rows that are R^T e_i times these where the constraint has vectors."""
        size = len(rows)
        result = list(rows)
        for i in {start + k for start in getattr(constraint, "vectors", ()) for k in range(3)}:
            unit: list[Scalar] = [1.0 if j == i else 0.0 for j in range(size)]
            result[i] = _combined(self.motion.from_world(constraint, unit), rows)
        return result


def _combined(weights: list[Scalar], rows: list[RowForce]) -> RowForce:
    """Return the sum of rows times weights."""
    links: dict[int, Pair] = {}
    joints: Vector = {}
    for weight, row in zip(weights, rows, strict=True):
        for i, F in row.links.items():
            part = scaled(weight, F)
            links[i] = pair_add(links[i], part) if i in links else part
        for k, value in row.joints.items():
            joints[k] = total(joints.get(k, 0.0), mul(weight, value))
    return replace(rows[0], links=links, joints=joints, drift=total(*map(mul, weights, (row.drift for row in rows))))
