"""What goes into a call and what comes out: shapes, types, memory.

An input is one sample `port.shape`, or a batch `(N, *port.shape)` (several axes: `axes.py`); one sample serves the
whole batch. With no batch among the inputs the outputs are single too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalembert.errors import ShapeError, UnsupportedError
from dalembert.kernel.program import Port


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
    given = [out] if isinstance(out, np.ndarray) else list(out)
    if len(given) != len(ports):
        raise ShapeError(f"kernel {name!r} has {len(ports)} outputs; out= holds {len(given)}")
    for k, (array, port, shape) in enumerate(zip(given, ports, shapes, strict=True)):
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise ShapeError(f"out= for output {port.name!r} of kernel {name!r} must be {dtype} {shape}, not {found}")
        if not array.flags.writeable or not array.flags.aligned:
            raise ShapeError(f"out= for output {port.name!r} of kernel {name!r} is read-only or not aligned")
        if _overlaps_itself(array):
            raise ShapeError(
                f"out= for output {port.name!r} of kernel {name!r} uses memory twice (strides {array.strides}), "
                "as a broadcast view does; its elements could not differ"
            )
        for other in given[:k]:
            if np.shares_memory(array, other):
                raise ShapeError(f"out= of kernel {name!r}: output {port.name!r} overlaps another output")
    _detach(arguments, given)
    return given


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
