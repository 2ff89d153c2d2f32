"""Derivatives of runs with contacts: motions in a mode, and saltation matrices at impacts and changes of mode.

Symbols: x = (q, v), d its variation in tangent coordinates, p parameters; f-, f+ = (v, a) before and after an event;
g guard, the function of the state whose zero the event is; R the jump of the state; W contact rows, u = W v + offsets
their velocities, r reactions (normal, tangents), P impulses, mu, e coefficients of friction and restitution.

    d+ = DR d- + R_p dp + (DR f- - f+) dt,        dt = -(Dg d- + g_p dp) / (Dg f- + g_t)

| event | guard | jump |
|---|---|---|
| impact | gap | M (v+ - v-) + A^T L = W^T P;  u_N+ = -e u_N-;  u_T+ = 0, or P_T = -mu P_N u_T+ / |u_T+| |
| sliding along a line ends or turns | u_T | none |
| sticking ends | static limit less |r_T| | none |
| a contact opens | its force | none; both motions have the same acceleration, so d+ = d- whatever the guard is |

The matrix of d- is the saltation matrix. Motion and jump are differentiated implicitly, as `tree/derivatives/` does it:
the answer is a symbol in the derivative of the residual, and the block matrix of the mode gives its change. Everything
is compared with the samples of the run: accelerations in its modes, velocities after its impacts.

Joints of one freedom turn at one instant in all neighbouring motions: one event. Limbs without mass are those of
`mode_variation.py`; their velocities jump without an impulse where they land or take off, which is refused by name.

No derivative exists where several contacts strike at once, where an event is met without speed (grazing), at the limit
of infinitely many impacts, and where redundant contacts leave open which of them slips; these are refused by name.

Source: Leine & Nijmeijer, "Dynamics and Bifurcations of Non-Smooth Mechanical Systems", Springer 2004, ch. 7; Kong,
Payne, Zhu & Johnson, "Saltation matrices: the essential tool for linearizing hybrid dynamical systems", Proc. IEEE 112
(2024) 585-608.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.friction import Dry
from dalembert.names import lookup
from dalembert.simulate.contact.hybrid import contact_system
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import DERIVED_MODE, NO_JUMP, RANK_OF_MODE, STRICT, TRANSVERSAL
from dalembert.simulate.mode_variation import (
    Line,
    ModeVariation,
    SaltationExpressions,
    dry_coefficient,
    mode_inverse,
    static_limit,
    tangent_rows,
)
from dalembert.simulate.sensitivity import coefficient
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.sensitivity import Variation


# ----------------------------------------------------------------------------------------------------------------------
# Events.


@dataclass(frozen=True, eq=False)
class Jump:
    """What an event does to variations: d+ = state d- + parameters dp, and its time dt = when (d-, dp)."""

    state: Array
    parameters: Array
    when: Array


class ContactVariation:
    """A run with contacts that is differentiated: its modes between events, its events."""

    def __init__(self, asked: Variation, force: Callable[..., Any]) -> None:
        self.asked, self.run, self.force = asked, asked.run, force
        self._refuse_unknown()
        self.expressions = SaltationExpressions.of(asked)
        self._modes: dict[Any, ModeVariation] = {}
        self.n, self.p = asked.mechanism.nv, sum(asked.sizes.values())
        self._terms: Any = None

    def _refuse_unknown(self) -> None:
        run = self.run
        if run.session is None or run.session.settings.method != "hybrid":
            raise UnsupportedError(
                f"the run has contacts and was made by time steps ({run.method}): derivatives go through "
                'located events, those of method="hybrid"'
            )
        zeno = [event for event in run.events if event.old == "impacts" or event.new in ("impacts", "rest")]
        if zeno:
            raise UnsupportedError(
                f"{zeno[0].contact!r} comes to rest at t = {zeno[0].time:.9g} s after infinitely many impacts (Zeno): "
                "no derivative goes through that instant; end the run before it"
            )
        system = contact_system(run.session)
        for i in system.fields:
            raise UnsupportedError(f"contact {system.contacts[i].name!r} is with a heightfield: it has no derivatives")
        for name in self.asked.parameters:
            subject = coefficient(name)
            if subject is not None:
                contacts = {contact.name: contact for contact in system.contacts}
                contact = lookup(subject[1], contacts, "contact")
                if subject[0] == "friction" and type(contact.law) is not Dry:
                    raise UnsupportedError(f"{name!r}: its law {type(contact.law).__name__} has no single coefficient")
                if subject[0] == "friction" and not dry_coefficient(contact.law):
                    raise UnsupportedError(f"{name!r}: it is zero, and has a derivative from one side alone")
                if subject[0] == "restitution" and not contact.gapped:
                    raise ModelError(f"{name!r}: this contact never opens, so that it has no restitution")

    def mode(self, sample: int) -> ModeVariation:
        """Return the motion in the mode of a sample."""
        e = self.expressions
        lam = self.run.multipliers[sample]
        pressed = tuple(float(np.sign(lam[c.row])) if c.row >= 0 else 0.0 for c in e.system.contacts)
        lines = tuple(self._line(sample, i) for i in range(e.system.k))
        key = (*map(int, self.run.modes[sample]), *pressed, lines)
        if key not in self._modes:
            self._modes[key] = ModeVariation.of(e, self.run.modes[sample], pressed, lines)
        return self._modes[key]

    def _axis(self, sample: int, i: int) -> Array | None:
        """Return the unit vector of the only line in its plane along which a contact can move; None for two or none."""
        terms, where = self._at(sample), slice(3 * i + 1, 3 * i + 3)
        moving = np.hstack(_motions(terms["M"], terms["A"]))
        reach = moving @ (moving.T @ terms["W"][where].T)
        mobility = terms["W"][where] @ reach
        sizes, axes = np.linalg.eigh((mobility + mobility.T) / 2.0)
        if not sizes[1] > 0.0 or sizes[0] > RANK_OF_MODE * sizes[1]:
            return None
        axis = axes[:, 1].round(15) + 0.0
        return axis * (1.0 if axis[np.abs(axis).argmax()] > 0.0 else -1.0)

    def _line(self, sample: int, i: int) -> Line | None:
        """Return the direction in which a contact with two tangents slides where that is a line, from its neighbours.

        At the ends of sliding a speed is zero, and has no direction of its own.
        """
        run, contact = self.run, self.expressions.system.contacts[i]
        if run.modes[sample][i] != Mode.SLIP or contact.width != 2:
            return None
        axis = self._axis(sample, i)
        if axis is None:
            return None
        near = [k for k in (sample - 1, sample, sample + 1) if 0 <= k < len(run.t) and run.modes[k][i] == Mode.SLIP]
        speeds = [float(axis @ self._at(k)["u"][3 * i + 1 : 3 * i + 3, 0]) for k in near]
        sign = float(np.sign(max(speeds, key=abs)))
        return (sign * float(axis[0]), sign * float(axis[1])) if sign else None

    def groups(self) -> list[tuple[Array, ModeVariation]]:
        """Return the intervals between samples, those in one mode together; instants of events are left off."""
        run, by_mode = self.run, dict[int, tuple[list[int], ModeVariation]]()
        for k in np.flatnonzero(np.diff(run.t) > 0):
            mode = self.mode(int(k))
            by_mode.setdefault(id(mode), ([], mode))[0].append(int(k))
        return [(np.array(intervals), mode) for intervals, mode in by_mode.values()]

    def motion(self, mode: ModeVariation, bracket: Callable[[Array], Array]) -> Callable[..., Any]:
        """Return (t, q, v) -> q', a, F, B of a batch of states in a mode, as `sensitivity.motion_of`."""
        n, m = self.n, self.asked.mechanism

        def motion(t: Array, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
            tau, by_q, by_v = self.force(t, q, v)
            x, dx = mode.derived(t, q, v, tau)
            a_q, a_v, a_u = (dx[:, :n, i * n : (i + 1) * n] for i in range(3))
            F, B = np.zeros((len(t), 2 * n, 2 * n)), np.zeros((len(t), 2 * n, self.p))
            F[:, :n, :n], F[:, :n, n:] = -bracket(v), np.eye(n)
            F[:, n:, :n] = a_q if by_q is None else a_q + a_u @ by_q
            F[:, n:, n:] = a_v if by_v is None else a_v + a_u @ by_v
            B[:, n:] = dx[:, :n, 3 * n + 1 :]
            return np.asarray(m.rate(q, v)), x[:, :n], F, B

        return motion

    # --- events -------------------------------------------------------------------------------------------------

    @cached_property
    def first(self) -> int:
        """The first sample in the modes that the run starts with: contacts that touch close at the start itself."""
        t, k = self.run.t, 0
        while k + 1 < len(t) and t[k + 1] == t[0] and not self._strikes(k):
            k += 1
        return k

    def _strikes(self, k: int) -> bool:
        """Return whether velocities jump between samples k and k + 1."""
        v = self.run.v
        moved = float(np.abs(v[k + 1] - v[k]).max(initial=0.0))
        return moved > NO_JUMP * max(1.0, float(np.abs(v[k]).max(initial=0.0)))

    def jump(self, k: int) -> Jump:
        """Return what the event between samples k and k + 1, of one time, does to variations."""
        n, p = self.n, self.p
        identity, none = np.eye(2 * n), np.zeros((2 * n, p))
        unmoved = Jump(identity, none, np.full(2 * n + p, np.nan))
        if k < self.first:
            return unmoved  # variations of the start stay in its modes
        if not self._strikes(k):
            self._refuse_turning(k)
        before, after = self._acceleration(k), self._acceleration(k + 1)
        if self._strikes(k):
            self._refuse_limbs(k)
            struck = self._struck(k)
            gap, gap_p = self._gap(k, struck)
            reset, reset_p = self._impact(k, struck)
            DR, R_p = identity.copy(), none.copy()
            DR[n:], R_p[n:] = reset, reset_p
            return self._saltation(k, (before, after), (DR, R_p), gap, gap_p)
        change = float(np.abs(after - before).max(initial=0.0))
        if change <= NO_JUMP * max(1.0, float(np.abs(before).max(initial=0.0))):
            return unmoved  # the guard does not count
        guard, guard_p = self._guard(k)
        return self._saltation(k, (before, after), (identity, none), guard, guard_p)

    def _refuse_turning(self, k: int) -> None:
        """Raise where a contact sticks or slips in a plane: the direction of a speed at zero has no derivative."""
        run = self.run
        for i, contact in enumerate(self.expressions.system.contacts):
            modes = (run.modes[k][i], run.modes[k + 1][i])
            if set(modes) == {Mode.STICK, Mode.SLIP} and self._axis(k, i) is None:
                raise UnsupportedError(
                    f"contact {contact.name!r} sticks or slips in a plane from t = {run.t[k]:.9g} s on: its direction "
                    "of sliding has no derivative at rest"
                )

    def _refuse_limbs(self, k: int) -> None:
        """Raise where velocities of limbs without mass jump: they land and take off without an impulse."""
        e, run = self.expressions, self.run
        limbs = list(e.limbs)
        jumped = [i for i in limbs if abs(run.v[k + 1][i] - run.v[k][i]) > NO_JUMP * max(1.0, np.abs(run.v[k]).max())]
        if jumped:
            names = ", ".join(repr(self.asked.mechanism.coordinates[i]) for i in jumped)
            raise UnsupportedError(
                f"at t = {run.t[k]:.9g} s the velocity of {names} jumps: limbs without mass land or take off there, "
                "and these jumps have no derivatives here; end the run before it, or give the limb mass"
            )

    def _saltation(
        self, k: int, accelerations: tuple[Array, Array], jump: tuple[Array, Array], guard: Array, guard_p: Array
    ) -> Jump:
        """Return the saltation matrix; `guard` is (2 n + 1,): its derivative by the state, and its rate in time."""
        run, n = self.run, self.n
        DR, R_p = jump
        f0, f1 = (np.concatenate([run.v[k + i], accelerations[i]]) for i in range(2))
        Dg, rate = guard[: 2 * n], float(guard[2 * n])
        size = float(np.abs(Dg * np.concatenate([run.v[k], accelerations[0]])).max(initial=0.0))
        if not abs(rate) > TRANSVERSAL * max(size, 1e-300):
            raise UnsupportedError(
                f"the event at t = {run.t[k]:.9g} s is met without speed (grazing): its time has no derivative"
            )
        when = -np.concatenate([Dg, guard_p]) / rate
        kick = DR @ f0 - f1
        return Jump(DR + np.outer(kick, when[: 2 * n]), R_p + np.outer(kick, when[2 * n :]), when)

    def _state(self, k: int) -> tuple[Array, Array, Array, Array]:
        run = self.run
        t, q, v = run.t[k : k + 1], run.q[k : k + 1], run.v[k : k + 1]
        return t, q, v, self.force(t, q, v)[0]

    def _acceleration(self, k: int) -> Array:
        """Return the acceleration in the mode of a sample, which must be the sample's."""
        x = self.mode(k).solved(*self._state(k))[0][0, : self.n]
        recorded = self.run.acceleration[k]
        if not np.abs(x - recorded).max(initial=0.0) <= STRICT * max(1.0, float(np.abs(recorded).max(initial=0.0))):
            raise UnsupportedError(
                f"at t = {self.run.t[k]:.9g} s the modes of the samples do not tell the motion: contacts are "
                "redundant, or change at the same instant"
            )
        return x

    def _at(self, k: int) -> dict[str, Array]:
        """Return terms and their derivatives by tangent q and parameters at a sample."""
        e = self.expressions
        if self._terms is None:
            words, varied = ("M", "A", "W", "u", "gaps", "psi", "limb"), ("u", "gaps", "psi", "limb")
            more = [ca.horzcat(*e.derived(e.terms[name])) for name in varied]
            self._terms = (
                (*words, *(f"d{name}" for name in varied)),
                e.function("terms", [], [*(e.terms[w] for w in words), *more]),
            )
        words, function = self._terms
        value = function(*self._state(k))
        return {name: x[0] for name, x in zip(words, value, strict=True)}

    def _struck(self, k: int) -> int:
        """Return the contact that strikes; none or several are refused."""
        terms, run, contacts = self._at(k), self.run, self.expressions.system.contacts
        approaching = [
            i
            for i, contact in enumerate(contacts)
            if contact.gapped and run.modes[k][i] == Mode.OPEN and abs(terms["gaps"][i, 0]) <= STRICT
            and terms["u"][3 * i, 0] < 0.0
        ]  # fmt: skip
        if len(approaching) != 1:
            names = ", ".join(repr(contacts[i].name) for i in approaching) or "no contact"
            raise UnsupportedError(
                f"at t = {run.t[k]:.9g} s {names} strike{'s' if len(approaching) < 2 else ''} at one instant: "
                "which comes first decides the derivative from either side, so that there is none"
            )
        return approaching[0]

    def _gap(self, k: int, i: int) -> tuple[Array, Array]:
        """Return the derivative of a gap by the state with its rate, and by the parameters."""
        terms, n = self._at(k), self.n
        d = terms["dgaps"][i]
        guard = np.concatenate([d[:n], np.zeros(n), [float(terms["u"][3 * i, 0])]])
        return guard, d[3 * n + 1 :]

    def _impact(self, k: int, struck: int) -> tuple[Array, Array]:
        """Return d v+ by (q, v) and by parameters, the laws of impact differentiated with the active set of the run."""
        e, run, n = self.expressions, self.run, self.n
        contacts, m = e.system.contacts, len(e.mechanism.names)
        terms = self._at(k)
        t, q, v0, _ = self._state(k)
        v1 = run.v[k + 1]
        W, M, A = terms["W"], terms["M"], terms["A"]
        u1 = terms["u"][:, 0] + W @ (v1 - v0[0])
        impulses = self._impulses(k, terms, M @ (v1 - v0[0]), struck, u1)
        largest = np.abs(impulses).max()
        taking = [i for i in range(e.system.k) if np.abs(impulses[3 * i : 3 * i + 3]).max() > STRICT * largest]
        sticking, sliding = [], []
        for i in range(e.system.k):
            where, name = slice(3 * i + 1, 3 * i + 3), contacts[i].name
            if i not in taking:
                if contacts[i].gapped and run.modes[k][i] != Mode.OPEN and u1[3 * i] <= STRICT:
                    self._refuse_edge(k, name)
                continue
            if impulses[3 * i] <= STRICT * largest:
                self._refuse_edge(k, name)
            mu = float(contacts[i].law.static()) if contacts[i].width else 0.0
            if mu == 0.0:
                continue
            push, reach = float(np.linalg.norm(impulses[where])), mu * impulses[3 * i]
            moving = float(np.linalg.norm(u1[where])) > STRICT * max(1.0, float(np.abs(u1).max()))
            if moving == (push < reach * (1.0 - STRICT)):
                self._refuse_edge(k, name)
            (sliding if moving else sticking).append(i)
        key = ("impact", struck, tuple(taking), tuple(sticking), tuple(sliding))
        if key not in self._modes:
            self._modes[key] = self._impact_functions(struck, taking, sticking, sliding)  # type: ignore[assignment]
        residual, matrix, change, rows = self._modes[key]  # type: ignore[misc]
        L = np.linalg.lstsq(A.T, W.T @ impulses - M @ (v1 - v0[0]), rcond=RANK_OF_MODE)[0] if m else np.zeros(0)
        y = np.concatenate([v1, L, impulses[list(rows)]])[None]
        state = (t, q, v0, np.zeros((1, n)))
        missed = np.abs(residual(*state, y)[0]).max()
        size = max(1.0, float(np.abs(M @ v0[0]).max()), float(np.abs(u1).max()))
        if not missed <= STRICT * size:
            raise UnsupportedError(
                f"the impact at t = {run.t[k]:.9g} s is not Newton's with these contacts (missed by {missed:.1e}): "
                "Poisson's law with friction, and impacts one after the other, have no derivatives"
            )
        inverse, free, _ = mode_inverse(matrix(*state, y)[0], n)
        if float(free.max(initial=0.0)) > DERIVED_MODE:
            raise UnsupportedError(f"velocities after the impact at t = {run.t[k]:.9g} s are not unique")
        d = -(inverse @ change(*state, y)[0])[0, :n]
        return d[:, : 2 * n], d[:, 3 * n + 1 :]

    def _refuse_edge(self, k: int, name: str) -> None:
        raise UnsupportedError(
            f"at t = {self.run.t[k]:.9g} s contact {name!r} is between two of its laws (stick or slip, closed or "
            "open): the derivative from either side is another"
        )

    def _impulses(self, k: int, terms: dict[str, Array], change: Array, struck: int, u1: Array) -> Array:
        """Return impulses (3 k,) along the contact rows that change the momentum so; they must be unique.

        Friction of a contact that slides after the impact, with velocity u1, is known from its normal impulse.
        """
        contacts, m = self.expressions.system.contacts, len(terms["A"])
        touching = [
            i for i, c in enumerate(contacts) if c.gapped and (i == struck or self.run.modes[k][i] != Mode.OPEN)
        ]
        forms = np.concatenate([_impulse_forms(contacts[i], i, u1) for i in touching])  # free numbers -> impulses
        forms = forms[(forms @ terms["W"]).any(axis=1)]  # a row across a plane mechanism moves nothing
        H = np.concatenate([terms["A"], forms @ terms["W"]]) / np.sqrt(np.diag(terms["M"]))
        sizes = np.linalg.norm(H, axis=1)
        sizes[sizes == 0.0] = 1.0
        H = H / sizes[:, None]
        _, s, Vt = np.linalg.svd(H.T)
        null = Vt[(s > RANK_OF_MODE * s[:1]).sum() :]
        if np.abs(null[:, m:]).max(initial=0.0) > DERIVED_MODE:
            raise UnsupportedError(
                f"impulses of the contacts at t = {self.run.t[k]:.9g} s are not unique (redundant): which of them "
                "slips is not decided"
            )
        shares = np.linalg.lstsq(H.T, change / np.sqrt(np.diag(terms["M"])), rcond=RANK_OF_MODE)[0] / sizes
        return shares[m:] @ forms

    def _impact_functions(
        self, struck: int, taking: Sequence[int], sticking: Sequence[int], sliding: Sequence[int]
    ) -> tuple[Any, Any, Any, tuple[int, ...]]:
        """Return residual, matrix and derivative of the laws of impact, and the contact rows of the impulses."""
        e, n, m = self.expressions, self.n, len(self.expressions.mechanism.names)
        s, terms, W = e.symbols, e.terms, e.terms["W"]
        rows = tuple(3 * i + j for i in taking for j in range(3 if i in (*sticking, *sliding) else 1))
        after, L, P = ca.SX.sym("after", n), ca.SX.sym("L", m), ca.SX.sym("P", len(rows))
        place = {row: P[k] for k, row in enumerate(rows)}
        moved = after - s["v"]
        u = terms["u"] + W @ moved
        parts = [terms["M"] @ moved + terms["A"].T @ L - W[list(rows), :].T @ P, terms["psi"] + terms["A"] @ moved]
        for i in taking:
            rebound = s["restitution"][i] * terms["u"][3 * i] if i == struck else 0.0
            parts.append(u[3 * i] + rebound)
            tangents = [3 * i + 1, 3 * i + 2]
            if i in sticking:
                parts.append(u[tangents])
            elif i in sliding:
                limit = static_limit(e.system.contacts[i].law, s["friction"][i]) * place[3 * i]
                slip = u[tangents]
                parts.append(ca.vertcat(*(place[t] for t in tangents)) + limit * slip / ca.norm_2(slip))
        y, residual = ca.vertcat(after, L, P), ca.vertcat(*parts)
        functions = [
            e.function(name, [y], [x])
            for name, x in (
                ("residual", residual), ("matrix", ca.jacobian(residual, y)),
                ("change", ca.horzcat(*e.derived(residual))),
            )
        ]  # fmt: skip
        return (*functions, rows)  # type: ignore[return-value]

    def _guard(self, k: int) -> tuple[Array, Array]:
        """Return the guard of a change of mode, (2 n + 1,) and (p,): a velocity at zero, or a force at its limit."""
        run, n, contacts = self.run, self.n, self.expressions.system.contacts
        terms, jumps = self._at(k), list[tuple[Array, Array]]()
        t, q, v, tau = self._state(k)
        mode = self.mode(k)
        for i, contact in enumerate(contacts):
            old, new = run.modes[k][i], run.modes[k + 1][i]
            lines = self._line(k, i), self._line(k + 1, i)
            if (old == new and lines[0] == lines[1]) or Mode.OPEN in (old, new):
                continue
            along = np.array([1.0]) if contact.width == 1 else np.zeros(2) if lines[0] is None else np.array(lines[0])
            where = slice(3 * i + 1, 3 * i + 1 + len(along))
            slid = old in (Mode.SLIP_PLUS, Mode.SLIP_MINUS) or lines[0] is not None
            if slid and abs(along @ terms["u"][where, 0]) <= STRICT:
                row = along @ terms["du"][where]
                by_state, by_p = row[: 2 * n], row[3 * n + 1 :]
                a = mode.solved(t, q, v, tau)[0][0, :n]
                rate = float(by_state[:n] @ v[0] + by_state[n:] @ a + row[3 * n])
                jumps.append((np.concatenate([by_state, [rate]]), by_p))
            elif old == Mode.STICK:
                jumps.append(self._limit_guard(k, i, mode))
        if not jumps or not self._at_once(k, jumps):
            names = ", ".join(repr(c.name) for i, c in enumerate(contacts) if run.modes[k][i] != run.modes[k + 1][i])
            raise UnsupportedError(
                f"at t = {run.t[k]:.9g} s contacts {names or '(none)'} change their modes at one instant: which "
                "comes first decides the derivative, so that there is none"
            )
        return jumps[0]

    def _at_once(self, k: int, guards: Sequence[tuple[Array, Array]]) -> bool:
        """Return whether all guards are met at one instant in neighbouring motions too, as joints of one freedom are.

        Their times have the same derivatives along all variations that the mode before allows; the order is then of
        second order, and there is one jump.
        """
        n, (along, turned, free) = self.n, self._allowed(k)
        variations = np.block([[along, np.zeros((n, n))], [turned, free]])
        times, sizes = [], []
        for guard, guard_p in guards:
            rate = guard[2 * n] if guard[2 * n] else np.inf  # `_saltation` refuses one that is met without speed
            times.append(np.concatenate([guard[: 2 * n] @ variations, guard_p]) / rate)
            sizes.append(np.concatenate([np.abs(guard[: 2 * n]) @ np.abs(variations), np.abs(guard_p)]) / abs(rate))
        apart, largest = np.abs(np.array(times) - times[0]), np.max(sizes, axis=0)
        return bool((apart <= STRICT * largest).all())

    def _limit_guard(self, k: int, i: int, mode: ModeVariation) -> tuple[Array, Array]:
        """Return the derivative of static limit less friction force of a contact that sticks; it slips along a line."""
        e, n, m = self.expressions, self.n, len(self.expressions.mechanism.names)
        contact, (t, q, v, tau) = e.system.contacts[i], self._state(k)
        x, dx = mode.derived(t, q, v, tau)
        _, _, inverse = mode.solved(t, q, v, tau)
        K = mode.matrix(t, q, v, tau)[0]
        axis = np.ones(1) if contact.width == 1 else self._axis(k, i)
        along = np.zeros(K.shape[1])
        first = n + m + mode.rows.index(3 * i + 1)
        along[first : first + contact.width] = axis
        open_part = np.abs(along - along @ inverse[0] @ K[0]).max()
        if open_part > DERIVED_MODE:
            raise UnsupportedError(
                f"the friction force of {contact.name!r} at t = {self.run.t[k]:.9g} s is not unique: when it slips is "
                "not decided"
            )
        sign = float(np.sign(along @ x[0]))
        d = -sign * (along @ dx[0])
        mu = float(contact.law.static())
        if contact.gapped:
            d = d + mu * dx[0, n + m + mode.rows.index(3 * i)]
        elif contact.row >= 0:
            d = d + mu * float(np.sign(x[0, n + contact.row])) * dx[0, n + contact.row]
        name = f"friction:{contact.name}"
        if contact.row >= 0:
            load = float(x[0, n + contact.row])
        else:
            load = float(x[0, n + m + mode.rows.index(3 * i)]) if contact.gapped else float(self._loads(k)[i])
        by_p = d[3 * n + 1 :].copy()
        if name in self.asked.parameters:
            starts = np.cumsum([0, *self.asked.sizes.values()])
            by_p[starts[self.asked.parameters.index(name)]] += abs(load)
        _, by_q, by_v = self.force(t, q, v)
        by_state = d[: 2 * n].copy()
        if by_q is not None:
            by_state[:n] += d[2 * n : 3 * n] @ by_q[0]
            by_state[n:] += d[2 * n : 3 * n] @ by_v[0]
        rate = float(by_state[:n] @ v[0] + by_state[n:] @ x[0, :n] + d[3 * n] + d[2 * n : 3 * n] @ self._force_rate(k))
        return np.concatenate([by_state, [rate]]), by_p

    def _loads(self, k: int) -> Array:
        e = self.expressions
        return e.function("loads", [], [e.terms["load"]])(*self._state(k))[0][0, :, 0]

    def _force_rate(self, k: int) -> Array:
        """Return the rate of joint forces that depend on time by themselves, (n,)."""
        law = self.asked.law
        if law is None or law.kind in ("none", "constant"):
            return np.zeros(self.n)
        t, q, v, _ = self._state(k)
        rate = ca.Function("rate", [law.t, law.q, law.v], [ca.densify(ca.jacobian(law.tau, law.t))])
        return np.array(rate(t[0], q[0], v[0])).ravel()

    # --- the start ----------------------------------------------------------------------------------------------

    def start(self) -> dict[str, Array]:
        """Return variations of the start (2 n, n) by q0 and v0: along constraints and closed contacts."""
        n, terms, modes = self.n, self._at(self.first), self.run.modes[self.first]
        contacts = self.expressions.system.contacts
        along, turned, free = self._allowed(self.first)
        starts = [name for name in self.asked.names if name in ("q0", "v0")]
        slow = [c.name for i, c in enumerate(contacts) if modes[i] not in (Mode.OPEN, Mode.STICK) and c.width]
        speeds = {c.name: np.abs(terms["u"][3 * i + 1 : 3 * i + 3]).max() for i, c in enumerate(contacts)}
        slow = [name for name in slow if speeds[name] <= NO_JUMP]
        if slow and "v0" in starts:
            raise UnsupportedError(
                f"contact {slow[0]!r} slides from rest: it would slide the other way at first if v0 were other; q0 and "
                "parameters have derivatives"
            )
        limbs = list(self.expressions.limbs)
        astray = np.abs(self.run.v[self.first] - terms["limb"][:, 0])[limbs].max(initial=0.0)
        if "q0" in starts and len(limbs) > 1 and astray > NO_JUMP and len(closed := _closed(contacts, modes)):
            raise UnsupportedError(
                f"limbs without mass start in contact {contacts[closed[0]].name!r} with velocities other than "
                "those of their laws: how these turn with q0 has no derivative here; v0 and parameters have"
            )
        columns = {"q0": np.vstack([along, turned]), "v0": np.vstack([np.zeros((n, n)), free])}
        return {name: columns[name] for name in starts}

    def _allowed(self, k: int) -> tuple[Array, Array, Array]:
        """Return d q by q, d v by q and d v by v (n, n) that constraints and contacts in the mode of a sample allow."""
        terms, modes = self._at(k), self.run.modes[k]
        contacts, m, n = self.expressions.system.contacts, self.expressions.mechanism, self.n
        normals = [3 * i for i in _closed(contacts, modes)]
        still = [row for i, c in enumerate(contacts) if modes[i] == Mode.STICK for row in tangent_rows(c, i)]
        holonomic = [i for i, has in enumerate(m.holonomic) if has]
        places = np.concatenate([terms["A"][holonomic], terms["W"][normals]])
        rows = np.concatenate([terms["A"], terms["W"][[*normals, *still]]])
        turning = np.concatenate([terms["dpsi"][:, :n], terms["du"][[*normals, *still], :n]])
        along, _ = _projection(terms["M"], places)
        free, back = _projection(terms["M"], rows)
        turned, (_, massless) = -back @ turning @ along, _motions(terms["M"], rows)
        if massless.size:  # what nothing holds has the velocity of its law
            led = massless @ massless.T
            free, turned = free - led @ free, turned - led @ (turned - terms["dlimb"][:, :n] @ along)
        return along, turned, free


def _closed(contacts: Sequence[Any], modes: Sequence[int]) -> list[int]:
    """Return the contacts with a gap that are closed."""
    return [i for i, contact in enumerate(contacts) if contact.gapped and modes[i] != Mode.OPEN]


def _impulse_forms(contact: Any, i: int, u1: Array) -> Array:
    """Return the impulses (., 3 k) that contact i can have: along each of its rows, or normal with friction of slip."""
    unit = np.eye(len(u1))
    tangents = tangent_rows(contact, i)
    speed = float(np.linalg.norm(u1[tangents]))
    if tangents and speed > STRICT * max(1.0, float(np.abs(u1).max())):
        return (unit[3 * i] - float(contact.law.static()) * (u1[tangents] / speed) @ unit[tangents])[None]
    return unit[[3 * i, *tangents]]


def _projection(M: Array, rows: Array) -> tuple[Array, Array]:
    """Return P and B: P v is nearest to v in kinetic energy with rows P v = 0, and B c the least motion of rate c.

    Of velocities that move no mass, P v has those that are nearest by themselves.
    """
    massive, massless = _motions(M, rows)
    P = massive @ (massive.T @ M)
    P = P + massless @ (massless.T @ (np.eye(len(M)) - P))
    if not len(rows):
        return P, np.zeros((len(M), 0))
    sizes = np.linalg.norm(rows, axis=1)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    back = (np.eye(len(M)) - P) @ np.linalg.pinv(rows / sizes[:, None], rcond=RANK_OF_MODE)
    return P, back / sizes


def _motions(M: Array, rows: Array) -> tuple[Array, Array]:
    """Return bases of the motions that rows allow: orthonormal in the metric of mass, and of those without mass."""
    diagonal = np.diag(M)
    scale = 1.0 / np.sqrt(np.where(diagonal > RANK_OF_MODE * diagonal.max(initial=0.0), diagonal, 1.0))
    scaled = rows * scale
    sizes = np.linalg.norm(scaled, axis=1)
    _, s, Vt = np.linalg.svd(scaled / np.where(sizes > 0.0, sizes, 1.0)[:, None])
    Z = scale[:, None] * Vt[(s > RANK_OF_MODE).sum() :].T
    masses, axes = np.linalg.eigh(Z.T @ M @ Z)
    moved = masses > RANK_OF_MODE
    massless = np.linalg.qr(Z @ axes[:, ~moved])[0]
    return (Z @ axes[:, moved]) / np.sqrt(masses[moved]), massless
