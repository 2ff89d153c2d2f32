"""What a friction law is: a set of forces at rest, one force in motion (seed 001, eqs. 18, 20).

Symbols: s >= 0 speed (size of the relative velocity), T_k(s) kinetic force, T_s static limit, both for unit load.

    T in [-T_s, T_s]                   at relative velocity 0
    T = -T_k(|velocity|) sgn(velocity) otherwise

The graph has a vertical line at 0. It is left at T_s and entered again at T_k(0): the hysteresis of Fig. 1, shrunk to a
point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np

from dalembert.errors import ModelError

Array = np.ndarray

PROBES = np.concatenate([[0.0], np.logspace(-9.0, 4.0, 105)])
"""Speeds at which a new law is looked at, m/s or rad/s: from far below any event tolerance to beyond any machine."""

SLACK = 1e-12
"""Relative amount by which T_k(0) may exceed T_s through rounding."""


def is_number(value: Any) -> bool:
    """Say whether a value is one real number (NaN and infinity are)."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


class Law(ABC):
    """One force law; magnitudes per unit load: newton for a given limit, a coefficient where a reaction is the load."""

    @abstractmethod
    def kinetic(self, speed: Any, state: Any = None) -> Any:
        """Return T_k(speed), for a number or an array of speeds >= 0; `state` is (q, v, t) where the law needs it."""

    @abstractmethod
    def static(self, state: Any = None) -> float:
        """Return T_s, the limit at rest."""

    @property
    def needs_state(self) -> bool:
        """True where the law depends on q, v or t besides the relative velocity."""
        return False

    def force(self, velocity: Any, state: Any = None) -> Any:
        """Return the force on the system along the contact's direction, in motion: -T_k(|velocity|) sgn(velocity)."""
        return -np.sign(velocity) * self.kinetic(np.abs(velocity), state)

    def continued(self, speed: float, state: Any = None) -> float:
        """Return T_k, continued smoothly to speeds just below zero (by its cubic through 0, d, 2d, 3d, d = -speed).

        A step that overshoots the end of sliding then sees no kink, and its error estimate stays that of a smooth
        motion.
        """
        if speed >= 0.0:
            return float(self.kinetic(speed, state))
        T = np.asarray(self.kinetic(np.array([0.0, 1.0, 2.0, 3.0]) * -speed, state)) * np.ones(4)
        return float(4.0 * T[0] - 6.0 * T[1] + 4.0 * T[2] - T[3])

    def graph(self, speed: float, points: int = 101, state: Any = None) -> tuple[Array, Array]:
        """Return velocities and forces along the law's graph, from -speed to speed, the vertical line at 0 included."""
        if not (is_number(speed) and 0.0 < speed < np.inf) or not (isinstance(points, int) and points >= 2):
            raise ModelError(f"a graph needs a speed > 0 and at least 2 points a side; got {speed!r} and {points!r}")
        s = np.linspace(0.0, speed, points)
        T, limit = np.asarray(self.kinetic(s, state)) * np.ones(points), self.static(state)
        velocity = np.concatenate([-s[::-1], [0.0, 0.0], s])
        return velocity, np.concatenate([T[::-1], [limit, -limit], -T])

    def check(self, owner: str, state: Any = None) -> None:
        """Refuse a law that is not finite, not dissipative, or weaker at rest than in motion, naming its owner."""
        static, kinetic = (
            self.static(state),
            np.asarray(self.kinetic(PROBES, state), dtype=float) * np.ones(PROBES.size),
        )
        if not np.isfinite(static) or static < 0.0:
            raise ModelError(f"{owner}: the static limit is {static}; a limit must be finite and not negative")
        bad = np.flatnonzero(~(np.isfinite(kinetic) & (kinetic >= 0.0)))
        if bad.size:
            s, T = PROBES[bad[0]], kinetic[bad[0]]
            what = "is not dissipative: it pushes along the motion" if T < 0.0 else "is not finite"
            raise ModelError(f"{owner}: the friction law {what}; T_k = {T:.6g} at speed {s:.3g}")
        if kinetic[0] > static * (1.0 + SLACK):
            raise ModelError(
                f"{owner}: friction begins at T_k(0) = {kinetic[0]:.6g} in motion, above the static limit "
                f"{static:.6g}: what slips would be held at once. Raise the static limit"
            )
