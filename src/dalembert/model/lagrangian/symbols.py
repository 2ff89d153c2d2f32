"""Symbols and parameters of a Lagrangian system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from dalembert.errors import ModelError, ShapeError
from dalembert.model.parameters import Parameters

# ----------------------------------------------------------------------------------------------------------------------
# The symbols of a system, and the check that an expression uses no others.


@dataclass(frozen=True, eq=False)
class Symbols:
    """Coordinates q, velocities v = q_dot (n each), controls u, time t (a column of one or none), parameters.

    `turning` says whether rows A depend on velocities, which are then inputs of theirs: constraints of accelerations.
    """

    q: ca.SX
    v: ca.SX
    u: ca.SX
    t: ca.SX
    parameters: Parameters
    turning: bool = False

    @classmethod
    def of(cls, q: Any, v: Any, u: Any, t: Any, parameters: Any) -> Symbols:
        """Check the symbols that a user hands over: SX columns, all different, as many velocities as coordinates."""
        none = ca.SX(0, 1)
        symbols = cls(
            symbol_column(q, "q"),
            symbol_column(v, "v"),
            none if u is None else symbol_column(u, "controls"),
            none if t is None else symbol_column(t, "time"),
            Parameters.of(parameters),
        )
        if symbols.q.numel() == 0:
            raise ShapeError("q is empty: a system without coordinates has no motion to solve for")
        if symbols.v.numel() != symbols.q.numel():
            raise ShapeError(f"{symbols.q.numel()} coordinates q, but {symbols.v.numel()} velocities v; v is q's rate")
        if t is not None and symbols.t.numel() != 1:
            raise ShapeError(f"time must be one symbol; it has {symbols.t.numel()}")
        symbols._refuse_shared()
        return symbols

    @cached_property
    def groups(self) -> dict[str, ca.SX]:
        """Every group of symbols by the name of its input, in the order of a kernel's inputs; empty ones left out."""
        named = {"q": self.q, "v": self.v, "u": self.u, "t": self.t, "parameters": self.parameters.column}
        return {name: column for name, column in named.items() if column.numel()}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of symbols of every group."""
        return {name: column.numel() for name, column in self.groups.items()}

    @property
    def scalars(self) -> list[ca.SX]:
        """All symbols, one by one."""
        return [x for column in self.groups.values() for x in ca.vertsplit(column)]

    def scalar(self, expression: Any, what: str, allowed: str) -> ca.SX:
        """Return a 1 x 1 expression in the allowed groups ("q v t parameters")."""
        column = self.checked(as_column(expression, what), what, allowed)
        if column.shape != (1, 1):
            raise ShapeError(f"{what} must be a scalar expression; it has shape {column.shape}")
        return column

    def checked(self, expression: ca.SX, what: str, allowed: str) -> ca.SX:
        """Return the expression if all its symbols belong to the allowed groups; name those that do not."""
        where = {x.element_hash(): group for group, column in self.groups.items() for x in ca.vertsplit(column)}
        for x in ca.symvar(expression):
            group = where.get(x.element_hash())
            if group is None:
                raise ModelError(
                    f"{what} contains the symbol {str(x)!r}, which is not among q, v, controls, time or parameters; "
                    "declare it as one of these, or put a number in its place"
                )
            if group not in allowed.split():
                raise ModelError(f"{what} contains {str(x)!r}, which belongs to {group}; {_REASON[group]}")
        return expression

    def _refuse_shared(self) -> None:
        seen: dict[int, str] = {}
        for group, column in self.groups.items():
            for x in ca.vertsplit(column):
                if (other := seen.setdefault(x.element_hash(), group)) != group:
                    raise ModelError(f"the symbol {str(x)!r} is in {other} and in {group}; make it a symbol of its own")
            if len({x.element_hash() for x in ca.vertsplit(column)}) < column.numel():
                raise ModelError(f"{group} holds the same symbol twice")


_REASON = {
    "v": "only kinetic energy, forces, dissipation and velocity-level constraints may depend on velocities",
    "u": "controls act through `forces`",
}


def symbol_column(value: Any, what: str) -> ca.SX:
    """Return an SX column made of symbols alone; a list of symbols will do."""
    column = as_column(value, what)
    if not column.is_valid_input():
        raise ModelError(f"{what} must consist of symbols, casadi.SX.sym; it is {column}")
    return column


def as_column(value: Any, what: str) -> ca.SX:
    """Return numbers, an SX expression or a list of them as a dense SX column."""
    if isinstance(value, ca.MX):
        raise ModelError(f"{what} is an MX expression; write it with casadi.SX symbols")
    try:
        parts = list(value) if isinstance(value, Sequence) else [value]
        column = ca.densify(ca.vertcat(*[ca.SX(part) for part in parts])) if parts else ca.SX(0, 1)
    except (NotImplementedError, TypeError, RuntimeError) as error:
        raise ModelError(f"{what} is no CasADi SX expression but {type(value).__name__}") from error
    if column.shape[1] != 1:
        raise ShapeError(f"{what} must be a column or a scalar; it has shape {column.shape}")
    return column
