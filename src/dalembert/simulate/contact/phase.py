"""The motion between two events: accelerations with closed contacts by complementarity, and states put back on them.

Symbols: C closed contacts (gap and its rate are zero); of these some slide (|u_T| > 0), the others are at rest, where
Coulomb's cone decides whether they stick, begin to slide or open; r reactions; a = a0 + B r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.errors import SolvabilityError
from dalembert.kkt import Status
from dalembert.simulate.contact.forces import Chart, Forces
from dalembert.simulate.contact.geometry import Geometry, State
from dalembert.simulate.contact.laws import Inverse, complementarity
from dalembert.simulate.contact.massless import Limbs, stiffened

Array = np.ndarray

PAINLEVE = (
    "friction makes the contact {name!r} at t = {t:.9g} s {what} (Painleve's paradox): "
    "G_NN - mu G_NT . s = {g:.3g} 1/kg"
)
"""What is said where sliding has no answer, or several."""

NO_FORCES = (
    "at t = {t:.9g} s no forces of the contacts obey Coulomb's law (residual {residual:.1e}): Painleve's paradox, or "
    "redundant contacts that slide"
)

SLIPPING_LIMB = (
    "at t = {t:.9g} s the joint forces push the massless limb of contact {name!r} out of its friction cone (mu = {mu:g}): "
    "it would slip, and nothing resists; give the limb mass, or more friction"
)

SLIPS = 1e-7
"""A foot without mass slips where it accelerates by more than this part of all contacts."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Accelerations (nv,), reactions of all contacts (3 k,), multipliers (m,), accelerations of contacts (3 k,).

    `power` is that of the joint forces, `loss` what sliding turns into heat, watts; `status` and `residual` of the solve
    as of a `KKT`, the residual of the contact laws included.
    """

    a: Array
    r: Array
    lam: Array
    contact: Array
    x: State
    power: float = 0.0
    loss: float = 0.0
    status: int = 0
    residual: float = 0.0


class Phase:
    """Evaluates a mechanism with a set of closed contacts."""

    def __init__(self, geometry: Geometry, chart: Chart, forces: Forces, limbs: Limbs) -> None:
        self.geometry, self.chart, self.forces, self.limbs = geometry, chart, forces, limbs
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
        M, A, force, limb = self._with_mass(x, C, tau - x.bias)
        held = np.zeros((A.shape[0], 1 + rows.size))
        held[: x.drift.size, 0] = -x.drift
        inverse = Inverse.of(M, A)
        motions, multipliers = inverse.solve(np.column_stack([force, x.W[rows].T]), held)
        r, residual = np.zeros(3 * self.k), inverse.residual
        if C.size:
            G = x.W[rows] @ motions[:, 1:]
            g = x.W[rows] @ motions[:, 0] + x.contact_drift[rows]
            slides, s = self.sliding[C], self._directions(x, v, C)
            self._refuse_painleve(G, g, C, slides, s, t)
            answer = complementarity(G, g, self.mu[C], slides, s)
            if not answer.ok:
                raise SolvabilityError(NO_FORCES.format(t=t, residual=answer.residual))
            r[rows], residual = answer.r, max(residual, answer.residual)
        a = motions[:, 0] + motions[:, 1:] @ r[rows]
        lam = (multipliers[:, 0] + multipliers[:, 1:] @ r[rows])[: x.drift.size]
        contact = x.W @ a + x.contact_drift
        self._refuse_slipping_limb(limb, r, contact, t)
        status = int(Status.HELD if inverse.status == Status.UNIQUE and A.shape[0] > x.drift.size else inverse.status)
        tangential = r.copy()
        tangential[::3] = 0.0
        loss = -float(tangential @ (x.W @ v))
        return Motion(a, r, lam, contact, x, float(tau @ v), loss, status, residual)

    def _with_mass(self, x: State, C: Array, force: Array) -> tuple[Array, Array, Array, Array]:
        """Return M, A and forces with massless limbs made definite, and which closed contacts are theirs."""
        if not self.limbs.any:
            return x.M, x.A, force, C[:0]
        rows = self._rows_of(C)
        limb = C[self.limbs.seen_by(x.M, x.A, x.W[(3 * C[:, None] + np.arange(3)).ravel()])]
        R = self._rows_of(limb)
        M, rho = stiffened(x.M, x.W[R])
        A = np.vstack([x.A, self.limbs.held(x.M, np.vstack([x.A, x.W[rows]]))])
        return M, A, force - rho * x.W[R].T @ x.contact_drift[R], limb

    def _rows_of(self, C: Array) -> Array:
        """Return the rows that contacts hold: normals, and tangents of those that stick."""
        stuck = C[~self.sliding[C] & (self.mu[C] > 0.0)]
        return np.concatenate([3 * C, 3 * stuck + 1, 3 * stuck + 2]).astype(int)

    def _refuse_slipping_limb(self, limb: Array, r: Array, contact: Array, t: float) -> None:
        for i in limb:
            begins = np.linalg.norm(contact[3 * i + 1 : 3 * i + 3]) > SLIPS * (1.0 + np.abs(contact).max())
            if r[3 * i] > 0.0 and self.mu[i] > 0.0 and (begins or self.sliding[i]):
                name = self.geometry.pairs[i].name
                raise SolvabilityError(SLIPPING_LIMB.format(name=name, t=t, mu=self.mu[i]))

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
        if not C.size and not self.limbs.any:
            return m.project(q, v, t) if m.names else (q, v)
        for _ in range(3 if C.size or m.names else 0):
            x = self.geometry.state(q, v, t)
            phi = np.concatenate([np.asarray(m.constraint(q, t)) if m.names else np.zeros(0), x.gaps[C]])
            if np.abs(phi).max(initial=0.0) <= 1e-15:
                break
            rows = np.vstack([x.A[np.array(m.holonomic, dtype=bool)], x.W[3 * C]])
            q = self.chart.along(q, self._least(x.M, rows, -phi))
        x = self.geometry.state(q, v, t)
        rows = np.vstack([x.A, x.W[self._rows_of(C)]])
        rate = rows @ v
        if m.names:
            rate[: x.A.shape[0]] = m.constraint_velocity(q, v, t)
        held = self.limbs.held(x.M, rows)
        return q, v + self._least(x.M, np.vstack([rows, held]), -np.concatenate([rate, held @ v]))

    def _least(self, M: Array, rows: Array, wanted: Array) -> Array:
        """Return dv with rows dv = wanted, least in kinetic energy; redundant rows by least squares."""
        held = self.limbs.held(M, rows)
        rows = np.vstack([rows, held])
        if not rows.shape[0]:
            return np.zeros(M.shape[0])
        wanted = np.concatenate([wanted, np.zeros(held.shape[0])])
        motions, _ = Inverse.of(M, rows).solve(np.zeros((M.shape[0], 1)), wanted[:, None])
        return motions[:, 0]
