"""Forces and impulses of contacts: complementarity with Coulomb's cone; massless limbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.friction.cones.solver import solve_contacts
from dalembert.friction.cones.sweeps import COULOMB
from dalembert.friction.contact_problem import FIXED, UNILATERAL
from dalembert.friction.limits import AIM
from dalembert.kkt import KKT, Status
from dalembert.kkt.limits import BUILT, CERTAIN
from dalembert.kkt.residual import estimated
from dalembert.kkt.rows import row_structure
from dalembert.simulate.contact.impulse_loops import expansion, missed_laws
from dalembert.simulate.limits import (
    ACCEPTED,
    CONE_NEWTON,
    CONE_SWEEPS,
    CONFLICT,
    CONTRADICTION,
    FAR_FROM_SINGULAR,
    LEAST_SQUARES,
    NO_VELOCITY,
    REDUNDANT_RESIDUAL,
    SEEN,
)
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Forces and impulses of contacts: complementarity with Coulomb's cone, bilateral rows eliminated.
#
# Symbols: K = [M A^T; A 0]; B = the part of K^-1 that forces on motions see; G = W B W^T Delassus matrix of the
# contacts; r reactions (N, T, T per contact), u = G r + g accelerations or velocities of the contacts.
#
#     0 <= u_N  perp  r_N >= 0,     r_T in the disk of radius mu r_N, opposed to u_T where it is at its edge
#
# solved by `friction/cones`. Newton's restitution: u_N+ + e u_N- in place of u_N. Poisson's: a first problem
# without restitution gives r_c, a second one r_N >= e r_c with friction in the cone of that r_N (Glocker, Pfeiffer
# 1995).


ORDERS = ("simultaneous", "sequential")
"""All touching contacts in one problem; or one after the other, the fastest first, until none approaches."""

NO_IMPULSES = (
    "at t = {t:.9g} s no impulses of the contacts {names} obey the laws of impact (missed by {residual:.1e} of the "
    "data): they contradict each other; something is driven against what cannot give way"
)
"""What is said where an impact has no answer."""

GAINED = (
    "impacts that gain energy: {count}, the first {gain:.3g} J at t = {t:.9g} s: Newton's restitution with friction "
    '(T. R. Kane, D. A. Levinson 1985); try impact="poisson"'
)
"""What is said where impacts gain energy."""


@dataclass(eq=False)
class Inverse:
    """K^-1 applied: motions from forces, with bilateral rows held.

    Attributes
    ----------
    status, residual
        Verdict of the last solve, as of a `KKT` (`Status.UNIQUE`, `Status.REDUNDANT`, `Status.ILL_CONDITIONED`), and
        its residual relative to the data. Who uses the motions reads it, or calls `refuse_uncertain`.
    """

    K: Array
    n: int
    names: tuple[str, ...] = ()
    status: Status = Status.UNIQUE
    residual: float = 0.0

    @classmethod
    def of(cls, M: Array, A: Array, names: Sequence[str] = ()) -> Inverse:
        """Put the block matrix together; `names` of the rows of A are for messages."""
        n, m = M.shape[0], A.shape[0]
        K = np.zeros((n + m, n + m))
        K[:n, :n], K[:n, n:], K[n:, :n] = M, A.T, A
        return cls(K, n, tuple(names))

    def solve(self, forces: Array, rows: Array) -> tuple[Array, Array]:
        """Return motions (n, k) and multipliers (m, k) for forces (n, k) and accelerations of rows (m, k).

        Redundant rows are solved in least squares where they agree; where they contradict each other, or a motion
        without mass is free, `SolvabilityError` names them.
        """
        right = np.vstack([forces, rows])
        size = 1.0 + np.abs(right).max(initial=0.0)
        try:
            x, error = estimated(self.K, right, self.n)
            self.status, self.residual = Status.UNIQUE, float(np.abs(self.K @ x - right).max(initial=0.0) / size)
            if not (self.residual <= REDUNDANT_RESIDUAL and error <= CERTAIN):
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            if not np.isfinite(right).all() or not np.isfinite(self.K).all():
                raise SolvabilityError("the motion is no longer finite") from None
            x, _, rank, _ = np.linalg.lstsq(self.K, right, rcond=LEAST_SQUARES)
            self.status, self.residual = Status.REDUNDANT, float(np.abs(self.K @ x - right).max(initial=0.0) / size)
            if not self.residual <= CONTRADICTION:
                self._refuse(right)
            independent = _independent_rows(self.K.tobytes(), len(self.K), self.n)
            if rank != self.n + independent:
                x = self._by_rank(right, independent)
        return x[: self.n], x[self.n :]

    def refuse_uncertain(self) -> None:
        """Raise where the last motions have fewer than three certain digits."""
        if self.status > Status.LEAST_SQUARES:
            raise SolvabilityError(f"the block matrix of this state is nearly singular: {self.status.message}")

    def _by_rank(self, right: Array, rank: int) -> Array:
        """Return the solutions under the rank in the metric of the mass: least squares dropped other directions."""
        n = self.n
        system = KKT(self.K[:n, :n], self.K[n:, :n], self._known_names, rank=rank)
        solutions = [system.solve(column[:n], -column[n:], inconsistent="least_squares") for column in right.T]
        if not all(solution.ok for solution in solutions):
            self.status = Status.ILL_CONDITIONED
        x = np.column_stack([np.concatenate([solution.acceleration, solution.multipliers]) for solution in solutions])
        self.residual = float(np.abs(self.K @ x - right).max() / (1.0 + np.abs(right).max()))
        return x

    @property
    def _known_names(self) -> tuple[str, ...] | None:
        return self.names if len(self.names) == self.K.shape[0] - self.n else None

    def _refuse(self, right: Array) -> None:
        n = self.n
        cause = KKT(self.K[:n, :n], self.K[n:, :n], names=self._known_names).diagnose(-right[n:, 0])
        raise SolvabilityError(f"constraint rows have no common solution (residual {self.residual:.1e}): {cause}")


@lru_cache(maxsize=16)
def _independent_rows(block_matrix: bytes, size: int, n: int) -> int:
    """Return the rank of the rows of A; matrices that do not change are asked at every step."""
    K = np.frombuffer(block_matrix).reshape(size, size)
    return row_structure(K[n:, :n], K[:n, :n], BUILT).rank


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Reactions of the contacts that were asked about, (3 per contact), and how well the laws hold.

    Attributes
    ----------
    residual, missed
        The largest and that of every contact, relative to the data (`missed_laws`), not to the reactions.
    """

    r: Array
    residual: float
    missed: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def ok(self) -> bool:
        """True when the laws hold."""
        return self.residual <= ACCEPTED

    def contradiction(self, names: list[str]) -> str:
        """Return the contacts whose laws are missed, as words."""
        bad = self.missed > max(ACCEPTED, CONFLICT * self.missed.max(initial=0.0))
        return ", ".join(repr(name) for name, takes_part in zip(names, bad, strict=True) if takes_part) or "unknown"


def complementarity(
    G: Array, g: Array, mu: Array, sliding: Array | None = None, direction: Array | None = None,
    warm: Array | None = None, limits: Array | None = None,
) -> ContactForces:  # fmt: skip
    """Solve u = G r + g over the cones of contacts with three rows each.

    Parameters
    ----------
    sliding, direction
        Per contact whether it slides, and along which unit vector (k, 2): its friction is then given.
    limits
        Of contacts without a normal: the largest friction, a given one; zero for the others.
    """
    k = mu.size
    if k == 0:
        return ContactForces(np.zeros(0), 0.0)
    limits = np.zeros(k) if limits is None else limits
    limited = limits > 0.0
    rows = [_rows_of(G, i, bool(limited[i]), mu[i] > 0.0) for i in range(k)]
    keep = np.array([j for entries in rows for j in entries], dtype=int)
    first = np.concatenate([[0], np.cumsum([len(entries) for entries in rows])]).astype(np.int64)
    slides = np.zeros(k, np.bool_) if sliding is None else sliding.astype(np.bool_)
    s = np.zeros(3 * k)
    if direction is not None:
        s.reshape(k, 3)[:, 1:] = direction
    r = np.zeros(keep.size) if warm is None else warm[keep].copy()
    residual, _, _ = solve_contacts(
        np.ascontiguousarray(G[np.ix_(keep, keep)]), np.ascontiguousarray(g[keep]), first,
        np.where(limited, limits, mu).astype(float), COULOMB, np.where(limited, FIXED, UNILATERAL).astype(np.int64),
        slides, s[keep], r, AIM, CONE_SWEEPS, CONE_NEWTON,
    )  # fmt: skip
    full, missed = np.zeros(3 * k), np.zeros(k)
    full[keep] = r
    missed_laws(np.ascontiguousarray(G), np.ascontiguousarray(g), np.asarray(mu, float), slides, full, missed)
    missed += _missed_limits(G, g, limits, full)
    return ContactForces(full, max(float(residual), float(missed.max())), missed)


def _rows_of(G: Array, i: int, given: bool, frictional: bool) -> list[int]:
    """Return the rows of contact i that take part: its normal, or none; tangents along which something moves."""
    tangents = [j for j in (3 * i + 1, 3 * i + 2) if G[j, j] > 0.0]
    if given:
        return tangents
    return [3 * i, *tangents] if frictional else [3 * i]


def _missed_limits(G: Array, g: Array, limits: Array, r: Array) -> Array:
    """Return per contact without a normal by how much it misses its law, relative to the data: the natural map."""
    missed, scale = np.zeros(limits.size), max(NO_VELOCITY, float(np.abs(g).max(initial=0.0)))
    for i in np.flatnonzero(limits > 0.0):
        place = slice(3 * i + 1, 3 * i + 3)
        rho = float(np.diagonal(G)[place].max())
        if rho > 0.0:
            way = r[place] - (g[place] + G[place] @ r) / rho
            length = float(np.hypot(*way))
            way *= limits[i] / length if length > limits[i] else 1.0
            missed[i] = rho * float(np.hypot(*(r[place] - way))) / scale
    return missed


def impact_impulses(
    G: Array, u: Array, mu: Array, restitution: Array, law: list[str], shift: Array | None = None
) -> ContactForces:
    """Return the impulses of closed contacts that meet with velocities u (3 k,).

    `shift` is what velocities change by without any of these impulses (massless limbs that find their footing).
    """
    normal = np.arange(0, u.size, 3)
    newton = np.array([name == "newton" for name in law], dtype=bool)
    g = u.copy() if shift is None else u + shift
    g[normal] += np.where(newton, restitution * np.minimum(u[normal], 0.0), 0.0)
    answer = complementarity(G, g, mu)
    if newton.all() or not np.any(restitution[~newton]):
        return answer
    floor = np.where(newton, 0.0, restitution * answer.r[normal])
    expanded = np.zeros_like(answer.r)
    change = expansion(np.ascontiguousarray(G), g + G @ answer.r, np.ascontiguousarray(mu, float), floor, expanded)
    return ContactForces(answer.r + expanded, max(answer.residual, float(change)), answer.missed)


# ----------------------------------------------------------------------------------------------------------------------
# Massless limbs: on the ground they are levers, in the air they are held (seed 000, after eq. 35; its [3], A5, A6).
#
# Symbols: N basis of null(M) within null(A): motions without momentum; R contact rows that see them, R N != 0.
#
# While those contacts stay, R a = c is known, and M + rho R^T R in place of M has the same motions and forces, for any
# rho > 0, and is definite where the contacts cover all of N (condition 33). What they do not cover is held: H^T v = 0.
# Nothing resists a limb without mass, so it lands without rebound, and its foot must not be pushed out of its cone.
# Source: A. M. Johnson, S. E. Burden, D. E. Koditschek, Int. J. Robotics Research 35 (2016) 1354-1392.


class Limbs:
    """What of a mechanism has no mass; `any` is False for most, and then nothing is done."""

    def __init__(self, M: Array) -> None:
        n = M.shape[0]
        self.any = bool(n) and not _definite(M) and free_motion(M, np.zeros((0, n))).shape[1] > 0

    def seen_by(self, M: Array, A: Array, W: Array) -> Array:
        """Return which contacts, three rows each in W, touch with a limb without mass."""
        k = W.shape[0] // 3
        if not self.any:
            return np.zeros(k, bool)
        along = np.abs(W @ free_motion(M, A)).max(axis=1, initial=0.0)
        return (along > SEEN * np.abs(W).max(axis=1, initial=0.0)).reshape(k, 3).any(axis=1)

    def held(self, M: Array, rows: Array) -> Array:
        """Return rows H^T (j, n) of the motions without mass that `rows` allow."""
        n = M.shape[0]
        return free_motion(M, rows).T if self.any else np.zeros((0, n))


def _definite(M: Array) -> bool:
    """Return whether M, scaled to a diagonal of ones, is far from singular: then nothing is without mass."""
    size = np.diagonal(M)
    if not (size > 0.0).all():
        return False
    try:
        pivots = np.diagonal(np.linalg.cholesky(M / np.sqrt(np.outer(size, size))))
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() > FAR_FROM_SINGULAR)


def free_motion(M: Array, rows: Array) -> Array:
    """Return a basis (n, j) of null(M) within null(rows)."""
    return KKT(M, rows).analysis.motion.free


def stiffened(M: Array, R: Array) -> tuple[Array, float]:
    """Return M + rho R^T R, and rho of the size of the masses."""
    if not R.shape[0]:
        return M, 0.0
    rho = float(np.trace(M)) / M.shape[0] / float((R * R).sum(axis=1).max())
    return M + rho * R.T @ R, rho
