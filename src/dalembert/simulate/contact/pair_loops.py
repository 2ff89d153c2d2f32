"""Gaps and rows of all pairs, compiled: twin of `geometry.Geometry` without what only accelerations need.

Symbols: frames (F, 18 + 6 n) by rows R (9), p (3), two drifts (6), J (3 n), Jw (3 n) in world axes, as `trace_contacts`
has them; c centre of a sphere, n normal, W rows (3 k, nv) normal, tangent, tangent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.simulate.contact.surface_loops import SLOTS, nearest_places
from dalembert.tableau.graph_loops import compiled

PLANE, FIELD, SPHERES, LIMIT = range(4)
"""Kinds of pairs."""

DRIFT = 18
"""Where the Jacobians begin in a frame's row."""


class Pairs(NamedTuple):
    """All pairs as arrays; what a kind does not have is zero."""

    kind: np.ndarray
    frame: np.ndarray  # (k, 2)
    at: np.ndarray  # (k, 2, 3): centres in their frames
    radius: np.ndarray  # (k, 2)
    normal: np.ndarray  # (k, 3)
    offset: np.ndarray
    place: np.ndarray  # (k, 2): of a limited joint in q and v
    sign: np.ndarray
    bound: np.ndarray
    field: np.ndarray  # (k, 5): where x, y, z begin in `heights`, and their sizes
    slot: np.ndarray  # which place of a sphere on a heightfield
    reach: np.ndarray  # how far its places are looked for
    heights: np.ndarray
    mu: np.ndarray
    e: np.ndarray
    poisson: np.ndarray


@compiled
def set_tangents(n, axes):
    """Write normal and two tangents by rows, as `geometry.tangents`."""
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    axes[0, :] = n
    axes[1, 0], axes[1, 1], axes[1, 2] = 1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]
    axes[2, 0], axes[2, 1], axes[2, 2] = b, sign + n[1] * n[1] * a, -n[1]


@compiled
def cell(grid, x):
    """Return cell, place in it, and 1 / its width (0 beyond the edge), as `shapes._cell`."""
    i = min(max(np.searchsorted(grid, x, side="right") - 1, 0), grid.size - 2)
    width = grid[i + 1] - grid[i]
    u = (x - grid[i]) / width
    return i, min(max(u, 0.0), 1.0), 1.0 / width if 0.0 <= u <= 1.0 else 0.0


@compiled
def height_below(heights, field, c, n):
    """Return the height below c and write the unit normal there, as `Heightfield.at`."""
    i, u, dx = cell(heights[field[0] : field[0] + field[3]], c[0])
    j, w, dy = cell(heights[field[1] : field[1] + field[4]], c[1])
    first = field[2] + i * field[4] + j
    z00, z01, z10, z11 = heights[first], heights[first + 1], heights[first + field[4]], heights[first + field[4] + 1]
    n[0] = -((1 - w) * (z10 - z00) + w * (z11 - z01)) * dx
    n[1] = -((1 - u) * (z01 - z00) + u * (z11 - z10)) * dy
    n[2] = 1.0
    n /= np.sqrt(n[0] * n[0] + n[1] * n[1] + 1.0)
    return (1 - u) * ((1 - w) * z00 + w * z01) + u * ((1 - w) * z10 + w * z11)


@compiled
def set_places(heights, field, c, reach, distance, normals, places):
    """Write the places at which a sphere touches a heightfield, as `Heightfield.nearest`."""
    n = np.zeros(3)
    gx, gy = heights[field[0] : field[0] + field[3]], heights[field[1] : field[1] + field[4]]
    z = heights[field[2] : field[2] + field[3] * field[4]].reshape((field[3], field[4]))
    under = c[2] < height_below(heights, field, c, n)
    nearest_places(gx, gy, z, c, reach, under, distance, normals, places)


@compiled
def set_centre(frame, at, c, d):
    """Write the arm d of a centre from its frame's origin, in world axes, and the centre c."""
    for i in range(3):
        d[i] = frame[3 * i] * at[0] + frame[3 * i + 1] * at[1] + frame[3 * i + 2] * at[2]
        c[i] = frame[9 + i] + d[i]


@compiled
def add_point(frame, arm, sign, axes, rows):
    """Add the rows of the velocity of the point at `arm` from the frame's origin, along the axes."""
    n = rows.shape[1]
    for j in range(n):
        w0, w1, w2 = frame[DRIFT + 3 * n + j], frame[DRIFT + 4 * n + j], frame[DRIFT + 5 * n + j]
        x = frame[DRIFT + j] + w1 * arm[2] - w2 * arm[1]
        y = frame[DRIFT + n + j] + w2 * arm[0] - w0 * arm[2]
        z = frame[DRIFT + 2 * n + j] + w0 * arm[1] - w1 * arm[0]
        for i in range(3):
            rows[i, j] += sign * (axes[i, 0] * x + axes[i, 1] * y + axes[i, 2] * z)


@compiled
def fill_pairs(pairs, frames, q, gaps, W, axes):
    """Write gaps, rows and axes of all pairs."""
    W[:, :] = 0.0
    c1, d1, c2, d2, n = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    away, normals, places = np.zeros(SLOTS), np.zeros((SLOTS, 3)), np.zeros((SLOTS, 3))
    for k in range(pairs.kind.size):
        kind, rows = pairs.kind[k], W[3 * k : 3 * k + 3]
        if kind == LIMIT:
            gaps[k] = pairs.sign[k] * (q[pairs.place[k, 0]] - pairs.bound[k])
            rows[0, pairs.place[k, 1]] = pairs.sign[k]
            axes[k] = 0.0
            continue
        one = frames[pairs.frame[k, 0]]
        set_centre(one, pairs.at[k, 0], c1, d1)
        if kind == PLANE:
            n[:] = pairs.normal[k]
            gaps[k] = n[0] * c1[0] + n[1] * c1[1] + n[2] * c1[2] - pairs.offset[k] - pairs.radius[k, 0]
        elif kind == FIELD:
            if pairs.slot[k] == 0:
                set_places(pairs.heights, pairs.field[k], c1, pairs.reach[k], away, normals, places)
            gaps[k] = away[pairs.slot[k]] - pairs.radius[k, 0]
            n[:] = normals[pairs.slot[k]]
            if not n.any():  # nothing within reach
                axes[k] = 0.0
                continue
        else:
            set_centre(frames[pairs.frame[k, 1]], pairs.at[k, 1], c2, d2)
            distance = np.sqrt((c1[0] - c2[0]) ** 2 + (c1[1] - c2[1]) ** 2 + (c1[2] - c2[2]) ** 2)
            for i in range(3):
                n[i] = (c1[i] - c2[i]) / distance if distance > 0.0 else (1.0 if i == 2 else 0.0)
            gaps[k] = distance - pairs.radius[k, 0] - pairs.radius[k, 1]
        set_tangents(n, axes[k])
        add_point(one, d1 - pairs.radius[k, 0] * n, 1.0, axes[k], rows)
        if kind == SPHERES:
            add_point(frames[pairs.frame[k, 1]], d2 + pairs.radius[k, 1] * n, -1.0, axes[k], rows)
