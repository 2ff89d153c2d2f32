"""Forward and inverse dynamics, matrices and rows of a large mechanism; the table of all that loops compute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.large import row_state as composite
from dalembert.large.block_functions import (
    make_delassus,
    make_delassus_factor,
    make_delassus_solve,
    make_impact,
    make_kkt,
    make_project,
    make_project_step,
    make_project_velocity,
)
from dalembert.large.block_system import least_forces
from dalembert.large.coriolis import FLOW, coriolis_matrix
from dalembert.large.large_tree import refuse_singular
from dalembert.large.looped_kernel import LoopedFunction, ThreadSplit
from dalembert.large.motion_functions import (
    into,
    large_system,
    large_tree,
    make_center_of_mass,
    make_center_of_mass_velocity,
    make_energy,
    make_jacobian,
    make_jacobian_drift,
    make_kinematics,
    make_momentum,
    make_momentum_rate,
    make_velocity,
    quantity,
    refuse_matrix,
    refuse_route,
    solved,
    weighed,
)
from dalembert.large.threads import BranchedTree, Branches
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# Forward and inverse dynamics, matrices and constraint rows of a large mechanism.


def make_forward(
    mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64", massless: str = "refuse"
) -> LoopedFunction:
    """q, v, tau, t -> acceleration, multipliers, status."""
    refuse_route(mechanism, route)
    if not mechanism.names:
        return _open_forward(mechanism)
    system = weighed(mechanism, metric)
    last = threading.local()

    def evaluate(q: Array, v: Array, tau: Array, t: Array, a: Array, lam: Array, status: Array) -> None:
        solution = system.forward(q, v, tau, float(t[0]), (a, lam))
        if solution.acceleration is not a:
            a[:], lam[:] = solution.acceleration, solution.multipliers
        status[0] = solution.status
        last.state = (q, v, float(t[0]))

    function = quantity(mechanism, "q v tau t", solved(mechanism, "acceleration", "multipliers"), evaluate)

    def explain(a: Array) -> str:
        q, v, t = last.state
        return system.furthest(q, v, t, a)

    return replace(function, explain=explain)


def make_aba(mechanism: Mechanism) -> LoopedFunction:
    """q, v, tau -> a of the open tree."""
    return _split(mechanism, "q v tau", {"a": (mechanism.nv, 1)}, into)


def _open_forward(mechanism: Mechanism) -> LoopedFunction:
    """q, v, tau, t -> acceleration, no multipliers, status of an open tree."""

    def judged(function: Callable[..., Any]) -> Callable[..., None]:
        def evaluate(q: Array, v: Array, tau: Array, _t: Array, a: Array, _lam: Array, status: Array) -> None:
            function(q, v, tau, a)
            status[0] = Status.UNIQUE if np.isfinite(a).all() else Status.NONFINITE

        return evaluate

    return _split(mechanism, "q v tau t", solved(mechanism, "acceleration", "multipliers"), judged)


def _split(
    mechanism: Mechanism, inputs: str, outputs: dict[str, tuple[int, int]], into: Callable[..., Callable[..., None]]
) -> LoopedFunction:
    """Return forward dynamics of an open tree whose branches threads may share."""
    tree = large_tree(mechanism)
    refuse_singular(tree)
    function = quantity(mechanism, inputs, outputs, into(tree.forward))

    def split(threads: int) -> ThreadSplit:
        plan = Branches.of(tree.layout.parent, threads)
        if not plan.pays:
            return ThreadSplit(function.evaluate, 1.0, plan.words)
        branched = BranchedTree(tree, plan, threads)
        function.figures["memory_bytes"] += branched.bytes
        return ThreadSplit(into(branched.forward), plan.gain, plan.words)

    return replace(function, split=split)


def make_inverse(mechanism: Mechanism, actuated: Any = None, dtype: str = "float64") -> LoopedFunction:
    """q, v, a -> tau; with loops or constraints q, v, a, t -> tau, multipliers, status."""
    tree = large_tree(mechanism)
    if actuated is None and not mechanism.loops and not mechanism.constraints:
        return quantity(mechanism, "q v a", {"tau": (mechanism.nv, 1)}, into(tree.inverse))
    if actuated is not None:
        raise UnsupportedError(
            f"inverse dynamics of {mechanism.name!r} with some joints driven is not looped over; without actuated= all "
            "joints are, and backend='cpu' unrolls it"
        )
    system = large_system(mechanism)

    def evaluate(q: Array, v: Array, a: Array, t: Array, tau: Array, lam: Array, status: Array) -> None:
        tau[:], lam[:], status[0] = least_forces(system, q, v, a, float(t[0]))

    return quantity(mechanism, "q v a t", solved(mechanism, "tau", "multipliers"), evaluate)


def make_bias(mechanism: Mechanism) -> LoopedFunction:
    """q, v -> bias."""
    tree, still = large_tree(mechanism), np.zeros(mechanism.nv)
    return quantity(mechanism, "q v", {"bias": (mechanism.nv, 1)}, lambda q, v, out: tree.inverse(q, v, still, out))


def make_gravity(mechanism: Mechanism) -> LoopedFunction:
    """From q to the joint forces that hold still."""
    tree, still = large_tree(mechanism), np.zeros(mechanism.nv)

    def evaluate(q: Array, out: Array) -> None:
        tree.inverse(q, still, still, out, passive=False)

    return quantity(mechanism, "q", {"tau": (mechanism.nv, 1)}, evaluate)


def make_mass_matrix(mechanism: Mechanism) -> LoopedFunction:
    """From q to M."""
    tree, n = large_tree(mechanism), mechanism.nv
    refuse_matrix(mechanism, "mass_matrix", n, n, "inverse(q, 0, a).tau less inverse(q, 0, 0).tau is M times a vector")

    def evaluate(q: Array, M: Array) -> None:
        tree.move(q, tree.memory.still)
        layout = tree.layout
        M = M.reshape(n, n)
        composite.mass_matrix(layout.topology, layout.pitch, layout.inertia, tree.armature, tree.memory.K, M)

    return quantity(mechanism, "q", {"M": (n, n)}, evaluate)


def make_coriolis_matrix(mechanism: Mechanism) -> LoopedFunction:
    """From q, v to C."""
    tree, n = large_tree(mechanism), mechanism.nv
    refuse_matrix(mechanism, "coriolis_matrix", n, n, "bias(q, v) less bias(q, 0) and what dampers take is C v")
    local = threading.local()

    def evaluate(q: Array, v: Array, C: Array) -> None:
        V, layout = tree.move(q, v).speeds, tree.layout
        if not hasattr(local, "room"):
            local.flow, local.room = np.zeros((layout.n, FLOW)), np.zeros((16, 6))
        K = tree.memory.K
        composite_inertias = composite.composites(layout.parent, layout.inertia, K)
        coriolis_matrix(
            layout.topology, layout.pitch, layout.inertia, K, V, composite_inertias, local.flow, local.room,
            C.reshape(n, n),
        )  # fmt: skip

    return quantity(mechanism, "q v", {"C": (n, n)}, evaluate)


def _row_quantity(mechanism: Mechanism, inputs: str, word: str, size: int) -> LoopedFunction:
    """Return one field of the rows as a quantity."""
    system, still = large_system(mechanism), np.zeros(mechanism.nv)

    def evaluate(q: Array, *rest: Array) -> None:
        *v, t, out = rest
        speed = v[0] if v else still
        out[:] = getattr(system.moved(q, speed, float(t[0])), word)

    return quantity(mechanism, inputs, {word: (size, 1)}, evaluate)


def make_constraint(mechanism: Mechanism) -> LoopedFunction:
    """q, t -> phi."""
    return _row_quantity(mechanism, "q t", "residual", large_system(mechanism).rows.h)


def make_constraint_velocity(mechanism: Mechanism) -> LoopedFunction:
    """q, v, t -> A v + offset."""
    return _row_quantity(mechanism, "q v t", "rate", len(mechanism.names))


def make_constraint_drift(mechanism: Mechanism) -> LoopedFunction:
    """q, v, t -> drift."""
    return _row_quantity(mechanism, "q v t", "drift", len(mechanism.names))


def make_constraint_jacobian(mechanism: Mechanism) -> LoopedFunction:
    """q, t -> A (m, nv)."""
    system, m, n = large_system(mechanism), len(mechanism.names), mechanism.nv
    refuse_matrix(mechanism, "constraint_jacobian", m, n, "'constraint_velocity' is A times a vector")

    def evaluate(q: Array, t: Array, A: Array) -> None:
        A[:] = system.jacobian(q, float(t[0])).reshape(A.shape)

    return quantity(mechanism, "q t", {"jacobian": (m, n)}, evaluate)


def make_joint_forces(mechanism: Mechanism, **options: Any) -> LoopedFunction:
    """Refuse: the wrenches of joints are straight-line code, which would take hours to unroll here."""
    raise UnsupportedError(
        f"joint forces of {mechanism.name!r} are not looped over; the multipliers of `forward` are the forces in its "
        "loops, and a shorter mechanism of its kind has all, or this one with backend='cpu', which unrolls it"
    )


def make_derivatives(mechanism: Mechanism, **options: Any) -> LoopedFunction:
    """Refuse: derivatives are straight-line code, which would take hours to unroll here."""
    raise UnsupportedError(
        f"derivatives of {mechanism.name!r} are not looped over; a shorter mechanism of its kind has them, or this one "
        "with backend='cpu', which unrolls it"
    )


def make_manifold_step(mechanism: Mechanism, **options: Any) -> LoopedFunction:
    """Refuse: the mechanism's methods do it over all joints of a kind at once."""
    raise UnsupportedError(
        f"steps along the configurations of {mechanism.name!r} are not looped over; mechanism.integrate, .difference "
        "and .rate compute them, or backend='cpu' unrolls them"
    )


# ----------------------------------------------------------------------------------------------------------------------
# Every function of a large mechanism that loops compute: the table that `requests.py` looks into.


MAKERS: dict[str, Callable[..., LoopedFunction]] = {
    "kinematics": make_kinematics,
    "velocity": make_velocity,
    "jacobian_drift": make_jacobian_drift,
    "jacobian": make_jacobian,
    "energy": make_energy,
    "center_of_mass": make_center_of_mass,
    "center_of_mass_velocity": make_center_of_mass_velocity,
    "momentum": make_momentum,
    "momentum_rate": make_momentum_rate,
    "forward": make_forward,
    "aba": make_aba,
    "inverse": make_inverse,
    "joint_forces": make_joint_forces,
    "joint_forces_of_motion": make_joint_forces,
    "joint_forces_of_multipliers": make_joint_forces,
    "forward_derivatives": make_derivatives,
    "inverse_derivatives": make_derivatives,
    "impact_derivatives": make_derivatives,
    "regressor": make_derivatives,
    "integrate": make_manifold_step,
    "difference": make_manifold_step,
    "rate": make_manifold_step,
    "bias": make_bias,
    "gravity": make_gravity,
    "mass_matrix": make_mass_matrix,
    "coriolis_matrix": make_coriolis_matrix,
    "constraint": make_constraint,
    "constraint_velocity": make_constraint_velocity,
    "constraint_drift": make_constraint_drift,
    "constraint_jacobian": make_constraint_jacobian,
    "kkt": make_kkt,
    "impact": make_impact,
    "project_velocity": make_project_velocity,
    "project_step": make_project_step,
    "project": make_project,
    "delassus": make_delassus,
    "delassus_factor": make_delassus_factor,
    "delassus_solve": make_delassus_solve,
}
"""By request: make(mechanism, **options) returns the function with its ports and figures."""
