"""Which processor this is, said without LLVM: part of the name of a cache entry.

LLVM's own answer (`llvm_target.host`) decides what is compiled, but asking costs its import. What the kernel of the
system says about the first processor determines that answer, and is a file of a few lines.
"""

from __future__ import annotations

import os
import sys
from functools import cache

CPUINFO = "/proc/cpuinfo"
TOLD = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),  # x86
    *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "isa", "uarch"),  # ARM, RISC-V
)
LONGEST = 16_384  # bytes about one processor


@cache
def fingerprint() -> tuple[str, ...]:
    """Return what tells this processor from others: equal answers run the same machine code."""
    told = _from_cpuinfo() if sys.platform == "linux" else ()
    if told:
        return (os.uname().machine, str(sys.maxsize), *told)
    from dalembert.kernel.llvm_target import host

    target = host()
    return (target.triple, target.cpu, target.features)


def _from_cpuinfo() -> tuple[str, ...]:
    """Return the lines about the first processor that do not change from start to start."""
    try:
        with open(CPUINFO, "rb", buffering=0) as file:
            first = file.read(LONGEST).decode("utf-8", "replace").partition("\n\n")[0]
    except OSError:
        return ()
    lines = [line for line in first.splitlines() if line.partition(":")[0].strip() in TOLD]
    return tuple(lines) if any(line.startswith(("flags", "Features", "isa")) for line in lines) else ()
