"""Families of multipliers: what may be added to the multipliers of a state without changing its motion.

Symbols: A rows, D scales of rows, B = D A L^-T rows in the metric of the mass (`kkt/rows.py`), N a basis of null(A^T).

In forward dynamics lam + N z causes the same motion for every z. In inverse dynamics with driven coordinates d and
passive ones p, motors make up for whatever the rows do along d, so that the family is null(A_p^T), and the forces of
the motors change by A_d^T N z. The rank is that of the mechanism (`ranks.py`), and that of the sample alone where it is
singular.

Source: M. Wojtyra, "Joint reaction forces in multibody systems with redundant constraints", Multibody System Dynamics
14 (2005) 23-46.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """

    basis: Array
    dimension: Array
    unique: Array
    noise: Array

    @classmethod
    def single(cls, samples: int, rows: int) -> MultiplierFamily:
        """Return families with one member each: multipliers that are unique."""
        zero = np.zeros(samples, dtype=int)
        return cls(np.zeros((samples, rows, 0)), zero, np.ones((samples, rows), dtype=bool), zero + EPS)


def multiplier_families(
    mechanism: Mechanism, q: Array, t: Array, passive: Array | None = None, suspect: Array | None = None
) -> MultiplierFamily:
    """Return the families of the samples q (N, nq), t (N,).

    Parameters
    ----------
    passive
        Coordinates that no motor drives, for inverse dynamics; None for forward dynamics, where none does.
    suspect
        Samples that are looked at, (N,); the others are known to be unique, or have no answer. All by default.
    """
    from dalembert.kkt.rows import metric_decompositions

    count, m = len(q), len(mechanism.names)
    samples = np.arange(count) if suspect is None else np.flatnonzero(suspect)
    result = MultiplierFamily.single(count, m)
    if not m or not samples.size:
        return result
    if mechanism.nv > LARGEST_SURVEYED:
        raise UnsupportedError(
            f"which forces of {mechanism.name!r} are unique takes a dense decomposition of {mechanism.nv} velocities; "
            f"they are looked for up to {LARGEST_SURVEYED}: ask a shorter one of its kind"
        )
    q, t = q[samples], t[samples]
    M, A = np.asarray(mechanism.mass_matrix(q)), np.asarray(mechanism.jacobian(q, t))
    if passive is not None:
        M, A = M[:, passive][:, :, passive], A[:, :, passive]
    rank = fitting_rank(mechanism, q[0], float(t[0])) if passive is None else None
    scales = (
        rank.scales if rank is not None else _scales(mechanism, mechanism.generic_rank(None, float(t[0])).moving(A))
    )
    if A.shape[2]:
        U, s = metric_decompositions(A, M, scales)
    else:  # no coordinate is left that rows could act on
        U, s = np.tile(np.eye(m), (len(q), 1, 1)), np.zeros((len(q), 0))
    relative = _relative(s, m)
    if rank is not None:
        ranks = _ranks(mechanism, rank, q, t, relative)
    else:
        ranks = np.count_nonzero(relative > digits_of(mechanism), axis=1)
    return _collected(samples, count, U, ranks, _noise(relative, ranks), scales)


def _collected(samples: Array, count: int, U: Array, ranks: Array, noise: Array, scales: Array) -> MultiplierFamily:
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
    return MultiplierFamily(basis, dimension, unique, level)


def _ranks(mechanism: Mechanism, rank: GenericRank, q: Array, t: Array, relative: Array) -> Array:
    """Return the rank of every sample: that of the first where it fits, else one around a sample that it does not fit.

    Where a configuration is singular to the last digit, the rows that remain count.
    """
    ranks, left = np.zeros(len(q), dtype=int), np.arange(len(q))
    digits = digits_of(mechanism)
    while left.size:
        r, some = rank.rank, relative[left]
        tolerance = max(CLEAR * digits, CLEARLY_MORE * rank.dropped)
        fits = some[:, r] <= tolerance if r < rank.rows else np.ones(left.size, dtype=bool)
        fits &= some[:, r - 1] > digits if r else True
        fits[0] = True  # the rank was decided around this one
        ranks[left[fits]] = r
        left = left[~fits]
        if left.size:
            rank = fitting_rank(mechanism, q[left[0]], float(t[left[0]]))
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
