"""Newton's method onto the constraint manifold: the nearest admissible configuration and velocity.

Symbols: phi residuals of holonomic rows over their sizes, A their Jacobian, M = L L^T mass matrix, x tangent step.

All iterations of a mechanism onto its constraints are here, each for what is known where it starts:

    project          near the manifold, batches: x = -M^-1 A^T (A M^-1 A^T)^-1 phi in compiled code, halved as long as
                     it makes residuals larger
    least_open       redundant rows that contradict each other: Levenberg and Marquardt's method in the metric of the
                     mass with damping |phi|^2, quadratic whatever the rank, to where their squares are least
    closest          far from it, some coordinates held: the same method with a damping that adapts
    closed_before_compiling   Gauss-Newton steps with matrices from any source, before there is a kernel
    newton_step      one step in the plain norm, for a stage of a stepper whose compiled step fails

Plain iterations but the first and the third are steps in the loop of `kkt/newton.py`, as are those of systems with
known coordinates (`simulate/equations/consistent.py`) and of large mechanisms; loops that steppers compile end by its
rule. Source: seed 000, sec. 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, one_number
from dalembert.errors import ModelError, SolvabilityError
from dalembert.kkt.limits import CLOSED_LOOP, CONTRADICTING, DOUBT, EPS, ROUNDING
from dalembert.kkt.newton import onto_manifold
from dalembert.model.mechanism.constraint_rows import residual_sizes
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.ranks import AdmissibleVelocity, RankSurvey

Matrices = Callable[[Any], tuple[Any, Any, Any]]
"""q -> M (n, n), A (m, n), phi (h,)."""

MOST_STEPS = 50
"""Newton steps of a projection; three or four are usual, more where constraints meet tangentially."""

HALVINGS = 8
"""How often a step that makes residuals larger is halved."""


LEAST_SQUARES_STEPS = 60
"""Steps of `least_open`; half a dozen are usual from nearby."""

FAR_STEPS = 200
"""Steps of `closest` from one guess."""

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-14, 1e8
"""Of `closest`, as parts of the largest diagonal entry of A^T A."""

# ----------------------------------------------------------------------------------------------------------------------
# Near the manifold, in compiled code.


def project(mechanism: Mechanism, q: Any, v: Any, t: float, tolerance: float) -> Any:
    """Return the nearest admissible configuration and velocity, (q, v), or q alone without v."""
    start, t = mechanism.manifold.configuration(q), one_number(t, "t")
    tolerance = one_number(tolerance, "tolerance")
    q = closed(mechanism, np.array(start.reshape(-1, start.shape[-1])), t, tolerance).reshape(start.shape)
    if q.ndim == 1 and np.isnan(q).any():
        _refuse_open(mechanism, start, t)
    return q if v is None else (q, admissible_velocities(mechanism, q, floats(v, "v"), t))


def admissible_velocities(mechanism: Mechanism, q: Array, v: Array, t: float) -> Array:
    """Return the velocities of least kinetic energy from v that the rows allow; NaN in a batch where they allow none.

    A single velocity that breaks rows is refused with their names.
    """
    if not mechanism.names:
        return v.copy()
    velocity, _, status = mechanism.compile("project_velocity")(q, v, np.array([t]))
    solved = np.isin(status[..., 0], [Status.UNIQUE, Status.REDUNDANT])
    if solved.all():
        return velocity
    from dalembert.model.mechanism.ranks import admissible_velocity

    v, velocity = np.broadcast_to(v, velocity.shape), np.array(velocity)
    for k in map(tuple, np.argwhere(~solved)):
        place = np.broadcast_to(q, (*velocity.shape[:-1], q.shape[-1]))[k]
        if not (np.isfinite(place).all() and np.isfinite(v[k]).all()):
            velocity[k] = np.nan
            continue
        nearest = admissible_velocity(of_samples(mechanism, k), place, v[k], t)
        if not k and nearest.open:
            _refuse_velocity(mechanism, place, v[k], t, nearest)
        velocity[k] = np.nan if nearest.open else nearest.velocity
    return velocity


def _refuse_velocity(mechanism: Mechanism, q: Array, v: Array, t: float, nearest: AdmissibleVelocity) -> None:
    """Say which rows no velocity near v obeys, and why."""
    worst = ", ".join(f"{name!r} ({rate:.2g})" for name, rate in list(nearest.open.items())[:3])
    why = "they ask for rates that contradict each other here"
    if nearest.status is Status.ILL_CONDITIONED:
        why = "the configuration is singular, and they ask for a rate that no motion has there"
    raise SolvabilityError(
        f"no admissible velocity was found: the rows {worst} stay open; {why}", mechanism.diagnose(q, v, t)
    )


def closed(mechanism: Mechanism, q: Array, t: float, tolerance: float) -> Array:
    """Return configurations (N, nq) with residuals below the tolerance, or at rest below the slack; else NaN."""
    if not any(mechanism.holonomic):
        return q
    time, start = np.array([t]), q.copy()
    size = largest_residual(mechanism, q, t)
    active = np.flatnonzero(~(size <= tolerance))
    for _ in range(MOST_STEPS):
        if not active.size:
            break
        some = of_samples(mechanism, active)
        move = some.compile("project_step")(q[active], time)[0]
        move = np.where(np.isfinite(move).all(axis=-1, keepdims=True), move, 0.0)
        before = size[active]
        q[active], size[active] = _shorter(some, q[active], move, before, t)
        active = active[(size[active] > tolerance) & (size[active] < before)]
    for k in np.flatnonzero(~(size <= max(tolerance, CONTRADICTING))):
        settled, sample = size[k] <= mechanism.slack, of_samples(mechanism, k)
        place, remaining = _least_open(sample, q[k] if settled else start[k], t)
        if not (settled or remaining <= mechanism.slack) and np.isfinite(start[k]).all():
            place, remaining = _from_afar(sample, start[k], t)
        if remaining <= mechanism.slack:
            q[k] = place
        elif not settled:
            q[k] = np.nan
    return q


def of_samples(mechanism: Mechanism, some: Any) -> Mechanism:
    """Return the mechanism of some samples of a batch: with their numbers, where every sample has its own (N, k)."""
    values: Any = getattr(mechanism, "values", ())
    return replace(mechanism, values=values[some]) if np.ndim(values) == 2 else mechanism


def largest_residual(mechanism: Mechanism, q: Array, t: float | Array) -> Array:
    """Return the largest residual of every configuration, as a part of its size."""
    return np.abs(mechanism.constraint(q, t) / residual_sizes(mechanism)).max(axis=-1, initial=0.0)


def _shorter(mechanism: Mechanism, q: Array, move: Array, size: Array, t: float) -> tuple[Array, Array]:
    """Take a step, halved as long as it makes the largest residual larger."""
    best, least = q.copy(), size.copy()
    todo = np.arange(len(q))
    for _ in range(HALVINGS):
        trial = mechanism.integrate(q[todo], move[todo])
        residual = largest_residual(of_samples(mechanism, todo), trial, t)
        better = residual < least[todo]
        best[todo[better]], least[todo[better]] = trial[better], residual[better]
        todo = todo[~better]
        if not todo.size:
            break
        move = move / 2
    return best, least


def _least_open(mechanism: Mechanism, q: Array, t: float) -> tuple[Array, float]:
    """Return the configuration where redundant rows are open the least, and by which part of their sizes."""
    if not np.isfinite(q).all() or mechanism.nv > LARGEST_SURVEYED:
        return q, np.inf
    from dalembert.model.mechanism.ranks import RankSurvey

    survey = RankSurvey(mechanism, t, mechanism.generic_rank(None, 0.0))
    survey.measure(q)
    return least_open(survey, q)


def _from_afar(mechanism: Mechanism, q: Array, t: float) -> tuple[Array, float]:
    """Return where damped steps from a guess end, and how far rows are open there.

    Where a mechanism closes in singular configurations alone, its rank leaves rows out that lead there from a guess.
    """
    if mechanism.nv > LARGEST_SURVEYED:
        return q, np.inf
    place = closest(mechanism, q, np.ones(mechanism.nv), t)
    return place, float(largest_residual(mechanism, place[None], t)[0])


def _refuse_open(mechanism: Mechanism, q: Array, t: float) -> None:
    """Say which rows cannot be closed: where they are open the least, else at the start."""
    if not np.isfinite(q).all():
        i = int(np.flatnonzero(~np.isfinite(q))[0])
        raise ModelError(f"q[{i}] is {q[i]}; every coordinate of a configuration must be finite")
    rows = [name for name, has in zip(mechanism.names, mechanism.holonomic, strict=True) if has]
    small = mechanism.nv <= LARGEST_SURVEYED
    where = "where they are open the least" if small else "at the start"
    phi = np.abs(mechanism.constraint(closest(mechanism, q, np.ones(mechanism.nv), t) if small else q, t))
    worst = [f"{rows[i]!r} ({phi[i]:.2g})" for i in np.argsort(-phi)[:3]]
    raise SolvabilityError(
        f"no admissible configuration was found within {MOST_STEPS} steps; {where} the rows furthest from "
        f"closing are {', '.join(worst)}. They may contradict each other or be out of reach, or the start is "
        "too far away: try another q",
        mechanism.diagnose(q, None, t),
    )


# ----------------------------------------------------------------------------------------------------------------------
# Projections of redundant rows, of guesses from afar, without a kernel, and after a step that fails.


def least_open(survey: RankSurvey, q: Array) -> tuple[Array, float]:
    """Return the configuration near q where the rows are open the least, and their largest residual.

    Levenberg and Marquardt's method for the rows D A L^-T that a survey has scaled.
    """
    from scipy.linalg import solve_triangular

    holonomic = survey.holonomic

    def linearised(q: Array) -> tuple[float, Callable[[], Array]]:
        phi = survey.residual(q)
        size = float(np.abs(phi).max(initial=0.0))

        def step() -> Array:
            L, B = survey.rows(q)
            y = phi * survey.sizes[holonomic] * survey.scales[holonomic]
            U, s, Vt = np.linalg.svd(survey.scaled(B)[holonomic], full_matrices=False)
            damping = (size * float(s.max(initial=0.0))) ** 2
            keep = s > EPS * s.max(initial=0.0)
            gain = np.where(keep, s / np.where(keep, s**2 + damping, 1.0), 0.0)
            return -solve_triangular(L.T, Vt.T @ (gain * (U.T @ y)), lower=False)

        return size, step

    return onto_manifold(q, linearised, survey.m.integrate, LEAST_SQUARES_STEPS + 1, enough=np.inf)


def closest(mechanism: Mechanism, q: Array, free: Array, t: float) -> Array:
    """Return a local minimum of |phi| from a guess; only the `free` velocities (nv,), ones and zeros, may move."""
    rows = np.array(mechanism.holonomic, dtype=bool)
    sizes = residual_sizes(mechanism)
    phi, damping = np.asarray(mechanism.constraint(q, t)) / sizes, FIRST_DAMPING
    for _ in range(FAR_STEPS):
        if np.abs(phi).max(initial=0.0) <= 0.1 * CLOSED_LOOP:
            break
        A = np.asarray(mechanism.jacobian(q, t))[rows] / sizes[:, None] * free
        H, slope = A.T @ A, A.T @ phi
        scale = np.diag(H).max(initial=0.0) + np.finfo(float).tiny
        for _ in range(12):
            x = -np.linalg.solve(H + damping * scale * np.eye(mechanism.nv), slope) * free
            x *= min(1.0, 1.0 / max(np.abs(x).max(), np.finfo(float).tiny))
            trial = mechanism.integrate(q, x)
            new = np.asarray(mechanism.constraint(trial, t)) / sizes
            if new @ new < phi @ phi:
                break
            damping = min(damping * 8.0, MOST_DAMPING)
        else:
            break
        stalled = phi @ phi - new @ new <= ROUNDING * (phi @ phi)
        q, phi, damping = trial, new, max(damping / 6.0, LEAST_DAMPING)
        if stalled:
            break
    return q


def closed_before_compiling(mechanism: Mechanism, at: Matrices, q: Array, sizes: Array) -> Array | None:
    """Return a configuration near q that meets the rows to their slack, by Gauss-Newton steps; None where they fail.

    Parameters
    ----------
    at
        Returns M, A and phi at a configuration.
    sizes : (h,)
        What residuals are measured against.
    """
    from dalembert.kkt.expressions.probing import closest_closed, coordinate_sizes

    holonomic = np.array(mechanism.holonomic, dtype=bool)

    def linearised(q: Any) -> tuple[Array, Array, Array]:
        M, A, phi = at(q)
        return coordinate_sizes(M), A[holonomic] / sizes[:, None], phi / sizes

    return closest_closed(linearised, mechanism.integrate, q)


def newton_step(mechanism: Mechanism, q: Array, t: float) -> tuple[Array, Array]:
    """Return the residuals (h,) and the least step (nv,) in the plain norm that closes them; NaN where none is."""
    phi = np.asarray(mechanism.constraint(q, t))
    A = np.asarray(mechanism.jacobian(q, t))[np.array(mechanism.holonomic)]
    if not (np.isfinite(phi).all() and np.isfinite(A).all()):
        return phi, np.full(mechanism.nv, np.nan)
    return phi, -np.linalg.lstsq(A, phi, rcond=DOUBT)[0]
