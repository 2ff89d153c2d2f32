"""URDF: links and joints of a tree, and what tools have added to it.

The specification is what urdfdom reads: http://wiki.ros.org/urdf/XML, with `quat_xyzw` of URDF 1.1. Coordinates come in
Pinocchio's order: depth first, the children of a link by the name of their joint.
"""

from __future__ import annotations

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.parts import Body, CollisionShape, Visual
from dalembert.model.mechanism.placement import Placement
from dalembert.readers.collisions import collision_shape, note_lost_shapes, touching_or_noted, with_mesh
from dalembert.readers.draft import Draft
from dalembert.readers.files import Folders
from dalembert.readers.urdf.joints import LOOP_READERS, note_circles, read_joint, read_mimic, read_transmission
from dalembert.readers.visuals import Color, drawn_or_noted, mesh_visual, note_meshes, read_color
from dalembert.readers.xml_tree import XmlElement, blame, number_attribute, origin, shortened, vector_attribute

PRODUCTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
SHAPES = ("visual", "collision")
JOINTS = ("joint", "drake:joint")
ATTRIBUTES = {
    tag: frozenset(names.split())
    for tag, names in {
        "robot": "name version",
        "link": "name",
        "inertial": "",
        "mass": "value",
        "inertia": " ".join(PRODUCTS),
        "joint": "name type",
        "drake:joint": "name type",
        "parent": "link",
        "child": "link",
        "origin": "xyz rpy quat_xyzw",
        "axis": "xyz",
        "limit": "lower upper effort velocity",
        "dynamics": "damping friction",
        "mimic": "joint multiplier offset",
    }.items()
}
"""Attributes of the elements that are read; others are named in the notes, for they may be misspelt."""

VERSIONS = ("1.0", "1.1", "1.2")


def read_urdf(root: XmlElement, folders: Folders) -> Draft:
    """Return what a <robot> element says."""
    _refuse_xacro(root)
    draft = Draft(root.attributes.get("name", "").strip() or "robot", root.file)
    _note_attributes(root, draft)
    for element in root.children:
        if element.tag == "link":
            draft.bodies.append(_link(element, draft))
        elif element.tag in JOINTS:
            draft.joints.append(read_joint(element, draft))
    if not draft.bodies:
        raise root.error("no <link>: there is nothing to move")
    _refuse_twins(draft)
    _refuse_several_roots(draft)
    joints = {joint.name: joint for joint in draft.joints}
    for element in root.children:
        if element.tag in JOINTS:
            read_mimic(element, joints, draft)
        elif element.tag in LOOP_READERS:
            LOOP_READERS[element.tag](element, draft)
        elif element.tag == "transmission":
            read_transmission(element, joints, draft)
        elif element.tag not in ("link", "material"):
            draft.leave_out(element)
    note_circles(draft)
    materials = {element.attributes.get("name", ""): element for element in root.all("material")}
    for link in root.all("link"):
        for element in link.all("visual"):
            with drawn_or_noted(element, draft):
                draft.visuals += _visual(link.attribute("name"), element, materials, folders)
        for element in link.all("collision"):
            with touching_or_noted(element, draft):
                draft.collision_shapes += _collision(link.attribute("name"), element, folders)
    note_lost_shapes(draft, folders)
    note_meshes(root, "filename", folders, draft)
    return draft


def _note_attributes(root: XmlElement, draft: Draft) -> None:
    """Name attributes of links and joints that mean nothing, and a version that nobody has written down."""
    version = root.attributes.get("version", "1.0").strip()
    if version not in VERSIONS:
        draft.notes.append(f"{root.source}: version {shortened(version)!r} is not known; read as {VERSIONS[-1]}")
    todo = [root]
    while todo:
        element = todo.pop()
        draft.leave_out_attributes(element, ATTRIBUTES[element.tag])
        todo += [child for child in reversed(element.children) if child.tag in ATTRIBUTES]


def _link(element: XmlElement, draft: Draft) -> Body:
    """Return a link; one without <inertial> is massless, as in Pinocchio."""
    draft.leave_out_unknown(element, ("inertial", *SHAPES))
    draft.shapes += [element.attribute("name")] * len(element.all("collision"))
    inertial = element.only("inertial")
    inertia = Inertia() if inertial is None else _inertia(inertial, draft)
    return Body(element.attribute("name"), inertia, element.source)


def _visual(body: str, element: XmlElement, materials: dict[str, XmlElement], folders: Folders) -> list[Visual]:
    """Return the shape of a <visual>."""
    X, color = origin(element), _color(element, materials)
    shape = next(iter(element.required("geometry").children), None)
    if shape is None:
        raise element.error("its <geometry> is empty")
    if shape.tag == "mesh":
        scale = vector_attribute(shape, "scale", (1.0, 1.0, 1.0))
        return [mesh_visual(body, shape.attribute("filename"), scale, X, color, element, folders)]
    if shape.tag == "box":
        size = vector_attribute(shape, "size", (0.0, 0.0, 0.0))
    elif shape.tag == "sphere":
        size = (number_attribute(shape, "radius"),)
    elif shape.tag in ("cylinder", "capsule"):
        size = (number_attribute(shape, "radius"), number_attribute(shape, "length"))
    else:
        raise element.error(f"<{shortened(shape.tag)}> is no shape of URDF")
    if min(size) < 0.0:
        raise element.error(f"the size of its <{shape.tag}> is negative")
    return [Visual(body, shape.tag, tuple(size), X, color, source=element.source)]


def _collision(body: str, element: XmlElement, folders: Folders) -> list[CollisionShape]:
    """Return the shape of a <collision>; URDF has no law of contact, Drake's property of friction is read."""
    mu = [item for item in element.walk() if item.tag in ("drake:mu_static", "drake:mu_dynamic")]
    law = {"friction": max(number_attribute(mu[0], "value"), 0.0)} if mu else {}
    name, shape = element.attributes.get("name", "").strip(), element.required("geometry").children
    return [
        with_mesh(
            collision_shape(visual, element, name, **law), shape[0].attributes.get("filename", ""), element, folders
        )
        for visual in _visual(body, element, {}, folders)
    ]


def _color(visual: XmlElement, materials: dict[str, XmlElement]) -> Color | None:
    """Return the colour of a visual: of its own <material>, or of the robot's material of that name."""
    material = visual.first("material")
    if material is None:
        return None
    color = material.first("color") or materials.get(material.attributes.get("name", ""), material).first("color")
    return None if color is None else read_color(color, color.attributes.get("rgba", ""))


def _inertia(inertial: XmlElement, draft: Draft) -> Inertia:
    """Return mass, centre and moments in the link's frame: those in the file are given in <origin>'s axes."""
    draft.leave_out_unknown(inertial, ("origin", "mass", "inertia"))
    mass = number_attribute(inertial.required("mass"), "value")
    moments = inertial.required("inertia")
    xx, xy, xz, yy, yz, zz = (number_attribute(moments, name) for name in PRODUCTS)
    place: Placement = origin(inertial)
    with blame(inertial):
        return Inertia(mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])).moved(place)


def _refuse_twins(draft: Draft) -> None:
    """Refuse two links of one name."""
    first: dict[str, Body] = {}
    for body in draft.bodies:
        other = first.setdefault(body.name, body)
        if other is not body:
            raise ModelError(
                f"two of this name: link {shortened(body.name)!r} is there already, first in {other.source}",
                body.source,
            )


def _refuse_several_roots(draft: Draft) -> None:
    """Refuse links that no joint carries but the first: a URDF is one tree. Links that are missing are named later."""
    carried = {joint.child for joint in draft.joints}
    roots = [body for body in draft.bodies if body.name not in carried]
    ends = carried | {joint.parent for joint in draft.joints}
    if len(roots) > 1 and ends <= {body.name for body in draft.bodies}:
        names = ", ".join(repr(body.name) for body in roots[:5])
        more = " and more" if len(roots) > 5 else ""
        raise ModelError(
            f"a URDF has one root, but no joint carries {names}{more}; give all but one a joint", roots[1].source
        )


def _refuse_xacro(root: XmlElement) -> None:
    """Refuse a file whose macros are not expanded."""
    for element in root.walk():
        if element.tag.startswith("xacro:"):
            raise element.error(
                f"a xacro file that has not been expanded; do so first: xacro {root.file} > robot.urdf",
                UnsupportedError,
            )
