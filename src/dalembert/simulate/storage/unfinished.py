"""HDF5 files for reading, whole or cut, finished or left behind by a process that was killed.

HDF5's own way to read a file whose writer did not close it (single writer, multiple readers) takes what lies behind the
end of the file as zeros and reads it again and again: a file that was cut in half keeps it busy for ever. So such a
file is opened as one that was closed: its superblock (HDF5 File Format Specification 3.0, sec. II.A, version 3) is read
here, and handed to HDF5 with the status flags cleared and the end of the file where it is. What is missing then fails
its checksum, or is behind the end, at once. Nothing is written.

    byte  0..7 signature   8 version   9, 10 sizes of offsets and lengths   11 status flags
    12 base address   20 extension   28 end of file   36 root group   44 checksum (Jenkins' lookup3 of bytes 0..43)
"""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from typing import Any

from dalembert.simulate.storage.layout import h5py

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUPERBLOCK = 48
"""Bytes of a superblock of version 2 or 3 with offsets of eight bytes, as every run has it."""

STATUS, END, CHECKSUM = 11, 28, 44
"""Places of the status flags, the end of the file and the checksum."""

OPEN_FOR_WRITING = 0b101
"""Flags of a file that is being written, or whose writer was killed."""

WORD = 0xFFFFFFFF


def open_file(path: Path) -> Any:
    """Return the `h5py.File`, to be closed by the caller; OSError where it is none, or cut off."""
    with path.open("rb") as stream:
        head = stream.read(SUPERBLOCK)
    if not head.startswith(SIGNATURE):
        raise OSError("it is no HDF5 file")
    if len(head) < SUPERBLOCK or head[8] not in (2, 3) or head[9] != 8:
        raise OSError("it is cut off, or an HDF5 file that no run has made")
    if not head[STATUS] & OPEN_FOR_WRITING:
        return h5py().File(path, "r")
    return h5py().File(_Closed(path), "r")


def is_unfinished(path: Path) -> bool:
    """Say whether a file is being written, or its writer was killed."""
    with path.open("rb") as stream:
        head = stream.read(SUPERBLOCK)
    return len(head) == SUPERBLOCK and bool(head[STATUS] & OPEN_FOR_WRITING)


class _Closed(io.RawIOBase):
    """A file as it would be had its writer closed it: another superblock, the rest from the disk."""

    def __init__(self, path: Path) -> None:
        self.stream = path.open("rb", buffering=0)
        self.length = os.fstat(self.stream.fileno()).st_size
        head = bytearray(self.stream.read(SUPERBLOCK) or b"")
        head[STATUS] &= ~OPEN_FOR_WRITING
        head[END : END + 8] = struct.pack("<Q", self.length)
        head[CHECKSUM:SUPERBLOCK] = struct.pack("<I", lookup3(bytes(head[:CHECKSUM])))
        self.head = bytes(head)
        self.place = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place."""
        return self.place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self.place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: self.length}[whence]
        return self.place

    def readinto(self, buffer: Any) -> int:
        """Read all that is asked for; behind the end there is nothing, not even zeros."""
        view = memoryview(buffer).cast("B")
        self.stream.seek(self.place)
        data = self.stream.read(len(view)) or b""
        while len(data) < len(view) and (more := self.stream.read(len(view) - len(data))):
            data += more
        if len(data) < len(view):
            raise OSError("it is cut off")
        if self.place < SUPERBLOCK:
            data = (self.head[self.place :] + data[SUPERBLOCK - self.place :])[: len(view)]
        view[:] = data
        self.place += len(view)
        return len(view)

    def close(self) -> None:
        """Close the file on the disk."""
        self.stream.close()
        super().close()


def lookup3(data: bytes) -> int:
    """Return Bob Jenkins' `hashlittle` (lookup3.c, 2006), the checksum of HDF5's metadata."""
    a = b = c = (0xDEADBEEF + len(data)) & WORD
    while len(data) > 12:
        a, b, c = (x + y & WORD for x, y in zip((a, b, c), struct.unpack_from("<3I", data), strict=True))
        a = (a - c & WORD) ^ _rotated(c, 4)
        c = c + b & WORD
        b = (b - a & WORD) ^ _rotated(a, 6)
        a = a + c & WORD
        c = (c - b & WORD) ^ _rotated(b, 8)
        b = b + a & WORD
        a = (a - c & WORD) ^ _rotated(c, 16)
        c = c + b & WORD
        b = (b - a & WORD) ^ _rotated(a, 19)
        a = a + c & WORD
        c = (c - b & WORD) ^ _rotated(b, 4)
        b = b + a & WORD
        data = data[12:]
    if not data:
        return c
    a, b, c = (x + y & WORD for x, y in zip((a, b, c), struct.unpack("<3I", data.ljust(12, b"\0")), strict=True))
    c = (c ^ b) - _rotated(b, 14) & WORD
    a = (a ^ c) - _rotated(c, 11) & WORD
    b = (b ^ a) - _rotated(a, 25) & WORD
    c = (c ^ b) - _rotated(b, 16) & WORD
    a = (a ^ c) - _rotated(c, 4) & WORD
    b = (b ^ a) - _rotated(a, 14) & WORD
    return (c ^ b) - _rotated(b, 24) & WORD


def _rotated(x: int, k: int) -> int:
    return (x << k | x >> 32 - k) & WORD
