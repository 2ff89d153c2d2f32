"""Counting operations without an algebra system: scalars that only remember how they were made.

Two symbols made alike from the same symbols are one, and what no result needs is not counted, as in the compiled code.
"""

from __future__ import annotations

from collections import Counter
from typing import Any


class Symbol:
    """A value that is not known: an input, or an operation on others."""

    __slots__ = ("op", "parts", "table")

    def __init__(self, table: dict[Any, Symbol], op: str, parts: tuple[Any, ...]) -> None:
        self.table, self.op, self.parts = table, op, parts

    def _make(self, op: str, *parts: Any) -> Symbol:
        key = (op, *(id(part) if isinstance(part, Symbol) else part for part in parts))
        number = self.table.get(key)
        if number is None:
            number = self.table[key] = Symbol(self.table, op, parts)
        return number

    def __add__(self, other: Any) -> Symbol:
        if isinstance(other, Symbol) and other.op == "neg":
            return self._make("sub", self, other.parts[0])
        if self.op == "neg":
            return self._make("sub", other, self.parts[0])
        return self._make("add", *_sorted(self, other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        if isinstance(other, Symbol) and other.op == "neg":
            return self + other.parts[0]
        return self._make("sub", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return other + self.parts[0] if self.op == "neg" else self._make("sub", other, self)

    def __mul__(self, other: Any) -> Symbol:
        if self.op == "neg":
            return -(self.parts[0] * other)
        if isinstance(other, Symbol) and other.op == "neg":
            return -(self * other.parts[0])
        if isinstance(other, float) and other < 0:
            return -(self * -other)
        return self._make("mul", *_sorted(self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Symbol:
        return self._make("div", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._make("div", other, self)

    def __neg__(self) -> Symbol:
        return self.parts[0] if self.op == "neg" else self._make("neg", self)

    def sin(self) -> Symbol:
        """Return the sine."""
        return self._make("sin", self)

    def cos(self) -> Symbol:
        """Return the cosine."""
        return self._make("cos", self)

    def sqrt(self) -> Symbol:
        """Return the square root."""
        return self._make("sqrt", self)

    def with_other(self, op: str, other: Any) -> Symbol:
        """Return a function of two values, such as the angle of (x, y)."""
        return self._make(op, self, other)


def _sorted(x: Any, y: Any) -> tuple[Any, Any]:
    """Return both operands of a commutative operation in one order."""
    if not isinstance(x, Symbol):
        return x, y
    if not isinstance(y, Symbol):
        return y, x
    return (x, y) if id(x) < id(y) else (y, x)


def inputs(number: int, table: dict[Any, Symbol] | None = None) -> list[Symbol]:
    """Return new inputs that share a table of known operations."""
    table = {} if table is None else table
    return [Symbol(table, "input", ()) for _ in range(number)]


def count(results: Any) -> Counter[str]:
    """Return how many operations of each kind the results (nested lists of scalars) need."""
    kinds: Counter[str] = Counter()
    seen: set[int] = set()
    stack = [results]
    while stack:
        number = stack.pop()
        if isinstance(number, (list, tuple)):
            stack.extend(number)
        elif isinstance(number, Symbol) and id(number) not in seen:
            seen.add(id(number))
            stack.extend(number.parts)
            if number.op != "input":
                kinds[number.op] += 1
    return kinds


def arithmetic(kinds: Counter[str]) -> int:
    """Return how many of the operations are products, sums and quotients; signs are free, sines counted apart."""
    return kinds["mul"] + kinds["add"] + kinds["sub"] + kinds["div"]


def work(results: Any) -> int:
    """Return the number of products, sums and quotients that the results need."""
    return arithmetic(count(results))
