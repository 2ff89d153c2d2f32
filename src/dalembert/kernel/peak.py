"""What the processor can issue: measured once per process, by code that does nothing else.

Chains of operations on full vectors in registers, all independent, no memory. Fused multiply-adds and additions in
equal parts keep all arithmetic units busy: the yardstick of `Report.share_of_peak`. Fused multiply-adds alone give the
rate of the multipliers, which on some processors is half of that.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache

from dalembert.kernel.llvm_backend import ELEMENT, choose_width, compile_text
from dalembert.kernel.llvm_target import host
from dalembert.kernel.llvm_vector import vector
from dalembert.kernel.machine import Machine

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
