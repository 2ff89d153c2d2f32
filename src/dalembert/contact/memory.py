"""Memory of the loops: shapes and work space as records, hulls and height fields in two arrays.

A compiled loop passes a record as one pointer; a tuple of arrays costs ten words an array at every call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.types import Array

CORNERS = 64
"""Corners of a polygon that is clipped."""

VERTICES, FACES = 256, 512
"""Of the polytope that grows in the difference of two shapes."""

SHAPE = np.dtype([
    ("kind", "i8"), ("hull", "i8"), ("body", "i8"),
    ("size", "f8", (3,)), ("R", "f8", (3, 3)), ("p", "f8", (3,)),
    ("place_R", "f8", (3, 3)), ("place_p", "f8", (3,)),
    ("middle", "f8", (3,)), ("half", "f8", (3,)), ("low", "f8", (3,)), ("high", "f8", (3,)), ("reach", "f8"),
])  # fmt: skip
"""A shape: which body it is on (-1 the ground), where it stands there (`place_R`, `place_p`) and in the world (`R`,
`p`).

`middle`, `half`: the box around it in its own axes; `low`, `high`: the box along the world's axes; `reach`: the
greatest distance of its points from its origin.
"""

WORK = np.dtype([
    ("simplex", "f8", (4, 9)), ("weights", "f8", (4,)), ("v", "f8", (3,)), ("guess", "i8", (2,)),
    ("points", "f8", (VERTICES, 9)), ("faces", "i8", (FACES, 3)), ("planes", "f8", (FACES, 4)),
    ("alive", "i8", (FACES,)), ("seen", "i8", (FACES,)), ("rim", "i8", (FACES, 2)),
    ("edge", "f8", (2, 7)), ("a", "f8", (3,)), ("b", "f8", (3,)), ("n", "f8", (3,)), ("distance", "f8"),
    ("polygon", "f8", (3, CORNERS, 3)), ("label", "i8", (3, CORNERS, 2)), ("normal", "f8", (3, 3)),
    ("spread", "f8", (CORNERS,)), ("contacts", "f8", (8, 7)), ("features", "i8", (8,)), ("rounds", "i8", (3,)),
    ("triangle", SHAPE), ("corners", "f8", (3, 3)), ("beyond", "f8", (3, 3)), ("cell", "f8", (7,)),
])  # fmt: skip
"""Work space of one thread.

simplex, points
    Rows w = a - b, a, b of support points.
v
    The direction in which a search begins, and in which it ended.
faces, planes, alive, seen, rim
    The polytope of EPA: vertices of faces, their normals and offsets, whether they are there, those that a point sees.
edge
    What each core touches with: start, direction, length.
a, b, n, distance
    Nearest points of two cores, the unit normal from the first to the second, the signed distance.
polygon, label, normal, spread
    Faces that are clipped, numbers of their corners, normals, distances of corners.
contacts, features
    The answer for a pair.
triangle, corners, beyond, cell
    A triangle of a height field, the corners of its neighbours, whether there are such, its normal.
rounds
    Of GJK, EPA and Newton's method, for measurements.
"""


class Hulls(NamedTuple):
    """All convex hulls and height fields of a scene in two arrays.

    Attributes
    ----------
    i
        `HEAD` starts of: neighbours' starts, neighbours, faces' starts, corners of faces, starts of faces around
        vertices, faces around vertices, height fields, and the start of the faces' normals in `f`; then first and last
        vertex, first and last face of every hull.
    f
        Vertices (3 each), normals of faces (3 each), then x, y and heights of height fields.
    """

    i: Array
    f: Array


HEAD = 8
NEIGHBOUR_STARTS, NEIGHBOURS, FACE_STARTS, FACE_CORNERS, AROUND_STARTS, AROUND, FIELDS, NORMALS = range(HEAD)


def work_space() -> Array:
    """Return the work space of one thread, a record array (1,)."""
    return np.zeros(1, WORK)
