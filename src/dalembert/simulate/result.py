"""The result of an integration, and its accelerations, torques and multipliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt.limits import DOUBT
from dalembert.model.mechanism.ranks import GenericRank, solve_under_rank
from dalembert.names import near_matches
from dalembert.simulate.equations.consistent import scales
from dalembert.simulate.limits import LEAST_NORM
from dalembert.simulate.samples import point_inside
from dalembert.simulate.steppers.interpolation import DenseOutput
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.simulate.problem import Problem

# ----------------------------------------------------------------------------------------------------------------------
# The result of an integration: SciPy's names, the tableau's names, statistics.


@dataclass(frozen=True)
class Statistics:
    """Counts of one integration."""

    steps: int = 0
    error_failures: int = 0
    newton_failures: int = 0
    evaluations: int = 0
    factorizations: int = 0
    newton_iterations: int = 0
    plan_repairs: int = 0
    relaxations: int = 0
    widened: int = 0
    unresolved: int = 0
    restarts: int = 0
    rechosen: int = 0
    orders: Mapping[int, int] = field(default_factory=dict)

    @property
    def rejections(self) -> int:
        """Steps tried and not accepted."""
        return self.error_failures + self.newton_failures

    def __str__(self) -> str:
        orders = ", ".join(f"{k}: {c}" for k, c in self.orders.items() if c)
        return (
            f"{self.steps} steps (by order {orders}), {self.error_failures} + {self.newton_failures} rejected, "
            f"{self.newton_iterations} Newton iterations, {self.factorizations} factorizations, "
            f"{self.plan_repairs} plan repairs, {self.relaxations} relaxations, {self.widened} with widened tolerance, "
            f"{self.restarts} restarts, rows chosen anew {self.rechosen} times"
        )


@dataclass(frozen=True, eq=False)
class Result:
    """A trajectory, whole or as far as it came.

    Attributes
    ----------
    t, y
        Times (N,) and unknowns (n, N): at `t_eval` if given, else at every step.
    rates
        x' at the same times, (n, N).
    sol
        Dense output: `sol(t)` gives (n,) or (n, len(t)).
    t_events, y_events
        Per event, times and unknowns (len, n) at which it happened.
    status
        0 reached the end, 1 stopped by an event, -1 did not get there; `message` says where and why.
    start
        What was found consistent at the beginning.
    """

    t: Float[Array, " N"]
    y: Float[Array, "n N"]
    rates: Float[Array, "n N"]
    sol: DenseOutput
    t_events: list[Array]
    y_events: list[Array]
    status: int
    message: str
    statistics: Statistics
    names: tuple[str, ...]
    start: Any = None
    known: Mapping[str, Any] = field(default_factory=dict)
    problem: Any = None

    @property
    def success(self) -> bool:
        """Whether the end or a terminal event was reached."""
        return self.status >= 0

    @property
    def nfev(self) -> int:
        """Evaluations of the residual."""
        return self.statistics.evaluations

    @property
    def njev(self) -> int:
        """Evaluations of the iteration matrix."""
        return self.statistics.factorizations

    @property
    def nlu(self) -> int:
        """Factorizations."""
        return self.statistics.factorizations

    @cached_property
    def forces(self) -> dict[str, Array]:
        """Unknown controls and multipliers of a mechanical system, from its positions and velocities (`result.py`)."""
        m = None if self.problem is None else self.problem.motion
        if m is None:
            return {}
        names = [*m.free_controls, *(f"lam[{name}]" for name in m.names)]
        return dict(zip(names, self._index_1[:, len(m.free) :].T, strict=True))

    @cached_property
    def accelerations(self) -> Array:
        """Accelerations of a mechanical system's unknown coordinates, from positions and velocities, (N, free).

        Those of the stepper, which are rates of a polynomial, where positions and velocities do not determine them.
        """
        n = len(self.problem.motion.free)
        solved = self._index_1[:, :n]
        return np.where(np.isfinite(solved).all(axis=1, keepdims=True), solved, self.rates[n : 2 * n].T)

    @cached_property
    def _index_1(self) -> Array:
        """Accelerations, unknown controls and multipliers, (N, free + controls + rows)."""
        return index_1_unknowns(self.problem, self)

    @cached_property
    def inside(self) -> Array:
        """The times `t`; at a jump of an input, a number inside the segment that the value belongs to."""
        jumps, at = self.sol.t[np.unique(self.sol.begins)[1:]], self.t.copy()
        hit = np.isin(self.t, jumps)
        after = hit & np.concatenate([[False], self.t[1:] == self.t[:-1]])[: len(self.t)]
        end = np.inf if self.sol.t[-1] >= self.sol.t[0] else -np.inf
        at[hit] = np.nextafter(self.t[hit], -end)
        at[after] = np.nextafter(self.t[after], end)
        return at

    def inside_steps(self, count: int) -> Result:
        """Return the same result at every step and at `count` points inside of each (`samples.point_inside`)."""
        sol, points = self.sol, np.array([point_inside(k, count) for k in range(1, count + 1)])
        steps = np.setdiff1d(np.arange(1, sol.t.size), sol.begins)
        between = sol.t[steps - 1, None] + points * (sol.t[steps] - sol.t[steps - 1])[:, None]
        both = DenseOutput(sol.t, sol.x, sol.order, sol.begins, sol.rates)(between.ravel()).T
        t, rows = np.concatenate([sol.t, between.ravel()]), np.concatenate([sol.x, both])
        order = np.argsort(np.concatenate([np.arange(sol.t.size), np.repeat(steps - 0.5, count)]), kind="stable")
        n = self.y.shape[0]
        return replace(self, t=t[order], y=rows[order, :n].T, rates=rows[order, n : 2 * n].T)

    def __getitem__(self, name: str) -> Array:
        """Return one unknown, or one known function of time, at the times `t`, (N,).

        Torques and multipliers of a mechanical system are `forces`, found from positions and velocities; what the
        stepper itself had is in `y`.
        """
        if name in self.names and name not in self.own_forces:
            return self.y[self.names.index(name)]
        if name in self.forces:
            return self.forces[name]
        if name in self.known:
            return np.array([self.known[name](t) for t in self.inside])
        near = near_matches(name, [*self.names, *self.known])
        raise ModelError(f"no unknown is called {name!r}; near are {', '.join(near) or ', '.join(self.names[:8])}")

    @cached_property
    def own_forces(self) -> frozenset[str]:
        """Names that `forces` has."""
        m = None if self.problem is None else self.problem.motion
        return frozenset() if m is None else frozenset([*m.free_controls, *(f"lam[{name}]" for name in m.names)])

    def __repr__(self) -> str:
        span = f"t = {self.t[0]:g} ... {self.t[-1]:g}" if len(self.t) else "no time"
        return f"Result({len(self.names)} unknowns, {len(self.t)} points, {span}, status {self.status}: {self.message})"


# ----------------------------------------------------------------------------------------------------------------------
# Accelerations, torques and multipliers of a trajectory, from its positions and velocities.
#
# Symbols: M, bias, A, drift as in `formulation.py`, E = dbias/dtau; at every point (t, q, v) of the trajectory
#
#     [M  E  A^T] [a  ]   [-bias ]
#     [A  0   0 ] [tau] = [-drift]        the equations of index 1, known accelerations in bias and drift
#                 [lam]
#
# A stepper's own torques and multipliers are of index 2 or 3: no error test sees them, and they lose one or two powers
# of the step; its accelerations are rates of a polynomial, and lose one. These are as good as q and v, which the
# tolerance controls. Where rows are redundant, lam is of least norm.


PART = 2**24
"""Numbers of the block matrices that are solved at once."""


def index_1_unknowns(problem: Problem, result: Result) -> Array:
    """Return a, tau and lam at the times of a result, (N, free + controls + rows).

    NaN where a point is not finite, and in a where inertia and rows do not determine it.
    """
    m = problem.motion
    assert m is not None
    nf, nt, count = len(m.free), m.tau.numel(), m.lam.numel()
    if not len(result.t):
        return np.zeros((0, nf + nt + count))
    several = max(1, PART // max(1, (nf + nt + count) ** 2))
    parts = [slice(k, k + several) for k in range(0, len(result.t), several)]
    return np.concatenate([_part(problem, result.inside[part], result.y[:, part].T) for part in parts])


def _part(problem: Problem, t: Array, x: Array) -> Array:
    """Return a, tau and lam at some points, (N, free + controls + rows)."""
    m, N = problem.motion, len(t)
    assert m is not None
    nf, nt, count = len(m.free), m.tau.numel(), m.lam.numel()
    signals = np.array([problem.signals.values(t[k], x=x[k]) for k in range(N)]).reshape(N, -1)
    p = np.tile(problem.parameters, (N, 1))
    M, bias, A, full, drift, *_, effect = problem.finder.terms(x[:, :nf], x[:, nf : 2 * nf], t[:, None], signals, p)
    generic = problem.finder.rank(x[0, :nf], float(t[0]))
    if generic is not None and generic.redundant:
        return np.array([_under(generic, *sample) for sample in zip(M, A, -bias, drift, strict=True)])
    n = bias.shape[-1]
    K = np.zeros((N, n + count, nf + nt + count))
    K[:, :n, :nf], K[:, :n, nf : nf + nt], K[:, :n, nf + nt :] = M, effect, full.transpose(0, 2, 1)
    K[:, n:, :nf] = A
    good = np.isfinite(K).all(axis=(1, 2)) & np.isfinite(bias).all(axis=1) & np.isfinite(drift).all(axis=1)
    values = np.full((N, nf + nt + count), np.nan)
    values[good] = _solved(K[good], -np.concatenate([bias, drift], axis=1)[good], nf)
    if count and good.any():
        across = full[good].transpose(0, 2, 1)
        values[good, nf + nt :] = _least_norm(across, values[good, nf + nt :])
    return values


def _under(known: GenericRank, M: Array, A: Array, force: Array, drift: Array) -> Array:
    """Return a and lam under the rank of the mechanism; NaN where the point is not finite."""
    if not all(np.isfinite(array).all() for array in (M, A, force, drift)):
        return np.full(len(force) + len(drift), np.nan)
    return np.concatenate(solve_under_rank(known, M, A, force, drift))


def _solved(K: Array, b: Array, first: int) -> Array:
    """Return the solutions of scaled systems, of least norm where they are not unique; NaN in the first ones there."""
    rows, cols = scales(K)
    scaled = rows[..., :, None] * K * cols[..., None, :]
    inverse = np.linalg.pinv(scaled, rcond=DOUBT)
    x = cols * np.einsum("nij,nj->ni", inverse, rows * b)
    shares = np.einsum("nij,nji->ni", inverse[:, :first], scaled[:, :, :first])  # diagonal of K^+ K
    x[(np.abs(shares - 1.0) > np.sqrt(DOUBT)).any(axis=1), :first] = np.nan
    return x


def _least_norm(across: Array, lam: Array) -> Array:
    """Return the multipliers of least norm with the same forces A^T lam."""
    pushes = np.einsum("nij,nj->ni", across, lam)
    return np.einsum("nij,nj->ni", np.linalg.pinv(across, rcond=LEAST_NORM), pushes)
