"""Dense output: between mesh points, the polynomial through the last k + 1 of them, or through values and rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.tableau.time.numbers import reals
from dalembert.tableau.time.output_loops import through_points, through_rates

Array = np.ndarray


class Dense:
    """A trajectory as a function of time, `sol(t)`.

    Across a jump of an input two rows have the same time; at that time the value before the jump is returned.

    Parameters
    ----------
    t, x, order, begins
        Times (N,), values (N, n), orders, and for each row the first row of its segment.
    rates
        (N, n): interpolate values and rates by Hermite's polynomials instead.
    columns
        How many of the columns of (x, x') are wanted; default all that x has.
    """

    def __init__(
        self, t: Array, x: Array, order: Array, begins: Array, rates: Array | None = None, columns: int | None = None
    ) -> None:
        self.t, self.x, self.order, self.begins = t, x, order, begins
        self.rates = None if rates is None else np.ascontiguousarray(rates)
        self.columns = x.shape[1] if columns is None else columns

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
        at = np.atleast_1d(reals("t", t)).ravel()
        out = np.empty((at.size, self.columns))
        if len(self.t) == 1:
            out[:] = self.x[0, : self.columns]
        elif self.rates is not None:
            through_rates(self.t, self.x[:, : self.rates.shape[1]], self.rates, self.begins, at, out)
        else:
            through_points(self.t, self.x, self.order, self.begins, at, out)
        return out[0] if np.ndim(t) == 0 else out.T
