"""A friction problem: states of one system, and contacts as sets of reactions: intervals, disks and cones.

Symbols (seed 001, eqs. 1, 2): M mass matrix, f applied minus velocity-dependent forces (the seed's h), W (n, m) contact
directions as columns, T friction forces, A constraint rows with drift, xi'' = W^T a + contact_drift.

    M a + A^T lam = f + W T        A a = -drift        T by the friction laws

| set of a contact's reaction | kind | rows |
|---|---|---|
| interval, abs T <= limit | FIXED | one tangent |
| disk, abs T <= limit | FIXED | two tangents |
| cone, abs T <= mu N, N >= 0 | UNILATERAL | normal (a row of A), one or two tangents |
| double cone, abs T <= mu abs N | BILATERAL | normal, one or two tangents |

In motion the force of an interval or a disk is known and goes to the load; in a cone its direction is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.friction.laws.laws import Law, as_law
from dalembert.kkt import KKT
from dalembert.kkt.inputs import as_real, checked_names, checked_vector, refuse_nonfinite
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

UNILATERAL, BILATERAL, FIXED = 0, 1, 2
"""Kinds of contacts: a normal that pushes, one that pushes and pulls, or none, the limit being given."""


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
class ContactSets:
    """Contacts (c) with rows (p) and columns of W (m), in N states.

    Attributes
    ----------
    names, column_names
        Of contacts, and of their columns of W.
    kind, first
        Kinds (c,) and offsets of rows (c + 1,).
    source
        Where a row comes from (p,): a column of W, or -1 - i for row i of A.
    others
        Rows of A that load no contact.
    mu
        Coefficients, or limits at rest (zero in motion), (N, c); NaN where the data of a state are no numbers.
    sliding
        Who is in relative motion, (N, c).
    direction
        Unit vectors of sliding on the tangential rows of cones, (N, p).
    known
        Forces of given limits in motion, (N, m).
    """

    names: tuple[str, ...]
    column_names: tuple[str, ...]
    kind: Int[Array, " c"]
    first: Int[Array, " c1"]
    source: Int[Array, " p"]
    others: Int[Array, " o"]
    mu: Float[Array, "N c"]
    sliding: Bool[Array, "N c"]
    direction: Float[Array, "N p"]
    known: Float[Array, "N m"]

    @property
    def intervals(self) -> bool:
        """True where every contact has a given limit and one direction: a box-constrained problem."""
        return self.source.size == self.kind.size and bool((self.kind == FIXED).all())


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """N checked states of one system; M, W and A may have one sample for all, `drift` and the others have N.

    `system` is the block matrix of a single state, `rows` and `coordinates` are names.
    """

    M: Float[Array, "any_M n n"]
    f: Float[Array, "N n"]
    W: Float[Array, "any_W n m"]
    A: Float[Array, "any_A k n"]
    drift: Float[Array, "N k"]
    velocity: Float[Array, "N m"]
    contact_drift: Float[Array, "N m"]
    contacts: ContactSets
    rows: tuple[str, ...] | None = None
    coordinates: tuple[str, ...] | None = None
    system: KKT | None = None

    def matrices(self, s: int) -> tuple[Array, Array, Array]:
        """Return M, W and A of state s."""
        return self.M[min(s, len(self.M) - 1)], self.W[min(s, len(self.W) - 1)], self.A[min(s, len(self.A) - 1)]

    def block(self, s: int) -> KKT:
        """Return the block matrix of state s, checked."""
        if self.system is not None:
            return self.system
        M, _, A = self.matrices(s)
        return KKT(M, A if len(A) else None, self.rows, self.coordinates)


def problem_at(
    M: Any, f: Any, W: Any, state: Any, laws: Any, *, A: Any = None, drift: Any = None, contact_drift: Any = None,
    names: Sequence[str] | None = None, rows: Sequence[str] | None = None, coordinates: Sequence[str] | None = None,
    at_rest: float = 0.0, loads: Any = None, state_of_system: Any = None,
) -> ContactProblem:  # fmt: skip
    """Check everything a user may pass for one state; every complaint names the contact."""
    system = KKT(M, A, rows, coordinates)
    if system.batch_shape:
        raise ShapeError(f"resolve takes one state; M and A have batch axes {system.batch_shape}: use resolve_batch")
    W = checked_directions(W, system.n)
    laws, c = listed_laws(laws, W.shape[1])
    names = checked_names([f"contact {i}" for i in range(c)] if names is None else names, c, "names", "contacts")
    columns = column_names(laws, names, W.shape[1])
    f, drift = checked_vector(f, system.n, "f"), checked_vector(drift, system.m, "drift")
    m = W.shape[1]
    velocity, shift = checked_vector(state, m, "state"), checked_vector(contact_drift, m, "contact_drift")
    for values, what, labels in (
        (f, "f", system.coordinates), (drift, "drift", system.names), (velocity, "state", columns),
        (shift, "contact_drift", columns),
    ):  # fmt: skip
        if values.ndim != 1:
            raise ShapeError(f"resolve takes one state; {what} has shape {values.shape}: use resolve_batch")
        refuse_nonfinite(values, what, labels)
    refuse_nonfinite(W, "W", system.coordinates, columns)
    loads = checked_vector(np.ones(c) if loads is None else loads, c, "loads", scalar=True)
    sets = contact_sets(laws, names, columns, system.names, velocity[None], loads[None], at_rest, (state_of_system,))
    return ContactProblem(
        system.M[None], f[None], W[None], system.A[None], drift[None], velocity[None], shift[None], sets, system=system
    )


def problem_over(
    M: Any, f: Any, W: Any, state: Any, laws: Any, *, A: Any = None, drift: Any = None, contact_drift: Any = None,
    names: Sequence[str] | None = None, rows: Sequence[str] | None = None, at_rest: float = 0.0, loads: Any = None,
) -> ContactProblem:  # fmt: skip
    """Check the shapes of N states; numbers that are none belong to their sample, which gets a status for it."""
    M, W, f, velocity = (as_real(x, what)[0] for x, what in ((M, "M"), (W, "W"), (f, "f"), (state, "state")))
    M, W = (x[None] if x.ndim == 2 else x for x in (M, W))
    if f.ndim != 2 or velocity.ndim != 2 or len(f) != len(velocity) or M.ndim != 3 or W.ndim != 3:
        raise ShapeError(f"f and state must be (N, n) and (N, m); they have shapes {f.shape} and {velocity.shape}")
    N, n, m = len(f), f.shape[1], velocity.shape[1]
    if M.shape[1:] != (n, n) or W.shape[1:] != (n, m) or len(M) not in (1, N) or len(W) not in (1, N):
        raise ShapeError(f"M {M.shape} and W {W.shape} do not fit f {f.shape} and state {velocity.shape}")
    laws, c = listed_laws(laws, m)
    names = checked_names([f"contact {i}" for i in range(c)] if names is None else names, c, "names", "contacts")
    columns = column_names(laws, names, m)
    A, k = _constraint_rows(A, N, n)
    rows = checked_names([f"row {i}" for i in range(k)] if rows is None else rows, k, "rows", "constraint rows")
    drift = _broadcast(drift, 0.0, (N, k), "drift")
    shift = _broadcast(contact_drift, 0.0, (N, m), "contact_drift")
    loads = _broadcast(loads, 1.0, (N, c), "loads")
    sets = contact_sets(laws, names, columns, rows, velocity, loads, at_rest, None)
    return ContactProblem(M, f, W, A, drift, velocity, shift, sets, rows)


def checked_directions(W: Any, n: int) -> Float[Array, "n m"]:
    """Return W as (n, m)."""
    W, _ = as_real(W, "W")
    if W.ndim != 2 or W.shape[0] != n:
        hint = " (rows and columns exchanged?)" if W.ndim == 2 and W.shape[1] == n else ""
        raise ShapeError(f"W must be ({n}, m), one column per contact direction; it has shape {W.shape}{hint}")
    return W


def _constraint_rows(A: Any, N: int, n: int) -> tuple[Array, int]:
    """Return A as (N or 1, k, n), and k."""
    if A is None:
        return np.zeros((1, 0, n)), 0
    A, _ = as_real(A, "A")
    A = A[None] if A.ndim == 2 else A
    if A.ndim != 3 or A.shape[2] != n or len(A) not in (1, N):
        raise ShapeError(f"A must be (k, {n}) or ({N}, k, {n}); it has shape {A.shape}")
    return A, A.shape[1]


def _broadcast(values: Any, default: float, shape: tuple[int, int], what: str) -> Array:
    array = np.asarray(default) if values is None else as_real(values, what)[0]
    try:
        return np.broadcast_to(array, shape).astype(float)
    except ValueError:
        raise ShapeError(f"{what} must be {shape} or ({shape[1]},); it has shape {array.shape}") from None


# ----------------------------------------------------------------------------------------------------------------------
# Laws -> sets: which columns of W, which row of A, which limit or coefficient in each state.


def listed_laws(laws: Any, m: int) -> tuple[list[Any], int]:
    """Return the laws as a list, and the number of contacts; a single law or number stands for all m columns."""
    if isinstance(laws, Reacting | Limited):
        laws = [laws]
    elif not isinstance(laws, list | tuple):
        laws = [laws] * m if isinstance(laws, Law) or np.ndim(laws) == 0 else list(laws)
    return list(laws), len(laws) if any(isinstance(law, Reacting | Limited) for law in laws) else m


def column_names(laws: list[Any], names: Sequence[str], m: int) -> tuple[str, ...]:
    """Return a name for each of the m columns of W: that of its contact, numbered where it is a plane."""
    if len(laws) != len(names):
        raise ShapeError(f"{len(laws)} laws for {len(names)} contacts")
    widths = [law.directions if isinstance(law, Reacting | Limited) else 1 for law in laws]
    for name, width in zip(names, widths, strict=True):
        if width not in (1, 2):
            raise ModelError(f"contact {name!r}: directions must be 1, or 2 for a plane, not {width!r}")
    if sum(widths) != m:
        raise ShapeError(f"the {len(laws)} laws take {sum(widths)} columns of W (two for a plane); W has {m}")
    pairs = zip(names, widths, strict=True)
    return tuple(name if width == 1 else f"{name}[{j}]" for name, width in pairs for j in range(width))


def contact_sets(
    laws: list[Any], names: tuple[str, ...], columns: tuple[str, ...], rows: Sequence[str], velocity: Array,
    loads: Array, at_rest: float, single: tuple[Any] | None,
) -> ContactSets:  # fmt: skip
    """Evaluate the laws at all velocities (N, m).

    `single` holds the state of the system where there is one state alone, whose data are refused in words; of many, a
    bad sample has NaN for a coefficient.
    """
    bases, source, first, kind, begin = _rows_of_contacts(laws, names, rows)
    N, m = velocity.shape
    speed = np.abs(velocity) if len(laws) == m else _speeds(velocity, begin)
    sliding = ~(speed <= at_rest)
    static, kinetic = np.empty(len(laws)), np.zeros(speed.shape)
    for i, law in enumerate(bases):
        if single is None and law.needs_state:
            raise ModelError(
                f"contact {names[i]!r}: a law that depends on the state is resolved one by one: use resolve"
            )
        static[i] = law.static(None if single is None else single[0])
        if sliding[:, i].any():
            kinetic[:, i] = _kinetic(law, speed[:, i], None if single is None else single[0])
    fixed = kind == FIXED
    if single is not None:
        _refuse_active(bases, names, fixed.tolist(), static, kinetic[0], loads[0], speed[0], sliding[0].tolist())
    # coefficients of cones; of given limits the limit at rest, the force in motion
    load = np.where(loads >= 0.0, loads, np.nan)
    mu = np.where(fixed, np.where(sliding & np.isfinite(load), 0.0, load * static), np.where(sliding, kinetic, static))
    mu[~np.isfinite(speed)] = np.nan
    prescribed, direction = np.zeros((N, m)), np.zeros((N, source.size))
    if sliding.any():
        owner = np.repeat(np.arange(len(laws)), np.diff(np.append(begin, m)))
        unit = np.where(np.isfinite(velocity), velocity, 0.0) / np.where(speed > 0.0, speed, 1.0)[:, owner]
        prescribed = np.where((sliding & fixed)[:, owner], np.nan_to_num((-load * kinetic)[:, owner] * unit), 0.0)
        if not fixed.all():
            tangent = (source >= 0) & np.repeat(~fixed, np.diff(first))
            direction[:, tangent] = (sliding[:, owner] * unit)[:, source[tangent]]
    normals = set((-1 - source[source < 0]).tolist())
    others = np.array([i for i in range(len(rows)) if i not in normals], dtype=np.int64)
    return ContactSets(names, columns, kind, first, source, others, mu, sliding, direction, prescribed)


def _rows_of_contacts(
    laws: list[Any], names: Sequence[str], rows: Sequence[str]
) -> tuple[list[Law], Array, Array, Array, Array]:
    """Return the laws proper, and source, first, kind of `ContactSets` with the first column of each contact."""
    bases, source, first, kind, begin, column = [], [], [0], [], [], 0
    for law, name in zip(laws, names, strict=True):
        width, base = (law.directions, law.law) if isinstance(law, Reacting | Limited) else (1, law)
        bases.append(as_law(base, f"contact {name!r}"))
        if isinstance(law, Reacting):
            source.append(-1 - _normal(law, name, rows, source))
            kind.append(UNILATERAL if law.unilateral else BILATERAL)
        else:
            kind.append(FIXED)
        begin.append(column)
        source += range(column, column + width)
        first.append(len(source))
        column += width
    where, offsets, kinds, starts = (np.array(x, dtype=np.int64) for x in (source, first, kind, begin))
    return bases, where, offsets, kinds, starts


def _speeds(velocity: Array, begin: Array) -> Array:
    """Return sizes of relative velocities (N, c), in a line or a plane; `begin` are the first columns of contacts."""
    ends = np.append(begin[1:], velocity.shape[1])
    return np.stack(
        [np.abs(velocity[:, a]) if b == a + 1 else np.linalg.norm(velocity[:, a:b], axis=1)
         for a, b in zip(begin.tolist(), ends.tolist(), strict=True)], axis=1,
    )  # fmt: skip


def _kinetic(law: Law, speed: Array, state: Any) -> Any:
    """Return the force in motion at these speeds; a state of its own is asked for with a number."""
    return float(law.kinetic(float(speed[0]), state)) if speed.size == 1 else law.kinetic(np.nan_to_num(speed), state)


def _normal(law: Reacting, name: str, rows: Sequence[str], source: list[int]) -> int:
    """Return the number of the constraint row that a contact names; each row loads one contact."""
    if isinstance(law.row, str):
        if law.row not in rows:
            raise ModelError(f"contact {name!r}: no constraint row is called {law.row!r}; there are {tuple(rows)}")
        row = tuple(rows).index(law.row)
    elif not isinstance(law.row, int | np.integer):
        raise ModelError(f"contact {name!r}: a row is named or numbered; got {law.row!r}")
    elif not 0 <= int(law.row) < len(rows):
        raise ModelError(f"contact {name!r}: there is no constraint row {law.row}; A has {len(rows)}")
    else:
        row = int(law.row)
    if -1 - row in source:
        raise ModelError(f"contact {name!r}: the row {rows[row]!r} is the normal of another contact already")
    return row


def _refuse_active(
    laws: list[Law], names: Sequence[str], fixed: list[bool], static: Array, kinetic: Array, loads: Array, speed: Array,
    sliding: list[bool],
) -> None:  # fmt: skip
    """Raise for a load that is none, and for a law that pushes along the motion in the state at hand."""
    for i, name in enumerate(names):
        if fixed[i] and not 0.0 <= loads[i] < np.inf:
            raise ModelError(f"contact {name!r}: its load is {loads[i]}; a load must be finite and not negative")
        if not laws[i].needs_state:
            continue
        limit, force = loads[i] * static[i], loads[i] * kinetic[i]
        if fixed[i] and not (0.0 <= limit < np.inf and force >= 0.0):
            raise ModelError(
                f"contact {name!r}: the friction law is not dissipative here: static limit {limit:.6g}, force "
                f"{-force:.6g} at speed {speed[i]:.6g}"
            )
        mu = kinetic[i] if sliding[i] else static[i]
        if not fixed[i] and not 0.0 <= mu < np.inf:
            raise ModelError(f"contact {name!r}: the friction law is not dissipative here: its coefficient is {mu:.6g}")
