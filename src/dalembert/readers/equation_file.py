"""Reader of named equations from a file that a person wrote (TOML), or a bare pattern (MatrixMarket).

unknowns = ["x", "y", "lam"]
known = ["u"]                              # optional
time = "t"                                 # optional
parameters = { g = 9.81, length = 1.0 }    # optional

[[equation]]
name = "rod"
text = "x^2 + y^2 = length^2"
output = "y"                               # optional: the unknown that it determines
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import msgspec
import scipy.io
import scipy.sparse as sp

from dalembert.errors import ModelError, UnsupportedError
from dalembert.names import near_matches
from dalembert.readers.equation_text import is_name, parse_equation
from dalembert.readers.files import read_text
from dalembert.readers.xml_tree import shortened

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
        raise UnsupportedError(f"{path}: equations are read from .toml files, patterns from .mtx files")
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
