"""Equalities, tendons and actuators of an MJCF model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.mechanism.parts import Actuator, Coupling, Loop, Spring, Tendon
from dalembert.model.mechanism.placement import Placement
from dalembert.readers.mjcf.compiled_model import import_mujoco, lost_rotor
from dalembert.readers.mjcf.joints import largest_force
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.readers.mjcf.reader import CompiledModel

SAME_PLACE = 1e-9
"""Places on one body that differ by less, in metres and in entries of a rotation, are one place of the file."""


def add_equalities(compiled: CompiledModel) -> None:
    """Add connect and weld as loops, joint and tendon as couplings; what does not map is named."""
    model, draft = compiled.model, compiled.draft
    kinds = import_mujoco().mjtEq
    adders = {
        int(kinds.mjEQ_CONNECT): _connect,
        int(kinds.mjEQ_WELD): _weld,
        int(kinds.mjEQ_JOINT): _joint,
        int(kinds.mjEQ_TENDON): _tendon,
    }
    for i in range(model.neq):
        kind, label = int(model.eq_type[i]), model.equality(i).name
        relation = kinds(kind).name.removeprefix("mjEQ_").lower()
        name = draft.new_name("equality", label or f"{relation}_{i}")
        if not model.eq_active0[i] or compiled.disabled("mjDSBL_EQUALITY", "mjDSBL_CONSTRAINT"):
            draft.notes.append(f"left out: equality {name!r} ({relation}), which the file switches off")
        elif kind not in adders or not adders[kind](compiled, i, name):
            draft.notes.append(
                f"left out: equality {name!r} ({relation}), which is not a linear relation of coordinates"
            )


def _ends(compiled: CompiledModel, i: int) -> list[tuple[str, Placement]] | None:
    """Return bodies and placements of an equality between sites; None where it is between bodies."""
    from dalembert.readers.mjcf.reader import placement

    model = compiled.model
    if int(model.eq_objtype[i]) != int(import_mujoco().mjtObj.mjOBJ_SITE):
        return None
    ends = []
    for site in (int(model.eq_obj1id[i]), int(model.eq_obj2id[i])):
        body = compiled.names["body"][model.site_bodyid[site]]
        ends.append((body, placement(model.site_pos[site], model.site_quat[site])))
    return ends


def _bodies(compiled: CompiledModel, i: int) -> tuple[str, str]:
    names = compiled.names["body"]
    return names[int(compiled.model.eq_obj1id[i])], names[int(compiled.model.eq_obj2id[i])]


def _connect(compiled: CompiledModel, i: int, name: str) -> bool:
    """Add a point that two bodies share: data are its positions in both."""
    data, ends = compiled.model.eq_data[i], _ends(compiled, i)
    if ends is None:
        first, second = _bodies(compiled, i)
        ends = [(first, Placement(position=data[0:3])), (second, Placement(position=data[3:6]))]
    _add_loop(compiled, "connect", Loop(name, "point", ends[0][0], ends[1][0], ends[0][1], ends[1][1]))
    return True


def _weld(compiled: CompiledModel, i: int, name: str) -> bool:
    """Add a weld: data are a point of the second body, its place in the first, and the second's rotation there.

    The eleventh is `torquescale`, which multiplies the rows of rotation: zero leaves a point.
    """
    from dalembert.readers.mjcf.reader import placement

    data, ends = compiled.model.eq_data[i], _ends(compiled, i)
    if ends is None:
        first, second = _bodies(compiled, i)
        ends = [(first, placement(data[3:6], data[6:10])), (second, Placement(position=data[0:3]))]
    kind = "weld" if data[10] else "point"
    _add_loop(compiled, "weld", Loop(name, kind, ends[0][0], ends[1][0], ends[0][1], ends[1][1]))
    return True


def _add_loop(compiled: CompiledModel, word: str, loop: Loop) -> None:
    """Add a loop; one between two places of a body that agree says nothing (bodies that MuJoCo fused, sites)."""
    between = loop.placement.inverse() @ loop.other_placement
    turn = np.abs(between.rotation - np.eye(3)).max() if loop.kind == "weld" else 0.0
    if loop.body == loop.other and max(turn, np.abs(between.position).max()) < SAME_PLACE:
        compiled.draft.notes.append(f"left out: equality {loop.name!r} ({word}), which joins {loop.body!r} to itself")
    else:
        compiled.draft.loops.append(replace(loop, source=compiled.source(word, loop.name)))


def _linear(data: Array) -> bool:
    """Say whether a polynomial stops after its linear term."""
    return not np.any(data[2:5])


def _joint(compiled: CompiledModel, i: int, name: str) -> bool:
    """Add y - y0 = c0 + c1 (x - x0) for two joints, or y - y0 = c0 for one."""
    model, data = compiled.model, compiled.model.eq_data[i]
    if not _linear(data):
        return False
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    y0 = float(model.qpos0[model.jnt_qposadr[first]])
    terms = [(compiled.names["joint"][first], 1.0)]
    offset = y0 + float(data[0])
    if second >= 0:
        factor = float(data[1])
        terms.append((compiled.names["joint"][second], -factor))
        offset -= factor * float(model.qpos0[model.jnt_qposadr[second]])
    compiled.draft.couplings.append(Coupling(name, tuple(terms), offset, compiled.source("joint", name)))
    return True


def _tendon(compiled: CompiledModel, i: int, name: str) -> bool:
    """Add the same relation between the lengths of fixed tendons, which are linear in the coordinates."""
    model, data = compiled.model, compiled.model.eq_data[i]
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    lengths = [_fixed_tendon(compiled, tendon) for tendon in (first, second) if tendon >= 0]
    if not _linear(data) or any(terms is None for terms in lengths):
        return False
    sums: dict[str, float] = {}
    offset = float(data[0]) + float(model.tendon_length0[first])
    factors = (1.0, -float(data[1]))
    for factor, terms in zip(factors, lengths, strict=False):
        for joint, coefficient in (terms or {}).items():
            sums[joint] = sums.get(joint, 0.0) + factor * coefficient
    if second >= 0:
        offset -= float(data[1]) * float(model.tendon_length0[second])
    if not any(sums.values()):
        return False
    source = compiled.source("tendon", name)
    compiled.draft.couplings.append(Coupling(name, tuple(sums.items()), offset, source))
    return True


def _fixed_tendon(compiled: CompiledModel, tendon: int) -> dict[str, float] | None:
    """Return joint -> coefficient of a fixed tendon; None for a spatial one."""
    model = compiled.model
    joint_wrap = int(import_mujoco().mjtWrap.mjWRAP_JOINT)
    terms: dict[str, float] = {}
    start = int(model.tendon_adr[tendon])
    for k in range(start, start + int(model.tendon_num[tendon])):
        if int(model.wrap_type[k]) != joint_wrap:
            return None
        name = compiled.names["joint"][int(model.wrap_objid[k])]
        terms[name] = terms.get(name, 0.0) + float(model.wrap_prm[k])
    return terms


def add_tendons(compiled: CompiledModel) -> None:
    """Add springs and dampers of fixed tendons and of those between two sites; what else a tendon does is named."""
    model, draft = compiled.model, compiled.draft
    for i in range(model.ntendon):
        name = draft.new_name("tendon", model.tendon(i).name or f"tendon_{i}")
        stiffness, damping = float(model.tendon_stiffness[i]), float(model.tendon_damping[i])
        spring, damper = not compiled.no_springs, not compiled.no_dampers
        limit = not compiled.disabled("mjDSBL_LIMIT", "mjDSBL_CONSTRAINT")
        unused = [
            what
            for what, values, acts in (
                ("limits", model.tendon_limited, limit),
                ("dry friction", model.tendon_frictionloss, not compiled.no_friction),
                ("armature", model.tendon_armature, True),
                ("the nonlinear part of stiffness", getattr(model, "tendon_stiffnesspoly", None), spring),
                ("the nonlinear part of damping", getattr(model, "tendon_dampingpoly", None), damper),
                ("the yield of its spring", getattr(model, "tendon_springyield", None), spring),
            )
            if acts and values is not None and np.any(values[i])
        ]
        stiffness *= spring
        damping *= damper
        if stiffness or damping:
            unused += _spring(compiled, i, name, stiffness, damping)
        if unused:
            draft.notes.append(f"left out: {', '.join(unused)} of tendon {name!r}")


def _spring(compiled: CompiledModel, i: int, name: str, stiffness: float, damping: float) -> list[str]:
    """Add the spring and damper of a tendon, fixed or between two sites; return what does not map."""
    low, high = (float(x) for x in compiled.model.tendon_lengthspring[i])
    fixed, ends = _fixed_tendon(compiled, i), _two_sites(compiled, i)
    if fixed:
        source = compiled.source("fixed", name)
        compiled.draft.tendons.append(Tendon(name, tuple(fixed.items()), stiffness, (low, high), damping, source))
    elif ends is not None and low == high:
        source = compiled.source("spatial", name)
        compiled.draft.springs.append(Spring(name, *ends, stiffness, low, damping, source))
    else:
        return ["spring and damper" if ends is None else "spring with a dead band"]
    return []


def _two_sites(compiled: CompiledModel, tendon: int) -> tuple[str, str] | None:
    """Return the two sites of a tendon that is one straight line."""
    model = compiled.model
    start = int(model.tendon_adr[tendon])
    site = int(import_mujoco().mjtWrap.mjWRAP_SITE)
    if int(model.tendon_num[tendon]) != 2 or any(int(model.wrap_type[start + k]) != site for k in (0, 1)):
        return None
    first, second = (compiled.names["site"][int(model.wrap_objid[start + k])] for k in (0, 1))
    return first, second


def add_actuators(compiled: CompiledModel) -> None:
    """Add motors on hinges and sliders: gear, rotor inertia and the largest force; controllers are not read."""
    model, draft = compiled.model, compiled.draft
    joint_word = int(import_mujoco().mjtTrn.mjTRN_JOINT)
    controlled = []
    for i in range(_actuator_count(model)):
        name = draft.new_name("actuator", model.actuator(i).name or f"actuator_{i}")
        joint = int(model.actuator_trnid[i, 0])
        rotor = float(model.actuator_armature[i]) if hasattr(model, "actuator_armature") else 0.0
        if int(model.actuator_trntype[i]) != joint_word or int(model.jnt_type[joint]) < 2:
            draft.notes.append(
                f"left out: actuator {name!r}, which is no motor on a hinge or slider{lost_rotor(rotor)}"
            )
            continue
        output = int(model.actuator_outadr[i]) if hasattr(model, "actuator_outadr") else i
        gear = float(model.actuator_gear[output, 0])
        limited = bool(model.actuator_forcelimited[i])
        coordinate, source = compiled.names["joint"][joint], compiled.source("motor", name)
        between = model.actuator_forcerange[i]
        effort = largest_force(compiled, between, source) * abs(gear) if limited else float("inf")
        draft.actuators.append(Actuator(name, coordinate, gear, rotor, effort, source))
        plain = model.actuator_gainprm[i, 0] == 1 and not np.any(model.actuator_biasprm[i])
        damping = getattr(model, "actuator_damping", None)
        if not plain or model.actuator_dyntype[i] or (damping is not None and np.any(damping[i])):
            controlled.append(name)
    if controlled:
        draft.notes.append(f"of {len(controlled)} actuators only gear and rotor are read: {', '.join(controlled[:5])}")
    if compiled.disabled("mjDSBL_ACTUATION") and _actuator_count(model):
        draft.notes.append("the file switches its actuators off (actuation of <flag>); tau acts here all the same")
    elif getattr(model.opt, "disableactuator", 0):
        draft.notes.append("the file switches groups of actuators off; they are read here, and tau acts all the same")


def _actuator_count(model: Any) -> int:
    """Return the number of actuators: since MuJoCo 4 one may take several of the `nu` controls."""
    return int(getattr(model, "nactuator", model.nu))
