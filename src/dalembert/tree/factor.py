"""M = L^T D L along the tree: no fill beyond M's own zeros between branches.

Symbols (Featherstone 2008, sec. 6.5): L unit lower triangular, D diagonal; lambda(i) the velocity before i on the way
to the ground, -1 at the end. M_ij is zero unless one of i, j comes before the other, and so is L_ij.
"""

from __future__ import annotations

from dataclasses import dataclass

from dalembert.errors import ModelError
from dalembert.tree.link import Tree
from dalembert.tree.scalars import Scalar, add, minus_inverse, mul, neg, sub


def velocity_parents(tree: Tree) -> list[int]:
    """Return lambda: per velocity the one before it, within its joint or of the link that carries it."""
    parents = [-1] * tree.nv
    for link in tree.links:
        for place in range(len(link.axes)):
            if place:
                parents[link.v + place] = link.v + place - 1
            elif link.parent >= 0:
                carrier = tree.links[link.parent]
                parents[link.v] = carrier.v + len(carrier.axes) - 1
    return parents


@dataclass(frozen=True)
class Factor:
    """L below the diagonal (rows of scalars), r = -1/D, and lambda."""

    L: list[list[Scalar]]
    r: list[Scalar]
    parents: list[int]

    def back(self, b: list[Scalar]) -> list[Scalar]:
        """Return y with L^T y = b."""
        y = list(b)
        for k in reversed(range(len(y))):
            i = self.parents[k]
            while i >= 0:
                y[i] = sub(y[i], mul(self.L[k][i], y[k]))
                i = self.parents[i]
        return y

    def forth(self, y: list[Scalar]) -> list[Scalar]:
        """Return x with L x = y."""
        x = list(y)
        for k in range(len(x)):
            i = self.parents[k]
            while i >= 0:
                x[k] = sub(x[k], mul(self.L[k][i], x[i]))
                i = self.parents[i]
        return x

    def solve(self, b: list[Scalar]) -> list[Scalar]:
        """Return x with M x = b."""
        y = self.back(b)
        return self.forth([neg(mul(each, r)) for each, r in zip(y, self.r, strict=True)])


def factor(M: list[list[Scalar]], parents: list[int], names: tuple[str, ...]) -> Factor:
    """Return the factors of M (rows of scalars, of which the lower triangle is read)."""
    H = [list(row) for row in M]
    r: list[Scalar] = [0.0] * len(H)
    for k in reversed(range(len(H))):
        D = H[k][k]
        if type(D) is float and D <= 0.0:
            raise ModelError(
                f"nothing resists the coordinate {names[k]!r}: the mass matrix of the open tree is singular; give the "
                "link mass or armature, or constrain it and use the block form (KKT)"
            )
        r[k] = minus_inverse(D)
        i = parents[k]
        while i >= 0:
            a = mul(H[k][i], r[k])
            j = i
            while j >= 0:
                H[i][j] = add(H[i][j], mul(a, H[k][j]))
                j = parents[j]
            H[k][i] = neg(a)
            i = parents[i]
    return Factor(H, r, parents)
