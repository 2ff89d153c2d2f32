"""Contacts of a Lagrangian system: relative velocities, rows, drift and loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import casadi as ca

from dalembert.checks import floats
from dalembert.errors import ModelError
from dalembert.friction import (
    Coulomb,
    FrictionContact,
    JointFriction,
    Limited,
    Reacting,
    Resolution,
    Unilateral,
    resolve,
)
from dalembert.model.lagrangian.derivation import rate_of
from dalembert.model.lagrangian.symbols import Symbols
from dalembert.model.system import System
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    ContactTerms = tuple[Float[Array, " m"], Float[Array, "m n"], Float[Array, " m"], Float[Array, " k"]]

# ----------------------------------------------------------------------------------------------------------------------
# Contacts of a Lagrangian system as expressions: relative velocity, rows, drift and loads.
#
# A contact is given by its relative velocity, linear in v, or by a relative displacement x(q, t), whose rate is taken.
# With psi the relative velocity less that of the surface,  rows = dpsi/dv,  drift = (dpsi/dq) v + dpsi/dt.


ALLOWED = "q v t parameters"


@dataclass(frozen=True, eq=False)
class ContactExpressions:
    """Relative velocity (m,), rows (m, n), drift (m,) and loads (k,) in SX."""

    velocity: ca.SX
    rows: ca.SX
    drift: ca.SX
    loads: ca.SX


def derive_contacts(
    symbols: Symbols, contacts: tuple[FrictionContact, ...], coordinates: tuple[str, ...], names: tuple[str, ...]
) -> ContactExpressions:
    """Differentiate; refuse by the contact's name what is no relative velocity."""
    psi: list[ca.SX] = []
    loads = []
    for contact in contacts:
        if isinstance(contact, Coulomb) and contact.normal not in names:
            raise ModelError(f"contact {contact.name!r}: no constraint is called {contact.normal!r}; there are {names}")
        for j, rate in enumerate(_rates(symbols, contact, coordinates)):
            surface = contact.part("surface", j)
            if contact.drift is not None or callable(surface):
                raise ModelError(f"contact {contact.name!r}: a Lagrangian derives drift and surface from expressions")
            psi.append(rate - symbols.scalar(surface, f"surface of contact {contact.name!r}", "t parameters"))
        loads.append(
            symbols.scalar(getattr(contact, "load", 1.0), f"load of contact {contact.name!r}", "q v t u parameters")
        )
    column = ca.densify(ca.vertcat(*psi)) if psi else ca.SX(0, 1)
    rows = ca.densify(ca.jacobian(column, symbols.v)) if psi else ca.SX(0, symbols.v.numel())
    drift = ca.densify(rate_of(symbols, column)) if psi else ca.SX(0, 1)
    return ContactExpressions(column, rows, drift, ca.densify(ca.vertcat(*loads)) if loads else ca.SX(0, 1))


@dataclass(frozen=True, eq=False)
class GapExpressions:
    """Of unilateral contacts: gaps (k,); three rows each: relative velocities (3 k,), rows (3 k, n), drift (3 k,)."""

    gaps: ca.SX
    velocity: ca.SX
    rows: ca.SX
    drift: ca.SX


def derive_gaps(symbols: Symbols, contacts: tuple[Unilateral, ...], coordinates: tuple[str, ...]) -> GapExpressions:
    """Differentiate gaps and relative velocities; refuse by the contact's name what is none."""
    gaps, psi = [], []
    for contact in contacts:
        gap = symbols.scalar(contact.gap, f"gap of contact {contact.name!r}", "q t parameters")
        if not ca.depends_on(gap, symbols.q):
            raise ModelError(f"contact {contact.name!r}: its gap, {gap}, depends on no coordinate")
        gaps.append(gap)
        tangents = [
            rate - symbols.scalar(contact.part("surface", j), f"surface of contact {contact.name!r}", "t parameters")
            for j, rate in enumerate(_rates(symbols, contact, coordinates) if contact.directions else ())
        ]
        psi += [rate_of(symbols, gap), *tangents, *[ca.SX(0)] * (2 - len(tangents))]
    column = ca.densify(ca.vertcat(*psi)) if psi else ca.SX(0, 1)
    rows = ca.densify(ca.jacobian(column, symbols.v)) if psi else ca.SX(0, symbols.v.numel())
    drift = ca.densify(rate_of(symbols, column)) if psi else ca.SX(0, 1)
    return GapExpressions(ca.vertcat(*gaps) if gaps else ca.SX(0, 1), column, rows, drift)


def _rates(symbols: Symbols, contact: FrictionContact, coordinates: tuple[str, ...]) -> list[ca.SX]:
    """Return the relative velocities of one contact."""
    if isinstance(contact, JointFriction):
        allowed = (
            contact.along in coordinates if isinstance(contact.along, str) else 0 <= contact.along < len(coordinates)
        )
        if not allowed:
            raise ModelError(
                f"contact {contact.name!r}: no coordinate is called {contact.along!r}; there are {coordinates}"
            )
        return [symbols.v[coordinates.index(contact.along) if isinstance(contact.along, str) else contact.along]]
    rates = []
    for along in contact.along if contact.directions == 2 else [contact.along]:
        what = f"relative velocity of contact {contact.name!r}"
        x = symbols.scalar(along, what, ALLOWED)
        if not ca.depends_on(x, symbols.v):
            x = rate_of(symbols, x)
        row = ca.jacobian(x, symbols.v)
        if ca.depends_on(row, symbols.v):
            raise ModelError(f"{what}, {x}, is not linear in the velocities")
        if row.nnz() == 0:
            raise ModelError(f"{what}, {x}, depends on no velocity: nothing rubs there")
        rates.append(x)
    return rates


def as_outputs(contacts: ContactExpressions) -> dict[str, Any]:
    """Return the outputs of the quantity "contacts"."""
    return {
        "contact_velocity": contacts.velocity,
        "contact_jacobian": contacts.rows,
        "contact_drift": contacts.drift,
        "contact_load": contacts.loads,
    }


# ----------------------------------------------------------------------------------------------------------------------
# Systems with friction: what simulators see of the contacts, and how one state is resolved.


@runtime_checkable
class FrictionalSystem(System, Protocol):
    """A `System` whose contacts rub; m is the number of contact directions (two for a plane)."""

    @property
    def contacts(self) -> tuple[FrictionContact, ...]:
        """The contacts, in order."""
        ...

    def contact_terms(self, q: Array, v: Array, t: float) -> ContactTerms:
        """Return relative velocities (m,), rows (m, n), drift (m,), and loads of the contacts (k,)."""
        ...


def limits_of(contacts: tuple[FrictionContact, ...]) -> list[Any]:
    """Return what `resolve` takes as laws: a law, `Reacting` with a row as load, `Limited` in a plane."""
    return [_limit_of(contact) for contact in contacts]


def _limit_of(contact: FrictionContact) -> Any:
    if isinstance(contact, Coulomb):
        return Reacting(contact.law, contact.normal, contact.unilateral, contact.directions)
    return Limited(contact.law) if contact.directions == 2 else contact.law


def resolve_state(
    system: FrictionalSystem, q: Any, v: Any, t: float = 0.0, force: Any = None, method: str = "exact", **options: Any
) -> Resolution:
    """Resolve stick and slip at one state; `force` (n,) is applied, `options` go to `dalembert.friction.resolve`."""
    q, v = floats(q, "q"), floats(v, "v")
    velocity, rows, drift, loads = system.contact_terms(q, v, t)
    f = -system.bias(q, v, t) + (0.0 if force is None else floats(force, "force"))
    return resolve(
        system.mass_matrix(q, t), f, rows.T, velocity, limits_of(system.contacts), method, A=system.jacobian(q, t),
        drift=system.drift(q, v, t), contact_drift=drift, names=[contact.name for contact in system.contacts],
        rows=system.names, coordinates=system.coordinates, loads=loads, state_of_system=(q, v, t), **options,
    )  # fmt: skip
