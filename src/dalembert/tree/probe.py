"""What a mechanism's constrained dynamics has to cope with, found from its matrices at a few configurations.

Rank is decided on equilibrated matrices, as everywhere in this library: M scaled to unit diagonal (plus the rows
where M is zero), A M^-1 A^T likewise. A mechanism whose rows are independent at all probes gets the plain code; a
configuration where they are not is told by its verdict and left to `kkt`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dalembert.tree.block_solve import Needs

Array = np.ndarray

NEARLY_IMPLIED = 1e-6
"""Rows count as redundant where the unit-diagonal Delassus matrix has a smaller eigenvalue than this at a probe."""

NEARLY_MASSLESS = 1e-12
"""M counts as singular where its unit-diagonal form has a smaller eigenvalue: lighter links lose all digits in M^-1."""


def probe(M: Float[Array, "N n n"], A: Float[Array, "N m n"], groups: Sequence[int] | None = None) -> Needs:
    """Return what M and A at N configurations ask for; `groups` (m,) says which rows belong together."""
    groups = tuple(range(A.shape[1])) if groups is None else tuple(groups)
    massless = any(_smallest(m) < NEARLY_MASSLESS for m in M)
    weights = [_weights(m, a) if massless else np.zeros(a.shape[0]) for m, a in zip(M, A, strict=True)]
    H = np.array([m + a.T @ (w[:, None] * a) for m, a, w in zip(M, A, weights, strict=True)])
    G = np.array([a @ np.linalg.pinv(h, hermitian=True) @ a.T for h, a in zip(H, A, strict=True)])
    redundant = any(_smallest(g, groups) < NEARLY_IMPLIED for g in G)
    return Needs(redundant, massless, _scales(H), _scales(G, groups), groups)


def _smallest(P: Array, groups: Sequence[int] | None = None) -> float:
    """Return the smallest eigenvalue of P scaled to unit diagonal, or to at most one within each group."""
    if not P.size:
        return 1.0
    diagonal = _grouped(np.diag(P), groups)
    if not (diagonal > 0).all():
        return 0.0
    d = diagonal**-0.5
    return float(np.linalg.eigvalsh(d[:, None] * P * d)[0])


def _grouped(diagonal: Array, groups: Sequence[int] | None) -> Array:
    """Return the largest entry of each entry's group."""
    largest = diagonal.copy()
    for group in set(groups or ()):
        members = np.array([each == group for each in groups or ()])
        largest[members] = diagonal[members].max()
    return largest


def _weights(M: Array, A: Array) -> Array:
    """Return the row weights of `matrix_system.row_weights`, in numbers."""
    masses = np.diag(M)
    share = np.divide(1.0, masses, out=np.zeros_like(masses), where=masses > 0)
    reach, size = (A * A) @ share, (A * A).sum(axis=1)
    mean = masses.mean() or 1.0
    light = np.divide(mean, size, out=np.ones_like(size), where=size > 0)
    return np.divide(1.0, reach, out=light, where=reach > 0)


def _scales(P: Float[Array, "N k k"], groups: Sequence[int] | None = None) -> tuple[float, ...]:
    """Return the median diagonal, or the largest of each group, to the power -1/2; one where it is zero."""
    middle = _grouped(np.median(np.diagonal(P, axis1=1, axis2=2), axis=0), groups)
    return tuple(float(x) for x in np.where(middle > 0, middle, 1.0) ** -0.5)
