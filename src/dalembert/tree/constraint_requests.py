"""What the constraint rows of a mechanism can be compiled to: residual, rate, Jacobian, drift."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dalembert.model.requests import Request, register

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism import Mechanism
    from dalembert.tree.link import Tree
    from dalembert.tree.posed import Posed


def constraint_function(mechanism: Mechanism, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> ca.Function:
    """Return the function of some fields of `Assembled`, on the prepared tree that moves with the fewest operations.

    Counting the motion of the links in question takes a fraction of the time that tracing the rows on every tree does.
    """
    import casadi as ca

    from dalembert.model.constraints import assemble
    from dalembert.model.constraints.constraint import Pair
    from dalembert.tree.choice import cheapest
    from dalembert.tree.frame_kinematics import TreeKinematics

    pairs = [each for each in mechanism.all_constraints if isinstance(each, Pair)]
    frames = {frame for pair in pairs for frame in (pair.frame, pair.other) if frame is not None}
    tree, _ = cheapest(mechanism, partial(_motion, frames, "drift" in outputs))
    sizes = {"q": mechanism.nq, "v": mechanism.nv, "t": 1}
    symbols = {each: ca.SX.sym(each, size) for each, size in sizes.items()}
    rows = assemble(TreeKinematics(mechanism, tree, symbols["q"], symbols["v"], symbols["t"]))
    expressions = [ca.SX(getattr(rows, each)) for each in outputs]
    return ca.Function(name, [symbols[each] for each in inputs], expressions, list(inputs), list(outputs))


def _motion(frames: set[str], moving: bool, tree: Tree, posed: list[Posed], q: Any, v: list[Any], a: list[Any]) -> Any:
    """Return where the links with these frames are, with how they move if asked for; all links where there are none."""
    from dalembert.tree.kinematics import poses
    from dalembert.tree.rnea import accelerations

    links = {tree.places[frame][0] for frame in frames} - {-1} or set(range(len(posed)))
    places = poses(posed)
    motions = accelerations(tree.gravity, posed, v, a) if moving else places
    return [(places[i].R, places[i].p, *(motions[i] if moving else ())) for i in links]


REQUESTS = tuple(
    Request(name, partial(constraint_function, name=name, inputs=inputs, outputs=(output,)), summary)
    for name, inputs, output, summary in (
        ("constraint", ("q", "t"), "residual", "q, t -> phi (h,) of the holonomic rows"),
        ("constraint_velocity", ("q", "v", "t"), "rate", "q, v, t -> A v + offset (m,), zero where the rows hold"),
        ("constraint_jacobian", ("q", "t"), "jacobian", "q, t -> A (m, nv) of the constraint rows"),
        ("constraint_drift", ("q", "v", "t"), "drift", "q, v, t -> drift (m,): A a + drift = 0"),
    )
)
"""Every request on constraint rows; being here is being tested."""

register(*REQUESTS)
