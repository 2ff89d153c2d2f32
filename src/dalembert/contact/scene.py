"""The scene of shapes that may touch: from the shapes of a mechanism to the tables of the loops.

    scene = mechanism.contacts(ground=True)
    found, who = scene.detect(q, margin=1e-3)

A loop has `scene.tables` and a `scene.memory()` of its own, and calls `detect_loops.detect` with the poses of the
bodies `scene.frames`. Memory holds where shapes are, the work space and the directions in which the last searches
ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.contact.detect_loops import detect
from dalembert.contact.hulls import ConvexPolytope, packed
from dalembert.contact.kinds import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHTFIELD, HULL, NUMBERS, PLANE, SPHERE
from dalembert.contact.memory import SHAPE, Hulls, work_space
from dalembert.contact.mesh_hulls import HullMaker
from dalembert.contact.narrow_loops import collide_pairs
from dalembert.contact.pairs import ShapePair, chosen_pairs
from dalembert.errors import ModelError
from dalembert.model.mechanism.parts import CollisionShape
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

FAR = 1e6
"""Half the extent of a plane in its box, metres."""

MANY_PAIRS = 400
"""Pairs beyond which a sweep along an axis finds those that are near faster than looking at all of them."""

OVERLAPS = 1e-9
"""Depth over the size beyond which two shapes overlap, and not touch."""

NAMED = 8
"""Names in a note; the rest is counted."""


class SceneTables(NamedTuple):
    """What loops read.

    Attributes
    ----------
    pairs : (k, 2)
        Numbers of shapes; those with planes and height fields come first, and `ground` (1,) is how many they are.
    table : (s, s)
        The number of a pair by its shapes, -1 for none; (0, 0) where all pairs are gone through.
    hull_numbers, hull_points
        `Hulls`.
    """

    pairs: Array
    ground: Array
    table: Array
    hull_numbers: Array
    hull_points: Array


class SceneMemory(NamedTuple):
    """What one run writes: shapes in the world, work space, directions of the last searches, order, pairs near."""

    shapes: Array
    work: Array
    warm: Array
    order: Array
    near: Array


@dataclass(frozen=True, eq=False, repr=False)
class CollisionScene:
    """Shapes of a mechanism that may touch.

    Attributes
    ----------
    shapes
        Shapes by their number; a mesh that was decomposed has several.
    frames
        Bodies whose poses `detect` is given, in this order.
    pairs : (k, 2)
        Numbers of shapes; normals point from the first to the second.
    friction, restitution : (k,)
    notes
        What was left out, or made simpler, by name.
    tables
        For loops.
    """

    mechanism: Mechanism
    shapes: tuple[CollisionShape, ...]
    frames: tuple[str, ...]
    pairs: Array
    friction: Array
    restitution: Array
    notes: tuple[str, ...]
    tables: SceneTables
    records: Array

    def memory(self) -> SceneMemory:
        """Return the memory of one run."""
        moving = [s for s, shape in enumerate(self.records) if shape["kind"] not in (PLANE, HEIGHTFIELD)]
        sweeps = len(self.tables.table) > 0
        return SceneMemory(
            self.records.copy(),
            work_space(),
            np.zeros((len(self.pairs), 3)),
            np.array(moving if sweeps else [], dtype=np.int64),
            np.zeros(len(self.pairs) if sweeps else 0, dtype=np.int64),
        )

    def names(self, k: int) -> tuple[str, str]:
        """Return the names of the shapes of a pair."""
        one, other = self.pairs[k]
        return self.shapes[one].name, self.shapes[other].name

    def poses(self, q: Any) -> Array:
        """Return the poses (frames, 12) of the bodies that carry shapes: R by rows, and p."""
        rows = np.zeros((len(self.frames), 12))
        R, p = self.mechanism.kinematics(q)
        for row, frame in zip(rows, self.frames, strict=True):
            k = self.mechanism.body_index(frame)
            row[:9], row[9:] = np.ravel(R[k]), p[k]
        return rows

    def detect(self, q: Any, margin: float = 0.0, memory: SceneMemory | None = None) -> tuple[Array, Array]:
        """Return contacts (n, 7) nearer than the margin, and (n, 3) which pair, feature and number each is.

        A contact: the point half-way between the surfaces, the unit normal from the first shape to the second, and the
        signed distance, metres.
        """
        memory, most, poses = memory or self.memory(), 64, self.poses(q)
        while True:
            found, who = np.zeros((most, 7)), np.zeros((most, 3), dtype=np.int64)
            count = int(detect(self.tables, memory, poses, float(margin), found, who))
            if count <= most:
                return found[:count], who[:count]
            most = count

    def __repr__(self) -> str:
        return f"CollisionScene({len(self.shapes)} shapes, {len(self.pairs)} pairs of {self.mechanism.name!r})"


# ----------------------------------------------------------------------------------------------------------------------
# From shapes to records.


def scene_of(
    mechanism: Mechanism,
    ground: Any = True,
    self_contact: bool = False,
    pairs: Sequence[tuple[str, str]] = (),
    friction: float | None = None,
    restitution: float | None = None,
    q: Any = None,
    *,
    most_vertices: int | None = None,
    decompose: Any = None,
    missing: str = "refuse",
) -> CollisionScene:
    """Return the scene of a mechanism, see `Mechanism.contacts`."""
    maker = HullMaker(most_vertices, decompose)
    notes: list[str] = []
    shapes = _with_ground(mechanism, ground, _present(mechanism, missing, notes))
    _check_law(friction, restitution)
    shapes, records, hulls = _records(mechanism, shapes, maker)
    chosen = chosen_pairs(mechanism, shapes, bool(self_contact), pairs, friction, restitution)
    chosen = [_turned(pair, records) for pair in chosen if _possible(pair, records, shapes, notes)]
    where = "at the neutral configuration" if q is None else "at the configuration given"
    _placed(mechanism, shapes, records, mechanism.neutral() if q is None else q)
    own = [pair for pair in chosen if mechanism.ground not in (shapes[pair.one].body, shapes[pair.other].body)]
    lost = _overlapping(own, shapes, records, hulls, notes, where)
    chosen = [pair for pair in chosen if (pair.one, pair.other) not in lost]
    chosen.sort(key=lambda pair: records["kind"][pair.one] not in (PLANE, HEIGHTFIELD))
    if not chosen:
        raise ModelError(
            f"{mechanism.name!r} has no shapes that could touch: {len(mechanism.collision_shapes)} collision shapes, "
            "ground = " + repr(ground) + "; self=True lets its bodies touch each other, pairs=[(name, name)] these two"
        )
    return _scene(mechanism, shapes, records, hulls, chosen, (*notes, *maker.all_notes()))


def _check_law(friction: float | None, restitution: float | None) -> None:
    if friction is not None and not (np.isfinite(friction) and friction >= 0.0):
        raise ModelError(f"friction={friction!r} must be a finite number >= 0", subject="friction")
    if restitution is not None and not 0.0 <= restitution <= 1.0:
        raise ModelError(f"restitution={restitution!r} must be between 0 and 1", subject="restitution")


def _present(mechanism: Mechanism, missing: str, notes: list[str]) -> list[CollisionShape]:
    """Return the shapes, less those whose mesh is not there: these are refused by name, or noted."""
    if missing not in ("refuse", "leave out"):
        raise ModelError(f"missing={missing!r}; it is 'refuse' or 'leave out'")
    lost = [
        s for s in mechanism.collision_shapes if s.kind == "mesh" and s.points is None and not Path(s.file).is_file()
    ]
    if lost:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        named = "; ".join(f"{s.name!r}: {s.file}" for s in lost[:NAMED]) + more
        words = f"{len(lost)} meshes of collision shapes are not there: {named}"
        if missing == "refuse":
            raise ModelError(
                f"{words}. da.load(..., packages=) says where packages are; missing='leave out' goes on without them"
            )
        notes.append(f"left out: {words}")
    return [shape for shape in mechanism.collision_shapes if shape not in lost]


def _with_ground(mechanism: Mechanism, ground: Any, shapes: list[CollisionShape]) -> list[CollisionShape]:
    """Return the shapes with the ground that is asked for: that of the file, or else the plane z = 0."""
    own = [shape for shape in shapes if shape.body == mechanism.ground]
    if ground is False or ground is None:
        return [shape for shape in shapes if shape.body != mechanism.ground]
    if ground is True:
        if any(shape.kind in ("plane", "heightfield") for shape in own):
            return shapes
        return [CollisionShape("ground", mechanism.ground, "plane", ()), *shapes]
    return [_given_ground(mechanism, ground), *shapes]


def _given_ground(mechanism: Mechanism, ground: Any) -> CollisionShape:
    """Return a `da.Plane` or `da.Heightfield` as a shape of the ground."""
    from dalembert.model.mechanism.placement import Placement

    if isinstance(ground, CollisionShape):
        return replace(ground, body=mechanism.ground)
    if all(hasattr(ground, name) for name in ("x", "y", "z")):
        return CollisionShape("ground", mechanism.ground, "heightfield", (), points=(ground.x, ground.y, ground.z))
    if hasattr(ground, "normal") and hasattr(ground, "offset"):
        n = np.asarray(ground.normal, dtype=float)
        x = np.cross(n, [0.0, 1.0, 0.0] if abs(n[1]) < 0.9 else [1.0, 0.0, 0.0])
        x /= np.linalg.norm(x)
        R = np.column_stack([x, np.cross(n, x), n])
        return CollisionShape("ground", mechanism.ground, "plane", (), Placement(R, ground.offset * n))
    raise ModelError(f"ground={ground!r} is no ground; it is True, False, a da.Plane or a da.Heightfield")


def _records(
    mechanism: Mechanism, shapes: Sequence[CollisionShape], maker: HullMaker
) -> tuple[list[CollisionShape], Array, Hulls]:
    """Return shapes with meshes in their convex parts, their records, and the tables of hulls and height fields."""
    rows: list[tuple[CollisionShape, ConvexPolytope | None]] = []
    for shape in shapes:
        if shape.kind == "mesh":
            parts = maker.hulls_of(shape)
            names = [shape.name] if len(parts) == 1 else [f"{shape.name} part {k + 1}" for k in range(len(parts))]
            rows += [(replace(shape, name=name), part) for name, part in zip(names, parts, strict=True)]
        else:
            rows.append((shape, None))
    records = np.zeros(len(rows), SHAPE)
    hulls: list[ConvexPolytope] = []
    fields: list[tuple[Array, Array, Array]] = []
    known: dict[int, int] = {}
    for record, (shape, hull) in zip(records, rows, strict=True):
        record["place_R"], record["place_p"] = shape.placement.rotation, shape.placement.position
        if hull is not None:
            record["kind"] = HULL
            if id(hull) not in known:
                known[id(hull)] = len(hulls)
                hulls.append(hull)
            record["hull"] = known[id(hull)]
            low, high = hull.vertices.min(axis=0), hull.vertices.max(axis=0)
            record["middle"], record["half"] = (low + high) / 2, (high - low) / 2
            record["reach"] = np.linalg.norm(hull.vertices, axis=1).max()
        elif shape.kind == "heightfield":
            _field_record(record, shape, fields)
        else:
            _simple_record(record, shape)
    return [shape for shape, _ in rows], records, packed(hulls, fields)


def _simple_record(record: Any, shape: CollisionShape) -> None:
    """Write kind, sizes and box of a shape that has numbers for them: halves of edges and lengths."""
    kind, s = NUMBERS[shape.kind], shape.size
    record["kind"] = kind
    if kind == SPHERE:
        size, half, reach = (s[0], 0, 0), (s[0],) * 3, s[0]
    elif kind == CAPSULE:
        size, half, reach = (s[0], s[1] / 2, 0), (s[0], s[0], s[0] + s[1] / 2), s[0] + s[1] / 2
    elif kind == CYLINDER:
        size, half, reach = (s[0], s[1] / 2, 0), (s[0], s[0], s[1] / 2), float(np.hypot(s[0], s[1] / 2))
    elif kind == BOX:
        size = half = tuple(x / 2 for x in s)
        reach = float(np.linalg.norm(size))
    elif kind == ELLIPSOID:
        size, half, reach = s, s, max(s)
    else:
        size, half, reach = (0, 0, 0), (FAR, FAR, FAR), 0.0
    record["size"], record["half"], record["reach"] = size, half, reach


def _field_record(record: Any, shape: CollisionShape, fields: list[tuple[Array, Array, Array]]) -> None:
    """Write a height field: its grid goes to the tables."""
    x, y, z = (np.asarray(values, dtype=float) for values in shape.points)
    if z.shape != (x.size, y.size) or min(x.size, y.size) < 2:
        raise ModelError(
            f"collision shape {shape.name!r}: heights are (len(x), len(y)), two at least; they are {z.shape}"
        )
    if not (np.isfinite(z).all() and (np.diff(x) > 0).all() and (np.diff(y) > 0).all()):
        raise ModelError(f"collision shape {shape.name!r}: heights must be finite, at increasing x and y")
    record["kind"], record["hull"] = HEIGHTFIELD, len(fields)
    fields.append((x, y, z))
    low, high = np.array([x[0], y[0], z.min() - FAR]), np.array([x[-1], y[-1], z.max()])
    record["middle"], record["half"] = (low + high) / 2, (high - low) / 2


def _turned(pair: ShapePair, records: Array) -> ShapePair:
    """Return a pair with its kinds in the order of the loops: planes, height fields, then rising."""
    rank = [
        -int(records["kind"][k]) if records["kind"][k] >= PLANE else int(records["kind"][k])
        for k in (pair.one, pair.other)
    ]
    return pair if rank[0] <= rank[1] else replace(pair, one=pair.other, other=pair.one)


def _possible(pair: ShapePair, records: Array, shapes: Sequence[CollisionShape], notes: list[str]) -> bool:
    """Return whether a pair has a distance here: two planes, or a plane and a height field, have none."""
    if min(records["kind"][pair.one], records["kind"][pair.other]) < PLANE:
        return True
    notes.append(f"left out: {shapes[pair.one].name!r} and {shapes[pair.other].name!r}, which are both without end")
    return False


def _placed(mechanism: Mechanism, shapes: Sequence[CollisionShape], records: Array, q: Any) -> None:
    """Place the records in the world at a configuration."""
    rotations, positions = mechanism.kinematics(q)
    for record, shape in zip(records, shapes, strict=True):
        R, p = np.eye(3), np.zeros(3)
        if shape.body != mechanism.ground:
            k = mechanism.body_index(shape.body)
            R, p = np.asarray(rotations[k]), np.asarray(positions[k])
        record["R"], record["p"] = R @ record["place_R"], p + R @ record["place_p"]
        centre, reach = record["p"] + record["R"] @ record["middle"], np.abs(record["R"]) @ record["half"]
        record["low"], record["high"] = centre - reach, centre + reach


def _overlapping(
    chosen: list[ShapePair],
    shapes: Sequence[CollisionShape],
    records: Array,
    hulls: Hulls,
    notes: list[str],
    where: str,
) -> set[tuple[int, int]]:
    """Return the pairs that overlap where records are, and note them; those that are named never do."""
    tried = [
        pair for pair in chosen
        if not pair.named and records["kind"][pair.one] < PLANE and shapes[pair.one].body != shapes[pair.other].body
        and (records["low"][pair.one] <= records["high"][pair.other]).all()
        and (records["low"][pair.other] <= records["high"][pair.one]).all()
    ]  # fmt: skip
    if not tried:
        return set()
    pairs = np.array([(pair.one, pair.other) for pair in tried], dtype=np.int64)
    n = len(pairs)
    found, counts = np.zeros((n, 8, 7)), np.zeros(n, dtype=np.int64)
    features = np.zeros((n, 8), dtype=np.int64)
    collide_pairs(records, pairs, hulls, work_space(), 0.0, False, np.zeros((n, 3)), found, features, counts)
    reach = records["reach"][pairs].max(axis=1)
    deep = (counts > 0) & (found[:, 0, 6] < -OVERLAPS * reach)
    lost = {(tried[k].one, tried[k].other): -found[k, 0, 6] for k in np.flatnonzero(deep)}
    if lost:
        worst = sorted(lost.items(), key=lambda item: -item[1])
        named = ", ".join(
            f"{shapes[i].name!r} and {shapes[j].name!r} by {depth:.2g} m" for (i, j), depth in worst[:NAMED]
        )
        more = f" and {len(worst) - NAMED} more" if len(worst) > NAMED else ""
        notes.append(
            f"left out: {len(worst)} pairs of shapes that overlap {where}: {named}{more}; pairs= lets them touch"
        )
    return set(lost)


def _scene(
    mechanism: Mechanism, shapes: Sequence[CollisionShape], records: Array, hulls: Hulls, chosen: list[ShapePair],
    notes: tuple[str, ...],
) -> CollisionScene:  # fmt: skip
    """Return the scene of the pairs that are left."""
    pairs = np.array([(pair.one, pair.other) for pair in chosen], dtype=np.int64).reshape(-1, 2)
    ground = int(sum(records["kind"][i] in (PLANE, HEIGHTFIELD) for i in pairs[:, 0]))
    size = len(records) if len(pairs) - ground > MANY_PAIRS else 0
    table = np.full((size, size), -1, dtype=np.int32)
    if size:
        for k in range(ground, len(pairs)):
            i, j = pairs[k]
            table[i, j] = table[j, i] = k
    frames = tuple(dict.fromkeys(shape.body for shape in shapes if shape.body != mechanism.ground))
    index = {frame: k for k, frame in enumerate(frames)}
    for record, shape in zip(records, shapes, strict=True):
        record["body"] = index.get(shape.body, -1)
    tables = SceneTables(pairs, np.array([ground]), table, hulls.i, hulls.f)
    laws = np.array([(pair.friction, pair.restitution) for pair in chosen], dtype=float).reshape(-1, 2)
    return CollisionScene(mechanism, tuple(shapes), frames, pairs, laws[:, 0], laws[:, 1], notes, tables, records)


# ----------------------------------------------------------------------------------------------------------------------
# Configurations on the ground.


def on_ground(mechanism: Mechanism, q: Any, height: float = 0.0) -> Array:
    """Return a configuration whose lowest point of all shapes is at z = height: the free base is moved along z."""
    free = next((j for j in mechanism.joints if j.kind == "free" and j.parent == mechanism.ground), None)
    shapes = [shape for shape in mechanism.collision_shapes if shape.body != mechanism.ground]
    if free is None:
        raise ModelError(
            f"on_ground moves a floating base; {mechanism.name!r} is fixed to the ground: load it with base='floating'"
        )
    if not shapes:
        raise ModelError(f"on_ground needs shapes that touch, and {mechanism.name!r} has no collision shapes")
    scene = scene_of(mechanism, CollisionShape("ground", mechanism.ground, "plane", ()), missing="leave out")
    q = np.array(q, dtype=float)
    found, _ = scene.detect(q, margin=np.inf)
    place = mechanism.index_q(free.name).start
    q[place : place + 3] += free.placement.rotation.T @ [0.0, 0.0, height - found[:, 6].min()]
    return q
