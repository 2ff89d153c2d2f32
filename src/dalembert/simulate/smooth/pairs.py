"""Explicit pairs as the loop reads them, and what errors are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import DOP853, RK45

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
    more_a, more_c, dense = CONTINUOUS[table.name]
    return Pair(a, b, c, error, third, table.order, more_a, more_c, dense)


def _continuous_853() -> tuple[Array, Array, Array]:
    """Return the further stages and the polynomials of dop853's continuous extension (Hairer, Norsett, Wanner, II.6).

    SciPy keeps y(s) = y0 + F0 s + F1 s (1 - s) + F2 s^2 (1 - s) + ..., F linear in the stages.
    """
    method: Any = DOP853
    stages, b = method.B.size, np.asarray(method.B)
    rows = stages + 4
    more_a, dense = np.zeros((4, rows)), np.zeros((rows, 7))
    more_a[0, :stages], more_a[1:] = b, np.asarray(method.A_EXTRA)
    s, one_less = np.polynomial.Polynomial([0.0, 1.0]), np.polynomial.Polynomial([1.0, -1.0])
    for k in range(rows):
        end, first, last = (b[k] if k < stages else 0.0), float(k == 0), float(k == stages)
        F = [end, first - end, 2.0 * end - first - last, *np.asarray(method.D)[:, k]]
        y = np.polynomial.Polynomial([0.0])
        for i, f in enumerate(reversed(F)):
            y = (y + f) * (s if i % 2 == 0 else one_less)
        dense[k, : y.coef.size - 1] = y.coef[1:]
    return more_a, np.append(1.0, np.asarray(method.C_EXTRA)), dense


CONTINUOUS = {
    "dop853": _continuous_853(),
    "dopri5": (np.zeros((0, 7)), np.zeros(0), np.ascontiguousarray(RK45.P, dtype=float)),
}
"""Further stages, their times, and polynomials of states inside a step, by name of the pair."""


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
