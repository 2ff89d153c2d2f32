"""A constrained mechanism solved: in compiled code, and by `KKT` what that leaves open or has to be explained.

Three levels of answer, as everywhere: `compile(...)` is a kernel with a status per sample; `forward`, `impact` and
`project` run it, and give samples that it declines to `KKT`; `solve` and `diagnose` take one state through `KKT`, with
names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, SolvabilityError
from dalembert.model.mechanism.manifold import one_number, reals
from dalembert.model.mechanism.precision import BUILT_DIGITS, CLEAR, FILE_DIGITS, ROUNDING, model_rows, rows_of_rank

if TYPE_CHECKING:
    from dalembert.kkt import KKT, Diagnosis, Solution
    from dalembert.kkt.impact import Impact
    from dalembert.model.mechanism.ranks import GenericRank

Array = np.ndarray

MOST_STEPS = 50
"""Newton steps of a projection; three or four are usual, more where constraints meet tangentially."""

LARGEST_SURVEYED = 200
"""Velocities up to which ranks are looked for by dense decompositions."""

HALVINGS = 8
"""How often a step that makes residuals larger is halved."""


class Solving:
    """The answers of a mechanism with constraint rows."""

    names: Any
    coordinates: Any
    holonomic: Any
    scale_groups: Any
    source: Any
    nv: Any
    manifold: Any
    compile: Any
    mass_matrix: Any
    bias: Any
    jacobian: Any
    drift: Any
    drift_size: Any
    constraint: Any
    integrate: Any
    row_sizes: Any
    generic_rank: Any
    slack: Any

    def block_system(self, q: Any, t: Any = 0.0, metric: Any = None) -> KKT:
        """Return the block matrix at one configuration or a batch, with the names of rows and coordinates.

        Rows that only rounding of the model's numbers tells apart are made dependent; see `precision.py`.
        """
        return self._block(q, np.zeros(self.nv), np.zeros(len(self.names)), t, metric)[0]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _block(self, q: Any, v: Any, drift: Array, t: Any, metric: Any) -> tuple[KKT, Array, bool]:
        """Return the block matrix, the drift as the model's digits allow it, and whether they make rows agree."""
        from dalembert.kkt import KKT

        M, A = self.mass_matrix(q), self.jacobian(q, t)
        digits = BUILT_DIGITS if self.source is None else FILE_DIGITS
        rank = self._known_rank(q, t)
        if rank is not None and rank.dropped > digits:  # rows of short levers: their digits count CLEAR times
            digits *= CLEAR
        elif rank is not None:
            from dalembert.model.mechanism.ranks import agreeing

            size = float(np.asarray(self.drift_size(A, v)))
            agreed = agreeing(self, rank, np.asarray(q, dtype=float), float(t), drift, size)
            kept, sums = rows_of_rank(M, A, drift, self.scale_groups, digits, rank.rank)
            options: dict[str, Any] = {"rank": rank.rank, "groups": self.scale_groups}
            system = KKT(M, kept, self.names, self.coordinates, _square(metric), **options)
            return system, drift if agreed is None else sums, agreed is not None
        rows = model_rows(M, A, drift, self.drift_size(A, v), self.scale_groups, digits)
        system = KKT(M, rows.A, self.names, self.coordinates, _square(metric), rank_tolerance=rows.tolerance)
        return system, rows.drift, rows.agree

    def _known_rank(self, q: Any, t: Any) -> GenericRank | None:
        """Return the mechanism's rank where rows depend on each other everywhere, beyond doubt; of one state.

        Where rows are neither dependent to the model's digits nor clearly independent, `model_rows` decides.
        """
        if np.ndim(q) != 1 or np.ndim(t) or not self.names or not self.nv or self.nv > LARGEST_SURVEYED:
            return None
        if not np.isfinite(np.asarray(q, dtype=float)).all():
            return None
        from dalembert.model.mechanism.ranks import fitting_rank

        rank = fitting_rank(self, q, float(t))
        digits = CLEAR * (BUILT_DIGITS if self.source is None else FILE_DIGITS)
        return rank if rank.redundant and rank.places and rank.dropped <= digits else None

    def solve(self, q: Any, v: Any, tau: Any = None, t: Any = 0.0, metric: Any = None, **options: Any) -> Solution:
        """Solve one state, or a batch, through `KKT`; `options` go to `KKT.solve`.

        Parameters
        ----------
        tau : (nv,)
            Joint forces; none by default.
        metric : (m,)
            Weights of the squares of redundant multipliers.

        Raises `SolvabilityError` where one state has no answer, with the names of rows and coordinates.
        """
        system, drift, agree = self._block(q, v, self.drift(q, v, t), t, metric)
        if agree:
            options = {"inconsistent": "least_squares"} | options
        return system.solve(self._force(q, v, tau), drift, **options)

    def diagnose(self, q: Any, v: Any = None, t: float = 0.0) -> Diagnosis:
        """Say in words what is redundant, conflicting, massless or not unique at one state; at rest without v."""
        v = np.zeros(self.nv) if v is None else v
        system, drift, agree = self._block(q, v, self.drift(q, v, t), t, None)
        return system.diagnose(drift if np.any(drift) and not agree else None)

    def impact(self, q: Any, v: Any, restitution: Any = 0.0, t: float = 0.0) -> Impact:
        """Return the velocity after the constraints have closed at once, and their impulses; see `KKT.impact`.

        The answer has a `status` like every other; take its velocity where it is `ok`.
        """
        return self.block_system(q, t).impact(v, restitution)

    def project(self, q: Any, v: Any = None, t: float = 0.0, tolerance: float = 1e-12) -> Any:
        """Return the nearest admissible configuration and velocity, (q, v), or q alone without v.

        Newton's method with steps of least kinetic energy, until no residual is larger than `tolerance` (parts of the
        model's size, radians), or, where redundant rows contradict each other by less than the model's digits (1e-8 of
        its size, 1e-6 where it was read from a file), until their squares are least; then the velocity of least
        kinetic energy from v (seed 000, sec. 3). One state or a batch. Raises `SolvabilityError`, with the rows that
        stay open, where a single configuration cannot be reached; in a batch such samples become NaN.
        """
        start, t = self.manifold.configuration(q), one_number(t, "t")
        tolerance = one_number(tolerance, "tolerance")
        q = self._closed(np.array(start.reshape(-1, start.shape[-1])), t, tolerance).reshape(start.shape)
        if q.ndim == 1 and np.isnan(q).any():
            self._refuse_open(start, t)
        if v is None:
            return q
        v = reals(v, "v")
        if not self.names:
            return q, v.copy()
        from dalembert.kkt import Status

        velocity, _, status = self.compile("project_velocity")(q, v, np.array([t]))
        solved = np.isin(status[..., 0], [Status.UNIQUE, Status.REDUNDANT])
        if not solved.all():
            from dalembert.model.mechanism.ranks import admissible_velocity

            v, velocity = np.broadcast_to(v, velocity.shape), np.array(velocity)
            for k in map(tuple, np.argwhere(~solved)):
                place = np.broadcast_to(q, (*velocity.shape[:-1], q.shape[-1]))[k]
                finite = np.isfinite(place).all() and np.isfinite(v[k]).all()
                velocity[k] = admissible_velocity(self, place, v[k], t) if finite else np.nan
        return q, velocity

    def _closed(self, q: Array, t: float, tolerance: float) -> Array:
        """Return configurations (N, nq) with residuals below the tolerance, or at rest below the slack; else NaN."""
        if not any(self.holonomic):
            return q
        step = self.compile("project_step")
        time, start = np.array([t]), q.copy()
        size = self._residual(q, t)
        left = np.flatnonzero(~(size <= tolerance))
        for _ in range(MOST_STEPS):
            if not left.size:
                break
            move = step(q[left], time)[0]
            move = np.where(np.isfinite(move).all(axis=-1, keepdims=True), move, 0.0)
            before = size[left]
            q[left], size[left] = self._shorter(q[left], move, before, t)
            left = left[(size[left] > tolerance) & (size[left] < before)]
        for k in np.flatnonzero(~(size <= self.slack)):
            q[k] = self._least_open(start[k], t)
        return q

    def _least_open(self, q: Array, t: float) -> Array:
        """Return the configuration where redundant rows are open the least; NaN where that is more than the slack."""
        if not np.isfinite(q).all() or self.nv > LARGEST_SURVEYED:
            return np.full_like(q, np.nan)
        from dalembert.model.mechanism.ranks import closed_by_least_squares

        found, size = closed_by_least_squares(self, q, t)
        return found if size <= self.slack else np.full_like(q, np.nan)

    def _shorter(self, q: Array, move: Array, size: Array, t: float) -> tuple[Array, Array]:
        """Take a step, halved as long as it makes the largest residual larger."""
        best, least = q.copy(), size.copy()
        todo = np.arange(len(q))
        for _ in range(HALVINGS):
            trial = self.integrate(q[todo], move[todo])
            found = self._residual(trial, t)
            better = found < least[todo]
            best[todo[better]], least[todo[better]] = trial[better], found[better]
            todo = todo[~better]
            if not todo.size:
                break
            move = move / 2
        return best, least

    def _residual(self, q: Array, t: float) -> Array:
        """Return the largest residual of every configuration, as a part of its size."""
        sizes = self.row_sizes[np.array(self.holonomic, dtype=bool)]
        return np.abs(self.constraint(q, t) / sizes).max(axis=-1, initial=0.0)

    def _refuse_open(self, q: Array, t: float) -> None:
        """Say which rows cannot be closed."""
        if not np.isfinite(q).all():
            i = int(np.flatnonzero(~np.isfinite(q))[0])
            raise ModelError(f"q[{i}] is {q[i]}; every coordinate of a configuration must be finite")
        rows = [name for name, has in zip(self.names, self.holonomic, strict=True) if has]
        phi = np.abs(self.constraint(q, t))
        worst = [f"{rows[i]!r} ({phi[i]:.2g})" for i in np.argsort(-phi)[:3]]
        raise SolvabilityError(
            f"no admissible configuration was found within {MOST_STEPS} steps; at the start the rows furthest from "
            f"closing were {', '.join(worst)}. The constraints may be out of reach, or the start too far "
            "away: try another q",
            self.diagnose(q, None, t),
        )

    def _force(self, q: Any, v: Any, tau: Any) -> Array:
        """Return tau - bias."""
        bias = self.bias(q, v)
        return -bias if tau is None else reals(tau, "tau") - bias

    def _constrained_forward(self, q: Any, v: Any, tau: Any, t: Any) -> tuple[Array, Array, Array]:
        """Return acceleration (nv,), multipliers (m,), status; `KKT` decides what the kernel declines or contests."""
        from dalembert.kkt import Status

        q = self.manifold.configuration(q)
        self.manifold.refuse_off_manifold(q)
        v, tau, t = (reals(x, name) for x, name in ((v, "v"), (tau, "tau"), (t, "t")))
        kernel = self.compile("forward")
        a, lam, status = kernel(q, v, tau, t[..., None])
        status = status[..., 0].astype(int)
        if kernel.final:
            self._refuse_unsolved(kernel, a, status)
            return a, lam, status
        left = (status == Status.DECLINED) | (status == Status.INCONSISTENT)
        if np.any(left):
            batch = status.shape  # one state is a batch of one, so that what is wrong with it is its status
            q, v, tau = (np.broadcast_to(x, (*batch, x.shape[-1]))[left].reshape(-1, x.shape[-1]) for x in (q, v, tau))
            found = self._by_kkt(q, v, tau, np.broadcast_to(t, batch)[left].reshape(-1))
            status = np.asarray(status)
            a[left], lam[left], status[left] = found
        return a, lam, status

    def _by_kkt(self, q: Array, v: Array, tau: Array, t: Array) -> tuple[Array, Array, Array]:
        """Return what `KKT` says to a batch, under the mechanism's rank: next to a singularity no row is dropped.

        A sample that contradicts this rank may do so within the model's digits, or on another part of the manifold:
        then its own rank decides, as it does where one is lost to the last digit. Next to such a configuration the
        answer stays uncertified.
        """
        from dalembert.kkt import KKT, Status
        from dalembert.model.mechanism.ranks import distance

        rank = None if self.nv > LARGEST_SURVEYED else self.generic_rank(None, float(t[0]))
        if rank is None or not rank.places:
            found = self.solve(q, v, tau, t)
            return found.acceleration, found.multipliers, np.asarray(found.status)
        system = KKT(self.mass_matrix(q), self.jacobian(q, t), self.names, self.coordinates, rank=rank.rank)
        found = system.solve(self._force(q, v, tau), self.drift(q, v, t))
        a, lam, status = found.acceleration, found.multipliers, np.array(found.status)
        finite = np.isfinite(q).all(axis=-1)
        for k in np.flatnonzero(~np.isin(status, (Status.UNIQUE, Status.REDUNDANT)) & finite):
            far = distance(self, rank, q[k], float(t[k]))
            if far > (BUILT_DIGITS if self.source is None else FILE_DIGITS) or far <= ROUNDING:
                own = self.solve(q[k : k + 1], v[k : k + 1], tau[k : k + 1], t[k : k + 1])
                a[k], lam[k], status[k] = own.acceleration[0], own.multipliers[0], np.asarray(own.status)[0]
        return a, lam, status

    def _refuse_unsolved(self, kernel: Any, a: Array, status: Array) -> None:
        """Raise for a single state without an answer that no dense solver may explain; NaN has its status."""
        from dalembert.kkt import Status

        if status.ndim or Status(int(status)).solved or Status(int(status)) is Status.NONFINITE:
            return
        raise SolvabilityError(
            f"{Status(int(status)).message}; {kernel.explain(a)}. A mechanism of {self.nv} velocities has no dense "
            "diagnosis: look at a shorter one of its kind, or free these rows"
        )


def _square(metric: Any) -> Any:
    """Return weights as the diagonal matrix that `KKT` takes."""
    if metric is None:
        return None
    weights = floats(metric, "metric")
    if weights.ndim != 1:
        raise ModelError(f"metric is one positive weight per constraint row, not an array of shape {weights.shape}")
    return np.diag(weights)
