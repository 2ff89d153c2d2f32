"""Work of the joint forces along an implicit run: Gauss' rule of two points on every step of its dense output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulate.smooth.controller import Controller

if TYPE_CHECKING:
    from dalembert.simulate.smooth.implicit_system import ImplicitSystem

Array = np.ndarray

GAUSS = np.array([0.5 - np.sqrt(3.0) / 6, 0.5 + np.sqrt(3.0) / 6])
"""Points of the rule in a step of length one; both weigh 1 / 2."""


def work_along(
    controller: Controller, system: ImplicitSystem, result: Any, times: Array, start: float
) -> tuple[Array, float]:
    """Return the work at `times` and at the end of a result that begins with the work `start`, joules."""
    from dalembert.simulate.contact.forces import Forces

    if controller.kind == "none":
        return np.zeros(times.size), 0.0
    points, n = np.union1d(result.sol.t, times), system.mechanism.nv
    forces, h = Forces(controller), np.diff(points)
    total = np.zeros(h.size)
    for c in GAUSS:
        t = points[:-1] + c * h
        x = result.sol(t)
        q, v = system.configuration(x[:n].T), x[n : 2 * n].T
        total += 0.5 * h * np.array([float(forces(float(t[k]), q[k], v[k]) @ v[k]) for k in range(t.size)])
    work = start + np.concatenate([[0.0], np.cumsum(total)])
    return work[np.searchsorted(points, times)], float(work[-1])
