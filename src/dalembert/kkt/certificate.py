"""The certificate that comes with every solve: what was checked, and how well it held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from dalembert.kkt.solve import Answer


@dataclass(frozen=True, eq=False)
class Certificate:
    """Evidence for one answer.  Sizes are relative unless said otherwise; `print` it.

    What costs more than the solve itself (rank gap, inertia by eigenvalues, condition, error bars) is computed when
    first read; status, residuals and `ok` always come with the answer.
    """

    answer: Answer

    @property
    def status(self) -> Status:
        """The verdict."""
        return self.answer.status

    @property
    def ok(self) -> bool:
        """True when the answer exists, its residuals are at rounding level and at least three digits are certain."""
        return self.answer.status <= Status.LEAST_SQUARES

    @property
    def residual_motion(self) -> float:
        """Largest residual in M a + A^T lam = f, relative to the data of its row, |M| |a| + |A^T| |lam| + |f|."""
        return np.nan if self.answer.residual is None else self.answer.residual.relative(slice(None, self._n))

    @property
    def residual_constraint(self) -> float:
        """Largest residual in A a = c, relative to the data of its row, |A| |a| + |c|."""
        return np.nan if self.answer.residual is None else self.answer.residual.relative(slice(self._n, None))

    @property
    def rank(self) -> int:
        """Rank of A."""
        return self.answer.analysis.rows.rank - self._held

    @property
    def rank_gap(self) -> float:
        """Smallest singular value kept over the largest dropped, or over eps: how clearly the rank was decided."""
        return self.answer.analysis.rows.gap

    @property
    def inertia(self) -> tuple[int, int, int]:
        """Positive, negative and zero eigenvalues of the block matrix; (n, m, 0) when it is regular."""
        return self.answer.analysis.inertia

    @property
    def unique(self) -> Bool[Array, " m"]:
        """Per constraint row, whether its reaction is unique."""
        return self.answer.analysis.rows.unique[: self.answer.multipliers.size - self._held]

    @property
    def conflict(self) -> float:
        """Relative conflict among the right sides of dependent rows; removed before solving when it is rounding."""
        return self.answer.conflict

    @property
    def condition(self) -> float:
        """How much relative errors of the data are magnified in the answer (see `kkt/residual.py`)."""
        return self.answer.bounds.condition if self.answer.status.answered else np.inf

    @property
    def acceleration_error(self) -> Float[Array, " n"]:
        """Bound for the absolute error of every acceleration."""
        return self.answer.bounds.acceleration

    @property
    def multiplier_error(self) -> Float[Array, " m"]:
        """Bound for the absolute error of every multiplier."""
        return self.answer.bounds.multipliers[: self.answer.multipliers.size - self._held]

    @property
    def _n(self) -> int:
        return self.answer.analysis.M.shape[0]

    @property
    def _held(self) -> int:
        return 0 if self.answer.held is None else self.answer.held.shape[1]

    def __str__(self) -> str:
        route = "none" if self.answer.factor is None else self.answer.factor.name
        lines = [f"{'ok' if self.ok else 'NOT OK'}: {self.status.message} (route {route})"]
        if self.status.answered:
            lines += [f"  residuals: motion {self.residual_motion:.1e}, constraints {self.residual_constraint:.1e}"]
        lines += [f"  rank {self.rank} of {self.unique.size}, gap {self.rank_gap:.1e}; inertia {self.inertia}"]
        if self.conflict:
            lines += [f"  conflict among dependent rows {self.conflict:.1e}"]
        if self.answer.analysis.rows.doubt:
            lines += [f"  {self.answer.analysis.rows.doubt}"]
        if self.status.answered:
            relative = self.answer.bounds.relative_error
            lines += [f"  condition {self.condition:.1e}; relative error below {relative:.1e}"]
        if not self.unique.all():
            lines += [f"  unique reactions: {np.count_nonzero(self.unique)} of {self.unique.size}"]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class BatchCertificate:
    """Evidence for a batch: one number per sample, and the whole certificate of any one by index.

    Attributes
    ----------
    status
        Codes of `Status` (uint8), shape of the batch.
    residuals
        Returns the residuals of motion and of constraints, each of the batch's shape.
    sample
        Solves one sample on its own, by index, for what is computed on demand.
    """

    status: Array
    residuals: Callable[[], tuple[Array, Array]]
    sample: Callable[[tuple[int, ...]], Answer]

    @property
    def ok(self) -> Array:
        """Per sample, whether its answer exists and is certified."""
        return self.status <= Status.LEAST_SQUARES

    @cached_property
    def _measured(self) -> tuple[Array, Array]:
        return self.residuals()

    @property
    def residual_motion(self) -> Array:
        """As in `Certificate`, per sample; NaN where there is no answer."""
        return self._measured[0]

    @property
    def residual_constraint(self) -> Array:
        """As in `Certificate`, per sample; NaN where there is no answer."""
        return self._measured[1]

    @cached_property
    def condition(self) -> Array:
        """Condition per sample (each is solved once more for it); infinite where there is no answer."""
        return self._each(lambda certificate: certificate.condition, np.inf)

    @cached_property
    def rank(self) -> Array:
        """Rank of A per sample; 0 where the data are no numbers."""
        return self._each(lambda certificate: certificate.rank, 0)

    @cached_property
    def unique(self) -> Array:
        """Per sample and row, whether the reaction is unique; False where the data are no numbers."""
        return self._each(lambda certificate: certificate.unique, np.False_)

    def __getitem__(self, index: int | tuple[int, ...]) -> Certificate:
        """Return the certificate of one sample."""
        return Certificate(self.sample(index if isinstance(index, tuple) else (index,)))

    def __str__(self) -> str:
        codes, counts = np.unique(self.status, return_counts=True)
        lines = [f"{np.count_nonzero(self.ok)} of {self.status.size} samples ok"]
        lines += [f"  {count:7d}  {Status(code).message}" for code, count in zip(codes, counts, strict=True)]
        return "\n".join(lines)

    def _each(self, value: Callable[[Certificate], Any], otherwise: Any) -> Array:
        sound = self.status < Status.NOT_SYMMETRIC
        values = [value(self[index]) if sound[index] else otherwise for index in np.ndindex(self.status.shape)]
        values = np.broadcast_arrays(*values) if values else []
        return np.array(values).reshape(*self.status.shape, *np.shape(values)[1:])
