"""Joint values over the nv velocities: damping, friction, springs, armature, limits, and the actuation of motors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError, advised
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.model.mechanism.mechanism import Mechanism


def configuration(mechanism: Mechanism, values: Mapping[str, Sequence[float]]) -> Float[Array, " nq"]:
    """Return the configuration of coordinates by joint, the others at zero."""
    q = mechanism.neutral()
    for name, numbers in values.items():
        put_values(mechanism, q, mechanism.index_q(name), name, numbers)
    return mechanism.normalize(q)


def put_values(mechanism: Mechanism, array: Array, place: slice, name: str, values: Sequence[float]) -> None:
    """Write a joint's values into its place; an angle stands for the cosine and sine of a continuous one."""
    size = place.stop - place.start
    continuous = any(joint.name == name and joint.kind == "continuous" for joint in mechanism.joints)
    if len(values) == 1 and size == 2 and continuous:
        values = (np.cos(values[0]), np.sin(values[0]))
    if len(values) != size:
        raise ModelError(f"{name!r} has {size} coordinates, not {len(values)}" if size else f"{name!r} is fixed")
    array[place] = values


def per_velocity(mechanism: Mechanism, word: str) -> Float[Array, " nv"]:
    """Return a field of all joints as one vector, zero where a joint has none."""
    return _frozen(_collected(mechanism, [getattr(joint, word) for joint in mechanism.joints], 0.0))


def limits(mechanism: Mechanism, word: str) -> Float[Array, " nv"]:
    """Return a limit of all joints as one vector, infinite where a joint has none."""
    return _frozen(_collected(mechanism, [getattr(joint.limits, word) for joint in mechanism.joints], np.inf))


def armature(mechanism: Mechanism) -> Float[Array, " nv"]:
    """Return the armature of the joints with gear^2 rotor_inertia of the motors."""
    inertia = _collected(mechanism, [joint.armature for joint in mechanism.joints], 0.0)
    for motor in mechanism.actuators:
        added = motor.gear * motor.gear * motor.rotor_inertia  # a product overflows to infinity, a power raises
        if not np.isfinite(added):
            raise ModelError(
                f"actuator {motor.name!r}: gear {motor.gear:g} squared times rotor inertia {motor.rotor_inertia:g} is "
                "beyond the range of numbers"
            )
        inertia[mechanism.index_v(motor.coordinate)] += added
    return _frozen(inertia)


def actuation(mechanism: Mechanism) -> Float[Array, "nv nu"]:
    """Return the matrix of gears, one column per actuator."""
    matrix = np.zeros((mechanism.nv, len(mechanism.actuators)))
    for column, motor in enumerate(mechanism.actuators):
        matrix[mechanism.index_v(motor.coordinate), column] = motor.gear
    return _frozen(matrix)


def torque(mechanism: Mechanism, control: Any, clip: bool) -> Float[Array, "*batch nv"]:
    """Return joint forces of the controls (nu,), each within its motor's effort where `clip` asks for it."""
    motors = mechanism.actuators
    u = floats(control, "control")
    if u.ndim < 1 or u.shape[-1] != len(motors):
        names = ", ".join(motor.name for motor in motors) or "none"
        raise ShapeError(f"control must have shape (..., {len(motors)}), one per actuator ({names}); it has {u.shape}")
    if clip:
        most = np.array([motor.effort / abs(motor.gear) if motor.gear else np.inf for motor in motors])
        u = np.clip(u, -most, most)
    return u @ mechanism.actuation.T


def _collected(mechanism: Mechanism, values: Sequence[tuple[float, ...]], default: float) -> Array:
    """Return values per joint as one vector; a joint without any has the default."""
    whole = np.full(mechanism.nv, default)
    start = mechanism.manifold.v_start
    for i, value in enumerate(values):
        if value:
            whole[start[i] : start[i + 1]] = value
    return whole


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def driven_coordinates(mechanism: Mechanism, actuated: Any) -> list[int]:
    """Return the indices of driven velocities, in order."""
    if actuated is None:
        return list(range(mechanism.nv))
    if isinstance(actuated, str):
        if actuated != "actuators":
            raise ModelError(f"actuated={actuated!r}: give a list of joints or coordinates, or 'actuators'")
        if not mechanism.actuators:
            words = f"{mechanism.name!r} has no actuators; name the driven joints"
            raise ModelError(advised(words, "actuated=[...]", "--actuated NAME ..."))
        actuated = [actuator.coordinate for actuator in mechanism.actuators]
    slices = [mechanism.index_v(name) for name in actuated]
    return sorted({k for where in slices for k in range(where.start, where.stop)})
