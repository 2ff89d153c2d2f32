"""The slider's motion in closed form: between two events it is x = p + r t + A cos(w t) + B sin(w t).

Written without the library; events are zeros of it, bracketed on a fine grid and found by SciPy's `brentq`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from tests.pairs.slider import GRAVITY, SPRING, M, Motion

W = np.sqrt(SPRING / M)
GRID = 4000


@dataclass(frozen=True)
class Piece:
    """One motion from `start` to `end`: at rest at x (sign 0), or sliding in the direction of `sign`."""

    start: float
    end: float
    x: float
    v: float
    sign: int
    stuck: bool
    motion: Motion

    def __call__(self, t: float) -> tuple[float, float]:
        """Return height and velocity."""
        if self.stuck:
            return self.x, 0.0
        m = self.motion
        # k x = load + ramp t is the rest position that moves with the ramp
        load, rate = -M * GRAVITY - m.friction * self.sign, m.ramp / SPRING
        rest = (load + m.ramp * self.start) / SPRING
        A, B, s = self.x - rest, (self.v - rate) / W, t - self.start
        x = rest + rate * s + A * np.cos(W * s) + B * np.sin(W * s)
        return x, rate + W * (B * np.cos(W * s) - A * np.sin(W * s))


def pull(motion: Motion, x: float, t: float) -> float:
    """Return all forces but friction."""
    return -M * GRAVITY - SPRING * x + motion.ramp * t


def first_zero(f, a: float, b: float) -> float | None:
    """Return the first zero behind a at which f falls below zero, or None."""
    t = np.linspace(a, b, GRID)[1:]
    values = np.array([f(s) for s in t])
    below = np.flatnonzero(values < 0.0)
    if not below.size:
        return None
    i = int(below[0])
    return float(brentq(f, t[i - 1], t[i], xtol=1e-15)) if i else float(t[0])


def pieces(motion: Motion) -> tuple[list[Piece], list[tuple[float, str]]]:
    """Return the pieces of a motion, and its events as (time, word)."""
    t, x, v, found, events = 0.0, motion.x, motion.v, [], []
    while t < motion.duration:
        force = pull(motion, x, t)
        stuck = v == 0.0 and motion.friction > 0.0 and abs(force) <= motion.friction * (1.0 + 1e-12) and not (
            found and found[-1].stuck
        )  # fmt: skip
        sign = 0 if stuck else int(np.sign(v if v != 0.0 else force))
        piece = Piece(t, motion.duration, x, v, sign, stuck, motion)
        if stuck:
            zeros = [(first_zero(lambda s, x=x: motion.friction - abs(pull(motion, x, s)), t, motion.duration), "slip")]
        else:
            zeros = []
            if motion.friction:
                zeros.append((first_zero(lambda s, p=piece, d=sign: d * p(s)[1], t, motion.duration), "stop"))
            if motion.restitution is not None:
                zeros.append((first_zero(lambda s, p=piece: p(s)[0], t, motion.duration), "impact"))
        at, word = min(((z, word) for z, word in zeros if z is not None), default=(None, ""))
        if at is None:
            found.append(piece)
            break
        found.append(Piece(t, at, x, v, sign, stuck, motion))
        events.append((at, word))
        x, v = piece(at)
        if word == "impact":
            x, v = 0.0, -motion.restitution * v
        elif word == "stop":
            v = 0.0
        t = at
    return found, events


def states(motion: Motion, times) -> np.ndarray:
    """Return (x, v) at times, (N, 2); right behind an event where a time is one."""
    found, _ = pieces(motion)
    out = []
    for t in times:
        piece = next(p for p in reversed(found) if p.start <= t)
        out.append(piece(float(t)))
    return np.array(out)
