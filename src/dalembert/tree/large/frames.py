"""Frames of a large mechanism in motion, many at once: poses, velocities, accelerations in world axes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.model.placement import IDENTITY, Placement
from dalembert.tree.large.lanes import padded
from dalembert.tree.large.layout import Layout
from dalembert.tree.large.outward import positions, velocities

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Sites:
    """Constant places on bodies: row of the body (k,), -1 for the ground; pose there (k, 3, 3), (k, 3)."""

    row: Array
    rotation: Array
    position: Array

    @classmethod
    def of(cls, layout: Layout, ends: Any) -> Sites:
        """Return the sites of pairs (name of a frame, placement on it)."""
        mechanism = layout.mechanism
        ends = [(mechanism.frame(name), placement) for name, placement in ends]
        body = np.array([mechanism.body_index(frame.body) for frame, _ in ends], dtype=int)
        within = [
            frame.placement if placement is IDENTITY else frame.placement @ placement for frame, placement in ends
        ]
        R = np.array([x.rotation for x in within]).reshape(-1, 3, 3)
        p = np.array([x.position for x in within]).reshape(-1, 3)
        on = body >= 0
        p[on] = np.einsum("nij,nj->ni", layout.place_R[body[on]], p[on]) + layout.place_p[body[on]]
        R[on] = layout.place_R[body[on]] @ R[on]
        return cls(np.where(on, layout.row[body], -1) if len(layout.row) else body, R, p)


@dataclass(frozen=True, eq=False)
class Moving:
    """Sites in motion: where they are, R (k, 3, 3), position, arm from the body's origin, velocity, acceleration."""

    row: Array
    rotation: Array
    position: Array
    arm: Array
    velocity: Array
    angular: Array
    acceleration: Array
    turning: Array


class Frames:
    """The motion that `outward` has found (K), as seen at any place; gravity is taken out of accelerations."""

    def __init__(self, layout: Layout, K: Array, v: Array) -> None:
        self.layout, self.K, self.v = layout, K, v

    @cached_property
    def origins(self) -> Array:
        """Of all rows in the world, (n, 3)."""
        P = padded(self.layout.n, 3)
        positions(self.layout.parent, self.K, P)
        return P

    @cached_property
    def speeds(self) -> Array:
        """Velocities of the origins, (n, 3)."""
        V = padded(self.layout.n, 3)
        velocities(self.layout.topology, self.layout.pitch, self.v, self.K, V)
        return V

    def axes(self, rows: Array) -> Array:
        """Return rotations of bodies, (k, 3, 3)."""
        return np.swapaxes(self.K[rows, :9].reshape(-1, 3, 3), 1, 2)

    def moments(self, rows: Array) -> Array:
        """Return first moments about the bodies' origins, world axes, (k, 3)."""
        return np.einsum("nij,nj->ni", self.axes(rows), self.layout.inertia[rows, 1:4])

    def places(self, names: Any) -> Moving:
        """Return frames by name in motion."""
        return self.at(Sites.of(self.layout, [(name, IDENTITY) for name in names]))

    def place(self, name: str, placement: Placement = IDENTITY) -> Moving:
        """Return one frame in motion, arrays of length one."""
        return self.at(Sites.of(self.layout, [(name, placement)]))

    def at(self, sites: Sites) -> Moving:
        """Return sites in motion; the ground stands still."""
        row, on = sites.row, sites.row >= 0
        R, p = sites.rotation.copy(), sites.position.copy()
        arm, v, w, a, wd = (np.zeros_like(p) for _ in range(5))
        k = row[on]
        axes = self.axes(k)
        arm[on] = np.einsum("nij,nj->ni", axes, sites.position[on])
        R[on] = axes @ sites.rotation[on]
        p[on] = self.origins[k] + arm[on]
        w[on], wd[on] = self.K[k, 12:15], self.K[k, 18:21]
        v[on] = self.speeds[k] + np.cross(w[on], arm[on])
        a[on] = self.K[k, 15:18] + self.layout.gravity + np.cross(wd[on], arm[on])
        a[on] += np.cross(w[on], np.cross(w[on], arm[on]))
        return Moving(row, R, p, arm, v, w, a, wd)
