"""How far an answer is from both block rows: Newton-Euler with it, and the rows' accelerations, in one call.

Neither knows the factors. Where the first is not small entry by entry it is measured in other ways that are as honest:
in sum (`balance.py`), and beside |M| |a| + |A|^T |lam| + |tau| (`backward.py`).
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import loop
from dalembert.tree.large.backward import backward_error
from dalembert.tree.large.balance import imbalance, imbalance_in_sum, joint_forces, relative
from dalembert.tree.large.inward import spread
from dalembert.tree.large.outward import COMPILED

FINE = 1e-13
"""A residual up to this is as good as any; above it another measure, or another solve, may be worth its time."""


@loop(**COMPILED)
def residuals(
    topology, gathering, pitch, inertia, armature, K, Y, weighed, ends, linear, wrenches, need, tau, c, a, lam, g,
    A, forces, coupled, T, left, gap, accept,
):  # fmt: skip
    """Return both relative residuals of a, lam; what is left goes to left (nv,) and gap (2, m)."""
    spread(topology, pitch, K, a, A)
    return measured(
        topology, gathering, pitch, inertia, armature, K, Y, weighed, ends, linear, wrenches, need, tau, c, a, lam, g,
        A, forces, coupled, T, left, gap, accept,
    )  # fmt: skip


@loop(**COMPILED)
def measured(
    topology, gathering, pitch, inertia, armature, K, Y, weighed, ends, linear, wrenches, need, tau, c, a, lam, g,
    A, forces, coupled, T, left, gap, accept,
):  # fmt: skip
    """Return both residuals where A (n, 6) are the accelerations of bodies for a.

    left (nv,) gets tau - M a - A^T lam, gap (2, m) gets c - A a and its size.
    """
    joint_forces(ends, wrenches, c, lam, A, forces, gap)
    row, place, factor = linear
    if len(row):
        coupled[:] = 0.0
    for k in range(len(row)):
        coupled[place[k]] += factor[k] * lam[row[k]]
        gap[0, row[k]] -= factor[k] * a[place[k]]
        gap[1, row[k]] += abs(factor[k] * a[place[k]])
    here = np.zeros((2, 6))
    one = imbalance(topology, gathering, pitch, inertia, armature, K, A, need, forces, tau, a, coupled, T, left, here)
    if not one <= FINE:
        in_sum = imbalance_in_sum(
            topology, gathering[2], pitch, inertia, armature, K, Y, weighed, A, need, forces, tau, a, coupled, left,
            here[0],
        )  # fmt: skip
        one = min(one, in_sum) if in_sum >= 0.0 else in_sum
    if one > accept:
        one = min(one, backward_error(
            topology, gathering, pitch, inertia, armature, K, need, forces, tau, a, coupled, T, A, left
        ))  # fmt: skip
    return one, relative(gap[0], gap[1], g)
