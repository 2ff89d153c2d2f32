"""Names checked and looked up; an unknown one is answered with those that resemble it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from dalembert.errors import ModelError

Thing = TypeVar("Thing")

LISTED = 30
"""At most so many names are listed."""

COMPARED = 5000
"""At most so many names are compared with a wrong one: a message must not take seconds in a huge model."""


def near_matches(name: Any, names: Collection[str]) -> tuple[str, ...]:
    """Return up to three of `names` that resemble `name`, or hold it or a word of it; case does not count."""
    folded = {candidate.casefold(): candidate for candidate in list(names)[:COMPARED]}
    text = str(name).casefold()
    close = get_close_matches(text, folded, n=3)
    if not close and len(text) > 2:
        close = [entry for entry in folded if text in entry or entry in text.split("_")][:3]
    return tuple(folded[match] for match in close)


def checked_name(name: Any, what: str, source: Any = None) -> str:
    """Return a name that is a word which a message and a file can hold, or refuse it."""
    if not isinstance(name, str) or not name.strip():
        raise ModelError(f"the name of {_article(what)} must be a word, not {name!r}", source, subject="name")
    if not name.isprintable():
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
            words = "has a line break or another control character"
            raise ModelError(f"the name of {_article(what)} {words}: {name!r}", source, subject="name")
        if any(0xD800 <= ord(letter) <= 0xDFFF for letter in name):
            words = "has half a letter, which no file takes"
            raise ModelError(f"the name of {_article(what)} {words}: {name!r}", source, subject="name")
    return name


def _article(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def lookup(name: Any, table: Mapping[str, Thing], what: str, source: Any = None) -> Thing:
    """Return table[name]; `what` says what the table holds, as in "body"."""
    if isinstance(name, str) and name in table:
        return table[name]
    near = near_matches(name, table)
    hint = "" if near else f"; there is {_listed(table)}"
    raise ModelError(f"there is no {what} {name!r}{hint}", source, near, subject=name)


def _listed(table: Mapping[str, Any]) -> str:
    """Return the first names of a table, for a message."""
    names = [repr(name) for name in list(table)[:LISTED]]
    more = f" and {len(table) - LISTED} more" if len(table) > LISTED else ""
    return ", ".join(names) + more if names else "none at all"
