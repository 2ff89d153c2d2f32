"""A compiled kernel called from a compiled loop, by its address.

A `Kernel`'s code is `run(table, first, stop, scratch)` (see `kernel/llvm_driver.py`): the table holds addresses and
strides of the arrays it reads and writes. A Python function behind a ctypes callback of the same signature can stand in
its place (inputs and events given as callables): it takes the interpreter lock by itself, so the loop may run without.
"""

from __future__ import annotations

import ctypes

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
"""C signature of a kernel's `run`."""


def invoke(address, table, scratch):
    """Run one sample of the code at `address`; plain twin of the compiled call."""
    SIGNATURE(int(address))(int(table), 0, 1, int(scratch))


@intrinsic
def _jump(typing_context, address, table, scratch):
    signature = types.void(types.int64, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        code = ir.FunctionType(ir.VoidType(), [pointer, word, word, pointer]).as_pointer()
        address, table, scratch = arguments
        function = builder.inttoptr(address, code)
        where = [builder.inttoptr(x, pointer) for x in (table, scratch)]
        builder.call(function, [where[0], word(0), word(1), where[1]])
        return context.get_dummy_value()

    return signature, generate


@overload(invoke)
def _invoke_compiled(address, table, scratch):
    def run(address, table, scratch):
        _jump(address, table, scratch)  # type: ignore[call-arg]

    return run
