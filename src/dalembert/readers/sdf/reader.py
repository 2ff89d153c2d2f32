"""SDF 1.4 to 1.12: models with links, joints, frames and nested models; joints that close loops become loops.

A model that is not static and that no joint holds to the world floats: its root has a free joint, as in a simulator.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import UnsupportedError, advised
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.parts import FILE_POSE, Body, CollisionShape, Frame, Joint, Source, Visual
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.collisions import collision_shape, note_lost_shapes, touching_or_noted, with_mesh
from dalembert.readers.draft import GROUND, Draft
from dalembert.readers.files import Folders
from dalembert.readers.sdf.joints import read_actuator, read_gearbox, read_joint, read_mimic
from dalembert.readers.sdf.scope import MODEL, Scope, pose_of, relative_to, text_of, version_of
from dalembert.readers.spanning import as_loop, span
from dalembert.readers.visuals import drawn_or_noted, mesh_visual, note_meshes, read_color
from dalembert.readers.xml_tree import XmlElement, blame, number_text, numbers, read_xml, shortened, truth_text

# ----------------------------------------------------------------------------------------------------------------------
# <include> of an SDF file: the model it names, read from the model's folder or a declared package.


MOST = 1000
"""Files included; a chain of files that include each other twice would be endless otherwise."""

DEEPEST = 20
"""Files that include files that include files."""


@dataclass
class Includes:
    """Files that may be included, and how many were."""

    folders: Folders
    count: int = 0
    open: list[Path] = field(default_factory=list)

    def enter(self, include: XmlElement) -> tuple[XmlElement, XmlElement]:
        """Return the <sdf> and the <model> of an included file, with the changes that the <include> asks for."""
        path = self._file(include)
        self.count += 1
        if path in self.open:
            raise include.error(f"{path.name} includes itself")
        if self.count > MOST or len(self.open) >= DEEPEST:
            raise include.error(f"too many files include each other (limits: {MOST} in all, {DEEPEST} deep)")
        root = read_xml(path)
        if root.tag != "sdf":
            raise include.error(f"{path.name} is not SDF but <{shortened(root.tag)}>", UnsupportedError)
        models = root.all("model")
        if len(models) != 1:
            raise include.error(f"{path.name} has {len(models)} models; one is needed")
        self.open.append(path)
        return root, _changed(models[0], include)

    def leave(self) -> None:
        """Close the file that was entered last."""
        self.open.pop()

    def _file(self, include: XmlElement) -> Path:
        """Return the file that <uri> names; a folder stands for the file that its model.config names, or model.sdf."""
        uri = include.required("uri")
        near = Path(include.file).resolve().parent
        place = self.folders.find(uri.text, near)
        if place is not None and place.is_dir():
            name, config = "model.sdf", self.folders.allowed(place / "model.config")
            if config is not None and (element := read_xml(config).first("sdf")) is not None:
                name = element.text.strip() or name
            place = self.folders.allowed(place / name)
        if place is None:
            words = f"{shortened(uri.text.strip())!r} was not found in the model's folder or the declared packages"
            advice = "da.load(path, packages={name: folder}) declares one", "--packages FOLDER declares one"
            raise uri.error(advised(words, *advice))
        return place


def _changed(model: XmlElement, include: XmlElement) -> XmlElement:
    """Return the included model with the include's own name, pose, static and placement frame."""
    changed = XmlElement("model", dict(model.attributes), include.line, include.file)
    children = {child.tag: child for child in include.children if child.tag in ("pose", "static")}
    changed.children = [child for child in model.children if child.tag not in children] + list(children.values())
    for tag in ("name", "placement_frame"):
        if (element := include.only(tag)) is not None and element.text.strip():
            changed.attributes[tag] = element.text.strip()
    return changed


# ----------------------------------------------------------------------------------------------------------------------
# <include merge="true"> of SDF 1.9: the parts of the included model become parts of the model that includes it.
#
# What was given relative to the included model's own frame, "__model__", is now relative to a frame
# "_merged__NAME__model__", which stands where the <include> puts it and is attached to the included model's canonical
# link (http://sdformat.org/tutorials?tut=model_merge_include_proposal).


OLDEST_MERGED = (1, 7)
"""Before, axes and poses have other frames by default."""

MOVED = ("link", "model", "include")
"""Elements that stand in the model's frame where they do not say otherwise."""


def is_merged(element: XmlElement) -> bool:
    """Say whether an element is an <include> that merges."""
    return element.tag == "include" and element.attributes.get("merge", "").strip() in ("1", "true")


def merged(model: XmlElement, version: tuple[int, int], include: XmlElement) -> list[XmlElement]:
    """Return the parts of an included model as those of the model around it."""
    if version < OLDEST_MERGED:
        raise include.error("merge of a file older than SDF 1.7; put its elements into the file", UnsupportedError)
    if model.attributes.get("placement_frame", "").strip() or model.first("static") is not None:
        raise include.error(
            "merge with a placement_frame, or of a static model; put its elements into the file", UnsupportedError
        )
    proxy = f"_merged__{model.attribute('name')}__model__"
    carrier = model.attributes.get("canonical_link", "").strip() or _first(model, include)
    frame = XmlElement("frame", {"name": proxy, "attached_to": carrier}, include.line, include.file)
    frame.children = [_pose(model, MODEL)]
    return [frame, *(_part(child, proxy) for child in model.children if child.tag != "pose")]


def _first(model: XmlElement, include: XmlElement) -> str:
    """Return what carries the included model's frame: its first link, else its first model."""
    for tag in ("link", "model"):
        if (element := model.first(tag)) is not None:
            return element.attribute("name")
    raise include.error("the model that it merges has no link")


def _part(element: XmlElement, proxy: str) -> XmlElement:
    """Return a part of the included model, with the proxy in the place of the model's frame."""
    part = _copied(element, proxy)
    if element.tag in MOVED:
        if element.tag == "include" and element.first("pose") is None:
            raise element.error("merged, and without a <pose>; give it one", UnsupportedError)
        part.children = [_pose(part, proxy), *(child for child in part.children if child.tag != "pose")]
    elif element.tag == "frame" and not part.attributes.get("attached_to", "").strip():
        part.attributes["attached_to"] = proxy
    return part


def _copied(element: XmlElement, proxy: str) -> XmlElement:
    """Return a copy in which "__model__" is the proxy; nested models have a "__model__" of their own."""
    attributes = {name: proxy if value.strip() == MODEL else value for name, value in element.attributes.items()}
    copy = XmlElement(element.tag, attributes, element.line, element.file)
    copy.text = proxy if element.text.strip() == MODEL else element.text
    nested = element.tag == "model"
    copy.children = [x if nested and x.tag != "pose" else _copied(x, proxy) for x in element.children]
    return copy


def _pose(element: XmlElement, default: str) -> XmlElement:
    """Return the pose of an element, relative to `default` where it does not say to what."""
    child = element.only("pose")
    pose = XmlElement("pose", {} if child is None else dict(child.attributes), element.line, element.file)
    pose.text = "" if child is None else child.text
    pose.attributes["relative_to"] = relative_to(child) or default
    return pose


# ----------------------------------------------------------------------------------------------------------------------
# Models, links, frames and joints.


OLDEST, NEWEST = (1, 4), (1, 12)
DIAGONAL, PRODUCTS = ("ixx", "iyy", "izz"), ("ixy", "ixz", "iyz")
MODEL_PARTS = ("link", "joint", "frame", "model", "include", "pose", "static", "self_collide", "allow_auto_disable")
SHAPES: dict[str, tuple[tuple[str, int], ...]] = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "ellipsoid": (("radii", 3),),
    "plane": (("size", 2),),
}
"""Shapes of SDF that are drawn: the elements of their numbers, and how many each has."""

LINK_PARTS = ("inertial", "pose", "visual", "collision", "self_collide", "gravity", "enable_wind")


def read_sdf(root: XmlElement, folders: Folders) -> Draft:
    """Return what an <sdf> element says: its model, or all models of its world."""
    version = _checked_version(root)
    worlds, models = root.all("world"), root.all("model")
    if len(worlds) > 1 or (worlds and models):
        raise (worlds[1:] or models)[0].error("more than one world or model in a file; one is read at a time")
    holder = worlds[0] if worlds else root
    reading = _Reading(Draft("model", root.file), Includes(folders))
    for include in filter(is_merged, holder.children):
        raise include.error("only a model can merge another into itself", UnsupportedError)
    tops = [*models, *(holder.all("model") if worlds else []), *holder.all("include")]
    if not tops:
        raise root.error("no <model>")
    if not worlds and len(tops) > 1:
        raise tops[1].error("a second model outside a <world>; put both into one <world>, or load one file each")
    reading.draft.leave_out_unknown(holder, ("model", "include", "gravity", "joint", "frame"))
    _gravity(holder, reading.draft)
    if worlds and (holder.all("joint") or holder.all("frame")):
        reading.enter_world(holder, version)
    else:
        for top in tops:
            reading.enter(top, version, None, alone=len(tops) == 1)
    for scope, place, static in reading.scopes:
        reading.links(scope, place, static)
    reading.connect()
    note_lost_shapes(reading.draft, folders)
    note_meshes(root, "", folders, reading.draft)
    return reading.draft


def _checked_version(root: XmlElement) -> tuple[int, int]:
    version = version_of(root)
    if not OLDEST <= version <= NEWEST:
        raise root.error(f"SDF {version[0]}.{version[1]} is not read; 1.4 to 1.12 are", UnsupportedError)
    return version


def _gravity(holder: XmlElement, draft: Draft) -> None:
    """Take the world's gravity; a model alone has SDF's own default."""
    gravity = holder.only("gravity") if holder.tag == "world" else None
    if gravity is None:
        draft.gravity = (0.0, 0.0, -9.8)
        draft.notes.append("gravity: the file gives none; SDF's default 9.8 m/s^2 is used")
    else:
        x, y, z = numbers(gravity, gravity.text, 3, "gravity")
        draft.gravity = (x, y, z)


@dataclass
class _Reading:
    """One reading: models in the order of the file, then bodies, then what connects them."""

    draft: Draft
    includes: Includes
    scopes: list[tuple[Scope, Placement, bool]] = field(default_factory=list)
    places: dict[str, Placement] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)
    sources: dict[str, Source] = field(default_factory=dict)

    def enter(self, element: XmlElement, version: tuple[int, int], outer: Scope | None, alone: bool = False) -> Scope:
        """Add a model and all models in it; `alone` keeps its name out of the names of its parts."""
        entered = element.tag == "include"
        if entered:
            root, element = self.includes.enter(element)
            version = _checked_version(root)
        element = self._merged(element)
        name = element.attribute("name")
        prefix = "" if alone else f"{'' if outer is None else outer.prefix}{name}::"
        if alone:
            self.draft.name = name
        scope = Scope(_without_includes(element), prefix, version)
        place = IDENTITY
        static = truth_text(element, "static", False)
        self.scopes.append((scope, place, static))
        mine = len(self.scopes) - 1
        self._enter_nested(element, scope)
        if element.attributes.get("canonical_link", "").strip():
            scope.link(MODEL, element)
        self.scopes[mine] = (scope, self._top_place(scope) if outer is None else IDENTITY, static)
        if entered:
            self.includes.leave()
        return scope

    def _merged(self, element: XmlElement) -> XmlElement:
        """Return a model with the parts of those that it merges."""
        if not any(map(is_merged, element.children)):
            return element
        whole = XmlElement(element.tag, element.attributes, element.line, element.file)
        for child in element.children:
            if not is_merged(child):
                whole.children.append(child)
                continue
            root, inner = self.includes.enter(child)
            whole.children += merged(self._merged(inner), _checked_version(root), child)
            self.includes.leave()
        return whole

    def enter_world(self, world: XmlElement, version: tuple[int, int]) -> None:
        """Add a world with joints or frames: the models in it are nested, and its own frame is the ground."""
        copy = XmlElement("world", world.attributes, world.line, world.file)
        copy.children = [child for child in world.children if child.tag in ("joint", "frame")]
        scope = Scope(copy, "", version, placed={MODEL: IDENTITY, GROUND: IDENTITY})
        scope.carried[MODEL] = scope.carried[GROUND] = (scope, GROUND)
        self.places[GROUND] = IDENTITY
        self.scopes.append((scope, IDENTITY, False))
        self._enter_nested(world, scope)

    def _enter_nested(self, element: XmlElement, scope: Scope) -> None:
        """Add the models in a model or a world."""
        for child in element.children:
            if child.tag not in ("model", "include"):
                continue
            inner = self.enter(child, scope.version, scope)
            name = inner.element.attribute("name")
            if name in scope.nested or (name in scope.named and scope.named[name].tag != "model"):
                raise child.error(f"the name {name!r} is taken in {element}")
            scope.nested[name] = inner
            scope.named[name] = inner.element

    def _top_place(self, scope: Scope) -> Placement:
        """Return where a model stands that is in no other."""
        pose = scope.element.only("pose")
        place = IDENTITY if pose is None else pose_of(pose)
        if relative_to(pose) not in ("", "world"):
            raise scope.element.error("models placed relative to others are not read; write the pose", UnsupportedError)
        frame = scope.element.attributes.get("placement_frame", "").strip()
        return place @ scope.placement(frame, scope.element).inverse() if frame else place

    def links(self, scope: Scope, place: Placement, static: bool) -> None:
        """Add the links of a model, and go on with the models in it."""
        draft, element = self.draft, scope.element
        draft.leave_out_unknown(element, MODEL_PARTS)
        self.places[scope.prefix] = place = self.places.get(scope.prefix, place)
        static = static or scope.prefix in self.static
        for name, child in scope.named.items():
            X = place @ scope.placement(name, child)
            if child.tag == "model":
                self.places[scope.nested[name].prefix] = X
                if static:
                    self.static.add(scope.nested[name].prefix)
            elif child.tag == "link":
                full = scope.prefix + name
                draft.shapes += [full] * len(child.all("collision"))
                draft.bodies.append(Body(full, _inertia(child, draft), child.source, _compensation(child, draft)))
                self.places[full], self.sources[full] = X, child.source
                for visual in child.all("visual"):
                    with drawn_or_noted(visual, draft):
                        draft.visuals += _visual(full, visual, place, X, scope, self.includes.folders)
                for collision in child.all("collision"):
                    with touching_or_noted(collision, draft):
                        draft.collision_shapes += _collision(full, collision, place, X, scope, self.includes.folders)
                if static:
                    self.static.add(full)

    def connect(self) -> None:
        """Add joints, loops, couplings and frames."""
        joints, gearboxes, mimics = [], [], []
        for scope, _, _ in self.scopes:
            for name, child in scope.named.items():
                if child.tag == "joint" and child.attribute("type") == "gearbox":
                    gearboxes.append((child, scope))
                elif child.tag == "joint":
                    if (joint := self._joint(child, scope)) is not None:
                        joints.append(joint)
                        mimics.append((child, scope))
                elif child.tag == "frame":
                    self._frame(name, child, scope)
        held = [body.name for body in self.draft.bodies if body.name in self.static]
        anchors = [self._root(name, "fixed", f"{name}_static") for name in held]
        self._tree([*joints, *anchors])
        by_name = {joint.name: joint for joint in self.draft.joints}
        for child, scope in mimics:
            read_mimic(child, scope, by_name, self.draft)
        tree = {frozenset((joint.parent, joint.child)): joint for joint in self.draft.joints}
        for child, scope in gearboxes:
            read_gearbox(child, scope, tree, self.places, self.draft)

    def _tree(self, joints: list[Joint]) -> None:
        """Choose which joints carry bodies; roots that nothing holds float."""
        draft = self.draft
        spanning = span([body.name for body in draft.bodies], joints, GROUND)
        for joint in spanning.tree:
            draft.joints.append(joint)
        for name in spanning.reversed:
            draft.notes.append(f"joint {name!r} is turned around: its parent is carried by its child")
        for name in spanning.roots:
            root_name = "root_joint" if len(spanning.roots) == 1 else f"{name}_root_joint"
            draft.joints.append(self._root(name, "free", draft.new_name("joints", root_name)))
            place = draft.initial[root_name] = self.places[name]
            x, y, z = place.position
            file = draft.poses.setdefault(FILE_POSE, {})
            file[root_name] = (float(x), float(y), float(z), *map(float, place.quaternion()))
            draft.notes.append(
                f"{name!r} floats; the file puts it at ({x:g}, {y:g}, {z:g}) (`pose`), `neutral` at the origin"
            )
        for joint in spanning.loops:
            draft.loops.append(as_loop(joint))
            if any((*joint.damping, *joint.friction, *joint.stiffness)):
                draft.notes.append(f"{joint.source}: closes a loop; its damping, friction and spring are left out")
        draft.rooted = True

    def _root(self, body: str, kind: str, name: str) -> Joint:
        """Return a joint between the ground and a body, which is where the file puts it if it is fixed."""
        placement = self.places[body] if kind == "fixed" else IDENTITY
        return Joint(name, kind, GROUND, body, placement, source=self.sources[body])

    def _joint(self, element: XmlElement, scope: Scope) -> Joint | None:
        """Return a joint with its placements; one between links of a static model is left out."""
        ends = []
        for tag in ("parent", "child"):
            name = text_of(element, tag)
            owner, link = (scope, GROUND) if name == GROUND else scope.link(name, element)
            ends.append(GROUND if link == GROUND else owner.prefix + link)
        parent, child = ends
        if child == GROUND:
            raise element.error("the world cannot be a child")
        if parent == child:
            raise element.error(f"joins {parent!r} to itself")
        if child in self.static and parent in (*self.static, GROUND):
            self.draft.leave_out(element, "in a static model")
            return None
        joint = read_joint(element, scope, (parent, child), self.draft)
        read_actuator(element, joint, self.draft)
        X = self.places[scope.prefix] @ scope.placement(element.attribute("name"), element)
        of_parent = X if parent == GROUND else self.places[parent].inverse() @ X
        return replace(joint, placement=of_parent, child_placement=self.places[child].inverse() @ X)

    def _frame(self, name: str, element: XmlElement, scope: Scope) -> None:
        """Add a frame to the link to which it is attached."""
        owner, link = scope.link(name, element)
        body = owner.prefix + link
        X = self.places[scope.prefix] @ scope.placement(name, element)
        place = self.places[body].inverse() @ X
        self.draft.frames.append(Frame(scope.prefix + name, body, place, element.source))


def _visual(
    body: str, element: XmlElement, place: Placement, link: Placement, scope: Scope, folders: Folders
) -> list[Visual]:
    """Return the shape of a <visual>; `place` and `link` are where its model and its link stand."""
    pose = element.only("pose")
    X = IDENTITY if pose is None else pose_of(pose)
    if frame := relative_to(pose):
        X = link.inverse() @ place @ scope.placement(frame, element) @ X
    diffuse = element.first("material") and element.required("material").first("diffuse")
    color = None if diffuse is None else read_color(diffuse, diffuse.text)
    shape = next(iter(element.required("geometry").children), None)
    if shape is None or shape.tag == "empty":
        return []
    if shape.tag == "mesh":
        scale = shape.first("scale")
        factors = (1.0, 1.0, 1.0) if scale is None else numbers(scale, scale.text, 3, "scale")
        return [mesh_visual(body, text_of(shape, "uri"), factors, X, color, element, folders)]
    if shape.tag not in SHAPES:
        raise element.error(f"<{shortened(shape.tag)}> is not drawn")
    if shape.tag == "plane":
        normal = shape.first("normal")
        X = X @ _turned_to(numbers(normal, normal.text, 3, "normal") if normal else (0.0, 0.0, 1.0))
        edges = numbers(shape.required("size"), text_of(shape, "size"), 2, "size")
        size = (edges[0] / 2, edges[1] / 2)
    else:
        size = tuple(x for tag, n in SHAPES[shape.tag] for x in numbers(shape, text_of(shape, tag), n, tag))
    if min(size) < 0.0:
        raise element.error(f"the size of its <{shape.tag}> is negative")
    return [Visual(body, shape.tag, size, X, color, source=element.source)]


def _collision(
    body: str, element: XmlElement, place: Placement, link: Placement, scope: Scope, folders: Folders
) -> list[CollisionShape]:
    """Return the shape of a <collision> with friction, restitution and bits of its <surface>."""
    law: dict[str, Any] = {}
    surface = element.first("surface")
    for item in surface.walk() if surface is not None else ():
        if item.tag == "mu" and "friction" not in law:
            law["friction"] = max(numbers(item, item.text, 1, "mu")[0], 0.0)
        elif item.tag == "restitution_coefficient":
            law["restitution"] = min(max(numbers(item, item.text, 1, "restitution_coefficient")[0], 0.0), 1.0)
        elif item.tag == "collide_bitmask":
            bits = _bits(item)
            law |= {"group": bits, "mask": bits}
    shape = next(iter(element.required("geometry").children), None)
    reference = text_of(shape, "uri") if shape is not None and shape.tag == "mesh" else ""
    return [
        with_mesh(
            collision_shape(visual, element, element.attributes.get("name", ""), **law), reference, element, folders
        )
        for visual in _visual(body, element, place, link, scope, folders)
    ]


def _bits(element: XmlElement) -> int:
    """Return the number of a bit mask, decimal or hexadecimal."""
    try:
        return int(element.text.strip()[:20], 0) & 0xFFFFFFFF
    except ValueError:
        raise element.error(f"{shortened(element.text)!r} is not a bit mask such as 0x01") from None


def _turned_to(normal: tuple[float, ...]) -> Placement:
    """Return the placement whose z axis is a normal."""
    n = np.array(normal) / (np.linalg.norm(normal) or 1.0)
    across = np.cross([0.0, 0.0, 1.0], n)
    return Placement.from_quaternion((*across, 1.0 + n[2])) if n[2] > -1.0 else Placement.from_quaternion((1, 0, 0, 0))


def _compensation(link: XmlElement, draft: Draft) -> float:
    """Return 1 for a link on which gravity does not act."""
    if truth_text(link, "gravity", True):
        return 0.0
    draft.notes.append(f"{link.source}: gravity does not act on it, as the file says")
    return 1.0


def _without_includes(element: XmlElement) -> XmlElement:
    """Return a model without what it includes, which enters by its own way."""
    copy = XmlElement(element.tag, element.attributes, element.line, element.file)
    copy.children = [child for child in element.children if child.tag not in ("include", "model")]
    return copy


def _inertia(link: XmlElement, draft: Draft) -> Inertia:
    """Return a link's inertia in its frame; what the file does not say is SDF's default, 1 kg and 1 kg m^2."""
    draft.leave_out_unknown(link, LINK_PARTS)
    inertial = link.only("inertial")
    if inertial is None:
        draft.notes.append(f"{link.source}: no <inertial>; SDF's default of 1 kg and 1 kg m^2 is used")
        return Inertia(1.0, np.zeros(3), np.eye(3))
    if inertial.attributes.get("auto", "").strip() in ("1", "true"):
        raise inertial.error("inertias computed from shapes are not supported; write them down", UnsupportedError)
    draft.leave_out_unknown(inertial, ("pose", "mass", "inertia"))
    moments, pose = inertial.only("inertia") or inertial, inertial.only("pose")
    xx, yy, zz = (number_text(moments, tag, 1.0) for tag in DIAGONAL)
    xy, xz, yz = (number_text(moments, tag, 0.0) for tag in PRODUCTS)
    mass = number_text(inertial, "mass", 1.0)
    with blame(inertial):
        inertia = Inertia(mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        return inertia if pose is None else inertia.moved(pose_of(pose))
