"""Real robots beside Pinocchio, and tree algorithms evaluated on arrays, one sample per entry."""

from __future__ import annotations

from functools import cache
from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import dalembert as da
from dalembert.readers import load
from dalembert.tree.prepared.configuration import pose_tree
from dalembert.tree.prepared.link import Tree

_MODELS = [path for path in files("example-robot-data") or () if path.suffix == ".urdf"]
ROBOTS = next(Path(str(path.locate())) for path in _MODELS if path.name == "panda.urdf").parents[2]
URDFS = sorted(str(path.relative_to(ROBOTS)) for path in ROBOTS.rglob("*.urdf"))

UNREADABLE = ("falcon_description/urdf/falcon.urdf", "ur_description/urdf/ur3.urdf")
"""Files that no tool can read: a joint's child does not exist; there is nothing in it but comments."""

SAMPLES = 20
REFERENCES = {
    "local": pin.LOCAL,
    "world": pin.WORLD,
    "local_world_aligned": pin.LOCAL_WORLD_ALIGNED,
}


@cache
def robot(file: str, base: str) -> tuple[da.Mechanism, pin.Model, pin.Data]:
    """Return a robot as dalembert and as Pinocchio read it."""
    path = str(ROBOTS / file)
    model = (
        pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()) if base == "floating" else pin.buildModelFromUrdf(path)
    )
    return load(path, base=base, allow_unphysical=True), model, model.createData()


def states(model: pin.Model, samples: int = SAMPLES, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random q (samples, nq), v and a (samples, nv); joints anywhere within 2 rad or m."""
    pin.seed(seed)
    rng = np.random.default_rng(seed)
    box = 2.0 * np.ones(model.nq)
    q = np.array([pin.randomConfiguration(model, -box, box) for _ in range(samples)]).reshape(samples, model.nq)
    return q, rng.standard_normal((samples, model.nv)), rng.standard_normal((samples, model.nv))


def on_arrays(tree: Tree, algorithm: Any, q: np.ndarray, *rest: Any) -> np.ndarray:
    """Return algorithm(tree, posed, *rest) for many samples: every scalar is an array with one entry per sample."""
    columns = [list(each.T) if isinstance(each, np.ndarray) else each for each in rest]
    return stacked(algorithm(tree, pose_tree(tree, list(q.T)), *columns), len(q))


def stacked(values: Any, samples: int) -> np.ndarray:
    """Return nested lists of scalars and arrays (samples,) as an array (samples, ...)."""
    if isinstance(values, list | tuple):
        return np.stack([stacked(value, samples) for value in values], axis=1) if values else np.zeros((samples, 0))
    return np.broadcast_to(np.asarray(values, dtype=float), (samples,))


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest deviation over all samples, each relative to the size of the expected array."""
    axes = tuple(range(1, expected.ndim))
    size = np.abs(expected).max(axis=axes, initial=0.0)
    deviation = np.abs(np.asarray(found) - expected).max(axis=axes, initial=0.0)
    return float(np.max(deviation / np.where(size > 0, size, 1.0), initial=0.0))
