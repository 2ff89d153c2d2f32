"""Options read from words: values, wrong ones in one sentence, help without the words of Python."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from dalembert.checks import shown
from dalembert.errors import ModelError
from dalembert.names import near_matches

KINDS = {float: ("NUMBER", "a number"), int: ("INTEGER", "an integer"), str: ("WORD", "a word"),
         Path: ("FILE", "a file")}  # fmt: skip
"""Types of values: how help and messages call them."""

MOST_DIGITS = 18
"""Of an integer: what any count or seed fits into."""

NOTHING = re.compile(r"\s*\(default:\s*(None|False)?\)")
"""What help says of an option that is off by default."""

RULE = re.compile(r"^\s*-{4,}\s*$", re.MULTILINE)
"""A line between a title and its text: tyro draws no frames where it does not write to a terminal."""


def parsed(command: Any, prog: str, words: Sequence[str]) -> Any:
    """Return a command with its options, made by tyro; a wrong option raises `ModelError`, help ends the process."""
    printed, complaints = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stderr(complaints), contextlib.redirect_stdout(printed):
            return tyro.cli(
                command, prog=prog, args=list(words), config=(tyro.conf.FlagCreatePairsOff,), registry=value_rules()
            )
    except SystemExit as end:
        if end.code:
            raise ModelError(complaint(complaints.getvalue(), command, words) + f" ({prog} --help has all)") from None
        print(tidy(printed.getvalue()), end="")
        raise


def value_rules() -> ConstructorRegistry:
    """Return how values are read: an option that may be left out shows what it takes, and nothing of `None`."""
    rules = ConstructorRegistry()

    @rules.primitive_rule
    def value(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
        parts = [part for part in get_args(info.type) or (info.type,) if part is not NoneType]
        if len(parts) != 1 or parts[0] not in KINDS or (get_args(info.type) and NoneType not in get_args(info.type)):
            return None
        kind = parts[0]
        name, noun = KINDS[kind]

        def read(words: list[str]) -> Any:
            if kind is int and len(words[0]) > MOST_DIGITS:
                raise ValueError(f"{shown(words[0])} has more than {MOST_DIGITS} digits")
            try:
                return kind(words[0])
            except ValueError:
                raise ValueError(f"{shown(words[0])} is not {noun}") from None

        return PrimitiveConstructorSpec(
            1, name, read, lambda x: x is None or isinstance(x, kind | int if kind is float else kind),
            lambda x: [str(x)],
        )  # fmt: skip

    return rules


def complaint(text: str, command: Any, words: Sequence[str]) -> str:
    """Return what tyro says of wrong options as one sentence."""
    flat = " ".join(RULE.split(text, maxsplit=1)[-1].split())
    options = option_names(command)
    if match := re.match(r"Unrecognized options: (\S+?)(,|\s|$)", flat):
        argument = match[1].partition("=")[0]
        if not argument.startswith("-"):
            return f"{argument!r} is one word too many"
        return no_such_option(argument, options)
    if match := re.match(r"Error parsing (\S+): (.*?) -{4,}", flat):
        return f"{match[1]}: {match[2]}"
    if match := re.match(r"[Ii]nvalid choice '(.*?)' for argument '(.*?)'\. Expected one of \((.*?),?\)", flat):
        choices = match[3].replace("'", "").split(", ")
        near = near_matches(match[1], choices)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        option = f"{match[2]} " if match[2].startswith("-") else ""
        return f"{option}{match[1]}: there is {', '.join(choices)}{hint}"
    if match := re.match(r"Missing value for argument '(\S+?)'", flat):
        unknown = [argument.partition("=")[0] for argument in words if argument.startswith("--")]
        unknown = [argument for argument in unknown if argument not in (*options, "--help")]
        if unknown and not match[1].startswith("-"):  # nothing was taken for FILE because of it, or nothing was there
            return no_such_option(unknown[0], options)
        return f"{match[1]} needs a value" if match[1].startswith("-") else f"{match[1].upper()} is missing"
    if match := re.match(r"Missing from [\w ]+: (\S+) (.*?) \(required\)", flat):
        meaning = re.sub(r"^(?:(?:[A-Z]{3,},?|--?[\w-]+,?) +)+", "", match[2])  # without FILE, and other spellings
        return f"{match[1].partition('/')[0].rstrip(',')} is missing: {meaning}"
    return re.split(r" -{4,}", flat)[0]


def no_such_option(word: str, known: Sequence[str]) -> str:
    """Return in words that there is no such option, with those that resemble it, or all."""
    near = near_matches(word, known)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return f"there is no option {word}; {hint}"


def option_names(command: Any) -> list[str]:
    """Return the options of a command, as they are typed."""
    return [f"--{field.name.replace('_', '-')}" for field in fields(command) if "Positional" not in str(field.type)]


def tidy(text: str) -> str:
    """Return help without what says nothing: defaults of options that are off, and empty lines between examples."""
    lines = [line.rstrip() for line in NOTHING.sub("", text).splitlines()]
    return re.sub(r"\n\n+(?=    \S)", "\n", "\n".join(lines)).replace("For example:\n", "For example:\n\n") + "\n"


@contextlib.contextmanager
def blamed_on(options: Mapping[str, str]) -> Iterator[None]:
    """Let a complaint name the option that gave a value, in place of a line of the scene; `options`: what was typed."""
    try:
        yield
    except ModelError as error:
        typed = options.get(error.subject) if isinstance(error.subject, str) else None
        if typed is None:
            raise
        raise ModelError(error.message, typed, error.near, error.subject) from error
