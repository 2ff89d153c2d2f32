"""`load`: a mechanism from a robot file, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dalembert.errors import Advised, ModelError, ShapeError, UnsupportedError, advised, reworded
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.readers.draft import Draft
from dalembert.readers.files import Folders, Packages, read_file
from dalembert.readers.mjcf.reader import read_mjcf
from dalembert.readers.sdf.reader import read_sdf
from dalembert.readers.srdf import read_poses, read_rules
from dalembert.readers.urdf.reader import read_urdf
from dalembert.readers.usd.reader import read_usd
from dalembert.readers.usd.stage import is_usd
from dalembert.readers.xml_tree import XmlElement, parse_xml, shortened

LONGEST = 2000
"""Characters of a message; a file may hold longer names than anyone wants to read."""

BASES = ("auto", "fixed", "floating")
FORMATS: dict[str, Callable[[XmlElement, Folders], Draft]] = {
    "robot": read_urdf,
    "sdf": read_sdf,
    "mujoco": read_mjcf,
}
"""Root element -> reader. URDF, SDF, MJCF, and USD beside them: the content decides, not the file's name."""


def load(
    path: str | os.PathLike[str],
    base: str = "auto",
    *,
    packages: Packages = None,
    allow_unphysical: bool = False,
    passive: bool | str = "auto",
    strict: bool = False,
) -> Mechanism:
    """Read a mechanism from a URDF, SDF, MJCF or USD file.

    Parameters
    ----------
    path
        The file.
    base
        What holds the root: "fixed" to the ground, "floating" by a free joint, or "auto", what the file says. A URDF
        does not say; its root is then fixed, as in Pinocchio's `buildModelFromUrdf`.
    packages
        Where "package://name/..." and "model://name/..." are: {name: folder}, or folders that hold packages. Nothing
        outside these and the model's own folder is opened.
    allow_unphysical
        Whether inertias that no body can have (negative mass, broken triangle inequality) are a note alone, without a
        `ModelWarning`.
    passive
        Whether joint damping and springs act inside the dynamics; "auto": for MJCF and USD (drives) they do, for URDF
        and SDF they are only kept as data, as Pinocchio does.
    strict
        Whether inertias that no body can have are refused. About one public robot file in eight has some.

    Returns
    -------
    Mechanism
        `notes` lists what the file says and dalembert does not use.

    Raises
    ------
    ModelError
        What is wrong in the file, with its line and element.
    UnsupportedError
        What dalembert does not read, and what to do instead.
    MissingExtraError
        MJCF needs MuJoCo: pip install "dalembert[mujoco]"; USD needs OpenUSD: pip install "dalembert[usd]".
    """
    if not isinstance(path, str | os.PathLike):
        raise ModelError(f"load takes the path of a file, not {type(path).__name__} {shortened(repr(path))}")
    path = Path(path)
    if base not in BASES:
        raise ModelError(f"base={base!r}; it is one of {', '.join(BASES)}")
    if not isinstance(passive, bool) and passive != "auto":
        raise ModelError(f"passive={passive!r}; it is 'auto', True or False")
    if path.name.lower().endswith(".xacro"):
        raise UnsupportedError(f"{path}: xacro files are expanded first: xacro {path.name} > robot.urdf")
    try:
        return _read(path, base, packages, passive, allow_unphysical, strict)
    except (ModelError, ShapeError, UnsupportedError) as error:
        text = error.args[0]
        if len(text) <= LONGEST and str(path.parent) in text:
            raise
        where = "" if str(path.parent) in text[:LONGEST] else f"{path}: "
        raise type(error)(reworded(text, lambda words: where + shortened(words, LONGEST))) from error


def _read(
    path: Path, base: str, packages: Packages, passive: bool | str, allow_unphysical: bool, strict: bool
) -> Mechanism:
    """Return the mechanism of a file, by the reader that its root element asks for."""
    content = read_file(path)
    if is_usd(path, content):
        return _built(read_usd(path, Folders.of(path, packages)), "usd", base, passive, allow_unphysical, strict)
    root = parse_xml(content, str(path))
    if root.tag not in FORMATS:
        tags = ", ".join(f"<{tag}>" for tag in FORMATS)
        raise UnsupportedError(f"{root.source}: files that begin with <{shortened(root.tag)}> are not read, but {tags}")
    draft = FORMATS[root.tag](root, Folders.of(path, packages))
    if root.tag == "robot":
        _add_poses(draft, path)
    return _built(draft, root.tag, base, passive, allow_unphysical, strict)


def _add_poses(draft: Draft, path: Path) -> None:
    """Add the poses of the SRDF file beside a URDF file; one that cannot be read is a note."""
    try:
        draft.poses |= read_poses(path)
    except (ModelError, OSError) as error:
        draft.notes.append(f"poses are left out: {shortened(str(error), 300)}")
    try:
        draft.contact_rules += read_rules(path)
    except (ModelError, OSError) as error:
        draft.notes.append(f"rules on pairs that never touch are left out: {shortened(str(error), 300)}")


def _built(draft: Draft, kind: str, base: str, passive: bool | str, allow_unphysical: bool, strict: bool) -> Mechanism:
    """Return the mechanism of a draft."""
    if draft.rooted:
        draft.rebase(base)
    elif base == "auto":
        base = "fixed"
        words = "base: a URDF does not say what holds its root; it is fixed"
        draft.notes.append(
            advised(words, "base='floating' frees it", 'base = "floating" in [model], or --base floating, frees it')
        )
    forces = any(any((*joint.damping, *joint.stiffness)) for joint in draft.joints)
    forces = forces or draft.springs or draft.tendons
    acts = kind in ("mujoco", "usd") if passive == "auto" else bool(passive)
    if forces and not acts:
        words = "damping and springs are kept as data and do not act"
        draft.notes.append(advised(words, "passive=True lets them", "passive = true in [model] of a scene lets them"))
    if any(any(joint.friction) for joint in draft.joints):
        draft.notes.append(
            Advised(
                "dry friction of joints (`friction`) acts in da.simulate, and neither in forward nor inverse",
                "dry friction of joints acts in dalembert simulate, and neither in solve nor inverse",
            )
        )
    order = "name" if kind == "robot" else "added"
    return draft.build("auto" if draft.rooted else base, order, allow_unphysical, acts, strict)
