"""Probing of matrices at sample configurations: rank, conditioning and massless coordinates, before code is traced.

Symbols: H = M, or M + A^T R A where M may be singular, H = L L^T; B = D A L^-T, the rows in the metric of the mass; D
scales the rows of one unit in one constraint (lengths, angles) by one factor; s singular values of B.

Rank is a property of the system: the largest found at the probes, which meet its constraints, with the tolerance of its
digits. So many rows are kept, those with the largest pivots at all probes; the others are implied, each a sum of kept
ones. B does not change with the units of coordinates, D takes those of rows away: kilometres or micrometres, the same
rows are kept. One factor for each unit and constraint, not for each row: a row that does next to nothing beside others
of its constraint is rounding of the model's numbers (a loop in a plane has one across it), and scaled up it would
demand forces without limit. A configuration of lower rank is told by its pivots and left to `kkt`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.kkt.expressions.verdict import Conditioning
from dalembert.kkt.limits import BUILT, FADED, NEARLY_IMPLIED, NEARLY_MASSLESS, PART, SINGULAR_STEP, SLACK
from dalembert.kkt.newton import onto_manifold
from dalembert.kkt.rows import RowStructure, row_structure
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

CLOSING_STEPS = 30
"""Gauss-Newton steps towards a configuration that meets the constraints."""


def probe(
    M: Float[Array, "N n n"],
    A: Float[Array, "N m n"],
    groups: Sequence[int] | None = None,
    digits: float = BUILT,
    moves: bool = False,
    units: Array | None = None,
    band: tuple[float, float] | None = None,
    rank: int | None = None,
) -> Conditioning:
    """Return what M and A at N configurations ask for; `groups` (m,) says which rows have one scale.

    Of a system that `moves` somewhere, configurations in which it is locked have a rank of their own. Rows of zeros
    take the size of others, in the `units` (m,) in which these can be compared. A `rank` that is known counts; where
    it is not, singular values in a `band` are reported.
    """
    groups = tuple(range(A.shape[1])) if groups is None else tuple(groups)
    plain, weighed = _delassus(M, A, 0.0, groups), _delassus(M, A, 1.0, groups)
    light = any(_small(s) > _small(w) for s, w in zip(plain.spectra, weighed.spectra, strict=True))
    massless = light or any(_spectrum(m)[0] < NEARLY_MASSLESS for m in M)
    conditioning = weighed if massless else plain
    heavy = _diagonals(conditioning.H).max(initial=0.0) or 1.0
    units = np.ones(A.shape[1]) if units is None else units
    typical, _ = _typical(_diagonals(conditioning.G), groups, 1.0 / heavy, units)
    sizes, still = _typical((A * A).sum(axis=2), groups, 1.0, units)
    structures = [row_structure(a, h, digits, scales=typical**-0.5) for h, a in zip(conditioning.H, A, strict=True)]
    implied, sums = _dependences(structures, A, digits, moves, rank)
    return Conditioning(
        massless,
        mass_scales=_scales(conditioning.H),
        row_scales=_tuple(typical**-0.5),
        size_floors=_tuple(np.where(still, 1.0, FADED**2) * sizes),
        implied=implied,
        sums=sums,
        near=band is not None and any(_within(structure, band) for structure in structures),
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
    d = _unit(np.diag(H))
    return d[:, None] * np.linalg.pinv(d[:, None] * H * d, hermitian=True) * d


def _unit(diagonal: Array) -> Array:
    """Return what scales a diagonal to ones; one where it is not positive."""
    return np.where(diagonal > 0, np.abs(diagonal) + (diagonal <= 0), 1.0) ** -0.5


def _within(structure: RowStructure, band: tuple[float, float]) -> bool:
    """Return whether a relative singular value lies in a band."""
    least, most = (limit * float(structure.s.max(initial=0.0)) for limit in band)
    return bool(((structure.s > least) & (structure.s < most)).any())


def _dependences(
    structures: Sequence[RowStructure], A: Array, digits: float, moves: bool, known: int | None
) -> tuple[tuple[bool, ...], tuple[tuple[int, ...], ...]]:
    """Return which rows are implied by others, and of which kept rows each of them is a sum."""
    m = A.shape[1]
    rows, ranks = [structure.B for structure in structures], [structure.rank for structure in structures]
    free = [rank_here for rank_here in ranks if rank_here < A.shape[2]]
    rank = max(free if moves and free else ranks, default=0) if known is None else known
    generic = [B for B, rank_here in zip(rows, ranks, strict=True) if rank_here == rank] or rows
    basis = sorted(rows_of_rank(generic, rank))
    rest = [i for i in range(m) if i not in basis]
    largest = np.zeros((len(rest), rank))
    for B in generic:
        T = np.linalg.lstsq(B[basis].T, B[rest].T, rcond=None)[0].T if rank and rest else largest
        largest = np.maximum(largest, np.abs(T))
    parts = {i: tuple(sorted(basis[k] for k in np.flatnonzero(largest[at] > PART))) for at, i in enumerate(rest)}
    small = {i for i in rest if max(np.linalg.norm(B[i]) for B in generic) <= digits}
    return tuple(i in rest for i in range(m)), tuple(() if i in small else parts.get(i, ()) for i in range(m))


def rows_of_rank(rows: list[Array], rank: int) -> list[int]:
    """Return `rank` rows whose least pivot among all probes is largest, one after another (pivoted Gram-Schmidt)."""
    rests, basis = [B.copy() for B in rows], list[int]()
    for _ in range(rank):
        sizes = np.min([np.linalg.norm(B, axis=1) for B in rests], axis=0)
        sizes[basis] = -1.0
        basis.append(int(np.argmax(sizes)))
        for B in rests:
            unit = B[basis[-1]] / (np.linalg.norm(B[basis[-1]]) or 1.0)
            for _ in range(2):
                B -= np.outer(B @ unit, unit)
    return basis


def _small(spectrum: Array) -> int:
    """Return how many rows others seem to imply: beside very light coordinates heavy rows look so, too."""
    return int(np.count_nonzero(spectrum < NEARLY_IMPLIED))


def _spectrum(P: Array, groups: Sequence[int] | None = None) -> Array:
    """Return the eigenvalues of P scaled to unit diagonal, or to at most one within each group; zeros come first."""
    if not P.size:
        return np.ones(1)
    diagonal = _grouped(np.diag(P), groups)
    d = np.where(diagonal > 0, _unit(diagonal), 0.0)
    return np.linalg.eigvalsh(d[:, None] * P * d)


def _grouped(diagonal: Array, groups: Sequence[int] | None) -> Array:
    """Return the largest entry of each entry's group."""
    largest = diagonal.copy()
    for group in set(groups or ()):
        members = np.array([number == group for number in groups or ()])
        largest[members] = diagonal[members].max()
    return largest


def _weights(M: Array, A: Array) -> Array:
    """Return the row weights of `matrix_system.row_weights`, in numbers."""
    masses = np.diag(M)
    size = (A * A).sum(axis=1)
    heavy = np.divide((A * A) @ masses, size, out=np.zeros_like(size), where=size > 0)
    heavy = np.where(heavy > 0, heavy, (masses.mean() if masses.size else 0.0) or 1.0)
    return np.divide(heavy, size, out=np.zeros_like(size), where=size > 0)


def _scales(P: Float[Array, "N k k"]) -> tuple[float, ...]:
    """Return the median diagonal to the power -1/2; one where it is zero."""
    middle = np.median(_diagonals(P), axis=0)
    return _tuple(np.where(middle > 0, middle, 1.0) ** -0.5)


def _typical(sizes: Float[Array, "N m"], groups: Sequence[int], otherwise: float, units: Array) -> tuple[Array, Array]:
    """Return the median squared size of each row, the largest of its group (m,), and which are zero (m,).

    Those take the largest of all, in the units of rows, or `otherwise` where nothing moves.
    """
    middle = _grouped(np.median(sizes, axis=0), groups)
    still = middle <= 0
    return np.where(still, ((middle / units**2).max(initial=0.0) or otherwise) * units**2, middle), still


def _diagonals(P: Float[Array, "N k k"]) -> Array:
    return np.diagonal(P, axis1=1, axis2=2)


def _tuple(x: Array) -> tuple[float, ...]:
    return tuple(map(float, x))


def closest_closed(
    linearised: Callable[[Any], tuple[Array, Array, Array]], move: Callable[[Any, Array], Any], q: Any
) -> Any:
    """Return a configuration near q that meets the constraints, by Gauss-Newton steps; None where they fail.

    `linearised(q)` is the size of every coordinate (n,), the Jacobian (h, n) and the residuals (h,), both over the
    sizes of the residuals; `move` takes a step (n,).
    """

    def measured(q: Any) -> tuple[float, Callable[[], Array]]:
        d, J, phi = linearised(q)
        return (
            float(np.abs(phi).max(initial=0.0)),
            lambda: -d * (np.linalg.pinv(J * d, rcond=SINGULAR_STEP) @ phi),
        )

    best, least = onto_manifold(q, measured, move, CLOSING_STEPS)
    return best if least <= SLACK else None


def coordinate_sizes(M: Float[Array, "n n"]) -> Float[Array, " n"]:
    """Return M_ii^-1/2, in which steps are measured; one for a coordinate without mass."""
    return _unit(np.diag(M))
