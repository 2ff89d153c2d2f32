"""MJCF, compiled by MuJoCo: defaults, includes and inertias from shapes are its affair; the result is read here.

Several joints of one body become a chain with massless bodies between them. The coordinates of hinges and sliders are
MuJoCo's own, `ref` included: a joint's frame stands where q = 0 puts it. Quaternions and the velocity of free joints
differ; `state_vectors.py` converts.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.parts import FILE_POSE, Body, CollisionShape, Frame, Joint, Source, Visual
from dalembert.model.mechanism.placement import Placement
from dalembert.readers.draft import GROUND, Draft
from dalembert.readers.files import Folders
from dalembert.readers.mjcf.compiled_model import Flat, MeshGeom, compiled
from dalembert.readers.mjcf.couplings import add_actuators, add_equalities, add_tendons
from dalembert.readers.mjcf.joints import KINDS, mujoco_joint
from dalembert.readers.xml_tree import XmlElement
from dalembert.types import Array

CHECKED = (
    *("body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "jnt_pos", "jnt_axis", "qpos0"),
    *("qpos_spring", "jnt_stiffness", "dof_damping", "dof_armature", "dof_frictionloss", "eq_data", "site_pos"),
    "site_quat",
    "body_gravcomp",
)
"""Arrays of MuJoCo's model that are read."""


SHAPES: dict[int, tuple[str, tuple[tuple[int, float], ...]]] = {
    0: ("plane", ((0, 1.0), (1, 1.0))),
    2: ("sphere", ((0, 1.0),)),
    3: ("capsule", ((0, 1.0), (1, 2.0))),
    4: ("ellipsoid", ((0, 1.0), (1, 1.0), (2, 1.0))),
    5: ("cylinder", ((0, 1.0), (1, 2.0))),
    6: ("box", ((0, 2.0), (1, 2.0), (2, 2.0))),
}
"""MuJoCo's codes of shapes: our word, and which of its half lengths, times what, are the size."""

MESH = 7
LAST_SHOWN = 2
"""MuJoCo's viewer shows geoms of the groups 0, 1 and 2; collision shapes are in group 3 by custom."""

GREY = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)
"""A geom's colour where the file gives none."""


def read_mjcf(root: XmlElement, folders: Folders) -> Draft:
    """Return what a <mujoco> element says."""
    draft = Draft(root.attributes.get("model", "").strip() or "model", root.file, rooted=True)
    flat = Flat(folders, draft)
    flat.write(root)
    model = compiled(flat, folders)
    reading = CompiledModel(model, draft, _sources(flat))
    reading.check()
    if model.nbody < 2:
        raise root.error("no <body>: there is nothing to move")
    reading.bodies()
    reading.poses()
    reading.sites()
    reading.visuals(flat.drawn, flat.stood_in)
    reading.collision_shapes(flat)
    add_equalities(reading)
    add_tendons(reading)
    add_actuators(reading)
    reading.options()
    return draft


def _sources(flat: Flat) -> dict[tuple[str, str], Source]:
    """Return where named elements stand."""
    return {
        (element.tag, element.attributes["name"]): element.source
        for element in flat.origins
        if "name" in element.attributes
    }


@dataclass
class CompiledModel:
    """A compiled model on its way into a draft.

    Attributes
    ----------
    names
        Names of bodies, joints and sites by their index; those without one get one.
    """

    model: Any
    draft: Draft
    sources: dict[tuple[str, str], Source]
    names: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = self.model
        bodies, joints = names_of(model, self.draft)
        taken = set(bodies)
        sites = []
        for i in range(model.nsite):
            name = model.site(i).name or f"site_{i}"
            sites.append(self.draft.new_name("frame", f"{name}_site" if name in taken else name))
        self.names = {"body": bodies, "joint": joints, "site": sites}

    def source(self, tag: str, name: str) -> Source:
        """Return where a named element stands, or the file alone."""
        return self.sources.get((tag, name), Source(self.draft.file))

    def check(self) -> None:
        """Refuse numbers that are not finite, which MuJoCo lets through."""
        for name in CHECKED:
            values = getattr(self.model, name)
            if not np.isfinite(values).all() or np.abs(values).max(initial=0.0) > 1e60:
                raise ModelError(f"{self.draft.file}: numbers that are not finite, or beyond 1e60, in MuJoCo's {name}")

    def bodies(self) -> None:
        """Add bodies and joints, in MuJoCo's order."""
        model = self.model
        for i in range(1, model.nbody):
            name, parent = self.names["body"][i], self.names["body"][model.body_parentid[i]]
            source = self.source("body", name)
            X = placement(model.body_pos[i], model.body_quat[i])
            start, count = model.body_jntadr[i], model.body_jntnum[i]
            if count == 0:
                held = self.draft.new_name("joint", f"{name}_fixed")
                self.draft.joints.append(Joint(held, "fixed", parent, name, X, source=source))
                if model.body_mocapid[i] >= 0:
                    self.draft.notes.append(f"{source}: a mocap body, which stands still here")
            for j in range(start, start + count):
                last = j == start + count - 1
                child = name if last else self.draft.new_name("body", f"{name}_{self.names['joint'][j]}")
                if not last:
                    self.draft.bodies.append(Body(child, source=source))
                self.draft.joints.append(mujoco_joint(self, j, parent, child, X))
                parent, X = child, Placement()
            self.draft.bodies.append(Body(name, _inertia(model, i), source, self._compensation(i, name)))

    def poses(self) -> None:
        """Add where the file draws the model, `qpos0`, and its keyframes; velocities of those are left out."""
        model, draft = self.model, self.draft
        if model.njnt:
            draft.poses[FILE_POSE] = self._pose(model.qpos0)
        for k in range(model.nkey):
            name = draft.new_name("pose", model.key(k).name or f"key {k}")
            draft.poses[name] = self._pose(model.key_qpos[k])
            if np.any(model.key_qvel[k]):
                draft.notes.append(f"keyframe {name!r}: its velocities are left out; it is a pose (`mechanism.pose`)")

    def _pose(self, qpos: Array) -> dict[str, tuple[float, ...]]:
        """Return coordinates by joint: quaternions as [x y z w], hinges and sliders as they are."""
        values: dict[str, tuple[float, ...]] = {}
        for j, name in enumerate(self.names["joint"]):
            kind, at = KINDS[int(self.model.jnt_type[j])], int(self.model.jnt_qposadr[j])
            x = qpos[at : at + {"free": 7, "spherical": 4}.get(kind, 1)]
            if kind in ("free", "spherical"):
                x = np.concatenate([x[:-4], np.roll(x[-4:], -1)])
            values[name] = tuple(map(float, x))
        return values

    def sites(self) -> None:
        """Add sites as frames."""
        model = self.model
        for i, name in enumerate(self.names["site"]):
            body = self.names["body"][model.site_bodyid[i]]
            X = placement(model.site_pos[i], model.site_quat[i])
            self.draft.frames.append(Frame(name, body, X, self.source("site", name)))

    def visuals(self, meshes: dict[str, tuple[str, tuple[float, ...]]], stood_in: Container[str] = ()) -> None:
        """Add the geoms of the groups that MuJoCo's viewer shows; `meshes` are files and scales by geom."""
        model = self.model
        for i in range(model.ngeom):
            if model.geom_group[i] > LAST_SHOWN:
                continue
            name, kind = model.geom(i).name, SHAPES.get(int(model.geom_type[i]))
            X, body = placement(model.geom_pos[i], model.geom_quat[i]), self.names["body"][model.geom_bodyid[i]]
            if name in meshes:
                file, size = meshes[name]
                if int(model.geom_type[i]) == MESH:
                    X = X @ _moved_by_compiler(model, i)
                shape = Visual(body, "mesh", size, X, self._color(i), file, self.source("geom", name))
            elif kind is None or name in stood_in:
                continue
            else:
                form, numbers = kind
                size = tuple(float(model.geom_size[i][k]) * factor for k, factor in numbers)
                shape = Visual(body, form, size, X, self._color(i), source=self.source("geom", name))
            self.draft.visuals.append(shape)

    def collision_shapes(self, flat: Flat) -> None:
        """Add the geoms that collide, with friction (none of condim 1), bits and priority; planes are without end."""
        if self.disabled("mjDSBL_CONTACT"):
            return
        model, asked = (
            self.model,
            {name for rule in self.draft.contact_rules if rule.touch for name in (rule.one, rule.other)},
        )
        for i in range(model.ngeom):
            name, kind = model.geom(i).name, int(model.geom_type[i])
            source, body = self.source("geom", name), self.names["body"][model.geom_bodyid[i]]
            X = placement(model.geom_pos[i], model.geom_quat[i])
            mesh = flat.stood_in.get(name)
            if mesh is not None:
                X = X @ _moved_by_compiler(model, i) if kind == MESH else X
                self._collide(mesh, name, body, "mesh", mesh.scale, X, asked, source)
                continue
            geom = MeshGeom(
                "", (), int(model.geom_contype[i]), int(model.geom_conaffinity[i]), float(model.geom_friction[i, 0]),
                int(model.geom_priority[i]), int(model.geom_condim[i]),
            )  # fmt: skip
            if kind in SHAPES:
                form, numbers = SHAPES[kind]
                size = tuple(float(model.geom_size[i][k]) * factor for k, factor in numbers) if form != "plane" else ()
                self._collide(geom, name, body, form, size, X, asked, source)
            elif geom.contype or geom.conaffinity or name in asked:
                self.draft.notes.append(f"{source}: touches nothing, its shape is not read (geom {name or i!r})")
        for body, mesh in flat.lost:
            self._collide(mesh, "", body, "mesh", mesh.scale, Placement(), asked, self.source("body", body))

    def _collide(
        self, geom: MeshGeom, name: str, body: str, kind: str, size: tuple[float, ...], X: Placement, asked: set[str],
        source: Source,
    ) -> None:  # fmt: skip
        """Add a geom that collides by its bits, or that a <pair> names."""
        if not (geom.contype or geom.conaffinity or name in asked):
            return
        friction = 0.0 if geom.condim == 1 else max(geom.friction, 0.0)
        self.draft.collision_shapes.append(
            CollisionShape(
                name, body, kind, size, X, geom.file, geom.points, friction, None, geom.contype, geom.conaffinity,
                geom.priority, source,
            )
        )  # fmt: skip

    def _color(self, i: int) -> Any:
        """Return the colour of a geom: its own, or that of its material where it has none."""
        model, material = self.model, int(self.model.geom_matid[i])
        rgba = model.geom_rgba[i]
        color = model.mat_rgba[material] if material >= 0 and np.array_equal(rgba, GREY) else rgba
        return tuple(float(x) for x in np.clip(color, 0.0, 1.0))

    def disabled(self, *flags: str) -> bool:
        """Say whether the file switches something off by one of these flags; one that MuJoCo does not have is on."""
        from dalembert.readers.mjcf.compiled_model import import_mujoco

        bits = (getattr(import_mujoco().mjtDisableBit, flag, None) for flag in flags)
        return any(bit is not None and bool(self.model.opt.disableflags & int(bit)) for bit in bits)

    @property
    def no_springs(self) -> bool:
        """Whether springs are switched off; until MuJoCo 3.3 one flag was for all passive forces."""
        return self.disabled("mjDSBL_SPRING", "mjDSBL_PASSIVE")

    @property
    def no_dampers(self) -> bool:
        """Whether dampers are switched off."""
        return self.disabled("mjDSBL_DAMPER", "mjDSBL_PASSIVE")

    @property
    def no_friction(self) -> bool:
        """Whether dry friction is switched off."""
        return self.disabled("mjDSBL_FRICTIONLOSS", "mjDSBL_CONSTRAINT")

    def _compensation(self, i: int, name: str) -> float:
        """Return the share of a body's weight that is held up by a passive force.

        MuJoCo has none where springs and dampers are both switched off, nor where no body of the model has a positive
        share. Joints with `actuatorgravcomp` leave it to their motors, so that it is a part of tau.
        """
        model, share = self.model, float(self.model.body_gravcomp[i])
        if share == 0 or (self.no_springs and self.no_dampers):
            return 0.0
        if not np.any(model.body_gravcomp > 0.0):
            self.draft.notes.append(
                f"left out: gravcomp = {share:g} of body {name!r}: MuJoCo has none below zero alone"
            )
            return 0.0
        by_motor = [bool(model.jnt_actgravcomp[j]) for j in self._joints_below(i)]
        if not any(by_motor):
            return share
        of, then = ("its", "is part of tau") if all(by_motor) else ("some of its", "acts as a passive force")
        self.draft.notes.append(
            f"body {name!r}: motors compensate gravity (actuatorgravcomp of {of} joints), which here {then}"
        )
        return 0.0 if all(by_motor) else share

    def _joints_below(self, i: int) -> list[int]:
        """Return the joints between a body and the ground."""
        joints: list[int] = []
        while i:
            start = int(self.model.body_jntadr[i])
            joints += range(start, start + int(self.model.body_jntnum[i]))
            i = int(self.model.body_parentid[i])
        return joints

    def options(self) -> None:
        """Take gravity; name what acts on the bodies and is not read."""
        draft, model = self.draft, self.model
        x, y, z = (0.0, 0.0, 0.0) if self.disabled("mjDSBL_GRAVITY") else (float(g) for g in model.opt.gravity)
        draft.gravity = (x, y, z)
        if (model.opt.density or model.opt.viscosity) and not (self.no_springs and self.no_dampers):
            draft.notes.append("left out: forces of a fluid (density, viscosity of <option>)")
        if draft.loops or draft.couplings:
            draft.notes.append("equalities are rigid: solref and solimp are not used")


def names_of(model: Any, draft: Draft) -> tuple[list[str], list[str]]:
    """Return the names of all bodies and joints of a compiled model, by index; those without one get one."""
    bodies = [GROUND, *(draft.new_name("body", model.body(i).name or f"body_{i}") for i in range(1, model.nbody))]
    free = sum(model.jnt_type[j] == 0 for j in range(model.njnt))
    joints = []
    for j in range(model.njnt):
        body = bodies[model.jnt_bodyid[j]]
        unnamed = "root_joint" if model.jnt_type[j] == 0 and free == 1 else f"{body}_joint"
        joints.append(draft.new_name("joint", model.joint(j).name or unnamed))
    return bodies, joints


def _inertia(model: Any, i: int) -> Inertia:
    X = placement(model.body_ipos[i], model.body_iquat[i])
    return Inertia(float(model.body_mass[i]), np.zeros(3), np.diag(model.body_inertia[i])).moved(X)


def _moved_by_compiler(model: Any, i: int) -> Placement:
    """Return where the mesh of a file stands in that of the compiled model, whose origin is its centre of mass."""
    k = int(model.geom_dataid[i])
    return placement(model.mesh_pos[k], model.mesh_quat[k]).inverse()


def placement(position: Array, wxyz: Array) -> Placement:
    """Return a placement from MuJoCo's position and quaternion."""
    return Placement.from_quaternion(np.roll(wxyz, -1), np.array(position))
