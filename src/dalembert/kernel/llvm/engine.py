"""The LLVM backend as an engine: compiled or taken from the cache, called on rows of NumPy arrays, in threads.

A kernel that is in the cache starts without LLVM and without CasADi; both are imported when something is compiled.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalembert.kernel import cache
from dalembert.kernel.arrays import Arguments, check_inputs, make_outputs
from dalembert.kernel.cache import ALIGNMENT, CodeLayout, fingerprint
from dalembert.kernel.engine import FunctionSource, KernelOptions, Workers
from dalembert.kernel.llvm.code_in_memory import Code, Machine
from dalembert.kernel.program.program import Port
from dalembert.kernel.short_call import data_address, short_call

# Operations times samples that may run with the interpreter lock held: some hundred microseconds, far below Python's
# own interval of switching (5 ms); and those that are not worth sharing among threads, some ten.
SHORT_WORK = 3_000_000
SHORT_WORK_THREADED = 500_000

# Programs that are also compiled one sample wide, for single calls: their values fit the caches better, and a scalar
# operation takes half the time of one on 512 bits. Shorter ones gain nothing, longer ones compile for seconds. Both
# codes work in the same scratch memory.
SINGLE_LEAST, SINGLE_MOST = 300, 20_000

# Programs whose columns are written out for batches: the caches hold them as they are, and no value is stored to be
# shared. Single calls have their columns in lanes whatever the length.
WRITTEN_OUT_MOST = 20_000


class CpuEngine:
    """Machine code for one function on this processor."""

    def __init__(self, source: FunctionSource, options: KernelOptions) -> None:
        start = time.perf_counter()
        effort = [] if cache.level() == cache.FULL_LEVEL else [f"level {cache.level()}"]
        name = source.key([options.dtype, str(options.width), *effort, *fingerprint()])
        entry = cache.read(name) if name else None
        if entry is None:
            codes, header = _compile(source.expressions, options)
            if name:
                cache.write(name, header, b"".join(code.data for code in codes))
        else:
            header, codes = entry[0], _stored(*entry)
        self.name: str = header["name"]
        self.inputs, self.outputs = (tuple(Port(*port) for port in header[side]) for side in ("inputs", "outputs"))
        self.layout = CodeLayout(**header["layout"])
        machines = [Machine(code) for code in codes]
        self.machine, self.single = machines[0], machines[-1]
        self.dtype = np.dtype(options.dtype)
        self.figures: dict[str, Any] = header["figures"] | {
            "from_cache": entry is not None,
            "start_seconds": time.perf_counter() - start,
            "width": self.layout.width,
        }
        self._local = threading.local()
        self._workers = Workers(options.threads)
        self._short_memory = _Scratch(self.layout.scratch_bytes)
        operations = max(1, self.figures["traced_operations"])
        self._short = short_call(
            self.inputs,
            self.outputs,
            self.dtype,
            (self.machine.address, self.single.address),
            self._short_memory.address,
            max(1, SHORT_WORK // operations),
            sys.maxsize if options.threads == 1 else max(1, SHORT_WORK_THREADED // operations),
        )
        self.short = self._short.function if self._short else None
        self.short_record = self._short

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Evaluate a batch or a single sample."""
        arguments = check_inputs(self.name, inputs, self.inputs, self.dtype)
        outputs = make_outputs(self.name, arguments, self.outputs, self.dtype, out)
        status = np.zeros(arguments.samples, np.uint8) if with_status else None
        if arguments.samples:
            self._run(self._table(arguments, outputs, status), arguments.samples)
        return outputs, status

    def _table(self, arguments: Arguments, outputs: list[Any], status: NDArray[np.uint8] | None) -> NDArray[np.int64]:
        """Return the words that `run` reads: address and strides of every array, then the status."""
        words: list[int] = []
        for k, (array, port) in enumerate(zip(arguments.inputs, self.inputs, strict=True)):
            words += _describe(array, port, arguments.is_batch(k, port))
        for array, port in zip(outputs, self.outputs, strict=True):
            words += _describe(array, port, not arguments.single)
        words.append(0 if status is None else data_address(status))
        return np.array(words, np.int64)

    def _run(self, table: NDArray[np.int64], samples: int) -> None:
        """Run all samples, in threads where there are enough."""
        address = data_address(table)

        def work(first: int, stop: int) -> None:
            self.machine.run(address, first, stop, self.scratch())

        self._workers.share(work, samples, self.layout.width * self.layout.tile)

    def elapsed(self) -> float | None:
        """Return None: a call returns when it is done."""
        return None

    def peak(self) -> float | None:
        """Return the operations per second that a core can issue, measured once per process."""
        from dalembert.kernel.report import peak_operations

        return peak_operations(self.dtype.name)

    def scratch(self) -> int:
        """Return the address of this thread's scratch memory."""
        if not hasattr(self._local, "memory"):
            self._local.memory = _Scratch(self.layout.scratch_bytes)
        return self._local.memory.address


class _Scratch:
    """Aligned memory."""

    def __init__(self, size: int) -> None:
        self.buffer = ctypes.create_string_buffer(size + ALIGNMENT)
        start = ctypes.addressof(self.buffer)
        self.address = start + -start % ALIGNMENT


def _describe(array: NDArray[Any], port: Port, batch: bool) -> list[int]:
    """Return address and strides in bytes: by sample, along the outer and the inner axis."""
    strides = list(array.strides) if batch else [0, *array.strides]
    if port.cols == 1:
        strides.insert(1, 0)
    return [data_address(array), *strides]


def _stored(header: dict[str, Any], data: bytes) -> list[Code]:
    """Return the codes of a cache entry: for batches, and for a single sample where that is another."""
    size = header["size"]
    codes = [Code.stored(header, data[:size])]
    return codes if header["single"] is None else [*codes, Code.stored(header["single"], data[size:])]


def _compile(function: Any, options: KernelOptions) -> tuple[list[Code], dict[str, Any]]:
    """Trace, optimise and compile a function; return its codes and the header of its cache entry."""
    from dalembert.kernel.llvm.compile import build
    from dalembert.kernel.program.columns import ColumnFunction, ports_of
    from dalembert.kernel.program.lower import lower, lower_columns

    lowering = lower_columns(function) if isinstance(function, ColumnFunction) else lower(function)
    program = lowering.program
    if isinstance(function, ColumnFunction) and program.operations <= WRITTEN_OUT_MOST:
        program = lower(function).program
    code, layout, figures = build(program, options.dtype, options.width)
    codes = [code]
    if options.width is None and worth_a_single_code(lowering.program):
        single, narrow, more = build(lowering.program, options.dtype, 1)
        codes.append(single)
        layout = replace(layout, scratch_bytes=max(layout.scratch_bytes, narrow.scratch_bytes))
        figures |= {key: figures[key] + more[key] for key in ("print_seconds", "compile_seconds", "code_bytes")}
    figures |= lowering.figures()
    inputs, outputs = ([(port.name, port.rows, port.cols) for port in side] for side in ports_of(function))
    header = {"name": function.name(), "inputs": inputs, "outputs": outputs}
    header |= {"layout": asdict(layout), "figures": figures, "size": len(code.data)} | code.header()
    return codes, header | {"single": codes[1].header() if len(codes) > 1 else None}


def worth_a_single_code(program: Any) -> bool:
    """Return whether a program is compiled for single samples as well."""
    from dalembert.kernel.llvm.compile import elementary
    from dalembert.kernel.program.columns import ColumnProgram

    if isinstance(program, ColumnProgram):  # a body's vectors are wider than the head's, a library is for one width
        return not any(elementary(body.program) for body in program.bodies)
    return SINGLE_LEAST <= program.operations <= SINGLE_MOST


engine = CpuEngine
