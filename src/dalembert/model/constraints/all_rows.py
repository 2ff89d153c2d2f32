"""All rows of a mechanism: couplings and loops of files as constraints, assembled one below the other."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.pairs import Cylindrical, Distance, Planar, Point, Prismatic, Revolute, Universal, Weld
from dalembert.model.constraints.prescribed import Coupler
from dalembert.model.constraints.row_algebra import Matrix, Rows, stack
from dalembert.names import lookup, near_matches

if TYPE_CHECKING:
    from dalembert.model.constraints.primitives import Kinematics
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Coupling, Loop

# ----------------------------------------------------------------------------------------------------------------------
# Couplings and loops of a file, as the constraints they are.


class LoopKind(NamedTuple):
    """A kind of `Loop`.

    Attributes
    ----------
    constraint
        What it is.
    has_axis
        Whether the constraint has an axis.
    urdf
        The type in URDF; none where URDF has no such joint.
    joints
        Kinds of joints that this one is where they close a loop.
    other_names
        What other tools call it.
    """

    constraint: Any
    has_axis: bool
    urdf: str | None
    joints: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()


LOOPS = {
    "point": LoopKind(Point, False, "spherical", ("spherical",), ("ball", "connect")),
    "weld": LoopKind(Weld, False, "fixed", ("fixed",)),
    "revolute": LoopKind(Revolute, True, "revolute", ("revolute", "continuous"), ("hinge",)),
    "prismatic": LoopKind(Prismatic, True, "prismatic", ("prismatic",), ("slide", "slider")),
    "cylindrical": LoopKind(Cylindrical, True, "cylindrical"),
    "universal": LoopKind(Universal, True, "universal", ("universal",)),
    "planar": LoopKind(Planar, True, "planar", ("planar",)),
    "distance": LoopKind(Distance, False, None, (), ("rod",)),
}
"""Every kind of `Loop` by name."""
LOOP_OF_JOINT = {joint: name for name, kind in LOOPS.items() for joint in kind.joints}
"""Per kind of joint the loop that it closes."""
LOOP_OF_NAME = LOOP_OF_JOINT | {other: name for name, kind in LOOPS.items() for other in kind.other_names}
"""Per other name of a loop the kind it is."""


def closing(mechanism: Mechanism) -> tuple[Constraint, ...]:
    """Return couplings and loops of a mechanism as constraints, in this order."""
    return (*map(from_coupling, mechanism.couplings), *map(from_loop, mechanism.loops))


def from_coupling(coupling: Coupling) -> Constraint:
    """Return a coupling as a `Coupler`."""
    return Coupler(coupling.terms, coupling.offset, name=coupling.name)


def from_loop(loop: Loop) -> Constraint:
    """Return a loop as the constraint of its kind; `options` of the loop are fields of the constraint."""
    form = lookup(loop.kind, LOOPS, "kind of loop", loop.source)
    kind = form.constraint
    options = dict(loop.options) | ({"axis": loop.axis} if form.has_axis else {})
    _check_options(loop, kind, options)
    try:
        return kind(
            loop.body,
            loop.other,
            placement=loop.placement,
            at=loop.other_placement,
            name=f"loop {loop.name}",
            **options,
        )
    except (TypeError, ValueError, ModelError) as error:
        raise ModelError(f"loop {loop.name!r} ({loop.kind}): {error}", loop.source) from error


def _check_options(loop: Loop, kind: Any, options: dict[str, Any]) -> None:
    """Refuse options that the constraint does not have, and ask for those that it needs."""
    options_of_kind = {
        field.name: field for field in fields(kind) if field.name not in ("frame", "other", "placement", "at", "name")
    }
    for name in options:
        if name not in options_of_kind:
            raise ModelError(
                f"loop {loop.name!r} ({loop.kind}) has no option {name!r}; it takes {', '.join(options_of_kind)}",
                loop.source,
                near_matches(name, options_of_kind),
            )
    needed = [
        name for name, field in options_of_kind.items() if field.default is MISSING and field.default_factory is MISSING
    ]
    missing = [name for name in needed if name not in options]
    if missing:
        raise ModelError(
            f"loop {loop.name!r} ({loop.kind}) needs options={{{', '.join(f'{name!r}: ...' for name in missing)}}}",
            loop.source,
        )


# ----------------------------------------------------------------------------------------------------------------------
# All rows of a mechanism, one below the other, with stabilisation where it is asked for.


@dataclass(frozen=True, eq=False)
class Assembled:
    """Rows of all constraints of a mechanism.

    Attributes
    ----------
    residual : (h, 1)
        phi of the rows that have one (`Mechanism.holonomic`).
    jacobian, rate, drift : (m, nv), (m, 1), (m, 1)
        A v + offset = rate must vanish; A a + drift = 0. The drift has the terms of stabilisation.
    """

    residual: Matrix
    jacobian: Matrix
    rate: Matrix
    drift: Matrix


def assemble(kinematics: Kinematics) -> Assembled:
    """Return the rows of `mechanism.all_constraints`, in the order of `mechanism.names`."""
    parts = [part for constraint in kinematics.mechanism.all_constraints for part in parts_of(constraint, kinematics)]
    residuals = [part.residual for part in parts if part.residual is not None]
    return Assembled(
        _stack(residuals, 1),
        _stack([part.jacobian for part in parts], kinematics.mechanism.nv),
        _stack([part.rate for part in parts], 1),
        _stack([part.drift for part in parts], 1),
    )


def parts_of(constraint: Constraint, kinematics: Kinematics) -> list[Rows]:
    """Return a constraint's rows, those with and those without residual apart."""
    rows = constraint.rows(kinematics)
    parts = rows if isinstance(rows, list) else [rows]
    gains = constraint.stabilize
    return parts if gains is None else [part.stabilized(gains) for part in parts]


def _stack(blocks: list[Matrix], columns: int) -> Matrix:
    """Return blocks one below the other; entries known to be zero leave an expression's sparsity."""
    if not blocks:
        return np.zeros((0, columns))
    whole = stack(blocks)
    if isinstance(whole, np.ndarray):
        return whole
    import casadi as ca

    return ca.sparsify(whole)
