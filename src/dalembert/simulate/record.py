"""What a simulation writes down on its way: states and modes at steps or asked times, and at events (both sides)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dalembert.simulate.manifold import on_manifold
from dalembert.simulate.samples import asked_time
from dalembert.simulate.segment import Segment

Array = np.ndarray


@dataclass
class Record:
    """Rows of (t, y, mode): of every step; or with `every` at start + k every, at the end and at events."""

    start: float
    end: float
    every: float | None
    t: list[float] = field(default_factory=list)
    y: list[Array] = field(default_factory=list)
    mode: list[Array] = field(default_factory=list)
    steps: int = 0
    transitions: int = 0
    transition_times: list[float] = field(default_factory=list)
    _next: int = 1
    _skipped: tuple[float, Array, Array] | None = None

    def add(self, t: float, y: Array, mode: Array) -> None:
        """Append a state."""
        self.t.append(t)
        self.y.append(y.copy())
        self.mode.append(mode.copy())
        self._skipped = None

    def step(self, t: float, y: Array, mode: Array) -> None:
        """Append the end of a step where it is wanted."""
        if self.every is None or t >= self.end or t == asked_time(self.start, self.end, self.every, self._next):
            self._next += self.every is not None
            self.add(t, y, mode)
        else:
            self._skipped = t, y.copy(), mode.copy()

    def before_event(self) -> None:
        """Append the end of the last step: an event happened there."""
        if self._skipped is not None:
            self.add(*self._skipped)

    def asked(self, before: float) -> Iterator[float]:
        """Yield the asked times up to a time (exclusive) that are not there yet."""
        while self.every is not None and (t := asked_time(self.start, self.end, self.every, self._next)) < before:
            self._next += 1
            if t > self.t[-1]:
                yield t

    def between(self, segment: Segment, end: float) -> None:
        """Append the asked times inside a step, up to its end (exclusive)."""
        for t in self.asked(end):
            y = segment.at(t - segment.t).copy()
            dynamics, n = segment.rate.dynamics, segment.rate.n
            y[:n], y[n : 2 * n] = on_manifold(dynamics, y[:n], y[n : 2 * n], t, segment.rate.mode)
            self.add(t, y, segment.rate.mode)
