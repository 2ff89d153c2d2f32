"""The contact engine: from event to event through stick, slip, opening and impact, for any system.

The loops are compiled (`mode_loops.py`, `run_loops.py`); here is their memory, the codes they call, and the words for
what has no answer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.integrate import DOP853

from dalembert.errors import ModelError, SolvabilityError
from dalembert.friction.cones.solver import solve_contacts
from dalembert.friction.cones.sweeps import COULOMB
from dalembert.kernel import Kernel
from dalembert.kernel.loops import SIGNATURE, bind
from dalembert.model.joints import KINDS
from dalembert.simulate.contact import mode_loops as mode
from dalembert.simulate.contact import run_loops as loop
from dalembert.simulate.contact.bounds import Chain
from dalembert.simulate.contact.equations import OUTPUTS, ContactSystem, law_function
from dalembert.simulate.contact.impacts import NO_IMPULSES
from dalembert.simulate.contact.laws import CONFLICT, impact_impulses
from dalembert.simulate.contact.mode_loops import ContactMemory
from dalembert.simulate.contact.run_loops import Chains, RunLimits, RunMemory, Table853
from dalembert.simulate.equations.callbacks import called, called_event
from dalembert.simulate.equations.signals import SIGNALS, Tables

Array = np.ndarray

SAMPLES, EVENTS_KEPT = 512, 512
"""Rows of the buffers."""

WORDS = (
    "open", "closed", "stick", "slip", "slip+", "slip-", "impact", "impacts", "rest", "rising", "falling", "",
)  # fmt: skip
"""Words of events, by the numbers of `run_loops`."""

NO_TABLES = Tables(np.zeros((0, 5), np.int64), np.zeros(0), np.zeros(0))

TROUBLES = {
    mode.SINGULAR: "at t = {t:.9g} s the block matrix of the mode is singular: a motion without mass is free",
    mode.DOUBTFUL: "at t = {t:.9g} s accelerations are in doubt: the rows of the mode are nearly dependent",
    mode.NOT_FINITE: "at t = {t:.9g} s the motion is no longer finite",
    mode.NOT_UNIQUE: (
        "at t = {t:.9g} s the reaction that loads the friction of {who!r} is not unique (redundant rows), so its "
        "friction is not either"
    ),
    loop.COLLAPSED: "at t = {t:.9g} s the step size collapsed: the motion has a singularity there",
    loop.ENDLESS: "at t = {t:.9g} s contacts change their modes without end",
    loop.STANDSTILL: "at t = {t:.9g} s contacts change 1000 times without a step",
    loop.PAINLEVE: (
        "friction makes the contact {who!r} at t = {t:.9g} s inconsistent or indeterminate (Painleve's paradox): "
        "G_NN - mu G_NT . s = {detail:.3g} 1/kg"
    ),
    loop.UNCERTAIN_GAP: (
        "at t = {t:.9g} s it is not certain after 2000 looks whether contact {who!r} closes: it moves along the surface "
        'at no distance, and no force closes it; method="moreau" steps over such contacts'
    ),
    loop.PASSAGE: (
        "at t = {t:.9g} s contact {who!r} opens by less than rounding and would go {detail:.2g} m deep: whether it "
        'strikes again cannot be told; method="moreau" steps over such contacts'
    ),
    loop.DETACHED: "at t = {t:.9g} the normal row of {who} would have to pull: the contact opens",
    loop.CHATTERING: "30 changes of mode within 1e-07 of the duration before t = {t:.9g} (Zeno)",
}
"""What is said where a run cannot go on."""

NO_FORCES = (
    "at t = {t:.9g} s no forces of the contacts {names} obey the laws of contact (missed by {residual:.1e} of the "
    "data): they contradict each other, or Painleve's paradox, or redundant contacts that slide"
)


def table853() -> Table853:
    """Return the method of order 8 as the loops read it."""
    method: Any = DOP853
    fifth, third = (np.asarray(x, float) for x in (method.E5, method.E3))
    c = np.asarray(method.C, float)[:12]
    return Table853(
        np.ascontiguousarray(np.asarray(method.A, float)[:12, :12]), np.asarray(method.B, float), c, fifth, third,
        np.ascontiguousarray(method.A_EXTRA, dtype=float), np.asarray(method.C_EXTRA, float),
        np.ascontiguousarray(method.D, dtype=float), np.append(c, 1.0),
    )  # fmt: skip


def chains_of(system: ContactSystem) -> Chains:
    """Return the chains of joints of all balls, for bounds on their motion."""
    k = system.k
    balls: dict[Any, int] = {}
    first, links, lengths, ends = [0], [], [], []
    ball, coordinate, radii = np.full((k, 2), -1, np.int64), np.full(k, -1, np.int64), np.zeros(k)
    bounded, angular = np.zeros(k, bool), np.zeros(system.n, bool)
    for i, one in enumerate(system.contacts):
        if one.pair is None:
            continue
        bounded[i] = True
        if one.pair.ball is None:
            coordinate[i] = one.pair.coordinate[1]
            continue
        for j, each in enumerate((one.pair.ball, one.pair.other)):
            if each is None:
                continue
            if each not in balls:
                balls[each] = len(balls)
                chain = Chain(system.system, each)
                for joint, iq, iv, before, behind in chain.links:
                    turns = np.array(KINDS[joint.kind].angular, dtype=bool)
                    angular[iv] = turns if turns.size else angular[iv]
                    kind = {"helical": 1, "universal": 2}.get(joint.kind, 0)
                    links.append((kind, iq.start, int(np.count_nonzero(~turns)), iv.start, iv.stop - iv.start))
                    lengths.append((before, behind, abs(getattr(joint, "pitch", 0.0) or 0.0)))
                first.append(len(links))
                ends.append(chain.end)
            ball[i, j] = balls[each]
        radii[i] = one.pair.ball.radius + (one.pair.other.radius if one.pair.other is not None else 0.0)
    return Chains(
        np.array(first, np.int64), np.array(links, np.int64).reshape(-1, 5), np.array(lengths, float).reshape(-1, 3),
        np.array(ends, float), angular, ball, coordinate, radii, bounded,
    )  # fmt: skip


class Engine:
    """Memory and codes of one run."""

    def __init__(
        self, system: ContactSystem, limits: RunLimits, q: Array, v: Array, start: float, end: float,
        every: float | None = None, forces: Any = None, chart: Any = None, events: Any = None,
        callables: Sequence[Callable[..., Any]] = (), directions: Sequence[int] = (), terminal: Sequence[int] = (),
        rank: int = -1,
    ) -> None:  # fmt: skip
        self.system, self.limits, self.forces = system, limits, forces
        self.contacts = system.table(rank)
        self.table, self.chains = table853(), chains_of(system)
        self.watched = len(directions)
        self.callables = list(callables)
        self.error: BaseException | None = None
        self.bad: tuple[str, float] = ("", 0.0)
        self.alive: list[Any] = []
        self.tables = NO_TABLES
        self.w = self._memory()
        self.z = self._run_memory(q, v, start, end, every, directions, terminal)
        gapped = np.array([c.gapped for c in system.contacts], bool)
        self.loose = np.flatnonzero(gapped & ~self.chains.bounded).astype(np.int64)
        self._bind_terms()
        self._bind_chart(chart)
        self._bind_forces(forces)
        self._bind_events(events)
        self._bind_laws()
        self._callback(mode.HARD, self._hard)

    # --- memory ---------------------------------------------------------------------------------------------------

    def _memory(self) -> ContactMemory:
        s = self.system
        n, m, k = s.n, len(s.names), s.k
        size, p = n + m + 3 * k, 4 * k
        terms = {name: np.zeros(shape) for name, shape in s.sizes().items()}
        signals = 0 if self.forces is None else self.forces.controller.symbols.numel()
        return ContactMemory(
            calls=np.zeros((mode.HARD + 1, 3), np.int64), environment=np.zeros(2 + signals), base=np.zeros(s.nq),
            x=np.zeros(n), x_rate=np.zeros(n), way=np.zeros(n), q=np.zeros(s.nq), moved=np.zeros(s.nq), v=np.zeros(n),
            time=np.zeros(1), **terms, force=np.zeros(n), event_values=np.zeros(max(self.watched, 1)),
            speeds=np.zeros(k), kinetic=np.zeros(k), static=np.zeros(k), closed=np.zeros(k, bool),
            slides=np.zeros(k, bool), direction=np.tile([1.0, 0.0], (k, 1)), slow=np.zeros(k), sign=np.ones(k),
            kept=np.zeros(m + 3 * k, np.int64), counts=np.zeros(3, np.int64), unit=np.zeros((k, 2)), along=np.zeros(k),
            a=np.zeros(n), lam=np.zeros(m), r=np.zeros(3 * k), contact=np.zeros(3 * k), rates=np.zeros(4),
            K=np.zeros((size, size)), LU=np.zeros((size, size)), pivot=np.zeros(size, np.int64), right=np.zeros(size),
            solution=np.zeros(size), G=np.zeros((p, p)), g=np.zeros(p), first=np.zeros(k + 1, np.int64),
            coefficient=np.zeros(k), kind=np.zeros(k, np.int64), sliding=np.zeros(k, bool), s=np.zeros(p),
            reaction=np.zeros(max(size, p)), owner=np.zeros(p, np.int64), size=np.zeros(3, np.int64),
            missed=np.zeros(1 + k),
        )  # fmt: skip

    def _run_memory(
        self, q: Array, v: Array, start: float, end: float, every: float | None, directions: Sequence[int],
        terminal: Sequence[int],
    ) -> RunMemory:  # fmt: skip
        s = self.system
        n, m, k, e = s.n, len(s.names), s.k, self.watched
        clock, nodes = np.zeros(12), 260
        clock[[loop.T, loop.START, loop.END, loop.STOP]] = start, start, end, end
        clock[loop.EVERY] = every or 0.0
        clock[loop.H] = self.limits.fixed or min(1e-3, (end - start) / 100, self.limits.largest)
        counts = np.zeros(13, np.int64)
        counts[loop.NEXT] = 1
        return RunMemory(
            q=q.copy(), v=v.copy(), K=np.zeros((16, 2 * n + 3)), y=np.zeros(2 * n + 3), end_q=np.zeros(s.nq),
            end_v=np.zeros(n), more=np.zeros(3), F=np.zeros((7, 2 * n)), margins=np.full((13, 3 * k), np.inf),
            stage_v=np.zeros((13, n)), stage_a=np.zeros((13, n)), signs=np.zeros(e),
            direction_of=np.array(directions, float), terminal=np.array(terminal, np.int64),
            zeros=np.zeros(e, np.int64), struck=np.full((k, loop.KNOWN), np.nan), rests=np.full(k, np.inf),
            gain=np.zeros(2), late=np.full(loop.CHATTER, -np.inf), clock=clock, counts=counts,
            bounds=np.array([-np.inf, np.inf]), nodes=np.zeros(nodes), values=np.zeros((nodes, e + k)),
            scale=np.zeros(e + k), kept_q=q.copy(), kept_v=v.copy(), kept_clock=clock.copy(),
            kept_counts=counts.copy(), kept_modes=np.zeros((k, 6)), kept_rows=np.zeros(m + 3 * k + 3, np.int64),
            kept_struck=np.zeros((k, loop.KNOWN + 1)), kept_more=np.zeros(2 + e), t=np.zeros(SAMPLES),
            sq=np.zeros((SAMPLES, s.nq)), sv=np.zeros((SAMPLES, n)), sa=np.zeros((SAMPLES, n)),
            slam=np.zeros((SAMPLES, m)), sr=np.zeros((SAMPLES, 3 * k)), smode=np.zeros((SAMPLES, k), np.int64),
            ssum=np.zeros((SAMPLES, 4)), events=np.zeros((EVENTS_KEPT, 4)),
        )  # fmt: skip

    # --- codes ----------------------------------------------------------------------------------------------------

    def _take(self, row: int, kernel: Any, arrays: dict[str, Array]) -> None:
        self.w.calls[row], kept = bind(kernel, arrays)
        self.alive += [kept, kernel, arrays]

    def _callback(self, row: int, function: Callable[[], None]) -> None:
        """Let a Python function be called; an exception cannot pass through compiled code and is kept."""

        def guarded(table: Any, first: int, stop: int, scratch: Any) -> None:
            try:
                function()
            except BaseException as error:
                self.error = error if self.error is None else self.error
                self.w.environment[mode.FAILED] = 1.0

        callback = SIGNATURE(guarded)
        self.alive.append(callback)
        self.w.calls[row] = ctypes.cast(callback, ctypes.c_void_p).value or 0, 0, 0

    def _bind_terms(self) -> None:
        w, s = self.w, self.system
        if s.kernel is None:
            self._callback(mode.TERMS, self._terms)
            return
        arrays = {"q": w.q, "v": w.v, "t": w.time} | {name: getattr(w, name) for name in OUTPUTS} | s.inputs
        self._take(mode.TERMS, s.kernel, arrays)

    def _terms(self) -> None:
        w, s = self.w, self.system
        assert s.function is not None
        for name, value in s.function(w.q.copy(), w.v.copy(), float(w.time[0])).items():
            getattr(w, name)[...] = value

    def _bind_chart(self, chart: Any) -> None:
        w = self.w
        if chart is not None:
            self._take(mode.CHART, chart._at, {"base": w.base, "x": w.x, "v": w.v, "q": w.q, "x_rate": w.x_rate})
            self._take(mode.ALONG, chart.along_kernel, {"base": w.base, "way": w.way, "q": w.moved})
            return
        import casadi as ca

        n = self.system.n
        base, x, v = ca.SX.sym("base", n), ca.SX.sym("x", n), ca.SX.sym("v", n)
        moved = Kernel(ca.Function("chart", [base, x, v], [base + x, v], ["base", "x", "v"], ["q", "x_rate"]), width=1)
        along = Kernel(ca.Function("along", [base, x], [base + x], ["base", "way"], ["q"]), width=1)
        self._take(mode.CHART, moved, {"base": w.base, "x": w.x, "v": w.v, "q": w.q, "x_rate": w.x_rate})
        self._take(mode.ALONG, along, {"base": w.base, "way": w.way, "q": w.moved})

    def _bind_forces(self, forces: Any) -> None:
        w = self.w
        if forces is None or forces.zero:
            return
        assert SIGNALS == mode.SIGNALS
        self.tables = forces.controller.signals.tables()
        if forces.controller.function is not None:
            self._callback(mode.SIGNALS, self._signals)
        given = {"t": w.environment[:1], "q": w.q, "v": w.v, "signals": w.environment[2:], "tau": w.force}
        self._take(mode.FORCE, forces.kernel, given)

    def _signals(self) -> None:
        w = self.w
        w.environment[2:] = called(self.forces.controller.function, float(w.environment[0]), w.q, w.v)

    def _bind_events(self, function: Any) -> None:
        w = self.w
        if function is not None:
            given = {"q": w.q, "v": w.v, "t": w.environment[:1]}
            names = [function.name_in(i) for i in range(function.n_in())]
            kernel = Kernel(function, width=1)
            self._take(mode.EVENTS, kernel, {**given, kernel.outputs[0].name: w.event_values} | dict.fromkeys([], None))
            del names
        elif self.callables:
            self._callback(mode.EVENTS, self._events)

    def _events(self) -> None:
        w = self.w
        for k, function in enumerate(self.callables):
            w.event_values[k] = called_event(function, k, float(w.environment[0]), w.q, w.v)

    def _bind_laws(self) -> None:
        w = self.w
        if not (self.contacts.law == mode.OTHER).any():
            return
        function = law_function(self.system)
        if function is None:
            self._callback(mode.LAWS, self._laws)
            return
        given = {"speeds": w.speeds, "q": w.q, "v": w.v, "t": w.time, "kinetic": w.kinetic, "static": w.static}
        self._take(mode.LAWS, Kernel(function, width=1), given)

    def _laws(self) -> None:
        w = self.w
        state = (w.q.copy(), w.v.copy(), float(w.time[0]))
        for i in np.flatnonzero(self.contacts.law == mode.OTHER):
            law = self.system.contacts[i].law
            w.kinetic[i], w.static[i] = float(law.kinetic(float(w.speeds[i]), state)), float(law.static(state))

    def _hard(self) -> None:
        """Solve a problem of complementarity that quick sweeps do not: all methods in turn; Poisson's law of impact."""
        w = self.w
        rows, contacts, impulses = (int(x) for x in w.size)
        if impulses and w.missed[0] == 2.0:
            self._poisson(rows, contacts)
            return
        r = w.reaction[:rows].copy()
        r[~np.isfinite(r)] = 0.0
        G, g, mu = w.G[:rows, :rows].copy(), w.g[:rows].copy(), w.coefficient[:contacts].copy()
        first, kind = w.first[: contacts + 1].copy(), w.kind[:contacts].copy()
        residual, _, _ = solve_contacts(
            G, g, first, mu, COULOMB, kind, w.sliding[:contacts].copy(), w.s[:rows].copy(), r, mode.TOLERANCE,
            mode.SWEEPS, mode.NEWTON,
        )  # fmt: skip
        missed = self._missed(G, g, first, mu, kind, w.sliding[:contacts], r)
        w.reaction[:rows] = r
        w.missed[0] = max(float(residual), float(missed.max(initial=0.0)))
        if w.missed[0] > mode.ACCEPTED:
            bad = missed > max(mode.ACCEPTED, CONFLICT * missed.max(initial=0.0))
            owner = w.owner[first[:-1]]
            names = [self.system.contacts[int(o) // 3].name if o >= 0 else self.system.names[-1 - int(o)] for o in owner]
            self.bad = ", ".join(repr(name) for name, one in zip(names, bad, strict=True) if one) or "unknown", float(w.missed[0])

    @staticmethod
    def _missed(G: Array, g: Array, first: Array, mu: Array, kind: Array, sliding: Array, r: Array) -> Array:
        """Return per contact by how much its law is missed, relative to the data: as `moreau_loops.missed_laws`."""
        u = G @ r + g
        scale = max(1e-9, float(np.abs(g).max(initial=0.0)))
        missed = np.zeros(len(mu))
        for i in range(len(mu)):
            a, b = int(first[i]), int(first[i + 1])
            rho = np.diagonal(G)[a:b]
            normal = kind[i] != 2
            if normal and kind[i] == 0:
                missed[i] = abs(min(u[a], rho[0] * r[a])) if rho[0] > 0.0 else max(-u[a], 0.0)
            elif normal:
                missed[i] = abs(u[a])
            if (np.abs(rho * r[a:b]) > 1e6 * scale).any():
                missed[i] = max(missed[i], scale)
            t = slice(a + 1 if normal else a, b)
            size = float(np.diagonal(G)[t].max(initial=0.0))
            if not sliding[i] and size > 0.0 and t.stop > t.start:
                y, limit = r[t] - u[t] / size, mu[i] * (max(r[a], 0.0) if kind[i] == 0 else abs(r[a]) if normal else 1.0)
                length = float(np.linalg.norm(y))
                y = y * min(1.0, limit / length) if length > 0.0 else y
                missed[i] = max(missed[i], size * float(np.linalg.norm(r[t] - y)))
        return missed / scale

    def _poisson(self, rows: int, contacts: int) -> None:
        w, c = self.w, self.contacts
        owner = w.owner[:rows]
        if (owner < 0).any():
            raise ModelError('law="poisson" knows no friction of constraint rows in the same impact')
        index = [int(owner[int(w.first[i])]) // 3 for i in range(contacts)]
        place = {int(o): a for a, o in enumerate(owner)}
        full = [3 * i + j for i in index for j in range(3)]
        G = np.array([[w.G[place[a], place[b]] if a in place and b in place else 0.0 for b in full] for a in full])
        u = np.array([w.u[a] for a in full])
        e = np.where(w.missed[1:][index] > 0.0, 0.0, c.restitution[index])
        law = ["poisson" if c.poisson[i] else "newton" for i in index]
        answer = impact_impulses(G, u, np.asarray(c.numbers[index, 0]), e, law)
        for a, o in enumerate(full):
            if o in place:
                w.reaction[place[o]] = answer.r[a]
        w.missed[0] = answer.residual
        if not answer.ok:
            names = [self.system.contacts[i].name for i in index]
            self.bad = answer.contradiction(names), answer.residual

    # --- running --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Find the first modes; contacts that touch collide."""
        self._refuse(loop.start(self.contacts, self.w, self.z, self.tables, self.limits, self.watched))

    def advance(self, stop: float, most: int) -> int:
        """Go on to `stop`, or for some steps; return why it came back."""
        self.z.clock[loop.STOP] = stop
        why, code = loop.advance(
            self.contacts, self.w, self.z, self.tables, self.table, self.limits, self.chains, self.watched, self.loose,
            most,
        )  # fmt: skip
        if why == loop.FAILURE:
            self._refuse(code)
        return int(why)

    def _refuse(self, code: int) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            self.w.environment[mode.FAILED] = 0.0
            raise error
        if code == mode.SOUND:
            return
        t, i = float(self.z.clock[loop.FAILED_AT]), int(self.z.counts[loop.WHO])
        who = self.system.contacts[i].name if i < self.system.k else ""
        if code in (mode.NO_FORCES, mode.NO_IMPULSES):
            words = NO_FORCES if code == mode.NO_FORCES else NO_IMPULSES
            raise SolvabilityError(words.format(t=t, names=self.bad[0], residual=self.bad[1]))
        said = TROUBLES[code].format(t=t, who=who, detail=float(self.z.clock[loop.DETAIL]))
        refused = SolvabilityError(said)
        refused.code = code  # type: ignore[attr-defined]
        raise refused

    def samples(self) -> dict[str, Array]:
        """Return the complete samples, and drop them."""
        z, count = self.z, int(self.z.counts[loop.COMPLETE])
        block = {
            "t": z.t[:count].copy(), "q": z.sq[:count].copy(), "v": z.sv[:count].copy(),
            "acceleration": z.sa[:count].copy(), "multipliers": z.slam[:count].copy(), "work": z.ssum[:count, 0].copy(),
            "step": z.ssum[:count, 3].copy(), "heat": z.ssum[:count, 1].copy(),
            "friction_work": z.ssum[:count, 2].copy(), "contact_forces": z.sr[:count].copy(),
            "modes": z.smode[:count].copy(),
        }  # fmt: skip
        z.counts[[loop.SAMPLES, loop.COMPLETE]] = 0
        return block

    def events(self) -> list[tuple[float, int, str, str]]:
        """Return the complete events, and drop them: time, number, words before and after."""
        z, count = self.z, int(self.z.counts[loop.COMPLETE_EVENTS])
        found = [(float(t), int(i), WORDS[int(old)], WORDS[int(new)]) for t, i, old, new in z.events[:count]]
        z.counts[[loop.EVENT_COUNT, loop.COMPLETE_EVENTS]] = 0
        return found

    @property
    def checkpoint(self) -> dict[str, Array]:
        """What the run needs to go on exactly as if it had not stopped."""
        z = self.z
        names = ("q", "v", "clock", "counts", "modes", "rows", "struck", "more")
        found = {name: getattr(z, f"kept_{name}").copy() for name in names}
        found["zeros"], found["late"] = z.zeros.copy(), z.late.copy()
        return found

    def restore(self, kept: dict[str, Array]) -> None:
        """Go back to a checkpoint."""
        w, z = self.w, self.z
        stop = float(z.clock[loop.STOP])
        z.q[:], z.v[:], z.clock[:], z.counts[:] = kept["q"], kept["v"], kept["clock"], kept["counts"].astype(np.int64)
        z.clock[loop.STOP] = stop
        z.counts[[loop.SAMPLES, loop.EVENT_COUNT, loop.COMPLETE, loop.COMPLETE_EVENTS]] = 0
        w.closed[:], w.slides[:] = kept["modes"][:, 0] != 0.0, kept["modes"][:, 1] != 0.0
        w.direction[:], w.slow[:], w.sign[:] = kept["modes"][:, 2:4], kept["modes"][:, 4], kept["modes"][:, 5]
        rows = kept["rows"].astype(np.int64)
        w.kept[:], w.counts[:] = rows[: w.kept.size], rows[w.kept.size :]
        z.struck[:], z.rests[:] = kept["struck"][:, : loop.KNOWN], kept["struck"][:, loop.KNOWN]
        z.gain[:], z.signs[:] = kept["more"][:2], kept["more"][2:]
        z.zeros[:], z.late[:] = kept["zeros"].astype(np.int64), kept["late"]
