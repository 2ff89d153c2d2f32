"""The LLVM compiler in this process: target machine, text, object code."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dalembert.kernel.cache import FULL_LEVEL, ITEM_BYTES, CodeLayout, level
from dalembert.kernel.engine import WIDTHS
from dalembert.kernel.llvm.body import LlvmBody, Outputs, output_layout, starts
from dalembert.kernel.llvm.code_in_memory import Code
from dalembert.kernel.llvm.driver import AT_THE_END, driver
from dalembert.kernel.llvm.functions import library, wide_sincos
from dalembert.kernel.llvm.vector import CONVENTION
from dalembert.kernel.program.chunks import Chunks, split
from dalembert.kernel.program.order import live_values
from dalembert.kernel.program.program import ELEMENTARY, Op, Program

# ----------------------------------------------------------------------------------------------------------------------
# The machine that runs the code: its name, its features, how many samples a vector holds.


# Bytes of a vector register by feature, widest first.
REGISTER_BYTES = (("avx512f", 64), ("avx", 32))
SMALLEST_REGISTER = 16  # SSE2, NEON


@dataclass(frozen=True)
class Target:
    """A processor: LLVM triple, processor name, features as LLVM spells them (`+avx2,-sse4a,...`)."""

    triple: str
    cpu: str
    features: str
    register_bytes: int

    @property
    def convention(self) -> str:
        """How functions on vectors are called: on x86-64 so that half of the vector registers keep their values."""
        return "intel_ocl_bicc" if self.triple.startswith("x86_64") else "ccc"

    @property
    def has_upper_halves(self) -> bool:
        """Whether upper halves of vector registers must be cleared before other code runs (Intel, AVX).

        LLVM clears them by itself before every return and call that passes no vectors, also of functions that promise
        to keep these registers (`convention`), whose callers then compute with zeros. For programs that is switched
        off, and done once at the end of `run`.
        """
        return self.triple.startswith("x86_64") and self.register_bytes > SMALLEST_REGISTER

    def machine(self, level: int = FULL_LEVEL, clears: bool = False) -> Any:
        """Return LLVM's target machine, which selects instructions and registers at a level of effort.

        `clears` says that the code clears the upper halves of registers by itself where that is needed.
        """
        llvm = binding()
        target = llvm.Target.from_triple(self.triple)
        features = f"{self.features},-vzeroupper" if clears and self.has_upper_halves else self.features
        return target.create_target_machine(
            cpu=self.cpu, features=features, opt=level, reloc="pic", codemodel="small", jit=True
        )


@cache
def binding() -> Any:
    """Return llvmlite's binding, with the native target initialized."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def host() -> Target:
    """Return the machine this runs on."""
    llvm = binding()
    features = llvm.get_host_cpu_features()
    size = next((n for name, n in REGISTER_BYTES if features.get(name)), SMALLEST_REGISTER)
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), size)


# ----------------------------------------------------------------------------------------------------------------------
# A program compiled in this process: LLVM text, then object code, and what a caller must know about it.
#
# Both can be stored; `machine` puts code into memory.


CLEARED = "call void @llvm.x86.avx.vzeroupper()"
ELEMENT = {"float64": "double", "float32": "float"}
TILE_BYTES = 1 << 18  # what a tile may take of the second-level cache, where several chunks pass over it
TILE_BYTES_ONE = 1 << 14  # of the first-level cache, where there is one chunk and its code is fetched once anyway
LARGEST_TILE = 16
LONG_TEXT = 5_000_000  # characters: some 50,000 operations
DEEP = 1 << 30  # bytes of a stack, of which only what is used is taken
LONG_CODE, LONG_TILE = 32, 4  # chunks of 32 kB: code beyond the second-level cache costs more to fetch than values do
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


def layout(program: Program, chunks: Chunks, outputs: Outputs, width: int, dtype: str) -> CodeLayout:
    """Return sizes of the code's working memory."""
    vectors = starts(program.inputs)[-1] + chunks.slots + outputs.size
    block = max(1, vectors) * width * ITEM_BYTES[dtype]
    least = LONG_TILE if len(chunks) > LONG_CODE else 1
    tile = max(least, min(LARGEST_TILE, (TILE_BYTES if len(chunks) > 1 else TILE_BYTES_ONE) // block))
    return CodeLayout(width, tile, tile * block)


def print_module(program: Program, chunks: Chunks, outputs: Outputs, shape: CodeLayout, dtype: str) -> str:
    """Return the LLVM text of a scheduled program."""
    element, width = ELEMENT[dtype], shape.width
    sizes = (starts(program.inputs)[-1], chunks.slots, outputs.size)
    used = {Op(code) for code in np.unique(program.op)}
    functions, declarations = library(used & ELEMENTARY, width, element)
    lanes = choose_width(host(), dtype) if width == 1 and used & {Op.SIN, Op.COS} else 1
    if lanes > 1:
        wide, more = wide_sincos(lanes, element)
        functions, declarations = functions + wide, declarations | more
    body = LlvmBody(program, chunks, outputs, width, element, lanes)
    kind, suffix = body.kind, body.suffix
    names = [*(["leaves"] if body.leaves else []), *(f"chunk_{k}" for k in range(len(chunks)))]
    declarations |= {f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})"}
    declarations |= {f"declare {kind} @llvm.copysign.{suffix}({kind}, {kind})"}
    declarations |= {f"declare {kind} @llvm.{f}.{suffix}({kind})" for f in ("sqrt", "fabs", "floor", "ceil")}
    text = "\n".join(
        [
            *sorted(declarations),
            "declare i64 @llvm.smin.i64(i64, i64)",
            *(["declare void @llvm.x86.avx.vzeroupper()"] if host().has_upper_halves else []),
            *functions,
            *body.text(),
            driver(program.inputs, program.outputs, outputs, names, sizes, shape.tile, width, element),
            'attributes #0 = { nounwind alignstack=64 "prefer-vector-width"="512" }',
            '!0 = !{!"branch_weights", i32 1, i32 100000}',
            "",
        ]
    )
    return text.replace(CONVENTION, host().convention).replace(AT_THE_END, CLEARED if host().has_upper_halves else "")


def build(program: Program, dtype: str, width: int | None = None) -> tuple[Code, CodeLayout, dict[str, Any]]:
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
    code = compile_text(text, level(), clears=True)
    done = time.perf_counter()
    figures = {
        "chunks": len(chunks),
        "scratch_slots": chunks.slots,
        "print_seconds": printed - start,
        "compile_seconds": done - printed,
        "code_bytes": len(code.data),
    }
    return code, shape, figures


def compile_text(text: str, level: int = FULL_LEVEL, inline: bool = False, clears: bool = False) -> Code:
    """Return the code of LLVM text, for this machine.

    The passes that work on LLVM's text form find nothing to do in a program, so they run only where `inline` asks for
    them.
    """
    llvm = binding()
    module = llvm.parse_assembly(text)
    module.triple = host().triple
    machine = host().machine(level, clears)
    if inline:
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes.getModulePassManager().run(module, passes)
    if len(text) <= LONG_TEXT:
        return Code.of(machine.emit_object(module))
    return Code.of(_on_a_deep_stack(lambda: machine.emit_object(module)))


def _on_a_deep_stack(function: Callable[[], bytes]) -> bytes:
    """Call a function in a thread whose stack is `DEEP`: LLVM descends along an expression by calling itself."""
    answer: list[bytes] = []
    errors: list[BaseException] = []

    def called() -> None:
        try:
            answer.append(function())
        except BaseException as error:  # told where it was asked for
            errors.append(error)

    before = threading.stack_size(DEEP)
    try:
        thread = threading.Thread(target=called, daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return answer[0]
