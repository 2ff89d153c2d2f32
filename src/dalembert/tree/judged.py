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
    redundant, massless
        Whether rows of A may depend on each other, whether M may be singular.
    mass_scales, row_scales
        Constants near H_ii^-1/2 (n,) and G_ii^-1/2 (m,).
    row_floors, size_floors
        G_ii and |A_i|^2 (m,) below which a row is not scaled up any further. A constraint that can move nothing at any
        probe has rows of rounding, or none: what is typical of the others is its floor.
    dependent
        Per row, whether it has a part in a dependence at a probe.
    groups
        Per row the constraint it belongs to: a row that does next to nothing beside others of its group is rounding of
        the model's numbers, not a row of its own.
    """

    redundant: bool
    massless: bool
    mass_scales: tuple[float, ...]
    row_scales: tuple[float, ...]
    row_floors: tuple[float, ...]
    size_floors: tuple[float, ...]
    dependent: tuple[bool, ...]
    groups: tuple[int, ...]

    def of_rows(self, rows: Sequence[int]) -> Needs:
        """Return the needs of some of the rows."""
        words = ("row_scales", "row_floors", "size_floors", "dependent", "groups")
        return replace(self, **{word: tuple(getattr(self, word)[i] for i in rows) for word in words})


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

    a (n,), the motion that it is, lam (m,), T_f^2, T_l^2, what the last correction of lam moved in the measure of
    T_l^2, and the pivots of rows, relative.
    """

    a: list[Scalar]
    motion: Any
    lam: list[Scalar]
    free: Scalar
    held: Scalar
    unrest: Scalar
    row_pivots: list[Scalar]


@dataclass(frozen=True, eq=False)
class BlockAnswer:
    """Scalars of one solve: a (n,), lam (m,), status (`kkt.Status`), residuals of the two block rows (2,)."""

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
        unrest=found.unrest,
        mass_pivots=relative(system.mass.pivots, needs.mass_scales),
        row_pivots=found.row_pivots,
        mass_scales=needs.mass_scales,
        row_scales=needs.row_scales,
        inputs=asked.inputs,
    )
    omega = residuals(evidence)
    return BlockAnswer(found.a, found.lam, verdict(evidence, omega, needs.redundant, limits), omega)


def relative(pivots: Vector, scales: Sequence[float]) -> list[Scalar]:
    """Return pivots times the squares of their scales."""
    return [mul(scales[k] ** 2, pivot) for k, pivot in sorted(pivots.items())]
