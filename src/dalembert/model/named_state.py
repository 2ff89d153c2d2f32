"""A state by name: the pose of a mechanism, or values of some joints and coordinates.

Coordinates that are not named are where a run starts by itself: where the file draws a mechanism, else neutral.
Velocities that are not named are zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError
from dalembert.names import lookup
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


def is_mechanism(system: Any) -> bool:
    """Say whether a system has joints, and so poses."""
    return hasattr(system, "pose")


def default_start(system: Any) -> Array:
    """Return where a run starts by itself: where the file draws a mechanism, else the neutral configuration."""
    return system.pose() if is_mechanism(system) else system.neutral()


def configuration_of_names(system: Any, q: Any) -> Any:
    """Return q of a pose's name, or of a dict of values by name; anything else as it is."""
    if isinstance(q, str):
        if not is_mechanism(system):
            raise ModelError(f"q={q!r}: poses by name are those of a mechanism; give numbers", subject="q")
        return system.pose(q)
    if not isinstance(q, Mapping):
        return q
    start = np.array(default_start(system), dtype=float)
    if not is_mechanism(system):
        return _put_coordinates(start, getattr(system, "configuration_names", system.coordinates), q, "q")
    return _put_joints(system, start, q, "q")


def velocity_of_names(system: Any, v: Any) -> Any:
    """Return v of a dict of values by name; anything else as it is."""
    if not isinstance(v, Mapping):
        return v
    start = np.zeros(system.nv)
    if not is_mechanism(system):
        return _put_coordinates(start, system.coordinates, v, "v")
    return _put_joints(system, start, v, "v")


def _put_joints(mechanism: Mechanism, array: Array, values: Mapping[str, Any], what: str) -> Array:
    from dalembert.model.mechanism.joint_values import put_values

    index = mechanism.index_q if what == "q" else mechanism.index_v
    for name, value in values.items():
        numbers = np.atleast_1d(floats(value, f"{what} of {name!r}"))
        put_values(mechanism, array, index(name), name, numbers.tolist())
    return array


def _put_coordinates(array: Array, names: Any, values: Mapping[str, Any], what: str) -> Array:
    places = {name: k for k, name in enumerate(names)}
    for name, value in values.items():
        number = np.atleast_1d(floats(value, f"{what} of {name!r}"))
        if number.shape != (1,):
            raise ModelError(f"{name!r} is one coordinate, and has one value; {what} gives {number.shape}")
        array[lookup(name, places, "coordinate")] = number[0]
    return array
