"""Values of all joints as vectors over the nv velocities, and what motors do to them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ShapeError
from dalembert.model.manifold import reals

if TYPE_CHECKING:
    from jaxtyping import Float

Array = np.ndarray


class JointValues:
    """Damping, friction, stiffness, armature, limits and actuation of a mechanism, each over its velocities."""

    nv: Any
    joints: Any
    actuators: Any
    manifold: Any
    index_v: Any

    @cached_property
    def damping(self) -> Float[Array, " nv"]:
        """Viscous damping, N s/m or N m s/rad."""
        return self._spread("damping")

    @cached_property
    def friction(self) -> Float[Array, " nv"]:
        """Dry friction, N or N m; data for force laws, no part of the smooth dynamics."""
        return self._spread("friction")

    @cached_property
    def stiffness(self) -> Float[Array, " nv"]:
        """Stiffness of springs in the joints, N/m or N m/rad."""
        return self._spread("stiffness")

    @cached_property
    def rest(self) -> Float[Array, " nv"]:
        """Where those springs are relaxed: the difference from `neutral`."""
        return self._spread("rest")

    @cached_property
    def armature(self) -> Float[Array, " nv"]:
        """Inertia on the diagonal of M beside that of the bodies: of the joints, and gear^2 rotor_inertia of motors."""
        armature = self._spread("armature").copy()
        for motor in self.actuators:
            armature[self.index_v(motor.coordinate)] += motor.gear**2 * motor.rotor_inertia
        return _frozen(armature)

    @property
    def lower(self) -> Float[Array, " nv"]:
        """Lower limits of the coordinates, -inf where there is none."""
        return self.manifold.lower

    @property
    def upper(self) -> Float[Array, " nv"]:
        """Upper limits of the coordinates, inf where there is none."""
        return self.manifold.upper

    @cached_property
    def velocity_limits(self) -> Float[Array, " nv"]:
        """Greatest speeds, inf where there is no limit."""
        return self._limit("velocity")

    @cached_property
    def effort_limits(self) -> Float[Array, " nv"]:
        """Greatest forces and torques, inf where there is no limit."""
        return self._limit("effort")

    @cached_property
    def actuation(self) -> Float[Array, "nv nu"]:
        """The matrix that takes controls of the actuators to joint forces: gears, one column per actuator."""
        matrix = np.zeros((self.nv, len(self.actuators)))
        for column, motor in enumerate(self.actuators):
            matrix[self.index_v(motor.coordinate), column] = motor.gear
        return _frozen(matrix)

    def torque(self, control: Any, clip: bool = False) -> Float[Array, "*batch nv"]:
        """Return joint forces (nv,) of the controls (nu,) of all actuators, gear * control each.

        With `clip` each motor gives at most its effort, counted at the joint.
        """
        u = reals(control, "control")
        if u.ndim < 1 or u.shape[-1] != len(self.actuators):
            names = ", ".join(motor.name for motor in self.actuators) or "none"
            raise ShapeError(
                f"control must have shape (..., {len(self.actuators)}), one per actuator ({names}); it has {u.shape}"
            )
        if clip:
            most = np.array([m.effort / abs(m.gear) if m.gear else np.inf for m in self.actuators])
            u = np.clip(u, -most, most)
        return u @ self.actuation.T

    def _spread(self, word: str) -> Array:
        """Return a field of all joints as one vector, zero where a joint has none."""
        return self._collected([(i, getattr(joint, word)) for i, joint in enumerate(self.joints)], 0.0)

    def _limit(self, word: str) -> Array:
        return self._collected([(i, getattr(joint.limits, word)) for i, joint in enumerate(self.joints)], np.inf)

    def _collected(self, values: list[tuple[int, tuple[float, ...]]], default: float) -> Array:
        whole = np.full(self.nv, default)
        start = self.manifold.v_start
        for i, value in values:
            if value:
                whole[start[i] : start[i + 1]] = value
        return _frozen(whole)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
