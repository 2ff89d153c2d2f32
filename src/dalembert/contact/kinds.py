"""Kinds of shapes as the loops number them, and what their three sizes are."""

from __future__ import annotations

SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID, HULL, PLANE, HEIGHTFIELD = range(8)

POINT = SPHERE
"""A point is a sphere whose radius is zero."""

KINDS = {
    "sphere": ("radius",),
    "capsule": ("radius", "half the length between the caps"),
    "box": ("half the edge along x", "along y", "along z"),
    "cylinder": ("radius", "half the length"),
    "ellipsoid": ("radius along x", "along y", "along z"),
    "hull": (),
    "plane": (),
    "heightfield": (),
}
"""Kinds by their number, and what `size` holds. Axes of capsules and cylinders are z, as is the normal of a plane."""

NUMBERS = {name: number for number, name in enumerate(KINDS)}
"""Numbers of the kinds by name."""
