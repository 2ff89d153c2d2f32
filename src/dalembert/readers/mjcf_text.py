"""MJCF before MuJoCo sees it: includes put in, what has nothing to do with dynamics taken out, sizes limited.

MuJoCo opens files and allocates what a file asks for. So includes are read here, by the rules of `files.py`; textures,
height fields, sensors and the like are dropped with a note; elements that multiply others are counted first. What
remains is written with one element a line, so that MuJoCo's complaints lead back to the file and line they belong to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

from dalembert.errors import ModelError, UnsupportedError
from dalembert.readers.draft import Draft
from dalembert.readers.files import Folders
from dalembert.readers.xml_tree import Element, read_xml, shortened

DROPPED = {
    "visual", "statistic", "size", "sensor", "keyframe", "custom", "contact", "texture", "material", "skin", "light",
    "camera", "rgba", "headlight", "lengthrange", "extension", "map",
}  # fmt: skip
"""Elements that say nothing about rigid bodies; named in the notes, and not handed on."""

SILENT = {"visual", "statistic", "size", "texture", "material", "light", "rgba", "headlight", "map", "lengthrange"}
"""Those of them that nobody misses in dynamics."""

SOFT = "soft bodies are not read, in any form; remove them, or put rigid bodies with joints and springs in their place"
ATTACHED = (
    "attached models are not read; let MuJoCo write the model as one and read that: "
    "spec = mujoco.MjSpec.from_file(path); spec.compile(); spec.to_file(new)"
)
REFUSED = {
    "flexcomp": SOFT,
    "flex": SOFT,
    "deformable": SOFT,
    "composite": "composite bodies are not read; write out the bodies and joints that it stands for",
    "attach": ATTACHED,
    "model": ATTACHED,
}
"""Elements that would change the mechanism if they were dropped, and what to do instead."""

MOST_BODIES = 200_000
"""Elements after <replicate>; its counts multiply."""

MOST_INCLUDES = 1000

NAN = re.compile(r"\bnan\b", re.IGNORECASE)
NUMBERS = re.compile(r"[\s\d.eE+-]*(nan[\s\d.eE+-]*)+", re.IGNORECASE)
WORDS = {"name", "class", "childclass", "body", "body1", "body2", "joint", "joint1", "joint2", "site", "mesh", "geom"}
"""Attributes that hold names, which may be any word. MuJoCo takes NaN for "not given"; nobody means that."""


@dataclass
class Flat:
    """MJCF as one text; `origins[i]` is the element written in line i + 1.

    Attributes
    ----------
    plugins
        Name of an instance in <extension> -> name of its plugin.
    made
        Name of a mesh that a plugin makes -> name of the plugin.
    """

    folders: Folders
    draft: Draft
    lines: list[str] = field(default_factory=list)
    origins: list[Element] = field(default_factory=list)
    included: set[Path] = field(default_factory=set)
    plugins: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    count: int = 0

    @property
    def text(self) -> str:
        """The whole."""
        return "\n".join(self.lines)

    def write(self, element: Element, times: int = 1, parent: str = "") -> None:
        """Write an element and what is in it."""
        if element.tag == "include":
            return self._include(element, times, parent)
        if element.tag in REFUSED and not (element.tag == "model" and parent != "asset"):
            raise element.error(REFUSED[element.tag], UnsupportedError)
        if element.tag == "plugin" and parent != "extension":
            return self._plugin(element, parent)
        if element.tag == "hfield" and parent == "asset":
            return self._height_field(element)
        if element.tag == "extension":
            self._instances(element)
        if element.tag in DROPPED and parent not in ("tendon", "spatial"):
            if element.tag not in SILENT:
                self.draft.leave_out(element)
            return None
        if element.tag == "replicate":
            times *= self._replicas(element)
        self.count += times
        if self.count > MOST_BODIES * 5:
            raise element.error(f"more than {MOST_BODIES * 5} elements, with <replicate> counted")
        kept = {name: value for name, value in element.attributes.items() if name != "material"}
        for name, value in kept.items():
            if name not in WORDS and NAN.search(value) and NUMBERS.fullmatch(value):
                raise element.error(f"{name} = {shortened(value)!r} is not a number")
        words = "".join(f" {name}={_quoted(value)}" for name, value in kept.items())
        self._line(element, f"<{element.tag}{words}>")
        for child in element.children:
            if child.tag == "plugin" and element.tag == "mesh":
                self.made[_file_name(element)] = self._plugin_name(child)
            self.write(child, times, element.tag)
        self._line(element, f"</{element.tag}>")
        return None

    def _instances(self, extension: Element) -> None:
        """Remember which plugins the instances of an <extension> are of."""
        for plugin in extension.all("plugin"):
            for instance in plugin.all("instance"):
                self.plugins[instance.attributes.get("name", "")] = plugin.attributes.get("plugin", "")

    def _plugin_name(self, element: Element) -> str:
        given = element.attributes.get("plugin") or self.plugins.get(element.attributes.get("instance", ""))
        return shortened(given or element.attributes.get("instance", "") or "unnamed")

    def _plugin(self, element: Element, parent: str) -> None:
        """Leave out a plugin that computes an actuator's force or a shape; refuse one that acts on a body."""
        name = self._plugin_name(element)
        if parent not in ("actuator", "geom", "mesh"):
            raise element.error(
                f"forces of the plugin {name!r} are not read, and would be missed; remove this <plugin> to read the "
                "model without them",
                UnsupportedError,
            )
        self.draft.leave_out(element, f"the plugin {name!r}, which is not run")

    def _height_field(self, element: Element) -> None:
        """Write a height field without its heights: MuJoCo takes the mass of its box, and nothing is opened."""
        self.draft.leave_out(element, "its surface")
        kept = {"name": _file_name(element), "nrow": "2", "ncol": "2"}
        if "size" in element.attributes:
            kept["size"] = element.attributes["size"]
        words = "".join(f" {name}={_quoted(value)}" for name, value in kept.items())
        self._line(element, f"<hfield{words}/>")

    def folder_of(self, tag: str) -> dict[str, Path]:
        """Return the folder of the file in which an asset stands, by the asset's name."""
        return {
            _file_name(element): Path(element.file).resolve().parent for element in self.origins if element.tag == tag
        }

    def _line(self, element: Element, text: str) -> None:
        self.lines.append(text)
        self.origins.append(element)

    def _replicas(self, element: Element) -> int:
        given = element.attributes.get("count", "").strip()
        if not (given.isascii() and given.isdigit() and len(given) <= 6):
            raise element.error(f"count = {shortened(given)!r} is not a number from 0 to 999999")
        return max(1, int(given))

    def _include(self, element: Element, times: int, parent: str) -> None:
        """Write what an included file holds; as in MuJoCo no file is included twice."""
        given = element.attribute("file")
        path = self.folders.find(given) or self.folders.find(given, Path(element.file).resolve().parent)
        if path is None:
            raise element.error(f"{shortened(given)!r} was not found in the model's folder or the declared packages")
        if path in self.included or len(self.included) >= MOST_INCLUDES:
            raise element.error(f"{shortened(given)!r} is included already")
        self.included.add(path)
        for child in read_xml(path).children:
            self.write(child, times, parent)

    def blame(self, error: Exception) -> ModelError:
        """Return MuJoCo's complaint with the file and line where it belongs."""
        text = " ".join(str(error).split())
        found = re.search(r"line (\d+)", text)
        number = int(found[1]) if found else 0
        text = re.sub(r",? ?(Element '[^']*',? )?(id -?\d+, )?line \d+", "", text).strip() or type(error).__name__
        if 1 <= number <= len(self.origins):
            return ModelError(f"{self.origins[number - 1].source}: MuJoCo says: {shortened(text, 400)}")
        return ModelError(f"{self.draft.file}: MuJoCo says: {shortened(text, 400)}")


def _file_name(element: Element) -> str:
    """Return the name of an asset; one without is called as its file, less folder and ending."""
    return element.attributes.get("name", "").strip() or Path(element.attributes.get("file", "")).stem


def _quoted(value: str) -> str:
    """Return an attribute's value for XML, on one line."""
    return quoteattr(value, {"\n": " ", "\r": " ", "\t": " "})
