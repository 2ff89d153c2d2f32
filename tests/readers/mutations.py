"""Robot files, spoilt at random: elements deleted, doubled, moved, renamed, numbers and names replaced, bytes broken.

A mutation is made from a seed, so that what a campaign finds can be made again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.readers.mjcf_models import MODELS
from tests.readers.robots import ROBOTS

NUMBERS = [
    "nan", "-nan", "inf", "-inf", "1e999", "-1e999", "1e-999", "1e308", "-1", "0", "-0.0", "", " ", "abc", "1,5",
    "0x10", "1e60", "-1e59", "1e30", "1e-30", "99999999999999999999", "${x}", "\u0661", "1 2", "1" * 400,
]  # fmt: skip
WORDS = [
    "", " ", "world", "universe", "a", "__model__", "::", "a::b", "../../../etc/passwd", "\u00e9\u4e2d", "x" * 2000,
    "null", "revolute", "ball", "floating", "free", "fixed", "screw", "universal", "mesh", "hfield", "true", "nan",
    "package://x/y",
]  # fmt: skip
TAGS = [
    "link", "joint", "body", "model", "frame", "pose", "axis", "axis2", "inertial", "mimic", "limit", "origin",
    "include", "replicate", "freejoint", "geom", "site", "weld", "connect", "constraint", "gazebo", "default", "static",
    "world", "sdf", "robot", "mujoco", "composite", "flexcomp", "tendon", "spatial", "equality", "actuator", "motor",
    "muscle", "compiler",
]  # fmt: skip

ELEMENT = re.compile(rb"<(\w[\w:]*)[^<>]*?/>|<(\w[\w:]*)[^<>]*>[^<>]*</\2>")
TAG = re.compile(rb"</?(\w[\w:]*)")
VALUE = re.compile(rb"=\s*(\"[^\"]*\"|'[^']*')")
TEXT = re.compile(rb">([^<>]*\S[^<>]*)<")
NUMBER = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
ATTRIBUTE = re.compile(rb"\s(\w[\w:]*)=")


def originals() -> dict[str, tuple[str, bytes]]:
    """Return small real files by name, with the extension they are written with."""
    files = {
        "panda": "panda_description/urdf/panda.urdf",
        "go2": "go2_description/urdf/go2.urdf",
        "kinova": "kinova_description/robots/kinova.urdf",
        "pendulum": "double_pendulum_description/urdf/double_pendulum.urdf",
        "ur5": "ur_description/urdf/ur5_gripper.urdf",
        "cassie": "cassie_description/robots/cassie_v2.sdf",
        "cassie whole": "cassie_description/robots/cassie.sdf",
    }
    found = {name: (path.rsplit(".", 1)[1], (ROBOTS / path).read_bytes()) for name, path in files.items()}
    return found | {name: ("xml", text.encode()) for name, text in MODELS.items()}


def _pick(pattern: re.Pattern[bytes], content: bytes, rng: random.Random) -> re.Match[bytes] | None:
    """Return one match near a random place."""
    start = rng.randrange(max(1, len(content)))
    return pattern.search(content, start) or pattern.search(content)


def _replaced(pattern: re.Pattern[bytes], options: list[str]) -> Callable[[bytes, random.Random], bytes]:
    def mutate(content: bytes, rng: random.Random) -> bytes:
        found = _pick(pattern, content, rng)
        if found is None:
            return content
        group = 1 if pattern.groups else 0
        start, stop = found.span(group)
        new = rng.choice(options).encode()
        if content[start : start + 1] in (b'"', b"'"):
            new = b'"' + new + b'"'
        return content[:start] + new + content[stop:]

    return mutate


def _deleted(content: bytes, rng: random.Random) -> bytes:
    found = _pick(ELEMENT, content, rng)
    return content if found is None else content[: found.start()] + content[found.end() :]


def _doubled(content: bytes, rng: random.Random) -> bytes:
    found = _pick(ELEMENT, content, rng)
    return content if found is None else content[: found.end()] + found[0] + content[found.end() :]


def _moved(content: bytes, rng: random.Random) -> bytes:
    found, there = _pick(ELEMENT, content, rng), _pick(ELEMENT, content, rng)
    if found is None or there is None:
        return content
    return content[: there.end()] + found[0] + content[there.end() :]


def _exchanged(content: bytes, rng: random.Random) -> bytes:
    """Exchange two values of attributes."""
    one, two = _pick(VALUE, content, rng), _pick(VALUE, content, rng)
    if one is None or two is None or one.end() > two.start():
        return content
    return content[: one.start(1)] + two[1] + content[one.end(1) : two.start(1)] + one[1] + content[two.end(1) :]


def _unnamed(content: bytes, rng: random.Random) -> bytes:
    """Delete an attribute."""
    found = _pick(ATTRIBUTE, content, rng)
    value = None if found is None else VALUE.search(content, found.end() - 1)
    return content if found is None or value is None else content[: found.start()] + content[value.end() :]


def _broken(content: bytes, rng: random.Random) -> bytes:
    """Change one byte."""
    at = rng.randrange(max(1, len(content)))
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    """Cut a piece out, or everything behind a place."""
    at = rng.randrange(max(1, len(content)))
    return content[:at] if rng.random() < 0.3 else content[:at] + content[at + rng.randrange(200) :]


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    _replaced(NUMBER, NUMBERS), _replaced(NUMBER, NUMBERS), _replaced(VALUE, WORDS), _replaced(VALUE, NUMBERS),
    _replaced(TEXT, WORDS), _replaced(TEXT, NUMBERS), _replaced(TAG, TAGS), _deleted, _doubled, _moved, _exchanged,
    _unnamed, _broken, _cut,
]  # fmt: skip


def mutated(content: bytes, seed: int) -> bytes:
    """Return a file with one to eight mutations; half of the seeds make one or two, which get deepest."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        content = rng.choice(MUTATIONS)(content, rng)
    return content
