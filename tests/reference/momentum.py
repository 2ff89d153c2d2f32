"""Energy, centre of mass and centroidal momentum of all bodies that move, summed in the world."""

from __future__ import annotations

import numpy as np

from tests.reference.state import State

Array = np.ndarray


def _moving(state: State) -> list[int]:
    """Return the bodies that are not welded to the ground."""
    moving: set[int] = set()
    for i, parent in enumerate(state.parents):
        if state.S[i].shape[1] or parent in moving:
            moving.add(i)
    return sorted(moving)


def energy(state: State, v: Array) -> tuple[float, float]:
    """Return 1/2 sum v^T I v with the rotors', and -sum m g . c."""
    kinetic, potential = 0.5 * float(state.armature @ v**2), 0.0
    for i, velocity in enumerate(velocities(state, v)):
        kinetic += 0.5 * float(velocity @ state.I[i] @ velocity)
    for i in _moving(state):
        m, c = _mass(state, i)
        potential -= m * float(np.dot(state.mechanism.gravity, c))
    return kinetic, potential


def velocities(state: State, v: Array) -> list[Array]:
    """Return every body's velocity in its own frame."""
    found: list[Array] = []
    for i, parent in enumerate(state.parents):
        found.append((state.X[i] @ found[parent] if parent >= 0 else np.zeros(6)) + state.S[i] @ v[state.v[i]])
    return found


def center_of_mass(state: State) -> Array:
    """Return the centre of mass in the world."""
    parts = [_mass(state, i) for i in _moving(state)]
    return np.sum([m * c for m, c in parts], axis=0) / sum(m for m, _ in parts)


def centroidal_momentum(state: State, v: Array) -> Array:
    """Return [p; L] about the centre of mass, world axes."""
    center = center_of_mass(state)
    total = np.zeros(6)
    for i, velocity in enumerate(velocities(state, v)):
        R, p = state.poses[i]
        h = state.I[i] @ velocity
        linear, angular = R @ h[:3], R @ h[3:]
        total += np.concatenate([linear, angular + np.cross(p - center, linear)])
    return total


def _mass(state: State, i: int) -> tuple[float, Array]:
    """Return a body's mass and its centre in the world."""
    R, p = state.poses[i]
    inertia = state.mechanism.bodies[i].inertia
    return inertia.mass, R @ inertia.center + p
