"""A program compiled in this process: LLVM text, then object code, and what a caller must know about it.

Both can be stored; `machine` puts code into memory.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dalembert.kernel.chunk import Chunks, split
from dalembert.kernel.engine import WIDTHS
from dalembert.kernel.layout import ITEM_BYTES, Layout
from dalembert.kernel.llvm_body import Body, starts
from dalembert.kernel.llvm_driver import driver
from dalembert.kernel.llvm_math import library, wide_sincos
from dalembert.kernel.llvm_outputs import Outputs, output_layout
from dalembert.kernel.llvm_target import Target, binding, host
from dalembert.kernel.llvm_vector import CONVENTION
from dalembert.kernel.machine import Code
from dalembert.kernel.operations import ELEMENTARY, Op
from dalembert.kernel.program import Program
from dalembert.kernel.schedule import live_values

ELEMENT = {"float64": "double", "float32": "float"}
TILE_BYTES = 1 << 18  # what a tile may take of the second-level cache, where several chunks pass over it
TILE_BYTES_ONE = 1 << 14  # of the first-level cache, where there is one chunk and its code is fetched once anyway
LARGEST_TILE = 16
TINY_OPERATIONS, TINY_LIVE = 150, 12  # what is evaluated on two registers at a time


def choose_width(target: Target, dtype: str) -> int:
    """Return the number of samples per vector: as many as a register holds."""
    return target.register_bytes // ITEM_BYTES[dtype]


def program_width(program: Program, dtype: str) -> int:
    """Return the number of samples per vector for a program: twice a register where all its values fit twice.

    In short programs each operation waits for the one before; two independent ones side by side hide that.
    """
    width = choose_width(host(), dtype)
    tiny = program.operations <= TINY_OPERATIONS and int(live_values(program).max(initial=0)) <= TINY_LIVE
    return min(2 * width, WIDTHS[-1]) if tiny else width


def layout(program: Program, chunks: Chunks, outputs: Outputs, width: int, dtype: str) -> Layout:
    """Return sizes of the code's working memory."""
    vectors = starts(program.inputs)[-1] + chunks.slots + outputs.size
    block = max(1, vectors) * width * ITEM_BYTES[dtype]
    tile = max(1, min(LARGEST_TILE, (TILE_BYTES if len(chunks) > 1 else TILE_BYTES_ONE) // block))
    return Layout(width, tile, tile * block)


def print_module(program: Program, chunks: Chunks, outputs: Outputs, shape: Layout, dtype: str) -> str:
    """Return the LLVM text of a scheduled program."""
    element, width = ELEMENT[dtype], shape.width
    sizes = (starts(program.inputs)[-1], chunks.slots, outputs.size)
    used = {Op(code) for code in np.unique(program.op)}
    functions, declarations = library(used & ELEMENTARY, width, element)
    lanes = choose_width(host(), dtype) if width == 1 and used & {Op.SIN, Op.COS} else 1
    if lanes > 1:
        wide, more = wide_sincos(lanes, element)
        functions, declarations = functions + wide, declarations | more
    body = Body(program, chunks, outputs, width, element, lanes)
    kind, suffix = body.kind, body.suffix
    names = [*(["leaves"] if body.leaves else []), *(f"chunk_{k}" for k in range(len(chunks)))]
    declarations |= {f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})"}
    declarations |= {f"declare {kind} @llvm.copysign.{suffix}({kind}, {kind})"}
    declarations |= {f"declare {kind} @llvm.{f}.{suffix}({kind})" for f in ("sqrt", "fabs", "floor", "ceil")}
    text = "\n".join(
        [
            *sorted(declarations),
            "declare i64 @llvm.smin.i64(i64, i64)",
            *functions,
            *body.text(),
            driver(program.inputs, program.outputs, outputs, names, sizes, shape.tile, width, element),
            'attributes #0 = { nounwind alignstack=64 "prefer-vector-width"="512" }',
            '!0 = !{!"branch_weights", i32 1, i32 100000}',
            "",
        ]
    )
    return text.replace(CONVENTION, host().convention)


def build(program: Program, dtype: str, width: int | None = None) -> tuple[Code, Layout, dict[str, Any]]:
    """Compile a scheduled program for this machine.

    Returns
    -------
    code, layout, figures
        Compiled code; what a caller must know; numbers for the report.
    """
    chunks = split(program)
    outputs = output_layout(program)
    shape = layout(program, chunks, outputs, width or program_width(program, dtype), dtype)
    start = time.perf_counter()
    text = print_module(program, chunks, outputs, shape, dtype)
    printed = time.perf_counter()
    code = compile_text(text)
    done = time.perf_counter()
    figures = {
        "chunks": len(chunks),
        "scratch_slots": chunks.slots,
        "print_seconds": printed - start,
        "compile_seconds": done - printed,
        "code_bytes": len(code.data),
    }
    return code, shape, figures


def compile_text(text: str, inline: bool = False) -> Code:
    """Return the code of LLVM text, for this machine.

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
    return Code.of(machine.emit_object(module))
