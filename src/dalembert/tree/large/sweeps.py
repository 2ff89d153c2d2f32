"""The sweeps of an open tree's forward dynamics in one call: to enter compiled code costs microseconds.

What is swept is a list of steps, ranges of bodies: one range for a whole tree, many for branches on threads
(`branches.py`). All go through this one compiled function, so that their answers are the same to the bit: a compiler
that meets the same lines in two places may contract products and sums in two ways.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import loop
from dalembert.tree.large.articulate import put, stashed, taken
from dalembert.tree.large.inward import accelerations_between, articulated_between, note
from dalembert.tree.large.outward import COMPILED, LOOP, outward_between

OUTWARD, BEGIN, INWARD, TAKE, BACK = range(5)
"""Steps: motion; no pivot yet; joints eliminated; what another range handed over; accelerations."""


@loop(**COMPILED)
def forward(steps, T, handed, worst, bundle, q, sines, cosines, v, tau, ext, out):
    """Run steps (k, 4): which, begin, end, row. Accelerations under joint forces tau, forces ext on bodies go to out.

    T is memory. A row of `handed` (., 71) begins with what the last body of a range hands inward; one of
    `worst` (., 2) is the least relative pivot and its body. TAKE adds those of row `end` to a row's own, at body begin.
    """
    topology, gathering, C, pitch, inertia, armature = bundle.layout
    K, Y, A = bundle.memory
    still, start, S = bundle.still, bundle.start, np.empty((6, 6))
    for s in range(len(steps)):
        step, begin, end, row = steps[s, 0], steps[s, 1], steps[s, 2], steps[s, 3]
        if step == OUTWARD:
            outward_between(begin, end, topology, C, pitch, q, sines, cosines, v, still, start, K)
        elif step == BEGIN:
            worst[row, 0], worst[row, 1] = np.inf, -1.0
        elif step == INWARD:
            articulated_between(
                begin, end, topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst[row], handed[row],
                S,
            )  # fmt: skip
        elif step == TAKE:
            note(worst[end, 0], worst[end, 1], worst[row])
            take(begin, topology[0], gathering, handed[end], T, handed[row])
        else:
            accelerations_between(begin, end, topology, gathering, pitch, K, Y, out, A)


@loop(**LOOP)
def take(root, parent, gathering, handed, T, W):
    """Put what the subtree of `root` hands inward into W, and where its parent does not come next into its place."""
    slot, first, _ = gathering
    w = taken(handed, 0)
    stashed(w, W)
    if parent[root] >= 0 and parent[root] != root - 1:
        put(w, first[root], T, slot[parent[root]])
