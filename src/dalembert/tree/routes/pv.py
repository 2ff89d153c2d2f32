"""Route "pv": the Delassus matrix in O(n + m^2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dalembert.kkt.expressions.scalars import add, mul, neg, sub, total
from dalembert.kkt.expressions.sparse_factor import Vector
from dalembert.tree.algebra.articulated import NONE, Articulated
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algorithms.dynamics import REST, ArticulatedFactor, Pivot
from dalembert.tree.block.articulated_system import TreeSystem, scaled
from dalembert.tree.prepared.configuration import pair_add
from dalembert.types import Scalar

# ----------------------------------------------------------------------------------------------------------------------
# Mobility of links: the acceleration that a force on a link gives it, everything else being free.
#
# Symbols: Omega_i (6, 6), a = Omega_i f for a force f on link i, order [linear, angular], in the link's frame; S, U, D,
# r = -1/D as in `algorithms/dynamics.py`; X motion transform into the link's frame.
#
#     Omega_i = P (X Omega_parent X^T) P^T + S S^T / D        P = 1 - S U^T / D,     Omega_ground = 0
#
# For forces f_1, f_2 that arrive at link i on their way to the ground, everything that the joints from i on contribute
# to the Delassus matrix is f_1^T Omega_i f_2: six products where the sum over joints takes the depth of i. Source:
# Wensing, Featherstone & Orin, ICRA 2012, sec. III; Rodriguez, Jain & Kreutz-Delgado 1992 (operational-space
# compliance).
#
# In the order [angular, linear] a mobility changes frame as an articulated inertia does, the other way round.


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


# ----------------------------------------------------------------------------------------------------------------------
# Route "pv": the Delassus matrix in O(n + m^2).
#
# Symbols: F_r^i force of row r as it arrives at link i, u_r heights that it leaves at joints, D pivots, Omega_i
# mobility; a *stop* is a link where rows begin or paths of rows join, a *bundle* the rows that travel together.
#
# - A bundle of up to six rows travels link by link and adds u_r u_s / D to the Delassus matrix at every joint.
# - Where a larger one forms, all of its pairs get what the joints from there on contribute at once, F_r . Omega F_s,
#   and are done with. The bundle travels on as one: six unit forces go through the links to the next stop, which gives
#   a 6 x 6 propagator P, and every row hops, F^(next stop) = P^T F. Nearly at the ground it is shorter to go on as
#   before.
#
# No link is passed more than six times, there are fewer than 2 m stops, each row makes one hop of 36 products at each,
# and every pair is done with once: O(n) + O(m^2). A row that acts on a joint is a force on the parent's link, and what
# its joint itself contributes is added where other rows pass that joint. Source: A. Sathya, W. Decre, J. Swevers,
# "PV-OSIMr: a lowest order complexity algorithm for computing the Delassus matrix", IEEE RA-L 2024.


Rows = dict[int, Pair]
"""Forces by row, all at one link."""

ALONE = 6
"""As many rows as a 6 x 6 propagator has columns travel by themselves."""

NEAR = 12
"""Bundles with no more velocities than this before them go on link by link: a pair costs six products by Omega, and 36
for each of its rows."""

UNITS: list[Pair] = [
    tuple(tuple(1.0 if 3 * half + k == axis else 0.0 for k in range(3)) for half in range(2))  # type: ignore[misc]
    for axis in range(6)
]


@dataclass(eq=False)
class Bundle:
    """Rows that travel together; `done` where all that their pairs will ever get has been added."""

    rows: Rows = field(default_factory=dict)
    done: bool = False


@dataclass(eq=False)
class Stop:
    """A link where rows begin, bundles come in, or rows act on the link's joint (heights that they leave there)."""

    begin: Rows = field(default_factory=dict)
    bundles: list[Bundle] = field(default_factory=list)
    joint: dict[int, Vector] = field(default_factory=dict)


def delassus_by_hops(system: TreeSystem) -> list[list[Scalar]]:
    """Return G (m, m)."""
    return _Hops(system).run()


class _Hops:
    """One pass inward over the stops."""

    def __init__(self, system: TreeSystem) -> None:
        m = len(system.forces)
        self.system, self.mass, self.tree = system, system.mass, system.tree
        self.G: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
        self.Omega = Mobilities(system.mass)
        self.r = system.mass.r

    def run(self) -> list[list[Scalar]]:
        """Return G."""
        stops = _stops(self.system)
        for i in sorted(stops, reverse=True):
            stop = stops[i]
            bundle = self._join(i, [Bundle(stop.begin), *stop.bundles])
            links = [i]
            for parent in self.tree.ancestors(i)[1:]:
                if parent in stops:
                    break
                links.append(parent)
            if stop.joint:
                self._meet_on_joint(stop.joint, self._step(i, bundle))
                links = links[1:]
            self._carry(bundle, links)
            target = self.tree.links[links[-1] if links else i].parent
            if target >= 0:
                stops[target].bundles.append(bundle)
        return self.G

    def _join(self, i: int, bundles: list[Bundle]) -> Bundle:
        """Return all rows that meet at link i as one bundle."""
        together: Rows = {}
        for bundle in bundles:
            for r, F in bundle.rows.items():
                together[r] = pair_add(together[r], F) if r in together else F
        before = sum(len(self.tree.links[j].axes) for j in self.tree.ancestors(i))
        if not any(bundle.done for bundle in bundles) and (len(together) <= ALONE or before <= NEAR):
            return Bundle(together)
        self._meet(bundles, self.Omega[i])
        return Bundle(together, done=True)

    def _meet(self, bundles: list[Bundle], Omega: Square) -> None:
        """Add what all pairs that are not done with have in common from here on."""
        before: list[tuple[int, list[Scalar]]] = []
        for bundle in bundles:
            moved = [(r, times(Omega, F)) for r, F in bundle.rows.items()]
            for r, a in before:
                for s, F in bundle.rows.items():
                    value = along(a, F)
                    self._add(r, s, add(value, value) if r == s else value)
            if not bundle.done:
                for r, a in moved:
                    for s, F in bundle.rows.items():
                        if s <= r:
                            self._add(r, s, along(a, F))
            before += moved

    def _carry(self, bundle: Bundle, links: Sequence[int]) -> None:
        """Take a bundle through links."""
        if not bundle.done or len(links) < 2:
            for i in links:
                self._step(i, bundle)
            return
        unit = Bundle(dict(enumerate(UNITS)), done=True)
        for i in links:
            self._step(i, unit)
        bundle.rows = {r: _mixed([*F[0], *F[1]], list(unit.rows.values())) for r, F in bundle.rows.items()}

    def _step(self, i: int, bundle: Bundle) -> dict[int, Vector]:
        """Take a bundle through one link; return the heights that its rows leave at the joint."""
        passed = {r: self.mass.passed(i, F, {}) for r, F in bundle.rows.items()}
        bundle.rows = {r: F for r, (_, F) in passed.items()}
        heights = {r: u for r, (u, _) in passed.items()}
        if not bundle.done:
            self._meet_within(heights)
        return heights

    def _meet_within(self, heights: dict[int, Vector]) -> None:
        """Add what a joint contributes to all pairs of rows."""
        for r, x in heights.items():
            scaled_x = {k: mul(value, self.r[k]) for k, value in x.items()}
            for s, y in heights.items():
                if s <= r:
                    self._add(r, s, neg(total(*(mul(scaled_x[k], y[k]) for k in x))))

    def _meet_on_joint(self, acting: dict[int, Vector], passing: dict[int, Vector]) -> None:
        """Add what a joint contributes to rows that act on it, with each other and with those that pass."""
        self._meet_within(acting)
        for r, x in acting.items():
            for s, y in passing.items():
                value = neg(total(*(mul(mul(x[k], y[k]), self.r[k]) for k in x)))
                self._add(r, s, add(value, value) if r == s else value)

    def _add(self, r: int, s: int, value: Scalar) -> None:
        self.G[r][s] = self.G[s][r] = add(self.G[r][s], value)


def _mixed(weights: list[Scalar], columns: list[Pair]) -> Pair:
    """Return the sum of columns times weights."""
    result = REST
    for weight, column in zip(weights, columns, strict=True):
        result = pair_add(result, scaled(weight, column))
    return result


def _stops(system: TreeSystem) -> dict[int, Stop]:
    """Return the stops with the rows that begin there."""
    stops: dict[int, Stop] = defaultdict(Stop)
    carriers = {link.v + k: i for i, link in enumerate(system.tree.links) for k in range(len(link.axes))}
    for r, row in enumerate(system.forces):
        forces: dict[int, Vector] = defaultdict(dict)
        for k, value in row.joints.items():
            forces[carriers[k]][k] = value
        starts = [(i, scaled(-1.0, F)) for i, F in row.links.items()]
        for i, tau in forces.items():
            stops[i].joint[r], share = system.mass.passed(i, REST, tau)
            starts.append((system.tree.links[i].parent, share))
        for i, F in starts:
            if i >= 0:
                begin = stops[i].begin
                begin[r] = pair_add(begin[r], F) if r in begin else F
    ways: dict[int, set[int]] = defaultdict(set)
    for i in list(stops):
        path = system.tree.ancestors(i)
        for child, parent in pairwise(path):
            ways[parent].add(child)
    for i, children in ways.items():
        if len(children) > 1:
            stops[i] = stops[i]
    return stops
