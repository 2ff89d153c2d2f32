"""Constrained forward dynamics as one function: q, v, tau, t -> acceleration, multipliers, status, residuals.

Candidates are traced and the one with the fewest operations is taken: the matrices M and A with their sparse factor, or the
tree itself (`ROUTES`). A tree that may hold massless motion goes by the matrices, augmented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.model.joints import as_expression
from dalembert.tree import dynamics
from dalembert.tree.articulated_system import ArticulatedSystem, Load
from dalembert.tree.block_solve import BlockAnswer, Needs, block_solve
from dalembert.tree.choice import candidates
from dalembert.tree.crba import crba
from dalembert.tree.frame_kinematics import TreeKinematics
from dalembert.tree.link import Tree
from dalembert.tree.matrix_system import MatrixSystem
from dalembert.tree.passive import joint_resistance, spring_forces
from dalembert.tree.posed import pose_tree
from dalembert.tree.probe import probe
from dalembert.tree.rnea import accelerations, body_forces
from dalembert.tree.row_forces import TreeMotion, scalar
from dalembert.tree.scalars import Scalar, sub
from dalembert.tree.sweep import pair_add
from dalembert.tree.verdict import DOUBLE, SINGLE

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

PROBES = 5
"""Configurations at which ranks are looked at before the code is chosen."""

Inputs = dict[str, Any]
"""SX columns q, v, tau, t."""


def constrained_forward(
    mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64"
) -> ca.Function:
    """Return the function of the route with the fewest operations, or of the one that is named."""
    if route not in ("auto", *ROUTES):
        raise ModelError(f"route={route!r} is not one of 'auto', {', '.join(map(repr, ROUTES))}")
    needs = needs_of(mechanism)
    if needs.massless and route == "tree":
        raise ModelError(f"{mechanism.name!r} may hold massless motion: the tree cannot be factored; use route='matrix'")
    names = ("matrix",) if needs.massless else ROUTES if route == "auto" else (route,)
    options = (needs, _weights(mechanism, metric), SINGLE if dtype == "float32" else DOUBLE)
    traced = [_traced(mechanism, tree, ROUTES[name], options) for name in names for tree in candidates(mechanism)]
    return min(traced, key=lambda function: function.n_instructions())


def needs_of(mechanism: Mechanism) -> Needs:
    """Return what the mechanism's matrices ask for, seen at random configurations that meet its constraints."""
    q, t = ca.SX.sym("q", mechanism.nq), ca.SX.sym("t")
    tree = candidates(mechanism)[-1]
    rows = TreeKinematics(mechanism, tree, q, ca.SX.zeros(mechanism.nv), t)
    from dalembert.model.constraints import assemble

    assembled = assemble(rows)
    M = as_expression(crba(tree, pose_tree(tree, ca.vertsplit(q))))
    function = ca.Function("probe", [q, t], [M, ca.SX(assembled.jacobian), ca.SX(assembled.residual)])

    def at(q: Any) -> tuple[Any, Any, Any]:
        M, A, phi = (np.array(ca.densify(x)) for x in function(q, 0.0))
        return M, A.reshape(-1, mechanism.nv), phi.ravel()

    found = [at(_closed(mechanism, at, q)) for q in mechanism.random(0, PROBES)]
    return probe(np.array([x[0] for x in found]), np.array([x[1] for x in found]))


def _closed(mechanism: Mechanism, at: Callable[[Any], Any], q: Any) -> Any:
    """Return a configuration near q that meets the rows with residuals, by Gauss-Newton steps; or the best there is."""
    holonomic = np.array(mechanism.holonomic, dtype=bool)
    for _ in range(30):
        _, A, phi = at(q)
        if not phi.size or np.abs(phi).max() < 1e-12:
            break
        q = mechanism.integrate(q, -np.linalg.pinv(A[holonomic], rcond=1e-8) @ phi)
    return q


def _weights(mechanism: Mechanism, metric: Any) -> Any:
    """Return the metric's weights, checked."""
    if metric is None:
        return None
    weights = np.asarray(metric, dtype=float)
    if weights.shape != (len(mechanism.names),) or not (np.isfinite(weights) & (weights > 0)).all():
        raise ModelError(f"metric is {len(mechanism.names)} positive weights, one per constraint row; got {metric!r}")
    return weights


def _traced(mechanism: Mechanism, tree: Tree, route: Callable[..., BlockAnswer], options: Any) -> ca.Function:
    sizes = {"q": mechanism.nq, "v": mechanism.nv, "tau": mechanism.nv, "t": 1}
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    answer = route(mechanism, tree, symbols, *options)
    outputs = {
        "acceleration": as_expression(answer.acceleration),
        "multipliers": as_expression(answer.multipliers),
        "status": ca.SX(answer.status),
        "residuals": as_expression(answer.residuals),
    }
    return ca.Function("forward", [*symbols.values()], [*outputs.values()], list(symbols), list(outputs))


def by_matrices(mechanism: Mechanism, tree: Tree, x: Inputs, needs: Needs, metric: Any, limits: Any) -> BlockAnswer:
    """Solve by M and A: sparse L^T D L, then the Schur complement over the rows."""
    from dalembert.model.constraints import assemble

    q, v, tau = (_scalars(x[name]) for name in ("q", "v", "tau"))
    posed = pose_tree(tree, q)
    rows = assemble(TreeKinematics(mechanism, tree, x["q"], x["v"], x["t"]))
    A = [_scalars(ca.densify(ca.SX(rows.jacobian)[i, :])) for i in range(len(mechanism.names))]
    f = [sub(*pair) for pair in zip(tau, dynamics.bias(tree, posed, q, v), strict=True)]
    c = [-value for value in _scalars(ca.SX(rows.drift))]
    system = MatrixSystem.of(crba(tree, posed), A, needs.massless, mechanism.coordinates)
    return block_solve(system, f, c, [*q, *v, *tau, x["t"]], needs, metric, limits)


def by_tree(mechanism: Mechanism, tree: Tree, x: Inputs, needs: Needs, metric: Any, limits: Any) -> BlockAnswer:
    """Solve by the articulated-body algorithm and the forces of the rows on links."""
    q, v, tau = (_scalars(x[name]) for name in ("q", "v", "tau"))
    posed = pose_tree(tree, q)
    motions = accelerations(tree.gravity, posed, v, [0.0] * tree.nv)
    motion = TreeMotion(mechanism, tree, posed, x["q"], x["v"], x["t"], motions)
    rows = [motion.rows(constraint) for constraint in mechanism.all_constraints]
    forces = [row for group in rows for row in group]
    needed = [pair_add(*pair) for pair in zip(body_forces(tree, motions), spring_forces(tree, posed, v), strict=True)]
    load = Load(needed, [sub(*pair) for pair in zip(tau, joint_resistance(tree, posed, q, v), strict=True)])
    system = ArticulatedSystem.of(tree, posed, forces)
    c: list[Scalar] = [sub(0.0, row.drift) for row in forces]
    answer = block_solve(system, load, c, [*q, *v, *tau, x["t"]], needs, metric, limits)
    lam: list[Scalar] = []
    for constraint, group in zip(mechanism.all_constraints, rows, strict=True):
        lam += motion.in_world(constraint, answer.multipliers[len(lam) : len(lam) + len(group)])
    return BlockAnswer(answer.acceleration, lam, answer.status, answer.residuals)


ROUTES: dict[str, Callable[..., BlockAnswer]] = {"tree": by_tree, "matrix": by_matrices}
"""Ways to solve; being here is being tested."""


def _scalars(column: ca.SX) -> list[Scalar]:
    """Return the entries of a vector; constants are floats."""
    column = ca.densify(column)
    return [scalar(column[i]) for i in range(column.numel())]
