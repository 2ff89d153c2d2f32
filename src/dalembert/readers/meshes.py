"""Meshes of STL, OBJ and COLLADA files as triangles with a colour; no library, and nothing but the file is opened.

COLLADA as RViz reads it: metres by <unit>, transformations of the scene's nodes, and no turn for <up_axis>.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from dalembert.errors import DalembertError, ModelError
from dalembert.readers.files import read_file
from dalembert.readers.xml_tree import XmlElement, parse_xml
from dalembert.types import Array

MOST_FACES = 30_000
"""Triangles of one mesh that are drawn; a finer one is made coarser first."""

MOST_BYTES = 64 * 2**20
"""Larger files are refused before they are read."""

STL_HEADER, STL_FACET = 84, 50
"""Bytes of a binary STL: its head with the number of facets, and each facet."""


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Triangles.

    Attributes
    ----------
    vertices, faces : (n, 3), (m, 3)
        Places in metres; indices of three vertices, counter-clockwise seen from outside.
    color
        0xRRGGBB of the file's material, or None.
    """

    vertices: Array
    faces: Array
    color: int | None = None


def read_mesh(path: str, most: int | None = MOST_FACES) -> tuple[TriangleMesh, ...]:
    """Return the triangles of a file, one mesh for each material, made coarser where one has more than `most`.

    Raises
    ------
    ModelError
        There are none to be had.
    """
    try:
        changed = Path(path).stat().st_mtime_ns
    except OSError:
        changed = 0
    return _read(path, changed, most)


@lru_cache(maxsize=256)
def _read(path: str, changed: int, most: int | None) -> tuple[TriangleMesh, ...]:
    """Read a file, once as long as it does not change."""
    readers = {".stl": _stl, ".obj": _obj, ".dae": _dae}
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise ModelError(f"{path}: meshes are read from {', '.join(readers)}")
    content = read_file(path, MOST_BYTES)
    try:
        meshes = readers[suffix](content, path)
    except DalembertError:
        raise
    except (ValueError, IndexError, KeyError, struct.error, OverflowError) as error:
        raise ModelError(f"{path}: not a mesh in {suffix[1:].upper()} ({error})") from error
    checked = (_checked(mesh, path) for mesh in meshes if len(mesh.faces))
    return tuple(mesh if most is None else coarser(mesh, most) for mesh in checked)


def _checked(mesh: TriangleMesh, path: str) -> TriangleMesh:
    if not np.isfinite(mesh.vertices).all():
        raise ModelError(f"{path}: a vertex is not finite")
    if mesh.faces.size and not (mesh.faces.min() >= 0 and mesh.faces.max() < len(mesh.vertices)):
        raise ModelError(f"{path}: a triangle has a vertex that does not exist")
    return mesh


# ----------------------------------------------------------------------------------------------------------------------
# STL: facets without shared vertices, binary or text.


def _stl(content: bytes, path: str) -> list[TriangleMesh]:
    count = struct.unpack_from("<I", content, STL_HEADER - 4)[0] if len(content) >= STL_HEADER else -1
    if len(content) == STL_HEADER + STL_FACET * count:
        layout = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
        facets = np.frombuffer(content, layout, count, STL_HEADER)
        corners = facets["corners"].reshape(-1, 3).astype(float)
    else:
        words = content.decode("ascii", "replace").split()
        starts = [i for i, token in enumerate(words) if token == "vertex"]
        corners = np.array([[float(x) for x in words[i + 1 : i + 4]] for i in starts]).reshape(-1, 3)
    return [_joined(corners, np.arange(len(corners) // 3 * 3).reshape(-1, 3))]


def _joined(vertices: Array, faces: Array, color: int | None = None) -> TriangleMesh:
    """Return a mesh whose equal vertices are one, so that its surface can be shaded smoothly."""
    if not len(faces):
        return TriangleMesh(np.zeros((0, 3)), np.zeros((0, 3), int), color)
    unique, index = np.unique(np.asarray(vertices, np.float32), axis=0, return_inverse=True)
    faces = index.reshape(-1)[faces]
    a, b, c = faces.T
    return TriangleMesh(unique.astype(float), faces[(a != b) & (b != c) & (c != a)], color)


# ----------------------------------------------------------------------------------------------------------------------
# OBJ: vertices and polygons; materials are in other files, which are not opened.


def _obj(content: bytes, path: str) -> list[TriangleMesh]:
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    for line in content.decode("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) > 3 and words[0] == "v":
            vertices.append([float(x) for x in words[1:4]])
        elif len(words) > 3 and words[0] == "f":
            corners = [int(corner.split("/")[0]) for corner in words[1:]]
            places = [k - 1 if k > 0 else len(vertices) + k for k in corners]
            faces += [(places[0], places[k], places[k + 1]) for k in range(1, len(places) - 1)]
    return [_joined(np.array(vertices).reshape(-1, 3), np.array(faces, int).reshape(-1, 3))] if faces else []


# ----------------------------------------------------------------------------------------------------------------------
# COLLADA: geometries with materials, placed by the nodes of a scene.


POLYGONS = ("triangles", "polylist", "polygons")


def _dae(content: bytes, path: str) -> list[TriangleMesh]:
    root = parse_xml(content, path)
    ids = {element.attributes["id"]: element for element in root.walk() if "id" in element.attributes}
    unit = next((element for element in root.walk() if element.tag == "unit"), None)
    metre = float(unit.attributes.get("meter", "1")) if unit is not None else 1.0
    scenes = [element for element in root.walk() if element.tag == "visual_scene"]
    meshes: list[TriangleMesh] = []
    stack = [(node, np.diag([metre, metre, metre, 1.0])) for scene in scenes[:1] for node in scene.all("node")]
    while stack:
        node, outer = stack.pop()
        X = outer @ _transformation(node)
        stack += [(child, X) for child in node.all("node")]
        for instance in node.all("instance_geometry"):
            geometry = ids.get(instance.attributes.get("url", "").lstrip("#"))
            bound = {
                item.attributes.get("symbol", ""): item.attributes.get("target", "").lstrip("#")
                for item in instance.walk()
                if item.tag == "instance_material"
            }
            if geometry is not None:
                meshes += [_moved(mesh, X) for mesh in _geometry(geometry, bound, ids)]
    return _by_color(meshes)


def _transformation(node: XmlElement) -> Array:
    """Return the product of a node's transformations, in the order of the file, (4, 4)."""
    X = np.eye(4)
    for child in node.children:
        T = np.eye(4)
        if child.tag not in ("matrix", "translate", "scale", "rotate"):
            continue
        values = np.array(child.text.split(), float)
        if child.tag == "matrix":
            T = values.reshape(4, 4)
        elif child.tag == "translate":
            T[:3, 3] = values
        elif child.tag == "scale":
            T[:3, :3] = np.diag(values)
        else:
            axis, angle = values[:3] / (np.linalg.norm(values[:3]) or 1.0), np.deg2rad(values[3])
            K = np.cross(np.eye(3), axis)
            T[:3, :3] += -np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
        X = X @ T
    return X


def _moved(mesh: TriangleMesh, X: Array) -> TriangleMesh:
    faces = mesh.faces if np.linalg.det(X[:3, :3]) > 0.0 else mesh.faces[:, ::-1]
    return replace(mesh, vertices=mesh.vertices @ X[:3, :3].T + X[:3, 3], faces=faces)


def _geometry(geometry: XmlElement, bound: dict[str, str], ids: dict[str, XmlElement]) -> list[TriangleMesh]:
    """Return the triangles of a geometry, by the groups in which the file gives them."""
    mesh = geometry.first("mesh")
    if mesh is None:
        return []
    meshes = []
    for group in (child for child in mesh.children if child.tag in POLYGONS):
        inputs = {source.attributes.get("semantic", ""): source for source in group.all("input")}
        if "VERTEX" not in inputs:
            continue
        stride = 1 + max(int(source.attributes.get("offset", "0")) for source in group.all("input"))
        offset = int(inputs["VERTEX"].attributes.get("offset", "0"))
        faces = _triangles(group, stride, offset)
        symbol = group.attributes.get("material", "")
        color = _material(bound.get(symbol, symbol), ids)
        meshes.append(_joined(_positions(inputs["VERTEX"], ids), faces, color))
    return meshes


def _positions(vertex: XmlElement, ids: dict[str, XmlElement]) -> Array:
    """Return the places that <vertices> refers to, (n, 3)."""
    vertices = ids[vertex.attributes["source"].lstrip("#")]
    position = next(entry for entry in vertices.all("input") if entry.attributes.get("semantic") == "POSITION")
    source = ids[position.attributes["source"].lstrip("#")]
    values = np.array(source.required("float_array").text.split(), float)
    accessor = next((entry for entry in source.walk() if entry.tag == "accessor"), None)
    stride = int(accessor.attributes.get("stride", "3")) if accessor is not None else 3
    return values[: values.size // stride * stride].reshape(-1, stride)[:, :3]


def _triangles(group: XmlElement, stride: int, offset: int) -> Array:
    """Return the vertices of triangles; polygons become fans."""
    polygons = [np.array(p.text.split(), int)[offset::stride] for p in group.all("p")]
    if group.tag == "triangles":
        return np.concatenate([p[: p.size // 3 * 3] for p in polygons] or [np.zeros(0, int)]).reshape(-1, 3)
    if group.tag == "polylist":
        counts = np.array(group.required("vcount").text.split(), int)
        if (counts == 3).all():
            return polygons[0].reshape(-1, 3)
        polygons = np.split(polygons[0], np.cumsum(counts)[:-1])
    fans = [np.column_stack([np.full(p.size - 2, p[0]), p[1:-1], p[2:]]) for p in polygons if p.size > 2]
    return np.concatenate(fans) if fans else np.zeros((0, 3), int)


def _material(name: str, ids: dict[str, XmlElement]) -> int | None:
    """Return the diffuse colour of a material, or None."""
    material = ids.get(name)
    effect = material.first("instance_effect") if material is not None else None
    element = ids.get(effect.attributes.get("url", "").lstrip("#")) if effect is not None else None
    for diffuse in (node for node in element.walk() if node.tag == "diffuse") if element is not None else ():
        color = diffuse.first("color")
        if color is not None:
            red, green, blue = (round(255 * min(max(float(x), 0.0), 1.0)) for x in color.text.split()[:3])
            return red << 16 | green << 8 | blue
    return None


def _by_color(meshes: list[TriangleMesh]) -> list[TriangleMesh]:
    """Return one mesh for each colour."""
    groups: dict[int | None, list[TriangleMesh]] = {}
    for mesh in meshes:
        groups.setdefault(mesh.color, []).append(mesh)
    joined = []
    for color, parts in groups.items():
        starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
        faces = np.concatenate([part.faces + start for part, start in zip(parts, starts[:-1], strict=True)])
        joined.append(TriangleMesh(np.concatenate([part.vertices for part in parts]), faces, color))
    return joined


# ----------------------------------------------------------------------------------------------------------------------
# Coarser meshes: vertices of one cell of a grid become one (Rossignac & Borrel 1993).


def coarser(mesh: TriangleMesh, most: int) -> TriangleMesh:
    """Return a mesh of at most `most` triangles."""
    cells = 256
    while len(mesh.faces) > most and cells > 4:
        low, span = mesh.vertices.min(axis=0), np.ptp(mesh.vertices, axis=0).max() or 1.0
        keys = np.floor((mesh.vertices - low) * (cells / span)).astype(int)
        _, index = np.unique(keys, axis=0, return_inverse=True)
        index = index.reshape(-1)
        counts = np.bincount(index)
        vertices = np.column_stack([np.bincount(index, mesh.vertices[:, k]) / counts for k in range(3)])
        faces = index[mesh.faces]
        a, b, c = faces.T
        faces = faces[(a != b) & (b != c) & (c != a)]
        _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
        mesh = TriangleMesh(vertices, faces[np.sort(first)], mesh.color)
        cells = int(cells / 1.5)
    return mesh
