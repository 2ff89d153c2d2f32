"""What the processor can issue: measured once per process, by code that does nothing else.

Eight chains of fused multiply-adds and eight of additions, all independent, on full vectors in registers: both kinds
of arithmetic unit busy, no memory. The result is the yardstick of `Report.share_of_peak`.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache

from dalembert.kernel.llvm_backend import ELEMENT, Machine, choose_width, compile_text
from dalembert.kernel.llvm_target import host
from dalembert.kernel.llvm_vector import vector

CHAINS = 8  # of each kind; latency of four cycles times the units that work in parallel
ROUNDS = 20_000
REPEATS = 7


@cache
def peak_operations(dtype: str = "float64") -> float:
    """Return operations per second of one core: lanes times vector operations, an fma counted as one."""
    width = choose_width(host(), dtype)
    machine = Machine(compile_text(_text(width, ELEMENT[dtype])))
    buffer = ctypes.create_string_buffer(2 * CHAINS * 64 + 64)
    address = ctypes.addressof(buffer)
    address += -address % 64
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        machine.run(address, 0, ROUNDS, address)
        best = min(best, time.perf_counter() - start)
    return 2 * CHAINS * width * ROUNDS / best


def _text(width: int, element: str) -> str:
    """Return `@run`: a loop of 2 CHAINS independent operations per round."""
    kind = vector(width, element)
    suffix = f"v{width}{'f64' if element == 'double' else 'f32'}"
    chains = range(2 * CHAINS)
    loads, phis, steps, stores = [], [], [], []
    for k in chains:
        loads += [f"  %p{k} = getelementptr {kind}, ptr %args, i64 {k}", f"  %x{k} = load {kind}, ptr %p{k}"]
        phis.append(f"  %y{k} = phi {kind} [%x{k}, %0], [%z{k}, %loop]")
        operation = (
            f"call {kind} @llvm.fma.{suffix}({kind} %y{k}, {kind} %x0, {kind} %x0)"
            if k % 2
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
