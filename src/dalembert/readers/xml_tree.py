"""XML as a tree of elements that remember their line, and values as robot files write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.parsers import expat

from dalembert.errors import DalembertError, ModelError, reworded
from dalembert.model.mechanism.parts import Source
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.files import read_file

# ----------------------------------------------------------------------------------------------------------------------
# XML from people one does not know, as a tree of elements that remember their line.
#
# The standard library's expat does the reading. Declarations of entities and external identifiers are refused before
# anything is expanded; size, depth and number of elements are limited, so that a refusal takes less than the reading.
# Names keep their prefix ("drake:joint"), comments and processing instructions are dropped.


DEEPEST, DEEPEST_BODIES = 200, 450
"""Elements nested deeper are refused; robot files need about 15. In MJCF bodies are nested: a chain takes a level a
body. MuJoCo itself stops at 500."""

MOST = 5_000_000
"""Elements in a file; 10^5 links with inertias, shapes and joints need 1.2 million."""

MOST_ATTRIBUTES = 200
"""Attributes of an element; robot files need about 20. Other readers compare each with each."""

LONGEST_NAME = 1000
"""Characters in a tag or a name: they go into every message."""


class XmlElement:
    """One element: `tag`, `attributes`, `children`, `text` (directly inside), `line` and `file`."""

    __slots__ = ("attributes", "children", "file", "line", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str], line: int, file: str) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[XmlElement] = []
        self.text = ""
        self.line = line
        self.file = file

    def all(self, tag: str) -> list[XmlElement]:
        """Return the children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> XmlElement | None:
        """Return the first child with a tag, or None."""
        return next((child for child in self.children if child.tag == tag), None)

    def only(self, tag: str) -> XmlElement | None:
        """Return the child with a tag, or None; two are an error."""
        elements = self.all(tag)
        if len(elements) > 1:
            raise elements[1].error(f"a second <{tag}> in {self}; the first is in line {elements[0].line}")
        return elements[0] if elements else None

    def required(self, tag: str) -> XmlElement:
        """Return the one child with a tag; none is an error."""
        element = self.only(tag)
        if element is None:
            raise self.error(f"<{tag}> is missing")
        return element

    def attribute(self, name: str) -> str:
        """Return an attribute without the blanks around it; a missing or empty one is an error."""
        value = self.attributes.get(name, "").strip()
        if not value:
            missing = "is empty" if name in self.attributes else "is missing"
            raise self.error(f"the attribute {name!r} {missing}")
        return value

    def walk(self) -> Iterator[XmlElement]:
        """Yield this element and all below it, in the order of the file."""
        stack: list[XmlElement] = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    @property
    def source(self) -> Source:
        """Where this element stands."""
        return Source(self.file, self.line, str(self))

    def error(self, message: str, kind: Callable[[str], Exception] = ModelError) -> Exception:
        """Return an error that names file, line and element."""
        return kind(reworded(message, lambda words: f"{self.source}: {words}"))

    def __str__(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}>" if name is None else f'<{self.tag} name="{shortened(name)}">'


def shortened(text: str, most: int = 80) -> str:
    """Return text that fits into a message."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def read_xml(path: str | Path, limit: int | None = None) -> XmlElement:
    """Read a file; see the head of this file for what is refused."""
    return parse_xml(read_file(path, limit), str(path))


def parse_xml(content: bytes, file: str) -> XmlElement:
    """Return the root element; every refusal names the file and the line."""
    return _Tree(content, file).root


class _Tree:
    """The handlers of one reading."""

    def __init__(self, content: bytes, file: str) -> None:
        self.file, self.count, self.deepest = file, 0, DEEPEST
        self.open: list[XmlElement] = []
        self.pieces: list[list[str]] = []
        self.found: XmlElement | None = None
        self.parser = parser = expat.ParserCreate()
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.entity
        parser.ExternalEntityRefHandler = self.external
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            raise ModelError(f"{file}:{error.lineno}: not well-formed XML ({expat.ErrorString(error.code)})") from error
        except (LookupError, UnicodeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{file}:{parser.CurrentLineNumber}: cannot be decoded ({error})") from error
        assert self.found is not None
        self.root = self.found

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        self.count += 1
        longest = max(len(tag), len(attributes.get("name", "")))
        if longest > LONGEST_NAME:
            raise self.refusal(f"a tag or name of {longest} characters; the limit is {LONGEST_NAME}")
        if len(self.open) >= self.deepest:
            raise self.refusal(f"<{tag}> is nested {len(self.open) + 1} deep; the limit is {self.deepest}")
        if len(attributes) > MOST_ATTRIBUTES:
            raise self.refusal(f"<{tag}> has {len(attributes)} attributes; the limit is {MOST_ATTRIBUTES}")
        if self.count > MOST:
            raise self.refusal(f"more than {MOST} elements")
        element = XmlElement(tag, attributes, self.parser.CurrentLineNumber, self.file)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.found = element
            self.deepest = DEEPEST_BODIES if tag == "mujoco" else DEEPEST
        self.open.append(element)
        self.pieces.append([])

    def end(self, tag: str) -> None:
        """Close an element."""
        self.open.pop().text = "".join(self.pieces.pop())

    def characters(self, text: str) -> None:
        """Collect text."""
        self.pieces[-1].append(text)

    def doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        """Refuse what a document type may bring; a bare <!DOCTYPE name> is harmless."""
        if system or public or internal:
            raise self.refusal("a document type with declarations or an external identifier; remove the <!DOCTYPE ...>")

    def entity(self, name: str, *_: object) -> None:
        """Refuse entities, which multiply (1 kB that expands to gigabytes) or name other files."""
        raise self.refusal(f"the entity {name!r} is declared; entities are not expanded")

    def external(self, context: str, *_: object) -> int:
        """Refuse external entities."""
        raise self.refusal("an external entity; other files are not read")

    def refusal(self, message: str) -> ModelError:
        """Return an error at the line that is being read."""
        return ModelError(f"{self.file}:{self.parser.CurrentLineNumber}: {message}")


# ----------------------------------------------------------------------------------------------------------------------
# Numbers, vectors and poses as robot files write them; what is not a finite number is refused, by place.


NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)

HUGE = 1e60
"""Larger numbers are refused: products of four of them must stay within the range of doubles."""

TRUE, FALSE = ("1", "true"), ("0", "false")


@contextmanager
def blame(element: XmlElement) -> Iterator[None]:
    """Put file, line and element before a complaint that does not know them."""
    try:
        yield
    except DalembertError as error:
        if str(error).startswith(element.file):
            raise
        raise element.error(error.args[0]) from error


def number(element: XmlElement, text: str, what: str, infinite: bool = False) -> float:
    """Return one number; `infinite` allows "inf", for limits."""
    text = text.strip()
    if NUMBER.fullmatch(text):
        value = float(text)
        if abs(value) <= HUGE or infinite:
            return value
        raise element.error(f"{what} = {shortened(text)!r} is beyond any machine (the limit is {HUGE:g})")
    if INFINITE.fullmatch(text):
        if infinite:
            return -math.inf if text.startswith("-") else math.inf
        raise element.error(f"{what} is infinite ({text})")
    raise element.error(f"{what} = {shortened(text)!r} is not a number{_hint(text)}")


def numbers(element: XmlElement, text: str, count: int, what: str) -> tuple[float, ...]:
    """Return exactly `count` numbers, separated by blanks."""
    words = text.split()
    if len(words) != count:
        raise element.error(f"{what} needs {count} numbers, not {len(words)}: {shortened(text)!r}{_hint(text)}")
    return tuple(number(element, token, what) for token in words)


def number_attribute(element: XmlElement, name: str, default: float | None = None, infinite: bool = False) -> float:
    """Return an attribute as a number; without a default it must be there."""
    if default is not None and name not in element.attributes:
        return default
    return number(element, element.attribute(name), name, infinite)


def vector_attribute(element: XmlElement, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    """Return an attribute with as many numbers as its default."""
    if name not in element.attributes:
        return default
    return numbers(element, element.attributes[name], len(default), name)


def number_text(parent: XmlElement, tag: str, default: float, infinite: bool = False) -> float:
    """Return the text of a child as a number, or the default."""
    child = parent.only(tag)
    return default if child is None else number(child, child.text, f"<{tag}>", infinite)


def truth_text(parent: XmlElement, tag: str, default: bool) -> bool:
    """Return the text of a child as true or false."""
    child = parent.only(tag)
    if child is None:
        return default
    text = child.text.strip().lower()
    if text not in TRUE + FALSE:
        raise child.error(f"{shortened(text)!r} is neither true nor false")
    return text in TRUE


def origin(parent: XmlElement, tag: str = "origin") -> Placement:
    """Return a URDF origin: xyz in metres and rpy in radians, or quat_xyzw (URDF 1.1); identity where there is none."""
    child = parent.only(tag)
    return IDENTITY if child is None else placement_of(child)


def placement_of(element: XmlElement) -> Placement:
    """Return the placement that the attributes xyz and rpy or quat_xyzw of an element give."""
    xyz = vector_attribute(element, "xyz", (0.0, 0.0, 0.0))
    if "quat_xyzw" in element.attributes:
        quaternion = vector_attribute(element, "quat_xyzw", (0.0, 0.0, 0.0, 1.0))
        if "rpy" in element.attributes:
            raise element.error("rpy and quat_xyzw; give one of them")
        return quaternion_placement(element, quaternion, xyz)
    return Placement.from_rpy(vector_attribute(element, "rpy", (0.0, 0.0, 0.0)), xyz)


def quaternion_placement(element: XmlElement, xyzw: tuple[float, ...], xyz: tuple[float, ...]) -> Placement:
    """Return a placement; a quaternion that no rotation has is refused."""
    largest = max(abs(x) for x in xyzw)
    if not 1e-8 < largest < 1e8:
        raise element.error(f"the quaternion {xyzw} is not a rotation")
    return Placement.from_quaternion(xyzw, xyz)


def unit_axis(element: XmlElement, xyz: tuple[float, ...]) -> tuple[float, float, float]:
    """Return an axis of length one; a zero axis is refused."""
    largest = max(abs(x) for x in xyz)
    if largest == 0:
        raise element.error("the axis is zero: it must have a direction")
    scaled = [x / largest for x in xyz]
    length = math.hypot(*scaled)
    x, y, z = (value / length + 0.0 for value in scaled)
    return x, y, z


def _hint(text: str) -> str:
    """Return what may have gone wrong, where it shows."""
    if "$" in text or "{" in text:
        return "; the file still has to be expanded by xacro: xacro robot.xacro > robot.urdf"
    if "," in text:
        return "; decimals take a point, and numbers are separated by blanks"
    return ""
