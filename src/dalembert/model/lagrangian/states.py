"""States handed to a Lagrangian system, checked: q, v, u, t and parameters, each single or a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import ModelError, ShapeError
from dalembert.model.lagrangian.quantities import input_names
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.lagrangian.lagrangian import Lagrangian


@dataclass(frozen=True, eq=False)
class States:
    """One array per input by name, (size,) or (..., size); only inputs that the system has."""

    system: Lagrangian
    arrays: dict[str, Array]

    @classmethod
    def of(cls, system: Lagrangian, parameters: Any = None, **given: Any) -> States:
        """Check shapes; u and t count as zero where they are None."""
        sizes = system.symbols.sizes
        if given.get("u") is not None and "u" not in sizes:
            raise ModelError("this system has no controls: give their symbols as controls= where it is made")
        arrays = {name: _column(name, given[name], sizes[name]) for name in given if name in sizes}
        packed = system.parameters.pack(parameters)
        if "parameters" in sizes:
            arrays["parameters"] = packed
        return cls(system, arrays)

    def evaluate(self, what: str) -> Any:
        """Return the outputs of a quantity's kernel for these states."""
        return self.system.compile(what)(*[self.arrays[name] for name in input_names(self.system.symbols, what)])

    def matrix(self, what: str) -> Array:
        """Return the output of a kernel as a matrix (..., rows, n)."""
        return self._as_matrix(self.evaluate(what))

    def terms(self) -> tuple[Array, Array, Array, Array]:
        """Return M, bias, A and drift."""
        M, bias, A, drift = self.evaluate("terms")
        return self._as_matrix(M), bias, self._as_matrix(A), drift

    def _as_matrix(self, x: Array) -> Array:
        """Return a matrix of n columns; kernels give one with a single column as a vector."""
        return x[..., None] if len(self.system.coordinates) == 1 else x

    @property
    def batch(self) -> tuple[int, ...]:
        """() for one state; the leading axes of a batch."""
        batches = {array.shape[:-1] for array in self.arrays.values() if array.ndim > 1}
        if len(batches) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in self.arrays.items())
            raise ShapeError(f"batches must have the same leading axes; the inputs are {shapes}")
        return next(iter(batches), ())

    def taken(self, index: Array) -> States:
        """Return the samples of a batch with these numbers, counted in C order."""
        flat = {name: array.reshape(-1, array.shape[-1]) for name, array in self.arrays.items() if array.ndim > 1}
        taken = self.arrays | {name: rows[index] for name, rows in flat.items()}
        return States(self.system, taken)

    def finite(self) -> Array:
        """Per sample, whether all inputs are finite; the shape of the batch."""
        flags = [np.isfinite(array).all(axis=-1) for array in self.arrays.values()]
        return np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*flags)), self.batch)

    def refuse_batch_and_nonfinite(self) -> None:
        """Refuse what a single solve cannot take, by the name of the coordinate."""
        if self.batch:
            raise ShapeError(f"solve takes one state; this is a batch of shape {self.batch}: use forward")
        for name, array in self.arrays.items():
            bad = np.flatnonzero(~np.isfinite(array))
            if bad.size:
                of = f" (coordinate {self.system.coordinates[bad[0]]!r})" if name in ("q", "v") else ""
                raise ModelError(f"{name}[{bad[0]}]{of} is {array[bad[0]]}; a state must be finite")


def _column(name: str, value: Any, size: int) -> Array:
    """Return an input as floats, (size,) or (..., size)."""
    if value is None:
        return np.zeros(size)
    if name == "t":  # a time may be given without the axis of its one entry
        times = floats(value, name)
        return times if times.shape[-1:] == (1,) else times[..., None]
    return vectors(value, size, name)
