"""dalembert: constrained mechanics for Python.

Describe a mechanism, or hand over its matrices; get accelerations, constraint forces and impacts, each with a
certificate, and the reason in plain words where there is no answer.  `import dalembert as da`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dalembert._version import __version__
from dalembert.errors import (
    DalembertError,
    MissingExtraError,
    ModelError,
    ShapeError,
    SolvabilityError,
    UnsupportedError,
)
from dalembert.kkt import KKT, Certificate, Diagnosis, Solution, Status

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.model import Lagrangian, System
    from dalembert.simulate import Trajectory, simulate

_ON_FIRST_USE = {
    "Kernel": "dalembert.kernel",
    "Lagrangian": "dalembert.model",
    "System": "dalembert.model",
    "Trajectory": "dalembert.simulate",
    "simulate": "dalembert.simulate",
}
"""Names whose rooms import CasADi or LLVM; a program that solves block systems alone never waits for these."""

__all__ = [
    "KKT",
    "Certificate",
    "DalembertError",
    "Diagnosis",
    "Kernel",
    "Lagrangian",
    "MissingExtraError",
    "ModelError",
    "ShapeError",
    "Solution",
    "SolvabilityError",
    "Status",
    "System",
    "Trajectory",
    "UnsupportedError",
    "__version__",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import what is heavy when it is first used (PEP 562)."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'dalembert' has no attribute {name!r}")
    room = import_module(_ON_FIRST_USE[name])
    value = room if room.__name__ == f"dalembert.{name}" else getattr(room, name)  # a room called like its function
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
