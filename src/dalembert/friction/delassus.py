"""The Delassus form of a state: what contact rows see of masses, constraints and loads.

Symbols as in `contact_problem.py`; contacts that slide have known forces, which go to the load. For the others, with Z
the admissible motions (A Z = 0),

    xi'' = G T + g,   G = W^T Z (Z^T M Z)^-1 Z^T W  (the Delassus matrix),   B = Z^T W
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.first_use import LAPACK
from dalembert.friction.limits import BALANCED, DEFINITE, DEPENDENT_COLUMN, DEPENDENT_STICKING, HOLDS, SHARED, UNSEEN
from dalembert.kkt import KKT
from dalembert.kkt.rows import pivoted_rows
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class Delassus:
    """One state with contact rows W^T (m, n); `forces_in_motion` (m,) are zero at rest."""

    system: KKT
    f: Float[Array, " n"]
    drift: Float[Array, " k"]
    W: Float[Array, "n m"]
    contact_drift: Float[Array, " m"]
    forces_in_motion: Float[Array, " m"]

    @cached_property
    def load(self) -> Float[Array, " n"]:
        """F with the forces of sliding contacts added."""
        return self.f + self.W @ self.forces_in_motion

    @cached_property
    def free_acceleration(self) -> Float[Array, " n"]:
        """Acceleration without any force at the contacts at rest."""
        return self._free[0]

    @cached_property
    def _free(self) -> tuple[Float[Array, " n"], Float[Array, " k"], bool]:
        return self.solved(self.load)

    @property
    def certain(self) -> bool:
        """Whether the free motion is certified: every force at the contacts is found from it."""
        return self._free[2]

    @cached_property
    def root(self) -> Float[Array, "n n"] | None:
        """L with M = L L^T where there are no constraints and M is definite beyond doubt, else None."""
        if self.system.m:
            return None
        try:
            L = np.linalg.cholesky(self.system.M)
        except np.linalg.LinAlgError:
            return None
        pivots, diagonal = L.diagonal(), self.system.M.diagonal()
        return L if (pivots * pivots >= DEFINITE * diagonal).all() else None

    def solved(self, load: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " k"], bool]:
        """Return acceleration and multipliers under a load, by L or the block matrix, and if they are certified."""
        if self.root is None:
            solved = self.system.solve(load, self.drift)
            return solved.acceleration, solved.multipliers, bool(solved.ok)
        upper: Any = (
            self.root.T
        )  # column by column, as LAPACK wants it; SciPy's own wrapper takes longer than the solution
        a = LAPACK.dpotrs(upper, load, lower=0)[0]
        return a + LAPACK.dpotrs(upper, load - self.system.M @ a, lower=0)[0], np.zeros(0), True

    def in_balance(self, a: Float[Array, " n"], T: Float[Array, " m"]) -> bool:
        """Say whether Z^T (M a - f - W T) = 0 up to `BALANCED` of the largest of its terms."""
        size = np.abs(self.system.M) @ np.abs(a) + np.abs(self.f) + np.abs(self.W) @ np.abs(T)
        missing = np.abs(self.imbalance(a, T)).max(initial=0.0)
        return bool(missing <= BALANCED * np.abs(self.admissible(size, np.abs)).max(initial=0.0))

    def imbalance(self, a: Array, T: Array) -> Array:
        """Return Z^T (M a - f - W T)."""
        return self.admissible(self.system.M @ a - self.f - self.W @ T)

    def admissible(self, forces: Array, part: Any = np.asarray) -> Array:
        """Return Z^T forces, or of the parts of Z; the forces themselves without constraints."""
        if not self.system.m:
            return forces
        analysis = self.system.analysis
        return part(analysis.rows.columns[:, None] * analysis.motion.Z).T @ forces

    @cached_property
    def reduced(self) -> tuple[Float[Array, "p m"], Float[Array, "p m"]]:
        """B = Z^T W and J with J^T J = G."""
        if self.system.m == 0:
            L = np.linalg.cholesky(self.system.M) if self.root is None else self.root
            return self.W, LAPACK.dtrtrs(L.T, self.W, lower=0, trans=1)[0] if self.W.size else np.zeros(self.W.shape)
        analysis, motion = self.system.analysis, self.system.analysis.motion
        Z = analysis.rows.columns[:, None] * motion.Z
        B = Z.T @ self.W
        size = np.linalg.norm(analysis.rows.columns[:, None] * self.W, axis=0)
        seen = np.abs(B) > UNSEEN * np.linalg.norm(motion.Z, axis=0)[:, None] * size
        B[:, ~seen.any(axis=0)] = 0.0  # forces on constraints alone
        return B, (motion.vectors.T @ (motion.scale[:, None] * B)) / np.sqrt(motion.values)[:, None]

    @cached_property
    def delassus(self) -> tuple[Float[Array, "m m"], Float[Array, " m"]]:
        """G and g of all contacts."""
        g = self.W.T @ self.free_acceleration + self.contact_drift  # first: it refuses an indefinite M in words
        J = self.reduced[1]
        g[np.abs(g) <= UNSEEN * self.terms] = 0.0
        return J.T @ J, g

    @cached_property
    def _prescribed_terms(self) -> Float[Array, " m"]:
        """What drifts, and the rounding of the whole motion, may do at contacts that push on constraints alone."""
        size = np.abs(self.system.A).max(axis=1, initial=0.0)
        size = np.where(size > 0.0, size, 1.0)
        shares = np.linalg.pinv(self.system.A.T / size, rcond=UNSEEN) @ self.W
        columns = self.system.analysis.rows.columns
        moved = np.linalg.norm(columns[:, None] * self.W, axis=0) * np.max(self._free_terms / columns, initial=0.0)
        return np.abs(shares).sum(axis=0) * np.max(np.abs(self.drift) / size, initial=0.0) + moved

    @cached_property
    def terms(self) -> Float[Array, " m"]:
        """What g is summed from, |W|^T |a| + |contact drift|, a free: data, whatever the contact forces become."""
        terms = np.abs(self.W.T) @ self._free_terms + np.abs(self.contact_drift)
        if self.system.m:
            terms += np.where((self.reduced[1] == 0.0).all(axis=0), self._prescribed_terms, 0.0)
        return terms

    @cached_property
    def kinetic(self) -> float:
        """The size of the free motion and of the contacts' drifts, in the metric of kinetic energy."""
        stiffness, a = self.delassus[0].diagonal(), self.free_acceleration
        moved = stiffness > 0.0
        drifts = np.linalg.norm(self.contact_drift[moved] / np.sqrt(stiffness[moved]))
        return float(np.sqrt(max(a @ self.system.M @ a, 0.0)) + drifts)

    @cached_property
    def sizes(self) -> Float[Array, " m"]:
        """What contact accelerations are measured against: their terms, and a part of what moves the others."""
        return self.terms + SHARED * np.sqrt(self.delassus[0].diagonal()) * self.kinetic + np.finfo(float).tiny

    def out_of_balance(self, a: Float[Array, " n"], T: Float[Array, " m"], explained: float, whole: Any) -> float:
        """Return Z^T (M a - f - W T), the largest part relative to data and to `whole`, a part of the whole motion.

        Of the terms of a and T so much counts as data that they explain.
        """
        missing = np.abs(self.imbalance(a, T))
        terms = np.abs(self.f) + explained * (np.abs(self.system.M) @ np.abs(a) + np.abs(self.W) @ np.abs(T))
        size = np.abs(self.admissible(terms, np.abs)) + whole
        return float(np.max(missing / np.maximum(size, np.finfo(float).tiny), initial=0.0))

    @property
    def whole_motion(self) -> Float[Array, " p"]:
        """The part of the whole motion that is in the size of forces along admissible motions."""
        return SHARED * self._motion_roots * self.kinetic

    @cached_property
    def _motion_roots(self) -> Float[Array, " p"]:
        """Roots of the masses of the admissible motions, diag(Z^T M Z)."""
        if not self.system.m:
            return np.sqrt(self.system.M.diagonal())
        Z = self.system.analysis.rows.columns[:, None] * self.system.analysis.motion.Z
        return np.sqrt(np.maximum(np.sum(Z * (self.system.M @ Z), axis=0), 0.0))

    @cached_property
    def _free_terms(self) -> Float[Array, " n"]:
        """What the free acceleration is summed from: where loads fall on constraints alone, it is rounding itself."""
        if not self.system.m:
            return np.abs(self.free_acceleration)
        columns, motion = self.system.analysis.rows.columns, self.system.analysis.motion
        Z = (columns[:, None] * motion.Z) @ (motion.scale[:, None] * motion.vectors)
        held = columns[:, None] * np.linalg.pinv(self.system.A * columns, rcond=UNSEEN)
        moved = np.abs(Z) @ (np.abs(Z).T @ np.abs(self.load) / motion.values)
        return np.abs(self.free_acceleration) + moved + np.abs(held) @ np.abs(self.drift)

    def acceleration(self, T: Float[Array, " m"]) -> tuple[Float[Array, " n"], Float[Array, " k"]]:
        """Return accelerations and multipliers under these forces at the contacts (those in motion included)."""
        return self.solved(self.f + self.W @ T)[:2]

    def held_acceleration(self, T: Float[Array, " m"], stick: Bool[Array, " m"]) -> Float[Array, " n"]:
        """Return accelerations with the sticking rows in the block matrix: at rest to the last digit, however light.

        NaN where they are not certified.
        """
        load = self.f + self.W @ np.where(stick, 0.0, T)
        a = self._quickly_held(load, stick)
        if np.isfinite(a).all():
            return a
        rows, drift = self._held_rows(stick)
        solution = KKT(self.system.M, rows).solve(load[None], drift[None])
        return np.where(np.asarray(solution.ok)[0], solution.acceleration[0], np.nan)

    def holding_forces(self, T: Float[Array, " m"], stick: Bool[Array, " m"]) -> Float[Array, " s"]:
        """Return the least-norm forces that keep the sticking contacts at rest, the others given; NaN where in doubt.

        W_S T = M a - load is unique, however redundant the contacts are; without constraints alone.
        """
        load = self.f + self.W @ np.where(stick, 0.0, T)
        a, W = self._quickly_held(load, stick), self.W[:, stick]
        undetermined = np.full(W.shape[1], np.nan)
        if not np.isfinite(a).all():
            return undetermined
        needed = self.system.M @ a - load
        forces = np.linalg.lstsq(W, needed, rcond=DEPENDENT_COLUMN)[0]
        terms = np.abs(self.system.M) @ np.abs(a) + np.abs(load) + np.abs(W) @ np.abs(forces)
        return forces if (np.abs(W @ forces - needed) <= 1e2 * HOLDS * terms).all() else undetermined

    def _held_rows(self, stick: Array) -> tuple[Array, Array]:
        """Return the rows of constraints and sticking contacts, and what they drift."""
        rows = np.vstack([self.system.A, self.W[:, stick].T])
        return rows, np.concatenate([self.drift, self.contact_drift[stick]])

    def _quickly_held(self, load: Array, stick: Array) -> Array:
        """Return the acceleration with the sticking rows held, by independent ones; NaN where the others miss."""
        rows, drift = self._held_rows(stick)
        if self.root is not None:
            independent = independent_sticking(rows)
            a = held_by(self.system.M, rows[independent], load, drift[independent])
            if (np.abs(rows @ a + drift) <= HOLDS * (np.abs(rows) @ np.abs(a) + np.abs(drift))).all():
                return a
        return np.full(self.system.n, np.nan)

    @property
    def singular(self) -> bool:
        """True where a motion that A allows moves no mass: then there is no Delassus matrix."""
        return self.root is None and bool(self.system.analysis.motion.massless)


# ----------------------------------------------------------------------------------------------------------------------
# Sticking contacts as constraints: accelerations at rest to the last digit, however light the bodies. With rows R of
# constraints and sticking contacts, M = D^-1 (unit diagonal) D^-1 and the sizes E of the rows of R D,
#
#     [ D M D    (E R D)^T ] [ D^-1 a ]   [ D load   ]
#     [ E R D        0     ] [ ...    ] = [ -E drift ]


def independent_sticking(rows: Float[Array, "r n"]) -> Array:
    """Return the numbers of a largest set of independent rows of constraints and sticking contacts, at unit size."""
    if not rows.size:
        return np.zeros(0, dtype=int)
    size = np.abs(rows).max(axis=1)
    return pivoted_rows(rows / np.where(size > 0.0, size, 1.0)[:, None], tolerance=DEPENDENT_STICKING)


def held_by(M: Float[Array, "n n"], rows: Float[Array, "r n"], load: Array, drift: Array) -> Float[Array, " n"]:
    """Return the acceleration with independent rows, M definite: the block matrix at unit diagonal, refined once.

    As many rows as coordinates leave no mass in it. NaN where the residual is above rounding.
    """
    n, r = M.shape[0], len(rows)
    if r == n:
        return np.linalg.solve(rows, -drift) + 0.0
    d = 1.0 / np.sqrt(M.diagonal())
    scaled = rows * d
    e = 1.0 / np.abs(scaled).max(axis=1)
    K, scale = np.zeros((n + r, n + r)), np.concatenate([d, e])
    K[:n, :n], K[n:, :n] = M * d * d[:, None], scaled * e[:, None]
    K[:n, n:] = K[n:, :n].T
    b = scale * np.concatenate([load, -drift])
    try:
        inverse = np.linalg.inv(K)
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
    x = inverse @ b
    x = x + inverse @ (b - K @ x)
    sound = np.abs(b - K @ x) <= HOLDS * (np.abs(K) @ np.abs(x) + np.abs(b))
    return d * x[:n] if sound.all() else np.full(n, np.nan)
