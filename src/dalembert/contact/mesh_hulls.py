"""Hulls of meshes: read once, scaled, with a note where a mesh is not convex or not closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.contact.hulls import ConvexPolytope, convex_hull
from dalembert.errors import ModelError
from dalembert.readers.meshes import read_mesh
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.parts import CollisionShape

HOLLOW = 0.95
"""Share of the hull's volume below which a mesh is called not convex."""


@dataclass
class HullMaker:
    """Makes hulls, and notes what they leave out.

    Attributes
    ----------
    most_vertices
        Of a hull, or None.
    decompose
        A function (vertices, faces) -> convex parts [(n, 3), ...], or None for the hull of the whole.
    """

    most_vertices: int | None = None
    decompose: Callable[[Array, Array], Any] | None = None
    notes: list[str] = field(default_factory=list)
    made: dict[Any, tuple[ConvexPolytope, ...]] = field(default_factory=dict)

    def hulls_of(self, shape: CollisionShape) -> tuple[ConvexPolytope, ...]:
        """Return the convex parts of a mesh: one, unless it is to be decomposed."""
        key = (shape.file, shape.size) if shape.points is None else id(shape.points)
        if key not in self.made:
            self.made[key] = self._make(shape)
        return self.made[key]

    def _make(self, shape: CollisionShape) -> tuple[ConvexPolytope, ...]:
        what = f"collision shape {shape.name!r}"
        if shape.points is not None:
            return (self._coarse(np.asarray(shape.points, float), what),)
        vertices, faces = triangles(shape.file)
        vertices = vertices * shape.size
        what += f" ({Path(shape.file).name})"
        if self.decompose is not None:
            return tuple(self._coarse(np.asarray(part, float), what) for part in self.decompose(vertices, faces))
        hull = self._coarse(vertices, what)
        self._judge(vertices, faces, hull, what)
        return (hull,)

    def _coarse(self, points: Array, what: str) -> ConvexPolytope:
        hull = convex_hull(np.unique(points, axis=0), what, self.most_vertices)
        if hull.error:
            self.notes.append(
                f"{what}: its hull has {len(hull.vertices)} vertices; up to {hull.error:.2g} m of the mesh are outside"
            )
        return hull

    def _judge(self, vertices: Array, faces: Array, hull: ConvexPolytope, what: str) -> None:
        """Note a mesh with an open edge, or one that fills less than its hull."""
        edges = Counter(
            tuple(sorted(map(int, edge))) for face in faces for edge in zip(face, np.roll(face, -1), strict=True)
        )
        open_edges = sum(count % 2 for count in edges.values())
        if open_edges:
            self.notes.append(f"{what}: the mesh is not closed ({open_edges} open edges); its convex hull touches")
            return
        a, b, c = (vertices[faces[:, k]] - vertices[0] for k in range(3))
        volume = abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6.0
        if volume < HOLLOW * hull.volume:
            self.notes.append(
                f"{what}: the mesh is not convex, it fills {volume / hull.volume:.0%} of its convex hull, which touches"
            )


def triangles(path: str) -> tuple[Array, Array]:
    """Return vertices (n, 3) and triangles (m, 3) of a file; vertices at one place are one."""
    if not Path(path).is_file():
        raise ModelError(f"the mesh {path!r} is not there")
    parts = read_mesh(path)
    if not parts:
        raise ModelError(f"{path}: the mesh has no triangles")
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    vertices = np.concatenate([part.vertices for part in parts])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts[:-1], strict=True)])
    unique, index = np.unique(vertices, axis=0, return_inverse=True)
    return unique, index.reshape(-1)[faces]
