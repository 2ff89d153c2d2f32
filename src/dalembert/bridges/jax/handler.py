"""The function that XLA calls: a handler of its foreign function interface, written in LLVM and compiled here.

XLA hands over a frame (`XLA_FFI_CallFrame` of xla/ffi/api/c_api.h) with one buffer per argument and result. The handler
reads addresses and shapes from it, fills the table of words that a kernel's code takes (`kernel/llvm/driver.py`), and
runs the code: no Python, no copy, no C++ compiler. The first call asks for the handler's metadata, which is the version
of the interface. XLA runs handlers on threads of its own, so working memory is of the call: on the stack where it is
small, else allocated.

Offsets in bytes, the same in versions 0.1 to 0.5 of the interface:

    CallFrame   8 extensions, 72 arguments, 112 results         Buffer     24 data, 32 rank, 40 dimensions
    Extension   8 type, 24 metadata                             Metadata   24 major, 28 minor version, 32 traits
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.kernel.llvm.code_in_memory import Machine, c_function

if TYPE_CHECKING:
    from dalembert.kernel import Kernel

KNOWN_MAJOR = 0
"""The version of the interface whose layout is above; minor versions only append."""

SPOKEN_MINOR = 1
"""The minor version that handlers state: XLA serves versions that are at least a year old."""

STACK_BYTES = 1 << 16
"""Working memory that is taken from the stack; threads of XLA have at least half a megabyte."""

ALIGNMENT = 64

TEXT = """
define ptr @run(ptr %frame) {{
entry:
  %ext_at = getelementptr i8, ptr %frame, i64 8
  %ext = load ptr, ptr %ext_at
  %asked = icmp ne ptr %ext, null
  br i1 %asked, label %look, label %work
look:
  %type_at = getelementptr i8, ptr %ext, i64 8
  %type = load i32, ptr %type_at
  %is = icmp eq i32 %type, 1
  br i1 %is, label %fill, label %work
fill:
  %md_at = getelementptr i8, ptr %ext, i64 24
  %md = load ptr, ptr %md_at
  %major = getelementptr i8, ptr %md, i64 24
  store i32 {major}, ptr %major
  %minor = getelementptr i8, ptr %md, i64 28
  store i32 {minor}, ptr %minor
  %traits = getelementptr i8, ptr %md, i64 32
  store i32 0, ptr %traits
  ret ptr null
work:
  %table = alloca [{words} x i64]
  %args_at = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args_at
  %rets_at = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets_at
{ports}
  %st = getelementptr i64, ptr %table, i64 {status}
  store i64 0, ptr %st
  %rank_at = getelementptr i8, ptr %b{first}, i64 32
  %rank = load i64, ptr %rank_at
  %lead = sub i64 %rank, {axes}
  %dims_at = getelementptr i8, ptr %b{first}, i64 40
  %dims = load ptr, ptr %dims_at
  br label %count
count:
  %k = phi i64 [0, %work], [%k1, %more]
  %n = phi i64 [1, %work], [%n1, %more]
  %left = icmp slt i64 %k, %lead
  br i1 %left, label %more, label %ready
more:
  %dim_at = getelementptr i64, ptr %dims, i64 %k
  %dim = load i64, ptr %dim_at
  %n1 = mul i64 %n, %dim
  %k1 = add i64 %k, 1
  br label %count
ready:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %go
go:
{scratch}
  %alone = icmp eq i64 %n, 1
  %many = inttoptr i64 {run} to ptr
  %single = inttoptr i64 {single} to ptr
  %code = select i1 %alone, ptr %single, ptr %many
  call void %code(ptr %table, i64 0, i64 %n, ptr %scratch)
{release}
  br label %done
done:
  ret ptr null
}}
"""
PORT = """
  %b{k}_at = getelementptr ptr, ptr %{side}, i64 {place}
  %b{k} = load ptr, ptr %b{k}_at
  %d{k}_at = getelementptr i8, ptr %b{k}, i64 24
  %d{k} = load i64, ptr %d{k}_at
  %r{k}_at = getelementptr i8, ptr %b{k}, i64 32
  %r{k} = load i64, ptr %r{k}_at
  %s{k} = icmp eq i64 %r{k}, {axes}
  %t{k} = select i1 %s{k}, i64 0, i64 {sample}
  %w{k}_0 = getelementptr i64, ptr %table, i64 {word}
  store i64 %d{k}, ptr %w{k}_0
  %w{k}_1 = getelementptr i64, ptr %table, i64 {word1}
  store i64 %t{k}, ptr %w{k}_1
  %w{k}_2 = getelementptr i64, ptr %table, i64 {word2}
  store i64 {outer}, ptr %w{k}_2
  %w{k}_3 = getelementptr i64, ptr %table, i64 {word3}
  store i64 {inner}, ptr %w{k}_3"""
ON_STACK = "  %scratch = alloca i8, i64 {size}, align 64"
ON_HEAP = """\
  %malloc = inttoptr i64 {malloc} to ptr
  %raw = call ptr %malloc(i64 {size})
  %at = ptrtoint ptr %raw to i64
  %up = add i64 %at, 63
  %even = and i64 %up, -64
  %scratch = inttoptr i64 %even to ptr"""
RELEASE = """\
  %free = inttoptr i64 {free} to ptr
  call void %free(ptr %raw)"""


def handler(kernel: Kernel) -> Machine:
    """Return the handler of a kernel in memory; an argument without leading axes serves all samples."""
    from dalembert.kernel.llvm.compile import compile_text

    engine: Any = kernel.engine
    item = np.dtype(kernel.options.dtype).itemsize
    inputs, outputs = kernel.inputs, kernel.outputs
    ports = []
    for k, port in enumerate((*inputs, *outputs)):
        side, place = ("args", k) if k < len(inputs) else ("rets", k - len(inputs))
        outer = 0 if port.cols == 1 else item * port.cols
        words = {f"word{j or ''}": 4 * k + j for j in range(4)}
        ports.append(
            PORT.format(
                k=k,
                side=side,
                place=place,
                axes=len(port.shape),
                sample=item * port.size,
                outer=outer,
                inner=item,
                **words,
            )
        )
    size = engine.layout.scratch_bytes
    small = size <= STACK_BYTES
    text = TEXT.format(
        major=KNOWN_MAJOR,
        minor=SPOKEN_MINOR,
        words=4 * len(ports) + 1,
        ports="".join(ports),
        status=4 * len(ports),
        first=len(inputs),
        axes=len(outputs[0].shape),
        scratch=ON_STACK.format(size=max(size, ALIGNMENT))
        if small
        else ON_HEAP.format(malloc=c_function("malloc"), size=size + ALIGNMENT),
        release="" if small else RELEASE.format(free=c_function("free")),
        run=engine.machine.address,
        single=engine.single.address,
    )
    return Machine(compile_text(text))


def interface_version(folder: str) -> tuple[int, int] | None:
    """Return the version of the interface that a JAX installation has, from the header that it ships."""
    try:
        text = (Path(folder) / "xla/ffi/api/c_api.h").read_text()
        matches = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
        return int(matches[0][1]), int(matches[1][1])  # type: ignore[index]
    except (OSError, TypeError):
        return None
