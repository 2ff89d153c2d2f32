"""`resolve_batch`: many states of one system with bounded contacts, one status per sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from dalembert.errors import ShapeError
from dalembert.friction.law import Law
from dalembert.friction.problem import checked_laws
from dalembert.friction.resolve import resolve
from dalembert.friction.status import FrictionStatus
from dalembert.kkt.inputs import as_real, checked_names

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class BatchResolution:
    """Answers of N states.

    Attributes
    ----------
    acceleration, forces, contact_acceleration
        (N, n), (N, m), (N, m); NaN where a sample has no answer.
    sets
        Per sample and contact: 0 sticks, 1 slides, +2 or -2 about to slip in that direction, (N, m).
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
    sets: Int[Array, "N m"]
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


def resolve_batch(
    M: Any, f: Any, W: Any, state: Any, laws: Any, *, contact_drift: Any = None, loads: Any = None, names: Any = None,
    at_rest: float = 0.0, warm: Any = None,
) -> BatchResolution:  # fmt: skip
    """Resolve many states exactly, in compiled code.

    Parameters
    ----------
    M, W
        (n, n) and (n, m), common to all samples, or (N, n, n) and (N, n, m).
    f, state
        Forces and relative velocities, (N, n) and (N, m).
    laws
        One law, or one per contact, with given limits; laws that depend on the state of the system are refused.
    contact_drift, loads
        (N, m) or (m,).
    warm
        First guesses, (N, m).

    Notes
    -----
    A sample whose M is singular is resolved by itself, with sticking contacts that hold the massless motion. About a
    microsecond for one contact, ten for ten.
    """
    M, W, f, velocity = (as_real(x, what)[0] for x, what in ((M, "M"), (W, "W"), (f, "f"), (state, "state")))
    M, W = (x[None] if x.ndim == 2 else x for x in (M, W))
    if f.ndim != 2 or velocity.ndim != 2 or len(f) != len(velocity) or M.ndim != 3 or W.ndim != 3:
        raise ShapeError(f"f and state must be (N, n) and (N, m); they have shapes {f.shape} and {velocity.shape}")
    N, n, m = len(f), f.shape[1], velocity.shape[1]
    if M.shape[1:] != (n, n) or W.shape[1:] != (n, m) or len(M) not in (1, N) or len(W) not in (1, N):
        raise ShapeError(f"M {M.shape} and W {W.shape} do not fit f {f.shape} and state {velocity.shape}")
    names = checked_names([f"contact {i}" for i in range(m)] if names is None else names, m, "names", "contacts")
    laws = checked_laws(laws, m, names)
    drift, weight = (
        np.broadcast_to(np.asarray(default if x is None else x, dtype=float), (N, m))
        for x, default in ((contact_drift, 0.0), (loads, 1.0))
    )
    out = _solved(M, f, W, velocity, laws, drift, weight, at_rest, warm)
    for s in np.flatnonzero(out.status == FrictionStatus.MASSLESS).tolist():
        _alone(
            out, s, M[min(s, len(M) - 1)], f[s], W[min(s, len(W) - 1)], velocity[s], laws, drift[s], weight[s], at_rest
        )
    return out


def _solved(
    M: Array, f: Array, W: Array, velocity: Array, laws: tuple[Law, ...], drift: Array, weight: Array, at_rest: float,
    warm: Any,
) -> BatchResolution:  # fmt: skip
    """Run the kernel."""
    from dalembert.friction.batch_kernel import resolve_samples

    N, n = f.shape
    m = velocity.shape[1]
    rest = np.abs(velocity) <= at_rest
    static = np.array([float(law.static()) for law in laws])
    sliding = np.column_stack([law.force(velocity[:, i]) for i, law in enumerate(laws)]) if m else np.zeros((N, 0))
    known = np.isfinite(velocity) & (weight >= 0.0)
    limits = np.where(known, weight * static, np.nan)
    moving = np.where(rest | ~known, 0.0, weight * np.nan_to_num(sliding))
    T = np.zeros((N, m)) if warm is None else np.array(np.broadcast_to(warm, (N, m)), dtype=float)
    a, xi = np.full((N, n), np.nan), np.full((N, m), np.nan)
    code, status, rounds = np.zeros((N, m), dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64)
    residual = np.full(N, np.nan)
    given = tuple(np.ascontiguousarray(x) for x in (M, f, W, rest, limits, moving, drift))
    resolve_samples(*given, a, T, xi, code, status, residual, rounds)  # pyright: ignore[reportCallIssue]
    T[status != FrictionStatus.SOLVED] = np.nan
    return BatchResolution(a, T, xi, code, status, residual, rounds)


def _alone(out: BatchResolution, s: int, M: Array, f: Array, W: Array, velocity: Array, laws: tuple[Law, ...],
           drift: Array, loads: Array, at_rest: float) -> None:  # fmt: skip
    """Resolve one sample through `resolve` and write its answer."""
    if not np.isfinite(M).all() or not np.allclose(M, M.T, rtol=1e-12, atol=0.0):
        out.status[s] = FrictionStatus.NONFINITE
        return
    one = resolve(M, f, W, velocity, list(laws), contact_drift=drift, loads=loads, at_rest=at_rest)
    out.status[s], out.optimality[s], out.iterations[s] = (
        one.status,
        one.certificate.optimality,
        one.certificate.iterations,
    )
    out.acceleration[s], out.forces[s], out.contact_acceleration[s] = (
        one.acceleration,
        one.forces,
        one.contact_acceleration,
    )
    for i, name in enumerate(one.names):
        sign = one.sets.about_to_slip.get(name)
        out.sets[s, i] = 1 if name in one.sets.sliding else (0 if sign is None else int(2 * np.sign(sign)))
