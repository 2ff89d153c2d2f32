"""Files of a layout: what does not fit is refused by its line, with the keys that a person may have meant.

msgspec says where in the data something is wrong, as in `$.body[1].mass`. A table of lines, made from the text of a
TOML file, says where that is for a person: `[[body]]` number 2 begins at line 14, its `mass` stands at line 16.
"""

from __future__ import annotations

import re
import types
from typing import Any, Union, get_args, get_origin

import msgspec

from dalembert.names import LISTED, near_matches

Path = tuple[str | int, ...]
"""Keys and indices from the top of a file to a value."""

TEXTS = re.compile(r'"""(?:[^\\]|\\.)*?"""' r"|'''.*?'''" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'" r"|#[^\n]*", re.DOTALL)
HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*$")
KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*'))*)\s*=")
PART = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'|([\w-]+)")
STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")

# ----------------------------------------------------------------------------------------------------------------------
# Where keys stand in the text of a TOML file.


class TomlLines:
    """The line of every table and key of a TOML text; of what is inside an inline table, that of the whole."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {(): 1}
        counts: dict[Path, int] = {}
        table: Path = ()
        depth = 0
        bare = TEXTS.sub(_emptied, text)
        for number, (line, plain) in enumerate(zip(text.split("\n"), bare.split("\n"), strict=True), 1):
            header = HEADER.match(plain) if depth == 0 else None
            if header is not None:
                table = self._table(_parts(_header_words(line)), header[1] == "[[", counts)
                self.lines.setdefault(table, number)
                self.lines.setdefault(tuple(step for step in table if isinstance(step, str)), number)
                for k in range(1, len(table)):  # [sweep.measure] is the first line of [sweep], too
                    self.lines.setdefault(table[:k], number)
                continue
            key = KEY.match(line) if depth == 0 else None
            if key is not None:
                path = table
                for part in _parts(key[1]):
                    path = (*path, part)
                    self.lines.setdefault(path, number)
            depth += sum(plain.count(c) for c in "[{") - sum(plain.count(c) for c in "]}")

    @staticmethod
    def _table(words: list[str], several: bool, counts: dict[Path, int]) -> Path:
        """Return the path that a header stands for; the last of several tables is meant by its name."""
        path: Path = ()
        for k, part in enumerate(words):
            path = (*path, part)
            if several and k == len(words) - 1:
                counts[path] = counts.get(path, -1) + 1
            if path in counts:
                path = (*path, counts[path])
        return path

    def of(self, path: Path) -> int:
        """Return the line of a value, or of what holds it."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def table_at(self, line: int | None) -> Path:
        """Return the innermost table or key that begins at a line; () where none does."""
        return max((path for path, number in self.lines.items() if number == line), key=len, default=())


def key_of(table: Any, subject: Any) -> Path:
    """Return the keys from a table to what a complaint is about: a key that it names, or a value that it quotes.

    A subject such as "the axis of joint 'hip'" names a key before "of"; () where the table has nothing of the kind.
    """
    if subject is None:
        return ()
    inside = dict(entries(table))
    if isinstance(subject, str):
        words = set(re.findall(r"\w+", re.split(r"\bof\b", subject)[0]))
        named = next((key for key, value in inside.items() if key in words and value is not None), None)
        if named is not None:
            return (named,)
    for key, value in inside.items():
        if value == subject and type(value) is type(subject):
            return (key,)
        if deeper := key_of(value, subject):
            return (key, *deeper)
    return ()


def entries(table: Any) -> list[tuple[str | int, Any]]:
    """Return the keys of a table, or the places in a list, with their values."""
    if isinstance(table, msgspec.Struct):
        return [(field.encode_name, getattr(table, field.name)) for field in msgspec.structs.fields(table)]
    if isinstance(table, dict):
        return list(table.items())
    return list(enumerate(table)) if isinstance(table, list | tuple) else []


def _emptied(text: re.Match[str]) -> str:
    """Return a text without its letters, its line breaks kept."""
    return "" if text[0].startswith("#") else "''" + "\n" * text[0].count("\n")


def _header_words(line: str) -> str:
    return line.split("#")[0].strip().strip("[]") if '"' not in line and "'" not in line else line.strip().strip("[]")


def _parts(key: str) -> list[str]:
    return [a or b or c for a, b, c in PART.findall(key)]


# ----------------------------------------------------------------------------------------------------------------------
# Complaints of msgspec in the words of a person who writes a file.


WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list [...]",
    "object": "a table { ... }",
    "null": "nothing",
}
"""msgspec's types as words."""


def explained(error: msgspec.ValidationError, layout: Any, text: str | None) -> tuple[int | None, str, tuple[str, ...]]:
    """Return line (of TOML), complaint in words, and near matches."""
    message, _, place = str(error).partition(" - at `$")
    path = tuple(int(index) if index.isdigit() else key or 0 for key, index in STEP.findall(place.rstrip("`")))
    line = TomlLines(text).of(path) if text is not None else None
    where = _named(layout, path)
    if (unknown := re.search(r"unknown field `(.*)`", message)) is not None:
        keys = _keys(layout, path)
        near = near_matches(unknown[1], keys)
        rest = "" if near else f"; there {'are' if len(keys) > 1 else 'is'} {', '.join(sorted(keys)[:LISTED])}"
        if text is not None:
            line = TomlLines(text).of((*path, unknown[1]))
        return line, f"{where} has no key {unknown[1]!r}{rest}", near
    if (missing := re.search(r"missing required field `(.*)`", message)) is not None:
        return line, f"{where} needs the key {missing[1]!r}", ()
    if (kinds := re.fullmatch(r"Expected `(.*)`, got `(.*)`", message)) is not None:
        expected = " or ".join(dict.fromkeys(WORDS.get(kind.strip(), kind.strip()) for kind in kinds[1].split("|")))
        expected = expected.replace("a number or a text", "a number, or an expression in quotes")
        return line, f"{where} must be {expected}, not {WORDS.get(kinds[2], kinds[2])}", ()
    if (value := re.fullmatch(r"Invalid enum value '?(.*?)'?", message)) is not None:
        words = [str(choice) for choice in _choices(_type_at(layout, path))]
        near = near_matches(value[1], words)
        return line, f"{where} is {value[1]!r}, not one of {', '.join(map(repr, words))}", near
    return line, f"{where}: {message}", ()


def _named(layout: Any, path: Path) -> str:
    """Return a place in words: "the file", "[[body]] 2", "'mass' of [[body]] 2"."""
    if not path:
        return "the file"
    last, owner = path[-1], path[:-1]
    if isinstance(last, int):
        table = len(owner) == 1 and _structs(_type_at(layout, path))
        return f"[[{owner[0]}]] {last + 1}" if table else f"entry {last + 1} of {_named(layout, owner)}"
    return f"{last!r} of {_named(layout, owner)}" if owner else f"{last!r}"


def _bare(kind: Any) -> list[Any]:
    """Return the alternatives of a type."""
    if get_origin(kind) in (Union, types.UnionType):
        return [inner for part in get_args(kind) for inner in _bare(part)]
    return [kind]


def _type_at(layout: Any, path: Path) -> Any:
    """Return the type that a layout has at a place."""
    kind = layout
    for step in path:
        for inner in _bare(kind):
            if isinstance(step, int) and get_origin(inner) in (list, tuple):
                kind = get_args(inner)[0]
            elif isinstance(step, str) and get_origin(inner) is dict:
                kind = get_args(inner)[1]
            elif isinstance(step, str) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                kind = {field.encode_name: field.type for field in msgspec.structs.fields(inner)}.get(step, Any)
            else:
                continue
            break
    return kind


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    return [inner for inner in _bare(kind) if isinstance(inner, type) and issubclass(inner, msgspec.Struct)]


def _keys(layout: Any, path: Path) -> list[str]:
    structs = _structs(_type_at(layout, path))
    return [field.encode_name for struct in structs for field in msgspec.structs.fields(struct)]


def _choices(kind: Any) -> list[Any]:
    return [choice for inner in _bare(kind) for choice in get_args(inner)]
