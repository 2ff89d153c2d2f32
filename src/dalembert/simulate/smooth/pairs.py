"""Explicit pairs as the loop reads them, and what errors are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulate.smooth.step_loops import Pair
from dalembert.simulate.steppers.explicit import ExplicitRungeKutta
from dalembert.simulate.steppers.tables import DOP853_TABLE, DOPRI5

Array = np.ndarray

PAIRS = {"dop853": DOP853_TABLE, "dopri5": DOPRI5}
"""Explicit pairs; being in the list is being tested."""


def pair_of(table: ExplicitRungeKutta) -> Pair:
    """Return a table for the loop; the rate at the end, where the error needs it, is one more stage."""
    a, b, c, stages = table.a[:, : table.b.size], table.b, table.c, table.b.size
    error = np.asarray(table.error)
    third = np.zeros(0) if table.third is None else np.asarray(table.third)
    if error[stages] != 0.0:
        wide = np.zeros((stages + 1, stages + 1))
        wide[:stages, : a.shape[1]], wide[stages, :stages] = a, b
        a, b, c = wide, np.append(b, 0.0), np.append(c, 1.0)
    a, b, c, error, third = (np.ascontiguousarray(x, dtype=float) for x in (a, b, c, error[: b.size], third[: b.size]))
    return Pair(a, b, c, error, third, table.order)


def scale_places(mechanism: Any) -> Array:
    """Return per velocity the coordinate whose size its error is compared with; -1: one radian."""
    places = np.full(mechanism.nv, -1, np.int64)
    starts_q, starts_v = mechanism.manifold.q_start, mechanism.manifold.v_start
    lengths = {"free": 3, "planar": 2, "continuous": 0, "spherical": 0}
    for i, joint in enumerate(mechanism.joints):
        width = int(starts_v[i + 1] - starts_v[i])
        for k in range(lengths.get(joint.kind, width)):
            places[starts_v[i] + k] = starts_q[i] + k
    return places
