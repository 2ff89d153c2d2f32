"""Where the two ways of a row to the ground meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.kernel.loops import loop

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Touches:
    """Where rows touch the tree: (row, body, end 0 or 1) of forces; (row, body, velocity, factor) of couplings."""

    rows: int
    ends: Array
    joints: Array
    factors: Array


def closing_bodies(parent: Array, touches: Touches) -> Array:
    """Return for each row the body that carries everything it touches; n for the ground."""
    n = len(parent)
    found = np.full(touches.rows, -2, dtype=np.int64)
    bodies = [touches.ends[:, :2]]
    if len(touches.joints):
        carriers = touches.joints[:, :2].copy()
        carriers[:, 1] = parent[carriers[:, 1]]  # a coupling is felt by the joints themselves: it closes above them
        bodies.append(carriers)
    meet(parent, np.concatenate(bodies), found)
    return np.where(found < 0, n, found)


@loop()
def meet(parent, touches, found):
    """Fill found (m,) with the nearest common carrier of all bodies that a row touches; -1 is the ground."""
    for k in range(len(touches)):
        row, a = touches[k]
        b = found[row]
        if b == -2:
            b = a
        while a != b:
            if a > b:
                a = parent[a]
            else:
                b = parent[b]
        found[row] = a
