"""`dalembert solve FILE`: accelerations and constraint forces at one state, with their certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dalembert.cli.options import blamed_on
from dalembert.cli.target import RobotOptions, file_kind, print_json, scene_of, typed
from dalembert.errors import ModelError
from dalembert.simulate.table import RATES, row_units, velocity_units


@dataclass(frozen=True)
class Solve:
    """Solve for accelerations and reactions: of matrices with a force, or of a scene or robot at its initial state.

    Exit code 0: solved; 1: there is no answer, or it is not unique, and the reason is printed; 2: misuse. Contacts of a
    scene do not act: their laws need time, `dalembert simulate`.

    For example:

        dalembert solve system.toml

        dalembert solve door --json

        dalembert solve robot.urdf --start shoulder=0.5 --start elbow.v=2
    """

    file: Annotated[Path, tyro.conf.Positional]
    """Matrices (.toml, .json, .npz), a scene or its name, or a robot file."""

    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of a scene's parameter, NAME=NUMBER."""

    pose: str | None = None
    """A pose by name: a keyframe of MJCF, a <group_state> of the .srdf file beside a URDF."""

    start: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Another value of the state, JOINT=NUMBER, or JOINT.v=NUMBER for a velocity; several times for several."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot file."""

    packages: tuple[Path, ...] = ()
    """Folders besides the file's own from which models may be read."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Print the solution, and return the exit code."""
        if file_kind(self.file) == "matrices":
            solution, units = self._of_matrices(), ((), ())
        else:
            solution, units = self._of_scene()
        if self.json:
            print_json(as_data(solution))
        else:
            print(words(solution, *units))
        return 0 if solution.ok else 1

    def _of_matrices(self) -> Any:
        from dalembert.readers import read_matrices

        problem = read_matrices(self.file)
        if problem.force is None:
            raise ModelError(f"{self.file} has no force; give one, force = [...], or ask with dalembert check")
        return problem.system.solve(problem.force, problem.drift)

    def _of_scene(self) -> Any:
        robot = RobotOptions(self.pose, self.start)
        scene = scene_of(self.file, self.set, self.packages, self.base, robot=robot)
        m = scene.mechanism
        with blamed_on(typed("--start", self.start)):
            solution = scene.solve()
        return solution, ([RATES[unit][1] for unit in velocity_units(m)], row_units(m))


def as_data(solution: Any) -> dict[str, Any]:
    """Return a solution as plain data."""
    c, system = solution.certificate, solution.system
    return {
        "status": solution.status.name.lower(),
        "message": solution.status.message,
        "acceleration": dict(zip(system.coordinates, solution.acceleration, strict=True)),
        "reactions": dict(zip(system.names, solution.reactions, strict=True)),
        "unique": dict(zip(system.names, map(bool, c.unique), strict=True)),
        "rank": c.rank,
    }


def words(solution: Any, rates: Sequence[str] = (), forces: Sequence[str] = ()) -> str:
    """Return a solution for a person: a line per coordinate and row with its unit, then the certificate."""
    system, c = solution.system, solution.certificate
    width = max((len(name) for name in (*system.coordinates, *system.names)), default=0)
    lines = ["accelerations"]
    rates, forces = rates or [""] * len(system.coordinates), forces or [""] * len(system.names)
    for name, x, unit in zip(system.coordinates, solution.acceleration, rates, strict=True):
        lines.append(f"  {name.ljust(width)}  {x + 0.0:14.6g} {unit}".rstrip())
    if system.names:
        lines.append("reactions")
        for name, x, unique, unit in zip(system.names, solution.reactions, c.unique, forces, strict=True):
            lines.append(f"  {name.ljust(width)}  {x + 0.0:14.6g} {unit:3s}  {'unique' if unique else 'one of many'}")
    return "\n".join([*lines, "", str(c)])
