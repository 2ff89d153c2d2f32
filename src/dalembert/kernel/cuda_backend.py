"""A program as CUDA C: one thread per sample, one `__global__` function per part of the program.

Rows of inputs are read by neighbouring threads together into shared memory, where each thread has a row of its own; its
odd length keeps threads on different banks. Outputs go the same way back. What does not fit is read and written in
place. Elementary functions of the first level come first and leave their results in shared memory: they need registers
of their own, and their results are needed late. A long program is cut into parts that the instruction cache holds;
values pass between them through memory in which the threads of a block lie side by side, or are computed again where
that is cheaper (`recompute`).

Divisions by one value share its reciprocal: one operation each, within 1.5 ulp instead of 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dalembert.kernel.c_body import TYPE
from dalembert.kernel.chunk import split
from dalembert.kernel.cuda_part import Part
from dalembert.kernel.cuda_tuning import Tuning
from dalembert.kernel.program import Program
from dalembert.kernel.recompute import plan

ONE_PART = {"float64": 3000, "float32": 4500}  # operations up to which a program is one part
PARTS = {"float64": (2500, 1800), "float32": (4500, 3000)}  # operations of a part: of programs up to LONG, and longer
LONG = 9000
RECOMPUTE, RECOMPUTE_LONG = 8, 3  # operations that passing a value between parts is worth; long parts lack registers
REGISTERS = {"float64": 115, "float32": 240}  # values that a thread holds in its 255 registers


@dataclass(frozen=True)
class CudaSource:
    """A program in CUDA C.

    Attributes
    ----------
    text
        Source of one module.
    functions
        Names of its `__global__` functions, in the order in which they run.
    shared_bytes
        Dynamic shared memory of each.
    slots
        Values that pass between parts, per sample.
    tuning
        How it was printed.
    """

    text: str
    functions: tuple[str, ...]
    shared_bytes: tuple[int, ...]
    slots: int
    tuning: Tuning


def choose_tuning(program: Program, dtype: str) -> Tuning:
    """Return what ran fastest for programs of this size, measured on an H200 (`benchmarks/gpu.py --tune`)."""
    if program.operations <= ONE_PART[dtype]:
        return Tuning(part=ONE_PART[dtype])
    part = PARTS[dtype][program.operations > LONG]
    return Tuning(part=part, recompute=RECOMPUTE_LONG if program.operations > LONG else RECOMPUTE)


def print_cuda(program: Program, dtype: str, tuning: Tuning | None = None) -> CudaSource:
    """Return the CUDA text of a scheduled program.

    Every function takes the same arguments: number of samples; per input its address and the distance of samples (its
    size, or 0 where one serves all); per output its address; the block of values between parts; the status, or null.
    """
    tuning = tuning or Tuning()
    layout = plan(program, split(program, tuning.part), tuning.recompute, REGISTERS[dtype])
    parts = [Part(program, layout, dtype, tuning, k) for k in range(max(1, len(layout.orders)))]
    single = "#define DA_SINGLE\n" if dtype == "float32" else ""
    opening = f"{single}typedef {TYPE[dtype]} real;\n\n{(Path(__file__).parent / 'cuda_math.cuh').read_text()}"
    text = "\n".join([opening, *(part.text() for part in parts)])
    return CudaSource(
        text,
        tuple(part.name for part in parts),
        tuple(part.shared_bytes for part in parts),
        layout.chunks.slots,
        tuning,
    )
