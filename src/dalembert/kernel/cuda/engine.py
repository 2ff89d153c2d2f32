"""The CUDA backend as an engine: CUDA C compiled by NVRTC through CuPy, called on arrays of the device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ShapeError, UnsupportedError
from dalembert.kernel.arrays import Arguments, as_real, check_inputs
from dalembert.kernel.cuda.printer import REGISTERS, Tuning, choose_tuning, print_cuda
from dalembert.kernel.engine import FunctionSource, KernelOptions
from dalembert.kernel.program.columns import ColumnFunction, ports_of
from dalembert.kernel.program.lower import lower, lower_columns
from dalembert.kernel.program.program import Port

FLAGS = ("--std=c++14", "--fmad=false")  # fused operations are printed; the compiler adds none
DLPACK_CUDA = 2
SINGLE_LANES = 128  # per multiprocessor, from compute capability 5.0 on, but 6.0, 7.x and 8.0
LANES = {
    "float32": {60: 64, 70: 64, 72: 64, 75: 64, 80: 64},
    "float64": {60: 32, 70: 32, 72: 32, 80: 32, 90: 64, 100: 64},
}
DOUBLE_LANES = 2  # of devices made for graphics


class CudaEngine:
    """A program on a GPU, one thread per sample.

    A call takes arrays of CuPy, PyTorch or JAX on the device, by DLPack and without copies where they are contiguous
    and of the kernel's type, or NumPy arrays, which are copied to the device. It returns CuPy arrays, which the others
    take by `from_dlpack`; `out=` takes arrays of any of them that may be written. Work is queued on CuPy's current
    stream: a call returns before it is done.
    """

    short = None

    def __init__(self, function: Any, options: KernelOptions, tuning: Tuning | None = None) -> None:
        start = time.perf_counter()
        self.cupy = _cupy()
        columns = isinstance(function, ColumnFunction)
        lowering = (lower_columns if columns else lower)(function, REGISTERS[options.dtype])
        self.program = lowering.program
        self.name: str = function.name()
        self.inputs, self.outputs = ports_of(function)
        self.dtype = np.dtype(options.dtype)
        begin = time.perf_counter()
        self.source = print_cuda(self.program, options.dtype, tuning or choose_tuning(self.program, options.dtype))
        printed = time.perf_counter()
        module = self.cupy.RawModule(code=self.source.text, options=FLAGS)
        self.functions = [module.get_function(name) for name in self.source.functions]
        self._events: tuple[Any, Any] | None = None
        self.figures: dict[str, Any] = {
            **lowering.figures(),
            "chunks": len(self.functions),
            "scratch_slots": self.source.slots,
            "print_seconds": printed - begin,
            "compile_seconds": time.perf_counter() - printed,
            "width": 1,
            "start_seconds": time.perf_counter() - start,
            "registers": max(f.num_regs for f in self.functions),
            "local_bytes": max(f.local_size_bytes for f in self.functions),
            "shared_bytes": max(self.source.shared_bytes),
        }

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Queue a batch or a single sample."""
        arguments = check_inputs(self.name, inputs, self.inputs, self.dtype, self._as_device)
        outputs = self._outputs(arguments, out)
        status = self.cupy.zeros(arguments.samples, np.uint8) if with_status else None
        stream = self.cupy.cuda.get_current_stream()
        begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        begin.record(stream)
        if arguments.samples:
            self._launch(arguments, outputs, status)
        end.record(stream)
        self._events = (begin, end)
        return outputs, status

    def _launch(self, arguments: Arguments, outputs: list[Any], status: Any) -> None:
        """Run all parts on pieces of the batch that the scratch block can hold."""
        threads, item = self.source.tuning.threads, self.dtype.itemsize
        n = arguments.samples
        piece = n
        scratch = 0
        block: Any = None
        if self.source.slots:
            piece = min(n, max(threads, self.source.tuning.scratch // (self.source.slots * item) // threads * threads))
            block = self.cupy.empty(self.source.slots * (piece + -piece % threads), self.dtype)
            scratch = block.data.ptr
        rows = [self.cupy.ascontiguousarray(array) for array in arguments.inputs]
        written = [array if array.flags.c_contiguous else self.cupy.empty_like(array, order="C") for array in outputs]
        steps = [port.size if arguments.is_batch(k, port) else 0 for k, port in enumerate(self.inputs)]
        for k in self.source.cleared:
            written[k].fill(0)
        for first in range(0, n, piece):
            count = min(piece, n - first)
            words: list[Any] = [np.int64(count)]
            for array, step in zip(rows, steps, strict=True):
                words += [np.uint64(array.data.ptr + first * step * item), np.int64(step)]
            for array, port in zip(written, self.outputs, strict=True):
                words.append(np.uint64(array.data.ptr + first * port.size * item))
            words += [np.uint64(scratch), np.uint64(0 if status is None else status.data.ptr + first)]
            source = self.source
            for function, shared, columns in zip(self.functions, source.shared_bytes, source.columns, strict=True):
                function((-(-count // threads) * columns,), (threads,), tuple(words), shared_mem=shared)
        for array, result in zip(outputs, written, strict=True):
            if array is not result:
                array[...] = result

    def _as_device(self, value: Any, port: Port, dtype: np.dtype[Any]) -> Any:
        """Return an input as an array of the device; no copy where it is one of the right type."""
        array = _from_dlpack(self.cupy, value)
        if array is None:
            return self.cupy.asarray(as_real(value, port, dtype))
        if array.dtype.kind not in "biuf":
            raise UnsupportedError(f"input {port.name!r} has dtype {array.dtype}; kernels take real numbers")
        return array.astype(dtype, copy=False)

    def _outputs(self, arguments: Arguments, out: Any) -> list[Any]:
        """Return the arrays to write: new ones, or `out` after a check."""
        batch = () if arguments.single else (arguments.samples,)
        shapes = [batch + port.shape for port in self.outputs]
        if out is None:
            return [self.cupy.empty(shape, self.dtype) for shape in shapes]
        values = list(out) if isinstance(out, tuple | list) else [out]
        if len(values) != len(shapes):
            raise ShapeError(f"kernel {self.name!r} has {len(shapes)} outputs; out= holds {len(values)}")
        arrays = [_from_dlpack(self.cupy, value) for value in values]
        for array, value, port, shape in zip(arrays, values, self.outputs, shapes, strict=True):
            if array is None or array.shape != shape or array.dtype != self.dtype:
                words = type(value).__name__ if array is None else f"{array.dtype} {array.shape}"
                raise ShapeError(
                    f"out= for output {port.name!r} of kernel {self.name!r} must be {self.dtype} {shape} "
                    f"on the device, not {words}"
                )
        for k, array in enumerate(arguments.inputs):
            if any(self.cupy.may_share_memory(array, other) for other in arrays):
                arguments.inputs[k] = array.copy()
        return arrays

    def elapsed(self) -> float | None:
        """Return the seconds that the device took for the last call; waits for it."""
        if self._events is None:
            return None
        begin, end = self._events
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(begin, end) / 1e3

    def peak(self) -> float | None:
        """Return the operations per second of all lanes of the device, a fused one counted once."""
        device = self.cupy.cuda.Device()
        kind = int(device.compute_capability)
        default = SINGLE_LANES if self.dtype.itemsize == 4 else DOUBLE_LANES
        lanes = LANES[self.dtype.name].get(kind, default)
        properties = self.cupy.cuda.runtime.getDeviceProperties(device.id)
        clock = properties.get("clockRate") or device.attributes["ClockRate"]  # kHz
        return lanes * properties["multiProcessorCount"] * clock * 1e3


def _cupy() -> Any:
    """Return CuPy where it is installed and finds a device."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise MissingExtraError("CuPy", "gpu", "backend 'cuda'") from error
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UnsupportedError(f"backend 'cuda' finds no device: {error}; backend='cpu' needs none") from error
    if not devices:
        raise UnsupportedError("backend 'cuda' finds no device; backend='cpu' needs none")
    return cupy


def _from_dlpack(cupy: Any, value: Any) -> Any:
    """Return an array of the device that shares memory with `value`; None where it is not on the device."""
    if isinstance(value, cupy.ndarray):
        return value
    device = getattr(value, "__dlpack_device__", None)
    if device is None or device()[0] != DLPACK_CUDA:
        return None
    return cupy.from_dlpack(value)


def engine(source: FunctionSource, options: KernelOptions) -> CudaEngine:
    """Return the engine of a source; where there is no GPU that is said before minutes of tracing, not after."""
    _cupy()
    return CudaEngine(source.expressions, options)
