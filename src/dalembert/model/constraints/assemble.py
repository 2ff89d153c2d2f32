"""All rows of a mechanism, one below the other, with stabilisation where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.model.constraints.algebra import Matrix, stack
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.rows import Rows

if TYPE_CHECKING:
    from dalembert.model.constraints.kinematics import Kinematics


@dataclass(frozen=True, eq=False)
class Assembled:
    """Rows of all constraints of a mechanism.

    Attributes
    ----------
    residual : (h, 1)
        phi of the rows that have one (`Mechanism.holonomic`).
    jacobian, rate, drift : (m, nv), (m, 1), (m, 1)
        A v + offset = rate must vanish; A a + drift = 0. The drift has the terms of stabilisation.
    """

    residual: Matrix
    jacobian: Matrix
    rate: Matrix
    drift: Matrix


def assemble(kinematics: Kinematics) -> Assembled:
    """Return the rows of `mechanism.all_constraints`, in the order of `mechanism.names`."""
    parts = [part for each in kinematics.mechanism.all_constraints for part in parts_of(each, kinematics)]
    residuals = [part.residual for part in parts if part.residual is not None]
    return Assembled(
        _stack(residuals, 1),
        _stack([part.jacobian for part in parts], kinematics.mechanism.nv),
        _stack([part.rate for part in parts], 1),
        _stack([part.drift for part in parts], 1),
    )


def parts_of(constraint: Constraint, kinematics: Kinematics) -> list[Rows]:
    """Return a constraint's rows, those with and those without residual apart."""
    made = constraint.rows(kinematics)
    parts = made if isinstance(made, list) else [made]
    gains = constraint.stabilize
    return parts if gains is None else [part.stabilized(gains) for part in parts]


def _stack(blocks: list[Matrix], columns: int) -> Matrix:
    """Return blocks one below the other; entries known to be zero leave an expression's sparsity."""
    if not blocks:
        return np.zeros((0, columns))
    whole = stack(blocks)
    if isinstance(whole, np.ndarray):
        return whole
    import casadi as ca

    return ca.sparsify(whole)
