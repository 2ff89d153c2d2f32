"""dalembert: constrained mechanics for Python.

Describe a mechanism, or hand over its matrices; get accelerations, constraint forces and impacts, each with a
certificate, and the reason in plain words where there is no answer.  `import dalembert as da`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dalembert._version import __version__
from dalembert.errors import (
    DalembertError,
    MissingExtraError,
    ModelError,
    ModelWarning,
    ShapeError,
    SolvabilityError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from dalembert import examples
    from dalembert.ensemble import Study, ensemble, normal, uniform, values
    from dalembert.friction import (
        BearingFriction,
        Bounded,
        Coulomb,
        Dry,
        Hyperbolic,
        JointFriction,
        StaticKinetic,
        Stribeck,
        Tabulated,
        Unilateral,
    )
    from dalembert.kernel import Kernel
    from dalembert.kkt import KKT, Certificate, Diagnosis, Solution, Status
    from dalembert.model import Builder, Lagrangian, Matrices, Mechanism, Placement, System
    from dalembert.model.constraints import (
        Coupler,
        Cylindrical,
        Distance,
        Expression,
        Planar,
        Point,
        PointInPlane,
        PointOnLine,
        Prismatic,
        Revolute,
        Rolling,
        Servo,
        Universal,
        Weld,
    )
    from dalembert.readers import load
    from dalembert.scenes import Scene, scene
    from dalembert.simulate import DAE, Event, Problem, Table, Trajectory, hold, resume, simulate
    from dalembert.simulate.contact import Box, Contact, Heightfield, JointLimits, Plane, Sphere
    from dalembert.tableau import Tableau

_CONSTRAINTS = (
    "Coupler",
    "Cylindrical",
    "Distance",
    "Expression",
    "Planar",
    "Point",
    "PointInPlane",
    "PointOnLine",
    "Prismatic",
    "Revolute",
    "Rolling",
    "Servo",
    "Universal",
    "Weld",
)

_FRICTION = (
    "BearingFriction",
    "Bounded",
    "Coulomb",
    "Dry",
    "Hyperbolic",
    "JointFriction",
    "StaticKinetic",
    "Stribeck",
    "Tabulated",
    "Unilateral",
)

_ON_FIRST_USE = {
    **dict.fromkeys(("KKT", "Certificate", "Diagnosis", "Solution", "Status"), "dalembert.kkt"),
    "Kernel": "dalembert.kernel",
    "examples": "dalembert.examples",
    **dict.fromkeys(("Study", "ensemble", "normal", "uniform", "values"), "dalembert.ensemble"),
    **dict.fromkeys(("Builder", "Lagrangian", "Matrices", "Mechanism", "Placement", "System"), "dalembert.model"),
    **dict.fromkeys(_CONSTRAINTS, "dalembert.model.constraints"),
    **dict.fromkeys(_FRICTION, "dalembert.friction"),
    "load": "dalembert.readers",
    **dict.fromkeys(("Scene", "scene"), "dalembert.scenes"),
    **dict.fromkeys(
        ("DAE", "Event", "Problem", "Table", "Trajectory", "hold", "resume", "simulate"), "dalembert.simulate"
    ),
    **dict.fromkeys(("Box", "Contact", "Heightfield", "JointLimits", "Plane", "Sphere"), "dalembert.simulate.contact"),
    "Tableau": "dalembert.tableau",
}
"""Names by room: SciPy, CasADi and LLVM are imported with the room that needs them, when it is first used."""

__all__ = [
    "DAE",
    "KKT",
    "BearingFriction",
    "Bounded",
    "Box",
    "Builder",
    "Certificate",
    "Contact",
    "Coulomb",
    "Coupler",
    "Cylindrical",
    "DalembertError",
    "Diagnosis",
    "Distance",
    "Dry",
    "Event",
    "Expression",
    "Heightfield",
    "Hyperbolic",
    "JointFriction",
    "JointLimits",
    "Kernel",
    "Lagrangian",
    "Matrices",
    "Mechanism",
    "MissingExtraError",
    "ModelError",
    "ModelWarning",
    "Placement",
    "Planar",
    "Plane",
    "Point",
    "PointInPlane",
    "PointOnLine",
    "Prismatic",
    "Problem",
    "Revolute",
    "Rolling",
    "Scene",
    "Servo",
    "ShapeError",
    "Solution",
    "SolvabilityError",
    "Sphere",
    "StaticKinetic",
    "Status",
    "Stribeck",
    "Study",
    "System",
    "Table",
    "Tableau",
    "Tabulated",
    "Trajectory",
    "Unilateral",
    "Universal",
    "UnsupportedError",
    "Weld",
    "__version__",
    "ensemble",
    "examples",
    "hold",
    "load",
    "normal",
    "resume",
    "scene",
    "simulate",
    "uniform",
    "values",
]

_FUNCTIONS = ("ensemble", "simulate")
"""Rooms whose one function has their name: in `da` that is the function."""


def __getattr__(name: str) -> Any:
    """Import what is heavy when it is first used (PEP 562)."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'dalembert' has no attribute {name!r}")
    room = import_module(_ON_FIRST_USE[name])
    value = room if room.__name__ == f"dalembert.{name}" and name not in _FUNCTIONS else getattr(room, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """The package; importing the rooms `dalembert.simulate` and `dalembert.ensemble` does not hide their functions."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to other processes by name, as modules do: a function of a notebook that says `da.` goes with it."""
        return import_module, (self.__name__,)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _FUNCTIONS or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
