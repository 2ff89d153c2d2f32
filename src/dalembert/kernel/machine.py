"""Compiled code in memory, ready to be called.

An image (`image`) is copied to fresh pages, its slots are filled, and the pages become executable and read-only: no
LLVM, under a millisecond. Object code without an image is loaded by LLVM's own linker.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from dalembert.errors import UnsupportedError
from dalembert.kernel.image import SLOT_BYTES, Image, link

LIBM_PREFIX = "dalembert_libm_"
LIBRARIES = ("libm.so.6", "libm.dylib", "ucrtbase")  # where the C library's functions are, beside this process

_lock = threading.Lock()


@dataclass(frozen=True)
class Code:
    """Code that can be stored: its bytes, and where they are an image, its entry and slots; else an object file."""

    data: bytes
    entry: int | None = None
    slots: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, code: bytes) -> Code:
        """Return an object file as an image where that is possible here."""
        image = link(code) if sys.platform == "linux" else None
        return cls(code) if image is None else cls(image.data, image.entry, image.slots)

    @classmethod
    def stored(cls, header: dict[str, Any], data: bytes) -> Code:
        """Return what `header` and the bytes of a cache entry say."""
        return cls(data, header["entry"], tuple((place, name) for place, name in header["slots"]))

    def header(self) -> dict[str, Any]:
        """Return what has to be stored beside the bytes."""
        return {"entry": self.entry, "slots": self.slots}


class Machine:
    """Compiled code in memory; keeps it alive."""

    def __init__(self, code: Code) -> None:
        if code.entry is None:
            self.address, self._memory = _load_object(code.data)
        else:
            self.address, self._memory = _load_image(Image(code.data, code.entry, code.slots))
        pointer, word = ctypes.c_void_p, ctypes.c_int64
        self.run = ctypes.CFUNCTYPE(None, pointer, word, word, pointer)(self.address)


def _load_image(image: Image) -> tuple[int, Any]:
    """Return the address of an image's function, and what keeps it alive."""
    size = len(image.data) + -len(image.data) % mmap.PAGESIZE
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    pages[: len(image.data)] = image.data
    for place, name in image.slots:
        pages[place : place + SLOT_BYTES] = c_function(name.removeprefix(LIBM_PREFIX)).to_bytes(SLOT_BYTES, "little")
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    if protect(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnsupportedError(
            f"this system does not let a process make code (mprotect: error {ctypes.get_errno()}); "
            "take backend='c' or backend='numpy'"
        )
    return address + image.entry, pages


def _load_object(code: bytes) -> tuple[int, Any]:
    """Return the address of `run` in an object file that LLVM loads, and what keeps it alive."""
    from dalembert.kernel.llvm_math import LIBM_ARITY
    from dalembert.kernel.llvm_target import binding, host

    llvm = binding()
    with _lock:
        jit = llvm.create_lljit_compiler(host().machine())
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in LIBM_ARITY:
            builder.import_symbol(LIBM_PREFIX + name, c_function(name))
        library = builder.export_symbol("run").link(jit, "kernel")
    return library["run"], (jit, library)


@cache
def c_function(name: str) -> int:
    """Return the address of a function of the C library."""
    for library in (None, *LIBRARIES):
        with contextlib.suppress(OSError, AttributeError, TypeError):
            return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value or 0
    raise UnsupportedError(f"the C library of this system has no function {name!r}, which the kernel needs")
