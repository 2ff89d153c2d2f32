"""Mass, centre and inertia of a USD body: what is written on it, or that of its collision shapes.

Rules of UsdPhysics, the strongest first: mass, centre and inertia written on the body; those of a shape; density of the
shape, of the body, of the shape's material; 1000 kg/m^3. Numbers that are zero are "not given". Shapes count for mass
whether they collide or not.

Source: OpenUSD, UsdPhysics, "Mass properties" of its schema.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.usd.stage import UsdScene, import_usd
from dalembert.types import Array

WATER = 1000.0
"""Density where none is given, kg/m^3."""

NO_SHAPE = 0.1
"""Radius of the sphere whose inertia a body with a mass and no shape has in OpenUSD, metres."""

TURNED = {"X": np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), "Y": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])}
"""Rotations that take z to the axis of a shape."""

UNEVEN = 1e-5
"""Relative difference of scales, in single precision, at which a sphere is no sphere any more."""


def inertia_of(scene: UsdScene, body: Any, shapes: Sequence[Any]) -> Inertia:
    """Return a body's inertia in its frame, SI."""
    written = _written(scene, body)
    mass, center, rotational = written
    if mass and center is not None and rotational is not None:
        return Inertia(mass, center, rotational)
    solids = [_solid(scene, body, shape, written) for shape in shapes] if shapes else []
    total = sum(solids, Inertia())
    if total.mass == 0.0:
        return _without_shapes(scene, body, written)
    if mass:
        total = Inertia(mass, total.center, total.rotational * (mass / total.mass))
    if center is not None:
        total = _about(total, center)
    return total if rotational is None else Inertia(total.mass, total.center, rotational)


def _without_shapes(scene: UsdScene, body: Any, own: tuple[float, Array | None, Array | None]) -> Inertia:
    """Return the inertia of a body that has no shapes to compute the rest from."""
    mass, center, rotational = own
    source = scene.source(body)
    if not mass:
        words = "neither a mass nor collision shapes; it is taken without mass (PhysX takes 1 kg)"
        if rotational is not None:
            words = "an inertia, but neither a mass nor collision shapes; its mass is taken as zero"
        scene.draft.notes.append(f"{source}: {words}")
    elif rotational is None:
        scene.draft.notes.append(
            f"{source}: a mass, but neither an inertia nor collision shapes; OpenUSD's stopgap is used, a sphere of "
            f"{NO_SHAPE:g} m"
        )
        rotational = 0.4 * mass * NO_SHAPE**2 * np.eye(3)
    center = np.zeros(3) if center is None else center
    rotational = np.zeros((3, 3)) if rotational is None else rotational
    return Inertia(mass, center, rotational)


def _written(scene: UsdScene, prim: Any) -> tuple[float, Array | None, Array | None]:
    """Return what a prim's mass API says in its own frame: mass (0: nothing), centre and inertia (None: nothing)."""
    pxr = import_usd()
    if not prim.HasAPI(pxr.UsdPhysics.MassAPI):
        return 0.0, None, None
    mass = scene.number(prim, "physics:mass", 0.0) * scene.mass
    if mass < 0.0:
        raise scene.error(prim, f"physics:mass = {mass / scene.mass:g} is negative")
    center, rotational = None, None
    written = scene.value(prim, "physics:centerOfMass", None)
    if written is not None and not any(math.isinf(x) and x < 0 for x in written):
        center = scene.vector(prim, "physics:centerOfMass", (0.0,) * 3) * scene.frame(prim)[1] * scene.length
    moments = scene.vector(prim, "physics:diagonalInertia", (0.0,) * 3) * scene.mass * scene.length**2
    if moments.any():
        R = scene.rotation(prim, "physics:principalAxes").rotation
        rotational = R @ np.diag(moments) @ R.T
    return mass, center, rotational


def _solid(scene: UsdScene, body: Any, shape: Any, own: tuple[float, Array | None, Array | None]) -> Inertia:
    """Return the inertia of one collision shape in its body's frame."""
    mass, center, rotational = (0.0, None, None) if shape == body else _written(scene, shape)
    X = scene.frame(body)[0].inverse() @ scene.frame(shape)[0]
    if mass and center is not None and rotational is not None:
        return Inertia(mass, center, rotational).moved(X)
    solid = _unit_solid(scene, shape)
    if solid.mass == 0.0:
        return Inertia()
    share = mass / solid.mass if mass else _density(scene, body, shape)
    solid = Inertia(solid.mass * share, solid.center, solid.rotational * share)
    solid = solid if center is None else _about(solid, center)
    solid = solid if rotational is None else Inertia(solid.mass, solid.center, rotational)
    return solid.moved(X)


def _about(solid: Inertia, center: Array) -> Inertia:
    """Return a solid whose centre is written down; its moments are those of the shape about there, as in OpenUSD."""
    arm = solid.center - center
    moments = solid.rotational + solid.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertia(solid.mass, center, moments)


def _density(scene: UsdScene, body: Any, shape: Any) -> float:
    """Return kilograms per cubic metre."""
    pxr = import_usd()
    bound = pxr.UsdShade.MaterialBindingAPI(shape).ComputeBoundMaterial("physics")[0]
    material = bound.GetPrim() if bound else None
    for prim in (shape, body, material):
        if prim is None or not prim.IsValid():
            continue
        density = scene.number(prim, "physics:density", 0.0)
        if density < 0.0:
            raise scene.error(prim, f"physics:density = {density:g} is negative")
        if density:
            return density * scene.mass / scene.length**3
    return WATER


def _unit_solid(scene: UsdScene, shape: Any) -> Inertia:
    """Return volume, centre and inertia of a shape of density 1 in its frame, metres."""
    kind, scale = str(shape.GetTypeName()), scene.frame(shape)[1] * scene.length
    if kind == "Mesh":
        return _mesh(scene, shape, scale)
    if kind == "Plane":
        return Inertia()
    if kind == "Cube":
        edges = scene.number(shape, "size", 2.0) * scale
        volume = float(np.prod(edges))
        return Inertia(volume, np.zeros(3), volume / 12 * np.diag(edges @ edges - edges**2))
    if kind not in ("Sphere", "Cylinder", "Capsule", "Cone"):
        raise scene.error(shape, f"the mass of a {kind or 'shape without type'} is not computed; write physics:mass, "
                          "physics:diagonalInertia and physics:centerOfMass on its body", UnsupportedError)  # fmt: skip
    r, h, axis = round_measures(scene, shape)
    return _round(kind, r, h).moved(Placement(TURNED[axis]) if axis in TURNED else IDENTITY)


def round_measures(scene: UsdScene, shape: Any) -> tuple[float, float, str]:
    """Return radius, height (0 of a sphere) and axis of a round shape, metres; one that scales make oval is refused."""
    kind, scale = str(shape.GetTypeName()), scene.frame(shape)[1] * scene.length
    axis = "Z" if kind == "Sphere" else str(scene.value(shape, "axis", "Z"))
    along = "XYZ".find(axis)
    if along < 0:
        raise scene.error(shape, f"axis = {axis!r} is none of X, Y, Z")
    across = [scale[k] for k in range(3) if k != along or kind in ("Sphere", "Capsule")]
    if max(across) - min(across) > UNEVEN * max(across):
        raise scene.error(shape, f"scales {scale.tolist()} make its {kind} oval", UnsupportedError)
    radius, height = (0.5, 1.0) if kind == "Capsule" else (1.0, 2.0)
    r = scene.number(shape, "radius", radius) * float(across[0])
    h = 0.0 if kind == "Sphere" else scene.number(shape, "height", height) * float(scale[along])
    if r < 0.0 or h < 0.0:
        raise scene.error(shape, f"radius or height of its {kind} is negative")
    return r, h, axis


def _round(kind: str, r: float, h: float) -> Inertia:
    """Return a round solid of density 1 along z: m = V, moments about its centre."""
    if kind == "Sphere":
        m = 4 / 3 * math.pi * r**3
        return Inertia(m, np.zeros(3), 0.4 * m * r**2 * np.eye(3))
    if kind == "Cone":
        m = math.pi * r**2 * h / 3
        across = m * (3 * r**2 / 20 + 3 * h**2 / 80)
        return Inertia(m, np.array([0.0, 0.0, -h / 4]), np.diag([across, across, 0.3 * m * r**2]))
    m = math.pi * r**2 * h
    across, along = m * (r**2 / 4 + h**2 / 12), m * r**2 / 2
    if kind == "Capsule":
        caps = 4 / 3 * math.pi * r**3  # two half balls, whose centres lie 3 r / 8 before the cylinder's ends
        across += caps * (0.4 * r**2 + h**2 / 4 + 3 * h * r / 8)
        along, m = along + 0.4 * caps * r**2, m + caps
    return Inertia(m, np.zeros(3), np.diag([across, across, along]))


def _mesh(scene: UsdScene, shape: Any, scale: Array) -> Inertia:
    """Return the solid inside a closed mesh: sums over the tetrahedra of its triangles with the origin."""
    way = str(scene.value(shape, "physics:approximation", "none"))
    points = np.array(scene.value(shape, "points", ()), dtype=float).reshape(-1, 3) * scale
    if not np.isfinite(points).all() or np.abs(points).max(initial=0.0) > 1e60:
        raise scene.error(shape, "points of its mesh are not finite")
    if way == "convexHull":
        triangles = _hull(scene, shape, points)
    elif way in ("none", "meshSimplification"):
        triangles = _triangles(scene, shape, len(points))
    else:
        raise scene.error(shape, f"the mass of a mesh by {way!r} is not computed; write physics:mass, "
                          "physics:diagonalInertia and physics:centerOfMass on its body", UnsupportedError)  # fmt: skip
    if not len(triangles):
        return Inertia()
    middle = points.mean(axis=0)
    corners = (points - middle)[triangles]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    if np.abs(areas.sum(axis=0)).max() > 1e-5 * np.abs(areas).sum():
        raise scene.error(shape, "its mesh is not closed, so that it has no volume; write the mass of its body")
    volumes = np.linalg.det(corners) / 6
    total = float(volumes.sum())
    first = np.einsum("t,tci->i", volumes, corners) / 4
    sums = corners.sum(axis=1)
    second = np.einsum("t,tci,tcj->ij", volumes, corners, corners) + np.einsum("t,ti,tj->ij", volumes, sums, sums)
    second = second / 20
    if total < 0.0:  # wound the other way round
        total, first, second = -total, -first, -second
    if total <= 1e-12 * np.abs(corners).max() ** 3:
        raise scene.error(shape, "its mesh encloses no volume; write the mass of its body")
    center = first / total
    second = second - total * np.outer(center, center)
    return Inertia(total, center + middle, np.trace(second) * np.eye(3) - second)


def _triangles(scene: UsdScene, shape: Any, count: int) -> Array:
    """Return the triangles of a mesh, polygons cut from their first corner."""
    counts = np.array(scene.value(shape, "faceVertexCounts", ()), dtype=int)
    corners = np.array(scene.value(shape, "faceVertexIndices", ()), dtype=int)
    if counts.sum() != len(corners) or (counts < 3).any() or ((corners < 0) | (corners >= count)).any():
        raise scene.error(shape, "faces and points of its mesh do not fit together")
    starts = np.cumsum(counts) - counts
    fans = [(a, a + k, a + k + 1) for a, n in zip(starts, counts, strict=True) for k in range(1, n - 1)]
    return corners[np.array(fans, dtype=int).reshape(-1, 3)]


def _hull(scene: UsdScene, shape: Any, points: Array) -> Array:
    """Return the triangles of the convex hull, wound outwards."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise scene.error(shape, "its mesh has no convex hull with a volume; write the mass of its body") from error
    corners = points[hull.simplices]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    turned = np.einsum("ti,ti->t", outward, hull.equations[:, :3]) < 0.0
    return np.where(turned[:, None], hull.simplices[:, ::-1], hull.simplices)
