"""Requests that loops can answer, and the size from which they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalembert.model.joints import KINDS
from dalembert.model.requests import register_looped

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint
    from dalembert.model.requests import RouteTable

# ----------------------------------------------------------------------------------------------------------------------
# The size from which a mechanism is not unrolled: operations of its forward dynamics, estimated from its structure.
#
# Straight-line code is faster per body as long as it fits the processor's caches, but it has to be traced and compiled:
# 0.1 to 0.6 ms an operation. Loops are compiled once for all mechanisms.


LARGEST_UNROLLED = 60_000
"""Estimated operations beyond which nothing is unrolled, minutes of compiling: a chain of about 260 hinges."""

LARGEST_TREE = 30_000
"""Those of the bodies alone beyond which loops take over where there are some: a chain of 130 hinges, 10 to 20 s of
compiling for each of several kernels. A robot with many rows stays in straight-line code."""

PER_BODY, PER_VELOCITY, PER_ROW = 60, 170, 200
"""Operations of the articulated-body algorithm, counted on chains and trees, and of a row with its forces."""


def estimated_operations(mechanism: Mechanism) -> int:
    """Return about how many operations unrolled forward dynamics would have."""
    return sum(_estimates(mechanism))


def _estimates(mechanism: Mechanism) -> tuple[int, int]:
    """Return the operations of bodies, and of rows."""
    memory = mechanism.__dict__
    if "_estimated_operations" not in memory:  # not by the mechanism's hash: that of a large one takes seconds
        memory["_estimated_operations"] = _estimate(mechanism)
    return memory["_estimated_operations"]


def _estimate(mechanism: Mechanism) -> tuple[int, int]:
    tree = sum(map(_of_joint, mechanism.joints))
    if tree > LARGEST_UNROLLED:
        return tree, 0  # rows only add to it, and naming them all takes a while
    m = len(mechanism.names)
    path = min(m * mechanism.nv, 40 * m)
    return tree, PER_ROW * m + 12 * path + m * m * min(mechanism.nv, 40) // 2 + m**3 // 6


def _of_joint(joint: Joint) -> int:
    return PER_BODY + PER_VELOCITY * KINDS[joint.kind].nv if joint.kind != "fixed" else 0


def why_large(mechanism: Mechanism) -> str:
    """Return in words why a mechanism is not unrolled."""
    bodies, rows = _estimates(mechanism)
    if bodies > LARGEST_TREE:
        return f"about {bodies:,} operations of its bodies are more than {LARGEST_TREE:,}"
    return f"about {bodies + rows:,} operations are more than {LARGEST_UNROLLED:,}"


def is_large(mechanism: Mechanism) -> bool:
    """Say whether a mechanism's kernels are loops unless asked otherwise."""
    return _estimates(mechanism)[0] > LARGEST_TREE or estimated_operations(mechanism) > LARGEST_UNROLLED


def too_long(mechanism: Mechanism) -> str:
    """Say in words why no stepper in straight-line code takes a mechanism; nothing of one that it takes.

    What counts is the way to the ground: bodies beside each other are compiled one by one, a chain is one expression.
    """
    ways: list[int] = []
    for joint, parent in zip(mechanism.joints, mechanism.parents, strict=True):  # parents come first
        ways.append(_of_joint(joint) + (ways[parent] if parent >= 0 else 0))
    longest = max(ways, default=0)
    if longest <= LARGEST_TREE:
        return ""
    return f"about {longest:,} operations along its longest chain of joints are more than {LARGEST_TREE:,}"


# ----------------------------------------------------------------------------------------------------------------------
# Requests that loops answer: the table that `compile` looks into when a mechanism is large, or when asked to.


OF_MOTION = (
    "kinematics", "velocity", "jacobian", "jacobian_drift", "energy", "center_of_mass", "center_of_mass_velocity",
    "momentum", "momentum_rate",
)  # fmt: skip

OF_THE_BLOCK = (
    "impact", "project", "project_velocity", "project_step", "kkt", "delassus", "delassus_factor", "delassus_solve",
)  # fmt: skip

LOOPED = (
    "forward", "aba", "inverse", "mass_matrix", "coriolis_matrix", "bias", "gravity", *OF_MOTION,
    *OF_THE_BLOCK,
    "constraint", "constraint_velocity", "constraint_jacobian", "constraint_drift",
)  # fmt: skip
"""Every request that has loops; being here is being tested."""

REFUSED = (
    "joint_forces", "joint_forces_of_motion", "joint_forces_of_multipliers",
    "forward_derivatives", "inverse_derivatives", "impact_derivatives", "regressor",
    "integrate", "difference", "rate",
)  # fmt: skip
"""Requests of which a large mechanism says that it has none, instead of unrolling them for hours."""


def looped(mechanism: Mechanism, what: str, options: dict[str, Any], kernel: dict[str, Any]) -> Kernel | None:
    """Return a kernel of loops where they are asked for or the mechanism is large, else None."""
    requested = kernel.get("backend") == "looped"
    large = estimated_operations(mechanism) > LARGEST_UNROLLED if what in REFUSED else is_large(mechanism)
    if not requested and ("backend" in kernel or not large):
        return None
    reason = f"as asked; about {estimated_operations(mechanism):,} operations" if requested else why_large(mechanism)
    from dalembert.large.dynamics_functions import MAKERS
    from dalembert.large.looped_kernel import LoopedKernel

    return LoopedKernel(mechanism, what, options, MAKERS[what], kernel, reason)


def looped_routes(mechanism: Mechanism, what: str) -> RouteTable | None:
    """Return the table of routes of a large mechanism, else None."""
    if not is_large(mechanism) or not (mechanism.names or what == "forward"):
        return None
    from dalembert.large.looped_routes import looped_table

    return looped_table(mechanism, what)


register_looped(looped, (*LOOPED, *REFUSED), looped_routes)
