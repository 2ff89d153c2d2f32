"""The contract of a route: `factor` an analysis once, then `solve` for any number of right sides."""

from __future__ import annotations

from typing import ClassVar, Protocol, Self

from dalembert.kkt.analysis import Analysis
from dalembert.types import Array


class RouteDeclined(Exception):  # noqa: N818 - an answer, not a fault
    """A route does not apply to this system; the message gives the reason, with numbers."""


class Route(Protocol):
    """A way to solve M a + A^T lam = f, A a = c.

    Attributes
    ----------
    name
        What the user writes in `route=`.
    handles_redundant_rows
        Whether it can solve where rows are redundant. (What it needs of M, `factor` finds out.)
    refines
        Whether its factors can also solve for a correction (both right sides arbitrary).
    """

    name: ClassVar[str]
    handles_redundant_rows: ClassVar[bool]
    refines: ClassVar[bool]

    @classmethod
    def factor(cls, analysis: Analysis) -> Self:
        """Factor, or raise `RouteDeclined`."""
        ...

    def solve(self, b: Array) -> Array:
        """Return x = (a, lam), stacked, for b = (f, c), stacked; a vector, or a matrix of columns."""
        ...


class FastRoute(Route, Protocol):
    """A route whose factors can prove by themselves that there is nothing to decide."""

    @property
    def regular(self) -> bool:
        """True when the factors alone prove, far from rounding, full row rank of A and a definite M on null(A)."""
        ...

    @property
    def magnification(self) -> float:
        """A bound (or estimate) of the norm of the inverse of the scaled block matrix."""
        ...

    @property
    def scales(self) -> Array:
        """Scales of coordinates, then of rows, to which `magnification` refers."""
        ...
