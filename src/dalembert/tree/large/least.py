"""Inverse dynamics of a large constrained mechanism, every joint driven: the least joint forces that cause a motion.

tau = b + A^T lam, b = M a + bias what the open tree would need; lam minimises |b + A^T lam|, itself least where rows
are redundant. A is used as an operator only (one sweep each way), in LSMR (Fong & Saunders 2011), which begins at zero
and so ends at the least lam. Whether that is the least of a family is read off the pivots of the Delassus matrix.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from dalembert.kkt import Status
from dalembert.tree.large.constrained import LargeSystem
from dalembert.tree.large.rows import RowValues

Array = np.ndarray

MOST = 20
"""Steps per row before LSMR gives up; exact arithmetic would need one."""

EXACT = 1e-14


class _Rows(LinearOperator):
    """A^T as an operator."""

    def __init__(self, system: LargeSystem, values: RowValues) -> None:
        super().__init__(np.dtype(float), (system.layout.mechanism.nv, system.rows.m))
        self.system, self.values = system, values

    def _matvec(self, x: Array) -> Array:
        return self.system.pull(self.values, np.ravel(x))

    def _rmatvec(self, x: Array) -> Array:
        return self.system.move_rows(self.values, np.ravel(x))


def least_forces(system: LargeSystem, q: Array, v: Array, a: Array, t: float) -> tuple[Array, Array, Status]:
    """Return tau (nv,), lam (m,), status."""
    nv, m = len(v), system.rows.m
    nothing = np.full(nv, np.nan), np.full(m, np.nan), Status.NONFINITE
    if not all(np.isfinite(x).all() for x in (q, v, a)) or not np.isfinite(t):
        return nothing
    b = np.empty(nv)
    system.tree.inverse(q, v, a, b)
    values = system.moved(q, v, t)
    size = np.abs(b).max() or 1.0
    if not (np.isfinite(size) and np.isfinite(values.wrenches).all()):  # too large for what is made of them
        return nothing
    operator = _Rows(system, values)
    lam, stopped, *_ = lsmr(operator, -b / size, atol=EXACT, btol=EXACT, conlim=0, maxiter=MOST * m)
    lam = size * lam
    status = Status.ILL_CONDITIONED
    if stopped < 7:
        status = Status.UNIQUE if system.independent(values) else Status.REDUNDANT
    tau = b + system.pull(values, lam)
    return (tau, lam, status) if np.isfinite(tau).all() and np.isfinite(lam).all() else nothing
