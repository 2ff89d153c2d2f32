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


def refuse_singular(tree: LargeTree) -> None:
    """Raise where some coordinate is resisted by nothing, wherever one looks."""
    mechanism = tree.layout.mechanism
    if not mechanism.nv:
        return
    out, still = np.empty(mechanism.nv), np.zeros(mechanism.nv)
    for q in mechanism.random(0, SAMPLES):
        if tree.forward(q, still, still, out) >= VANISHING:
            return
    row = int(tree.memory.worst[1])
    k = int(tree.layout.iv[row])
    raise ModelError(
        f"nothing resists the coordinate {mechanism.coordinates[k]!r} of {mechanism.name!r}: its pivot is "
        f"{tree.memory.worst[0]:.0e} of the inertia it is made of; a massless link at the end of a branch, or between two "
        "joints that move alike. A large mechanism is eliminated along its tree: give the link mass or armature"
    )
