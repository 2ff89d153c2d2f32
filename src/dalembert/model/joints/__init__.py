"""Kinds of joints, by name: `KINDS["revolute"].motion(joint, q)`."""

from dalembert.model.joints.kind import Kind, as_array, as_expression
from dalembert.model.joints.kinds import (
    ContinuousJoint,
    FixedJoint,
    FreeJoint,
    HelicalJoint,
    PlanarJoint,
    PrismaticJoint,
    RevoluteJoint,
    SphericalJoint,
    UniversalJoint,
)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        RevoluteJoint(),
        ContinuousJoint(),
        PrismaticJoint(),
        HelicalJoint(),
        UniversalJoint(),
        SphericalJoint(),
        PlanarJoint(),
        FreeJoint(),
        FixedJoint(),
    )
}
"""Every kind of joint by name; being here is being tested."""

__all__ = ["KINDS", "Kind", "as_array", "as_expression"]
