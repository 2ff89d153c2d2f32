"""A system written down by hand: masses, forces and constraint vectors, constant or as functions of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.friction.contacts import checked_contacts
from dalembert.model.contact_rows import ContactRows

Array = np.ndarray


class Matrices:
    """A `System` assembled from parts (seed 001, eqs. 1, 2).

    Parameters
    ----------
    mass
        Masses by coordinate name (a diagonal M), or an (n, n) array, or a function of (q, t) returning one.
    rows
        Constraint vectors w by row name, each (n,): together they are A = W^T; or a function of (q, t) returning
        (m, n), with `names`.
    force
        Forces by constitutive laws, h(q, v, t) -> (n,), or a constant; on the right side (bias = -h).
    drift
        A_dot v, (m,), or a function of (q, v, t); zero unless given. Without it the rows are at rest, A v = 0, and a
        simulation refuses initial velocities that contradict them.
    coordinates, names
        Needed where `mass` or `rows` are not given by name.
    friction
        Contacts of `dalembert.friction`, directions as rows (n,).
    energy
        T + V as a function of (q, v, t), if there is one, for the balance of a simulation.

    Examples
    --------
    >>> blocks = Matrices({"x1": 4.0, "x2": 7.0}, {"belt 1": [1, 0], "belt 2": [0, 1], "between": [1, -1]})
    >>> blocks.jacobian(np.zeros(2), 0.0).T
    array([[ 1.,  0.,  1.],
           [ 0.,  1., -1.]])
    """

    def __init__(
        self,
        mass: Mapping[str, float] | Any,
        rows: Mapping[str, Any] | Any = None,
        force: Any = None,
        drift: Any = None,
        coordinates: tuple[str, ...] | None = None,
        names: tuple[str, ...] | None = None,
        friction: Any = None,
        energy: Callable[..., float] | None = None,
    ) -> None:
        if isinstance(mass, Mapping):
            coordinates, mass = tuple(mass), np.diag([float(value) for value in mass.values()])
        if isinstance(rows, Mapping):
            names, rows = tuple(rows), [np.asarray(w, dtype=float) for w in rows.values()]
        self.coordinates = _names(coordinates, mass, "q", "coordinates")
        n = len(self.coordinates)
        rows = np.zeros((0, n)) if rows is None or (isinstance(rows, list) and not rows) else rows
        self.names = _names(names, rows, "row ", "names")
        m = len(self.names)
        self._mass, self._rows = _function(mass, (n, n), "mass"), _function(rows, (m, n), "rows")
        self._force = _function(np.zeros(n) if force is None else force, (n,), "force")
        self.rows_rest = drift is None
        self._drift = _function(np.zeros(m) if drift is None else drift, (m,), "drift")
        self.contacts = checked_contacts(friction)
        self._contacts = ContactRows(self.contacts, self.coordinates, self.names)
        if energy is not None:
            self.energy = energy

    def mass_matrix(self, q: Array, t: float) -> Array:
        """Return M."""
        return self._mass(q, t)

    def bias(self, q: Array, v: Array, t: float) -> Array:
        """Return -h(q, v, t)."""
        return -self._force(q, v, t)

    def jacobian(self, q: Array, t: float) -> Array:
        """Return A = W^T."""
        return self._rows(q, t)

    def drift(self, q: Array, v: Array, t: float) -> Array:
        """Return A_dot v."""
        return self._drift(q, v, t)

    def contact_terms(self, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
        """Return relative velocities, contact rows, drift and loads."""
        return self._contacts.terms(q, v, t)


def _names(given: tuple[str, ...] | None, values: Any, prefix: str, what: str) -> tuple[str, ...]:
    """Return the given names, or made-up ones where the size can be seen."""
    if given is not None:
        return tuple(given)
    if callable(values):
        raise ModelError(f"{what} must be given when the array is a function of the state")
    return tuple(f"{prefix}{i}" for i in range(len(values)))


def _function(values: Any, shape: tuple[int, ...], what: str) -> Callable[..., Array]:
    """Return a function of the state whose result is checked against the shape."""

    def checked(array: Any) -> Array:
        array = np.asarray(array, dtype=float)
        if array.shape != shape:
            raise ShapeError(f"{what} must have shape {shape}; it has {array.shape}")
        return array

    if callable(values):
        return lambda *state: checked(values(*state))
    try:
        constant = checked(values)
    except ValueError as error:
        raise ShapeError(f"{what} must have shape {shape}: {error}") from error
    return lambda *_: constant
