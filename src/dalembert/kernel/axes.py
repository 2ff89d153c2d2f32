"""Batches with several leading axes: taken as one long batch, and given back in their shape.

Symbols: B the leading axes (a tuple of lengths), N their product. Axes that lie in memory as one need no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from dalembert.errors import ShapeError
from dalembert.kernel.program import Port

Call = Callable[[Sequence[Any], Any], tuple[list[Any], Any]]
"""call(inputs, out) -> outputs, status."""


def leading_axes(inputs: Sequence[Any], ports: Sequence[Port]) -> tuple[int, ...] | None:
    """Return B where some input has two or more leading axes; None where one, none, or where shapes do not fit."""
    axes: dict[tuple[int, ...], str] = {}
    for value, port in zip(inputs, ports, strict=False):
        shape = getattr(value, "shape", None)
        shape = _shape(value) if shape is None else tuple(shape)
        extra = len(shape) - len(port.shape)
        if extra > 0 and shape[extra:] == port.shape:
            axes.setdefault(shape[:extra], port.name)
    if len(inputs) != len(ports) or all(len(each) < 2 for each in axes):
        return None
    if len(axes) > 1:
        found = ", ".join(f"{name!r} {each}" for each, name in axes.items())
        raise ShapeError(f"batches must have the same leading axes; they are {found}")
    return next(iter(axes))


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of nested lists; () where they are no array, which is said elsewhere."""
    try:
        return np.shape(value)
    except ValueError:
        return ()


def call_flat(
    call: Call, batch: tuple[int, ...], inputs: Sequence[Any], out: Any, ports: tuple[Sequence[Port], Sequence[Port]]
) -> tuple[list[Any], Any]:
    """Call with N samples in a row; outputs and status come back with the axes B. `ports` are those in and out."""
    samples = prod(batch)
    flat = [_flat(x, batch, samples, port) for x, port in zip(inputs, ports[0], strict=True)]
    given = None if out is None else [out] if isinstance(out, np.ndarray) else list(out)
    rows = None
    if given is not None:
        rows = [_flat(x, batch, samples, port) for x, port in zip(given, ports[1], strict=False)]
    outputs, status = call(flat, rows)
    shaped = [x.reshape(*batch, *port.shape) for x, port in zip(outputs, ports[1], strict=True)]
    for target, source in zip(given or (), shaped, strict=False):
        if not np.may_share_memory(target, source):
            target[...] = source
    return shaped if given is None else given, None if status is None else status.reshape(batch)


def _flat(value: Any, batch: tuple[int, ...], samples: int, port: Port) -> Any:
    """Return an array with its leading axes made one; what has none, or others, as it is."""
    array = value if hasattr(value, "reshape") else np.asarray(value)
    return array.reshape(samples, *port.shape) if tuple(array.shape) == (*batch, *port.shape) else value
