"""Routes of a mechanism that is too large to be unrolled: loops, what they take, and why; nothing is traced.

Symbols: w rows open at a body, of which e are eliminated there; k velocities of its joint. There are no lists of
instructions to count, but a plan (`large/fronts/front_plan.py`):

    a joint        60 + 170 k, as counted on chains and trees; with rows k (w^2 + 26 w) more
    a row          200, and (w + 6)^2 where it is eliminated
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.large.block_functions import refuse_no_delassus
from dalembert.large.layout import VELOCITIES
from dalembert.large.motion_functions import large_system, large_tree
from dalembert.large.requests import PER_BODY, PER_ROW, PER_VELOCITY, why_large
from dalembert.model.requests import RouteLine, RouteTable
from dalembert.tree.routes.route_table import ROUTES

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

UNROLLED = "not traced: straight-line code this long is compiled only with backend='cpu'"

WAITING = 33
"""Operations that wait for each other, per joint on the way to the ground: counted on chains of hinges."""

Figures = tuple[int | None, int | None]
"""Operations and depth; None where they show in the numbers only."""


def looped_table(mechanism: Mechanism, what: str) -> RouteTable:
    """Return the table with loops taken and the other routes named."""
    figures, way = _way(mechanism, what)
    taken = RouteLine("looped", *figures, f"{why_large(mechanism)}; {way}", competes=True, taken=True, estimated=True)
    costs = {name: route.cost for name, route in ROUTES.items()} if mechanism.names else {"aba": "O(n)"}
    others = [RouteLine(name, None, None, f"{UNROLLED}; {cost}") for name, cost in costs.items()]
    return RouteTable(mechanism.name, what, f"{mechanism.nv} velocities, {len(mechanism.names)} rows", (taken, *others))


def _way(mechanism: Mechanism, what: str) -> tuple[Figures, str]:
    """Return what loops take, and say how they do it."""
    tree, depth = _tree(large_tree(mechanism).layout)
    if not mechanism.names:
        return (tree, depth), "O(n): articulated-body algorithm in compiled loops"
    system, m = large_system(mechanism), len(mechanism.names)
    if what in ("delassus", "delassus_factor"):
        refuse_no_delassus(system)
        factor = m**3 // 3 if what == "delassus_factor" else 0
        way = "O(n m): a column for each run of the articulated-body algorithm in compiled loops"
        return ((m + 1) * tree + factor, depth), way
    if system.massless is not None:
        way = f"sparse LU of the block form: nothing resists {system.massless!r}, which tree routes divide by"
        return (None, None), way
    if system.fronts is None:
        return (None, None), "sparse LU of the block form: too many rows would be open together along the tree"
    way = f"O(n + m w^2): rows eliminated inside the tree where they meet, at most w = {system.width} at once"
    return (tree + PER_ROW * m + _fronts(system), depth), way


def _velocities(layout: Any) -> np.ndarray:
    return VELOCITIES[layout.code]


def _tree(layout: Any) -> tuple[int, int]:
    """Return operations and depth of the articulated-body algorithm."""
    before = [0] * (layout.n + 1)  # the ground's is the last
    for i, (parent, k) in enumerate(zip(layout.parent.tolist(), _velocities(layout).tolist(), strict=True)):
        before[i] = before[parent] + k
    return int(PER_BODY * layout.n + PER_VELOCITY * _velocities(layout).sum()), WAITING * max(before)


def _fronts(system: Any) -> int:
    """Return the operations that carrying and eliminating rows adds."""
    width, closed = system.fronts.open.astype(float), system.fronts.closed.astype(float)
    k = np.append(_velocities(system.layout), 0)
    return int((k * (width**2 + 26 * width)).sum() + (closed * (width + closed + 6) ** 2).sum())
