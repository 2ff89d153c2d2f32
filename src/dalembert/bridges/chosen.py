"""What all bridges ask of a kernel: smooth outputs, inputs that fit, a name of its content; guests by their extra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import MissingExtraError, ShapeError, UnsupportedError
from dalembert.kernel import cache
from dalembert.kernel.derivatives import chosen_ports

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.kernel.program.program import Port

VERDICT = "status"
"""Name of the output that is a code, not a quantity: it has no derivative."""


def smooth_outputs(kernel: Kernel, outputs: Sequence[str] | str | None) -> list[int]:
    """Return the places of the named outputs; without names, all but the verdict."""
    if outputs is None:
        return [k for k, port in enumerate(kernel.outputs) if port.name != VERDICT]
    return chosen_ports(kernel.outputs, outputs, "output")


def leading(array: Any, port: Port) -> tuple[int, ...]:
    """Return the leading axes of an array, those of a batch."""
    return tuple(array.shape[: len(array.shape) - len(port.shape)])


def fitting(
    kernel: Kernel,
    inputs: Sequence[Any],
    taken: Callable[[Any, Port], Any],
    broadcast: Callable[[Any, tuple[int, ...]], Any],
) -> list[Any]:
    """Return a kernel's inputs as arrays of a guest, each one sample or the whole batch.

    `taken(x, port)` makes an array of an input, `broadcast(array, shape)` repeats it; both are the guest's.
    """
    ports, name = kernel.inputs, kernel.name
    if len(inputs) != len(ports):
        names = ", ".join(port.name for port in ports)
        raise ShapeError(f"kernel {name!r} takes {len(ports)} inputs ({names}), not {len(inputs)}")
    arrays = []
    for x, port in zip(inputs, ports, strict=True):
        array = taken(x, port)
        if array.ndim == 0 and port.shape == (1,):
            array = array.reshape(1)
        axes = len(port.shape)
        if array.ndim < axes or tuple(array.shape[array.ndim - axes :]) != port.shape:
            raise ShapeError(
                f"input {port.name!r} of kernel {name!r} is {port.shape} or a batch (..., "
                f"{', '.join(map(str, port.shape))}), not {tuple(array.shape)}"
            )
        arrays.append(array)
    leads = [leading(array, port) for array, port in zip(arrays, ports, strict=True)]
    try:
        batch = np.broadcast_shapes(*leads)
    except ValueError as error:
        raise ShapeError(f"batches of the inputs of kernel {name!r} must agree: {leads}") from error
    return [
        array if not lead or lead == batch else broadcast(array, batch + port.shape)
        for array, lead, port in zip(arrays, leads, ports, strict=True)
    ]


def with_axis_first(
    kernel: Kernel,
    size: int,
    inputs: Sequence[Any],
    axes: Sequence[int | None],
    moved: Callable[[Any, int], Any],
    broadcast: Callable[[Any, tuple[int, ...]], Any],
) -> list[Any]:
    """Return inputs of a mapped call with the new axis before the batch that is there; of neither, one sample for all.

    `moved(array, axis)` puts an axis first, `broadcast(array, shape)` repeats; both are the guest's.
    """
    ports = kernel.inputs
    arrays = [x if d is None else moved(x, d) for x, d in zip(inputs, axes, strict=True)]
    inner = [leading(x, port)[0 if d is None else 1 :] for x, d, port in zip(arrays, axes, ports, strict=True)]
    batch = (size, *next((lead for lead in inner if lead), ()))
    full = []
    for x, d, lead, port in zip(arrays, axes, inner, ports, strict=True):
        if d is not None or lead:
            ones = (1,) * (len(batch) - 1 - len(lead))
            x = x.reshape((size if d is not None else 1, *(lead or ones), *port.shape))
            x = broadcast(x, batch + port.shape)
        full.append(x)
    return full


def guest(module: str, package: str, extra: str, purpose: str) -> Any:
    """Return an optional library, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error


def content_name(kernel: Kernel, *more: str) -> str:
    """Return a name of what a kernel computes: the same in every process, another for another function or type.

    Guests that keep compiled programs (JAX on disk, PyTorch in a file) call kernels by name: were the name a mere
    number, such a program would call whatever has that number in its next process.
    """
    source = getattr(kernel, "_source", None)
    if source is None:
        raise UnsupportedError(
            f"{kernel!r} runs compiled loops, which have no expressions to differentiate or to name; other libraries "
            "take kernels of mechanisms that are small enough to unroll (backend='cpu')"
        )
    if source.parts is not None:
        parts = ["by name", cache.package_stamp(), *source.parts]
    else:
        parts = ["by content", source.text() or f"at {id(source)}"]
    return f"dalembert_{cache.key([*parts, kernel.backend, kernel.options.dtype, *more])[:32]}"
