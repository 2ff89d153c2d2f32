"""Constraints: between frames, between coordinates, prescribed in time, non-holonomic, or any expression."""

from dalembert.model.constraints.all_rows import Assembled, assemble
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.expression import Expression
from dalembert.model.constraints.pairs import (
    Cylindrical,
    Distance,
    Planar,
    Point,
    PointInPlane,
    PointOnLine,
    Prismatic,
    Revolute,
    Universal,
    Weld,
)
from dalembert.model.constraints.prescribed import Coupler, Servo
from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
from dalembert.model.constraints.rolling import Rolling

KINDS: tuple[type[Constraint], ...] = (
    Point,
    Weld,
    Revolute,
    Prismatic,
    Cylindrical,
    Universal,
    Planar,
    Distance,
    Coupler,
    PointOnLine,
    PointInPlane,
    Rolling,
    Servo,
    Expression,
)
"""Every constraint; being here is being tested."""

__all__ = [
    "KINDS",
    "Assembled",
    "Constraint",
    "Coupler",
    "Cylindrical",
    "Distance",
    "Expression",
    "FrameKinematics",
    "Kinematics",
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
    "assemble",
]
