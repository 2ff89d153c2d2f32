"""Routes of a mechanism that is too large to be unrolled: loops, and why; nothing is traced."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dalembert.model.route_table import RouteLine, RouteTable
from dalembert.tree.large.choice import LARGEST_UNROLLED, estimated_operations
from dalembert.tree.routes.table import ROUTES

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

UNROLLED = "not traced: straight-line code this long is compiled only with backend='cpu'"


def looped_table(mechanism: Mechanism, what: str) -> RouteTable:
    """Return the table with loops taken and the other routes named."""
    about = f"about {estimated_operations(mechanism):,} operations unrolled are more than {LARGEST_UNROLLED:,}"
    taken = RouteLine("looped", None, None, f"{about}; {_way(mechanism, what)}", competes=True, taken=True)
    costs = {name: route.cost for name, route in ROUTES.items()} if mechanism.names else {"aba": "O(n)"}
    others = [RouteLine(name, None, None, f"{UNROLLED}; {cost}") for name, cost in costs.items()]
    return RouteTable(mechanism.name, what, f"{mechanism.nv} velocities, {len(mechanism.names)} rows", (taken, *others))


def _way(mechanism: Mechanism, what: str) -> str:
    """Say how loops do it."""
    if not mechanism.names:
        return "O(n): articulated-body algorithm in compiled loops"
    if what in ("delassus", "delassus_factor"):
        return "O(n m): a column for each run of the articulated-body algorithm in compiled loops"
    system = import_module("dalembert.tree.large.quantities").large_system(mechanism)
    if system.massless is not None:
        return f"sparse LU of the block form: nothing resists {system.massless!r}, which tree routes divide by"
    if system.fronts is None:
        return "sparse LU of the block form: too many rows would be open together along the tree"
    return f"O(n + m w^2): rows eliminated inside the tree where they meet, at most w = {system.width} at once"
