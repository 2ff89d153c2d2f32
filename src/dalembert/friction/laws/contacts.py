"""Contacts with friction as data: what rubs, along which direction, under which law and load."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from dalembert.checks import is_number
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
# | `BearingFriction` | load of a mechanism's bearing across its axis x radius x law, the law being a coefficient |


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
        value = getattr(self, what)
        if not isinstance(value, list | tuple):
            return value
        if len(value) != self.directions:
            raise ModelError(
                f"contact {self.name!r}: {what} has {len(value)} entries for {self.directions} direction(s)"
            )
        return value[j]

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
    """Friction in a joint: along one coordinate, given by its name or number; the limit is load x law.

    Of a mechanism also a hinge that closes a loop, by its name.
    """

    load: Any = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.along, str | int):
            raise ModelError(f"contact {self.name!r}: a joint's `along` is the name or number of a coordinate")


@dataclass(frozen=True, eq=False)
class BearingFriction(FrictionContact):
    """Friction of a mechanism's hinge or slider that depends on its load: law x radius x force across the axis.

    `along` is the name of the joint, or of a hinge or slider that closes a loop, the law a coefficient (by the speed),
    `radius` that of a journal in metres, left out of a slider. In runs of a mechanism:
    `da.simulate(m, ..., contacts=[BearingFriction(...)])`. Impacts take no time, and bearings no part in them.
    """

    radius: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.along, str):
            raise ModelError(f"contact {self.name!r}: `along` of a bearing is the name of a joint, not {self.along!r}")
        if not (is_number(self.radius) and 0.0 < self.radius < np.inf):
            raise ModelError(f"contact {self.name!r}: radius={self.radius!r} must be a finite number > 0")


@dataclass(frozen=True, eq=False)
class Unilateral(FrictionContact):
    """Two things that may touch: gap >= 0, a normal force that only pushes, friction in its cone, impacts.

    Attributes
    ----------
    gap
        The distance, positive where the contact is open: an SX expression of q and t of a `Lagrangian`; of `Matrices`
        (row, offset), or a function of q that returns the gap and its row (n,).
    along
        Relative velocity along the surface, as of other contacts; None where nothing rubs.
    law
        Coefficient of friction: a number or a law.
    restitution
        Between 0 (plastic) and 1 (elastic).
    impact
        "newton": normal velocities are reversed by `restitution`; "poisson": impulses of expansion are that part of
        those of compression.
    normal_drift
        For `Matrices` with a gap that is a function: n_dot^T v with the row n, a function of (q, v).
    """

    along: Any = None
    law: Any = 0.0
    gap: Any = field(kw_only=True)
    restitution: float = field(default=0.0, kw_only=True)
    impact: str = field(default="newton", kw_only=True)
    normal_drift: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.directions not in (0, 1, 2):
            raise ModelError(f"contact {self.name!r}: no direction, one, or two for a plane, not {self.directions}")
        if not (is_number(self.restitution) and 0.0 <= self.restitution <= 1.0):
            raise ModelError(f"contact {self.name!r}: restitution={self.restitution!r} must be between 0 and 1")
        if self.impact not in ("newton", "poisson"):
            raise ModelError(f"contact {self.name!r}: impact={self.impact!r} is not one of 'newton', 'poisson'")

    @property
    def directions(self) -> int:
        """Number of tangential directions: 0, 1, or 2 for a plane."""
        return 0 if self.along is None else super().directions


def _refuse_many(contact: FrictionContact) -> None:
    if contact.directions not in (1, 2):
        raise ModelError(f"contact {contact.name!r}: one direction or two for a plane, not {contact.directions}")


CONTACTS = (Bounded, Coulomb, JointFriction)
"""Contacts of prescribed or redundant load; `Unilateral` and `BearingFriction` have loads of their own."""


def checked_unilateral(contacts: Any, others: tuple[FrictionContact, ...]) -> tuple[Unilateral, ...]:
    """Return unilateral contacts as a tuple; names must be distinct, also from those of other contacts."""
    if contacts is None:
        return ()
    several = [contacts] if isinstance(contacts, Unilateral) else contacts
    if not isinstance(several, list | tuple) or not all(isinstance(contact, Unilateral) for contact in several):
        raise ModelError("unilateral must be a list of Unilateral(name, gap=...)")
    names = [contact.name for contact in (*others, *several)]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two contacts are called {name!r}")
    return tuple(several)


def checked_contacts(contacts: Any) -> tuple[FrictionContact, ...]:
    """Return the contacts as a tuple; names must be distinct."""
    if contacts is None:
        return ()
    if isinstance(contacts, FrictionContact) or not isinstance(contacts, list | tuple):
        raise ModelError("friction must be a list of contacts: Bounded, Coulomb or JointFriction")
    seen: dict[str, int] = {}
    for i, contact in enumerate(contacts):
        if not isinstance(contact, CONTACTS):
            raise ModelError(
                f"friction[{i}] is {type(contact).__name__}, not a contact: Bounded, Coulomb or JointFriction"
            )
        if contact.name in seen:
            raise ModelError(
                f"two contacts are called {contact.name!r}: friction[{seen[contact.name]}] and friction[{i}]"
            )
        seen[contact.name] = i
    return tuple(contacts)
