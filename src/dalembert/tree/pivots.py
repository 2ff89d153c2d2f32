"""Whether the open tree has accelerations at all: pivots of its mass matrix at random configurations.

A link that weighs nothing may be harmless (another hangs on it) or leave a motion that nothing resists. Where that
shows in the structure, the algorithms refuse; where it is a cancellation, as of two hinges on one axis with nothing
between them, the pivot is rounding instead of zero, and a quotient by it would be noise that looks like a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ModelError
from dalembert.tree.crba import crba
from dalembert.tree.link import Tree
from dalembert.tree.posed import pose_tree
from dalembert.tree.sparse_factor import sparse_factor, tree_order

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray

SAMPLES = 4
VANISHING = 1e-13
"""A pivot below this fraction of the diagonal of M at every sampled configuration is zero but for rounding."""


def refuse_singular(mechanism: Mechanism, tree: Tree) -> None:
    """Raise where the mass matrix of the open tree is singular wherever one looks."""
    if tree.nv == 0:
        return
    q = mechanism.random(0, SAMPLES)
    M = crba(tree, pose_tree(tree, list(q.T)))
    diagonal = np.array([np.broadcast_to(M[k][k], SAMPLES) for k in range(tree.nv)])
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = sparse_factor(M, tree_order(tree.nv), tree.coordinates).pivots
        ratio = np.abs([np.broadcast_to(pivots[k], SAMPLES) for k in range(tree.nv)]) / np.abs(diagonal)
    for k in np.flatnonzero((ratio < VANISHING).all(axis=1)):
        raise ModelError(
            f"nothing resists the coordinate {tree.coordinates[k]!r} of {tree.name!r}: its pivot in the mass matrix is "
            f"{ratio[k].max():.0e} of the diagonal; a massless link between two joints that move alike, most likely. "
            "Give it mass or armature, or constrain it and use the block form (KKT)"
        )
