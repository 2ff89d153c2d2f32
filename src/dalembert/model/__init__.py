"""Systems: the protocol `System`; mechanisms; systems given by a Lagrangian; systems written down by hand."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.lagrangian.quantities import QUANTITIES
    from dalembert.model.matrices import Matrices
    from dalembert.model.mechanism.builder import Builder
    from dalembert.model.mechanism.inertia import Inertia
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.placement import Placement
    from dalembert.model.system import System, block_system, solve, unconstrained_acceleration

_ON_FIRST_USE = {
    "Builder": "mechanism.builder",
    "Inertia": "mechanism.inertia",
    "Lagrangian": "lagrangian.lagrangian",
    "Matrices": "matrices",
    "Mechanism": "mechanism.mechanism",
    "Placement": "mechanism.placement",
    "QUANTITIES": "lagrangian.quantities",
    **dict.fromkeys(("System", "block_system", "solve", "unconstrained_acceleration"), "system"),
}
"""Names by file: a robot that is read and compiled before waits neither for SciPy nor for CasADi."""

__all__ = [
    "QUANTITIES",
    "Builder",
    "Inertia",
    "Lagrangian",
    "Matrices",
    "Mechanism",
    "Placement",
    "System",
    "block_system",
    "solve",
    "unconstrained_acceleration",
]


def __getattr__(name: str) -> Any:
    """Import a file of the room when a name of it is first used (PEP 562)."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'dalembert.model' has no attribute {name!r}")
    value = getattr(import_module(f"dalembert.model.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = value
    return value
