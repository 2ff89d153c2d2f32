"""Files with code in them, run only if nobody but their owner can have written them.

A file is taken where it is a regular file without other names (no link of either kind), belongs to this user (or to
another that is trusted by the caller), cannot be written by others, and holds the checksum of its name and content.
Each is asked of the open file, so that what was checked is what is read. The folder may have been open to others once:
what they left there belongs to them.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

WRITABLE_BY_OTHERS = 0o022
DIGEST_BYTES = 32
PART = ".part"
"""Ending of a file on its way."""


def read_private(path: str | Path, magic: bytes, owners: frozenset[int] = frozenset()) -> bytes | None:
    """Return what `write_private` has stored; None where there is nothing, or nothing that may be trusted."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    except OSError:
        return None
    try:
        with os.fdopen(handle, "rb") as file:
            data = file.read() if _is_private(os.fstat(file.fileno()), owners) else b""
    except OSError:
        return None
    return _checked(path, magic, data)


def read_checked(path: str | Path, magic: bytes) -> bytes | None:
    """Return what `write_private` has stored, whoever owns it now: files of the installed package itself."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    return _checked(path, magic, data)


def _checked(path: str | Path, magic: bytes, data: bytes) -> bytes | None:
    """Return the content of a file; None where it is damaged."""
    start = len(magic) + DIGEST_BYTES
    body = data[start:]
    if not data.startswith(magic) or data[len(magic) : start] != _digest(path, body):
        return None
    return body


def write_private(path: str | Path, magic: bytes, body: bytes) -> None:
    """Store a file for this user alone: whole, under another name, and then renamed. OSError where that fails."""
    import tempfile  # only what compiles writes

    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=PART)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(magic + _digest(path, body) + body)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


_BINARY = getattr(os, "O_BINARY", 0)


def _digest(path: str | Path, body: bytes) -> bytes:
    """Return the checksum: a file that was given another name does not have it."""
    return hashlib.sha256(os.path.basename(path).encode() + b"\0" + body).digest()


def _is_private(state: os.stat_result, owners: frozenset[int]) -> bool:
    """Say whether only a trusted user can have written a file."""
    if not stat.S_ISREG(state.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    owned = state.st_uid == os.getuid() or state.st_uid in owners
    return owned and not state.st_mode & WRITABLE_BY_OTHERS and state.st_nlink == 1
