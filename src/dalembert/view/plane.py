"""A picture drawn in a plane: lines, circles and polygons in pixels over time, for SVG and films.

Mechanisms that move in a plane are seen at right angles to it; others in parallel projection. Meshes are not drawn in a
plane: generated shapes stand in for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.types import Array
from dalembert.view.body_shapes import PIN, Shape, generated
from dalembert.view.colors import FORCE_COLORS
from dalembert.view.picture import Connector, Force, Picture, normal_of

GROUND, SPRING, ROD = "#9aa3ad", "#6c7a89", "#7d8894"

MARGIN = 0.09
"""Free space around the drawing, of its larger side."""

SQUARE_ON = 1.0 - 1e-9
"""Cosine from which on an axis is looked at along itself."""

OUTLINE = 24
"""Corners of an outline."""

SHADES = (0.86, 0.74, 1.08)
"""Brightness of the faces of a box across its x, y and z axes."""

TURNS = 9
"""Bends of a spring's zigzag."""


@dataclass
class Item:
    """A line, circle or polygon; hollow where it has no mass.

    `points` (N, k, 2) are pixels, y down; `local` (k, 2) are those of a body that moves as a whole, by the pose of its
    number in `PlaneDrawing.poses`.
    """

    kind: str
    points: Array
    color: str
    width: float = 0.0
    opacity: float = 1.0
    hollow: bool = False
    local: Array | None = None
    pose: int = -1


@dataclass
class PlaneDrawing:
    """What is drawn, back to front.

    Attributes
    ----------
    poses
        Translations (N, 2) and angles (N,) in pixels and degrees, clockwise, of bodies that move in the plane.
    """

    width: float
    height: float
    t: Array
    title: str
    items: list[Item] = field(default_factory=list)
    poses: list[tuple[Array, Array]] = field(default_factory=list)


class _Projection:
    """From the world to pixels."""

    def __init__(self, picture: Picture, width: float) -> None:
        self.normal = normal_of(picture)
        if self.normal is not None and any(picture.mechanism.gravity) and abs(self.normal @ picture.up) > SQUARE_ON:
            self.normal = None  # a door: from above one would see its edge alone
        back = np.asarray(picture.view, float)
        if self.normal is not None:
            back = self.normal * (1.0 if self.normal @ back > 0.0 else -1.0)
        back = back / np.linalg.norm(back)
        up = picture.up if abs(picture.up @ back) < SQUARE_ON else np.eye(3)[1] if abs(back[1]) < 0.9 else np.eye(3)[2]
        right = np.cross(up, back)
        self.right = right / np.linalg.norm(right)
        self.up = np.cross(back, self.right)
        self.back = back
        points = _extent(picture, self)
        low, high = points.min(axis=0), points.max(axis=0)
        room = MARGIN * max(*(high - low), 0.2 * picture.size)
        low, high = low - room, high + room
        self.scale = width / (high[0] - low[0])
        if self.scale * (high[1] - low[1]) > width:
            self.scale = width / (high[1] - low[1])
        self.low, self.high = low, high
        self.size = self.scale * (high - low)

    def flat(self, points: Array) -> Array:
        """Return places (..., 3) in metres along right and up."""
        return np.stack([points @ self.right, points @ self.up], axis=-1)

    def pixels(self, points: Array) -> Array:
        """Return places (..., 3) in pixels, y down."""
        flat = self.flat(np.asarray(points, float))
        return np.stack([flat[..., 0] - self.low[0], self.high[1] - flat[..., 1]], axis=-1) * self.scale

    def seen_flat(self, axis: Array) -> bool:
        """Say whether an axis points to the eye."""
        return abs(float(axis @ self.back)) > SQUARE_ON


def _extent(picture: Picture, projection: Any) -> Array:
    """Return where bodies, anchors, springs and arrows come to, (K, 2)."""
    every = max(1, picture.t.size // 40)
    R, p = picture.rotations[::every], picture.positions[::every]
    clouds = []
    for i, shapes in enumerate(_solid(picture)):
        for shape in shapes:
            corners = _corners(shape)
            clouds.append(p[:, i, None] + np.einsum("nij,kj->nki", R[:, i], corners))
    clouds += [_corners(shape)[None] for shape in picture.drawing.ground if shape.kind not in ("plane", "mesh")]
    clouds.append(picture.outline[None])
    if not any(cloud.size for cloud in clouds):
        clouds = [np.array([[[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]]) * picture.size]
    return np.concatenate([projection.flat(cloud).reshape(-1, 2) for cloud in clouds])


def _solid(picture: Picture) -> list[list[Shape]]:
    """Return the shapes of every body without meshes; generated ones where the file has nothing but meshes."""
    shapes = [[shape for shape in body if shape.kind != "mesh"] for body in picture.drawing.bodies]
    return shapes if any(shapes) else generated(picture.mechanism, picture.size)


def _corners(shape: Shape) -> Array:
    """Return points of a shape in the body's frame whose hull holds it."""
    R, p, s = np.asarray(shape.placement.rotation), np.asarray(shape.placement.position), shape.size
    if shape.kind in ("capsule", "cylinder"):
        half = np.array([s[0], s[0], s[1] / 2 + (s[0] if shape.kind == "capsule" else 0.0)])
    elif shape.kind == "sphere":
        half = np.full(3, s[0])
    elif shape.kind == "ellipsoid":
        half = np.asarray(s)
    else:
        half = np.asarray(s) / 2
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    return p + (signs * half) @ R.T


# ----------------------------------------------------------------------------------------------------------------------
# The drawing: ground, bodies, springs, forces.


def drawn(picture: Picture, width: float = 560.0) -> PlaneDrawing:
    """Return the drawing of a picture, `width` pixels wide or high at most."""
    view = _Projection(picture, width)
    drawing = PlaneDrawing(float(view.size[0]), float(view.size[1]), picture.t, picture.title)
    items = drawing.items
    items += _grounds(picture, view)
    items += [_anchor(place, view, picture) for place in picture.anchors]
    for rotations, positions in picture.ghosts:
        N = picture.t.size
        R = np.broadcast_to(rotations, (N, *rotations.shape[1:]))
        items += _bodies(picture, view, R, np.broadcast_to(positions, (N, *positions.shape[1:])), 0.25)
    items += [_link(picture, link, view) for link in picture.links]
    bodies = _bodies(picture, view, picture.rotations, picture.positions, 1.0, drawing)
    items += bodies
    items += _arrows(picture, view)
    return drawing


def _bodies(
    picture: Picture, view: _Projection, R: Array, p: Array, opacity: float, drawing: PlaneDrawing | None = None
) -> list[Item]:
    """Return the bodies back to front; of a mechanism in a plane as shapes that move as a whole."""
    items: list[tuple[float, Item]] = []
    rigid = view.normal is not None and drawing is not None
    for i, shapes in enumerate(_solid(picture)):
        pose = -1
        if rigid and shapes and drawing is not None:
            pose = len(drawing.poses)
            drawing.poses.append(_pose(view, R[:, i], p[:, i]))
        for shape in shapes:
            center = p[:, i] + R[:, i] @ np.asarray(shape.placement.position)
            depth = float(np.mean(center @ view.back)) + (picture.size if shape.color == PIN and rigid else 0.0)
            for item in _items(shape, view, R[:, i], p[:, i], opacity):
                if pose >= 0 and drawing is not None:
                    item.pose, item.local = (
                        pose,
                        _unposed(item.points[0], *(frames[0] for frames in drawing.poses[pose])),
                    )
                items.append((depth, item))
    return [item for _, item in sorted(items, key=lambda pair: pair[0])]


def _pose(view: _Projection, R: Array, p: Array) -> tuple[Array, Array]:
    """Return where a body that moves in the plane is: pixels, and degrees clockwise."""
    turned = R @ R[0].T @ view.right
    angle = np.unwrap(np.arctan2(turned @ view.up, turned @ view.right))
    return view.pixels(p), -np.rad2deg(angle)


def _unposed(points: Array, place: Array, angle: float) -> Array:
    c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    return (points - place) @ np.array([[c, -s], [s, c]])


def _items(shape: Shape, view: _Projection, R: Array, p: Array, opacity: float) -> list[Item]:
    """Return one solid as it is seen: a line, a circle, its outline, or the faces of a box that turn in space."""
    X, s = shape.placement, shape.size
    color = f"#{shape.color:06x}"
    see = opacity * shape.opacity
    if shape.opacity < 1.0 and shape.color == 0xFFFFFF:
        color, see = ROD, opacity
    center = np.asarray(X.position)
    axis = np.asarray(X.rotation)[:, 2]

    def at(*places: Array) -> Array:
        return view.pixels(p[:, None] + np.einsum("nij,kj->nki", R, np.array(places)))

    hollow = shape.opacity < 1.0
    end_on = view.normal is not None and view.seen_flat(R[0] @ axis)
    if shape.kind == "capsule" or (shape.kind == "cylinder" and not end_on and s[1] > 2 * s[0]):
        half = s[1] / 2 * axis
        return [Item("line", at(center - half, center + half), color, 2 * s[0] * view.scale, see, hollow)]
    if shape.kind == "sphere" or (shape.kind == "cylinder" and end_on):
        return [Item("circle", at(center), color, s[0] * view.scale, see, hollow)]
    if shape.kind == "box" and view.normal is None:
        return _faces(shape, view, R, p, color, see)
    if shape.kind == "cylinder":
        angle = 2 * np.pi * np.arange(OUTLINE) / OUTLINE
        rim = np.column_stack([s[0] * np.cos(angle), s[0] * np.sin(angle), np.full(OUTLINE, s[1] / 2)])
        cloud = center + np.concatenate([rim, rim * [1, 1, -1]]) @ np.asarray(X.rotation).T
    else:
        cloud = _corners(shape)
    return [Item("polygon", _outlines(at(*cloud), view.normal is not None), color, 0.0, see, hollow)]


def _faces(shape: Shape, view: _Projection, R: Array, p: Array, color: str, see: float) -> list[Item]:
    """Return the six faces of a box, each as a point while it is turned away; upper ones are lighter, sides darker."""
    X, half = np.asarray(shape.placement.rotation), np.asarray(shape.size) / 2
    center = np.asarray(shape.placement.position)
    items = []
    for k in range(3):
        for sign in (-1.0, 1.0):
            normal, u, w = sign * np.eye(3)[k], np.eye(3)[(k + 1) % 3], np.eye(3)[(k + 2) % 3]
            square = np.array([half * (normal + a * u + b * w) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
            corners = view.pixels(p[:, None] + np.einsum("nij,kj->nki", R, center + square @ X.T))
            away = R @ X @ normal @ view.back <= 0.0
            corners[away] = corners[away].mean(axis=1, keepdims=True)
            items.append(Item("polygon", corners, _shaded(color, SHADES[k]), 0.0, see))
    return items


def _shaded(color: str, factor: float) -> str:
    parts = [min(255, round(int(color[i : i + 2], 16) * factor)) for i in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in parts)


def _outlines(points: Array, rigid: bool) -> Array:
    """Return the convex outlines of points (N, k, 2), all with the same number of corners, in the same order."""
    if rigid:  # a shape that moves as a whole keeps its corners
        from scipy.spatial import ConvexHull, QhullError

        try:
            return points[:, ConvexHull(points[0]).vertices]
        except (QhullError, ValueError):
            return points[:, :3]
    angle = 2 * np.pi * np.arange(OUTLINE) / OUTLINE
    directions = np.column_stack([np.cos(angle), np.sin(angle)])
    furthest = np.argmax(np.einsum("nkc,dc->ndk", points, directions), axis=2)
    return np.take_along_axis(points, furthest[..., None], axis=1)


def _grounds(picture: Picture, view: _Projection) -> list[Item]:
    """Return planes that are seen edge on as lines, rails as lines."""
    items = []
    for shape in picture.drawing.ground:
        R, p = np.asarray(shape.placement.rotation), np.asarray(shape.placement.position)
        if shape.kind == "plane" and abs(R[:, 2] @ view.back) < 1e-6:
            along = np.cross(R[:, 2], view.back)
            middle = p + along * (along @ (picture.positions.reshape(-1, 3).mean(axis=0) - p))
            far = 0.75 * view.size.max() / view.scale * along
            items.append(Item("line", view.pixels(np.array([[middle - far, middle + far]])), GROUND, 2.0))
        elif shape.kind not in ("plane", "mesh"):
            still = np.eye(3)[None], np.zeros((1, 3))
            items += _items(shape, view, *still, 1.0)
    return items


def _anchor(place: Array, view: _Projection, picture: Picture) -> Item:
    """Return the triangle below a place that is tied to the ground."""
    s = 0.05 * picture.size
    corners = np.array([place, place - 1.5 * s * view.up - s * view.right, place - 1.5 * s * view.up + s * view.right])
    return Item("polygon", view.pixels(corners)[None], "#c3c9d0")


def _link(picture: Picture, link: Connector, view: _Projection) -> Item:
    """Return a rod as a line, a spring as a zigzag."""
    ends = view.pixels(picture.ends_of_link(link))
    if link.kind == "rod":
        return Item("line", ends, ROD, 0.02 * picture.size * view.scale, 1.0, hollow=True)
    a, d = ends[:, :1], ends[:, 1:] - ends[:, :1]
    u = np.concatenate([[0.0, 0.12], np.linspace(0.12, 0.88, 2 * TURNS + 1)[1:-1:1], [0.88, 1.0]])[None, :, None]
    side = np.zeros(u.size)
    side[2:-2] = np.where(np.arange(u.size - 4) % 2 == 0, 1.0, -1.0)
    length = np.maximum(np.linalg.norm(d, axis=2, keepdims=True), 1e-9)
    across = np.stack([-d[..., 1], d[..., 0]], axis=-1) / length
    amplitude = 0.035 * picture.size * view.scale
    return Item("line", a + u * d + amplitude * side[None, :, None] * across, SPRING, 1.6)


def _arrows(picture: Picture, view: _Projection) -> list[Item]:
    """Return forces as arrows: shaft and head in one line."""
    unit = picture.arrow_unit
    return [_arrow(force, unit, view) for force in picture.forces]


def _arrow(force: Force, unit: float, view: _Projection) -> Item:
    a, b = view.pixels(force.points), view.pixels(force.points + unit * force.vectors)
    d = b - a
    length = np.linalg.norm(d, axis=1, keepdims=True)
    e = d / np.maximum(length, 1e-9)
    head = np.minimum(9.0, 0.5 * length)
    n = np.stack([-e[:, 1], e[:, 0]], axis=1)
    wings = [b - head * e + 0.5 * head * n, b - head * e - 0.5 * head * n]
    return Item("line", np.stack([a, b, wings[0], b, wings[1]], axis=1), FORCE_COLORS[force.kind], 2.6)
