"""What makers of quantities share: a mechanism laid out once, ports and figures, what is refused.

Matrices with as many rows as columns have no place in memory beyond some size: they are refused with that size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel.program import Port
from dalembert.tree.large.constrained import LargeSystem
from dalembert.tree.large.kernel import Quantity
from dalembert.tree.large.layout import Layout
from dalembert.tree.large.tree import LargeTree
from dalembert.tree.needs import row_weights_of

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray

LARGEST_MATRIX = 2**30
"""Bytes of a dense matrix that is still filled."""

ROUTES = ("auto", "looped")
"""Routes that mean loops here."""

UNROLLED = ("efpa", "pv", "caba", "matrix", "aba")
"""Routes of straight-line code (`tree/routes/table.py`, which is not imported here: it needs CasADi)."""


def large_tree(mechanism: Mechanism) -> LargeTree:
    """Return a mechanism laid out, once for all its quantities."""
    if "_large_tree" not in mechanism.__dict__:
        mechanism.__dict__["_large_tree"] = LargeTree(Layout.of(mechanism))
    return mechanism.__dict__["_large_tree"]


def large_system(mechanism: Mechanism) -> LargeSystem:
    """Return its block system, planned once."""
    if "_large_system" not in mechanism.__dict__:
        mechanism.__dict__["_large_system"] = LargeSystem(large_tree(mechanism))
    return mechanism.__dict__["_large_system"]


def weighed(mechanism: Mechanism, metric: Any) -> LargeSystem:
    """Return the block system whose multipliers are least in a metric."""
    weights = row_weights_of(mechanism, metric)
    return large_system(mechanism) if weights is None else LargeSystem(large_tree(mechanism), weights)


def quantity(mechanism: Mechanism, inputs: str, outputs: dict[str, tuple[int, int]], evaluate: Any) -> Quantity:
    """Return a quantity with its ports and figures; `inputs` names q, v, a, tau, y1, t, restitution, y2, b."""
    of_rows = {name for name in ("restitution", "y2", "b") if name in inputs.split()}
    sizes = {"q": mechanism.nq, "t": 1, **dict.fromkeys(of_rows, len(mechanism.names) if of_rows else 0)}
    ports = tuple(Port(name, sizes.get(name, mechanism.nv), 1) for name in inputs.split())
    figures: dict[str, Any] = {
        "bodies": len(mechanism.bodies),
        "memory_bytes": large_tree(mechanism).bytes,
    }
    system: LargeSystem | None = mechanism.__dict__.get("_large_system")
    if system is not None:
        figures |= {"rows": system.rows.m, "widest_front": system.width}
        figures["memory_bytes"] += system.bytes
    return Quantity(ports, tuple(Port(name, *size) for name, size in outputs.items()), evaluate, figures)


def solved(mechanism: Mechanism, motion: str, forces: str) -> dict[str, tuple[int, int]]:
    """Return the outputs of a solve with their shapes."""
    return {motion: (mechanism.nv, 1), forces: (len(mechanism.names), 1), "status": (1, 1)}


def into(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a function of one state that returns nothing."""

    def evaluate(*arrays: Array) -> None:
        function(*arrays)

    return evaluate


def refuse_route(mechanism: Mechanism, route: str) -> None:
    """Refuse routes that are not loops, or do not exist."""
    if route in ROUTES:
        return
    if route not in UNROLLED:
        raise ModelError(f"route={route!r} is not one of {', '.join(map(repr, (*ROUTES, *UNROLLED)))}")
    raise UnsupportedError(f"route={route!r} is unrolled; {mechanism.name!r} is looped over: backend='cpu' unrolls it")


def refuse_matrix(mechanism: Mechanism, what: str, rows: int, columns: int, instead: str) -> None:
    """Refuse a dense matrix that is too large."""
    size = 8 * rows * columns
    if size > LARGEST_MATRIX:
        raise UnsupportedError(
            f"{what!r} of {mechanism.name!r} is a dense {rows} x {columns} matrix of {size:,} bytes "
            f"({size / 2**30:.3g} GiB); at most {LARGEST_MATRIX:,} are filled. {instead}"
        )
