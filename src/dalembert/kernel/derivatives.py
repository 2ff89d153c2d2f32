"""Derivatives of a kernel: CasADi differentiates the expressions sparsely, the result is compiled the same way.

Elements of matrices count in C order, as in the arrays of a call. Derivatives of a kernel that was made by name
(`Kernel.cached`, `mechanism.compile`) are stored by name, too: where they were compiled before, nothing is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalembert.errors import ModelError
from dalembert.kernel.program.trace import scalar_function

if TYPE_CHECKING:
    from dalembert.kernel.kernel import Kernel
    from dalembert.kernel.program.program import Port


@dataclass(frozen=True)
class SparseBatch:
    """Matrices of one pattern: data `(N, nnz)`, and the pattern as compressed columns."""

    data: NDArray[Any]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    shape: tuple[int, int]

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, sample: int) -> Any:
        """Return one matrix as `scipy.sparse.csc_array`."""
        from scipy.sparse import csc_array

        return csc_array((self.data[sample], self.indices, self.indptr), shape=self.shape)


class SparseJacobian:
    """A Jacobian whose calls return its nonzeros in a fixed pattern.

    A single call returns a `scipy.sparse.csc_array` per (output, input) pair, a batch a `SparseBatch`; the
    bare one where there is a single pair. `patterns` holds (indices, indptr, shape) per pair, `kernel`
    computes the nonzeros.
    """

    def __init__(self, kernel: Kernel, patterns: list[tuple[Any, Any, tuple[int, int]]]) -> None:
        self.kernel = kernel
        self.patterns = patterns

    def __call__(self, *inputs: Any) -> Any:
        """Return the matrices at one sample or a batch."""
        results: list[Any] = []
        for data, pattern in zip(self.kernel.call(*inputs).outputs, self.patterns, strict=True):
            batch = SparseBatch(np.atleast_2d(data), *pattern)
            results.append(batch if data.ndim == 2 else batch[0])
        return results[0] if len(results) == 1 else tuple(results)


def jacobian(
    kernel: Kernel, inputs: Sequence[str] | None, outputs: Sequence[str] | None, sparse: bool
) -> Kernel | SparseJacobian:
    """Return the kernel of d output / d input for every chosen output and input.

    Parameters
    ----------
    inputs, outputs
        Names; all where None. Results are ordered by output, then by input.
    sparse
        False: a Kernel with outputs `d<output>_d<input>` of shape `(size of output, size of input)`.
        True: a `SparseJacobian`.

    Notes
    -----
    CasADi colours the sparsity pattern, so the cost grows with the number of colours, not of columns
    (Gebremedhin, Manne & Pothen 2005).
    """
    pairs = [
        (o, i)
        for o in chosen_ports(kernel.outputs, outputs, "output")
        for i in chosen_ports(kernel.inputs, inputs, "input")
    ]
    names = [f"d{kernel.outputs[o].name}_d{kernel.inputs[i].name}" for o, i in pairs]
    known = [port.name for port in kernel.inputs]

    def blocks() -> tuple[list[Any], list[Any]]:
        import casadi

        symbols, expressions = _expressions(kernel)
        return symbols, [casadi.jacobian(_flat(expressions[o]), _flat(symbols[i])) for o, i in pairs]

    if not sparse:
        return _compile(kernel, "jacobian", blocks, known, names)
    symbols, matrices = blocks()
    made = _compile(
        kernel, "sparse_jacobian", lambda: (symbols, [_nonzeros(block) for block in matrices]), known, names
    )
    patterns = [
        (
            np.array(block.sparsity().row(), np.int32),
            np.array(block.sparsity().colind(), np.int32),
            block.shape,
        )
        for block in matrices
    ]
    return SparseJacobian(made, patterns)


def directional(
    kernel: Kernel, inputs: Sequence[str] | None, outputs: Sequence[str] | None, *, reverse: bool
) -> Kernel:
    """Return the kernel of a directional derivative, without the Jacobian: forward J s, or reverse J^T s.

    The kernel's inputs are those of the function, then one seed per chosen input (forward) or output (reverse), named
    `d<name>` (`d<name>_` where the function has an input of that name) and shaped like it. Its outputs are the
    derivatives of the chosen outputs (forward) or with respect to the chosen inputs (reverse), named and shaped
    likewise.
    """
    into = chosen_ports(kernel.inputs, inputs, "input")
    out_of = chosen_ports(kernel.outputs, outputs, "output")
    inner, outer = [kernel.inputs[i] for i in into], [kernel.outputs[o] for o in out_of]
    if reverse:
        inner, outer = outer, inner

    def products() -> tuple[list[Any], list[Any]]:
        import casadi

        symbols, expressions = _expressions(kernel)
        x = casadi.vertcat(*[_flat(symbols[i]) for i in into])
        y = casadi.vertcat(*[_flat(expressions[o]) for o in out_of])
        seeds = [casadi.SX.sym(f"d{port.name}", port.rows, port.cols) for port in inner]
        seed = casadi.vertcat(*[_flat(s) for s in seeds])
        flat = casadi.densify(casadi.jtimes(y, x, seed, reverse))
        return symbols + seeds, _unflatten(flat, outer)

    names = [port.name for port in kernel.inputs] + [f"d{port.name}" for port in inner]
    return _compile(kernel, "vjp" if reverse else "jvp", products, names, [f"d{port.name}" for port in outer])


def _expressions(kernel: Kernel) -> tuple[list[Any], list[Any]]:
    """Return fresh symbols for the inputs and the outputs as expressions of them."""
    import casadi

    symbols = [casadi.SX.sym(port.name, port.rows, port.cols) for port in kernel.inputs]
    return symbols, scalar_function(kernel.function).call(symbols)


def _flat(matrix: Any) -> Any:
    """Return the elements as a column, in C order."""
    import casadi

    return casadi.vec(matrix.T)


def _nonzeros(matrix: Any) -> Any:
    """Return the nonzeros as a dense column."""
    import casadi

    return casadi.SX(casadi.Sparsity.dense(matrix.nnz(), 1), casadi.vertcat(*matrix.nonzeros()))


def _unflatten(flat: Any, ports: Sequence[Port]) -> list[Any]:
    """Cut a column into matrices shaped like the ports."""
    import casadi

    results, start = [], 0
    for port in ports:
        piece = flat[start : start + port.size]
        results.append(casadi.reshape(piece, port.cols, port.rows).T)
        start += port.size
    return results


def chosen_ports(ports: Sequence[Port], names: Sequence[str] | None, what: str) -> list[int]:
    """Return the places of the named ports; all where no names are given."""
    known = [port.name for port in ports]
    if names is None:
        return list(range(len(known)))
    wanted: list[Any] = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    for name in wanted:
        if name not in known:
            raise ModelError(f"{what} {name!r} does not exist; there are {', '.join(map(repr, known))}")
        if wanted.count(name) > 1:
            raise ModelError(f"{what} {name!r} is named twice")
    return [known.index(name) for name in wanted]


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names, with underscores behind those that stood before: the seed of `q` beside an input `dq`."""
    result: list[str] = []
    for name in names:
        while name in result:
            name += "_"
        result.append(name)
    return result


def _compile(
    kernel: Kernel,
    label: str,
    expressions: Callable[[], tuple[list[Any], list[Any]]],
    names_in: list[str],
    names_out: list[str],
) -> Kernel:
    """Compile derivatives with the options of their kernel, or load what was compiled under the same name.

    `expressions` returns symbols of the inputs and the derivatives; it is called where the cache has no entry.
    """
    options = kernel.options
    names = _distinct(names_in + names_out)

    def build() -> Any:
        import casadi

        symbols, results = expressions()
        return casadi.Function(
            f"{kernel.name}_{label}", symbols, results, names[: len(names_in)], names[len(names_in) :]
        )

    rest: Any = {
        "backend": kernel.backend, "dtype": options.dtype, "threads": options.threads, "width": options.width
    }  # fmt: skip
    parts = kernel.parts
    if parts is None:
        return type(kernel)(build(), **rest)
    return type(kernel).cached([*parts, label, *names_in, "->", *names_out], build, **rest)
