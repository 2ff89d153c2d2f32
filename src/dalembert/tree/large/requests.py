"""What loops can compute: the table that `compile` looks into when a mechanism is large, or when asked to."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dalembert.model.requests import register_looped
from dalembert.tree.large.choice import LARGEST_UNROLLED, estimated_operations, is_large

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.model.mechanism import Mechanism

OF_MOTION = (
    "kinematics", "velocity", "jacobian", "jacobian_drift", "energy", "center_of_mass", "center_of_mass_velocity",
    "momentum", "momentum_rate",
)  # fmt: skip

OF_THE_BLOCK = (
    "impact", "project", "project_velocity", "project_step", "kkt", "delassus", "delassus_factor", "delassus_solve",
)  # fmt: skip

LOOPED = (
    "forward", "aba", "inverse", "mass_matrix", "bias", "gravity", *OF_MOTION,
    *OF_THE_BLOCK,
    "constraint", "constraint_velocity", "constraint_jacobian", "constraint_drift",
)  # fmt: skip
"""Every request that has loops; being here is being tested."""


def looped(mechanism: Mechanism, what: str, options: dict[str, Any], kernel: dict[str, Any]) -> Kernel | None:
    """Return a kernel of loops where they are asked for or the mechanism is large, else None."""
    asked = kernel.get("backend") == "looped"
    if not asked and ("backend" in kernel or not is_large(mechanism)):
        return None
    size = f"about {estimated_operations(mechanism):,} operations"
    reason = f"as asked; {size}" if asked else f"{size} are more than {LARGEST_UNROLLED:,}"
    kind = "motion" if what in OF_MOTION else "block" if what in OF_THE_BLOCK else "dynamic"
    makers = import_module(f"dalembert.tree.large.{kind}_quantities")
    make = getattr(makers, f"make_{what}")
    return import_module("dalembert.tree.large.kernel").LoopedKernel(mechanism, what, options, make, kernel, reason)


register_looped(looped, LOOPED)
