"""Consistent initial values: from what a user gives to positions, velocities, accelerations and multipliers that fit.

Symbols: q, v free coordinates and velocities; W = M in the mass metric; phi, psi, A, drift as in `formulation.py`.

    q: min (q - q0)^T W (q - q0)  with phi(q, t) = 0        Newton's method on the least change
    v: min (v - v0)^T W (v - v0)  with psi = A v + dphi/dt = 0     (one linear solve)
    a, lam: M a + A^T lam = -bias, A a = -drift                    (`KKT`: least-norm lam where rows are redundant)

Ranks are decided where they are meant: on the manifold, after q has been found. psi = 0 and A a + drift = 0 are the
hidden constraints of the index-3 form; the report names those that the given values violated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.checks import floats, one_number
from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.kernel import Kernel
from dalembert.kkt import KKT
from dalembert.kkt.limits import DOUBT, SLACK
from dalembert.kkt.newton import onto_manifold
from dalembert.kkt.rows import independent_rows
from dalembert.model.mechanism.ranks import GenericRank, solve_under_rank
from dalembert.simulate.equations.formulation import KnownMotion
from dalembert.simulate.limits import ACCEPTED_START, LARGEST_INVERSE, LIGHTEST, POSSIBLE_CONTROLS, START_ROUNDING
from dalembert.types import Array

MOST_ITERATIONS = 50
SLACK_OF_RANK = 10.0
"""Times what redundant rows contradict each other where the rank was decided that they may do so elsewhere."""


@dataclass(frozen=True, eq=False)
class Consistent:
    """A consistent start, and what had to move.

    Attributes
    ----------
    q, v, a, tau, multipliers
        Free coordinates, velocities, accelerations, unknown controls, multipliers.
    moved
        Name -> change, of coordinates and velocities (with a prime) that were changed by more than rounding.
    violated
        Name -> residual before, of constraints and hidden constraints that the given values did not satisfy.
    rank, redundant
        Rank of A there, and how many rows are redundant.
    """

    t: float
    q: Array
    v: Array
    a: Array
    tau: Array
    multipliers: Array
    moved: dict[str, float]
    violated: dict[str, float]
    rank: int
    redundant: int

    def __str__(self) -> str:
        lines = [f"consistent at t = {self.t:g}; rank {self.rank}, {self.redundant} redundant rows"]
        lines += [f"  {name} violated by {x:.3g}" for name, x in self.violated.items()]
        lines += [f"  {name} moved by {x:.3g}" for name, x in self.moved.items()]
        return "\n".join(lines)


class Finder:
    """Compiled terms of a motion, and the search for consistent values."""

    def __init__(self, motion: KnownMotion) -> None:
        self.motion = motion
        self._rank: GenericRank | None = None

    def rank(self, q: Array, t: float) -> GenericRank | None:
        """Return the rank of the system's rows, decided once around its first start; None where it has none to tell."""
        m = self.motion
        generic_rank = getattr(m.system, "generic_rank", None)
        if self._rank is None and generic_rank is not None and m.names and not (m.given or m.tau.numel()):
            self._rank = generic_rank(q, t)
        return self._rank

    @cached_property
    def _terms(self) -> Kernel:
        m = self.motion
        p = m.system.symbols.parameters.column
        names = ("q", "v", "tau", "t", "signals", "parameters")
        inputs = dict(zip(names, (m.q, m.v, m.tau, m.time, m.signals.column, p), strict=True))
        inputs = {name: column for name, column in inputs.items() if column.numel()}
        effect = ca.jacobian(m.bias, m.tau) if m.tau.numel() else ca.SX(m.bias.numel(), 0)
        outputs = [m.mass, m.bias, m.jacobian, m.full_jacobian, m.drift, m.phi, m.psi, effect]
        self._shapes = [e.shape for e in outputs]
        flat = [ca.densify(ca.vertcat(ca.vec(e.T), 0)) for e in outputs]  # no output is empty
        return Kernel(ca.Function("start_terms", list(inputs.values()), flat, list(inputs), list("abcdefgh")), width=1)

    def terms(self, q: Array, v: Array, t: Any, signals: Array, p: Array) -> list[Array]:
        """Return M, bias, A, full A, drift, phi, psi, dbias/dtau as numbers, tau = 0; of one point or (N, ...)."""
        lead = q.shape[:-1]
        arrays = {"q": q, "v": v, "tau": np.zeros((*lead, self.motion.tau.numel())), "t": np.reshape(t, (*lead, 1))}
        arrays |= {"signals": signals, "parameters": p}
        kernel = self._terms
        outputs = kernel(*[np.ascontiguousarray(arrays[port.name], dtype=float) for port in kernel.inputs])
        outputs = [x[..., :-1].reshape(*lead, *shape) for x, shape in zip(outputs, self._shapes, strict=True)]
        return [x.reshape(*lead, x.shape[-2] * x.shape[-1]) if i in (1, 4, 5, 6) else x for i, x in enumerate(outputs)]

    def find(self, t: float, q: Any, v: Any, p: Array, hold: Any = ()) -> Consistent:
        """Return consistent values at t, near q and v; coordinates named in `hold` do not move."""
        m = self.motion
        q0, v0 = self._start(q, "q"), self._start(v, "v")
        signals = m.signals.values(t)
        held = self._held(hold)
        terms = self.terms(q0, v0, t, signals, p)
        q1 = self._positions(q0, v0, t, signals, p, held, terms)
        there = terms if q1 is q0 else self.terms(q1, v0, t, signals, p)
        v1 = self._velocities(q1, v0, t, signals, p, held, there)
        a, tau, lam, rank = self.accelerations(q1, v1, t, signals, p)
        report = self._moved(q0, v0, q1, v1), self._violated(q0, v0, terms, there)
        return Consistent(t, q1, v1, a, tau, lam, *report, rank, m.lam.numel() - rank)

    def accelerations(self, q: Array, v: Array, t: float, signals: Array, p: Array) -> tuple[Array, Array, Array, int]:
        """Return a, tau, lam and the rank of A at a consistent point."""
        m = self.motion
        M, bias, A, full, drift, _, _, effect = self.terms(q, v, t, signals, p)
        generic = self.rank(q, t)
        rank = row_rank(A) if generic is None else generic.rank
        if generic is not None and generic.redundant:
            a, lam = solve_under_rank(generic, M, A, -bias, drift)
            return a, np.zeros(0), lam, rank
        if not m.tau.numel():
            direct = well_posed(M, A, -bias, -drift) if rank == m.lam.numel() else None
            if direct is not None:
                return direct[0], np.zeros(0), direct[1], rank
            solution = KKT(M, A, m.names, [m.system.coordinates[i] for i in m.free]).solve(
                -bias, drift, inconsistent="least_squares"
            )
            return solution.acceleration, np.zeros(0), solution.multipliers, rank
        # inverse and mixed dynamics: unknowns a, tau, lam of a general system, least norm where they are not unique
        nf, nt, count = len(m.free), m.tau.numel(), m.lam.numel()
        K = np.block([[M, effect, full.T], [A, np.zeros((count, nt + count))]])
        b = np.concatenate([-bias, -drift])
        rows, cols = scales(K)
        z = cols * np.linalg.lstsq(rows[:, None] * K * cols, rows * b, rcond=DOUBT)[0]
        if np.abs(rows * (K @ z - b)).max(initial=0.0) > POSSIBLE_CONTROLS * max(
            1.0, np.abs(rows * b).max(initial=0.0)
        ):
            raise SolvabilityError(
                f"no {', '.join(m.free_controls)} can produce the known motion: its acceleration conflicts with the "
                "constraints or with coordinates that no unknown control reaches"
            )
        return z[:nf], z[nf : nf + nt], z[nf + nt :], rank

    def _start(self, given: Any, what: str) -> Array:
        """Return the free part of coordinates or velocities."""
        m = self.motion
        n = len(m.system.coordinates)
        if given is None:
            return np.zeros(len(m.free))
        if isinstance(given, dict):
            full = np.zeros(n)
            for name, value in given.items():
                if name not in m.system.coordinates:
                    raise ModelError(
                        f"{what}: no coordinate is called {name!r}; there are {', '.join(m.system.coordinates)}"
                    )
                full[m.system.coordinates.index(name)] = one_number(value, f"{what} of {name}")
        else:
            full = floats(given, what)
            if what == "q" and hasattr(m.system, "own"):
                full = m.system.own(full)
        if full.shape == (n,):
            full = full[list(m.free)]
        elif full.shape != (len(m.free),):
            raise ShapeError(f"{what} has shape {full.shape}; expected ({n},)")
        if not np.isfinite(full).all():
            names = [m.system.coordinates[m.free[i]] for i in np.flatnonzero(~np.isfinite(full))]
            raise ModelError(f"{what} is not finite for {', '.join(names)}")
        return full

    def _held(self, hold: Any) -> Array:
        m = self.motion
        names = [m.system.coordinates[i] for i in m.free]
        if not isinstance(hold, list | tuple | set):
            raise ModelError(f"hold={hold!r}: a list of names of coordinates is needed")
        for name in hold:
            if name not in names:
                raise ModelError(f"hold: no free coordinate is called {name!r}; there are {', '.join(names)}")
        return np.array([name in set(hold) for name in names], dtype=bool)

    def _positions(self, q0: Array, v0: Array, t: float, s: Array, p: Array, held: Array, given: list[Array]) -> Array:
        """Newton's method: each step is the least change, in the metric of q0, that satisfies the linearised rows."""
        m, rows = self.motion, self.motion.holonomic_rows
        if not rows or negligible(given[5], given[2][rows], q0, START_ROUNDING):
            return q0
        W = metric(given[0][list(m.free), :])
        generic = self.rank(q0, t)
        under = {} if generic is None else {"rank": generic.positions, "sizes": generic.scales[rows]}

        def linearised(q: Array) -> tuple[float, Callable[[], Array]]:
            terms = self.terms(q, v0, t, s, p)
            A, phi = terms[2][rows], terms[5]
            return largest_part(phi, A, q), lambda: least_change(W, A, q0 - q, -phi, held, **under)

        q, _ = onto_manifold(
            q0, linearised, lambda q, dq: q + dq / max(1.0, np.abs(dq).max()), MOST_ITERATIONS, START_ROUNDING,
            ACCEPTED_START,
        )  # fmt: skip
        terms = self.terms(q, v0, t, s, p)
        A, phi = terms[2][rows], terms[5]
        close = (
            np.zeros(len(rows)) if generic is None else SLACK_OF_RANK * max(generic.gap, SLACK) * generic.sizes[rows]
        )
        bad = np.flatnonzero(~fits(phi, A, q, ACCEPTED_START) & ~(np.abs(phi) <= close))
        if len(bad):
            sizes = ", ".join(f"{m.names[rows[i]]}: {phi[i]:.3g}" for i in bad[:8])
            raise SolvabilityError(
                f"no position near the given one satisfies the constraints; left are {sizes}. The constraints may "
                "contradict each other, a held coordinate may be wrong, or the start is too far away: give a nearer q"
            )
        return q

    def _velocities(self, q: Array, v0: Array, t: float, s: Array, p: Array, held: Array, there: list[Array]) -> Array:
        """Return the velocity nearest to v0, in the mass metric, that satisfies all rows."""
        m, A, psi = self.motion, there[2], there[6]
        if not m.lam.numel() or negligible(psi, A, v0, START_ROUNDING):
            return v0
        W = metric(there[0][list(m.free), :])
        generic = self.rank(q, t)
        under = {} if generic is None else {"rank": generic.rank, "sizes": generic.scales}
        v = v0 + least_change(W, A, np.zeros_like(v0), -psi, held, **under)
        psi = self.terms(q, v, t, s, p)[6]
        share = ACCEPTED_START if generic is None else max(ACCEPTED_START, SLACK_OF_RANK * generic.gap)
        bad = np.flatnonzero(~fits(psi, A, np.append(v, v0), share) & ~self._cancelled(psi, np.append(v, v0)))
        if len(bad):
            sizes = ", ".join(f"{m.names[i]}: {psi[i]:.3g}" for i in bad[:8])
            raise SolvabilityError(f"no velocity satisfies the rates of the constraints; left are {sizes}")
        return v

    def _cancelled(self, residual: Array, x: Array, rows: Any = slice(None)) -> Array:
        """Return which residuals are rounding of lengths and angles that cancel, as across the plane of a linkage."""
        generic = self._rank
        if generic is None:
            return np.zeros(len(residual), dtype=bool)
        limit = START_ROUNDING * generic.sizes[rows] * max(1.0, np.abs(x).max(initial=0.0))
        return np.asarray(np.abs(residual) <= limit)

    def _moved(self, q0: Array, v0: Array, q: Array, v: Array) -> dict[str, float]:
        names = [self.motion.system.coordinates[i] for i in self.motion.free]
        changes = dict(zip(names, q - q0, strict=True)) | dict(zip([f"{x}'" for x in names], v - v0, strict=True))
        size = max(1.0, np.abs(q).max(initial=0.0)), max(1.0, np.abs(v).max(initial=0.0))
        limits = dict.fromkeys(names, START_ROUNDING * size[0])
        return {name: float(x) for name, x in changes.items() if abs(x) > limits.get(name, START_ROUNDING * size[1])}

    def _violated(self, q0: Array, v0: Array, given: list[Array], there: list[Array]) -> dict[str, float]:
        """Return residuals of what was given: position rows at q0, rates at the corrected position."""
        m = self.motion
        violations = {}
        rows = m.holonomic_rows
        off = ~fits(given[5], given[2][rows], q0, START_ROUNDING) & ~self._cancelled(given[5], q0, rows)
        for k in np.flatnonzero(off):
            violations[m.names[rows[k]]] = float(given[5][k])
        off = ~fits(there[6], there[2], v0, START_ROUNDING) & ~self._cancelled(there[6], v0)
        for i in np.flatnonzero(off):
            hidden = f"rate of {m.names[i]} (hidden)" if m.holonomic[i] else m.names[i]
            violations[hidden] = float(there[6][i])
        return violations


# ----------------------------------------------------------------------------------------------------------------------
# The least change that satisfies linear rows, in a metric; sizes at which residuals count; ranks.


def fits(residual: Array, A: Array, x: Array, share: float) -> Array:
    """Return which residuals are below a share of the sizes that enter them, |A| max(1, |x|)."""
    return np.abs(residual) <= share * np.abs(A).sum(axis=1) * max(1.0, np.abs(x).max(initial=0.0))


def largest_part(residual: Array, A: Array, x: Array) -> float:
    """Return the largest residual as a part of the sizes that enter it; infinite where one is no number."""
    size = np.abs(A).sum(axis=1) * max(1.0, np.abs(x).max(initial=0.0))
    parts = np.abs(residual) / np.where(size > 0.0, size, np.finfo(float).tiny)
    return float(parts.max(initial=0.0)) if np.isfinite(parts).all() else np.inf


def negligible(residual: Array, A: Array, x: Array, share: float) -> bool:
    """Say whether all residuals are that small."""
    return bool(fits(residual, A, x, share).all())


def metric(M: Array) -> Array:
    """Return a definite matrix: M, with massless coordinates given the least of the other masses."""
    if not M.size:
        return M
    lightest = np.diag(M)[np.diag(M) > 0].min(initial=np.inf)
    floor = LIGHTEST * (lightest if np.isfinite(lightest) else 1.0)
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return vectors @ np.diag(np.maximum(values, floor)) @ vectors.T


def least_change(
    W: Array, A: Array, toward: Array, b: Array, held: Array, rank: int | None = None, sizes: Array | None = None
) -> Array:
    """Return d with A d = b (least squares where rows are redundant) and least (d - toward)^T W (d - toward).

    With `rank` so many directions count, of rows scaled by `sizes`, whatever the numbers say: next to the constraints
    rows that depend on each other on them look independent. Coordinates that are held may cost some of it.
    """
    move = ~held
    L = np.linalg.cholesky(W[np.ix_(move, move)]) if move.any() else np.zeros((0, 0))
    scaled = np.linalg.solve(L, A[:, move].T).T
    if sizes is None:
        size = np.linalg.norm(scaled, axis=1)
        sizes = 1.0 / np.where(size > 0, size, 1.0)
    U, s, Vt = np.linalg.svd(sizes[:, None] * scaled, full_matrices=False)
    keep = s > DOUBT * s.max(initial=0.0)
    if rank is not None:
        keep &= np.arange(s.size) < rank
    right = U.T @ (sizes * (b - A[:, move] @ toward[move]))
    y = Vt.T @ np.where(keep, right / np.where(keep, s, 1.0), 0.0)
    d = np.zeros(len(held))
    d[move] = toward[move] + np.linalg.solve(L.T, y)
    return d


def row_rank(A: Array) -> int:
    """Return the rank of A at a consistent point, where singular values that are zero are at rounding level."""
    return len(independent_rows(A, tolerance=DOUBT)) if A.size else 0


def scales(K: Array) -> tuple[Array, Array]:
    """Return row and column scales that make the largest entries of K, (..., m, n), about one."""
    rows, cols = np.ones(K.shape[:-1]), np.ones((*K.shape[:-2], K.shape[-1]))
    for _ in range(3):
        size = np.abs(rows[..., :, None] * K * cols[..., None, :]).max(axis=-1, initial=0.0)
        rows /= np.where(size > 0, size, 1.0)
        size = np.abs(rows[..., :, None] * K * cols[..., None, :]).max(axis=-2, initial=0.0)
        cols /= np.where(size > 0, size, 1.0)
    return rows, cols


def well_posed(M: Array, A: Array, f: Array, c: Array) -> tuple[Array, Array] | None:
    """Return a, lam of M a + A^T lam = f, A a = c where the matrix is far from singular; None where it may be."""
    n, count = M.shape[0], A.shape[0]
    K = np.zeros((n + count, n + count))
    K[:n, :n], K[:n, n:], K[n:, :n] = M, A.T, A
    if not K.size or not np.isfinite(K).all():
        return None
    rows, cols = scales(K)
    scaled = rows[:, None] * K * cols
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return None
    if not np.abs(inverse).sum(axis=1).max() < LARGEST_INVERSE:
        return None
    b = np.concatenate([f, c])
    z = cols * (inverse @ (rows * b))
    z += cols * (inverse @ (rows * (b - K @ z)))
    return z[:n], z[n:]
