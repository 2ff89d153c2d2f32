"""A single chain on two threads by halving, for one cut: what it could gain, what it does, what digits it costs.

The outer part of a cut chain is eliminated as ever. The inner part does not wait for it: it carries six rows, the
motion of its last body, to the ground, and the two meet in a system of 6 x 6 (Featherstone 1999, for two parts):

    alpha = alpha0 - L lam        lam = IA alpha + p

alpha acceleration of the last body of the inner part, alpha0 without the outer part, L = Phi D^-1 Phi^T, lam the force
between the two. Motion goes outward first: the outer part's begins where the inner part's ends. With times per body c
(sines), o (outward), i (inward), r (six rows carried), b (back), and the inner part x of the whole, two threads take at
least

    c + x o + max(x (i + r), (1 - x) (o + i)) + max(x, 1 - x) b        instead of        c + o + i + b

without hand-overs to threads, the correction of the inner joints' forces, and memory that both cores share.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import large_models as models
from dalembert.kernel.engine import Workers
from dalembert.kernel.loops import fused_allocating
from dalembert.large import inward, outward
from dalembert.large.fronts.factor import REALS, ROWS_AT_ONCE, carry
from dalembert.large.joints import PLACE, ROOM
from dalembert.large.large_tree import LargeTree
from dalembert.large.layout import Layout
from dalembert.large.passive import NO_FORCE
from dalembert.large.simd4 import fourth, load, nothing, padded, store, total

WIDE = 8
"""Reals of a row's entries at a body: six rows, two that nobody reads."""

Array = np.ndarray


@fused_allocating
def inward_with_rows(end, topology, gathering, inertia, armature, tau, ext, K, T, Y, worst, W, phi, at, L, F, block):
    """Eliminate a chain of hinges from body end - 1 and carry six rows from there to the ground."""
    i = end - 1
    while i >= 0:
        last = max(0, i - ROWS_AT_ONCE + 1)
        inward.hinges(i, last, topology, gathering, inertia, armature, tau, ext, K, T, Y, worst, W)
        carry(i, last, 6, K, Y, gathering[2], phi, at, L, F, block)
        i = last - 1


@fused_allocating
def unhindered(end, phi, Y, alpha):
    """Set alpha0 = Phi D^-1 u."""
    a, b = nothing(), nothing()
    for i in range(end):
        x = Y[8 * i + 6] * Y[8 * i + 7]
        a, b = a + x * load(phi, WIDE * i), b + x * load(phi, WIDE * i + 4)
    store(alpha, 0, a)
    store(alpha, 4, b)


@fused_allocating
def hindered(end, phi, lam, Y):
    """Take from u what the rows take: u - Phi^T lam."""
    a, b = load(lam, 0), load(lam, 4)
    for i in range(end):
        x = load(phi, WIDE * i) * a + load(phi, WIDE * i + 4) * b
        Y[8 * i + 7] -= total(x) + fourth(x)


class Halved:
    """Forward dynamics of a chain of hinges, cut before body c."""

    def __init__(self, tree: LargeTree, c: int) -> None:
        n = tree.layout.n
        self.tree, self.c, self.workers = tree, c, Workers(2)
        self.phi, self.at = padded(n, WIDE).ravel(), WIDE * np.arange(n)
        self.L, self.F, self.block = padded(WIDE, WIDE), padded(7, WIDE), np.zeros(ROWS_AT_ONCE * REALS + 4)
        self.W, self.worst, self.T = np.zeros((2, ROOM)), np.full((2, 2), np.inf), padded(2, PLACE)
        self.alpha0, self.lam, self.A = np.zeros(WIDE), np.zeros(WIDE), padded(n, 6)

    def inner(self, end: int, tau: Array, K: Array, T: Array, Y: Array) -> None:
        """Eliminate the inner part; the rows begin as the motion of its last body."""
        layout = self.tree.layout
        self.L[:], self.F[:], self.W[0] = 0.0, 0.0, 0.0
        self.F[:6, :6] = np.eye(6)
        inward_with_rows(
            end, layout.topology, layout.gathering, layout.inertia, self.tree.armature, tau, NO_FORCE, K, T, Y,
            self.worst[0], self.W[0], self.phi, self.at, self.L, self.F, self.block,
        )  # fmt: skip

    def forward(self, q: Array, v: Array, tau: Array, out: Array) -> None:
        """Fill out (nv,) with accelerations."""
        tree, c = self.tree, self.c
        layout, memory, n = tree.layout, tree.memory, tree.layout.n
        K, T, Y, A = memory.K, memory.T, memory.Y, memory.A  # the caller's: other threads would see their own
        moved = layout.topology, layout.C, layout.pitch, q, *outward.circular(q), v, memory.still, tree.lift, K
        outward.outward_between(0, c, *moved)

        def meet(_: int, part: str) -> None:
            if part == "inner":
                self.inner(c, tau, K, T, Y)
                unhindered(c, self.phi, Y, self.alpha0)
            else:
                outward.outward_between(c, n, *moved)
                inward.articulated_between(
                    c, n, layout.topology, layout.gathering, layout.pitch, layout.inertia, tree.armature, tau,
                    NO_FORCE, K, self.T, Y, self.worst[1], self.W[1], np.empty((6, 6)),
                )  # fmt: skip

        def part_again(_: int, part: str) -> None:
            back = layout.topology, layout.gathering, layout.pitch, K, Y, out
            if part == "inner":
                hindered(c, self.phi, self.lam, Y)
                inward.accelerations_between(0, c, *back, A)
            else:
                inward.accelerations_between(c, n, *back, self.A)

        self.workers.take_turns(meet, ("outer", "inner"))
        self.A[c - 1], self.lam[:6] = self.between()
        self.workers.take_turns(part_again, ("outer", "inner"))

    def between(self) -> tuple[Array, Array]:
        """Return alpha and lam."""
        columns = self.W[1, :PLACE].reshape(11, 4)[:, :3].T
        A, B, C, p = columns[:, :3], columns[:, 3:6], columns[:, 6:9], columns[:, 9:].T.ravel()
        IA, L = np.block([[A, B], [B.T, C]]), self.L[:6, :6]
        alpha = np.linalg.solve(np.eye(6) + L @ IA, self.alpha0[:6] - L @ p)
        return alpha, IA @ alpha + p


def best(action: Callable[[], Any], seconds: float = 1.5) -> float:
    """Return the least seconds of a call."""
    action()
    found, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        action()
        found = min(found, time.perf_counter() - begin)
    return found


def sweeps(tree: LargeTree, q: Array, v: Array, tau: Array) -> dict[str, float]:
    """Return the times of the sweeps of an open chain, ns a body."""
    layout, memory, n = tree.layout, tree.memory, tree.layout.n
    model, out, halved = (layout.topology, layout.gathering), np.empty(n), Halved(tree, n)
    actions = {
        "sines": lambda: outward.circular(q),
        "outward": lambda: tree.move(q, v),
        "inward": lambda: inward.articulated(
            *model, layout.pitch, layout.inertia, tree.armature, tau, NO_FORCE, memory.K, memory.T, memory.Y,
            memory.worst,
        ),
        "rows": lambda: halved.inner(n, tau, memory.K, memory.T, memory.Y),
        "back": lambda: inward.accelerations(
            layout.topology, layout.gathering, layout.pitch, memory.K, memory.Y, out, memory.A
        ),
    }  # fmt: skip
    found = {name: 1e9 * best(action) / n for name, action in actions.items()}
    found["outward"] -= found["sines"]
    found["rows"] -= found["inward"]
    return found


def measured(n: int, compared: Callable[..., dict[str, float]], seconds: float) -> dict[str, float]:
    """Print and return times of the sweeps, the best cut, its gain at best and its gain."""
    mechanism = models.chain(n, held=False)
    state, tree = models.state(mechanism), LargeTree(Layout.of(mechanism))
    found = sweeps(tree, *state)
    c, o, i, r, b = (found[name] for name in ("sines", "outward", "inward", "rows", "back"))
    x = np.linspace(0.0, 1.0, 1001)
    halved = c + x * o + np.maximum(x * (i + r), (1 - x) * (o + i)) + np.maximum(x, 1 - x) * b
    k = int(halved.argmin())
    found |= {"inner_part": float(x[k]), "bound": float((c + o + i + b) / halved[k])}
    whole, cut = np.empty(n), np.empty(n)
    two = Halved(tree, int(n * x[k]))
    row = compared(lambda: tree.forward(*state, whole), lambda: two.forward(*state, cut), seconds)
    found |= row | {"difference": float(np.abs(whole - cut).max() / np.abs(whole).max())}
    print(
        f"chain, ns a body: sines {c:.1f}, outward {o:.1f}, inward {i:.1f}, six rows carried {r:.1f} more, back {b:.1f}"
    )
    print(
        f"halving: {found['bound']:.2f} times as fast at best, {100 * x[k]:.0f} % of the chain being the inner part; "
        f"measured {row['serial_best'] / row['threads_best']:.2f} (median "
        f"{row['serial_median'] / row['threads_median']:.2f}), accelerations differ by {found['difference']:.0e}"
    )
    return found
