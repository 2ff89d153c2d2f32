"""Object code linked into one image, placed in memory and called."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import struct
import sys
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

from dalembert.errors import UnsupportedError

# ----------------------------------------------------------------------------------------------------------------------
# Object code linked into one block of bytes that runs wherever it is placed.
#
# What LLVM emits for a program refers to itself (constants, functions) by distance, and to a few functions of the C
# library by name. Distances are settled here, once, when the code is made; the names become slots that the loader fills
# with addresses (`machine`). So a kernel that was compiled before starts without LLVM.
#
# Only what LLVM emits for programs is understood: ELF, x86-64, relocations by distance, no writable data. All else
# gives no image, and LLVM's own linker loads the object. Source: System V ABI, AMD64 supplement 1.0, sections 4.4 and
# 4.5.


HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
DISTANCE = struct.Struct("<i")
ELF64_LITTLE = b"\x7fELF\x02\x01"
X86_64 = 62
PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8
WRITE, ALLOCATE, TLS = 0x1, 0x2, 0x400
BY_DISTANCE, BY_CALL = (2, 4), 4  # R_X86_64_PC32, R_X86_64_PLT32
BY_SLOT = (9, 41, 42)  # R_X86_64_GOTPCREL and its relaxed forms
RESERVED = 0xFF00  # section numbers from here on are no sections
UNWIND = ".eh_frame"  # nothing here throws
JUMP = b"\xff\x25"  # jmp *[rip + distance]
SLOT_BYTES = 8


@dataclass(frozen=True)
class Image:
    """Code to be placed in memory, at any page.

    Attributes
    ----------
    data
        The bytes.
    entry
        Where the function `run` begins.
    slots
        (place, name): the 8 bytes at `place` shall hold the address of a function of the C library.
    """

    data: bytes
    entry: int
    slots: tuple[tuple[int, str], ...]


class _NoImageError(Exception):
    """The object holds something that is not understood here."""


def link(code: bytes) -> Image | None:
    """Return the image of an object file with a function `run`; None where it holds more than is understood."""
    if not code.startswith(ELF64_LITTLE) or HEADER.unpack_from(code)[2] != X86_64:
        return None
    try:
        return _Linker(code).image()
    except (_NoImageError, struct.error):
        return None


class _Linker:
    """One object file on its way to an image."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        header = HEADER.unpack_from(code)
        offset, size, count, names = header[6], header[11], header[12], header[13]
        self.sections = [SECTION.unpack_from(code, offset + k * size) for k in range(count)]
        self.names = self.sections[names]
        self.data = bytearray()
        self.place: dict[int, int] = {}  # section -> where it lies in the image
        self.slot: dict[str, int] = {}
        self.stub: dict[str, int] = {}

    def image(self) -> Image:
        """Lay out the sections, then settle every reference."""
        for k, section in enumerate(self.sections):
            if section[2] & ALLOCATE and not self.text(self.names, section[0]).startswith(UNWIND):
                self._lay(k)
        table = next((s for s in self.sections if s[1] == SYMTAB), None)
        if table is None:
            raise _NoImageError
        self.strings = self.sections[table[6]]
        self.symbols = [SYMBOL.unpack_from(self.code, at) for at in range(table[4], table[4] + table[5], SYMBOL.size)]
        for section in self.sections:
            if section[1] == RELA and section[7] in self.place:
                for at in range(section[4], section[4] + section[5], RELOCATION.size):
                    self._settle(self.place[section[7]], *RELOCATION.unpack_from(self.code, at))
        entry = [s for s in self.symbols if s[3] and self.text(self.strings, s[0]) == "run"]
        if len(entry) != 1:
            raise _NoImageError
        return Image(bytes(self.data), self._defined(entry[0]), tuple((at, name) for name, at in self.slot.items()))

    def text(self, table: tuple[int, ...], at: int) -> str:
        """Return a string of a string table."""
        begin = table[4] + at
        return self.code[begin : self.code.index(b"\0", begin)].decode()

    def _lay(self, k: int) -> None:
        _, kind, flags, _, offset, size, _, _, alignment, _ = self.sections[k]
        if kind not in (PROGBITS, NOBITS) or flags & (WRITE | TLS):
            raise _NoImageError
        self.data += bytes(-len(self.data) % max(1, alignment))
        self.place[k] = len(self.data)
        self.data += bytes(size) if kind == NOBITS else self.code[offset : offset + size]

    def _defined(self, symbol: tuple[int, ...]) -> int:
        """Return where a symbol of this object lies in the image."""
        if symbol[3] >= RESERVED or symbol[3] not in self.place:
            raise _NoImageError
        return self.place[symbol[3]] + symbol[4]

    def _settle(self, start: int, offset: int, info: int, addend: int) -> None:
        """Write one distance."""
        symbol, kind = self.symbols[info >> 32], info & 0xFFFFFFFF
        outside = symbol[3] == 0
        if outside and kind == BY_CALL:
            target = self._stub(self.text(self.strings, symbol[0]))
        elif outside and kind in BY_SLOT:
            target = self._slot(self.text(self.strings, symbol[0]))
        elif kind in BY_DISTANCE and not outside:
            target = self._defined(symbol)
        else:
            raise _NoImageError
        DISTANCE.pack_into(self.data, start + offset, target + addend - start - offset)

    def _slot(self, name: str) -> int:
        """Return the place that will hold the address of an outside function."""
        if name not in self.slot:
            self.data += bytes(-len(self.data) % SLOT_BYTES)
            self.slot[name] = len(self.data)
            self.data += bytes(SLOT_BYTES)
        return self.slot[name]

    def _stub(self, name: str) -> int:
        """Return the place of a jump to an outside function, however far away that is."""
        if name not in self.stub:
            slot = self._slot(name)
            self.stub[name] = len(self.data)
            self.data += JUMP + DISTANCE.pack(slot - len(self.data) - len(JUMP) - DISTANCE.size)
        return self.stub[name]


# ----------------------------------------------------------------------------------------------------------------------
# Compiled code in memory, ready to be called.
#
# An image (`image`) is copied to fresh pages, its slots are filled, and the pages become executable and read-only: no
# LLVM, under a millisecond. Object code without an image is loaded by LLVM's own linker.


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
    from dalembert.kernel.llvm.compile import binding, host
    from dalembert.kernel.llvm.functions import LIBM_ARITY

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
