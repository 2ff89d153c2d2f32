"""Contacts with friction as data: what rubs, along which direction, under which law and load."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.friction.laws.laws import as_law

# ----------------------------------------------------------------------------------------------------------------------
# Contacts with friction, as data: what rubs, along which direction, under which law and load.
#
# A contact's relative velocity is  w(q, t)^T v - surface(t),  w its direction; its force on the system is w T.
#
# | contact | limit of the force |
# |---|---|
# | `Bounded` | load x law, a given load (seed 001: 1, the law being in newton); one direction, or two for a plane |
# | `JointFriction` | the same, along one coordinate |
# | `Coulomb` | reaction of a constraint row x law, the law being a coefficient; one direction, or two for a plane |


@dataclass(frozen=True, eq=False)
class FrictionContact:
    """What all contacts have in common.

    Attributes
    ----------
    name
        For messages, index sets and events.
    along
        In a `Lagrangian`: the relative velocity as an SX expression, linear in v (or a relative displacement, an
        expression of q and t alone); a list of two for a plane. In `Matrices`: the direction w, (n,), a function of
        (q, t) that returns it, or a list of two.
    law
        A law, or a number for Coulomb's.
    surface
        Velocity of the other side along the direction, m/s: a number; in a `Lagrangian` also an expression of t; in
        `Matrices` also a function of t that returns velocity and acceleration. Of a plane: one for both directions, or
        a list of two.
    drift
        For `Matrices` with a direction that is a function: w_dot^T v, a function of (q, v, t); for a plane a list.
    """

    name: str
    along: Any
    law: Any
    surface: Any = field(default=0.0, kw_only=True)
    drift: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ModelError(f"a contact needs a name; got {self.name!r}")
        object.__setattr__(self, "law", as_law(self.law, f"contact {self.name!r}"))

    def part(self, what: str, j: int) -> Any:
        """Return `surface` or `drift` along direction j: an entry of a list of two, or what holds for both."""
        given = getattr(self, what)
        if not isinstance(given, list | tuple):
            return given
        if len(given) != self.directions:
            raise ModelError(
                f"contact {self.name!r}: {what} has {len(given)} entries for {self.directions} direction(s)"
            )
        return given[j]

    @property
    def directions(self) -> int:
        """Number of tangential directions: 1, or 2 for a plane."""
        if isinstance(self.along, np.ndarray) and self.along.ndim == 2:
            return len(self.along)
        if not isinstance(self.along, list | tuple) or all(isinstance(x, Real) for x in self.along):
            return 1
        return len(self.along)


@dataclass(frozen=True, eq=False)
class Bounded(FrictionContact):
    """Friction with a given limit: load x law; load is a number or a function of (q, v, t) (an expression)."""

    load: Any = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_many(self)


@dataclass(frozen=True, eq=False)
class Coulomb(FrictionContact):
    """Friction whose limit is law x |reaction| of the constraint row `normal`; an exact circular cone for a plane.

    With `unilateral` the row only pushes: a reaction below zero ends the contact.
    """

    normal: str = field(kw_only=True)
    unilateral: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_many(self)


@dataclass(frozen=True, eq=False)
class JointFriction(FrictionContact):
    """Friction in a joint: along one coordinate, given by its name or number; the limit is load x law."""

    load: Any = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.along, str | int):
            raise ModelError(f"contact {self.name!r}: a joint's `along` is the name or number of a coordinate")


def _refuse_many(one: FrictionContact) -> None:
    if one.directions not in (1, 2):
        raise ModelError(f"contact {one.name!r}: one direction or two for a plane, not {one.directions}")


CONTACTS = (Bounded, Coulomb, JointFriction)
"""Every kind of contact."""


def checked_contacts(contacts: Any) -> tuple[FrictionContact, ...]:
    """Return the contacts as a tuple; names must be distinct."""
    if contacts is None:
        return ()
    if isinstance(contacts, FrictionContact) or not isinstance(contacts, list | tuple):
        raise ModelError("friction must be a list of contacts: Bounded, Coulomb or JointFriction")
    seen: dict[str, int] = {}
    for i, one in enumerate(contacts):
        if not isinstance(one, CONTACTS):
            raise ModelError(f"friction[{i}] is {type(one).__name__}, not a contact: Bounded, Coulomb or JointFriction")
        if one.name in seen:
            raise ModelError(f"two contacts are called {one.name!r}: friction[{seen[one.name]}] and friction[{i}]")
        seen[one.name] = i
    return tuple(contacts)
