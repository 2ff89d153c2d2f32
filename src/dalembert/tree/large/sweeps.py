"""The three sweeps of an open tree's forward dynamics in one call: to enter compiled code costs microseconds."""

from __future__ import annotations

from numba import njit

from dalembert.tree.large.inward import accelerations, articulated
from dalembert.tree.large.outward import COMPILED, outward


@njit(**COMPILED)
def forward(
    topology, gathering, C, pitch, inertia, armature, q, sines, cosines, v, still, start, tau, ext,
    K, T, Y, worst, out, A,
):  # fmt: skip
    """Fill out (nv,) with accelerations under joint forces tau and forces ext on bodies; K, T, Y, A are memory."""
    outward(topology, C, pitch, q, sines, cosines, v, still, start, K)
    articulated(topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst)
    accelerations(topology, gathering[2], pitch, K, Y, out, A)
