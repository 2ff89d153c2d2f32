"""What a system is: the protocol `System`; mechanisms; systems given by a Lagrangian; systems written down by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalembert.model.builder import Builder
from dalembert.model.crank_slider import CrankSlider
from dalembert.model.matrices import Matrices
from dalembert.model.mechanism import Mechanism
from dalembert.model.system import System, block_system, solve, unconstrained_acceleration

if TYPE_CHECKING:
    from dalembert.model.lagrangian import Lagrangian
    from dalembert.model.quantities import QUANTITIES

__all__ = [
    "QUANTITIES",
    "Builder",
    "CrankSlider",
    "Lagrangian",
    "Matrices",
    "Mechanism",
    "System",
    "block_system",
    "solve",
    "unconstrained_acceleration",
]


def __getattr__(name: str) -> Any:
    """Import what needs CasADi when it is first used (PEP 562)."""
    if name == "Lagrangian":
        from dalembert.model.lagrangian import Lagrangian

        return Lagrangian
    if name == "QUANTITIES":
        from dalembert.model.quantities import QUANTITIES

        return QUANTITIES
    raise AttributeError(f"module 'dalembert.model' has no attribute {name!r}")
