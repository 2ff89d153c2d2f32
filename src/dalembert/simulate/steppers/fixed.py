"""`method="fixed"`: a friction scheme inside a Runge-Kutta method of one step size (seed 001, sec. 3.1).

At every stage of a step the contacts at rest are resolved (Fig. 2, or another method of `friction`); nothing is
located. A contact whose relative velocity changes its sign in a step (in a plane: turns by more than a right angle)
comes to rest at the end of it, which is the seed's test for the set of potentially sticking contacts; those that stick
are put back on their manifold. Event times are therefore off by a step, and forces jump at the next step only. First
order at events, whatever the method between them.

Symbols: xi' relative velocity of a contact, one entry or two in a plane; s = |xi'| speed; d = xi' / s; W contact rows;
y = (q, v, work of applied forces, heat, work of friction).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.friction import METHODS as RESOLVERS
from dalembert.friction import Limited, Reacting, resolve
from dalembert.friction.resolution import Resolution
from dalembert.model.lagrangian.contact_terms import limits_of
from dalembert.names import near_matches
from dalembert.simulate.contact.run_end import call_on_step, guarded
from dalembert.simulate.equations.codes import Forces
from dalembert.simulate.equations.drives import power_at
from dalembert.simulate.events.record import MODES, EventRecord, Mode
from dalembert.simulate.limits import (
    AT_REST,
    CLOSED_PLAIN,
    DEPENDENT_ENTRY,
    LEAST_SIZE,
    LEAST_SPEED,
    LEAST_SQUARES,
    LIGHT,
    ON_THE_GRID,
    REST_DIRECTION,
    STAGE_ITERATIONS,
    STAGES_SOLVED,
    WHOLE_STEPS,
)
from dalembert.simulate.runge_kutta import METHODS, RADAU_A, RADAU_C, method_of
from dalembert.simulate.samples import asked_time, point_inside, refuse_breaks_between_steps
from dalembert.simulate.session import Session
from dalembert.status import Status
from dalembert.types import Array

BLOCK = 256
"""Steps between two checkpoints."""

SUMS = 3
"""Integrals behind q and v in a state: work of applied forces, heat, work of friction."""


class FixedSample(NamedTuple):
    """A state that is written down: time, q, v and integrals, modes, size of the step, and what was resolved there."""

    t: float
    y: Array
    mode: Array
    step: float
    answer: Resolution
    velocity: Array


class FrictionColumns:
    """Which contact rows belong to which contact; speeds and directions of sliding."""

    def __init__(self, contacts: Any) -> None:
        self.widths = tuple(contact.directions for contact in contacts)
        self.first = np.concatenate([[0], np.cumsum(self.widths, dtype=int)])[:-1].astype(int)
        self.owner = np.repeat(np.arange(len(self.widths)), self.widths)
        self.plane = np.array(self.widths, dtype=int) == 2

    def sizes(self, values: Array) -> Array:
        """Return |values| per contact, (m,)."""
        return np.sqrt(np.bincount(self.owner, values * values, self.plane.size))

    def ways(self, velocity: Array) -> Array:
        """Return the modes of contacts that slide with these velocities, (m,)."""
        return np.where(self.plane, Mode.SLIP, np.sign(velocity[self.first])).astype(int)

    def turned(self, velocity: Array, before: Array) -> Array:
        """Return which contacts move against the velocity that they had before, (m,)."""
        return np.bincount(self.owner, velocity * before, self.plane.size) < 0.0

    def for_resolve(self, velocity: Array, mode: Array) -> Array:
        """Return relative velocities as `resolve` wants them: zero at rest, in the mode's direction otherwise."""
        size = self.sizes(velocity)
        direction = velocity / np.where(size > 0.0, size, 1.0)[self.owner]
        unit = np.where((self.plane & (mode != Mode.STICK))[self.owner], direction, mode[self.owner])
        signed = np.where(self.plane, size, mode * velocity[self.first])
        least = np.where(self.plane, LEAST_SPEED, np.finfo(float).tiny)
        return np.where((mode == Mode.STICK)[self.owner], 0.0, unit * np.maximum(signed, least)[self.owner])


class SchemeRun:
    """A session on its way in steps of one size."""

    def __init__(self, session: Session, resolver: str | None, stepper: str, sticking: Any, options: Any) -> None:
        self.session, self.system, s = session, session.system, session.settings
        self.given: Any = getattr(session.system, "given", None)
        self.contacts = tuple(getattr(self.given, "contacts", ()))
        _refuse(session, self.given, self.contacts, stepper)
        self.names = tuple(contact.name for contact in self.contacts)
        self.columns, self.limits = FrictionColumns(self.contacts), limits_of(self.contacts)
        self.resolver, self.options = _resolver(resolver, self.limits), options
        self.stepper, self.forces = stepper, Forces(session.controller)
        session.extra |= {"contact_names": self.names, "contact_widths": self.columns.widths}
        self.t, self.y, self.last = s.start, np.concatenate([session.q, session.v, np.zeros(SUMS)]), 0.0
        self.mode = self._first_modes(sticking)
        self.rest, self.before, self.stuck = self.mode == Mode.STICK, np.zeros(self.columns.owner.size), self.mode == 0
        self.next, self.samples = 1, list[FixedSample]()

    def run(self) -> None:
        """Go to the end, or as far as it goes."""
        session, s = self.session, self.session.settings
        assert s.step is not None
        refuse_breaks_between_steps(session.stops, s.start, s.step, 'method="fixed"')
        with guarded(session, lambda: self.t, self._hand_over):
            if session.checkpoint is None:
                self._bounds(s.start, s.start + s.step)
                self._note(0.0)
            else:
                self._restore(session.checkpoint)
            done = int(np.floor((self.t - s.start) / s.step * (1.0 + WHOLE_STEPS)))
            while self.t < s.end:
                done += 1
                target = s.start + done * s.step
                self._step(s.end if target >= s.end - WHOLE_STEPS * s.step else target)
                if done % BLOCK == 0 or session.on_step is not None:
                    self._hand_over()
                call_on_step(session, self.t, *self._state(self.y))

    # --- steps ----------------------------------------------------------------------------------------------------

    def _step(self, target: float) -> None:
        """Take one step; modes change at its end."""
        session, s, h = self.session, self.session.settings, target - self.t
        self._bounds(self.t, target)
        self.before = self.given.contact_terms(*self._state(self.y), self.t)[0]
        self.rest = self.mode == Mode.STICK
        k = self.rate(self.t, self.y)
        y = self._advanced(self.y, h, k)
        stuck = self.stuck
        while s.every is not None and (t := asked_time(s.start, s.end, s.every, self.next)) < target:
            self._between(t, k)
        for j in range(1, s.inside + 1):
            self._between(self.t + point_inside(j, s.inside) * h, k)
        mode, creeps = self._modes(y, target, stuck), self.resolver == "regularised"
        self.t, self.y, self.last = target, y if creeps else self._put_back(y, target, mode), h
        session.steps += 1
        changed = np.flatnonzero(mode != self.mode)
        for i in changed:
            words = MODES[int(self.mode[i])], MODES[int(mode[i])]
            session.events.append(EventRecord(float(target), self.names[i], int(i), *words))
        self.mode = mode
        sampled = s.every is None or target >= s.end or target == asked_time(s.start, s.end, s.every, self.next)
        self.next += sampled and s.every is not None
        if sampled or changed.size:
            self._note(h)

    def _between(self, t: float, k: Array) -> None:
        """Write down an asked time inside a step, by a shorter step from the same start."""
        self.next += 1
        y = self._advanced(self.y, t - self.t, k)
        y = y if self.resolver == "regularised" else self._put_back(y, t, self.mode)
        self.samples.append(self._sample(t, y, 0.0))

    def _advanced(self, y: Array, h: float, k: Array) -> Array:
        """Return the state h later; k is the rate at the start."""
        if self.stepper == "radau":
            return y + _implicit_way(self.rate, self.t, y, h, k, self.session.settings)
        table = method_of(self.stepper).arrays
        a, b, c = table["rk_a"], table["rk_b"], table["rk_c"]
        rates = np.empty((b.size, y.size))
        rates[0] = k
        for i in range(1, b.size):
            rates[i] = self.rate(self.t + c[i] * h, y + h * (a[i, :i] @ rates[:i]))
        return y + h * (b @ rates)

    def rate(self, t: float, y: Array) -> Array:
        """Return y' with the friction scheme inside; `stuck` are the contacts that stick there."""
        q, v = self._state(y)
        answer, x = self._resolved(t, q, v)
        self.stuck = np.array([name in answer.sets.sticking for name in self.names], dtype=bool)
        heat = -float(np.sum(np.where(self.stuck[self.columns.owner], 0.0, answer.forces * x["velocity"])))
        power = power_at(self.system, q, v, x["tau"], t, answer.multipliers)
        return np.concatenate([v, answer.acceleration, [power, heat, float(v @ (x["rows"].T @ answer.forces))]])

    def _resolved(self, t: float, q: Array, v: Array) -> tuple[Resolution, dict[str, Array]]:
        """Return what the friction scheme makes of a state, and the terms that it was given."""
        g, tau = self.given, self.forces(t, q, v)
        velocity, rows, drift, loads = g.contact_terms(q, v, t)
        self.session.evaluations += 1
        mode = np.where(self.rest, Mode.STICK, self.mode)
        mode = np.where(self.columns.plane & (self.columns.sizes(velocity) == 0.0), Mode.STICK, mode)
        turned = (self.columns.plane & self.columns.turned(velocity, self.before))[self.columns.owner]
        along = np.where(turned, REST_DIRECTION * self.before, velocity)
        speeds = velocity if self.resolver == "regularised" else self.columns.for_resolve(along, mode)
        answer = resolve(
            g.mass_matrix(q, t), tau - g.bias(q, v, t), rows.T, speeds, self.limits, self.resolver,
            A=g.jacobian(q, t), drift=g.drift(q, v, t), contact_drift=drift, names=self.names, rows=g.names,
            coordinates=g.coordinates, loads=loads, state_of_system=(q, v, t), **self.options,
        )  # fmt: skip
        if answer.status not in (Status.SOLVED, Status.NOT_OPTIMAL, Status.CYCLE, Status.NOT_CONVERGED):
            raise SolvabilityError(f"at t = {t:.6g}: {answer.status.message}; {answer.certificate.note}", answer.report)
        return answer, {"velocity": velocity, "rows": rows, "tau": tau}

    def _modes(self, y: Array, t: float, stuck: Array) -> Array:
        """Return the modes at the end of a step."""
        after = self.given.contact_terms(*self._state(y), t)[0]
        still, way = self.columns.sizes(after) == 0.0, self.columns.ways(after)
        if self.resolver == "regularised":
            return np.where(still, self.mode, way)
        crossed = (self.mode != Mode.STICK) & self.columns.turned(after, self.before)
        return np.where(stuck | crossed | still, Mode.STICK, way)

    def _first_modes(self, sticking: Any) -> Array:
        """Return who is at rest and who slides at the start; refuse contacts that must stick and move."""
        q, v = self._state(self.y)
        velocity, rows, _, _ = self.given.contact_terms(q, v, self.t)
        terms = np.abs(rows) @ np.abs(v) + np.abs(velocity - rows @ v)
        at_rest = self.columns.sizes(velocity) <= AT_REST * self.columns.sizes(terms)
        mode = np.where(at_rest, Mode.STICK, self.columns.ways(velocity))
        for name in [sticking] if isinstance(sticking, str) else sticking or ():
            if name not in self.names:
                raise ModelError(f"sticking: no contact is called {name!r}; there are {', '.join(self.names)}")
            i = self.names.index(name)
            if mode[i] != Mode.STICK:
                speeds = ", ".join(f"{x:.6g}" for x in velocity[self.columns.owner == i])
                raise ModelError(
                    f"contact {name!r} cannot stick at the start: its relative velocity is {speeds} m/s; change v, or "
                    "leave it out of sticking="
                )
        return mode

    def _put_back(self, y: Array, t: float, mode: Array) -> Array:
        """Return the state on its constraints, with relative velocities of sticking contacts exactly zero."""
        q, v = self._state(y)
        held = np.array(self.system.holonomic, dtype=bool)
        for _ in range(3 if held.any() else 0):
            phi = np.asarray(self.system.constraint(q, t))
            if not np.abs(phi).max(initial=0.0) > CLOSED_PLAIN * (1.0 + np.abs(q).max()):
                break
            q = q - np.linalg.lstsq(np.asarray(self.system.jacobian(q, t))[held], phi, rcond=LEAST_SQUARES)[0]
        for _ in range(2):
            velocity, rows, _, _ = self.given.contact_terms(q, v, t)
            stuck = (mode == Mode.STICK)[self.columns.owner]
            A, rates = np.asarray(self.system.jacobian(q, t)), np.asarray(self.system.constraint_velocity(q, v, t))
            rows, missing = np.vstack([A, rows[stuck]]), np.concatenate([rates, velocity[stuck]])
            if not np.any(missing):
                break
            v = v + _least_change(rows, -missing, np.diag(np.asarray(self.system.mass_matrix(q, t))))
        return np.concatenate([q, v, y[2 * q.size :]])

    def _bounds(self, begin: float, end: float) -> None:
        """Let forces take their limits from within a step whose ends are break points."""
        near = ON_THE_GRID * (self.session.settings.step or 0.0)
        stops = self.session.stops
        low = next((float(np.nextafter(t, np.inf)) for t in stops if abs(t - begin) <= near), -np.inf)
        high = next((float(np.nextafter(t, -np.inf)) for t in stops if abs(t - end) <= near), np.inf)
        self.forces.bounds = low, high

    # --- samples --------------------------------------------------------------------------------------------------

    def _state(self, y: Array) -> tuple[Array, Array]:
        n = self.system.nv
        return y[:n].copy(), y[n : 2 * n].copy()

    def _sample(self, t: float, y: Array, step: float) -> FixedSample:
        """Return a state with its accelerations and forces."""
        before, self.rest = self.rest, self.mode == Mode.STICK
        answer, x = self._resolved(t, *self._state(y))
        self.rest = before
        velocity = np.where((self.mode == Mode.STICK)[self.columns.owner], 0.0, x["velocity"])
        return FixedSample(t, y.copy(), self.mode.copy(), step, answer, velocity)

    def _note(self, step: float) -> None:
        """Write down the state of the run."""
        self.before = np.zeros(self.columns.owner.size)
        self.samples.append(self._sample(self.t, self.y, step))

    def _hand_over(self) -> None:
        """Hand samples over with the point from which the run goes on."""
        if not self.samples:
            return
        n, rows = self.system.nv, self.samples
        y = np.array([row.y for row in rows])
        block = {
            "t": np.array([row.t for row in rows]), "q": y[:, :n], "v": y[:, n : 2 * n],
            "acceleration": np.array([row.answer.acceleration for row in rows]),
            "multipliers": np.array([row.answer.multipliers for row in rows]).reshape(len(rows), -1),
            "work": y[:, 2 * n], "heat": y[:, 2 * n + 1], "friction_work": y[:, 2 * n + 2],
            "step": np.array([row.step for row in rows]), "modes": np.array([row.mode for row in rows], np.int64),
            "contact_forces": np.array([row.answer.forces for row in rows]),
            "relative_velocity": np.array([row.velocity for row in rows]),
        }  # fmt: skip
        self.samples = []
        counts = np.array([self.next, self.session.steps, self.session.evaluations], float)
        self.session.add(block, {"time": np.array([self.t]), "y": self.y.copy(), "mode": self.mode, "counts": counts})

    def _restore(self, point: dict[str, Array]) -> None:
        """Go back to a checkpoint."""
        self.t, self.y, self.mode = float(point["time"][0]), point["y"].copy(), point["mode"].astype(int)
        self.next, self.session.steps, self.session.evaluations = (int(number) for number in point["counts"])


def _implicit_way(rate: Any, t: float, y: Array, h: float, k: Array, settings: Any) -> Array:
    """Return y(t + h) - y by Radau IIA of order 5, z_i = h sum_j a_ij y'(t + c_j h, y + z_j).

    Simplified Newton iteration with a Jacobian of differences. Source: Hairer, Wanner 1996, sec. IV.8.
    """
    n, scale = y.size, settings.atol + settings.rtol * np.abs(y)
    J = np.empty((n, n))
    for j in range(n):
        moved = y.copy()
        moved[j] += np.sqrt(np.finfo(float).eps) * max(abs(y[j]), LEAST_SIZE, scale[j])
        J[:, j] = (rate(t, moved) - k) / (moved[j] - y[j])
    matrix = np.eye(3 * n) - h * np.kron(RADAU_A, J)
    z, before = np.zeros((3, n)), np.inf
    for _ in range(STAGE_ITERATIONS):
        rates = np.array([rate(t + RADAU_C[i] * h, y + z[i]) for i in range(3)])
        change = np.linalg.solve(matrix, (h * (RADAU_A @ rates) - z).reshape(-1)).reshape(3, n)
        z += change
        size = float(np.sqrt(np.mean((change / scale) ** 2)))
        if size <= STAGES_SOLVED or (size < 1.0 and size > 0.5 * before):
            return z[2]
        if not size < 2.0 * before:
            break
        before = size
    raise SolvabilityError(
        f"at t = {t:.9g} s the implicit stages of a step of {h:.3g} s do not converge: take a smaller step, or "
        'method="hybrid" with stepper="radau"'
    )


def _least_change(rows: Array, wanted: Array, mass: Array) -> Array:
    """Return d with rows d = wanted, on the dependent coordinates alone, light ones first.

    By elimination: rows of zeros and ones (a block on a belt, two blocks together) then hold to the last bit.
    """
    R, b = rows.astype(float).copy(), wanted.astype(float)
    d, pivots = np.zeros(mass.size), []
    size = np.abs(R).max(axis=1, initial=0.0)
    weight = 1.0 / np.sqrt(np.where(mass > 0.0, mass, np.finfo(float).tiny + mass.max(initial=1.0) * LIGHT))
    for i in range(len(R)):
        column = int(np.argmax(np.abs(R[i]) * weight))
        if np.abs(R[i, column]) <= DEPENDENT_ENTRY * size[i]:
            continue
        b[i] /= R[i, column]
        R[i] /= R[i, column]
        for j in np.flatnonzero(R[:, column]):
            if j != i:
                b[j] -= R[j, column] * b[i]
                R[j] -= R[j, column] * R[i]
        pivots.append((i, column))
    for i, column in pivots:
        d[column] = b[i]
    return d


def _resolver(asked: Any, limits: Any) -> str:
    """Return the method of `resolve`: the flowchart, or "exact" where a limit is a reaction or a disk."""
    if asked is None:
        return "exact" if any(isinstance(law, Reacting | Limited) for law in limits) else "flowchart"
    if not isinstance(asked, str) or asked not in RESOLVERS:
        raise ModelError(
            f"resolver={asked!r} is not one of {', '.join(map(repr, RESOLVERS))}",
            near=near_matches(str(asked), RESOLVERS),
        )
    return asked


def _refuse(session: Session, given: Any, contacts: Any, stepper: Any) -> None:
    """Refuse what this scheme does not take."""
    if not contacts:
        raise UnsupportedError(
            'method="fixed" is the friction scheme of Lagrangians and Matrices with friction=; method="rk4" takes '
            "steps of one size of all systems"
        )
    if getattr(given, "unilateral", ()):
        raise UnsupportedError(
            'method="fixed" locates nothing, so no contact opens or closes: take method="hybrid" or "moreau"'
        )
    if session.watches:
        raise UnsupportedError('method="fixed" locates no events: take method="hybrid"')
    if session.settings.step is None:
        raise ModelError('method="fixed" needs step=')
    if not isinstance(stepper, str) or stepper not in METHODS:
        raise ModelError(
            f"stepper={stepper!r} is not one of {', '.join(map(repr, METHODS))}",
            near=near_matches(str(stepper), METHODS),
        )


def run_fixed(
    session: Session, resolver: str | None = None, stepper: str = "dop853", sticking: Any = None, **options: Any
) -> None:
    """Integrate a session with dry friction in steps of one size.

    Parameters
    ----------
    resolver
        A method of `dalembert.friction.resolve`: "flowchart", or "exact" where a limit is a reaction or a disk, by
        default.
    stepper
        One of `runge_kutta.METHODS`.
    sticking
        Names of contacts that must stick at the start.
    options
        Of the resolver.
    """
    SchemeRun(session, resolver, stepper, sticking, options).run()
