"""From a CasADi function to a program ready to print: all passes, and what they achieved."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from dalembert.kernel.program.order import REGISTERS, most_alive, schedule
from dalembert.kernel.program.program import Program
from dalembert.kernel.program.simplify import fuse, optimise
from dalembert.kernel.program.trace import trace


@dataclass(frozen=True)
class Lowering:
    """A program and its history.

    Attributes
    ----------
    program
        Optimised, fused, scheduled: constants and inputs first.
    traced
        Operations before any pass.
    live_before, live_after
        Largest number of values alive at once, in CasADi's order and in the final one.
    seconds
        Time of all passes.
    """

    program: Program
    traced: int
    live_before: int
    live_after: int
    seconds: float


def lower(function: Any, registers: int = REGISTERS) -> Lowering:
    """Trace a CasADi function and run every pass: `schedule(fuse(optimise(trace(function))))`.

    `registers` is how many values the target holds without memory; it decides the order.
    """
    start = time.perf_counter()
    traced = trace(function)
    fused = fuse(optimise(traced))
    program = schedule(fused, registers)
    return Lowering(
        program,
        traced.operations,
        most_alive(fused),
        most_alive(program),
        time.perf_counter() - start,
    )
