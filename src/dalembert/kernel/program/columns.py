"""Functions with matrices whose columns are computed alike: written once for a column, and run for each of them.

A matrix X = K^-1 B, and every derivative of an answer by implicit differentiation, has columns that differ in their
right sides alone. Unrolled, the program of fifty columns is fifty times that of one, and a processor spends its time on
fetching instructions. Here the part of a column stands once, over symbols for its right side; what does not depend on
these symbols is the *head*, evaluated once, and the values of the head that a column reads are *shared* by all.

Symbols: head (inputs) -> shared s, right sides B (r, count); body (s, b) -> x (u,), x_c = body(s, b_c).

`unrolled` is the plain twin: the same operations as one straight line, which backends without loops (C, NumPy) take.
Since a program is cut after its products and sums are fused, both round alike, bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalembert.errors import ModelError
from dalembert.kernel.program.program import LEAVES, Op, Port, Program
from dalembert.kernel.program.trace import ports, trace, untrace

NOWHERE = -1
"""The port of a result that no output holds."""


@dataclass(frozen=True, eq=False)
class Alike:
    """Where the results of columns that are computed alike go.

    Attributes
    ----------
    port, element : (u, count)
        Output and element in C order of every result of every column; `NOWHERE` where it is in none.
    """

    port: NDArray[np.int32]
    element: NDArray[np.int32]

    @property
    def count(self) -> int:
        """Number of columns."""
        return self.port.shape[1]


class ColumnFunction:
    """A CasADi function with groups of columns.

    Parameters
    ----------
    function
        Inputs: those of the whole, then for each group the right side of one column, (r,). Outputs: those of the whole
        that are no columns, then for each group all right sides (r, count) and the results of one column (u,).
    outputs
        All outputs of the whole, in order; those that `function` has, by their names, and those made of columns.
    groups
        Where the results of each group go.
    """

    def __init__(self, function: Any, outputs: Sequence[Port], groups: Sequence[Alike]) -> None:
        self.function = function
        self.groups = tuple(groups)
        sources, targets = ports(function)
        self.inputs = sources[: len(sources) - len(self.groups)]
        self.outputs = tuple(outputs)
        self.direct = targets[: len(targets) - 2 * len(self.groups)]

    def name(self) -> str:
        """Return the name of the function."""
        return self.function.name()

    @cached_property
    def unrolled(self) -> Any:
        """The whole as an SX function, all columns written out."""
        return untrace(unrolled(divide(self, trace(self.function))))

    def at(self, name: str, value: Any) -> ColumnFunction:
        """Return the function with numbers for one of its inputs."""
        import casadi as ca

        f = self.function
        k = f.name_in().index(name)
        symbols = [ca.SX.sym(f.name_in(i), f.sparsity_in(i)) for i in range(f.n_in())]
        kept = [i for i in range(f.n_in()) if i != k]
        answers = f.call([ca.SX(value) if i == k else symbols[i] for i in range(f.n_in())])
        names = [f.name_in(i) for i in kept], f.name_out()
        made = ca.Function(f.name(), [symbols[i] for i in kept], list(map(ca.densify, answers)), *names)
        return ColumnFunction(made, self.outputs, self.groups)

    def serialize(self) -> str:
        """Return the function as text."""
        groups = [[group.port.tolist(), group.element.tolist()] for group in self.groups]
        outputs = [[port.name, port.rows, port.cols] for port in self.outputs]
        return MARK + json.dumps({"outputs": outputs, "groups": groups, "function": self.function.serialize()})

    @classmethod
    def deserialize(cls, text: str) -> ColumnFunction:
        """Return the function that was written as text."""
        import casadi as ca

        stored = json.loads(text.removeprefix(MARK))
        groups = [Alike(*(np.array(part, np.int32) for part in group)) for group in stored["groups"]]
        outputs = [Port(*port) for port in stored["outputs"]]
        return cls(ca.Function.deserialize(stored["function"]), outputs, groups)


MARK = "columns "
"""Begins the text of a `ColumnFunction`."""


def from_text(text: str) -> Any:
    """Return the function of a text, with columns or without."""
    import casadi as ca

    return ColumnFunction.deserialize(text) if text.startswith(MARK) else ca.Function.deserialize(text)


def written_out(function: Any) -> Any:
    """Return a function, with columns or without, as a CasADi function."""
    return function.unrolled if isinstance(function, ColumnFunction) else function


def ports_of(function: Any) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Return the inputs and outputs of a function, with columns or without."""
    return (function.inputs, function.outputs) if isinstance(function, ColumnFunction) else ports(function)


# ----------------------------------------------------------------------------------------------------------------------
# A program divided into its head and the bodies of its columns.


@dataclass(frozen=True, eq=False)
class ColumnPart:
    """The program of one column of a group.

    Attributes
    ----------
    program
        Inputs: shared values (s,), right side (r,). Output: results (u,).
    alike
        Where results go.
    """

    program: Program
    alike: Alike

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Shared values, entries of a right side, results: s, r, u."""
        shared, right = self.program.inputs
        return shared.size, right.size, self.program.outputs[0].size


@dataclass(frozen=True, eq=False)
class ColumnProgram:
    """A head, and bodies that are run for each of their columns.

    Attributes
    ----------
    head
        Outputs: those of the whole that are no columns, then for each body its shared values (s,) and right sides (r,
        count).
    bodies
        One for each group of columns.
    outputs
        All outputs of the whole.
    direct
        Number of outputs of the head that are outputs of the whole.
    """

    head: Program
    bodies: tuple[ColumnPart, ...]
    outputs: tuple[Port, ...]
    direct: int

    @property
    def operations(self) -> int:
        """Operations of a sample: of the head, and of every column."""
        return self.head.operations + sum(body.program.operations * body.alike.count for body in self.bodies)

    def places(self) -> tuple[int, ...]:
        """Return for each output of the whole which output of the head it is, or `NOWHERE`."""
        names = [port.name for port in self.head.outputs[: self.direct]]
        return tuple(names.index(port.name) if port.name in names else NOWHERE for port in self.outputs)


def divide(function: ColumnFunction, program: Program) -> ColumnProgram:
    """Divide the program of `function.function`: what depends on the right side of a column is in its body."""
    inputs, direct = len(function.inputs), len(function.direct)
    owner = _owners(program, inputs, function.name())
    op, *operands = program.operands()
    results = _results(program)
    head_outputs, head_results = list(program.outputs[:direct]), [results[k] for k in range(direct)]
    bodies = []
    for g, alike in enumerate(function.groups):
        right, values = program.inputs[inputs + g], results[direct + 2 * g + 1]
        members = np.flatnonzero(owner == g).tolist()
        reads = {x for i in members if op[i] not in LEAVES for column in operands for x in (column[i],) if x >= 0}
        reads |= set(values.values())
        shared = sorted(x for x in reads if owner[x] == _HEAD and op[x] != Op.CONST)
        bodies.append(ColumnPart(_body(program, g, members, shared, values, right), alike))
        head_outputs += [Port(f"shared {g}", len(shared), 1), program.outputs[direct + 2 * g]]
        head_results += [dict(enumerate(shared)), results[direct + 2 * g]]
    head = _cut(program, owner, tuple(head_outputs), head_results, function.inputs)
    return ColumnProgram(head, tuple(bodies), function.outputs, direct)


_HEAD = -1


def _owners(program: Program, inputs: int, name: str) -> NDArray[np.int64]:
    """Return for every value the group on whose right side it depends, or `_HEAD`."""
    op, a, b, c = program.operands()
    port = program.a.tolist()
    owner: list[int] = []
    for i, code in enumerate(op):
        if code in LEAVES:
            owner.append(port[i] - inputs if code == Op.INPUT and port[i] >= inputs else _HEAD)
            continue
        owners = {owner[x] for x in (a[i], b[i], c[i]) if x >= 0} - {_HEAD}
        if len(owners) > 1:
            raise ModelError(f"function {name!r} has an operation on the right sides of two groups of columns")
        owner.append(owners.pop() if owners else _HEAD)
    return np.array(owner, np.int64)


def _results(program: Program) -> list[dict[int, int]]:
    """Return for every output its values by element."""
    results: list[dict[int, int]] = [{} for _ in program.outputs]
    for port, element, value in program.results():
        results[port][element] = value
    return results


class _Code:
    """Instructions that are written one after the other."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        self.values: list[float] = []

    def add(self, op: int, a: int, b: int, c: int, value: float = 0.0) -> int:
        """Write an instruction and return its place."""
        self.rows.append((op, a, b, c))
        self.values.append(value)
        return len(self.rows) - 1

    def program(
        self, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], results: list[dict[int, int]]
    ) -> Program:
        """Return what was written as a program, whose `results` are places by output and element."""
        op, a, b, c = np.array(self.rows, np.int32).reshape(-1, 4).T
        ends = [(port, element, x) for port, values in enumerate(results) for element, x in values.items()]
        port, element, place = np.array(ends, np.int32).reshape(-1, 3).T
        return Program(
            name, inputs, outputs, op.astype(np.uint8), a.copy(), b.copy(), c.copy(), np.array(self.values),
            port.copy(), element.copy(), place.copy(),
        )  # fmt: skip


def _body(
    program: Program, g: int, members: list[int], shared: list[int], values: dict[int, int], right: Port
) -> Program:
    """Return the program of one column of group g."""
    op, a, b, c = program.operands()
    constants = {x for i in members for x in (a[i], b[i], c[i]) if x >= 0 and op[x] == Op.CONST}
    constants |= {x for x in values.values() if op[x] == Op.CONST}
    code = _Code()
    place = {-1: -1}
    for x in sorted(constants):
        place[x] = code.add(Op.CONST, -1, -1, -1, float(program.value[x]))
    for k, x in enumerate(shared):
        place[x] = code.add(Op.INPUT, 0, k, -1)
    for i in members:
        if op[i] == Op.INPUT:
            place[i] = code.add(Op.INPUT, 1, int(program.b[i]), -1)
        else:
            place[i] = code.add(op[i], place[a[i]], place[b[i]], place[c[i]])
    inputs = (Port("shared", len(shared), 1), right)
    output = Port("results", max(values, default=-1) + 1, 1)
    return code.program(f"{program.name}_columns_{g}", inputs, (output,), [{e: place[x] for e, x in values.items()}])


def _cut(
    program: Program,
    owner: NDArray[np.int64],
    outputs: tuple[Port, ...],
    results: list[dict[int, int]],
    inputs: tuple[Port, ...],
) -> Program:
    """Return the program of the values that belong to no column."""
    op, a, b, c = program.operands()
    code = _Code()
    place = {-1: -1}
    for i in np.flatnonzero(owner == _HEAD).tolist():
        if op[i] in LEAVES:
            place[i] = code.add(op[i], int(program.a[i]), int(program.b[i]), -1, float(program.value[i]))
        else:
            place[i] = code.add(op[i], place[a[i]], place[b[i]], place[c[i]])
    moved = [{element: place[value] for element, value in values.items()} for values in results]
    return code.program(program.name, inputs, outputs, moved)


def unrolled(divided: ColumnProgram) -> Program:
    """Return the whole as straight-line code: the head, then the body of every column."""
    head, code = divided.head, _Code()
    for op, a, b, c, value in zip(head.op, head.a, head.b, head.c, head.value, strict=True):
        code.add(int(op), int(a), int(b), int(c), float(value))
    head_results = _results(head)
    results: list[dict[int, int]] = [dict(head_results[k]) if k >= 0 else {} for k in divided.places()]
    for g, body in enumerate(divided.bodies):
        shared, right = head_results[divided.direct + 2 * g], head_results[divided.direct + 2 * g + 1]
        op, a, b, c = body.program.operands()
        ports, elements, numbers = body.program.a.tolist(), body.program.b.tolist(), body.program.value.tolist()
        (values,) = _results(body.program)
        for k in range(body.alike.count):
            place = {-1: -1}
            for i, kind in enumerate(op):
                if kind == Op.INPUT:
                    place[i] = right[elements[i] * body.alike.count + k] if ports[i] else shared[elements[i]]
                else:
                    place[i] = code.add(kind, place[a[i]], place[b[i]], place[c[i]], numbers[i])
            for u, value in values.items():
                port = int(body.alike.port[u, k])
                if port != NOWHERE:
                    results[port][int(body.alike.element[u, k])] = place[value]
    return code.program(head.name, head.inputs, divided.outputs, results)
