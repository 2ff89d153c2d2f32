"""The ways in which something can be computed, with what each costs: a table for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RouteLine:
    """One way.

    Attributes
    ----------
    route
        Its name, as `compile(..., route=...)` takes it.
    operations, depth
        Operations of its straight-line code, and the longest chain of them that wait for each other; None where the
        route cannot be taken.
    why
        Why it is taken, or why not.
    competes, taken
        Whether "auto" tries it, and whether it takes it.
    """

    route: str
    operations: int | None
    depth: int | None
    why: str
    competes: bool = False
    taken: bool = False


@dataclass(frozen=True)
class RouteTable:
    """All ways for one mechanism; `print` shows them, fewest operations first."""

    mechanism: str
    what: str
    size: str
    lines: tuple[RouteLine, ...]

    @property
    def taken(self) -> str:
        """The route that "auto" takes."""
        return next(line.route for line in self.lines if line.taken)

    def __getitem__(self, route: str) -> RouteLine:
        return {line.route: line for line in self.lines}[route]

    def __str__(self) -> str:
        head = f"{self.what!r} of {self.mechanism!r}: {self.size}"
        rows = [("  route", "operations", "depth", "why")]
        for line in self.lines:
            figures = ("-" if x is None else f"{x:,}" for x in (line.operations, line.depth))
            rows.append((f"{'*' if line.taken else ' '} {line.route}", *figures, line.why))  # type: ignore[arg-type]
        width = [max(len(row[k]) for row in rows) for k in range(3)]
        texts = [f"{a:<{width[0]}}  {b:>{width[1]}}  {c:>{width[2]}}  {why}" for a, b, c, why in rows]
        return "\n".join((head, *texts))
