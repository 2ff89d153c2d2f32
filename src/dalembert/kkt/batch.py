# pyright: reportCallIssue=false, reportArgumentType=false
"""Batches of block systems: regular samples in compiled code, the others one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once, for_range
from numba.extending import intrinsic

from dalembert.errors import ModelError, ShapeError
from dalembert.kernel.loops import fused
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.certificate import BatchCertificate
from dalembert.kkt.inputs import symmetric_part
from dalembert.kkt.limits import CERTAIN, acceptable, rounding
from dalembert.kkt.routes.schur import Schur
from dalembert.kkt.solution import Solution
from dalembert.kkt.solve import Answer, SolveOptions, answer
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.kkt.kkt import KKT

# ----------------------------------------------------------------------------------------------------------------------
# The one hot instruction sequence of the batch kernel: a scaled product sum in W lanes, held in registers.
#
# Numba compiles loops over memory; here the sum must stay in registers over k, so its vector code is written out:
# W / 8 accumulators of type <8 x double>, two loads and one fused multiply-add per term. On machines with shorter
# vectors LLVM splits them.


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


# ----------------------------------------------------------------------------------------------------------------------
# Route `schur` for a whole batch, in compiled code: W samples side by side in the innermost axis.
#
# The plain twin is `routes/schur.py` under `residual.refined`; the same letters are used:
# M = L L^T, Y = L^-1 A^T, S = Y^T Y = Ls Ls^T. Every step is a loop over matrix entries around a loop over the W
# samples of a block, which the compiler turns into vector instructions. A sample is accepted under the same rules as
# in the twin; all others are left to it.
#
# Operations per sample: n^3/3 (M = L L^T) + n^2 m (Y) + n m^2 (S) + m^3/3 (S = Ls Ls^T)
# + n^3/3 + m^3/3 (traces of inverses) + 5 (n^2 + n m) (solve, residual), multiplications and additions.


STEPS = 2
"""Steps of refinement before a sample is left to the plain code."""

TINY = np.finfo(np.float64).tiny

ZERO, ONE, MINUS = 0, 1, 2
"""Rows of the workspace that hold constants."""


@fused
def schur_batch(M, A, f, c, limits, a, lam, residual_motion, residual_constraint, accepted):
    """Solve all samples; `accepted[s]` says whether sample s is certified (if not, its numbers mean nothing).

    M (N, n, n), A (N, m, n), f (N, n), c (N, m) may have any strides; outputs are a (N, n), lam (N, m) and the
    three arrays (N,). `limits` are: skewness of M, rounding, acceptable backward error, clearly regular trace, least
    ratio of row lengths, certain digits. All work happens in one array of rows of W samples, where matrices and
    vectors have row numbers.
    """
    N, n = f.shape
    m = c.shape[1]
    k = n + m
    skewness, rounding, acceptable, regular, ratio, digits = limits
    # row numbers of matrices and vectors in the workspace
    Mw, Aw = 3, 3 + n * n
    absM = Aw + m * n
    absA = absM + n * n
    L = absA + m * n
    Y = L + n * n
    S = Y + m * n
    scales = S + m * m
    b, absb, x, absx = scales + k, scales + 2 * k, scales + 3 * k, scales + 4 * k
    r, data, g, column = scales + 5 * k, scales + 6 * k, scales + 7 * k, scales + 8 * k
    spread = column + k + 1
    rows = np.empty((spread + 1, W))
    rows[ZERO], rows[ONE], rows[MINUS] = 0.0, 1.0, -1.0
    base = rows.ctypes.data
    worst, skew = np.empty((3, W)), np.empty(W)
    for start in range(0, N, W):
        # W samples side by side
        count = min(W, N - start)
        _load(M, start, count, rows[Mw:], rows[absM:])
        _load(A, start, count, rows[Aw:], rows[absA:])
        _load(f[:, None], start, count, rows[b:], rows[absb:])
        _load(c[:, None], start, count, rows[b + n :], rows[absb + n :])
        _skewness(rows, Mw, n, skew)
        # M = L L^T, Y = L^-1 A^T, S = Y^T Y = Ls Ls^T
        _cholesky(rows, base, Mw, L, scales, n)
        for j in range(m):
            _forward(base, L, Aw + j * n, Y + j * n, n)
        for i in range(m):
            for j in range(i + 1):
                combine(base, S + i * m + j, ZERO, Y + i * n, 1, Y + j * n, 1, n, MINUS)
        _cholesky(rows, base, S, S, scales + n, m)
        # traces of the inverses of M and S, scaled to unit diagonal: the proof of rank and definiteness
        rows[spread] = 0.0
        _inverse_trace(rows, base, L, scales, column, n, spread)
        _inverse_trace(rows, base, S, scales + n, column, m, spread)
        # the answer, refined until its residual is rounding
        _solve(base, L, Y, S, b, g, x, n, m)
        _residual(rows, base, Mw, Aw, absM, absA, b, absb, x, absx, r, data, scales, n, m, worst)
        for _ in range(STEPS):
            if (worst[:2] <= rounding).all():
                break
            _solve(base, L, Y, S, r, g, r, n, m)
            for i in range(k):
                combine(base, x + i, x + i, r + i, 1, MINUS, 1, 1, ONE)
            _residual(rows, base, Mw, Aw, absM, absA, b, absb, x, absx, r, data, scales, n, m, worst)
        # the verdict on every sample: regular, symmetric, enough digits, solved
        for w in range(count):
            s = start + w
            for i in range(n):
                a[s, i] = rows[x + i, w]
            for i in range(m):
                lam[s, i] = rows[x + n + i, w]
            residual_motion[s], residual_constraint[s] = worst[0, w], worst[1, w]
            error = rows[spread, w] * rounding * worst[2, w]
            short, long = rows[scales + n, w] if m else 1.0, rows[scales + n, w] if m else 1.0
            for i in range(1, m):
                short, long = max(short, rows[scales + n + i, w]), min(long, rows[scales + n + i, w])
            sound = rows[spread, w] < regular and skew[w] <= skewness and error <= digits
            sound = sound and (m < 2 or long > ratio * short)
            accepted[s] = sound and worst[0, w] <= acceptable and worst[1, w] <= acceptable


@fused
def _load(x, start, count, out, absolute):
    """Copy a block, samples innermost, a cache line of lanes at a time; missing lanes repeat the last sample."""
    columns = x.shape[2]
    for first in range(0, W, LINE):
        for i in range(x.shape[1]):
            for j in range(columns):
                row, absolute_row = out[i * columns + j], absolute[i * columns + j]
                for w in range(first, first + LINE):
                    value = x[start + min(w, count - 1), i, j]
                    row[w] = value
                    absolute_row[w] = abs(value)


@fused
def _skewness(rows, M, n, skew):
    """Write the largest |M_ij - M_ji| / (|M_ij| + |M_ji| + sqrt(M_ii M_jj)) per lane, as `inputs.symmetric_part`."""
    skew[:] = 0.0
    for i in range(n):
        for j in range(i):
            for w in range(W):
                upper, lower = rows[M + j * n + i, w], rows[M + i * n + j, w]
                if upper != lower:
                    size = np.sqrt(abs(rows[M + i * n + i, w] * rows[M + j * n + j, w])) + abs(upper) + abs(lower)
                    ratio = abs(upper - lower) / size
                    skew[w] = skew[w] if ratio <= skew[w] else ratio


@fused
def _cholesky(rows, base, P, L, d, n):
    """Factor P = L L^T (in place allowed), reciprocals on the diagonal; d = diag(P)^-1/2. A failed lane becomes NaN."""
    for i in range(n):
        for w in range(W):
            rows[d + i, w] = 1.0 / np.sqrt(rows[P + i * n + i, w])
        for j in range(i):
            combine(base, L + i * n + j, P + i * n + j, L + i * n, 1, L + j * n, 1, j, L + j * n + j)
        pivot = L + i * n + i
        combine(base, pivot, P + i * n + i, L + i * n, 1, L + i * n, 1, i, ONE)
        for w in range(W):
            rows[pivot, w] = 1.0 / np.sqrt(rows[pivot, w])


@fused
def _forward(base, L, b, x, n):
    """Solve L x = b."""
    for i in range(n):
        combine(base, x + i, b + i, L + i * n, 1, x, 1, i, L + i * n + i)


@fused
def _backward(base, L, b, x, n):
    """Solve L^T x = b."""
    for i in range(n - 1, -1, -1):
        combine(base, x + i, b + i, L + (i + 1) * n + i, n, x + i + 1, 1, n - 1 - i, L + i * n + i)


@fused
def _inverse_trace(rows, base, L, d, x, n, spread):
    """Raise row `spread` to trace((D P D)^-1), the sum of squares of L^-1 D^-1, column by column; NaN stays."""
    total = x + n
    rows[total] = 0.0
    for j in range(n):
        for w in range(W):
            rows[x + j, w] = rows[L + j * n + j, w] / rows[d + j, w]
        for i in range(j + 1, n):
            combine(base, x + i, ZERO, L + i * n + j, 1, x + j, 1, i - j, L + i * n + i)
        combine(base, total, total, x + j, 1, x + j, 1, n - j, ONE)
    for w in range(W):
        if not -rows[total, w] <= rows[spread, w]:
            rows[spread, w] = -rows[total, w]


@fused
def _solve(base, L, Y, S, b, g, x, n, m):
    """Solve for x = (a, lam), stacked; x may be b itself."""
    h = g + n
    _forward(base, L, b, g, n)
    for i in range(m):
        combine(base, h + i, b + n + i, Y + i * n, 1, g, 1, n, MINUS)
    _forward(base, S, h, h, m)
    _backward(base, S, h, x + n, m)
    for i in range(n):
        combine(base, g + i, g + i, Y + i, n, x + n, 1, m, ONE)
    _backward(base, L, g, x, n)


@fused
def _product(base, out, start, M, A, x, n, m):
    """Form out = start - K x for the block matrix K of M and A."""
    for i in range(n):
        combine(base, out + i, start + i, M + i * n, 1, x, 1, n, ONE)
        combine(base, out + i, out + i, A + i, n, x + n, 1, m, ONE)
    for i in range(m):
        combine(base, out + n + i, start + n + i, A + i * n, 1, x, 1, n, ONE)


@fused
def _residual(rows, base, M, A, absM, absA, b, absb, x, minus_absx, r, data, scales, n, m, worst):
    """Form r = b - K x and its data |K| |x| + |b|; write omega of both block rows, and the reach of errors, (3, W).

    The reach is what `residual.certain` compares: the scaled size of the data, times scales over answer per block;
    infinite where a square leaves the range.
    """
    # r = b - K x, and |b| + |K| |x|: the same product with sizes
    for i in range(n + m):
        for w in range(W):
            rows[minus_absx + i, w] = -abs(rows[x + i, w])
    _product(base, r, b, M, A, x, n, m)
    _product(base, data, absb, absM, absA, minus_absx, n, m)
    # omega, the largest |r| / data of each block row, and sums of squares for the reach
    whole, some = np.zeros(W), np.zeros(W)
    for block in range(2):
        first, last = (0, n) if block == 0 else (n, n + m)
        answer, scale = np.zeros(W), np.zeros(W)
        omega = worst[block]
        omega[:] = 0.0
        for i in range(first, last):
            for w in range(W):
                ratio = abs(rows[r + i, w]) / (rows[data + i, w] + TINY)
                omega[w] = omega[w] if ratio <= omega[w] else ratio
                answer[w] += rows[x + i, w] ** 2
                scale[w] += rows[scales + i, w] ** 2
                whole[w] += (rows[scales + i, w] * rows[data + i, w]) ** 2
                some[w] = max(some[w], rows[data + i, w])
        for w in range(W):
            # the reach of a block: scales over answer
            reach = np.sqrt(scale[w] / answer[w]) if last > first else 0.0
            reach = reach if answer[w] < np.inf else np.inf
            worst[2, w] = reach if block == 0 or reach > worst[2, w] else worst[2, w]
    for w in range(W):
        if some[w] > 0.0:
            worst[2, w] = worst[2, w] * np.sqrt(whole[w]) if whole[w] >= TINY else np.inf
        else:
            worst[2, w] = 0.0


# ----------------------------------------------------------------------------------------------------------------------
# Batches: one status per sample, the regular ones in compiled code, the others one by one with full care.


COMPILED_FROM = 64
"""Batches smaller than this are solved one by one: compiled code must first be loaded (or, once, compiled)."""


def solve_batch(system: KKT, f: Array, c: Array, options: SolveOptions) -> Solution:
    """Solve for all samples of the broadcast of M, A, f and c; a bad sample gets its status and NaN."""
    batch = _Batch(system, f, c, options)
    status, a, lam, motion, constraint = batch.solve()
    shape = batch.shape
    certificate = BatchCertificate(
        status.reshape(shape),
        lambda: (motion.reshape(shape), constraint.reshape(shape)),
        lambda index: batch.sample_again(index, a, lam, status),
    )
    return Solution(a.reshape(*shape, system.n), lam.reshape(*shape, system.m), certificate, system)


class _Batch:
    """The samples of a batch, flattened to one leading axis (views where strides allow)."""

    def __init__(self, system: KKT, f: Array, c: Array, options: SolveOptions) -> None:
        try:
            self.shape = np.broadcast_shapes(system.batch_shape, f.shape[:-1], c.shape[:-1])
        except ValueError:
            shapes = f"system {system.batch_shape}, force {f.shape[:-1]}, drift {c.shape[:-1]}"
            raise ShapeError(f"batch axes do not broadcast: {shapes}") from None
        self.options, self.system = options, system
        self.shared = None if system.batch_shape else system.analysis
        self.M, self.A = self._flat(system.M, 2), self._flat(system.A, 2)
        self.f, self.c = self._flat(f, 1), self._flat(c, 1)
        self.skewness = system.skewness

    def _flat(self, array: Array, axes: int) -> Array:
        tail = array.shape[array.ndim - axes :]
        return np.broadcast_to(array, (*self.shape, *tail)).reshape(math.prod(self.shape), *tail)

    def solve(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return status, a, lam and the two relative residuals, flat."""
        N, n, m = self.f.shape[0], self.f.shape[1], self.c.shape[1]
        a, lam = np.full((N, n), np.nan), np.full((N, m), np.nan)
        motion, constraint = np.full(N, np.nan), np.full(N, np.nan)
        status, accepted = np.zeros(N, dtype=np.uint8), np.zeros(N, dtype=np.bool_)
        if N >= COMPILED_FROM and self.options.route in ("auto", Schur.name):
            limits = self.skewness, rounding(n + m), acceptable(n + m), *self.system.proof, CERTAIN
            schur_batch(self.M, self.A, self.f, self.c, limits, a, lam, motion, constraint, accepted)
        for s in np.flatnonzero(~accepted).tolist():
            sample = self.sample(s)
            status[s], a[s], lam[s] = sample.status, sample.acceleration, sample.multipliers[:m]
            if sample.residual is not None:
                motion[s], constraint[s] = (
                    sample.residual.relative(slice(None, n)),
                    sample.residual.relative(slice(n, None)),
                )
        return status, a, lam, motion, constraint

    def sample_again(self, index: tuple[int, ...], a: Array, lam: Array, status: Array) -> Answer:
        """Solve one sample once more, for its certificate; refuse if the arrays were overwritten since the batch."""
        s = int(np.arange(status.size).reshape(self.shape)[index])
        sample = self.sample(s)
        now = np.concatenate((sample.acceleration, sample.multipliers[: lam.shape[1]]))
        before = np.concatenate((a[s], lam[s]))
        same = np.allclose(before, now, rtol=CERTAIN, atol=CERTAIN * np.nan_to_num(np.abs(now)).max(), equal_nan=True)
        if sample.status != status[s] or not same:
            raise ModelError(f"sample {index} has changed since the batch was solved: its arrays were overwritten")
        return sample

    def sample(self, s: int) -> Answer:
        """Solve one sample on its own."""
        M, A, b = self.M[s], self.A[s], np.concatenate((self.f[s], self.c[s]))
        if self.shared is not None:
            return answer(self.shared, b, self.options)
        if not all(np.isfinite(x).all() for x in (M, A, b)):
            status = Status.NONFINITE
        elif (symmetric := symmetric_part(M, self.skewness)) is None:
            status = Status.NOT_SYMMETRIC
        else:
            return answer(self.system.analysed(symmetric, A), b, self.options)
        return Answer(status, Analysis(M, A), b, np.full_like(b, np.nan))
