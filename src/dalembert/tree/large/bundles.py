"""Arrays that do not change from call to call, handed to compiled code as one object.

To hand over an array costs a tenth of a microsecond: sixty of them as much as forty bodies. A bundle is made once for
each thread, and its fields are taken out inside.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.experimental import structref

from dalembert.kernel.loops import loop


class _Fields(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Return the fields' types without the values that literals have."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


@structref.register
class TreeType(_Fields):
    """The compiled type of a `TreeBundle`."""


@structref.register
class MotionType(_Fields):
    """The compiled type of a `MotionBundle`."""


@structref.register
class FrontType(_Fields):
    """The compiled type of a `FrontBundle`."""


class TreeBundle(structref.StructRefProxy):
    """Layout and memory of an open tree's forward dynamics."""


class MotionBundle(structref.StructRefProxy):
    """Layout and memory of the sweep outward."""


class FrontBundle(structref.StructRefProxy):
    """Layout, plan and memory of elimination by fronts."""


structref.define_proxy(TreeBundle, TreeType, ["layout", "still", "start", "memory"])
structref.define_proxy(MotionBundle, MotionType, ["layout", "still", "memory"])
structref.define_proxy(
    FrontBundle,
    FrontType,
    ["layout", "plan", "sizes", "rows", "limits", "memory", "stacks", "work", "rows_work", "room"],
)


@loop()
def tree_bundle(layout, still, start, memory):
    """Return (topology, gathering, C, pitch, inertia, armature), zeros, the ground's acceleration, (K, Y, A) in one."""
    return TreeBundle(layout, still, start, memory)


@loop()
def motion_bundle(layout, still, memory):
    """Return (topology, C, pitch, inertia), accelerations of zero, and (K, P, V, need) in one."""
    return MotionBundle(layout, still, memory)


@loop()
def front_bundle(layout, plan, sizes, rows, limits, memory, stacks, work, rows_work, room):
    """Return what `plain_answer` takes apart."""
    return FrontBundle(layout, plan, sizes, rows, limits, memory, stacks, work, rows_work, room)
