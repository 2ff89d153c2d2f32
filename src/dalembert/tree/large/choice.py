"""When a mechanism is too large to be unrolled: operations of its forward dynamics, estimated from its structure.

Straight-line code is faster per body as long as it fits the processor's caches, but it has to be traced and compiled:
0.1 to 0.6 ms an operation. Loops are compiled once for all mechanisms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.model.joints import KINDS

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

LARGEST_UNROLLED = 60_000
"""Estimated operations beyond which loops take over: a chain of about 260 hinges, ten seconds of compiling or more."""

PER_BODY, PER_VELOCITY, PER_ROW = 60, 170, 200
"""Operations of the articulated-body algorithm, counted on chains and trees, and of a row with its forces."""


def estimated_operations(mechanism: Mechanism) -> int:
    """Return about how many operations unrolled forward dynamics would have."""
    known = mechanism.__dict__
    if "_estimated_operations" not in known:  # not by the mechanism's hash: that of a large one takes seconds
        known["_estimated_operations"] = _estimate(mechanism)
    return known["_estimated_operations"]


def _estimate(mechanism: Mechanism) -> int:
    tree = sum(PER_BODY + PER_VELOCITY * KINDS[joint.kind].nv for joint in mechanism.joints if joint.kind != "fixed")
    if tree > LARGEST_UNROLLED:
        return tree  # rows only add to it, and naming them all takes a while
    m = len(mechanism.names)
    path = min(m * mechanism.nv, 40 * m)
    return tree + PER_ROW * m + 12 * path + m * m * min(mechanism.nv, 40) // 2 + m**3 // 6


def is_large(mechanism: Mechanism) -> bool:
    """Say whether a mechanism's kernels are loops unless asked otherwise."""
    return estimated_operations(mechanism) > LARGEST_UNROLLED
