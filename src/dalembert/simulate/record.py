"""What a simulation writes down on its way: states and modes at steps, at events (both sides) and at asked times."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.simulate.manifold import on_manifold
from dalembert.simulate.segment import Segment

Array = np.ndarray


@dataclass
class Record:
    """Rows of (t, y, mode); `every` asks for equal times besides."""

    start: float
    every: float | None
    t: list[float] = field(default_factory=list)
    y: list[Array] = field(default_factory=list)
    mode: list[Array] = field(default_factory=list)
    steps: int = 0
    transitions: int = 0
    transition_times: list[float] = field(default_factory=list)
    _next: int = 1

    def add(self, t: float, y: Array, mode: Array) -> None:
        """Append a state."""
        self.t.append(t)
        self.y.append(y.copy())
        self.mode.append(mode.copy())

    def between(self, segment: Segment, h: float) -> None:
        """Append the asked times inside a step, up to h (exclusive)."""
        if self.every is None:
            return
        while self.start + self._next * self.every < segment.t + h:
            inside = self.start + self._next * self.every - segment.t
            if inside > 0.0:
                y = segment.at(inside).copy()
                dynamics, n = segment.rate.dynamics, segment.rate.n
                y[:n], y[n : 2 * n] = on_manifold(dynamics, y[:n], y[n : 2 * n], segment.t + inside, segment.rate.mode)
                self.add(segment.t + inside, y, segment.rate.mode)
            self._next += 1
