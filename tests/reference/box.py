"""Bounded friction, exactly, in plain NumPy: the twin of `box_kernel.py`, by another algorithm.

Symbols: G Delassus matrix, g contact acceleration without the forces, lower <= x <= upper forces, c = G x + g. The
primal active set method with least-squares solutions on the free contacts; reads like the textbook, runs in
milliseconds.

Source: J. Nocedal, S. Wright, "Numerical Optimization", 2nd ed., section 16.5.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray

ZERO = 1e-13
"""A contact acceleration counts as zero up to this part of the terms it is summed from."""


def solve_box_plain(
    G: Float[Array, "m m"], g: Float[Array, " m"], lower: Float[Array, " m"], upper: Float[Array, " m"]
) -> tuple[Float[Array, " m"], int]:
    """Return optimal forces and the rounds; raises `ArithmeticError` where it does not end, which should not happen."""
    d = 1.0 / np.sqrt(np.where(np.diag(G) > 0.0, np.diag(G), 1.0))
    G, g, low, up = d[:, None] * G * d, d * g, lower / d, upper / d
    x = np.clip(np.zeros(g.size), low, up)
    free = (low < x) & (x < up)
    for turn in range(60 * g.size + 200):
        step, newton = _step(G, G @ x + g, free)
        room = np.where(step > 0.0, up - x, low - x) / np.where(step == 0.0, np.nan, step)
        reach = np.nanmin(room) if np.isfinite(room).any() else np.inf
        if reach < 1.0 or not newton:
            who = int(np.nanargmin(room))
            x = np.clip(x + reach * step, low, up)
            x[who], free[who] = (up if step[who] > 0.0 else low)[who], False
            continue
        x = x + step
        c, size = G @ x + g, np.abs(G) @ np.abs(x) + np.abs(g)
        pull = np.where(free | (low == up), -np.inf, np.where(x == low, -c, c) - ZERO * size)
        who = int(np.argmax(pull)) if pull.size else 0
        if not pull.size or pull[who] <= 0.0:
            return d * x, turn
        free[who] = True
    raise ArithmeticError("the active set method did not end")


def _step(G: Array, c: Array, free: Array) -> tuple[Array, bool]:
    """Return the Newton step on the free contacts, or, where c has a part outside the range of G, minus that part."""
    step = np.zeros(c.size)
    F = np.flatnonzero(free)
    if F.size:
        newton = np.linalg.lstsq(G[np.ix_(F, F)], -c[F], rcond=1e-12)[0]
        left = c[F] + G[np.ix_(F, F)] @ newton
        if np.abs(left).max() > 1e-10 * (np.abs(c).max() + np.abs(G).max() * np.abs(newton).max()):
            step[F] = -left
            return step, False
        step[F] = newton
    return step, True
