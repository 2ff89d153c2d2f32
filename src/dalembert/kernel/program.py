"""A program: straight-line code in which every value is computed once.

Instruction i computes value i from earlier values; there are no branches and no names, only flat arrays. A
backend is a file that prints, or runs, a Program. The passes `optimise`, `fuse` and `schedule` take a Program
and return one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalembert.kernel.operations import ARITY, LEAVES, Op

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAF_CODES = np.array(sorted(LEAVES))
ARITIES = np.array([ARITY[op] for op in Op])


@dataclass(frozen=True)
class Port:
    """An input or output: its name and its shape.

    CasADi's columns are vectors here. `shape` is that of one sample's array: `(n,)` for a column, `(rows,
    cols)` for any other matrix, C order.
    """

    name: str
    rows: int
    cols: int

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return (self.rows,) if self.cols == 1 else (self.rows, self.cols)

    @property
    def size(self) -> int:
        """Number of elements, structural zeros included."""
        return self.rows * self.cols


@dataclass(frozen=True, eq=False)
class Program:
    """Straight-line code.

    Attributes
    ----------
    name
        Name of the traced function.
    inputs, outputs
        What goes in and out, in order.
    op : (n,) uint8
        The operation (`Op`) of each instruction.
    a, b, c : (n,) int32
        Operands: indices of earlier instructions, -1 where there is none. Of an `INPUT`, a is the input and b
        the element in C order.
    value : (n,) float64
        The value of a `CONST`, else 0.
    result_port, result_element, result_value : (k,) int32
        Element `result_element` (C order) of output `result_port` is value `result_value`. Elements that are
        not listed are structural zeros.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    op: NDArray[np.uint8]
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    c: NDArray[np.int32]
    value: NDArray[np.float64]
    result_port: NDArray[np.int32]
    result_element: NDArray[np.int32]
    result_value: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.op)

    @property
    def operations(self) -> int:
        """Number of instructions that compute something: all but constants and inputs."""
        return int(np.count_nonzero(~np.isin(self.op, LEAF_CODES)))

    def count(self) -> dict[str, int]:
        """Count operations by kind, most frequent first."""
        kinds = Counter(self.op[~np.isin(self.op, LEAF_CODES)].tolist())
        return {Op(code).name.lower(): number for code, number in kinds.most_common()}

    def operands(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return op, a, b, c as lists in which every a, b, c is a value or -1 (leaves have none)."""
        arity = ARITIES[self.op]
        a, b = np.where(arity > 0, self.a, -1), np.where(arity > 1, self.b, -1)
        return self.op.tolist(), a.tolist(), b.tolist(), self.c.tolist()

    def replace(
        self,
        op: Sequence[int],
        a: Sequence[int],
        b: Sequence[int],
        c: Sequence[int],
        value: Sequence[float],
        result_value: Sequence[int],
    ) -> Program:
        """Return a program with the same ports and results but other instructions."""
        return Program(
            self.name,
            self.inputs,
            self.outputs,
            np.array(op, np.uint8),
            np.array(a, np.int32),
            np.array(b, np.int32),
            np.array(c, np.int32),
            np.array(value, np.float64),
            self.result_port,
            self.result_element,
            np.array(result_value, np.int32),
        )

    def select(self, order: NDArray[Any]) -> Program:
        """Return the program with instructions `order`, a topological order that holds all that is needed."""
        place = np.full(len(self) + 1, -1, np.int32)  # the last entry maps "none" to "none"
        place[order] = np.arange(len(order), dtype=np.int32)
        op = self.op[order]
        leaf = np.isin(op, LEAF_CODES)
        a = np.where(leaf, self.a[order], place[np.where(leaf, -1, self.a[order])])
        b = np.where(leaf, self.b[order], place[np.where(leaf, -1, self.b[order])])
        c = place[self.c[order]]
        return Program(
            self.name,
            self.inputs,
            self.outputs,
            op,
            a.astype(np.int32),
            b.astype(np.int32),
            c,
            self.value[order],
            self.result_port,
            self.result_element,
            place[self.result_value],
        )
