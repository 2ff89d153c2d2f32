"""Forward dynamics of a batch: straight-line code first, `KKT` for every sample that it leaves open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.kkt import KKT, BatchCertificate, Solution, Status
from dalembert.kkt.residual import relative_residuals
from dalembert.model.lagrangian.quantities import LARGEST
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.kkt.solve import Answer
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.lagrangian.states import States

SOLVED = (Status.UNIQUE, Status.REDUNDANT)
"""Verdicts of the kernel whose numbers are the answer."""

NOWHERE = (Status.INCONSISTENT, Status.NONFINITE)
"""Verdicts that `KKT` would repeat, unless it is asked for a least-squares answer: there are no numbers."""


def forward(system: Lagrangian, states: States, options: dict[str, Any]) -> Solution:
    """Return accelerations (..., n), multipliers (..., m) and one status per sample, shape of the batch."""
    if options:
        KKT(np.eye(1)).solve(np.zeros((1, 1)), **options)  # a wrong word is refused although no sample may need it
    batch, n, m = states.batch, len(system.coordinates), len(system.names)
    samples = math.prod(batch)
    answers = _Answers.unknown(samples, n, m)
    if n + m <= LARGEST and options.get("route") in (None, "auto"):
        a, lam, status = states.evaluate("forward")
        answers = _Answers(*(x.reshape(samples, x.shape[-1]) for x in (a, lam, status)))
        answers.status[answers.status == Status.NONFINITE] = Status.DECLINED  # inputs that are finite, but overflow
        answers.status[~states.finite().reshape(-1)] = Status.NONFINITE
        answers.clear(NOWHERE)
    decided = SOLVED if options else (*SOLVED, *NOWHERE)
    rest = np.flatnonzero(~np.isin(answers.status[:, 0], decided))
    if rest.size:
        solved = by_kkt(states.taken(rest), rest.size, options)
        answers.acceleration[rest], answers.multipliers[rest] = solved.acceleration, solved.multipliers
        answers.status[rest, 0] = solved.certificate.status
    return answers.solution(system, states, options)


def by_kkt(states: States, samples: int, options: dict[str, Any]) -> Solution:
    """Solve samples through `KKT`, as a batch; those with inputs that are not finite get a force that is NaN."""
    system = states.system
    M, bias, A, drift = states.terms()
    force = np.where(states.finite()[..., None], 0.0 - bias, np.nan)
    force = np.broadcast_to(force, (samples, force.shape[-1]))
    if not (np.isfinite(M).all() and np.isfinite(A).all()):  # as a batch these are a status, alone they are refused
        M, A = (np.broadcast_to(x, (samples, *x.shape[-2:])) for x in (M, A))
    return KKT(M, A, system.names, system.coordinates).solve(force, drift, **options)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Outputs of the kernel "forward", flat: (N, n), (N, m), (N, 1)."""

    acceleration: Array
    multipliers: Array
    status: Array

    @classmethod
    def unknown(cls, samples: int, n: int, m: int) -> _Answers:
        """Return a batch of which nothing is known yet."""
        a, lam = (np.full((samples, size), np.nan) for size in (n, m))
        return cls(a, lam, np.full((samples, 1), float(Status.DECLINED)))

    def clear(self, verdicts: tuple[Status, ...]) -> None:
        """Leave no numbers where there is no answer."""
        nowhere = np.isin(self.status[:, 0], verdicts)
        self.acceleration[nowhere], self.multipliers[nowhere] = np.nan, np.nan

    def solution(self, system: Lagrangian, states: States, options: dict[str, Any]) -> Solution:
        """Return the batch as a `Solution`; residuals and the certificate of a sample are made when asked for."""
        shape = states.batch
        flat = np.arange(len(self.status)).reshape(shape)
        status = self.status[:, 0].astype(np.uint8)

        def sample(index: tuple[int, ...]) -> Answer:
            one = by_kkt(states.taken(flat[index].reshape(1)), 1, options).certificate
            assert isinstance(one, BatchCertificate)
            return one.sample((0,))

        def residuals() -> tuple[Array, Array]:
            pairs = np.full((2, status.size), np.nan)
            solved = np.flatnonzero(status <= Status.ILL_CONDITIONED)
            if solved.size:
                M, bias, A, drift = (
                    np.broadcast_to(x, (solved.size, *x.shape[x.ndim - axes :]))
                    for x, axes in zip(states.taken(solved).terms(), (2, 1, 2, 1), strict=True)
                )
                for k, i in enumerate(solved):
                    answer = self.acceleration[i], self.multipliers[i]
                    pairs[:, i] = relative_residuals(M[k], A[k], -bias[k], -drift[k], *answer)
            return pairs[0].reshape(shape), pairs[1].reshape(shape)

        a, lam = (x.reshape(*shape, x.shape[-1]) for x in (self.acceleration, self.multipliers))
        return Solution(a, lam, BatchCertificate(status.reshape(shape), residuals, sample), system)
