"""The rows of a mechanism as forces on its links, and the way between them and the user's rows.

Rows between frames are made in the axes of the frame that they name first (`row_forces.py`); three rows that the user
has in world axes are turned: right sides on the way in, multipliers on the way out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalembert.model.constraints.constraint import Constraint
from dalembert.tree.articulated_system import Load, scaled
from dalembert.tree.passive import joint_resistance, spring_forces
from dalembert.tree.rnea import Motion, accelerations, body_forces
from dalembert.tree.routes.wrench_rows import WrenchRows, wrench_rows
from dalembert.tree.row_forces import RowForce, TreeMotion
from dalembert.tree.scalars import Scalar, mul, neg, sub, total
from dalembert.tree.screws import Pair
from dalembert.tree.sparse_factor import Vector
from dalembert.tree.sweep import pair_add

if TYPE_CHECKING:
    from dalembert.tree.constrained import Setting


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
    def of(cls, setting: Setting) -> TreeRows:
        """Make the rows of a mechanism at the symbols q, v, t."""
        q, v, t = (setting.column(name) for name in ("q", "v", "t"))
        motions = accelerations(setting.tree.gravity, setting.posed, setting.symbol("v"), [0.0] * setting.tree.nv)
        motion = TreeMotion(setting.mechanism, setting.tree, setting.posed, q, v, t, motions)
        groups = [(each, motion.rows(each)) for each in setting.mechanism.all_constraints]
        return cls(motion, groups, [None] * len(groups))

    def in_short_bases(self, setting: Setting) -> TreeRows:
        """Return the rows of welds in the basis with the shortest code; not for `in_world`."""
        bases = [wrench_rows(setting, rows) for _, rows in self.groups]
        pairs = zip(self.groups, bases, strict=True)
        return TreeRows(self.motion, [(each, basis.rows if basis else rows) for (each, rows), basis in pairs], bases)

    @property
    def forces(self) -> list[RowForce]:
        """All rows."""
        return [row for _, rows in self.groups for row in rows]

    @property
    def c(self) -> list[Scalar]:
        """What A a must be along a motion: minus the drift."""
        return [neg(row.drift) for row in self.forces]

    def load(self, setting: Setting) -> Load:
        """Return what acts in the state (q, v) under tau: velocity, gravity, springs and dampers included."""
        tree, posed, motions = setting.tree, setting.posed, list[Motion](self.motion.motions)
        q, v, tau = (setting.symbol(name) for name in ("q", "v", "tau"))
        pairs = zip(body_forces(tree, motions), spring_forces(tree, posed, v), strict=True)
        resist = joint_resistance(tree, posed, q, v)
        return Load([pair_add(*pair) for pair in pairs], [sub(*pair) for pair in zip(tau, resist, strict=True)])

    def to_world(self, lam: list[Scalar]) -> list[Scalar]:
        """Return multipliers as the user's rows have them."""
        result: list[Scalar] = []
        for (constraint, rows), basis in zip(self.groups, self.bases, strict=True):
            own = lam[len(result) : len(result) + len(rows)]
            result += self.motion.in_world(constraint, basis.multipliers(own) if basis else own)
        return result

    def from_world(self, c: list[Scalar]) -> list[Scalar]:
        """Return right sides of the user's rows as these rows have them."""
        result: list[Scalar] = []
        for (constraint, rows), basis in zip(self.groups, self.bases, strict=True):
            own = self.motion.from_world(constraint, c[len(result) : len(result) + len(rows)])
            result += basis.right(own) if basis else own
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
