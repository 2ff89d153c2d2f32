"""A program as C statements: one declaration per operation, in the program's order.

C and CUDA share this printer; they differ in where inputs, outputs and values between chunks lie (`Places`) and in the
spelling of a few operations (`SPELLING` of each). Value i is called `t<i>`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from dalembert.kernel.chunk import Chunks
from dalembert.kernel.operations import ELEMENTARY, Op
from dalembert.kernel.program import Program

TYPE = {"float64": "double", "float32": "float"}

# Spelled with operands {0}, {1}, {2}, the type {real} and the literals {one}, {zero}.
SPELLING: dict[int, str] = {
    Op.ADD: "{0} + {1}",
    Op.SUB: "{0} - {1}",
    Op.MUL: "{0} * {1}",
    Op.DIV: "{0} / {1}",
    Op.NEG: "-{0}",
    Op.SIGN: "{0} < {zero} ? -{one} : ({0} > {zero} ? {one} : {0})",
    Op.FMIN: "({0} < {1} || {1} != {1}) ? {0} : {1}",
    Op.FMAX: "({0} > {1} || {1} != {1}) ? {0} : {1}",
    Op.LT: "({real})({0} < {1})",
    Op.LE: "({real})({0} <= {1})",
    Op.EQ: "({real})({0} == {1})",
    Op.NE: "({real})({0} != {1})",
    Op.NOT: "({real})({0} == {zero})",
    Op.AND: "({real})({0} != {zero} && {1} != {zero})",
    Op.OR: "({real})({0} != {zero} || {1} != {zero})",
    Op.IF_ELSE_ZERO: "{0} != {zero} ? {1} : {zero}",
}
LIBRARY = (Op.SQRT, Op.FABS, Op.FLOOR, Op.CEIL, Op.COPYSIGN, *sorted(ELEMENTARY))


class Places(Protocol):
    """Where values lie that are not local."""

    def input(self, port: int, element: int) -> str:
        """Return the expression of an input element."""
        ...

    def slot(self, slot: int) -> str:
        """Return the expression of a value that passes from chunk to chunk."""
        ...

    def output(self, port: int, element: int) -> str:
        """Return the expression of an output element, to be assigned."""
        ...


def literal(value: float, dtype: str) -> str:
    """Return a constant of type `dtype`: the shortest decimal that is read back as the same number."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = str(np.float32(value)) + "f" if dtype == "float32" else repr(value)
    return f"({text})" if text.startswith("-") else text


class Body:
    """The printer of one program for one real type."""

    def __init__(self, program: Program, chunks: Chunks, dtype: str, places: Places, spelling: Mapping[int, str]):
        self.program = program
        self.chunks = chunks
        self.dtype = dtype
        self.places = places
        self.spelling = {**SPELLING, **spelling}
        self.op, self.a, self.b, self.c = program.operands()
        self.leaf_a, self.leaf_b = program.a.tolist(), program.b.tolist()
        self.words = {"real": TYPE[dtype], "one": literal(1.0, dtype), "zero": literal(0.0, dtype)}
        self.stores: dict[int, list[tuple[int, int]]] = {}
        results = (program.result_port.tolist(), program.result_element.tolist(), program.result_value.tolist())
        for port, element, value in zip(*results, strict=True):
            self.stores.setdefault(value, []).append((port, element))
        self.lines: list[str] = []
        self.names: dict[int, str] = {}

    def begin(self) -> None:
        """Start a scope: no value has a name yet."""
        self.lines = []
        self.names = {}

    def print(self, values: Iterable[int]) -> list[str]:
        """Append the statements of some values to the scope; return its lines so far."""
        for i in values:
            self.value(i)
        return self.lines

    def chunk(self, k: int) -> range:
        """Return the values that chunk k computes."""
        return range(self.chunks.bounds[k], self.chunks.bounds[k + 1])

    def leaves(self) -> list[int]:
        """Return the results that are inputs or constants; no chunk computes them."""
        return [i for i in self.stores if i < self.chunks.bounds[0]]

    def value(self, i: int) -> None:
        """Compute value i; store it where it is a result, or where a later chunk needs it."""
        name = self.operand(i) if self.op[i] in (Op.CONST, Op.INPUT) else self.operation(i)
        for port, element in self.stores.get(i, ()):
            self.lines.append(f"{self.places.output(port, element)} = {name};")
        if self.op[i] not in (Op.CONST, Op.INPUT) and i in self.chunks.slot:
            self.lines.append(f"{self.places.slot(self.chunks.slot[i])} = {name};")

    def operand(self, i: int) -> str:
        """Return the name of value i; the first use of an input or of a value of another chunk reads it."""
        name = self.names.get(i)
        if name is not None:
            return name
        if self.op[i] == Op.CONST:
            name = literal(float(self.program.value[i]), self.dtype)
        elif self.op[i] == Op.INPUT:
            name = self.places.input(self.leaf_a[i], self.leaf_b[i])
        else:
            name = self.declare(i, self.places.slot(self.chunks.slot[i]))
        self.names[i] = name
        return name

    def declare(self, i: int, expression: str) -> str:
        """Declare value i."""
        self.lines.append(f"const {self.words['real']} t{i} = {expression};")
        return f"t{i}"

    def operation(self, i: int) -> str:
        """Declare value i as its operation on its operands."""
        operands = [self.operand(x) for x in (self.a[i], self.b[i], self.c[i]) if x >= 0]
        self.names[i] = self.declare(i, self.expression(i, operands))
        return self.names[i]

    def expression(self, i: int, operands: list[str]) -> str:
        """Return the right-hand side of value i."""
        return self.spelling[self.op[i]].format(*operands, **self.words)
