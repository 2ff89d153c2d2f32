# pyright: reportCallIssue=false, reportArgumentType=false
"""Contacts with heightfields, compiled: gaps, rows and rates; edges of cells that closed contacts cross.

Symbols: c centre of a ball, J, Jw its Jacobians (world axes), n normal of the surface below, or nearest; foot the place
on the surface. Within a cell the ground is smooth; at its edges the normal jumps: a point whose contact is closed is
stopped right before an edge and moved right behind it, and the impact of that instant says whether it stays. A sphere
touches edges themselves, and two slopes at once: it ends the run where the slopes around its foot differ.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, cube, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.simulate.contact.engine_memory import AT, BALLS, ROWS, TERMS
from dalembert.simulate.contact.surface_loops import SLOTS, cell, height_below, set_places, set_tangents
from dalembert.simulate.limits import ASIDE, FLAT, OUTSIDE, TOWARDS

CENTRE, SPEED, DRIFT, TURNING, JACOBIAN = 0, 3, 6, 9, 12
"""Places in a row of `balls`: centre, velocity, acceleration and angular acceleration at a = 0; J and Jw by rows."""

RADIUS, REACH, STEEP, TWIST, CELL = range(5)
"""Columns of `field_numbers`: of the ball; how far surfaces are looked at; how fast heights change over the speed; the
largest mixed derivative of heights; width of the narrowest cell."""

DOUBLINGS = 60
"""Doublings of a way at most."""


# ----------------------------------------------------------------------------------------------------------------------
# Terms: those of the kernel, then the rows of contacts with heightfields.


def _fields(address, first, stop, scratch):
    w = table_at(address, ROWS)
    calls, field_pair = whole_matrix(w, AT.calls), whole(w, AT.field_pair)
    invoke(calls[BALLS, 0], calls[BALLS, 1], calls[BALLS, 2])
    n = np.zeros(3)
    distance, normals, places = np.zeros(SLOTS), np.zeros((SLOTS, 3)), np.zeros((SLOTS, 3))
    balls, feet = matrix(w, AT.balls), matrix(w, AT.feet)
    table, heights = whole_matrix(w, AT.field_table), vector(w, AT.heights)
    numbers, gaps = matrix(w, AT.field_numbers), vector(w, AT.gaps)
    for f in range(field_pair.size):
        c, radius = balls[f, :3], numbers[f, RADIUS]
        if radius > 0.0:
            set_places(heights, table[f], c, numbers[f, REACH], distance, normals, places)
            gaps[field_pair[f]] = distance[0] - radius
            for j in range(3):
                n[j], feet[f, j] = normals[0, j], places[0, j]
        else:
            height = height_below(heights, table[f], c, n)
            gaps[field_pair[f]] = n[2] * (c[2] - height)
            feet[f, 0], feet[f, 1], feet[f, 2] = c[0], c[1], height
        set_rows(w, f, n)


fields_unit = Unit(_fields)


@nested
def twist_at(heights, table, place):
    """Return the mixed second derivative of the height below a place, 1/m."""
    i, _, dx = cell(heights[table[0] : table[0] + table[3]], place[0])
    j, _, dy = cell(heights[table[1] : table[1] + table[4]], place[1])
    first = table[2] + i * table[4] + j
    across = heights[first + table[4] + 1] - heights[first + table[4]] - heights[first + 1] + heights[first]
    return across * dx * dy


@nested
def set_rows(w, f, normal):
    """Write rows, drift, velocities and axes of a contact whose normal is known; zero where nothing is within reach."""
    i = whole(w, AT.field_pair)[f]
    W, balls, feet = matrix(w, AT.W), matrix(w, AT.balls), matrix(w, AT.feet)
    shift, velocity, v = vector(w, AT.shift), vector(w, AT.velocity), vector(w, AT.v)
    axes, n, row = cube(w, AT.axes)[i], v.size, balls[f]
    x, y, z = -matrix(w, AT.field_numbers)[f, RADIUS] * normal  # the arm from the centre to the foot
    touches = normal[0] != 0.0 or normal[1] != 0.0 or normal[2] != 0.0
    if touches:
        set_tangents(normal, axes)
    else:
        axes[:, :] = 0.0
    Jw = JACOBIAN + 3 * n
    for j in range(3):
        total = 0.0
        for b in range(n):
            w0, w1, w2 = row[Jw + b], row[Jw + n + b], row[Jw + 2 * n + b]
            value = axes[j, 0] * (row[JACOBIAN + b] + w1 * z - w2 * y)
            value += axes[j, 1] * (row[JACOBIAN + n + b] + w2 * x - w0 * z)
            value += axes[j, 2] * (row[JACOBIAN + 2 * n + b] + w0 * y - w1 * x)
            W[3 * i + j, b] = value
            total += value * v[b]
        velocity[3 * i + j] = total
        t0, t1, t2 = row[TURNING], row[TURNING + 1], row[TURNING + 2]
        drift = axes[j, 0] * (row[DRIFT] + t1 * z - t2 * y)
        drift += axes[j, 1] * (row[DRIFT + 1] + t2 * x - t0 * z)
        drift += axes[j, 2] * (row[DRIFT + 2] + t0 * y - t1 * x)
        shift[3 * i + j] = drift
    if touches:
        twist = twist_at(vector(w, AT.heights), whole_matrix(w, AT.field_table)[f], feet[f])
        shift[3 * i] -= 2.0 * normal[2] * twist * row[SPEED] * row[SPEED + 1]


# ----------------------------------------------------------------------------------------------------------------------
# Guards: of points the height, which is continuous over edges.


@nested
def field_of(w, i):
    """Return the number of contact i among those with heightfields, -1 where it is none."""
    field_pair = whole(w, AT.field_pair)
    for f in range(field_pair.size):
        if field_pair[f] == i:
            return f
    return -1


@nested
def is_point(w, f):
    """Return whether a contact is of a point with a heightfield."""
    return f >= 0 and matrix(w, AT.field_numbers)[f, RADIUS] == 0.0


@nested
def gap_and_rate(w, i, f):
    """Return the guard of an open contact and its rate, at the terms that were evaluated last."""
    gap, rate = vector(w, AT.gaps)[i], vector(w, AT.velocity)[3 * i]
    if is_point(w, f):
        up = cube(w, AT.axes)[i, 0, 2]
        return gap / up, rate / up
    return gap, rate


@nested
def room_around(w, f):
    """Return how far a foot is from the nearest line of the grid, seen from above; infinite without a heightfield."""
    if f < 0:
        return np.inf
    heights, table, foot = vector(w, AT.heights), whole_matrix(w, AT.field_table)[f], matrix(w, AT.feet)[f]
    least = np.inf
    for axis in range(2):
        for k in range(table[axis], table[axis] + table[3 + axis]):
            least = min(least, abs(heights[k] - foot[axis]))
    return least


# ----------------------------------------------------------------------------------------------------------------------
# Edges.


@nested
def set_cell(w, f):
    """Write the edges of the cell that a foot is in: lower and upper of x, of y."""
    heights, table, foot = vector(w, AT.heights), whole_matrix(w, AT.field_table)[f], matrix(w, AT.feet)[f]
    bounds = matrix(w, AT.cell_bounds)[f]
    for axis in range(2):
        low, high = -np.inf, np.inf
        for k in range(table[axis], table[axis] + table[3 + axis]):
            if heights[k] <= foot[axis]:
                low = heights[k]
            elif high == np.inf:
                high = heights[k]
        bounds[2 * axis], bounds[2 * axis + 1] = low, high


@nested
def room_in(w, f):
    """Return how far a foot is from the edges of the cell that was written last, negative outside."""
    foot, bounds = matrix(w, AT.feet)[f], matrix(w, AT.cell_bounds)[f]
    return min(foot[0] - bounds[0], bounds[1] - foot[0], foot[1] - bounds[2], bounds[3] - foot[1])


@nested
def foot_speed(w, f, out):
    """Write the velocity of a foot over the ground: that of the centre without its part along the normal."""
    row, i = matrix(w, AT.balls)[f], whole(w, AT.field_pair)[f]
    normal = cube(w, AT.axes)[i, 0]
    along = 0.0
    if not is_point(w, f):
        along = normal[0] * row[SPEED] + normal[1] * row[SPEED + 1] + normal[2] * row[SPEED + 2]
    for j in range(3):
        out[j] = row[SPEED + j] - along * normal[j]


@nested
def leaves(w, f):
    """Return whether a foot moves towards the nearest edge of its cell, and not along it."""
    foot, bounds, u = matrix(w, AT.feet)[f], matrix(w, AT.cell_bounds)[f], np.zeros(3)
    foot_speed(w, f, u)
    near = max(OUTSIDE, room_in(w, f))
    towards, speed = 0.0, np.sqrt(u[0] * u[0] + u[1] * u[1])
    for axis in range(2):
        if foot[axis] - bounds[2 * axis] <= near:
            towards = min(towards, u[axis])
        if bounds[2 * axis + 1] - foot[axis] <= near:
            towards = min(towards, -u[axis])
    return towards < -TOWARDS * speed


@nested
def on_edge(w, f, normal):
    """Return whether the foot of a sphere is where slopes around it differ from a normal."""
    if is_point(w, f):
        return False
    foot, n, place = matrix(w, AT.feet)[f], np.zeros(3), np.zeros(3)
    worst = 0.0
    for a in range(2):
        for b in range(2):
            place[0], place[1], place[2] = foot[0] + ASIDE * (2 * a - 1), foot[1] + ASIDE * (2 * b - 1), foot[2]
            height_below(vector(w, AT.heights), whole_matrix(w, AT.field_table)[f], place, n)
            for j in range(3):
                worst = max(worst, abs(n[j] - normal[j]))
    return worst > FLAT


@nested
def longest_step(w):
    """Return a step in which no closed contact passes through more than about one cell, at the last terms."""
    field_pair, closed = whole(w, AT.field_pair), flags(w, AT.closed)
    numbers, velocity, u = matrix(w, AT.field_numbers), vector(w, AT.velocity), np.zeros(3)
    longest = np.inf
    for f in range(field_pair.size):
        i = field_pair[f]
        if not closed[i]:
            continue
        foot_speed(w, f, u)
        slip = velocity[3 * i] ** 2 + velocity[3 * i + 1] ** 2 + velocity[3 * i + 2] ** 2
        speed = np.sqrt(max(slip, u[0] * u[0] + u[1] * u[1] + u[2] * u[2]))
        if speed > 0.0:
            longest = min(longest, numbers[f, CELL] / speed)
    return longest


@nested
def terms_at(w, q, v, t):
    """Evaluate the terms at a state."""
    calls = whole_matrix(w, AT.calls)
    here_q, here_v = vector(w, AT.q), vector(w, AT.v)
    for j in range(q.size):
        here_q[j] = q[j]
    for j in range(v.size):
        here_v[j] = v[j]
    vector(w, AT.time)[0] = t
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
