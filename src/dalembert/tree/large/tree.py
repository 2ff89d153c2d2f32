"""A large tree at work: layout, memory and the loops put together, one state after the other."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.tree.large import inward, newton_euler, outward, sweeps
from dalembert.tree.large.articulate import PLACE, ROOM
from dalembert.tree.large.balance import needs
from dalembert.tree.large.bundles import tree_bundle
from dalembert.tree.large.frames import Frames
from dalembert.tree.large.lanes import padded
from dalembert.tree.large.layout import Layout
from dalembert.tree.large.passive import NO_FORCE, Passive

Array = np.ndarray


class Memory(threading.local):
    """Arrays that the loops work in, made once for each thread."""

    def __init__(self, layout: Layout, armature: Array, lift: Array) -> None:
        n, nv = layout.n, layout.mechanism.nv
        self.K, self.A = padded(n, outward.MOTION), padded(n, 6)
        self.T, self.Y = padded(max(layout.slots, 1), PLACE), padded(int(layout.kept[-1]), 1).ravel()
        self.handed, self.worsts, self.still = np.zeros((1, ROOM)), np.zeros((1, 2)), np.zeros(nv)
        self.worst = self.worsts[0]
        self.bundle = tree_bundle(
            (layout.topology, layout.gathering, layout.C, layout.pitch, layout.inertia, armature),
            self.still,
            lift,
            (self.K, self.Y, self.A),
        )


class LargeTree:
    """The open tree of a mechanism: motion, forward and inverse dynamics of one state (nq,), (nv,)."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.passive = Passive(layout)
        self.armature = np.array(layout.mechanism.armature)
        self.lift = -layout.gravity
        self.memory = Memory(layout, self.armature, self.lift)
        sweep = (sweeps.OUTWARD, sweeps.BEGIN, sweeps.INWARD, sweeps.BACK)
        self.steps = np.array([(step, 0, layout.n, 0) for step in sweep])

    @cached_property
    def bytes(self) -> int:
        """Size of the model's arrays and of one thread's memory."""
        layout, memory = self.layout, self.memory
        arrays = [x for x in vars(layout).values() if isinstance(x, np.ndarray)]
        return sum(x.nbytes for x in (*arrays, memory.K, memory.A, memory.T, memory.Y))

    def move(self, q: Array, v: Array, acc: Array | None = None, gravity: bool = True) -> Frames:
        """Run outward; what it finds stays in memory until the next state."""
        layout, memory = self.layout, self.memory
        sines, cosines = outward.circular(q)
        start = self.lift if gravity else np.zeros(3)
        acc = memory.still if acc is None else acc
        outward.outward(layout.topology, layout.C, layout.pitch, q, sines, cosines, v, acc, start, memory.K)
        return self.frames(v)

    def frames(self, v: Array) -> Frames:
        """Return the motion in memory, velocities v, as seen at any place."""
        return Frames(self.layout, self.memory.K, v)

    def load(self, q: Array, v: Array, tau: Array, frames: Frames) -> tuple[Array, Array]:
        """Return tau less what joints resist with, and the forces of springs on bodies."""
        resistance = self.passive.resistance(q, v)
        return tau if resistance is None else tau - resistance, self.passive.forces(frames)

    def forward(self, q: Array, v: Array, tau: Array, out: Array) -> float:
        """Fill out (nv,) with accelerations; return the least relative pivot."""
        memory = self.memory
        where = memory.T, memory.handed, memory.worsts
        given = self.arguments(q, v, tau, NO_FORCE, out)
        if self.passive.acts_on_bodies:
            sweeps.forward(self.steps[:1], *where, *given)
            sweeps.forward(self.steps[1:], *where, *self.with_forces(given, v))
        else:
            sweeps.forward(self.steps, *where, *given)
        return float(memory.worst[0])

    def arguments(self, q: Array, v: Array, tau: Array, ext: Array, out: Array) -> tuple[Any, ...]:
        """Return what `sweeps.forward` takes but steps and what they work in, for a state and forces on bodies."""
        resistance = self.passive.resistance(q, v)
        tau = tau if resistance is None else tau - resistance
        return self.memory.bundle, q, *outward.circular(q), v, tau, ext, out

    def with_forces(self, arguments: tuple[Any, ...], v: Array) -> tuple[Any, ...]:
        """Return arguments with the forces of springs and lifts, which need the motion in memory."""
        *before, _, out = arguments
        return (*before, self.passive.forces(self.frames(v)), out)

    def yielding(self, tau: Array) -> Array:
        """Return M^-1 tau (nv,) at the configuration in memory, which must be at rest and without gravity."""
        layout, memory, a = self.layout, self.memory, np.empty(len(tau))
        inward.articulated(
            layout.topology, layout.gathering, layout.pitch, layout.inertia, self.armature, tau, NO_FORCE,
            memory.K, memory.T, memory.Y, memory.worst,
        )  # fmt: skip
        inward.accelerations(layout.topology, layout.gathering, layout.pitch, memory.K, memory.Y, a, memory.A)
        return a

    def inverse(self, q: Array, v: Array, acc: Array, out: Array, gravity: bool = True, passive: bool = True) -> None:
        """Fill out (nv,) with joint forces."""
        layout, memory = self.layout, self.memory
        frames = self.move(q, v, acc, gravity)
        ext = self.passive.forces(frames) if passive else self.passive.lifts(frames) if gravity else NO_FORCE
        newton_euler.needed(
            layout.topology, layout.gathering, layout.pitch, layout.inertia, self.armature, acc, ext,
            memory.K, memory.T, out,
        )  # fmt: skip
        resistance = self.passive.resistance(q, v) if passive else None
        if resistance is not None:
            out += resistance

    def inertial_forces(self) -> Array:
        """Return the forces (n, 6) that bodies need for the motion in memory, about their origins."""
        need = padded(self.layout.n, 6)
        needs(self.layout.inertia, self.memory.K, NO_FORCE, need)
        return need
