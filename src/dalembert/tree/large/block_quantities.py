"""The block system for other right sides, and the Delassus matrix, as loops: `make_<request>(mechanism, **options)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.tree.large.delassus import delassus_factor, delassus_matrix, delassus_solution, refuse_no_delassus
from dalembert.tree.large.kernel import Quantity
from dalembert.tree.large.quantities import (
    large_system,
    quantity,
    refuse_matrix,
    refuse_route,
    solved,
    weighed,
)

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray


def make_kkt(mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64") -> Quantity:
    """q, y1, y2, t -> acceleration, multipliers, status."""
    refuse_route(mechanism, route)
    system = weighed(mechanism, metric)

    def evaluate(q: Array, y1: Array, y2: Array, t: Array, a: Array, lam: Array, status: Array) -> None:
        found = system.right_sides(q, y1, y2, float(t[0]))
        a[:], lam[:], status[0] = found.acceleration, found.multipliers, found.status

    return quantity(mechanism, "q y1 y2 t", solved(mechanism, "acceleration", "multipliers"), evaluate)


def make_impact(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> Quantity:
    """q, v, restitution, t -> velocity, impulses, status."""
    system = weighed(mechanism, metric)

    def evaluate(q: Array, v: Array, e: Array, t: Array, out: Array, lam: Array, status: Array) -> None:
        found = system.jump(q, v, float(t[0]), 1.0 + e)
        out[:], lam[:], status[0] = found.acceleration, found.multipliers, found.status

    return quantity(mechanism, "q v restitution t", solved(mechanism, "velocity", "impulses"), evaluate)


def make_project_velocity(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> Quantity:
    """q, v, t -> velocity, impulses, status."""
    system, all_of_it = weighed(mechanism, metric), np.ones(len(mechanism.names))

    def evaluate(q: Array, v: Array, t: Array, out: Array, lam: Array, status: Array) -> None:
        found = system.jump(q, v, float(t[0]), all_of_it)
        out[:], lam[:], status[0] = found.acceleration, found.multipliers, found.status

    return quantity(mechanism, "q v t", solved(mechanism, "velocity", "impulses"), evaluate)


def make_project_step(mechanism: Mechanism, dtype: str = "float64") -> Quantity:
    """q, t -> step, residual, status."""
    system = large_system(mechanism)

    def evaluate(q: Array, t: Array, step: Array, residual: Array, status: Array) -> None:
        step[:], residual[:], status[0] = system.step(q, float(t[0]))

    outputs = {"step": (mechanism.nv, 1), "residual": (system.rows.h, 1), "status": (1, 1)}
    return quantity(mechanism, "q t", outputs, evaluate)


def make_project(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> Quantity:
    """q, v, t -> step, velocity, residual, impulses, status: both projections, the worse status."""
    system, all_of_it = weighed(mechanism, metric), np.ones(len(mechanism.names))

    def evaluate(
        q: Array, v: Array, t: Array, step: Array, velocity: Array, residual: Array, impulses: Array, status: Array
    ) -> None:
        jumped = system.jump(q, v, float(t[0]), all_of_it)
        velocity[:], impulses[:] = jumped.acceleration, jumped.multipliers
        step[:], residual[:], stepped = system.step(q, float(t[0]))
        status[0] = max(int(jumped.status), int(stepped))

    n, m = mechanism.nv, len(mechanism.names)
    outputs = {
        "step": (n, 1), "velocity": (n, 1), "residual": (system.rows.h, 1), "impulses": (m, 1), "status": (1, 1)
    }  # fmt: skip
    return quantity(mechanism, "q v t", outputs, evaluate)


def make_delassus(mechanism: Mechanism, route: str = "auto") -> Quantity:
    """q, t -> G = A M^-1 A^T, a column for each run of the articulated-body algorithm."""
    refuse_route(mechanism, route)
    system, m = large_system(mechanism), len(mechanism.names)
    refuse_matrix(mechanism, "delassus", m, m, "'delassus_solve' and 'kkt' solve with it without forming it")
    refuse_no_delassus(system)

    def evaluate(q: Array, t: Array, G: Array) -> None:
        G[:] = delassus_matrix(system, q, float(t[0])).reshape(G.shape)

    return quantity(mechanism, "q t", {"G": (m, m)}, evaluate)


def make_delassus_factor(
    mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64"
) -> Quantity:
    """q, t -> L, D, shift: G + diag(shift) = L D L^T."""
    refuse_route(mechanism, route)
    system, m = weighed(mechanism, metric), len(mechanism.names)
    refuse_matrix(mechanism, "delassus_factor", m, m, "'delassus_solve' and 'kkt' solve with it without forming it")
    refuse_no_delassus(system)

    def evaluate(q: Array, t: Array, L: Array, D: Array, shift: Array) -> None:
        lower, D[:], shift[:] = delassus_factor(system, q, float(t[0]))
        L[:] = lower.reshape(L.shape)

    return quantity(mechanism, "q t", {"L": (m, m), "D": (m, 1), "shift": (m, 1)}, evaluate)


def make_delassus_solve(
    mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64"
) -> Quantity:
    """q, b, t -> x with G x = b; G is not formed."""
    refuse_route(mechanism, route)
    system = weighed(mechanism, metric)

    def evaluate(q: Array, b: Array, t: Array, x: Array) -> None:
        x[:] = delassus_solution(system, q, b, float(t[0]))

    return quantity(mechanism, "q b t", {"x": (len(mechanism.names), 1)}, evaluate)
