"""The page of a picture: one HTML file with three.js and the data inside, nothing to fetch and nothing to serve."""

from __future__ import annotations

import base64
import json
import zlib
from functools import lru_cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.types import Array
from dalembert.view.body_shapes import Shape, along
from dalembert.view.colors import CONTACT, FAMILY, FORCE_COLORS, LINE_COLORS, UNIQUE
from dalembert.view.picture import Picture, values_of

LEVELS = 65535
"""Values of a row of samples are 16-bit integers over its range: 1e-5 of it, less than a pixel."""

PICKED_VALUES = 20_000_000
"""Numbers of joint values that a page carries at most; beyond, picking shows names alone."""

LEGEND = {
    "unique": (f'<i style="background:{UNIQUE}"></i>', "unique reaction"),
    "family": (f'<i style="background:{FAMILY}"></i>', "reaction that is not unique: one of many"),
    "contact": (f'<i style="background:{CONTACT}"></i>', "contact force"),
    "ring": (f'<i class="ring" style="border-color:{UNIQUE}"></i>', "constraint"),
    "redundant": (f'<i class="ring" style="border-color:{FAMILY}"></i>', "constraint with redundant rows"),
    "massless": ('<i class="ghost"></i>', "massless link"),
    "ghost": ('<i style="background:#9aa3ad;opacity:.5"></i>', "other runs"),
}
"""Marks and words of the legend."""


def page_of(picture: Picture) -> str:
    """Return the page of a picture as HTML."""
    head, body = packed(picture)
    data = json.dumps({"head": head, "body": base64.b64encode(zlib.compress(body, 9)).decode()}, separators=(",", ":"))
    data = (
        data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )  # names are users' text
    parts = {
        "title": escape(picture.title),
        "caption": escape(picture.caption),
        "legend": legend_of(picture),
        "data": data,
        "runtime": _runtime(),
    }
    pieces = _template().split("{{")
    return pieces[0] + "".join(parts[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces[1:]))


@lru_cache(maxsize=1)
def _runtime() -> str:
    return base64.b64encode(files("dalembert.view").joinpath("viewer.min.js.gz").read_bytes()).decode()


@lru_cache(maxsize=1)
def _template() -> str:
    return files("dalembert.view").joinpath("page.html").read_text(encoding="utf-8")


def legend_of(picture: Picture) -> str:
    """Return the legend: what is to be seen, and nothing else."""
    kinds = {force.kind for force in picture.forces}
    shown = {
        "unique": "unique" in kinds,
        "family": "family" in kinds,
        "contact": "contact" in kinds,
        "ring": any(ring.unique.any() for ring in picture.rings),
        "redundant": any(not ring.unique.all() for ring in picture.rings),
        "massless": any(map(_shown_massless, picture.mechanism.bodies, picture.drawing.bodies))
        or any(link.kind == "rod" for link in picture.links),
        "ghost": bool(picture.ghosts),
    }
    return "".join(f"<span>{LEGEND[key][0]}{LEGEND[key][1]}</span>" for key, there in shown.items() if there)


def _shown_massless(body: Any, shapes: list[Shape]) -> bool:
    return bool(shapes) and body.inertia.is_zero()


# ----------------------------------------------------------------------------------------------------------------------
# Data of a page: one block of typed arrays, and a head that says what is where.


class _Block:
    """Arrays one after the other, aligned for the browser's typed arrays."""

    def __init__(self) -> None:
        self.bytes, self.table = bytearray(), []

    def add(self, name: str, values: Array) -> None:
        self.bytes += b"\0" * (-len(self.bytes) % 4)
        self.table.append([name, values.dtype.str[1:], len(self.bytes), int(values.size)])
        self.bytes += np.ascontiguousarray(values).tobytes()


def packed(picture: Picture) -> tuple[dict[str, Any], bytes]:
    """Return head and block of a picture's data."""
    block, m = _Block(), picture.mechanism
    rows: list[Array] = [_pose_rows(picture.rotations, picture.positions)]
    at: dict[str, Any] = {"poses": 0, "ghosts": []}
    for rotations, positions in picture.ghosts:
        at["ghosts"].append(sum(map(len, rows)))
        rows.append(_pose_rows(*_as_long(rotations, positions, picture.t.size)))
    at["forces"] = sum(map(len, rows))
    rows += [np.concatenate([force.points.T, force.vectors.T]) for force in picture.forces]
    at["values"] = sum(map(len, rows))
    bodies, values = _bodies(picture)
    rows += values
    coded, low, span = coded_rows(np.concatenate([row.reshape(-1, picture.t.size) for row in rows]))
    block.add("t", picture.t.astype("<f4"))
    block.add("rows", coded)
    block.add("low", low.astype("<f4"))
    block.add("range", span.astype("<f4"))
    if picture.lines:
        coded, low, span = coded_rows(np.array(list(picture.lines.values())))
        block.add("line_t", picture.line_t.astype("<f4"))
        block.add("lines", coded)
        block.add("line_low", low.astype("<f4"))
        block.add("line_range", span.astype("<f4"))
    flags = [ring.unique for ring in picture.rings]
    block.add("unique", np.array(flags, dtype="u1") if flags else np.zeros(0, "u1"))
    meshes = _Meshes(block)
    for body, shapes in zip(bodies, picture.drawing.bodies, strict=True):
        body["shapes"] = [_shape(shape, meshes) for shape in shapes]
    scenery = [_shape(shape, meshes) for shape in picture.drawing.ground]
    outline = picture.outline
    head = {
        "colors": {"forces": FORCE_COLORS, "lines": LINE_COLORS},
        "title": picture.title,
        "arrays": block.table,
        "at": at,
        "scale": picture.size,
        "floor": picture.floor,
        "up": picture.up.tolist(),
        "view": np.asarray(picture.view, float).tolist(),
        "ground": m.ground,
        "scenery": scenery,
        "bodies": bodies,
        "meshes": meshes.heads,
        "anchors": [place.tolist() for place in picture.anchors],
        "lines": list(picture.lines),
        "events": picture.events,
        "forces": [{"name": force.name, "kind": force.kind} for force in picture.forces],
        "arrow": picture.arrow_unit,
        "outline": [outline.min(axis=0).tolist(), outline.max(axis=0).tolist()] if outline.size else [],
        "rings": [_ring(ring) for ring in picture.rings],
        "links": [_link(link) for link in picture.links],
    }
    return head, bytes(block.bytes)


def coded_rows(rows: Array) -> tuple[Array, Array, Array]:
    """Return rows (M, N) as 16-bit integers, second differences in time, with their least values and ranges."""
    if not np.isfinite(rows).all():
        raise ModelError("this motion has values that are not finite; its run stopped before: print(run) says why")
    low, span = rows.min(axis=1), np.ptp(rows, axis=1)
    levels = np.round((rows - low[:, None]) * (LEVELS / np.where(span > 0.0, span, 1.0))[:, None]).astype(np.int64)
    first = np.diff(levels, axis=1, prepend=0)
    return np.diff(first, axis=1, prepend=0).astype(np.uint16).astype("<u2"), low, span


def _pose_rows(rotations: Array, positions: Array) -> Array:
    """Return positions and quaternions [x y z w] of all bodies over time, (7 n, N)."""
    N, n = positions.shape[:2]
    poses = np.concatenate([positions, smooth_quaternions(rotations)], axis=2)
    return poses.transpose(1, 2, 0).reshape(7 * n, N)


def smooth_quaternions(rotations: Array) -> Array:
    """Return quaternions [x y z w] (N, n, 4) whose signs follow each other in time, so that between them is short."""
    from scipy.spatial.transform import Rotation

    N, n = rotations.shape[:2]
    if N * n == 0:
        return np.zeros((N, n, 4))
    Q = Rotation.from_matrix(rotations.reshape(-1, 3, 3)).as_quat().reshape(N, n, 4)
    turned = np.where((Q[1:] * Q[:-1]).sum(axis=-1) < 0.0, -1.0, 1.0)
    Q[1:] *= np.cumprod(turned, axis=0)[..., None]
    return Q


def _as_long(rotations: Array, positions: Array, N: int) -> tuple[Array, Array]:
    """Return poses repeated to N frames where there is one alone."""
    return (rotations, positions) if len(positions) == N else (
        np.repeat(rotations[:1], N, axis=0), np.repeat(positions[:1], N, axis=0)
    )  # fmt: skip


def _bodies(picture: Picture) -> tuple[list[dict[str, Any]], list[Array]]:
    """Return what a page says of each body, and the rows of its joint's values."""
    m, rows, bodies = picture.mechanism, [], []
    joints = values_of(picture)
    short = picture.t.size * (m.nq + m.nv) <= PICKED_VALUES
    for body, (name, kind, values) in zip(m.bodies, joints, strict=True):
        entries = []
        for label, row, unit in values if short else ():
            entries.append([label, len(rows), unit])
            rows.append(row)
        bodies.append(
            {
                "name": body.name,
                "joint": name,
                "kind": kind,
                "mass": f"{body.inertia.mass:.4g}",
                "massless": bool(body.inertia.is_zero()),
                "values": entries,
            }
        )
    return bodies, rows


class _Meshes:
    """Meshes of a page, each once."""

    def __init__(self, block: _Block) -> None:
        self.block, self.heads, self.known = block, [], {}

    def add(self, mesh: Any) -> int:
        if id(mesh) not in self.known:
            k = self.known[id(mesh)] = len(self.heads)
            low, size = mesh.vertices.min(axis=0), np.maximum(np.ptp(mesh.vertices, axis=0), np.finfo(float).tiny)
            levels = np.round((mesh.vertices - low) / size * LEVELS).astype("<u2")
            self.block.add(f"mesh{k}.v", levels)
            self.block.add(f"mesh{k}.f", mesh.faces.astype("<u2" if len(mesh.vertices) <= LEVELS else "<u4"))
            self.heads.append({"low": low.tolist(), "size": size.tolist()})
        return self.known[id(mesh)]


def _shape(shape: Shape, meshes: _Meshes) -> dict[str, Any]:
    """Return a solid as the page reads it."""
    X = shape.placement
    entry: dict[str, Any] = {
        "kind": shape.kind,
        "size": list(shape.size),
        "color": shape.color,
        "opacity": shape.opacity,
    }
    if not X.is_identity():
        entry |= {"position": X.position.tolist(), "quaternion": X.quaternion().tolist()}
    if shape.mesh is not None:
        entry |= {"mesh": meshes.add(shape.mesh), "scale": list(shape.size)}
        entry["flip"] = int(np.prod(shape.size) < 0.0)
    return entry


def _link(link: Any) -> dict[str, Any]:
    (a, b), (pa, pb) = link.bodies, link.places
    return {"kind": link.kind, "a": a, "b": b, "pa": pa.tolist(), "pb": pb.tolist()}


def _ring(ring: Any) -> dict[str, Any]:
    X = along(ring.axis, ring.position)
    return {
        "name": ring.name,
        "body": ring.body,
        "position": X.position.tolist(),
        "quaternion": X.quaternion().tolist(),
    }


# ----------------------------------------------------------------------------------------------------------------------
# What a notebook shows, and a browser.


class Animation:
    """A page that shows itself in notebooks; `save` writes it to a file.

    The page stands in an iframe by `srcdoc`, so that its script and style stay inside.
    """

    def __init__(self, page: str, height: int = 480) -> None:
        self.page, self.height = page, height

    def save(self, path: str | Path) -> Path:
        """Write the page; return its path."""
        path = Path(path)
        path.write_text(self.page, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"Animation({len(self.page) / 1e3:.0f} kB of HTML; .save('page.html') writes it)"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.page, quote=True)}" width="100%" height="{self.height}" '
            'style="border:0" sandbox="allow-scripts allow-downloads" loading="lazy"></iframe>'
        )
