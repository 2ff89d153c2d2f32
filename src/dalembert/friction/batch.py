"""`resolve_batch`: many states of one system with bounded contacts, one status per sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from dalembert.errors import ShapeError, SolvabilityError
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
    multipliers
        lam of the constraint rows, (N, k), the least-norm ones; the reactions are -lam.
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
    multipliers: Float[Array, "N k"]
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
    M: Any, f: Any, W: Any, state: Any, laws: Any, *, A: Any = None, drift: Any = None, contact_drift: Any = None,
    loads: Any = None, names: Any = None, at_rest: float = 0.0, warm: Any = None,
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
    A, drift
        Constraint rows, (k, n) or (N, k, n), and A_dot v, (N, k) or (k,); rows may be redundant.
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
    A, k = _constraint_rows(A, N, n)
    rates = (
        _broadcast(x, default, (N, width), what)
        for x, default, width, what in (
            (drift, 0.0, k, "drift"), (contact_drift, 0.0, m, "contact_drift"), (loads, 1.0, m, "loads")
        )
    )  # fmt: skip
    data = _Samples(M, f, W, velocity, A, *rates)
    out = _solved(data, laws, at_rest, warm)
    for s in np.flatnonzero(out.status == FrictionStatus.MASSLESS).tolist():
        _alone(out, s, data, laws, at_rest)
    return out


@dataclass(frozen=True, eq=False)
class _Samples:
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


def _constraint_rows(A: Any, N: int, n: int) -> tuple[Array, int]:
    """Return A as (N or 1, k, n), and k."""
    if A is None:
        return np.zeros((1, 0, n)), 0
    A, _ = as_real(A, "A")
    A = A[None] if A.ndim == 2 else A
    if A.ndim != 3 or A.shape[2] != n or len(A) not in (1, N):
        raise ShapeError(f"A must be (k, {n}) or ({N}, k, {n}); it has shape {A.shape}")
    return A, A.shape[1]


def _broadcast(values: Any, default: float, shape: tuple[int, int], what: str) -> Array:
    array = np.asarray(default) if values is None else as_real(values, what)[0]
    try:
        return np.broadcast_to(array, shape).astype(float)
    except ValueError:
        raise ShapeError(f"{what} must be {shape} or ({shape[1]},); it has shape {array.shape}") from None


def _solved(data: _Samples, laws: tuple[Law, ...], at_rest: float, warm: Any) -> BatchResolution:
    """Run the kernel."""
    from dalembert.friction.batch_kernel import resolve_samples

    N, n = data.f.shape
    velocity, weight = data.velocity, data.loads
    m = velocity.shape[1]
    rest = np.abs(velocity) <= at_rest
    static = np.array([float(law.static()) for law in laws])
    sliding = np.column_stack([law.force(velocity[:, i]) for i, law in enumerate(laws)]) if m else np.zeros((N, 0))
    known = np.isfinite(velocity) & (weight >= 0.0)
    limits = np.where(known, weight * static, np.nan)
    moving = np.where(rest | ~known, 0.0, weight * np.nan_to_num(sliding))
    T = np.zeros((N, m)) if warm is None else _broadcast(warm, 0.0, (N, m), "warm").copy()
    a, xi = np.full((N, n), np.nan), np.full((N, m), np.nan)
    code, status, rounds = np.zeros((N, m), dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64)
    residual = np.full(N, np.nan)
    arrays = data.M, data.f, data.W, data.A, data.drift, rest, limits, moving, data.contact_drift
    given = tuple(np.ascontiguousarray(x) for x in arrays)
    resolve_samples(*given, a, T, xi, code, status, residual, rounds)  # pyright: ignore[reportCallIssue]
    T[status != FrictionStatus.SOLVED] = np.nan
    return BatchResolution(a, T, xi, _multipliers(data, a, T), code, status, residual, rounds)


def _multipliers(data: _Samples, a: Array, T: Array) -> Array:
    """Return the least-norm lam of A^T lam = f + W T - M a, NaN where there is no answer."""
    lam = np.full((len(a), data.A.shape[1]), np.nan)
    good = np.isfinite(a).all(axis=1) & np.isfinite(T).all(axis=1)
    if not lam.size or not good.any():
        return lam
    M, W, A = (x if len(x) == 1 else x[good] for x in (data.M, data.W, data.A))
    missing = data.f[good] + (W @ T[good][:, :, None] - M @ a[good][:, :, None])[:, :, 0]
    lam[good] = (np.linalg.pinv(A.transpose(0, 2, 1), rcond=1e-12) @ missing[:, :, None])[:, :, 0]
    return lam


def _alone(out: BatchResolution, s: int, data: _Samples, laws: tuple[Law, ...], at_rest: float) -> None:
    """Resolve one sample through `resolve` and write its answer."""
    given = data.one(s)
    M = given["M"]
    if not np.isfinite(M).all() or not np.allclose(M, M.T, rtol=1e-12, atol=0.0):
        out.status[s] = FrictionStatus.NONFINITE
        return
    try:
        one = resolve(laws=list(laws), at_rest=at_rest, **given)
    except SolvabilityError:
        out.status[s] = FrictionStatus.INCONSISTENT
        return
    out.status[s], out.optimality[s] = one.status, one.certificate.optimality
    out.iterations[s] = one.certificate.iterations
    out.acceleration[s], out.forces[s], out.multipliers[s] = one.acceleration, one.forces, one.multipliers
    out.contact_acceleration[s] = one.contact_acceleration
    for i, name in enumerate(one.names):
        sign = one.sets.about_to_slip.get(name)
        out.sets[s, i] = 1 if name in one.sets.sliding else (0 if sign is None else int(2 * np.sign(sign)))
