"""`Scene`: a mechanism, its forces, contacts and start, and how it is simulated, read from a TOML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import asdict

from dalembert.errors import DalembertError, ModelError, scene_words
from dalembert.friction import Bounded, Dry, Hyperbolic, JointFriction, StaticKinetic, Stribeck, Tabulated
from dalembert.model.constraints import KINDS as CONSTRAINTS
from dalembert.model.mechanism.builder import Builder
from dalembert.model.mechanism.joint_values import put_values
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import Source
from dalembert.names import lookup, near_matches
from dalembert.readers import load
from dalembert.readers.file_keys import TomlLines, entries, key_of
from dalembert.readers.files import Folders, Packages, read_file, read_text
from dalembert.scenes.formulas import (
    StateNames,
    number,
    of_coordinates,
    of_time,
    parameter_values,
    read_table,
    table_column,
    vector,
)
from dalembert.scenes.keys import (
    ConstraintTable,
    ContactTable,
    FrictionTable,
    LawTable,
    SceneFile,
    TimeTable,
)
from dalembert.scenes.library import FOLDER, scene_names
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

PLACED = ("revolute", "prismatic", "cylindrical", "universal", "planar", "point_on_line", "point_in_plane")
"""Kinds of constraints with directions: in time these must be fixed to something."""

NO_PARAMETERS = (
    "the scene has no parameters; `parameters = { length = 0.3 }` at its top declares one, and numbers use it in "
    'quotes: center = [0, 0, "length/2"]'
)
"""What a scene without parameters is told."""

LONGEST_LINE = 100_000
"""Characters of a line: an expression has no more than a fifth of them."""

LARGEST = 8 * 2**20
"""Bytes of a scene file."""


def scene(path: str | Path, *, packages: Packages = None, **parameters: float) -> Scene:
    """Read a scene from a TOML file, or take one that comes with the package by its name.

    Parameters
    ----------
    path
        The file, or a name: `da.scene("bouncing_ball")`; `dalembert.scenes.scene_names()` lists them.
    packages
        Folders besides the scene's own from which models and tables may be read, as for `da.load`.
    parameters
        Values of the scene's parameters that take the place of those in the file.
    """
    file = Path(path)
    if file.suffix == "" and not file.exists():
        names = scene_names()
        if str(path) not in names:
            near = near_matches(str(path), names)
            hint = "" if near else f"; those that come with the package are {', '.join(names)}"
            raise ModelError(f"there is no scene {str(path)!r}, and no file of that name{hint}", near=near)
        file = FOLDER / f"{path}.toml"
    elif file.suffix.lower() != ".toml":
        kind = "a folder" if file.is_dir() else file.suffix
        raise ModelError(f"{file}: a scene is a .toml file, not {kind}")
    data = read_file(file, LARGEST)
    longest = max(map(len, data.splitlines()), default=0)
    if longest > LONGEST_LINE:  # before anything is looked for in it
        raise ModelError(f"a line of {longest} characters is above the limit of {LONGEST_LINE}", file)
    chosen = Scene(file, read_text(file, SceneFile, LARGEST), data.decode(), packages)
    return chosen.with_parameters(**parameters) if parameters else chosen


@dataclass(frozen=True, eq=False)
class Scene:
    """What is simulated: made by `da.scene(path)`, run by `run()`.

    Attributes
    ----------
    path, content, text
        The file, its tables, and its text.
    packages
        Folders besides its own that may be read.
    changes
        Parameters that take the place of those in the file.
    """

    path: Path
    content: SceneFile = field(repr=False)
    text: str = field(repr=False)
    packages: Packages = field(default=None, repr=False)
    changes: Mapping[str, float] = field(default_factory=dict)

    # --- places and numbers -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def title(self) -> str:
        """The title of the file, or its name."""
        return self.content.title or self.name.replace("_", " ")

    @cached_property
    def _lines(self) -> TomlLines:
        return TomlLines(self.text)

    def source(self, *path: str | int) -> Source:
        """Return where a table stands in the file."""
        return Source(str(self.path), self._lines.of(tuple(path)) if self.text else None)

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Let complaints begin with the file and the line of the key that they are about, in the words of scenes."""
        try:
            yield
        except ModelError as error:
            near, subject, words = error.near, error.subject, error
            if isinstance(error.source, Source) and error.source.file == str(self.path):
                path, words = self._lines.table_at(error.source.line), error.message
            elif str(error).startswith(str(self.path)):
                raise
            elif error.source is None:
                words = error.message
            else:
                near = ()
            raise ModelError(scene_words(words), self.source(*self._place(path, subject)), near, subject) from error
        except DalembertError as error:
            if str(error).startswith(str(self.path)):
                raise
            raise ModelError(scene_words(error), self.source(*path)) from error

    def _place(self, path: Sequence[str | int], subject: Any) -> Sequence[str | int]:
        """Return the place of what a complaint is about: in a table, or else anywhere in the file."""
        table: Any = self.content
        for step in path:
            table = dict(entries(table)).get(step)
        if inside := key_of(table, subject):
            return (*path, *inside)
        anywhere = key_of(self.content, subject)
        return anywhere if self._lines.of(anywhere) > 1 else path

    @cached_property
    def parameters(self) -> dict[str, float]:
        """Values of the parameters."""
        with self.at("parameters"):
            return parameter_values({**self.content.parameters, **self.changes})

    def with_parameters(self, **values: float) -> Scene:
        """Return the scene with other values of its parameters."""
        for name in values:
            if not self.content.parameters:
                raise ModelError(f"{name!r} cannot be set: {NO_PARAMETERS}", self.path)
            lookup(name, self.content.parameters, "parameter", self.source("parameters"))
        return replace(self, changes={**self.changes, **values})

    def _number(self, value: Any) -> float:
        return number(value, self.parameters)

    def _vector(self, values: Any) -> Any:
        return vector(values, self.parameters)

    def _file(self, reference: str) -> Path:
        """Return a file that the scene names, inside its own folder or a package."""
        path = Folders.of(self.path, self.packages).find(reference)
        if path is None:
            raise ModelError(
                f"the file {reference!r} is not there, or lies outside of the scene's folder; files elsewhere need "
                "--packages FOLDER (in Python packages=[folder])"
            )
        return path

    # --- the mechanism ------------------------------------------------------------------------------------------

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism with its constraints."""
        content = self.content
        if content.model is not None and (content.body or content.joint or content.visual):
            words = "a scene has either [model] or [[body]], [[joint]] and [[visual]], not both"
            raise ModelError(words, self.source("model"))
        if content.model is None and not content.body:
            raise ModelError(
                "there is nothing that could move: give [model] with a file, or [[body]] tables", self.path
            )
        bare = self._loaded() if content.model is not None else self._built()
        constraints = []
        for k, table in enumerate(content.constraint):
            with self.at("constraint", k):
                constraint = self._constraint(table, bare)
                constraint.check(bare)
                constraints.append(constraint)
        with self.at("constraint"):
            return bare.constrain(*constraints) if constraints else bare

    def _loaded(self) -> Mechanism:
        model, gravity = self.content.model, self.content.gravity
        assert model is not None
        with self.at("model"):
            passive = "auto" if model.passive is None else model.passive
            mechanism = load(self._file(model.file), model.base, packages=self.packages, passive=passive)
            return mechanism if gravity is None else mechanism.with_gravity(self._vector(gravity))

    def _built(self) -> Mechanism:
        content = self.content
        with self.at("gravity"):
            gravity = (0.0, 0.0, -9.81) if content.gravity is None else self._vector(content.gravity)
            b = Builder(self.title, gravity, str(self.path))
        for k, body in enumerate(content.body):
            with self.at("body", k):
                b.body(body.name, self._number(body.mass), self._vector(body.center), self._vector(body.inertia),
                       self.source("body", k))  # fmt: skip
        words = ("pitch", "damping", "friction", "armature", "stiffness", "rest")
        for k, joint in enumerate(content.joint):
            with self.at("joint", k):
                values: dict[str, Any] = {key: self._number(getattr(joint, key)) for key in words}
                values |= {key: self._vector(getattr(joint, key))
                           for key in ("axis", "axis2", "position", "rpy", "limits")}  # fmt: skip
                b.joint(joint.name, joint.kind, joint.parent, joint.child, source=self.source("joint", k), **values)
        for k, frame in enumerate(content.frame):
            with self.at("frame", k):
                b.frame(frame.name, frame.body, self._vector(frame.position), rpy=self._vector(frame.rpy),
                        source=self.source("frame", k))  # fmt: skip
        for k, shape in enumerate(content.visual):
            with self.at("visual", k):
                words = ("size", "position", "rpy", "color")
                values = {key: self._vector(getattr(shape, key)) for key in words}
                lookup(shape.body, {"world": None} | dict.fromkeys(b.bodies), "body")
                b.visual(shape.body, shape.kind, source=self.source("visual", k), **values)
        for k, spring in enumerate(content.spring):
            with self.at("spring", k):
                values = {key: self._number(getattr(spring, key)) for key in ("stiffness", "rest", "damping")}
                b.spring(spring.name, spring.frame, spring.other, source=self.source("spring", k), **values)
        with self.at():
            return b.build(content.base, strict=True)

    def _constraint(self, table: ConstraintTable, mechanism: Mechanism) -> Any:
        kind = lookup(table.kind, {kind.kind.replace(" ", "_"): kind for kind in CONSTRAINTS}, "kind of constraint")
        entries = {key: value for key in table.__struct_fields__ if (value := getattr(table, key)) is not None}
        del entries["kind"]
        taken = {part.name for part in fields(kind)}
        if table.kind == "expression":
            taken = {"name", "expression", "stabilize"}
        for key in entries:
            if key not in taken:
                words = f"a constraint of kind {table.kind!r} has no key {key!r}; it has {', '.join(sorted(taken))}"
                raise ModelError(words, subject=key)
        needed = {part.name for part in fields(kind) if _is_needed(part)} & {*table.__struct_fields__}
        for key in needed - {*entries}:
            raise ModelError(f"a constraint of kind {table.kind!r} needs the key {key!r}")
        if table.kind in PLACED and table.other is None and table.at is None:
            raise ModelError(
                f"a constraint of kind {table.kind!r} needs the key 'other', the frame that it is fixed to, or 'at', "
                "its place in the world: its axes must not turn with the frame that it holds"
            )
        if table.kind == "expression":
            if table.expression is None or table.name is None:
                raise ModelError("a constraint of kind 'expression' needs the keys 'name' and 'expression'")
            function = of_coordinates(table.expression, mechanism, self.parameters)
            moving = StateNames(mechanism, self.parameters).moves(table.expression)
            return kind(function, name=table.name, velocity=moving)  # pyright: ignore[reportCallIssue]
        options: dict[str, Any] = {}
        for key, value in entries.items():
            if key in ("at", "placement", "axis", "axis2", "normal"):
                options[key] = self._vector(value)
            elif key == "terms":
                options[key] = {name: self._number(factor) for name, factor in value.items()}
            elif key == "motion":
                options[key] = of_time(value, self.parameters) if isinstance(value, str) else value
            elif key in ("length", "radius", "offset", "stabilize"):
                options[key] = self._number(value)
            else:
                options[key] = value
        return kind(**options)

    # --- contacts, forces, start --------------------------------------------------------------------------------

    @cached_property
    def contacts(self) -> list[Any]:
        """Contacts, stops and dry friction, as `da.simulate` takes them."""
        from dalembert.simulate.contact import JointLimits

        several: list[Any] = [*self._shapes]
        for k, stop in enumerate(self.content.stop):
            with self.at("stop", k):
                several.append(JointLimits(tuple(stop.joints), self._number(stop.restitution)))
        for k, friction in enumerate(self.content.friction):
            with self.at("friction", k):
                several.append(self._friction(friction))
        return several

    @cached_property
    def _shapes(self) -> list[Any]:
        """Contacts of spheres and boxes."""
        several: list[Any] = []
        for k, contact in enumerate(self.content.contact):
            with self.at("contact", k):
                several.append(self._contact(contact))
        return several

    def _contact(self, table: ContactTable) -> Any:
        from dalembert.simulate.contact import Box, Contact, Plane, Sphere

        def sphere(s: Any) -> Any:
            self.mechanism.frame(s.frame)
            return Sphere(s.frame, self._number(s.radius), self._vector(s.at))

        if (table.sphere is None) == (table.box is None):
            raise ModelError('a contact has either a sphere or a box: sphere = { frame = "foot", radius = 0.02 }')
        if table.ground is not None and table.other is not None:
            raise ModelError("a contact is either with the ground or with another sphere, not both")
        if table.box is not None:
            self.mechanism.frame(table.box.frame)
            shape = Box(table.box.frame, self._vector(table.box.size), self._vector(table.box.at))
        else:
            shape = sphere(table.sphere)
        ground = table.ground
        plane = Plane() if ground is None else Plane(self._vector(ground.normal), self._number(ground.offset))
        return Contact(
            shape, plane if table.other is None else sphere(table.other), friction=self._number(table.friction),
            restitution=self._number(table.restitution), impact=table.impact, name=table.name,
        )  # fmt: skip

    def _friction(self, table: FrictionTable) -> Any:
        law, m = self._law(table.law), self.mechanism
        if isinstance(table.along, str):
            place = m.index_v(table.along)
            if place.stop - place.start != 1:
                raise ModelError(f"friction along {table.along!r}: name one of its coordinates", subject="along")
            return JointFriction(table.name, m.coordinates[place.start], law, surface=self._number(table.surface))
        direction = np.zeros(m.nv)
        for name, factor in table.along.items():
            direction[m.index_v(name)] = self._number(factor)
        return Bounded(table.name, direction, law, surface=self._number(table.surface))

    def _law(self, table: LawTable | float | str) -> Any:
        if not isinstance(table, LawTable):
            return Dry(self._number(table))
        kinds = {
            "dry": (Dry, {"limit": "limit"}, {}),
            "static-kinetic": (StaticKinetic, {"limit": "static_limit", "kinetic": "kinetic_limit"}, {}),
            "stribeck": (Stribeck, {"limit": "static_limit", "kinetic": "coulomb", "velocity": "velocity"},
                         {"exponent": "exponent", "viscous": "viscous"}),
            "hyperbolic": (Hyperbolic, {"limit": "static_limit"}, {"decay": "decay"}),
            "tabulated": (Tabulated, {"speeds": "speeds", "forces": "forces"}, {"limit": "static_limit"}),
        }  # fmt: skip
        law, needed, optional = kinds[table.kind]
        entries = {key: value for key in table.__struct_fields__ if (value := getattr(table, key)) is not None}
        del entries["kind"]
        for key in needed:
            if key not in entries:
                raise ModelError(f"the law {table.kind!r} needs the key {key!r}", subject="law")
        words = {**needed, **optional}
        for key in entries:
            if key not in words:
                keys = ", ".join(words)
                raise ModelError(f"the law {table.kind!r} has no key {key!r}; it has {keys}", subject="law")
        return law(**{
            words[key]: self._vector(value) if isinstance(value, tuple) else self._number(value)
            for key, value in entries.items()
        })  # fmt: skip

    @cached_property
    def force(self) -> dict[str, Any]:
        """Applied forces by joint or coordinate."""
        from dalembert.simulate import Table

        symbols = StateNames(self.mechanism, self.parameters)
        forces: dict[str, Any] = {}
        for name, value in self.content.force.items():
            with self.at("force", name):
                self.mechanism.index_v(name)
                if isinstance(value, TimeTable):
                    path = self._file(value.file)
                    columns = read_table(path)
                    times, values = (
                        table_column(columns, column_name, path) for column_name in (value.time, value.column)
                    )
                    forces[name] = Table(times, values, value.kind)
                elif isinstance(value, str):
                    forces[name] = symbols.function(value) if symbols.vary(value) else self._number(value)
                else:
                    forces[name] = value
        return forces

    @cached_property
    def start(self) -> tuple[Array, Array]:
        """The initial configuration and velocity, by name; loops closed where the scene asks for it."""
        m, table = self.mechanism, self.content.start
        q, v = self._pose(), np.zeros(m.nv)
        for which, by_name, array, index in (("q", table.q, q, m.index_q), ("v", table.v, v, m.index_v)):
            for name, value in by_name.items():
                with self.at("start", which, name):
                    place = index(name)
                    values = self._vector(value) if isinstance(value, tuple) else (self._number(value),)
                    put_values(m, array, place, name, values)
        if not table.assemble:
            q = m.normalize(q)
            return self._on_ground(q) if table.on_ground else q, v
        with self.at("start"):
            hold = list(table.q) if table.hold is None else table.hold
            closed = m.assemble(q, hold=hold, t=self._begin)
            if closed.ok:  # velocities that are given stay as well, others follow
                closed = m.assemble(
                    closed.q, v, hold=[name for name in table.v if name in hold or not table.hold], t=self._begin
                )
            if not closed.ok:
                words = f"the loops cannot be closed with {', '.join(hold) or 'nothing'} held: {closed}"
                if table.hold is None and table.q:
                    words += (
                        f"; all values of [start.q] stay unless hold names those that do: hold = [{_quoted(table.q)}]"
                    )
                raise ModelError(words, subject="assemble" if table.hold is None else "hold")
            return self._on_ground(closed.q) if table.on_ground else closed.q, closed.v

    @property
    def _begin(self) -> float:
        """Time at which the scene begins."""
        return 0.0 if self.content.simulate is None else self._number(self.content.simulate.start)

    def _pose(self) -> Array:
        """Return the configuration before coordinates are named: the file's, within stops; or that of the pose."""
        m, content = self.mechanism, self.content
        q, places = m.pose(), m.manifold
        stopped = {name for stop in content.stop for name in (stop.joints or [joint.name for joint in m.joints])}
        for i, joint in enumerate(m.joints):
            place = slice(int(places.q_start[i]), int(places.q_start[i + 1]))
            lower, upper = joint.limits.lower or (-np.inf,), joint.limits.upper or (np.inf,)
            if joint.name in stopped and place.stop - place.start == len(lower) == len(upper) == 1:
                q[place] = np.clip(q[place], lower, upper)
        if content.start.pose is None:
            return q
        with self.at("start", "pose"):
            if not m.poses:
                raise ModelError(
                    f"{m.name!r} has no poses by name: no keyframes, no .srdf file beside it; give coordinates by name"
                )
            for name, values in lookup(content.start.pose, {pose.name: pose for pose in m.poses}, "pose").values:
                put_values(m, q, m.index_q(name), name, values)
            return q

    def _on_ground(self, q: Array) -> Array:
        """Return a configuration whose free base is moved along the ground's normal: the lowest contact touches."""
        from dalembert.simulate.contact.shapes import Plane, pairs_of

        m = self.mechanism
        free = next((joint for joint in m.joints if joint.kind == "free" and joint.parent == m.ground), None)
        with self.at("start", "on_ground"):
            touching = [pair for pair in pairs_of(m, self._shapes) if isinstance(pair.ground, Plane)] if free else []
            if free is None or not touching:
                raise ModelError("on_ground needs a floating base, and a [[contact]] with the ground")
        gaps, normal = [], np.zeros(3)
        for pair in touching:
            assert pair.ball is not None
            assert isinstance(pair.ground, Plane)
            R, p = m.kinematics(q, pair.ball.frame)
            normal = np.asarray(pair.ground.normal, dtype=float)
            gaps.append(float(normal @ (p + R @ np.array(pair.ball.at)) - pair.ground.offset - pair.ball.radius))
        place = m.index_q(free.name).start
        lifted = q.copy()
        lifted[place : place + 3] -= min(gaps) * normal
        return lifted

    @cached_property
    def events(self) -> dict[str, Any]:
        """Events by name."""
        from dalembert.simulate.events.asked import Event

        symbols = StateNames(self.mechanism, self.parameters)
        signs = {"rising": 1, "falling": -1, "both": 0}
        events = {}
        for k, table in enumerate(self.content.event):
            with self.at("event", k):
                if table.name in events:
                    raise ModelError(f"two events are called {table.name!r}", subject="name")
                function = symbols.function(table.expression)
                events[table.name] = Event(function, table.terminal, signs[table.direction], table.name)
        return events

    # --- answers ------------------------------------------------------------------------------------------------

    @cached_property
    def options(self) -> dict[str, Any]:
        """The arguments of `da.simulate`, `duration` and the state among them."""
        table = self.content.simulate
        if table is None:
            raise ModelError("a scene that is simulated needs [simulate] with its duration in seconds", self.path)
        q, v = self.start
        with self.at("simulate"):
            words = ("duration", "rtol", "atol", "step", "max_step", "every")
            numbers = {key: None if (x := getattr(table, key)) is None else self._number(x) for key in words}
            options = {"q": q, "v": v, "t": self._number(table.start), "method": table.method, **numbers}
        options |= {"friction": table.friction, "massless": table.massless}
        options |= {key: value for key, value in asdict(table.options).items() if value is not None}
        for key, value in (("force", self.force), ("contacts", self.contacts), ("events", self.events)):
            if value:
                options[key] = value
        return options

    def run(self, **changes: Any) -> Trajectory:
        """Simulate the scene; `changes` are options of `da.simulate` that take the place of the scene's."""
        from dalembert.simulate.entry import simulate

        options = {**self.options, **changes}
        if not self.mechanism.nv:
            raise ModelError(
                'nothing can move: bodies that no joint carries are fixed; give a [[joint]], or base = "floating"',
                self.path,
            )
        with self.at("simulate"):
            return simulate(self.mechanism, options.pop("duration"), **options)

    def force_at(self, t: float, q: Array, v: Array) -> Array:
        """Return the applied forces (nv,) at a state."""
        from dalembert.simulate.equations.codes import Forces
        from dalembert.simulate.equations.controller import controller

        return np.asarray(Forces(controller(self.mechanism, self.force or None))(t, q, v))

    def solve(self) -> Any:
        """Return accelerations and reactions at the start, with their certificate; contacts do not act."""
        q, v = self.start
        t = self._begin
        return self.mechanism.solve(q, v, force=self.force_at(t, q, v), t=t)

    def __str__(self) -> str:
        content = self.content
        parts = {"contacts": len(self.contacts), "forces": len(content.force), "events": len(content.event)}
        words = [f"{count} {plural if count > 1 else plural[:-1]}" for plural, count in parts.items() if count]
        lines = [self.title, *([content.about.strip()] if content.about.strip() else []), "", str(self.mechanism)]
        if words:
            lines.append(", ".join(words))
        if self.parameters:
            lines.append("parameters: " + ", ".join(f"{name} = {x:g}" for name, x in self.parameters.items()))
        return "\n".join(lines)


def _quoted(names: Mapping[str, Any]) -> str:
    """Return the first of some names as TOML writes it."""
    return next((f'"{name}"' for name in names), "")


def _is_needed(field: Any) -> bool:
    """Return whether a field of a constraint has no default."""
    from dataclasses import MISSING

    return field.default is MISSING and field.default_factory is MISSING
