"""The disk cache of object code, keyed by content, processor and version."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dalembert._version import __version__
from dalembert.errors import ModelError

# ----------------------------------------------------------------------------------------------------------------------
# The fingerprint of the processor, taken without LLVM: part of the name of a cache entry.
#
# LLVM's own answer (`compile.host`) decides what is compiled, but asking costs its import. What the kernel of the
# system says about the first processor determines that answer, and is a file of a few lines.


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
    from dalembert.kernel.llvm.compile import host

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


# ----------------------------------------------------------------------------------------------------------------------
# The layout of compiled code, as its callers need it.


ITEM_BYTES = {"float64": 8, "float32": 4}
ALIGNMENT = 64  # of scratch memory, in bytes


@dataclass(frozen=True)
class CodeLayout:
    """Sizes that compiled code works with.

    Attributes
    ----------
    width
        Samples per vector, W.
    tile
        Blocks of W samples that pass through a chunk together.
    scratch_bytes
        Memory that one call of `run` needs, aligned to `ALIGNMENT`.
    """

    width: int
    tile: int
    scratch_bytes: int


# ----------------------------------------------------------------------------------------------------------------------
# The effort of the compiler. Results are the same to the last bit: no flag allows LLVM to change arithmetic.


LEVEL_VARIABLE = "DALEMBERT_OPTIMIZE"
FULL_LEVEL = 2


def level() -> int:
    """Return LLVM's level of code generation.

    2, the default, or 0: that compiles in a quarter of the time code that takes twice as long to run, for programs that
    call many kernels a few times each.
    """
    word = os.environ.get(LEVEL_VARIABLE, "").strip() or str(FULL_LEVEL)
    if word not in ("0", "1", "2", "3"):
        raise ModelError(f"{LEVEL_VARIABLE}={word!r} must be a level of LLVM's code generation: 0, 1, 2 or 3")
    return int(word)


# ----------------------------------------------------------------------------------------------------------------------
# Object code on disk, so that a kernel compiles once per machine.
#
# One file per kernel in the user's cache folder (private: mode 0700), named by the hash of what determines its
# content: expressions, type, processor and its features, versions of LLVM and of this room's code. A file is
# written whole under a temporary name and then renamed, so processes that race see a complete entry or none; a
# checksum over all of it catches truncation and change. An entry that does not check, that is a link, or that another
# user can have written, is rebuilt (`read_private`).
#
# `DALEMBERT_CACHE` names another folder, or is "off" (or "0", "no", "false").


VARIABLE = "DALEMBERT_CACHE"
OFF = ("off", "0", "no", "false")
SUFFIX = ".kernel"
STALE_SECONDS = 3600.0  # a file on its way that is older was left behind by a process that died
MAGIC = b"dalembert kernel 2\n"
PRIVATE = 0o700


@dataclass(frozen=True)
class CacheInfo:
    """State of the cache: its folder (None where it is off), number of entries, their size in bytes."""

    folder: Path | None
    entries: int
    bytes: int


def cache_folder() -> Path | None:
    """Return the folder of the cache; None where it is switched off."""
    setting = os.environ.get(VARIABLE, "")
    if setting.strip().lower() in OFF:
        return None
    if setting:
        try:
            return Path(setting).expanduser()
        except RuntimeError as error:
            raise ModelError(f"{VARIABLE}={setting!r} names no folder: {error}") from error
    return _user_folder() / "kernels"


def _user_folder() -> Path:
    """Return the user's cache folder: on Linux what platformdirs would say, without its import."""
    if sys.platform == "linux":
        return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")) / "dalembert"
    import platformdirs

    return Path(platformdirs.user_cache_dir("dalembert", appauthor=False))


def cache_info() -> CacheInfo:
    """Count the entries of the cache."""
    folder = cache_folder()
    sizes = [path.stat().st_size for path in _entries(folder)]
    return CacheInfo(folder, len(sizes), sum(sizes))


def clear_cache() -> int:
    """Remove all entries, and what dead processes left; return how many entries were removed.

    An entry that cannot be removed is warned about, and the others are removed all the same.
    """
    folder = cache_folder()
    removed = 0
    for path in _entries(folder):
        try:
            path.unlink()
            removed += 1
        except FileNotFoundError:  # another process was faster
            continue
        except OSError as error:
            warnings.warn(f"kernel cache: {path} cannot be removed: {error}", RuntimeWarning, stacklevel=2)
    _remove_stale(folder)
    return removed


@cache
def _tidy(folder: Path) -> None:
    """Remove what dead processes left, once per process."""
    _remove_stale(folder)


def _remove_stale(folder: Path | None) -> None:
    """Remove files that a process began to write and never finished."""
    if folder is None or not folder.is_dir():
        return
    for path in folder.glob("*" + PART):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                path.unlink()


def key(parts: Iterable[str]) -> str:
    """Return the name of an entry: a hash of its parts, of the versions and of this room's source."""
    digest = hashlib.sha256(source_digest())
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@cache
def source_digest() -> bytes:
    """Return a hash of versions and of the code that generates code."""
    digest = hashlib.sha256(f"dalembert {__version__}\n".encode())
    for package in ("llvmlite", "casadi"):
        digest.update(f"{package} {installed_version(package)}\n".encode())
    room = os.path.dirname(__file__)
    folders = [room, *sorted(os.path.join(room, name) for name in ("program", "llvm", "c", "cuda"))]
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith((".py", ".ll", ".cuh")):
                with open(os.path.join(folder, name), "rb") as file:
                    digest.update(file.read())
    return digest.digest()


def installed_version(package: str) -> str:
    """Return the version of a package without importing it; `importlib.metadata` costs 20 ms, so it comes second."""
    spec = find_spec(package)
    if spec is not None and spec.origin:
        site = os.path.dirname(os.path.dirname(spec.origin))
        start, end = f"{package}-", ".dist-info"
        folders = [name for name in os.listdir(site) if name.startswith(start) and name.endswith(end)]
        if len(folders) == 1:
            return folders[0].removeprefix(start).removesuffix(end)
    from importlib.metadata import version

    return version(package)


@cache
def package_stamp() -> str:
    """Return a hash of names, sizes and times of all of this package's code.

    The key of a kernel that is named, not traced: whatever part of the package changes, its expressions may.
    """
    digest = hashlib.sha256()
    pending = [os.path.dirname(os.path.dirname(__file__))]
    while pending:
        folder = pending.pop()
        for item in sorted(os.scandir(folder), key=lambda item: item.name):
            if item.is_dir():
                if item.name != "__pycache__":
                    pending.append(item.path)
            elif item.name.endswith((".py", ".ll", ".cuh")):
                state = item.stat()
                digest.update(f"{item.path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def read(name: str) -> tuple[dict[str, Any], bytes] | None:
    """Return header and object code of an entry; None where there is none that checks."""
    folder = cache_folder()
    if folder is None or not _is_private_folder(folder):
        return None
    body = read_private(folder / (name + SUFFIX), MAGIC)
    if body is None:
        return None
    length = int.from_bytes(body[:8], "little")
    return json.loads(body[8 : 8 + length]), body[8 + length :]


def write(name: str, header: dict[str, Any], code: bytes) -> None:
    """Store an entry; a cache that cannot be written is no error."""
    folder = cache_folder()
    if folder is None:
        return
    text = json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + code
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if not _is_private_folder(folder):
            return
        _tidy(folder)
        write_private(folder / (name + SUFFIX), MAGIC, body)
    except OSError as error:
        warn_once(f"kernel cache {folder} cannot be written: {error}")


def _entries(folder: Path | None) -> list[Path]:
    return sorted(folder.glob("*" + SUFFIX)) if folder is not None and folder.is_dir() else []


def _is_private_folder(folder: Path) -> bool:
    """Say whether only this user can have written here; code from anywhere else is not run."""
    if not hasattr(os, "getuid"):
        return True
    try:
        state = folder.stat()
    except OSError:
        return False
    if state.st_uid == os.getuid() and not state.st_mode & WRITABLE_BY_OTHERS:
        return True
    warn_once(f"kernel cache {folder} is not used: others can write to it; remove it, or set {VARIABLE}")
    return False


@cache
def warn_once(message: str) -> None:
    """Warn; not again in this process."""
    warnings.warn(message, RuntimeWarning, stacklevel=4)


# ----------------------------------------------------------------------------------------------------------------------
# Files with code in them, run only if nobody but their owner can have written them.
#
# A file is taken where it is a regular file without other names (no link of either kind), belongs to this user (or to
# another that is trusted by the caller), cannot be written by others, and holds the checksum of its name and content.
# Each is asked of the open file, so that what was checked is what is read. The folder may have been open to others
# once: what they left there belongs to them.


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
