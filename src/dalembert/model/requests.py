"""Requests: the table of what a mechanism can be compiled to, and the routes of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.names import lookup, near_matches

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# The ways in which something can be computed, with what each costs: a table for people.


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


# ----------------------------------------------------------------------------------------------------------------------
# Requests, the quantities that a mechanism compiles to: a table that other rooms fill; from a request to a kernel.
#
# A room registers its requests when it is imported; `REQUEST_ROOMS` names those rooms, and they are imported when a
# request is first looked up. So `model` asks for algorithms without importing the rooms that import it.


REFERENCES = ("local", "world", "local_world_aligned")
"""Axes and point of a frame's velocity or Jacobian: the frame's own; the world's; the world's axes at the frame."""


@dataclass(frozen=True)
class Request:
    """One thing that can be compiled.

    Attributes
    ----------
    name
        As in `mechanism.compile(name)`.
    trace
        trace(mechanism, **options) returns the CasADi function, its inputs and outputs named; a `ColumnFunction` where
        matrices have columns that are computed alike.
    summary
        Inputs -> outputs and what they are, in a line.
    options
        Options that it takes, with their defaults; among them may be "frame" and "reference".
    routes
        routes(mechanism) returns the table of ways to compute it; None where there is one way.
    """

    name: str
    trace: Callable[..., Any]
    summary: str
    options: Mapping[str, Any] = field(default_factory=dict)
    routes: Callable[[Mechanism], RouteTable] | None = None

    @property
    def own(self) -> bool:
        """Whether this package traces it: its kernels are then found by the mechanism's content alone."""
        function = self.trace.func if isinstance(self.trace, partial) else self.trace
        return getattr(function, "__module__", "").startswith("dalembert.")


REQUEST_ROOMS = ("dalembert.tree", "dalembert.large")
"""Rooms that register requests when they are imported; `model` knows their names and nothing else of them."""

_TABLE: dict[str, Request] = {}

_LOOPED: dict[str, Callable[..., Kernel | None]] = {}
"""By request, who may answer it with loops instead of straight-line code."""

_LOOPED_ROUTES: list[Callable[[Mechanism, str], RouteTable | None]] = []
"""Who may describe the routes of a mechanism that is too large for straight-line code."""


def register(*requests: Request) -> None:
    """Add requests to the table; a name that is taken by another trace is refused."""
    for request in requests:
        entry = _TABLE.setdefault(request.name, request)
        if entry.trace is not request.trace:
            raise ModelError(f"the request {request.name!r} is registered twice")


def register_looped(
    make: Callable[..., Kernel | None],
    names: tuple[str, ...],
    routes: Callable[[Mechanism, str], RouteTable | None],
) -> None:
    """Add a way to answer without unrolling: make(mechanism, what, options, kernel) returns None to decline.

    So does routes(mechanism, what), the table of routes of a mechanism that is too large to be unrolled.
    """
    _LOOPED.update(dict.fromkeys(names, make))
    _LOOPED_ROUTES.append(routes)


def requests() -> dict[str, Request]:
    """Return the table of everything that can be compiled, by name."""
    for room in REQUEST_ROOMS:
        try:
            import_module(room)
        except ModuleNotFoundError as error:
            if error.name != room:
                raise
    return dict(_TABLE)


def checked_options(mechanism: Mechanism, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's options with defaults filled in; unknown words and frames are refused."""
    for name in options:
        if name not in request.options:
            takes = ", ".join(request.options) or "none"
            near = near_matches(name, request.options)
            raise ModelError(f"{request.name!r} has no option {name!r}; it takes {takes}", near=near)
    full = {**request.options, **options}
    if full.get("frame") is not None:
        mechanism.frame(full["frame"])
    if "reference" in full:
        lookup(full["reference"], dict.fromkeys(REFERENCES), "reference")
    return full


def route_table(mechanism: Mechanism, what: str) -> RouteTable:
    """Return the ways to compute a request."""
    request = lookup(what, requests(), "request")
    if request.routes is None:
        names = ", ".join(repr(name) for name, other in requests().items() if other.routes is not None)
        raise ModelError(f"{what!r} is computed in one way only; there are routes for {names}")
    tables = (routes(mechanism, what) for routes in _LOOPED_ROUTES)
    return next((table for table in tables if table is not None), None) or request.routes(mechanism)


def plain(value: Any) -> Any:
    """Return arrays, lists and tables as tuples: something that can be a key, written out in full."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        value = sorted(value.items())
    return tuple(plain(item) for item in value) if isinstance(value, list | tuple) else value


def refuse_unhashable(key: tuple[Any, ...]) -> None:
    """Refuse a request, or an option of one, that can be no name, number or list of these."""
    try:
        hash(key)
    except TypeError as error:
        what, options = key[0], dict(key[1:])
        raise ModelError(
            f"compile takes the name of a request, such as 'forward', and options that are names and numbers; got "
            f"{what!r} with {options!r}"
        ) from error


def make_kernel(mechanism: Mechanism, what: str, options: Mapping[str, Any], kernel: Mapping[str, Any]) -> Kernel:
    """Return the kernel of a request; `kernel` has the options of `Kernel` (backend, dtype, threads, width).

    Only a function that the user gave (`Servo`, `Expression`) can depend on time: without one, t may be left off.
    """
    result = _compiled(mechanism, what, options, kernel)
    if mechanism.cacheable and result.inputs and result.inputs[-1].name == "t":
        result.spare = (np.zeros(1, result.options.dtype),)
    return result


def _compiled(mechanism: Mechanism, what: str, options: Mapping[str, Any], kernel: Mapping[str, Any]) -> Kernel:
    """Return the kernel: loops where the mechanism is large, else from the cache or traced now."""
    from dalembert.kernel import Kernel
    from dalembert.kernel.engine import type_name

    request = lookup(what, requests(), "request")
    full = checked_options(mechanism, request, options)
    if "dtype" in full:
        full["dtype"] = type_name(kernel.get("dtype", full["dtype"]))
    loops = _LOOPED[what](mechanism, what, full, kernel) if what in _LOOPED else None
    if loops is not None:
        return loops
    if not (mechanism.cacheable and request.own):
        return Kernel(request.trace(mechanism, **full), **kernel)
    key = ("mechanism", mechanism.content(), what, *(f"{name}={value!r}" for name, value in sorted(full.items())))
    return Kernel.cached(key, lambda: request.trace(mechanism, **full), **kernel)
