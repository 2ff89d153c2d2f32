"""USD: rigid bodies of UsdPhysics on a spanning tree of their joints; the other joints close loops.

Coordinates are those of the stage, in metres: where y is up, gravity is along -y. A body that no joint holds floats.
Joints with `excludeFromArticulation` carry a body only where no other joint does.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, UnsupportedError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.parts import FILE_POSE, Body, CollisionShape, Frame, Joint, Visual
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.readers.draft import GROUND, NAMED, Draft
from dalembert.readers.files import Folders
from dalembert.readers.spanning import as_loop, reverse, span
from dalembert.readers.usd.joints import JointReading
from dalembert.readers.usd.masses import TURNED, inertia_of, round_measures
from dalembert.readers.usd.stage import MOST_PRIMS, UsdScene, import_usd, opened

EARTH = 9.81
"""Gravity where a scene gives no magnitude, m/s^2, as in OpenUSD."""

AWAY = 1e-5
"""Part of the model's size, and radians, by which bodies may stand off their joints' zero: single precision."""


def read_usd(path: Path, folders: Folders) -> Draft:
    """Return what a USD file says."""
    stage = opened(path, folders)
    root = stage.GetDefaultPrim()
    draft = Draft(root.GetName() if root else path.stem, str(path), rooted=True)
    reading = _Reading(UsdScene(stage, draft))
    reading.look()
    reading.gravity()
    reading.add_bodies()
    reading.connect()
    return draft


class _Reading:
    """One reading: prims by what they are, then bodies, then what connects them."""

    def __init__(self, scene: UsdScene) -> None:
        self.scene, self.draft = scene, scene.draft
        self.pxr = import_usd()
        self.bodies: list[Any] = []
        self.joints: list[Any] = []
        self.scenes: list[Any] = []
        self.shapes: dict[str, list[Any]] = {}
        self.others: list[tuple[Any, Any]] = []

    def look(self) -> None:
        """Sort the prims of the stage."""
        Usd, Physics, scene = self.pxr.Usd, self.pxr.UsdPhysics, self.scene
        for count, prim in enumerate(scene.stage.Traverse(Usd.TraverseInstanceProxies())):
            if count >= MOST_PRIMS:
                raise scene.error(prim, f"more than {MOST_PRIMS} prims")
            if prim.HasAuthoredMetadata("clips"):
                raise scene.error(prim, "values from clips in other files are not read", UnsupportedError)
            kind = str(prim.GetTypeName())
            if kind.endswith("Joint"):
                self.joints.append(prim)
            elif kind == "PhysicsScene":
                self.scenes.append(prim)
            elif prim.HasAPI(Physics.RigidBodyAPI) and scene.value(prim, "physics:rigidBodyEnabled", True):
                self.bodies.append(prim)
            if not kind.endswith("Joint") and (body := self.body_of(prim)) is not None:
                self.others.append((prim, body))
                if prim.HasAPI(Physics.CollisionAPI):
                    self.shapes.setdefault(str(body.GetPath()), []).append(prim)
        if not self.bodies:
            words = "no prim with PhysicsRigidBodyAPI: there is nothing to move"
            raise scene.error(scene.stage.GetPseudoRoot(), words)
        scene.name_all(self.bodies)
        scene.name_all(self.joints)

    def body_of(self, prim: Any) -> Any:
        """Return the rigid body that a prim is or belongs to: the nearest above it; None where it stands still."""
        while prim and not prim.IsPseudoRoot():
            if prim.HasAPI(self.pxr.UsdPhysics.RigidBodyAPI):
                return prim if self.scene.value(prim, "physics:rigidBodyEnabled", True) else None
            prim = prim.GetParent()
        return None

    def gravity(self) -> None:
        """Take gravity from the physics scene; what it does not give is down, and the earth's."""
        scene, draft = self.scene, self.draft
        up = np.eye(3)["XYZ".find(str(self.pxr.UsdGeom.GetStageUpAxis(scene.stage)))]
        direction, size = -up, EARTH
        if not self.scenes:
            draft.notes.append(f"gravity: the file has no PhysicsScene; {EARTH:g} m/s^2 down is used")
        elif len(self.scenes) > 1:
            draft.notes.append(f"gravity: {len(self.scenes)} scenes; that of {scene.source(self.scenes[0])} is used")
        for prim in self.scenes[:1]:
            vector = scene.vector(prim, "physics:gravityDirection", (0.0, 0.0, 0.0))
            direction = vector / np.linalg.norm(vector) if vector.any() else -up
            magnitude = scene.number(prim, "physics:gravityMagnitude", -math.inf, infinite=True)
            size = EARTH if magnitude < 0.0 else magnitude * scene.length
            if math.isinf(size):
                raise scene.error(prim, "physics:gravityMagnitude is infinite")
        x, y, z = (float(value) + 0.0 for value in size * direction)
        draft.gravity = (x, y, z)
        if up[2] != 1.0:
            draft.notes.append(f"{'xyz'[int(np.argmax(up))]} is up in this file; coordinates stay as they are")

    def add_bodies(self) -> None:
        """Add bodies with inertias, visuals and frames."""
        scene, draft = self.scene, self.draft
        for prim in self.bodies:
            name, shapes = scene.names[str(prim.GetPath())], self.shapes.get(str(prim.GetPath()), [])
            draft.new_name("body", name)
            try:
                inertia = inertia_of(scene, prim, shapes)
            except DalembertError as error:
                if str(error).startswith(draft.file):
                    raise
                raise scene.error(prim, str(error)) from error
            without = bool(scene.value(prim, "physxRigidBody:disableGravity", False))
            if without:
                draft.notes.append(f"{scene.source(prim)}: gravity does not act on it, as the file says")
            draft.bodies.append(Body(name, inertia, scene.source(prim), 1.0 if without else 0.0))
            draft.shapes += [name] * len(shapes)
        for prim, body in self.others:
            name, X = scene.names[str(body.GetPath())], scene.frame(body)[0].inverse()
            if prim.IsA(self.pxr.UsdGeom.Gprim):
                self._visual(prim, name, X)
                if prim.HasAPI(self.pxr.UsdPhysics.CollisionAPI):
                    self._collision(prim, name, X)
            elif prim != body and prim.IsA(self.pxr.UsdGeom.Xform) and not prim.GetAllChildren():
                place = draft.new_name("body", prim.GetName())
                draft.frames.append(Frame(place, name, X @ scene.frame(prim)[0], scene.source(prim)))

    def _visual(self, prim: Any, body: str, to_body: Placement) -> None:
        """Add a shape that is shown; one that cannot be drawn is left out."""
        scene, geometry = self.scene, self.pxr.UsdGeom.Imageable(prim)
        if str(geometry.ComputePurpose()) not in ("default", "render", "proxy"):
            return
        if str(geometry.ComputeVisibility(scene.start)) == "invisible":
            return
        kind, X = str(prim.GetTypeName()), to_body @ scene.frame(prim)[0]
        scale = scene.frame(prim)[1] * scene.length
        try:
            if kind == "Cube":
                size = tuple(float(x) for x in scene.number(prim, "size", 2.0) * scale)
                self.draft.visuals.append(Visual(body, "box", size, X, self._color(prim), source=scene.source(prim)))
            elif kind in ("Sphere", "Cylinder", "Capsule"):
                r, h, axis = round_measures(scene, prim)
                X = X @ Placement(TURNED[axis]) if axis in TURNED else X
                size = (r,) if kind == "Sphere" else (r, h)
                shape = Visual(body, kind.lower(), size, X, self._color(prim), source=scene.source(prim))
                self.draft.visuals.append(shape)
            else:
                scene.place(prim, f"not drawn: a {kind}")
        except UnsupportedError:
            scene.place(prim, f"not drawn: a {kind} with scales that differ by axis")

    def _collision(self, prim: Any, body: str, to_body: Placement) -> None:
        """Add a shape that collides, with the friction and restitution of its physics material."""
        scene = self.scene
        if not scene.value(prim, "physics:collisionEnabled", True):
            return
        kind, X = str(prim.GetTypeName()), to_body @ scene.frame(prim)[0]
        scale, points = scene.frame(prim)[1] * scene.length, None
        try:
            if kind == "Cube":
                form, size = "box", tuple(float(x) for x in scene.number(prim, "size", 2.0) * scale)
            elif kind in ("Sphere", "Cylinder", "Capsule"):
                r, h, axis = round_measures(scene, prim)
                X = X @ Placement(TURNED[axis]) if axis in TURNED else X
                form, size = kind.lower(), ((r,) if kind == "Sphere" else (r, h))
            elif kind == "Mesh":
                form, size = "mesh", (1.0, 1.0, 1.0)
                points = np.array(scene.value(prim, "points", ()), dtype=float).reshape(-1, 3) * scale
            else:
                scene.place(prim, f"touches nothing: a {kind}")
                return
        except UnsupportedError:
            scene.place(prim, f"touches nothing: a {kind} with scales that differ by axis")
            return
        if min(size) <= 0.0:
            scene.place(prim, f"touches nothing: a {kind} without extent")
            return
        shape = CollisionShape(
            str(prim.GetName()), body, form, size, X, points=points, source=scene.source(prim), **self._law(prim)
        )
        self.draft.collision_shapes.append(shape)

    def _law(self, prim: Any) -> dict[str, Any]:
        """Return friction and restitution of the physics material that is bound to a shape."""
        bound = self.pxr.UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")[0]
        if not bound or not bound.GetPrim().HasAPI(self.pxr.UsdPhysics.MaterialAPI):
            return {}
        mu = self.scene.number(bound.GetPrim(), "physics:dynamicFriction", 0.0)
        e = self.scene.number(bound.GetPrim(), "physics:restitution", 0.0)
        return {"friction": max(float(mu), 0.0), "restitution": min(max(float(e), 0.0), 1.0)}

    def _color(self, prim: Any) -> tuple[float, float, float, float] | None:
        """Return the first display colour of a shape."""
        colors = self.scene.value(prim, "primvars:displayColor", None)
        if not colors:
            return None
        opacity = self.scene.value(prim, "primvars:displayOpacity", None) or (1.0,)
        values = (*(float(x) for x in colors[0]), float(opacity[0]))
        r, g, b, a = (min(max(x, 0.0), 1.0) if math.isfinite(x) else 1.0 for x in values)
        return r, g, b, a

    def connect(self) -> None:
        """Choose which joints carry bodies; roots that nothing holds float."""
        scene, draft = self.scene, self.draft
        reading = JointReading(scene, self.body_of)
        for prim in self.joints:
            reading.add(prim)
        joints = [reverse(joint) if joint.child == GROUND else joint for joint in reading.joints]
        joints += [self._held(prim) for prim in self.bodies if scene.value(prim, "physics:kinematicEnabled", False)]
        names = [body.name for body in draft.bodies]
        roots = [scene.names[str(prim.GetPath())] for prim in self.bodies
                 if prim.HasAPI(self.pxr.UsdPhysics.ArticulationRootAPI)]  # fmt: skip
        spanning = span(names, joints, GROUND, roots, reading.outside)
        for joint in spanning.tree:
            draft.joints.append(joint)
        for name in spanning.reversed:
            draft.notes.append(f"joint {name!r} is turned around: its parent is carried by its child")
        places = {scene.names[str(prim.GetPath())]: scene.frame(prim)[0] for prim in self.bodies}
        for name in spanning.roots:
            self._float(name, places, len(spanning.roots) == 1)
        for joint in spanning.loops:
            draft.loops.append(as_loop(joint))
            if any((*joint.damping, *joint.stiffness, *joint.armature)):
                draft.notes.append(f"{joint.source}: closes a loop; its drive and its rotor are left out")
        draft.loops += reading.loops
        draft.couplings += reading.couplings(self.joints)
        self._pose(places)

    def _held(self, prim: Any) -> Joint:
        """Return what holds a kinematic body where the file puts it."""
        name = self.scene.names[str(prim.GetPath())]
        self.draft.notes.append(f"{self.scene.source(prim)}: a kinematic body, which stands still here")
        place = self.scene.frame(prim)[0]
        return Joint(self.draft.new_name("joint", f"{name}_held"), "fixed", GROUND, name, place,
                     source=self.scene.source(prim))  # fmt: skip

    def _float(self, name: str, places: dict[str, Placement], alone: bool) -> None:
        """Let a body float; one without a place of its own (between two joints of a chain) never begins a tree."""
        draft, source = self.draft, next(body.source for body in self.draft.bodies if body.name == name)
        joint = draft.new_name("joint", "root_joint" if alone else f"{name}_root_joint")
        draft.joints.append(Joint(joint, "free", GROUND, name, source=source))
        draft.initial[joint] = place = places.get(name, IDENTITY)
        x, y, z = place.position
        draft.notes.append(
            f"{name!r} floats; the file puts it at ({x:g}, {y:g}, {z:g}) (`pose`), `neutral` at the origin"
        )

    def _pose(self, places: dict[str, Placement]) -> None:
        """Add the configuration in which the file draws the model, and say which joints do not reach it.

        A joint's motion is placement^-1 X_parent^-1 X_child child_placement. Bodies between the joints of a chain are
        drawn nowhere, so that its coordinates stay at zero.
        """
        draft, unreached = self.draft, []
        pose = draft.poses.setdefault(FILE_POSE, {})
        reach = max((float(np.abs(X.position).max()) for X in places.values()), default=0.0) or 1.0
        drawn = {GROUND: IDENTITY, **places}
        for joint in draft.joints:
            if joint.kind == "free":
                x, y, z = drawn[joint.child].position
                pose[joint.name] = (float(x), float(y), float(z), *map(float, drawn[joint.child].quaternion()))
                continue
            if joint.parent not in drawn or joint.child not in drawn:
                continue
            X = drawn[joint.parent].inverse() @ drawn[joint.child]
            motion = joint.placement.inverse() @ X @ joint.child_placement
            pose[joint.name] = values = _coordinates(joint, motion)
            R, p = (np.array(part, dtype=float) for part in KINDS[joint.kind].motion(joint, list(values)))
            if np.abs(R - motion.rotation).max() + np.abs(p - motion.position).max() / reach > AWAY:
                unreached.append(joint.name)
        if unreached:
            more = f" and {len(unreached) - NAMED} more" if len(unreached) > NAMED else ""
            shown = ", ".join(map(repr, unreached[:NAMED])) + more
            draft.notes.append(f"the file draws bodies where their joints do not put them (`pose` is near): {shown}")


def _coordinates(joint: Joint, motion: Placement) -> tuple[float, ...]:
    """Return the coordinates of a motion, the nearest where the joint does not allow it."""
    if joint.kind == "spherical":
        return tuple(map(float, motion.quaternion()))
    axis, R = np.array(joint.axis), motion.rotation
    if joint.kind == "prismatic":
        return (float(axis @ motion.position),)
    if joint.kind == "fixed":
        return ()
    turned = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return (float(np.arctan2(axis @ turned, np.trace(R) - axis @ R @ axis)),)
