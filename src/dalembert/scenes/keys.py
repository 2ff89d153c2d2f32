"""Layout of a scene file: every table and key that it may have.

A number may be written as an expression of the scene's parameters, "2*length". Tables are named by the thing that one
of them describes: [[body]], [[joint]], [[contact]].
"""

from __future__ import annotations

from typing import Literal

import msgspec

Number = float | str
"""A number, or an expression of parameters: "length / 2"."""

Vector = tuple[Number, ...]


class SceneTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a scene file: keys that it does not have are refused."""


class ModelTable(SceneTable, frozen=True):
    """[model]: a robot file in the scene's folder, with the options of `da.load`."""

    file: str
    base: Literal["auto", "fixed", "floating"] = "auto"
    passive: bool | None = None


class BodyTable(SceneTable, frozen=True):
    """[[body]]: a rigid body; without mass it is massless."""

    name: str
    mass: Number = 0.0
    center: Vector = (0.0, 0.0, 0.0)
    inertia: Vector | None = None


class JointTable(SceneTable, frozen=True):
    """[[joint]]: how a body moves relative to another, as `Builder.joint` takes it."""

    name: str
    kind: str
    child: str
    parent: str = "world"
    axis: Vector = (1.0, 0.0, 0.0)
    axis2: Vector = (0.0, 1.0, 0.0)
    position: Vector | None = None
    rpy: Vector | None = None
    pitch: Number = 0.0
    limits: Vector | None = None
    damping: Number = 0.0
    friction: Number = 0.0
    armature: Number = 0.0
    stiffness: Number = 0.0
    rest: Number = 0.0


class FrameTable(SceneTable, frozen=True):
    """[[frame]]: a named place on a body or on the world."""

    name: str
    body: str
    position: Vector | None = None
    rpy: Vector | None = None


class VisualTable(SceneTable, frozen=True):
    """[[visual]]: a shape that a body is drawn with; it neither weighs nor touches."""

    body: str
    kind: Literal["box", "sphere", "cylinder", "capsule", "ellipsoid"]
    size: Vector
    position: Vector | None = None
    rpy: Vector | None = None
    color: Vector | None = None


class SpringTable(SceneTable, frozen=True):
    """[[spring]]: a spring with damper between two frames."""

    name: str
    frame: str
    other: str
    stiffness: Number
    rest: Number = 0.0
    damping: Number = 0.0


class ConstraintTable(SceneTable, frozen=True):
    """[[constraint]]: rows that hold along the motion; which keys it takes depends on its kind."""

    kind: str
    name: str | None = None
    frame: str | None = None
    other: str | None = None
    at: Vector | None = None
    placement: Vector | None = None
    axis: Vector | None = None
    axis2: Vector | None = None
    normal: Vector | None = None
    length: Number | None = None
    radius: Number | None = None
    terms: dict[str, Number] | None = None
    offset: Number | None = None
    coordinate: str | None = None
    motion: Number | None = None
    expression: str | None = None
    stabilize: Number | None = None


class SphereTable(SceneTable, frozen=True):
    """A sphere on a frame; a point without a radius."""

    frame: str
    radius: Number = 0.0
    at: Vector = (0.0, 0.0, 0.0)


class BoxTable(SceneTable, frozen=True):
    """A box on a frame, whose corners touch."""

    frame: str
    size: Vector
    at: Vector = (0.0, 0.0, 0.0)


class PlaneTable(SceneTable, frozen=True):
    """The ground: normal . x = offset."""

    normal: Vector = (0.0, 0.0, 1.0)
    offset: Number = 0.0


class ContactTable(SceneTable, frozen=True):
    """[[contact]]: a sphere or a box that may touch the ground, or a sphere that may touch another."""

    sphere: SphereTable | None = None
    box: BoxTable | None = None
    ground: PlaneTable | None = None
    other: SphereTable | None = None
    friction: Number = 0.0
    restitution: Number = 0.0
    impact: Literal["newton", "poisson"] = "newton"
    name: str = ""


class StopTable(SceneTable, frozen=True):
    """[[stop]]: joints that stop at their limits."""

    joints: list[str] = []
    restitution: Number = 0.0


class LawTable(SceneTable, frozen=True):
    """A law of dry friction: which keys it takes depends on its kind."""

    kind: Literal["dry", "static-kinetic", "stribeck", "hyperbolic", "tabulated"]
    limit: Number | None = None
    kinetic: Number | None = None
    velocity: Number | None = None
    exponent: Number | None = None
    viscous: Number | None = None
    decay: Number | None = None
    speeds: Vector | None = None
    forces: Vector | None = None


class FrictionTable(SceneTable, frozen=True):
    """[[friction]]: dry friction along a joint, or along a sum of factor * coordinate; the other side may move."""

    name: str
    along: str | dict[str, Number]
    law: LawTable | Number
    surface: Number = 0.0


class TimeTable(SceneTable, frozen=True):
    """A force from a CSV file: a column over a column of times."""

    file: str
    column: str
    time: str = "t"
    kind: Literal["linear", "cubic", "previous"] = "linear"


class StartTable(SceneTable, frozen=True):
    """[start]: the initial state by name; what is not named is zero, or found where loops are closed.

    A joint with a [[stop]] whose limits leave out zero begins at the nearer one.
    """

    pose: str | None = None
    q: dict[str, Number | Vector] = {}
    v: dict[str, Number | Vector] = {}
    on_ground: bool = False
    assemble: bool = False
    hold: list[str] | None = None


class EventTable(SceneTable, frozen=True):
    """[[event]]: an expression whose zeros are wanted."""

    name: str
    expression: str
    direction: Literal["rising", "falling", "both"] = "both"
    terminal: bool = False


class OptionsTable(SceneTable, frozen=True):
    """Options of methods: all of them, none of which is a place or a system."""

    impacts: str | None = None
    stepper: str | None = None
    resolver: str | None = None
    sticking: str | list[str] | None = None
    form: str | None = None
    release: bool | None = None
    slack: float | None = None
    associated: bool | None = None
    event_tolerance: float | None = None
    stiffness: float | list[float] | None = None
    damping: float | None = None


class SimulateTable(SceneTable, frozen=True):
    """[simulate]: the options of `da.simulate`."""

    duration: Number
    start: Number = 0.0
    method: str = "auto"
    rtol: Number = 1e-8
    atol: Number = 1e-10
    step: Number | None = None
    max_step: Number | None = None
    every: Number | None = None
    friction: bool = True
    massless: Literal["hold"] | None = None
    options: OptionsTable = OptionsTable()


class OutputTable(SceneTable, frozen=True):
    """[output]: files that a run writes, names without folders, and the panels of its pictures."""

    panels: list[str] = []
    picture: str | None = None
    csv: str | None = None
    joint_forces: str | None = None
    run: str | None = None
    report: str | None = None


class RangeTable(SceneTable, frozen=True):
    """Values of a parameter: `count` equally spaced ones, or a distribution, of which --runs draws."""

    start: float | None = None
    stop: float | None = None
    count: int | None = None
    normal: tuple[float, float] | None = None
    uniform: tuple[float, float] | None = None


class MeasureTable(SceneTable, frozen=True):
    """One number of a run: the largest, smallest, last ... of a quantity by name."""

    of: str
    take: Literal["max", "min", "last", "first", "mean", "rms", "range"] = "max"


class SweepTable(SceneTable, frozen=True):
    """[sweep]: parameters that take several values, all combinations of them, and what is measured."""

    parameters: dict[str, list[float] | RangeTable] = {}
    measure: dict[str, MeasureTable] = {}


class SceneFile(SceneTable, frozen=True):
    """A scene file: either [model] or [[body]] and [[joint]]; [simulate] says how long."""

    title: str = ""
    about: str = ""
    gravity: Vector | None = None
    base: Literal["auto", "fixed", "floating"] = "fixed"
    parameters: dict[str, Number] = {}
    model: ModelTable | None = None
    body: list[BodyTable] = []
    joint: list[JointTable] = []
    frame: list[FrameTable] = []
    visual: list[VisualTable] = []
    spring: list[SpringTable] = []
    constraint: list[ConstraintTable] = []
    contact: list[ContactTable] = []
    stop: list[StopTable] = []
    friction: list[FrictionTable] = []
    force: dict[str, Number | TimeTable] = {}
    start: StartTable = StartTable()
    event: list[EventTable] = []
    simulate: SimulateTable | None = None
    output: OutputTable = OutputTable()
    sweep: SweepTable | None = None
