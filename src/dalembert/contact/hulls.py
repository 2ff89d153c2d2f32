"""Convex hulls of point clouds as the loops read them: vertices, neighbours along edges, faces as polygons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dalembert.contact.memory import HEAD, Hulls
from dalembert.errors import ModelError
from dalembert.first_use import LaterModule
from dalembert.types import Array

if TYPE_CHECKING:
    from scipy import spatial
else:
    spatial = LaterModule("scipy.spatial")

COPLANAR = 1e-7
"""Difference of unit normals, and of offsets over the size, below which triangles are one face."""


@dataclass(frozen=True, eq=False)
class ConvexPolytope:
    """A convex polytope.

    Attributes
    ----------
    vertices : (n, 3)
    faces
        Corners of every face, counter-clockwise seen from outside.
    normals : (faces, 3)
        Outward.
    volume
        m^3.
    error
        How far a point of the cloud is outside, metres: zero unless the hull was made coarser.
    """

    vertices: Array
    faces: tuple[tuple[int, ...], ...]
    normals: Array
    volume: float
    error: float = 0.0


def convex_hull(points: Array, what: str = "a hull", most: int | None = None) -> ConvexPolytope:
    """Return the convex hull of points (n, 3); with `most` vertices at most, inside of it, and with its error.

    Raises
    ------
    ModelError
        Fewer than four points, or all of them in one plane.
    """
    points = np.asarray(points, dtype=float)
    if points.ndim != 2 or points.shape[1:] != (3,) or not np.isfinite(points).all():
        raise ModelError(f"{what}: its points must be finite and (n, 3); they are {points.shape}")
    try:
        hull = spatial.ConvexHull(points)
    except (spatial.QhullError, ValueError) as error:
        raise ModelError(
            f"{what}: its {len(points)} points span no volume, so that it has no inside; use a box of some thickness"
        ) from error
    if most is not None and len(hull.vertices) > most:
        chosen = _farthest(points[hull.vertices], max(most, 4))
        coarse = _polytope(spatial.ConvexHull(points[hull.vertices][chosen]))
        offsets = np.array([n @ coarse.vertices[face[0]] for n, face in zip(coarse.normals, coarse.faces, strict=True)])
        outside = float((points[hull.vertices] @ coarse.normals.T - offsets).max())
        return replace(coarse, error=max(outside, 0.0))
    return _polytope(hull)


def _farthest(points: Array, most: int) -> Array:
    """Return points chosen one after the other, each farthest from those before: every region keeps one."""
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    near = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < most:
        chosen.append(int(np.argmax(near)))
        near = np.minimum(near, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)


def _polytope(hull: spatial.ConvexHull) -> ConvexPolytope:
    """Return a hull of SciPy with the triangles of a plane joined to one face."""
    used = np.unique(hull.simplices)
    index = np.full(len(hull.points), -1)
    index[used] = np.arange(len(used))
    vertices = hull.points[used]
    size = float(np.ptp(vertices, axis=0).max())
    triangles = index[hull.simplices]
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    faces, normals = [], []
    for members, n in _planes(hull, size):
        normals.append(n)
        if len(members) == 1:
            faces.append(tuple(map(int, triangles[members[0]])))
            continue
        corners = np.array(sorted({int(k) for triangle in members for k in index[hull.simplices[triangle]]}))
        centre = vertices[corners].mean(axis=0)
        x = vertices[corners[0]] - centre
        y = np.cross(n, x)
        angles = np.arctan2((vertices[corners] - centre) @ y, (vertices[corners] - centre) @ x)
        faces.append(tuple(int(k) for k in corners[np.argsort(angles)]))
    return ConvexPolytope(vertices, tuple(faces), np.array(normals), float(hull.volume))


def _planes(hull: spatial.ConvexHull, size: float) -> list[tuple[list[int], Array]]:
    """Return groups of triangles that lie in one plane, each with its normal: neighbours joined while they agree."""
    equations = hull.equations / [1.0, 1.0, 1.0, size]
    group = np.full(len(equations), -1)
    planes: list[tuple[list[int], Array]] = []
    for first in range(len(equations)):
        if group[first] >= 0:
            continue
        members, stack = [], [first]
        group[first] = len(planes)
        while stack:
            triangle = stack.pop()
            members.append(triangle)
            for other in hull.neighbors[triangle]:
                if group[other] < 0 and np.abs(equations[other] - equations[first]).max() <= COPLANAR:
                    group[other] = len(planes)
                    stack.append(int(other))
        planes.append((members, hull.equations[first, :3]))
    return planes


def packed(hulls: Sequence[ConvexPolytope], fields: Sequence[tuple[Array, Array, Array]] = ()) -> Hulls:
    """Return hulls, and height fields (x, y, z), in the two arrays of the loops."""
    vertices: list[Array] = []
    starts, near, face_starts, corners, around_starts, around, ranges = [0], [], [0], [], [0], [], []
    base = first_face = 0
    for hull in hulls:
        n = len(hull.vertices)
        neighbours: list[set[int]] = [set() for _ in range(n)]
        faces_of: list[list[int]] = [[] for _ in range(n)]
        for f, face in enumerate(hull.faces):
            for a, b in zip(face, (*face[1:], face[0]), strict=True):
                neighbours[a].add(base + b)
                neighbours[b].add(base + a)
                faces_of[a].append(first_face + f)
            corners += [base + k for k in face]
            face_starts.append(len(corners))
        for k in range(n):
            near += sorted(neighbours[k])
            starts.append(len(near))
            around += faces_of[k]
            around_starts.append(len(around))
        vertices.append(hull.vertices)
        ranges += [base, base + n, first_face, first_face + len(hull.faces)]
        base, first_face = base + n, first_face + len(hull.faces)
    f = [x.ravel() for x in vertices]
    normals = [hull.normals.ravel() for hull in hulls]
    at = 3 * base + sum(x.size for x in normals)
    table = []
    for x, y, z in fields:
        table += [at, len(x), len(y)]
        at += x.size + y.size + z.size
    values = [*f, *normals, *(np.asarray(part, float).ravel() for field in fields for part in field)]
    parts = [ranges, starts, near, face_starts, corners, around_starts, around, table]
    places = HEAD + np.cumsum([0, *map(len, parts)])
    head = [*places[1:8], 3 * base]
    i = np.concatenate([head, *(np.array(part, dtype=np.int64) for part in parts)]).astype(np.int64)
    return Hulls(i, np.ascontiguousarray(np.concatenate([*values, np.zeros(3)])))
