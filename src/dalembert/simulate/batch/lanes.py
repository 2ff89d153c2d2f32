"""Many smooth runs in step with each other: explicit Runge-Kutta over arrays with a row per run, on a GPU.

    starts ─► begin ─► [ propose ─► stages ─► judge ─► close, admit ─► control ─► begin ] ─► samples of all runs

Every run has its own time and its own step; what it does is decided by masks. All arithmetic of a run is in
`lane_functions.py`, compiled for the backend; here arrays are moved: rows of runs that ended are left out from time to
time, samples are written down and brought back at the end. The same source runs on NumPy's arrays and on CuPy's.

The steps are those of `steppers/advance_loops.py`, not its bits: sums and elementary functions of a backend round in
their own way. What a run gives depends on its start alone, bit for bit: not on the other runs, their number or their
order. A run that comes to what loops give to Python (rows that become dependent, a step that collapses) is left out, as
by the loops: `da.simulate` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulate.batch.batch_loops import AT_A_TIME, COMPLETE, LONGEST, WAITING, Starts
from dalembert.simulate.batch.lane_functions import (
    CLOCK,
    ENDED,
    HUGE,
    LEFT,
    LIMITS,
    OPEN,
    RUNNING,
    TRIAL,
    WATCH,
    LaneFunctions,
    balance_of,
)
from dalembert.simulate.batch.lane_rows import MOST_ROWS, LaneRows
from dalembert.simulate.limits import DECAY_DIFFERENCE, MOST_CLOSING, SAME_INSTANT
from dalembert.simulate.session import FIELDS
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.batch.batch import FinishedRuns, RunBatch

MOST_LANES = 2**20
"""Runs under way at once."""

SPARSE = 0.75
"""Part of the rows below which those of runs that ended are left out."""

MOST_STEPS = AT_A_TIME * LONGEST
"""Steps tried in one run, as by the loops."""

LOGGED = 2**33
"""Bytes of samples that are kept on the device before they are brought back."""

PIECE_ROWS = 2**17
"""Samples that are looked at together."""

Arrays = dict[str, Any]

_T, _H, _BEGIN, _STOP, _SAMPLES, _ASKED, _STEPS, _TAKEN = (
    CLOCK.index(x) for x in ("t", "h", "begin", "stop", "samples", "asked", "steps", "taken")
)
_END, _CLOSING = TRIAL.index("end"), TRIAL.index("closing")


def array_module(backend: str) -> Any:
    """Return the module whose arrays the kernels of a backend take; without a device this is said, and why."""
    if backend != "cuda":
        return np
    from dalembert.kernel.cuda import engine

    return engine._cupy()


def compiler_versions(backend: str) -> dict[str, str]:
    """Return the versions on which the bits of a backend depend beside those of this machine's libraries."""
    if backend != "cuda":
        return {}
    cupy = array_module(backend)
    return {"cupy": str(cupy.__version__), "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion()))}


class SampleLog:
    """Samples of all runs in the order in which they come: number of the run, number in it, the row."""

    def __init__(self, xp: Any, width: int) -> None:
        self.xp, self.width = xp, width
        self.here: list[tuple[Any, Any, Any]] = []
        self.back: list[tuple[Array, Array, Array]] = []
        self.bytes = 0

    def add(self, runs: Any, places: Any, rows: Any) -> None:
        """Write down samples of several runs, one of each."""
        self.here.append((runs, places, rows))
        self.bytes += rows.nbytes
        if self.bytes > LOGGED:
            self._bring_back()

    def sorted(self, first: Array, whole: Array, total: int) -> Array:
        """Return the samples (total, width) of runs that are whole, one run behind the other from its `first` on."""
        if self.back or not self.here:
            self._bring_back()
            return self._placed(np, self.back, first, whole, total)
        return on_host(self._placed(self.xp, self.here, self.xp.asarray(first), self.xp.asarray(whole), total))

    def _bring_back(self) -> None:
        """Move samples from the device into this machine's memory."""
        self.back += [(on_host(runs), on_host(places), on_host(rows)) for runs, places, rows in self.here]
        self.here, self.bytes = [], 0

    def _placed(self, xp: Any, chunks: Any, first: Any, whole: Any, total: int) -> Any:
        found = xp.empty((total, self.width))
        for runs, places, rows in chunks:
            kept = xp.flatnonzero(whole[runs])
            found[first[runs[kept]] + places[kept]] = rows[kept]
        return found


def on_host(x: Any) -> Array:
    """Return an array of this machine's memory."""
    return x if isinstance(x, np.ndarray) else x.get()


class LaneRunner:
    """Explicit steps on the constraint manifold, all runs at once.

    Parameters
    ----------
    batch
        The system, prepared.
    backend
        Of the kernels: "cuda", or one that takes NumPy's arrays.
    """

    def __init__(self, batch: RunBatch, backend: str) -> None:
        from dalembert.simulate.batch.batch import UnsuitedError, smooth_stepper

        s = batch.session
        self.batch, self.stepper, self.xp = batch, smooth_stepper(batch), array_module(backend)
        e, m = self.stepper, s.system
        if not m.nv:
            raise UnsuitedError("nothing moves")
        carried = None
        if m.names and e.codes.carries:
            if len(m.names) > MOST_ROWS:
                raise UnsuitedError(f"{len(m.names)} rows depend on each other, more than {MOST_ROWS}")
            carried = LaneRows(e.work.carried, m.holonomic, m.nv)
        self.functions = LaneFunctions(
            e.codes.form, s.controller, e.pair, e.limits, np.array(e.work.sizes), float(e.work.open[0]), carried,
            balance_of(s),
        )  # fmt: skip
        self.kernels = self.functions.compiled(backend, m.cacheable)
        xp, limits = self.xp, e.limits
        numbers = {"last_sample": limits.end, **{name: getattr(limits, name) for name in LIMITS[:-1]}}
        self.limits = xp.asarray(np.array([numbers[name] for name in LIMITS]))
        self.c = [xp.asarray(np.array([c])) for c in e.pair.c]
        self.tables = [xp.asarray(np.ascontiguousarray(x)) for x in e.tables[1:]]
        self.width = 3 + m.nq + 2 * m.nv + len(m.names)

    def run(
        self, starts: Starts, verdict: Array, short: bool = False, ends: bool = False
    ) -> Iterator[FinishedRuns]:  # fmt: skip
        """Make runs and yield those that reached their end and kept their balance of energy.

        `short`: to a state between samples of others. `ends`: the first and the last sample are wanted alone.
        """
        waiting = np.flatnonzero(verdict == WAITING)
        for k in range(0, waiting.size, MOST_LANES):
            rows = waiting[k : k + MOST_LANES]
            some = Starts(*(x[rows] for x in starts))
            states, steps, counts, log = LaneStudy(self, some, short, ends or short).run()
            whole = states == ENDED
            verdict[rows[whole]] = COMPLETE
            lengths = np.where(whole, counts, 0)
            stops = np.cumsum(lengths)
            samples = log.sorted(stops - lengths, whole, int(stops[-1]) if stops.size else 0)
            yield from self._pieces(starts, verdict.size, rows, whole, stops, lengths, steps, samples, short)

    def _pieces(
        self, starts: Starts, count: int, rows: Array, whole: Array, stops: Array, lengths: Array, steps: Array,
        samples: Array, short: bool,
    ) -> Iterator[FinishedRuns]:  # fmt: skip
        """Yield finished runs, as many together as have so many samples."""
        from dalembert.simulate.batch.batch import ends_of, finished_runs

        m = self.batch.system
        sizes = {"t": 1, "q": m.nq, "v": m.nv, "acceleration": m.nv, "multipliers": len(m.names), "work": 1, "step": 1}
        places = np.cumsum([0, *(sizes[name] for name in FIELDS)])
        begin = 0
        while begin < rows.size:
            base = int(stops[begin] - lengths[begin])
            end = max(begin + 1, int(np.searchsorted(stops, base + PIECE_ROWS, "right")))
            part = samples[base : int(stops[end - 1])]
            block = {}
            for name, a, b in zip(FIELDS, places[:-1], places[1:], strict=True):
                block[name] = np.ascontiguousarray(part[:, a] if name in ("t", "work", "step") else part[:, a:b])
            ends = ends_of(np.zeros(count, np.int64))
            inside = np.arange(begin, end)[whole[begin:end]]
            ends.samples[rows[inside], 0] = (stops - lengths)[inside] - base
            ends.samples[rows[inside], 1] = stops[inside] - base
            ends.steps[rows[inside]] = steps[inside]
            yield finished_runs(self.batch, starts, ends, rows[inside], block, np.zeros((0, 5)), short)
            begin = end


class LaneStudy:
    """Runs under way: a row of every array for each of them.

    Attributes
    ----------
    now
        By name: q, y, K, clock, state (`lane_functions`), given (signals and parameters), chosen (rows), run (numbers).
    """

    def __init__(self, runner: LaneRunner, starts: Starts, short: bool, ends: bool) -> None:
        self.runner, self.xp, self.short, self.ends = runner, runner.xp, short, ends
        limits = runner.stepper.limits
        self.every, self.inside = (0.0, 0) if ends else (limits.every, limits.inside)
        self.watched = "watch" in runner.kernels and not short
        self.n = runner.functions.n
        self.log = SampleLog(self.xp, runner.width)
        xp, count, n = self.xp, starts.begin.size, self.n
        clock = np.zeros((count, len(CLOCK)))
        values = {
            "t": starts.begin, "begin": starts.begin, "stop": starts.end, "origin": starts.begin, "allowed": 1.0,
            "least": HUGE, "last": HUGE, "inside": np.nextafter(starts.end, starts.begin),
        }  # fmt: skip
        for name, value in values.items():
            clock[:, CLOCK.index(name)] = value
        y = np.zeros((count, 2 * n + 1))
        y[:, n : 2 * n] = starts.v
        parameters = np.tile(np.asarray(runner.stepper.codes.form.values, float), (count, 1))
        if starts.parameters.shape[1]:
            parameters[:] = starts.parameters
        self.now: Arrays = {
            "q": xp.asarray(np.ascontiguousarray(starts.q)), "y": xp.asarray(y), "clock": xp.asarray(clock),
            "state": xp.zeros((count, 1)), "run": xp.arange(count),
        }  # fmt: skip
        if parameters.size:
            self.now["parameters"] = xp.asarray(parameters)
        if self.watched:
            self.now["watch"] = xp.zeros((count, len(WATCH)))
        self.states, self.steps, self.counts = xp.zeros(count), xp.zeros(count), xp.zeros(count)

    def call(self, name: str, *several: Arrays, **more: Any) -> Arrays:
        """Return what a function gives, by name of its outputs; its inputs are found by name, the last first."""
        kernel = self.runner.kernels[name]
        arrays: Arrays = {}
        for each in (*several, more):
            arrays |= each
        found = kernel(*(arrays[port.name] for port in kernel.inputs))
        names = (port.name.removeprefix("to_") for port in kernel.outputs)
        return dict(zip(names, found if isinstance(found, tuple) else (found,), strict=True))

    # --- the way through ------------------------------------------------------------------------------------------

    def run(self) -> tuple[Array, Array, Array, SampleLog]:
        """Make all runs; return their states, steps, numbers of samples, and the samples."""
        self._first()
        for _ in range(MOST_STEPS):
            if not self._gathered():
                break
            self._step()
        else:
            self.now["state"][self.now["state"] == RUNNING] = LEFT
        self._note()
        states, steps, counts = (on_host(x).astype(np.int64) for x in (self.states, self.steps, self.counts))
        return states, steps, counts, self.log

    def _note(self) -> None:
        """Note what became of the runs that have a row."""
        run, clock = self.now["run"], self.now["clock"]
        self.states[run], self.steps[run] = self.now["state"][:, 0], clock[:, _STEPS]
        self.counts[run] = clock[:, _SAMPLES]

    def _gathered(self) -> bool:
        """Leave out rows of runs that ended, where these are many; return whether any are under way."""
        rows = self.xp.flatnonzero(self.now["state"][:, 0] == RUNNING)
        if rows.size < SPARSE * len(self.now["run"]):
            self._note()
            if rows.size:
                self.now = {name: x[rows] for name, x in self.now.items() if name != "sample"}
        return rows.size > 0

    def _first(self) -> None:
        """Look at the start, write the first sample, choose the first step; leave out what decays too fast."""
        batch, now = self.runner.batch, self.now
        decay = 0.0 if self.short or batch.asked else self._decay()
        if decay > 0.0:
            span = now["clock"][:, _STOP] - now["clock"][:, _T]
            slow = self._fastest() * span <= decay
            now["state"] = self.xp.where(slow[:, None], now["state"], float(LEFT))
        now |= self._begun(now)
        self._watch()
        self._write(now, self.xp.ones(len(now["run"]), bool))
        if "first" in self.runner.kernels:
            now |= self.call("first", now, limits=self.runner.limits)
        else:
            now["clock"][:, _H] = self.runner.stepper.limits.fixed

    @staticmethod
    def _decay() -> float:
        from dalembert.simulate.batch.batch import PLAINLY
        from dalembert.simulate.time_methods import STIFF

        return PLAINLY * STIFF

    def _begun(self, now: Arrays) -> Arrays:
        """Return K, the rows chosen, the sample and the state of the run at the start of a step."""
        clock = now["clock"]
        t = self.xp.minimum(clock[:, _T], clock[:, CLOCK.index("inside")])
        return self.call("begin", now, self._given(now, t))

    def _watch(self) -> None:
        """Look at the energy balance."""
        if self.watched:
            now = self.now
            now |= self.call("watch", now, self._given(now, now["clock"][:, _T]), limits=self.runner.limits)

    def _given(self, now: Arrays, t: Any) -> Arrays:
        """Return signals at some times, and the parameters (`signals.set_signals`); nothing where there are none."""
        layout = self.runner.stepper.tables.layout
        if not len(layout):
            return {"given": now["parameters"]} if "parameters" in now else {}
        xp, clock = self.xp, now["clock"]
        breaks, coefficients = self.runner.tables
        low, high = clock[:, _BEGIN], clock[:, _STOP]
        t = xp.minimum(xp.maximum(t, low), high)
        columns = {}
        for signal, first, pieces, place, length in layout.tolist():
            some = breaks[first : first + pieces + 1]
            below, up_to = xp.searchsorted(some, t, "left"), xp.searchsorted(some, t, "right")
            piece = xp.clip(xp.where(t >= high, below, up_to) - 1, 0, pieces - 1)
            u, value = t - some[piece], xp.zeros(len(t))
            for j in range(length):
                value = value * u + coefficients[place + piece * length + j]
            columns[signal] = value
        signals = xp.stack([columns[k] for k in sorted(columns)], axis=1)
        return {"given": xp.concatenate([signals, now["parameters"]], axis=1) if "parameters" in now else signals}

    def _fastest(self) -> Any:
        """Return a bound of how fast velocities decay at the start (`batch_loops.fastest`); inf if unknown."""
        xp, now, n = self.xp, self.now, self.n
        most = xp.zeros(len(now["run"]))
        known = xp.ones(len(most), bool)
        for j in range(n):
            sides = []
            for way in (DECAY_DIFFERENCE, -DECAY_DIFFERENCE):
                y = now["y"].copy()
                y[:, n + j] += way
                found = self._begun({**now, "y": y, "state": xp.zeros((len(y), 1))})
                known &= found["state"][:, 0] != LEFT
                sides.append(found["K"])
            total = xp.zeros(len(most))
            for i in range(n):
                total = total + xp.abs(sides[0][:, n + i] - sides[1][:, n + i])
            most = xp.maximum(most, total / (2.0 * DECAY_DIFFERENCE))
        return xp.where(known, most, np.inf)

    # --- a step ---------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Try a step of every run; accept it or not."""
        now, limits = self.now, self.runner.limits
        trial = self.call("propose", now, limits=limits)["trial"]
        tried = self._tried(now, trial)
        after = self.call("control", now, tried, trial=trial, limits=limits)
        accepted = after.pop("accepted")[:, 0] > 0.0
        wanted = accepted
        if self.inside:
            self._inside(now, after, trial, accepted)
            after["clock"][accepted, _ASKED] = 0.0
        elif self.every > 0.0:
            self._inside(now, after, trial, accepted)
            asked = accepted & (self._asked_time(after["clock"], trial) == trial[:, _END])
            after["clock"][:, _ASKED] += asked
            wanted = asked | (accepted & (trial[:, _END] >= limits[LIMITS.index("last_sample")]))
        now |= after
        now |= self._begun(now)
        self._watch()
        self._write(now, accepted & (now["state"][:, 0] == ENDED) if self.ends else wanted)

    def _tried(self, now: Arrays, trial: Any) -> Arrays:
        """Return the end of a step in the chart and on the manifold, its error, what became of constraints."""
        K, end, sound = self._stages(now, trial)
        found: Arrays = {"end": end, "sound": sound}
        if "errors" in self.runner.kernels:
            sums = self.call("errors", {f"k{i}": k.reshape(-1, 1) for i, k in enumerate(K)})
            found |= {name: x.reshape(end.shape) for name, x in sums.items()}
        given = self._given(now, trial[:, _END])
        judged = self.call("judge", now, found, given, trial=trial, limits=self.runner.limits)
        found |= {"q_end": judged["q"], "judged": judged["judged"]}
        at_end = {**now, "q": judged["q"], "end": end, "trial": trial, **given}
        if "close" in self.runner.kernels:
            closed = self._closed(at_end)
            found |= {"q_end": closed["q"], "open": closed["open"]}
            at_end |= closed
        if "admit" in self.runner.kernels:
            found |= self.call("admit", at_end)
        return found

    def _stages(self, now: Arrays, trial: Any) -> tuple[list[Any], Any, Any]:
        """Return K of all stages, the end of the step in the chart, and whether all stages are sound."""
        xp, b = self.xp, self.runner.stepper.pair.b
        y, size = now["y"], 2 * self.n + 1
        start = {"start": y.reshape(-1, 1), "h": xp.repeat(trial[:, 0], size).reshape(-1, 1)}
        K, flat = [now["K"]], {"k0": now["K"].reshape(-1, 1)}
        sound = xp.ones((len(y), 1))
        closing = xp.flatnonzero(trial[:, _CLOSING] > 0.0) if "close" in self.runner.kernels else ()
        for i in range(1, b.size):
            stage = self.call(f"start {i}", start, flat)["y"].reshape(y.shape)
            t = trial[:, TRIAL.index("t")] + float(self.runner.stepper.pair.c[i]) * trial[:, 0]
            given = self._given(now, xp.minimum(t, trial[:, TRIAL.index("inside")]))
            at = {**now, "y": stage, "trial": trial, "c": self.runner.c[i], "sound": sound, **given}
            found = self.call("stage", at)
            if len(closing):
                self._stage_closed({name: x if name == "c" else x[closing] for name, x in at.items()}, found, closing)
            K.append(found["K"])
            flat[f"k{i}"], sound = found["K"].reshape(-1, 1), found["sound"]
        return K, self.call("end", start, flat)["y"].reshape(y.shape), sound

    def _stage_closed(self, at: Arrays, found: Arrays, rows: Any) -> None:
        """Write y' of some runs at the states on the manifold next to the stage (`explicit_loops.evaluate_closed`)."""
        xp, n, y = self.xp, self.n, at["y"]
        trial = at["trial"].copy()
        trial[:, _END] = trial[:, TRIAL.index("t")] + at["c"] * trial[:, 0]
        moved = {**at, "q": self.call("move", at, end=y)["q"], "end": y, "trial": trial}
        closed = self._closed(moved)
        velocity = self.call("admit", moved, closed)["velocity"]
        z = xp.concatenate([y[:, :n], velocity, y[:, 2 * n :]], axis=1)
        first = self.call("stage", at, y=z)
        z[:, :n] = 0.0
        second = self.call("stage", at, y=z, q=closed["q"])
        found["K"][rows] = xp.concatenate([first["K"][:, :n], second["K"][:, n:]], axis=1)
        held, least = closed["open"], self.runner.functions.open
        fits = (held[:, OPEN.index("finite")] > 0.0) & (held[:, OPEN.index("open")] <= least)
        sound = (first["sound"][:, 0] > 0.0) & (second["sound"][:, 0] > 0.0) & fits
        found["sound"][rows] = xp.where(sound, 1.0, 0.0)[:, None]

    def _closed(self, at: Arrays) -> Arrays:
        """Return q put onto the constraints, and what is left open."""
        state = self.xp.zeros((len(at["q"]), len(OPEN)))
        for name, value in {"open": HUGE, "least": HUGE, "going": 1.0, "finite": 1.0}.items():
            state[:, OPEN.index(name)] = value
        found = {"q": at["q"], "open": state}
        for _ in range(MOST_CLOSING):
            found = self.call("close", at, found)
            if not (found["open"][:, OPEN.index("going")] > 0.0).any():
                break
        return found

    # --- samples --------------------------------------------------------------------------------------------------

    def _write(self, now: Arrays, wanted: Any) -> None:
        """Write down the samples of some runs."""
        rows = self.xp.flatnonzero(wanted)
        if rows.size:
            places = now["clock"][rows, _SAMPLES].astype(np.int64)
            self.log.add(now["run"][rows], places, now["sample"][rows])
            now["clock"][:, _SAMPLES] += wanted

    def _asked_time(self, clock: Any, trial: Any) -> Any:
        """Return the time of the next sample asked for (`advance_loops.asked_time`)."""
        limits, k = self.runner.stepper.limits, clock[:, _ASKED] + 1
        if self.inside:
            begin, end = trial[:, TRIAL.index("t")], trial[:, _END]
            part = 0.5 * (1.0 - self.xp.cos(np.pi * k / (self.inside + 1)))
            return self.xp.where(k <= self.inside, begin + part * (end - begin), end)
        t = limits.start + k * self.every
        near = self.xp.abs(t - limits.end) <= SAME_INSTANT * max(abs(limits.start), abs(limits.end))
        return self.xp.where(near, limits.end, t)

    def _inside(self, now: Arrays, after: Arrays, trial: Any, accepted: Any) -> None:
        """Write the samples asked for strictly inside of the steps, each by a shorter step of full order."""
        xp = self.xp
        while True:
            clock = after["clock"]
            t, end = self._asked_time(clock, trial), trial[:, _END]
            behind = accepted & (t < end) & (t <= trial[:, TRIAL.index("t")])
            clock[:, _ASKED] += behind  # the start of this step, which is a sample
            left = after["state"][:, 0] == LEFT
            rows = xp.flatnonzero(accepted & ~left & ~behind & (t < end))
            if not rows.size and not bool(behind.any()):
                return
            if rows.size:
                self._sample_inside(now, after, trial, rows, t[rows])

    def _sample_inside(self, now: Arrays, after: Arrays, trial: Any, rows: Any, t: Any) -> None:
        xp, n = self.xp, self.n
        some = {name: x[rows] for name, x in now.items() if name != "sample"}
        short = trial[rows]
        short[:, 0], short[:, _END] = t - short[:, TRIAL.index("t")], t
        tried = self._tried(some, short)
        sound = tried["sound"][:, 0] > 0.0
        if "open" in tried:
            held = tried["open"]
            sound &= (held[:, OPEN.index("finite")] > 0.0) & (held[:, OPEN.index("open")] <= self.runner.functions.open)
        v = tried["velocity"] if "velocity" in tried else tried["end"][:, n : 2 * n]
        if "admitted" in tried:
            sound &= tried["admitted"][:, 0] > 0.0
        y = xp.concatenate([xp.zeros_like(v), v, tried["end"][:, 2 * n :]], axis=1)
        clock = after["clock"][rows]
        clock[:, _T], clock[:, _TAKEN] = t, 0.0
        state = xp.where(sound, float(RUNNING), float(LEFT))[:, None]
        at = {**some, "q": tried["q_end"], "y": y, "clock": clock, "state": state}
        found = self._begun(at)
        self._write({**at, **found}, xp.ones(len(y), bool))
        after["clock"][rows, _SAMPLES] += 1
        after["clock"][rows, _ASKED] += 1
        lost = found["state"][:, 0] == LEFT
        after["state"][rows] = xp.where(lost[:, None], float(LEFT), after["state"][rows])
