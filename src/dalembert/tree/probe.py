"""What a mechanism's constrained dynamics has to cope with, found from its matrices at a few configurations.

Rank is decided on equilibrated matrices, as everywhere in this library: M scaled to unit diagonal (plus the rows
where M is zero), A M^-1 A^T likewise. A mechanism whose rows are independent at all probes gets the plain code; a
configuration where they are not is told by its verdict and left to `kkt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dalembert.tree.judged import Needs

Array = np.ndarray

NEARLY_IMPLIED = 1e-6
"""Rows count as redundant where the unit-diagonal Delassus matrix has a smaller eigenvalue than this at a probe."""

NEARLY_MASSLESS = 1e-12
"""M counts as singular where its unit-diagonal form has a smaller eigenvalue: lighter links lose all digits in M^-1."""


PART = 1e-6
"""Component of a null vector from which on a row has a part in it."""

FADED = 1e-3
"""Part of its typical G_ii up to which a row is scaled up: one that fades further at some configuration counts less and
less, and not at all where rounding is all that is left of it."""


def probe(M: Float[Array, "N n n"], A: Float[Array, "N m n"], groups: Sequence[int] | None = None) -> Needs:
    """Return what M and A at N configurations ask for; `groups` (m,) says which rows belong together."""
    groups = tuple(range(A.shape[1])) if groups is None else tuple(groups)
    plain, weighed = _delassus(M, A, 0.0, groups), _delassus(M, A, 1.0, groups)
    light = any(_small(one) > _small(two) for one, two in zip(plain.spectra, weighed.spectra, strict=True))
    massless = light or any(_spectrum(m)[0] < NEARLY_MASSLESS for m in M)
    found = weighed if massless else plain
    redundant = any(_small(spectrum) for spectrum in found.spectra)
    heavy = _diagonals(found.H).max(initial=0.0) or 1.0
    typical, idle = _typical(_diagonals(found.G), groups, 1.0 / heavy)
    sizes, still = _typical((A * A).sum(axis=2), groups, 1.0)
    return Needs(
        redundant,
        massless,
        mass_scales=_scales(found.H),
        row_scales=_tuple(typical**-0.5),
        row_floors=_tuple(np.where(idle, 1.0, FADED) * typical),
        size_floors=_tuple(np.where(still, 1.0, FADED**2) * sizes),
        dependent=_dependent(found.G, typical),
        groups=groups,
    )


class _Probed(NamedTuple):
    """H and its Delassus matrix G at all probes, and the eigenvalues of G with unit diagonal."""

    H: Array
    G: Array
    spectra: list[Array]


def _delassus(M: Array, A: Array, factor: float, groups: tuple[int, ...]) -> _Probed:
    """Return what M + factor A^T R A gives at all probes."""
    weights = [factor * _weights(m, a) for m, a in zip(M, A, strict=True)]
    H = np.array([m + a.T @ (w[:, None] * a) for m, a, w in zip(M, A, weights, strict=True)])
    G = np.array([a @ _inverse(h) @ a.T for h, a in zip(H, A, strict=True)])
    return _Probed(H, G, [_spectrum(g, groups) for g in G])


def _inverse(H: Array) -> Array:
    """Return the inverse of H, of what is not zero in it; scaled first, so that light coordinates count."""
    diagonal = np.diag(H)
    d = np.where(diagonal > 0, np.abs(diagonal) + (diagonal <= 0), 1.0) ** -0.5
    return d[:, None] * np.linalg.pinv(d[:, None] * H * d, hermitian=True) * d


def _small(spectrum: Array) -> int:
    """Return how many rows others seem to imply: beside very light coordinates heavy rows look so, too."""
    return int(np.count_nonzero(spectrum < NEARLY_IMPLIED))


def _spectrum(P: Array, groups: Sequence[int] | None = None) -> Array:
    """Return the eigenvalues of P scaled to unit diagonal, or to at most one within each group; zeros come first."""
    if not P.size:
        return np.ones(1)
    diagonal = _grouped(np.diag(P), groups)
    d = np.where(diagonal > 0, np.abs(diagonal) + (diagonal <= 0), 1.0) ** -0.5
    return np.linalg.eigvalsh(np.where(diagonal > 0, d, 0.0)[:, None] * P * np.where(diagonal > 0, d, 0.0))


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
    size = (A * A).sum(axis=1)
    heavy = np.divide((A * A) @ masses, size, out=np.zeros_like(size), where=size > 0)
    heavy = np.where(heavy > 0, heavy, masses.mean() or 1.0)
    return np.divide(heavy, size, out=np.zeros_like(size), where=size > 0)


def _dependent(G: Float[Array, "N m m"], typical: Array) -> tuple[bool, ...]:
    """Say which rows have a part in a null vector of the scaled Delassus matrix at some probe."""
    found = np.zeros(len(typical), dtype=bool)
    for each in G / np.sqrt(np.outer(typical, typical)):
        values, vectors = np.linalg.eigh(each)
        found |= (np.abs(vectors[:, values < NEARLY_IMPLIED]) > PART).any(axis=1)
    return tuple(map(bool, found))


def _scales(P: Float[Array, "N k k"]) -> tuple[float, ...]:
    """Return the median diagonal to the power -1/2; one where it is zero."""
    middle = np.median(_diagonals(P), axis=0)
    return _tuple(np.where(middle > 0, middle, 1.0) ** -0.5)


def _typical(sizes: Float[Array, "N m"], groups: Sequence[int], otherwise: float) -> tuple[Array, Array]:
    """Return the median size of each row, the largest of its group (m,), and which are zero (m,).

    Those take the largest of all, or `otherwise` where nothing moves.
    """
    middle = _grouped(np.median(sizes, axis=0), groups)
    idle = middle <= 0
    return np.where(idle, middle.max(initial=0.0) or otherwise, middle), idle


def _diagonals(P: Float[Array, "N k k"]) -> Array:
    return np.diagonal(P, axis1=1, axis2=2)


def _tuple(x: Array) -> tuple[float, ...]:
    return tuple(map(float, x))
