"""Route "pv": the Delassus matrix in O(n + m^2).

Symbols: F_r^i force of row r as it arrives at link i, Omega_i mobility; a *stop* is a link where rows begin or paths of
rows join. Rows join pairwise at stops, and what the joints from there on contribute is F_r . Omega F_s, as in
`propagators.py`. Between two stops no row is asked for anything; so there

- up to six rows travel by themselves,
- more than six travel as one: six unit forces go through the links between, which gives a 6 x 6 propagator P, and every
  row hops, F^(next stop) = P^T F.

No link is passed more than six times, there are fewer than 2 m stops, and each row makes one hop of 36 products at each:
O(n) + O(m^2). A row that acts on a joint is a force on the parent's link, and what its joint itself contributes is added
where other rows pass that joint. Source: A. Sathya, W. Decre, J. Swevers, "PV-OSIMr: a lowest order complexity algorithm
for computing the Delassus matrix", IEEE RA-L 2024 (there with constraints compressed in the inward pass).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from dalembert.tree.articulated_factor import REST
from dalembert.tree.articulated_system import TreeSystem, scaled
from dalembert.tree.routes.mobility import Square, along, mobilities, times
from dalembert.tree.scalars import Scalar, add, mul, neg, total
from dalembert.tree.screws import Pair
from dalembert.tree.sparse_factor import Vector
from dalembert.tree.sweep import pair_add

Rows = dict[int, Pair]
"""Forces by row, all at one link."""

ALONE = 6
"""As many rows as a 6 x 6 propagator has columns travel by themselves."""

UNITS: list[Pair] = [
    tuple(tuple(1.0 if 3 * half + k == axis else 0.0 for k in range(3)) for half in range(2))  # type: ignore[misc]
    for axis in range(6)
]


@dataclass(eq=False)
class Stop:
    """A link where rows begin, bundles of rows come in by different ways, or rows act on the link's joint.

    Attributes
    ----------
    begin
        Forces of rows that begin here.
    bundles
        Rows that came in, filled in as the pass goes inward.
    joint
        Per row that acts on the joint the heights that it leaves there.
    """

    begin: Rows = field(default_factory=dict)
    bundles: list[Rows] = field(default_factory=list)
    joint: dict[int, Vector] = field(default_factory=dict)


def delassus_by_hops(system: TreeSystem) -> list[list[Scalar]]:
    """Return G (m, m)."""
    m = len(system.forces)
    G: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
    stops = _stops(system)
    Omega = mobilities(system.mass, stops)
    for i in sorted(stops, reverse=True):
        stop = stops[i]
        rows, links = _meet(G, stop, Omega[i]), _way(system, stops, i)
        if stop.joint:
            passed = {r: system.mass.passed(i, F, {}) for r, F in rows.items()}
            _meet_on_joint(system, G, stop.joint, {r: heights for r, (heights, _) in passed.items()})
            rows, links = {r: F for r, (_, F) in passed.items()}, links[1:]
        target = system.tree.links[links[-1] if links else i].parent
        if target >= 0:
            stops[target].bundles.append(_carried(system, rows, links))
    return G


def _stops(system: TreeSystem) -> dict[int, Stop]:
    """Return the stops with the rows that begin there."""
    stops: dict[int, Stop] = defaultdict(Stop)
    carriers = {link.v + k: i for i, link in enumerate(system.tree.links) for k in range(len(link.axes))}
    for r, row in enumerate(system.forces):
        own: dict[int, Vector] = defaultdict(dict)
        for k, value in row.joints.items():
            own[carriers[k]][k] = value
        starts = [(i, scaled(-1.0, F)) for i, F in row.links.items()]
        for i, tau in own.items():
            stops[i].joint[r], share = system.mass.passed(i, REST, tau)
            starts.append((system.tree.links[i].parent, share))
        for i, F in starts:
            if i >= 0:
                begin = stops[i].begin
                begin[r] = pair_add(begin[r], F) if r in begin else F
    ways: dict[int, set[int]] = defaultdict(set)
    for i in list(stops):
        path = system.tree.ancestors(i)
        for child, parent in zip(path, path[1:], strict=False):
            ways[parent].add(child)
    for i, children in ways.items():
        if len(children) > 1:
            stops[i] = stops[i]
    return stops


def _way(system: TreeSystem, stops: dict[int, Stop], i: int) -> list[int]:
    """Return the links that rows pass from stop i on, the next stop (or the ground) not included."""
    links = [i]
    for parent in system.tree.ancestors(i)[1:]:
        if parent in stops:
            break
        links.append(parent)
    return links


def _carried(system: TreeSystem, rows: Rows, links: Sequence[int]) -> Rows:
    """Return the forces as they arrive at the next stop."""
    if len(rows) <= ALONE or len(links) < 2:
        return {r: _through(system, F, links) for r, F in rows.items()}
    columns = [_through(system, unit, links) for unit in UNITS]
    return {r: _mixed([*F[0], *F[1]], columns) for r, F in rows.items()}


def _through(system: TreeSystem, F: Pair, links: Sequence[int]) -> Pair:
    for i in links:
        _, F = system.mass.passed(i, F, {})
    return F


def _mixed(weights: list[Scalar], columns: list[Pair]) -> Pair:
    result = REST
    for weight, column in zip(weights, columns, strict=True):
        result = pair_add(result, scaled(weight, column))
    return result


def _meet(G: list[list[Scalar]], stop: Stop, Omega: Square) -> Rows:
    """Add what rows that join here have in common from here on; return all rows, two ends of one as one."""
    together = dict(stop.begin)
    moved = {r: times(Omega, F) for r, F in together.items()}
    for r in together:
        for s in together:
            if s <= r:
                _add(G, r, s, along(moved[r], together[s]))
    for bundle in stop.bundles:
        for r in together:
            moved[r] = moved[r] if r in moved else times(Omega, together[r])
            for s, F in bundle.items():
                value = along(moved[r], F)
                _add(G, r, s, add(value, value) if r == s else value)
        for s, F in bundle.items():
            together[s] = pair_add(together[s], F) if s in together else F
            moved.pop(s, None)
    return together


def _meet_on_joint(
    system: TreeSystem, G: list[list[Scalar]], acting: dict[int, Vector], passing: dict[int, Vector]
) -> None:
    """Add what a joint itself contributes to rows that act on it, with each other and with those that pass."""
    r_ = system.mass.r

    def shared(x: Vector, y: Vector) -> Scalar:
        return neg(total(*(mul(mul(x[k], y[k]), r_[k]) for k in x)))

    for r, x in acting.items():
        for s, y in acting.items():
            if s <= r:
                _add(G, r, s, shared(x, y))
        for s, y in passing.items():
            value = shared(x, y)
            _add(G, r, s, add(value, value) if r == s else value)


def _add(G: list[list[Scalar]], r: int, s: int, value: Scalar) -> None:
    G[r][s] = G[s][r] = add(G[r][s], value)
