"""Kernels as CasADi functions: the expressions themselves, or a node of an MX graph that runs machine code.

Outputs called `status` are left out unless they are named: a verdict is no smooth function, and an optimiser that
carried it would carry its comparisons.

CasADi stores matrices by columns, kernels take rows; vectors are the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.bridges.chosen import smooth_outputs
from dalembert.errors import UnsupportedError
from dalembert.kernel.program.trace import scalar_function

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.kernel.program.program import Port


def to_casadi(kernel: Kernel, outputs: Sequence[str] | str | None = None, compiled: bool = False) -> ca.Function:
    """Return a kernel as a `casadi.Function`; see `Kernel.to_casadi`."""
    places = smooth_outputs(kernel, outputs)
    return _compiled(kernel, places) if compiled else _expressions(kernel, places)


def _expressions(kernel: Kernel, places: list[int]) -> ca.Function:
    """Return the SX function with some outputs; what only the others need is gone with them."""
    function = scalar_function(kernel.function)
    symbols = [ca.SX.sym(port.name, port.rows, port.cols) for port in kernel.inputs]
    results = function.call(symbols)
    names = [port.name for port in kernel.inputs]
    return ca.Function(
        kernel.name, symbols, [results[k] for k in places], names, [kernel.outputs[k].name for k in places]
    )


# ----------------------------------------------------------------------------------------------------------------------
# Machine code as a node of a graph.


_ALIVE: dict[tuple[int, tuple[int, ...]], Any] = {}
"""Callbacks by kernel and outputs, with their kernels: CasADi's graphs point to them without owning them, so one that
were freed would leave a graph that crashes when it is evaluated."""


def _compiled(kernel: Kernel, places: list[int]) -> ca.Function:
    """Return the callback of a kernel; the same one for the same outputs, kept for the life of the process."""
    if kernel.backend not in ("cpu", "c", "numpy") or kernel.options.dtype != "float64":
        raise UnsupportedError(
            f"CasADi computes in double precision on the processor; this kernel is {kernel.options.dtype} on "
            f"{kernel.backend!r}: compile it with dtype='float64' and backend='cpu'"
        )
    key = (id(kernel), tuple(places))
    if key not in _ALIVE:
        _ALIVE[key] = KernelCallback(kernel, places)
    return _ALIVE[key]


class KernelCallback(ca.Callback):
    """A kernel in machine code as a CasADi function; arguments are read and written where CasADi has them.

    The Jacobian is `kernel.jacobian`, directional derivatives are `kernel.jvp` and `kernel.vjp`: callbacks themselves,
    each compiled when CasADi first asks for it, so derivatives of any order are there.

    A callback holds Python's interpreter lock: `Function.map(n, "thread")` runs one after the other. A kernel that is
    called with a batch is quicker.
    """

    def __init__(self, kernel: Kernel, places: list[int]) -> None:
        ca.Callback.__init__(self)
        self.kernel, self.places = kernel, places
        self._made: dict[Any, KernelCallback] = {}
        self.construct(re.sub(r"\W|^(?=\d)|_(?=_)", "", kernel.name) or "kernel", {})

    def get_n_in(self) -> int:
        """Return the number of inputs."""
        return len(self.kernel.inputs)

    def get_n_out(self) -> int:
        """Return the number of outputs."""
        return len(self.places)

    def get_name_in(self, i: int) -> str:
        """Return the name of an input."""
        return self.kernel.inputs[i].name

    def get_name_out(self, i: int) -> str:
        """Return the name of an output."""
        return self.kernel.outputs[self.places[i]].name

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """Return the shape of an input."""
        port = self.kernel.inputs[i]
        return ca.Sparsity.dense(port.rows, port.cols)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """Return the shape of an output."""
        port = self.kernel.outputs[self.places[i]]
        return ca.Sparsity.dense(port.rows, port.cols)

    def has_eval_buffer(self) -> bool:
        """Take memory, not matrices."""
        return True

    def eval_buffer(self, arg: Sequence[Any], res: Sequence[Any]) -> int:
        """Evaluate; an input that is not there is zero, an output that is not there is not wanted."""
        kernel = self.kernel
        views = [_view(buffer, port) for buffer, port in zip(arg, kernel.inputs, strict=True)]
        place = dict(zip(self.places, res, strict=True))
        out = tuple(_view(place.get(k), port) for k, port in enumerate(kernel.outputs))
        kernel(*views, out=out)
        return 0

    def has_jacobian(self) -> bool:
        """Return whether there is a Jacobian."""
        return True

    def get_jacobian(self, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any) -> ca.Function:
        """Return inputs, outputs -> d output / d input for every output and input."""
        x, y = self._symbols(inames)
        rows = [_by_columns(self.kernel.outputs[k]) for k in self.places]
        columns = [_by_columns(port) for port in self.kernel.inputs]
        blocks = self._derived("jacobian").call(x)
        orders = [(row, column) for row in rows for column in columns]
        ordered = [block[row, column] for block, (row, column) in zip(blocks, orders, strict=True)]
        return ca.Function(name, [*x, *y], ordered, inames, onames, opts)

    def has_forward(self, nfwd: int) -> bool:
        """Return whether there are forward derivatives: any number."""
        return True

    def get_forward(self, nfwd: int, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any) -> ca.Function:
        """Return inputs, outputs, seeds side by side -> J seeds."""
        return self._directional("jvp", nfwd, name, inames, onames, opts)

    def has_reverse(self, nadj: int) -> bool:
        """Return whether there are reverse derivatives: any number."""
        return True

    def get_reverse(self, nadj: int, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any) -> ca.Function:
        """Return inputs, outputs, seeds side by side -> J^T seeds."""
        return self._directional("vjp", nadj, name, inames, onames, opts)

    def _directional(
        self, what: str, count: int, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any
    ) -> ca.Function:
        x, y = self._symbols(inames)
        product = self._derived(what)
        ports = product.kernel.inputs[len(x) :]
        seeds = [ca.MX.sym(f"seed_{k}", port.rows, port.cols * count) for k, port in enumerate(ports)]
        columns = [ca.horzsplit(seed, port.cols) for seed, port in zip(seeds, ports, strict=True)]
        results = [product.call([*x, *(column[k] for column in columns)]) for k in range(count)]
        together = [ca.horzcat(*parts) for parts in zip(*results, strict=True)]
        return ca.Function(name, [*x, *y, *seeds], together, inames, onames, opts)

    def _symbols(self, names: Sequence[str]) -> tuple[list[ca.MX], list[ca.MX]]:
        """Return symbols of the inputs, and of the outputs, which CasADi gives to derivatives and nobody here needs."""
        shapes = [self.size_in(i) for i in range(self.n_in())] + [self.size_out(i) for i in range(self.n_out())]
        symbols = [ca.MX.sym(names[k], *shape) for k, shape in enumerate(shapes)]
        return symbols[: self.n_in()], symbols[self.n_in() :]

    def _derived(self, what: str) -> KernelCallback:
        """Return the callback of a derivative."""
        if what not in self._made:
            kernel = getattr(self.kernel, what)(outputs=[self.kernel.outputs[k].name for k in self.places])
            self._made[what] = KernelCallback(kernel, list(range(len(kernel.outputs))))
        return self._made[what]


def _by_columns(port: Port) -> Any:
    """Return where the elements of a port, counted by columns as CasADi does, are among those counted by rows."""
    if port.cols == 1:
        return slice(None)
    return np.arange(port.size).reshape(port.rows, port.cols).T.ravel().tolist()


def _view(buffer: Any, port: Port) -> np.ndarray:
    """Return memory of CasADi as an array; zeros where there is none."""
    flat = np.zeros(port.size) if buffer is None else np.frombuffer(buffer, dtype=float)
    return flat if port.cols == 1 else flat.reshape(port.cols, port.rows).T
