"""`dalembert check FILE`: say whether a system is solvable, and if not, why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro

from dalembert.cli.constraint_words import WORDS, constraints
from dalembert.errors import ModelError
from dalembert.readers import load, read_matrices

ROBOT_FILES = (".urdf", ".sdf", ".world", ".xml", ".mjcf")
Words = tyro.conf.UseAppendAction[tuple[str, ...]]


@dataclass(frozen=True)
class Check:
    """Diagnose a robot file (URDF, SDF, MJCF), or a system given by its matrices (.toml, .json or .npz).

    A robot is looked at in its neutral and in random configurations, each closed first: loops, ranks, redundant and
    inconsistent constraints by name, massless motion, uniqueness of reactions. Matrices are solved if the file has a
    force.

    Exit code 0: accelerations exist and are unique; 1: they do not; 2: the file could not be used.
    """

    file: Annotated[Path, tyro.conf.Positional]
    """The file; `dalembert.readers.matrix_file` describes the layout of matrices."""

    point: Words = ()
    """Hold a frame's origin where it is (FRAME), or on another's (FRAME:OTHER)."""

    weld: Words = ()
    """Hold a frame where it is (FRAME), or weld it to another (FRAME:OTHER)."""

    revolute: Words = ()
    """Close a loop by a hinge: FRAME:OTHER:AXIS. AXIS is x (taken if left out), y, z, -x, -y, -z or numbers 1,0,1; in
    the axes of both frames. FRAME::AXIS: hinged to the ground where it is."""

    prismatic: Words = ()
    """Close a loop by a slider, likewise."""

    cylindrical: Words = ()
    """Close a loop by a cylindrical joint, likewise."""

    universal: Words = ()
    """Close a loop by a cardan joint: FRAME:OTHER:AXIS:AXIS2, the axis of FRAME and that of OTHER."""

    planar: Words = ()
    """Close a loop by a planar joint: FRAME:OTHER:AXIS, the axis across the plane."""

    distance: Words = ()
    """Keep two frames apart: FRAME:OTHER:LENGTH, metres; FRAME::LENGTH from the ground's origin."""

    coupler: Words = ()
    """Gears: JOINT=FACTOR,JOINT=FACTOR:OFFSET, the sum of factors times coordinates is the offset (0 if left out)."""

    point_on_line: Annotated[Words, tyro.conf.arg(aliases=["--line"])] = ()
    """Keep a frame's origin on a line: FRAME:OTHER:AXIS, through the origin of OTHER along its axis."""

    point_in_plane: Annotated[Words, tyro.conf.arg(aliases=["--plane"])] = ()
    """Keep a frame's origin in a plane: FRAME:OTHER:NORMAL (z if left out), through the origin of OTHER."""

    rolling: Words = ()
    """Roll without slip on the plane z = 0 of OTHER: FRAME:OTHER:RADIUS a ball, FRAME:OTHER:RADIUS:AXIS a wheel, the
    axis in FRAME; FRAME::RADIUS on the ground."""

    servo: Words = ()
    """Hold a joint coordinate at a value: JOINT:VALUE, radians or metres."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot."""

    samples: int = 3
    """Number of random configurations."""

    seed: int = 0
    """Of the random configurations."""

    strict: bool = False
    """Refuse inertias that no body can have; otherwise they are warned of."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Print the diagnosis (and the solution), and return the exit code."""
        return self._robot() if self.file.suffix.lower() in ROBOT_FILES else self._matrices()

    def _robot(self) -> int:
        from dalembert.cli.survey_configurations import survey

        mechanism = load(self.file, self.base, strict=self.strict)
        mechanism = mechanism.constrain(*constraints({word: getattr(self, word) for word in WORDS}, mechanism))
        found = survey(mechanism, self.samples, self.seed)
        print(json.dumps(found.as_dict(), indent=2) if self.json else found)
        return 0 if found.solvable else 1

    def _matrices(self) -> int:
        if self.json or any(getattr(self, word) for word in WORDS):
            raise ModelError(
                f"--json and constraints are for robot files ({', '.join(ROBOT_FILES)}), not for {self.file}"
            )
        problem = read_matrices(self.file)
        report = problem.system.diagnose(problem.drift if np.any(problem.drift) else None)
        print(f"{self.file}\n{report}")
        if not report.solvable or report.conflict is not None:
            return 1
        if problem.force is not None:
            print(f"\n{problem.system.solve(problem.force, problem.drift)}")
        return 0
