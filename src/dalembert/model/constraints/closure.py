"""What a file gives as couplings and loops, as the constraints they are."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from dalembert.errors import ModelError
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.coupler import Coupler
from dalembert.model.constraints.cylindrical import Cylindrical
from dalembert.model.constraints.distance import Distance
from dalembert.model.constraints.planar import Planar
from dalembert.model.constraints.point import Point
from dalembert.model.constraints.prismatic import Prismatic
from dalembert.model.constraints.revolute import Revolute
from dalembert.model.constraints.universal import Universal
from dalembert.model.constraints.weld import Weld
from dalembert.model.naming import lookup, near_matches

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism
    from dalembert.model.parts import Coupling, Loop

LOOPS: dict[str, tuple[Any, bool]] = {
    "point": (Point, False),
    "weld": (Weld, False),
    "revolute": (Revolute, True),
    "prismatic": (Prismatic, True),
    "cylindrical": (Cylindrical, True),
    "universal": (Universal, True),
    "planar": (Planar, True),
    "distance": (Distance, False),
}
"""Per kind of `Loop` the constraint, and whether it has an axis."""


def closing(mechanism: Mechanism) -> tuple[Constraint, ...]:
    """Return couplings and loops of a mechanism as constraints, in this order."""
    return (*map(from_coupling, mechanism.couplings), *map(from_loop, mechanism.loops))


def from_coupling(coupling: Coupling) -> Constraint:
    """Return a coupling as a `Coupler`."""
    return Coupler(coupling.terms, coupling.offset, name=coupling.name)


def from_loop(loop: Loop) -> Constraint:
    """Return a loop as the constraint of its kind; `options` of the loop are fields of the constraint."""
    kind, has_axis = lookup(loop.kind, LOOPS, "kind of loop", loop.source)
    given = dict(loop.options) | ({"axis": loop.axis} if has_axis else {})
    _check_options(loop, kind, given)
    try:
        return kind(
            loop.body,
            loop.other,
            placement=loop.placement,
            at=loop.other_placement,
            name=f"loop {loop.name}",
            **given,
        )
    except (TypeError, ValueError, ModelError) as error:
        raise ModelError(f"loop {loop.name!r} ({loop.kind}): {error}", loop.source) from error


def _check_options(loop: Loop, kind: Any, given: dict[str, Any]) -> None:
    """Refuse options that the constraint does not have, and ask for those that it needs."""
    own = {each.name: each for each in fields(kind) if each.name not in ("frame", "other", "placement", "at", "name")}
    for name in given:
        if name not in own:
            raise ModelError(
                f"loop {loop.name!r} ({loop.kind}) has no option {name!r}; it takes {', '.join(own)}",
                loop.source,
                near_matches(name, own),
            )
    needed = [name for name, each in own.items() if each.default is MISSING and each.default_factory is MISSING]
    missing = [name for name in needed if name not in given]
    if missing:
        raise ModelError(
            f"loop {loop.name!r} ({loop.kind}) needs options={{{', '.join(f'{name!r}: ...' for name in missing)}}}",
            loop.source,
        )
