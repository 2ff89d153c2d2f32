"""Forward dynamics of a batch: straight-line code first, `KKT` for every sample that it does not certify."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.kkt import KKT, BatchCertificate, Solution, Status
from dalembert.model.lagrangian.quantities import LARGEST

if TYPE_CHECKING:
    from dalembert.kkt.solve import Answer
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.lagrangian.states import States

Array = np.ndarray


def forward(system: Lagrangian, states: States, options: dict[str, Any]) -> Solution:
    """Return accelerations (..., n), multipliers (..., m) and one status per sample, shape of the batch."""
    if options:
        KKT(np.eye(1)).solve(np.zeros((1, 1)), **options)  # a wrong word is refused although no sample may need it
    batch, n, m = states.batch, len(system.coordinates), len(system.names)
    samples = math.prod(batch)
    found = _Batch.unknown(samples, n, m)
    if n + m <= LARGEST and options.get("route") in (None, "auto"):
        a, lam, status, residuals = states.evaluate("forward")
        found = _Batch(*(x.reshape(samples, x.shape[-1]) for x in (a, lam, status, residuals)))
    found.status[~states.finite().reshape(-1)] = Status.DECLINED
    left = np.flatnonzero(found.status[:, 0] != Status.UNIQUE)
    if left.size:
        solved = by_kkt(states.taken(left), left.size, options)
        certificate = solved.certificate
        found.acceleration[left], found.multipliers[left] = solved.acceleration, solved.multipliers
        found.status[left, 0] = certificate.status
        found.residuals[left, 0] = certificate.residual_motion
        found.residuals[left, 1] = certificate.residual_constraint
    return found.solution(system, states, options)


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
class _Batch:
    """Outputs of the kernel "forward", flat: (N, n), (N, m), (N, 1), (N, 2)."""

    acceleration: Array
    multipliers: Array
    status: Array
    residuals: Array

    @classmethod
    def unknown(cls, samples: int, n: int, m: int) -> _Batch:
        """Return a batch of which nothing is known yet."""
        a, lam, residuals = (np.full((samples, size), np.nan) for size in (n, m, 2))
        return cls(a, lam, np.full((samples, 1), float(Status.DECLINED)), residuals)

    def solution(self, system: Lagrangian, states: States, options: dict[str, Any]) -> Solution:
        """Return the batch as a `Solution`; the whole certificate of a sample is made when it is asked for."""
        shape = states.batch
        flat = np.arange(len(self.status)).reshape(shape)

        def sample(index: tuple[int, ...]) -> Answer:
            one = by_kkt(states.taken(flat[index].reshape(1)), 1, options).certificate
            assert isinstance(one, BatchCertificate)
            return one.sample((0,))

        certificate = BatchCertificate(
            self.status[:, 0].astype(np.uint8).reshape(shape),
            self.residuals[:, 0].reshape(shape),
            self.residuals[:, 1].reshape(shape),
            sample,
        )
        a, lam = (x.reshape(*shape, x.shape[-1]) for x in (self.acceleration, self.multipliers))
        return Solution(a, lam, certificate, system)
