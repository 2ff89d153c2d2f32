"""Contact velocities that a time step leaves to the next one, compiled.

Symbols: u contact velocity, n normal, r radius and omega angular velocity of a sphere; n' the normal of the new step:

    u- = u - r omega x (n' - n)       the touching point moves on its sphere as the normal turns
"""

from __future__ import annotations

from dalembert.simulate.contact.pair_loops import DRIFT
from dalembert.tableau.graph_loops import compiled


@compiled
def meeting(w):
    """Return contact velocities before the impulses: of contacts that were closed, as the last step left them.

    Rows turn with their bodies from step to step, and velocities of free joints are those of their body axes: the new
    rows would see what rolls as going up and down. What turns truly is the normal, and with it the touching point.
    """
    before = w.W @ w.v
    for k in range(w.gaps.size):
        if w.warm[3 * k] <= 0.0 or not w.axes[k].any():
            continue
        u, s, n = w.left[k, :3], w.left[k, 3:6], w.axes[k, 0] - w.left[k, 6:]
        x = u[0] - s[1] * n[2] + s[2] * n[1]
        y = u[1] - s[2] * n[0] + s[0] * n[2]
        z = u[2] - s[0] * n[1] + s[1] * n[0]
        for i in range(3):
            before[3 * k + i] = w.axes[k, i, 0] * x + w.axes[k, i, 1] * y + w.axes[k, i, 2] * z
    return before


@compiled
def leave(w, pairs, u, v):
    """Keep of every pair: contact velocity in world axes, r omega of its spheres, normal."""
    n = v.size
    for k in range(w.gaps.size):
        w.left[k, :] = 0.0
        for j in range(3):
            for i in range(3):
                w.left[k, j] += w.axes[k, i, j] * u[3 * k + i]
            w.left[k, 6 + j] = w.axes[k, 0, j]
            for side in range(2):
                if pairs.radius[k, side] > 0.0:
                    turning = w.frames[pairs.frame[k, side], DRIFT + (3 + j) * n : DRIFT + (4 + j) * n]
                    w.left[k, 3 + j] += pairs.radius[k, side] * (turning @ v)
