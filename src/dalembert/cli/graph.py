"""`dalembert graph FILE`: which equation determines which unknown, and what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dalembert.cli.target import ROBOT_FILES, print_json
from dalembert.errors import ModelError

if TYPE_CHECKING:
    from dalembert.model import Mechanism
    from dalembert.tableau import Structure, Tableau


@dataclass(frozen=True)
class Graph:
    """Analyse equations (.toml), a pattern (.mtx) or a robot (URDF, SDF, MJCF, USD) before any number; draw it as SVG.

    Of a robot these are the equations of its tree in joint coordinates, by default for inverse dynamics, or those of
    its bodies in maximal coordinates, for forward dynamics. Springs and dampers are left out.

    Exit code 0: structurally solvable; 1: it is not, and the sets that do not fit are named; 2: the file could not be
    used.

    For example:

        dalembert graph equations.toml -o graph.svg

        dalembert graph robot.urdf --coordinates maximal
    """

    file: Annotated[Path, tyro.conf.Positional]
    """Equations (.toml; their layout is on the page "Named equations"), a pattern (.mtx) or a robot file."""

    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Where to write the picture, an SVG."""

    kind: str = "auto"
    """What to draw: "graph", "matrix", or "auto", the graph of up to 150 equations, the matrix of more."""

    coordinates: Literal["auto", "joint", "maximal"] = "auto"
    """Of a robot; "auto": joint coordinates of a tree, maximal ones where there are loops or free bodies."""

    granularity: Literal["essential", "newton-euler", "rotations", "motions", "products"] = "essential"
    """Of joint coordinates: which intermediate quantities are unknowns, 16, 25, 35, 65 or 123 a body."""

    known: tuple[str, ...] = ()
    """Variables of a robot that are given; default q qd qdd in joint coordinates, every tau in maximal ones."""

    base: Literal["auto", "fixed", "floating"] = "auto"
    """What holds the root of a robot."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Print the analysis, write the picture, and return the exit code."""
        from dalembert.readers.equation_file import read_pattern
        from dalembert.tableau import signature, structure
        from dalembert.tableau.structure.solvability import listed

        self._check_options()
        lines: list[str] = []
        if self.file.suffix.lower() == ".mtx":
            report = structure(read_pattern(self.file))
        else:
            tableau = self._tableau(lines)
            report = tableau.structure()
            if tableau.conditions and not tableau.instant:
                lines.append(f"without unknowns, conditions on known data: {listed(tableau.conditions)}")
            if report.solvable and tableau.differential:
                lines.append(str(signature(tableau)))
        lines.append(str(report))
        if self.output is not None:
            self._draw(report)
            lines.append(f"picture: {self.output}")
        if self.json:
            equations, unknowns = report.pattern.shape
            print_json({"solvable": bool(report.solvable), "equations": equations, "unknowns": unknowns,
                        "words": lines, "picture": self.output})  # fmt: skip
        else:
            print("\n".join(lines))
        return 0 if report.solvable else 1

    def _check_options(self) -> None:
        """Refuse options that cannot be obeyed, before any work."""
        if self.kind not in ("auto", "graph", "matrix"):
            raise ModelError(f"--kind {self.kind} is not auto, graph or matrix")
        robots = {"--known": self.known, "--coordinates": self.coordinates != "auto", "--base": self.base != "auto",
                  "--granularity": self.granularity != "essential"}  # fmt: skip
        wrong = [option for option, value in robots.items() if value]
        if wrong and self.file.suffix.lower() not in ROBOT_FILES:
            raise ModelError(f"{wrong[0]} is for robot files ({', '.join(ROBOT_FILES)}); {self.file} says itself")
        if self.output is None:
            return
        if self.output.suffix.lower() != ".svg":
            raise ModelError(
                f"{self.output}: the picture is an SVG; give a name that ends in .svg (a browser shows it)"
            )
        if self.output.is_dir() or not self.output.resolve().parent.is_dir():
            raise ModelError(f"{self.output} cannot be written: it is a folder, or its folder does not exist")

    def _tableau(self, lines: list[str]) -> Tableau:
        """Return the equations of a file; complaints about them begin with its name."""
        from dalembert.readers.equation_file import read_equations
        from dalembert.tableau import Tableau

        robot = self.file.suffix.lower() in ROBOT_FILES
        equations = None if robot else vars(read_equations(self.file))
        try:
            return self._robot(lines) if equations is None else Tableau(**equations)
        except ModelError as error:
            if str(error).startswith(str(self.file)):
                raise
            raise ModelError(f"{self.file}: {error}") from error

    def _robot(self, lines: list[str]) -> Tableau:
        """Return the equations of a robot, and say in `lines` what they leave out."""
        from dalembert.readers import load
        from dalembert.tableau import maximal, newton_euler

        mechanism = load(self.file, self.base, passive=False, allow_unphysical=True)
        if self.coordinates == "maximal" or (self.coordinates == "auto" and not _is_tree(mechanism)):
            tableau, words, inputs = maximal(mechanism), "maximal coordinates", "every tau"
        else:
            tableau, words = newton_euler(mechanism, self.granularity), "joint coordinates"
            inputs = ", ".join(("q, qd, qdd", *(f"lam {name}" for name in mechanism.names)))
        if self.known:
            tableau, inputs = tableau.with_known(self.known), ", ".join(self.known)
        lines.append(f"{mechanism.name}: {words}; known: {inputs}")
        if _has_passive(mechanism):
            lines.append("left out: springs and dampers")
        return tableau

    def _draw(self, structure: Structure) -> None:
        """Write the picture."""
        from dalembert.tableau.structure.pictures import LARGEST_GRAPH as LARGEST
        from dalembert.tableau.structure.pictures import structure_picture

        assert self.output is not None
        kind = self.kind
        if kind == "auto":
            kind = "graph" if max(structure.pattern.shape) <= LARGEST else "matrix"
        self.output.write_text(structure_picture(structure, kind), encoding="utf-8")


def _is_tree(mechanism: Mechanism) -> bool:
    """Whether it is a tree with nothing but couplings, and without free bodies."""
    coupled = all(constraint.kind == "coupler" for constraint in mechanism.all_constraints)
    return coupled and all(joint.kind != "free" for joint in mechanism.joints)


def _has_passive(mechanism: Mechanism) -> bool:
    """Whether the file gives springs, dampers or compensated weights."""
    lifted = any(body.compensation for body in mechanism.bodies)
    return bool(
        mechanism.springs or mechanism.tendons or lifted or mechanism.damping.any() or mechanism.stiffness.any()
    )
