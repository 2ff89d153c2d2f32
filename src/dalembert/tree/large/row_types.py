"""Constraint rows by type: one compiled kernel for all constraints of a type, run over all of them as a batch.

A row between two frames is linear in their velocities: its Jacobian with respect to them is a force and a moment on
each. So a constraint's formulas (`model/constraints`) are traced once, on two frames that are inputs, and never again
for the next constraint of the same type; lengths and gains are inputs, too.
"""

from __future__ import annotations

from copy import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.constraints.constraint import Pair
from dalembert.model.constraints.kinematics import FrameKinematics, Kinematics

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.kernel import Kernel
    from dalembert.model.mechanism import Mechanism

FRAME = 24
"""Reals of a frame in motion: R row by row, then position, velocity, angular velocity, their derivatives."""

VALUES = ("length", "radius")
"""Values of constraints that are inputs of the kernel; axes and the like are part of the type."""

INPUTS = 2 * FRAME + len(VALUES) + 2
"""Two frames, the values, kp and kd."""

_PLACES = ("name", "stabilize", "frame", "other", "at", "placement", *VALUES)


def type_of(constraint: Pair) -> tuple[Any, ...]:
    """Return what constraints must share to share a kernel."""
    rest = [(each.name, getattr(constraint, each.name)) for each in fields(constraint) if each.name not in _PLACES]
    return (type(constraint).__name__, constraint.held, *rest)


def values_of(constraint: Pair) -> list[float]:
    """Return the inputs of a constraint that are no frames."""
    kp, kd = constraint.stabilize or (0.0, 0.0)
    return [*(float(getattr(constraint, word, 0.0)) for word in VALUES), kp, kd]


def type_kernel(mechanism: Mechanism, constraint: Pair) -> Kernel:
    """Return the kernel: x (52,) -> forces (r, 12), rate (r,), drift (r,), residual (h,)."""
    from dalembert.kernel import Kernel

    key = ("rows by type", repr(type_of(constraint)))
    return Kernel.cached(key, lambda: trace(mechanism, constraint))


def trace(mechanism: Mechanism, constraint: Pair) -> ca.Function:
    """Return the CasADi function of a type."""
    import casadi as ca

    x = ca.SX.sym("x", INPUTS)
    one = copy(constraint)
    for k, word in enumerate(VALUES):
        if hasattr(one, word):
            object.__setattr__(one, word, x[2 * FRAME + k])
    gains: Any = (x[INPUTS - 2], x[INPUTS - 1])
    made = one.rows(TwoFrames(mechanism, x))
    parts = made if isinstance(made, list) else [made]
    residual = [ca.SX(part.residual) for part in parts if part.residual is not None]
    drift = [ca.SX(part.stabilized(gains).drift) for part in parts]
    outputs = {
        "forces": ca.densify(ca.vertcat(*(ca.SX(part.jacobian) for part in parts))),
        "rate": ca.densify(ca.vertcat(*(ca.SX(part.rate) for part in parts))),
        "drift": ca.densify(ca.vertcat(*drift)),
        "residual": ca.densify(ca.vertcat(*residual)) if residual else ca.SX(1, 1),
    }
    return ca.Function("rows", [x], list(outputs.values()), ["x"], list(outputs))


class TypeFrame(FrameKinematics):
    """A frame whose Jacobian has six columns of its own: none are of joints."""

    def unmoved_by(self, velocities: list[int]) -> FrameKinematics:
        """Return the frame."""
        return self


class TwoFrames(Kinematics):
    """Two frames in motion as inputs; whichever a constraint asks for first is the first."""

    def __init__(self, mechanism: Mechanism, x: Any) -> None:
        self.mechanism, self.x, self.asked = mechanism, x, 0

    def frame(self, name: str, placement: Any = None) -> FrameKinematics:
        """Return the next frame."""
        import casadi as ca

        x, k = self.x[FRAME * self.asked : FRAME * self.asked + FRAME], self.asked
        self.asked += 1
        columns = np.zeros((6, 12))
        columns[:, 6 * k : 6 * k + 6] = np.eye(6)
        rotation = ca.reshape(x[:9], 3, 3).T
        return TypeFrame(rotation, x[9:12], ca.SX(columns), x[12:18], x[18:24])
