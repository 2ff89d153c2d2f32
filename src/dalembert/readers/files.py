"""Access to files: which a model may open, how much of them, and their text."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from dalembert.errors import ModelError
from dalembert.readers.file_keys import explained

# ----------------------------------------------------------------------------------------------------------------------
# Files that a model may open, and limits of their size.
#
# A model may name files: parts to include, meshes. Only what lies in the model's own folder or in a declared package is
# opened, after links and ".." are resolved; everything else is not even looked for.


LARGEST = 64 * 2**20
"""Bytes: larger files are refused before they are read. 10^5 links with inertias take 45 MB."""

LONGEST = 4096
"""Characters of a path."""

MESHES = (".stl", ".obj", ".dae")
"""Endings of the meshes that can be drawn."""

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

    def find_mesh(self, reference: str, near: Path | None = None) -> Path | None:
        """Return the file of a mesh, or None.

        As `find`; besides, a package that was not declared is the nearest folder of its name around the model, as where
        a robot lies in its package. So only meshes are found, which drawing alone opens.
        """
        path = self.find(reference, near)
        scheme, separator, rest = unquote(reference.strip()).partition("://")
        if path is not None or not separator or scheme not in ("package", "model") or "\0" in rest:
            return path
        name, _, inside = rest.lstrip("/").partition("/")  # package:///name/... is in use, too
        folder = next((parent for parent in (self.home, *self.home.parents) if name and parent.name == name), None)
        if folder is None or Path(inside).suffix.lower() not in MESHES:
            return None
        return Folders(folder, {}, ()).allowed(folder / inside)

    def tried(self, reference: str) -> list[str]:
        """Return the places at which a reference is looked for."""
        scheme, separator, rest = unquote(reference.strip()).partition("://")
        if not separator or scheme == "file":
            path = Path(rest if separator else reference)
            return [str(path if path.is_absolute() else self.home / path)]
        name, _, inside = rest.lstrip("/").partition("/")
        folders = [self.packages[name]] if name in self.packages else [root / name for root in self.roots]
        folders += [parent for parent in (self.home, *self.home.parents) if name and parent.name == name][:1]
        return [str(folder / inside) for folder in folders] or [f"no package {name!r} is declared"]

    def _in_package(self, name: str, inside: str) -> Path | None:
        if not name or name in (".", ".."):
            return None
        if name in self.packages:
            return self.allowed(self.packages[name] / inside)
        places = (self.allowed(root / name / inside) for root in self.roots)
        return next((path for path in places if path is not None), None)

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


def _folder(path: str | Path) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ModelError(f"packages: {path!r} is no path of a folder")
    folder = Path(path).resolve()
    if not folder.is_dir():
        raise ModelError(f"packages: {path} is not a folder")
    return folder


# ----------------------------------------------------------------------------------------------------------------------
# TOML and JSON as data of a given layout: what is not is refused by file, line and place, before it takes long.
#
# Python's TOML parser is patient with keys of many parts (a.a.a ..., its work grows with their square) and with whole
# numbers of many digits, which it then cannot convert. Both are looked for first.


MOST_DIGITS = 1000
"""Digits of a number; 17 determine a double, and its largest has 309 before the point."""

MOST_PARTS = 64
"""Parts of a key, a.b.c; a file here needs one."""

DIGITS = re.compile(rb"\d{%d,}" % (MOST_DIGITS + 1))
DECIMAL_COMMA = re.compile(r"=\s*[-+]?\d+,\d+\s*$")
"""A number as it is written where the comma parts whole and fraction."""

STRINGS = re.compile(
    rb'"""(?:[^\\]|\\.)*?"""' rb"|'''.*?'''" rb'|"(?:[^"\\\n]|\\.)*"' rb"|'[^'\n]*'" rb"|#[^\n]*", re.DOTALL
)
"""Texts and comments of TOML, in which a point is no part of a key."""

KEYS = re.compile(rb"[^={},\[\]\n]+")


def read_text(path: Path, layout: Any, limit: int) -> Any:
    """Return the content of a .toml or .json file as `layout`, a class of msgspec."""
    content = read_file(path, limit)
    is_toml = path.suffix.lower() == ".toml"
    if (digits := DIGITS.search(content)) is not None:
        raise ModelError(f"{_place(path, content, digits.start())}: a number of {len(digits[0])} digits")
    if is_toml:
        _refuse_long_keys(path, content)
    decode = msgspec.toml.decode if is_toml else msgspec.json.decode
    try:
        return decode(content, type=layout)
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: no text in UTF-8 ({error})") from error
    except RecursionError as error:
        raise ModelError(f"{path}: nested too deeply") from error
    except msgspec.ValidationError as error:
        line, words, near = explained(error, layout, content.decode() if is_toml else None)
        raise ModelError(words, path if line is None else f"{path}:{line}", near) from error
    except (ValueError, OverflowError, MemoryError) as error:  # msgspec's own are ValueErrors
        raise ModelError(*_of_syntax(path, content, str(error))) from error


def _of_syntax(path: Path, content: bytes, words: str) -> tuple[str, str | Path]:
    """Return the complaint about the syntax of a file, with its line in front, and what one may have meant."""
    match = re.search(r" \(at line (\d+), column \d+\)$", words)
    if match is None:
        return words, path
    number = int(match[1])
    line = (
        content.decode(errors="replace").splitlines()[number - 1].strip() if number <= content.count(b"\n") + 1 else ""
    )
    words = words[: match.start()]
    if twice := re.match(r"Cannot (?:declare|overwrite) \('?(.*?)'?,?\) twice", words):
        words = f"[{twice[1]}] is there already; a table stands in one place"
    elif words.startswith("Cannot overwrite"):
        words = f"{line!r}: this key has a value already"
    elif DECIMAL_COMMA.search(line):
        words += f"; {line!r}: numbers are written with a point"
    elif line:
        words += f"; {line!r}: a line is name = value, texts in quotes, or a [table]"
    return words, f"{path}:{number}"


def _refuse_long_keys(path: Path, content: bytes) -> None:
    """Refuse keys of many parts; texts count as one letter each."""
    bare = STRINGS.sub(lambda text: b"s" + b"\n" * text[0].count(b"\n"), content)
    for key in KEYS.finditer(bare):
        if key[0].count(b".") >= MOST_PARTS:
            raise ModelError(f"{_place(path, bare, key.start())}: a key of more than {MOST_PARTS} parts")


def _place(path: Path, content: bytes, at: int) -> str:
    return f"{path}:{content.count(bytes([10]), 0, at) + 1}"
