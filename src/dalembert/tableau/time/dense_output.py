"""Dense output: between mesh points, the polynomial through the last k + 1 of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.tableau.graph_loops import compiled

Array = np.ndarray


@compiled
def through_points(t, x, order, begins, at, out):
    """Evaluate at times `at`; the step that ends at row i used order[i], its segment began at row begins[i]."""
    ascending = t[-1] >= t[0]
    for j in range(at.size):
        i = np.searchsorted(t, at[j], side="left") if ascending else t.size - np.searchsorted(t[::-1], at[j], side="right")
        i = min(max(i, 1), t.size - 1)
        while i < t.size - 1 and begins[i] == i:  # the first row of a segment ends no step
            i += 1
        first = max(i - max(order[i], 1), begins[i])
        for c in range(x.shape[1]):
            out[j, c] = 0.0
        for a in range(first, i + 1):
            weight = 1.0
            for b in range(first, i + 1):
                if b != a:
                    weight *= (at[j] - t[b]) / (t[a] - t[b])
            for c in range(x.shape[1]):
                out[j, c] += weight * x[a, c]


class Dense:
    """A trajectory as a function of time, `sol(t)`.

    Across a jump of an input two rows have the same time; at that time the value before the jump is returned.
    """

    def __init__(self, t: Array, x: Array, order: Array, begins: Array) -> None:
        self.t, self.x, self.order, self.begins = t, x, order, begins

    @property
    def t_min(self) -> float:
        """First time."""
        return float(min(self.t[0], self.t[-1]))

    @property
    def t_max(self) -> float:
        """Last time."""
        return float(max(self.t[0], self.t[-1]))

    def __call__(self, t: Any) -> Array:
        """Return x(t), (n,) or (n, len(t)); beyond the ends the nearest polynomial is continued."""
        at = np.atleast_1d(np.asarray(t, dtype=float))
        out = np.empty((at.size, self.x.shape[1]))
        if len(self.t) == 1:
            out[:] = self.x[0]
        else:
            through_points(self.t, self.x, self.order, self.begins, at.ravel(), out)
        return out[0] if np.ndim(t) == 0 else out.T
