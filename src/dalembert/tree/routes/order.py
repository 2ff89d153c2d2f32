"""Where in the tree each constraint is eliminated: decided once, before code is made, on numbers.

Symbols: L, F as in `elimination.py`; s row scales, G_ii^-1/2 (`probe.py`).

A constraint may go where its forces have come together and the joints so far can hold it alone: the smallest
eigenvalue of s L s over its rows is above `SAFE` at every probe. Probes are random configurations that meet the
constraints, and the neutral one if it is within the limits: a robot that may stand with straight knees carries its
contacts further, past the joint that saves them. Where rows are redundant, those with a part in a dependence stay open
to the ground, where the least multipliers are found as on every other route; the other rows of their constraints do
not, and the row across the plane of a planar loop, which says nothing, is left out. A configuration that is worse than
all probes shows in the pivots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.tree.judged import Needs
from dalembert.tree.needs import closed_configurations, neutral_if_met
from dalembert.tree.posed import pose_tree
from dalembert.tree.routes.elimination import Elimination, Place, eliminate
from dalembert.tree.row_forces import RowForce
from dalembert.tree.screws import Pair
from dalembert.tree.sparse_factor import Vector

if TYPE_CHECKING:
    from dalembert.tree.constrained import Setting

Array = np.ndarray

Order = dict[Place, list[int]]
"""Rows by the place at which they are eliminated."""

SAFE = 1e-4
"""Least eigenvalue of a constraint's rows that joints so far must make, relative to the whole Delassus matrix.

What is eliminated inside the tree costs accelerations as many digits as this has; four leave twelve.
"""


def elimination_order(setting: Setting, forces: list[RowForce]) -> Order:
    """Return the order, by eliminating numbers at the probes and looking at pivots."""
    needs = setting.needs
    q = np.array([*closed_configurations(setting.mechanism), *neutral_if_met(setting.mechanism)])
    numbers = _numbers(setting, forces, q)
    kept, groups = {r for r, each in enumerate(needs.dependent) if each}, setting.mechanism.row_groups
    wanted = Counter(group for r, group in enumerate(groups) if r not in kept)
    order: Order = {}

    def decide(place: Place, made: Elimination, together: dict[int, Pair]) -> Sequence[int]:
        taken: list[int] = []
        for _, rows in groupby(sorted(together), key=lambda r: groups[r]):
            group = [r for r in rows if r not in kept]
            if group and len(group) == wanted[groups[group[0]]] and _safe(made.L, group, taken, needs, len(q)):
                taken += group
        order[place] = taken
        return taken

    with np.errstate(divide="ignore", invalid="ignore"):
        eliminate(setting.tree, pose_tree(setting.tree, list(q.T)), numbers, decide, needs.idle)
    return {place: rows for place, rows in order.items() if rows}


def _safe(L: dict[int, Vector], group: list[int], taken: list[int], needs: Needs, count: int) -> bool:
    """Say whether s L s of a group, once `taken` are eliminated, is far from singular at all probes."""
    rows = [*taken, *group]
    whole = np.array([[np.broadcast_to(L[r].get(s, 0.0), count) for s in rows] for r in rows], dtype=float)
    scales = np.array([needs.row_scales[r] for r in rows])
    blocks = np.moveaxis(whole * scales[:, None, None] * scales[:, None], 2, 0)
    k = len(taken)
    own = blocks[:, k:, k:]
    if k:
        own = own - blocks[:, k:, :k] @ np.linalg.solve(blocks[:, :k, :k], blocks[:, :k, k:])
    return bool(np.isfinite(own).all() and np.linalg.eigvalsh(own).min() > SAFE)


def _numbers(setting: Setting, forces: list[RowForce], q: Array) -> list[RowForce]:
    """Return the rows with arrays, one entry per probe, for expressions; at t = 0."""
    unknown = [x for row in forces for x in _entries(row) if isinstance(x, ca.SX)]
    inputs = [setting.column(name) for name in ("q", "v", "t")]
    function = ca.Function("forces", inputs, [ca.vertcat(*unknown) if unknown else ca.SX(0, 1)])
    found = np.array([np.array(function(each, np.zeros(setting.tree.nv), 0.0)).ravel() for each in q])
    columns = iter(found.T)

    def number(x: Any) -> Any:
        return next(columns) if isinstance(x, ca.SX) else x

    result = []
    for row in forces:
        links = {i: tuple(tuple(number(x) for x in part) for part in F) for i, F in row.links.items()}
        result.append(RowForce(links, {k: number(x) for k, x in row.joints.items()}, 0.0))  # type: ignore[arg-type]
    return result


def _entries(row: RowForce) -> list[Any]:
    return [*(x for F in row.links.values() for part in F for x in part), *row.joints.values()]
