"""What most states need, in one call: factor, and where rows are independent solve, and measure the answer.

To enter compiled code with fifty arrays costs microseconds, as much as a dozen bodies.
"""

from __future__ import annotations

from numba import njit

from dalembert.tree.large.balance import largest_of_each
from dalembert.tree.large.front_loops import factor
from dalembert.tree.large.front_solve import solve
from dalembert.tree.large.outward import COMPILED
from dalembert.tree.large.residuals import residuals


@njit(**COMPILED)
def plain_answer(
    topology, gathering, pitch, inertia, armature, K, kinds, ids, at, run, touches, couplings, merges, width, narrow,
    ends, linear, owner, owners, present, wrenches, shift, need, tau, c, limits,
    T, Y, A, L, F, phi, closed, forces, coupled, worst, g, pivots, y, a, lam, left, gap,
):  # fmt: skip
    """Return whether joints and the rows that are `present` have pivots; if so, both residuals of a (nv,), lam (m,)."""
    massive, implied, accept = limits
    factor(
        topology, gathering, pitch, inertia, armature, K, kinds, ids, at, touches, couplings, merges, wrenches, shift,
        T, Y, L, F, phi, closed, g, pivots, worst, width, narrow, run,
    )  # fmt: skip
    scale = largest_of_each(owner, owners, g)
    clear = worst[0] > massive
    for row in range(len(g)):
        clear &= pivots[row] > implied * scale[row] or not present[row]
    if not clear:
        return False, 0.0, 0.0
    y[:] = c
    solve(topology, gathering, pitch, K, kinds, ids, at, run, Y, phi, closed, need, tau, y, T, a, lam, A)
    one, two = residuals(
        topology, gathering, pitch, inertia, armature, K, Y, True, ends, linear, wrenches, need, tau, c, a, lam, g,
        A, forces, coupled, T, left, gap, accept,
    )  # fmt: skip
    return True, one, two
