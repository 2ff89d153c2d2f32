"""Poses, velocities, Jacobians, energy and momentum of a large mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel.program.program import Port
from dalembert.large import row_state as composite
from dalembert.large.block_system import LargeSystem
from dalembert.large.large_tree import LargeTree
from dalembert.large.layout import Layout
from dalembert.large.looped_kernel import LoopedFunction
from dalembert.large.outward import Frames
from dalembert.tree.block.conditioning import row_weights_of
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

# ----------------------------------------------------------------------------------------------------------------------
# The common part of all functions: a mechanism laid out once, ports and figures, what is refused.
#
# Matrices with as many rows as columns have no place in memory beyond some size: they are refused with that size.


LARGEST_MATRIX = 2**30
"""Bytes of a dense matrix that is still filled."""

ROUTES = ("auto", "looped")
"""Routes that mean loops here."""

UNROLLED = ("efpa", "pv", "caba", "matrix", "aba")
"""Routes of straight-line code (`tree/routes/route_table.py`, which is not imported here: it needs CasADi)."""


def large_tree(mechanism: Mechanism) -> LargeTree:
    """Return a mechanism laid out, once for all its quantities."""
    if "_large_tree" not in mechanism.__dict__:
        mechanism.__dict__["_large_tree"] = LargeTree(Layout.of(mechanism))
    return mechanism.__dict__["_large_tree"]


def large_system(mechanism: Mechanism) -> LargeSystem:
    """Return its block system, planned once."""
    if "_large_system" not in mechanism.__dict__:
        mechanism.__dict__["_large_system"] = LargeSystem(large_tree(mechanism))
    return mechanism.__dict__["_large_system"]


def weighed(mechanism: Mechanism, metric: Any) -> LargeSystem:
    """Return the block system whose multipliers are least in a metric."""
    weights = row_weights_of(mechanism, metric)
    return large_system(mechanism) if weights is None else LargeSystem(large_tree(mechanism), weights)


def quantity(mechanism: Mechanism, inputs: str, outputs: dict[str, tuple[int, int]], evaluate: Any) -> LoopedFunction:
    """Return a quantity with its ports and figures; `inputs` names q, v, a, tau, y1, t, restitution, y2, b."""
    of_rows = {name for name in ("restitution", "y2", "b") if name in inputs.split()}
    sizes = {"q": mechanism.nq, "t": 1, **dict.fromkeys(of_rows, len(mechanism.names) if of_rows else 0)}
    ports = tuple(Port(name, sizes.get(name, mechanism.nv), 1) for name in inputs.split())
    figures: dict[str, Any] = {
        "bodies": len(mechanism.bodies),
        "memory_bytes": large_tree(mechanism).bytes,
    }
    system: LargeSystem | None = mechanism.__dict__.get("_large_system")
    if system is not None:
        figures |= {"rows": system.rows.m, "widest_front": system.width}
        figures["memory_bytes"] += system.bytes
    return LoopedFunction(ports, tuple(Port(name, *size) for name, size in outputs.items()), evaluate, figures)


def solved(mechanism: Mechanism, motion: str, forces: str) -> dict[str, tuple[int, int]]:
    """Return the outputs of a solve with their shapes."""
    return {motion: (mechanism.nv, 1), forces: (len(mechanism.names), 1), "status": (1, 1)}


def into(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a function of one state that returns nothing."""

    def evaluate(*arrays: Array) -> None:
        function(*arrays)

    return evaluate


def refuse_route(mechanism: Mechanism, route: str) -> None:
    """Refuse routes that are not loops, or do not exist."""
    if route in ROUTES:
        return
    if route not in UNROLLED:
        raise ModelError(f"route={route!r} is not one of {', '.join(map(repr, (*ROUTES, *UNROLLED)))}")
    raise UnsupportedError(f"route={route!r} is unrolled; {mechanism.name!r} is looped over: backend='cpu' unrolls it")


def refuse_matrix(mechanism: Mechanism, what: str, rows: int, columns: int, instead: str) -> None:
    """Refuse a dense matrix that is too large."""
    size = 8 * rows * columns
    if size > LARGEST_MATRIX:
        raise UnsupportedError(
            f"{what!r} of {mechanism.name!r} is a dense {rows} x {columns} matrix of {size:,} bytes "
            f"({size / 2**30:.3g} GiB); at most {LARGEST_MATRIX:,} are filled. {instead}"
        )


# ----------------------------------------------------------------------------------------------------------------------
# Poses, velocities, Jacobians, energy, momentum as loops: `make_<request>(mechanism, **options)` is a `LoopedFunction`.


def make_kinematics(mechanism: Mechanism, frame: str | None = None) -> LoopedFunction:
    """From q to rotation and position of a frame, or of all bodies."""
    tree, n = large_tree(mechanism), len(mechanism.bodies)
    layout = tree.layout

    def evaluate(q: Array, rotation: Array, position: Array) -> None:
        frames = tree.move(q, tree.memory.still)
        if frame is not None:
            place = frames.place(frame)
            rotation[:], position[:] = place.rotation[0], place.position[0]
            return
        axes = frames.axes(layout.row)
        rotation[:] = (axes @ layout.place_R).reshape(3 * n, 3)
        position[:] = frames.origins[layout.row] + np.einsum("nij,nj->ni", axes, layout.place_p)

    size = (
        {"rotation": (3, 3), "position": (3, 1)} if frame is not None else {"rotation": (3 * n, 3), "position": (n, 3)}
    )
    return quantity(mechanism, "q", size, evaluate)


def _frame_motion(mechanism: Mechanism, what: str, frame: str | None, reference: str) -> LoopedFunction:
    """Return velocity or drift of a frame as a quantity."""
    tree, name = large_tree(mechanism), _named(frame, what)

    def evaluate(q: Array, v: Array, out: Array) -> None:
        x = tree.move(q, v).place(name)
        R, p, V, w, a, wd = (
            array[0] for array in (x.rotation, x.position, x.velocity, x.angular, x.acceleration, x.turning)
        )
        linear, angular = (V, w) if what == "velocity" else (a, wd)
        if reference == "local":
            if what != "velocity":  # the axes turn, too: the rate of components, not the components of the rate
                linear, angular = linear - np.cross(w, V), angular
            linear, angular = R.T @ linear, R.T @ angular
        elif reference == "world":
            linear = linear - np.cross(angular, p)
            if what != "velocity":
                linear = linear - np.cross(w, V)
        out[:3], out[3:] = linear, angular

    return quantity(mechanism, "q v", {what: (6, 1)}, evaluate)


def make_velocity(mechanism: Mechanism, frame: str | None = None, reference: str = "local") -> LoopedFunction:
    """q, v -> velocity of a frame."""
    return _frame_motion(mechanism, "velocity", frame, reference)


def make_jacobian_drift(mechanism: Mechanism, frame: str | None = None, reference: str = "local") -> LoopedFunction:
    """q, v -> J_dot v of a frame."""
    return _frame_motion(mechanism, "jacobian_drift", frame, reference)


def _named(frame: str | None, what: str) -> str:
    if frame is None:
        raise UnsupportedError(f"{what!r} is of one frame: compile({what!r}, frame=...) with a body, joint or frame")
    return frame


def make_jacobian(mechanism: Mechanism, frame: str | None = None, reference: str = "local") -> LoopedFunction:
    """From q to J (6, nv) of a frame."""
    tree, name = large_tree(mechanism), _named(frame, "jacobian")

    def evaluate(q: Array, J: Array) -> None:
        x = tree.move(q, tree.memory.still).place(name)
        R, p, arm = x.rotation[0], x.position[0], x.arm[0]
        axes = R if reference == "local" else np.eye(3)
        lever = arm if reference != "world" else arm - p
        forces = np.zeros((6, 1, 6))
        for k in range(3):
            forces[k, 0, :3], forces[k, 0, 3:] = axes[:, k], np.cross(lever, axes[:, k])
            forces[3 + k, 0, 3:] = axes[:, k]
        ends = np.full((6, 1), x.row[0])
        _rows_into(tree, np.concatenate([ends, ends * 0 - 1], axis=1), forces, np.full(6, tree.layout.n), J)

    return quantity(mechanism, "q", {"J": (6, mechanism.nv)}, evaluate)


def _rows_into(tree: LargeTree, ends: Array, forces: Array, closing: Array, out: Array) -> None:
    """Fill out (m, nv) with rows given as forces (m, 1 or 2, 6) on bodies."""
    layout = tree.layout
    both = np.zeros((len(ends), 2, 6))
    both[:, : forces.shape[1]] = forces
    A = out.reshape(len(ends), layout.mechanism.nv)
    composite.row_jacobian(layout.topology, layout.pitch, tree.memory.K, ends.astype(np.int64), closing, both, A)


def make_energy(mechanism: Mechanism) -> LoopedFunction:
    """q, v -> kinetic, potential."""
    tree = large_tree(mechanism)

    def evaluate(q: Array, v: Array, kinetic: Array, potential: Array) -> None:
        frames = tree.move(q, v)
        p, L, _, h = _sums(tree, frames)
        w, speed = tree.memory.K[:, 12:15], frames.speeds
        kinetic[0] = 0.5 * ((speed * p).sum() + (w * L).sum() + (tree.armature * v * v).sum())
        potential[0] = -(h @ tree.layout.gravity) + tree.passive.energy(q, frames)

    return quantity(mechanism, "q v", {"kinetic": (1, 1), "potential": (1, 1)}, evaluate)


def _sums(tree: LargeTree, frames: Frames) -> tuple[Array, Array, float, Array]:
    """Return momenta p, L about each origin (n, 3), and of all that moves mass and first moment in the world (3,)."""
    layout, moves = tree.layout, tree.layout.moves
    rows = np.arange(layout.n)
    R, h, m = frames.axes(rows), frames.moments(rows), layout.inertia[:, :1]
    xx, xy, xz, yy, yz, zz = layout.inertia[:, 4:].T
    J = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)
    w, v = tree.memory.K[:, 12:15], frames.speeds
    turned = np.einsum("nij,njk,nlk,nl->ni", R, J, R, w, optimize=True)
    p = m * v + np.cross(w, h)
    return p, turned + np.cross(h, v), float(m[moves].sum()), (h + m * frames.origins)[moves].sum(axis=0)


def _centroidal(mechanism: Mechanism, inputs: str, name: str, size: int, of: Any) -> LoopedFunction:
    """Return a sum over all bodies that move about their centre of mass as a quantity."""
    tree = large_tree(mechanism)
    mass = tree.layout.inertia[tree.layout.moves, 0].sum()
    if mass <= 0.0:
        raise ModelError(f"{mechanism.name!r} has no centre of mass: the bodies that move weigh {mass:g} kg in all")

    def evaluate(q: Array, *rest: Array) -> None:
        *state, out = rest
        v, acc = (*state, *[tree.memory.still] * (2 - len(state)))
        out[:] = of(tree, tree.move(q, v, acc, gravity=False))

    return quantity(mechanism, inputs, {name: (size, 1)}, evaluate)


def make_center_of_mass(mechanism: Mechanism) -> LoopedFunction:
    """From q to the centre of mass."""

    def center(tree: LargeTree, frames: Frames) -> Array:
        _, _, m, h = _sums(tree, frames)
        return h / m

    return _centroidal(mechanism, "q", "center", 3, center)


def make_center_of_mass_velocity(mechanism: Mechanism) -> LoopedFunction:
    """q, v -> its velocity."""

    def velocity(tree: LargeTree, frames: Frames) -> Array:
        p, _, m, _ = _sums(tree, frames)
        return p.sum(axis=0) / m

    return _centroidal(mechanism, "q v", "velocity", 3, velocity)


def make_momentum(mechanism: Mechanism) -> LoopedFunction:
    """q, v -> centroidal momentum."""

    def momentum(tree: LargeTree, frames: Frames) -> Array:
        p, L, m, h = _sums(tree, frames)
        return _about_center(p, L, frames.origins, h / m)

    return _centroidal(mechanism, "q v", "momentum", 6, momentum)


def make_momentum_rate(mechanism: Mechanism) -> LoopedFunction:
    """q, v, a -> its rate."""

    def rate(tree: LargeTree, frames: Frames) -> Array:
        forces = tree.inertial_forces()
        _, _, m, h = _sums(tree, frames)
        return _about_center(forces[:, :3], forces[:, 3:], frames.origins, h / m)

    return _centroidal(mechanism, "q v a", "rate", 6, rate)


def _about_center(f: Array, n: Array, at: Array, center: Array) -> Array:
    """Return the sum of forces or momenta, and of their moments about the centre of mass."""
    return np.concatenate([f.sum(axis=0), (n + np.cross(at - center, f)).sum(axis=0)])
