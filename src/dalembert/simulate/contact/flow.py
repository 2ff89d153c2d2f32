"""Steps of order 8 between events: from here by any h, put back on the contacts that are closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.integrate import DOP853

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.simulate.contact.forces import Chart
from dalembert.simulate.contact.phase import Motion, Phase
from dalembert.simulate.smooth.session import Settings
from dalembert.simulate.steppers.tables import DOP853_TABLE

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
class Here:
    """Where a run is, and the motion there."""

    t: float
    q: Array
    v: Array
    motion: Motion


class Stage(NamedTuple):
    """Where a step was evaluated: time since its start, velocities, motion, rate; states of stages are of low order."""

    h: float
    v: Array
    motion: Motion
    rate: Array


class Inside:
    """States inside of a step: the polynomial of degree 7 through its stages and three more (Hairer's dop853)."""

    def __init__(self, flow: Flow, here: Here, shot: Shot) -> None:
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
class Shot:
    """The state after a step by h: its error over the tolerance, what joint forces did and sliding took in it."""

    h: float
    q: Array
    v: Array
    ratio: float
    work: float
    heat: float
    stages: tuple[Stage, ...] = ()


class Flow:
    """Steps in the mode that the phase is in."""

    def __init__(self, phase: Phase, chart: Chart, settings: Settings) -> None:
        self.phase, self.chart, self.settings = phase, chart, settings
        self.h = settings.step or min(1e-3, settings.duration / 100)
        self.rejected = 0
        self.n = phase.n

    def shot(self, here: Here, h: float) -> Shot:
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
            return Shot(h, here.q, here.v, np.inf, 0.0, 0.0)
        q, _ = self.chart.at(here.q, end[:n], end[n : 2 * n])
        q, v = self.phase.on_manifold(q, end[n : 2 * n], here.t + h)
        return Shot(h, q, v, ratio, float(end[2 * n]), float(end[2 * n + 1]), tuple(stages))

    def rate(self, here: Here, stages: list[Stage]) -> Callable[[float, Array], Array]:
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

    def accepted(self, here: Here, h: float) -> Shot:
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

    def go(self, here: Here, shot: Shot) -> Here:
        """Return the end of a step, with the motion there."""
        t = here.t + shot.h
        return Here(t, shot.q, shot.v, self.phase.motion(shot.q, shot.v, t))
