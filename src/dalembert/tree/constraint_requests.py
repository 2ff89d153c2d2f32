"""What the constraint rows of a mechanism can be compiled to: residual, rate, Jacobian, drift."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dalembert.model.requests import Request, register

if TYPE_CHECKING:
    import casadi as ca

    from dalembert.model.mechanism import Mechanism


def constraint_function(mechanism: Mechanism, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> ca.Function:
    """Return the function of some fields of `Assembled`, on the prepared tree with the fewest operations."""
    import casadi as ca

    from dalembert.model.constraints import assemble
    from dalembert.tree.choice import candidates
    from dalembert.tree.frame_kinematics import TreeKinematics

    def traced(tree: object) -> ca.Function:
        sizes = {"q": mechanism.nq, "v": mechanism.nv, "t": 1}
        symbols = {each: ca.SX.sym(each, size) for each, size in sizes.items()}
        rows = assemble(TreeKinematics(mechanism, tree, *symbols.values()))  # type: ignore[arg-type]
        expressions = [ca.SX(getattr(rows, each)) for each in outputs]
        return ca.Function(name, [symbols[each] for each in inputs], expressions, list(inputs), list(outputs))

    return min(map(traced, candidates(mechanism)), key=lambda function: function.n_instructions())


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
