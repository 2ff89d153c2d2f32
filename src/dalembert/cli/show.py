"""`dalembert show FILE`: print the mechanism in a robot file, and what its reader left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dalembert.readers import load


@dataclass(frozen=True)
class Show:
    """Draw the mechanism of a URDF, SDF or MJCF file as a tree, with notes on what was left out."""

    file: Annotated[Path, tyro.conf.Positional]
    """The robot file."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root."""

    strict: bool = False
    """Refuse inertias that no body can have; otherwise they are warned of."""

    urdf: bool = False
    """Print it as URDF instead."""

    def run(self) -> int:
        """Print the mechanism, and return the exit code."""
        mechanism = load(self.file, self.base, strict=self.strict)
        print(mechanism.to_urdf() if self.urdf else mechanism)
        return 0
