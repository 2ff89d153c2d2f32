"""The dense part of a front: Cholesky's factor of its closing rows, in blocks, large products by BLAS."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import loop
from dalembert.tree.large.outward import COMPILED

BLOCK = 48
"""Columns eliminated at a time; products of narrower fronts are plain loops."""

DEAD = 1e-14
"""A pivot below this part of its row's diagonal is rounding: the row is left out of the solve (its lam stays put)."""

HUGE = 1e150


@loop(**COMPILED)
def cholesky(m, e, rows, g, pivots):
    """Factor the first e columns of the lower triangle m (w, w), w >= e, in place; pivots go to pivots[rows]."""
    for begin in range(0, e, BLOCK):
        end = min(begin + BLOCK, e)
        for k in range(begin, end):
            pivot = m[k, k]
            for b in range(begin, k):
                pivot -= m[k, b] * m[k, b]
            pivots[rows[k]] = pivot
            if not pivot > DEAD * g[rows[k]]:
                pivot = HUGE * HUGE
            root = np.sqrt(pivot)
            m[k, k] = root
            for a in range(k + 1, m.shape[0]):
                x = m[a, k]
                for b in range(begin, k):
                    x -= m[a, b] * m[k, b]
                m[a, k] = x / root
        if end < e:
            part = np.ascontiguousarray(m[end:, begin:end])
            width = e - end
            m[end:, end:e] -= np.dot(part, np.ascontiguousarray(part[:width].T))


@loop(**COMPILED)
def subtract_product(m, e):
    """Subtract the product of what stands left of it from the lower right part of m."""
    w = m.shape[0]
    if e >= BLOCK // 2 and w - e >= BLOCK:
        part = np.ascontiguousarray(m[e:, :e])
        m[e:, e:] -= np.dot(part, np.ascontiguousarray(part.T))
        return
    for a in range(e, w):
        for b in range(e, a + 1):
            x = 0.0
            for c in range(e):
                x += m[a, c] * m[b, c]
            m[a, b] -= x
