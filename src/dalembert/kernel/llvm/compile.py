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
from dalembert.kernel.llvm.column_loops import LlvmColumn, column_layout, column_loop, turns
from dalembert.kernel.llvm.driver import AT_THE_END, driver
from dalembert.kernel.llvm.functions import library, wide_sincos
from dalembert.kernel.llvm.vector import CONVENTION, vector
from dalembert.kernel.program.chunks import split
from dalembert.kernel.program.columns import ColumnProgram
from dalembert.kernel.program.order import live_values
from dalembert.kernel.program.program import ELEMENTARY, Op, Port, Program

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
SECOND_CACHE = 1 << 20  # where code and a block do not fit, what is fetched for a chunk serves several blocks
CODE_BYTES = 16  # of an operation, with the loads and stores around it
LONG_CODE, LONG_TILE = 32, 4
COLUMN_CHUNK = 180  # operations: code and shared values stay in the first-level caches for all columns
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


@dataclass(frozen=True, eq=False)
class Pieces:
    """The functions of a program and the memory they work on, before the loop around them is written.

    Attributes
    ----------
    inputs, outputs
        Ports of the program.
    places
        The output area of a block.
    functions
        Lines of LLVM functions.
    names
        Those that are called, in order.
    slots
        Size of the scratch area of a block, in vectors.
    chunks
        Number of chunks.
    operations
        Of the code, in vectors as wide as the driver's.
    widths
        Lanes of the vectors that occur, the driver's first.
    used
        Elementary functions that are called.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    places: Outputs
    functions: list[str]
    names: list[str]
    slots: int
    chunks: int
    operations: int
    widths: tuple[int, ...]
    used: frozenset[Op]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Vectors of a block: inputs, scratch, outputs."""
        return starts(self.inputs)[-1], self.slots, self.places.size

    def layout(self, dtype: str) -> CodeLayout:
        """Return sizes of the code's working memory."""
        width = self.widths[0]
        block = max(1, sum(self.sizes)) * width * ITEM_BYTES[dtype]
        fits = block + CODE_BYTES * self.operations <= SECOND_CACHE
        least = 1 if fits or self.chunks <= LONG_CODE else LONG_TILE
        tile = max(least, min(LARGEST_TILE, (TILE_BYTES if self.chunks > 1 else TILE_BYTES_ONE) // block))
        return CodeLayout(width, tile, tile * block)


def plain_pieces(program: Program, width: int, dtype: str) -> Pieces:
    """Return the pieces of a scheduled program."""
    chunks, places = split(program), output_layout(program)
    body = LlvmBody(program, chunks, places, width, ELEMENT[dtype], wide_lanes(program, width, dtype))
    return Pieces(
        program.inputs,
        program.outputs,
        places,
        list(body.text()),
        [*(["leaves"] if body.leaves else []), *(f"chunk_{k}" for k in range(len(chunks)))],
        chunks.slots,
        len(chunks),
        program.operations,
        (width,),
        elementary(program),
    )


def column_pieces(program: ColumnProgram, width: int, dtype: str) -> Pieces:
    """Return the pieces of a program with columns; where it is one wide, columns are the lanes of the bodies."""
    element = ELEMENT[dtype]
    lanes = choose_width(host(), dtype) if width == 1 else None
    head, places = program.head, column_layout(program, lanes)
    chunks, groups = split(head), places[1]
    body = LlvmBody(head, chunks, places[0], width, element, wide_lanes(head, width, dtype))
    functions = list(body.text())
    names = [*(["leaves"] if body.leaves else []), *(f"chunk_{k}" for k in range(len(chunks)))]
    slots, count, widths, operations = [chunks.slots], len(chunks), [width], head.operations
    for g, (column, group) in enumerate(zip(program.bodies, groups, strict=True)):
        parts, wide = split(column.program, COLUMN_CHUNK), lanes or width * group.beside
        functions += LlvmColumn(column, parts, group, wide, width, element).functions(f"columns_{g}")
        for k in range(max(1, len(parts))):
            functions.append(column_loop(f"columns_{g}_{k}", column, parts.slots, group, wide, width, element))
            names.append(f"columns_{g}_{k}_turns")
        widths.append(wide)
        slots.append(parts.slots * (wide // width) * turns(column, group, wide))
        count += len(parts)
        operations += column.program.operations * (wide // width)
    used = elementary(head).union(*(elementary(column.program) for column in program.bodies))
    return Pieces(
        head.inputs,
        program.outputs,
        places[0],
        functions,
        names,
        max(slots),
        count,
        operations,
        tuple(dict.fromkeys(widths)),
        used,
    )


def elementary(program: Program) -> frozenset[Op]:
    """Return the elementary functions that a program calls."""
    return frozenset(Op(code) for code in np.unique(program.op)) & ELEMENTARY


def wide_lanes(program: Program, width: int, dtype: str) -> int:
    """Return how many sines of a single sample are computed together."""
    return choose_width(host(), dtype) if width == 1 and elementary(program) & {Op.SIN, Op.COS} else 1


def print_module(pieces: Pieces, shape: CodeLayout, dtype: str) -> str:
    """Return the LLVM text of a program."""
    element, width = ELEMENT[dtype], shape.width
    functions, declarations = library(set(pieces.used), width, element)
    if width == 1 and pieces.used & {Op.SIN, Op.COS}:
        wide, more = wide_sincos(choose_width(host(), dtype), element)
        functions, declarations = functions + wide, declarations | more
    for lanes in pieces.widths:
        kind, suffix = vector(lanes, element), f"v{lanes}{'f64' if element == 'double' else 'f32'}"
        declarations |= {f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})"}
        declarations |= {f"declare {kind} @llvm.copysign.{suffix}({kind}, {kind})"}
        declarations |= {f"declare {kind} @llvm.{f}.{suffix}({kind})" for f in ("sqrt", "fabs", "floor", "ceil")}
    loop = driver(pieces.inputs, pieces.outputs, pieces.places, pieces.names, pieces.sizes, shape.tile, width, element)
    text = "\n".join(
        [
            *sorted(declarations),
            "declare i64 @llvm.smin.i64(i64, i64)",
            *(["declare void @llvm.x86.avx.vzeroupper()"] if host().has_upper_halves else []),
            *functions,
            *pieces.functions,
            loop,
            'attributes #0 = { nounwind alignstack=64 "prefer-vector-width"="512" }',
            '!0 = !{!"branch_weights", i32 1, i32 100000}',
            "",
        ]
    )
    return text.replace(CONVENTION, host().convention).replace(AT_THE_END, CLEARED if host().has_upper_halves else "")


def build(
    program: Program | ColumnProgram, dtype: str, width: int | None = None
) -> tuple[Code, CodeLayout, dict[str, Any]]:
    """Compile a scheduled program for this machine.

    Returns
    -------
    code, layout, figures
        Compiled code; what a caller must know; numbers for the report.
    """
    start = time.perf_counter()
    if isinstance(program, ColumnProgram):
        pieces = column_pieces(program, width or choose_width(host(), dtype), dtype)
    else:
        pieces = plain_pieces(program, width or program_width(program, dtype), dtype)
    shape = pieces.layout(dtype)
    text = print_module(pieces, shape, dtype)
    printed = time.perf_counter()
    code = compile_text(text, level(), clears=True)
    done = time.perf_counter()
    figures = {
        "chunks": pieces.chunks,
        "scratch_slots": pieces.slots,
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
