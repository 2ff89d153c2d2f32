"""Structural solvability: the verdict on a pattern before any number, by name (seed 003, sec. 4.3).

A perfect matching is necessary for a regular Jacobian, and sufficient for almost all values; the seed says "if and only
if", which fails where entries cancel. `rank.py` checks the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dalembert.errors import SolvabilityError
from dalembert.tableau.structure.matching import (
    Blocks,
    Matching,
    blocks,
    match,
    smallest_over_determined,
    smallest_under_determined,
)
from dalembert.tableau.structure.pattern import Pattern

SETS_SHOWN = 3
"""Sets shown of each kind, the smallest first."""

SHOWN = 12
"""Names shown of one set; the rest is counted."""


@dataclass(frozen=True)
class Misfit:
    """Equations and unknowns that do not fit together: one equation too many, or one unknown.

    No member of the larger side can be left out: without it the rest fits.
    """

    equations: tuple[str, ...]
    unknowns: tuple[str, ...]
    known: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether there are more equations than unknowns."""
        return len(self.equations) > len(self.unknowns)

    def __str__(self) -> str:
        equations, unknowns = listed(self.equations), listed(self.unknowns)
        if self.over and not self.unknowns:
            return f"equation {equations} contains no unknown.{self._suggestion()}"
        if self.over:
            counts = f"{len(self.equations)} equations for {len(self.unknowns)} unknown(s)"
            return f"{counts}: equations {equations}; unknowns {unknowns}.{self._suggestion()}"
        if not self.equations:
            return f"unknown {unknowns} is in no equation.{self._suggestion()}"
        counts = f"{len(self.unknowns)} unknowns, only {len(self.equations)} equation(s) contain them"
        return f"{counts}: unknowns {unknowns}; equations {equations}.{self._suggestion()}"

    def _suggestion(self) -> str:
        if not self.over:
            return f" Add an equation for one of {listed(self.unknowns)}, or make one of them known"
        freed = f", or make one of the known {listed(self.known)} unknown" if self.known else ""
        return f" Drop one of these equations{freed}"


@dataclass(frozen=True, eq=False)
class Structure:
    """What the pattern alone says about a system."""

    matching: Matching
    known: tuple[tuple[str, ...], ...] = ()

    @property
    def pattern(self) -> Pattern:
        """The graph."""
        return self.matching.pattern

    @property
    def solvable(self) -> bool:
        """Whether a perfect matching exists."""
        return self.matching.perfect

    @property
    def rank(self) -> int:
        """The structural rank."""
        return self.matching.size

    @cached_property
    def blocks(self) -> Blocks:
        """Square blocks in solving order."""
        return blocks(self.matching)

    @cached_property
    def over_determined(self) -> tuple[Misfit, ...]:
        """Smallest sets of equations in too few unknowns, the smallest first."""
        return tuple(self._misfit(rows, cols) for rows, cols in smallest_over_determined(self.matching))

    @cached_property
    def under_determined(self) -> tuple[Misfit, ...]:
        """Smallest sets of unknowns in too few equations, the smallest first."""
        return tuple(self._misfit(rows, cols) for rows, cols in smallest_under_determined(self.matching))

    def require(self) -> None:
        """Raise `SolvabilityError` with the report if there is no perfect matching."""
        if not self.solvable:
            raise SolvabilityError(self.report(), self)

    def _misfit(self, rows: Iterable[int], cols: Iterable[int]) -> Misfit:
        rows = list(rows)
        known_names = dict.fromkeys(name for i in rows if self.known for name in self.known[i])
        return Misfit(
            tuple(self.pattern.equations[i] for i in rows),
            tuple(self.pattern.unknowns[j] for j in cols),
            tuple(known_names),
        )

    def report(self) -> str:
        """Return the verdict in words."""
        rows, cols = self.pattern.shape
        if self.solvable:
            sizes = self.blocks.sizes
            largest = int(sizes.max(initial=0))
            return f"structurally solvable: {rows} equations, {len(sizes)} blocks, the largest of {largest}"
        cover = sum(int(mask.sum()) for mask in self.matching.cover)
        lines = [
            f"structurally singular: {rows} equations, {cols} unknowns, at most {self.rank} can be matched "
            f"(a cover of {cover} equations and unknowns touches every entry)"
        ]
        for what, sets in (("many", self.over_determined), ("few", self.under_determined)):
            lines += [f"  too {what} equations: {misfit}" for misfit in sets[:SETS_SHOWN]]
            lines += [f"  ... and {len(sets) - SETS_SHOWN} more such sets"] if len(sets) > SETS_SHOWN else []
        return "\n".join(lines)

    __str__ = report


def structure(system: object, equations: object = None, unknowns: object = None) -> Structure:
    """Return the structural analysis of a pattern, a sparse matrix or a dense array; it need not be square."""
    return Structure(match(Pattern.of(system, equations, unknowns)))


def require_solvable(matching: Matching) -> None:
    """Raise `SolvabilityError` with the report if there is no perfect matching."""
    Structure(matching).require()


def listed(names: Iterable[str]) -> str:
    """Write names in quotes, long lists cut."""
    names = list(names)
    shown = ", ".join(map(repr, names[:SHOWN]))
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
