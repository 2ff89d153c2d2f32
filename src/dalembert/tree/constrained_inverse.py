"""Inverse dynamics of a constrained mechanism: how its actuators must pull to cause a given motion.

Symbols: b = M a + bias, what the open tree would need; indices d driven, p passive coordinates; tau = b + A^T lam,

    least |tau_d|^2   subject to   b_p + A_p^T lam = 0

and among the lam that remain the one of least norm. With Q = A_d A_d^T this is a block system of its own,

    [ Q     A_p ] [ lam ]   [ -A_d b_d ]
    [ A_p^T  0  ] [ nu  ] = [ -b_p     ]

of the rows that are kept (`redundant_rows.py`), solved by the same code: Q may be singular, the whole is not. What they
bear is then spread over all rows.
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
from dalembert.tree.judged import Needs, relative
from dalembert.tree.matrix_system import MatrixSystem, product
from dalembert.tree.needs import closed_matrices, digits_of
from dalembert.tree.probe import probe
from dalembert.tree.redundant_rows import RedundantRows, kept_rows
from dalembert.tree.scalars import Scalar, add, mul, neg, total
from dalembert.tree.sparse_factor import Vector, dense

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
    b, A = dynamics.inverse(setting.tree, setting.posed, q, v, a), setting.kept_A
    setting.symbol("t")
    columns = [[row[k] for row in A] for k in range(mechanism.nv)]
    kept = kept_rows(setting.needs)
    if not kept:
        return _unheld(setting, b, driven)
    Q = _gram([[A[i][k] for k in driven] for i in kept])
    needs = _needs(mechanism, kept, driven, passive)
    system = MatrixSystem.of(Q, [[columns[k][i] for i in kept] for k in passive], needs.massless)
    solver = BlockSolver.of(system, needs, None, setting.limits)
    pull = [neg(total(*(mul(A[i][k], b[k]) for k in driven))) for i in kept]
    answer = solver.solve(pull, [neg(b[k]) for k in passive], setting.inputs(("q", "v", "a")))
    lam = _least(setting, dict(zip(kept, answer.acceleration, strict=True)))
    tau = [add(b[k], total(*map(mul, columns[k], lam))) if k in driven else 0.0 for k in range(mechanism.nv)]
    status = _said(answer.status, relative(system.mass.pivots, needs.mass_scales), setting)
    return setting.function(
        "inverse", ("q", "v", "a", "t"), {"tau": tau, "multipliers": setting.in_world(lam), "status": [status]}
    )


def _unheld(setting: Setting, b: list[Scalar], driven: list[int]) -> ca.Function:
    """Return the answer where no row can move anything: what is not driven must need nothing."""
    inputs = setting.inputs(("q", "v", "a"))
    solved = int(Status.REDUNDANT if setting.mechanism.names else Status.UNIQUE)
    astray = total(*(ca.fabs(ca.SX(each)) for k, each in enumerate(b) if k not in driven))
    status = ca.if_else(ca.SX(astray) > 0, int(Status.INCONSISTENT), solved)
    status = ca.if_else(ca.fabs(ca.SX(total(*inputs))) < ca.inf, status, int(Status.NONFINITE))
    outputs = {
        "tau": [each if k in driven else 0.0 for k, each in enumerate(b)],
        "multipliers": [0.0] * len(setting.mechanism.names),
        "status": [status],
    }
    return setting.function("inverse", ("q", "v", "a", "t"), outputs)


def _least(setting: Setting, mu: Vector) -> list[Scalar]:
    """Return the least multipliers of all rows that do what mu does at the kept ones."""
    needs, m = setting.needs, len(setting.mechanism.names)
    if any(needs.sums):
        masses = np.median([np.diag(M) for M, _, _ in closed_matrices(setting.mechanism)], axis=0)
        d = np.where(masses > 0, masses, masses.max(initial=0.0) or 1.0) ** -0.5
        scaled = [[mul(x, float(scale)) for x, scale in zip(row, d, strict=True)] for row in setting.kept_A]
        mu = RedundantRows.of(_gram(scaled), needs).spread(mu)
    return dense(mu, m)


def _said(status: Any, pivots: Sequence[Scalar], setting: Setting) -> Any:
    """Return the status of the block system as that of the mechanism: whether lam is the least of a family.

    tau is unique wherever it exists; lam is where A has full rank. A pivot of Q that vanishes is a rank that is lost.
    """
    solved = int(Status.REDUNDANT if setting.needs.redundant else Status.UNIQUE)
    lost = ca.logic_not(reduce(ca.fmin, pivots, ca.SX(1)) > setting.limits.regular)
    finite = status != int(Status.NONFINITE)
    found = ca.if_else(ca.logic_or(status == int(Status.UNIQUE), status == int(Status.REDUNDANT)), solved, status)
    return ca.if_else(ca.logic_and(finite, lost), int(Status.DECLINED), found)


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


def _gram(A: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """Return A A^T."""
    return [[product([x], y)[0] for y in A] for x in A]


def _needs(mechanism: Mechanism, kept: Sequence[int], driven: list[int], passive: list[int]) -> Needs:
    """Return what the block system of multipliers asks for; a Q that is singular is as a massless M."""
    A = np.array([A for _, A, _ in closed_matrices(mechanism)])[:, kept]
    Q = A[:, :, driven] @ np.swapaxes(A[:, :, driven], 1, 2)
    return probe(Q, np.swapaxes(A[:, :, passive], 1, 2), digits=digits_of(mechanism))
