"""`dalembert show FILE` and `dalembert cache`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dalembert.cli.target import MATRIX_FILES, RUN_FILES, print_json
from dalembert.errors import ModelError, scene_words
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.tree_text import as_text
from dalembert.readers import load

# ----------------------------------------------------------------------------------------------------------------------
# `dalembert show FILE`: print the mechanism in a robot file, and what its reader left out.


@dataclass(frozen=True)
class Show:
    """Draw the mechanism of a URDF, SDF, MJCF or USD file as a tree, with notes on what was left out.

    For example:

        dalembert show robot.urdf

        dalembert show world.sdf --urdf > robot.urdf
    """

    file: Annotated[Path, tyro.conf.Positional]
    """The robot file."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root."""

    strict: bool = False
    """Refuse inertias that no body can have; otherwise they are warned of."""

    urdf: bool = False
    """Print it as URDF instead."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Print the mechanism, and return the exit code."""
        if self.file.suffix.lower() in (".toml", "", *MATRIX_FILES, *RUN_FILES):
            raise ModelError(f"{self.file} is no robot file; dalembert check has scenes and matrices, view has runs")
        mechanism = load(self.file, self.base, strict=self.strict)
        if self.json:
            print_json(as_data(mechanism))
        else:
            print(mechanism.to_urdf() if self.urdf else as_text(mechanism, scene_words))
        return 0


def as_data(mechanism: Mechanism) -> dict[str, object]:
    """Return a mechanism as plain data."""
    joints = [{"name": j.name, "kind": j.kind, "parent": j.parent, "child": j.child} for j in mechanism.joints]
    bodies = [{"name": body.name, "mass": body.inertia.mass} for body in mechanism.bodies]
    return {
        "name": mechanism.name, "nq": mechanism.nq, "nv": mechanism.nv, "mass": mechanism.mass, "bodies": bodies,
        "joints": joints, "constraints": [c.label for c in mechanism.all_constraints], "rows": list(mechanism.names),
        "notes": [scene_words(note) for note in mechanism.notes],
    }  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------------
# `dalembert cache`: look at the cache of compiled kernels, or empty it.


@dataclass(frozen=True)
class Cache:
    """Show where compiled kernels are kept and how much room they take (--info), or remove them (--clear).

    The environment variable DALEMBERT_CACHE names another folder, or is "off".

    For example:

        dalembert cache --info

        dalembert cache --clear
    """

    info: bool = False
    """Show folder, entries and size (the default)."""

    clear: bool = False
    """Remove all entries."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Do what was asked and return the exit code."""
        from dalembert.kernel import cache_info, clear_cache

        if self.info and self.clear:
            raise ModelError("--info and --clear exclude each other")
        if self.clear:
            removed = clear_cache()
            if self.json:
                print_json({"removed": removed})
            else:
                print(f"{removed} entries removed")
            return 0
        info = cache_info()
        if self.json:
            print_json({"folder": info.folder, "entries": info.entries, "bytes": info.bytes})
            return 0
        where = info.folder if info.folder is not None else "off (DALEMBERT_CACHE)"
        print(f"folder   {where}\nentries  {info.entries}\nsize     {info.bytes / 2**20:.1f} MiB")
        return 0
