"""Where results wait before they are written: one vector for each distinct value of an output.

A matrix with structural zeros, or a symmetric one, has fewer values than elements. Its vectors then hold every value
once, and a table says which of them each element is; all zeros share one vector. So what is computed stays close to the
processor until it is written, and nothing has to be cleared before a call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.kernel.program import Program

WORTH_A_TABLE = 0.75  # values over elements, below which the table costs less than the memory it saves


@dataclass(frozen=True)
class Outputs:
    """The output area of a block.

    Attributes
    ----------
    first : (ports,)
        The first vector of each output.
    tables
        Per output the vector of each element, counted from its first one; None where element k is vector k.
    stores
        Per value the vectors that it is written to.
    zeros
        Vectors that are zero throughout.
    size
        Number of vectors.
    """

    first: tuple[int, ...]
    tables: tuple[tuple[int, ...] | None, ...]
    stores: dict[int, list[int]]
    zeros: tuple[int, ...]
    size: int


def output_layout(program: Program) -> Outputs:
    """Return where a program's results wait."""
    first: list[int] = []
    tables: list[tuple[int, ...] | None] = []
    stores: dict[int, list[int]] = {}
    zeros: list[int] = []
    size = 0
    for k, port in enumerate(program.outputs):
        mine = program.result_port == k
        values = np.full(port.size, -1)
        values[program.result_element[mine]] = program.result_value[mine]
        distinct, places = np.unique(values, return_inverse=True)
        has_zeros = bool(port.size) and int(distinct[0]) < 0
        by_table = has_zeros or len(distinct) <= WORTH_A_TABLE * port.size
        first.append(size)
        tables.append(tuple(places.tolist()) if by_table and port.size else None)
        for place, value in enumerate((distinct if by_table else values).tolist()):
            if value < 0:
                zeros.append(size + place)
            else:
                stores.setdefault(value, []).append(size + place)
        size += len(distinct) if by_table else port.size
    return Outputs(tuple(first), tuple(tables), stores, tuple(zeros), size)
