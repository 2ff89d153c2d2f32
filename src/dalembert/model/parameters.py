"""Parameters of a system: symbols that stay inputs of its kernels, with names and, where given, default values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError
from dalembert.names import near_matches
from dalembert.types import Array


@dataclass(frozen=True, eq=False)
class Parameters:
    """Named symbols, packed into one column.

    Attributes
    ----------
    names
        One name per symbol; a symbol may be a column of several numbers.
    symbols
        One SX column per name.
    defaults
        Values by name, for those that have one.
    """

    names: tuple[str, ...]
    symbols: tuple[ca.SX, ...]
    defaults: Mapping[str, Array]

    @classmethod
    def of(cls, values: Any) -> Parameters:
        """Read None, a symbol, a list of symbols, or a mapping from names; any symbol may be (symbol, default)."""
        if values is None:
            return cls((), (), {})
        if isinstance(values, Mapping):
            pairs = list(values.items())
        else:
            entries = values if isinstance(values, Sequence) else [values]
            pairs = [(_own_name(entry), entry) for entry in entries]
        symbols = {}
        defaults = {}
        for name, entry in pairs:
            symbol, *default = entry if isinstance(entry, tuple) else (entry,)
            if name in symbols:
                raise ModelError(f"two parameters are called {name!r}; give a mapping from distinct names to symbols")
            if not isinstance(symbol, ca.SX) or not symbol.is_valid_input() or symbol.shape[1] != 1:
                raise ModelError(f"parameter {name!r} must be an SX column of symbols, casadi.SX.sym; got {symbol!r}")
            symbols[name] = symbol
            if default:
                defaults[name] = _value(name, default[0], symbol.numel())
        return cls(tuple(symbols), tuple(symbols.values()), defaults)

    @cached_property
    def column(self) -> ca.SX:
        """All symbols in one column."""
        return ca.vertcat(*self.symbols) if self.symbols else ca.SX(0, 1)

    @cached_property
    def _packed_defaults(self) -> Array:
        packed = self._from_names({})
        packed.flags.writeable = False
        return packed

    def pack(self, values: Any = None) -> Array:
        """Return the column as numbers, (k,) or (..., k): from a mapping over the defaults, or an array as it is."""
        if values is None:
            return self._packed_defaults
        if isinstance(values, Mapping):
            return self._from_names(values)
        if not self.names:
            raise ModelError("this system has no parameters: give their symbols as parameters= where it is made")
        array, k = floats(values, "parameters"), self.column.numel()
        if array.shape[-1:] != (k,):
            raise ShapeError(
                f"parameters must have shape ({k},) or (..., {k}), in the order {', '.join(self.names)}, "
                f"or be a mapping from these names; they have shape {array.shape}"
            )
        return array

    def with_defaults(self, values: Mapping[str, Any]) -> Parameters:
        """Return the same parameters with other default values."""
        self._refuse_unknown(values)
        sizes = dict(zip(self.names, self.symbols, strict=True))
        new = {name: _value(name, value, sizes[name].numel()) for name, value in values.items()}
        return replace(self, defaults={**self.defaults, **new})

    def _from_names(self, values: Mapping[str, Any]) -> Array:
        self._refuse_unknown(values)
        merged = {**self.defaults, **values}
        missing = [name for name in self.names if name not in merged]
        if missing:
            raise ModelError(
                f"no value for {', '.join(map(repr, missing))}: pass parameters={{name: value}}, or give a default "
                "where the system is made, parameters={name: (symbol, value)}"
            )
        columns = [
            _value(name, merged[name], symbol.numel()) for name, symbol in zip(self.names, self.symbols, strict=True)
        ]
        if not columns:
            return np.zeros(0)
        batches = {column.shape[:-1] for column in columns if column.ndim > 1}
        if len(batches) > 1:
            raise ShapeError(f"parameter values have batches of different shapes: {sorted(batches)}")
        batch = next(iter(batches), ())
        return np.concatenate([np.broadcast_to(c, (*batch, c.shape[-1])) for c in columns], axis=-1)

    def _refuse_unknown(self, values: Mapping[str, Any]) -> None:
        for name in values:
            if name not in self.names:
                near = near_matches(name, self.names)
                hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(self.names) or 'none'}"
                raise ModelError(f"no parameter is called {name!r}{hint}")


def _own_name(entry: Any) -> str:
    """Return the name that a symbol was made with ("k" for the column k_0, k_1, ...)."""
    symbol = entry[0] if isinstance(entry, tuple) else entry
    if not isinstance(symbol, ca.SX) or not symbol.is_valid_input() or symbol.numel() == 0:
        raise ModelError(f"parameters must be SX symbols, casadi.SX.sym; got {symbol!r}")
    first = str(symbol[0])
    return first if symbol.numel() == 1 else first.removesuffix("_0")


def _value(name: str, value: Any, size: int) -> Array:
    """Return the value of one parameter as (size,) or, for a batch, (..., size); (...) will do where size is 1."""
    array = floats(value, f"the value of parameter {name!r}")
    if size == 1 and array.shape[-1:] != (1,):
        array = array[..., None]
    if array.shape[-1:] != (size,):
        raise ShapeError(f"parameter {name!r} takes {size} numbers; the value has shape {np.shape(value)}")
    return array
