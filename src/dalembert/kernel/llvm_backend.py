"""A program compiled in this process: LLVM text, object code, an address to call.

`build` gives object code and what a caller must know about it (both can be stored); `load` puts object code
into memory and returns a function.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.kernel.chunk import Chunks, split
from dalembert.kernel.llvm_body import Body, starts
from dalembert.kernel.llvm_driver import driver
from dalembert.kernel.llvm_math import LIBM_ARITY, LIBM_PREFIX, library
from dalembert.kernel.llvm_target import Target, binding, host
from dalembert.kernel.operations import ELEMENTARY, Op
from dalembert.kernel.program import Program

ELEMENT = {"float64": "double", "float32": "float"}
ITEM_BYTES = {"float64": 8, "float32": 4}
TILE_BYTES = 1 << 18  # what a tile may take of the second-level cache
LARGEST_TILE = 16
ALIGNMENT = 64

_lock = threading.Lock()


@dataclass(frozen=True)
class Layout:
    """What a caller must know about compiled code.

    Attributes
    ----------
    width
        Samples per vector, W.
    tile
        Blocks of W samples that pass through a chunk together.
    scratch_bytes
        Memory that one call of `run` needs, aligned to 64 bytes.
    """

    width: int
    tile: int
    scratch_bytes: int


def choose_width(target: Target, dtype: str) -> int:
    """Return the number of samples per vector: as many as a register holds."""
    return target.register_bytes // ITEM_BYTES[dtype]


def layout(program: Program, chunks: Chunks, width: int, dtype: str) -> Layout:
    """Return sizes of the code's working memory."""
    vectors = starts(program.inputs)[-1] + chunks.slots + starts(program.outputs)[-1]
    block = max(1, vectors) * width * ITEM_BYTES[dtype]
    tile = max(1, min(LARGEST_TILE, TILE_BYTES // block))
    return Layout(width, tile, tile * block)


def print_module(program: Program, chunks: Chunks, shape: Layout, dtype: str) -> str:
    """Return the LLVM text of a scheduled program."""
    element, width = ELEMENT[dtype], shape.width
    sizes = (starts(program.inputs)[-1], chunks.slots, starts(program.outputs)[-1])
    used = {Op(code) for code in np.unique(program.op)}
    functions, declarations = library(used & ELEMENTARY, width, element)
    body = Body(program, chunks, width, element)
    kind, suffix = body.kind, body.suffix
    declarations |= {f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})"}
    declarations |= {f"declare {kind} @llvm.copysign.{suffix}({kind}, {kind})"}
    declarations |= {f"declare {kind} @llvm.{f}.{suffix}({kind})" for f in ("sqrt", "fabs", "floor", "ceil")}
    return "\n".join(
        [
            *sorted(declarations),
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            *functions,
            *body.text(),
            driver(program.inputs, program.outputs, len(chunks), sizes, shape.tile, width, element),
            'attributes #0 = { nounwind "prefer-vector-width"="512" }',
            '!0 = !{!"branch_weights", i32 1, i32 100000}',
            "",
        ]
    )


def build(program: Program, dtype: str, width: int | None = None) -> tuple[bytes, Layout, dict[str, Any]]:
    """Compile a scheduled program for this machine.

    Returns
    -------
    code, layout, figures
        Object code; what a caller must know; numbers for the report.
    """
    chunks = split(program)
    shape = layout(program, chunks, width or choose_width(host(), dtype), dtype)
    start = time.perf_counter()
    text = print_module(program, chunks, shape, dtype)
    printed = time.perf_counter()
    code = compile_text(text)
    done = time.perf_counter()
    figures = {
        "chunks": len(chunks),
        "scratch_slots": chunks.slots,
        "print_seconds": printed - start,
        "compile_seconds": done - printed,
        "code_bytes": len(code),
    }
    return code, shape, figures


def compile_text(text: str, inline: bool = False) -> bytes:
    """Return the object code of LLVM text, for this machine.

    The passes that work on LLVM's text form find nothing to do in a program, so they run only where `inline` asks for
    them.
    """
    llvm = binding()
    module = llvm.parse_assembly(text)
    module.triple = host().triple
    machine = host().machine()
    if inline:
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)


class Machine:
    """Compiled code in memory; keeps it alive."""

    def __init__(self, code: bytes) -> None:
        llvm = binding()
        with _lock:
            self._jit = llvm.create_lljit_compiler(host().machine())
            builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
            for name, address in _libm().items():
                builder.import_symbol(LIBM_PREFIX + name, address)
            self._library = builder.export_symbol("run").link(self._jit, "kernel")
        self.address: int = self._library["run"]
        pointer, word = ctypes.c_void_p, ctypes.c_int64
        self.run = ctypes.CFUNCTYPE(None, pointer, word, word, pointer)(self.address)


def _libm() -> dict[str, int]:
    """Return the addresses of the C library's functions."""
    name = "ucrtbase" if sys.platform == "win32" else ctypes.util.find_library("m")
    c = ctypes.CDLL(name)
    return {f: ctypes.cast(getattr(c, f), ctypes.c_void_p).value or 0 for f in LIBM_ARITY}
