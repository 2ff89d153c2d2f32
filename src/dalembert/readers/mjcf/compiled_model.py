"""MJCF text to a compiled `mujoco.MjModel`: includes, sizes, files that dynamics does not need."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from dalembert.errors import DalembertError, MissingExtraError, ModelError, UnsupportedError
from dalembert.model.mechanism.parts import ContactRule
from dalembert.readers.draft import Draft
from dalembert.readers.files import LARGEST, Folders
from dalembert.readers.visuals import note_missing
from dalembert.readers.xml_tree import XmlElement, numbers, read_xml, shortened

# ----------------------------------------------------------------------------------------------------------------------
# MJCF before MuJoCo sees it: includes put in, what has nothing to do with dynamics taken out, sizes limited.
#
# MuJoCo opens files and allocates what a file asks for. So includes are read here, by the rules of `files.py`;
# textures, height fields, sensors and the like are dropped with a note; elements that multiply others are counted
# first. What remains is written with one element a line, so that MuJoCo's complaints lead back to the file and line
# they belong to.


DROPPED = {
    "visual", "statistic", "size", "sensor", "custom", "contact", "texture", "skin", "light",
    "camera", "rgba", "headlight", "lengthrange", "extension", "map", "deformable", "layer",
}  # fmt: skip
"""Elements that say nothing about rigid bodies; named in the notes, and not handed on. <deformable> may hold skins."""

SILENT = {"visual", "statistic", "size", "texture", "layer", "light", "rgba", "headlight", "map", "lengthrange"}
"""Those of them that nobody misses in dynamics."""

SOFT = "soft bodies are not read, in any form; remove them, or put rigid bodies with joints and springs in their place"
ATTACHED = (
    "attached models are not read; let MuJoCo write the model as one and read that: "
    "spec = mujoco.MjSpec.from_file(path); spec.compile(); spec.to_file(new)"
)
REFUSED = {
    "flexcomp": SOFT,
    "flex": SOFT,
    "composite": "composite bodies are not read; write out the bodies and joints that it stands for",
    "attach": ATTACHED,
    "model": ATTACHED,
}
"""Elements that would change the mechanism if they were dropped, and what to do instead."""

UNREAD = {"geom": (), "material": ("texture",), "key": ("act", "ctrl", "mpos", "mquat")}
"""Attributes that are not handed on, by element: of a keyframe those whose sizes depend on what is dropped."""

OF_PLUGINS = ("plugin", "instance", "actdim", "dyntype")
"""Attributes of an actuator that only its plugin reads."""

MOST_BODIES = 200_000
"""Elements after <replicate>; its counts multiply."""

MOST_INCLUDES = 1000

NAN = re.compile(r"\bnan\b", re.IGNORECASE)
NUMBERS = re.compile(r"[\s\d.eE+-]*(nan[\s\d.eE+-]*)+", re.IGNORECASE)
WORDS = {"name", "class", "childclass", "body", "body1", "body2", "joint", "joint1", "joint2", "site", "mesh", "geom"}
"""Attributes that hold names, which may be any word. MuJoCo takes NaN for "not given"; nobody means that."""


@dataclass(frozen=True)
class MeshGeom:
    """How a geom with a mesh collides: file or vertices, scale, bits, friction."""

    file: str
    scale: tuple[float, ...]
    contype: int
    conaffinity: int
    friction: float
    priority: int
    condim: int
    points: Any = None


@dataclass
class Flat:
    """MJCF as one text; `origins[i]` is the element written in line i + 1.

    Attributes
    ----------
    plugins
        Name of an instance in <extension> -> name of its plugin.
    made
        Name of a mesh that a plugin makes -> name of the plugin.
    drawn
        Name of a geom that shows a mesh -> file and scale of the mesh.
    stood_in
        Name of a geom with a mesh, for which a sphere may stand -> how it collides.
    lost
        Bodies with geoms whose meshes were not found, and how these would collide.
    """

    folders: Folders
    draft: Draft
    lines: list[str] = field(default_factory=list)
    origins: list[XmlElement] = field(default_factory=list)
    included: set[Path] = field(default_factory=set)
    plugins: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    drawn: dict[str, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    stood_in: dict[str, MeshGeom] = field(default_factory=dict)
    lost: list[tuple[str, MeshGeom]] = field(default_factory=list)
    count: int = 0

    @property
    def text(self) -> str:
        """The whole."""
        return "\n".join(self.lines)

    def write(self, element: XmlElement, times: int = 1, parent: str = "") -> None:
        """Write an element and what is in it."""
        if element.tag == "include":
            for child in self._included(element).children:
                self.write(child, times, parent)
            return None
        if element.tag in REFUSED and not (element.tag == "model" and parent != "asset"):
            raise element.error(REFUSED[element.tag], UnsupportedError)
        if element.tag == "plugin" and parent != "extension":
            return self._plugin(element, parent)
        if element.tag == "hfield" and parent == "asset":
            return self._height_field(element)
        if element.tag == "extension":
            self._instances(element)
        if element.tag == "deformable":
            self._refuse_soft(element)
        if element.tag == "contact":
            self._contact_rules(element)
            return None
        if element.tag in DROPPED and parent not in ("tendon", "spatial"):
            if element.tag not in SILENT:
                self.draft.leave_out(element)
            return None
        if element.tag == "replicate":
            times *= self._replicas(element)
        self.count += times
        if self.count > MOST_BODIES * 5:
            raise element.error(f"more than {MOST_BODIES * 5} elements, with <replicate> counted")
        self._line(element, f"<{element.tag}{_words(_attributes(element, UNREAD.get(element.tag, ('material',))))}>")
        for child in element.children:
            if child.tag == "plugin" and element.tag == "mesh":
                self.made[_file_name(element)] = self._plugin_name(child)
            self.write(child, times, element.tag)
        self._line(element, f"</{element.tag}>")
        return None

    def _contact_rules(self, element: XmlElement) -> None:
        """Read pairs of bodies that never touch and pairs of geoms that do, those of included files, too."""
        for child in element.children:
            if child.tag == "include":
                for part in self._included(child).children:
                    if part.tag == "contact":
                        self._contact_rules(part)
            elif child.tag in ("exclude", "pair"):
                words = ("body1", "body2") if child.tag == "exclude" else ("geom1", "geom2")
                one, other = (child.attributes.get(word, "").strip() for word in words)
                mu = child.attributes.get("friction", "") if child.tag == "pair" else ""
                friction = max(numbers(child, mu.split()[0], 1, "friction")[0], 0.0) if mu.split() else None
                self.draft.contact_rules.append(
                    ContactRule(one, other, child.tag == "pair", friction, f"<{child.tag}>", child.source)
                )

    def _refuse_soft(self, deformable: XmlElement) -> None:
        """Refuse soft bodies, those of included files, too; skins are pictures."""
        for child in deformable.children:
            if child.tag == "include":
                self._refuse_soft(self._included(child))
            elif child.tag != "skin":
                raise child.error(SOFT, UnsupportedError)

    def _instances(self, extension: XmlElement) -> None:
        """Remember which plugins the instances of an <extension> are of."""
        for plugin in extension.all("plugin"):
            for instance in plugin.all("instance"):
                self.plugins[instance.attributes.get("name", "")] = plugin.attributes.get("plugin", "")

    def _plugin_name(self, element: XmlElement) -> str:
        name = element.attributes.get("plugin") or self.plugins.get(element.attributes.get("instance", ""))
        return shortened(name or element.attributes.get("instance", "") or "unnamed")

    def _plugin(self, element: XmlElement, parent: str) -> None:
        """Leave out a plugin that computes an actuator's force or a shape; refuse one that acts on a body.

        An actuator's gear and rotor do not depend on how its force is computed: they are those of a <general> one.
        """
        name = self._plugin_name(element)
        if parent not in ("actuator", "geom", "mesh"):
            raise element.error(
                f"forces of the plugin {name!r} are not read, and would be missed; remove this <plugin> to read the "
                "model without them",
                UnsupportedError,
            )
        self.draft.leave_out(element, f"the plugin {name!r}, which is not run")
        if parent == "actuator":
            self._line(element, f"<general{_words(_attributes(element, OF_PLUGINS))}/>")

    def _height_field(self, element: XmlElement) -> None:
        """Write a height field without its heights: MuJoCo takes the mass of its box, and nothing is opened."""
        self.draft.leave_out(element, "its surface")
        attributes = {"name": _file_name(element), "nrow": "2", "ncol": "2"}
        if "size" in element.attributes:
            attributes["size"] = element.attributes["size"]
        self._line(element, f"<hfield{_words(attributes)}/>")

    def folder_of(self, tag: str) -> dict[str, Path]:
        """Return the folder of the file in which an asset stands, by the asset's name."""
        return {
            _file_name(element): Path(element.file).resolve().parent for element in self.origins if element.tag == tag
        }

    def _line(self, element: XmlElement, text: str) -> None:
        self.lines.append(text)
        self.origins.append(element)

    def _replicas(self, element: XmlElement) -> int:
        count = element.attributes.get("count", "").strip()
        if not (count.isascii() and count.isdigit() and len(count) <= 6):
            raise element.error(f"count = {shortened(count)!r} is not a number from 0 to 999999")
        return max(1, int(count))

    def _included(self, element: XmlElement) -> XmlElement:
        """Return the root of an included file; as in MuJoCo no file is included twice."""
        name = element.attribute("file")
        path = self.folders.find(name) or self.folders.find(name, Path(element.file).resolve().parent)
        if path is None:
            raise element.error(f"{shortened(name)!r} was not found in the model's folder or the declared packages")
        if path in self.included or len(self.included) >= MOST_INCLUDES:
            raise element.error(f"{shortened(name)!r} is included already")
        self.included.add(path)
        return read_xml(path)

    def blame(self, error: Exception) -> ModelError:
        """Return MuJoCo's complaint with the file and line where it belongs."""
        text = " ".join(str(error).split())
        line = re.search(r"line (\d+)", text)
        number = int(line[1]) if line else 0
        text = re.sub(r",? ?(Element '[^']*',? )?(id -?\d+, )?line \d+", "", text).strip() or type(error).__name__
        if 1 <= number <= len(self.origins):
            return ModelError(f"{self.origins[number - 1].source}: MuJoCo says: {shortened(text, 400)}")
        return ModelError(f"{self.draft.file}: MuJoCo says: {shortened(text, 400)}")


def _file_name(element: XmlElement) -> str:
    """Return the name of an asset; one without is called as its file, less folder and ending."""
    return element.attributes.get("name", "").strip() or Path(element.attributes.get("file", "")).stem


def _attributes(element: XmlElement, dropped: tuple[str, ...]) -> dict[str, str]:
    """Return the attributes that are handed on; NaN is refused."""
    attributes = {name: value for name, value in element.attributes.items() if name not in dropped}
    for name, value in attributes.items():
        if name not in WORDS and NAN.search(value) and NUMBERS.fullmatch(value):
            raise element.error(f"{name} = {shortened(value)!r} is not a number")
    return attributes


def _words(attributes: dict[str, str]) -> str:
    """Return attributes as XML, on one line."""
    line = {"\n": " ", "\r": " ", "\t": " "}
    return "".join(f" {name}={quoteattr(value, line)}" for name, value in attributes.items())


# ----------------------------------------------------------------------------------------------------------------------
# From MJCF text to a compiled `mujoco.MjModel`, without a look at files that the dynamics does not need.


def import_mujoco() -> Any:
    """Return the package `mujoco`, or say how to get it."""
    try:
        import mujoco
    except ImportError as error:
        raise MissingExtraError("MuJoCo", "mujoco", "reading MJCF files") from error
    return mujoco


def compiled(flat: Flat, folders: Folders) -> Any:
    """Return MuJoCo's model; its complaints become ours."""
    mujoco = import_mujoco()
    try:
        spec = mujoco.MjSpec.from_string(flat.text)
        if not int(spec.option.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_CONTACT):
            flat.draft.shapes += [geom.parent.name for geom in spec.geoms if geom.contype or geom.conaffinity]
        _drop_shapes(mujoco, spec, flat, folders)
        _drop_actuators(mujoco, spec, flat)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = spec.compile()
        flat.draft.notes += sorted({f"MuJoCo: {shortened(str(warning.message), 300)}" for warning in caught})
        return model
    except DalembertError:
        raise
    except Exception as error:  # MuJoCo raises ValueError, its FatalError, and what pybind makes of C++'s
        raise flat.blame(error) from error


def _drop_shapes(mujoco: Any, spec: Any, flat: Flat, folders: Folders) -> None:
    """Delete shapes from files where no inertia comes from them; those that are needed get their checked path."""
    if spec.strippath:
        for mesh in spec.meshes:
            mesh.file = re.split(r"[/\\]", mesh.file)[-1]
    meshes = _found_meshes(spec, flat, folders)
    missing = [mesh.file for mesh in spec.meshes if mesh.file and meshes[_label(mesh)] is None]
    inline = {_label(mesh) for mesh in spec.meshes if not mesh.file and len(mesh.uservert)}
    needed: set[str] = set()
    unweighed: list[str] = []
    for geom in list(spec.geoms):
        if not _from_file(mujoco, geom):
            continue
        lost = geom.meshname in meshes and meshes[geom.meshname] is None
        shown = meshes.get(geom.meshname) if geom.type == mujoco.mjtGeom.mjGEOM_MESH else None
        if not _weighs(spec, geom) and shown is not None:
            _stand_in(mujoco, spec, geom, shown, flat)
        elif not _weighs(spec, geom) and geom.meshname in inline and geom.type == mujoco.mjtGeom.mjGEOM_MESH:
            _stand_in(mujoco, spec, geom, "", flat)
        elif not _weighs(spec, geom):
            if lost and geom.type == mujoco.mjtGeom.mjGEOM_MESH:
                mesh = next(mesh for mesh in spec.meshes if _label(mesh) == geom.meshname)
                flat.lost.append((geom.parent.name, _mesh_geom(geom, mesh, mesh.file)))
            spec.delete(geom)
        elif geom.meshname in flat.made:
            raise UnsupportedError(
                f"{flat.draft.file}: the inertia of body {geom.parent.name!r} comes from a shape that the plugin "
                f"{flat.made[geom.meshname]!r} makes, which is not run; give the body an <inertial>"
            )
        elif geom.hfieldname:
            continue
        elif lost and _stands(geom.parent):
            unweighed.append(geom.parent.name)
            spec.delete(geom)
        else:
            needed.add(geom.meshname)
            if shown is not None:
                _remember(spec, geom, shown, flat)
    for mesh in list(spec.meshes):
        if _label(mesh) not in needed:
            spec.delete(mesh)
        elif mesh.file:
            mesh.name, mesh.file = _label(mesh), str(_usable(meshes[_label(mesh)], mesh.file, flat))
    spec.meshdir, spec.strippath = "", False
    note_missing(missing, flat.draft)
    if unweighed:
        flat.draft.notes.append(
            f"inertia of {', '.join(sorted(set(unweighed))[:5])}: from a mesh that was not found, and taken as zero; "
            "nothing moves it"
        )


def _mesh_geom(geom: Any, mesh: Any, file: str) -> MeshGeom:
    """Return how a geom collides."""
    points = None
    if not mesh.file and len(mesh.uservert):
        points = np.array(mesh.uservert, dtype=float).reshape(-1, 3) * mesh.scale
    scale = tuple(float(x) for x in mesh.scale)
    bits = int(geom.contype), int(geom.conaffinity)
    return MeshGeom(file, scale, *bits, float(geom.friction[0]), int(geom.priority), int(geom.condim), points)


def _remember(spec: Any, geom: Any, file: Path | str, flat: Flat) -> None:
    """Remember which mesh a geom shows, by a name that no other geom has."""
    if not geom.name or geom.name in flat.drawn:
        geom.name = flat.draft.new_name("geom", f"{geom.name or 'geom'} with a mesh")
    mesh = next(mesh for mesh in spec.meshes if _label(mesh) == geom.meshname)
    if file:
        flat.drawn[geom.name] = (str(file), tuple(float(x) for x in mesh.scale))
    flat.stood_in[geom.name] = _mesh_geom(geom, mesh, str(file))


def _stand_in(mujoco: Any, spec: Any, geom: Any, file: Path | str, flat: Flat) -> None:
    """Make of a geom that shows a mesh a sphere without mass: MuJoCo places it, and opens no file."""
    _remember(spec, geom, file, flat)
    geom.type, geom.meshname, geom.size = mujoco.mjtGeom.mjGEOM_SPHERE, "", [1.0, 0.0, 0.0]
    geom.mass, geom.contype, geom.conaffinity = 0.0, 0, 0


def _found_meshes(spec: Any, flat: Flat, folders: Folders) -> dict[str, Path | None]:
    """Return the files of meshes by name: as in MuJoCo in `meshdir` of the model's folder, else beside the include."""
    home, places = folders.home / str(spec.meshdir), flat.folder_of("mesh")
    meshes: dict[str, Path | None] = {}
    for mesh in spec.meshes:
        if mesh.file:
            near = places.get(_label(mesh), folders.home)
            beside = (near, home / near.relative_to(folders.home)) if near.is_relative_to(folders.home) else (near,)
            tried = (folders.find(mesh.file, place) for place in (home, *beside))
            meshes[_label(mesh)] = next((path for path in tried if path is not None), None)
    return meshes


def _label(mesh: Any) -> str:
    """Return the name of a mesh; one without is called as its file, less folder and ending."""
    return mesh.name or Path(mesh.file).stem


def _from_file(mujoco: Any, geom: Any) -> bool:
    """Say whether a shape comes from a file, or is fitted to one that does."""
    kinds = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_SDF)
    return bool(geom.meshname or geom.hfieldname) or geom.type in kinds


def _weighs(spec: Any, geom: Any) -> bool:
    """Say whether the inertia of the body that a shape is on depends on it."""
    low, high = spec.compiler.inertiagrouprange
    weightless = geom.mass == 0 or geom.density == 0 or not low <= geom.group <= high
    explicit = geom.parent.explicitinertial and spec.compiler.inertiafromgeom != 1
    return not (weightless or explicit or geom.parent.name == "world")


def _stands(body: Any) -> bool:
    """Say whether no joint moves a body."""
    while body is not None and body.name != "world":
        if len(body.joints):
            return False
        body = body.parent
    return True


def _usable(path: Path | None, reference: str, flat: Flat) -> Path:
    """Return a mesh's path, or say why it cannot be used."""
    if path is None:
        raise ModelError(
            f"{flat.draft.file}: the mesh {shortened(reference)!r} was not found in the model's folder or the declared "
            "packages, but the inertia of its body comes from it; give the body an <inertial>, or put the file there"
        )
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise ModelError(f"{flat.draft.file}: the mesh {reference!r} is no file, or above {LARGEST // 2**20} MiB")
    return path


def _drop_actuators(mujoco: Any, spec: Any, flat: Flat) -> None:
    """Delete actuators that do not act on one joint, and muscles, whose length ranges MuJoCo would simulate for."""
    dropped, rotor = [], 0.0
    for actuator in list(spec.actuators):
        muscle = mujoco.mjtGain.mjGAIN_MUSCLE in (actuator.gaintype,) or actuator.dyntype == mujoco.mjtDyn.mjDYN_MUSCLE
        if actuator.trntype != mujoco.mjtTrn.mjTRN_JOINT or muscle:
            dropped.append(actuator.name or "unnamed")
            rotor = max(rotor, float(getattr(actuator, "armature", 0.0)))
            spec.delete(actuator)
    if dropped:
        names = ", ".join(shortened(name, 40) for name in dropped[:5])
        flat.draft.notes.append(
            f"left out: {len(dropped)} actuators that are no motors on one joint: {names}{lost_rotor(rotor)}"
        )


def lost_rotor(inertia: float) -> str:
    """Return what a note adds where an actuator is left out whose rotor MuJoCo counts in M."""
    return f"; M lacks the inertia of a rotor, armature = {inertia:g}" if inertia else ""
