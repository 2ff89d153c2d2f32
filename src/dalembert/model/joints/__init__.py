"""Kinds of joints, each in its file: `KINDS["revolute"].motion(joint, q)`."""

from dalembert.model.joints.continuous import Continuous
from dalembert.model.joints.fixed import Fixed
from dalembert.model.joints.free import Free
from dalembert.model.joints.helical import Helical
from dalembert.model.joints.kind import Kind, as_array, as_expression
from dalembert.model.joints.planar import Planar
from dalembert.model.joints.prismatic import Prismatic
from dalembert.model.joints.revolute import Revolute
from dalembert.model.joints.spherical import Spherical
from dalembert.model.joints.universal import Universal

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
