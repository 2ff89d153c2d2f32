"""SRDF: poses of a robot by name (<group_state>), and pairs that never touch; the file lies beside a URDF file."""

from __future__ import annotations

from pathlib import Path

from dalembert.model.mechanism.parts import ContactRule
from dalembert.readers.collisions import disabled_pairs
from dalembert.readers.xml_tree import numbers, read_xml

JointValues = dict[str, tuple[float, ...]]
"""Values of joints by name: one number, or as many as the joint has coordinates."""


def srdf_of(model: Path) -> Path | None:
    """Return the SRDF file of a robot file: in its folder, or in a folder `srdf` beside that, called alike.

    A robot of several forms often has one for all: "talos.srdf" serves "talos_full.urdf".
    """
    folders = (model.parent, model.parent.parent / "srdf")
    files = [file for folder in folders for file in sorted(folder.glob("*.srdf"))]
    alike = [file for file in files if model.stem.startswith(file.stem)]
    return max(alike, key=lambda file: len(file.stem)) if alike else files[0] if len(files) == 1 else None


def read_rules(model: Path) -> list[ContactRule]:
    """Return the pairs of links that the SRDF file of a robot file leaves out, none without SRDF."""
    file = srdf_of(model)
    return [] if file is None else disabled_pairs(read_xml(file))


def read_poses(model: Path) -> dict[str, JointValues]:
    """Return the poses of a robot file by name, none without SRDF; several groups may have parts of one pose."""
    file = srdf_of(model)
    if file is None:
        return {}
    poses: dict[str, JointValues] = {}
    for state in read_xml(file).all("group_state"):
        pose = poses.setdefault(state.attribute("name"), {})
        for joint in state.all("joint"):
            words = joint.attribute("value")
            pose[joint.attribute("name")] = numbers(joint, words, len(words.split()), "a value of a pose")
    return poses
