"""The places of a heightfield's surface that are nearest to a sphere, compiled.

Symbols: c centre of the sphere, p a place on the surface z(x, y), d = |c - p|, n = (c - p) / d; d < 0 below ground.

Over a cell the surface is z = z00 + a x + b y + t x y. Its place nearest to c is inside, where the gradient of d^2 is
zero (Newton's method; one step where t = 0), or on an edge, which is straight. What counts are places that are nearest
among all cells around them: a sphere on a floor beside a wall has two, one in a wedge of three slopes three. A place on
the border of a cell whose neighbour comes nearer is none: it would be a bump in a flat floor.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.bisection import count_up_to
from dalembert.kernel.loops import compiled, inner
from dalembert.simulate.limits import NEARER, NEAREST_FOUND, NO_DIRECTION

SLOTS = 3
"""Places at which a sphere can touch a heightfield at once."""

REACH = 1.5
"""Places of a sphere are looked for within this many radii, those of a point within as many cells."""

NEWTON = 20
"""Steps of Newton's method in a cell; 3 to 6 are usual, 1 where it is flat."""

SAME = 0.998
"""Normals whose cosine is above this (3.6 degrees) are one place: the nearer counts."""


@compiled
def on_segment(ax, ay, az, bx, by, bz, c):
    """Return d^2 and the parameter in [0, 1] of the point on the segment from a to b that is nearest to c."""
    x, y, z = bx - ax, by - ay, bz - az
    s = ((c[0] - ax) * x + (c[1] - ay) * y + (c[2] - az) * z) / (x * x + y * y + z * z)
    s = min(max(s, 0.0), 1.0)
    return (c[0] - ax - s * x) ** 2 + (c[1] - ay - s * y) ** 2 + (c[2] - az - s * z) ** 2, s


@compiled
def inside_patch(x0, y0, wx, wy, z00, z10, z01, z11, c, u, v):
    """Return whether Newton's method from (u, v) in [0, 1]^2 ends inside the patch, and where: d^2, u, v."""
    a, b, t = z10 - z00, z01 - z00, z11 - z10 - z01 + z00
    best = np.inf
    for _ in range(NEWTON):
        z, zu, zv = z00 + a * u + b * v + t * u * v, a + t * v, b + t * u
        ex, ey, ez = x0 + wx * u - c[0], y0 + wy * v - c[1], z - c[2]
        gu, gv = ex * wx + ez * zu, ey * wy + ez * zv
        huu, hvv, huv = wx * wx + zu * zu, wy * wy + zv * zv, zu * zv + ez * t
        if huu * hvv - huv * huv <= 0.0:
            huv = zu * zv  # Gauss and Newton: definite
        det = huu * hvv - huv * huv
        du, dv = -(hvv * gu - huv * gv) / det, -(huu * gv - huv * gu) / det
        u, v = u + du, v + dv
        if abs(u) > 3.0 or abs(v) > 3.0:
            return False, best, u, v
        if abs(du) + abs(dv) < NEAREST_FOUND:
            break
    if not (0.0 <= u <= 1.0 and 0.0 <= v <= 1.0):
        return False, best, u, v
    ex, ey = x0 + wx * u - c[0], y0 + wy * v - c[1]
    ez = z00 + a * u + b * v + t * u * v - c[2]
    return True, ex * ex + ey * ey + ez * ez, u, v


@compiled
def nearest_in_cell(x0, x1, y0, y1, z00, z10, z01, z11, c, p):
    """Write the place of a cell that is nearest to c; return d^2."""
    wx, wy = x1 - x0, y1 - y0
    best = np.inf
    twisted = abs(z11 - z10 - z01 + z00) > 0.0
    for start in range(2 if twisted else 1):
        u = min(max((c[0] - x0) / wx, 0.0), 1.0) if start == 0 else 0.5
        v = min(max((c[1] - y0) / wy, 0.0), 1.0) if start == 0 else 0.5
        inside, d2, u, v = inside_patch(x0, y0, wx, wy, z00, z10, z01, z11, c, u, v)
        if inside and d2 < best:
            best = d2
            p[0], p[1] = x0 + wx * u, y0 + wy * v
            p[2] = (1 - u) * ((1 - v) * z00 + v * z01) + u * ((1 - v) * z10 + v * z11)
    if best < np.inf and not twisted:
        return best
    for k in range(4):  # edges along x below and above, along y left and right
        if k < 2:
            y, za, zb = (y0, z00, z10) if k == 0 else (y1, z01, z11)
            d2, t = on_segment(x0, y, za, x1, y, zb, c)
            x = x1 if t == 1.0 else x0 + t * wx
        else:
            x, za, zb = (x0, z00, z01) if k == 2 else (x1, z10, z11)
            d2, t = on_segment(x, y0, za, x, y1, zb, c)
            y = y1 if t == 1.0 else y0 + t * wy
        if d2 < best:
            best = d2
            p[0], p[1], p[2] = x, y, za + t * (zb - za)
    return best


@compiled
def span(grid, x, reach):
    """Return the first and last cell, -1 and grid.size - 1 being those beyond the edges, that [x -+ reach] meets."""
    first = min(max(np.searchsorted(grid, x - reach, side="right") - 1, -1), grid.size - 1)
    last = min(max(np.searchsorted(grid, x + reach, side="right") - 1, -1), grid.size - 1)
    return first, last


@compiled
def cell_bounds(grid, i, x, reach):
    """Return the bounds of cell i, and the columns of the grid whose heights it has; beyond the edge it is level."""
    low = grid[i] if i >= 0 else min(x - reach, grid[0]) - reach
    high = grid[i + 1] if i + 1 < grid.size else max(x + reach, grid[i]) + reach
    return low, high, max(i, 0), min(i + 1, grid.size - 1)


@compiled
def fill_cells(gx, gy, z, c, reach, d2, places):
    """Write d^2 and the nearest place of every cell within reach; inf where a cell is farther."""
    i0, i1 = span(gx, c[0], reach)
    j0, j1 = span(gy, c[1], reach)
    for i in range(i0, i1 + 1):
        x0, x1, a, b = cell_bounds(gx, i, c[0], reach)
        hx = max(x0 - c[0], c[0] - x1, 0.0)
        for j in range(j0, j1 + 1):
            y0, y1, e, f = cell_bounds(gy, j, c[1], reach)
            hy = max(y0 - c[1], c[1] - y1, 0.0)
            z00, z10, z01, z11 = z[a, e], z[b, e], z[a, f], z[b, f]
            hz = max(min(z00, z10, z01, z11) - c[2], c[2] - max(z00, z10, z01, z11), 0.0)
            d2[i - i0, j - j0] = np.inf
            if hx * hx + hy * hy + hz * hz < reach * reach:
                distance = nearest_in_cell(x0, x1, y0, y1, z00, z10, z01, z11, c, places[i - i0, j - j0])
                d2[i - i0, j - j0] = distance if distance < reach * reach else np.inf


@compiled
def is_nearest(d2, places, i, j, gx, gy, i0, j0, slack):
    """Return whether no cell around the place of cell (i, j) comes nearer."""
    for k in range(max(i - 1, 0), min(i + 2, d2.shape[0])):
        for m in range(max(j - 1, 0), min(j + 2, d2.shape[1])):
            if (k, m) == (i, j) or not d2[k, m] < d2[i, j] - slack:
                continue
            x, y = gx[min(max(i0 + max(i, k), 0), gx.size - 1)], gy[min(max(j0 + max(j, m), 0), gy.size - 1)]
            touches_x = k == i or abs(places[i, j, 0] - x) <= NEARER * (gx[-1] - gx[0])
            touches_y = m == j or abs(places[i, j, 1] - y) <= NEARER * (gy[-1] - gy[0])
            if touches_x and touches_y:
                return False
    return True


@compiled
def set_normal(gx, gy, z, c, p, d, sign, i, j, reach, n):
    """Write the normal at a place p of cell (i, j): from p to c, or that of the slope where c is on it."""
    if d > NO_DIRECTION * reach:
        for k in range(3):
            n[k] = sign * (c[k] - p[k]) / d
        return
    x0, x1, a, b = cell_bounds(gx, i, c[0], reach)
    y0, y1, e, f = cell_bounds(gy, j, c[1], reach)
    u, v = (p[0] - x0) / (x1 - x0), (p[1] - y0) / (y1 - y0)
    n[0] = -((1 - v) * (z[b, e] - z[a, e]) + v * (z[b, f] - z[a, f])) / (x1 - x0)
    n[1] = -((1 - u) * (z[a, f] - z[a, e]) + u * (z[b, f] - z[b, e])) / (y1 - y0)
    n[2] = 1.0
    n /= np.sqrt(n[0] * n[0] + n[1] * n[1] + 1.0)


@compiled
def nearest_places(gx, gy, z, c, reach, below, distance, normals, places):
    """Write up to SLOTS distances (signed), normals and places of the surface nearest to c, nearest first.

    `below` says whether c is under the surface. Slots without a place get the distance `reach`, and no normal.
    """
    sign = -1.0 if below else 1.0
    for s in range(distance.size):
        distance[s] = sign * reach if s == 0 else reach
        normals[s, :] = 0.0
        places[s, 0], places[s, 1], places[s, 2] = c[0], c[1], c[2] - distance[s]
    i0, i1 = span(gx, c[0], reach)
    j0, j1 = span(gy, c[1], reach)
    d2, feet = np.zeros((i1 - i0 + 1, j1 - j0 + 1)), np.zeros((i1 - i0 + 1, j1 - j0 + 1, 3))
    fill_cells(gx, gy, z, c, reach, d2, feet)
    slack, n = NEARER * reach * reach, np.zeros(3)
    for s in range(distance.size):
        best = np.inf
        for i in range(d2.shape[0]):
            for j in range(d2.shape[1]):
                if not d2[i, j] < best or not is_nearest(d2, feet, i, j, gx, gy, i0, j0, slack):
                    continue
                set_normal(gx, gy, z, c, feet[i, j], np.sqrt(d2[i, j]), sign, i0 + i, j0 + j, reach, n)
                if is_new(n, normals, s):
                    best = d2[i, j]
                    distance[s] = sign * np.sqrt(best)
                    normals[s], places[s] = n, feet[i, j]
        if best == np.inf or below:  # under ground the way out is one
            return


@compiled
def is_new(n, normals, used):
    """Return whether a normal differs from those that are used."""
    for s in range(used):  # noqa: SIM110 - compiled
        if n[0] * normals[s, 0] + n[1] * normals[s, 1] + n[2] * normals[s, 2] > SAME:
            return False
    return True


@inner
def set_tangents(n, axes):
    """Write normal and two tangents by rows, as `geometry.tangents`."""
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    axes[0, 0], axes[0, 1], axes[0, 2] = n[0], n[1], n[2]
    axes[1, 0], axes[1, 1], axes[1, 2] = 1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]
    axes[2, 0], axes[2, 1], axes[2, 2] = b, sign + n[1] * n[1] * a, -n[1]


@compiled
def cell(grid, x):
    """Return cell, place in it, and 1 / its width (0 beyond the edge), as `shapes._cell`."""
    i = min(max(count_up_to(grid, x) - 1, 0), grid.size - 2)
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
