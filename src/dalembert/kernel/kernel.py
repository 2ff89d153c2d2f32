"""A compiled function: CasADi expressions in, machine code out, one state or a batch per call."""

from __future__ import annotations

from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.first_use import CASADI_BRIDGE, CASADI_C_BRIDGE, JAX_BRIDGE, TORCH_BRIDGE
from dalembert.kernel.arrays import call_flat, leading_axes
from dalembert.kernel.engine import Evaluation, FunctionSource, KernelOptions, make_engine, make_options
from dalembert.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dalembert.kernel.c.export import Export
    from dalembert.kernel.program.program import Port
    from dalembert.kernel.report import KernelReport


class Kernel:
    """A CasADi function compiled for where it runs.

    Parameters
    ----------
    function
        A `casadi.Function`: SX, or MX that can be expanded to scalars.
    backend
        `"cpu"`: machine code by LLVM, in this process; `"numpy"`: the plain twin; `"c"`: C99 by the system's
        compiler, as `export_c` writes it; `"cuda"`: a GPU, arrays from CuPy, PyTorch or JAX without copies.
    dtype
        `"float64"` or `"float32"`, or NumPy's names for them: type of inputs, outputs and all arithmetic.
    threads
        Threads that share a batch; the interpreter lock is released.
    width
        Samples per vector; by default what fits a register of this processor.

    Notes
    -----
    A call takes one array per input: one sample `(n,)`, or a batch `(N, n)` or `(..., n)`; a single input serves
    all samples of a batch. A CasADi column is a vector `(n,)`; any other matrix is `(rows, cols)`, in NumPy's
    order. Structural zeros are zeros. Arrays are read and written where they are, whatever their strides.

    A sample's result depends on its inputs only: not on its place in the batch, the size of the batch, the
    number of threads or whether it was a single call, bit for bit.

    A kernel may be called from several threads at once. That is why the status comes with the results
    (`call`) and is no attribute; the timing in `report` is that of whichever call ended last.

    Examples
    --------
    >>> import casadi as ca, numpy as np
    >>> x = ca.SX.sym("x", 2)
    >>> norm = Kernel(ca.Function("norm", [x], [ca.sqrt(x[0] ** 2 + x[1] ** 2)]))
    >>> float(norm(np.array([3.0, 4.0]))[0])
    5.0
    """

    final = False
    """Whether a status is the last word; if not, samples that are declined may be solved by other means."""

    spare: tuple[Any, ...] = ()
    """Values of the last inputs, where a call may leave these off."""

    def __init__(
        self,
        function: Any,
        *,
        backend: str = "cpu",
        dtype: Any = "float64",
        threads: int = 1,
        width: int | None = None,
    ) -> None:
        self._start(FunctionSource(function), backend, make_options(dtype, threads, width))

    @classmethod
    def cached(
        cls,
        key: Sequence[str],
        build: Callable[[], Any],
        *,
        backend: str = "cpu",
        dtype: Any = "float64",
        threads: int = 1,
        width: int | None = None,
    ) -> Kernel:
        """Return a kernel by name: where it was compiled before, nothing is traced and CasADi is not imported.

        Parameters
        ----------
        key
            Strings that determine the function: whatever changes what `build` returns must change one of them (a
            hash of a model's content, the name of a quantity). The code of this package need not be among them: any
            change of it makes other entries. Code outside that builds expressions does.
        build
            Returns the `casadi.Function`. Called where the cache has no such entry, for a backend other than "cpu",
            and when `function` is asked for (derivatives, `export_c`).

        Examples
        --------
        >>> def build():
        ...     import casadi as ca
        ...     x = ca.SX.sym("x", 2)
        ...     return ca.Function("norm", [x], [ca.sqrt(x[0] ** 2 + x[1] ** 2)])
        >>> norm = Kernel.cached(["doc example", "norm of two"], build)
        >>> float(norm(np.array([3.0, 4.0]))[0])
        5.0
        """
        if not callable(build):
            raise ModelError(f"build is a function that returns the casadi.Function, not {build!r:.80}")
        kernel = cls.__new__(cls)
        kernel._start(FunctionSource(build=build, parts=key), backend, make_options(dtype, threads, width))
        return kernel

    def _start(self, source: FunctionSource, backend: str, options: KernelOptions) -> None:
        """Compile, or load."""
        self._source = source
        self.backend = backend
        self.options = options
        self.engine = make_engine(source, backend, self.options)
        self._face()

    def _face(self) -> None:
        """Set what every kernel has, from its engine."""
        self._short = getattr(self.engine, "short", None) or _refuse
        self._record = getattr(self.engine, "short_record", None)
        self._plain = _refuse if self._record is None else self._record.plain
        self.name: str = self.engine.name
        self._arity = len(self.inputs)
        self._bare = len(self.outputs) == 1
        self._axes = len(self.outputs[0].shape) if self.outputs else 0
        self._last: tuple[int, float] | None = None

    @property
    def function(self) -> Any:
        """The CasADi function; built now where the kernel came from the cache by name."""
        function = self._source.function
        shapes = tuple(function.size_in(i) for i in range(function.n_in()))
        if shapes != tuple((port.rows, port.cols) for port in self.inputs):
            raise ModelError(
                f"kernel {self.name!r} was compiled under the key {self._source.parts} for {self.inputs}, but its "
                f"build function now returns inputs of shapes {shapes}; the key must change when the function does"
            )
        return function

    @property
    def parts(self) -> tuple[str, ...] | None:
        """The key that the kernel was made by (`Kernel.cached`); None: it was made from a function."""
        return self._source.parts

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function and the options; the code is loaded from the cache, or compiled, where it arrives."""
        return _restore, (self._source, self.backend, self.options, self.spare)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Names and shapes of the inputs."""
        return self.engine.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Names and shapes of the outputs."""
        return self.engine.outputs

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Return one array per output (the bare array where there is one); `out` holds arrays to reuse."""
        if out is None:
            result = self._plain(*inputs)
            if result is not NotImplemented:
                return result
        elif len(inputs) == self._arity:
            arrays = _arrays(out)
            result = self._short(*inputs, *arrays)
            if result is None:
                return arrays[0] if self._bare else arrays
        if self._left_off(inputs):
            return self(*inputs, *self.spare, out=out)
        outputs, _ = self._evaluate(inputs, out, False)
        return outputs[0] if self._bare else tuple(outputs)

    def call(self, *inputs: Any, out: Any = None) -> Evaluation:
        """Return all outputs and the status of every sample."""
        if len(inputs) == self._arity:
            arrays = () if out is None else _arrays(out)
            result = self._short(*inputs, *arrays, None)
            if result is not NotImplemented:
                outputs, status = (result[:-1], result[-1]) if out is None else (arrays, result)
                return self._evaluation(outputs, status)
        elif self._left_off(inputs):
            return self.call(*inputs, *self.spare, out=out)
        outputs, status = self._evaluate(inputs, out, True)
        return self._evaluation(tuple(outputs), status)

    def _left_off(self, inputs: tuple[Any, ...]) -> bool:
        """Return whether the spare inputs, and no others, were left off."""
        return bool(self.spare) and len(inputs) == self._arity - len(self.spare)

    def _evaluation(self, outputs: tuple[Any, ...], status: Any) -> Evaluation:
        """Return outputs and status, whose shape is that of the batch: () for one sample."""
        single = bool(outputs) and outputs[0].ndim == self._axes
        # machine code writes 1 where an output is not finite
        finite, difference = np.uint8(Status.FINITE), np.uint8(Status.FINITE - Status.NONFINITE)  # CuPy takes no enums
        verdict = finite - difference * status
        return Evaluation(outputs, verdict.reshape(()) if single else verdict)

    def _evaluate(self, inputs: tuple[Any, ...], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        if self._record is not None:
            self._record.forget()
        start = perf_counter()
        batch = leading_axes(inputs, self.inputs)
        if batch is None:
            outputs, status = self.engine.call(inputs, out, with_status)
            self._note(outputs[0] if outputs else None, start)
            return outputs, status
        ports = self.inputs, self.outputs
        result = call_flat(lambda flat, rows: self.engine.call(flat, rows, with_status), batch, inputs, out, ports)
        self._last = (prod(batch), perf_counter() - start)
        return result

    def _note(self, output: Any, start: float) -> None:
        """Remember how many samples a call had, seen from its first output, and how long it took."""
        seconds = perf_counter() - start
        samples = 1 if output is None or output.ndim == self._axes else len(output)
        self._last = (samples, seconds)

    def report(self) -> KernelReport:
        """Return what was compiled, and how fast the last call was."""
        from dalembert.kernel.report import KernelReport

        report: dict[str, Any] = dict(self.engine.figures)
        last = (self._record and self._record.last()) or self._last
        if last is not None:
            samples, seconds = last
            seconds = self.engine.elapsed() or seconds
            report |= {"samples": samples, "seconds": seconds, "samples_per_second": samples / seconds}
            peak = self.engine.peak()
            if peak is not None:
                work = report["traced_operations"] * samples / seconds
                report["share_of_peak"] = work / (peak * self.options.threads)
        return KernelReport(self.name, self.backend, self.options.dtype, **report)

    def explain(self, a: Any) -> str:
        """Name the constraint rows that accelerations a do not meet; nothing where a kernel knows no rows."""
        return ""

    def jacobian(
        self,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        sparse: bool = False,
    ) -> Any:
        """Return the kernel of the Jacobian; see `derivatives.jacobian`."""
        from dalembert.kernel.derivatives import jacobian

        return jacobian(self, inputs, outputs, sparse)

    def jvp(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Kernel:
        """Return the kernel of the Jacobian times a vector; see `derivatives.directional`."""
        from dalembert.kernel.derivatives import directional

        return directional(self, inputs, outputs, reverse=False)

    def vjp(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Kernel:
        """Return the kernel of a vector times the Jacobian; see `derivatives.directional`."""
        from dalembert.kernel.derivatives import directional

        return directional(self, inputs, outputs, reverse=True)

    def export_c(self, folder: str | Path, name: str | None = None, *, casadi: bool = False) -> Export:
        """Write the function as C99 with a header, a CMake list and an example; see `c/export.py`.

        With `casadi=True` also what `casadi.external` reads: the same function and its derivatives behind CasADi's
        C interface, see `bridges/casadi/external.py`.
        """
        from dalembert.kernel.c.export import export_c

        export = export_c(self._source.expressions, folder, self.options.dtype, name)
        if casadi:
            CASADI_C_BRIDGE.write_external(self, export)
        return export

    def to_casadi(self, outputs: Sequence[str] | str | None = None, *, compiled: bool = False) -> Any:
        """Return the kernel as a `casadi.Function` that embeds in any expression.

        Parameters
        ----------
        outputs
            Names; all but `status` where None. A verdict is no smooth function, and without it its comparisons are
            gone from the expressions.
        compiled
            False: an SX function, whose expressions CasADi may expand, differentiate and print. True: a node for MX
            graphs that runs this kernel's machine code, several times as fast as CasADi's interpreter; Jacobian,
            forward and reverse derivatives are kernels, compiled when they are first asked for. It lives as long as
            the process: CasADi's graphs do not own what they call.
        """
        return CASADI_BRIDGE.to_casadi(self, outputs, compiled)

    def to_jax(self, *, route: str = "auto") -> Any:
        """Return the kernel as a function of JAX arrays, for jit, vmap, grad, jvp, jacfwd, jacrev and scan.

        Parameters
        ----------
        route
            `"ffi"`: XLA calls the machine code, without Python and without copies. `"callback"`: XLA calls Python
            (`jax.pure_callback`), ten to a hundred times slower for a single sample, on any platform. `"auto"`: the
            first, or the second with a warning where this version of JAX is not known to call it.

        Notes
        -----
        A kernel of `backend="cuda"` runs on the GPU, on XLA's stream and memory. Arrays have the kernel's dtype:
        float64 needs `jax.config.update("jax_enable_x64", True)`. Leading axes are a batch; an input without them
        serves all samples. Inputs that a call of the kernel may leave off may be left off here. Outputs are those of
        the kernel; `status` has the derivative zero.
        """
        return JAX_BRIDGE.to_jax(self, route)

    def to_torch(self) -> Any:
        """Return the kernel as a function of PyTorch tensors, an operator of `torch.library`.

        For autograd of any order, `torch.func` (vmap, grad, jacrev) and `torch.compile`. Tensors have the kernel's
        dtype and, for `backend="cuda"`, lie on the device: work is queued on PyTorch's current stream. Leading axes are
        a batch; an input without them serves all samples. `status` has no gradient.
        """
        return TORCH_BRIDGE.to_torch(self)

    def __repr__(self) -> str:
        def shapes(ports: tuple[Port, ...]) -> str:
            return ", ".join(f"{port.name}{list(port.shape)}" for port in ports)

        return f"Kernel({self.name}: {shapes(self.inputs)} -> {shapes(self.outputs)}, {self.backend})"


def _refuse(*_: Any) -> Any:
    """Stand for the short way where there is none."""
    return NotImplemented


def _arrays(out: Any) -> tuple[Any, ...]:
    """Return the arrays of `out=`; something that the short way refuses where there are none."""
    if isinstance(out, np.ndarray):
        return (out,)
    if isinstance(out, tuple | list) and out and all(isinstance(array, np.ndarray) for array in out):
        return tuple(out)
    return (NotImplemented,)


def _restore(source: FunctionSource, backend: str, options: KernelOptions, spare: tuple[Any, ...]) -> Kernel:
    """Return a kernel that was pickled."""
    kernel = Kernel.__new__(Kernel)
    kernel._start(source, backend, options)
    kernel.spare = spare
    return kernel
