"""Hulls of meshes: read once, scaled, with a note where a mesh is not convex or not closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.contact.hulls import ConvexPolytope, convex_hull
from dalembert.errors import ModelError
from dalembert.readers.meshes import read_mesh
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.parts import CollisionShape

NAMED = 8
"""Names in a note; the rest is counted."""

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
    hollow: list[tuple[float, str]] = field(default_factory=list)
    open_meshes: list[str] = field(default_factory=list)

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
        what += f" ({Path(shape.file).name})"
        if self.decompose is not None:
            vertices, faces = triangles(shape.file)
            parts = self.decompose(vertices * shape.size, faces)
            return tuple(self._coarse(np.asarray(part, float), what) for part in parts)
        changed = Path(shape.file).stat().st_mtime_ns if Path(shape.file).is_file() else 0
        hull, share = hull_of_file(shape.file, changed, shape.size, self.most_vertices)
        self._note_error(hull, what)
        if share is None:
            self.open_meshes.append(f"{shape.name!r}")
        elif share < HOLLOW:
            self.hollow.append((share, f"{shape.name!r}"))
        return (hull,)

    def _coarse(self, points: Array, what: str) -> ConvexPolytope:
        hull = convex_hull(np.unique(points, axis=0), what, self.most_vertices)
        self._note_error(hull, what)
        return hull

    def _note_error(self, hull: ConvexPolytope, what: str) -> None:
        if hull.error:
            self.notes.append(
                f"{what}: its hull has {len(hull.vertices)} vertices; up to {hull.error:.2g} m of the mesh are outside"
            )

    def all_notes(self) -> list[str]:
        """Return the notes, with one line for all meshes that are not closed and one for those that are not convex."""
        lines = list(self.notes)
        if self.hollow:
            worst = ", ".join(f"{what} {share:.0%}" for share, what in sorted(self.hollow)[:NAMED])
            more = f" and {len(self.hollow) - NAMED} more" if len(self.hollow) > NAMED else ""
            words = f"{len(self.hollow)} meshes are not convex and touch with their convex hulls, of which they fill"
            lines.append(f"{words}: {worst}{more}; decompose= takes convex parts")
        if self.open_meshes:
            shown = ", ".join(self.open_meshes[:NAMED])
            more = f" and {len(self.open_meshes) - NAMED} more" if len(self.open_meshes) > NAMED else ""
            lines.append(
                f"{len(self.open_meshes)} meshes are not closed and touch with their convex hulls: {shown}{more}"
            )
        return lines


@lru_cache(maxsize=512)
def hull_of_file(
    path: str, changed: int, scale: tuple[float, ...], most: int | None
) -> tuple[ConvexPolytope, float | None]:
    """Return the hull of a mesh, and which share of it the mesh fills; None for one with an open edge.

    A file is read once as long as it does not change.
    """
    vertices, faces = triangles(path)
    vertices = vertices * scale
    hull = convex_hull(vertices, path, most)
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True)
    if (counts % 2).any():
        return hull, None
    a, b, c = (vertices[faces[:, k]] - vertices[0] for k in range(3))
    return hull, abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6.0 / hull.volume


def triangles(path: str) -> tuple[Array, Array]:
    """Return vertices (n, 3) and triangles (m, 3) of a file; vertices at one place are one."""
    if not Path(path).is_file():
        raise ModelError(f"the mesh {path!r} is not there")
    parts = read_mesh(path, most=None)
    if not parts:
        raise ModelError(f"{path}: the mesh has no triangles")
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    vertices = np.concatenate([part.vertices for part in parts])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts[:-1], strict=True)])
    unique, index = np.unique(vertices, axis=0, return_inverse=True)
    return unique, index.reshape(-1)[faces]
