"""Directions whose right sides fill the same entries: one piece of code solves for all of them.

Every direction of an implicit derivative is one right side for the same factors. Along a kinematic tree it fills the
velocities of its branch: those of a leg, seen from a hip, are the leg's and the base's. Right sides of one branch are
a group; its columns are computed by a loop (`kernel/program/columns.py`), the factors being shared. So the code of a
humanoid's derivatives is as long as that of one direction for each of its limbs, where unrolled it has a hundred.

Whether a column is filled up with zeros costs little where it ends in the same velocities, since most of a solve is the
way back down the tree, which is full in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.kernel.program.columns import NOWHERE, Alike, ColumnFunction
from dalembert.kernel.program.program import Port
from dalembert.kkt.expressions.scalars import is_zero
from dalembert.kkt.expressions.sparse_factor import SparseFactor, Vector
from dalembert.types import Scalar

LANES = 8
"""Columns that a vector holds where they are its lanes; fewer have no code of their own."""

Entry = tuple[str, int]
"""A part of the block rows ("first", "second", ...) and a place in it."""


@dataclass(frozen=True, eq=False)
class RightSide:
    """The derivative of the block rows along one direction: its entries that are not known to be zero."""

    direction: str
    column: int
    entries: Mapping[Entry, Scalar]

    @classmethod
    def of(cls, direction: str, column: int, parts: Mapping[str, Sequence[Scalar]]) -> RightSide:
        """Make it from the columns of all parts."""
        entries = {(part, i): x for part, values in parts.items() for i, x in enumerate(values) if not is_zero(x)}
        return cls(direction, column, entries)

    def reach(self, factor: SparseFactor) -> frozenset[int]:
        """Return the unknowns that L^-1 fills."""
        filled = {i for part, i in self.entries if part == "first"}
        for k in factor.order:
            if k in filled:
                filled |= factor.columns[k].keys()
        return frozenset(filled)


def groups(sides: Sequence[RightSide], factor: SparseFactor) -> list[list[RightSide]]:
    """Return right sides by what they fill; those whose group is not worth its code join one that fills all they do.

    Counted are products with L: on the way up those of the unknowns that are filled, on the way back all, and as many
    again for constraint rows. A sample's columns take whole vectors; whether a kernel is called for one or for a batch
    is not known here, so the mean of both counts.
    """
    by_reach: dict[frozenset[int], list[RightSide]] = {}
    for side in sides:
        if side.entries:
            by_reach.setdefault(side.reach(factor), []).append(side)
    back = 2 * sum(map(len, factor.columns.values()))

    def cost(reach: frozenset[int], columns: int) -> float:
        vectors = -(-columns // LANES)
        return (columns + LANES * vectors) / 2 * (back + sum(len(factor.columns[k]) for k in reach))

    def loss(reach: frozenset[int], wider: frozenset[int]) -> float:
        alone, there = len(by_reach[reach]), len(by_reach[wider])
        return cost(wider, alone + there) - cost(reach, alone) - cost(wider, there)

    while True:
        pairs = [(loss(x, y), sorted(x), x, y) for x in by_reach for y in by_reach if x < y]
        small = [pair for pair in pairs if len(by_reach[pair[2]]) < LANES]
        best = min(small or pairs, default=None, key=lambda pair: pair[:2])
        if best is None or not (small or best[0] < 0):
            return list(by_reach.values())
        _, _, reach, wider = best
        by_reach[wider] += by_reach.pop(reach)


@dataclass(frozen=True, eq=False)
class Unknown:
    """One of the unknowns of the block system, and the matrices that hold its derivatives.

    Attributes
    ----------
    size
        Number of its entries.
    matrices
        Output and number of columns by direction.
    """

    size: int
    matrices: Mapping[str, tuple[str, int]]


Solve = Callable[[Mapping[str, Vector]], Sequence[Sequence[Scalar]]]
"""From the parts of a right side to the derivatives of all unknowns."""


def column_function(
    name: str,
    inputs: Mapping[str, ca.SX],
    outputs: Mapping[str, ca.SX],
    sides: Sequence[Sequence[RightSide]],
    solve: Solve,
    unknowns: Sequence[Unknown],
) -> ColumnFunction:
    """Return the function of `outputs`, and of matrices that have a column for every right side.

    Parameters
    ----------
    sides
        Right sides by group; a column that no group has is zero.
    solve
        Evaluated once for each group, on symbols.
    """
    ports = [Port(word, *x.shape) for word, x in outputs.items()]
    directions = {direction: None for unknown in unknowns for direction in unknown.matrices}
    for direction in directions:
        for unknown in unknowns:
            word, columns = unknown.matrices[direction]
            ports.append(Port(word, unknown.size, columns))
    place = {port.name: k for k, port in enumerate(ports)}
    symbols, names, alike = dict(inputs), dict(outputs), []
    for group in sides:
        entries = sorted({entry for side in group for entry in side.entries})
        symbol = ca.SX.sym("right", len(entries))
        parts: dict[str, Vector] = {}
        for k, (part, i) in enumerate(entries):
            parts.setdefault(part, {})[i] = symbol[k]
        solved = [(j, i, x) for j, values in enumerate(solve(parts)) for i, x in enumerate(values) if not is_zero(x)]
        port = np.full((len(solved), len(group)), NOWHERE, np.int32)
        element = np.zeros_like(port)
        for u, (j, i, _) in enumerate(solved):
            for k, side in enumerate(group):
                word, columns = unknowns[j].matrices[side.direction]
                port[u, k], element[u, k] = place[word], i * columns + side.column
        g = len(alike)
        columns_ = [ca.vertcat(*(ca.SX(side.entries.get(entry, 0.0)) for entry in entries)) for side in group]
        symbols[f"right_{g}"] = symbol
        names[f"rights_{g}"] = ca.densify(ca.horzcat(*columns_))
        names[f"results_{g}"] = ca.densify(ca.vertcat(*(ca.SX(x) for _, _, x in solved)))
        alike.append(Alike(port, element))
    made = ca.Function(name, list(symbols.values()), list(names.values()), list(symbols), list(names))
    return ColumnFunction(made, ports, alike)
