"""The report of a kernel: operations, speed of the last call, peak of the processor."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass, field
from functools import cache

from dalembert.kernel.llvm.code_in_memory import Machine
from dalembert.kernel.llvm.compile import ELEMENT, choose_width, compile_text, host
from dalembert.kernel.llvm.vector import vector

# ----------------------------------------------------------------------------------------------------------------------
# The processor's peak: measured once per process, by code that does nothing else.
#
# Chains of operations on full vectors in registers, all independent, no memory. Fused multiply-adds and additions in
# equal parts keep all arithmetic units busy: the yardstick of `KernelReport.share_of_peak`. Multiply-adds alone give
# the rate of the multipliers, which on some processors is half of that.


CHAINS = 16  # latency of four cycles times the units that work in parallel, and some to spare
ROUNDS = 20_000
REPEATS = 7


@cache
def peak_operations(dtype: str = "float64", only_fma: bool = False) -> float:
    """Return operations per second of one core: lanes times vector operations, an fma counted as one."""
    width = choose_width(host(), dtype)
    machine = Machine(compile_text(_text(width, ELEMENT[dtype], only_fma)))
    buffer = ctypes.create_string_buffer(CHAINS * 64 + 64)
    address = ctypes.addressof(buffer)
    address += -address % 64
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        machine.run(address, 0, ROUNDS, address)
        best = min(best, time.perf_counter() - start)
    return CHAINS * width * ROUNDS / best


def _text(width: int, element: str, only_fma: bool) -> str:
    """Return `@run`: a loop of CHAINS independent operations per round."""
    kind = vector(width, element)
    suffix = f"v{width}{'f64' if element == 'double' else 'f32'}"
    loads, phis, steps, stores = [], [], [], []
    for k in range(CHAINS):
        loads += [f"  %p{k} = getelementptr {kind}, ptr %args, i64 {k}", f"  %x{k} = load {kind}, ptr %p{k}"]
        phis.append(f"  %y{k} = phi {kind} [%x{k}, %0], [%z{k}, %loop]")
        operation = (
            f"call {kind} @llvm.fma.{suffix}({kind} %y{k}, {kind} %x0, {kind} %x0)"
            if only_fma or k % 2
            else f"fadd {kind} %y{k}, %x0"
        )
        steps.append(f"  %z{k} = {operation}")
        stores.append(f"  store {kind} %z{k}, ptr %p{k}")
    return "\n".join(
        [
            f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})",
            "define void @run(ptr %args, i64 %first, i64 %stop, ptr %scratch) {",
            *loads,
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [%first, %0], [%i_next, %loop]",
            *phis,
            *steps,
            "  %i_next = add i64 %i, 1",
            "  %more = icmp slt i64 %i_next, %stop",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *stores,
            "  ret void",
            "}",
        ]
    )


# ----------------------------------------------------------------------------------------------------------------------
# The report of a kernel: its operations, its code, the speed of its last call.


@dataclass(frozen=True)
class KernelReport:
    """Figures of a kernel; those that a backend does not have are None.

    Attributes
    ----------
    operations
        Number of operations by kind, as compiled; a fused multiply-add is one.
    traced_operations
        Operations of the traced expressions, before duplicates were removed and products fused.
    live_before, live_after
        Largest number of values alive at once, in CasADi's order and as compiled.
    chunks, scratch_slots
        Pieces the program was cut into; values that pass between them.
    lower_seconds, compile_seconds
        Time of the passes and of LLVM when the code was made (maybe by another process).
    start_seconds, from_cache
        Time this kernel took to be ready; whether its code came from the cache.
    code_bytes, width
        Size of the object code (not known on a GPU); samples per vector.
    registers, local_bytes, shared_bytes
        On a GPU: registers and local memory (spills) of a thread, shared memory of a block; of the part that has most.
    samples, seconds, samples_per_second
        The last call.
    share_of_peak
        Traced operations per second of the last call over what the cores of its threads can issue (`peak`).
    """

    name: str
    backend: str
    dtype: str
    operations: dict[str, int] = field(default_factory=dict)
    traced_operations: int | None = None
    live_before: int | None = None
    live_after: int | None = None
    chunks: int | None = None
    scratch_slots: int | None = None
    lower_seconds: float | None = None
    print_seconds: float | None = None
    compile_seconds: float | None = None
    start_seconds: float | None = None
    from_cache: bool | None = None
    code_bytes: int | None = None
    width: int | None = None
    registers: int | None = None
    local_bytes: int | None = None
    shared_bytes: int | None = None
    samples: int | None = None
    seconds: float | None = None
    samples_per_second: float | None = None
    share_of_peak: float | None = None

    def __str__(self) -> str:
        total = sum(self.operations.values())
        kinds = ", ".join(f"{number} {kind}" for kind, number in self.operations.items())
        lines = [
            f"kernel {self.name!r}, backend {self.backend}, {self.dtype}",
            f"  operations   {total} ({kinds}); traced {self.traced_operations}",
            f"  live values  {self.live_before} -> {self.live_after}",
        ]
        if self.compile_seconds is not None:
            lines += [
                f"  code         {'' if self.code_bytes is None else f'{self.code_bytes} bytes, '}"
                f"{self.width} samples per vector, {self.chunks} chunks, {self.scratch_slots} scratch slots",
                f"  ready in     {self.start_seconds:.3f} s {'(from cache)' if self.from_cache else ''}"
                f"; made in {self.lower_seconds or 0:.2f} s + {self.compile_seconds:.2f} s",
            ]
        if self.registers is not None:
            lines.append(
                f"  thread       {self.registers} registers, {self.local_bytes} bytes of local memory; "
                f"{self.shared_bytes} bytes of shared memory a block"
            )
        if self.samples_per_second is not None:
            share = "" if self.share_of_peak is None else f", {self.share_of_peak:.0%} of peak"
            lines.append(f"  last call    {self.samples} samples, {self.samples_per_second:.3g} per second{share}")
        return "\n".join(lines)
