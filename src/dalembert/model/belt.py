"""Two blocks on a belt (seed 001, section 4, Table 1, eqs. 21a, 21b): three contacts, redundant when all stick.

Symbols: q1, q2 displacements, m1, m2 masses, k stiffness of both springs, T1, T2 limits between blocks and belt, T3
between the blocks, speed of the belt. Elastic forces -k (2 q1 - q2) on block 1 and -k (q2 - q1) on block 2.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction import Bounded, Hyperbolic
from dalembert.model.matrices import Matrices

Array = np.ndarray

CONTACTS = ("belt 1", "belt 2", "between")
"""Names of the contacts, in the order of T1, T2, T3."""


def two_blocks(
    masses: tuple[float, float] = (4.0, 7.0),
    limits: tuple[float, float, float] = (4.0, 7.0, 5.0),
    stiffness: float = 14.0,
    speed: float = 0.3,
    decay: float = 3.0,
) -> Matrices:
    """Return the system with the parameters of Table 1; start it at q = (0, 0), v = (speed, speed)."""
    elastic = stiffness * np.array([[2.0, -1.0], [-1.0, 1.0]])
    M = np.diag(masses)

    def energy(q: Array, v: Array, t: float) -> float:
        return 0.5 * float(v @ M @ v) + 0.5 * float(q @ elastic @ q)

    directions = ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0])
    surfaces = (speed, speed, 0.0)
    return Matrices(
        {"q1": masses[0], "q2": masses[1]},
        force=lambda q, v, t: -elastic @ q,
        friction=[
            Bounded(name, w, Hyperbolic(limit, decay), surface=surface)
            for name, w, limit, surface in zip(CONTACTS, directions, limits, surfaces, strict=True)
        ],
        energy=energy,
    )
