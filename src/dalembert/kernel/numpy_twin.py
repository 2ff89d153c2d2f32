"""The plain twin of compiled code: one vectorised NumPy line per operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalembert.kernel.arrays import check_inputs, make_outputs
from dalembert.kernel.engine import FunctionSource, KernelOptions
from dalembert.kernel.program.lower import lower
from dalembert.kernel.program.order import last_uses
from dalembert.kernel.program.program import Op, Program

# ----------------------------------------------------------------------------------------------------------------------
# The plain twin: one vectorised NumPy line per operation; the oracle of the compiled backends.


LINES: dict[int, Callable[..., Any]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.DIV: lambda a, b: a / b,
    Op.NEG: lambda a: -a,
    Op.FMA: lambda a, b, c: a * b + c,
    Op.FMS: lambda a, b, c: a * b - c,
    Op.FNMA: lambda a, b, c: c - a * b,
    Op.SQRT: np.sqrt,
    Op.FABS: np.abs,
    Op.FLOOR: np.floor,
    Op.CEIL: np.ceil,
    Op.SIGN: lambda a: np.where(a < 0, -1, np.where(a > 0, 1, a)),
    Op.COPYSIGN: np.copysign,
    Op.FMIN: np.fmin,
    Op.FMAX: np.fmax,
    Op.LT: np.less,
    Op.LE: np.less_equal,
    Op.EQ: np.equal,
    Op.NE: np.not_equal,
    Op.NOT: lambda a: a == 0,
    Op.AND: np.logical_and,
    Op.OR: np.logical_or,
    Op.IF_ELSE_ZERO: lambda a, b: np.where(a != 0, b, 0),
    Op.FMOD: np.fmod,
    Op.REMAINDER: lambda a, b: _remainder(a, b),
    Op.EXP: np.exp,
    Op.EXPM1: np.expm1,
    Op.LOG: np.log,
    Op.LOG1P: np.log1p,
    Op.POW: np.power,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TAN: np.tan,
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos,
    Op.ATAN: np.arctan,
    Op.ATAN2: np.arctan2,
    Op.SINH: np.sinh,
    Op.COSH: np.cosh,
    Op.TANH: np.tanh,
    Op.ASINH: np.arcsinh,
    Op.ACOSH: np.arccosh,
    Op.ATANH: np.arctanh,
    Op.HYPOT: np.hypot,
    Op.ERF: lambda a: _scipy("erf")(a),
    Op.ERFINV: lambda a: _scipy("erfinv")(a),
}


def _scipy(name: str) -> Callable[..., Any]:
    import scipy.special

    return getattr(scipy.special, name)


@np.vectorize
def _remainder(a: float, b: float) -> float:
    """Return C's remainder of two numbers: exact, ties to even; NaN where b is 0 or a infinite."""
    import math

    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    return math.remainder(a, b)


def evaluate(program: Program, inputs: Sequence[NDArray[Any]], dtype: Any = np.float64) -> list[NDArray[Any]]:
    """Evaluate a program on a batch.

    Parameters
    ----------
    program
        Any Program; the order of its instructions does not matter to the result.
    inputs
        One array `(N, size)` per input, elements in C order; N = 1 broadcasts.
    dtype
        Type of every value.

    Returns
    -------
    list
        One array `(N, size)` per output.
    """
    n = max((len(x) for x in inputs if len(x) != 1), default=1)
    outputs = [np.zeros((n, port.size), dtype) for port in program.outputs]
    if n == 0:
        return outputs
    values: list[Any] = [None] * len(program)
    expire = _expiring(program)
    rows = zip(program.op.tolist(), *program.operands()[1:], program.value.tolist(), strict=True)
    with np.errstate(all="ignore"):
        for i, (op, a, b, c, value) in enumerate(rows):
            if op == Op.CONST:
                values[i] = dtype(value)
            elif op == Op.INPUT:
                values[i] = inputs[program.a[i]][:, program.b[i]].astype(dtype)
            else:
                values[i] = np.asarray(LINES[op](*[values[x] for x in (a, b, c) if x >= 0])).astype(dtype)
            for dead in expire.get(i, ()):
                values[dead] = None
    results = zip(program.result_port, program.result_element, program.result_value, strict=True)
    for port, element, value in results:
        outputs[port][:, element] = values[value]
    return outputs


def _expiring(program: Program) -> dict[int, list[int]]:
    """Return which values are no longer needed after each instruction; results are kept."""
    last = last_uses(program)
    last[program.result_value] = len(program)
    expire: dict[int, list[int]] = {}
    for value, at in enumerate(last.tolist()):
        expire.setdefault(at, []).append(value)
    return expire


# ----------------------------------------------------------------------------------------------------------------------
# The NumPy backend as an engine: checked arrays in, the plain twin's arrays out.


class NumpyEngine:
    """Evaluates a program with NumPy, one line per operation."""

    short = None

    def __init__(self, function: Any, options: KernelOptions) -> None:
        lowering = lower(function)
        self.program = lowering.program
        self.name = self.program.name
        self.inputs, self.outputs = self.program.inputs, self.program.outputs
        self.dtype = np.dtype(options.dtype)
        self.figures = lowering.figures()

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Evaluate a batch or a single sample."""
        arguments = check_inputs(self.name, inputs, self.inputs, self.dtype)
        outputs = make_outputs(self.name, arguments, self.outputs, self.dtype, out)
        n = arguments.samples
        rows = [
            array.reshape(len(array) if arguments.is_batch(k, port) else 1, port.size)
            for k, (array, port) in enumerate(zip(arguments.inputs, self.inputs, strict=True))
        ]
        values = [np.broadcast_to(x, (n, x.shape[1])) for x in evaluate(self.program, rows, self.dtype.type)]
        for target, value in zip(outputs, values, strict=True):
            target[...] = value.reshape(target.shape)
        finite = np.all([np.isfinite(x).all(axis=1) for x in values], axis=0) if values else np.ones(n, bool)
        return outputs, (~finite).astype(np.uint8) if with_status else None

    def elapsed(self) -> float | None:
        """Return None: a call returns when it is done."""
        return None

    def peak(self) -> float | None:
        """Return None: the arithmetic of NumPy's loops is not the limit here."""
        return None


def engine(source: FunctionSource, options: KernelOptions) -> NumpyEngine:
    """Return the engine of a source."""
    return NumpyEngine(source.expressions, options)
