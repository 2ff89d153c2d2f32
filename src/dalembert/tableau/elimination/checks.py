"""Checks of a sparse solve: backward error, pivot quality, growth.

- backward error: max_i |b - A x|_i / (|A| |x| + |b|)_i, the size of the change of data for which x is exact (W. Oettli,
  W. Prager, Numer. Math. 6 (1964) 405-409); where that is too strict, the size of a change of data that moves every
  unknown as far as the residual does (`accuracy.py`);
- pivot quality: the least |pivot| / (sum of the sizes of the terms it was made of); a pivot that is all cancellation is
  the sign of a singular matrix;
- growth: largest entry of U over largest entry of A, both in rows that elimination changes, at least 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from dalembert.errors import ModelError
from dalembert.kkt.limits import ACCEPTED_ERROR, SUSPECT_GROWTH, SUSPECT_PIVOT
from dalembert.types import Array


class Outcome(IntEnum):
    """How a sample was solved; all but the last two are answers that passed the checks."""

    PLANNED = 0
    REFINED = 1
    REPLANNED = 2
    SUPERLU = 3
    SINGULAR = 4
    NON_FINITE = 5


@dataclass
class SolveCounts:
    """How often each way was taken, since the elimination was made."""

    samples: int = 0
    planned: int = 0
    refined: int = 0
    replanned: int = 0
    superlu: int = 0
    singular: int = 0
    non_finite: int = 0
    plans: int = 1

    def count_planned(self, samples: int) -> None:
        """Add samples that were all solved as planned."""
        self.samples += samples
        self.planned += samples

    def count(self, status: Int[Array, " N"]) -> None:
        """Add the outcomes of one call."""
        self.samples += len(status)
        for outcome in Outcome:
            name = outcome.name.lower()
            setattr(self, name, getattr(self, name) + int(np.count_nonzero(status == outcome)))

    def __str__(self) -> str:
        counts = ", ".join(f"{k} {v}" for k, v in vars(self).items() if v and k not in ("samples", "plans"))
        return f"{self.samples} solves: {counts or 'none'}; {self.plans} plan(s)"


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Solutions with their checks; N = 1 keeps its axis in `status` and the checks.

    Attributes
    ----------
    x : (n,) or (N, n)
        NaN where the status is SINGULAR or NON_FINITE.
    status : (N,)
        `Outcome` of each sample.
    checks : (N, 3)
        Backward error, pivot quality and growth, also by name; see the head of this file. They are those of the
        plan that gave the answer.
    origin
        What `error` is found with: a function of (values, right, x), and values and right.
    """

    x: Float[Array, "*batch n"]
    status: Int[Array, " N"]
    checks: Float[Array, "N three"]
    origin: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def error(self) -> Float[Array, "*batch n"]:
        """Estimated |x - exact x| of every unknown, the given numbers taken as exact; found when asked for.

        A small backward error is a small error only where the matrix is well conditioned: this says how small. It
        takes a factorization with partial pivoting per sample. NaN where there is no answer.
        """
        if self.origin is None:
            raise ModelError("nothing is known of the error of this solution: its matrix was not kept")
        estimate, values, right = self.origin
        return estimate(values, right, self.x)

    @property
    def backward_error(self) -> Float[Array, " N"]:
        """Size of the change of data for which x is exact."""
        return self.checks[:, 0]

    @property
    def pivot_quality(self) -> Float[Array, " N"]:
        """What is left of the pivot that lost most."""
        return self.checks[:, 1]

    @property
    def growth(self) -> Float[Array, " N"]:
        """Growth of entries in the elimination."""
        return self.checks[:, 2]

    @property
    def ok(self) -> Bool[Array, " N"]:
        """Where there is an answer that passed."""
        return self.status <= Outcome.SUPERLU


ALL_PLANNED = np.zeros(1, np.int64)
ALL_PLANNED.setflags(write=False)


def planned(x: Float[Array, " n"], checks: Float[Array, " four"], origin: tuple[Any, ...]) -> LinearSolution:
    """Return the solution of a single system that was sound at once."""
    return LinearSolution(x, ALL_PLANNED, checks[None, :3], origin)


def sound(x: Float[Array, "N n"], checks: Float[Array, "N three"]) -> Bool[Array, " N"]:
    """Return which samples passed every check."""
    return trusted(x, checks) & (checks[:, 0] <= ACCEPTED_ERROR)


def trusted(x: Float[Array, "N n"], checks: Float[Array, "N three"]) -> Bool[Array, " N"]:
    """Return which samples have finite numbers and sound pivots; refinement can help these only."""
    finite = np.isfinite(x).all(axis=1) & np.isfinite(checks).all(axis=1)
    return finite & (checks[:, 1] >= SUSPECT_PIVOT) & (checks[:, 2] <= SUSPECT_GROWTH)
