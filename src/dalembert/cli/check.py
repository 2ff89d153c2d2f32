"""`dalembert check`: what a file holds, which constraints are redundant, at one and at many configurations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from dalembert.cli.solve import as_data
from dalembert.cli.target import ROBOT_FILES, file_kind, print_json, scene_of, writable
from dalembert.errors import DalembertError, ModelError, scene_words
from dalembert.kkt import Diagnosis
from dalembert.kkt.limits import SLACK
from dalembert.model.constraints import (
    Constraint,
    Coupler,
    Cylindrical,
    Distance,
    Planar,
    Point,
    PointInPlane,
    PointOnLine,
    Prismatic,
    Revolute,
    Rolling,
    Servo,
    Universal,
    Weld,
)
from dalembert.model.mechanism.assemble import closed_or_none, closed_samples
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.readers import load, read_matrices

# ----------------------------------------------------------------------------------------------------------------------
# Constraints as words on the command line: `foot`, `hand:box`, `tip:top:z`, `a:b:0.35`, `left=1,right=-2`.
#
# Parts are joined by ':'. A name that has ':' in it, as those of nested models have, is one part. An empty part in the
# place of the other frame stands for none: `tip::z` is held where it is.


AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
Axis = tuple[float, ...]


def axis(text: str) -> Axis:
    """Return x, y, z, one of them with a minus, or three numbers `1,0,1`."""
    letter = text.casefold().removeprefix("-").removeprefix("+")
    if letter in AXES:
        return tuple(-x if text[0] == "-" and x else x for x in AXES[letter])
    values = tuple(number(x, "part of an axis") for x in text.split(","))
    if len(values) != 3:
        raise ModelError(f"{text!r} is no axis: x, y, z, -x, -y, -z, or three numbers as in 1,0,1")
    return values


def number(text: str, what: str = "number") -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError as error:
        raise ModelError(f"{text!r} is no {what}") from error


def metres(text: str) -> float:
    """Return a length."""
    return number(text, "length in metres")


def terms(text: str) -> dict[str, float]:
    """Return coordinates with their factors, `left=1,right=-2`."""
    factors: dict[str, float] = {}
    for part in text.split(","):
        name, equals, factor = part.rpartition("=")
        if not equals or not name or name in factors:
            raise ModelError(f"{part!r} is not coordinate=factor, or is there twice: write left=1,right=-2")
        factors[name] = number(factor, "factor")
    return factors


@dataclass(frozen=True)
class Word:
    """How an option is written, and how the constraint is made of its parts.

    Attributes
    ----------
    form
        As the help has it; parts in brackets may be left out.
    made
        Takes the first part, and what the others give by name.
    parts
        What comes after the first part: names of arguments, and what reads them; None for the other frame.
    least
        How many parts there must be.
    """

    form: str
    made: Callable[..., Constraint]
    parts: Sequence[tuple[str, Callable[[str], object] | None]] = ()
    least: int = 1

    def constraint(self, option: str, text: str, names: Collection[str]) -> Constraint:
        """Return the constraint that `text` stands for; `names` are those of the mechanism."""
        parts = split(text, names)
        try:
            if not self.least <= len(parts) <= 1 + len(self.parts) or not parts[0]:
                raise ModelError("a name is missing" if not parts[0] else f"{len(parts)} parts")
            options: dict[str, object] = {}
            for (name, read), part in zip(self.parts, parts[1:], strict=False):
                if part:
                    options[name] = part if read is None else read(part)
                elif read is not None or len(parts) == 2:
                    raise ModelError(f"nothing stands after ':' for the {name}")
            return self.made(parts[0], **options)
        except DalembertError as error:
            raise ModelError(f"--{option.replace('_', '-')} {text!r}: {error}; write {self.form}") from error


OTHER: tuple[str, None] = ("other", None)
AXIS = (OTHER, ("axis", axis))

WORDS: dict[str, Word] = {
    "point": Word("FRAME or FRAME:OTHER", Point, (OTHER,)),
    "weld": Word("FRAME or FRAME:OTHER", Weld, (OTHER,)),
    "revolute": Word("FRAME:OTHER:AXIS", Revolute, AXIS),
    "prismatic": Word("FRAME:OTHER:AXIS", Prismatic, AXIS),
    "cylindrical": Word("FRAME:OTHER:AXIS", Cylindrical, AXIS),
    "universal": Word("FRAME:OTHER:AXIS:AXIS2", Universal, (*AXIS, ("axis2", axis))),
    "planar": Word("FRAME:OTHER:AXIS", Planar, AXIS),
    "distance": Word("FRAME:OTHER:LENGTH, the length in metres", Distance, (OTHER, ("length", metres)), 3),
    "coupler": Word(
        "JOINT=FACTOR,JOINT=FACTOR or the same with :OFFSET",
        lambda text, **given: Coupler(terms(text), **given),
        (("offset", number),),
    ),
    "point_on_line": Word("FRAME:OTHER:AXIS", PointOnLine, AXIS),
    "point_in_plane": Word("FRAME:OTHER:NORMAL", PointInPlane, (OTHER, ("normal", axis))),
    "rolling": Word("FRAME:OTHER:RADIUS or FRAME:OTHER:RADIUS:AXIS", Rolling, (OTHER, ("radius", metres), AXIS[1]), 3),
    "servo": Word("JOINT:VALUE, radians or metres", Servo, (("motion", number),), 2),
}
"""Every option that makes a constraint; being here is being tested."""


def constraints(words: dict[str, Sequence[str]], mechanism: Mechanism) -> list[Constraint]:
    """Return the constraints of all words, by option."""
    parts = (*mechanism.bodies, *mechanism.joints, *mechanism.frames)
    names = {mechanism.ground, *mechanism.coordinates, *(part.name for part in parts)}
    additions = [WORDS[option].constraint(option, text, names) for option, texts in words.items() for text in texts]
    return distinct(additions, set(mechanism.names))


def distinct(made: Sequence[Constraint], taken: set[str]) -> list[Constraint]:
    """Return constraints of which no two have a row of the same name, nor one that is taken.

    On the command line nobody can give names: what comes second is called "foot (weld)", then "foot (2)", ...
    """
    named = []
    for constraint in made:
        others = (
            replace(constraint, name=f"{constraint.label} ({suffix})") for suffix in chain([constraint.kind], count(2))
        )
        renamed = next(renamed for renamed in chain([constraint], others) if taken.isdisjoint(renamed.row_names()))
        taken = taken | set(renamed.row_names())
        named.append(renamed)
    return named


def split(text: str, names: Collection[str]) -> list[str]:
    """Return the parts of a word; the longest name that stands at a part's beginning is the part."""
    parts, rest = [], text
    while True:
        candidates = [name for name in names if ":" in name and (rest == name or rest.startswith(f"{name}:"))]
        part = max(candidates, key=len, default=rest.partition(":")[0])
        parts.append(part)
        if rest == part:
            return parts
        rest = rest[len(part) + 1 :]


# ----------------------------------------------------------------------------------------------------------------------
# A mechanism looked at in several configurations: ranks, redundancy, massless motion, uniqueness of reactions.


@dataclass(frozen=True, eq=False)
class Finding:
    """One configuration.

    Attributes
    ----------
    place
        "neutral", "random 1", ...: where the search for it began.
    gap, widest
        Largest residual of the holonomic rows, and the row that has it ("" without rows).
    diagnosis
        What `KKT` says of it, at rest.
    """

    place: str
    gap: float
    widest: str
    diagnosis: Diagnosis

    @property
    def closed(self) -> bool:
        """Whether the constraints on configurations are met."""
        return self.gap <= SLACK

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        d = self.diagnosis
        return {
            "configuration": self.place,
            "closed": self.closed,
            "gap": self.gap,
            "widest": self.widest,
            "verdict": d.verdict.name.lower(),
            "message": d.verdict.message,
            "rank": d.rank,
            "rows": len(d.names),
            "mass_rank": d.mass_rank,
            "degrees_of_freedom": len(d.coordinates) - d.rank,
            "redundant": list(d.redundant_names),
            "inconsistent": [] if d.conflict is None else [d.names[i] for i in d.conflict.rows],
            "massless": list(d.massless_motions),
            "unique_reactions": [name for name, unique in zip(d.names, d.unique, strict=True) if unique],
            "reactions_not_unique": [name for name, unique in zip(d.names, d.unique, strict=True) if not unique],
        }

    def __str__(self) -> str:
        lines = [
            f"{self.place}: {'constraints met' if self.closed else 'constraints NOT met'} (largest gap {self.gap:.1e}"
        ]
        lines[0] += f", {self.widest})" if self.widest and not self.closed else ")"
        free = len(self.diagnosis.coordinates) - self.diagnosis.rank
        return "\n".join(
            [*lines, f"  {free} degrees of freedom", *(f"  {line}" for line in str(self.diagnosis).split("\n"))]
        )


@dataclass(frozen=True, eq=False)
class ConfigurationSurvey:
    """A mechanism and what was found; `print` it."""

    mechanism: Mechanism
    findings: tuple[Finding, ...]

    @property
    def solvable(self) -> bool:
        """Whether accelerations exist and are unique wherever the constraints are met, and they are met somewhere."""
        closed = [finding.diagnosis for finding in self.findings if finding.closed]
        return bool(closed) and all(sample.solvable and sample.conflict is None for sample in closed)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        m = self.mechanism
        return {
            "mechanism": m.name,
            "source": m.source,
            "bodies": len(m.bodies),
            "nq": m.nq,
            "nv": m.nv,
            "mass": m.mass,
            "loops": [loop.name for loop in m.loops],
            "couplings": [coupling.name for coupling in m.couplings],
            "rows": list(m.names),
            "notes": [scene_words(note) for note in m.notes],
            "solvable": self.solvable,
            "configurations": [finding.as_dict() for finding in self.findings],
        }

    def __str__(self) -> str:
        parts = [str(self.mechanism)]
        seen: dict[str, list[str]] = {}
        for finding in self.findings:
            lines = str(finding).split("\n", 1)
            seen.setdefault(_without_numbers(finding), []).append(lines[0])
            if len(seen[_without_numbers(finding)]) == 1:
                parts.append(str(finding))
            else:
                parts.append(f"{lines[0]}\n  as at {seen[_without_numbers(finding)][0].split(':')[0]}")
        return "\n\n".join(parts)


def _without_numbers(finding: Finding) -> str:
    """Return what two findings must share to be told once."""
    words = {k: v for k, v in finding.as_dict().items() if k not in ("configuration", "gap", "widest")}
    return repr(words)


def survey(mechanism: Mechanism, samples: int = 3, seed: int = 0, start: Any = None) -> ConfigurationSurvey:
    """Look at a mechanism at its neutral and at `samples` random configurations, each closed first where it can be.

    `start` takes the place of the neutral configuration.
    """
    if samples < 0 or seed < 0:
        raise ModelError(f"the number of random configurations and their seed are not negative; got {samples}, {seed}")
    close = closed_or_none(mechanism.project)
    first = mechanism.neutral() if start is None else start
    closed = close(first)
    findings = [_finding(mechanism, "neutral" if start is None else "start", first if closed is None else closed)]
    for i, (q, _) in enumerate(closed_samples(mechanism, close, samples, seed)):
        findings.append(_finding(mechanism, f"random {i + 1}", q))
    return ConfigurationSurvey(mechanism, tuple(findings))


def _finding(mechanism: Mechanism, place: str, q: np.ndarray) -> Finding:
    """Diagnose a configuration."""
    phi = np.abs(mechanism.constraint(q))
    rows = [name for name, has in zip(mechanism.names, mechanism.holonomic, strict=True) if has]
    gap = float(phi.max(initial=0.0))
    return Finding(place, gap, rows[int(phi.argmax())] if phi.size else "", mechanism.diagnose(q))


# ----------------------------------------------------------------------------------------------------------------------
# `dalembert check FILE`: say whether a system is solvable, and if not, why.


Words = tyro.conf.UseAppendAction[tuple[str, ...]]


MOST_CONFIGURATIONS = 100_000
"""Random configurations that are looked at."""


@dataclass(frozen=True)
class Check:
    """Diagnose a robot file (URDF, SDF, MJCF, USD), a scene, or a system given by its matrices (.toml, .json or .npz).

    A robot or a scene is looked at in its neutral (a scene: its initial) and in random configurations, each closed
    first: loops, ranks, redundant and inconsistent constraints by name, massless motion, uniqueness of reactions.
    Matrices are solved if the file has a force; the page "Files of matrices" of the documentation has their layout.

    Exit code 0: accelerations exist and are unique; 1: they do not; 2: the file could not be used.

    For example:

        dalembert check robot.urdf --point left_foot --point right_foot

        dalembert check door --report door.html

        dalembert check system.toml --json
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A robot file, a scene or its name, or matrices."""

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

    report: Path | None = None
    """Write a report: one HTML page."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Print the diagnosis (and the solution), and return the exit code."""
        writable(self.report, (".html",), "--report")
        kind = file_kind(self.file)
        if not 0 <= self.samples <= MOST_CONFIGURATIONS or self.seed < 0:
            raise ModelError(
                f"--samples {self.samples} --seed {self.seed}: up to {MOST_CONFIGURATIONS} configurations, and a "
                "seed that is not negative"
            )
        if kind in ("run", "equations"):
            raise ModelError(f"{self.file} holds {'a stored run' if kind == 'run' else kind}: try dalembert "
                             f"{'view' if kind == 'run' else 'graph'}")  # fmt: skip
        return self._matrices() if kind == "matrices" else self._mechanism(kind)

    def _mechanism(self, kind: str) -> int:
        start = None
        if kind == "robot":
            mechanism = load(self.file, self.base, strict=self.strict)
        else:
            scene = scene_of(self.file)
            mechanism, start = scene.mechanism, scene.start[0]
        mechanism = mechanism.constrain(*constraints({option: getattr(self, option) for option in WORDS}, mechanism))
        surveyed = survey(mechanism, self.samples, self.seed, start)
        self._report(mechanism.name, str(surveyed), surveyed.solvable, mechanism)
        if self.json:
            print_json(surveyed.as_dict())
        else:
            print(surveyed)
        return 0 if surveyed.solvable else 1

    def _report(self, title: str, text: str, solvable: bool, mechanism: Mechanism | None = None) -> None:
        """Write the report, if one is asked for."""
        if self.report is None:
            return
        from dalembert.view.page import page_of
        from dalembert.view.picture import picture_of
        from dalembert.view.report_page import Report
        from dalembert.view.run_report import versions

        page = Report(title, f"dalembert check {self.file}")
        words = "exist and are unique" if solvable else "do not exist everywhere, or are not unique"
        page.verdict(f"Accelerations {words}.", solvable)
        if mechanism is not None and mechanism.bodies:
            try:
                page.page(page_of(picture_of(mechanism)), f"{title}, drawn")
            except DalembertError as error:
                page.text(f"There is no picture: {error}")
        page.heading("Diagnosis")
        page.output(text)
        page.heading("Versions")
        page.table(("", "version"), versions())
        page.write(self.report)

    def _matrices(self) -> int:
        if any(getattr(self, option) for option in WORDS):
            raise ModelError(f"constraints are for robot files ({', '.join(ROBOT_FILES)}), not for {self.file}")
        problem = read_matrices(self.file)
        diagnosis = problem.system.diagnose(problem.drift if np.any(problem.drift) else None)
        solvable = bool(diagnosis.solvable) and diagnosis.conflict is None
        solution = (
            problem.system.solve(problem.force, problem.drift) if solvable and problem.force is not None else None
        )
        text = f"{self.file}\n{diagnosis}" + ("" if solution is None else f"\n\n{solution}")
        self._report(self.file.name, text, solvable)
        if self.json:
            print_json({**Finding("matrices", 0.0, "", diagnosis).as_dict(), "solvable": solvable,
                        "solution": None if solution is None else as_data(solution)})  # fmt: skip
        else:
            print(text)
        return 0 if solvable else 1
