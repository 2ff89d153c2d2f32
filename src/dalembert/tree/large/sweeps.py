"""Several sweeps in one call: to enter compiled code costs microseconds."""

from __future__ import annotations

from numba import njit

from dalembert.tree.large.balance import needs
from dalembert.tree.large.inward import accelerations, articulated
from dalembert.tree.large.outward import COMPILED, outward, positions, velocities


@njit(**COMPILED)
def forward(
    topology, gathering, C, pitch, inertia, armature, q, sines, cosines, v, still, start, tau, ext,
    K, T, Y, worst, out, A,
):  # fmt: skip
    """Fill out (nv,) with accelerations under joint forces tau and forces ext on bodies; K, T, Y, A are memory."""
    outward(topology, C, pitch, q, sines, cosines, v, still, start, K)
    articulated(topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst)
    accelerations(topology, gathering[2], pitch, K, Y, out, A)


@njit(**COMPILED)
def motion(bundle, q, sines, cosines, v, start):
    """Fill K with the motion of a state, P and V with places and velocities of origins, need with forces for it."""
    topology, C, pitch, inertia = bundle.layout
    K, P, V, need = bundle.memory
    outward(topology, C, pitch, q, sines, cosines, v, bundle.still, start, K)
    positions(topology[0], K, P)
    velocities(topology, pitch, v, K, V)
    needs(inertia, K, need[:0], need)
