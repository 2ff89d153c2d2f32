"""A large tree at work: layout, memory and sweeps, one state after the other."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.kernel.loops import fused_allocating, fused_steady
from dalembert.kkt.limits import VANISHING
from dalembert.large import inward, outward
from dalembert.large import inward as newton_euler
from dalembert.large.inward import accelerations_between, articulated_between, note
from dalembert.large.joints import PLACE, ROOM, put, stashed, taken
from dalembert.large.layout import Layout, tree_bundle
from dalembert.large.outward import Frames, outward_between, positions_between, velocities_between
from dalembert.large.passive import NO_FORCE, Passive
from dalembert.large.residuals import needs, needs_between
from dalembert.large.simd4 import padded
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# The sweeps of an open tree's forward dynamics in one call: to enter compiled code costs microseconds.
#
# What is swept is a list of steps, ranges of bodies: one range for a whole tree, many for branches on threads
# (`threads.py`). All go through this one compiled function, so that their answers are the same to the bit: a compiler
# that meets the same lines in two places may contract products and sums in two ways.


OUTWARD, BEGIN, INWARD, TAKE, BACK = range(5)
"""Steps: motion; no pivot yet; joints eliminated; what another range handed over; accelerations."""


@fused_allocating
def forward(steps, T, handed, worst, bundle, q, sines, cosines, v, tau, ext, out):
    """Run steps (k, 4): which, begin, end, row. Accelerations under joint forces tau, forces ext on bodies go to out.

    T is memory. A row of `handed` (., 71) begins with what the last body of a range hands inward; one of
    `worst` (., 2) is the least relative pivot and its body. TAKE adds those of row `end` to a row's own, at body begin.
    """
    topology, gathering, C, pitch, inertia, armature = bundle.layout
    K, Y, A = bundle.memory
    still, start, S = bundle.still, bundle.start, np.empty((6, 6))
    for s in range(len(steps)):
        step, begin, end, row = steps[s, 0], steps[s, 1], steps[s, 2], steps[s, 3]
        if step == OUTWARD:
            outward_between(begin, end, topology, C, pitch, q, sines, cosines, v, still, start, K)
        elif step == BEGIN:
            worst[row, 0], worst[row, 1] = np.inf, -1.0
        elif step == INWARD:
            articulated_between(
                begin, end, topology, gathering, pitch, inertia, armature, tau, ext, K, T, Y, worst[row], handed[row],
                S,
            )  # fmt: skip
        elif step == TAKE:
            note(worst[end, 0], worst[end, 1], worst[row])
            take(begin, topology[0], gathering, handed[end], T, handed[row])
        else:
            accelerations_between(begin, end, topology, gathering, pitch, K, Y, out, A)


@fused_steady
def take(root, parent, gathering, handed, T, W):
    """Put what the subtree of `root` hands inward into W, and where its parent does not come next into its place."""
    slot, first, _ = gathering
    w = taken(handed, 0)
    stashed(w, W)
    if parent[root] >= 0 and parent[root] != root - 1:
        put(w, first[root], T, slot[parent[root]])


# ----------------------------------------------------------------------------------------------------------------------
# The motion of a state, and what rows and bodies need of it, in one call.


PIECE = 512
"""Bodies that are swept at a time: what one sweep finds of them is still in the caches when the next asks for it."""


@fused_allocating
def motion(bundle, q, sines, cosines, v, start):
    """Fill K with the motion of a state, P and V with places and velocities of origins, need with forces for it."""
    topology, C, pitch, inertia = bundle.layout
    K, P, V, need = bundle.memory
    still, ext, n = bundle.still, need[:0], len(C)
    for begin in range(0, n, PIECE):
        end = min(begin + PIECE, n)
        outward_between(begin, end, topology, C, pitch, q, sines, cosines, v, still, start, K)
        positions_between(begin, end, topology[0], K, P)
        velocities_between(begin, end, topology, pitch, v, K, V)
        needs_between(begin, end, inertia, K, ext, need)


# ----------------------------------------------------------------------------------------------------------------------
# A large tree at work: layout, memory and the loops put together, one state after the other.


class TreeMemory(threading.local):
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
        self.memory = TreeMemory(layout, self.armature, self.lift)
        sweep = (OUTWARD, BEGIN, INWARD, BACK)
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
        arguments = self.arguments(q, v, tau, NO_FORCE, out)
        if self.passive.acts_on_bodies:
            forward(self.steps[:1], *where, *arguments)
            forward(self.steps[1:], *where, *self.with_forces(arguments, v))
        else:
            forward(self.steps, *where, *arguments)
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


# ----------------------------------------------------------------------------------------------------------------------
# Existence of accelerations of a large open tree: relative pivots of its joints at random configurations.
#
# As in `tree/algorithms/dynamics.py`: D of a joint over the trace of the inertia that it is made of.


SAMPLES = 2


def massless_coordinate(tree: LargeTree) -> str | None:
    """Return the name of a coordinate that nothing resists, wherever one looks; None where there is none."""
    mechanism = tree.layout.mechanism
    if not mechanism.nv:
        return None
    out, still = np.empty(mechanism.nv), np.zeros(mechanism.nv)
    for q in mechanism.random(0, SAMPLES):
        if tree.forward(q, still, still, out) >= VANISHING:
            return None
    return mechanism.coordinates[int(tree.layout.iv[int(tree.memory.worst[1])])]


def refuse_singular(tree: LargeTree) -> None:
    """Raise where some coordinate is resisted by nothing."""
    name = massless_coordinate(tree)
    if name is not None:
        raise ModelError(
            f"nothing resists the coordinate {name!r} of {tree.layout.mechanism.name!r}: its pivot is "
            f"{tree.memory.worst[0]:.0e} of the inertia it is made of; a massless link at the end of a branch, or "
            "between two joints that move alike, most likely. Give it mass or armature, or constrain it"
        )
