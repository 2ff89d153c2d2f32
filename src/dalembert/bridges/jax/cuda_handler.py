"""The function that XLA calls for a kernel on a GPU: it queues the kernel on XLA's stream, on XLA's memory.

The frame is that of `handler.py`. Here the handler is Python, called through ctypes: it reads addresses and shapes from
the frame, asks XLA for its stream, and launches through CuPy. That costs some ten microseconds a call, whatever the
batch; nothing is copied, and nothing waits.

Offsets in bytes: CallFrame 16 api, 24 context; Api 48 Error_Create, 80 Stream_Get.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.bridges.jax.handler import KNOWN_MAJOR, SPOKEN_MINOR

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.kernel.program.program import Port

INTERNAL = 13
"""XLA_FFI_Error_Code_INTERNAL."""

Pointer = ctypes.c_void_p
Handler = ctypes.CFUNCTYPE(Pointer, Pointer)


class _StreamArgs(ctypes.Structure):
    """XLA_FFI_Stream_Get_Args."""

    _fields_ = (("size", ctypes.c_size_t), ("extensions", Pointer), ("context", Pointer), ("stream", Pointer))


class _ErrorArgs(ctypes.Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("extensions", Pointer),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    )


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def cuda_handler(kernel: Kernel) -> tuple[int, Any]:
    """Return the address of a handler, and what keeps it alive."""
    cupy: Any = kernel.engine.cupy  # type: ignore[attr-defined]
    dtype = np.dtype(kernel.options.dtype)

    def array(buffer: int, port: Port) -> Any:
        """Return a buffer of XLA as an array; leading axes are one."""
        data, rank, dims = _word(buffer + 24), _word(buffer + 32), _word(buffer + 40)
        lead = [_word(dims + 8 * k) for k in range(rank - len(port.shape))]
        shape = ((int(np.prod(lead)),) if lead else ()) + port.shape
        size = int(np.prod(shape)) * dtype.itemsize
        memory = cupy.cuda.UnownedMemory(data, size, None)
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def launch(frame: int) -> None:
        args, rets = _word(frame + 72), _word(frame + 112)
        api, context = _word(frame + 16), _word(frame + 24)
        request = _StreamArgs(ctypes.sizeof(_StreamArgs), None, context, None)
        error = ctypes.CFUNCTYPE(Pointer, Pointer)(_word(api + 80))(ctypes.addressof(request))
        if error:
            raise RuntimeError("XLA has no stream for this call")
        with cupy.cuda.ExternalStream(request.stream or 0):
            inputs = [array(_word(args + 8 * k), port) for k, port in enumerate(kernel.inputs)]
            outputs = tuple(array(_word(rets + 8 * k), port) for k, port in enumerate(kernel.outputs))
            kernel(*inputs, out=outputs)

    def handle(frame: int) -> int | None:
        extension = _word(frame + 8)
        if extension and ctypes.c_int32.from_address(extension + 8).value == 1:
            metadata = _word(extension + 24)
            for place, value in ((24, KNOWN_MAJOR), (28, SPOKEN_MINOR), (32, 0)):
                ctypes.c_int32.from_address(metadata + place).value = value
            return None
        try:
            launch(frame)
        except Exception as error:  # it must not leave the callback: XLA raises it where results are used
            words = _ErrorArgs(ctypes.sizeof(_ErrorArgs), None, f"{kernel.name}: {error}".encode(), INTERNAL)
            create = ctypes.CFUNCTYPE(Pointer, Pointer)(_word(_word(frame + 16) + 48))
            return create(ctypes.addressof(words))
        return None

    handler = Handler(handle)
    return ctypes.cast(handler, Pointer).value or 0, handler
