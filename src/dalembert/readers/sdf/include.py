"""<include> of an SDF file, nested or merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dalembert.errors import UnsupportedError
from dalembert.readers.files import Folders
from dalembert.readers.sdf.scope import MODEL, relative_to
from dalembert.readers.xml_tree import XmlElement, read_xml, shortened

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
            raise uri.error(
                f"{shortened(uri.text.strip())!r} was not found in the model's folder or the declared packages; "
                "da.load(path, packages={name: folder}) declares one"
            )
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


OLDEST = (1, 7)
"""Before, axes and poses have other frames by default."""

MOVED = ("link", "model", "include")
"""Elements that stand in the model's frame where they do not say otherwise."""


def is_merged(element: XmlElement) -> bool:
    """Say whether an element is an <include> that merges."""
    return element.tag == "include" and element.attributes.get("merge", "").strip() in ("1", "true")


def merged(model: XmlElement, version: tuple[int, int], include: XmlElement) -> list[XmlElement]:
    """Return the parts of an included model as those of the model around it."""
    if version < OLDEST:
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
