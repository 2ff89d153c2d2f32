"""The dynamics of one mode: sticking contacts are constraints, sliding ones forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.checks import refuse_masked
from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.friction import Coulomb, FrictionContact, Law, Resolution, resolve
from dalembert.friction.delassus import independent_sticking
from dalembert.kkt import KKT, Status
from dalembert.kkt.limits import CERTAIN
from dalembert.kkt.residual import estimated
from dalembert.model.lagrangian.contact_terms import FrictionalSystem, limits_of
from dalembert.simulate.limits import ALIGNED, ALIGNING_ROUNDS, LEAST_SPEED, REST_DIRECTION
from dalembert.simulate.samples import inside
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Contacts and their columns: one direction each, or two for a plane, whose sliding direction follows the velocity.
#
# Symbols, per contact: xi' relative velocity (one or two entries), s = |xi'| speed (one direction: signed by the mode),
# d unit vector of sliding, T = -limit d.
#
# In a plane d = xi' / s turns as fast as limit / s: at the onset of slip (s = 0) the equation is singular, and attracts
# d to the direction in which the forces at hand accelerate the contact. So below the speed `slow` of a contact that has
# just let go, d is that direction, xi'' = positive times d, found by the iteration
#
#     d <- unit(xi''(d) + k d),   k >= the acceleration that friction itself makes
#
# Near the end of slip, s -> 0 with d turning ever faster: a step goes at most half of the way to rest (`HALF`), and the
# contact is at rest when what is left takes less than the tolerance of an event.


STICK, SLIP = 0, 2
"""Modes of a contact in a plane; one direction slips with +1 or -1."""

HALF = 0.5
"""Part of the way to rest that a step may go."""


class ContactColumns:
    """Which columns of the contact rows belong to which contact; directions and speeds of sliding.

    `slow` (m,) are speeds below which a plane's direction is that of its acceleration; `guess` (columns,) the last one.
    """

    def __init__(self, contacts: Sequence[FrictionContact]) -> None:
        widths = [one.directions for one in contacts]
        self.first = np.concatenate([[0], np.cumsum(widths, dtype=int)]).astype(int)
        self.owner = np.repeat(np.arange(len(widths)), widths)
        self.plane = np.array(widths, dtype=int) == 2
        self.slow, self.guess = np.zeros(len(widths)), np.zeros(self.owner.size)
        pairs = [(one.name, width) for one, width in zip(contacts, widths, strict=True)]
        self.names = tuple(name if width == 1 else f"{name}[{j}]" for name, width in pairs for j in range(width))

    def of(self, i: Any) -> slice:
        """Return the columns of contact i."""
        return slice(int(self.first[i]), int(self.first[i + 1]))

    def stuck(self, mode: Array) -> Array:
        """Return the columns of sticking contacts."""
        return np.flatnonzero((mode == STICK)[self.owner])

    def sizes(self, values: Array) -> Array:
        """Return |values| per contact, (m,)."""
        return np.sqrt(np.bincount(self.owner, values * values, self.plane.size))

    def speeds(self, velocity: Array, mode: Array) -> Array:
        """Return the speed of every contact, signed by its mode (0 sticks); of a plane never negative."""
        signed = mode * velocity[self.first[:-1]]
        return np.where(self.plane & (mode != STICK), self.sizes(velocity), signed) if self.plane.any() else signed

    def units(self, velocity: Array, mode: Array) -> tuple[Array, list[int]]:
        """Return d of sliding contacts, (columns,), zero of others; and planes that are slow: d is a guess there."""
        unit, slow = np.where(mode == STICK, 0, mode)[self.owner].astype(float), []
        for i in np.flatnonzero(self.plane & (mode != STICK)).tolist():
            at = self.of(i)
            speed = float(np.sqrt(velocity[at] @ velocity[at]))
            if speed > self.slow[i]:
                unit[at] = velocity[at] / speed
            else:
                unit[at] = self.guess[at]
                slow.append(i)
        return unit, slow

    def let_go(self, i: int, direction: Array, slow: float) -> None:
        """Note that a contact in a plane begins to slip along a direction."""
        self.guess[self.of(i)], self.slow[i] = direction, slow

    def get_going(self, velocity: Array) -> None:
        """Forget the onset of planes that have got going."""
        self.slow[self.sizes(velocity) > self.slow] = 0.0

    def at_rest(self, velocity: Array, terms: Array, part: float) -> Array:
        """Return which contacts are at rest: relative velocities up to this part of the terms that they sum up."""
        return self.sizes(velocity) <= part * self.sizes(terms)

    def for_resolve(self, velocity: Array, mode: Array) -> Array:
        """Return relative velocities as `resolve` wants them: zero at rest, in the mode's direction otherwise."""
        least = np.where(self.plane, LEAST_SPEED, np.finfo(float).tiny)
        unit, _ = self.units(velocity, mode)
        speed = np.maximum(self.speeds(velocity, mode), least)
        return unit * speed[self.owner]

    def not_turned(self, velocity: Array, before: Array) -> Array:
        """Return velocities; of planes that have turned back since `before`, next to zero along the old direction."""
        turned = self.plane & (np.bincount(self.owner, velocity * before, self.plane.size) < 0.0)
        return np.where(turned[self.owner], REST_DIRECTION * before, velocity)

    def time_to_rest(self, velocity: Array, acceleration: Array, mode: Array) -> Array:
        """Return how long planes need until they rest at the deceleration of this moment; infinite for others."""
        left = np.full(self.plane.size, np.inf)
        for i in np.flatnonzero(self.plane & (mode != STICK)).tolist():
            at = self.of(i)
            slowing = -float(velocity[at] @ acceleration[at])
            if slowing > 0.0:
                left[i] = float(velocity[at] @ velocity[at]) / slowing
        return left


# ----------------------------------------------------------------------------------------------------------------------
# A system in one mode: sticking contacts are constraints, sliding ones forces by their laws.
#
# Symbols: M a + A^T lam = f + W T, sticking rows W_S^T a = -drift_S; sliding with direction d (one direction: the sign
# of xi'; a plane: its unit vector) and speed s: T = -d load T_k(s) or T = -d mu |N|, N = -lam_j the reaction of the
# normal row. With a reaction as load the block matrix is not symmetric:
#
#     [ M    A^T - sum_i mu_i sgn(N_j) W_i d_i e_j^T    -W_S ] [ a   ]   [ f + W T ]
#     [ A                    0                            0  ] [ lam ] = [ -drift  ]
#     [ W_S^T                0                            0  ] [ T_S ]   [ -drift_S ]


@dataclass(frozen=True, eq=False)
class Terms:
    """Everything that is known at a state before stick and slip are decided."""

    M: Array
    f: Array
    A: Array
    drift: Array
    velocity: Array
    rows: Array
    contact_drift: Array
    loads: Array


@dataclass(frozen=True, eq=False)
class DryMotion:
    """The motion of a state in its mode: a (n,), lam (k,), forces T by column (sticking: some member), friction W T."""

    a: Array
    lam: Array
    T: Array
    friction: Array


class Dynamics:
    """Evaluates a frictional system in modes, one per contact: 0 stick, +1 or -1 slip, in a plane 2."""

    def __init__(self, system: FrictionalSystem, force: Any = None) -> None:
        if not hasattr(system, "mass_matrix"):
            raise ModelError(f"a system is a Mechanism, a Lagrangian or Matrices, not {type(system).__name__}")
        if force is not None and not callable(force):
            raise ModelError(f"force must be a function of (t, q, v) that returns forces, not {type(force).__name__}")
        self.system, self.force = system, force
        self.contacts = tuple(getattr(system, "contacts", ()))
        self.columns = ContactColumns(self.contacts)
        self.names = tuple(one.name for one in self.contacts)
        self.laws: list[Law] = [one.law for one in self.contacts]
        self.limits = limits_of(self.contacts)
        self.n, self.m = len(system.coordinates), len(self.contacts)
        self.normals = [system.names.index(one.normal) if isinstance(one, Coulomb) else -1 for one in self.contacts]
        self.evaluations = 0
        self.bounds = -np.inf, np.inf

    def terms(self, q: Array, v: Array, t: float) -> Terms:
        """Evaluate the system at a state."""
        s = self.system
        f = -s.bias(q, v, t)
        if self.force is not None:
            f = f + self._applied(t, q, v)
        if self.m:
            velocity, rows, shift, loads = s.contact_terms(q, v, t)
        else:
            velocity, rows, shift, loads = np.zeros(0), np.zeros((0, self.n)), np.zeros(0), np.zeros(0)
        self.evaluations += 1
        return Terms(s.mass_matrix(q, t), f, s.jacobian(q, t), s.drift(q, v, t), velocity, rows, shift, loads)

    def _applied(self, t: float, q: Array, v: Array) -> Array:
        """Return the forces of the user's function, checked; between break points their limits from within."""
        function: Any = self.force
        given = function(inside(t, self.bounds), q, v)
        refuse_masked(given, f"force(t, q, v) at t = {t:.9g}")
        try:
            forces = np.asarray(given, dtype=float)
        except (TypeError, ValueError) as error:
            raise ModelError(f"force(t, q, v) must return {self.n} numbers; it returned {given!r}") from error
        if forces.shape != (self.n,):
            raise ShapeError(f"force(t, q, v) must return shape ({self.n},); it returned {forces.shape}")
        bad = np.flatnonzero(~np.isfinite(forces))
        if bad.size:
            name = self.system.coordinates[bad[0]]
            raise ModelError(f"force(t, q, v) is {forces[bad[0]]} along {name!r} at t = {t:.9g}")
        return forces

    def independent(self, q: Array, v: Array, t: float, mode: Array) -> Array:
        """Return which constraint and sticking rows to impose: a largest set of independent ones."""
        x = self.terms(q, v, t)
        return independent_sticking(np.vstack([x.A, x.rows[self.columns.stuck(mode)]]))

    def motion(self, x: Terms, mode: Array, kept: Array, state: Any = None) -> DryMotion:
        """Solve the block system of the mode; `kept` are the independent rows.

        Planes that have just let go slide where they are accelerated to: their directions are found on the way.
        """
        unit, slow = self.columns.units(x.velocity, mode)
        found = self._along(x, mode, unit, kept, state)
        for _ in range(ALIGNING_ROUNDS if slow else 0):
            turned = self._turned(x, unit, found, slow)
            settled = np.abs(turned - unit).max() <= ALIGNED
            unit = turned
            found = self._along(x, mode, unit, kept, state)
            if settled:
                break
        self.columns.guess[self.columns.plane[self.columns.owner]] = unit[self.columns.plane[self.columns.owner]]
        return found

    def _turned(self, x: Terms, unit: Array, found: DryMotion, slow: list[int]) -> Array:
        """Return directions nearer to those of the accelerations: unit(xi'' + k d)."""
        turned, xi = unit.copy(), x.rows @ found.a + x.contact_drift
        for i in slow:
            at = self.columns.of(i)
            towards = xi[at] + self.own_acceleration(x, found.T, i) * unit[at]
            size = float(np.sqrt(towards @ towards))
            if size > 0.0:
                turned[at] = towards / size
        return turned

    def own_acceleration(self, x: Terms, T: Array, i: int) -> float:
        """Return the largest relative acceleration that a friction force of the size of contact i's makes there."""
        at = self.columns.of(i)
        rows, size = x.rows[at], float(np.sqrt(T[at] @ T[at]))
        try:
            return size * float(np.linalg.norm(rows @ np.linalg.solve(x.M, rows.T), 2))
        except np.linalg.LinAlgError:
            return size * float(np.linalg.norm(rows @ np.linalg.pinv(x.M, hermitian=True) @ rows.T, 2))

    def _along(self, x: Terms, mode: Array, unit: Array, kept: Array, state: Any) -> DryMotion:
        """Solve the block system with given directions of sliding."""
        k, stuck = x.A.shape[0], self.columns.stuck(mode)
        speed = self.columns.speeds(x.velocity, mode)
        T = self._sliding_forces(x, mode, unit, speed, state)
        rows = np.vstack([x.A, x.rows[stuck]])[kept]
        right = np.concatenate([x.f + x.rows.T @ T, -np.concatenate([x.drift, x.contact_drift[stuck]])[kept]])
        columns = rows.T.copy()
        coupled = {i: self.laws[i].continued(speed[i], state) * unit[self.columns.of(i)] for i in self._coupled(mode)}
        signs = np.ones(self.m)
        solution, full = np.zeros(0), np.zeros(0)
        for _ in range(2):
            solution = self._solved(x.M, rows, self._coupling(x, kept, columns, coupled, signs), right)
            full = np.zeros(k + stuck.size)
            full[kept] = solution[self.n :]
            wrong = [i for i in coupled if -full[self.normals[i]] * signs[i] < 0.0]
            if not wrong:
                break
            signs[wrong] *= -1.0
        a, lam = solution[: self.n], full[:k]
        T = T.copy()
        T[stuck] = -full[k:]
        for i, pull in coupled.items():
            T[self.columns.of(i)] = -pull * abs(lam[self.normals[i]])
        return DryMotion(a, lam, T, x.rows.T @ T)

    def _coupled(self, mode: Array) -> list[int]:
        return [int(i) for i in np.flatnonzero(mode) if self.normals[i] >= 0]

    def _coupling(self, x: Terms, kept: Array, columns: Array, coupled: dict[int, Array], signs: Array) -> Array:
        """Return the columns of the reactions, with the friction that each brings along."""
        if not coupled:
            return columns
        changed = columns.copy()
        place = {int(row): j for j, row in enumerate(kept)}
        for i, pull in coupled.items():
            if self.normals[i] not in place:
                raise SolvabilityError(
                    f"the reaction of {self.system.names[self.normals[i]]!r} is not unique (redundant rows), so the "
                    f"friction of {self.names[i]!r} is not either"
                )
            changed[:, place[self.normals[i]]] -= signs[i] * (pull @ x.rows[self.columns.of(i)])
        return changed

    def _solved(self, M: Array, rows: Array, columns: Array, right: Array) -> Array:
        n, r = self.n, rows.shape[0]
        K = np.zeros((n + r, n + r))
        K[:n, :n], K[:n, n:], K[n:, :n] = M, columns, rows
        try:
            x, error = estimated(K, right, n)
            if error <= CERTAIN:
                return x
        except np.linalg.LinAlgError:
            pass
        found = KKT(M, rows, None, self.system.coordinates).solve(right[:n], -right[n:])
        if not found.ok:
            raise SolvabilityError(f"the rows of this mode are nearly dependent: {Status(int(found.status)).message}")
        if np.array_equal(columns, rows.T):
            return np.concatenate([found.acceleration, found.multipliers])
        raise SolvabilityError("the block matrix of this mode is singular: friction cancels the inertia (Painleve)")

    def _sliding_forces(self, x: Terms, mode: Array, unit: Array, speed: Array, state: Any) -> Array:
        T = np.zeros(self.columns.owner.size)
        for i in np.flatnonzero(mode):
            if self.normals[i] < 0:
                size = x.loads[i] * self.laws[i].continued(speed[i], state)
                if size < 0.0 <= speed[i]:
                    raise ModelError(
                        f"contact {self.names[i]!r}: the friction law is not dissipative: force {-size:.6g} along a "
                        f"relative velocity of size {speed[i]:.6g}"
                    )
                T[self.columns.of(i)] = -size * unit[self.columns.of(i)]
        return T

    def reserve(self, x: Terms, motion: DryMotion, mode: Array, state: Any = None) -> Array:
        """Return limit - |T| of the sticking contacts for the forces at hand; if all are positive, they hold."""
        stuck = np.flatnonzero(mode == STICK)
        limit = [
            float(self.laws[i].static(state))
            * (x.loads[i] if self.normals[i] < 0 else abs(motion.lam[self.normals[i]]))
            for i in stuck
        ]
        return np.array(limit) - self.columns.sizes(motion.T)[stuck]

    def resolved(self, x: Terms, mode: Array, state: Any, warm: Any = None) -> Resolution:
        """Resolve exactly, contacts in `mode` 0 being at rest whatever rounding says."""
        return resolve(
            x.M, x.f, x.rows.T, self.columns.for_resolve(x.velocity, mode), self.limits, A=x.A, drift=x.drift,
            contact_drift=x.contact_drift,
            names=self.names, rows=self.system.names, coordinates=self.system.coordinates, loads=x.loads,
            state_of_system=state, warm=warm,
        )  # fmt: skip
