"""Assembly: random admissible configurations, loops closed from a guess, positions of rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, SolvabilityError
from dalembert.kkt.limits import BALANCED, CLOSED, CLOSED_LOOP, CONTRADICTING, DOUBT, FLAT, LEAST_LOAD
from dalembert.model.mechanism.constraint_rows import residual_sizes
from dalembert.model.mechanism.precision import digits_of
from dalembert.model.mechanism.project import closest, largest_residual
from dalembert.model.mechanism.ranks import fitting_rank
from dalembert.model.mechanism.solve import LARGEST_SURVEYED
from dalembert.model.named_state import configuration_of_names, velocity_of_names
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.joint_forces import JointForces
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Random configurations that meet the constraints: anywhere if that can be, else near the neutral one.


SHRINKINGS = 6
"""How often the distance from the neutral configuration is halved before a start is given up."""


def closed_samples(
    mechanism: Mechanism, close: Callable[[Array], Array | None], count: int, seed: int
) -> list[tuple[Array, bool]]:
    """Return `count` configurations, each with whether it meets the constraints.

    A random configuration of a mechanism with loops is seldom near a closed one. Where it cannot be closed, the search
    starts again from the closed neutral configuration, displaced by a random velocity of half the size each time.

    Parameters
    ----------
    close
        Returns the closed configuration near one, or None.
    """
    rng = np.random.default_rng(seed)
    neutral = close(mechanism.neutral())
    samples = []
    for start in mechanism.random(rng, count):
        place = close(start)
        scale = 1.0
        for _ in range(SHRINKINGS if place is None and neutral is not None else 0):
            place = close(mechanism.integrate(neutral, scale * rng.normal(size=mechanism.nv)))
            if place is not None:
                break
            scale /= 2
        samples.append((start, False) if place is None else (place, True))
    return samples


def closed_or_none(project: Callable[[Any], Any]) -> Callable[[Array], Array | None]:
    """Return a projection that gives None where it fails."""
    from dalembert.errors import SolvabilityError

    def close(q: Array) -> Array | None:
        try:
            return project(q)
        except SolvabilityError:
            return None

    return close


# ----------------------------------------------------------------------------------------------------------------------
# Results of a search for a configuration: loops closed or left open, a position of rest.


LEAST = ": redundant loops contradict each other by that, within the model's digits; their squares are least"
"""What a gap is that rounding does not explain."""


@dataclass(frozen=True, eq=False)
class Assembly:
    """What became of closing the loops.

    Attributes
    ----------
    q, v
        The configuration found, and the admissible velocity nearest to the one asked for.
    gap
        Largest residual that remains, metres or radians.
    open
        Rows that remain open and by how much, the worst first; "rate of ..." where speeds that are held contradict
        the constraints.
    starts
        Guesses that were tried.
    relative
        The largest residual as a part of its size: the mechanism's, or one radian.
    """

    q: Array
    v: Array
    gap: float
    open: dict[str, float]
    starts: int
    relative: float

    @property
    def ok(self) -> bool:
        """True when all loops are closed."""
        return not self.open

    def __str__(self) -> str:
        if self.ok:
            return f"closed to {self.gap:.1e}" + (LEAST if self.relative > CONTRADICTING else "")
        worst = ", ".join(f"{name!r} by {gap:.3g}" for name, gap in list(self.open.items())[:3])
        return f"cannot be closed from here ({self.starts} starts): what remains open is {worst}"


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A position of rest.

    Attributes
    ----------
    q, multipliers
        Configuration, and multipliers of the constraint rows that hold it.
    residual
        Largest force that is not balanced, newton or newton metre.
    stiffness
        Eigenvalues of the stiffness along admissible motions relative to the mass, 1/s^2: squares of the natural
        frequencies without damping; one that is negative is a motion that runs away.
    mechanism, torque, t
        What rests, under which joint forces (nv,), when.
    """

    q: Array
    multipliers: Array
    residual: float
    stiffness: Array
    mechanism: Mechanism = field(repr=False)
    torque: Array = field(repr=False)
    t: float = 0.0

    @cached_property
    def joint_forces(self) -> JointForces:
        """The wrench that every joint transmits at rest, in the axes of its frame on the child."""
        from dalembert.kkt import Status
        from dalembert.model.mechanism.known_motion import MotionSamples

        still = np.zeros(self.mechanism.nv)
        motion = MotionSamples.of(
            self.mechanism, self.q, still, still, self.multipliers, self.t, int(Status.REDUNDANT), drive=self.torque
        )
        return motion.joint_forces()

    @property
    def stable(self) -> bool:
        """True when every small displacement comes back."""
        return bool((self.stiffness > 0.0).all())


# ----------------------------------------------------------------------------------------------------------------------
# Configurations that are looked for: loops closed from a guess, positions of rest.
#
# Symbols: x tangent coordinates at q, q * x the configuration there, phi residuals of holonomic rows, A their Jacobian.
#
#     assemble      least |phi(q * x)|^2, by Levenberg and Marquardt; then Newton's method (`project`)
#     equilibrium   bias(q, 0) + A^T lam = tau,  phi(q) = 0: down the potential along the constraints, then Newton's
#     method


OTHER_STARTS = 24
"""Guesses around the first that are tried where it leads to no closed loop."""

DOWNHILL, NEWTON = 400, 40
"""Steps down the potential, and of Newton's method, at most."""

DIFFERENCE = 1e-6
"""Tangent step of central differences."""

LONGEST_MOVE = 0.3
"""Tangent coordinates, metres or radians, that one step towards rest may change."""

NEARLY_CLOSED, NEARLY_BALANCED = 1e-6, 1e-6
"""Parts of their sizes from which residuals, and forces along the constraints, are left to Newton's method."""


def assemble(mechanism: Mechanism, q: Any, v: Any, hold: Sequence[str], t: float, rng: Any) -> Assembly:
    """Close the loops from a guess, and from others around it where that leads nowhere."""
    q, v = configuration_of_names(mechanism, q), velocity_of_names(mechanism, v)
    start = np.array(mechanism.manifold.configuration(q), dtype=float)
    bad = np.flatnonzero(~np.isfinite(start))
    if bad.size:
        raise ModelError(f"q[{bad[0]}] is {start[bad[0]]}; a guess must be finite")
    free = _free_columns(mechanism, hold)
    generator = np.random.default_rng(rng)
    best, least, starts = start, np.inf, 0
    for k in range(OTHER_STARTS + 1):
        spread = 0.0 if k == 0 else min(2.0, 0.25 * 2.0 ** (k / 6))
        guess = mechanism.integrate(start, spread * free * generator.standard_normal(mechanism.nv)) if k else start
        place = closest(mechanism, guess, free, t)
        size = float(largest_residual(mechanism, place, t))
        starts += 1
        if size < least:
            best, least = place, size
        if least <= _closed_at(mechanism, best, least, t) or not any(mechanism.holonomic):
            break
    return _assembly(mechanism, best, least, v, t, starts, free)


def _closed_at(mechanism: Mechanism, q: Array, size: float, t: float) -> float:
    """Return the part of their size up to which rows are closed: the model's digits where rows are redundant.

    Redundant loops of a file contradict each other in the last digits that it has; their squares are least then.
    """
    between = CLOSED_LOOP < size <= mechanism.slack and mechanism.nv <= LARGEST_SURVEYED
    return mechanism.slack if between and mechanism.generic_rank(q, t).redundant else CLOSED_LOOP


def _free_columns(mechanism: Mechanism, hold: Sequence[str]) -> Array:
    free = np.ones(mechanism.nv)
    for name in hold:
        free[mechanism.index_v(name)] = 0.0
    return free


def _assembly(mechanism: Mechanism, q: Array, size: float, v: Any, t: float, starts: int, free: Array) -> Assembly:
    rows = [name for name, has in zip(mechanism.names, mechanism.holonomic, strict=True) if has]
    if size <= NEARLY_CLOSED and free.all():
        with suppress(SolvabilityError):
            q = mechanism.project(q, t=t)
    phi = np.abs(np.asarray(mechanism.constraint(q, t)))
    parts = phi / residual_sizes(mechanism)
    limit = _closed_at(mechanism, q, float(parts.max(initial=0.0)), t)
    opened = {rows[i]: float(phi[i]) for i in np.argsort(-parts) if parts[i] > limit}
    speed = np.zeros(mechanism.nv) if v is None else floats(v, "v")
    if mechanism.names and not opened:
        speed, opened = _speed(mechanism, q, speed, t, np.ones_like(free) if v is None else free)
    return Assembly(q, speed, float(phi.max(initial=0.0)), opened, starts, float(parts.max(initial=0.0)))


def _speed(mechanism: Mechanism, q: Array, v: Array, t: float, free: Array) -> tuple[Array, dict[str, float]]:
    """Return the admissible velocity nearest to v that keeps what is held, and rates that this leaves open."""
    if free.all():
        return mechanism.project(q, v, t)[1], {}
    from dalembert.model.mechanism.ranks import admissible_velocity

    nearest = admissible_velocity(mechanism, q, v, t, free > 0.0)
    return nearest.velocity, {f"rate of {name}": rate for name, rate in nearest.open.items()}


def equilibrium(mechanism: Mechanism, q: Any, torque: Any, t: float) -> Equilibrium:
    """Close the loops, go down the potential along the constraints, then balance the forces by Newton's method."""
    start = mechanism.pose() if q is None else floats(q, "q")
    assembly = mechanism.assemble(start, t=t)
    if not assembly.ok:
        raise SolvabilityError(f"no equilibrium: the loops {assembly}")
    tau = np.zeros(mechanism.nv) if torque is None else floats(torque, "torque")
    if tau.shape != (mechanism.nv,) or not np.isfinite(tau).all():
        raise ModelError(f"torque must be {mechanism.nv} finite numbers; got {torque!r}")
    q = _downhill(mechanism, assembly.q, tau, t)
    q, lam, residual = _balanced(mechanism, q, tau, t)
    acting = np.abs(np.asarray(mechanism.bias(assembly.q, np.zeros(mechanism.nv)))).max(initial=0.0)
    weight = mechanism.mass * float(np.linalg.norm(mechanism.gravity))
    size = float(max(acting, np.abs(tau).max(initial=0.0), LEAST_LOAD * weight))
    if not residual <= BALANCED * size:
        raise SolvabilityError(
            f"no position of rest was found: forces of {residual:.3g} remain, of {size:.3g} that act; the "
            "mechanism may fall or turn without end, or the start is too far away"
        )
    K, M, Z = _stiffness(mechanism, q, lam, tau, t)
    reduced = np.linalg.solve(Z.T @ M @ Z, Z.T @ K @ Z) if Z.shape[1] else np.zeros((0, 0))
    return Equilibrium(q, lam, residual, np.sort(np.linalg.eigvals(reduced).real), mechanism, tau, t)


def _admissible(mechanism: Mechanism, q: Array, t: float) -> tuple[Array, Array]:
    """Return A (holonomic rows, as far as the rank goes) and an orthonormal basis of its null space."""
    A = np.asarray(mechanism.jacobian(q, t)).reshape(len(mechanism.names), mechanism.nv)
    held = np.array(mechanism.holonomic, dtype=bool)
    if not held.any():
        return A[held], np.eye(mechanism.nv)
    generic = fitting_rank(mechanism, q, t) if mechanism.nv <= LARGEST_SURVEYED else None
    D = np.ones(len(A)) if generic is None else generic.scales
    U, s, Vt = np.linalg.svd((D[:, None] * A)[held])
    rank = int(np.sum(s > digits_of(mechanism) * max(s[0], np.finfo(float).tiny)))
    if generic is not None:
        rank = min(rank, generic.positions)
    return (U[:, :rank] * s[:rank] / D[held][:, None]) @ Vt[:rank], Vt[rank:].T


def _downhill(mechanism: Mechanism, q: Array, tau: Array, t: float) -> Array:
    """Go down the potential, with steps as masses have them."""
    still, step = np.zeros(mechanism.nv), 1e-2
    level = float(mechanism.energy(q, still)[1])
    for _ in range(DOWNHILL):
        _, Z = _admissible(mechanism, q, t)
        force = Z.T @ (tau - np.asarray(mechanism.bias(q, still)))
        if not np.abs(force).max(initial=0.0) > NEARLY_BALANCED * (np.abs(mechanism.bias(q, still)).max() + 1e-300):
            break
        move = Z @ np.linalg.solve(Z.T @ mechanism.mass_matrix(q) @ Z, force)
        for _ in range(40):
            x = step * move
            if np.abs(x).max() < LONGEST_MOVE:
                trial = _moved(mechanism, q, x, t)
                new = float(mechanism.energy(trial, still)[1]) - tau @ x
                if new < level:
                    break
            step *= 0.5
        else:
            break
        q, level, step = trial, float(mechanism.energy(trial, still)[1]), step * 1.5
    return q


def _force_rows(mechanism: Mechanism, q: Array, lam: Array, tau: Array, t: float) -> Array:
    """Return bias - tau + A^T lam: what is not balanced."""
    A, _ = _admissible(mechanism, q, t)
    return np.asarray(mechanism.bias(q, np.zeros(mechanism.nv))) - tau + A.T @ lam


def _stiffness(mechanism: Mechanism, q: Array, lam: Array, tau: Array, t: float) -> tuple[Array, Array, Array]:
    """Return the derivative of the forces in tangent coordinates, M and the admissible motions."""
    forces = lam[np.array(mechanism.holonomic, dtype=bool)] if len(mechanism.names) else np.zeros(0)
    K = np.zeros((mechanism.nv, mechanism.nv))
    for j in range(mechanism.nv):
        x = np.zeros(mechanism.nv)
        x[j] = DIFFERENCE
        ahead, behind = (_force_rows(mechanism, mechanism.integrate(q, s * x), forces, tau, t) for s in (1.0, -1.0))
        K[:, j] = (ahead - behind) / (2 * DIFFERENCE)
    return K, np.asarray(mechanism.mass_matrix(q)), _admissible(mechanism, q, t)[1]


def _balanced(mechanism: Mechanism, q: Array, tau: Array, t: float) -> tuple[Array, Array, float]:
    """Return q, multipliers and what is not balanced, by Newton's method."""
    rows = np.array(mechanism.holonomic, dtype=bool)
    best: tuple[Array, Array, float] = (q, np.zeros(len(mechanism.names)), np.inf)
    for _ in range(NEWTON):
        A, Z = _admissible(mechanism, q, t)
        force = np.asarray(mechanism.bias(q, np.zeros(mechanism.nv))) - tau
        lam = np.linalg.lstsq(A.T, -force, rcond=DOUBT)[0] if A.size else np.zeros(A.shape[0])
        residual = float(np.abs(force + A.T @ lam).max(initial=0.0))
        full = np.zeros(len(mechanism.names))
        full[rows] = lam
        if residual < best[2]:
            best = (q, full, residual)
        K, _, _ = _stiffness(mechanism, q, full, tau, t)
        x = Z @ np.linalg.lstsq(Z.T @ K @ Z, -Z.T @ force, rcond=FLAT)[0]
        x *= min(1.0, LONGEST_MOVE / max(np.abs(x).max(initial=0.0), 1e-300))
        if np.abs(x).max(initial=0.0) <= CLOSED:
            break
        q = _moved(mechanism, q, x, t)
    return best


def _moved(mechanism: Mechanism, q: Array, x: Array, t: float) -> Array:
    """Return the admissible configuration at the tangent coordinates x of q."""
    place = mechanism.integrate(q, x)
    return mechanism.project(place, t=t) if mechanism.names else place
