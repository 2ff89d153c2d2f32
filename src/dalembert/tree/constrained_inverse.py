"""Inverse dynamics of a constrained mechanism: how its actuators must pull to cause a given motion.

Symbols: b = M a + bias, what the open tree would need; indices d driven, p passive coordinates; tau = b + A^T lam,

    least |tau_d|^2   subject to   b_p + A_p^T lam = 0

and among the lam that remain the one of least norm. With Q = A_d A_d^T this is a block system of its own,

    [ Q     A_p ] [ lam ]   [ -A_d b_d ]
    [ A_p^T  0  ] [ nu  ] = [ -b_p     ]

solved by the same code; Q + delta 1 and three steps from zero make its solution the least one, however singular Q is.
If the passive coordinates need forces that no multiplier can give, the motion is impossible with these actuators: the
status says inconsistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt import Status
from dalembert.tree import dynamics
from dalembert.tree.block_solve import BlockSolver
from dalembert.tree.constrained import Setting
from dalembert.tree.judged import relative
from dalembert.tree.matrix_system import MatrixSystem, product
from dalembert.tree.needs import closed_matrices
from dalembert.tree.probe import probe
from dalembert.tree.proximal import STEPS
from dalembert.tree.scalars import Scalar, add, mul, neg, total
from dalembert.tree.verdict import Thresholds

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism


def inverse(mechanism: Mechanism, actuated: Any = None, dtype: str = "float64") -> ca.Function:
    """Return q, v, a, t -> tau (nv,), multipliers (m,), status.

    Parameters
    ----------
    actuated
        Names of coordinates that are driven; "actuators" for those that the mechanism has motors on; all by default,
        then tau is the least that does it.
    """
    setting = Setting.of(mechanism, None, dtype)
    driven = driven_coordinates(mechanism, actuated)
    passive = [k for k in range(mechanism.nv) if k not in driven]
    q, v, a = (setting.symbol(name) for name in ("q", "v", "a"))
    b, A = dynamics.inverse(setting.tree, setting.posed, q, v, a), setting.A
    columns = [[row[k] for row in A] for k in range(mechanism.nv)]
    delta = setting.limits.shift * _size(mechanism, driven)
    Q = _gram([[row[k] for k in driven] for row in A], delta)
    needs = _needs(mechanism, driven, passive)
    system = MatrixSystem.of(Q, [columns[k] for k in passive], needs.massless)
    solver = BlockSolver.of(system, needs, None, setting.limits)
    pull = [neg(total(*(mul(row[k], b[k]) for k in driven))) for row in A]
    lam: list[Scalar] = [0.0] * len(A)
    answer = None
    for _ in range(STEPS):
        load = [add(force, mul(delta, each)) for force, each in zip(pull, lam, strict=True)]
        answer = solver.solve(load, [neg(b[k]) for k in passive], setting.inputs(("q", "v", "a")))
        lam = answer.acceleration
    tau = [add(b[k], total(*map(mul, columns[k], lam))) if k in driven else 0.0 for k in range(mechanism.nv)]
    status = _said(answer.status, relative(system.mass.pivots, needs.mass_scales), setting.limits) if answer else 0.0
    return setting.function("inverse", ("q", "v", "a", "t"), {"tau": tau, "multipliers": lam, "status": [status]})


def _said(status: Any, pivots: Sequence[Scalar], limits: Thresholds) -> Any:
    """Return the status of the block system as that of the mechanism: whether lam is the least of a family.

    tau is unique wherever it exists; lam is where A has full rank, and a pivot near delta shows that it has not.
    """
    implied = ca.logic_not(reduce(ca.fmin, pivots, ca.SX(1)) > limits.implied)
    return ca.if_else(ca.logic_and(status == int(Status.UNIQUE), implied), int(Status.REDUNDANT), status)


def driven_coordinates(mechanism: Mechanism, actuated: Any) -> list[int]:
    """Return the indices of driven velocities, in order."""
    if actuated is None:
        return list(range(mechanism.nv))
    if isinstance(actuated, str):
        if actuated != "actuators":
            raise ModelError(f"actuated={actuated!r}: give a list of joints or coordinates, or 'actuators'")
        if not mechanism.actuators:
            raise ModelError(f"{mechanism.name!r} has no actuators; name the driven joints: actuated=[...]")
        actuated = [actuator.coordinate for actuator in mechanism.actuators]
    slices = [mechanism.index_v(name) for name in actuated]
    return sorted({k for where in slices for k in range(where.start, where.stop)})


def _gram(A: Sequence[Sequence[Scalar]], delta: float) -> list[list[Scalar]]:
    """Return A A^T + delta 1."""
    return [[add(product([x], y)[0], delta if i == j else 0.0) for j, y in enumerate(A)] for i, x in enumerate(A)]


def _size(mechanism: Mechanism, driven: list[int]) -> float:
    """Return the mean square of the driven columns' entries, per row."""
    A = np.array([A for _, A, _ in closed_matrices(mechanism)])
    return float((A[:, :, driven] ** 2).sum(axis=2).mean()) or 1.0


def _needs(mechanism: Mechanism, driven: list[int], passive: list[int]) -> Any:
    """Return what the block system of multipliers asks for; a Q that is singular but for delta is as a massless M."""
    A = np.array([A for _, A, _ in closed_matrices(mechanism)])
    Q = A[:, :, driven] @ np.swapaxes(A[:, :, driven], 1, 2)
    return probe(Q, np.swapaxes(A[:, :, passive], 1, 2))
