"""Equations written as text, read without evaluating anything as code.

    x' + 2*(y - sin(t))^2 = u[1] / 3        "a = b" means a - b = 0; without "=" the text is zero

Numbers, names, + - * / ^ (or **), parentheses and the functions below. A prime is a time derivative; der(x) is x'.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import casadi as ca

from dalembert.errors import ModelError

FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "abs": (1, ca.fabs),
    "acos": (1, ca.acos),
    "asin": (1, ca.asin),
    "atan": (1, ca.atan),
    "atan2": (2, ca.atan2),
    "cos": (1, ca.cos),
    "cosh": (1, ca.cosh),
    "exp": (1, ca.exp),
    "log": (1, ca.log),
    "max": (2, ca.fmax),
    "min": (2, ca.fmin),
    "sin": (1, ca.sin),
    "sinh": (1, ca.sinh),
    "sqrt": (1, ca.sqrt),
    "tan": (1, ca.tan),
    "tanh": (1, ca.tanh),
}
"""Every function with its number of arguments."""

DEEPEST = 60
"""Nesting of parentheses and signs above which a text is refused."""

LONGEST = 20_000
"""Characters of one equation."""

SHOWN = 80
"""Characters of an equation that a message repeats."""

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*(?:\[\d+\])?'*)|(?P<sign>\*\*|[-+*/^(),=]))"
)


def is_name(word: str) -> bool:
    """Whether a variable may be called so: a name of the grammar without primes, and no function."""
    token = TOKEN.fullmatch(word)
    plain = token is not None and token.lastgroup == "name" and word == word.strip()
    return plain and not word.endswith("'") and word not in FUNCTIONS and word != "der"


def parse_equation(text: str, lookup: Callable[[str], ca.SX]) -> ca.SX:
    """Return an expression that is zero where the equation holds; `lookup` gives the symbol of a name."""
    if len(text) > LONGEST:
        raise ModelError(f"an equation of {len(text)} characters is above the limit of {LONGEST}")
    parser = _Parser(_tokens(text), lookup, text)
    left = parser.sum(0)
    if parser.peek() == "=":
        parser.take()
        left = left - parser.sum(0)
    if parser.peek() is not None:
        parser.fail(f"unexpected {parser.peek()!r}")
    return left


def shortened(text: str) -> str:
    """Return a text in quotes, the end of a long one left out."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]} ...")


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return (kind, text) of every token."""
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise ModelError(f"{shortened(text)}: {text[at : at + 10].strip()!r} is no number, name or operator")
        found.append((str(token.lastgroup), token[str(token.lastgroup)]))
        at = token.end()
    return found


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[tuple[str, str]], lookup: Callable[[str], ca.SX], text: str) -> None:
        self.tokens, self.lookup, self.text, self.at = tokens, lookup, text, 0

    def peek(self) -> str | None:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else None

    def take(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            self.fail("it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def fail(self, what: str) -> None:
        raise ModelError(f"{shortened(self.text)}: {what}")

    def sum(self, depth: int) -> ca.SX:
        """Read terms joined by + and -."""
        value = self.product(depth)
        while self.peek() in ("+", "-"):
            sign = self.take()[1]
            other = self.product(depth)
            value = value + other if sign == "+" else value - other
        return value

    def product(self, depth: int) -> ca.SX:
        """Read factors joined by * and /."""
        value = self.signed(depth)
        while self.peek() in ("*", "/"):
            sign = self.take()[1]
            other = self.signed(depth)
            value = value * other if sign == "*" else value / other
        return value

    def signed(self, depth: int) -> ca.SX:
        """Read a power with signs before it; -x^2 is -(x^2)."""
        if depth > DEEPEST:
            self.fail(f"nested deeper than {DEEPEST}")
        if self.peek() in ("+", "-"):
            sign = self.take()[1]
            value = self.signed(depth + 1)
            return value if sign == "+" else -value
        base = self.atom(depth)
        if self.peek() in ("^", "**"):
            self.take()
            return base ** self.signed(depth + 1)
        return base

    def atom(self, depth: int) -> ca.SX:
        """Read a number, a name, a call or a parenthesis."""
        kind, word = self.take()
        if kind == "number":
            value = float(word)
            if not math.isfinite(value):
                self.fail(f"the number {word[:20]}... is beyond any machine")
            return ca.SX(value)
        if word == "(":
            value = self.sum(depth + 1)
            self.expect(")")
            return value
        if kind != "name":
            self.fail(f"unexpected {word!r}")
        if self.peek() == "(":
            return self.call(word, depth)
        return self.lookup(word)

    def call(self, name: str, depth: int) -> ca.SX:
        """Read the arguments of a function, or the variable of der(...)."""
        self.take()
        if name == "der":
            word = self.take()[1]
            self.expect(")")
            return self.lookup(f"{word}'")
        if name not in FUNCTIONS:
            self.fail(f"no function is called {name!r}; there are der, {', '.join(FUNCTIONS)}")
        count, function = FUNCTIONS[name]
        arguments = [self.sum(depth + 1)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.sum(depth + 1))
        self.expect(")")
        if len(arguments) != count:
            self.fail(f"{name} takes {count} argument(s), not {len(arguments)}")
        return function(*arguments)

    def expect(self, word: str) -> None:
        if self.peek() != word:
            self.fail(f"expected {word!r}, found {self.peek()!r}")
        self.at += 1
