"""Kinds of joints, each in its file: `KINDS["revolute"].motion(joint, q)`."""

from dalembert.model.joints.kind import Kind, as_array, as_expression
from dalembert.model.joints.kinds import (
    Continuous,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Revolute(),
        Continuous(),
        Prismatic(),
        Helical(),
        Universal(),
        Spherical(),
        Planar(),
        Free(),
        Fixed(),
    )
}
"""Every kind of joint by name; being here is being tested."""

__all__ = ["KINDS", "Kind", "as_array", "as_expression"]
