"""The ways in which something can be computed, with what each costs: a table for people."""

from __future__ import annotations

from dataclasses import dataclass

from dalembert.errors import ModelError


@dataclass(frozen=True)
class RouteLine:
    """One way.

    Attributes
    ----------
    route
        Its name, as `compile(..., route=...)` takes it.
    operations, depth
        Operations of its straight-line code, and the longest chain of them that wait for each other; None where the
        route cannot be taken, or was not counted.
    why
        Why it is taken, or why not.
    competes, taken
        Whether "auto" tries it, and whether it takes it.
    estimated
        Whether operations and depth are estimates from the elimination plan of loops, which have no list to count.
    """

    route: str
    operations: int | None
    depth: int | None
    why: str
    competes: bool = False
    taken: bool = False
    estimated: bool = False

    def figures(self) -> tuple[str, str]:
        """Return operations and depth as text: two digits where they are estimates."""
        return tuple(map(self._text, (self.operations, self.depth)))  # type: ignore[return-value]

    def _text(self, x: int | None) -> str:
        if x is None:
            return "-"
        return f"~{float(f'{x:.2g}'):,.0f}" if self.estimated else f"{x:,}"


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
        lines = {line.route: line for line in self.lines}
        if route not in lines:
            raise ModelError(f"there is no route {route!r} to {self.what!r}; there is {', '.join(map(repr, lines))}")
        return lines[route]

    def __str__(self) -> str:
        head = f"{self.what!r} of {self.mechanism!r}: {self.size}"
        rows = [("  route", "operations", "depth", "why")]
        rows += [(f"{'*' if line.taken else ' '} {line.route}", *line.figures(), line.why) for line in self.lines]
        width = [max(len(row[k]) for row in rows) for k in range(3)]
        texts = [f"{a:<{width[0]}}  {b:>{width[1]}}  {c:>{width[2]}}  {why}" for a, b, c, why in rows]
        return "\n".join((head, *texts))
