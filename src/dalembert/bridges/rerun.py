"""Runs in Rerun: every body's pose and every coordinate over time, as a recording that its viewer opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.bridges.chosen import guest
from dalembert.errors import UnsupportedError

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

TIMELINE = "time"


def to_rerun(run: Trajectory, path: str | Path | None = None) -> Any:
    """Write a run's recording (.rrd), or return its stream where there is no path; see `Trajectory.to_rerun`."""
    rr = guest("rerun", "Rerun", "rerun", "to_rerun")
    mechanism = run.mechanism
    if mechanism is None:
        raise UnsupportedError("a recording has bodies: to_rerun is for runs of a mechanism")
    stream = rr.RecordingStream("dalembert")
    if path is not None:
        stream.save(str(path))
    stream.log("world", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    times = rr.TimeColumn(TIMELINE, duration=np.asarray(run.t))
    rotations, positions = mechanism.compile("kinematics")(run.q)
    rotations = np.asarray(rotations).reshape(len(run.t), len(mechanism.bodies), 3, 3)
    positions = np.asarray(positions).reshape(len(run.t), len(mechanism.bodies), 3)
    for k, body in enumerate(mechanism.bodies):
        columns = rr.Transform3D.columns(translation=positions[:, k], mat3x3=rotations[:, k])
        stream.send_columns(f"world/{_entity(body.name)}", [times], columns)
    for k, visual in enumerate(mechanism.visuals):
        shape = _shape(rr, visual)
        if shape is not None:
            at = f"world/{_entity(visual.body)}/{visual.kind}_{k}"
            turned = visual.placement.rotation
            turned = turned * np.asarray(visual.size) if visual.kind == "mesh" else turned
            stream.log(at, rr.Transform3D(translation=visual.placement.position, mat3x3=turned), static=True)
            stream.log(at, shape, static=True)
    for names, values, letter in ((run.configuration_names, run.q, "q"), (mechanism.coordinates, run.v, "v")):
        for name, column in zip(names, np.asarray(values).T, strict=True):
            stream.send_columns(f"{letter}/{_entity(name)}", [times], rr.Scalars.columns(scalars=column))
    if path is None:
        return stream
    stream.flush()
    return Path(path)


def _entity(name: str) -> str:
    """Return a name as one part of an entity's path."""
    return name.replace("/", "_").replace(" ", "_")


def _shape(rr: Any, visual: Any) -> Any:
    """Return a shape of Rerun; None for one that it does not have."""
    color = None if visual.color is None else [tuple(int(255 * x) for x in visual.color)]
    size = visual.size
    if visual.kind == "box":
        return rr.Boxes3D(half_sizes=[np.asarray(size) / 2], colors=color, fill_mode="solid")
    if visual.kind == "sphere":
        return rr.Ellipsoids3D(half_sizes=[(size[0],) * 3], colors=color, fill_mode="solid")
    if visual.kind == "ellipsoid":
        return rr.Ellipsoids3D(half_sizes=[size], colors=color, fill_mode="solid")
    if visual.kind == "cylinder":
        return rr.Cylinders3D(radii=[size[0]], lengths=[size[1]], colors=color, fill_mode="solid")
    if visual.kind == "capsule":  # from its one centre to the other there, here about the middle
        middle = [(0.0, 0.0, -size[1] / 2)]
        return rr.Capsules3D(radii=[size[0]], lengths=[size[1]], translations=middle, colors=color, fill_mode="solid")
    if visual.kind == "mesh" and visual.file and Path(visual.file).suffix.lower() in (".glb", ".gltf", ".obj", ".stl"):
        return rr.Asset3D(path=visual.file)
    return None
