"""One explicit step of many runs as functions of one run each, compiled for batches: the step control, too.

| function | of every run, in one launch |
|---|---|
| `first` | the first step |
| `propose` | the next step, where it ends |
| `stage`, `stage closed` | y' at a stage, off the manifold or from the nearest state on it |
| `judge` | end of the step in the chart, error over tolerance |
| `close`, `admit` | one step of Newton's method onto the constraints, the admissible velocity |
| `control` | accepted or rejected, the next step, the state that it starts from |
| `begin` | y' at the start of a step, certified, and the sample that is written there |
| `watch` | the energy balance of the run so far (`witness.py`), and whether it is kept |
| `start`, `end` of combinations | sums of stages, number by number, whatever the system |

Symbols: y = (x, v, W) and K its rates as in `steppers/explicit_loops.py`, whose rules and constants these are
(`advance_loops.py` has those of the step control). No function mixes runs, and each has one order of operations: what
becomes of a run does not depend on the others, on their number or on their order, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.memory import Memory
from dalembert.simulate.batch.lane_rows import HUGE, LaneRows, maximum
from dalembert.simulate.equations.codes import forces_at, trace_along, trace_move
from dalembert.simulate.equations.controller import Controller
from dalembert.simulate.equations.drives import drive_power, driven, worth_expressions
from dalembert.simulate.limits import (
    ALMOST_ALL,
    CLOSED,
    COLLAPSE,
    ENERGY_ROUNDING,
    FIRST_STEP,
    FLAT_START,
    FLAT_STEP,
    GROW,
    HELPS,
    LEAST_FIRST_STEP,
    SAFETY,
    SHRINK,
)
from dalembert.simulate.session import Session
from dalembert.simulate.steppers.advance_loops import (
    LARGEST_NOISE,
    MOST_REJECTIONS,
    NOISY,
    REACH,
    TROUBLE,
    VERY_SHORT,
)
from dalembert.simulate.steppers.explicit_loops import LAST_SOLVED, RungeKuttaPair, StepLimits
from dalembert.simulate.witness import BALANCED, JUMP, ONE_STEP, SAFE, _damped, _has_balance
from dalembert.types import Array

RUNNING, ENDED, LEFT = range(3)
"""States of a run: under way, at its end, left to `da.simulate`."""

CLOCK = (
    "t", "h", "begin", "stop", "inside", "origin", "allowed", "noise", "least", "last", "usual", "in_a_row",
    "after_rejection", "steps", "fixed", "asked", "samples", "closing", "taken",
)  # fmt: skip
"""Numbers of a run on its way; `explicit_loops` says what they are. `inside`: the last time before the end, `samples`:
written so far, `taken`: the step that led to `t`."""

WATCH = (
    "start", "signed", "worst", "kinetic", "potential", "kinetic_now", "worth", "worth_now", "change", "broken",
    "moving",
)  # fmt: skip
"""Numbers of the energy balance: h at the start, what is off now, the most so far; largest energies, energy now; what a
step's tolerance is worth; the largest change in a step, whether one was too large, whether rows move by themselves."""

TRIAL = ("h", "end", "last", "t", "inside", "closing")
"""Numbers of a step that is tried."""

OPEN = ("open", "least", "going", "finite")
"""Numbers of Newton's method onto the constraints: residual over its size, the least before, whether it goes on."""

LIMITS = ("rtol", "atol", "largest", "fixed", "turn", "last_sample")
"""Numbers that all runs share."""

CODES_OF_LANES: Memory[tuple[str, ...], Kernel] = Memory("codes of lanes", 512)


def symbols(prefix: str, names: tuple[str, ...]) -> tuple[ca.SX, dict[str, ca.SX]]:
    """Return a row of named numbers, and the numbers by name."""
    row = ca.SX.sym(prefix, len(names))
    return row, {name: row[k] for k, name in enumerate(names)}


def finite(*several: ca.SX) -> ca.SX:
    """Return whether all numbers are finite."""
    return ca.fabs(sum((each[k] for each in several for k in range(each.numel())), ca.SX(0))) < HUGE


@dataclass
class LaneFunctions:
    """The functions of a system, a controller and a pair.

    Attributes
    ----------
    form, controller
        The system in expressions (`equations/codes.py`), and its applied forces.
    pair, limits
        Of the explicit stepper.
    sizes, open
        What residuals are measured against, and by what part of it constraints may stay open.
    carried
        Rows under the rank of the system, or None where kernels solve them.
    balance
        How the energy balance is asked for (`balance_of`); "" where there is none.
    """

    form: Any
    controller: Controller
    pair: RungeKuttaPair
    limits: StepLimits
    sizes: Array
    open: float
    carried: LaneRows | None
    balance: str

    def __post_init__(self) -> None:
        self.n, self.nq, self.rows = self.form.nv, self.form.nq, len(self.form.names)
        self.holonomic = int(sum(self.form.holonomic))
        self.fixed, self.driven = self.limits.fixed > 0.0, driven(self.form)
        self.given = self.controller.symbols.numel() + self.form.parameters.numel()
        self.chosen = 0 if self.carried is None else self.carried.numbers

    def makers(self) -> dict[str, Callable[[], ca.Function]]:
        """Return what traces each function, by name."""
        made: dict[str, Callable[[], ca.Function]] = {
            "propose": self.propose, "stage": self.stage, "judge": self.judge, "control": self.control,
            "begin": self.begin,
        }  # fmt: skip
        if self.balance:
            made["watch"] = self.watch
        if not self.fixed:
            made |= {"first": self.first, "errors": self.errors}
        if self.holonomic:
            made["close"] = self.close
            made["move"] = self.move
        if self.rows:
            made["admit"] = self.admit
        for i in range(1, self.pair.b.size):
            made[f"start {i}"] = lambda i=i: self.combination(self.pair.a[i, :i])
        made["end"] = lambda: self.combination(self.pair.b)
        return made

    def key(self) -> tuple[str, ...]:
        """Return texts that determine the functions."""
        numbers = [self.sizes, np.array([self.open, self.fixed]), *self.pair[:5], self.limits.scale_place]
        numbers += [self.limits.rotations, *(() if self.carried is None else self.carried.content)]
        told = ";".join(np.asarray(x, float).tobytes().hex() for x in numbers)
        return ("lanes", self.form.content(), self.controller.content, told, str(self.pair.order), self.balance)

    def compiled(self, backend: str, cached: bool) -> dict[str, Kernel]:
        """Return the functions compiled for batches."""
        key, found = (*self.key(), backend), {}
        for name, maker in self.makers().items():
            if cached:
                found[name] = CODES_OF_LANES.get(
                    (*key, name), lambda name=name, maker=maker: Kernel.cached((*key, name), maker, backend=backend)
                )
            else:
                found[name] = Kernel(maker(), backend=backend)
        return found

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _state(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """Return symbols of q, y, what is given (signals, parameters), and the rows chosen."""
        n, nq = self.n, self.nq
        return (
            ca.SX.sym("q", nq), ca.SX.sym("y", 2 * n + 1), ca.SX.sym("given", self.given),
            ca.SX.sym("chosen", self.chosen),
        )  # fmt: skip

    def _limits(self) -> tuple[ca.SX, dict[str, ca.SX]]:
        return symbols("limits", LIMITS)

    def _function(self, name: str, inputs: Mapping[str, ca.SX], outputs: Mapping[str, ca.SX]) -> ca.Function:
        """Return a function with ports by name, outputs as `to_...`; those without numbers are left out."""
        there = {x: e for x, e in inputs.items() if e.numel()}
        made = {f"to_{x}": ca.densify(e) for x, e in outputs.items() if e.numel()}
        return ca.Function(name, list(there.values()), list(made.values()), list(there), list(made))

    def _parameters(self, given: ca.SX) -> ca.SX:
        return given[self.controller.symbols.numel() :]

    def _rates(
        self, base: ca.SX, x: ca.SX, v: ca.SX, t: ca.SX, given: ca.SX, chosen: ca.SX, strict: bool
    ) -> dict[str, ca.SX]:
        """Return K, multipliers, the rows chosen, and whether the answer counts; `strict`: at states on the manifold.

        Stages are off the manifold, where the status says little: they are sound where they are finite.
        """
        form = self.form
        environment = ca.vertcat(t, 0, given)
        q, rate = form.chart(base, x, v)
        tau, p = forces_at(self.controller, t, q, v, environment)
        if self.carried is None:
            a, multipliers, status = form.accelerations(q, v, tau, t, p)
            drives = drive_power(form, q, v, t, p, multipliers)
        else:
            terms = {name: form.at(name, q, v, t, p) for name in ("mass", "bias", "jacobian", "drift")}
            a, multipliers, status, chosen = self.carried.accelerated(terms, tau, v, chosen, strict)
            # stages have no multipliers (`explicit_loops.power_of_rows`)
            M = ca.reshape(ca.densify(terms["mass"]), self.n, self.n)
            drives = ca.dot(M @ a + terms["bias"] - tau, v) if self.driven else ca.SX(0)
        power = form.power(q, v, tau, t, p) + drives
        K = ca.vertcat(rate, a, power)
        sound = finite(K)
        if strict or self.fixed:
            sound = ca.logic_and(sound, status <= LAST_SOLVED)
        return {"K": K, "multipliers": multipliers, "chosen": chosen, "sound": sound}

    # --- functions ------------------------------------------------------------------------------------------------

    def combination(self, weights: Array) -> ca.Function:
        """Return start, h, stages -> start + h (sum of weighted stages), for one number."""
        start, h = ca.SX.sym("start"), ca.SX.sym("h")
        K = {int(i): ca.SX.sym(f"k{i}") for i in np.flatnonzero(weights)}
        total = sum((float(weights[i]) * k for i, k in K.items()), ca.SX(0))
        inputs = {"start": start, "h": h} | {f"k{i}": k for i, k in K.items()}
        return self._function("combination", inputs, {"y": start + h * total})

    def errors(self) -> ca.Function:
        """Return stages -> the errors of the pair's estimates, for one number."""
        weights = {"first": self.pair.error, "second": self.pair.third}
        used = sorted({int(i) for each in weights.values() for i in np.flatnonzero(each)})
        K = {i: ca.SX.sym(f"k{i}") for i in used}
        sums = {
            name: sum((float(each[i]) * K[i] for i in used if each[i]), ca.SX(0))
            for name, each in weights.items() if each.size
        }  # fmt: skip
        return self._function("errors", {f"k{i}": k for i, k in K.items()}, sums)

    def first(self) -> ca.Function:
        """Return y, K, clock -> clock with a first step (`advance_loops.first_step`)."""
        _, y, _, _ = self._state()
        K, (clock, now), (limits, to) = ca.SX.sym("K", 2 * self.n + 1), symbols("clock", CLOCK), self._limits()
        n, v, span = self.n, y[self.n : 2 * self.n], now["stop"] - now["t"]
        d0 = d1 = ca.SX(0)
        for j in range(2 * n):
            scale = to["atol"] + to["rtol"] * (1.0 if j < n else ca.fabs(v[j - n]))
            size = 1.0 if j < n else ca.fabs(v[j - n])
            d0 += (size / scale) ** 2
            d1 += (K[j] / scale) ** 2
        d0, d1 = ca.sqrt(d0 / (2 * n)), ca.sqrt(d1 / (2 * n))
        h = ca.if_else(d1 > FLAT_START, 0.01 * d0 / d1, FLAT_STEP)
        h = ca.fmax(ca.fmin(ca.fmin(h, to["largest"]), FIRST_STEP * span), LEAST_FIRST_STEP * span)
        return self._function("first", {"y": y, "K": K, "clock": clock, "limits": limits},
                              {"clock": ca.vertcat(*({**now, "h": h}[name] for name in CLOCK))})  # fmt: skip

    def propose(self) -> ca.Function:
        """Return y, clock -> the step that is tried (`advance_loops.next_step`)."""
        _, y, _, _ = self._state()
        (clock, now), (limits, to) = symbols("clock", CLOCK), self._limits()
        v, fastest = y[self.n : 2 * self.n], ca.SX(0)
        for i in self.limits.rotations:
            fastest = ca.fmax(fastest, sum(v[int(i) + k] ** 2 for k in range(3)))
        turning = fastest > 0.0
        reach = ca.if_else(turning, REACH * to["turn"] / ca.sqrt(ca.if_else(turning, fastest, 1.0)), HUGE)
        h = to["fixed"] if self.fixed else ca.fmin(ca.fmin(now["h"], to["largest"]), reach)
        left = now["stop"] - now["t"]
        last = h * (1.0 + ALMOST_ALL) >= left
        next_end = now["origin"] + (now["fixed"] + 1) * to["fixed"] if self.fixed else now["t"] + h
        found = {
            "h": ca.if_else(last, left, h), "end": ca.if_else(last, now["stop"], next_end), "last": last,
            "t": now["t"], "inside": now["inside"], "closing": now["closing"],
        }  # fmt: skip
        return self._function("propose", {"y": y, "clock": clock, "limits": limits},
                              {"trial": ca.vertcat(*(found[name] for name in TRIAL))})  # fmt: skip

    def stage(self) -> ca.Function:
        """Return q (the base), y, trial, c -> K at the time t + c h."""
        q, y, given, chosen = self._state()
        (trial, step), c, sound = symbols("trial", TRIAL), ca.SX.sym("c"), ca.SX.sym("sound")
        t, n = ca.fmin(step["t"] + c * step["h"], step["inside"]), self.n
        found = self._rates(q, y[:n], y[n : 2 * n], t, given, chosen, self.fixed)
        return self._function(
            "stage", {"q": q, "y": y, "trial": trial, "c": c, "given": given, "chosen": chosen, "sound": sound},
            {"K": found["K"], "sound": ca.logic_and(sound, found["sound"])},
        )  # fmt: skip

    def judge(self) -> ca.Function:
        """Return q, y, end (in the chart), errors, trial -> q at the end; error over tolerance, whether a body turned.

        For 8(5,3) the combination of Hairer's dop853, as `explicit_loops.error_ratio`.
        """
        q, y, given, _ = self._state()
        end, first, second = (ca.SX.sym(x, 2 * self.n + 1) for x in ("end", "first", "second"))
        (trial, step), sound, (limits, to) = symbols("trial", TRIAL), ca.SX.sym("sound"), self._limits()
        n, five, three = self.n, ca.SX(0), ca.SX(0)
        two = self.pair.third.size > 0
        for j in range(0 if self.fixed else 2 * n):
            place = int(self.limits.scale_place[j]) if j < n else -1
            if j < n:
                size = 1.0 if place < 0 else ca.fmax(ca.fabs(q[place]), ca.fabs(q[place] + end[j]))
            else:
                size = ca.fmax(ca.fabs(y[j]), ca.fabs(end[j]))
            scale = to["atol"] + to["rtol"] * size
            five += (first[j] / scale) ** 2
            three += (second[j] / scale) ** 2 if two else 0.0
        if two:
            below = ca.sqrt((five + 0.01 * three) * 2 * n)
            ratio = ca.if_else(below > 0.0, ca.fabs(step["h"]) * five / ca.if_else(below > 0.0, below, 1.0), 0.0)
        else:
            ratio = ca.fabs(step["h"]) * ca.sqrt(five / (2 * n))
        moved = trace_move(self.form)(q, end[:n])
        used = {}
        if self.driven and not self.fixed:
            used, p, v = {"given": given}, self._parameters(given), slice(n, 2 * n)
            worth = self._worth(q, y[v], step["t"], p, to), self._worth(moved, end[v], step["end"], p, to)
            found = _work_ratio(first[2 * n], second[2 * n], step["h"], ca.fmax(*worth), two)
            ratio = ca.fmax(ratio, found)
        size = finite(five, three, end)
        ratio = ca.if_else(ca.logic_and(ca.logic_and(sound, size), ratio < HUGE), ratio, HUGE)
        turned = ca.SX(0)
        for i in self.limits.rotations:
            turned = ca.logic_or(turned, sum(end[int(i) + k] ** 2 for k in range(3)) > to["turn"] ** 2)
        errors = {} if self.fixed else {"first": first} | ({"second": second} if two else {})
        return self._function(
            "judge", {"q": q, "y": y, "end": end, **errors, "trial": trial, "sound": sound, "limits": limits} | used,
            {"q": moved, "judged": ca.vertcat(ratio, turned)},
        )  # fmt: skip

    def move(self) -> ca.Function:
        """Return q (the base), end -> q there."""
        q, end = ca.SX.sym("q", self.nq), ca.SX.sym("end", 2 * self.n + 1)
        return self._function("move", {"q": q, "end": end}, {"q": trace_move(self.form)(q, end[: self.n])})

    def close(self) -> ca.Function:
        """Return q, trial, state of Newton's method -> q after a step of it (`explicit_loops.close`)."""
        q, _, given, chosen = self._state()
        (trial, step), (state, at) = symbols("trial", TRIAL), symbols("open", OPEN)
        q_next, found = self._newton_step(q, step["end"], given, chosen, at)
        return self._function(
            "close", {"q": q, "trial": trial, "given": given, "chosen": chosen, "open": state},
            {"q": q_next, "open": ca.vertcat(*(found[name] for name in OPEN))},
        )  # fmt: skip

    def _newton_step(self, q: ca.SX, t: ca.SX, given: ca.SX, chosen: ca.SX, at: Mapping[str, ca.SX]) -> Any:
        form, p = self.form, self._parameters(given)
        if self.carried is None:
            way, residual, _ = form.traced("project_step")(q, t, *((p,) if p.numel() else ()))
            open_now = maximum(ca.fabs(residual[i]) / float(self.sizes[i]) for i in range(self.holonomic))
            worst = open_now
        else:
            v = ca.SX.zeros(self.n)
            terms = {name: form.at(name, q, v, t, p) for name in ("mass", "jacobian")}
            residual = form.at("constraint", q, v, t, p)
            way, taken = self.carried.onto(terms, residual, chosen)
            open_now = maximum(ca.fabs(residual[i]) / float(self.sizes[i]) for i in range(self.holonomic))
            worst = maximum(ca.fabs(x) / float(self.sizes[i]) for i, x in taken.items())
        is_finite = finite(worst, way)
        goes = ca.logic_and(ca.logic_and(at["going"], is_finite), ca.logic_and(worst > CLOSED, worst < HUGE))
        goes = ca.logic_and(goes, worst < HELPS * at["least"])
        moved = trace_along(form)(q, way)
        found = {
            "open": ca.if_else(at["going"], ca.if_else(open_now < HUGE, open_now, HUGE), at["open"]),
            "least": ca.if_else(goes, worst, at["least"]), "going": goes,
            "finite": ca.if_else(at["going"], is_finite, at["finite"]),
        }  # fmt: skip
        return ca.if_else(goes, moved, q), found

    def admit(self) -> ca.Function:
        """Return q, end (its velocities), trial -> the admissible velocity nearest to it, and whether there is one."""
        q, _, given, chosen = self._state()
        end, (trial, step) = ca.SX.sym("end", 2 * self.n + 1), symbols("trial", TRIAL)
        velocity, admitted = self._admissible(q, end[self.n : 2 * self.n], step["end"], given, chosen)
        return self._function(
            "admit", {"q": q, "end": end, "trial": trial, "given": given, "chosen": chosen},
            {"velocity": velocity, "admitted": admitted},
        )  # fmt: skip

    def _admissible(self, q: ca.SX, v: ca.SX, t: ca.SX, given: ca.SX, chosen: ca.SX) -> tuple[ca.SX, ca.SX]:
        form, p = self.form, self._parameters(given)
        if self.carried is None:
            velocity, _, status = form.traced("project_velocity")(q, v, t, *((p,) if p.numel() else ()))
            return velocity, ca.logic_and(status <= LAST_SOLVED, finite(velocity))
        terms = {name: form.at(name, q, v, t, p) for name in ("mass", "jacobian")}
        change = self.carried.admissible(terms, form.at("rate", q, v, t, p), chosen)
        return v + change, finite(change)

    def control(self) -> ca.Function:
        """Return what became of a step: the clock, state and y from which the next one starts, the run's state."""
        q, y, _, _ = self._state()
        end, q_end, velocity = ca.SX.sym("end", 2 * self.n + 1), ca.SX.sym("q_end", self.nq), ca.SX.sym("velocity", 0)
        (clock, now), (trial, step), (limits, to) = symbols("clock", CLOCK), symbols("trial", TRIAL), self._limits()
        judged, (open_state, at) = ca.SX.sym("judged", 2), symbols("open", OPEN if self.holonomic else ())
        admitted, state = ca.SX.sym("admitted", 1 if self.rows else 0), ca.SX.sym("state")
        velocity = ca.SX.sym("velocity", self.n if self.rows else 0)
        n, v_end = self.n, velocity if self.rows else end[self.n : 2 * self.n]
        fits = ca.logic_and(at["finite"], at["open"] <= self.open) if self.holonomic else ca.SX(1)
        allowed_velocity = admitted if self.rows else ca.SX(1)
        what = self._decided(now, step, judged, fits, allowed_velocity, self._admitted_ratio(to, y, end, v_end))
        running = state == RUNNING
        accepted = ca.logic_and(running, what["accepted"])
        after = {name: ca.if_else(running, what["clock"][name], now[name]) for name in CLOCK}
        reached = after["t"] >= now["stop"]
        ended = ca.if_else(what["left"], LEFT, ca.if_else(ca.logic_and(accepted, reached), ENDED, RUNNING))
        start = ca.vertcat(ca.SX.zeros(n), v_end, end[2 * n])
        return self._function(
            "control",
            {"q": q, "y": y, "end": end, "q_end": q_end, "velocity": velocity, "clock": clock, "trial": trial,
             "limits": limits, "judged": judged, "open": open_state, "admitted": admitted, "state": state},
            {"q": ca.if_else(accepted, q_end, q), "y": ca.if_else(accepted, start, y),
             "clock": ca.vertcat(*(after[name] for name in CLOCK)),
             "state": ca.if_else(running, ended, state), "accepted": accepted},
        )  # fmt: skip

    def _admitted_ratio(self, to: Mapping[str, ca.SX], y: ca.SX, end: ca.SX, v_end: ca.SX) -> ca.SX:
        """Return by how much velocities had to change to be admissible, over the tolerance."""
        if not self.rows:
            return ca.SX(0)
        total = ca.SX(0)
        for j in range(self.n):
            size = ca.fmax(ca.fabs(y[self.n + j]), ca.fabs(v_end[j]))
            total += ((v_end[j] - end[self.n + j]) / (to["atol"] + to["rtol"] * size)) ** 2
        return ca.sqrt(total / self.n)

    def _decided(
        self, now: Mapping[str, ca.SX], step: Mapping[str, ca.SX], judged: ca.SX, fits: ca.SX, admitted: ca.SX,
        admitted_ratio: ca.SX,
    ) -> dict[str, Any]:  # fmt: skip
        """Return whether a step is accepted, the clock after it, and whether the run is left (`advance`)."""
        h, smallest = step["h"], COLLAPSE * ca.fmax(ca.fabs(now["t"]), ca.fabs(now["stop"]))
        ratio, turned = judged[0], judged[1]
        done = {"t": step["end"], "steps": now["steps"] + 1, "fixed": now["fixed"] + 1, "taken": h}
        if self.fixed:
            accepted = ca.logic_and(ca.logic_and(ratio < HUGE, ca.logic_not(turned)), ca.logic_and(fits, admitted))
            clock = {name: ca.if_else(accepted, done.get(name, now[name]), now[name]) for name in CLOCK}
            return {"accepted": accepted, "left": ca.logic_not(accepted), "clock": clock}
        stuck = ca.logic_not(ca.logic_or(step["last"], h > smallest))
        # the chart ends: half the step, the motion is as good as ever
        halved = ca.logic_and(ca.logic_and(turned, ratio < HUGE), h > smallest)
        small = ca.logic_and(ratio < now["allowed"], ca.logic_not(turned))
        declined = ca.logic_and(ca.logic_and(small, fits), ca.logic_not(admitted))
        failed = ca.logic_or(turned, ca.logic_and(small, ca.logic_not(fits)))
        whole = ca.if_else(small, ca.fmax(ratio, ca.if_else(admitted_ratio < HUGE, admitted_ratio, HUGE)), ratio)
        whole = ca.if_else(failed, HUGE, whole)
        accepted = ca.logic_and(ca.logic_and(small, fits), ca.logic_and(admitted, whole < now["allowed"]))
        shorter, ended = self._shrunk(now, h, whole, smallest)
        longer = {**self._grown(now, step, whole), **done}
        clock = {}
        for name in CLOCK:
            other = ca.if_else(halved, 0.5 * h if name == "h" else now[name], shorter.get(name, now[name]))
            clock[name] = ca.if_else(accepted, longer.get(name, now[name]), other)
        rejected = ca.logic_not(ca.logic_or(accepted, halved))
        left = ca.logic_or(ca.logic_or(stuck, declined), ca.logic_and(rejected, ended))
        return {"accepted": ca.logic_and(accepted, ca.logic_not(stuck)), "left": left, "clock": clock}

    def _shrunk(
        self, now: Mapping[str, ca.SX], h: ca.SX, ratio: ca.SX, smallest: ca.SX
    ) -> tuple[dict[str, ca.SX], ca.SX]:
        """Return the clock after a rejection, and whether the run is left (`advance_loops.shrink`)."""
        noise = ca.if_else(ratio > 0.5 * now["last"], now["noise"] + 1.0, 0.0)
        least = ca.fmin(now["least"], ratio)
        closing = now["closing"]
        if self.holonomic:
            begun = ca.logic_and(h < TROUBLE * now["usual"], closing == 0.0)
            closing = ca.if_else(begun, 1.0, closing)
        noisy = ca.logic_and(noise >= NOISY, least < LARGEST_NOISE)
        factor = ca.fmax(SHRINK, SAFETY * ca.fmin(ratio, HUGE) ** (-1.0 / self.pair.order))
        factor = ca.if_else(ratio < HUGE, factor, SHRINK)
        next_h = ca.if_else(noisy, 2.0 * h, h * factor)
        row = now["in_a_row"] + 1
        ended = ca.logic_or(ca.logic_not(next_h > smallest), row > MOST_REJECTIONS)
        ended = ca.logic_or(ended, ca.logic_and(closing == 1.0, next_h < VERY_SHORT * now["usual"]))
        return {
            "in_a_row": row, "noise": ca.if_else(noisy, 0.0, noise), "least": least, "last": ratio, "h": next_h,
            "closing": closing, "after_rejection": ca.SX(1),
            "allowed": ca.if_else(noisy, 2.0 * least, now["allowed"]),
        }, ended  # fmt: skip

    def _grown(self, now: Mapping[str, ca.SX], step: Mapping[str, ca.SX], ratio: ca.SX) -> dict[str, ca.SX]:
        """Return the clock after a step that was accepted (`advance_loops.grow`)."""
        h, usual = step["h"], ca.fmax(0.95 * now["usual"], step["h"])
        some = ca.if_else(ratio > 0.0, ratio, 1.0)
        factor = ca.if_else(ratio > 0.0, ca.fmin(GROW, SAFETY * some ** (-1.0 / self.pair.order)), GROW)
        factor = ca.if_else(now["after_rejection"], ca.fmin(factor, 1.0), ca.fmax(SHRINK, factor))
        cut = ca.logic_and(step["last"], h < now["h"] * 0.99)  # shortened by the end alone
        return {
            "usual": usual, "in_a_row": ca.SX(0), "allowed": ca.SX(1), "noise": ca.SX(0), "least": ca.SX(HUGE),
            "last": ca.SX(HUGE), "h": ca.if_else(cut, now["h"], h * factor), "after_rejection": ca.SX(0),
            "closing": ca.if_else(h > 2.0 * TROUBLE * usual, 0.0, now["closing"]),
        }  # fmt: skip

    def begin(self) -> ca.Function:
        """Return K at the start of a step, the rows chosen there, a sample of the state; not sound: the run is left."""
        q, y, given, chosen = self._state()
        (clock, now), state, n = symbols("clock", CLOCK), ca.SX.sym("state"), self.n
        t, x, v = ca.fmin(now["t"], now["inside"]), y[: self.n], y[self.n : 2 * self.n]
        found = self._rates(q, x, v, t, given, chosen, True)
        K = found["K"]
        sample = ca.vertcat(now["t"], q, v, K[n : 2 * n], found["multipliers"], y[2 * n], now["taken"])
        return self._function(
            "begin", {"q": q, "y": y, "clock": clock, "given": given, "state": state},
            {"K": K, "chosen": found["chosen"], "sample": sample,
             "state": ca.if_else(found["sound"], state, LEFT)},
        )  # fmt: skip

    def watch(self) -> ca.Function:
        """Return the energy balance at the state, and the run's state: one that ended and broke it is left.

        `witness.broken_balance`, at every step.
        """
        q, y, given, _ = self._state()
        (clock, now), (watch, before), (limits, to) = symbols("clock", CLOCK), symbols("watch", WATCH), self._limits()
        state, n, v, p = ca.SX.sym("state"), self.n, y[self.n : 2 * self.n], self._parameters(given)
        kinetic, potential, h = self.form.energies(q, v, p)
        worth = self._worth(q, v, now["t"], p, to)
        rate = self.form.at("rate", q, ca.SX.zeros(n), now["t"], p) if self.rows else ca.SX(0, 1)
        moving = maximum(ca.fabs(rate[k]) for k in range(rate.numel()))
        begun = now["steps"] == 0.0
        start = ca.if_else(begun, h, before["start"])
        signed = h - start - y[2 * n]
        change = ca.if_else(begun, 0.0, signed - before["signed"])
        off, change = (ca.fmax(x, 0.0) if "damped" in self.balance else ca.fabs(x) for x in (signed, change))
        old = {name: ca.if_else(begun, 0.0, x) for name, x in before.items()}
        most = {"worst": off, "kinetic": kinetic, "potential": ca.fabs(potential), "worth": worth, "change": change}
        found = {name: ca.if_else(x <= old[name], old[name], x) for name, x in most.items()}
        level = found["kinetic"] + found["potential"]
        least = ONE_STEP * to["rtol"] * 2.0 * ca.fmax(kinetic, old["kinetic_now"]) + 10.0 * ENERGY_ROUNDING * level
        small = ca.logic_or(change <= least, change <= ONE_STEP * ca.fmax(worth, old["worth_now"]) + least)
        found |= {
            "start": start, "signed": signed, "kinetic_now": kinetic, "worth_now": worth,
            "broken": ca.logic_or(old["broken"], ca.logic_not(small)),
            "moving": ca.logic_or(old["moving"], moving > 0.0),
        }  # fmt: skip
        if "fixed" in self.balance:
            kept = found["change"] <= JUMP * found["kinetic"]
        else:
            rounding = ENERGY_ROUNDING * (now["steps"] + 10) * level
            kept = found["worst"] <= SAFE * now["steps"] * found["worth"] + rounding
            if "every step" in self.balance:
                kept = ca.logic_and(kept, ca.logic_not(found["broken"]))
        kept = ca.logic_or(kept, found["moving"])
        lost = ca.logic_and(state == ENDED, ca.logic_not(kept))
        return self._function(
            "watch", {"q": q, "y": y, "clock": clock, "given": given, "watch": watch, "limits": limits, "state": state},
            {"watch": ca.vertcat(*(found[name] for name in WATCH)), "state": ca.if_else(lost, LEFT, state)},
        )  # fmt: skip

    def _worth(self, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX, to: Mapping[str, ca.SX]) -> ca.SX:
        """Return the energy that the tolerance of a step is worth (`witness.step_tolerance`)."""
        return ca.dot(ca.vertcat(to["atol"], to["rtol"]), worth_expressions(self.form, q, v, t, p))


def balance_of(session: Session) -> str:
    """Return how the energy balance of runs is asked for; "" where it says nothing (`witness.broken_balance`)."""
    m, s = session.system, session.settings
    stabilised = any(each.stabilize is not None for each in getattr(m, "all_constraints", ()))
    known = getattr(m, "has_energy", hasattr(m, "energy")) and _has_balance(m)
    if s.method not in BALANCED or not known or stabilised:
        return ""
    kinds = {"damped": _damped(m), "fixed": s.step is not None, "every step": s.every is None}
    return ", ".join(["asked", *(name for name, holds in kinds.items() if holds)])


def _work_ratio(first: ca.SX, second: ca.SX, h: ca.SX, scale: ca.SX, two: bool) -> ca.SX:
    """Return the error of the work of drives over what the tolerance is worth (`explicit_loops.work_ratio`)."""
    if two:
        below = ca.sqrt(first**2 + 0.01 * second**2)
        first = first**2 / ca.if_else(below > 0.0, below, 1.0)
    return ca.if_else(scale > 0.0, ca.fabs(h * first) / ca.if_else(scale > 0.0, scale, 1.0), 0.0)
