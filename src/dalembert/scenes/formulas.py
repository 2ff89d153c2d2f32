"""Expressions of a scene: numbers made of parameters, forces and events made of time and state; never code.

The grammar is that of equation files (`dalembert.readers.equation_file`). Names are parameters, `pi`, the time `t`, and
coordinates as `run[...]` knows them, with `_` for every letter that a name cannot have: the velocity of "crank pin" is
`crank_pin.v`, or `crank_pin'`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.model.joints import KINDS
from dalembert.names import near_matches
from dalembert.readers.equation_file import is_name, parse_equation
from dalembert.readers.files import read_file
from dalembert.types import Array

CONSTANTS = {"pi": math.pi, "g": 9.81}
"""Names that every scene knows; a parameter may take their place."""

LARGEST_TABLE = 32 * 2**20
"""Bytes of a CSV file."""

MOST_PARAMETERS = 1000
"""Parameters of a scene: one may be made of all above it."""

# ----------------------------------------------------------------------------------------------------------------------
# Numbers of a file: given, or made of parameters.


def word_of(name: str) -> str:
    """Return a name as expressions write it: letters, digits and _."""
    identifier = re.sub(r"\W", "_", name)
    return f"_{identifier}" if identifier[:1].isdigit() else identifier


def parsed(text: str, names: Mapping[str, Any]) -> ca.SX:
    """Return an expression of the given names; an unknown one is answered with those that resemble it."""

    def lookup(word: str) -> ca.SX:
        word = f"{word[:-1]}.v" if word.endswith("'") else word
        if word in names:
            return ca.SX(names[word])
        near = near_matches(word, names)
        hint = "" if near else f"; there is {', '.join(list(names)[:12])}"
        raise ModelError(f"{text!r}: nothing is called {word!r}{hint}", near=near, subject=text)

    if "=" in text:
        raise ModelError(f"{text!r} is an equation; an expression has no '='", subject=text)
    try:
        return parse_equation(text, lookup)
    except ModelError as error:
        error.subject = text
        raise


def parameter_values(numbers: Mapping[str, float | str]) -> dict[str, float]:
    """Return the value of every parameter; one may be made of those above it."""
    if len(numbers) > MOST_PARAMETERS:
        raise ModelError(f"{len(numbers)} parameters are above the limit of {MOST_PARAMETERS}")
    values: dict[str, float] = {}
    for name, value in numbers.items():
        if not is_name(name) or name == "t":
            words = "letters, digits and _, not a digit first; t is the time"
            raise ModelError(f"{name!r} cannot be the name of a parameter: {words}", subject=name)
        values[name] = number(value, values)
    return values


def number(value: float | str, parameters: Mapping[str, float]) -> float:
    """Return a number, or the value of an expression of parameters."""
    if not isinstance(value, str):
        result = float(value)
    else:
        result = float(ca.DM(ca.evalf(parsed(value, {**CONSTANTS, **parameters}))))
    if not math.isfinite(result):
        raise ModelError(f"{value!r} is {result}: it must be a finite number", subject=value)
    return result


def vector(values: Any, parameters: Mapping[str, float]) -> tuple[float, ...] | None:
    """Return a list of numbers; None stays None."""
    return None if values is None else tuple(number(value, parameters) for value in values)


# ----------------------------------------------------------------------------------------------------------------------
# Expressions of time and state.


class StateNames:
    """Symbols of a mechanism's time, configuration and velocity, by the words that expressions use."""

    def __init__(self, mechanism: Any, parameters: Mapping[str, float]) -> None:
        self.t, self.q, self.v = ca.SX.sym("t"), ca.SX.sym("q", mechanism.nq), ca.SX.sym("v", mechanism.nv)
        names: dict[str, Any] = {**CONSTANTS, **parameters, "t": self.t}
        names |= {word_of(name): self.q[k] for k, name in enumerate(mechanism.configuration_names)}
        names |= {f"{word_of(name)}.v": self.v[k] for k, name in enumerate(mechanism.coordinates)}
        for joint in mechanism.joints:
            if KINDS[joint.kind].name == "continuous":
                cosine = mechanism.index_q(joint.name).start
                names[word_of(joint.name)] = ca.atan2(self.q[cosine + 1], self.q[cosine])
        self.names = names

    def vary(self, text: str) -> bool:
        """Return whether an expression depends on time or state."""
        return ca.depends_on(parsed(text, self.names), ca.vertcat(self.t, self.q, self.v))

    def moves(self, text: str) -> bool:
        """Return whether an expression depends on velocities."""
        return ca.depends_on(parsed(text, self.names), self.v)

    def function(self, text: str) -> ca.Function:
        """Return an expression as a function of (t, q, v)."""
        return ca.Function("f", [self.t, self.q, self.v], [parsed(text, self.names)])


def of_coordinates(text: str, mechanism: Any, parameters: Mapping[str, float]) -> Callable[[Any], Any]:
    """Return an expression as a function of a mechanism in motion, for `da.Expression`."""
    symbols = StateNames(mechanism, parameters)
    function = symbols.function(text)
    return lambda k: function(k.t, k.q, k.v)


def of_time(text: str, parameters: Mapping[str, float]) -> Callable[[Any], Any]:
    """Return an expression of time alone, for `da.Servo`."""
    parsed(text, {**CONSTANTS, **parameters, "t": ca.SX.sym("t")})
    return lambda t: parsed(text, {**CONSTANTS, **parameters, "t": t})


# ----------------------------------------------------------------------------------------------------------------------
# Tables of numbers.


def read_table(path: Any) -> dict[str, Array]:
    """Return the columns of a CSV file by the names in its first line; units in brackets are left out."""
    text = read_file(path, LARGEST_TABLE).decode("utf-8-sig", errors="replace")
    reader = csv.reader(io.StringIO(text))
    rows = [(reader.line_num, row) for row in reader if row and not row[0].lstrip().startswith("#")]
    if len(rows) < 3:
        raise ModelError(f"{path}: a table has a line of names and at least two lines of numbers")
    head = rows[0][1]
    if len(head) == 1 and re.search(r"[;\t]", head[0]):
        raise ModelError(f"{path}:{rows[0][0]}: columns are separated by commas, and numbers have a point, as in 0.5")
    names = [re.sub(r"\s*\[[^\]]*\]\s*$", "", name).strip() for name in head]
    for line, row in rows[1:]:
        if len(row) != len(names):
            raise ModelError(f"{path}:{line}: {len(row)} values, but the table's first line has {len(names)} names")
    columns: dict[str, Array] = {}
    for j, name in enumerate(names):
        cells = [_read_number(row[j]) for _, row in rows[1:]]
        if all(cell is None for cell in cells):
            continue  # a column of words, such as modes of contacts
        for (line, row), cell in zip(rows[1:], cells, strict=True):
            if cell is None:
                raise ModelError(f"{path}:{line}: {row[j]!r} in the column {name!r} is not a number")
        columns[name] = np.array(cells)
    return columns


def _read_number(cell: str) -> float | None:
    """Return the number in a cell, None where there is none."""
    try:
        return float(cell)
    except ValueError:
        return None


def table_column(columns: Mapping[str, Array], name: str, path: Any) -> Array:
    """Return a column of numbers by name."""
    if name not in columns:
        near = near_matches(name, columns)
        hint = "" if near else f"; it has {', '.join(map(repr, columns))}"
        raise ModelError(f"{path} has no column of numbers {name!r}{hint}", near=near)
    return columns[name]
