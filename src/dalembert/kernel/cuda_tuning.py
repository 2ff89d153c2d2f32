"""How a program is printed for a GPU: choices that change its speed and not its results."""

from __future__ import annotations

from dataclasses import dataclass

THREADS = 64  # per block
BLOCKS = 4  # per multiprocessor: 256 threads leave each its 255 registers
PART = 4500  # operations: with copies and spills 100 KiB of code, and the instruction cache holds 128


@dataclass(frozen=True)
class Tuning:
    """Choices that do not change results.

    Attributes
    ----------
    threads, blocks
        Threads per block; blocks that must fit a multiprocessor at once, which caps the registers of a thread at
        65536 / (threads blocks).
    part
        Operations per part.
    stage
        Whether first-level elementary functions leave their results in shared memory.
    recompute
        What a value that passes between parts costs to store, or to read, in operations: values that are cheaper to
        compute again are (`recompute`); 0 for none.
    fetch
        Whether values of earlier parts are brought to shared memory before the work begins, as far as they fit.
    scratch
        Bytes of the values between parts: longer batches run in pieces. What stays in the second-level cache is cheap.
    meet
        Operations after which the threads of a block wait for each other, so that they share fetched instructions;
        0 for never.
    """

    threads: int = THREADS
    blocks: int = BLOCKS
    part: int = PART
    stage: bool = True
    recompute: int = 0
    fetch: bool = True
    scratch: int = 1 << 30
    meet: int = 0
