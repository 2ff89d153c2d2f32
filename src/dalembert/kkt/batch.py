"""Batches: one status per sample, the regular ones in compiled code, the others one by one with full care."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.answer import Answer, Options, answer
from dalembert.kkt.bounds import CERTAIN_DIGITS
from dalembert.kkt.certificate import BatchCertificate
from dalembert.kkt.inputs import symmetric_part
from dalembert.kkt.residual import acceptable, rounding
from dalembert.kkt.routes.schur import Schur
from dalembert.kkt.solution import Solution
from dalembert.kkt.status import Status

if TYPE_CHECKING:
    from dalembert.kkt.kkt import KKT

Array = np.ndarray

COMPILED_FROM = 64
"""Batches smaller than this are solved one by one: compiled code must first be loaded (or, once, compiled)."""


SAME_ANSWER = 1e-3
"""Compiled and plain code agree to the digits they certify; a larger difference means other data."""


def solve_batch(system: KKT, f: Array, c: Array, options: Options) -> Solution:
    """Solve for all samples of the broadcast of M, A, f and c; a bad sample gets its status and NaN."""
    batch = _Batch(system, f, c, options)
    status, a, lam, motion, constraint = batch.solve()
    shape = batch.shape
    certificate = BatchCertificate(
        status.reshape(shape),
        motion.reshape(shape),
        constraint.reshape(shape),
        lambda index: batch.sample_again(index, a, lam, status),
    )
    return Solution(a.reshape(*shape, system.n), lam.reshape(*shape, system.m), certificate, system)


class _Batch:
    """The samples of a batch, flattened to one leading axis (views where strides allow)."""

    def __init__(self, system: KKT, f: Array, c: Array, options: Options) -> None:
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
            from dalembert.kkt.batch_kernel import schur_batch

            regular = self.system.regular_trace
            limits = self.skewness, rounding(n + m), acceptable(n + m), regular, CERTAIN_DIGITS
            schur_batch(self.M, self.A, self.f, self.c, limits, a, lam, motion, constraint, accepted)
        for s in np.flatnonzero(~accepted).tolist():
            one = self.sample(s)
            status[s], a[s], lam[s] = one.status, one.acceleration, one.multipliers[:m]
            if one.residual is not None:
                motion[s], constraint[s] = one.residual.relative(slice(None, n)), one.residual.relative(slice(n, None))
        return status, a, lam, motion, constraint

    def sample_again(self, index: tuple[int, ...], a: Array, lam: Array, status: Array) -> Answer:
        """Solve one sample once more, for its certificate; refuse if the arrays were overwritten since the batch."""
        s = int(np.arange(status.size).reshape(self.shape)[index])
        one = self.sample(s)
        before, now = np.concatenate((a[s], lam[s])), one.x[: a.shape[1] + lam.shape[1]]
        same = np.allclose(
            before, now, rtol=SAME_ANSWER, atol=SAME_ANSWER * np.nan_to_num(np.abs(now)).max(), equal_nan=True
        )
        if one.status != status[s] or not same:
            raise ModelError(f"sample {index} has changed since the batch was solved: its arrays were overwritten")
        return one

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
