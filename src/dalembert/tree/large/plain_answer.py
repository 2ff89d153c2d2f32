"""What most states need, in one call: factor, and where rows are independent solve, and measure the answer.

Sweeps in the same direction go side by side, some hundreds of bodies at a time: what the first has found of them is
still in the caches when the second asks for it. Arguments that never change come in a bundle (`bundles.py`).
"""

from __future__ import annotations

from dalembert.kernel.loops import loop
from dalembert.tree.large.balance import forget_rounding, largest_of_each
from dalembert.tree.large.front_loops import factor
from dalembert.tree.large.front_solve import back, eliminate
from dalembert.tree.large.inward import spread_between
from dalembert.tree.large.outward import COMPILED
from dalembert.tree.large.residuals import measured


@loop(**COMPILED)
def plain_answer(bundle, present, wrenches, shift, need, tau, c, g, pivots, y, a, lam, gap):
    """Return whether joints and the rows that are `present` have pivots; if so, both residuals of a (nv,), lam (m,)."""
    topology, gathering, pitch, inertia, armature = bundle.layout
    kinds, ids, at, run, touches, couplings, merges = bundle.plan
    narrow, owners, piece = bundle.sizes
    ends, linear, owner = bundle.rows
    massive, implied, accept = bundle.limits
    K, T, Y, A, worst, still = bundle.memory
    L, F, phi, closed, places = bundle.stacks
    forces, coupled, left = bundle.room
    n = len(topology[0])
    y[:], lam[:] = c, 0.0
    for outer in range(n, 0, -piece):
        inner = max(outer - piece, 0)
        factor(
            inner, outer, topology, gathering, pitch, inertia, armature, K, kinds, ids, at, touches, couplings, merges,
            wrenches, shift, still, T, Y, L, F, phi, closed, g, pivots, worst, narrow, run, bundle.work,
        )  # fmt: skip
        eliminate(
            inner, outer, topology, gathering, pitch, K, kinds, ids, at, run, Y, phi, closed, need, tau, y, places,
            bundle.rows_work,
        )  # fmt: skip
    forget_rounding(ends, inertia, wrenches, g)
    scale = largest_of_each(owner, owners, g)
    clear = worst[0] > massive
    for row in range(len(g)):
        clear &= pivots[row] > implied * scale[row] or not present[row]
    if not clear:
        return False, 0.0, 0.0
    for inner in range(0, n, piece):
        outer = min(inner + piece, n)
        back(
            inner, outer, topology, gathering[2], pitch, K, kinds, ids, at, run, Y, phi, closed, y, a, lam, A,
            bundle.rows_work,
        )  # fmt: skip
        spread_between(inner, outer, topology, pitch, K, a, A)
    one, two = measured(
        topology, gathering, pitch, inertia, armature, K, Y, True, ends, linear, wrenches, need, tau, c, a, lam, g,
        A, forces, coupled, T, left, gap, accept,
    )  # fmt: skip
    return True, one, two
