"""The dynamics between two events, and steps of order 8 through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.kkt import Status
from dalembert.kkt.limits import CERTAIN
from dalembert.kkt.residual import estimated
from dalembert.model.joints import KINDS
from dalembert.simulate.contact.complementarity import Inverse, Limbs, complementarity, stiffened
from dalembert.simulate.contact.geometry import Units
from dalembert.simulate.equations.codes import Chart, Forces
from dalembert.simulate.limits import REDUNDANT_RESIDUAL
from dalembert.simulate.runge_kutta import DOP853
from dalembert.simulate.session import RunSettings
from tests.reference.contact.geometry import Geometry, State
from tests.reference.dry.explicit import DOP853_TABLE

# ----------------------------------------------------------------------------------------------------------------------
# Steps of order 8 between events: from here by any h, put back on the contacts that are closed.


Array = np.ndarray

SAFETY, LEAST, MOST = 0.9, 0.2, 6.0
"""Part of the optimal step, and how much a step may shrink or grow at once."""

SHORTEST = 1e-11
"""Steps that have no answer are shortened down to this, seconds: the run ends next to where the answer does."""

FAR = 1e12
"""Stages beyond this (metres, radians, per second) belong to steps that are too long."""

TRIALS = 80
"""Rejected steps in a row at most."""


@dataclass(eq=False)
class ContactState:
    """Where a run is, and the motion there."""

    t: float
    q: Array
    v: Array
    motion: ModeMotion


class Stage(NamedTuple):
    """Where a step was evaluated: time since its start, velocities, motion, rate; states of stages are of low order."""

    h: float
    v: Array
    motion: ModeMotion
    rate: Array


class Inside:
    """States inside of a step: the polynomial of degree 7 through its stages and three more (Hairer's dop853)."""

    def __init__(self, flow: ModeIntegrator, here: ContactState, shot: TrialStep) -> None:
        self.flow, self.base, self.h, n = flow, here.q, shot.h, flow.n
        K = np.zeros((16, 2 * n))
        K[:13] = [stage.rate[: 2 * n] for stage in shot.stages]
        y = np.concatenate([np.zeros(n), here.v])
        rate = flow.rate(here, [])
        for i, (a, c) in enumerate(zip(DOP853.A_EXTRA, DOP853.C_EXTRA, strict=True), start=13):
            state = np.concatenate([y + self.h * (a[:i] @ K[:i]), [0.0, 0.0]])
            K[i] = rate(here.t + c * self.h, state)[: 2 * n]
        change = self.h * (DOP853_TABLE.b @ K[:12])
        self.y = y
        both = self.h * (K[12] + K[0])
        self.F = np.vstack([change, self.h * K[0] - change, 2.0 * change - both, self.h * DOP853.D @ K])

    def at(self, s: float) -> tuple[Array, Array]:
        """Return configuration and velocity after s."""
        x, n = s / self.h, self.flow.n
        y = np.zeros(2 * n)
        for i, f in enumerate(self.F[::-1]):
            y = (y + f) * (x if i % 2 == 0 else 1.0 - x)
        y += self.y
        return self.flow.chart.at(self.base, y[:n], y[n:])[0], y[n:]


@dataclass(frozen=True, eq=False)
class TrialStep:
    """The state after a step by h: its error over the tolerance, what joint forces did and sliding took in it."""

    h: float
    q: Array
    v: Array
    ratio: float
    work: float
    heat: float
    stages: tuple[Stage, ...] = ()


class ModeIntegrator:
    """Steps in the mode that the phase is in."""

    def __init__(self, phase: ModeDynamics, chart: Chart, settings: RunSettings) -> None:
        self.phase, self.chart, self.settings = phase, chart, settings
        self.h = settings.step or min(1e-3, settings.duration / 100)
        self.rejected = 0
        self.n = phase.n

    def shot(self, here: ContactState, h: float) -> TrialStep:
        """Return where a step by h leads."""
        n, s = self.n, self.settings
        y = np.concatenate([np.zeros(n), here.v, [0.0, 0.0]])
        _, x_rate = self.chart.at(here.q, y[:n], here.v)
        first = np.concatenate([x_rate, here.motion.a, [here.motion.power, here.motion.loss]])
        size = np.concatenate([np.ones(n), np.abs(here.v), [np.inf, np.inf]])
        with np.errstate(over="ignore", invalid="ignore"):
            stages = [Stage(0.0, here.v, here.motion, first)]
            rate = self.rate(here, stages)
            end, ratio = DOP853_TABLE.step(rate, here.t, y, h, first, s.atol + s.rtol * size)
        if not np.isfinite(end).all():
            return TrialStep(h, here.q, here.v, np.inf, 0.0, 0.0)
        q, _ = self.chart.at(here.q, end[:n], end[n : 2 * n])
        q, v = self.phase.on_manifold(q, end[n : 2 * n], here.t + h)
        return TrialStep(h, q, v, ratio, float(end[2 * n]), float(end[2 * n + 1]), tuple(stages))

    def rate(self, here: ContactState, stages: list[Stage]) -> Callable[[float, Array], Array]:
        """Return the right-hand side from a state on; what it evaluates is appended to the stages."""

        def rate(t: float, y: Array) -> Array:
            if not np.abs(y[: 2 * self.n]).max(initial=0.0) < FAR:
                return np.full(y.size, np.nan)
            v = y[self.n : 2 * self.n]
            q, x_rate = self.chart.at(here.q, y[: self.n], v)
            found = self.phase.motion(q, v, t)
            total = np.concatenate([x_rate, found.a, [found.power, found.loss]])
            stages.append(Stage(t - here.t, v, found, total))
            return total

        return rate

    def accepted(self, here: ContactState, h: float) -> TrialStep:
        """Return a step that meets the tolerance, and propose the next."""
        fixed = self.settings.step is not None
        for _ in range(TRIALS):
            try:
                shot = self.shot(here, h)
            except (SolvabilityError, ModelError, ShapeError):  # a controller may fail in a part that is never reached
                if h <= SHORTEST:
                    raise
                h *= LEAST
                continue
            if shot.ratio < 1.0 or (fixed and np.isfinite(shot.ratio)):
                best = SAFETY * shot.ratio ** (-1 / 8) if shot.ratio > 0.0 else MOST
                self.h = h * float(np.clip(best, LEAST, MOST))
                return shot
            self.rejected += 1
            h *= max(LEAST, SAFETY * shot.ratio ** (-1 / 8)) if np.isfinite(shot.ratio) else LEAST
        raise SolvabilityError(f"at t = {here.t:.9g} s the step size collapsed to {h:.1e} s")

    def go(self, here: ContactState, shot: TrialStep) -> ContactState:
        """Return the end of a step, with the motion there: on the constraints it must be certain."""
        t = here.t + shot.h
        motion = self.phase.motion(shot.q, shot.v, t)
        if motion.status > Status.LEAST_SQUARES:
            raise SolvabilityError(f"at t = {t:.9g} s accelerations are in doubt: {Status(motion.status).message}")
        return ContactState(t, shot.q, shot.v, motion)


# ----------------------------------------------------------------------------------------------------------------------
# The motion between two events: accelerations with closed contacts by complementarity, and states put back on them.
#
# Symbols: C closed contacts (gap and its rate are zero); of these some slide (|u_T| > 0), the others are at rest, where
# Coulomb's cone decides whether they stick, begin to slide or open; r reactions; a = a0 + B r.


PAINLEVE = (
    "friction makes the contact {name!r} at t = {t:.9g} s {what} (Painleve's paradox): "
    "G_NN - mu G_NT . s = {g:.3g} 1/kg"
)
"""What is said where sliding has no answer, or several."""

NO_FORCES = (
    "at t = {t:.9g} s no forces of the contacts {names} obey the laws of contact (missed by {residual:.1e} of the "
    "data): they contradict each other, or Painleve's paradox, or redundant contacts that slide"
)

SLIPPING_LIMB = (
    "at t = {t:.9g} s the joint forces push the massless limb of contact {name!r} out of its friction cone "
    "(mu = {mu:g}): it would slip, and nothing resists; give the limb mass, or more friction"
)

RANK = 1e-10
"""Rows of a mode are independent where their least singular value is above this, rows scaled to one."""

SLIPS = 1e-7
"""A foot without mass slips where it accelerates by more than this part of all contacts."""


@dataclass(frozen=True, eq=False)
class ModeMotion:
    """Accelerations (nv,), reactions of all contacts (3 k,), multipliers (m,), accelerations of contacts (3 k,).

    `power` is that of the joint forces, `loss` what sliding turns into heat, watts; `status` and `residual` of the
    solve as of a `KKT`, the residual of the contact laws included.
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


class ModeDynamics:
    """Evaluates a mechanism with a set of closed contacts."""

    def __init__(self, geometry: Geometry, chart: Chart, forces: Forces, limbs: Limbs) -> None:
        self.geometry, self.chart, self.forces, self.limbs = geometry, chart, forces, limbs
        self.k, self.n = len(geometry.pairs), geometry.mechanism.nv
        self.mu = np.array([pair.friction for pair in geometry.pairs])
        self.closed = np.zeros(self.k, bool)
        self.sliding = np.zeros(self.k, bool)
        self.direction = np.zeros((self.k, 2))
        self.independent = True
        self.evaluations = 0
        self.measure(Units())

    def measure(self, units: Units) -> None:
        """Measure gaps between shapes by the units of the system, those of joints' limits by radians and metres."""
        self.units = units
        self.levers = np.array([1.0 if pair.ball is None else units.length for pair in self.geometry.pairs])
        self.speeds = self.levers * units.rate
        turns = [np.asarray(KINDS[joint.kind].angular, bool) for joint in self.geometry.mechanism.joints]
        self.turns = np.concatenate(turns) if turns else np.zeros(0, bool)

    def motion(self, q: Array, v: Array, t: float) -> ModeMotion:
        """Return accelerations and forces in the mode: what is closed stays so, whatever sign its force has."""
        return self._held(q, v, t) if self.independent else self.decided(q, v, t)

    def choose(self, q: Array, v: Array, t: float) -> None:
        """Decide, for a new mode, whether the rows that it holds are independent: then its motion is a linear solve."""
        x = self.geometry.state(q, v, t)
        rows = np.vstack([x.A, x.W[self.rows_of(np.flatnonzero(self.closed), x.W)]])
        size = np.abs(rows).max(axis=1, initial=0.0)
        scaled = rows / np.where(size > 0.0, size, 1.0)[:, None]
        self.independent = not rows.size or bool(np.linalg.matrix_rank(scaled, RANK) == rows.shape[0])

    def _held(self, q: Array, v: Array, t: float) -> ModeMotion:
        """Solve [M, -B; rows, 0] with B the forces that come with each row: friction along with normals that slide."""
        self.evaluations += 1
        x = self.geometry.state(q, v, t)
        C, m, n = np.flatnonzero(self.closed), x.A.shape[0], self.n
        R, tau = self.rows_of(C, x.W), self.forces(t, q, v)
        rows = np.vstack([x.A, x.W[R]])
        held = self.limbs.held(x.M, rows)
        s, slides = self._directions(x, v, C), self.sliding[C]
        if slides.any():
            self._refuse_painleve(x, C, slides, s, tau, t)
        columns = np.vstack([x.A, x.W[R]]).T
        for j in np.flatnonzero(slides):
            columns[:, m + j] -= self.mu[C[j]] * x.W[3 * C[j] + 1 : 3 * C[j] + 3].T @ s[j]
        K = np.zeros((n + m + R.size + held.shape[0],) * 2)
        K[:n, :n], K[:n, n : n + m + R.size], K[n : n + m + R.size, :n] = x.M, columns, rows
        K[:n, n + m + R.size :], K[n + m + R.size :, :n] = held.T, held
        right = np.concatenate([tau - x.bias, -x.drift, -x.contact_drift[R], np.zeros(held.shape[0])])
        try:
            found, error = estimated(K, right, n)
        except np.linalg.LinAlgError:
            return self.decided(q, v, t)
        residual = float(np.abs(K @ found - right).max() / (1.0 + np.abs(right).max()))
        if not (residual <= REDUNDANT_RESIDUAL and error <= CERTAIN):
            return self.decided(q, v, t)
        r = np.zeros(3 * self.k)
        r[R] = -found[n + m : n + m + R.size]
        for j in np.flatnonzero(slides):
            r[3 * C[j] + 1 : 3 * C[j] + 3] = -self.mu[C[j]] * r[3 * C[j]] * s[j]
        status = Status.HELD if held.size else Status.UNIQUE
        return self._motion(found[:n], r, found[n : n + m], x, v, tau, status, residual)

    def decided(self, q: Array, v: Array, t: float) -> ModeMotion:
        """Return accelerations and forces by complementarity; `SolvabilityError` where the laws have no answer."""
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
            if slides.any():
                self._refuse_painleve(x, C, slides, s, tau, t)
            answer = complementarity(G, g, self.mu[C], slides, s)
            if not answer.ok:
                names = answer.contradiction([self.geometry.pairs[i].name for i in C])
                raise SolvabilityError(NO_FORCES.format(t=t, names=names, residual=answer.residual))
            r[rows], residual = answer.r, max(residual, answer.residual)
        a = motions[:, 0] + motions[:, 1:] @ r[rows]
        lam = (multipliers[:, 0] + multipliers[:, 1:] @ r[rows])[: x.drift.size]
        status = Status.HELD if inverse.status == Status.UNIQUE and A.shape[0] > x.drift.size else inverse.status
        found = self._motion(a, r, lam, x, v, tau, status, residual)
        self._refuse_slipping_limb(limb, r, found.contact, t)
        return found

    @staticmethod
    def _motion(
        a: Array, r: Array, lam: Array, x: State, v: Array, tau: Array, status: int, residual: float
    ) -> ModeMotion:
        tangential = r.copy()
        tangential[::3] = 0.0
        loss = -float(tangential @ (x.W @ v))
        return ModeMotion(a, r, lam, x.W @ a + x.contact_drift, x, float(tau @ v), loss, int(status), residual)

    def _with_mass(self, x: State, C: Array, force: Array) -> tuple[Array, Array, Array, Array]:
        """Return M, A and forces with massless limbs made definite, and which closed contacts are theirs."""
        if not self.limbs.any:
            return x.M, x.A, force, C[:0]
        rows = self.rows_of(C, x.W)
        limb = C[self.limbs.seen_by(x.M, x.A, x.W[(3 * C[:, None] + np.arange(3)).ravel()])]
        R = self.rows_of(limb, x.W)
        M, rho = stiffened(x.M, x.W[R])
        A = np.vstack([x.A, self.limbs.held(x.M, np.vstack([x.A, x.W[rows]]))])
        return M, A, force - rho * x.W[R].T @ x.contact_drift[R], limb

    def rows_of(self, C: Array, W: Array) -> Array:
        """Return the rows that contacts hold: normals, and tangents of those that stick, as far as they can move."""
        stuck = C[~self.sliding[C] & (self.mu[C] > 0.0)]
        tangents = np.concatenate([3 * stuck + 1, 3 * stuck + 2]).astype(int)
        return np.concatenate([3 * C, tangents[np.abs(W[tangents]).max(axis=1, initial=0.0) > 0.0]]).astype(int)

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

    def _refuse_painleve(self, x: State, C: Array, slides: Array, s: Array, tau: Array, t: float) -> None:
        """Refuse sliding contacts whose friction leaves no force, or several: G_NN - mu G_NT . s <= 0."""
        M, A, force, _ = self._with_mass(x, C, tau - x.bias)
        rows = (3 * C[slides][:, None] + np.arange(3)).ravel()
        held = np.zeros((A.shape[0], 1 + rows.size))
        held[: x.drift.size, 0] = -x.drift
        inverse = Inverse.of(M, A)
        motions, _ = inverse.solve(np.column_stack([force, x.W[rows].T]), held)
        if inverse.status > Status.LEAST_SQUARES:  # who decides the motion says so
            return
        G, g = x.W[rows] @ motions[:, 1:], x.W[rows] @ motions[:, 0] + x.contact_drift[rows]
        for j, (i, along) in enumerate(zip(C[slides], s[slides], strict=True)):
            effective = G[3 * j, 3 * j] - self.mu[i] * float(G[3 * j, 3 * j + 1 : 3 * j + 3] @ along)
            if effective <= 0.0:
                what = "inconsistent: no finite force" if g[3 * j] < 0.0 else "indeterminate: several motions"
                name = self.geometry.pairs[i].name
                raise SolvabilityError(PAINLEVE.format(name=name, t=t, what=what, g=effective))

    def on_manifold(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """Return the state with gaps of closed contacts zero, their normal velocities, and those that stick, zero."""
        try:
            return self._on_manifold(q, v, t)
        except SolvabilityError as refused:
            raise SolvabilityError(f"at t = {t:.9g} s: {refused}") from refused

    def _on_manifold(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
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
            names = [name for name, has in zip(m.names, m.holonomic, strict=True) if has]
            q = self.chart.along(q, self._least(x.M, rows, -phi, (*names, *self._row_names(3 * C))))
        x = self.geometry.state(q, v, t)
        rows = np.vstack([x.A, x.W[self.rows_of(C, x.W)]])
        rate = rows @ v
        if m.names:
            rate[: x.A.shape[0]] = m.constraint_velocity(q, v, t)
        held = self.limbs.held(x.M, rows)
        names = (*m.names, *self._row_names(self.rows_of(C, x.W)), *("massless motion" for _ in held))
        return q, v + self._least(x.M, np.vstack([rows, held]), -np.concatenate([rate, held @ v]), names)

    def _row_names(self, rows: Array) -> list[str]:
        """Return the names of contact rows: contact, and normal or which tangent."""
        return [f"{self.geometry.pairs[j // 3].name} {('normal', 'tangent 1', 'tangent 2')[j % 3]}" for j in rows]

    def _least(self, M: Array, rows: Array, wanted: Array, names: tuple[str, ...] = ()) -> Array:
        """Return dv with rows dv = wanted, least in kinetic energy; redundant rows by least squares."""
        held = self.limbs.held(M, rows)
        rows = np.vstack([rows, held])
        if not rows.shape[0]:
            return np.zeros(M.shape[0])
        wanted = np.concatenate([wanted, np.zeros(held.shape[0])])
        inverse = Inverse.of(M, rows, names)
        motions, _ = inverse.solve(np.zeros((M.shape[0], 1)), wanted[:, None])
        inverse.refuse_uncertain()
        return motions[:, 0]
