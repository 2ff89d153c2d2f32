"""Elements of a large mechanism in maximal coordinates: what one body, one joint or one constraint adds to G.

Symbols: x local unknowns, x' their rates, u torques; s shift of Newton's matrix dG/dx + s dG/dx'. Local numbers: body k
has 14 unknowns from 14 k, in the order p, e, v, w, mu of `maximal`, and 14 rows that belong to them: rate of p, rate of
e, force, moment, unit e. Own multipliers and angles come last, and the own rows in the same order: the equation that
belongs to an unknown has its number.

The equations are those of `maximal`, written for one or two bodies. Elements of equal description share one function.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Int

from dalembert.model.placement import Placement
from dalembert.tableau.bodies import BASE, Body, Joint, Multibody, Source
from dalembert.tableau.body_rows import BodyKinematics, add_constraint, require_pair
from dalembert.tableau.maximal import Sheet
from dalembert.tableau.variables import element_names

Array = np.ndarray

OF_BODY = {"p": ("rate of p", 3), "e": ("rate of e", 4), "v": ("force", 3), "w": ("moment", 3), "mu": ("unit e", 1)}
"""Unknowns of a body in their order, the equation of each, and their number."""

SIZE = sum(size for _, size in OF_BODY.values())


@dataclass(frozen=True, eq=False)
class Element:
    """One body, joint or constraint: where it stands, its own names, and what makes it equal to others."""

    bodies: tuple[int, ...]
    equations: tuple[str, ...]
    unknowns: tuple[str, ...]
    torques: tuple[str, ...]
    kind: Hashable
    described: Any


@dataclass(frozen=True, eq=False)
class Formulas:
    """The functions that elements of equal description share; `rows`, `cols` are the local places of the Jacobian."""

    residual: ca.Function
    jacobian: ca.Function
    rows: Int[Array, " entries"]
    cols: Int[Array, " entries"]


def body_element(i: int, body: Body) -> Element:
    """Return the element of body i: its inertia, its weight and its kinematics."""
    kind = ("body", _plain(body.mass), _plain(body.inertia))
    return Element((i,), (), (), (), kind, replace(body, centre=np.zeros(3)))


def joint_element(joint: Joint, bodies: Sequence[Body]) -> Element:
    """Return the element of a joint."""
    ends = tuple(body for body in (joint.parent, joint.child) if body != BASE)
    local = replace(
        joint,
        parent=BASE if joint.parent == BASE else 0,
        child=len(ends) - 1,
        origin=joint.origin - (0.0 if joint.parent == BASE else bodies[joint.parent].centre),
        child_origin=joint.child_origin - bodies[joint.child].centre,
    )
    kind = ("joint", *[_plain(getattr(local, each.name)) for each in fields(local) if each.name != "name"])
    rows = element_names(f"joint {joint.name}", 6 - joint.motion.nv)
    lam = element_names(f"lam {joint.name}", len(rows))
    tau = element_names(f"tau {joint.name}", joint.motion.nv)
    if joint.kind == "helical" or (joint.kind == "revolute" and np.any(joint.stiffness)):
        rows, lam = (*rows, f"angle {joint.name}"), (*lam, f"q {joint.name}")
    return Element(ends, tuple(rows), tuple(lam), tuple(tau), kind, local)


def constraint_element(constraint: Any, model: Multibody, source: Source) -> Element:
    """Return the element of a constraint between two frames."""
    require_pair(constraint)
    mechanism = source.mechanism
    owners = [mechanism.frame(name).body for name in (constraint.frame, constraint.other or mechanism.ground)]
    ends = tuple(dict.fromkeys(source.places[owner][0] for owner in owners if source.places[owner][0] != BASE))
    places, frames = {}, []
    for owner, name in zip(owners, (constraint.frame, constraint.other or mechanism.ground), strict=True):
        body, own = source.places[owner]
        if body != BASE:
            own = Placement(own.rotation, own.position - model.bodies[body].centre)
        places[owner] = (BASE if body == BASE else ends.index(body), own)
        frames += [places[owner][0], _plain(own @ mechanism.frame(name).placement)]
    skipped = ("name", "frame", "other")
    data = [_plain(getattr(constraint, each.name)) for each in fields(constraint) if each.name not in skipped]
    names = constraint.row_names()
    kind = (type(constraint), constraint.other is None, *frames, *data)
    described = (constraint, Source(mechanism, places))
    rows, lam = (tuple(f"{word} {name}" for name in names) for word in ("row", "lam"))
    return Element(ends, rows, lam, (), kind, described)


def formulas(element: Element, gravity: Array) -> Formulas:
    """Write the equations of an element and differentiate them."""
    described = element.described
    centred = [Body(str(k), 0.0, np.zeros(3), np.zeros((3, 3))) for k in range(len(element.bodies))]
    if isinstance(described, Body):
        sheet = Sheet(Multibody([replace(described, name="0")], [], gravity))
        sheet.move()
        return _differentiated(sheet, sheet.equations, {}, [], element)
    sheet = Sheet(Multibody(centred, [described] if isinstance(described, Joint) else [], np.zeros(3)))
    if isinstance(described, Joint):
        sheet.add(described)
        own = {name: x for name, x in sheet.variables.items() if name.startswith(("lam ", "q "))}
        return _differentiated(sheet, _forces(sheet), own, [sheet.variables[f"tau {described.name}"]], element)
    constraint, source = described
    wrenches = [ca.SX(6, 1) for _ in sheet.poses]
    multipliers: dict[str, ca.SX] = {}
    seen = BodyKinematics(sheet.model, source, sheet.poses)
    add_constraint(constraint, seen, wrenches, sheet.rows, multipliers)
    for own, more in zip(sheet.wrenches, wrenches, strict=True):
        own[0], own[1] = own[0] + more[:3], own[1] + more[3:]
    return _differentiated(sheet, _forces(sheet), multipliers, [], element)


def _forces(sheet: Sheet) -> dict[str, ca.SX]:
    """Return what the wrenches add to the equations of motion."""
    pairs = enumerate(sheet.wrenches)
    return {name: -w for k, pair in pairs for name, w in zip((f"force {k}", f"moment {k}"), pair, strict=True)}


def _differentiated(
    sheet: Sheet, equations: dict[str, ca.SX], own: dict[str, ca.SX], torques: list[ca.SX], element: Element
) -> Formulas:
    """Return residual and Jacobian with local numbers."""
    unknowns, rates, rows = [], [], []
    for k in range(len(element.bodies)):
        for letter, (word, size) in OF_BODY.items():
            name = f"{letter} {k}"
            unknowns.append(sheet.variables.get(name, ca.SX.sym(name, size)))
            rates.append(sheet.rates.get(name, ca.SX.sym(f"{name}'", size)))
            rows.append(equations.get(f"{word} {k}", ca.SX(size, 1)))
    angles = [row for name, row in sheet.rows.items() if name.startswith("angle ")]
    others = [row for name, row in sheet.rows.items() if not name.startswith("angle ")]
    ordered = sorted(own, key=lambda name: name.startswith("q "))
    unknowns += [own[name] for name in ordered]
    rates.append(ca.SX.sym("still", sum(own[name].numel() for name in ordered)))
    x, x_dot, u, s = (*(ca.vertcat(*part, ca.SX(0, 1)) for part in (unknowns, rates, torques)), ca.SX.sym("s"))
    G = ca.vertcat(*rows, *others, *angles)
    J = ca.sparsify(ca.jacobian(G, x) + s * ca.jacobian(G, x_dot))
    at = [np.array(part, dtype=np.int64) for part in J.sparsity().get_triplet()]
    nonzeros: list[Any] = J.nonzeros()
    inputs = [x, x_dot, u]
    return Formulas(
        ca.Function("residual", inputs, [ca.densify(G)]),
        ca.Function("jacobian", [*inputs, s], [ca.vertcat(*nonzeros, ca.SX(0, 1))]),
        *at,
    )


def _plain(value: Any) -> Hashable:
    """Return a value by which equal descriptions are recognised."""
    if isinstance(value, Placement):
        return (_plain(value.rotation), _plain(value.position))
    if isinstance(value, (np.ndarray, float, int, np.number, list, tuple)):
        return (np.asarray(value, dtype=float) + 0.0).tobytes()
    return value
