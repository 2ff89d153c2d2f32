"""Each request as loops: `make_<request>(mechanism, **options)` returns a `Quantity`.

Matrices with as many rows as columns have no place in memory beyond some size: they are refused with that size.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel.program import Port
from dalembert.tree.large import composite
from dalembert.tree.large.constrained import LargeSystem
from dalembert.tree.large.frames import Frames
from dalembert.tree.large.kernel import Quantity
from dalembert.tree.large.layout import Layout
from dalembert.tree.large.least import least_forces
from dalembert.tree.large.singular import refuse_singular
from dalembert.tree.large.tree import LargeTree
from dalembert.tree.needs import row_weights_of

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray

LARGEST_MATRIX = 2**30
"""Bytes of a dense matrix that is still filled."""

ROUTES = ("auto", "looped")
"""Routes that mean loops here."""


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


def _quantity(mechanism: Mechanism, inputs: str, outputs: dict[str, tuple[int, int]], evaluate: Any) -> Quantity:
    """Return a quantity with its ports and figures; `inputs` names q, v, a, tau, t, restitution."""
    sizes = {"q": mechanism.nq, "t": 1, "restitution": 0 if "restitution" not in inputs else len(mechanism.names)}
    ports = tuple(Port(name, sizes.get(name, mechanism.nv), 1) for name in inputs.split())
    figures: dict[str, Any] = {
        "bodies": len(mechanism.bodies),
        "memory_bytes": large_tree(mechanism).bytes,
    }
    system: LargeSystem | None = mechanism.__dict__.get("_large_system")
    if system is not None:
        figures |= {"rows": system.rows.m, "widest_front": system.width}
        figures["memory_bytes"] += system.bytes
    return Quantity(ports, tuple(Port(name, *size) for name, size in outputs.items()), evaluate, figures)


def _refuse_route(mechanism: Mechanism, route: str) -> None:
    """Refuse routes that are not loops."""
    if route not in ROUTES:
        raise UnsupportedError(
            f"route={route!r} is unrolled; {mechanism.name!r} is looped over: backend='cpu' unrolls it"
        )


def make_forward(mechanism: Mechanism, route: str = "auto", metric: Any = None, dtype: str = "float64") -> Quantity:
    """q, v, tau -> a; of a constrained mechanism q, v, tau, t -> acceleration, multipliers, status."""
    _refuse_route(mechanism, route)
    if not mechanism.names:
        return make_aba(mechanism)
    system = _weighed(mechanism, metric)
    last = threading.local()

    def evaluate(q: Array, v: Array, tau: Array, t: Array, a: Array, lam: Array, status: Array) -> None:
        found = system.forward(q, v, tau, float(t[0]))
        a[:], lam[:], status[0] = found.acceleration, found.multipliers, found.status
        last.state = (q, v, float(t[0]))

    quantity = _quantity(mechanism, "q v tau t", _solved(mechanism, "acceleration", "multipliers"), evaluate)

    def explain(a: Array) -> str:
        q, v, t = last.state
        return system.furthest(q, v, t, a)

    return replace(quantity, explain=explain)


def _solved(mechanism: Mechanism, motion: str, forces: str) -> dict[str, tuple[int, int]]:
    return {motion: (mechanism.nv, 1), forces: (len(mechanism.names), 1), "status": (1, 1)}


def make_aba(mechanism: Mechanism) -> Quantity:
    """q, v, tau -> a of the open tree."""
    tree = large_tree(mechanism)
    refuse_singular(tree)
    return _quantity(mechanism, "q v tau", {"a": (mechanism.nv, 1)}, _into(tree.forward))


def _into(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a function of one state that returns nothing."""

    def evaluate(*arrays: Array) -> None:
        function(*arrays)

    return evaluate


def make_inverse(mechanism: Mechanism, actuated: Any = None, dtype: str = "float64") -> Quantity:
    """q, v, a -> tau; with loops or constraints q, v, a, t -> tau, multipliers, status."""
    tree = large_tree(mechanism)
    if actuated is None and not mechanism.loops and not mechanism.constraints:
        return _quantity(mechanism, "q v a", {"tau": (mechanism.nv, 1)}, _into(tree.inverse))
    if actuated is not None:
        raise UnsupportedError(
            f"inverse dynamics of {mechanism.name!r} with some joints driven is not looped over; without actuated= all "
            "joints are, and backend='cpu' unrolls it"
        )
    system = large_system(mechanism)

    def evaluate(q: Array, v: Array, a: Array, t: Array, tau: Array, lam: Array, status: Array) -> None:
        tau[:], lam[:], status[0] = least_forces(system, q, v, a, float(t[0]))

    return _quantity(mechanism, "q v a t", _solved(mechanism, "tau", "multipliers"), evaluate)


def make_bias(mechanism: Mechanism) -> Quantity:
    """q, v -> bias."""
    tree, still = large_tree(mechanism), np.zeros(mechanism.nv)
    return _quantity(mechanism, "q v", {"bias": (mechanism.nv, 1)}, lambda q, v, out: tree.inverse(q, v, still, out))


def make_gravity(mechanism: Mechanism) -> Quantity:
    """Q -> joint forces that hold still."""
    tree, still = large_tree(mechanism), np.zeros(mechanism.nv)

    def evaluate(q: Array, out: Array) -> None:
        tree.inverse(q, still, still, out, passive=False)

    return _quantity(mechanism, "q", {"tau": (mechanism.nv, 1)}, evaluate)


def make_mass_matrix(mechanism: Mechanism) -> Quantity:
    """Q -> M."""
    tree, n = large_tree(mechanism), mechanism.nv
    refuse_matrix(mechanism, "mass_matrix", n, n, "inverse(q, 0, a) less inverse(q, 0, 0) is M times a vector")

    def evaluate(q: Array, M: Array) -> None:
        tree.move(q, tree.memory.still)
        layout = tree.layout
        M = M.reshape(n, n)
        composite.mass_matrix(layout.topology, layout.pitch, layout.inertia, tree.armature, tree.memory.K, M)

    return _quantity(mechanism, "q", {"M": (n, n)}, evaluate)


def refuse_matrix(mechanism: Mechanism, what: str, rows: int, columns: int, instead: str) -> None:
    """Refuse a dense matrix that is too large."""
    size = 8 * rows * columns
    if size > LARGEST_MATRIX:
        raise UnsupportedError(
            f"{what!r} of {mechanism.name!r} is a dense {rows} x {columns} matrix of {size:,} bytes "
            f"({size / 2**30:.3g} GiB); at most {LARGEST_MATRIX:,} are filled. {instead}"
        )


def make_kinematics(mechanism: Mechanism, frame: str | None = None) -> Quantity:
    """Q -> rotation, position of a frame, or of all bodies."""
    tree, n = large_tree(mechanism), len(mechanism.bodies)
    layout = tree.layout

    def evaluate(q: Array, rotation: Array, position: Array) -> None:
        frames = tree.move(q, tree.memory.still)
        if frame is not None:
            found = frames.place(frame)
            rotation[:], position[:] = found.rotation[0], found.position[0]
            return
        axes = frames.axes(layout.row)
        rotation[:] = (axes @ layout.place_R).reshape(3 * n, 3)
        position[:] = frames.origins[layout.row] + np.einsum("nij,nj->ni", axes, layout.place_p)

    size = (
        {"rotation": (3, 3), "position": (3, 1)} if frame is not None else {"rotation": (3 * n, 3), "position": (n, 3)}
    )
    return _quantity(mechanism, "q", size, evaluate)


def _frame_motion(mechanism: Mechanism, what: str, frame: str | None, reference: str) -> Quantity:
    """Return velocity or drift of a frame as a quantity."""
    tree, name = large_tree(mechanism), _named(frame, what)

    def evaluate(q: Array, v: Array, out: Array) -> None:
        x = tree.move(q, v).place(name)
        R, p, V, w, a, wd = (
            each[0] for each in (x.rotation, x.position, x.velocity, x.angular, x.acceleration, x.turning)
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

    return _quantity(mechanism, "q v", {what: (6, 1)}, evaluate)


def make_velocity(mechanism: Mechanism, frame: str | None = None, reference: str = "local") -> Quantity:
    """q, v -> velocity of a frame."""
    return _frame_motion(mechanism, "velocity", frame, reference)


def make_jacobian_drift(mechanism: Mechanism, frame: str | None = None, reference: str = "local") -> Quantity:
    """q, v -> J_dot v of a frame."""
    return _frame_motion(mechanism, "jacobian_drift", frame, reference)


def _named(frame: str | None, what: str) -> str:
    if frame is None:
        raise UnsupportedError(f"{what!r} is of one frame: compile({what!r}, frame=...) with a body, joint or frame")
    return frame


def make_jacobian(mechanism: Mechanism, frame: str | None = None, reference: str = "local") -> Quantity:
    """Q -> J (6, nv) of a frame."""
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

    return _quantity(mechanism, "q", {"J": (6, mechanism.nv)}, evaluate)


def _rows_into(tree: LargeTree, ends: Array, forces: Array, closing: Array, out: Array) -> None:
    """Fill out (m, nv) with rows given as forces (m, 1 or 2, 6) on bodies."""
    layout = tree.layout
    both = np.zeros((len(ends), 2, 6))
    both[:, : forces.shape[1]] = forces
    A = out.reshape(len(ends), layout.mechanism.nv)
    composite.row_jacobian(layout.topology, layout.pitch, tree.memory.K, ends.astype(np.int64), closing, both, A)


def make_energy(mechanism: Mechanism) -> Quantity:
    """q, v -> kinetic, potential."""
    tree = large_tree(mechanism)

    def evaluate(q: Array, v: Array, kinetic: Array, potential: Array) -> None:
        frames = tree.move(q, v)
        p, L, _, h = _sums(tree, frames)
        w, speed = tree.memory.K[:, 12:15], frames.speeds
        kinetic[0] = 0.5 * ((speed * p).sum() + (w * L).sum() + (tree.armature * v * v).sum())
        potential[0] = -(h @ tree.layout.gravity) + tree.passive.energy(q, frames)

    return _quantity(mechanism, "q v", {"kinetic": (1, 1), "potential": (1, 1)}, evaluate)


def _sums(tree: LargeTree, frames: Frames) -> tuple[Array, Array, float, Array]:
    """Return momenta p, L about each origin (n, 3), total mass, and first moment about the world's origin (3,)."""
    layout = tree.layout
    rows = np.arange(layout.n)
    R, h, m = frames.axes(rows), frames.moments(rows), layout.inertia[:, :1]
    xx, xy, xz, yy, yz, zz = layout.inertia[:, 4:].T
    J = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)
    w, v = tree.memory.K[:, 12:15], frames.speeds
    turned = np.einsum("nij,njk,nlk,nl->ni", R, J, R, w, optimize=True)
    p = m * v + np.cross(w, h)
    return p, turned + np.cross(h, v), float(m.sum()), (h + m * frames.origins).sum(axis=0)


def _centroidal(mechanism: Mechanism, inputs: str, name: str, size: int, of: Any) -> Quantity:
    """Return a sum over all bodies about the centre of mass as a quantity."""
    tree = large_tree(mechanism)
    if mechanism.mass <= 0.0:
        raise ModelError(f"{mechanism.name!r} has no centre of mass: the bodies that move weigh {mechanism.mass:g} kg")

    def evaluate(q: Array, *rest: Array) -> None:
        *state, out = rest
        v, acc = (*state, *[tree.memory.still] * (2 - len(state)))
        out[:] = of(tree, tree.move(q, v, acc, gravity=False))

    return _quantity(mechanism, inputs, {name: (size, 1)}, evaluate)


def make_center_of_mass(mechanism: Mechanism) -> Quantity:
    """Q -> centre of mass."""

    def center(tree: LargeTree, frames: Frames) -> Array:
        _, _, m, h = _sums(tree, frames)
        return h / m

    return _centroidal(mechanism, "q", "center", 3, center)


def make_center_of_mass_velocity(mechanism: Mechanism) -> Quantity:
    """q, v -> its velocity."""

    def velocity(tree: LargeTree, frames: Frames) -> Array:
        p, _, m, _ = _sums(tree, frames)
        return p.sum(axis=0) / m

    return _centroidal(mechanism, "q v", "velocity", 3, velocity)


def make_momentum(mechanism: Mechanism) -> Quantity:
    """q, v -> centroidal momentum."""

    def momentum(tree: LargeTree, frames: Frames) -> Array:
        p, L, m, h = _sums(tree, frames)
        return _about_center(p, L, frames.origins, h / m)

    return _centroidal(mechanism, "q v", "momentum", 6, momentum)


def make_momentum_rate(mechanism: Mechanism) -> Quantity:
    """q, v, a -> its rate."""

    def rate(tree: LargeTree, frames: Frames) -> Array:
        forces = tree.inertial_forces()
        _, _, m, h = _sums(tree, frames)
        return _about_center(forces[:, :3], forces[:, 3:], frames.origins, h / m)

    return _centroidal(mechanism, "q v a", "rate", 6, rate)


def _about_center(f: Array, n: Array, at: Array, center: Array) -> Array:
    """Return the sum of forces or momenta, and of their moments about the centre of mass."""
    return np.concatenate([f.sum(axis=0), (n + np.cross(at - center, f)).sum(axis=0)])


def make_impact(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> Quantity:
    """q, v, restitution, t -> velocity, impulses, status."""
    system = _weighed(mechanism, metric)

    def evaluate(q: Array, v: Array, e: Array, t: Array, out: Array, lam: Array, status: Array) -> None:
        found = system.jump(q, v, float(t[0]), 1.0 + e)
        out[:], lam[:], status[0] = found.acceleration, found.multipliers, found.status

    return _quantity(mechanism, "q v restitution t", _solved(mechanism, "velocity", "impulses"), evaluate)


def make_project_velocity(mechanism: Mechanism, metric: Any = None, dtype: str = "float64") -> Quantity:
    """q, v, t -> velocity, impulses, status."""
    system, all_of_it = _weighed(mechanism, metric), np.ones(len(mechanism.names))

    def evaluate(q: Array, v: Array, t: Array, out: Array, lam: Array, status: Array) -> None:
        found = system.jump(q, v, float(t[0]), all_of_it)
        out[:], lam[:], status[0] = found.acceleration, found.multipliers, found.status

    return _quantity(mechanism, "q v t", _solved(mechanism, "velocity", "impulses"), evaluate)


def _weighed(mechanism: Mechanism, metric: Any) -> LargeSystem:
    weights = row_weights_of(mechanism, metric)
    return large_system(mechanism) if weights is None else LargeSystem(large_tree(mechanism), weights)


def make_project_step(mechanism: Mechanism, dtype: str = "float64") -> Quantity:
    """q, t -> step, residual, status."""
    system = large_system(mechanism)

    def evaluate(q: Array, t: Array, step: Array, residual: Array, status: Array) -> None:
        step[:], residual[:], status[0] = system.step(q, float(t[0]))

    outputs = {"step": (mechanism.nv, 1), "residual": (system.rows.h, 1), "status": (1, 1)}
    return _quantity(mechanism, "q t", outputs, evaluate)


def make_delassus(mechanism: Mechanism, route: str = "auto") -> Quantity:
    """q, t -> G = A M^-1 A^T, a column for each run of the articulated-body algorithm."""
    _refuse_route(mechanism, route)
    system, m = large_system(mechanism), len(mechanism.names)
    refuse_matrix(mechanism, "delassus", m, m, "'impact' and 'forward' solve with it without forming it")

    def evaluate(q: Array, t: Array, G: Array) -> None:
        G[:] = system.delassus(q, float(t[0])).reshape(G.shape)

    return _quantity(mechanism, "q t", {"G": (m, m)}, evaluate)


def _row_quantity(mechanism: Mechanism, inputs: str, word: str, size: int) -> Quantity:
    """Return one field of the rows as a quantity."""
    system, still = large_system(mechanism), np.zeros(mechanism.nv)

    def evaluate(q: Array, *rest: Array) -> None:
        *v, t, out = rest
        speed = v[0] if v else still
        system.tree.move(q, speed)
        out[:] = getattr(system.values(q, speed, float(t[0])), word)

    return _quantity(mechanism, inputs, {word: (size, 1)}, evaluate)


def make_constraint(mechanism: Mechanism) -> Quantity:
    """q, t -> phi."""
    return _row_quantity(mechanism, "q t", "residual", large_system(mechanism).rows.h)


def make_constraint_velocity(mechanism: Mechanism) -> Quantity:
    """q, v, t -> A v + offset."""
    return _row_quantity(mechanism, "q v t", "rate", len(mechanism.names))


def make_constraint_drift(mechanism: Mechanism) -> Quantity:
    """q, v, t -> drift."""
    return _row_quantity(mechanism, "q v t", "drift", len(mechanism.names))


def make_constraint_jacobian(mechanism: Mechanism) -> Quantity:
    """q, t -> A (m, nv)."""
    system, m, n = large_system(mechanism), len(mechanism.names), mechanism.nv
    refuse_matrix(mechanism, "constraint_jacobian", m, n, "'constraint_velocity' is A times a vector")

    def evaluate(q: Array, t: Array, A: Array) -> None:
        A[:] = system.jacobian(q, float(t[0])).reshape(A.shape)

    return _quantity(mechanism, "q t", {"jacobian": (m, n)}, evaluate)
