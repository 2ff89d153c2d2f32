"""One joint of a compiled MJCF model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.mechanism.parts import Joint, Limits
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.readers.mjcf.reader import CompiledModel

KINDS = ("free", "spherical", "prismatic", "revolute")
"""By MuJoCo's mjtJoint: free, ball, slide, hinge."""

VELOCITIES = {"free": 6, "spherical": 3, "prismatic": 1, "revolute": 1}


def mujoco_joint(compiled: CompiledModel, j: int, parent: str, child: str, X: Placement) -> Joint:
    """Return joint j between two bodies; X places the child in the parent at `qpos0`."""
    model, draft = compiled.model, compiled.draft
    kind = KINDS[int(model.jnt_type[j])]
    name, nv = compiled.names["joint"][j], VELOCITIES[kind]
    source = compiled.source("freejoint" if kind == "free" else "joint", name)
    dof = slice(int(model.jnt_dofadr[j]), int(model.jnt_dofadr[j]) + nv)
    x, y, z = (float(value) for value in model.jnt_axis[j])
    axis, anchor = (x, y, z), Placement(position=model.jnt_pos[j])
    reference = float(model.qpos0[model.jnt_qposadr[j]])
    armature = _given(model.dof_armature[dof])
    if kind == "free":
        draft.initial[name], X, anchor = X, IDENTITY, IDENTITY
        if armature:
            draft.notes.append(
                f"{source}: the armature of a free joint counts in M; MuJoCo's bias lacks the term armature (w x v)"
            )
    placed = X @ anchor
    if kind in ("revolute", "prismatic"):
        placed = placed @ moved(kind, axis, -reference)
        if reference:
            draft.notes.append(
                f"{source}: qpos0 = {reference:g} is where the file draws it (`pose`); `neutral` is at 0"
            )
    _note_polynomials(compiled, j, dof, source)
    stiffness, rest = _spring(compiled, j, kind, nv)
    switched = (
        ("spring", model.jnt_stiffness[j], compiled.no_springs),
        ("damping", model.dof_damping[dof], compiled.no_dampers),
        ("dry friction", model.dof_frictionloss[dof], compiled.no_friction),
    )
    draft.notes += [
        f"{source}: left out: its {what}, which the file switches off" for what, x, off in switched if off and np.any(x)
    ]
    return Joint(
        name=name,
        kind=kind,
        parent=parent,
        child=child,
        placement=placed,
        child_placement=anchor,
        axis=axis if kind in ("revolute", "prismatic") else (1.0, 0.0, 0.0),
        limits=_limits(compiled, j, kind, nv, source),
        damping=() if compiled.no_dampers else _given(model.dof_damping[dof]),
        friction=() if compiled.no_friction else _given(model.dof_frictionloss[dof]),
        armature=armature,
        stiffness=stiffness,
        rest=rest,
        source=source,
    )


def moved(kind: str, axis: tuple[float, float, float], q: float) -> Placement:
    """Return the motion of a hinge or a slider by q."""
    if kind == "prismatic":
        return Placement(position=q * np.array(axis))
    half, turn = q / 2, np.array(axis)
    return Placement.from_quaternion([*(np.sin(half) * turn), np.cos(half)])


def _given(values: Array) -> tuple[float, ...]:
    return tuple(float(x) for x in values) if np.any(values) else ()


def largest_force(compiled: CompiledModel, between: Array, source: Any) -> float:
    """Return the larger side of a range of forces; one whose sides differ is noted."""
    low, high = (float(x) for x in between)
    if low != -high:
        compiled.draft.notes.append(
            f"{source}: forces from {low:g} to {high:g}; an effort has one limit for both directions, the larger"
        )
    return max(abs(low), abs(high))


def _limits(compiled: CompiledModel, j: int, kind: str, nv: int, source: Any) -> Limits:
    model = compiled.model
    effort: tuple[float, ...] = ()
    if model.jnt_actfrclimited[j]:
        effort = (largest_force(compiled, model.jnt_actfrcrange[j], source),) * nv
    if not model.jnt_limited[j]:
        return Limits(effort=effort)
    if compiled.disabled("mjDSBL_LIMIT", "mjDSBL_CONSTRAINT"):
        compiled.draft.notes.append(f"{source}: left out: its limits, which the file switches off")
        return Limits(effort=effort)
    lower, upper = (float(x) for x in model.jnt_range[j])
    if kind == "spherical":
        compiled.draft.notes.append(f"{source}: left out: the limit of a ball joint, {upper:g} rad from neutral")
        return Limits(effort=effort)
    return Limits((lower,), (upper,), (), effort)


def _spring(compiled: CompiledModel, j: int, kind: str, nv: int) -> tuple[tuple[float, ...], ...]:
    """Return stiffness and rest of the joint's spring; the rest of a rotation is its vector from neutral."""
    model = compiled.model
    stiffness = float(model.jnt_stiffness[j])
    if stiffness == 0 or compiled.no_springs:
        return (), ()
    spring = model.qpos_spring[int(model.jnt_qposadr[j]) :]
    if kind == "free":
        rest = (*spring[:3], *_rotation_vector(spring[3:7]))
    else:
        rest = _rotation_vector(spring[:4]) if kind == "spherical" else spring[:1]
    return (stiffness,) * nv, tuple(float(x) for x in rest)


def _rotation_vector(wxyz: Array) -> Array:
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(np.roll(wxyz, -1)).as_rotvec()


def _note_polynomials(compiled: CompiledModel, j: int, dof: slice, source: Any) -> None:
    """Name springs and dampers that are not linear; MuJoCo before 3.3 has none."""
    model = compiled.model
    for what, values, off in (
        ("stiffness", getattr(model, "jnt_stiffnesspoly", None), compiled.no_springs),
        ("damping", getattr(model, "dof_dampingpoly", None), compiled.no_dampers),
        ("yield", getattr(model, "jnt_springyield", None), compiled.no_springs),
    ):
        if off:
            continue
        coefficients = None if values is None else values[dof] if what == "damping" else values[j]
        if coefficients is not None and np.any(np.asarray(coefficients)):
            compiled.draft.notes.append(f"{source}: left out: the nonlinear part of its {what}")
