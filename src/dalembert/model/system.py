"""The protocol that every system satisfies, and how one is solved (seed 001, eqs. 1-6).

    M(q, t) a + bias(q, v, t) + A(q, t)^T lam = force        A(q, t) a + drift(q, v, t) = 0

Solvers and integrators see only this. Oprea writes W = A^T, h = -bias and a0 for the acceleration without constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import SolvabilityError
from dalembert.kkt import KKT, Solution
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float


@runtime_checkable
class System(Protocol):
    """What a mechanism, a Lagrangian system and hand-made matrices have in common; t is the time in seconds."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the n velocities (and of their accelerations)."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the m constraint rows."""
        ...

    def mass_matrix(self, q: Array, t: float) -> Float[Array, "n n"]:
        """Return M, symmetric, possibly singular."""
        ...

    def bias(self, q: Array, v: Array, t: float) -> Float[Array, " n"]:
        """Return C v + N: velocity-dependent and potential forces, on the left side."""
        ...

    def jacobian(self, q: Array, t: float) -> Float[Array, "m n"]:
        """Return A, possibly with redundant rows."""
        ...

    def drift(self, q: Array, v: Array, t: float) -> Float[Array, " m"]:
        """Return A_dot v, and for constraints that depend on time what else remains at a = 0."""
        ...


def block_system(system: System, q: Any, t: float = 0.0, metric: Any = None, v: Any = None) -> KKT:
    """Return the block matrix of a system at one configuration, with its names; `v` where rows depend on it."""
    q = floats(q, "q")
    turning: Any = {"v": v} if getattr(system, "of_accelerations", ()) else {}
    return KKT(system.mass_matrix(q, t), system.jacobian(q, t, **turning), system.names, system.coordinates, metric)


def solve(
    system: System, q: Any, v: Any, force: Any = None, t: float = 0.0, metric: Any = None, **options: Any
) -> Solution:
    """Solve for accelerations and multipliers at one state; `force` (n,) is applied, `options` go to `KKT.solve`."""
    q, v = floats(q, "q"), floats(v, "v")
    return block_system(system, q, t, metric, v).solve(
        _net_force(system, q, v, t, force), system.drift(q, v, t), **options
    )


def unconstrained_acceleration(system: System, q: Any, v: Any, force: Any = None, t: float = 0.0) -> Array:
    """Return a0 = M^-1 (force - bias), the acceleration in the absence of the constraints (seed 001, eq. 3).

    Raises `SolvabilityError` where M is singular, and there is none, or so near to it that none is certain.
    """
    q, v = floats(q, "q"), floats(v, "v")
    free = KKT(system.mass_matrix(q, t), None, coordinates=system.coordinates)
    solution = free.solve(_net_force(system, q, v, t, force))
    if not np.all(solution.ok):
        raise SolvabilityError(f"the acceleration without constraints is not certain\n{solution.certificate}")
    return solution.acceleration


def _net_force(system: System, q: Array, v: Array, t: float, force: Any) -> Array:
    """Return applied minus bias forces; no applied force is zero."""
    bias = system.bias(q, v, t)
    return -bias if force is None else vectors(force, bias.shape[-1], "force") - bias
