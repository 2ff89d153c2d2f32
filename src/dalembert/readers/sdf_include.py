"""<include> of an SDF file: the model it names, read from the model's folder or a declared package."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dalembert.errors import UnsupportedError
from dalembert.readers.files import Folders
from dalembert.readers.xml_tree import Element, read_xml, shortened

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

    def enter(self, include: Element) -> tuple[Element, Element]:
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

    def _file(self, include: Element) -> Path:
        """Return the file that <uri> names; a folder stands for the file that its model.config names, or model.sdf."""
        uri = include.required("uri")
        near = Path(include.file).resolve().parent
        found = self.folders.find(uri.text, near)
        if found is not None and found.is_dir():
            name, config = "model.sdf", self.folders.allowed(found / "model.config")
            if config is not None and (given := read_xml(config).first("sdf")) is not None:
                name = given.text.strip() or name
            found = self.folders.allowed(found / name)
        if found is None:
            raise uri.error(
                f"{shortened(uri.text.strip())!r} was not found in the model's folder or the declared packages; "
                "da.load(path, packages={name: folder}) declares one"
            )
        return found


def _changed(model: Element, include: Element) -> Element:
    """Return the included model with the include's own name, pose, static and placement frame."""
    changed = Element("model", dict(model.attributes), include.line, include.file)
    own = {child.tag: child for child in include.children if child.tag in ("pose", "static")}
    changed.children = [child for child in model.children if child.tag not in own] + list(own.values())
    for tag in ("name", "placement_frame"):
        if (given := include.only(tag)) is not None and given.text.strip():
            changed.attributes[tag] = given.text.strip()
    return changed
