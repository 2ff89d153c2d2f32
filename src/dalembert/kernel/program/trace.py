"""From a CasADi function to a Program, its instruction list read once, and back.

CasADi's instructions write to a work vector whose places are reused; here every write is a new value. Its
matrices are column-major and sparse; here an element is counted along rows, and structural zeros are no
instruction at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalembert.errors import UnsupportedError
from dalembert.kernel.program.program import ARITY, Op, Port, Program, casadi_names, casadi_table


def scalar_function(function: Any) -> Any:
    """Return `function` as an SX function; an MX function is expanded.

    Raises
    ------
    UnsupportedError
        Where `function` is no CasADi function, has free variables, or cannot be written with scalar
        operations.
    """
    import casadi

    if not isinstance(function, casadi.Function):
        raise UnsupportedError(
            f"a kernel is made from a casadi.Function, not from {type(function).__name__}; "
            "wrap expressions as casadi.Function(name, [inputs], [outputs])"
        )
    if function.has_free():
        free = ", ".join(str(symbol) for symbol in function.get_free())
        raise UnsupportedError(f"function {function.name()!r} has free variables: {free}; make them inputs")
    if function.is_a("SXFunction"):
        return function
    try:
        return function.expand()
    except RuntimeError as error:
        raise UnsupportedError(
            f"function {function.name()!r} ({function.class_name()}) cannot be written with scalar operations; "
            f"build it from casadi.SX. CasADi says: {str(error).strip().splitlines()[-1]}"
        ) from error


def ports(function: Any) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Return the inputs and outputs of a CasADi function."""
    inputs = tuple(Port(function.name_in(i), *function.size_in(i)) for i in range(function.n_in()))
    outputs = tuple(Port(function.name_out(i), *function.size_out(i)) for i in range(function.n_out()))
    return inputs, outputs


def trace(function: Any) -> Program:
    """Return the program of a CasADi function: one instruction per CasADi instruction, in CasADi's order.

    Parameters
    ----------
    function
        A `casadi.Function`; MX functions are expanded to scalars first.

    Notes
    -----
    Costs about 4 us an instruction, most of it CasADi's accessors.
    """
    function = scalar_function(function)
    tracer = _Tracer(function)
    tracer.run()
    inputs, outputs = ports(function)
    return Program(
        function.name(),
        inputs,
        outputs,
        np.array(tracer.op, np.uint8),
        np.array(tracer.a, np.int32),
        np.array(tracer.b, np.int32),
        np.full(len(tracer.op), -1, np.int32),
        np.array(tracer.value, np.float64),
        *(np.array(column, np.int32) for column in zip(*tracer.results, strict=True))
        if tracer.results
        else (np.empty(0, np.int32),) * 3,
    )


class _Tracer:
    """The state of one trace: the instructions so far, and which value lies at each place of the work vector."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.op: list[int] = []
        self.a: list[int] = []
        self.b: list[int] = []
        self.value: list[float] = []
        self.results: list[tuple[int, int, int]] = []

    def emit(self, op: int, a: int = -1, b: int = -1, value: float = 0.0) -> int:
        """Append an instruction; return its index."""
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        self.value.append(value)
        return len(self.op) - 1

    def run(self) -> None:
        """Read every instruction."""
        import casadi

        f = self.function
        n = f.n_instructions()
        one_to_one = casadi_table()
        into = [_row_major(f.sparsity_in(i)) for i in range(f.n_in())]
        out_of = [_row_major(f.sparsity_out(i)) for i in range(f.n_out())]
        work: dict[int, int] = {}
        codes = list(map(f.instruction_id, range(n)))
        sources = list(map(f.instruction_input, range(n)))
        targets = list(map(f.instruction_output, range(n)))
        for k, (code, source, target) in enumerate(zip(codes, sources, targets, strict=True)):
            if code == casadi.OP_OUTPUT:
                self.results.append((target[0], out_of[target[0]][target[1]], work[source[0]]))
            elif code == casadi.OP_INPUT:
                work[target[0]] = self.emit(Op.INPUT, source[0], into[source[0]][source[1]])
            elif code == casadi.OP_CONST:
                work[target[0]] = self.emit(Op.CONST, value=f.instruction_constant(k))
            elif (op := one_to_one.get(code)) is not None:
                work[target[0]] = self.emit(op, *[work[place] for place in source])
            else:
                work[target[0]] = self.respell(k, code, [work[place] for place in source if place in work])

    def respell(self, k: int, code: int, operands: list[int]) -> int:
        """Spell a CasADi operation with the operations here, or refuse it."""
        import casadi

        x = operands[0] if operands else -1
        if code in (casadi.OP_ASSIGN, casadi.OP_LIFT):
            return x
        if code == casadi.OP_SQ:
            return self.emit(Op.MUL, x, x)
        if code == casadi.OP_TWICE:
            return self.emit(Op.ADD, x, x)
        if code == casadi.OP_INV:
            return self.emit(Op.DIV, self.emit(Op.CONST, value=1.0), x)
        if code == casadi.OP_CONSTPOW:
            return self.emit(Op.POW, *operands)
        name = casadi_names().get(code, str(code))
        raise UnsupportedError(
            f"function {self.function.name()!r} uses the operation {name} "
            f"(instruction {k} of {self.function.n_instructions()}), which kernels do not have; {_advice(name)}"
        )


def untrace(program: Program) -> Any:
    """Return a traced program as the SX function that it came from; sparse inputs come back dense.

    Expressions simplify themselves as they did when the function was written, so that its instructions are the same.
    """
    import casadi as ca

    codes = {op: code for code, op in casadi_table().items()}
    inputs = [ca.SX.sym(port.name, port.rows, port.cols) for port in program.inputs]
    values: list[Any] = []
    for op, a, b, value in zip(program.op, program.a, program.b, program.value, strict=True):
        if op == Op.CONST:
            values.append(ca.SX(float(value)))
        elif op == Op.INPUT:
            values.append(inputs[a][int(b) // program.inputs[a].cols, int(b) % program.inputs[a].cols])
        elif ARITY[Op(op)] == 2:
            values.append(ca.SX.binary(codes[Op(op)], values[a], values[b]))
        else:
            values.append(ca.SX.unary(codes[Op(op)], values[a]))
    outputs = [ca.SX(port.rows, port.cols) for port in program.outputs]
    for port, element, value in zip(program.result_port, program.result_element, program.result_value, strict=True):
        cols = program.outputs[port].cols
        outputs[port][int(element) // cols, int(element) % cols] = values[value]
    sources, targets = ([port.name for port in ports] for ports in (program.inputs, program.outputs))
    return ca.Function(program.name, inputs, outputs, sources, targets)


def _advice(name: str) -> str:
    """Return what to do about an operation that is refused."""
    if name == "PRINTME":
        return "remove printme() from the expression"
    if name == "CALL":
        return "inline the called function: evaluate it on SX symbols, or expand() the MX function"
    return "write the expression with elementary SX operations"


def _row_major(sparsity: Any) -> list[int]:
    """Return, for each nonzero in CasADi's order, its place in the dense matrix counted along rows."""
    rows = np.array(sparsity.row(), np.int64)
    columns = np.array(sparsity.get_col(), np.int64)
    places: NDArray[np.int64] = rows * sparsity.size2() + columns
    return places.tolist()
