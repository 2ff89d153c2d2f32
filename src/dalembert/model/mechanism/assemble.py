"""Assembly: random admissible configurations, loops closed from a guess, positions of rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, SolvabilityError
from dalembert.model.mechanism.manifold import reals
from dalembert.model.mechanism.project import LARGEST_SURVEYED

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Random configurations that meet the constraints: anywhere if that can be, else near the neutral one.


Array = np.ndarray

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
        found = close(start)
        scale = 1.0
        for _ in range(SHRINKINGS if found is None and neutral is not None else 0):
            found = close(mechanism.integrate(neutral, scale * rng.normal(size=mechanism.nv)))
            if found is not None:
                break
            scale /= 2
        samples.append((start, False) if found is None else (found, True))
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
# What a search for a configuration gives: loops closed or left open, a position of rest.


CONTRADICTING = 1e-9
LEAST = ": redundant loops contradict each other by that, within the model's digits; their squares are least"
"""A gap, metres or radians, that rounding does not explain; and what it is."""


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
    """

    q: Array
    v: Array
    gap: float
    open: dict[str, float]
    starts: int

    @property
    def ok(self) -> bool:
        """True when all loops are closed."""
        return not self.open

    def __str__(self) -> str:
        if self.ok:
            return f"closed to {self.gap:.1e}" + (LEAST if self.gap > CONTRADICTING else "")
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
    """

    q: Array
    multipliers: Array
    residual: float
    stiffness: Array

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


CLOSED = 1e-11
"""Residuals up to this part of their size (the mechanism's, one radian) close a loop."""

SPEED = 1e-9
"""Rates up to this part of the speeds that enter them are admissible, where some velocities are held."""

MOST_STEPS = 200
"""Steps of Levenberg and Marquardt's method from one guess."""

OTHER_STARTS = 24
"""Guesses around the first that are tried where it leads to no closed loop."""

DOWNHILL, NEWTON = 400, 40
"""Steps down the potential, and of Newton's method, at most."""

DIFFERENCE = 1e-6
"""Tangent step of central differences."""

BALANCED = 1e-9
"""Forces that remain at rest, as a part of those that act."""


class Assembling:
    """The side of a mechanism that looks for configurations."""

    names: Any
    holonomic: Any
    nv: Any
    manifold: Any
    constraint: Any
    jacobian: Any
    integrate: Any
    project: Any
    bias: Any
    energy: Any
    mass_matrix: Any
    index_v: Any
    mass: Any
    gravity: Any
    row_sizes: Any
    slack: Any
    generic_rank: Any
    constraint_velocity: Any

    def assemble(self, q: Any, v: Any = None, *, hold: Sequence[str] = (), t: float = 0.0, rng: Any = 0) -> Assembly:
        """Close the loops from a guess.

        Parameters
        ----------
        q, v
            A guess (nq,), as far off as it may be, and the velocity that one would like to have (nv,).
        hold
            Joints and coordinates that keep their values, and their speeds where v is given.
        rng
            Seed of the other guesses that are tried where the first leads nowhere.

        Returns
        -------
        Assembly
            Also where the loops cannot be closed: `gap` and `open` say what remains.
        """
        start = np.array(self.manifold.configuration(q), dtype=float)
        bad = np.flatnonzero(~np.isfinite(start))
        if bad.size:
            raise ModelError(f"q[{bad[0]}] is {start[bad[0]]}; a guess must be finite")
        free = self._free_columns(hold)
        generator = np.random.default_rng(rng)
        best, least, starts = start, np.inf, 0
        for k in range(OTHER_STARTS + 1):
            spread = 0.0 if k == 0 else min(2.0, 0.25 * 2.0 ** (k / 6))
            guess = self.integrate(start, spread * free * generator.standard_normal(self.nv)) if k else start
            found = self._closest(guess, free, t)
            size = float((np.abs(self.constraint(found, t)) / self._held_sizes()).max(initial=0.0))
            starts += 1
            if size < least:
                best, least = found, size
            if least <= self._closed_at(best, least, t) or not any(self.holonomic):
                break
        return self._assembly(best, least, v, t, starts, free)

    def _held_sizes(self) -> Array:
        """Return what residuals are measured against, (h,)."""
        return self.row_sizes[np.array(self.holonomic, dtype=bool)]

    def _closed_at(self, q: Array, size: float, t: float) -> float:
        """Return the part of their size up to which rows are closed: the model's digits where rows are redundant.

        Redundant loops of a file contradict each other in the last digits that it has; their squares are least then.
        """
        if CLOSED < size <= self.slack and self.nv <= LARGEST_SURVEYED and self.generic_rank(q, t).redundant:
            return self.slack
        return CLOSED

    def _free_columns(self, hold: Sequence[str]) -> Array:
        free = np.ones(self.nv)
        for name in hold:
            free[self.index_v(name)] = 0.0
        return free

    def _closest(self, q: Array, free: Array, t: float) -> Array:
        """Return a local minimum of |phi|, by Levenberg and Marquardt."""
        rows = np.array(self.holonomic, dtype=bool)
        sizes = self._held_sizes()
        phi, damping = np.asarray(self.constraint(q, t)) / sizes, 1e-3
        for _ in range(MOST_STEPS):
            if np.abs(phi).max(initial=0.0) <= 0.1 * CLOSED:
                break
            A = np.asarray(self.jacobian(q, t))[rows] / sizes[:, None] * free
            H, slope = A.T @ A, A.T @ phi
            scale = np.diag(H).max(initial=0.0) + np.finfo(float).tiny
            for _ in range(12):
                x = -np.linalg.solve(H + damping * scale * np.eye(self.nv), slope) * free
                x *= min(1.0, 1.0 / max(np.abs(x).max(), np.finfo(float).tiny))
                trial = self.integrate(q, x)
                new = np.asarray(self.constraint(trial, t)) / sizes
                if new @ new < phi @ phi:
                    break
                damping = min(damping * 8.0, 1e8)
            else:
                break
            stalled = phi @ phi - new @ new <= 1e-14 * (phi @ phi)
            q, phi, damping = trial, new, max(damping / 6.0, 1e-14)
            if stalled:
                break
        return q

    def _assembly(self, q: Array, size: float, v: Any, t: float, starts: int, free: Array) -> Assembly:
        rows = [name for name, has in zip(self.names, self.holonomic, strict=True) if has]
        if size <= 1e-6 and free.all():
            with suppress(SolvabilityError):
                q = self.project(q, t=t)
        phi = np.abs(np.asarray(self.constraint(q, t)))
        parts = phi / self._held_sizes()
        limit = self._closed_at(q, float(parts.max(initial=0.0)), t)
        opened = {rows[i]: float(phi[i]) for i in np.argsort(-parts) if parts[i] > limit}
        speed = np.zeros(self.nv) if v is None else reals(v, "v")
        if self.names and not opened:
            speed, opened = self._speed(q, speed, t, free)
        return Assembly(q, speed, float(phi.max(initial=0.0)), opened, starts)

    def _speed(self, q: Array, v: Array, t: float, free: Array) -> tuple[Array, dict[str, float]]:
        """Return the admissible velocity nearest to v that keeps what is held, and rates that this leaves open."""
        if free.all():
            return self.project(q, v, t)[1], {}
        from dalembert.model.mechanism.ranks import admissible_velocity

        speed = admissible_velocity(self, q, v, t, free > 0.0)
        rates = np.abs(np.asarray(self.constraint_velocity(q, speed, t)))
        sizes = np.abs(np.asarray(self.jacobian(q, t))) @ np.maximum(np.abs(speed), np.abs(v))
        left = rates > max(SPEED, self.slack) * np.maximum(sizes, np.finfo(float).tiny)
        return speed, {f"rate of {self.names[i]}": float(rates[i]) for i in np.flatnonzero(left)}

    def equilibrium(self, q: Any = None, torque: Any = None, t: float = 0.0) -> Equilibrium:
        """Find a position of rest near a configuration (the neutral one by default), under constant joint forces.

        Loops are closed first. Goes down the potential along the constraints, so that it ends where a mechanism with
        dampers would come to rest; `stable` and `stiffness` tell what was found. Raises `SolvabilityError` where
        there is none to be found.
        """
        start = self.manifold.neutral() if q is None else reals(q, "q")
        assembly = self.assemble(start, t=t)
        if not assembly.ok:
            raise SolvabilityError(f"no equilibrium: the loops {assembly}")
        tau = np.zeros(self.nv) if torque is None else reals(torque, "torque")
        if tau.shape != (self.nv,) or not np.isfinite(tau).all():
            raise ModelError(f"torque must be {self.nv} finite numbers; got {torque!r}")
        q = self._downhill(assembly.q, tau, t)
        q, lam, residual = self._balanced(q, tau, t)
        acting = np.abs(np.asarray(self.bias(assembly.q, np.zeros(self.nv)))).max(initial=0.0)
        size = float(max(acting, np.abs(tau).max(initial=0.0), 1e-3 * self.mass * np.linalg.norm(self.gravity)))
        if not residual <= BALANCED * size:
            raise SolvabilityError(
                f"no position of rest was found: forces of {residual:.3g} remain, of {size:.3g} that act; the "
                "mechanism may fall or turn without end, or the start is too far away"
            )
        K, M, Z = self._stiffness(q, lam, tau, t)
        reduced = np.linalg.solve(Z.T @ M @ Z, Z.T @ K @ Z) if Z.shape[1] else np.zeros((0, 0))
        return Equilibrium(q, lam, residual, np.sort(np.linalg.eigvals(reduced).real))

    def _admissible(self, q: Array, t: float) -> tuple[Array, Array]:
        """Return A (holonomic rows) and an orthonormal basis of its null space."""
        A = np.asarray(self.jacobian(q, t)).reshape(len(self.names), self.nv)[np.array(self.holonomic, dtype=bool)]
        if not A.shape[0]:
            return A, np.eye(self.nv)
        _, s, Vt = np.linalg.svd(A)
        rank = int(np.sum(s > 1e-9 * max(s[0], np.finfo(float).tiny)))
        return A, Vt[rank:].T

    def _downhill(self, q: Array, tau: Array, t: float) -> Array:
        """Go down the potential, with steps as masses have them."""
        still, step = np.zeros(self.nv), 1e-2
        level = float(self.energy(q, still)[1])
        for _ in range(DOWNHILL):
            _, Z = self._admissible(q, t)
            force = Z.T @ (tau - np.asarray(self.bias(q, still)))
            if not np.abs(force).max(initial=0.0) > 1e-6 * (np.abs(self.bias(q, still)).max() + 1e-300):
                break
            move = Z @ np.linalg.solve(Z.T @ self.mass_matrix(q) @ Z, force)
            for _ in range(40):
                x = step * move
                if np.abs(x).max() < 0.3:
                    trial = self.project(self.integrate(q, x), t=t) if self.names else self.integrate(q, x)
                    new = float(self.energy(trial, still)[1]) - tau @ x
                    if new < level:
                        break
                step *= 0.5
            else:
                break
            q, level, step = trial, float(self.energy(trial, still)[1]), step * 1.5
        return q

    def _force_rows(self, q: Array, lam: Array, tau: Array, t: float) -> Array:
        A, _ = self._admissible(q, t)
        return np.asarray(self.bias(q, np.zeros(self.nv))) - tau + A.T @ lam

    def _stiffness(self, q: Array, lam: Array, tau: Array, t: float) -> tuple[Array, Array, Array]:
        """Return the derivative of the forces in tangent coordinates, M and the admissible motions."""
        kept = lam[np.array(self.holonomic, dtype=bool)] if len(self.names) else np.zeros(0)
        K = np.zeros((self.nv, self.nv))
        for j in range(self.nv):
            x = np.zeros(self.nv)
            x[j] = DIFFERENCE
            ahead, behind = (self._force_rows(self.integrate(q, s * x), kept, tau, t) for s in (1.0, -1.0))
            K[:, j] = (ahead - behind) / (2 * DIFFERENCE)
        return K, np.asarray(self.mass_matrix(q)), self._admissible(q, t)[1]

    def _balanced(self, q: Array, tau: Array, t: float) -> tuple[Array, Array, float]:
        """Return q, multipliers and what is not balanced, by Newton's method."""
        rows = np.array(self.holonomic, dtype=bool)
        best: tuple[Array, Array, float] = (q, np.zeros(len(self.names)), np.inf)
        for _ in range(NEWTON):
            A, Z = self._admissible(q, t)
            force = np.asarray(self.bias(q, np.zeros(self.nv))) - tau
            lam = np.linalg.lstsq(A.T, -force, rcond=1e-10)[0] if A.size else np.zeros(A.shape[0])
            left = float(np.abs(force + A.T @ lam).max(initial=0.0))
            full = np.zeros(len(self.names))
            full[rows] = lam
            if left < best[2]:
                best = (q, full, left)
            K, _, _ = self._stiffness(q, full, tau, t)
            x = Z @ np.linalg.lstsq(Z.T @ K @ Z, -Z.T @ force, rcond=1e-12)[0]
            x *= min(1.0, 0.3 / max(np.abs(x).max(initial=0.0), 1e-300))
            if np.abs(x).max(initial=0.0) <= 1e-15:
                break
            q = self.integrate(q, x)
            q = self.project(q, t=t) if self.names else q
        return best
