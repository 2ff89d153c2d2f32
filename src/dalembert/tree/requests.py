"""Requests of trees and of constraint rows: the table of what can be compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dalembert.errors import UnsupportedError
from dalembert.model.requests import Request, register

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.requests import RouteTable
    from dalembert.tree.prepared.configuration import Posed
    from dalembert.tree.prepared.link import Tree

# ----------------------------------------------------------------------------------------------------------------------
# The table of requests that trees answer.
#
# Inputs are q (nq,), v, a, tau (nv,); spatial vectors are [linear; angular]. The algorithms (`traces.py`) are imported
# when one is traced: a kernel that is in the cache needs none of them.


def _later(name: str) -> Callable[..., Any]:
    """Return the trace of this name, imported when it is called."""

    def trace(mechanism: Mechanism, **options: Any) -> Any:
        from dalembert.tree.traces import TRACES, block_traces

        if name in OF_PLACES and mechanism.of_accelerations:
            raise UnsupportedError(
                f"{name!r} has rows of places, and {mechanism.of_accelerations[0]!r} constrains accelerations: its row "
                'depends on velocities; "forward", "inverse" and "project_velocity" take it'
            )
        return (TRACES.get(name) or block_traces()[name])(mechanism, **options)

    return trace


def _routes(what: str) -> Callable[[Mechanism], RouteTable]:
    """Return the table of routes of a request, made when it is called."""

    def table(mechanism: Mechanism) -> RouteTable:
        from dalembert.tree.routes.route_report import route_table

        return route_table(mechanism, what)

    return table


OF_PLACES = ("kkt", "delassus", "delassus_factor", "delassus_solve", "impact", "impact_derivatives", "project")
"""Requests whose rows are those of a place alone."""

FRAME = {"frame": None, "reference": "local"}

REQUESTS = (
    Request(
        "forward",
        _later("forward"),
        "q, v, tau, t -> acceleration, multipliers (m,), status (1,)",
        {"route": "auto", "metric": None, "dtype": "float64", "massless": "refuse"},
        _routes("forward"),
    ),
    Request("aba", _later("aba"), "q, v, tau -> a: the same by the articulated-body algorithm, couplings left out"),
    Request(
        "inverse",
        _later("inverse"),
        "q, v, a -> tau (Newton-Euler); with loops or constraints q, v, a, t -> tau, multipliers (m,), status (1,)",
        {"actuated": None, "dtype": "float64"},
    ),
    Request("mass_matrix", _later("mass_matrix"), "q -> M (nv, nv): composite rigid bodies; armature included"),
    Request(
        "bias", _later("bias"), "q, v -> bias (nv,): M a + bias = tau, springs and dampers included where they act"
    ),
    Request(
        "coriolis_matrix",
        _later("coriolis_matrix"),
        "q, v -> C (nv, nv): bias = C v + what remains at rest and of dampers, M' - 2 C skew-symmetric",
    ),
    Request("gravity", _later("gravity"), "q -> tau (nv,): joint forces that hold still against gravity"),
    Request(
        "kinematics",
        _later("kinematics"),
        "q -> rotation (3, 3), position (3,) of a frame; stacked for all bodies",
        {"frame": None},
    ),
    Request("velocity", _later("velocity"), "q, v -> [linear; angular] (6,) of a frame", FRAME),
    Request("jacobian", _later("jacobian"), "q -> J (6, nv) of a frame: its velocity is J v", FRAME),
    Request("jacobian_drift", _later("jacobian_drift"), "q, v -> J_dot v (6,) of a frame", FRAME),
    Request("energy", _later("energy"), "q, v -> kinetic (1,), potential (1,): gravity, and springs where they act"),
    Request("center_of_mass", _later("center_of_mass"), "q -> centre of mass (3,) of all that moves"),
    Request("center_of_mass_velocity", _later("center_velocity"), "q, v -> its velocity (3,)"),
    Request("momentum", _later("momentum"), "q, v -> [linear; angular] (6,) about the centre of mass, world axes"),
    Request("momentum_rate", _later("momentum_rate"), "q, v, a -> its rate (6,)"),
)
"""Every request on an open tree; being here is being tested."""

SOLVES = (
    Request(
        "impact",
        _later("impact"),
        "q, v, restitution (m,), t -> velocity (nv,), impulses (m,), status (1,)",
        {"metric": None, "dtype": "float64"},
    ),
    Request(
        "project",
        _later("project"),
        "q, v, t -> step, velocity (nv,), residual (h,), impulses (m,), status (1,): Newton's step, and the velocity",
        {"metric": None, "dtype": "float64"},
    ),
    Request(
        "project_velocity",
        _later("project_velocity"),
        "q, v, t -> velocity (nv,), impulses (m,), status (1,): the admissible velocity nearest in kinetic energy",
        {"metric": None, "dtype": "float64"},
    ),
    Request(
        "project_step",
        _later("project_step"),
        "q, t -> step (nv,), residual (h,), status (1,): Newton's step onto the constraints, least in kinetic energy",
        {"dtype": "float64"},
    ),
    Request(
        "kkt",
        _later("kkt"),
        "q, y1 (nv,), y2 (m,), t -> acceleration, multipliers (m,), status (1,): M a + A^T lam = y1, A a = y2",
        {"route": "auto", "metric": None, "dtype": "float64"},
        _routes("kkt"),
    ),
    Request(
        "joint_forces",
        _later("joint_forces"),
        "q, v, tau, t -> joint_forces (k, 6), acceleration, multipliers (m,), status (1,), unique (k, 6): forward "
        "dynamics, the wrench [force; moment] of every joint, loop, constraint between frames and spring, and 1 where "
        "the constraints determine a component",
        {"route": "auto", "metric": None, "dtype": "float64", "axes": "child", "joints": None, "flexible": None},
    ),
    Request(
        "joint_forces_of_motion",
        _later("joint_forces_of_motion"),
        "q, v, a, multipliers (m,), t -> joint_forces (k, 6): of a known motion, with forces on `external` bodies",
        {"axes": "child", "joints": None, "external": None},
    ),
    Request(
        "joint_forces_of_multipliers",
        _later("joint_forces_of_multipliers"),
        "q, multipliers (m,), t -> joint_forces (k, 6): what multipliers and forces on `external` bodies add",
        {"axes": "child", "joints": None, "external": None},
    ),
    Request(
        "forward_derivatives",
        _later("forward_derivatives"),
        "q, v, tau, t -> acceleration, multipliers (m,), status (1,), and d(acceleration, multipliers)/d(each of wrt): "
        "tangent q, v, force, t, inertia:<body>",
        {"wrt": ("q", "v", "force"), "metric": None, "dtype": "float64"},
    ),
    Request(
        "inverse_derivatives",
        _later("inverse_derivatives"),
        "q, v, a, t -> tau, multipliers (m,), status (1,), then d(tau, multipliers)/d(each of wrt): tangent q, v, a, "
        "inertia:<body> and other parameters",
        {"wrt": ("q", "v", "a"), "actuated": None, "dtype": "float64"},
    ),
    Request(
        "regressor",
        _later("regressor"),
        "q, v, a -> Y (nv, 10 bodies + nv terms): tau = Y pi of the open tree; base_parameters() names the columns",
        {"terms": ()},
    ),
    Request(
        "impact_derivatives",
        _later("impact_derivatives"),
        "q, v, restitution (m,), t -> velocity, impulses (m,), status (1,), then d(velocity, impulses)/d(each of wrt): "
        "tangent q, v, restitution, t, inertia:<body>",
        {"wrt": ("q", "v"), "metric": None, "dtype": "float64"},
    ),
    Request("delassus", _later("delassus"), "q, t -> G (m, m) = A M^-1 A^T", {"route": "auto"}, _routes("delassus")),
    Request(
        "delassus_factor",
        _later("delassus_factor"),
        "q, t -> L (m, m), D (m,), shift (m,): G + diag(shift) = L D L^T; no shift where rows are independent",
        {"route": "auto", "metric": None, "dtype": "float64"},
        _routes("delassus_factor"),
    ),
    Request(
        "delassus_solve",
        _later("delassus_solve"),
        "q, b (m,), t -> x (m,): G x = b, the least x where rows are redundant",
        {"route": "auto", "metric": None, "dtype": "float64"},
        _routes("delassus_solve"),
    ),
)
"""What solves the block system of a constrained mechanism, besides forward and inverse dynamics."""

MANIFOLD_REQUESTS = (
    Request("integrate", _later("integrate"), "q, v -> q_next (nq,): where v leads from q in unit time"),
    Request("difference", _later("difference"), "q0, q1 -> v (nv,): the least v with integrate(q0, v) = q1"),
    Request("rate", _later("rate"), "q, v -> dq (nq,) = N(q) v"),
)
"""Steps on the space of configurations, for optimisers that need them as expressions; being here is being tested."""

register(*REQUESTS, *SOLVES, *MANIFOLD_REQUESTS)


# ----------------------------------------------------------------------------------------------------------------------
# Requests for the constraint rows of a mechanism: residual, rate, Jacobian, drift.


def constraint_function(mechanism: Mechanism, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> ca.Function:
    """Return the function of some fields of `Assembled`, on the prepared tree that moves with the fewest operations.

    Counting the motion of the links in question takes a fraction of the time that tracing the rows on every tree does.
    """
    import casadi as ca

    from dalembert.model.constraints import assemble
    from dalembert.model.constraints.constraint import Pair
    from dalembert.tree.algorithms.frame_kinematics import TreeKinematics
    from dalembert.tree.prepared.prepare import cheapest

    pairs = [constraint for constraint in mechanism.all_constraints if isinstance(constraint, Pair)]
    frames = {frame for pair in pairs for frame in (pair.frame, pair.other) if frame is not None}
    tree, _ = cheapest(mechanism, partial(_motion, frames, "drift" in outputs))
    sizes = {"q": mechanism.nq, "v": mechanism.nv, "t": 1}
    symbols = {letter: ca.SX.sym(letter, size) for letter, size in sizes.items()}
    rows = assemble(TreeKinematics(mechanism, tree, symbols["q"], symbols["v"], symbols["t"]))
    expressions = [ca.SX(getattr(rows, output)) for output in outputs]
    if name == "constraint_jacobian" and mechanism.of_accelerations:
        inputs = ("q", "v", "t")  # J(q, v, t)
    columns, names = [symbols[letter] for letter in inputs], list(inputs)
    if mechanism.parameter_column is not None:
        columns, names = [*columns, mechanism.parameter_column], [*names, "parameters"]
    return ca.Function(name, columns, expressions, names, list(outputs))


def _motion(frames: set[str], moving: bool, tree: Tree, posed: list[Posed], q: Any, v: list[Any], a: list[Any]) -> Any:
    """Return where the links with these frames are, with how they move if asked for; all links where there are none."""
    from dalembert.tree.algorithms.inverse import accelerations
    from dalembert.tree.algorithms.kinematics import poses

    links = {tree.places[frame][0] for frame in frames} - {-1} or set(range(len(posed)))
    places = poses(posed)
    motions = accelerations(tree.gravity, posed, v, a) if moving else places
    return [(places[i].R, places[i].p, *(motions[i] if moving else ())) for i in links]


CONSTRAINT_REQUESTS = tuple(
    Request(name, partial(constraint_function, name=name, inputs=inputs, outputs=(output,)), summary)
    for name, inputs, output, summary in (
        ("constraint", ("q", "t"), "residual", "q, t -> phi (h,) of the holonomic rows"),
        ("constraint_velocity", ("q", "v", "t"), "rate", "q, v, t -> A v + offset (m,), zero where the rows hold"),
        ("constraint_jacobian", ("q", "t"), "jacobian", "q, t -> A (m, nv) of the constraint rows"),
        ("constraint_drift", ("q", "v", "t"), "drift", "q, v, t -> drift (m,): A a + drift = 0"),
    )
)
"""Every request on constraint rows; being here is being tested."""

register(*CONSTRAINT_REQUESTS)
