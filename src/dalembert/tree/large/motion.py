"""The motion of a state, and what rows and bodies need of it, in one call."""

from __future__ import annotations

from dalembert.kernel.loops import loop
from dalembert.tree.large.balance import needs_between
from dalembert.tree.large.outward import COMPILED, outward_between, positions_between, velocities_between

PIECE = 512
"""Bodies that are swept at a time: what one sweep finds of them is still in the caches when the next asks for it."""


@loop(**COMPILED)
def motion(bundle, q, sines, cosines, v, start):
    """Fill K with the motion of a state, P and V with places and velocities of origins, need with forces for it."""
    topology, C, pitch, inertia = bundle.layout
    K, P, V, need = bundle.memory
    still, ext, n = bundle.still, need[:0], len(C)
    for begin in range(0, n, PIECE):
        end = min(begin + PIECE, n)
        outward_between(begin, end, topology, C, pitch, q, sines, cosines, v, still, start, K)
        positions_between(begin, end, topology[0], K, P)
        velocities_between(begin, end, topology, pitch, v, K, V)
        needs_between(begin, end, inertia, K, ext, need)
