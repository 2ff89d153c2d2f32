"""`method="moreau"`: time stepping for many contacts; impacts and forces alike are impulses of a step.

Symbols: q_m = q + v h / 2 configuration in the middle; u = W v contact velocities; P impulses; e restitution.

    M (v+ - v) = h f + W^T P - A^T L         A v+ = 0
    0 <= u_N+ + e u_N-  perp  P_N >= 0,      P_T by Coulomb's law            for contacts that would close in the step
    q+ = q + h (v + v+) / 2,  then positions moved back by the least motion where a gap is negative

First order, whatever happens in a step; no event is located. Contacts at rest do not creep: u = 0 to rounding.
Sources: J. J. Moreau 1988; M. Jean 1999; V. Acary, "Projected event-capturing time-stepping schemes", Comput. Methods
Appl. Mech. Eng. 256 (2013) 224-250.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.simulate.contact.forces import Chart, Forces
from dalembert.simulate.contact.geometry import Geometry, State
from dalembert.simulate.contact.laws import Inverse, complementarity
from dalembert.simulate.contact.pairs import pairs_of
from dalembert.simulate.contact.start import refuse_penetration
from dalembert.simulate.smooth.session import FIELDS, Session

Array = np.ndarray

BLOCK = 1000
"""Samples a block."""

DEFAULT_STEP = 1e-3
"""Seconds, where none is asked for."""

STICK, SLIP, OPEN = 0, 1, 2
"""Modes of a contact."""

AT_REST = 1e-9
"""Contact velocities below this count as rest in `modes`, m/s."""

PENETRATION = 1e-12
"""Gaps below minus this are closed again after a step, metres."""


class Moreau:
    """The time stepper of one session."""

    def __init__(self, session: Session) -> None:
        self.session, m = session, session.mechanism
        if session.watches:
            raise UnsupportedError('method="moreau" locates no events; method="hybrid" does')
        self.pairs = pairs_of(m, session.extra["contacts"])
        self.geometry, self.chart = Geometry(m, self.pairs), Chart(m)
        self.forces = Forces(session.controller)
        self.mu = np.array([pair.friction for pair in self.pairs])
        self.e = np.array([pair.restitution for pair in self.pairs])
        if any(pair.law == "poisson" and pair.restitution > 0 for pair in self.pairs):
            raise UnsupportedError('method="moreau" takes Newton\'s restitution; method="hybrid" Poisson\'s, too')
        session.extra["contact_names"] = tuple(pair.name for pair in self.pairs)
        s = session.settings
        self.h = s.step or DEFAULT_STEP
        self.total = max(1, round(s.duration / self.h))
        self.h = s.duration / self.total
        self.stride = 1 if s.every is None else max(1, round(s.every / self.h))
        self.warm = np.zeros(3 * len(self.pairs))
        self.q, self.v, self.count = session.q.copy(), session.v.copy(), 0
        self.work = self.heat = 0.0
        self.rows: dict[str, list[Any]] = {name: [] for name in (*FIELDS, "heat", "contact_forces", "modes")}
        self.offsets = bool(m.names) and bool(np.any(m.constraint_velocity(self.q, np.zeros(m.nv), s.start)))

    def run(self) -> None:
        """Take all steps."""
        s = self.session
        if s.checkpoint is None:
            refuse_penetration(self.geometry, self.q)
            self._record(
                np.zeros(self.v.size), np.zeros(len(s.mechanism.names)), np.zeros(3 * len(self.pairs)), None, 0.0
            )
        else:
            k = s.checkpoint
            self.q, self.v, self.warm = k["q"].copy(), k["v"].copy(), k["warm"].copy()
            self.count, self.work, self.heat = int(k["numbers"][0]), float(k["numbers"][1]), float(k["numbers"][2])
        try:
            while self.count < self.total and s.status == "completed":
                self._step()
                if s.on_step is not None:
                    s.on_step(self.t, self.q.copy(), self.v.copy())
                if len(self.rows["t"]) >= BLOCK:
                    self._flush()
        except (ModelError, ArithmeticError, ValueError) as error:
            s.extra["error"] = error, self.forces.time
            s.stop("stopped", str(error))
        finally:
            self._flush()
            s.steps = s.evaluations = self.count

    @property
    def t(self) -> float:
        """The time of the state."""
        return self.session.settings.start + self.count * self.h

    def _step(self) -> None:
        h, t, v = self.h, self.t, self.v
        middle = self.chart.along(self.q, 0.5 * h * v)
        x = self.geometry.state(middle, v, t + 0.5 * h)
        tau = self.forces(t, self.q, v)
        n = v.size
        inverse = Inverse.of(x.M, x.A)
        right = np.zeros((n, 1 + x.W.shape[0]))
        right[:, 0] = x.M @ v + h * (tau - x.bias)
        right[:, 1:] = x.W.T
        rows = np.zeros((x.A.shape[0], right.shape[1]))
        if self.offsets:
            rows[:, 0] = -self.session.mechanism.constraint_velocity(middle, np.zeros(n), t + 0.5 * h)
        motions, multipliers = inverse.solve(right, rows)
        free, B = motions[:, 0], motions[:, 1:]
        P, active = self._impulses(x, free, B)
        new = free + B @ P
        if not np.isfinite(new).all():
            self.session.stop("no solution", f"at t = {t:.9g} s: the motion is no longer finite")
            return
        lam = (multipliers[:, 0] + multipliers[:, 1:] @ P) / h
        end = self.chart.along(self.q, 0.5 * h * (v + new))
        self.q = self._without_penetration(end, x, new, B, active)
        self.heat -= float(P @ (x.W @ (new + v))) / 2.0
        self.work += h * float(tau @ (new + v)) / 2.0
        self.v = new
        self.count += 1
        if self.count % self.stride == 0 or self.count == self.total:
            self._record((new - v) / h, lam, P / h, x, h)

    def _impulses(self, x: State, free: Array, B: Array) -> tuple[Array, Array]:
        """Return the impulses of all contacts, and which would close in this step."""
        h, normal = self.h, np.arange(0, x.W.shape[0], 3)
        before, coming = (x.W[normal] @ each for each in (self.v, free))
        active = np.flatnonzero(x.gaps + 0.5 * h * coming <= 0.0)
        P = np.zeros(x.W.shape[0])
        if not active.size:
            return P, active
        rows = (3 * active[:, None] + np.arange(3)).ravel()
        G = x.W[rows] @ B[:, rows]
        g = x.W[rows] @ free
        allowed = np.where(self.e[active] > 0.0, 0.0, 2.0 / h * np.maximum(x.gaps[active], 0.0))
        g[::3] += self.e[active] * np.minimum(before[active], 0.0) + allowed
        answer = complementarity(G, g, self.mu[active], warm=self.warm[rows])
        if not answer.ok:
            answer = complementarity(G, g, self.mu[active])
        if not answer.ok:
            self.session.extra["unsolved"] = self.session.extra.get("unsolved", 0) + 1
        P[rows] = answer.r
        self.warm[:] = P
        return P, active

    def _without_penetration(self, q: Array, x: State, v: Array, B: Array, active: Array) -> Array:
        """Move positions back where a closed contact has gone below the surface, least in kinetic energy."""
        if not active.size:
            return q
        normal = 3 * active
        gaps = x.gaps[active] + 0.5 * self.h * (x.W[normal] @ v)
        if gaps.min() >= -PENETRATION:
            return q
        G = x.W[normal] @ B[:, normal]
        spread = np.zeros((3 * active.size, 3 * active.size))
        spread[::3, ::3] = G
        target = np.zeros(3 * active.size)
        target[::3] = gaps
        p = complementarity(spread, target, np.zeros(active.size)).r[::3]
        q = self.chart.along(q, B[:, normal] @ p)
        return self.session.mechanism.project(q, t=self.t + self.h) if self.session.mechanism.names else q

    def _record(self, a: Array, lam: Array, r: Array, x: State | None, h: float) -> None:
        k = len(self.pairs)
        forces, modes = np.zeros((k, 3)), np.full(k, OPEN)
        if x is not None:
            local = r.reshape(k, 3)
            forces = np.einsum("kij,ki->kj", x.axes, local)
            slip = np.linalg.norm((x.W @ self.v).reshape(k, 3)[:, 1:], axis=1) > AT_REST
            modes = np.where(local[:, 0] > 0.0, np.where(slip, SLIP, STICK), OPEN)
        values = (self.t, self.q.copy(), self.v.copy(), a, lam, self.work, h, self.heat, forces.ravel(), modes)
        for name, value in zip(self.rows, values, strict=True):
            self.rows[name].append(value)

    def _flush(self) -> None:
        m = self.session.mechanism
        width = {"q": m.nq, "v": m.nv, "acceleration": m.nv, "multipliers": len(m.names)}
        width |= {"contact_forces": 3 * len(self.pairs), "modes": len(self.pairs)}
        count = len(self.rows["t"])
        block = {name: np.array(rows).reshape((count, width[name]) if name in width else (count,))
                 for name, rows in self.rows.items()}  # fmt: skip
        block["modes"] = block["modes"].astype(np.int64)
        for rows in self.rows.values():
            rows.clear()
        numbers = np.array([self.count, self.work, self.heat])
        self.session.add(block, {"q": self.q.copy(), "v": self.v.copy(), "warm": self.warm.copy(), "numbers": numbers})


def run_moreau(session: Session) -> None:
    """Integrate a session with contacts by time stepping."""
    Moreau(session).run()
