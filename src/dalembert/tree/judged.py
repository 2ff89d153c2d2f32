"""An answer to the block system with its verdict, whatever route it came by.

Symbols: H, G as in `block_solve.py`; T_f, T_l as in `verdict.py`. Residuals are made from the answer alone, never by
way of the factors that led to it: so one verdict serves all routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dalembert.tree.scalars import Scalar, mul, sub
from dalembert.tree.sparse_factor import Vector
from dalembert.tree.verdict import Evidence, Thresholds, residuals, verdict


@dataclass(frozen=True, eq=False)
class Needs:
    """What the straight-line code has to cope with, and typical sizes; see `probe.py`.

    Attributes
    ----------
    massless
        Whether M may be singular.
    mass_scales, row_scales
        Constants near H_ii^-1/2 (n,) and G_ii^-1/2 (m,), the latter one for all rows of a unit in a constraint.
    size_floors
        |A_i|^2 (m,) below which a row is not scaled up any further. A constraint that can move nothing at any probe
        has rows of rounding, or none: what is typical of the others is its floor.
    implied
        Per row, whether it is beyond the mechanism's rank: others, which are kept, imply it.
    sums
        Per row, the kept rows that an implied one is a sum of; none of a row that can move nothing.
    """

    massless: bool
    mass_scales: tuple[float, ...]
    row_scales: tuple[float, ...]
    size_floors: tuple[float, ...]
    implied: tuple[bool, ...]
    sums: tuple[tuple[int, ...], ...]

    @property
    def redundant(self) -> bool:
        """Whether some rows are implied by others."""
        return any(self.implied)

    @property
    def dependent(self) -> tuple[bool, ...]:
        """Per row, whether it has a part in a dependence."""
        parts = {j for row in self.sums for j in row}
        return tuple(implied or i in parts for i, implied in enumerate(self.implied))

    @property
    def idle(self) -> tuple[bool, ...]:
        """Per row, whether it is implied and made of no others: it bears nothing."""
        return tuple(implied and not parts for implied, parts in zip(self.implied, self.sums, strict=True))

    def of_rows(self, rows: Sequence[int]) -> Needs:
        """Return the needs of some of the rows, among which are those that implied ones are made of."""
        words = ("row_scales", "size_floors", "implied")
        place = {i: k for k, i in enumerate(rows)}
        sums = tuple(tuple(place[j] for j in self.sums[i]) for i in rows)
        return replace(self, sums=sums, **{word: tuple(getattr(self, word)[i] for i in rows) for word in words})


class MassFactor(Protocol):
    """H = L D L^T: pivots D, and -D^-1 times a vector."""

    @property
    def pivots(self) -> Vector:
        """D, by velocity."""
        ...

    def scaled(self, y: Vector) -> Vector:
        """Return -D^-1 y."""
        ...


class Judged(Protocol):
    """M and A as the verdict sees them; what a load and a motion are is the system's own affair."""

    @property
    def mass(self) -> MassFactor:
        """The factor of H."""
        ...

    def imbalance(self, load: Any, motion: Any, lam: Sequence[Scalar]) -> list[Scalar]:
        """Return f - M a - A^T lam, not by way of the factors."""
        ...

    def reached(self, motion: Any) -> list[Scalar]:
        """Return A a, not by way of the factors."""
        ...


@dataclass(frozen=True, eq=False)
class Asked:
    """Right sides, and everything that comes from outside: where that is not finite, the sample is said to be so."""

    load: Any
    c: Sequence[Scalar]
    inputs: Sequence[Scalar]


@dataclass(frozen=True, eq=False)
class Solved:
    """What a route found.

    a (n,), the motion that it is, lam (m,), T_f^2, T_l^2, and the pivots of kept rows, relative.
    """

    a: list[Scalar]
    motion: Any
    lam: list[Scalar]
    free: Scalar
    held: Scalar
    row_pivots: list[Scalar]


@dataclass(frozen=True, eq=False)
class BlockAnswer:
    """Scalars of one solve: a (n,), lam (m,), status (`kkt.Status`), residuals (3,)."""

    acceleration: list[Scalar]
    multipliers: list[Scalar]
    status: Scalar
    residuals: list[Scalar]


def judged(system: Judged, needs: Needs, limits: Thresholds, asked: Asked, found: Solved) -> BlockAnswer:
    """Return an answer with its residuals and verdict."""
    evidence = Evidence(
        imbalance=system.imbalance(asked.load, found.motion, found.lam),
        gap=[sub(*pair) for pair in zip(asked.c, system.reached(found.motion), strict=True)],
        c=asked.c,
        free=found.free,
        held=found.held,
        mass_pivots=relative(system.mass.pivots, needs.mass_scales),
        row_pivots=found.row_pivots,
        mass_scales=needs.mass_scales,
        row_scales=needs.row_scales,
        implied=needs.implied,
        inputs=asked.inputs,
    )
    omega = residuals(evidence)
    return BlockAnswer(found.a, found.lam, verdict(evidence, omega, limits), omega)


def relative(pivots: Vector, scales: Sequence[float]) -> list[Scalar]:
    """Return pivots times the squares of their scales."""
    return [mul(scales[k] ** 2, pivot) for k, pivot in sorted(pivots.items())]
