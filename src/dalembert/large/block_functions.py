"""Block solves, projections, impacts and the Delassus matrix of a large mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt import Status
from dalembert.large.block_system import LargeSystem
from dalembert.large.looped_kernel import LoopedFunction
from dalembert.large.motion_functions import large_system, quantity, refuse_matrix, refuse_route, solved, weighed
from dalembert.large.residuals import forget_rounding
from dalembert.progress import with_bar
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# The Delassus matrix of a large mechanism: itself, its factor, and its inverse times a vector without forming it.
#
# Symbols: G = A M^-1 A^T (m, m); L unit lower triangular, D diagonal; delta shift of redundant rows, as in
# `tree/routes/delassus_kernels.py`.
#
#     G e_k               A a with M a = A^T e_k: one run of the articulated-body algorithm
#     G + delta = L D L^T no shift where every pivot is well above zero
#     G x = b             M a + A^T x = 0, A a = -b: the block system with its fronts


OUTSIDE = 4
"""Times that a right side outside the range of G is brought into it: the first leaves 1e-6 of it, the third nothing."""


def refuse_no_delassus(system: LargeSystem) -> None:
    """Refuse a tree with a motion without mass, whose M has no inverse."""
    if system.massless is not None:
        raise ModelError(
            f"nothing resists the coordinate {system.massless!r} of the open tree of "
            f"{system.layout.mechanism.name!r}, so M has no inverse and A M^-1 A^T no value; 'delassus_solve', 'kkt' "
            "and 'forward' solve the block form, or give the link mass or its joint armature"
        )


def delassus_matrix(system: LargeSystem, q: Array, t: float) -> Array:
    """Return G (m, m), one column after the other."""
    m = system.rows.m
    G, values = np.zeros((m, m)), system.still(q, t)
    for k in with_bar(range(m), "delassus"):
        G[:, k] = system.move_rows(values, system.tree.yielding(system.pull(values, np.eye(1, m, k)[0])))
    return (G + G.T) / 2


def delassus_factor(system: LargeSystem, q: Array, t: float) -> tuple[Array, Array, Array]:
    """Return L (m, m), D (m,), shift (m,); NaN where G is not finite."""
    G = delassus_matrix(system, q, t)
    g = np.diagonal(G).copy()
    forget_rounding(system.ends, system.layout.inertia, system.still(q, t).wrenches, g)
    shift, scale = np.zeros(len(g)), system.scales(g)
    L, D = _lower(G)
    if not (system.limits.implied * scale < D).all():
        shift = system.shift(g, scale)
        L, D = _lower(G + np.diag(shift))
    return L, D, shift


def delassus_solution(system: LargeSystem, q: Array, b: Array, t: float) -> Array:
    """Return x (m,) with G x = b: least where rows are redundant.

    Where b is not in the range of G, what is outside of it goes into x as 1 / mu times itself: solved again with what x
    does reach, G x = -A a, x is that of least squares. Each time mu of the outside is left, and rounding of x.
    """
    still = np.zeros(system.layout.mechanism.nv)
    solution = system.right_sides(q, still, -b, t)
    for _ in range(OUTSIDE):
        if solution.status != Status.INCONSISTENT or not np.isfinite(solution.acceleration).all():
            break
        b = -system.move_rows(system.still(q, t), solution.acceleration)
        solution = system.right_sides(q, still, -b, t)
    return solution.multipliers


def _lower(G: Array) -> tuple[Array, Array]:
    """Return L, D of L D L^T = G; NaN where G is not positive definite or not finite."""
    try:
        R = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return np.full_like(G, np.nan), np.full(len(G), np.nan)
    root = np.diagonal(R)
    return R / root, root**2


# ----------------------------------------------------------------------------------------------------------------------
# The block system for other right sides, and the Delassus matrix, as loops: `make_<request>(mechanism, **options)`.


def make_kkt(mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64") -> LoopedFunction:
    """q, y1, y2, t -> acceleration, multipliers, status."""
    refuse_route(mechanism, route)
    system = weighed(mechanism, metric)

    def evaluate(q: Array, y1: Array, y2: Array, t: Array, a: Array, lam: Array, status: Array) -> None:
        solution = system.right_sides(q, y1, y2, float(t[0]))
        a[:], lam[:], status[0] = solution.acceleration, solution.multipliers, solution.status

    return quantity(mechanism, "q y1 y2 t", solved(mechanism, "acceleration", "multipliers"), evaluate)


def make_impact(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> LoopedFunction:
    """q, v, restitution, t -> velocity, impulses, status."""
    system = weighed(mechanism, metric)

    def evaluate(q: Array, v: Array, e: Array, t: Array, out: Array, lam: Array, status: Array) -> None:
        solution = system.jump(q, v, float(t[0]), 1.0 + e)
        out[:], lam[:], status[0] = solution.acceleration, solution.multipliers, solution.status

    return quantity(mechanism, "q v restitution t", solved(mechanism, "velocity", "impulses"), evaluate)


def make_project_velocity(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> LoopedFunction:
    """q, v, t -> velocity, impulses, status."""
    system, all_of_it = weighed(mechanism, metric), np.ones(len(mechanism.names))

    def evaluate(q: Array, v: Array, t: Array, out: Array, lam: Array, status: Array) -> None:
        solution = system.jump(q, v, float(t[0]), all_of_it)
        out[:], lam[:], status[0] = solution.acceleration, solution.multipliers, solution.status

    return quantity(mechanism, "q v t", solved(mechanism, "velocity", "impulses"), evaluate)


def make_project_step(mechanism: Mechanism, dtype: str = "float64") -> LoopedFunction:
    """q, t -> step, residual, status."""
    system = large_system(mechanism)

    def evaluate(q: Array, t: Array, step: Array, residual: Array, status: Array) -> None:
        step[:], residual[:], status[0] = system.step(q, float(t[0]))

    outputs = {"step": (mechanism.nv, 1), "residual": (system.rows.h, 1), "status": (1, 1)}
    return quantity(mechanism, "q t", outputs, evaluate)


def make_project(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> LoopedFunction:
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


def make_delassus(mechanism: Mechanism, route: str = "auto") -> LoopedFunction:
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
) -> LoopedFunction:
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
) -> LoopedFunction:
    """q, b, t -> x with G x = b; G is not formed."""
    refuse_route(mechanism, route)
    system = weighed(mechanism, metric)

    def evaluate(q: Array, b: Array, t: Array, x: Array) -> None:
        x[:] = delassus_solution(system, q, b, float(t[0]))

    return quantity(mechanism, "q b t", {"x": (len(mechanism.names), 1)}, evaluate)
