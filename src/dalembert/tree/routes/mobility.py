"""Mobility of links: the acceleration that a force on a link gives it, everything else being free.

Symbols: Omega_i (6, 6), a = Omega_i f for a force f on link i, order [linear, angular], in the link's frame; S, U, D, r
= -1/D as in `articulated_factor.py`; X motion transform into the link's frame.

    Omega_i = P (X Omega_parent X^T) P^T + S S^T / D        P = 1 - S U^T / D,     Omega_ground = 0

For forces f_1, f_2 that arrive at link i on their way to the ground, everything that the joints from i on contribute to
the Delassus matrix is f_1^T Omega_i f_2: six products where the sum over joints takes the depth of i. Source: Wensing,
Featherstone & Orin, ICRA 2012, sec. III; Rodriguez, Jain & Kreutz-Delgado 1992 (operational-space compliance).

In the order [angular, linear] a mobility changes frame as an articulated inertia does, the other way round.
"""

from __future__ import annotations

from dalembert.tree.articulated import NONE, Articulated
from dalembert.tree.articulated_factor import ArticulatedFactor, Pivot
from dalembert.tree.scalars import Scalar, add, mul, sub, total
from dalembert.tree.screws import Pair

Square = list[list[Scalar]]
"""Omega by its rows."""


class Mobilities:
    """Omega of links, made when asked for and kept: a pass outward to the link."""

    def __init__(self, factor: ArticulatedFactor) -> None:
        self.factor = factor
        self.known: dict[int, Square] = {}

    def __getitem__(self, link: int) -> Square:
        for i in reversed(self.factor.tree.ancestors(link)):
            if i not in self.known:
                parent = self.factor.tree.links[i].parent
                Omega = _full(NONE) if parent < 0 else _into(self.factor, i, self.known[parent])
                for pivot in reversed(self.factor.links[i]):
                    Omega = _freed(Omega, pivot)
                self.known[i] = Omega
        return self.known[link]


def times(Omega: Square, f: Pair) -> list[Scalar]:
    """Return Omega f."""
    entries = [*f[0], *f[1]]
    return [total(*map(mul, row, entries)) for row in Omega]


def along(a: list[Scalar], f: Pair) -> Scalar:
    """Return a . f."""
    return total(*map(mul, a, [*f[0], *f[1]]))


def _into(factor: ArticulatedFactor, i: int, Omega: Square) -> Square:
    """Return X Omega X^T."""
    swapped = _swapped(Omega)
    for element in factor.posed[i].path:
        swapped = swapped.out(element.inverse())
    return _full(swapped)


def _freed(Omega: Square, pivot: Pivot) -> Square:
    """Return P Omega P^T + S S^T / D; along a unit axis without armature U/D is one, and P has a zero there."""
    weights = [0.0 if k == pivot.axis else w for k, w in enumerate(pivot.scaled)]
    y = [total(*map(mul, row, weights)) for row in Omega]
    inner = sub(total(*map(mul, weights, y)), pivot.r)
    result = [list(row) for row in Omega]
    if pivot.axis is not None:
        k = pivot.axis
        for j in range(6):
            result[k][j] = result[j][k] = y[j]
        result[k][k] = inner
        return result
    S = dict(pivot.column)
    for i in range(6):
        for j in range(6):
            terms = mul(S.get(i, 0.0), y[j]), mul(S.get(j, 0.0), y[i]), mul(S.get(i, 0.0) * S.get(j, 0.0), inner)
            result[i][j] = add(result[i][j], total(*terms))
    return result


def _swapped(Omega: Square) -> Articulated:
    """Return Omega in the order [angular, linear] by its upper triangle."""
    upper = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    A = tuple(Omega[i + 3][j + 3] for i, j in upper)
    C = tuple(Omega[i][j] for i, j in upper)
    B = tuple(tuple(Omega[i + 3][j] for i in range(3)) for j in range(3))
    return Articulated(A, B, C)  # type: ignore[arg-type]


def _full(swapped: Articulated) -> Square:
    """Return the rows of Omega in the order [linear, angular]."""
    return [[swapped.entry((i + 3) % 6, (j + 3) % 6) for j in range(6)] for i in range(6)]
