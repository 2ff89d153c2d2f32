"""Object code linked into one block of bytes that runs wherever it is placed.

What LLVM emits for a program refers to itself (constants, functions) by distance, and to a few functions of the C
library by name. Distances are settled here, once, when the code is made; the names become slots that the loader fills
with addresses (`machine`). So a kernel that was compiled before starts without LLVM.

Only what LLVM emits for programs is understood: ELF, x86-64, relocations by distance, no writable data. All else gives
no image, and LLVM's own linker loads the object. Source: System V ABI, AMD64 supplement 1.0, sections 4.4 and 4.5.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

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
