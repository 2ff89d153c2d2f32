"""Route "efpa": the Delassus matrix from rows that travel to the ground as forces, in O(n + m d + m^2).

Symbols: F_r^i force of row r as it arrives at link i (the rows of an extended force propagator), u_r heights that it
leaves at joints, D pivots, Omega_i mobility. For two rows whose paths join at link b,

    G_rs = sum over common joints of u_r u_s / D  =  (the same below b) + F_r^b . Omega_b F_s^b

The sum costs the depth of b for every pair, the second form six products, after 36 for every row and one pass outward
for Omega. Both are right; for each b the shorter one is taken. Rows of loops have two ends: they may share joints below
b, which are summed. Source: P. Wensing, R. Featherstone, D. Orin, "A reduced-order recursive algorithm for the
computation of the operational-space inertia matrix", ICRA 2012 (the seed's "my paper").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dalembert.kkt.expressions.scalars import add, mul, neg, total
from dalembert.tree.block.articulated_system import ArticulatedSystem
from dalembert.tree.routes.pv import Mobilities, along, times
from dalembert.types import Scalar

PRODUCTS_OF_OMEGA = 75
"""Products that the mobility of one more link takes, about: two changes of frame and one joint."""

Meetings = dict[int, list[tuple[int, int]]]
"""Per link b the pairs of rows that join there."""


def delassus_by_propagators(system: ArticulatedSystem) -> list[list[Scalar]]:
    """Return G (m, m)."""
    m = len(system.rows)
    meetings = _meetings(system)
    chosen = _chosen(system, meetings)
    where = {pair: b for b in chosen for pair in meetings[b]}
    Omega = Mobilities(system.mass)
    above = {b: _velocities(system, system.tree.ancestors(b)) for b in chosen}
    moved = {
        (r, b): times(Omega[b], system.arrived[r][b]) for b in chosen for r in {r for pair in meetings[b] for r in pair}
    }
    G: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
    for r, row in enumerate(system.rows):
        scaled = system.mass.scaled(row)
        for s in range(r + 1):
            b = where.get((r, s))
            shared = sorted(scaled.keys() & system.rows[s].keys() - (above[b] if b is not None else set()))
            value = neg(total(*(mul(scaled[k], system.rows[s][k]) for k in shared)))
            if b is not None:
                value = add(value, along(moved[r, b], system.arrived[s][b]))
            G[r][s] = G[s][r] = value
    return G


def _meetings(system: ArticulatedSystem) -> Meetings:
    """Return where every pair of rows joins: the last link from which both go the same way, as forces."""
    carriers = {link.v + k: i for i, link in enumerate(system.tree.links) for k in range(len(link.axes))}
    joints = [{carriers[k] for k in row.joints} for row in system.forces]
    touched = [{carriers[k] for k in row} for row in system.rows]
    meetings: Meetings = defaultdict(list)
    for r in range(len(system.rows)):
        for s in range(r + 1):
            shared = touched[r] & touched[s]
            b = _join(system, shared, joints[r] | joints[s])
            if b is not None and b in system.arrived[r] and b in system.arrived[s]:
                meetings[b].append((r, s))
    return meetings


def _join(system: ArticulatedSystem, shared: set[int], joints: set[int]) -> int | None:
    """Return the deepest link on the way of all shared ones to the ground; no row acts on a joint from there on."""
    if not shared:
        return None
    paths = [system.tree.ancestors(i) for i in shared if not any(system.tree.links[j].parent == i for j in shared)]
    common = [i for i in paths[0] if all(i in path for path in paths)]
    last = max((common.index(i) for i in joints if i in common), default=-1)
    return common[last + 1] if last + 1 < len(common) else None


def _chosen(system: ArticulatedSystem, meetings: Meetings) -> list[int]:
    """Return the links at which mobilities are shorter than sums over joints, greatest gain first."""
    chosen: list[int] = []
    links: set[int] = set()

    def gain(b: int) -> int:
        rows = {r for pair in meetings[b] for r in pair}
        path = system.tree.ancestors(b)
        new = PRODUCTS_OF_OMEGA * len(set(path) - links)
        return len(meetings[b]) * (len(_velocities(system, path)) - 6) - 36 * len(rows) - new

    rest = set(meetings)
    while rest and gain(best := max(rest, key=lambda b: (gain(b), b))) > 0:
        chosen.append(best)
        links |= set(system.tree.ancestors(best))
        rest.remove(best)
    return chosen


def _velocities(system: ArticulatedSystem, links: Iterable[int]) -> set[int]:
    """Return the places of the velocities of links."""
    chain = (system.tree.links[i] for i in links)
    return {link.v + k for link in chain for k in range(len(link.axes))}
