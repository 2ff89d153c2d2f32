"""The C backend as an engine: C text compiled by the system's compiler, called through ctypes, in threads."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache as memoize
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.kernel import cache
from dalembert.kernel.arrays import Arguments, check_inputs, make_outputs
from dalembert.kernel.c.printer import print_c
from dalembert.kernel.cache import fingerprint
from dalembert.kernel.engine import FunctionSource, KernelOptions, Workers
from dalembert.kernel.program.columns import ports_of
from dalembert.kernel.program.lower import lower

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared")
NAME = "kernel"  # of the function in the library; the model's name matters only in exported files
GRAIN = 16  # samples that a thread takes at least


class CEngine:
    """A shared library for one function."""

    short = None

    def __init__(self, function: Any, options: KernelOptions) -> None:
        start = time.perf_counter()
        self.name: str = function.name()
        self.inputs, self.outputs = ports_of(function)
        self.dtype = np.dtype(options.dtype)
        compiler = find_compiler()
        key = _cache_key(function, options, compiler)
        entry = cache.read(key) if key else None
        if entry is None:
            code, header = _compile(function, options, compiler)
            if key:
                cache.write(key, header, code)
        else:
            header, code = entry
        self._library = load(code)
        self._run = self._library[f"{NAME}_batch"]
        self._run.restype = ctypes.c_size_t
        self._workers = Workers(options.threads)
        self.figures: dict[str, Any] = header["figures"] | {
            "from_cache": entry is not None,
            "start_seconds": time.perf_counter() - start,
            "width": 1,
        }

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Evaluate a batch or a single sample; arrays that are not contiguous are copied."""
        arguments = check_inputs(self.name, inputs, self.inputs, self.dtype)
        outputs = make_outputs(self.name, arguments, self.outputs, self.dtype, out)
        status = np.zeros(arguments.samples, np.uint8) if with_status else None
        rows = [np.ascontiguousarray(array) for array in arguments.inputs]
        written = [array if array.flags.c_contiguous else np.empty(array.shape, self.dtype) for array in outputs]
        if arguments.samples:
            self._batch(arguments, rows, written, status)
        for array, result in zip(outputs, written, strict=True):
            if array is not result:
                array[...] = result
        return outputs, status

    def _batch(self, arguments: Arguments, rows: list[Any], written: list[Any], status: Any) -> None:
        """Run all samples; ctypes releases the interpreter lock."""
        steps = [port.size if arguments.is_batch(k, port) else 0 for k, port in enumerate(self.inputs)]
        item = self.dtype.itemsize

        def work(first: int, stop: int) -> None:
            words: list[Any] = [ctypes.c_size_t(stop - first)]
            for array, step in zip(rows, steps, strict=True):
                words += [ctypes.c_void_p(array.ctypes.data + first * step * item), ctypes.c_size_t(step)]
            for array, port in zip(written, self.outputs, strict=True):
                words.append(ctypes.c_void_p(array.ctypes.data + first * port.size * item))
            words.append(None if status is None else ctypes.c_void_p(status.ctypes.data + first))
            self._run(*words)

        self._workers.share(work, arguments.samples, GRAIN)

    def elapsed(self) -> float | None:
        """Return None: a call returns when it is done."""
        return None

    def peak(self) -> float | None:
        """Return the operations per second that a core can issue, in full vectors; this code is scalar."""
        from dalembert.kernel.report import peak_operations

        return peak_operations(self.dtype.name)


def find_compiler() -> str:
    """Return the path of a C compiler: `CC` where it is set, else cc, gcc or clang."""
    chosen = os.environ.get("CC", "").strip()
    if chosen:
        path = shutil.which(chosen)
        if path is None:
            raise UnsupportedError(
                f"the environment variable CC names the C compiler {chosen!r}, which does not exist or cannot be run; "
                "set it to the path of one (without options), or unset it"
            )
        return path
    for name in COMPILERS:
        path = shutil.which(name)
        if path:
            return path
    raise UnsupportedError(
        "backend 'c' needs a C compiler, and none of cc, gcc and clang is on the path; install gcc or clang "
        "(Debian, Ubuntu: apt install gcc; macOS: xcode-select --install; Windows: MinGW-w64), set CC, "
        "or take backend='cpu', which needs none"
    )


@memoize
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


def compile_library(source: str, header: str, compiler: str, flags: Sequence[str]) -> bytes:
    """Return the shared library of C text; the header is `kernel.h`."""
    with tempfile.TemporaryDirectory(prefix="dalembert") as text:
        folder = Path(text)
        (folder / f"{NAME}.c").write_text(source)
        (folder / f"{NAME}.h").write_text(header)
        command = [compiler, *flags, f"{NAME}.c", "-o", "library", "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            first = "\n".join(done.stderr.strip().splitlines()[:5])
            raise UnsupportedError(f"the C compiler {compiler} refused the kernel's code; it says: {first}")
        return (folder / "library").read_bytes()


def load(code: bytes) -> ctypes.CDLL:
    """Put a shared library into memory, from bytes whose checksum was verified."""
    handle, path = tempfile.mkstemp(prefix="dalembert", suffix=".dll" if sys.platform == "win32" else ".so")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        return ctypes.CDLL(path)
    finally:
        if sys.platform != "win32":  # Windows keeps a loaded file
            os.unlink(path)


def _native(compiler: str) -> list[str]:
    """Return the flag for this processor where the compiler knows it."""
    command = [compiler, "-march=native", "-E", "-x", "c", os.devnull]
    done = subprocess.run(command, capture_output=True, check=False)
    return ["-march=native"] if done.returncode == 0 else []


def _cache_key(function: Any, options: KernelOptions, compiler: str) -> str | None:
    """Return the name of this kernel in the cache; None where it has none."""
    return FunctionSource(function).key(["c", options.dtype, _version(compiler), *FLAGS, *fingerprint()])


def _compile(function: Any, options: KernelOptions, compiler: str) -> tuple[bytes, dict[str, Any]]:
    """Trace, print and compile a function; return the library and the header of its cache entry."""
    lowering = lower(function)
    start = time.perf_counter()
    text = print_c(lowering, options.dtype, NAME)
    printed = time.perf_counter()
    code = compile_library(text.source, text.header, compiler, [*_native(compiler), *FLAGS])
    figures = {
        **lowering.figures(),
        "chunks": text.chunks,
        "scratch_slots": text.slots,
        "print_seconds": printed - start,
        "compile_seconds": time.perf_counter() - printed,
        "code_bytes": len(code),
    }
    return code, {"figures": figures}


def engine(source: FunctionSource, options: KernelOptions) -> CEngine:
    """Return the engine of a source."""
    return CEngine(source.expressions, options)
