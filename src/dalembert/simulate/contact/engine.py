"""The contact engine: from event to event through stick, slip, opening and impact, for any system.

The loops are compiled (`run_loops.py` is the outermost); here is their memory, the codes they call, and the words for
what has no answer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.errors import DalembertError, ModelError, SolvabilityError
from dalembert.friction.cones.solver import solve_contacts
from dalembert.friction.cones.sweeps import COULOMB
from dalembert.friction.limits import AIM
from dalembert.kernel import Kernel
from dalembert.kernel.loops import SIGNATURE, bind
from dalembert.kernel.views import Unit, table_of
from dalembert.model.joints import KINDS
from dalembert.simulate.contact import engine_memory as memory
from dalembert.simulate.contact import run_loops as loop
from dalembert.simulate.contact.bearing_loads import BearingLaw, BearingLoads
from dalembert.simulate.contact.complementarity import NO_IMPULSES, impact_impulses
from dalembert.simulate.contact.contact_system import (
    OUTPUTS,
    ContactSystem,
    law_function,
)
from dalembert.simulate.contact.engine_memory import EngineArrays
from dalembert.simulate.contact.field_loops import fields_unit
from dalembert.simulate.contact.friction_loops import OTHER
from dalembert.simulate.contact.geometry import Chain, Units
from dalembert.simulate.contact.mode_loops import motion_unit
from dalembert.simulate.contact.projection_loops import project_unit
from dalembert.simulate.contact.step_loops import shot_unit
from dalembert.simulate.contact.transition_loops import transition_unit
from dalembert.simulate.equations.callbacks import called, called_event
from dalembert.simulate.equations.signals import SIGNALS, Tables
from dalembert.simulate.events.record import CERTIFICATE
from dalembert.simulate.limits import (
    ACCEPTED,
    CHATTER,
    CHATTER_TIME,
    CONE_NEWTON,
    CONE_SWEEPS,
    CONFLICT,
    FIRST_STEP,
    NO_VELOCITY,
    UNEXPLAINED_IMPULSE,
)
from dalembert.simulate.runge_kutta import method_of
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.ranks import GenericRank

SAMPLES, EVENTS_KEPT, NODES = 512, 512, 260
"""Rows of the buffers: samples, events, nodes of one step."""

WORDS = (
    "open", "closed", "stick", "slip", "slip+", "slip-", "impact", "impacts", "rest", "rising", "falling", "",
)  # fmt: skip
"""Words of events, by the numbers of `memory`."""

NO_TABLES = Tables(np.zeros((0, 5), np.int64), np.zeros(0), np.zeros(0))

TROUBLES = {
    memory.SINGULAR: "at t = {t:.9g} s the block matrix of the mode is singular: a motion without mass is free",
    memory.DOUBTFUL: "at t = {t:.9g} s accelerations are in doubt: the rows of the mode are nearly dependent",
    memory.NOT_FINITE: "at t = {t:.9g} s the motion is no longer finite",
    memory.NOT_UNIQUE: (
        "at t = {t:.9g} s the reaction that loads the friction of {who!r} is not unique (redundant rows), so its "
        "friction is not either"
    ),
    memory.COLLAPSED: "at t = {t:.9g} s the step size collapsed: the motion has a singularity there",
    memory.ENDLESS: "at t = {t:.9g} s contacts change their modes without end",
    memory.STANDSTILL: "at t = {t:.9g} s contacts change 1000 times without a step",
    memory.CONTRADICTORY: (
        "at t = {t:.9g} s redundant constraint rows have no common solution: accelerations miss those that were left "
        "out by {residual:.1e} of the data"
    ),
    memory.PAINLEVE: (
        "friction makes the contact {foot!r} at t = {t:.9g} s {what} (Painleve's paradox): "
        "G_NN - mu G_NT . s = {number:.3g} 1/kg"
    ),
    memory.SLIPPING_LIMB: (
        "at t = {t:.9g} s the joint forces push the massless limb of contact {foot!r} out of its friction cone "
        "(mu = {number:g}): it would slip, and nothing resists; give the limb mass, or more friction"
    ),
    memory.CLINGING: (
        "at t = {t:.9g} s the joint forces pull the massless limb of contact {foot!r} off the ground with {number:.3g} "
        "N while its body comes down: held, it would go through the ground; let it push, or give it mass"
    ),
    memory.UNCERTAIN_GAP: (
        "at t = {t:.9g} s it is not certain after 2000 looks whether contact {who!r} closes: it moves along the "
        'surface at no distance, and no force closes it; method="moreau" steps over such contacts'
    ),
    memory.PASSAGE: (
        "at t = {t:.9g} s contact {who!r} opens by less than rounding and would go {detail:.2g} m deep: whether it "
        'strikes again cannot be told; method="moreau" steps over such contacts'
    ),
    memory.ROLLING: (
        'at t = {t:.9g} s the sphere of contact {who!r} comes to an edge of its heightfield: method="hybrid" follows '
        'points over edges, and spheres where slopes do not change; method="moreau" takes all'
    ),
    memory.DETACHED: "at t = {t:.9g} the normal row of {who} would have to pull: the contact opens",
    memory.CHATTERING: (
        f"{CHATTER} changes of mode within {CHATTER_TIME:g} of the duration before t = {{t:.9g}} (Zeno)"
    ),
}
"""What is said where a run cannot go on."""

NO_FORCES = (
    "at t = {t:.9g} s no forces of the contacts {names} obey the laws of contact (missed by {residual:.1e} of the "
    "data): they contradict each other, or Painleve's paradox, or redundant contacts that slide"
)


def chains_of(system: ContactSystem) -> dict[str, Array]:
    """Return the chains of joints of all balls, for bounds on their motion."""
    k = system.k
    balls: dict[Any, int] = {}
    first, links, lengths, ends = [0], [], [], []
    ball, coordinate, radii = np.full((k, 2), -1, np.int64), np.full(k, -1, np.int64), np.zeros(k)
    bounded, angular = np.zeros(k, bool), np.zeros(system.n, bool)
    for i, contact in enumerate(system.contacts):
        if contact.pair is None:
            continue
        bounded[i] = True
        if contact.pair.ball is None:
            coordinate[i] = contact.pair.coordinate[1]
            continue
        for j, sphere in enumerate((contact.pair.ball, contact.pair.other)):
            if sphere is None:
                continue
            if sphere not in balls:
                balls[sphere] = len(balls)
                chain = Chain(system.system, sphere)
                for joint, iq, iv, before, behind in chain.links:
                    turns = np.array(KINDS[joint.kind].angular, dtype=bool)
                    angular[iv] = turns if turns.size else angular[iv]
                    kind = {"helical": 1, "universal": 2}.get(joint.kind, 0)
                    links.append((kind, iq.start, int(np.count_nonzero(~turns)), iv.start, iv.stop - iv.start))
                    lengths.append((before, behind, abs(getattr(joint, "pitch", 0.0) or 0.0)))
                first.append(len(links))
                ends.append(chain.end)
            ball[i, j] = balls[sphere]
        radii[i] = contact.pair.ball.radius + (contact.pair.other.radius if contact.pair.other is not None else 0.0)
    return {
        "chain_first": np.array(first, np.int64), "chain_links": np.array(links, np.int64).reshape(-1, 5),
        "chain_lengths": np.array(lengths, float).reshape(-1, 3), "chain_end": np.array(ends, float),
        "angular": angular, "pair_ball": ball, "pair_coordinate": coordinate, "pair_radii": radii,
        "pair_bounded": bounded, "levers": np.ones(k),
    }  # fmt: skip


class EngineSettings(NamedTuple):
    """What a run must keep to; the order is that of the places in `limits`."""

    rtol: float = 1e-8
    atol: float = 1e-10
    fixed: float = 0.0  # a fixed step, 0: adaptive
    largest: float = np.inf
    event_tolerance: float = 1e-13
    sequential: bool = False  # impacts one after the other
    time_scale: float = 1e-6  # time in which forces may have turned, at the onset of slip in a plane
    sized: bool = True  # errors of coordinates relative to their size
    gain: float = np.inf  # part of the energy of motion that an impact may add
    inside: int = 0  # samples inside of every step
    stepper: str = "dop853"  # one of `runge_kutta.METHODS`


@cache
def address_of(unit: Unit) -> int:
    """Return where the code of a unit lies."""
    return unit.address


@cache
def vector_chart(n: int) -> tuple[Kernel, Kernel]:
    """Return the chart of configurations that are vectors, q = base + x with x' = v, and a step along it."""
    import casadi as ca

    base, x, v = ca.SX.sym("base", n), ca.SX.sym("x", n), ca.SX.sym("v", n)
    moved = ca.Function("chart", [base, x, v], [base + x, v], ["base", "x", "v"], ["q", "x_rate"])
    along = ca.Function("along", [base, x], [base + x], ["base", "way"], ["q"])
    return Kernel(moved, width=1), Kernel(along, width=1)


class NoAnswerError(SolvabilityError):
    """A run cannot go on: `code` is one of `memory.py`."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Arrays:
    """All arrays of a run by name, as attributes."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.__dict__.update(arrays)


class ContactEngine:
    """Memory and codes of one run."""

    def __init__(
        self, system: ContactSystem, settings: EngineSettings, q: Array, v: Array, start: float, end: float,
        every: float | None = None, forces: Any = None, chart: Any = None, events: Any = None,
        callables: Sequence[Callable[..., Any]] = (), directions: Sequence[float] = (), terminal: Sequence[int] = (),
        rank: GenericRank | None = None, limbs: bool = False, event_names: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.system, self.settings, self.forces, self.limbs = system, settings, forces, limbs
        self.event_names = list(event_names)
        self.places = system.places
        self.watched, self.callables = len(directions), list(callables)
        bearing = any(isinstance(contact.law, BearingLaw) for contact in system.contacts)
        self.bearings = BearingLoads(system.system, system.contacts, q, v, start) if bearing else None
        self.error: BaseException | None = None
        self.bad: tuple[str, float] = ("", 0.0)
        self.alive: list[Any] = []
        method = method_of(settings.stepper)
        tables = NO_TABLES if forces is None or forces.zero else forces.controller.signals.tables()
        arrays = self._contact_arrays() | self._run_arrays(q, v, start, end, every) | system.table(rank)
        arrays |= method.arrays | chains_of(system) | system.field_arrays()
        arrays |= {"table_layout": np.array(tables.layout, np.int64).reshape(-1, 5)}
        arrays |= {
            "table_breaks": np.array(tables.breaks, float),
            "table_coefficients": np.array(tables.coefficients, float),
        }
        numbers = [*settings[:-1], method.order, method.apart, method.between, method.implicit, *Units()]
        arrays |= {"limits": np.array([float(x) for x in numbers]), "direction_of": np.array(directions, float)}
        arrays |= {"terminal": np.array(terminal, np.int64)}
        arrays["loose"] = np.flatnonzero(arrays["gapped"] & ~arrays["pair_bounded"]).astype(np.int64)
        self.at: Any = Arrays(arrays)
        self.table = table_of(arrays, EngineArrays._fields)
        self._bind_terms()
        self._bind_chart(chart)
        self._bind_forces(forces)
        self._bind_events(events)
        self._bind_laws()
        self._callback(memory.HARD, self._hard)
        units = {
            memory.MOTION: motion_unit, memory.PROJECT: project_unit, memory.SHOT: shot_unit,
            memory.TRANSITION: transition_unit,
        }  # fmt: skip
        self._run = SIGNATURE(address_of(loop.command_unit))
        for row, unit in units.items():
            self.at.calls[row] = address_of(unit), self.table.__array_interface__["data"][0], 0

    def measure(self, units: Units) -> None:
        """Measure gaps, speeds and forces of contacts by the units of the system; ones before."""
        self.at.limits[[memory.LENGTH_UNIT, memory.RATE_UNIT, memory.FORCE_UNIT]] = units
        self.at.levers[self.at.pair_ball[:, 0] >= 0] = units.length

    # --- memory ---------------------------------------------------------------------------------------------------

    def _contact_arrays(self) -> dict[str, Array]:
        """Return the memory of modes and motions."""
        s = self.system
        n, m, k = s.n, len(s.names), s.k
        held = n if self.limbs else 0
        size, p = n + m + 3 * k + held, 4 * k
        signals = 0 if self.forces is None else self.forces.controller.symbols.numel()
        zeros = {
            "environment": 2 + signals, "arguments": 4, "chart_base": s.nq, "chart_x": n, "x_rate": n, "way": n,
            "moved": s.nq,
            "q": s.nq, "v": n, "time": 1, "force": n, "event_values": max(self.watched, 1), "law_speeds": k,
            "law_kinetic": k, "law_static": k, "slow": k, "sliding_speed": k, "acceleration": n, "lam": m,
            "reactions": 3 * k, "contact_rate": 3 * k, "powers": 4, "right": size, "solution": size, "cone_g": p,
            "cone_mu": k, "cone_s": p, "cone_r": max(size, p), "missed": 1 + k, "matrix_K": (size, size),
            "factors": (size, size), "cone_G": (p, p), "sliding_unit": (k, 2), "held_rows": (n, n), "trouble": 3,
            "limb": n, "limb_rate": n,
            "impulses": 3 * k, "row_impulses": m, "impact": len(CERTIFICATE),
        }  # fmt: skip
        whole = {
            "calls": (memory.BALLS + 1, 3), "kept": m + 3 * k + held, "mode_counts": 4, "pivot": size,
            "cone_first": k + 1, "cone_kind": k, "cone_row": p, "cone_size": 3,
        }  # fmt: skip
        arrays = {name: np.zeros(shape) for name, shape in (*zeros.items(), *s.sizes().items())}
        arrays |= {name: np.zeros(shape, np.int64) for name, shape in whole.items()}
        arrays |= {name: np.zeros(k, bool) for name in ("closed", "slides", "cone_sliding", "massless")}
        arrays |= {"limbs": np.array([int(self.limbs)], np.int64)}
        return arrays | {"direction": np.tile([1.0, 0.0], (k, 1)), "sign": np.ones(k)}

    def _run_arrays(self, q: Array, v: Array, start: float, end: float, every: float | None) -> dict[str, Array]:
        """Return the memory of steps, events and samples."""
        s = self.system
        n, m, k, e = s.n, len(s.names), s.k, self.watched
        clock, tally = np.zeros(13), np.zeros(13, np.int64)
        clock[[memory.T, memory.START, memory.END, memory.STOP]] = start, start, end, end
        clock[memory.EVERY] = every or 0.0
        clock[memory.H] = self.settings.fixed or min(FIRST_STEP, (end - start) / 100, self.settings.largest)
        tally[memory.NEXT] = 1
        zeros = {
            "stages": (16, 2 * n + 3), "stage_y": 2 * n + 3, "stage_v": (13, n), "stage_a": (13, n), "q1": s.nq,
            "v1": n, "sums": 3, "polynomial": (7, 2 * n), "nodes": NODES, "node_values": (NODES, e + k),
            "node_scale": e + k, "signs": e, "gain": 2, "kept_modes": (k, 6), "kept_struck": (k, memory.KNOWN + 1),
            "letting": (k, 3), "kept_more": 2 + e, "sample_t": SAMPLES, "sample_q": (SAMPLES, s.nq),
            "sample_v": (SAMPLES, n),
            "sample_a": (SAMPLES, n), "sample_lam": (SAMPLES, m), "sample_r": (SAMPLES, 3 * k),
            "sample_u": (SAMPLES, 3 * k), "sample_sums": (SAMPLES, 4), "sample_verdict": (SAMPLES, 2),
            "sample_impulse": (SAMPLES, 3 * k), "sample_impact": (SAMPLES, len(CERTIFICATE)),
            "events": (EVENTS_KEPT, 4),
        }  # fmt: skip
        arrays = {name: np.zeros(shape) for name, shape in zeros.items()}
        arrays |= {"zeros": np.zeros(e, np.int64), "kept_rows": np.zeros(m + 3 * k + n * self.limbs + 4, np.int64)}
        arrays |= {"sample_mode": np.zeros((SAMPLES, k), np.int64), "bounds": np.array([-np.inf, np.inf])}
        arrays |= {"struck": np.full((k, memory.KNOWN), np.nan), "rests": np.full(k, np.inf)}
        arrays |= {"late": np.full(CHATTER, -np.inf), "stage_margins": np.full((13, 3 * k), np.inf)}
        arrays |= {"clock": clock, "kept_clock": clock.copy(), "tally": tally, "kept_counts": tally.copy()}
        return arrays | {"q0": q.copy(), "v0": v.copy(), "kept_q": q.copy(), "kept_v": v.copy()}

    # --- codes ----------------------------------------------------------------------------------------------------

    def _take(self, row: int, kernel: Any, arrays: dict[str, Array]) -> None:
        self.at.calls[row], memory_of_call = bind(kernel, arrays)
        self.alive += [memory_of_call, kernel, arrays]

    def _callback(self, row: int, function: Callable[[], None]) -> None:
        """Let a Python function be called; an exception cannot pass through compiled code and is kept."""

        def guarded(table: Any, first: int, stop: int, scratch: Any) -> None:
            try:
                function()
            except BaseException as error:
                # the last one is next to where the run ends; an interrupt stays
                if self.error is None or isinstance(self.error, Exception):
                    self.error = error
                self.at.environment[memory.FAILED] = 1.0

        callback = SIGNATURE(guarded)
        self.alive.append(callback)
        self.at.calls[row] = ctypes.cast(callback, ctypes.c_void_p).value or 0, 0, 0

    def _bind_terms(self) -> None:
        w, s = self.at, self.system
        if s.kernel is None:
            self._callback(memory.TERMS, self._terms)
            return
        arrays = {"q": w.q, "v": w.v, "t": w.time} | self._outputs() | s.inputs
        if not s.fields:
            self._take(memory.TERMS, s.kernel, arrays)
            return
        self._take(memory.BALLS, s.kernel, arrays)
        self.at.calls[memory.TERMS] = address_of(fields_unit), self.table.__array_interface__["data"][0], 0

    def _terms(self) -> None:
        w, s = self.at, self.system
        assert s.function is not None
        t = float(w.time[0])
        try:
            terms = s.function(w.q.copy(), w.v.copy(), t)
        except DalembertError:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise ModelError(f"a function of the system failed at t = {t:.9g} s: {message}") from error
        outputs = self._outputs()
        for name, value in terms.items():
            outputs[name][...] = value

    def _outputs(self) -> dict[str, Array]:
        """Return the memory of terms by the names of `OUTPUTS`."""
        w = self.at
        arrays = (
            w.M, w.bias, w.A, w.drift, w.phi, w.psi, w.gaps, w.W, w.velocity, w.shift, w.load, w.axes, w.applied,
            w.balls, w.limb, w.limb_rate,
        )  # fmt: skip
        return dict(zip(OUTPUTS, arrays, strict=True))

    def _bind_chart(self, chart: Any) -> None:
        w = self.at
        if chart is not None:
            self._take(
                memory.CHART, chart._at, {"base": w.chart_base, "x": w.chart_x, "v": w.v, "q": w.q, "x_rate": w.x_rate}
            )
            self._take(memory.ALONG, chart.along_kernel, {"base": w.chart_base, "way": w.way, "q": w.moved})
            return
        moved, along = vector_chart(self.system.n)
        self._take(memory.CHART, moved, {"base": w.chart_base, "x": w.chart_x, "v": w.v, "q": w.q, "x_rate": w.x_rate})
        self._take(memory.ALONG, along, {"base": w.chart_base, "way": w.way, "q": w.moved})

    def _bind_forces(self, forces: Any) -> None:
        w = self.at
        if forces is None or forces.zero:
            return
        assert SIGNALS == memory.SIGNALS
        if forces.controller.function is not None:
            self._callback(memory.SIGNALS, self._signals)
        arrays = {"t": w.environment[:1], "q": w.q, "v": w.v, "signals": w.environment[2:], "tau": w.force}
        self._take(memory.FORCE, forces.kernel, arrays)

    def _signals(self) -> None:
        w = self.at
        w.environment[2:] = called(self.forces.controller.function, float(w.environment[0]), w.q, w.v)

    def _bind_events(self, function: Any) -> None:
        w = self.at
        if function is not None:
            kernel = Kernel(function, width=1)
            arrays = {"q": w.q, "v": w.v, "t": w.environment[:1], kernel.outputs[0].name: w.event_values}
            self._take(memory.EVENTS, kernel, arrays)
        elif self.callables:
            self._callback(memory.EVENTS, self._events)

    def _events(self) -> None:
        w = self.at
        for k, function in enumerate(self.callables):
            name = self.event_names[k]
            w.event_values[k] = called_event(function, k, float(w.environment[0]), w.q, w.v, name)

    def _bind_laws(self) -> None:
        w = self.at
        if not (self.at.law == OTHER).any():
            return
        function = law_function(self.system)
        if function is None:
            self._callback(memory.LAWS, self._laws)
            return
        arrays = {
            "speeds": w.law_speeds,
            "q": w.q,
            "v": w.v,
            "t": w.time,
            "kinetic": w.law_kinetic,
            "static": w.law_static,
        }
        self._take(memory.LAWS, Kernel(function, width=1), arrays)

    def _laws(self) -> None:
        w = self.at
        if self.bearings is not None:
            w.law_kinetic[self.bearings.places], w.law_static[self.bearings.places] = self.bearings.limits(w)
        state = (w.q.copy(), w.v.copy(), float(w.time[0]))
        for i in np.flatnonzero(self.at.law == OTHER):
            law = self.system.contacts[i].law
            if isinstance(law, BearingLaw):
                continue
            w.law_kinetic[i], w.law_static[i] = (
                float(law.kinetic(float(w.law_speeds[i]), state)),
                float(law.static(state)),
            )

    def _hard(self) -> None:
        """Solve a problem of complementarity that quick sweeps do not: all methods in turn; Poisson's law of impact."""
        w = self.at
        rows, contacts, impulses = (int(x) for x in w.cone_size)
        if impulses and w.missed[0] == 2.0:
            self._poisson(rows, contacts)
            return
        r = w.cone_r[:rows].copy()
        r[~np.isfinite(r)] = 0.0
        G, g, mu = w.cone_G[:rows, :rows].copy(), w.cone_g[:rows].copy(), w.cone_mu[:contacts].copy()
        first, kind = w.cone_first[: contacts + 1].copy(), w.cone_kind[:contacts].copy()
        residual, _, _ = solve_contacts(
            G, g, first, mu, COULOMB, kind, w.cone_sliding[:contacts].copy(), w.cone_s[:rows].copy(), r, AIM,
            CONE_SWEEPS, CONE_NEWTON,
        )  # fmt: skip
        missed = self._missed(G, g, first, mu, kind, w.cone_sliding[:contacts], r)
        w.cone_r[:rows] = r
        w.missed[0] = max(float(residual), float(missed.max(initial=0.0)))
        if w.missed[0] > ACCEPTED:
            bad = missed > max(ACCEPTED, CONFLICT * missed.max(initial=0.0))
            owner = w.cone_row[first[:-1]]
            names = [
                self.system.contacts[int(o) // 3].name if o >= 0 else self.system.names[-1 - int(o)] for o in owner
            ]
            self.bad = (
                ", ".join(repr(name) for name, takes_part in zip(names, bad, strict=True) if takes_part) or "unknown",
                float(w.missed[0]),
            )

    @staticmethod
    def _missed(G: Array, g: Array, first: Array, mu: Array, kind: Array, sliding: Array, r: Array) -> Array:
        """Return per contact by how much its law is missed, relative to the data: as `impulse_loops.missed_laws`."""
        u = G @ r + g
        scale = max(NO_VELOCITY, float(np.abs(g).max(initial=0.0)))
        missed = np.zeros(len(mu))
        for i in range(len(mu)):
            a, b = int(first[i]), int(first[i + 1])
            rho = np.diagonal(G)[a:b]
            normal = kind[i] != 2
            if normal and kind[i] == 0:
                missed[i] = abs(min(u[a], rho[0] * r[a])) if rho[0] > 0.0 else max(-u[a], 0.0)
            elif normal:
                missed[i] = abs(u[a])
            if (np.abs(rho * r[a:b]) > UNEXPLAINED_IMPULSE * scale).any():
                missed[i] = max(missed[i], scale)
            t = slice(a + 1 if normal else a, b)
            size = float(np.diagonal(G)[t].max(initial=0.0))
            if not sliding[i] and size > 0.0 and t.stop > t.start:
                y, limit = (
                    r[t] - u[t] / size,
                    mu[i] * (max(r[a], 0.0) if kind[i] == 0 else abs(r[a]) if normal else 1.0),
                )
                length = float(np.linalg.norm(y))
                y = y * min(1.0, limit / length) if length > 0.0 else y
                missed[i] = max(missed[i], size * float(np.linalg.norm(r[t] - y)))
        return missed / scale

    def _poisson(self, rows: int, contacts: int) -> None:
        w = c = self.at
        owner = w.cone_row[:rows]
        if (owner < 0).any():
            raise ModelError('impact="poisson" knows no friction of constraint rows in the same impact')
        index = [int(owner[int(w.cone_first[i])]) // 3 for i in range(contacts)]
        place = {int(o): a for a, o in enumerate(owner)}
        full = [3 * i + j for i in index for j in range(3)]
        G = np.array([[w.cone_G[place[a], place[b]] if a in place and b in place else 0.0 for b in full] for a in full])
        u = np.array([w.velocity[a] for a in full])
        e = np.where(w.missed[1:][index] > 0.0, 0.0, c.restitution[index])
        law = ["poisson" if c.poisson[i] else "newton" for i in index]
        answer = impact_impulses(G, u, np.array(w.cone_mu[:contacts]), e, law)
        for a, o in enumerate(full):
            if o in place:
                w.cone_r[place[o]] = answer.r[a]
        w.missed[0] = answer.residual
        if not answer.ok:
            names = [self.system.contacts[i].name for i in index]
            self.bad = answer.contradiction(names), answer.residual

    # --- running --------------------------------------------------------------------------------------------------

    def _ask(self, which: int, number: int = 0) -> int:
        """Run the compiled loop; return how its last solve ended."""
        arguments = self.at.arguments
        arguments[memory.FIRST], arguments[memory.SECOND] = which, number
        self._run(self.table.__array_interface__["data"][0], 0, 1, 0)
        return int(arguments[memory.CODE])

    def begin(self) -> None:
        """Find the first modes; contacts that touch collide."""
        self._refuse(self._ask(loop.BEGIN))

    def advance(self, stop: float, most: int) -> int:
        """Go on to `stop`, or for some steps; return why it came back."""
        self.at.clock[memory.STOP] = stop
        self._ask(loop.GO_ON, most)
        why = int(self.at.arguments[memory.RESULT])
        if why == memory.FAILURE:
            self._refuse(int(self.at.arguments[memory.CODE]))
        return int(why)

    def settle(self) -> None:
        """Decide the modes anew at the state of the run: forces have changed."""
        self._refuse(self._ask(loop.DECIDE))

    def gaps(self) -> Array:
        """Return the gaps at the state of the run; of contacts without one infinite."""
        self._ask(loop.EVALUATE)
        return np.where(self.at.gapped, self.at.gaps, np.inf)

    def _refuse(self, code: int) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            self.at.environment[memory.FAILED] = 0.0
            raise error
        if code == memory.SOUND:
            return
        t, i = float(self.at.clock[memory.FAILED_AT]), int(self.at.tally[memory.WHO])
        if code in (memory.NOT_DISSIPATIVE, memory.NO_LOAD):
            raise ModelError(self._bad_law(code))
        who = self.system.contacts[i].name if i < self.system.k else ""
        if code in (memory.NO_FORCES, memory.NO_IMPULSES):
            words = NO_FORCES if code == memory.NO_FORCES else NO_IMPULSES
            raise SolvabilityError(words.format(t=t, names=self.bad[0], residual=self.bad[1]))
        foot, number, approach = self.at.trouble
        message = TROUBLES[code].format(
            t=t, who=who, detail=float(self.at.clock[memory.DETAIL]), number=number,
            residual=float(self.at.powers[memory.RESIDUAL]),
            foot=self.system.contacts[int(foot)].name if self.system.k else "",
            what="inconsistent: no finite force" if approach < 0.0 else "indeterminate: several motions",
        )  # fmt: skip
        raise NoAnswerError(message, code)

    def _bad_law(self, code: int) -> str:
        """Return which law or load is none at the state that was looked at last, in words."""
        w, t = self.at, float(self.at.time[0])
        if code == memory.NO_LOAD:
            limited = ~w.gapped & (w.load_row < 0)
            i = int(np.flatnonzero(limited & ~((w.load >= 0.0) & (w.load < np.inf)))[0])
            name = self.system.contacts[i].name
            return f"contact {name!r}: its load is {w.load[i]} at t = {t:.9g} s; a load must be finite and not negative"
        state = w.q.copy(), w.v.copy(), t
        for i in np.flatnonzero(w.closed & w.slides).tolist():
            contact, speed = self.system.contacts[i], max(float(w.sliding_speed[i]), 0.0)
            force = float(np.asarray(contact.law.kinetic(speed, state)))
            if force < 0.0:
                return (
                    f"contact {contact.name!r}: the friction law is not dissipative: force {-force:.6g} along a "
                    f"relative velocity of size {speed:.6g} at t = {t:.9g} s"
                )
        return f"a friction law is not dissipative at t = {t:.9g} s"

    def samples(self) -> dict[str, Array]:
        """Return the complete samples, and drop them."""
        z, count = self.at, int(self.at.tally[memory.COMPLETE])
        names = [name for name in EngineArrays._fields if name.startswith("sample_")]
        block = self.named({name: getattr(z, name)[:count].copy() for name in names})
        z.tally[[memory.SAMPLES, memory.COMPLETE]] = 0
        return block

    def named(self, rows: dict[str, Array]) -> dict[str, Array]:
        """Return samples by the names that trajectories have for them."""
        sums, verdict = rows["sample_sums"], rows["sample_verdict"]
        block = {
            "t": rows["sample_t"], "q": rows["sample_q"], "v": rows["sample_v"], "acceleration": rows["sample_a"],
            "multipliers": rows["sample_lam"], "work": sums[:, 0].copy(), "step": sums[:, 3].copy(),
            "heat": sums[:, 1].copy(), "friction_work": sums[:, 2].copy(), "modes": rows["sample_mode"],
            "contact_status": verdict[:, 0].astype(np.int64), "contact_residual": verdict[:, 1].copy(),
            "contact_forces": rows["sample_r"][:, self.places].copy(),
            "relative_velocity": rows["sample_u"][:, self.places].copy(),
        }  # fmt: skip
        if self.at.gapped.any():
            block |= {"impulses": rows["sample_impulse"], "impact": rows["sample_impact"]}
        return block

    def events(self) -> list[tuple[float, int, str, str]]:
        """Return the complete events, and drop them: time, number, words before and after."""
        z, count = self.at, int(self.at.tally[memory.COMPLETE_EVENTS])
        changes = [(float(t), int(i), WORDS[int(old)], WORDS[int(new)]) for t, i, old, new in z.events[:count]]
        z.tally[[memory.EVENT_COUNT, memory.COMPLETE_EVENTS]] = 0
        return changes

    @property
    def checkpoint(self) -> dict[str, Array]:
        """What the run needs to go on exactly as if it had not stopped."""
        z = self.at
        state = {
            "q": z.kept_q, "v": z.kept_v, "clock": z.kept_clock, "counts": z.kept_counts, "modes": z.kept_modes,
            "rows": z.kept_rows, "struck": z.kept_struck, "more": z.kept_more, "zeros": z.zeros, "late": z.late,
        }  # fmt: skip
        return {name: array.copy() for name, array in state.items()}

    def restore(self, kept: dict[str, Array]) -> None:
        """Go back to a checkpoint."""
        w = z = self.at
        stop = float(z.clock[memory.STOP])
        z.q0[:], z.v0[:], z.tally[:] = kept["q"], kept["v"], kept["counts"].astype(np.int64)
        z.clock[:] = 0.0
        z.clock[: kept["clock"].size] = kept["clock"][: z.clock.size]  # files of earlier versions have fewer places
        z.clock[memory.STOP] = stop
        z.tally[[memory.SAMPLES, memory.EVENT_COUNT, memory.COMPLETE, memory.COMPLETE_EVENTS]] = 0
        w.closed[:], w.slides[:] = kept["modes"][:, 0] != 0.0, kept["modes"][:, 1] != 0.0
        w.direction[:], w.slow[:], w.sign[:] = kept["modes"][:, 2:4], kept["modes"][:, 4], kept["modes"][:, 5]
        rows = kept["rows"].astype(np.int64)
        w.kept[:], w.mode_counts[:] = rows[: w.kept.size], rows[w.kept.size :]
        z.struck[:], z.rests[:] = kept["struck"][:, : memory.KNOWN], kept["struck"][:, memory.KNOWN]
        z.gain[:], z.signs[:] = kept["more"][:2], kept["more"][2:]
        z.zeros[:], z.late[:] = kept["zeros"].astype(np.int64), kept["late"]
