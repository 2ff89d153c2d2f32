"""Systems for hypothesis: every kind that the table of verdicts knows, built so that its kind is known exactly.

Ranks are never guessed from rounded numbers.  Entries are small integers (exact in floating point), rows depend on
each other by integer combinations, masses vanish as zero rows or as a congruence J^T D J with integer J, and scales
are powers of two, so that the rank of every matrix here is the rank of an integer matrix, found over the rationals.

    systems()      a System: M, A, and what is known about them
    regular()      only systems with an inverse: rows of full rank, masses definite on null(A)
    redundant()    rows dependent, masses definite on null(A)
    vectors(n)     right sides
    in_range(draw, A) / outside_range(draw, A)   consistent and inconsistent drifts
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

Array = np.ndarray

ENTRY = 3
"""Largest integer entry of random factors: enough for variety, small enough for exact products."""

MOST = 6
"""Most coordinates or rows: verdicts do not depend on size, and small systems shrink to readable examples."""


@dataclass(frozen=True, eq=False)
class System:
    """A mass matrix (n, n) with constraint rows (m, n); exact integers times powers of two."""

    M: Array
    A: Array

    @property
    def n(self) -> int:
        return self.M.shape[0]

    @property
    def m(self) -> int:
        return self.A.shape[0]

    @cached_property
    def rank(self) -> int:
        """Rank of A, exact."""
        return exact_rank(self.A)

    @cached_property
    def mass_rank(self) -> int:
        """Rank of M, exact."""
        return exact_rank(self.M)

    @cached_property
    def massless(self) -> int:
        """Dimension of null(M) within null(A), exact (M is semidefinite here)."""
        return self.n - exact_rank(np.vstack([self.M, self.A]))

    @property
    def regular(self) -> bool:
        """Whether the block matrix is invertible."""
        return self.rank == self.m and self.massless == 0

    def __repr__(self) -> str:
        return f"System(M={self.M.tolist()}, A={self.A.tolist()})"


def exact_rank(matrix: Array) -> int:
    """Return the rank over the rationals of a matrix of floating-point numbers, each taken at its exact value."""
    rows = [[Fraction(float(x)) for x in row] for row in np.atleast_2d(matrix)]
    rank, width = 0, matrix.shape[1]
    for column in range(width):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def integers(rows: int, columns: int, largest: int = ENTRY) -> st.SearchStrategy[Array]:
    """Return a strategy for integer matrices as floats."""
    entry = st.integers(-largest, largest)
    return st.lists(entry, min_size=rows * columns, max_size=rows * columns).map(
        lambda values: np.array(values, dtype=float).reshape(rows, columns)
    )


def vectors(size: int, largest: int = 9) -> st.SearchStrategy[Array]:
    """Return a strategy for integer vectors as floats."""
    return integers(1, size, largest).map(lambda row: row[0])


def powers_of_two(size: int, largest: int = 6) -> st.SearchStrategy[Array]:
    """Return a strategy for vectors of scales 2^k, |k| <= largest."""
    exponent = st.integers(-largest, largest)
    return st.lists(exponent, min_size=size, max_size=size).map(lambda k: np.exp2(np.array(k, dtype=float)))


@st.composite
def masses(draw: st.DrawFn, n: int, definite: bool | None = None) -> Array:
    """Draw a semidefinite mass matrix: definite, singular by zero rows, or singular by congruence.

    J^T D J + I is definite; J^T D J with few rows of J, or with zeros in D, is singular.
    """
    kind = "definite" if definite else draw(st.sampled_from(["definite", "zero rows", "congruence", "diagonal"]))
    if kind == "diagonal":
        M = np.diag(np.abs(draw(vectors(n))))
    elif kind == "congruence":
        k = draw(st.integers(0, n))
        J, D = draw(integers(k, n)), np.abs(draw(vectors(k)))
        M = J.T @ (D[:, None] * J) if k else np.zeros((n, n))
    else:
        J = draw(integers(n, n))
        M = J.T @ J + np.eye(n)
        if kind == "zero rows":
            gone = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
            M[gone] = 0.0
            M[:, gone] = 0.0
    if definite is False:
        assume(exact_rank(M) < n)
    return M


@st.composite
def rows(draw: st.DrawFn, n: int, m: int, full_rank: bool | None = None) -> Array:
    """Draw constraint rows: independent ones, or some that are integer combinations, copies or multiples of others."""
    A = draw(integers(m, n))
    dependent = draw(st.integers(0, m)) if full_rank is None else (0 if full_rank else draw(st.integers(1, m)))
    if dependent and m:
        independent = m - dependent
        mix = draw(integers(dependent, independent, 2))
        A[independent:] = mix @ A[:independent]
        A = A[draw(st.permutations(range(m)))]
    if full_rank is not None:
        assume((exact_rank(A) == m) == full_rank)
    return A


@st.composite
def systems(
    draw: st.DrawFn,
    full_rank: bool | None = None,
    definite: bool | None = None,
    scaled: bool = True,
    least_rows: int = 0,
) -> System:
    """Draw a system of any kind, or of the kind asked for; `scaled` gives coordinates and rows units of their own."""
    n = draw(st.integers(1, MOST))
    m = draw(st.integers(least_rows, n if full_rank else MOST))
    M, A = draw(masses(n, definite)), draw(rows(n, m, full_rank))
    if scaled and draw(st.booleans()):
        units, row_units = draw(powers_of_two(n)), draw(powers_of_two(m))
        M, A = units[:, None] * M * units, row_units[:, None] * A * units
    return System(M, A)


def regular(**options: object) -> st.SearchStrategy[System]:
    """Return a strategy for systems with an inverse; M may be singular."""
    return systems(full_rank=True, **options).filter(lambda s: s.regular)


def solvable(**options: object) -> st.SearchStrategy[System]:
    """Return a strategy for systems with unique accelerations; rows may be redundant, M singular."""
    return systems(**options).filter(lambda s: s.massless == 0)


def redundant(**options: object) -> st.SearchStrategy[System]:
    """Return a strategy for systems with unique accelerations and dependent rows."""
    return systems(full_rank=False, least_rows=1, **options).filter(lambda s: s.massless == 0)


def massless(**options: object) -> st.SearchStrategy[System]:
    """Return a strategy for systems with a free massless motion."""
    return systems(definite=False, **options).filter(lambda s: s.massless > 0)


def in_range(system: System) -> st.SearchStrategy[Array]:
    """Return a strategy for drifts that the rows allow: -A a for an integer a in the coordinates' units."""
    return vectors(system.n).map(lambda a: -system.A @ a)


@st.composite
def outside_range(draw: st.DrawFn, system: System) -> Array:
    """Draw a drift that contradicts dependent rows by a clear margin: one row of a dependency is changed."""
    involved = [i for i in range(system.m) if exact_rank(np.delete(system.A, i, axis=0)) == system.rank]
    assume(involved)
    row = draw(st.sampled_from(involved))
    drift = draw(in_range(system))
    drift[row] += np.abs(drift).max(initial=0.0) + max(np.abs(system.A[row]).max(), 1.0)
    return drift
