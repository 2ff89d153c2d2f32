"""Systems written down by hand: masses, forces, constraint vectors and contacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError
from dalembert.friction import Coulomb, FrictionContact, JointFriction, Unilateral
from dalembert.friction.laws.contacts import checked_contacts, checked_unilateral
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Contacts of a system written down by hand: directions, surfaces and loads, constant or as functions of the state.


class ContactRows:
    """Evaluates the contacts of `Matrices` at a state."""

    def __init__(
        self, contacts: tuple[FrictionContact, ...], coordinates: tuple[str, ...], names: tuple[str, ...]
    ) -> None:
        self.contacts, self.n = contacts, len(coordinates)
        self._rows: list[tuple[Any, FrictionContact, int]] = []
        for contact in contacts:
            if isinstance(contact, Coulomb) and contact.normal not in names:
                raise ModelError(
                    f"contact {contact.name!r}: no constraint row is called {contact.normal!r}; there are {names}"
                )
            if isinstance(contact, JointFriction):
                self._rows.append((_unit(contact, coordinates), contact, 0))
                continue
            if not contact.directions:
                continue
            for j, along in enumerate(contact.along if contact.directions == 2 else [contact.along]):
                self._rows.append((along if callable(along) else self._row(along, contact), contact, j))
            if any(callable(row) for row, owner, _ in self._rows if owner is contact) and contact.drift is None:
                raise ModelError(
                    f"contact {contact.name!r}: its direction depends on the state, so drift= (w_dot^T v) is needed"
                )

    def _row(self, along: Any, contact: FrictionContact) -> Array:
        try:
            row = floats(along, "along").copy()
        except (TypeError, ValueError) as error:
            raise ModelError(f"contact {contact.name!r}: along= is no row of numbers: {error}") from error
        if row.shape != (self.n,):
            raise ShapeError(f"contact {contact.name!r}: its direction must have shape ({self.n},); it has {row.shape}")
        if not np.isfinite(row).all() or not row.any():
            raise ModelError(f"contact {contact.name!r}: its direction {row} must be finite and not zero")
        return row

    def terms(self, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
        """Return relative velocities, rows, drift and loads."""
        m = len(self._rows)
        rows, drift, velocity = np.zeros((m, self.n)), np.zeros(m), np.zeros(m)
        for i, (row, contact, j) in enumerate(self._rows):
            rows[i] = self._row(row(q, t), contact) if callable(row) else row
            surface, turning = contact.part("surface", j), contact.part("drift", j)
            try:
                speed, change = _value(surface, (t,), (surface, 0.0))
                velocity[i] = rows[i] @ v - speed
                drift[i] = float(_value(turning, (q, v, t), turning or 0.0)) - change
            except (TypeError, ValueError) as error:
                raise ModelError(
                    f"contact {contact.name!r}: surface= is a velocity, or a function of t that returns velocity and "
                    f"acceleration, drift= a number or a function of (q, v, t): {error}"
                ) from error
            if not np.isfinite(velocity[i] + drift[i]):
                raise ModelError(
                    f"contact {contact.name!r}: its relative velocity is {velocity[i]}, its drift {drift[i]}"
                )
        return velocity, rows, drift, np.array([_load(contact, q, v, t) for contact in self.contacts], dtype=float)


class Gaps:
    """Evaluates the gaps of `Matrices`: a function of q that returns a gap and its row, or (row, offset), affine."""

    def __init__(self, contacts: tuple[Unilateral, ...], coordinates: tuple[str, ...]) -> None:
        self.contacts, self.n = contacts, len(coordinates)
        for contact in contacts:
            if callable(contact.gap) and contact.normal_drift is None:
                raise ModelError(
                    f"contact {contact.name!r}: its gap is a function of q, so normal_drift= (n_dot^T v) is needed"
                )
            if not callable(contact.gap):
                self._gap(contact, np.zeros(self.n))

    def terms(self, q: Array, v: Array, t: float) -> tuple[Array, Array, Array]:
        """Return gaps (k,), their rows (k, n) and drifts (k,)."""
        k = len(self.contacts)
        gaps, rows, drift = np.zeros(k), np.zeros((k, self.n)), np.zeros(k)
        for i, contact in enumerate(self.contacts):
            gaps[i], rows[i] = self._gap(contact, q)
            drift[i] = float(_value(contact.normal_drift, (q, v), contact.normal_drift or 0.0))
        return gaps, rows, drift

    def _gap(self, contact: Unilateral, q: Array) -> tuple[float, Array]:
        try:
            pair: Any = contact.gap(q) if callable(contact.gap) else contact.gap
            first, second = pair
            ordered = (first, second) if callable(contact.gap) else (second, first)
            value, row = float(ordered[0]), floats(ordered[1], "row")
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"contact {contact.name!r}: of Matrices a gap is (row, offset), or a function of q that returns the "
                f"gap and its row: {error}"
            ) from error
        if row.shape != (self.n,):
            raise ShapeError(f"contact {contact.name!r}: the row of its gap has shape ({self.n},), not {row.shape}")
        if not (np.isfinite(value) and np.isfinite(row).all() and row.any()):
            raise ModelError(
                f"contact {contact.name!r}: its gap {value} and row {row} must be finite, the row not zero"
            )
        return (value if callable(contact.gap) else value + float(row @ q)), row


def _load(contact: FrictionContact, q: Array, v: Array, t: float) -> float:
    """Return the load of a contact."""
    load = getattr(contact, "load", 1.0)
    try:
        return float(_value(load, (q, v, t), load))
    except (TypeError, ValueError) as error:
        raise ModelError(f"contact {contact.name!r}: load= is a number or a function of (q, v, t): {error}") from error


def _value(value: Any, state: tuple[Any, ...], constant: Any) -> Any:
    """Return the value of a function of the state, or the constant."""
    return value(*state) if callable(value) else constant


def _unit(joint: JointFriction, coordinates: tuple[str, ...]) -> Array:
    """Return the unit row of a joint's coordinate."""
    if isinstance(joint.along, str) and joint.along not in coordinates:
        raise ModelError(f"contact {joint.name!r}: no coordinate is called {joint.along!r}; there are {coordinates}")
    index = coordinates.index(joint.along) if isinstance(joint.along, str) else int(joint.along)
    if not 0 <= index < len(coordinates):
        raise ModelError(f"contact {joint.name!r}: there is no coordinate {index}; there are {len(coordinates)}")
    return np.eye(len(coordinates))[index]


# ----------------------------------------------------------------------------------------------------------------------
# A system written down by hand: masses, forces and constraint vectors, constant or as functions of the state.


class Matrices:
    """A `System` assembled from matrices and functions of the state: seed 001, equations (1) and (2).

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
    unilateral
        `dalembert.friction.Unilateral` contacts: gaps that close, with impacts and friction, in `da.simulate`. A gap is
        (row, offset), row . q + offset; or a function of q that returns the gap and its row (n,), with `normal_drift`.
    accelerations
        Rows J a = b by name, each (J, b) or (J, b, psi): (n,) and a number, or functions of (q, v, t); psi(q, v, t) = 0
        is what they keep at velocity level, where that is known. Explicit methods take them.
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
        unilateral: Any = None,
        accelerations: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(mass, Mapping):
            coordinates, mass = tuple(mass), np.diag([float(value) for value in mass.values()])
        if isinstance(rows, Mapping):
            names, rows = tuple(rows), [floats(w, f"row {name}") for name, w in rows.items()]
        self.coordinates = _names(coordinates, mass, "q", "coordinates")
        n = len(self.coordinates)
        rows = np.zeros((0, n)) if rows is None or (isinstance(rows, list) and not rows) else rows
        self.names = _names(names, rows, "row ", "names")
        m = len(self.names)
        self._accelerations = [AccelerationRow.of(name, given, n) for name, given in (accelerations or {}).items()]
        self.of_accelerations = tuple(row.name for row in self._accelerations)
        self._mass, self._rows = _function(mass, (n, n), "mass"), _function(rows, (m, n), "rows")
        self._force = _function(np.zeros(n) if force is None else force, (n,), "force")
        self.rows_rest = drift is None
        self._drift = _function(np.zeros(m) if drift is None else drift, (m,), "drift")
        self.names = (*self.names, *self.of_accelerations)
        self.contacts = checked_contacts(friction)
        self._contacts = ContactRows(self.contacts, self.coordinates, self.names)
        self.unilateral = checked_unilateral(unilateral, self.contacts)
        self._gaps = Gaps(self.unilateral, self.coordinates)
        self._gap_tangents = ContactRows(self.unilateral, self.coordinates, self.names)
        if energy is not None:
            self.energy = energy

    def mass_matrix(self, q: Array, t: float) -> Array:
        """Return M."""
        return self._mass(q, t)

    def bias(self, q: Array, v: Array, t: float) -> Array:
        """Return -h(q, v, t)."""
        return -self._force(q, v, t)

    def jacobian(self, q: Array, t: float, v: Array | None = None) -> Array:
        """Return A = W^T; `v` where there are constraints of accelerations."""
        if not self._accelerations:
            return self._rows(q, t)
        if v is None:
            raise ModelError(f"the rows of {', '.join(map(repr, self.of_accelerations))} may depend on v: give v=")
        return np.vstack([self._rows(q, t), *(row.J(q, v, t)[None] for row in self._accelerations)])

    def drift(self, q: Array, v: Array, t: float) -> Array:
        """Return A_dot v, of constraints of accelerations -b."""
        return np.append(self._drift(q, v, t), [-row.b(q, v, t) for row in self._accelerations])

    def acceleration_rates(self, q: Array, v: Array, t: float) -> Array:
        """Return psi of the constraints of accelerations; zero where none is known."""
        return np.array([row.psi(q, v, t) for row in self._accelerations], dtype=float)

    def contact_terms(self, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
        """Return relative velocities, contact rows, drift and loads."""
        return self._contacts.terms(q, v, t)

    def gap_terms(self, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
        """Return gaps (k,), and of every unilateral contact three relative velocities, rows and drifts.

        Normal, tangent, tangent; what a contact lacks is zero.
        """
        gaps, normals, drifts = self._gaps.terms(q, v, t)
        k = len(self.unilateral)
        velocity, rows, drift = np.zeros(3 * k), np.zeros((3 * k, len(self.coordinates))), np.zeros(3 * k)
        rows[::3], drift[::3], velocity[::3] = normals, drifts, normals @ v
        along = self._gap_tangents.terms(q, v, t)
        places = [3 * i + 1 + j for i, contact in enumerate(self.unilateral) for j in range(contact.directions)]
        velocity[places], rows[places], drift[places] = along[0], along[1], along[2]
        return gaps, velocity, rows, drift


class AccelerationRow(NamedTuple):
    """A constraint J(q, v, t) a = b(q, v, t), and what it keeps at velocity level."""

    name: str
    J: Callable[..., Array]
    b: Callable[..., Array]
    psi: Callable[..., Array]

    @classmethod
    def of(cls, name: str, given: Any, n: int) -> AccelerationRow:
        """Check a row as a user writes it."""
        parts = tuple(given) if isinstance(given, tuple | list) else ()
        if len(parts) not in (2, 3):
            raise ModelError(f"accelerations: {name!r} is (J, b) or (J, b, psi), not {given!r}")
        J, b, psi = (*parts, 0.0)[:3]
        what = f"of accelerations {name!r}"
        return cls(
            name, _function(J, (n,), f"J {what}"), _function(b, (), f"b {what}"),
            _function(psi, (), f"psi {what}"),
        )  # fmt: skip


def _names(names: tuple[str, ...] | None, values: Any, prefix: str, what: str) -> tuple[str, ...]:
    """Return the given names, or made-up ones where the size can be seen."""
    if names is not None:
        return tuple(names)
    if callable(values):
        raise ModelError(f"{what} must be given when the array is a function of the state")
    return tuple(f"{prefix}{i}" for i in range(len(values)))


def _function(values: Any, shape: tuple[int, ...], what: str) -> Callable[..., Array]:
    """Return a function of the state whose result is checked against the shape."""

    def checked(array: Any) -> Array:
        array = floats(array, what)
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
