"""Each request of `requests.py` as a CasADi function.

Inputs are q (nq,), v, a, tau (nv,); spatial vectors are [linear; angular]. q is taken to be on its manifold: unit
quaternions, unit pairs (cos, sin).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kkt.expressions.scalars import add
from dalembert.model.joints import as_expression
from dalembert.tree.algorithms import dynamics, momentum
from dalembert.tree.algorithms.coriolis import coriolis_matrix
from dalembert.tree.algorithms.dynamics import refuse_singular, status_of_numbers
from dalembert.tree.algorithms.inverse import crba
from dalembert.tree.algorithms.kinematics import drift, frame_motion, frame_pose, jacobian, poses, velocity
from dalembert.tree.algorithms.passive import elastic_energy
from dalembert.tree.prepared.configuration import Posed, pose_tree
from dalembert.tree.prepared.link import Tree
from dalembert.tree.prepared.prepare import Algorithm, candidates, cheapest
from dalembert.types import Scalar

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism.mechanism import Mechanism

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
    symbols = [ca.SX.sym(letter, getattr(tree, SIZES[letter])) for letter in arguments]
    scalars = [[symbol[i] for i in range(symbol.numel())] for symbol in symbols]
    still: list[Scalar] = [0.0] * tree.nv
    q, v, x = (*scalars, *([still] * (3 - len(scalars))))
    results = algorithm(tree, pose_tree(tree, q), q, v, x)
    shapes = [as_expression(result) if result else ca.SX(0, 1) for result in results]
    names = list(arguments)
    if mechanism.parameter_column is not None:
        symbols, names = [*symbols, mechanism.parameter_column], [*names, "parameters"]
    return ca.Function(name, symbols, shapes, names, list(outputs))


def trace_forward(mechanism: Mechanism, route: str, metric: Any, dtype: str, massless: str = "refuse") -> ca.Function:
    """Return q, v, tau, t -> acceleration, multipliers, status by a route, or whichever is shortest.

    Rows of limbs without mass are the mechanism's by now (`with_massless`), whatever `massless` says.
    """
    if mechanism.names:
        from dalembert.tree.block import constrained

        return constrained.forward(mechanism, route, metric, dtype)
    if route not in ("auto", *dynamics.FORWARD):
        raise ModelError(
            f"{mechanism.name!r} has no constraints: route={route!r} is not one of 'auto', "
            + ", ".join(map(repr, dynamics.FORWARD))
        )
    refuse_singular(mechanism, candidates(mechanism)[0])
    taken = [algorithm for name, (algorithm, _) in dynamics.FORWARD.items() if route in ("auto", name)]
    return solved(traced(mechanism, "forward", ("q", "v", "tau"), ("a",), *[partial(_alone, way) for way in taken]))


def solved(forward: ca.Function) -> ca.Function:
    """Return forward dynamics of an open tree with the outputs of constrained mechanisms: no multipliers, a status."""
    import casadi as ca

    inputs, names = forward.sx_in(), forward.name_in()
    (a,) = forward.call(inputs)
    outputs = {"acceleration": a, "multipliers": ca.SX(0, 1), "status": status_of_numbers(a)}
    inputs, names = [*inputs[:3], ca.SX.sym("t"), *inputs[3:]], [*names[:3], "t", *names[3:]]  # parameters stay last
    return ca.Function("forward", inputs, list(outputs.values()), names, list(outputs))


def _alone(algorithm: Algorithm, *args: Any) -> list[Any]:
    """Return the one output of an algorithm as a list."""
    return [algorithm(*args)]


def trace_aba(mechanism: Mechanism) -> ca.Function:
    """Return q, v, tau -> a by the articulated-body algorithm."""
    refuse_singular(mechanism, candidates(mechanism)[0])
    return traced(mechanism, "aba", ("q", "v", "tau"), ("a",), lambda *args: [dynamics.forward_by_aba(*args)])


def trace_inverse(mechanism: Mechanism, actuated: Any, dtype: str) -> ca.Function:
    """Return q, v, a -> tau; with loops or constraints also multipliers and status."""
    if actuated is not None or mechanism.loops or mechanism.constraints:
        from dalembert.tree.block import constrained

        return constrained.inverse(mechanism, actuated, dtype)
    return traced(mechanism, "inverse", ("q", "v", "a"), ("tau",), lambda *args: [dynamics.inverse(*args)])


def trace_bias(mechanism: Mechanism) -> ca.Function:
    """Return q, v -> bias."""
    return traced(
        mechanism, "bias", ("q", "v"), ("bias",), lambda tree, posed, q, v, _: [dynamics.bias(tree, posed, q, v)]
    )


def trace_gravity(mechanism: Mechanism) -> ca.Function:
    """Return q -> tau."""
    return traced(
        mechanism,
        "gravity",
        ("q",),
        ("tau",),
        lambda tree, posed, *_: [dynamics.weight(tree, posed)],
    )


def trace_mass_matrix(mechanism: Mechanism) -> ca.Function:
    """Return q -> M."""
    return traced(mechanism, "mass_matrix", ("q",), ("M",), lambda tree, posed, *_: [crba(tree, posed)])


def trace_coriolis_matrix(mechanism: Mechanism) -> ca.Function:
    """Return q, v -> C."""
    return traced(
        mechanism,
        "coriolis_matrix",
        ("q", "v"),
        ("C",),
        lambda tree, posed, q, v, _: [coriolis_matrix(tree, posed, v)],
    )


def trace_kinematics(mechanism: Mechanism, frame: str | None) -> ca.Function:
    """Return q -> rotation, position of a frame, or of all bodies one below the other."""
    names = [frame] if frame is not None else [body.name for body in mechanism.bodies]

    def all_poses(tree: Tree, posed: list[Posed], *_: Any) -> list[Any]:
        links = poses(posed)
        places = [frame_pose(tree, links, name) for name in names]
        rows = [[pose.R[j][i] for j in range(3)] for pose in places for i in range(3)]
        positions = list(places[0].p) if frame is not None else [list(pose.p) for pose in places]
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


def trace_jacobian(mechanism: Mechanism, frame: str | None, reference: str) -> ca.Function:
    """Return q -> J of a frame."""
    name = _named(frame, "jacobian")
    return traced(
        mechanism, "jacobian", ("q",), ("J",), lambda tree, posed, *_: [jacobian(tree, posed, name, reference)]
    )


def _named(frame: str | None, what: str) -> str:
    if frame is None:
        raise UnsupportedError(f"{what!r} is of one frame: compile({what!r}, frame=...) with a body, joint or frame")
    return frame


def trace_energy(mechanism: Mechanism) -> ca.Function:
    """Return q, v -> kinetic, potential."""

    def both(tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar], _: Any) -> list[Any]:
        kinetic, potential = momentum.energy(tree, posed, v)
        return [[kinetic], [add(potential, elastic_energy(tree, posed, q))]]

    return traced(mechanism, "energy", ("q", "v"), ("kinetic", "potential"), both)


def trace_center_of_mass(mechanism: Mechanism) -> ca.Function:
    """Return q -> centre of mass."""
    return traced(
        mechanism,
        "center_of_mass",
        ("q",),
        ("center",),
        lambda tree, posed, *_: [list(momentum.center_of_mass(tree, posed))],
    )


def trace_center_velocity(mechanism: Mechanism) -> ca.Function:
    """Return q, v -> its velocity."""
    return traced(
        mechanism,
        "center_of_mass_velocity",
        ("q", "v"),
        ("velocity",),
        lambda tree, posed, q, v, _: [list(momentum.center_velocity(tree, posed, v))],
    )


def trace_momentum(mechanism: Mechanism) -> ca.Function:
    """Return q, v -> centroidal momentum."""
    return traced(
        mechanism,
        "momentum",
        ("q", "v"),
        ("momentum",),
        lambda tree, posed, q, v, _: [momentum.centroidal_momentum(tree, posed, v)],
    )


def trace_momentum_rate(mechanism: Mechanism) -> ca.Function:
    """Return q, v, a -> its rate."""
    return traced(
        mechanism,
        "momentum_rate",
        ("q", "v", "a"),
        ("rate",),
        lambda tree, posed, q, v, a: [momentum.centroidal_rate(tree, posed, v, a)],
    )


def trace_velocity(mechanism: Mechanism, frame: str, reference: str) -> ca.Function:
    """Return q, v -> the velocity of a frame."""
    return _frame(velocity, "velocity", mechanism, frame, reference)


def trace_jacobian_drift(mechanism: Mechanism, frame: str, reference: str) -> ca.Function:
    """Return q, v -> J_dot v of a frame."""
    return _frame(drift, "jacobian_drift", mechanism, frame, reference)


def _steps() -> Any:
    from dalembert.tree.algorithms import manifold_steps

    return manifold_steps


TRACES: dict[str, Callable[..., ca.Function]] = {
    "forward": trace_forward,
    "aba": trace_aba,
    "inverse": trace_inverse,
    "bias": trace_bias,
    "gravity": trace_gravity,
    "mass_matrix": trace_mass_matrix,
    "coriolis_matrix": trace_coriolis_matrix,
    "kinematics": trace_kinematics,
    "jacobian": trace_jacobian,
    "energy": trace_energy,
    "center_of_mass": trace_center_of_mass,
    "center_velocity": trace_center_velocity,
    "momentum": trace_momentum,
    "momentum_rate": trace_momentum_rate,
    "velocity": trace_velocity,
    "jacobian_drift": trace_jacobian_drift,
    "integrate": lambda mechanism: _steps().trace_integrate(mechanism),
    "difference": lambda mechanism: _steps().trace_difference(mechanism),
    "rate": lambda mechanism: _steps().trace_rate(mechanism),
}
"""The traces of an open tree by the name that `requests.py` gives them."""


def block_traces() -> dict[str, Callable[..., Any]]:
    """Return the traces of the block system; an open tree needs neither rows nor routes, and does not import them."""
    from dalembert.tree.block import constrained, joint_forces
    from dalembert.tree.derivatives import dynamics_derivatives, regressor
    from dalembert.tree.routes import delassus_kernels

    return {
        "joint_forces": joint_forces.joint_forces,
        "joint_forces_of_motion": joint_forces.of_motion,
        "joint_forces_of_multipliers": joint_forces.of_multipliers,
        "forward_derivatives": dynamics_derivatives.forward_derivatives,
        "inverse_derivatives": dynamics_derivatives.inverse_derivatives,
        "regressor": regressor.regressor,
        "impact_derivatives": dynamics_derivatives.impact_derivatives,
        "impact": constrained.impact,
        "project": constrained.project,
        "project_velocity": constrained.project_velocity,
        "project_step": constrained.project_step,
        "kkt": constrained.block_solution,
        "delassus": delassus_kernels.delassus_matrix,
        "delassus_factor": delassus_kernels.delassus_factor,
        "delassus_solve": delassus_kernels.delassus_solve,
    }
