"""A plan of elimination carried out in plain NumPy on dense blocks: what the compiled engines are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from dalembert.tableau import Plan

Array = np.ndarray


def plain_solve(plan: Plan, values: Any, right: Any) -> Float[Array, " n"]:
    """Solve A x = b in the order of the plan, no pivot exchanged."""
    A = plan.pattern.matrix(values).toarray()[plan.rows][:, plan.cols]
    b, y = np.asarray(right, dtype=float)[plan.rows], np.zeros(plan.n)
    for first, last in zip(plan.begins[:-1], plan.begins[1:], strict=True):
        block = A[first:last, first:last].copy()
        part = b[first:last] - A[first:last, :first] @ y[:first]
        for k in range(last - first):
            factors = block[k + 1 :, k] / block[k, k]
            block[k + 1 :] -= np.outer(factors, block[k])
            part[k + 1 :] -= factors * part[k]
        for k in range(last - first - 1, -1, -1):
            y[first + k] = (part[k] - block[k, k + 1 :] @ y[first + k + 1 : last]) / block[k, k]
    x = np.empty(plan.n)
    x[plan.cols] = y
    return x
