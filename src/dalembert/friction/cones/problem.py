"""A friction problem whose limits are reactions, reduced to contact rows: normals first, then tangents.

Symbols: H contact rows (p, n) = normals of A and columns of W; r their reactions; u = G r + g contact accelerations.
Rows of A that load no contact stay constraints of the block matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from dalembert.errors import ModelError, ShapeError
from dalembert.friction.bounded.problem import FrictionProblem, checked_directions
from dalembert.friction.laws.contacts import forces_by_law
from dalembert.friction.laws.laws import Law, as_law
from dalembert.kkt import KKT
from dalembert.kkt.inputs import checked_matrices, checked_names, checked_vector, refuse_nonfinite

Array = np.ndarray

UNILATERAL, BILATERAL, FIXED = 0, 1, 2


@dataclass(frozen=True)
class Reacting:
    """A limit that is a coefficient times the reaction of a constraint row.

    Attributes
    ----------
    law
        Coefficient of friction: a number or a law.
    row
        Name or number of the row of A that is the normal; its reaction is -lam, positive when it pushes along the row.
    unilateral
        Whether the row only pushes (and lets go), or pushes and pulls.
    directions
        1, or 2 for a plane: the number of columns of W that belong to this contact.
    """

    law: Any
    row: int | str
    unilateral: bool = True
    directions: int = 1


@dataclass(frozen=True)
class Limited:
    """A given limit in a plane: |T| <= load x law, a disk; the contact takes two columns of W.

    Attributes
    ----------
    law
        Limit: a number or a law, in newton for a load of 1.
    directions
        2 (or 1: the same as the law itself).
    """

    law: Any
    directions: int = 2


@dataclass(frozen=True, eq=False)
class ReactionProblem:
    """Contacts (k) on their rows (p), ready for the kernel.

    `first` (k + 1,) are offsets of rows, `mu` (k,) coefficients (or the limit of a bounded contact), `kind` (k,),
    `sliding` (k,), `direction` (p,) unit vectors of sliding on the tangential rows. `columns` maps a column of W to
    its row, or -1 where its force is known; `moving` are the contacts of the latter. `normals` are the rows of A in
    order of contacts that have one.
    """

    reduced: FrictionProblem
    first: Array
    mu: Float[Array, " k"]
    kind: Array
    sliding: Array
    direction: Float[Array, " p"]
    names: tuple[str, ...]
    column_names: tuple[str, ...]
    columns: Array
    known: Float[Array, " m"]
    normals: tuple[int, ...]
    others: tuple[int, ...]
    system: KKT
    moving: tuple[str, ...]

    @property
    def delassus(self) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """G and g over the contact rows."""
        return self.reduced.delassus

    @property
    def row_limits(self) -> Float[Array, " p"]:
        """The given limit on the rows of bounded contacts, zero on the others."""
        return np.repeat(np.where(self.kind == FIXED, self.mu, 0.0), np.diff(self.first))


@dataclass
class _Rows:
    """Contact rows as they are collected."""

    rows: list[Array]
    drift: list[float]
    first: list[int]
    mu: list[float]
    kind: list[int]
    sliding: list[bool]
    direction: list[float]
    names: list[str]
    normals: list[int]
    moving: list[str]


def reaction_problem(
    M: Any, f: Any, W: Any, state: Any, laws: Any, A: Any, drift: Any, contact_drift: Any, names: Any, rows: Any,
    coordinates: Any, at_rest: float, loads: Any, state_of_system: Any,
) -> ReactionProblem:  # fmt: skip
    """Check the data and put the rows in order."""
    M, A, _ = checked_matrices(M, A)
    system = KKT(M, A, rows, coordinates)
    W = checked_directions(W, system.n)
    m, k = W.shape[1], len(laws)
    names = checked_names([f"contact {i}" for i in range(k)] if names is None else names, k, "names", "contacts")
    widths = directions_of(laws, names)
    if sum(widths) != m:
        raise ShapeError(f"the {k} laws take {sum(widths)} columns of W (two for a plane); W has {m}")
    f, drift = checked_vector(f, system.n, "f"), checked_vector(drift, system.m, "drift")
    velocity, shift = checked_vector(state, m, "state"), checked_vector(contact_drift, m, "contact_drift")
    loads = checked_vector(np.ones(k) if loads is None else loads, k, "loads", scalar=True)
    columns_of = [name if w == 1 else f"{name}[{j}]" for name, w in zip(names, widths, strict=True) for j in range(w)]
    for values, what, labels in ((f, "f", system.coordinates), (drift, "drift", system.names)):
        refuse_nonfinite(values, what, labels)
    for values, what in ((velocity, "state"), (shift, "contact_drift")):
        refuse_nonfinite(values, what, columns_of)
    refuse_nonfinite(W, "W", system.coordinates, columns_of)
    found = _Rows([], [], [0], [], [], [], [], [], [], [])
    columns, known = np.full(m, -1), np.zeros(m)
    c = 0
    for i, law in enumerate(laws):
        cols = slice(c, c + widths[i])
        if isinstance(law, Reacting):
            columns[cols] = _reacting(found, system, W[:, cols], velocity[cols], shift[cols], drift, law, names[i],
                                      at_rest, state_of_system)  # fmt: skip
        else:
            columns[cols], known[cols] = _limited(found, W[:, cols], velocity[cols], shift[cols], law, names[i],
                                                  loads[i], at_rest, state_of_system)  # fmt: skip
        c += widths[i]
    return _assembled(found, system, f + W @ known, drift, columns, known, names, tuple(columns_of))


def _reacting(found, system, W, velocity, shift, drift, law, name, at_rest, state) -> Array:
    """Add a contact with its normal row; return the rows of its columns."""
    row = row_number(system.names, law.row, name)
    if row in found.normals:
        raise ModelError(f"contact {name!r}: the row {system.names[row]!r} is the normal of another contact already")
    coefficient: Law = as_law(law.law, f"contact {name!r}")
    speed = float(np.linalg.norm(velocity))
    sliding = speed > at_rest
    mu = float(coefficient.kinetic(speed, state) if sliding else coefficient.static(state))
    if not (np.isfinite(mu) and mu >= 0.0):
        raise ModelError(f"contact {name!r}: the friction law is not dissipative here: its coefficient is {mu:.6g}")
    start = found.first[-1]
    found.normals.append(row)
    unit = velocity / speed if sliding else np.zeros(velocity.size)
    _add(found, [system.A[row], *W.T], [drift[row], *shift], mu, UNILATERAL if law.unilateral else BILATERAL, sliding,
         [0.0, *unit], name)  # fmt: skip
    return start + 1 + np.arange(law.directions)


def _limited(found, W, velocity, shift, law, name, load, at_rest, state) -> tuple[Array, Array]:
    """Add a contact with a given limit where it is at rest; return the rows of its columns, or its force in motion."""
    width, speed = velocity.size, float(np.linalg.norm(velocity))
    law = as_law(law.law if isinstance(law, Limited) else law, f"contact {name!r}")
    limit, moving, rest = forces_by_law([law], np.array([speed]), np.array([load]), [name], at_rest, state)
    if not rest[0]:
        found.moving.append(name)
        return np.full(width, -1), moving[0] * velocity / speed
    start = found.first[-1]
    _add(found, list(W.T), list(shift), float(limit[0]), FIXED, False, [0.0] * width, name)
    return start + np.arange(width), np.zeros(width)


def directions_of(laws: Any, names: Sequence[str]) -> list[int]:
    """Return how many columns of W each law takes."""
    widths = [law.directions if isinstance(law, Reacting | Limited) else 1 for law in laws]
    for name, width in zip(names, widths, strict=True):
        if width not in (1, 2):
            raise ModelError(f"contact {name!r}: directions must be 1, or 2 for a plane, not {width!r}")
    return widths


def _add(found: _Rows, rows, drift, mu, kind, sliding, direction, name) -> None:
    found.rows += rows
    found.drift += [float(x) for x in drift]
    found.first.append(found.first[-1] + len(rows))
    found.mu.append(mu)
    found.kind.append(kind)
    found.sliding.append(sliding)
    found.direction += [float(x) for x in direction]
    found.names.append(name)


def row_number(rows: tuple[str, ...], row: int | str, name: str) -> int:
    """Return the number of the constraint row that a contact names."""
    if isinstance(row, str):
        if row not in rows:
            raise ModelError(f"contact {name!r}: no constraint row is called {row!r}; there are {rows}")
        return rows.index(row)
    if not isinstance(row, int | np.integer):
        raise ModelError(f"contact {name!r}: a row is named or numbered; got {row!r}")
    if not 0 <= int(row) < len(rows):
        raise ModelError(f"contact {name!r}: there is no constraint row {row}; A has {len(rows)}")
    return int(row)


def _assembled(found: _Rows, system: KKT, load, drift, columns, known, names, column_names) -> ReactionProblem:
    """Take the normals out of the constraints and reduce the rest."""
    others = [i for i in range(system.m) if i not in found.normals]
    rest = KKT(system.M, system.A[others], [system.names[i] for i in others], system.coordinates)
    H = np.array(found.rows).reshape(len(found.rows), system.n)
    p = len(H)
    reduced = FrictionProblem(
        rest, load, drift[others], H.T.copy(), np.zeros(p), np.array(found.drift), tuple(f"row {i}" for i in range(p)),
        (), np.zeros(p), np.ones(p, dtype=bool), np.zeros(p),
    )  # fmt: skip
    return ReactionProblem(
        reduced, np.array(found.first), np.array(found.mu), np.array(found.kind, dtype=np.int64),
        np.array(found.sliding, dtype=np.bool_), np.array(found.direction), tuple(found.names), column_names, columns,
        known, tuple(found.normals), tuple(others), system, tuple(found.moving),
    )  # fmt: skip
