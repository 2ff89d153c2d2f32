"""The one hot instruction sequence of the batch kernel: a scaled product sum in W lanes, held in registers.

Numba compiles loops over memory; here the sum must stay in registers over k, so its vector code is written out:
W / 8 accumulators of type <8 x double>, two loads and one fused multiply-add per term. On machines with shorter
vectors LLVM splits them.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once, for_range
from numba.extending import intrinsic

W = 16
"""Samples side by side: two accumulators hide the latency of an addition, and a block of samples stays in the cache."""

LINE = 8
"""Doubles in a vector, and in a cache line."""


@intrinsic
def combine(typing_context, base, out, start, x, x_step, y, y_step, count, scale):
    """Form out = (start - sum over k < count of x[k] y[k]) * scale, lane by lane.

    All operands but `count` are row numbers in a workspace of rows of W doubles that begins at address `base`;
    x[k] is row x + k x_step.
    """
    signature = types.void(*[types.int64] * 9)

    def generate(context, builder, signature, arguments):
        base, out, start, x, x_step, y, y_step, count, scale = arguments
        word, vector = ir.IntType(64), ir.VectorType(ir.DoubleType(), LINE)
        lanes = range(0, W, LINE)

        def row(number):
            return builder.add(base, builder.mul(number, word(8 * W)))

        def load(address, lane):
            value = builder.load(builder.inttoptr(builder.add(address, word(8 * lane)), vector.as_pointer()))
            value.align = 8
            return value

        sums = [alloca_once(builder, vector) for _ in lanes]
        for slot, lane in zip(sums, lanes, strict=True):
            builder.store(load(row(start), lane), slot)
        with for_range(builder, count) as loop:
            x_row = row(builder.add(x, builder.mul(loop.index, x_step)))
            y_row = row(builder.add(y, builder.mul(loop.index, y_step)))
            for slot, lane in zip(sums, lanes, strict=True):
                product = builder.fmul(load(x_row, lane), load(y_row, lane), flags=["contract"])
                builder.store(builder.fsub(builder.load(slot), product, flags=["contract"]), slot)
        for slot, lane in zip(sums, lanes, strict=True):
            address = builder.inttoptr(builder.add(row(out), word(8 * lane)), vector.as_pointer())
            builder.store(builder.fmul(builder.load(slot), load(row(scale), lane)), address).align = 8
        return context.get_dummy_value()

    return signature, generate
