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
    "visual", "statistic", "size", "sensor", "keyframe", "custom", "contact", "texture", "material", "hfield", "skin",
    "light", "camera", "rgba", "headlight", "lengthrange", "extension", "map",
}  # fmt: skip
"""Elements that say nothing about rigid bodies; named in the notes, and not handed on."""

SILENT = {"visual", "statistic", "size", "texture", "material", "light", "rgba", "headlight", "map", "lengthrange"}
"""Those of them that nobody misses in dynamics."""

REFUSED = {
    "flexcomp": "soft bodies",
    "flex": "soft bodies",
    "composite": "composite bodies",
    "deformable": "soft bodies",
    "attach": "attached models",
    "model": "attached models",
}
"""Elements that would change the mechanism if they were dropped."""

MOST_BODIES = 200_000
"""Elements after <replicate>; its counts multiply."""

MOST_INCLUDES = 1000

NAN = re.compile(r"\bnan\b", re.IGNORECASE)
NUMBERS = re.compile(r"[\s\d.eE+-]*(nan[\s\d.eE+-]*)+", re.IGNORECASE)
WORDS = {"name", "class", "childclass", "body", "body1", "body2", "joint", "joint1", "joint2", "site", "mesh", "geom"}
"""Attributes that hold names, which may be any word. MuJoCo takes NaN for "not given"; nobody means that."""


@dataclass
class Flat:
    """MJCF as one text; `origins[i]` is the element written in line i + 1."""

    folders: Folders
    draft: Draft
    lines: list[str] = field(default_factory=list)
    origins: list[Element] = field(default_factory=list)
    included: set[Path] = field(default_factory=set)
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
            what = REFUSED[element.tag]
            raise element.error(f"{what} are not read; write the model out with MuJoCo's `compile`", UnsupportedError)
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
            self.write(child, times, element.tag)
        self._line(element, f"</{element.tag}>")
        return None

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
        near = Path(element.file).resolve().parent
        path = self.folders.find(given, near) or self.folders.find(given)
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


def _quoted(value: str) -> str:
    """Return an attribute's value for XML, on one line."""
    return quoteattr(value, {"\n": " ", "\r": " ", "\t": " "})
