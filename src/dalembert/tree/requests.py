"""What trees can be compiled to: the table of requests, each with the CasADi function that it is traced to.

Inputs are q (nq,), v, a, tau (nv,); spatial vectors are [linear; angular]. q is taken to be on its manifold: unit
quaternions, unit pairs (cos, sin).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dalembert.errors import UnsupportedError
from dalembert.model.joints import as_expression
from dalembert.model.requests import Request, register
from dalembert.tree import constrained, constrained_inverse, dynamics, momentum
from dalembert.tree.choice import Algorithm, candidates, cheapest
from dalembert.tree.crba import crba
from dalembert.tree.jacobian import jacobian
from dalembert.tree.kinematics import drift, frame_motion, frame_pose, poses, velocity
from dalembert.tree.link import Tree
from dalembert.tree.passive import elastic_energy
from dalembert.tree.pivots import refuse_singular
from dalembert.tree.posed import Posed, pose_tree
from dalembert.tree.rnea import rnea
from dalembert.tree.scalars import Scalar, add

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism import Mechanism

SIZES = {"q": "nq", "v": "nv", "a": "nv", "tau": "nv"}


def traced(
    mechanism: Mechanism,
    name: str,
    arguments: tuple[str, ...],
    outputs: tuple[str, ...],
    *algorithms: Algorithm,
) -> ca.Function:
    """Return the CasADi function of the algorithm that needs fewest operations.

    An algorithm takes (tree, posed, q, v, x), x the third argument where there is one, and returns one nested list
    per output.
    """
    import casadi as ca

    tree, algorithm = cheapest(mechanism, *algorithms)
    symbols = [ca.SX.sym(each, getattr(tree, SIZES[each])) for each in arguments]
    scalars = [[symbol[i] for i in range(symbol.numel())] for symbol in symbols]
    still: list[Scalar] = [0.0] * tree.nv
    q, v, x = (*scalars, *([still] * (3 - len(scalars))))
    results = algorithm(tree, pose_tree(tree, q), q, v, x)
    shapes = [as_expression(result) if result else ca.SX(0, 1) for result in results]
    return ca.Function(name, symbols, shapes, list(arguments), list(outputs))


def _forward(mechanism: Mechanism, route: str, metric: Any, dtype: str) -> ca.Function:
    if mechanism.names:
        return constrained.forward(mechanism, route, metric, dtype)
    refuse_singular(mechanism, candidates(mechanism)[0])
    return traced(
        mechanism,
        "forward",
        ("q", "v", "tau"),
        ("a",),
        lambda *args: [dynamics.forward_by_aba(*args)],
        lambda *args: [dynamics.forward_by_factor(*args)],
    )


def _aba(mechanism: Mechanism) -> ca.Function:
    refuse_singular(mechanism, candidates(mechanism)[0])
    return traced(mechanism, "aba", ("q", "v", "tau"), ("a",), lambda *args: [dynamics.forward_by_aba(*args)])


def _inverse(mechanism: Mechanism, actuated: Any, dtype: str) -> ca.Function:
    if actuated is not None or mechanism.loops or mechanism.constraints:
        return constrained_inverse.inverse(mechanism, actuated, dtype)
    return traced(mechanism, "inverse", ("q", "v", "a"), ("tau",), lambda *args: [dynamics.inverse(*args)])


def _bias(mechanism: Mechanism) -> ca.Function:
    return traced(
        mechanism, "bias", ("q", "v"), ("bias",), lambda tree, posed, q, v, _: [dynamics.bias(tree, posed, q, v)]
    )


def _gravity(mechanism: Mechanism) -> ca.Function:
    return traced(
        mechanism,
        "gravity",
        ("q",),
        ("tau",),
        lambda tree, posed, q, v, a: [rnea(tree, posed, _zero(tree), _zero(tree))],
    )


def _zero(tree: Tree) -> list[Scalar]:
    return [0.0] * tree.nv


def _mass_matrix(mechanism: Mechanism) -> ca.Function:
    return traced(mechanism, "mass_matrix", ("q",), ("M",), lambda tree, posed, *_: [crba(tree, posed)])


def _kinematics(mechanism: Mechanism, frame: str | None) -> ca.Function:
    names = [frame] if frame is not None else [body.name for body in mechanism.bodies]

    def all_poses(tree: Tree, posed: list[Posed], *_: Any) -> list[Any]:
        links = poses(posed)
        found = [frame_pose(tree, links, name) for name in names]
        rows = [[pose.R[j][i] for j in range(3)] for pose in found for i in range(3)]
        positions = list(found[0].p) if frame is not None else [list(pose.p) for pose in found]
        return [rows, positions]

    return traced(mechanism, "kinematics", ("q",), ("rotation", "position"), all_poses)


def _frame(
    quantity: Callable[..., list[Scalar]], what: str, mechanism: Mechanism, frame: str, reference: str
) -> ca.Function:
    return traced(
        mechanism,
        what,
        ("q", "v"),
        (what,),
        lambda tree, posed, q, v, _: [quantity(frame_motion(tree, posed, v, _named(frame, what)), reference)],
    )


def _jacobian(mechanism: Mechanism, frame: str | None, reference: str) -> ca.Function:
    name = _named(frame, "jacobian")
    return traced(
        mechanism, "jacobian", ("q",), ("J",), lambda tree, posed, *_: [jacobian(tree, posed, name, reference)]
    )


def _named(frame: str | None, what: str) -> str:
    if frame is None:
        raise UnsupportedError(f"{what!r} is of one frame: compile({what!r}, frame=...) with a body, joint or frame")
    return frame


def _energy(mechanism: Mechanism) -> ca.Function:
    def both(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar], _: Any) -> list[Any]:
        kinetic, potential = momentum.energy(tree, posed, v)
        return [[kinetic], [add(potential, elastic_energy(tree, posed, q))]]

    return traced(mechanism, "energy", ("q", "v"), ("kinetic", "potential"), both)


def _center_of_mass(mechanism: Mechanism) -> ca.Function:
    return traced(
        mechanism,
        "center_of_mass",
        ("q",),
        ("center",),
        lambda tree, posed, *_: [list(momentum.center_of_mass(tree, posed))],
    )


def _center_velocity(mechanism: Mechanism) -> ca.Function:
    return traced(
        mechanism,
        "center_of_mass_velocity",
        ("q", "v"),
        ("velocity",),
        lambda tree, posed, q, v, _: [list(momentum.center_velocity(tree, posed, v))],
    )


def _momentum(mechanism: Mechanism) -> ca.Function:
    return traced(
        mechanism,
        "momentum",
        ("q", "v"),
        ("momentum",),
        lambda tree, posed, q, v, _: [momentum.centroidal_momentum(tree, posed, v)],
    )


def _momentum_rate(mechanism: Mechanism) -> ca.Function:
    return traced(
        mechanism,
        "momentum_rate",
        ("q", "v", "a"),
        ("rate",),
        lambda tree, posed, q, v, a: [momentum.centroidal_rate(tree, posed, v, a)],
    )


FRAME = {"frame": None, "reference": "local"}

REQUESTS = (
    Request(
        "forward",
        _forward,
        "q, v, tau -> a; of a constrained mechanism q, v, tau, t -> acceleration, multipliers (m,), status (1,)",
        {"route": "auto", "metric": None, "dtype": "float64"},
    ),
    Request("aba", _aba, "q, v, tau -> a: the same by the articulated-body algorithm, couplings left out"),
    Request(
        "inverse",
        _inverse,
        "q, v, a -> tau (Newton-Euler); with loops or constraints q, v, a, t -> tau, multipliers (m,), status (1,)",
        {"actuated": None, "dtype": "float64"},
    ),
    Request("mass_matrix", _mass_matrix, "q -> M (nv, nv): composite rigid bodies; armature included"),
    Request("bias", _bias, "q, v -> bias (nv,): M a + bias = tau, springs and dampers included where they act"),
    Request("gravity", _gravity, "q -> tau (nv,): joint forces that hold still against gravity"),
    Request(
        "kinematics",
        _kinematics,
        "q -> rotation (3, 3), position (3,) of a frame; stacked for all bodies",
        {"frame": None},
    ),
    Request("velocity", partial(_frame, velocity, "velocity"), "q, v -> [linear; angular] (6,) of a frame", FRAME),
    Request("jacobian", _jacobian, "q -> J (6, nv) of a frame: its velocity is J v", FRAME),
    Request("jacobian_drift", partial(_frame, drift, "jacobian_drift"), "q, v -> J_dot v (6,) of a frame", FRAME),
    Request("energy", _energy, "q, v -> kinetic (1,), potential (1,): gravity, and springs where they act"),
    Request("center_of_mass", _center_of_mass, "q -> centre of mass (3,) of all that moves"),
    Request("center_of_mass_velocity", _center_velocity, "q, v -> its velocity (3,)"),
    Request("momentum", _momentum, "q, v -> [linear; angular] (6,) about the centre of mass, world axes"),
    Request("momentum_rate", _momentum_rate, "q, v, a -> its rate (6,)"),
)
"""Every request of this room; being here is being tested."""

register(*REQUESTS)
