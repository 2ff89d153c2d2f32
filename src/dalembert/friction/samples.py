"""Many states of one system: their data, and their answers with one status per sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from dalembert.friction.status import FrictionStatus

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class BatchResolution:
    """Answers of N states.

    Attributes
    ----------
    acceleration, forces, contact_acceleration
        (N, n), (N, m), (N, m); NaN where a sample has no answer.
    multipliers
        lam of the constraint rows, (N, k), the least-norm ones; the reactions are -lam.
    sets
        Per sample and contact: 0 sticks, 1 slides, +2 or -2 about to slip in that direction (plane: 2), 3 open, (N, c);
        c contacts, of which those in a plane have two of the m columns.
    status
        Codes of `FrictionStatus`, (N,).
    optimality
        Residual of the laws per sample, as in `FrictionCertificate`.
    iterations
        Rounds per sample.
    """

    acceleration: Float[Array, "N n"]
    forces: Float[Array, "N m"]
    contact_acceleration: Float[Array, "N m"]
    multipliers: Float[Array, "N k"]
    sets: Int[Array, "N c"]
    status: Int[Array, " N"]
    optimality: Float[Array, " N"]
    iterations: Int[Array, " N"]

    @property
    def ok(self) -> Array:
        """Per sample, whether the forces obey the friction laws."""
        return self.status == FrictionStatus.SOLVED

    def __str__(self) -> str:
        codes, counts = np.unique(self.status, return_counts=True)
        lines = [f"{np.count_nonzero(self.ok)} of {self.status.size} samples ok"]
        lines += [f"  {n:7d}  {FrictionStatus(int(code)).message}" for code, n in zip(codes, counts, strict=True)]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Samples:
    """Checked data of N samples; M, W and A may have one sample for all."""

    M: Array
    f: Array
    W: Array
    velocity: Array
    A: Array
    drift: Array
    contact_drift: Array
    loads: Array

    def one(self, s: int) -> dict[str, Any]:
        """Return the arguments of `resolve` for one sample."""
        M, W, A = (x[min(s, len(x) - 1)] for x in (self.M, self.W, self.A))
        return {
            "M": M, "f": self.f[s], "W": W, "state": self.velocity[s], "A": A if len(A) else None,
            "drift": self.drift[s] if len(A) else None, "contact_drift": self.contact_drift[s], "loads": self.loads[s],
        }  # fmt: skip


def least_multipliers(data: Samples, a: Array, T: Array) -> Array:
    """Return the least-norm lam of A^T lam = f + W T - M a, NaN where there is no answer."""
    lam = np.full((len(a), data.A.shape[1]), np.nan)
    good = np.isfinite(a).all(axis=1) & np.isfinite(T).all(axis=1)
    if not lam.size or not good.any():
        return lam
    M, W, A = (x if len(x) == 1 else x[good] for x in (data.M, data.W, data.A))
    missing = data.f[good] + (W @ T[good][:, :, None] - M @ a[good][:, :, None])[:, :, 0]
    lam[good] = (np.linalg.pinv(A.transpose(0, 2, 1), rcond=1e-12) @ missing[:, :, None])[:, :, 0]
    return lam
