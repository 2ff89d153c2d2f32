"""Equation files: named equations as text, read and checked, to a tableau."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import msgspec
import scipy.io
import scipy.sparse as sp

from dalembert.errors import ModelError, UnsupportedError
from dalembert.names import near_matches
from dalembert.readers.files import read_text
from dalembert.readers.xml_tree import shortened

# ----------------------------------------------------------------------------------------------------------------------
# Equations written as text, read without evaluating anything as code.
#
#     x' + 2*(y - sin(t))^2 = u[1] / 3        "a = b" means a - b = 0; without "=" the text is zero
#
# Numbers, names, + - * / ^ (or **), parentheses and the functions below. A prime is a time derivative; der(x) is x'.


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

LONGEST_EQUATION = 20_000
"""Characters of one equation."""

SHOWN = 80
"""Characters of an equation that a message repeats."""

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d]\w*(?:\[\d+\])?(?:\.v\b|'*))|(?P<sign>\*\*|[-+*/^(),=]))"
)


def is_name(word: str) -> bool:
    """Whether a variable may be called so: a name of the grammar without primes, and no function."""
    token = TOKEN.fullmatch(word)
    plain = token is not None and token.lastgroup == "name" and word == word.strip()
    return plain and not word.endswith("'") and word not in FUNCTIONS and word != "der"


def parse_equation(text: str, lookup: Callable[[str], ca.SX]) -> ca.SX:
    """Return an expression that is zero where the equation holds; `lookup` gives the symbol of a name."""
    if len(text) > LONGEST_EQUATION:
        raise ModelError(f"an equation of {len(text)} characters is above the limit of {LONGEST_EQUATION}")
    parser = _Parser(_tokens(text), lookup, text)
    left = parser.sum(0)
    if parser.peek() == "=":
        parser.take()
        left = left - parser.sum(0)
    if parser.peek() is not None:
        parser.fail(f"unexpected {parser.peek()!r}")
    return left


def quoted(text: str) -> str:
    """Return a text in quotes, the end of a long one left out."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]} ...")


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return (kind, text) of every token."""
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None:
            raise ModelError(f"{quoted(text)}: {text[at : at + 10].strip()!r} is no number, name or operator")
        tokens.append((str(token.lastgroup), token[str(token.lastgroup)]))
        at = token.end()
    return tokens


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
        raise ModelError(f"{quoted(self.text)}: {what}")

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
        kind, token = self.take()
        if kind == "number":
            value = float(token)
            if not math.isfinite(value):
                self.fail(f"the number {token[:20]}... is beyond any machine")
            return ca.SX(value)
        if token == "(":
            value = self.sum(depth + 1)
            self.expect(")")
            return value
        if kind != "name":
            self.fail("it ends too early" if token is None else f"unexpected {token!r}")
        if self.peek() == "(":
            return self.call(token, depth)
        return self.lookup(token)

    def call(self, name: str, depth: int) -> ca.SX:
        """Read the arguments of a function, or the variable of der(...)."""
        self.take()
        if name == "der":
            variable = self.take()[1]
            self.expect(")")
            return self.lookup(f"{variable}'")
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
            self.fail(f"expected {word!r}, found {'the end' if self.peek() is None else repr(self.peek())}")
        self.at += 1


# ----------------------------------------------------------------------------------------------------------------------
# Reader of named equations from a file that a person wrote (TOML), or a bare pattern (MatrixMarket).
#
# unknowns = ["x", "y", "lam"]
# known = ["u"]                              # optional
# time = "t"                                 # optional
# parameters = { g = 9.81, length = 1.0 }    # optional
#
# [[equation]]
# name = "rod"
# text = "x^2 + y^2 = length^2"
# output = "y"                               # optional: the unknown that it determines


LARGEST = 16 * 2**20
"""Files above 16 MiB are refused before they are read."""

LARGEST_PATTERN = 1_000_000
"""Patterns with more rows or columns are refused: a short file may claim any size."""


LONGEST = 2000
"""Characters of a message."""

LAYOUT = (
    'A file has unknowns = ["x", ...] and [[equation]] tables with text = "..." (and name, output); '
    "it may have known, time and parameters"
)
"""What a file looks like, for those who wrote another one."""


class Equation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One equation of a file."""

    text: str
    name: str | None = None
    output: str | None = None


class FileLayout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layout of a TOML file."""

    unknowns: list[str]
    equation: list[Equation]
    known: list[str] = []
    time: str | None = None
    parameters: dict[str, float] = {}


@dataclass(frozen=True, eq=False)
class EquationSystem:
    """What a file holds, in expressions: the arguments of a tableau."""

    equations: dict[str, ca.SX]
    variables: dict[str, ca.SX]
    rates: dict[str, ca.SX]
    known: tuple[str, ...]
    outputs: dict[str, str]
    time: ca.SX | None
    parameters: dict[str, tuple[ca.SX, float]]


def read_equations(path: str | Path) -> EquationSystem:
    """Read a `.toml` file of equations; every refusal names the file and what is wrong in it."""
    path = _checked(path, ".toml")
    try:
        content = read_text(path, FileLayout, LARGEST)
    except ModelError as error:
        hint = f". {LAYOUT}" if isinstance(error.__cause__, msgspec.ValidationError) else ""
        raise ModelError(f"{error}{hint}") from error
    try:
        return _system(content)
    except ModelError as error:
        raise ModelError(f"{path}: {shortened(str(error), LONGEST)}") from error


def read_pattern(path: str | Path) -> sp.csr_array:
    """Read the pattern of a sparse matrix in MatrixMarket format (.mtx); values do not count."""
    path = _checked(path, ".mtx")
    try:
        rows, cols, _, form, *_ = scipy.io.mminfo(path)
        if not rows or not cols:
            raise ModelError(f"{path}: {rows} x {cols} has no equations or no unknowns")
        if max(rows, cols) > LARGEST_PATTERN:
            raise ModelError(f"{path}: {rows} x {cols} is above the limit of {LARGEST_PATTERN} equations or unknowns")
        if form == "array" and rows * cols > LARGEST:
            raise ModelError(
                f"{path}: {rows} x {cols} numbers are above the limit of {LARGEST}; write those that count"
            )
        matrix = sp.coo_array(scipy.io.mmread(path))
    except ModelError:
        raise
    except (ValueError, OSError, TypeError, OverflowError, IndexError, MemoryError) as error:
        raise ModelError(f"{path}: not a MatrixMarket file ({error})") from error
    return sp.csr_array((abs(matrix.data) * 0 + 1.0, (matrix.row, matrix.col)), shape=matrix.shape)


def _checked(path: str | Path, suffix: str) -> Path:
    """Return the path of a file of the right kind and of moderate size."""
    path = Path(path)
    if path.suffix.lower() != suffix:
        raise UnsupportedError(
            f"{path}: equations are read from .toml files, patterns from .mtx files, "
            "mechanisms from robot files (.urdf, .sdf, .xml, .usd)"
        )
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from error
    if not path.is_file():
        raise ModelError(f"{path}: not a file")
    if size > LARGEST:
        raise ModelError(f"{path}: {size / 2**20:.0f} MiB is above the limit of {LARGEST // 2**20} MiB")
    return path


def _system(content: FileLayout) -> EquationSystem:
    """Make symbols and read every equation."""
    names = [*content.unknowns, *content.known]
    declared = [*names, *content.parameters, *([content.time] if content.time else [])]
    if len(set(declared)) < len(declared):
        twice = next(name for name in declared if declared.count(name) > 1)
        raise ModelError(f"{twice!r} is declared twice")
    for name in declared:
        if not is_name(name):
            raise ModelError(
                f"{name!r} cannot be a name: letters, digits and _, not a digit first, perhaps [0] behind; no function"
            )
    if not content.equation:
        raise ModelError(f"there are no equations. {LAYOUT}")
    symbols = {name: ca.SX.sym(name) for name in declared}
    rates: dict[str, ca.SX] = {}

    def lookup(word: str) -> ca.SX:
        base = word.rstrip("'")
        if base not in symbols:
            near = near_matches(base, declared)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ModelError(f"{base!r} is not among unknowns, known, time or parameters{hint}")
        if word == base:
            return symbols[base]
        if base not in names:
            raise ModelError(f"{word!r}: only unknown and known variables have rates")
        if word != f"{base}'":
            raise ModelError(f"{word!r}: write higher derivatives with a variable for the first, v = {base}'")
        return rates.setdefault(base, ca.SX.sym(word))

    equations, outputs = {}, {}
    for i, equation in enumerate(content.equation):
        name = equation.name or f"equation {i}"
        if name in equations:
            raise ModelError(f"two equations are called {name!r}")
        try:
            equations[name] = parse_equation(equation.text, lookup)
        except ModelError as error:
            raise ModelError(f"equation {name!r}: {error}") from error
        if equation.output:
            outputs[name] = equation.output
    for name, value in content.parameters.items():
        if not math.isfinite(value):
            raise ModelError(f"the parameter {name!r} is {value}; it must be a finite number")
    parameters = {name: (symbols[name], value) for name, value in content.parameters.items()}
    time = symbols[content.time] if content.time else None
    variables = {name: symbols[name] for name in names}
    return EquationSystem(equations, variables, rates, tuple(content.known), outputs, time, parameters)
