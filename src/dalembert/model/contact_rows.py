"""Contacts of a system written down by hand: directions, surfaces and loads, constant or as functions of the state."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.friction import Contact, Coulomb, Joint

Array = np.ndarray


class ContactRows:
    """Evaluates the contacts of `Matrices` at a state."""

    def __init__(self, contacts: tuple[Contact, ...], coordinates: tuple[str, ...], names: tuple[str, ...]) -> None:
        self.contacts, self.n = contacts, len(coordinates)
        self._rows: list[tuple[Any, Contact, int]] = []
        for one in contacts:
            if isinstance(one, Coulomb) and one.normal not in names:
                raise ModelError(f"contact {one.name!r}: no constraint row is called {one.normal!r}; there are {names}")
            if isinstance(one, Joint):
                self._rows.append((_unit(one, coordinates), one, 0))
                continue
            for j, along in enumerate(one.along if one.directions == 2 else [one.along]):
                self._rows.append((along if callable(along) else self._row(along, one), one, j))
            if any(callable(row) for row, owner, _ in self._rows if owner is one) and one.drift is None:
                raise ModelError(
                    f"contact {one.name!r}: its direction depends on the state, so drift= (w_dot^T v) is needed"
                )

    def _row(self, along: Any, one: Contact) -> Array:
        try:
            row = np.array(along, dtype=float)
        except (TypeError, ValueError) as error:
            raise ModelError(f"contact {one.name!r}: along= is no row of numbers: {error}") from error
        if row.shape != (self.n,):
            raise ShapeError(f"contact {one.name!r}: its direction must have shape ({self.n},); it has {row.shape}")
        if not np.isfinite(row).all() or not row.any():
            raise ModelError(f"contact {one.name!r}: its direction {row} must be finite and not zero")
        return row

    def terms(self, q: Array, v: Array, t: float) -> tuple[Array, Array, Array, Array]:
        """Return relative velocities, rows, drift and loads."""
        m = len(self._rows)
        rows, drift, velocity = np.zeros((m, self.n)), np.zeros(m), np.zeros(m)
        for i, (row, one, j) in enumerate(self._rows):
            rows[i] = self._row(row(q, t), one) if callable(row) else row
            surface, turning = one.part("surface", j), one.part("drift", j)
            try:
                speed, change = _value(surface, (t,), (surface, 0.0))
                velocity[i] = rows[i] @ v - speed
                drift[i] = float(_value(turning, (q, v, t), turning or 0.0)) - change
            except (TypeError, ValueError) as error:
                raise ModelError(
                    f"contact {one.name!r}: surface= is a velocity, or a function of t that returns velocity and "
                    f"acceleration, drift= a number or a function of (q, v, t): {error}"
                ) from error
            if not np.isfinite(velocity[i] + drift[i]):
                raise ModelError(f"contact {one.name!r}: its relative velocity is {velocity[i]}, its drift {drift[i]}")
        return velocity, rows, drift, np.array([_load(one, q, v, t) for one in self.contacts], dtype=float)


def _load(one: Contact, q: Array, v: Array, t: float) -> float:
    """Return the load of a contact."""
    given = getattr(one, "load", 1.0)
    try:
        return float(_value(given, (q, v, t), given))
    except (TypeError, ValueError) as error:
        raise ModelError(f"contact {one.name!r}: load= is a number or a function of (q, v, t): {error}") from error


def _value(given: Any, state: tuple[Any, ...], constant: Any) -> Any:
    """Return the value of a function of the state, or the constant."""
    return given(*state) if callable(given) else constant


def _unit(one: Joint, coordinates: tuple[str, ...]) -> Array:
    """Return the unit row of a joint's coordinate."""
    if isinstance(one.along, str) and one.along not in coordinates:
        raise ModelError(f"contact {one.name!r}: no coordinate is called {one.along!r}; there are {coordinates}")
    index = coordinates.index(one.along) if isinstance(one.along, str) else int(one.along)
    if not 0 <= index < len(coordinates):
        raise ModelError(f"contact {one.name!r}: there is no coordinate {index}; there are {len(coordinates)}")
    return np.eye(len(coordinates))[index]
