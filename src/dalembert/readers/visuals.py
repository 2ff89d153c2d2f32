"""Visuals of a file: shapes, meshes and colours that bodies are drawn with.

Dynamics needs none of them. A visual that cannot be drawn is left out with a note and never refuses a file; meshes are
found here and opened when the mechanism is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dalembert.errors import DalembertError
from dalembert.model.mechanism.parts import Visual
from dalembert.model.mechanism.placement import Placement
from dalembert.readers.draft import NAMED, Draft
from dalembert.readers.files import MESHES, Folders
from dalembert.readers.xml_tree import XmlElement, numbers, shortened

Color = tuple[float, float, float, float]


@contextmanager
def drawn_or_noted(element: XmlElement, draft: Draft) -> Iterator[None]:
    """Leave a visual out, with its line, where its numbers make no shape."""
    try:
        yield
    except DalembertError as error:
        reason = str(error).removeprefix(f"{element.source}: ")
        draft.leave_out(element, f"not drawn: {shortened(reason, 160)}")


def read_color(element: XmlElement, text: str) -> Color:
    """Return red, green, blue and opacity, each brought into 0 to 1."""
    words = text.split()
    values = numbers(element, " ".join(words[:4] if len(words) > 3 else [*words, "1"]), 4, "a colour")
    red, green, blue, opacity = (min(max(value, 0.0), 1.0) for value in values)
    return red, green, blue, opacity


def mesh_visual(
    body: str, reference: str, scale: tuple[float, ...], X: Placement, color: Color | None, element: XmlElement,
    folders: Folders,
) -> Visual:  # fmt: skip
    """Return a mesh as a visual; its file is "" where it is missing or cannot be drawn (see `note_meshes`)."""
    path = folders.find_mesh(reference, Path(element.file).resolve().parent)
    file = "" if path is None or path.suffix.lower() not in MESHES else str(path)
    return Visual(body, "mesh", tuple(scale), X, color, file, element.source)


def note_meshes(root: XmlElement, attribute: str, folders: Folders, draft: Draft) -> None:
    """Note the files of <mesh> elements that were not found; `attribute` "" takes the text of <uri> inside."""
    missing: dict[str, None] = {}
    paths: dict[str, Path | None] = {}
    for element in root.walk():
        if element.tag != "mesh":
            continue
        uri = None if attribute else element.first("uri")
        reference = element.attributes.get(attribute, "") if attribute else uri.text if uri else ""
        if reference not in paths:
            paths[reference] = folders.find_mesh(reference, Path(element.file).resolve().parent)
        if paths[reference] is None:
            missing[shortened(reference.strip())] = None
    note_missing(list(missing), draft)
    others = [path.name for path in paths.values() if path is not None and path.suffix.lower() not in MESHES]
    if others:
        draft.notes.append(f"meshes are drawn from {', '.join(MESHES)}, and not: {', '.join(sorted(others)[:NAMED])}")


def note_missing(names: list[str], draft: Draft) -> None:
    """Add the note on meshes that were not found."""
    if names:
        shown = ", ".join(shortened(name, 80) for name in names[:NAMED])
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        draft.notes.append(
            f"{len(names)} meshes were not found in the model's folder or the declared packages; dynamics does not "
            f"need them, and generated shapes are drawn instead: {shown}{more}"
        )
