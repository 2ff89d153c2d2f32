"""Meshes are never opened: dynamics does not need them. Those that cannot be found are named in one note."""

from __future__ import annotations

from dalembert.readers.draft import NAMED, Draft
from dalembert.readers.files import Folders
from dalembert.readers.xml_tree import Element, shortened


def note_meshes(root: Element, attribute: str, folders: Folders, draft: Draft) -> None:
    """Note the files of <mesh> elements that were not found; `attribute` "" takes the text of <uri> inside."""
    missing: dict[str, None] = {}
    known: dict[str, bool] = {}
    for element in root.walk():
        if element.tag != "mesh":
            continue
        uri = None if attribute else element.first("uri")
        reference = element.attributes.get(attribute, "") if attribute else uri.text if uri else ""
        if reference not in known:
            known[reference] = folders.find(reference) is not None
        if not known[reference]:
            missing[shortened(reference.strip())] = None
    if missing:
        names = ", ".join(list(missing)[:NAMED])
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        draft.notes.append(
            f"{len(missing)} meshes were not found in the model's folder or the declared packages, and are not needed "
            f"for dynamics: {names}{more}"
        )
