"""Uniqueness of friction forces and accelerations, with the contacts named.

Bounded contacts: the acceleration is unique. Two sets of optimal forces T, T' have W (T - T') = 0 (with constraints,
Z^T W), and contacts about to slip have T = T'. Contact i is determined when no direction d with

    B d = 0,   d = 0 at contacts about to slip,   d points inward at contacts at their limit

has d_i != 0: one linear programme where some are at their limits, else the null space alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.first_use import OPTIMIZE, LaterModule
from dalembert.friction.limits import CONTRACTS, DEPENDENT_COLUMN, DEPENDENT_UNIT, OPEN
from dalembert.types import Array

if TYPE_CHECKING:
    import scipy.linalg as sla
    from jaxtyping import Bool, Float, Int
else:
    sla = LaterModule("scipy.linalg")


@dataclass(frozen=True, eq=False)
class UniquenessReport:
    """The answer to "is this the only one?".

    Attributes
    ----------
    exists
        Whether any answer exists; None where neither was proved.
    accelerations_unique
        Whether all answers have the same acceleration; None where neither was proved.
    undetermined
        Contacts whose forces the laws leave open.
    reason
        Why, in a sentence.
    alternatives
        Other accelerations that obey the laws, (j, n), where some were found.
    """

    exists: bool | None
    accelerations_unique: bool | None
    undetermined: tuple[str, ...]
    reason: str
    alternatives: Float[Array, "j n"]

    @property
    def forces_unique(self) -> bool:
        """True when every friction force is determined."""
        return bool(self.exists) and bool(self.accelerations_unique) and not self.undetermined

    def __str__(self) -> str:
        words = {True: "yes", False: "no", None: "not proved"}
        lines = [f"exists: {words[self.exists]}; acceleration unique: {words[self.accelerations_unique]}"]
        lines += [f"forces not determined: {', '.join(self.undetermined)}"] if self.undetermined else []
        return "\n".join([*lines, self.reason])


def undetermined_forces(
    B: Float[Array, "p m"], loose: Bool[Array, " m"], side: Int[Array, " m"], names: Sequence[str]
) -> tuple[str, ...]:
    """Return the contacts whose forces are open; `side` is -1, 0, +1: at the lower limit, inside, at the upper one."""
    index = np.flatnonzero(loose)
    if not index.size:
        return ()
    columns = B[:, index]
    size = np.abs(columns).max(axis=0, initial=0.0)
    null = sla.null_space(columns / np.where(size > 0.0, size, 1.0), rcond=DEPENDENT_COLUMN)
    sides = side[index]
    basis, _ = open_directions(null, (sides[:, None] * null)[sides != 0])
    return tuple(names[int(i)] for i in index[np.abs(basis).max(axis=1, initial=0.0) > OPEN])


def null_space(E: Float[Array, "q p"]) -> Float[Array, "p j"]:
    """Return an orthonormal basis of the null space of rows of unit size, by pivoted QR."""
    if not E.size:
        return np.eye(E.shape[1])
    factors: Any = sla.qr(E.T, pivoting=True, check_finite=False)
    Q, R, _ = factors
    return Q[:, int(np.count_nonzero(np.abs(R.diagonal()) > DEPENDENT_UNIT)) :]


def open_directions(
    null: Float[Array, "p q"], inward: Float[Array, "a q"]
) -> tuple[Float[Array, "p j"], Float[Array, " p"]]:
    """Return a basis of all directions x = null z with inward z <= 0, and one of them that is inside.

    One linear programme finds which of the inequalities can be strict at all, all at once: their slacks, 1 at most, add
    up to as much as they can, and the others are equations.
    """
    a, q = inward.shape
    if not q or not a:
        return null, np.zeros(len(null))
    size = np.abs(inward).max(axis=1)
    rows = inward / np.where(size > OPEN, size, np.inf)[:, None]
    cost = np.concatenate([np.zeros(q), -np.ones(a)])
    bounds = [(None, None)] * q + [(0.0, 1.0)] * a
    best = OPTIMIZE.linprog(cost, A_ub=np.hstack([rows, np.eye(a)]), b_ub=np.zeros(a), bounds=bounds, method="highs")
    if best.status != 0:
        return null[:, :0], np.zeros(len(null))
    tight = (best.x[q:] < 0.5) & (size > OPEN)
    basis = null @ null_space(rows[tight]) if tight.any() else null
    return basis, null @ best.x[:q]


def proved_unique(
    G: Float[Array, "p p"],
    first: Int[Array, " k1"],
    mu: Float[Array, " k"],
    kind: Int[Array, " k"],
    sliding: Bool[Array, " k"],
) -> bool:
    """Say whether friction is weak enough for a contraction: then the answer with reactions as limits is unique.

    Two answers differ by d with  d^T G d <= sum mu_i |d_Ni| |(G d)_Ti|  (monotony of De Saxce's form). Written in
    y = G^1/2 d the right side is at most  mu |(G^-1)_NN|^1/2 |G_TT|^1/2 |y|^2, which below |y|^2 leaves y = 0 alone.
    Only for unilateral contacts at rest; bilateral rows and sliding contacts are not monotone.
    """
    unilateral = 0
    if not first.size or np.any(kind != unilateral) or np.any(sliding):
        return False
    normal = np.zeros(G.shape[0], dtype=bool)
    normal[first[:-1]] = True
    values, vectors = np.linalg.eigh(G)
    if values.size == 0 or values[0] <= CONTRACTS * values[-1]:
        return False
    inverse = (vectors / values) @ vectors.T
    strength = np.linalg.norm(inverse[np.ix_(normal, normal)], 2) * np.linalg.norm(G[np.ix_(~normal, ~normal)], 2)
    return bool(np.max(mu) * np.sqrt(strength) < 1.0)
