"""Single coordinates of joints: lengths and angles whose rates are velocities of the mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.algebra import Matrix

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

SINGLE = ("revolute", "continuous", "prismatic", "helical", "universal")
"""Kinds whose velocities are rates of lengths and angles."""


def coordinate_index(mechanism: Mechanism, name: str, label: str) -> int:
    """Return a coordinate's place in v; one whose velocity is no rate of it is refused."""
    place = mechanism.index_v(name)
    # of joints that begin at one place only the last moves, those before it are fixed
    i = int(np.searchsorted(mechanism.manifold.v_start[:-1], place.start, side="right")) - 1
    joint = mechanism.joints[i]
    count = place.stop - place.start
    if count != 1 or joint.kind not in SINGLE:
        why = f"has {count} velocities" if count != 1 else f"belongs to a {joint.kind} joint, where no angle counts on"
        raise ModelError(
            f"constraint {label!r}: {name!r} is no single length or angle, it {why}; constrain frames instead (Point, "
            "Weld, Expression)"
        )
    return place.start


def coordinate_value(mechanism: Mechanism, q: Matrix, name: str) -> Matrix:
    """Return the value (1, 1) of a coordinate in q (nq, 1); of a continuous joint its angle in (-pi, pi]."""
    part = q[mechanism.index_q(name), :]
    return part if part.shape[0] == 1 else angle(part[1:2, :], part[0:1, :])


def shared_carrier(mechanism: Mechanism, one: str, two: str) -> tuple[str, list[int]]:
    """Return the body next to both that carries them, and the places in v of all joints that move both alike."""
    first, second = _carriers(mechanism, one), set(_carriers(mechanism, two))
    common = [i for i in first if i in second]
    start = mechanism.manifold.v_start
    velocities = sorted(place for i in common for place in range(start[i], start[i + 1]))
    return (mechanism.bodies[common[0]].name if common else mechanism.ground), velocities


def _carriers(mechanism: Mechanism, body: str) -> list[int]:
    """Return a body, the one that carries it, and so on to the ground."""
    i, carriers = mechanism.body_index(body), []
    while i >= 0:
        carriers.append(i)
        i = mechanism.parents[i]
    return carriers


def angle(sine: Any, cosine: Any) -> Matrix:
    """Return atan2(sine, cosine) of (1, 1) matrices."""
    if isinstance(sine, np.ndarray):
        return np.arctan2(sine, cosine)
    import casadi as ca

    return ca.atan2(sine, cosine)
