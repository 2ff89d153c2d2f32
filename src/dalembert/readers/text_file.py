"""TOML and JSON as data of a given layout: what is not is refused by file, line and place, before it takes long.

Python's TOML parser is patient with keys of many parts (a.a.a ..., its work grows with their square) and with whole
numbers of many digits, which it then cannot convert. Both are looked for first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from dalembert.errors import ModelError
from dalembert.readers.files import read_file

MOST_DIGITS = 1000
"""Digits of a number; 17 determine a double, and its largest has 309 before the point."""

MOST_PARTS = 64
"""Parts of a key, a.b.c; a file here needs one."""

DIGITS = re.compile(rb"\d{%d,}" % (MOST_DIGITS + 1))
STRINGS = re.compile(
    rb'"""(?:[^\\]|\\.)*?"""' rb"|'''.*?'''" rb'|"(?:[^"\\\n]|\\.)*"' rb"|'[^'\n]*'" rb"|#[^\n]*", re.DOTALL
)
"""Texts and comments of TOML, in which a point is no part of a key."""

KEYS = re.compile(rb"[^={},\[\]\n]+")


def read_text(path: Path, layout: Any, limit: int) -> Any:
    """Return the content of a .toml or .json file as `layout`, a class of msgspec."""
    content = read_file(path, limit)
    is_toml = path.suffix.lower() == ".toml"
    if (found := DIGITS.search(content)) is not None:
        raise ModelError(f"{_place(path, content, found.start())}: a number of {len(found[0])} digits")
    if is_toml:
        _refuse_long_keys(path, content)
    decode = msgspec.toml.decode if is_toml else msgspec.json.decode
    try:
        return decode(content, type=layout)
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: no text in UTF-8 ({error})") from error
    except RecursionError as error:
        raise ModelError(f"{path}: nested too deeply") from error
    except (ValueError, OverflowError, MemoryError) as error:  # msgspec's own are ValueErrors
        raise ModelError(f"{path}: {error}") from error


def _refuse_long_keys(path: Path, content: bytes) -> None:
    """Refuse keys of many parts; texts count as one letter each."""
    bare = STRINGS.sub(lambda text: b"s" + b"\n" * text[0].count(b"\n"), content)
    for key in KEYS.finditer(bare):
        if key[0].count(b".") >= MOST_PARTS:
            raise ModelError(f"{_place(path, bare, key.start())}: a key of more than {MOST_PARTS} parts")


def _place(path: Path, content: bytes, at: int) -> str:
    return f"{path}:{content.count(bytes([10]), 0, at) + 1}"
