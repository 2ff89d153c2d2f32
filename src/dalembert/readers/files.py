"""Which files a model may open, and how much of them.

A model may name files: parts to include, meshes. Only what lies in the model's own folder or in a declared package is
opened, after links and ".." are resolved; everything else is not even looked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from dalembert.errors import ModelError

LARGEST = 64 * 2**20
"""Bytes: larger files are refused before they are read. 10^5 links with inertias take 45 MB."""

LONGEST = 4096
"""Characters of a path."""

Packages = Mapping[str, str | Path] | Iterable[str | Path] | str | Path | None


def read_file(path: str | Path, limit: int | None = None) -> bytes:
    """Return a regular file's content; folders, devices, pipes and files above the limit are refused."""
    limit = LARGEST if limit is None else limit
    try:
        with open(path, "rb", opener=_without_waiting) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{path}: not a file")
            if status.st_size > limit:
                raise ModelError(
                    f"{path}: {status.st_size / 2**20:.0f} MiB is above the limit of {limit / 2**20:g} MiB"
                )
            content = stream.read(status.st_size + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelError(f"{path}: cannot be read ({reason})") from error
    if len(content) > limit:
        raise ModelError(f"{path}: above the limit of {limit / 2**20:g} MiB")
    return content


def _without_waiting(path: str, flags: int) -> int:
    """Open without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@dataclass(frozen=True)
class Folders:
    """The folders that a model may read: its own, and packages by name.

    Attributes
    ----------
    home
        Folder of the model, links resolved.
    packages
        Name -> folder, for "package://name/..." and "model://name/...".
    roots
        Folders that hold packages as subfolders.
    """

    home: Path
    packages: Mapping[str, Path]
    roots: tuple[Path, ...]

    @classmethod
    def of(cls, model: str | Path, packages: Packages = None) -> Folders:
        """Return the folders for a model's file; `packages` is {name: folder}, or folders that hold packages."""
        if isinstance(packages, Mapping):
            named = {str(name): _folder(folder) for name, folder in packages.items()}
            return cls(Path(model).resolve().parent, named, ())
        several = [packages] if isinstance(packages, str | os.PathLike) else packages or ()
        if not isinstance(several, Iterable):
            raise ModelError(f"packages is {{name: folder}}, a folder or several, not {packages!r}")
        return cls(Path(model).resolve().parent, {}, tuple(_folder(folder) for folder in several))

    def find(self, reference: str, near: Path | None = None) -> Path | None:
        """Return the file that a model refers to, or None where it does not exist or may not be read.

        `near` is the folder of the file that holds the reference, for relative paths; the model's own by default.
        """
        reference = unquote(reference.strip())
        if not reference or "\0" in reference or len(reference) > LONGEST:
            return None
        scheme, separator, rest = reference.partition("://")
        if separator and scheme not in ("package", "model", "file"):
            return None
        if separator and scheme != "file":
            name, _, inside = rest.partition("/")
            return self._in_package(name, inside)
        candidate = Path(rest if separator else reference)
        return self.allowed(candidate if candidate.is_absolute() else (near or self.home) / candidate)

    def _in_package(self, name: str, inside: str) -> Path | None:
        if not name or name in (".", ".."):
            return None
        if name in self.packages:
            return self.allowed(self.packages[name] / inside)
        found = (self.allowed(root / name / inside) for root in self.roots)
        return next((path for path in found if path is not None), None)

    def allowed(self, path: Path) -> Path | None:
        """Return the path, resolved, if it exists inside a folder that may be read."""
        lexical = Path(os.path.normpath(path))
        if not self._inside(lexical):
            return None
        try:
            resolved = lexical.resolve()
            return resolved if self._inside(resolved) and resolved.exists() else None
        except (OSError, RuntimeError, ValueError):
            return None

    def _inside(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in (self.home, *self.packages.values(), *self.roots))


def _folder(given: str | Path) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise ModelError(f"packages: {given!r} is no path of a folder")
    folder = Path(given).resolve()
    if not folder.is_dir():
        raise ModelError(f"packages: {given} is not a folder")
    return folder
