"""Whether a large open tree has accelerations at all: relative pivots of its joints at random configurations.

The loops' counterpart of `tree/pivots.py`: D of a joint over the trace of the inertia that it is made of.
"""

from __future__ import annotations

import numpy as np

from dalembert.errors import ModelError
from dalembert.tree.large.tree import LargeTree

SAMPLES = 2
VANISHING = 1e-13
"""A pivot below this part of its trace at every sampled configuration is zero but for rounding."""


def massless_coordinate(tree: LargeTree) -> str | None:
    """Return the name of a coordinate that nothing resists, wherever one looks; None where there is none."""
    mechanism = tree.layout.mechanism
    if not mechanism.nv:
        return None
    out, still = np.empty(mechanism.nv), np.zeros(mechanism.nv)
    for q in mechanism.random(0, SAMPLES):
        if tree.forward(q, still, still, out) >= VANISHING:
            return None
    return mechanism.coordinates[int(tree.layout.iv[int(tree.memory.worst[1])])]


def refuse_singular(tree: LargeTree) -> None:
    """Raise where some coordinate is resisted by nothing."""
    name = massless_coordinate(tree)
    if name is not None:
        raise ModelError(
            f"nothing resists the coordinate {name!r} of {tree.layout.mechanism.name!r}: its pivot is "
            f"{tree.memory.worst[0]:.0e} of the inertia it is made of; a massless link at the end of a branch, or "
            "between two joints that move alike, most likely. Give it mass or armature, or constrain it"
        )
