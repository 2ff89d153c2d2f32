"""From MJCF text to a compiled `mujoco.MjModel`, without a look at files that the dynamics does not need."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

from dalembert.errors import DalembertError, MissingExtraError, ModelError, UnsupportedError
from dalembert.readers.files import LARGEST, Folders
from dalembert.readers.mjcf_text import Flat
from dalembert.readers.xml_tree import shortened


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
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = spec.compile()
        flat.draft.notes += sorted({f"MuJoCo: {shortened(str(each.message), 300)}" for each in said})
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
    found = _found_meshes(spec, flat, folders)
    missing = [mesh.file for mesh in spec.meshes if mesh.file and found[_label(mesh)] is None]
    needed: set[str] = set()
    unweighed: list[str] = []
    for geom in list(spec.geoms):
        if not _from_file(mujoco, geom):
            continue
        lost = geom.meshname in found and found[geom.meshname] is None
        if not _weighs(spec, geom):
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
    for mesh in list(spec.meshes):
        if _label(mesh) not in needed:
            spec.delete(mesh)
        elif mesh.file:
            mesh.name, mesh.file = _label(mesh), str(_usable(found[_label(mesh)], mesh.file, flat))
    spec.meshdir = ""
    if missing:
        named = ", ".join(shortened(name, 40) for name in missing[:5])
        flat.draft.notes.append(f"{len(missing)} meshes were not found, and are not needed: {named}")
    if unweighed:
        flat.draft.notes.append(
            f"inertia of {', '.join(sorted(set(unweighed))[:5])}: from a mesh that was not found, and taken as zero; "
            "nothing moves it"
        )


def _found_meshes(spec: Any, flat: Flat, folders: Folders) -> dict[str, Path | None]:
    """Return the files of meshes by name: as in MuJoCo in `meshdir` of the model's folder, else beside the include."""
    home, places = folders.home / str(spec.meshdir), flat.folder_of("mesh")
    found: dict[str, Path | None] = {}
    for mesh in spec.meshes:
        if mesh.file:
            near = places.get(_label(mesh), folders.home)
            beside = (near, home / near.relative_to(folders.home)) if near.is_relative_to(folders.home) else (near,)
            tried = (folders.find(mesh.file, place) for place in (home, *beside))
            found[_label(mesh)] = next((path for path in tried if path is not None), None)
    return found


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
    given = geom.parent.explicitinertial and spec.compiler.inertiafromgeom != 1
    return not (weightless or given or geom.parent.name == "world")


def _stands(body: Any) -> bool:
    """Say whether no joint moves a body."""
    while body is not None and body.name != "world":
        if len(body.joints):
            return False
        body = body.parent
    return True


def _usable(found: Path | None, given: str, flat: Flat) -> Path:
    """Return a mesh's path, or say why it cannot be used."""
    if found is None:
        raise ModelError(
            f"{flat.draft.file}: the mesh {shortened(given)!r} was not found in the model's folder or the declared "
            "packages, but the inertia of its body comes from it; give the body an <inertial>, or put the file there"
        )
    if not found.is_file() or found.stat().st_size > LARGEST:
        raise ModelError(f"{flat.draft.file}: the mesh {given!r} is no file, or above {LARGEST // 2**20} MiB")
    return found


def _drop_actuators(mujoco: Any, spec: Any, flat: Flat) -> None:
    """Delete actuators that do not act on one joint, and muscles, whose length ranges MuJoCo would simulate for."""
    dropped = []
    for actuator in list(spec.actuators):
        muscle = mujoco.mjtGain.mjGAIN_MUSCLE in (actuator.gaintype,) or actuator.dyntype == mujoco.mjtDyn.mjDYN_MUSCLE
        if actuator.trntype != mujoco.mjtTrn.mjTRN_JOINT or muscle:
            dropped.append(actuator.name or "unnamed")
            spec.delete(actuator)
    if dropped:
        names = ", ".join(shortened(name, 40) for name in dropped[:5])
        flat.draft.notes.append(f"left out: {len(dropped)} actuators that are no motors on one joint: {names}")
