"""Systems: the protocol `System`; mechanisms; systems given by a Lagrangian; systems written down by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.first_use import on_first_use

if TYPE_CHECKING:
    from dalembert.model.joints import KINDS
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.lagrangian.quantities import QUANTITIES
    from dalembert.model.matrices import Matrices
    from dalembert.model.mechanism.builder import Builder
    from dalembert.model.mechanism.inertia import Inertia
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Body, Frame, Joint
    from dalembert.model.mechanism.placement import Placement
    from dalembert.model.requests import REFERENCES
    from dalembert.model.system import System, block_system, solve, unconstrained_acceleration

_ON_FIRST_USE = {
    **dict.fromkeys(("Body", "Frame", "Joint"), "mechanism.parts"),
    "Builder": "mechanism.builder",
    "Inertia": "mechanism.inertia",
    "KINDS": "joints",
    "Lagrangian": "lagrangian.lagrangian",
    "Matrices": "matrices",
    "Mechanism": "mechanism.mechanism",
    "Placement": "mechanism.placement",
    "QUANTITIES": "lagrangian.quantities",
    "REFERENCES": "requests",
    **dict.fromkeys(("System", "block_system", "solve", "unconstrained_acceleration"), "system"),
}
"""Names by file: a robot that is read and compiled before waits neither for SciPy nor for CasADi."""

__all__ = [
    "KINDS",
    "QUANTITIES",
    "REFERENCES",
    "Body",
    "Builder",
    "Frame",
    "Inertia",
    "Joint",
    "Lagrangian",
    "Matrices",
    "Mechanism",
    "Placement",
    "System",
    "block_system",
    "solve",
    "unconstrained_acceleration",
]


__getattr__ = on_first_use(__name__, _ON_FIRST_USE)
