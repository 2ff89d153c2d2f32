"""Systems with friction: what simulators see of the contacts, and how one state is resolved."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from dalembert.friction import Contact, Coulomb, Limited, Reacting, Resolution, resolve
from dalembert.model.manifold import reals
from dalembert.model.system import System

Array = np.ndarray


@runtime_checkable
class FrictionalSystem(System, Protocol):
    """A `System` whose contacts rub; m is the number of contact directions (two for a plane)."""

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """The contacts, in order."""
        ...

    def contact_terms(self, q: Array, v: Array, t: float) -> ContactTerms:
        """Return relative velocities (m,), rows (m, n), drift (m,), and loads of the contacts (k,)."""
        ...


ContactTerms = tuple[Float[Array, " m"], Float[Array, "m n"], Float[Array, " m"], Float[Array, " k"]]


def limits_of(contacts: tuple[Contact, ...]) -> list[Any]:
    """Return what `resolve` takes as laws: a law, `Reacting` with a row as load, `Limited` in a plane."""
    return [_limit_of(one) for one in contacts]


def _limit_of(one: Contact) -> Any:
    if isinstance(one, Coulomb):
        return Reacting(one.law, one.normal, one.unilateral, one.directions)
    return Limited(one.law) if one.directions == 2 else one.law


def resolve_state(
    system: FrictionalSystem, q: Any, v: Any, t: float = 0.0, force: Any = None, method: str = "exact", **options: Any
) -> Resolution:
    """Resolve stick and slip at one state; `force` (n,) is applied, `options` go to `dalembert.friction.resolve`."""
    q, v = reals(q, "q"), reals(v, "v")
    velocity, rows, drift, loads = system.contact_terms(q, v, t)
    f = -system.bias(q, v, t) + (0.0 if force is None else reals(force, "force"))
    return resolve(
        system.mass_matrix(q, t), f, rows.T, velocity, limits_of(system.contacts), method, A=system.jacobian(q, t),
        drift=system.drift(q, v, t), contact_drift=drift, names=[one.name for one in system.contacts],
        rows=system.names, coordinates=system.coordinates, loads=loads, state_of_system=(q, v, t), **options,
    )  # fmt: skip
