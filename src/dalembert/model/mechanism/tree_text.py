"""A mechanism as text: the drawing of its tree, and the key of its content."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from html import escape
from math import inf, isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.model.joints import KINDS

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.mechanism.parts import Joint

# ----------------------------------------------------------------------------------------------------------------------
# A mechanism drawn as text: the tree from the ground up, then loops, springs and motors between its bodies.


LARGEST = 300
"""A drawing has at most so many bodies; the rest is counted."""

AXES = {(1, 0, 0): "x", (0, 1, 0): "y", (0, 0, 1): "z", (-1, 0, 0): "-x", (0, -1, 0): "-y", (0, 0, -1): "-z"}


def as_text(mechanism: Mechanism, wording: Callable[[str], str] = str) -> str:
    """Return the drawing; `wording` chooses the words of notes."""
    lines = [_headline(mechanism), *_tree(mechanism), *_below(mechanism, wording)]
    return "\n".join(lines)


def as_html(mechanism: Mechanism) -> str:
    """Return the drawing for a notebook; the notes fold."""
    text, _, notes = as_text(mechanism).partition("\nnotes\n")
    shown = f"<pre style='line-height:1.2'>{escape(text)}</pre>"
    if notes:
        shown += f"<details><summary>{len(mechanism.notes)} notes</summary><pre>{escape(notes)}</pre></details>"
    return shown


def _headline(mechanism: Mechanism) -> str:
    g = ", ".join(f"{x:g}" for x in mechanism.gravity)
    count = len(mechanism.bodies)
    sizes = (
        f"{count} {'body' if count == 1 else 'bodies'}, nq {mechanism.nq}, nv {mechanism.nv}, {mechanism.mass:.6g} kg"
    )
    return f"{mechanism.name}: {sizes}, {mechanism.base} base, gravity ({g})"


def _tree(mechanism: Mechanism) -> list[str]:
    """Return one line per body and frame, indented by its place in the tree."""
    children: dict[int, list[int]] = {}
    for i, parent in enumerate(mechanism.parents):
        children.setdefault(parent, []).append(i)
    frames: dict[str, list[str]] = {}
    for frame in mechanism.frames:
        frames.setdefault(frame.body, []).append(frame.name)
    lines = [mechanism.ground + _frames(frames.get(mechanism.ground))]
    stack = [(i, "", k == 0) for k, i in enumerate(reversed(children.get(-1, [])))]
    drawn = 0
    while stack and drawn < LARGEST:
        i, indent, last = stack.pop()
        body, joint = mechanism.bodies[i], mechanism.joints[i]
        branch = "└─ " if last else "├─ "
        held = frames.get(body.name)
        lines.append(f"{indent}{branch}{describe(joint)} ── {body.name} ({_mass(body.inertia)}){_frames(held)}")
        below = indent + ("   " if last else "│  ")
        stack += [(child, below, k == 0) for k, child in enumerate(reversed(children.get(i, [])))]
        drawn += 1
    if drawn < len(mechanism.bodies):
        lines.append(f"... and {len(mechanism.bodies) - drawn} more bodies")
    return lines


def _frames(names: list[str] | None) -> str:
    if not names:
        return ""
    return "  · " + ", ".join(names[:6]) + (f" and {len(names) - 6} more frames" if len(names) > 6 else "")


def _mass(inertia: Any) -> str:
    return "massless" if inertia.is_zero() else f"{inertia.mass:.4g} kg"


def describe(joint: Joint) -> str:
    """Return a joint in words: name, kind, axis, limits."""
    axes = KINDS[joint.kind].axes
    axis = f" {axis_name(joint.axis)}" if axes else ""
    second = f" {axis_name(joint.axis2)}" if axes == 2 else ""
    pitch = f" {joint.pitch:g} m/rad" if joint.kind == "helical" else ""
    return f"{joint.name}: {joint.kind}{axis}{second}{pitch}{_limits(joint)}"


def _limits(joint: Joint) -> str:
    """Return the limits of a joint with one coordinate, where it has any."""
    lower, upper = [*joint.limits.lower] or [-inf], [*joint.limits.upper] or [inf]
    if len(lower) > 1 or len(upper) > 1 or (isinf(lower[0]) and isinf(upper[0])):
        return ""
    return f" [{lower[0]:.4g}, {upper[0]:.4g}]"


def axis_name(axis: Any) -> str:
    """Return "x", "-z" or the numbers of an axis."""
    return AXES.get(tuple(axis), "(" + ", ".join(f"{x:.4g}" for x in axis) + ")")


def _below(mechanism: Mechanism, wording: Callable[[str], str]) -> list[str]:
    """Return the parts that are no bodies and joints, each kind under its heading."""
    sections = {
        "couplings": [f"{c.name}: {_sum(c.terms)} = {c.offset:g}" for c in mechanism.couplings],
        "loops": [f"{x.name}: {x.kind} between {x.body} and {x.other}" for x in mechanism.loops],
        "constraints": [f"{c.label}: {c.kind}, {_rows(len(c.row_names()))}" for c in mechanism.constraints],
        "springs": [f"{s.name}: {s.frame} to {s.other}, {s.stiffness:g} N/m" for s in mechanism.springs],
        "tendons": [f"{t.name}: {_sum(t.terms)}, {t.stiffness:g} N/m" for t in mechanism.tendons],
        "actuators": [f"{a.name}: {a.coordinate}, gear {a.gear:g}" for a in mechanism.actuators],
        "notes": [wording(note) for note in mechanism.notes],
    }
    lines: list[str] = []
    for heading, entries in sections.items():
        if entries:
            lines += [heading, *(f"  {entry}" for entry in entries[:LARGEST])]
            lines += [f"  ... and {len(entries) - LARGEST} more"] if len(entries) > LARGEST else []
    return lines


def _rows(count: int) -> str:
    return f"{count} row{'s' if count > 1 else ''}"


def _sum(terms: tuple[tuple[str, float], ...]) -> str:
    """Return a linear combination as one writes it: a - 2 b."""
    text = ""
    for name, factor in terms:
        size = "" if abs(factor) == 1 else f"{abs(factor):g} "
        sign = "-" if factor < 0 else "+"
        text += f" {sign} {size}{name}" if text else f"{'-' if factor < 0 else ''}{size}{name}"
    return text


# ----------------------------------------------------------------------------------------------------------------------
# A key for what determines a mechanism's numbers: names, parts and settings, but no notes and no sources.


FORMAT = "dalembert mechanism 1"
"""Changes when the meaning of a part changes, so that stored kernels of old meaning are not found."""


def content_key(*parts: Any) -> str:
    """Return a hexadecimal SHA-256 of dataclasses, tuples, arrays, numbers and words; sources are left out."""
    digest = hashlib.sha256(FORMAT.encode())
    stack: list[Any] = [parts]
    while stack:
        part = stack.pop()
        if is_dataclass(part) and not isinstance(part, type):
            digest.update(f"<{type(part).__name__}".encode())
            stack.extend(getattr(part, field.name) for field in fields(part) if field.name != "source")
        elif isinstance(part, tuple | list):
            digest.update(f"({len(part)}".encode())
            stack.extend(part)
        elif isinstance(part, np.ndarray):
            digest.update(f"[{part.dtype}{part.shape}".encode() + part.tobytes())
        elif isinstance(part, float):
            digest.update(b"f" + struct.pack("<d", part))
        else:
            digest.update(f"{type(part).__name__}:{part!r};".encode())
    return digest.hexdigest()
