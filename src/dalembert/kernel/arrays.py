"""Arrays of a call: shapes, types, memory, leading axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalembert.errors import ShapeError, UnsupportedError
from dalembert.kernel.program.program import Port

# ----------------------------------------------------------------------------------------------------------------------
# Arrays of a call, in and out: shapes, types, memory.
#
# An input is one sample `port.shape`, or a batch `(N, *port.shape)` (several axes: below); one sample serves the
# whole batch. With no batch among the inputs the outputs are single too.


@dataclass(frozen=True)
class Arguments:
    """Checked arguments of one call.

    Attributes
    ----------
    inputs
        One array per input, of the kernel's type, single or batch.
    samples
        N; 1 where all inputs are single.
    single
        Whether no input has a batch axis.
    """

    inputs: list[NDArray[Any]]
    samples: int
    single: bool

    def is_batch(self, k: int, port: Port) -> bool:
        """Say whether input k has a batch axis."""
        return self.inputs[k].ndim > len(port.shape)


def check_inputs(
    name: str,
    inputs: Sequence[Any],
    ports: Sequence[Port],
    dtype: np.dtype[Any],
    convert: Callable[[Any, Port, np.dtype[Any]], Any] | None = None,
) -> Arguments:
    """Return the inputs as arrays of `dtype`, or say which one does not fit.

    `convert` makes an array of what was given; by default a NumPy array.
    """
    convert = convert or as_real
    if len(inputs) != len(ports):
        expected = ", ".join(f"{port.name} {port.shape}" for port in ports)
        raise ShapeError(f"kernel {name!r} takes {len(ports)} inputs ({expected}); {len(inputs)} were given")
    arrays: list[NDArray[Any]] = []
    samples: int | None = None
    sample_port = ""
    for value, port in zip(inputs, ports, strict=True):
        array = convert(value, port, dtype)
        if array.ndim == 0 and port.size == 1:
            array = array.reshape(port.shape)
        if array.shape != port.shape:
            if array.shape[1:] != port.shape or array.ndim != len(port.shape) + 1:
                raise ShapeError(
                    f"input {port.name!r} of kernel {name!r} has shape {array.shape}; expected {port.shape} "
                    f"for one sample or (..., {', '.join(map(str, port.shape))}) for a batch"
                )
            if samples is not None and len(array) != samples:
                raise ShapeError(
                    f"input {port.name!r} of kernel {name!r} has {len(array)} samples, "
                    f"but {sample_port!r} has {samples}; batches must have one length"
                )
            samples, sample_port = len(array), port.name
        arrays.append(array)
    return Arguments(arrays, 1 if samples is None else samples, samples is None)


def as_real(value: Any, port: Port, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an input as an aligned array of real numbers."""
    if isinstance(value, np.ma.MaskedArray):
        raise UnsupportedError(f"input {port.name!r} is a masked array; fill what is masked: x.filled(...)")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"input {port.name!r} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise UnsupportedError(
            f"input {port.name!r} has dtype {array.dtype}; kernels take real numbers"
            + (": pass real and imaginary parts as two inputs" if array.dtype.kind == "c" else "")
        )
    if array.dtype != dtype or not array.flags.aligned:
        array = array.astype(dtype)
    return array


def make_outputs(name: str, arguments: Arguments, ports: Sequence[Port], dtype: np.dtype[Any], out: Any) -> list[Any]:
    """Return the arrays to write: new ones, or `out` after a check."""
    batch = () if arguments.single else (arguments.samples,)
    shapes = [batch + port.shape for port in ports]
    if out is None:
        return [np.empty(shape, dtype) for shape in shapes]
    if not isinstance(out, np.ndarray | tuple | list):
        raise ShapeError(f"out= of kernel {name!r} must be an array or a list of arrays, not {type(out).__name__}")
    arrays = [out] if isinstance(out, np.ndarray) else list(out)
    if len(arrays) != len(ports):
        raise ShapeError(f"kernel {name!r} has {len(ports)} outputs; out= holds {len(arrays)}")
    for k, (array, port, shape) in enumerate(zip(arrays, ports, shapes, strict=True)):
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            words = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ShapeError(f"out= for output {port.name!r} of kernel {name!r} must be {dtype} {shape}, not {words}")
        if not array.flags.writeable or not array.flags.aligned:
            raise ShapeError(f"out= for output {port.name!r} of kernel {name!r} is read-only or not aligned")
        if _overlaps_itself(array):
            raise ShapeError(
                f"out= for output {port.name!r} of kernel {name!r} uses memory twice (strides {array.strides}), "
                "as a broadcast view does; its elements could not differ"
            )
        for other in arrays[:k]:
            if np.shares_memory(array, other):
                raise ShapeError(f"out= of kernel {name!r}: output {port.name!r} overlaps another output")
    _detach(arguments, arrays)
    return arrays


def _overlaps_itself(array: NDArray[Any]) -> bool:
    """Say whether two elements may share memory: an axis whose step is below what the axes inside it span."""
    if array.flags.c_contiguous or not array.size:
        return False
    span = array.itemsize
    for step, n in sorted((abs(step), n) for step, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if step < span:
            return True
        span = step * (n - 1) + span
    return False


def _detach(arguments: Arguments, outputs: list[Any]) -> None:
    """Copy inputs that share memory with an output, so that no sample is read after it was overwritten."""
    for k, array in enumerate(arguments.inputs):
        if any(np.may_share_memory(array, output) for output in outputs):
            arguments.inputs[k] = array.copy()


# ----------------------------------------------------------------------------------------------------------------------
# Batches with several leading axes: taken as one long batch, and given back in their shape.
#
# Symbols: B the leading axes (a tuple of lengths), N their product. Axes that lie in memory as one need no copy.


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
    if len(inputs) != len(ports) or all(len(lead) < 2 for lead in axes):
        return None
    if len(axes) > 1:
        words = ", ".join(f"{name!r} {lead}" for lead, name in axes.items())
        raise ShapeError(f"batches must have the same leading axes; they are {words}")
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
    arrays = None if out is None else [out] if isinstance(out, np.ndarray) else list(out)
    rows = None
    if arrays is not None:
        rows = [_flat(x, batch, samples, port) for x, port in zip(arrays, ports[1], strict=False)]
    outputs, status = call(flat, rows)
    shaped = [x.reshape(*batch, *port.shape) for x, port in zip(outputs, ports[1], strict=True)]
    for target, source in zip(arrays or (), shaped, strict=False):
        if not np.may_share_memory(target, source):
            target[...] = source
    return shaped if arrays is None else arrays, None if status is None else status.reshape(batch)


def _flat(value: Any, batch: tuple[int, ...], samples: int, port: Port) -> Any:
    """Return an array with its leading axes made one; what has none, or others, as it is."""
    array = value if hasattr(value, "reshape") else np.asarray(value)
    return array.reshape(samples, *port.shape) if tuple(array.shape) == (*batch, *port.shape) else value
