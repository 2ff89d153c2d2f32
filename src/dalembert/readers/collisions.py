"""Collision shapes of a file: what bodies touch with, read as visuals are, with the laws of contact that formats have.

A shape without extent is left out with a note by name. A mesh that is not found stays, with the reference of the file:
who asks for contacts of the shapes is told by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dalembert.errors import DalembertError
from dalembert.model.mechanism.parts import CollisionShape, ContactRule, Visual
from dalembert.readers.draft import NAMED, Draft
from dalembert.readers.files import Folders
from dalembert.readers.xml_tree import XmlElement, shortened


@contextmanager
def touching_or_noted(element: XmlElement, draft: Draft) -> Iterator[None]:
    """Leave a collision shape out, with its line, if its numbers make no shape."""
    try:
        yield
    except DalembertError as error:
        reason = str(error).removeprefix(f"{element.source}: ")
        draft.leave_out(element, f"touches nothing: {shortened(reason, 160)}")


def collision_shape(visual: Visual, element: XmlElement, name: str = "", **law: Any) -> CollisionShape:
    """Return the shape of a <collision> element that has been read as a visual."""
    if visual.kind not in ("mesh", "plane") and min(visual.size) <= 0.0:
        raise element.error(f"its {visual.kind} has no extent: {', '.join(f'{x:g}' for x in visual.size)}")
    if visual.kind == "mesh" and not all(visual.size):
        raise element.error("the scale of its mesh is zero along an axis")
    size = () if visual.kind == "plane" else visual.size
    return CollisionShape(
        name, visual.body, visual.kind, size, visual.placement, visual.file, source=visual.source, **law
    )


def with_mesh(shape: CollisionShape, reference: str, element: XmlElement, folders: Folders) -> CollisionShape:
    """Return a shape with the file of its mesh, of whatever format; with the reference itself if it is not found."""
    if shape.kind != "mesh":
        return shape
    path = folders.find_mesh(reference, Path(element.file).resolve().parent)
    return replace(shape, file=reference.strip() if path is None else str(path))


def note_lost_shapes(draft: Draft, folders: Folders) -> None:
    """Name the collision shapes whose mesh was not found, with the places that were tried."""
    lost = [s for s in draft.collision_shapes if s.kind == "mesh" and s.points is None and not Path(s.file).is_file()]
    if lost:
        files = list(dict.fromkeys(shape.file for shape in lost))
        shown = "; ".join(f"{shortened(file, 80)} (tried {', '.join(folders.tried(file))})" for file in files[:NAMED])
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        draft.notes.append(f"{len(lost)} collision shapes have meshes that were not found: {shown}{more}")


def disabled_pairs(root: XmlElement) -> list[ContactRule]:
    """Return the rules of <disable_collisions> elements of an SRDF file."""
    return [
        ContactRule(
            element.attribute("link1"),
            element.attribute("link2"),
            reason=f"<disable_collisions>: {element.attributes.get('reason', 'no reason given')}",
            source=element.source,
        )
        for element in root.all("disable_collisions")
    ]
