"""Limbs without mass that nothing holds: found, and given dynamics of their own (seed 000, after eq. 35).

Symbols: N basis of null(M) within null(A): motions that move no mass and break no row; v_P velocities of as many
coordinates, the limb's, so that N has full rank there; w(q, t) the law.

    v_P = w(q, t)        M N = 0,  A N = 0

What has no mass has no state but its place, so a law of its own gives velocities: w = 0 holds it still, w = r'(t) +
k (r(t) - q_P) leads it along a motion r, w = -(k / c) (q_P - q_0) is a spring k beside a damper c. These rows take no
reaction from the rest: M N = 0, so kinetic energy and momentum are those of the rest, which moves as the reduced system
does. Forces on the limb itself are borne by the multipliers of the rows, mu = force along v_P, with the power mu . w.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.memory import memory_of, remembered
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.row_algebra import Matrix, Rows
from dalembert.names import lookup
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.constraints.primitives import Kinematics
    from dalembert.model.mechanism.mechanism import Mechanism

Law = float | Callable[[Any], Any]
"""A velocity, or a function of the mechanism in motion (`k.q`, `k.t`, `k.coordinate("knee")`) that returns one."""

SAMPLES = 3
"""Configurations at which free motions without mass are looked for."""

MOST_LAWS = 8
"""Mechanisms with laws that are kept, with their kernels, by the mechanism that they are of."""

SEEN = 1e-3
"""A coordinate stands for a free motion where it has this part of the largest entry that one has there."""


@dataclass(frozen=True, repr=False)
class LimbRow(Constraint):
    """The velocity of a coordinate without mass equals law(q, t): a row at velocity level."""

    coordinate: str = ""
    law: Law = 0.0

    kind = "massless limb"

    @property
    def label(self) -> str:
        """The name, or that of the coordinate."""
        return self.name or f"massless {self.coordinate}"

    @property
    def private(self) -> bool:
        """Whether the law is a Python function."""
        return callable(self.law)

    def row_names(self) -> tuple[str, ...]:
        """Return the row's own name."""
        return (self.label,)

    def holonomic(self) -> tuple[bool, ...]:
        """Return that it has no residual."""
        return (False,)

    def check(self, mechanism: Mechanism) -> None:
        """Refuse a coordinate that does not exist."""
        place_of(mechanism, self.coordinate)

    def rows(self, kinematics: Kinematics) -> Rows:
        """Return v_i - w = 0 with its rate a_i - w'."""
        i = place_of(kinematics.mechanism, self.coordinate)
        A = np.zeros((1, kinematics.mechanism.nv))
        A[0, i] = 1.0
        w, rate = law_in_motion(self.law, self.label, kinematics)
        return Rows(None, A, kinematics.v[i : i + 1, :] - w, -rate)


def law_in_motion(law: Law, label: str, kinematics: Kinematics) -> tuple[Matrix, Matrix]:
    """Return w and its rate along the motion, each (1, 1)."""
    if not callable(law):
        return np.full((1, 1), float(law)), np.zeros((1, 1))
    import casadi as ca

    k = kinematics
    if isinstance(k.q, np.ndarray):
        raise UnsupportedError(f"the law of {label!r} is an expression; it has no plain NumPy form")
    try:
        w = ca.SX(law(k))
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise ModelError(f"the law of {label!r} failed: {error}") from error
    if w.shape != (1, 1) or ca.depends_on(w, k.v):
        raise ModelError(
            f"the law of {label!r} must be one velocity, an expression of k.q and k.t: without mass there is no "
            f"inertia that could follow an acceleration; it is {w.shape}, {w}"
        )
    return w, ca.jtimes(w, k.q, k.rate) + ca.jtimes(w, k.t, ca.SX.ones(1))


def place_of(mechanism: Mechanism, coordinate: str) -> int:
    """Return the place of a velocity by its coordinate's name."""
    return lookup(coordinate, {name: i for i, name in enumerate(mechanism.coordinates)}, "coordinate")


def checked_law(law: Any, expressions: bool = False) -> dict[str, Any]:
    """Return laws by coordinate; "hold" is none of them: what is not named is held.

    Those of a mechanism are numbers and functions, of a Lagrangian numbers and `expressions`.
    """
    if isinstance(law, str) and law == "hold":
        return {}
    if not isinstance(law, Mapping):
        raise ModelError(
            f"massless={law!r} is not 'refuse', 'hold', or a dict of coordinates with their laws: "
            "{'knee': lambda k: -20 * k.coordinate('knee')} in CasADi expressions, or numbers (rad/s, m/s)"
        )
    if expressions:
        return {str(name): rate for name, rate in law.items()}
    for name, rate in law.items():
        if not callable(rate) and not (isinstance(rate, int | float | np.number) and np.isfinite(rate)):
            raise ModelError(f"the law of {name!r} is a finite number or a function, not {rate!r}")
    return {str(name): rate if callable(rate) else float(rate) for name, rate in law.items()}


@remembered(8)
def free_motions(mechanism: Mechanism) -> list[Array]:
    """Return bases (n, k) of what moves no mass and breaks no row, at configurations that close the loops."""
    from dalembert.kkt import KKT
    from dalembert.model.mechanism.assemble import closed_or_none, closed_samples

    if any(mechanism.holonomic):
        samples = closed_samples(mechanism, closed_or_none(mechanism.project), SAMPLES, seed=0)
        places = [q for q, closed in samples if closed] or [q for q, _ in samples]
    else:
        places = list(mechanism.random(np.random.default_rng(0), SAMPLES))
    systems = [KKT(mechanism.mass_matrix(q), mechanism.jacobian(q)) for q in places]
    return [system.analysis.motion.free for system in systems]


def limb_coordinates(mechanism: Mechanism, wanted: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return as many coordinates as there are free motions without mass, those `wanted` first."""
    return chosen_coordinates(free_motions(mechanism), mechanism.coordinates, wanted, repr(mechanism.name))


def chosen_coordinates(
    bases: list[Array], coordinates: tuple[str, ...], wanted: tuple[str, ...], what: str
) -> tuple[str, ...]:
    """Return coordinates, each of which takes one motion away from bases (n, k), the largest that is left in it.

    What remains when all of them are held is nothing. One that is `wanted` and takes none is refused by name.
    """
    place = {name: i for i, name in enumerate(coordinates)}
    count = min((basis.shape[1] for basis in bases), default=0)
    left = [np.linalg.qr(basis)[0] for basis in bases if basis.shape[1] == count]
    chosen: list[int] = []
    for step in range(count):
        sizes = np.min([np.linalg.norm(basis, axis=1) for basis in left], axis=0)
        named = [lookup(name, place, "coordinate") for name in wanted[step : step + 1]]
        i = named[0] if named else int(np.argmax(sizes))
        if not sizes[i] > SEEN:
            break
        chosen.append(i)
        left = [without(basis, i) for basis in left]
    names = tuple(coordinates[i] for i in chosen)
    for name in wanted:
        if lookup(name, place, "coordinate") not in chosen:
            free = ", ".join(map(repr, chosen_coordinates(bases, coordinates, (), what))) or "none"
            raise ModelError(f"massless: {name!r} is no motion of {what} that has no mass and is free; there is {free}")
    return names


def without(basis: Array, i: int) -> Array:
    """Return an orthonormal basis (n, k - 1) of those motions of a basis in which coordinate i stands still."""
    row = basis[i] / np.linalg.norm(basis[i])
    return basis @ np.linalg.svd(row[None])[2][1:].T


def with_massless(mechanism: Mechanism, law: Any = "hold") -> Mechanism:
    """Return the mechanism with a row for every free motion without mass; itself where there is none."""
    laws = checked_law(law)

    def make() -> Mechanism:
        names = limb_coordinates(mechanism, tuple(laws))
        return mechanism.constrain(*[LimbRow(coordinate=name, law=laws.get(name, 0.0)) for name in names])

    return memory_of(mechanism, "massless", MOST_LAWS).get(tuple(laws.items()), make)


def limb_places(mechanism: Mechanism, law: Any = "hold") -> tuple[int, ...]:
    """Return the places of the coordinates that `with_massless` leads."""
    leading = with_massless(mechanism, law)
    return tuple(place_of(mechanism, row.coordinate) for row in leading.constraints if isinstance(row, LimbRow))


def led(mechanism: Mechanism, q: Array, v: Array, t: float) -> Array:
    """Return velocities with those of limbs without mass as their laws say: no energy, and no impulse, changes it."""
    rows = [row for row in mechanism.constraints if isinstance(row, LimbRow)]
    if not rows:
        return v
    places = [place_of(mechanism, row.coordinate) for row in rows]
    at = [mechanism.names.index(row.label) for row in rows]
    v = np.array(v, dtype=float)
    v[places] -= np.asarray(mechanism.constraint_velocity(q, v, t))[at]
    return v
