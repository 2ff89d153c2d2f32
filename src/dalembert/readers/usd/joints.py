"""Joints of UsdPhysics: kinds, frames, limits, drives; joints of free and locked axes as chains.

A drive is a spring with a damper, stiffness (target - x) + damping (target velocity - v), in degrees where it turns:

    [angular stiffness] = mass length^2 / s^2 / degree,   [angular damping] = mass length^2 / s / degree.

A general joint (PhysicsJoint) holds the axes whose lower limit is above the upper one. Its free ones become sliders
along x, y, z, then hinges about x, y, z, with massless bodies between them; three free turns without drives and limits
become one ball joint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from dalembert.errors import UnsupportedError
from dalembert.model.mechanism.parts import Body, Coupling, Joint, Limits, Loop
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.draft import GROUND
from dalembert.readers.usd.stage import UsdScene, import_usd

KINDS = {
    "PhysicsFixedJoint": "fixed",
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical",
    "PhysicsDistanceJoint": "distance",
    "PhysicsJoint": "general",
}
AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
SLIDES, TURNS = ("transX", "transY", "transZ"), ("rotX", "rotY", "rotZ")

ARMATURES = ("newton:armature", "physxJoint:armature", "mjc:armature")
"""Attributes of tools that give a rotor's inertia seen at the joint; the first that is there counts."""

READ = (*ARMATURES, "physxJoint:maxJointVelocity", "newton:mimicCoef0", "newton:mimicCoef1", "newton:mimicEnabled")
"""Attributes of tools that are read."""

SPACES = ("physics", "drive", "limit", "state", "physxMimicJoint")
"""First words of attributes that are read or named elsewhere."""

BODIES = ("body0", "body1")


@dataclass(frozen=True)
class EndPlaces:
    """The two bodies of a joint and the joint's frame in each."""

    bodies: tuple[str, str]
    placements: tuple[Placement, Placement]


@dataclass
class JointReading:
    """Joints that were read: those that may carry bodies, those the file puts outside of its trees, and constraints.

    Attributes
    ----------
    body_of
        body_of(prim): the rigid body that a prim is or belongs to, or None.
    units
        Radians per degree, or metres per unit, of a joint's coordinate, by the joint's name.
    """

    scene: UsdScene
    body_of: Callable[[Any], Any]
    joints: list[Joint] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)
    loops: list[Loop] = field(default_factory=list)
    units: dict[str, float] = field(default_factory=dict)

    def add(self, prim: Any) -> None:
        """Read one joint."""
        scene, type_name = self.scene, str(prim.GetTypeName())
        if type_name not in KINDS:
            raise scene.error(prim, f"joints of type {type_name} are not read; UsdPhysics' own are", UnsupportedError)
        if not scene.value(prim, "physics:jointEnabled", True):
            return scene.place(prim, "joints that are switched off")
        ends = self._ends(prim)
        if ends.bodies[0] == ends.bodies[1]:
            if ends.bodies[0] == GROUND:
                return scene.place(prim, "joints between things that stand still")
            raise scene.error(prim, f"joins {ends.bodies[0]!r} to itself")
        self._note_the_rest(prim)
        name, kind = scene.names[str(prim.GetPath())], KINDS[type_name]
        if kind == "distance":
            return self._distance(prim, name, ends)
        chain = self._general(prim, name) if kind == "general" else [self._simple(prim, name, kind)]
        self._connect(prim, name, [joint for joint in chain if joint is not None], ends)
        return None

    def _connect(self, prim: Any, name: str, chain: list[Joint], ends: EndPlaces) -> None:
        """Put joints one behind the other between two bodies."""
        if not chain:
            return self.scene.place(prim, "joints that hold nothing")
        draft, parent, placement = self.scene.draft, ends.bodies[0], ends.placements[0]
        for k, joint in enumerate(chain):
            last = k == len(chain) - 1
            child = ends.bodies[1] if last else draft.new_name("body", f"{name}_link_{k + 1}")
            if not last:
                draft.bodies.append(Body(child, source=joint.source))
            inner = ends.placements[1] if last else IDENTITY
            whole = replace(joint, parent=parent, child=child, placement=placement, child_placement=inner)
            self.joints.append(whole)
            if self.scene.value(prim, "physics:excludeFromArticulation", False):
                self.outside.add(whole.name)
            parent, placement = child, IDENTITY
        return None

    def _ends(self, prim: Any) -> EndPlaces:
        """Return what a joint joins: rigid bodies, or the ground where a side names nothing or what stands still."""
        scene, bodies, placements = self.scene, [], []
        for side, role in enumerate(BODIES):
            relation = prim.GetRelationship(f"physics:{role}")
            targets = relation.GetTargets() if relation else []
            if len(targets) > 1:
                raise scene.error(prim, f"physics:{role} names {len(targets)} prims; one is allowed")
            position = scene.vector(prim, f"physics:localPos{side}", (0.0, 0.0, 0.0)) * scene.length
            X, body = IDENTITY, None
            if targets:
                target = scene.stage.GetPrimAtPath(targets[0])
                if not target:
                    raise scene.error(prim, f"physics:{role} = <{targets[0]}>, which is not there")
                X, scale = scene.frame(target)
                position, body = position * scale, self.body_of(target)
            X = X @ Placement(position=position) @ scene.rotation(prim, f"physics:localRot{side}")
            bodies.append(GROUND if body is None else scene.names[str(body.GetPath())])
            placements.append(X if body is None else scene.frame(body)[0].inverse() @ X)
        return EndPlaces((bodies[0], bodies[1]), (placements[0], placements[1]))

    def _simple(self, prim: Any, name: str, kind: str) -> Joint:
        """Return a joint of one kind; bodies and placements are filled in later."""
        scene = self.scene
        joint = Joint(name, kind, "", "", source=scene.source(prim))
        if kind == "fixed":
            return joint
        if kind == "spherical":
            for angle in ("coneAngle0Limit", "coneAngle1Limit"):
                if scene.number(prim, f"physics:{angle}", -1.0, infinite=True) >= 0.0:
                    scene.place(prim, f"physics:{angle}, the limit of a ball joint")
            self._leave_drives(prim, TURNS)
            return joint
        letter = str(scene.value(prim, "physics:axis", "X"))
        if letter not in AXES:
            raise scene.error(prim, f"physics:axis = {letter!r} is none of X, Y, Z")
        drive = "angular" if kind == "revolute" else "linear"
        bounds = [scene.number(prim, f"physics:{end}Limit", default, infinite=True)
                  for end, default in (("lower", -math.inf), ("upper", math.inf))]  # fmt: skip
        if bounds[0] > bounds[1]:
            raise scene.error(prim, f"physics:lowerLimit = {bounds[0]:g} is above physics:upperLimit = {bounds[1]:g}")
        return self._one_axis(prim, replace(joint, axis=AXES[letter]), drive, bounds)

    def _one_axis(self, prim: Any, joint: Joint, drive: str, bounds: Iterable[float]) -> Joint:
        """Return a hinge or a slider with limits, drive and rotor, SI."""
        scene, turns = self.scene, joint.kind == "revolute"
        unit = math.pi / 180 if turns else scene.length
        self.units[joint.name] = unit
        lower, upper = (float(bound) * unit for bound in bounds)
        stiffness, damping, rest, effort = self._drive(prim, drive, turns)
        most = scene.number(prim, "physxJoint:maxJointVelocity", math.inf, infinite=True) * unit
        inertia = scene.mass * (scene.length**2 if turns else 1.0)
        armature = next((scene.number(prim, a, 0.0) for a in ARMATURES if prim.GetAttribute(a)), 0.0) * inertia
        return replace(
            joint,
            limits=Limits(*(() if math.isinf(x) else (x,) for x in (lower, upper, most, effort))),
            stiffness=(stiffness,) if stiffness else (),
            rest=(rest,) if stiffness else (),
            damping=(damping,) if damping else (),
            armature=(armature,) if armature else (),
        )

    def _drive(self, prim: Any, name: str, turns: bool) -> tuple[float, float, float, float]:
        """Return stiffness, damping, rest and largest force of a drive, SI."""
        pxr, scene = import_usd(), self.scene
        if not prim.HasAPI(pxr.UsdPhysics.DriveAPI, name):
            return 0.0, 0.0, 0.0, math.inf
        start = f"drive:{name}:physics:"
        unit = math.pi / 180 if turns else scene.length
        force = scene.mass * scene.length * (scene.length if turns else 1.0)
        stiffness, damping = (scene.number(prim, start + quantity, 0.0) for quantity in ("stiffness", "damping"))
        if min(stiffness, damping) < 0.0:
            raise scene.error(
                prim, f"{start}stiffness and damping are {stiffness:g} and {damping:g}; neither is negative"
            )
        effort = scene.number(prim, f"{start}maxForce", math.inf, infinite=True) * force
        if str(scene.value(prim, f"{start}type", "force")) != "force":
            scene.place(prim, "drives that give accelerations, whose stiffness depends on the configuration")
            return 0.0, 0.0, 0.0, effort
        target = scene.number(prim, f"{start}targetPosition", 0.0)
        speed = scene.number(prim, f"{start}targetVelocity", 0.0)
        if speed and damping and stiffness:
            target += damping * speed / stiffness
        elif speed and damping:
            scene.place(prim, "constant forces of drives (damping times target velocity)")
        if (stiffness or damping) and math.isfinite(effort):
            scene.place(prim, "largest forces of drives, beyond which their springs and dampers act here")
        return stiffness * force / unit, damping * force / unit, target * unit, effort

    def _general(self, prim: Any, name: str) -> list[Joint]:
        """Return the chain of a joint that says of every axis whether it is free."""
        pxr, scene = import_usd(), self.scene
        bounds: dict[str, tuple[float, float]] = {}
        for freedom in (*SLIDES, *TURNS):
            low, high = -math.inf, math.inf
            if prim.HasAPI(pxr.UsdPhysics.LimitAPI, freedom):
                low = scene.number(prim, f"limit:{freedom}:physics:low", low, infinite=True)
                high = scene.number(prim, f"limit:{freedom}:physics:high", high, infinite=True)
            if low <= high:
                bounds[freedom] = low, high
        if prim.HasAPI(pxr.UsdPhysics.LimitAPI, "distance"):
            scene.place(prim, "limits of distances in joints of free axes")
        driven = [freedom for freedom in (*SLIDES, *TURNS) if prim.HasAPI(pxr.UsdPhysics.DriveAPI, freedom)]
        plain = not driven and not any(math.isfinite(x) for freedom in bounds for x in bounds[freedom])
        if plain and len(bounds) == 6:
            return []
        joint = Joint(name, "fixed", "", "", source=scene.source(prim))
        if not bounds:
            return [joint]
        turns = [freedom for freedom in TURNS if freedom in bounds]
        ball = len(turns) == 3 and not any(
            freedom in driven or any(math.isfinite(x) for x in bounds[freedom]) for freedom in turns
        )
        if len(turns) > 1 and not ball:
            order = ", then ".join(freedom[-1].lower() for freedom in turns)
            scene.draft.notes.append(
                f"{joint.source}: it turns about several axes; they are read as hinges about {order}"
            )
        free = [freedom for freedom in bounds if not (ball and freedom in TURNS)]
        chain = []
        for freedom in free:
            kind = "prismatic" if freedom in SLIDES else "revolute"
            axis = replace(
                joint, name=name if len(bounds) == 1 else f"{name}_{freedom}", kind=kind, axis=AXES[freedom[-1]]
            )
            chain.append(self._one_axis(prim, axis, freedom, bounds[freedom]))
        if ball:
            chain.append(replace(joint, name=f"{name}_rot" if free else name, kind="spherical"))
        return chain

    def _distance(self, prim: Any, name: str, ends: EndPlaces) -> None:
        """Add a rod where least and largest distance agree; a rope is left out."""
        scene = self.scene
        least, most = (scene.number(prim, f"physics:{bound}Distance", -1.0) for bound in ("min", "max"))
        if least != most or most <= 0.0:
            return scene.place(prim, "distances that may vary between limits; contacts and stops act in a run")
        options = (("length", most * scene.length),)
        (a, b), (X, Y) = ends.bodies, ends.placements
        self.loops.append(Loop(name, "distance", a, b, X, Y, options=options, source=scene.source(prim)))
        return None

    def _leave_drives(self, prim: Any, names: Iterable[str]) -> None:
        api = import_usd().UsdPhysics.DriveAPI
        for freedom in names:
            if prim.HasAPI(api, freedom):
                self.scene.place(prim, "drives of ball joints")

    def _note_the_rest(self, prim: Any) -> None:
        """Name what a joint says besides, and a run does not use."""
        scene = self.scene
        for quantity in ("breakForce", "breakTorque"):
            if math.isfinite(scene.number(prim, f"physics:{quantity}", math.inf, infinite=True)):
                scene.place(prim, f"physics:{quantity}: joints do not break")
        names = [attribute.GetName() for attribute in prim.GetAuthoredAttributes()]
        foreign = (name.split(":")[0] for name in names if ":" in name and name not in READ)
        for space in dict.fromkeys(space for space in foreign if space not in SPACES):
            scene.place(prim, f"attributes {space}:..., which UsdPhysics does not know")
        for name in names:
            if name.startswith("state:") and name.endswith(":position") and scene.value(prim, name, 0.0):
                scene.place(prim, f"{name}: where a simulator has stopped")

    def couplings(self, prims: Iterable[Any]) -> list[Coupling]:
        """Return mimic joints as couplings: q = c0 + c1 leader (Newton), q + gearing leader + offset = 0 (PhysX)."""
        scene, rows = self.scene, []
        for prim in prims:
            for relation in prim.GetAuthoredRelationships():
                role, name = relation.GetName(), scene.names[str(prim.GetPath())]
                if role == "newton:mimicJoint" and scene.value(prim, "newton:mimicEnabled", True):
                    offset = scene.number(prim, "newton:mimicCoef0", 0.0) * self.units.get(name, 1.0)
                    factor = scene.number(prim, "newton:mimicCoef1", 1.0)
                elif role.startswith("physxMimicJoint:") and role.endswith(":referenceJoint"):
                    start = role.removesuffix("referenceJoint")
                    offset = -scene.number(prim, f"{start}offset", 0.0) * self.units.get(name, 1.0)
                    factor = -scene.number(prim, f"{start}gearing", 1.0)
                else:
                    continue
                leader = self._leader(prim, relation)
                for member in (name, leader):
                    if member not in self.units:
                        raise scene.error(prim, f"{role}: {member!r} is not a hinge or a slider")
                terms = ((name, 1.0), (leader, -factor))
                rows.append(Coupling(f"{name}_mimic", terms, offset, scene.source(prim)))
        return rows

    def _leader(self, prim: Any, relation: Any) -> str:
        targets = relation.GetTargets()
        if len(targets) != 1 or str(targets[0]) not in self.scene.names:
            raise self.scene.error(prim, f"{relation.GetName()} names no joint of the file")
        return self.scene.names[str(targets[0])]
