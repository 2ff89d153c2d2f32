"""The motion between two events: accelerations with closed contacts by complementarity, and states put back on them.

Symbols: C closed contacts (gap and its rate are zero); of these some slide (|u_T| > 0), the others are at rest, where
Coulomb's
cone decides whether they stick, begin to slide or open; r reactions; a = a0 + B r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.simulate.contact.forces import Chart, Forces
from dalembert.simulate.contact.geometry import Geometry, State
from dalembert.simulate.contact.laws import Inverse, complementarity

Array = np.ndarray

PAINLEVE = (
    "friction makes the contact {name!r} at t = {t:.9g} s {what} (Painleve's paradox): "
    "G_NN - mu G_NT . s = {g:.3g} 1/kg"
)
"""What is said where sliding has no answer, or several."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Accelerations (nv,), reactions of all contacts (3 k,), multipliers (m,), accelerations of contacts (3 k,).

    `power` is that of the joint forces, `loss` what sliding turns into heat, watts.
    """

    a: Array
    r: Array
    lam: Array
    contact: Array
    x: State
    power: float = 0.0
    loss: float = 0.0


class Phase:
    """Evaluates a mechanism with a set of closed contacts."""

    def __init__(self, geometry: Geometry, chart: Chart, forces: Forces) -> None:
        self.geometry, self.chart, self.forces = geometry, chart, forces
        self.k, self.n = len(geometry.pairs), geometry.mechanism.nv
        self.mu = np.array([pair.friction for pair in geometry.pairs])
        self.closed = np.zeros(self.k, bool)
        self.sliding = np.zeros(self.k, bool)
        self.direction = np.zeros((self.k, 2))
        self.evaluations = 0

    def motion(self, q: Array, v: Array, t: float) -> Motion:
        """Return accelerations and forces; `SolvabilityError` where the laws have no answer."""
        self.evaluations += 1
        x = self.geometry.state(q, v, t)
        C = np.flatnonzero(self.closed)
        rows = (3 * C[:, None] + np.arange(3)).ravel()
        tau = self.forces(t, q, v)
        right = np.column_stack([tau - x.bias, x.W[rows].T])
        held = np.zeros((x.A.shape[0], right.shape[1]))
        held[:, 0] = -x.drift
        motions, multipliers = Inverse.of(x.M, x.A).solve(right, held)
        r = np.zeros(3 * self.k)
        if C.size:
            G = x.W[rows] @ motions[:, 1:]
            g = x.W[rows] @ motions[:, 0] + x.contact_drift[rows]
            slides, s = self.sliding[C], self._directions(x, v, C)
            self._refuse_painleve(G, g, C, slides, s, t)
            answer = complementarity(G, g, self.mu[C], slides, s)
            if not answer.ok:
                raise SolvabilityError(
                    f"at t = {t:.9g} s no forces of the contacts obey Coulomb's law (residual {answer.residual:.1e}): "
                    "Painleve's paradox, or redundant contacts that slide"
                )
            r[rows] = answer.r
        a = motions[:, 0] + motions[:, 1:] @ r[rows]
        lam = multipliers[:, 0] + multipliers[:, 1:] @ r[rows]
        tangential = r.copy()
        tangential[::3] = 0.0
        return Motion(a, r, lam, x.W @ a + x.contact_drift, x, float(tau @ v), -float(tangential @ (x.W @ v)))

    def _directions(self, x: State, v: Array, C: Array) -> Array:
        """Return where contacts slide to; the last known direction where the velocity is too small to tell."""
        u = (x.W @ v).reshape(self.k, 3)[C, 1:]
        size = np.linalg.norm(u, axis=1)
        known = self.direction[C]
        with np.errstate(invalid="ignore", divide="ignore"):
            turned = np.where((size > 0)[:, None], u / np.where(size > 0, size, 1.0)[:, None], known)
        # next to its end a sliding velocity may have crossed zero inside a step: the direction must not turn round
        return np.where(((turned * known).sum(axis=1) < 0)[:, None], known, turned)

    def _refuse_painleve(self, G: Array, g: Array, C: Array, slides: Array, s: Array, t: float) -> None:
        for j in np.flatnonzero(slides):
            effective = G[3 * j, 3 * j] - self.mu[C[j]] * float(G[3 * j, 3 * j + 1 : 3 * j + 3] @ s[j])
            if effective <= 0.0:
                what = "inconsistent: no finite force" if g[3 * j] < 0.0 else "indeterminate: several motions"
                name = self.geometry.pairs[C[j]].name
                raise SolvabilityError(PAINLEVE.format(name=name, t=t, what=what, g=effective))

    def on_manifold(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """Return the state with gaps of closed contacts zero, their normal velocities, and those that stick, zero."""
        m = self.geometry.mechanism
        C = np.flatnonzero(self.closed)
        if not C.size:
            return m.project(q, v, t) if m.names else (q, v)
        for _ in range(3):
            x = self.geometry.state(q, v, t)
            phi = np.concatenate([np.asarray(m.constraint(q, t)) if m.names else np.zeros(0), x.gaps[C]])
            if np.abs(phi).max() <= 1e-15:
                break
            rows = np.vstack([x.A[np.array(m.holonomic, dtype=bool)], x.W[3 * C]])
            q = self.chart.along(q, least_motion(x.M, rows, -phi))
        x = self.geometry.state(q, v, t)
        stuck = np.flatnonzero(self.closed & ~self.sliding & (self.mu > 0.0))
        rows = np.vstack([x.A, x.W[3 * C], x.W[3 * stuck + 1], x.W[3 * stuck + 2]])
        rate = rows @ v
        if m.names:
            rate[: x.A.shape[0]] = m.constraint_velocity(q, v, t)
        return q, v + least_motion(x.M, rows, -rate)


def least_motion(M: Array, rows: Array, wanted: Array) -> Array:
    """Return dv with rows dv = wanted, least in kinetic energy; redundant rows by least squares."""
    if not rows.shape[0]:
        return np.zeros(M.shape[0])
    motions, _ = Inverse.of(M, rows).solve(np.zeros((M.shape[0], 1)), wanted[:, None])
    return motions[:, 0]
