"""Random pairs of shapes, and an oracle for their signed distance: the support function along the normal that was
found.

The signed distance of convex shapes is the largest of -s(n) over unit normals n, with s the support function of A - B:
every normal gives a lower bound, so that a normal from elsewhere that gives a larger one convicts.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.contact.hulls import convex_hull, packed
from dalembert.contact.kinds import NUMBERS
from dalembert.contact.memory import SHAPE, work_space
from dalembert.contact.narrow_loops import collide_pairs

SIZES = {
    "sphere": (0.4, 0, 0),
    "capsule": (0.25, 0.4, 0),
    "box": (0.5, 0.4, 0.3),
    "cylinder": (0.35, 0.4, 0),
    "ellipsoid": (0.5, 0.4, 0.3),
    "hull": (0, 0, 0),
    "plane": (0, 0, 0),
}
REACH = {"sphere": 0.4, "capsule": 0.65, "box": 0.5**0.5, "cylinder": 0.54, "ellipsoid": 0.5, "hull": 0.5, "plane": 0.0}

_points = np.random.default_rng(1).standard_normal((40, 3))
CLOUD = (_points / np.linalg.norm(_points, axis=1)[:, None] * [0.5, 0.4, 0.3]).astype(np.float32).astype(float)
"""Points of the hull; peers keep them in single precision."""


def rotations(n, rng):
    """Return random rotations (n, 3, 3)."""
    return Rotation.random(n, random_state=rng).as_matrix()


class Pairs:
    """n random pairs of two kinds, in the units of a scale."""

    def __init__(self, one, two, n=50, scale=1.0, seed=0, near=0.05):
        rng = np.random.default_rng(seed)
        self.kinds, self.scale, self.n = (one, two), scale, n
        self.records = np.zeros(2 * n, SHAPE)
        u = rng.standard_normal((n, 3))
        u /= np.linalg.norm(u, axis=1)[:, None]
        places = [rng.uniform(-1, 1, (n, 3)), None]
        places[1] = places[0] + u * rng.uniform(near, 1.0, (n, 1))
        turns = [rotations(n, rng), rotations(n, rng)]
        if one == "plane":
            places = [np.zeros((n, 3)), rng.uniform(-0.3, 0.6, (n, 3))]
        for k, kind in enumerate(self.kinds):
            part = self.records[k * n : (k + 1) * n]
            part["kind"], part["size"] = NUMBERS[kind], scale * np.array(SIZES[kind])
            part["R"], part["p"], part["reach"] = turns[k], scale * places[k], scale * REACH[kind]
        self.hulls = packed([convex_hull(scale * CLOUD)])
        self.work = work_space()

    def collide(self, several=False, exchanged=False, margin=10.0, warm=None):
        """Return contacts (n, 8, 7), features and counts."""
        n = self.n
        pairs = np.stack([np.arange(n), n + np.arange(n)], 1)
        pairs = np.ascontiguousarray(pairs[:, ::-1]) if exchanged else pairs
        found, features, counts = np.zeros((n, 8, 7)), np.zeros((n, 8), np.int64), np.zeros(n, np.int64)
        warm = np.zeros((n, 3)) if warm is None else warm
        collide_pairs(
            self.records, pairs, self.hulls, self.work, margin * self.scale, several, warm, found, features, counts
        )
        return found, features, counts

    def bring_near(self, depth, rng):
        """Move the second shapes along their normals, until distances are within `depth` of zero."""
        found = self.collide()[0][:, 0]
        move = found[:, 6] - self.scale * rng.uniform(-depth, depth, self.n)
        self.records["p"][self.n :] -= move[:, None] * found[:, 3:6]

    def farthest(self, k, i, d):
        """Return max over the points x of shape k of pair i of d . (x - p)."""
        record, kind = self.records[k * self.n + i], self.kinds[k]
        s, x = record["size"], record["R"].T @ d
        return {
            "sphere": lambda: s[0],
            "capsule": lambda: s[0] + s[1] * abs(x[2]),
            "box": lambda: s @ abs(x),
            "cylinder": lambda: s[0] * np.hypot(x[0], x[1]) + s[1] * abs(x[2]),
            "ellipsoid": lambda: np.linalg.norm(s * x),
            "hull": lambda: (self.scale * CLOUD @ x).max(),
            "plane": lambda: 0.0,
        }[kind]()

    def bound(self, i, n):
        """Return the lower bound of the signed distance of pair i that a unit normal gives."""
        apart = self.records["p"][self.n + i] - self.records["p"][i]
        return apart @ n - self.farthest(0, i, n) - self.farthest(1, i, -n)
