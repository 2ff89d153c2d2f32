"""Validation: values of single parts as a person or a file gives them, and parts together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, refuse_masked
from dalembert.errors import Advised, DalembertError, ModelError, ShapeError, advised, warn_user
from dalembert.model.joints import KINDS
from dalembert.model.limits import ONE_AXIS
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.parts import (
    COLLISION_KINDS,
    VISUALS,
    CollisionShape,
    Coupling,
    Joint,
    Limits,
    Source,
    Tendon,
)
from dalembert.model.mechanism.placement import EYE, IDENTITY, Placement, exact
from dalembert.names import lookup, near_matches
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.builder import Builder

# ----------------------------------------------------------------------------------------------------------------------
# Values of parts as a person or a file gives them, checked and made uniform; complaints name the part.


UNLIMITED = 1e60
"""Limits beyond it are none: files write 1e308 where they mean infinity."""

LIMITS = ("lower", "upper", "velocity", "effort")


COORDINATE_AXES = {(x, y, z): (float(x), float(y), float(z)) for x, y, z in ((1, 0, 0), (0, 1, 0), (0, 0, 1))}
"""Axes that most joints have: found at once, whether their numbers are whole or not."""


def checked_options(options: Any, what: str, source: Source | None) -> tuple[tuple[str, Any], ...]:
    """Return options by name as sorted pairs."""
    if options is not None and not isinstance(options, Mapping):
        raise ModelError(f"{what}: options are {{name: value}}, not {options!r}", source)
    return tuple(sorted((str(name), value) for name, value in (options or {}).items()))


def numbers(values: Any, what: str, source: Source | None) -> Array:
    """Return values as floats, or say what they belong to."""
    try:
        return floats(values, what)
    except ShapeError as error:
        raise ModelError(str(error), source, subject=what) from error


def finite(value: Any, what: str, source: Source | None) -> float:
    """Return one finite number."""
    if type(value) is float and math.isfinite(value):
        return value
    array = numbers(value, what, source)
    if array.ndim or not np.isfinite(array):
        raise ModelError(f"{what} must be one finite number, not {value!r}", source, subject=what)
    return float(array)


def unsigned(value: Any, what: str, source: Source | None) -> float:
    """Return one number that is not negative; infinity is legal."""
    array = numbers(value, what, source)
    if array.ndim or not array >= 0:
        words = "must be one number, zero or more (or infinite)"
        raise ModelError(f"{what} {words}, not {value!r}", source, subject=what)
    return float(array)


def make_terms(terms: Any, what: str, source: Source | None) -> tuple[tuple[str, float], ...]:
    """Return (coordinate, factor) from a mapping, or from pairs."""
    try:
        items = list(terms.items() if isinstance(terms, Mapping) else terms)
        if any(isinstance(pair, str) for pair in items):
            raise TypeError
        pairs = [(name, factor) for name, factor in items]
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what}: its terms are {{coordinate: factor}}, not {terms!r}", source) from error
    return tuple((str(name), finite(factor, f"a factor of {what}", source)) for name, factor in pairs)


def make_slack(rest: Any, what: str, source: Source | None) -> tuple[float, float]:
    """Return the lengths between which a tendon is slack, from one or two numbers."""
    array = numbers(rest, f"the rest of {what}", source).reshape(-1)
    if array.size not in (1, 2) or not np.isfinite(array).all() or array[0] > array[-1]:
        raise ModelError(f"the rest of {what} is a length, or a pair (shortest, longest), not {rest!r}", source)
    return float(array[0]), float(array[-1])


def unit_axis(axis: Any, what: str, source: Source | None) -> tuple[float, float, float]:
    """Return an axis of length one; entries that are 0 or 1 up to rounding become so."""
    if type(axis) is tuple and all(type(x) in (float, int) for x in axis) and axis in COORDINATE_AXES:
        return COORDINATE_AXES[axis]
    array = numbers(axis, what, source)
    length = np.linalg.norm(array) if array.shape == (3,) else np.nan
    if not np.isfinite(length) or length == 0:
        words = "must be three finite numbers, not all zero"
        raise ModelError(f"{what} {words}; it is {axis!r}", source, subject=what)
    x, y, z = exact(array / length)
    return (float(x), float(y), float(z))


def per_velocity(value: Any, nv: int, what: str, source: Source | None) -> tuple[float, ...]:
    """Return one finite number for each velocity of a joint, or () for none; a single one serves all."""
    if type(value) is tuple and not value:
        return ()
    array = numbers(value, what, source)
    if array.size == 0 or nv == 0:
        return ()
    if not np.isfinite(array).all():
        raise ModelError(f"{what} must be finite; it is {value!r}", source, subject=what)
    return _spread(array, nv, what, source)


def _spread(array: Array, nv: int, what: str, source: Source | None) -> tuple[float, ...]:
    if array.size not in (1, nv):
        words = f"the joint has {nv} velocities, but {array.size} values are given"
        raise ModelError(f"{what}: {words}", source, subject=what)
    return tuple(float(x) for x in np.broadcast_to(array.reshape(-1), (nv,)))


def make_limits(limits: Any, nv: int, what: str, source: Source | None) -> Limits:
    """Return limits from a pair (lower, upper), a mapping, or `Limits`; infinite ones are legal, NaN is not."""
    if limits is None or nv == 0:
        return Limits()
    if isinstance(limits, Limits) and _are_checked(limits, nv):
        return limits
    if isinstance(limits, Limits):
        limits = {key: getattr(limits, key) for key in LIMITS}
    if not isinstance(limits, Mapping):
        if not isinstance(limits, Sequence | np.ndarray) or isinstance(limits, str) or len(limits) != 2:
            words = f"are a pair (lower, upper) or a mapping, not {limits!r}"
            raise ModelError(f"limits of {what} {words}", source, subject="limits")
        limits = dict(zip(LIMITS, limits, strict=False))
    bounds: dict[str, tuple[float, ...]] = {}
    for key, value in limits.items():
        if key not in LIMITS:
            raise ModelError(f"{what} has no limit {key!r}", source, near_matches(key, LIMITS))
        array = numbers(() if value is None else value, f"the {key} limit of {what}", source)
        if np.isnan(array).any():
            raise ModelError(f"the {key} limit of {what} is NaN", source)
        array = np.where(np.abs(array) > UNLIMITED, np.copysign(np.inf, array), array)
        bounds[key] = _spread(array, nv, f"the {key} limit of {what}", source) if array.size else ()
    full = Limits(**bounds)
    pairs = zip(full.lower, full.upper, strict=False)
    if any(low > high for low, high in pairs):
        words = f"the lower limit {full.lower} exceeds the upper limit {full.upper}"
        raise ModelError(f"{what}: {words}", source, subject="limits")
    return full


def _are_checked(limits: Limits, nv: int) -> bool:
    """Say whether limits are as a reader makes them: floats, one for each velocity or none, in order."""
    sides = (limits.lower, limits.upper, limits.velocity, limits.effort)
    fit = all(type(side) is tuple and len(side) in (0, nv) for side in sides)
    return (
        fit
        and all(type(x) is float and (abs(x) <= UNLIMITED or math.isinf(x)) for side in sides for x in side)
        and all(low <= high for low, high in zip(limits.lower, limits.upper, strict=False))
    )


def checked_placement(value: Any, what: str, source: Source | None) -> Placement:
    """Return a placement from itself, a position (3,), a pair (rotation, position), or a homogeneous matrix (4, 4).

    A rotation is 3x3 or a quaternion [x y z w]; the SE3 of Pinocchio has `rotation` and `translation`.
    """
    if isinstance(value, Placement):
        return value
    if hasattr(value, "rotation") and hasattr(value, "translation"):
        value = (value.rotation, value.translation)
    try:
        refuse_masked(value, "it")
        arrays = _arrays(value)
        if len(arrays) == 2:
            turn, position = arrays
            return Placement.from_quaternion(turn, position) if turn.shape == (4,) else Placement(turn, position)
        if arrays and arrays[0].shape == (3,):
            return Placement(EYE, arrays[0])
        if arrays and arrays[0].shape == (4, 4) and np.array_equal(arrays[0][3], (0.0, 0.0, 0.0, 1.0)):
            return Placement(arrays[0][:3, :3], arrays[0][:3, 3])
    except DalembertError as error:
        raise ModelError(f"{what}: {error}", source) from error
    raise ModelError(
        f"{what} is a position (three numbers), a pair (rotation 3x3 or quaternion [x y z w], position), a 4x4 matrix "
        f"with last row 0 0 0 1, or a Placement, not {value!r}",
        source,
    )


def _arrays(value: Any) -> list[Array]:
    """Return a value as one array, a pair of arrays as two; none where it holds no numbers."""
    try:
        pair = isinstance(value, tuple | list) and len(value) == 2 and all(np.ndim(part) for part in value)
        return [floats(part, "it") for part in (value if pair else (value,))]
    except (TypeError, ValueError):
        return []


def make_placement(
    placement: Any, position: Any, rotation: Any, rpy: Any, what: str, source: Source | None
) -> Placement:
    """Return a placement from itself, or from a position with a rotation (3x3, quaternion [x y z w]) or rpy."""
    present = [x is not None for x in (placement, rotation, rpy)]
    if sum(present) > 1 or (placement is not None and position is not None):
        raise ModelError(f"{what}: give a placement, or a position with one of rotation and rpy", source)
    if placement is not None:
        return checked_placement(placement, f"the placement of {what}", source)
    if position is None and rotation is None and rpy is None:
        return IDENTITY
    place = numbers((0.0, 0.0, 0.0) if position is None else position, f"the position of {what}", source)
    try:
        if rpy is not None:
            return Placement.from_rpy(rpy, place)
        turn = IDENTITY.rotation if rotation is None else numbers(rotation, f"the rotation of {what}", source)
        return Placement.from_quaternion(turn, place) if turn.shape == (4,) else Placement(turn, place)
    except (DalembertError, TypeError, ValueError) as error:
        raise ModelError(f"{what}: {error}", source, subject="position" if rpy is None else "rpy") from error


def make_color(color: Any, what: str, source: Source | None) -> tuple[float, float, float, float] | None:
    """Return red, green, blue and opacity of three or four numbers from 0 to 1; None stays None."""
    if color is None:
        return None
    array = numbers(color, f"the color of {what}", source)
    if array.shape not in ((3,), (4,)) or not ((array >= 0.0) & (array <= 1.0)).all():
        raise ModelError(f"the color of {what} is red, green, blue (and opacity) from 0 to 1, not {color!r}", source)
    red, green, blue, opacity = (*array.tolist(), 1.0)[:4]
    return red, green, blue, opacity


def make_visual_size(kind: str, size: Any, what: str, source: Source | None) -> tuple[float, ...]:
    """Return the numbers of a visual: as many as its kind has, none of them negative but a mesh's scale."""
    array = np.atleast_1d(numbers(size, f"the size of {what}", source))
    meanings = VISUALS[kind]
    if array.shape != (len(meanings),) or not np.isfinite(array).all() or (kind != "mesh" and (array < 0.0).any()):
        words = f"the size of {what} is ({', '.join(meanings)}) in metres, not {size!r}"
        raise ModelError(words, source, subject="size")
    return tuple(array.tolist())


def make_collision_shape(
    name: str, body: str, kind: str, size: Any, where: Placement, properties: dict[str, Any], what: str,
    source: Source | None,
) -> CollisionShape:  # fmt: skip
    """Return a collision shape: sizes above zero, friction at least zero, restitution between zero and one."""
    known = {"file", "points", "friction", "restitution", "group", "mask", "priority"}
    for key in properties.keys() - known:
        lookup(key, dict.fromkeys(sorted(known)), "property of a collision shape", source)
    meanings = COLLISION_KINDS[kind]
    array = np.atleast_1d(numbers(size, f"the size of {what}", source)) if len(meanings) else np.zeros(0)
    if kind != "plane" and (array.shape != (len(meanings),) or not np.isfinite(array).all()):
        words = f"the size of {what} is ({', '.join(meanings)}) in metres, not {size!r}"
        raise ModelError(words, source, subject="size")
    zero = [word for word, x in zip(meanings, array, strict=False) if not (x > 0.0 or (kind == "mesh" and x < 0.0))]
    if zero and kind != "plane":
        raise ModelError(
            f"{what} ({kind}) has no extent: {', '.join(zero)} must be above zero in size = {array.tolist()}",
            source, subject="size",
        )  # fmt: skip
    friction, restitution = properties.get("friction"), properties.get("restitution")
    if friction is not None and not (np.isfinite(friction) and friction >= 0.0):
        raise ModelError(f"friction={friction!r} of {what} must be a finite number >= 0", source, subject="friction")
    if restitution is not None and not 0.0 <= restitution <= 1.0:
        raise ModelError(
            f"restitution={restitution!r} of {what} must be between 0 and 1", source, subject="restitution"
        )
    return CollisionShape(name, body, kind, tuple(map(float, array)), where, source=source, **properties)


def with_names(shapes: Sequence[CollisionShape]) -> tuple[CollisionShape, ...]:
    """Return collision shapes with a name each: their own, or their body's, with a number where it is taken."""
    taken: dict[str, int] = {}
    named = []
    for shape in shapes:
        wanted = shape.name or shape.body
        taken[wanted] = taken.get(wanted, 0) + 1
        named.append(replace(shape, name=wanted if taken[wanted] == 1 else f"{wanted} {taken[wanted]}"))
    return tuple(named)


def make_inertia(inertia: Any, mass: Any, center: Any, what: str, source: Source | None) -> Inertia:
    """Return an inertia from itself, or from mass, centre and three, six (ixx ixy ixz iyy iyz izz) or 3x3 moments."""
    if isinstance(inertia, Inertia):
        if mass != 0 or np.any(center):
            raise ModelError(f"{what}: an Inertia brings its mass and center; give one or the other", source)
        return inertia
    moments = numbers(np.zeros(3) if inertia is None else inertia, f"the inertia of {what}", source)
    if moments.shape == (6,):
        xx, xy, xz, yy, yz, zz = moments
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    try:
        return Inertia(finite(mass, "the mass", None), numbers(center, "the center", None), moments)
    except DalembertError as error:
        raise ModelError(f"{what}: {error}", source, subject=getattr(error, "subject", None)) from error


def checked_gravity(gravity: Any) -> tuple[float, float, float]:
    """Return gravity as three finite floats."""
    refuse_masked(gravity, "gravity")
    try:
        g = floats(gravity, "gravity")
    except ShapeError:
        g = np.array(np.nan)
    if g.shape != (3,) or not np.isfinite(g).all():
        raise ModelError(f"gravity is three finite numbers in m/s^2, such as (0, 0, -9.81); got {gravity!r}")
    return (float(g[0]), float(g[1]), float(g[2]))


# ----------------------------------------------------------------------------------------------------------------------
# Validation of a mechanism's parts together: names that exist, inertias that bodies can have.


MOST_NAMED = 5
"""Bodies that a warning names; the notes name all."""


def check(parts: Builder, joints: Sequence[Joint], ground: str, strict: bool, allow_unphysical: bool) -> list[str]:
    """Refuse what makes no mechanism; return notes on what is allowed but should be known."""
    notes = _inertias(parts, strict, allow_unphysical)
    for joint in joints:
        _joint(joint)
    _frames(parts, joints, ground)
    _coordinates(parts, joints)
    _loops(parts)
    return [*notes, *_signs(parts, joints), *_circles(parts, joints)]


def _signs(parts: Builder, joints: Sequence[Joint]) -> list[str]:
    """Return notes on numbers that should not be negative."""
    notes = [
        f"{what} {part.name!r}: its {attribute} is negative ({getattr(part, attribute):g}); kept as it is"
        for what, table in (("spring", parts.springs), ("tendon", parts.tendons))
        for part in table.values()
        for attribute in ("stiffness", "damping")
        if getattr(part, attribute) < 0
    ]
    for joint in joints:
        values = {
            "damping": joint.damping,
            "friction": joint.friction,
            "stiffness": joint.stiffness,
            "velocity limit": joint.limits.velocity,
            "effort limit": joint.limits.effort,
        }
        notes += [
            f"joint {joint.name!r}: its {attribute} is negative ({min(value):g}); kept as it is"
            for attribute, value in values.items()
            if value and min(value) < 0
        ]
    return notes


def _circles(parts: Builder, joints: Sequence[Joint]) -> list[str]:
    """Return notes on couplings and springs of angles that are only known up to whole turns."""
    circles = {joint.name for joint in joints if joint.kind == "continuous"}
    springs = [
        f"joint {joint.name!r}: continuous, so the torque of its spring jumps half a turn from rest; make it "
        "'revolute', without limits, if it turns further"
        for joint in joints
        if joint.kind == "continuous" and any(joint.stiffness)
    ]
    return springs + [
        f"coupling {coupling.name!r}: the angle of the continuous joint {term!r} counts within (-pi, pi], where the "
        "relation jumps; make it 'revolute', without limits, if it turns further"
        for coupling in parts.couplings.values()
        for term, factor in coupling.terms
        if term in circles and factor
    ]


def _inertias(parts: Builder, strict: bool, allow_unphysical: bool) -> list[str]:
    """Return a note on every inertia that no body can have; warn of them, or refuse the first where `strict`."""
    if strict and allow_unphysical:
        raise ModelError("strict=True refuses what allow_unphysical=True allows: give one of them")
    notes: list[str] = []
    named: list[str] = []
    for body in parts.bodies.values():
        problem = body.inertia.problem()
        if problem is None:
            continue
        if strict:
            words = advised(f"body {body.name!r}: {problem}; correct it", "or take it as it is with strict=False")
            raise ModelError(words, body.source, subject="mass" if "mass" in problem else "inertia")
        notes.append(f"body {body.name!r}: {problem}; taken as it is: {body.inertia.consequence()}")
        named.append(repr(body.name))
    if named and not allow_unphysical:
        warn_user(_unphysical_words(parts, named))
    return notes


def _unphysical_words(parts: Builder, named: list[str]) -> str:
    """Return the warning about bodies, by name."""
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    where = "" if parts.source is None else f"{parts.source}: "
    message = f"{where}{parts.name!r} has {len(named)} inertias that no body can have, taken as they are: "
    message += f"{', '.join(named[:MOST_NAMED])}{more}"
    return Advised(
        f"{message}. mechanism.notes says what is wrong and what it means for the mass matrix; strict=True "
        "refuses them, allow_unphysical=True takes them without this warning",
        f"{message}. `dalembert show FILE` says what is wrong and what it means for the mass matrix",
    )


def _joint(joint: Joint) -> None:
    if joint.kind == "universal" and np.linalg.norm(np.cross(joint.axis, joint.axis2)) < ONE_AXIS:
        raise ModelError(f"the two axes of the universal joint {joint.name!r} are parallel: {joint.axis}", joint.source)
    if any(x < 0 for x in joint.armature):
        raise ModelError(f"joint {joint.name!r} has a negative armature {joint.armature}", joint.source)


def _frames(parts: Builder, joints: Sequence[Joint], ground: str) -> None:
    """Check that frames stand on bodies, and springs and loops between what exists."""
    bodies = {ground: None} | dict.fromkeys(parts.bodies)
    for frame in parts.frames.values():
        if frame.name in bodies:
            raise ModelError(f"frame {frame.name!r} has the name of a body, which is a frame already", frame.source)
        lookup(frame.body, bodies, f"body (of frame {frame.name!r})", frame.source)
    frames = bodies | dict.fromkeys(parts.frames) | {joint.name: None for joint in joints}
    for spring in parts.springs.values():
        for end in (spring.frame, spring.other):
            lookup(end, frames, f"frame (of spring {spring.name!r})", spring.source)
    for loop in parts.loops.values():
        for end in (loop.body, loop.other):
            lookup(end, bodies, f"body (of loop {loop.name!r})", loop.source)


def _coordinates(parts: Builder, joints: Sequence[Joint]) -> None:
    """Check that actuators and couplings act on coordinates that exist."""
    names: dict[str, None] = {}
    for joint in joints:
        for suffix in KINDS[joint.kind].v_names:
            name = f"{joint.name}.{suffix}" if suffix else joint.name
            if name in names:
                raise ModelError(
                    f"joint {joint.name!r}: the coordinate {name!r} is there already; coordinates of a joint are "
                    "called 'joint.wx' and so on, so rename one of the two joints",
                    joint.source,
                )
            names[name] = None
    for actuator in parts.actuators.values():
        lookup(actuator.coordinate, names, f"coordinate (of actuator {actuator.name!r})", actuator.source)
        if actuator.rotor_inertia < 0 or not actuator.effort >= 0:
            raise ModelError(
                f"actuator {actuator.name!r}: rotor inertia {actuator.rotor_inertia:g} and effort {actuator.effort:g} "
                "must not be negative",
                actuator.source,
            )
    kinds = {joint.name: joint.kind for joint in joints}
    for tendon in parts.tendons.values():
        _terms(tendon, f"tendon {tendon.name!r}", names, kinds)
    for coupling in parts.couplings.values():
        if not any(factor for _, factor in coupling.terms):
            raise ModelError(f"coupling {coupling.name!r} couples nothing: all its factors are zero", coupling.source)
        _terms(coupling, f"coupling {coupling.name!r}", names, kinds, "continuous")


def _terms(part: Tendon | Coupling, what: str, names: dict[str, None], kinds: dict[str, str], *others: str) -> None:
    """Check that a sum of coordinates has terms that are lengths and angles, or of other kinds of joints."""
    allowed = (*(kind.name for kind in KINDS.values() if kind.straight and kind.nv), *others)
    for term, _ in part.terms:
        lookup(term, names, f"coordinate (of {what})", part.source)
        kind = kinds.get(term, kinds.get(term.rpartition(".")[0], ""))
        if kind not in allowed:
            raise ModelError(
                f"{what}: {term!r} belongs to a {kind} joint, whose coordinates are no single lengths and angles; it "
                f"may be {', '.join(allowed)}",
                part.source,
            )


def _loops(parts: Builder) -> None:
    """Check that loops are between two bodies, and that their options are those of their kind."""
    if not parts.loops:
        return
    from dalembert.model.constraints.all_rows import from_loop

    for loop in parts.loops.values():
        if loop.body == loop.other:
            raise ModelError(f"loop {loop.name!r} joins {loop.body!r} to itself", loop.source)
        from_loop(loop)
