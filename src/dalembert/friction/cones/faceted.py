"""Contacts as a linear complementarity problem: cones and disks faceted, solved by Lemke's pivoting.

Symbols as in `sweeps.py`; d_k unit vectors of the facets, D = [d_1 ... d_F], beta >= 0 forces along them, e ones.

    r_T = D beta              0 <= r_N   complementary to  u_N >= 0
                              0 <= beta  complementary to  D^T u_T + sigma e >= 0
                              0 <= sigma complementary to  mu r_N - e^T beta >= 0      (given limit: limit - e^T beta)

With one tangent D = [1, -1], and the problem is that of the exact law. In a plane the disk of friction becomes a
polygon with its corners on the circle: a force falls short by up to the part 1 - cos(pi / F), and slips along a corner,
up to pi / F away from the direction against the motion.

Sources: D. E. Stewart, J. C. Trinkle, Int. J. Numer. Meth. Engng 39 (1996) 2673-2691; R. W. Cottle, J.-S. Pang,
R. E. Stone, "The Linear Complementarity Problem" (1992), sec. 4.4 (Lemke's method), 4.2 (lexicographic rule).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.checks import whole_number
from dalembert.errors import ModelError, UnsupportedError
from dalembert.friction.contact_problem import BILATERAL, FIXED
from dalembert.friction.limits import PIVOT
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

FACETS = 8
"""Facets of a disk by default: forces are short by up to 8 %, directions off by up to 22 degrees."""

PIVOTS = 50
"""Pivots per variable before Lemke's method is given up; one or two are usual."""


@dataclass(frozen=True, eq=False)
class Pivoted:
    """Where Lemke's method ended: z (N,), the variables of the ray that it ended on (none at an answer), pivots."""

    z: Float[Array, " N"]
    ray: Int[Array, " k"]
    pivots: int

    @property
    def solved(self) -> bool:
        """Whether z is an answer."""
        return bool(np.isfinite(self.z).all())


def lemke(Q: Float[Array, "N N"], q: Float[Array, " N"]) -> Pivoted:
    """Solve 0 <= z, Q z + q >= 0, z^T (Q z + q) = 0 by Lemke's complementary pivoting.

    The covering vector is e; ties are broken by the lexicographic rule, so that it ends. On a secondary ray there may
    be an answer all the same, unless Q is of a class for which the ray proves that there is none.
    """
    size = q.size
    if size == 0 or (q >= 0.0).all():
        return Pivoted(np.zeros(size), np.zeros(0, np.int64), 0)
    # columns: w (N), z (N), z0, right side; w - Q z - e z0 = q
    tableau = np.hstack([np.eye(size), -Q, -np.ones((size, 1)), q[:, None]])
    basis, artificial = np.arange(size), 2 * size
    row, entering = int(np.argmin(q)), artificial
    for count in range(1, PIVOTS * size + 1):
        tableau[row] /= tableau[row, entering]
        tableau -= np.where(np.arange(size) == row, 0.0, tableau[:, entering])[:, None] * tableau[row]
        leaving, basis[row] = basis[row], entering
        if leaving == artificial:
            return Pivoted(_basic_answer(Q, q, basis), np.zeros(0, np.int64), count)
        entering = leaving + size if leaving < size else leaving - size
        column = tableau[:, entering]
        able = np.flatnonzero(column > PIVOT * max(1.0, float(np.abs(column).max())))
        if not able.size:
            moved = np.append(basis[np.abs(column) > PIVOT], entering)
            ray = np.unique(moved[(moved >= size) & (moved < artificial)]) - size
            return Pivoted(np.full(size, np.nan), ray, count)
        row = _lexicographic(tableau, able, column, basis == artificial)
    return Pivoted(np.full(size, np.nan), np.zeros(0, np.int64), PIVOTS * size)


def _lexicographic(tableau: Array, able: Array, column: Array, last: Bool[Array, " N"]) -> int:
    """Return the row that leaves: the least ratio, z0 at once where it is among the least, else lexicographically."""
    size = len(tableau)
    ratios = tableau[able, -1] / column[able]
    ties = able[ratios <= ratios.min() + PIVOT * (1.0 + abs(float(ratios.min())))]
    if last[ties].any():
        return int(ties[last[ties]][0])
    for k in range(size):
        if ties.size == 1:
            break
        ratios = tableau[ties, k] / column[ties]
        ties = ties[ratios <= ratios.min()]
    return int(ties[0])


def _basic_answer(Q: Array, q: Array, basis: Array) -> Float[Array, " N"]:
    """Return z of a complementary basis from the data themselves: the tableau carries the rounding of all pivots."""
    size = q.size
    z, chosen = np.zeros(size), np.sort(basis[basis >= size] - size)
    if chosen.size:
        z[chosen] = np.linalg.lstsq(Q[np.ix_(chosen, chosen)], -q[chosen], rcond=None)[0]
    return np.maximum(z, 0.0)


# ----------------------------------------------------------------------------------------------------------------------
# Contact rows as a linear complementarity problem.


def solve_faceted(
    G: Float[Array, "p p"], g: Float[Array, " p"], first: Array, mu: Array, kind: Array, sliding: Array, s: Array,
    facets: int = FACETS,
) -> tuple[Float[Array, " p"], Int[Array, " k"], int]:  # fmt: skip
    """Return reactions, the contacts of the ray that Lemke's method ended on, and its pivots; reactions NaN there.

    Contacts are measured in units in which the blocks of G have trace one, so that masses do not matter.
    """
    if whole_number(facets, "facets") < 3:
        raise ModelError(f"facets={facets!r}: a disk needs at least 3")
    if (kind == BILATERAL).any():
        raise UnsupportedError(
            "a row that pushes and pulls has friction mu |r_N|, which is no linear complementarity: use method='exact' "
            "or 'sweeps'"
        )
    owner = np.repeat(np.arange(mu.size), np.diff(first))
    trace = np.bincount(owner, G.diagonal(), mu.size)
    unit = 1.0 / np.sqrt(np.where(trace > 0.0, trace, 1.0))
    scale = unit[owner]
    limits = np.where(kind == FIXED, mu / unit, mu)
    E, who, Q, q = _assembled(scale[:, None] * G * scale, scale * g, first, limits, kind, sliding, s, int(facets))
    answer = lemke(Q, q)
    return scale * (E @ answer.z), np.unique(who[answer.ray]), answer.pivots


def _assembled(
    G: Array, g: Array, first: Array, mu: Array, kind: Array, sliding: Array, s: Array, facets: int
) -> tuple[Array, Array, Array, Array]:
    """Return E with r = E z, the contact of each variable, and Q, q."""
    columns, seen, who, bounds, p = [], [], [], [], g.size
    for i in range(mu.size):
        a, b = int(first[i]), int(first[i + 1])
        tangent = range(a if kind[i] == FIXED else a + 1, b)
        normal = -1
        if kind[i] != FIXED:
            force = np.eye(p)[a]
            if sliding[i]:
                force[tangent] = -mu[i] * s[tangent]
            normal = len(columns)
            _append(columns, seen, who, force, np.eye(p)[a], i)
        if sliding[i] or not mu[i] > 0.0 or not len(tangent):
            continue
        begin = len(columns)
        for direction in directions(len(tangent), facets).T:
            force = np.zeros(p)
            force[tangent] = direction
            _append(columns, seen, who, force, force, i)
        bounds.append((len(columns), begin, normal, float(mu[i])))
        _append(columns, seen, who, np.zeros(p), np.zeros(p), i)
    E, U = (np.array(rows).reshape(len(who), p).T for rows in (columns, seen))
    Q, q = U.T @ G @ E, U.T @ g
    for sigma, begin, normal, bound in bounds:
        Q[begin:sigma, sigma], Q[sigma, begin:sigma] = 1.0, -1.0
        if normal >= 0:
            Q[sigma, normal] = bound
        else:
            q[sigma] = bound
    return E, np.array(who, dtype=np.int64), Q, q


def _append(columns: list[Array], seen: list[Array], who: list[int], force: Array, acceleration: Array, i: int) -> None:
    """Enter a variable: the force it is, the acceleration that it is complementary to, its contact."""
    columns.append(force)
    seen.append(acceleration)
    who.append(i)


def directions(tangents: int, facets: int) -> Float[Array, "tangents F"]:
    """Return the unit vectors of the facets as columns."""
    if tangents == 1:
        return np.array([[1.0, -1.0]])
    angles = 2.0 * np.pi * np.arange(facets) / facets
    return np.stack([np.cos(angles), np.sin(angles)])
