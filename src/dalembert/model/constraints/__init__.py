"""Constraints: between frames, between coordinates, prescribed in time, non-holonomic, or any expression."""

from dalembert.model.constraints.assemble import Assembled, assemble
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.coupler import Coupler
from dalembert.model.constraints.cylindrical import Cylindrical
from dalembert.model.constraints.distance import Distance
from dalembert.model.constraints.expression import Expression
from dalembert.model.constraints.kinematics import FrameKinematics, Kinematics
from dalembert.model.constraints.planar import Planar
from dalembert.model.constraints.point import Point
from dalembert.model.constraints.point_in_plane import PointInPlane
from dalembert.model.constraints.point_on_line import PointOnLine
from dalembert.model.constraints.prismatic import Prismatic
from dalembert.model.constraints.revolute import Revolute
from dalembert.model.constraints.rolling import Rolling
from dalembert.model.constraints.servo import Servo
from dalembert.model.constraints.universal import Universal
from dalembert.model.constraints.weld import Weld

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
