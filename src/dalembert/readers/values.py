"""Numbers, vectors and poses as robot files write them; what is not a finite number is refused, by place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dalembert.errors import DalembertError
from dalembert.model.placement import IDENTITY, Placement
from dalembert.readers.xml_tree import Element, shortened

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)

HUGE = 1e60
"""Larger numbers are refused: products of four of them must stay within the range of doubles."""

TRUE, FALSE = ("1", "true"), ("0", "false")


@contextmanager
def blame(element: Element) -> Iterator[None]:
    """Put file, line and element before a complaint that does not know them."""
    try:
        yield
    except DalembertError as error:
        if str(error).startswith(element.file):
            raise
        raise element.error(str(error)) from error


def number(element: Element, text: str, what: str, infinite: bool = False) -> float:
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


def numbers(element: Element, text: str, count: int, what: str) -> tuple[float, ...]:
    """Return exactly `count` numbers, separated by blanks."""
    words = text.split()
    if len(words) != count:
        raise element.error(f"{what} needs {count} numbers, not {len(words)}: {shortened(text)!r}{_hint(text)}")
    return tuple(number(element, word, what) for word in words)


def number_attribute(element: Element, name: str, default: float | None = None, infinite: bool = False) -> float:
    """Return an attribute as a number; without a default it must be there."""
    if default is not None and name not in element.attributes:
        return default
    return number(element, element.attribute(name), name, infinite)


def vector_attribute(element: Element, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    """Return an attribute with as many numbers as its default."""
    if name not in element.attributes:
        return default
    return numbers(element, element.attributes[name], len(default), name)


def number_text(parent: Element, tag: str, default: float, infinite: bool = False) -> float:
    """Return the text of a child as a number, or the default."""
    child = parent.only(tag)
    return default if child is None else number(child, child.text, f"<{tag}>", infinite)


def truth_text(parent: Element, tag: str, default: bool) -> bool:
    """Return the text of a child as true or false."""
    child = parent.only(tag)
    if child is None:
        return default
    word = child.text.strip().lower()
    if word not in TRUE + FALSE:
        raise child.error(f"{shortened(word)!r} is neither true nor false")
    return word in TRUE


def origin(parent: Element, tag: str = "origin") -> Placement:
    """Return a URDF origin: xyz in metres and rpy in radians, or quat_xyzw (URDF 1.1); identity where there is none."""
    child = parent.only(tag)
    return IDENTITY if child is None else placement_of(child)


def placement_of(element: Element) -> Placement:
    """Return the placement that the attributes xyz and rpy or quat_xyzw of an element give."""
    xyz = vector_attribute(element, "xyz", (0.0, 0.0, 0.0))
    if "quat_xyzw" in element.attributes:
        quaternion = vector_attribute(element, "quat_xyzw", (0.0, 0.0, 0.0, 1.0))
        if "rpy" in element.attributes:
            raise element.error("rpy and quat_xyzw; give one of them")
        return quaternion_placement(element, quaternion, xyz)
    return Placement.from_rpy(vector_attribute(element, "rpy", (0.0, 0.0, 0.0)), xyz)


def quaternion_placement(element: Element, xyzw: tuple[float, ...], xyz: tuple[float, ...]) -> Placement:
    """Return a placement; a quaternion that no rotation has is refused."""
    largest = max(abs(x) for x in xyzw)
    if not 1e-8 < largest < 1e8:
        raise element.error(f"the quaternion {xyzw} is not a rotation")
    return Placement.from_quaternion(xyzw, xyz)


def unit_axis(element: Element, xyz: tuple[float, ...]) -> tuple[float, float, float]:
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
