"""Families of multipliers: what may be added to the multipliers of a state without changing its motion.

Symbols: A rows, D scales of rows, B = D A L^-T rows in the metric of the mass (`kkt/rows.py`), N a basis of null(A^T);
G directions of contact forces that are free to change, x these forces; V_r the first right singular vectors of B.

In forward dynamics lam + N z causes the same motion for every z. In inverse dynamics with driven coordinates d and
passive ones p, motors make up for whatever the rows do along d, so that the family is null(A_p^T), and the forces of
the motors change by A_d^T N z. The rank is that of the mechanism (`ranks.py`), and that of the sample alone where it is
singular.

Contacts that stick have free forces along their normal and tangents, contacts that slide along one direction. With them
the family is null([A^T, -G^T]): beside null(A^T) the forces x that the rows can take up,

    G x in the range of A^T        x in null of (G in the metric, less its part in the span of V_r)^T

Source: M. Wojtyra, "Joint reaction forces in multibody systems with redundant constraints", Multibody System Dynamics
14 (2005) 23-46.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.kkt.limits import CLEAR, CLEARLY_MORE, EPS, ROUNDING, participation_level
from dalembert.model.mechanism.precision import digits_of
from dalembert.model.mechanism.ranks import fitting_rank
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.ranks import GenericRank


NEXT_TO_SINGULAR = 1e-6
"""Part of the usual s_r / s_1 below which a configuration is told to be next to a singular one."""

TAKES_PART = 0.1
"""Part of a unit combination of rows from which on a row is named."""


@dataclass(frozen=True, eq=False)
class MultiplierFamily:
    """Bases of what may be added to the multipliers of N samples.

    Attributes
    ----------
    basis
        (N, m, r), r the largest dimension of a sample; columns beyond that of a sample are zero.
    dimension
        (N,), the dimension of every sample's family.
    unique
        (N, m): whether the multiplier of a row is the same in the whole family.
    noise
        (N,): part of a unit null vector that is rounding.
    contact_basis
        (N, p, r): what members add to the contact forces; the members that do are the last ones.
    """

    basis: Array
    dimension: Array
    unique: Array
    noise: Array
    contact_basis: Array

    @classmethod
    def single(cls, samples: int, rows: int, contacts: int = 0) -> MultiplierFamily:
        """Return families with one member each: multipliers and contact forces that are unique."""
        zero = np.zeros(samples, dtype=int)
        none, unique = np.zeros((samples, rows, 0)), np.ones((samples, rows), dtype=bool)
        return cls(none, zero, unique, zero + EPS, np.zeros((samples, contacts, 0)))

    @property
    def of_contacts(self) -> Array:
        """Which members change contact forces, (N, r)."""
        return np.asarray((self.contact_basis != 0.0).any(axis=1))


@dataclass(frozen=True, eq=False)
class FreeContactForces:
    """Directions in which the contact forces of N samples are free to change.

    Attributes
    ----------
    rows
        G: forces along the coordinates of unit forces, (N, p, nv).
    free
        Which of them there are in a sample, (N, p): those of a contact that is open are none.
    external
        Per body the wrench of the unit forces, (N, p, 6): world axes, about the body's origin.
    hinges
        Numbers of the forces that are torques of hinges which close loops, by the hinge's name.
    """

    rows: Array
    free: Array
    external: Mapping[str, Array]
    hinges: Mapping[str, int] = field(default_factory=dict)


def multiplier_families(
    mechanism: Mechanism,
    q: Array,
    t: Array,
    passive: Array | None = None,
    suspect: Array | None = None,
    contacts: FreeContactForces | None = None,
) -> MultiplierFamily:
    """Return the families of the samples q (N, nq), t (N,).

    Parameters
    ----------
    passive
        Coordinates that no motor drives, for inverse dynamics; None for forward dynamics, where none does.
    suspect
        Samples that are looked at, (N,); the others are known to be unique, or have no answer. All by default.
    contacts
        Contact forces that are free to change.
    """
    from dalembert.kkt.rows import metric_decompositions

    count, m = len(q), len(mechanism.names)
    p = 0 if contacts is None else contacts.rows.shape[1]
    samples = np.arange(count) if suspect is None else np.flatnonzero(suspect)
    result = MultiplierFamily.single(count, m, p)
    if not m + p or not samples.size:
        return result
    if mechanism.nv > LARGEST_SURVEYED:
        raise UnsupportedError(
            f"which forces of {mechanism.name!r} are unique takes a dense decomposition of {mechanism.nv} velocities; "
            f"they are looked for up to {LARGEST_SURVEYED}: ask a shorter one of its kind"
        )
    q, t = q[samples], t[samples]
    M, A = np.asarray(mechanism.mass_matrix(q)), np.asarray(mechanism.jacobian(q, t))
    G = np.zeros((len(q), 0, mechanism.nv)) if contacts is None else contacts.rows[samples]
    if passive is not None:
        M, A, G = M[:, passive][:, :, passive], A[:, :, passive], G[:, :, passive]
    rank = fitting_rank(mechanism, q[0], float(t[0])) if passive is None and m else None
    scales = rank.scales if rank is not None else np.ones(0)
    if rank is None and m:
        scales = _scales(mechanism, mechanism.generic_rank(None, float(t[0])).moving(A))
    if m and A.shape[2]:
        U, s = metric_decompositions(A, M, scales)
    else:  # no rows, or no coordinate is left that they could act on
        U, s = np.tile(np.eye(m), (len(q), 1, 1)), np.zeros((len(q), 0))
    relative = _relative(s, m)
    if rank is not None:
        ranks = _ranks(mechanism, rank, q, t, relative)
    else:
        ranks = np.count_nonzero(relative > digits_of(mechanism), axis=1)
    family = _collected(samples, count, U, ranks, _noise(relative, ranks), scales, p)
    if contacts is None or not A.shape[2]:
        return family
    pressed = PressedRows(M, A, scales, U, s, ranks)
    return _with_contacts(family, samples, pressed, G, contacts.free[samples], digits_of(mechanism))


def _collected(
    samples: Array, count: int, U: Array, ranks: Array, noise: Array, scales: Array, p: int
) -> MultiplierFamily:
    """Return the bases D U2 with entries that are rounding set to zero."""
    m = U.shape[1]
    widest = int(m - ranks.min(initial=m))
    basis, unique = np.zeros((count, m, widest)), np.ones((count, m), dtype=bool)
    dimension, level = np.zeros(count, dtype=int), np.full(count, EPS)
    for rank in np.unique(ranks):
        some = np.flatnonzero(ranks == rank)
        null = U[some][:, :, rank:]
        alone = np.linalg.norm(null, axis=2) <= noise[some, None]
        basis[samples[some], :, : m - rank] = scales[:, None] * np.where(alone[:, :, None], 0.0, null)
        unique[samples[some]] = alone
        dimension[samples[some]] = m - rank
    level[samples] = noise
    return MultiplierFamily(basis, dimension, unique, level, np.zeros((count, p, widest)))


class PressedRows(NamedTuple):
    """Constraint rows that contact forces press on: M, A, scales, and U, s and rank of the rows in the metric."""

    M: Array
    A: Array
    scales: Array
    U: Array
    s: Array
    ranks: Array

    def members(self, i: int, G: Array, size: float, digits: float) -> tuple[Array, Array, float]:
        """Return multipliers (m, h) and forces (p, h) of contact forces along G (p, n) that the rows of a sample bear.

        Rows count by their scales; those of contacts by `size`, the largest. The last number is rounding of a unit
        member.
        """
        from dalembert.kkt.rows import rows_in_metric

        m, r = len(self.scales), int(self.ranks[i])
        scales = np.append(self.scales, np.full(len(G), 1.0 / size))
        B = rows_in_metric(np.vstack([self.A[i], G])[None], self.M[i][None], scales)[0]
        U, s = self.U[i][:, :r], self.s[i][:r]
        V = B[:m].T @ U / s
        along = B[m:] @ V
        left, singular, _ = np.linalg.svd(B[m:] - along @ V.T)
        largest = float(np.linalg.norm(B[m:], axis=1).max(initial=0.0))
        noise = ROUNDING * (float(s[0] / s[-1]) if r else 1.0)
        h = int(np.count_nonzero(singular > max(digits, noise) * largest))
        forces, lam = left[:, h:], U / s @ (along.T @ left[:, h:])
        lengths = np.sqrt((forces**2).sum(axis=0) + (lam**2).sum(axis=0))
        weakest = float(singular[h - 1]) / largest if h else 1.0
        level = participation_level(noise / max(weakest, EPS))
        lam, forces = (np.where(np.abs(x / lengths) <= level, 0.0, x / lengths) for x in (lam, forces))
        return self.scales[:, None] * lam, forces / size, level


def _with_contacts(
    family: MultiplierFamily, samples: Array, pressed: PressedRows, G: Array, free: Array, digits: float
) -> MultiplierFamily:
    """Return the families with the members that change contact forces behind the others."""
    size = float(np.linalg.norm(G, axis=2).max(initial=0.0, where=free)) or 1.0
    bases = []
    for i in range(len(samples)):
        active = np.flatnonzero(free[i])
        if active.size:
            lam, forces, level = pressed.members(i, G[i, active], size, digits)
            if forces.shape[1]:
                bases.append((int(samples[i]), active, lam, forces, level))
    widest = max((forces.shape[1] for *_, forces, _ in bases), default=0)
    shape, noise, dimension = family.basis.shape, family.noise.copy(), family.dimension.copy()
    basis = np.concatenate([family.basis, np.zeros((*shape[:2], widest))], axis=2)
    contact_basis = np.concatenate([family.contact_basis, np.zeros((shape[0], G.shape[1], widest))], axis=2)
    for k, active, lam, forces, level in bases:
        columns = slice(shape[2], shape[2] + forces.shape[1])
        basis[k, :, columns], contact_basis[k, active, columns] = lam, forces
        noise[k] = max(noise[k], level)
        dimension[k] += forces.shape[1]
    return replace(
        family, basis=basis, contact_basis=contact_basis, noise=noise, dimension=dimension,
        unique=family.unique & ~(basis[:, :, shape[2] :] != 0.0).any(axis=2),
    )  # fmt: skip


def _ranks(mechanism: Mechanism, rank: GenericRank, q: Array, t: Array, relative: Array) -> Array:
    """Return the rank of every sample: that of the first where it fits, else one around a sample that it does not fit.

    Where a configuration is singular to the last digit, the rows that remain count.
    """
    ranks, open_samples = np.zeros(len(q), dtype=int), np.arange(len(q))
    digits = digits_of(mechanism)
    while open_samples.size:
        r, some = rank.rank, relative[open_samples]
        tolerance = max(CLEAR * digits, CLEARLY_MORE * rank.dropped)
        fits = some[:, r] <= tolerance if r < rank.rows else np.ones(open_samples.size, dtype=bool)
        fits &= some[:, r - 1] > digits if r else True
        fits[0] = True  # the rank was decided around this one
        ranks[open_samples[fits]] = r
        open_samples = open_samples[~fits]
        if open_samples.size:
            rank = fitting_rank(mechanism, q[open_samples[0]], float(t[open_samples[0]]))
    lost = (relative[np.arange(len(q)), np.maximum(ranks, 1) - 1] <= ROUNDING) & (ranks > 0)
    return np.where(lost, np.count_nonzero(relative > ROUNDING, axis=1), ranks)


def _relative(s: Array, m: int) -> Array:
    """Return s_i / s_1, (N, m), zeros where there are fewer than m."""
    relative = np.zeros((len(s), m))
    largest = s.max(axis=1, initial=0.0)[:, None]
    relative[:, : s.shape[1]] = np.divide(s, largest, out=np.zeros_like(s), where=largest > 0.0)
    return relative


def _noise(relative: Array, ranks: Array) -> Array:
    """Return what a unit null vector must have on a row that takes part in it, per sample."""
    wide = np.concatenate([np.ones((len(ranks), 1)), relative, np.zeros((len(ranks), 1))], axis=1)
    samples = np.arange(len(ranks))
    kept, dropped = wide[samples, ranks], wide[samples, ranks + 1]
    noise = np.maximum(ROUNDING, dropped) / np.maximum(kept, EPS)
    return np.array([participation_level(float(x)) for x in noise])


def _scales(mechanism: Mechanism, A: Array) -> Array:
    """Return one over the length that rows of a constraint and kind have among the passive coordinates."""
    size = np.linalg.norm(A, axis=2).max(axis=0)
    kinds = list(zip(mechanism.row_groups, mechanism.angular_rows, strict=True))
    largest = np.array([max(x for x, other in zip(size, kinds, strict=True) if other == kind) for kind in kinds])
    return 1.0 / np.where(largest > 0.0, largest, 1.0)


def singularity_in_words(mechanism: Mechanism, q: Array, t: float) -> str:
    """Return which rows lose their rank at a configuration, and how far it is from a singular one; else nothing.

    The combination of rows that is lost goes with the smallest singular value that counts elsewhere.
    """
    from dalembert.kkt.rows import metric_decompositions

    if not mechanism.names or mechanism.nv > LARGEST_SURVEYED:
        return ""
    rank = fitting_rank(mechanism, q, t)
    if not rank.rank:
        return ""
    M, A = np.asarray(mechanism.mass_matrix(q))[None], np.asarray(mechanism.jacobian(q, t))[None]
    U, s = metric_decompositions(rank.moving(A), M, rank.scales)
    far = float(s[0, rank.rank - 1] / s[0, 0]) if s[0, 0] > 0.0 else 0.0
    if far > NEXT_TO_SINGULAR * rank.kept:
        return ""
    lost = np.abs(U[0][:, rank.rank - 1 : rank.rank])
    if far <= ROUNDING:  # all that is dropped here and not elsewhere: members of a larger null space
        lost = np.abs(U[0][:, np.count_nonzero(s[0] > ROUNDING * s[0, 0]) :])
    named = [
        name for name, part in zip(mechanism.names, lost.max(axis=1, initial=0.0), strict=True) if part > TAKES_PART
    ]
    where = "is singular" if far <= ROUNDING else "is next to a singular one"
    return (
        f"the configuration {where}, s_r / s_1 = {far:.1e} where {rank.kept:.1e} is usual: the rows "
        f"{', '.join(map(repr, named))} depend on each other there"
    )
