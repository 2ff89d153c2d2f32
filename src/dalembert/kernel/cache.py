"""Object code on disk, so that a kernel compiles once per machine.

One file per kernel in the user's cache folder (private: mode 0700), named by the hash of what determines its
content: expressions, type, processor and its features, versions of LLVM and of this room's code. A file is
written whole under a temporary name and then renamed, so processes that race see a complete entry or none; a
checksum over all of it catches truncation and change. An entry that does not check is rebuilt.

`DALEMBERT_CACHE` names another folder, or is "off".
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

VARIABLE = "DALEMBERT_CACHE"
SUFFIX = ".kernel"
MAGIC = b"dalembert kernel 1\n"
DIGEST_BYTES = 32
PRIVATE = 0o700
WRITABLE_BY_OTHERS = 0o022


@dataclass(frozen=True)
class CacheInfo:
    """State of the cache: its folder (None where it is off), number of entries, their size in bytes."""

    folder: Path | None
    entries: int
    bytes: int


def cache_folder() -> Path | None:
    """Return the folder of the cache; None where it is switched off."""
    setting = os.environ.get(VARIABLE, "")
    if setting.lower() == "off":
        return None
    if setting:
        return Path(setting).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("dalembert", appauthor=False)) / "kernels"


def cache_info() -> CacheInfo:
    """Count the entries of the cache."""
    folder = cache_folder()
    sizes = [path.stat().st_size for path in _entries(folder)]
    return CacheInfo(folder, len(sizes), sum(sizes))


def clear_cache() -> int:
    """Remove all entries; return how many there were."""
    removed = 0
    for path in _entries(cache_folder()):
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            path.unlink()
            removed += 1
    return removed


def function_key(function: Any, parts: Iterable[str]) -> str | None:
    """Return the name of a CasADi function's entry; None where the cache is off or the function is no text."""
    if cache_folder() is None:
        return None
    try:
        text = function.serialize()
    except RuntimeError:
        return None
    return key([text, *parts])


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
    from importlib.metadata import version

    digest = hashlib.sha256()
    for package in ("dalembert", "llvmlite", "casadi"):
        digest.update(f"{package} {version(package)}\n".encode())
    for path in sorted(Path(__file__).parent.iterdir()):
        if path.suffix in (".py", ".ll"):
            digest.update(path.read_bytes())
    return digest.digest()


def read(name: str) -> tuple[dict[str, Any], bytes] | None:
    """Return header and object code of an entry; None where there is none that checks."""
    folder = cache_folder()
    if folder is None or not _is_private(folder):
        return None
    try:
        data = (folder / (name + SUFFIX)).read_bytes()
    except OSError:
        return None
    body = data[len(MAGIC) + DIGEST_BYTES :]
    checksum = data[len(MAGIC) : len(MAGIC) + DIGEST_BYTES]
    if not data.startswith(MAGIC) or hashlib.sha256(name.encode() + body).digest() != checksum:
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
        if not _is_private(folder):
            return
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(name.encode() + body).digest() + body)
            os.replace(temporary, folder / (name + SUFFIX))
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as error:
        warnings.warn(f"kernel cache {folder} cannot be written: {error}", RuntimeWarning, stacklevel=2)


def _entries(folder: Path | None) -> list[Path]:
    return sorted(folder.glob("*" + SUFFIX)) if folder is not None and folder.is_dir() else []


def _is_private(folder: Path) -> bool:
    """Say whether only this user can have written here; code from anywhere else is not run."""
    if not hasattr(os, "getuid"):
        return True
    try:
        state = folder.stat()
    except OSError:
        return False
    if state.st_uid == os.getuid() and not state.st_mode & WRITABLE_BY_OTHERS:
        return True
    warnings.warn(
        f"kernel cache {folder} is not used: others can write to it; chmod 700 it, or set {VARIABLE}",
        RuntimeWarning,
        stacklevel=3,
    )
    return False
